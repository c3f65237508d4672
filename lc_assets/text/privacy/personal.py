r"""Personal data in a text: e-mail and IP addresses, telephone, card and bank account numbers.

An expression with bounded repeats finds a candidate, and a validator confirms it.

=====  ============================================  ===============================================
kind   candidate and validator                       not taken
=====  ============================================  ===============================================
email  around an ``@``: at most 64 characters        names reserved by RFC 2606 (``example.com``,
       before it, a name with a dot and letters at   ``.test``, ``.invalid``, ``.example``,
       its end                                       ``.localhost``); files (``logo@2x.png``)
ip     four numbers to 255 without leading zeros;    private, loopback, documentation, multicast and
       what `ipaddress` reads as IPv6, with at       reserved addresses; four numbers after a word
       least two colons                              like "version" or after ``==``, or continued:
                                                     ``1.2.3.4.5``
phone  ``+`` or ``00`` and digits; or national       runs of digits without ``+`` or a leading 0;
       numbers as written there; `phonenumbers`      North America's fictional 555-01xx
card   13 to 19 digits, in a run or in groups; an    all else
       issuer's prefix and length, and Luhn's digit
iban   two letters of any case, two digits and       all else
       more, in a run or in groups; the country's
       length and 97's remainder
=====  ============================================  ===============================================

Of overlapping finds the one that begins first is taken, and then the longer one. Each text is
walked once per kind, so time is linear. `lc_assets.text.privacy.replacing` replaces what is found.
"""

import ipaddress
import itertools
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import lru_cache, partial
from typing import NamedTuple

from lc_assets.text.privacy.account_numbers import IBAN_LENGTHS, is_card, is_iban

KINDS = ("email", "ip", "phone", "card", "iban")
REGIONS: Mapping[str, tuple[str, ...]] = {
    "en": ("US", "GB"),
    "de": ("DE",),
    "fr": ("FR",),
    "es": ("ES",),
    "it": ("IT",),
}
"""The countries whose national numbers are searched for, by a document's language."""


class Personal(NamedTuple):
    """A find: its kind, and its start and end in characters."""

    start: int
    end: int
    kind: str


TAGS = {kind: f"<{kind.upper()}>" for kind in KINDS}
"""Replacements of a value. A tag is not a boundary: a string adjacent to the value is adjacent to
the tag, so replacing a value does not make its neighbour a valid candidate.
"""

_LOCAL_CHARS = 64
_LOCAL = re.compile(r"(?!.*\.\.).*[^.']", re.DOTALL)
_DOMAIN = re.compile(r"@[^\W_](?:[\w-]{0,62})\.[\w.-]{1,190}")
_LOCAL_REVERSED = re.compile(r"[\w.%+'-]{1,65}")
_TOP = re.compile(r"[A-Za-z]{2,24}|xn--[A-Za-z0-9-]{2,59}|[^\W\d_]{2,24}")
_RESERVED = re.compile(
    r"(?:^|\.)(?:example\.(?:com|net|org)|test|invalid|example|localhost"
    # Ends of files' names that are not top-level domains.
    r"|avif|bmp|css|gif|heic|html?|ico|jpe?g|jsx?|json|pdf|php|png|svg|tiff?|webp|xml)$"
)

_IPV4 = re.compile(r"[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}(?![\w.]?[0-9])")
_COLONS = re.compile(r":[0-9A-Fa-f]{0,4}:")
_HEX_RUN = re.compile(r"[0-9A-Fa-f:]{1,46}")
_HEX_AND_DOTS = re.compile(r"[0-9A-Fa-f:.]{1,46}")
_VERSION = re.compile(
    r"(?:[=<>~!]=|\b(?:version|versión|versione|ver|release|build|firmware|revision|rev|section|chapter|kapitel|v)\.?|§)\s{0,3}[:=]?\s{0,3}$",
    re.IGNORECASE,
)

_CARD = re.compile(
    r"[2-6](?:[0-9]{12,18}|[0-9]{3}[ -][0-9]{4,6}[ -][0-9]{4,5}(?:[ -][0-9]{1,4}){0,2})"
)
_IBAN = re.compile(
    r"[0-9]{2}(?<=[A-Za-z]{2}[0-9]{2})(?=((?:[ \xa0\u202f-]?[A-Za-z0-9]{1,4}){3,8}))"
)
"""From its two digits on, so that a search is fast."""

_DIGITS = re.compile(r"\+?[0-9]+")
_ALL_TAGS = tuple(TAGS.values())

