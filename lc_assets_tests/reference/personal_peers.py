"""Personal data as Presidio, datatrove and Dolma find it, by our names of kinds; without Presidio's
models, which are for names of people.
"""

import re
from collections.abc import Callable

Finder = Callable[[str], list[str]]


def presidio() -> dict[str, Finder]:
    """Its recognizers by pattern, at their defaults."""
    from presidio_analyzer import predefined_recognizers as recognizers

    classes = {
        "email": recognizers.EmailRecognizer,
        "ip": recognizers.IpRecognizer,
        "phone": recognizers.PhoneRecognizer,
        "card": recognizers.CreditCardRecognizer,
        "iban": recognizers.IbanRecognizer,
    }

    def finder(recognizer) -> Finder:
        entities = recognizer.supported_entities
        return lambda text: [
            text[one.start : one.end] for one in recognizer.analyze(text, entities, None)
        ]

    return {kind: finder(of()) for kind, of in classes.items()}


def datatrove() -> dict[str, Finder]:
    """`PIIFormatter` at its defaults."""
    from datatrove.pipeline.formatters.pii import PIIFormatter

    formatter = PIIFormatter()

    def finder(replacer) -> Finder:
        valid = replacer.validator or bool
        return lambda text: [
            found.group() for found in replacer.regex.finditer(text) if valid(found.group())
        ]

    return {"email": finder(formatter.emails_replacer), "ip": finder(formatter.ip_replacer)}


def dolma() -> dict[str, Finder]:
    """The expressions of ``pii_regex_with_counts_fast_v2`` in Dolma 1.2, ``taggers/pii.py``, and its
    rule that an address has a dot after the ``@``.
    """
    email = re.compile(r"[.\s@,?!;:)(]*([^\s@]+@[^\s@,?!;:)(]+?)[.\s@,?!;:)(]?[\s\n\r]")
    phone = re.compile(r"\s+\(?(\d{3})\)?[-\. ]*(\d{3})[-. ]?(\d{4})")
    octet = "(?:25[0-5]|2[0-4][0-9]|[01]?[0-9][0-9]?)"
    ip = re.compile(rf"(?:{octet}\.){{3}}{octet}")
    return {
        "email": lambda text: [
            found.group(1) for found in email.finditer(text) if "." in found.group(1).split("@")[1]
        ],
        "phone": lambda text: [found.group() for found in phone.finditer(text)],
        "ip": lambda text: [found.group() for found in ip.finditer(text)],
    }
