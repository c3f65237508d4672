"""Replacing personal data: by a tag, or by a made-up value from a range that is reserved for that.

The replacement depends on the value, the style and the seed only: not on the document, its
neighbours, the shard or the worker. So equal addresses stay equal everywhere, and a replacement is
not replaced again.

=======  ==============  ===========================================================================
kind     tag             surrogate
=======  ==============  ===========================================================================
email    ``<EMAIL>``     ``user-`` and 16 hexadecimal digits at ``example.com`` (RFC 2606)
ip       ``<IP>``        of 192.0.2.0/24, 198.51.100.0/24 or 203.0.113.0/24 (RFC 5737);
                         of 2001:db8::/32 (RFC 3849)
phone    ``<PHONE>``     ``+1-AAA-555-01XX``: North America's numbers for fiction
card     ``<CARD>``      the tag: no range is reserved
iban     ``<IBAN>``      the tag
=======  ==============  ===========================================================================

The seed is not secret, and surrogates are not encryption: all IPv4 addresses can be tried.
"""

import ipaddress
from collections import Counter
from collections.abc import Collection, Iterator
from typing import Literal

import msgspec

from lc_assets.randomness import keyed_u64
from lc_assets.text.privacy.personal import REGIONS, TAGS, Personal, find_personal

Style = Literal["tag", "surrogate"]

ROUNDS = 4
"""Maximum number of passes over a text: a candidate that touched or overlapped a value may become
valid when that is replaced. A text without finds takes one pass, nearly all others two.
"""

_NETS = ("192.0.2", "198.51.100", "203.0.113")
_AREAS = (202, 206, 212, 213, 303, 305, 312, 404, 415, 503, 512, 602, 617, 702, 713, 718)
_SIX_PREFIX = int(ipaddress.IPv6Address("2001:db8::"))


class Replaced(msgspec.Struct, frozen=True, kw_only=True):
    """A text with all finds replaced, and the number of replacements by kind."""

    text: str
    counts: dict[str, int]


def replace_personal(
    text: str,
    kinds: Collection[str],
    *,
    style: Style = "tag",
    seed: int = 0,
    language: str = "",
    region: str | None = None,
) -> Replaced:
    """Replace personal data of some kinds.

    >>> replace_personal("Ann <ann@mail.org>, ann@mail.org", ["email"])
    Replaced(text='Ann <<EMAIL>>, <EMAIL>', counts={'email': 2})
    >>> replace_personal("from 8.8.4.4", ["ip"], style="surrogate").text
    'from 192.0.2.82'

    Args:
        text: any text.
        kinds: some of `lc_assets.text.privacy.personal.KINDS`.
        style: ``tag`` or ``surrogate``.
        seed: of the surrogates.
        language: of the document: national telephone numbers are those of
            `lc_assets.text.privacy.personal.REGIONS`.
        region: two letters of the country whose national numbers count instead.

    Raises:
        BadInput: for an unknown kind.
    """
    counts, regions = Counter[str](), regions_of(language, region)
    for found, _, replaced in replaced_in_rounds(text, kinds, regions, style=style, seed=seed):
        text = replaced
        counts.update(personal.kind for personal in found)
    return Replaced(text=text, counts=dict(sorted(counts.items())))


def regions_of(language: str, region: str | None) -> tuple[str, ...]:
    """The countries whose national telephone numbers count: ``region``, or those of a language."""
    return (region,) if region else REGIONS.get(language, ())


def replaced_in_rounds(
    text: str, kinds: Collection[str], regions: Collection[str], *, style: Style, seed: int
) -> Iterator[tuple[list[Personal], list[str], str]]:
    """The passes of `replace_personal` over a text: the finds in the text so far, what replaces
    each, and the text afterwards.
    """
    for _ in range(ROUNDS):
        found = find_personal(text, kinds, regions=regions)
        if not found:
            return
        values = [
            replacement(one.kind, text[one.start : one.end], style=style, seed=seed)
            for one in found
        ]
        begins = [0, *(one.end for one in found)]
        ends = [*(one.start for one in found), len(text)]
        kept = (text[begin:end] for begin, end in zip(begins, ends, strict=True))
        text = "".join(map("".join, zip(kept, [*values, ""], strict=True)))
        yield found, values, text


def replacement(kind: str, value: str, *, style: Style, seed: int) -> str:
    """The replacement of a value.

    >>> replacement("phone", "(212) 736-5000", style="surrogate", seed=0)
    '+1-303-555-0153'
    """
    if style == "tag" or kind in {"card", "iban"}:
        return TAGS[kind]
    number = int(
        keyed_u64(f"surrogate {kind}", seed=seed, keys=[_same_for_all_spellings(kind, value)])[0]
    )
    if kind == "email":
        return f"user-{number:016x}@example.com"
    if kind == "phone":
        return f"+1-{_AREAS[number % len(_AREAS)]}-555-01{(number >> 32) % 100:02d}"
    if ":" in value:
        return str(ipaddress.IPv6Address(_SIX_PREFIX | number))
    return f"{_NETS[number % 3]}.{1 + (number >> 8) % 254}"


def _same_for_all_spellings(kind: str, value: str) -> str:
    """A value without differences of spelling: the case of an address, the gaps of a number."""
    return (
        "".join(char for char in value if char.isdigit() or char == "+")
        if kind == "phone"
        else value.lower()
    )
