"""Targets: the pages that a page's links lead to, each once, with all its anchor texts.

A link's address is resolved as browsers do: against the page's ``<base>``, itself resolved against
the page's own address, or else against that. Links that lead to one page
(`lc_assets.text.links.page_keys`) are one target, at the position of the first one. Links without a
target are counted by reason, each once:

==========  ================================================================
`EMPTY`     no address
`FRAGMENT`  a position within the page: ``#part``
`SCHEME`    not an address of the web: ``mailto:``, ``javascript:``, …
`BROKEN`    not an address, or one too long for a page key
`ITSELF`    the page itself
`RELATIVE`  relative, where addresses are not resolved, as in the paper
==========  ================================================================

An anchor text is **generic** when it does not describe its target: one of `GENERIC`, a
number, or without any word.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec

from lc_assets.text.links.links import Link
from lc_assets.text.links.page_keys import page_key

_GENERIC = (
    # English
    "here|click here|click|this|this link|this page|link|more|read more|more info|"
    "learn more|see more|show more|view more|find out more|continue|continue reading|"
    "details|full story|view|go|next|next page|prev|previous|previous page|back|up|"
    "top|back to top|to top|first|last|home|homepage|index|contents|table of contents|"
    "menu|search|login|log in|sign in|sign up|register|subscribe|share|print|email|"
    "e mail|rss|reply|permalink|edit|download|source|older|newer|older posts|"
    "newer posts|website|page|skip to content|skip to main content|close|"
    # German
    "hier|hier klicken|mehr|mehr lesen|mehr erfahren|weiterlesen|weiter|zurück|"
    "nach oben|startseite|lesen sie mehr|nächste|vorherige|nächste seite|"
    "vorherige seite|inhalt|suche|anmelden|drucken|"
    # French
    "ici|cliquez ici|plus|en savoir plus|lire la suite|lire plus|voir plus|suivant|"
    "précédent|retour|accueil|page suivante|page précédente|haut de page|sommaire|"
    "rechercher|connexion|imprimer|"
    # Spanish
    "aquí|haz clic aquí|más|leer más|ver más|seguir leyendo|siguiente|anterior|volver|"
    "inicio|página siguiente|página anterior|arriba|contenido|buscar|iniciar sesión|"
    "imprimir|"
    # Italian
    "qui|clicca qui|più|leggi tutto|leggi di più|continua|continua a leggere|"
    "scopri di più|successivo|precedente|indietro|pagina successiva|pagina precedente|"
    "torna su|cerca|accedi|stampa"
)
GENERIC = frozenset(_GENERIC.split("|"))
"""Anchor texts that name an action rather than the target, in RedPajama-V2's five languages:
lower case, words separated by one space.
"""

_WORD = re.compile(r"\w+")


def words_of(text: str) -> str:
    """The words of a text without case and punctuation, one space before and after each: what
    `occurs_in` compares.

    >>> words_of("Read more…"), words_of("»")
    (' read more ', ' ')
    """
    return " ".join(["", *_WORD.findall(text.casefold()), ""])


def is_generic(anchor: str) -> bool:
    """Whether an anchor text does not describe its target: one of `GENERIC`, a number, or
    without any word.

    >>> [
    ...     is_generic(anchor)
    ...     for anchor in ("Click HERE!", "»", "[12]", "", "The next generation")
    ... ]
    [True, True, True, True, False]
    """
    words = words_of(anchor).strip()
    return words in GENERIC or words.replace(" ", "").isdigit() or not words


def occurs_in(anchor_words: str, text_words: str) -> bool:
    """Whether an anchor's words occur in a text as a contiguous run; both as `words_of` gives them.

    >>> (
    ...     occurs_in(words_of("a cat"), words_of("It's a *cat*.")),
    ...     occurs_in(words_of("cat"), words_of("cats")),
    ...     occurs_in(" ", " a "),
    ... )
    (True, False, False)
    """
    return len(anchor_words) > 1 and anchor_words in text_words


EMPTY = "empty address"
FRAGMENT = "place within the page"
SCHEME = "not http"
BROKEN = "no address"
ITSELF = "the page itself"
RELATIVE = "relative address"
REASONS = (EMPTY, FRAGMENT, SCHEME, BROKEN, ITSELF, RELATIVE)
"""Why a link has no target."""

BETWEEN_KEYS = ", "

COMPARED_CHARS = 1 << 28
"""Characters of a page's text that its anchors are looked for in, all together: a twentieth of a
second. Anchors after that count as not in the text; it takes 5,000 of them and 50,000 characters.
"""

_HTTP = ("http://", "https://")
_WHITE = " \t\n\f\r"


class Target(msgspec.Struct, frozen=True):
    """A page that another page links to.

    Attributes:
        key: its page key.
        url: its address as first linked to, resolved, without fragment.
        texts: the different anchor texts, in order of appearance; generic ones only where there are
            no others.
        position: number of the first link to it among all links of the page, from 0.
        n_links: number of links that lead to it.
        nofollow: whether no author vouches for any of them.
        navigation: whether all of them are in menus.
        generic: whether all anchor texts are generic.
        in_text: whether an anchor text that is not generic occurs in the page's cleaned text.
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