_GAP = r"[ \xa0./\u2010-\u2013-]"
_CODE = r"[2-9][0-9]{2}"
_AREA = rf"(?:\({_CODE}\){_GAP}{{0,2}}|{_CODE}{_GAP}{{1,2}})"
_INTERNATIONAL = re.compile(r"(?:\+|00)[1-9](?:[ ()\xa0./\u2010-\u2013-]{0,3}[0-9]){6,14}")
_NATIONAL: Mapping[str, re.Pattern[str]] = {
    "US": re.compile(
        rf"[(1-9](?:(?<=1){_GAP}{{1,2}}{_AREA}|(?<=\(){_CODE}\){_GAP}{{0,2}}"
        rf"|(?<=[2-9])[0-9]{{2}}{_GAP}{{1,2}}){_CODE}{_GAP}[0-9]{{4}}"
    ),
    "GB": re.compile(rf"0[1-9][0-9]{{1,4}}(?:\){_GAP}?|{_GAP}{{1,2}})[0-9](?:{_GAP}?[0-9]){{4,7}}"),
    "DE": re.compile(
        r"(?:\(0[1-9][0-9]{1,4}\)|0[1-9][0-9]{1,4}|0 [1-9][0-9]{1,3} ?/)(?:[ ./-]{0,3}[0-9]){4,10}"
    ),
    "FR": re.compile(r"0[1-9](?:[ .-]?[0-9]{2}){4}"),
    "ES": re.compile(r"[6-9][0-9]{1,2}(?:[ .-][0-9]{2,3}){2,3}"),
    "IT": re.compile(r"(?:0[1-9][0-9]{0,3}|3[0-9]{2})[ ./-]{1,2}[0-9]{3,4}[ ./-]?[0-9]{2,4}"),
}
"""National numbers as they are written in a country. Each begins with a set of characters, so that
a search is fast; so a British one begins after its bracket.
"""


def find_personal(
    text: str, kinds: Collection[str], *, regions: Collection[str] = REGIONS["en"]
) -> list[Personal]:
    """Personal data of some kinds in a text, in order; none overlaps another.

    >>> text = "Write to Ann.Lee@mail.org or call (212) 736-5000; we use 8.8.4.4, version 1.2.3.4."
    >>> [(found.kind, text[found.start : found.end]) for found in find_personal(text, KINDS)]
    [('email', 'Ann.Lee@mail.org'), ('phone', '(212) 736-5000'), ('ip', '8.8.4.4')]

    Args:
        text: the text to search.
        kinds: some of `KINDS`.
        regions: two letters of each country whose national telephone numbers count; international
            ones always do.
    """
    found = sorted(
        (
            Personal(start, end, kind)
            for kind in KINDS
            if kind in kinds
            for start, end in _FINDERS[kind](text, regions)
        ),
        key=lambda personal: (personal.start, -personal.end, KINDS.index(personal.kind)),
    )
    apart: list[Personal] = []
    for personal in found:
        if not apart or personal.start >= apart[-1].end:
            apart.append(personal)
    return apart


def _emails(text: str, _: Collection[str]) -> Iterator[tuple[int, int]]:
    if "@" not in text:
        return
    done = 0
    for match in _DOMAIN.finditer(text):
        at = match.start()
        head = _LOCAL_REVERSED.match(text[max(done, at - _LOCAL_CHARS - 1) : at][::-1])
        local = head.group()[::-1].lstrip(".'-%+") if head else ""
        domain = _domain_of(match.group()[1:])
        if domain and len(local) <= _LOCAL_CHARS and _LOCAL.fullmatch(local):
            done = at + 1 + len(domain)
            if not _RESERVED.search(domain.lower()):
                yield at - len(local), done


@lru_cache(4096)
def _domain_of(run: str) -> str:
    """The longest beginning of a run of labels that is a name with a top level; empty when none
    is.
    """
    labels = list(itertools.takewhile(_is_label, run.rstrip(".-_").split(".")))
    while len(labels) > 1 and not _TOP.fullmatch(labels[-1]):
        labels.pop()
    return ".".join(labels) if len(labels) > 1 else ""


def _is_label(label: str) -> bool:
    return 0 < len(label) <= 63 and label[0] != "-" and label[-1] != "-" and "_" not in label


def _ips(text: str, _: Collection[str]) -> Iterator[tuple[int, int]]:
    for match in _IPV4.finditer(text):
        start, end = match.span()
        goes_on = text[start - 1 : start] == "." or text.startswith(_ALL_TAGS, end)
        goes_on = goes_on or _touched_before(text, start)
        is_version = _VERSION.search(text[max(start - 24, 0) : start])
        if not goes_on and not is_version and _is_somebodys(match.group()):
            yield start, end
    if ":" in text:
        yield from _sixes(text)


