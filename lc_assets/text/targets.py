"""Targets: the pages that a page's links lead to, each once, with all the words that lead there.

A link's address is resolved as browsers do: against the page's ``<base>``, itself resolved against
the page's own address, else against that. Links that lead to one page (`lc_assets.text.page_keys`)
are one target, at the place of the first of them. What is no target is counted by its reason, and
every link is in one count:

===========================  =====================================================================
`EMPTY`                      nothing where the address should be
`FRAGMENT`                   a place within the page: ``#part``
`SCHEME`                     no address of the web: ``mailto:``, ``javascript:``, ...
`BROKEN`                     no address at all, or one too long for a page key
`ITSELF`                     the page itself
`RELATIVE`                   relative, where addresses are not resolved (the paper resolves none)
===========================  =====================================================================

Not here: which targets are worth packing (portals, languages, budgets), the pages behind them.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import ada_url
import msgspec

from lc_assets.text.anchors import is_generic, stands_in, words_of
from lc_assets.text.links import Link
from lc_assets.text.page_keys import page_key

EMPTY: Final = "empty address"
FRAGMENT: Final = "place within the page"
SCHEME: Final = "not http"
BROKEN: Final = "no address"
ITSELF: Final = "the page itself"
RELATIVE: Final = "relative address"
REASONS: Final = (EMPTY, FRAGMENT, SCHEME, BROKEN, ITSELF, RELATIVE)
"""Why a link has no target."""

BETWEEN_KEYS: Final = ", "

COMPARED_CHARS: Final = 1 << 28
"""Characters of a page's text that its anchors are looked for in, all together: a twentieth of a
second. Anchors after that count as not in the text; it takes 5,000 of them and 50,000 characters.
"""

_HTTP: Final = ("http://", "https://")
_WHITE: Final = " \t\n\f\r"


class Target(msgspec.Struct, frozen=True):
    """A page that a page points at.

    Attributes:
        key: its page key.
        url: its address as first linked to, resolved, without fragment.
        texts: the different anchor texts, in order of appearance; generic ones only where there are
            no others.
        position: number of the first link to it among all links of the page, from 0.
        n_links: how many links lead to it.
        nofollow: whether no author vouches for any of them.
        navigation: whether all of them stand in menus.
        generic: whether no anchor text says what it is.
        in_text: whether an anchor text that says something stands in the page's cleaned text.
    """

    key: str
    url: str
    texts: tuple[str, ...]
    position: int
    n_links: int = 1
    nofollow: bool = False
    navigation: bool = False
    generic: bool = False
    in_text: bool = False

    @property
    def keys(self) -> str:
        """The anchor texts, joined: what is written before the page's content."""
        return BETWEEN_KEYS.join(self.texts)


class Targets(msgspec.Struct, frozen=True):
    """What a page's links lead to, by first appearance; and how many of its links lead nowhere, by
    reason.
    """

    found: tuple[Target, ...] = ()
    left_out: dict[str, int] = {}


def targets(
    links: Iterable[Link], page_url: str, *, base: str = "", resolve: bool = True, text: str = ""
) -> list[Target]:
    """The pages that the links lead to; see `targets_of`.

    >>> links = [Link("b.html", "next"), Link("/a/b.html#c", "B"), Link("mailto:x@example.org", "mail")]
    >>> [(target.key, target.keys, target.n_links) for target in targets(links, "http://example.org/a/")]
    [('example.org/a/b.html', 'B', 2)]
    """
    return list(targets_of(links, page_url, base=base, resolve=resolve, text=text).found)


def targets_of(
    links: Iterable[Link], page_url: str, *, base: str = "", resolve: bool = True, text: str = ""
) -> Targets:
    """The pages that the links lead to, and why the other links lead to none.

    Args:
        links: of one page, in their order.
        page_url: the page's own address.
        base: what the page's ``<base>`` says.
        resolve: whether relative addresses are resolved; otherwise they are left out, as in the
            paper.
        text: the page's cleaned text, to look for anchors in.
    """
    own = page_key(page_url)
    places = _Places(_base_of(page_url, base) if resolve else "")
    groups: dict[str, list[tuple[int, Link]]] = {}
    urls: dict[str, str] = {}
    left_out: Counter[str] = Counter()
    for position, link in enumerate(links):
        place = places.of(link.href)
        if isinstance(place, str) or place.key == own:
            left_out[place if isinstance(place, str) else ITSELF] += 1
            continue
        urls.setdefault(place.key, place.url)
        groups.setdefault(place.key, []).append((position, link))
    found = [
        _merged(key, urls[key], group, generic_too=not resolve) for key, group in groups.items()
    ]
    return Targets(tuple(_marked(found, text)), dict(left_out))


class _Place(NamedTuple):
    key: str
    url: str


class _Places:
    """Where addresses lead, each resolved once: a third of a page's links repeat."""

    def __init__(self, base: str) -> None:
        self._base = base
        self._known: dict[str, _Place | str] = {}

    def of(self, href: str) -> _Place | str:
        """The page, or why there is none."""
        found = self._known.get(href)
        if found is None:
            found = self._known[href] = self._resolved(href.strip(_WHITE))
        return found

    def _resolved(self, href: str) -> _Place | str:
        if not href:
            return EMPTY
        if href.startswith("#"):
            return FRAGMENT
        absolute = _joined(self._base, href) if self._base else _absolute(href)
        if absolute is None:
            return BROKEN if self._base else RELATIVE
        if not absolute.startswith(_HTTP):
            return SCHEME
        key = page_key(absolute)
        return BROKEN if key is None else _Place(key, absolute.partition("#")[0])


def _base_of(page_url: str, base: str) -> str:
    """What addresses are relative to: a ``<base>`` that leads out of the web counts for nothing."""
    joined = _joined(page_url, base.strip(_WHITE)) if base else None
    return joined if joined is not None and joined.startswith(_HTTP) else page_url


def _joined(base: str, href: str) -> str | None:
    try:
        found: str = ada_url.join_url(base, href)
    except ValueError:  # no address, or a lone surrogate in one
        return None
    return found


def _absolute(href: str) -> str | None:
    try:
        found: str = ada_url.URL(href).href
    except ValueError:
        return None
    return found


def _merged(key: str, url: str, group: list[tuple[int, Link]], *, generic_too: bool) -> Target:
    links = [link for _, link in group]
    texts = tuple(dict.fromkeys(anchor for link in links if (anchor := link.anchor)))
    telling = tuple(anchor for anchor in texts if not is_generic(anchor))
    return Target(
        key=key,
        url=url,
        texts=texts if generic_too else telling or texts,
        position=group[0][0],
        n_links=len(links),
        nofollow=all(link.nofollow for link in links),
        navigation=all(link.navigation for link in links),
        generic=not telling,
    )


def _marked(found: Iterable[Target], text: str) -> Iterator[Target]:
    """The targets, each with whether one of its anchors stands in the text."""
    words = words_of(text) if text else ""
    n_left = COMPARED_CHARS
    for target in found:
        stands = False
        if words and not target.generic:
            for anchor in target.texts:
                n_left -= len(words)
                stands = stands or (
                    n_left >= 0 and not is_generic(anchor) and stands_in(words_of(anchor), words)
                )
        yield msgspec.structs.replace(target, in_text=True) if stands else target
