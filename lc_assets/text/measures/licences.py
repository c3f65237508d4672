"""Creative Commons licences that a document names.

They are found in links, as Dolma's ``cc_re`` tagger and DKPro C4CorpusTools do
(``creativecommons.org/licenses/by-sa/4.0``), and by name: ``CC BY-SA 4.0`` and its spellings, and
"Creative Commons Attribution". A licence that is named is not always the page's own.
"""

import re

_LINK = re.compile(
    r"creativecommons\.org/(?:licenses/(by(?:-nc)?(?:-nd|-sa)?|sa|nd|nc)\b|(publicdomain)/(zero|mark|certification))(?:/(\d\.\d))?",
    re.IGNORECASE,
)
_SHORT = re.compile(r"\bCC(?:[ -](BY(?:[ -]NC)?(?:[ -](?:ND|SA))?)|[ -]?(0))\b(?:[ ,]*v?(\d\.\d))?")
_LONG = re.compile(
    r"\bCreative Commons(?:[ '’\u2018]|\bs\b){0,3}(Attribution|Public Domain|Zero|CC0|licen[cs]e)",
    re.IGNORECASE,
)
_LONG_NAMES = {"attribution": "cc-by", "zero": "cc0", "cc0": "cc0", "public domain": "cc-mark"}
_HINT = re.compile(r"creative ?commons|\bCC[ -]?(?:BY|0)", re.IGNORECASE)


def licence_of(text: str, url: str | None = None) -> str | None:
    """Name the first Creative Commons licence that a document mentions: links before names, the
    text before the address.

    Returns:
        Such as ``cc-by-sa-4.0``, ``cc-by-nc``, ``cc0``, ``cc-mark``; ``cc`` when it only says
        Creative Commons license; None when it names none.

    >>> licence_of("Text under CC BY-SA 4.0."), licence_of("see https://creativecommons.org/publicdomain/zero/1.0/")
    ('cc-by-sa-4.0', 'cc0-1.0')
    >>> licence_of("All rights reserved.", "https://example.org/") is None
    True
    """
    if _HINT.search(text) is None and (url is None or _HINT.search(url) is None):
        return None
    places = (text, url or "")
    links = (_of_link(found) for place in places if (found := _LINK.search(place)))
    names = (
        _of_name(found)
        for pattern in (_SHORT, _LONG)
        for place in places
        if (found := pattern.search(place))
    )
    return next(links, None) or next(names, None)


def _of_link(found: re.Match[str]) -> str:
    kind, public, which, version = found.groups()
    name = (
        {"zero": "cc0"}.get(which.lower(), f"cc-{which.lower()}")
        if public
        else f"cc-{kind.lower()}"
    )
    return f"{name}-{version}" if version else name


def _of_name(found: re.Match[str]) -> str:
    if found.re is _LONG:
        return _LONG_NAMES.get(found.group(1).lower(), "cc")
    kind, zero, version = found.groups()
    name = "cc0" if zero else f"cc-{kind.lower().replace(' ', '-')}"
    return f"{name}-{version}" if version else name