def targets_of(
    links: Iterable[Link], page_url: str, *, base: str = "", resolve: bool = True, text: str = ""
) -> Targets:
    """The pages that the links lead to, and why the other links lead to none.

    Args:
        links: of one page, in their order.
        page_url: the page's own address.
        base: address in the page's ``<base>``.
        resolve: whether relative addresses are resolved; otherwise they are left out, as in the
            paper.
        text: the page's cleaned text, to look for anchors in.
    """
    own = page_key(page_url)
    absolute_base = base_of(page_url, base) if resolve else ""
    places: dict[str, _Place | str] = {}  # a third of a page's links repeat
    groups: dict[str, tuple[str, int, list[Link]]] = {}
    left_out: Counter[str] = Counter()
    for position, link in enumerate(links):
        if link.href not in places:
            places[link.href] = _place_of(link.href.strip(_WHITE), absolute_base)
        place = places[link.href]
        if isinstance(place, str) or place.key == own:
            left_out[place if isinstance(place, str) else ITSELF] += 1
        else:
            groups.setdefault(place.key, (place.url, position, []))[2].append(link)
    found = [_merged(key, *group, generic_too=not resolve) for key, group in groups.items()]
    return Targets(tuple(_marked(found, text)), dict(left_out))


class _Place(NamedTuple):
    key: str
    url: str


def _place_of(href: str, base: str) -> _Place | str:
    """The page that an address leads to, or the reason for none."""
    if not href:
        return EMPTY
    if href.startswith("#"):
        return FRAGMENT
    found = absolute(href, base)
    if found is None:
        return BROKEN if base else RELATIVE
    if not found.startswith(_HTTP):
        return SCHEME
    key = page_key(found)
    return BROKEN if key is None else _Place(key, found.partition("#")[0])


def base_of(page_url: str, base: str) -> str:
    """The base of relative addresses; a ``<base>`` that is not a web address is ignored."""
    joined = absolute(base.strip(_WHITE), page_url) if base else None
    return joined if joined is not None and joined.startswith(_HTTP) else page_url


def absolute(href: str, base: str) -> str | None:
    """An address, resolved against another; None when it is none.

    >>> absolute("../b?c", "http://example.org/a/x/y"), absolute("b", "")
    ('http://example.org/a/b?c', None)
    """
    try:
        import ada_url

        found: str = ada_url.join_url(base, href) if base else ada_url.URL(href).href
    except ValueError:  # no address, or a lone surrogate in one
        return None
    return found


def _merged(key: str, url: str, position: int, links: list[Link], *, generic_too: bool) -> Target:
    texts = tuple(dict.fromkeys(anchor for link in links if (anchor := link.anchor)))
    telling = tuple(anchor for anchor in texts if not is_generic(anchor))
    return Target(
        key=key,
        url=url,
        texts=texts if generic_too else telling or texts,
        position=position,
        n_links=len(links),
        nofollow=all(link.nofollow for link in links),
        navigation=all(link.navigation for link in links),
        generic=not telling,
    )


def _marked(found: Iterable[Target], text: str) -> Iterator[Target]:
    """The targets, each with whether one of its anchors occurs in the text."""
    words = words_of(text) if text else ""
    n_left = COMPARED_CHARS
    for target in found:
        occurs = False
        if words and not target.generic:
            for anchor in target.texts:
                n_left -= len(words)
                occurs = occurs or (
                    n_left >= 0 and not is_generic(anchor) and occurs_in(words_of(anchor), words)
                )
        yield msgspec.structs.replace(target, in_text=True) if occurs else target