def _sixes(text: str) -> Iterator[tuple[int, int]]:
    done = 0
    for match in _COLONS.finditer(text):
        if match.start() < done:
            continue
        head = _HEX_RUN.match(text[max(done, match.start() - 46) : match.start()][::-1])
        start = match.start() - (len(head.group()) if head else 0)
        found = _HEX_AND_DOTS.match(text, start)
        candidate = re.sub(r"(?<!:):\Z", "", found.group().rstrip(".")) if found else ""
        end = start + len(candidate)
        goes_on = _touched_before(text, start) or text[start - 1 : start] == ":"
        goes_on = goes_on or _touched_after(text, end)
        if not goes_on and candidate.count(":") >= 2 and _is_somebodys(candidate):
            yield start, end
        done = max(end, match.end() - 1)


@lru_cache(4096)
def _is_somebodys(address: str) -> bool:
    """Whether an address is one that is routed on the public network; of IPv6, 2000::/3 is all that
    was given out.
    """
    try:
        read = ipaddress.ip_address(address)
    except ValueError:
        return False
    return read.is_global and not read.is_multicast and (read.version == 4 or int(read) >> 125 == 1)


def _phones(text: str, regions: Collection[str]) -> Iterator[tuple[int, int]]:
    yield from _validated(_INTERNATIONAL, text, partial(_is_phone, region=None))
    for region in regions:
        if expression := _NATIONAL.get(region):
            for start, end in _validated(expression, text, partial(_is_phone, region=region)):
                closes = ")" in text[start:end] and "(" not in text[start:end]
                yield start - (closes and text[start - 1 : start] == "("), end


@lru_cache(4096)
def _is_phone(number: str, region: str | None) -> bool:
    import phonenumbers

    international = re.sub(r"^00", "+", number)
    try:
        read = phonenumbers.parse(international, None if international.startswith("+") else region)
    except phonenumbers.NumberParseException:
        return False
    fictitious = (
        read.country_code == 1
        and re.fullmatch(r"[0-9]{3}55501[0-9]{2}", str(read.national_number)) is not None
    )
    return phonenumbers.is_valid_number(read) and not fictitious


def _cards(text: str, _: Collection[str]) -> Iterator[tuple[int, int]]:
    yield from _validated(_CARD, text, lambda number: is_card(re.sub("[ -]", "", number)))


def _validated(
    expression: re.Pattern[str], text: str, is_one: Callable[[str], bool]
) -> Iterator[tuple[int, int]]:
    """Yield what matches, is a number of its own and is valid; others may hide one that begins
    after its first digits.
    """
    at = 0
    while match := expression.search(text, at):
        start, end = match.span()
        if not _goes_on(text, start, end) and is_one(match.group()):
            yield start, end
            at = end
        else:
            digits = _DIGITS.match(match.group())
            at = start + (len(digits.group()) if digits else 1)


def _goes_on(text: str, start: int, end: int) -> bool:
    """Whether a number is a part of something longer."""
    before = re.search(r"(?:[0-9][./,-]|\+)\Z", text[max(start - 2, 0) : start])
    decimal = before or re.match(r"[./,-][0-9]", text[end : end + 2])
    return bool(decimal) or _touched_before(text, start) or _touched_after(text, end)


def _touched_before(text: str, start: int) -> bool:
    """Whether a letter, a digit, an underscore or a tag is directly before."""
    before = text[start - 1 : start] if start else ""
    return before.isalnum() or before == "_" or text.endswith(_ALL_TAGS, 0, start)


def _touched_after(text: str, end: int) -> bool:
    after = text[end : end + 1]
    return after.isalnum() or after == "_" or text.startswith(_ALL_TAGS, end)


def _ibans(text: str, _: Collection[str]) -> Iterator[tuple[int, int]]:
    """The beginning of each candidate that is as long as its country's; words may follow it."""
    for match in _IBAN.finditer(text):
        start = match.start() - 2
        candidate = text[start : match.end(1)].upper()
        places = [place for place, char in enumerate(candidate) if char.isalnum()]
        places = places[: IBAN_LENGTHS.get(candidate[:2], 0)]
        if is_iban("".join(candidate[place] for place in places)):
            end = start + places[-1] + 1
            if not _touched_before(text, start) and not _touched_after(text, end):
                yield start, end


_FINDERS: Mapping[str, Callable[[str, Collection[str]], Iterator[tuple[int, int]]]] = {
    "email": _emails,
    "ip": _ips,
    "phone": _phones,
    "card": _cards,
    "iban": _ibans,
}
