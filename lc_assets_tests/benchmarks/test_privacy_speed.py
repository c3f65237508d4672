"""How fast personal data are found, against plain expressions, and datatrove's where it is
installed; ``-s`` shows figures.
"""

import re

import pytest

from lc_assets.text.privacy.personal import KINDS
from lc_assets.text.privacy.replacing import replace_personal
from lc_assets_tests.benchmarks.crawl import prose
from lc_assets_tests.benchmarks.timing import cpu_seconds, say

TEXT_CHARS = 4_000_000
LEAST_RATIO = 1.2
EVERY = 20_000
"""Characters between two planted values."""
PLANTED = (
    " ann.lee@mail.org ",
    " 8.8.4.4 ",
    " (212) 736-5000 ",
    " 4111 1111 1111 1111 ",
    " DE89 3704 0044 0532 0130 00 ",
)

EMAIL = re.compile(r"\b[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Za-z]{2,}\b")
IP = re.compile(
    r"\b(?:(?:25[0-5]|2[0-4][0-9]|[01]?[0-9][0-9]?)\.){3}(?:25[0-5]|2[0-4][0-9]|[01]?[0-9][0-9]?)\b"
)


def planted_text() -> tuple[str, str]:
    """What kind of text, and a text with personal data here and there."""
    kind, source = prose()
    pieces = [
        source[start : start + EVERY] for start in range(0, min(TEXT_CHARS, len(source)), EVERY)
    ]
    return kind, "".join(
        piece + PLANTED[number % len(PLANTED)] for number, piece in enumerate(pieces)
    )


def plain_replaced(text: str) -> str:
    """The chain of expressions that everybody writes."""
    return IP.sub("<IP>", EMAIL.sub("<EMAIL>", text))


def test_replacing():
    kind, text = planted_text()
    n_megabytes = len(text.encode()) / 1e6
    ours, replaced = cpu_seconds(lambda _: replace_personal(text, ["email", "ip"]))
    plain, expected = cpu_seconds(lambda _: plain_replaced(text))
    assert replaced.text == expected
    assert replaced.counts["email"] >= len(text) // EVERY // len(PLANTED)
    say(f"e-mail and IP replaced, {kind}", n_megabytes, "MB", ours, plain_expressions=plain)
    every, found = cpu_seconds(lambda _: replace_personal(text, KINDS, language="en"))
    assert set(found.counts) == set(KINDS)
    say(
        f"all five kinds replaced, {kind}",
        n_megabytes,
        "MB",
        every,
        plain_expressions_for_two=plain,
    )
    assert plain / ours > LEAST_RATIO


@pytest.mark.network
def test_against_datatrove():
    formatters = pytest.importorskip("datatrove.pipeline.formatters")
    kind, text = planted_text()
    formatter = formatters.PIIFormatter()
    ours, replaced = cpu_seconds(lambda _: replace_personal(text, ["email", "ip"]))
    theirs, other = cpu_seconds(lambda _: formatter.format(text))
    assert (
        other.count("@example.com") + other.count("email@example.com") >= replaced.counts["email"]
    )
    say(f"e-mail and IP replaced, {kind}", len(text.encode()) / 1e6, "MB", ours, datatrove=theirs)
