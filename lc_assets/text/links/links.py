"""Links of a page: the addresses that its HTML points at, and their anchor texts.

There are two extractors. Both give an address as written (`lc_assets.text.links.targets` resolves
it) and an anchor text.

=====  ===========================================================================================
html5  as browsers read it (an HTML5 parser): entities decoded, markup within links ignored, white
       space collapsed; no links in comments, scripts and templates, and no text of what is not
       shown (`_HIDDEN`)
paper  exactly what the three expressions of the LongPack paper find, nothing decoded or collapsed
=====  ===========================================================================================

The paper's first expression takes cubic time in the length of an unclosed tag: a minute for 9 kB.
`scanned` finds the same in linear time: from ``<a`` the tag extends to the next ``>``, and the
anchor text from there to the next ``<``. If they make no link, no later ``<a`` in the same tag can.

Source: LongPack (ICLR 2025), Appendix.
"""

import re
from collections.abc import Iterator
from typing import Literal

import msgspec
from selectolax.lexbor import LexborHTMLParser, LexborNode

from lc_assets.text.html.guard import refusal_of

Extractor = Literal["html5", "paper"]

REGEX_URL = re.compile(r'href="([^">]+?)"')
"""The paper's expression for an address, as printed."""

UNVOUCHED = frozenset({"nofollow", "sponsored", "ugc"})
"""Values of ``rel`` by which a page's author does not vouch for what is linked to."""

MAX_LINKS_AROUND = 16
"""Maximum nesting of links; an HTML5 parser nests links only by way of tables, objects or svg.
"""

LINKS_IN_LINKS = "links within links within links"

MAX_LINKS = 1 << 15
"""Maximum links of a page: a third of a second, as much again for their targets."""

TOO_MANY_LINKS = "too many links"

# of anchor texts at most, where links were not counted within each other: a tenth of a second
_TEXT_BYTES = 100_000_000
_HIDDEN = "style,script,template,iframe,noembed,noframes,svg title,svg desc,svg metadata"
_SVG_TITLE = "svg title"
_READ = "a[href],base[href],head link[rel~=canonical i][href]"
_MENUS = "nav,header,footer,aside,[role~=navigation i]"


class Link(msgspec.Struct, frozen=True, gc=False):
    """One link of a page.

    Attributes:
        href: the address as it is written.
        text: the anchor text; empty where a link has none.
        rel: the attribute of that name, as it is written.
        navigation: whether it is below nav, header, footer, aside or an element with
            role=navigation.
        label: name of a link without text: the first ``alt`` of an image in it, the title of an
            SVG in it, its ``title`` or ``aria-label``.
    """

    href: str
    text: str
    rel: str = ""
    navigation: bool = False
    label: str = ""

    @property
    def anchor(self) -> str:
        """The text, or else the label."""
        return self.text or self.label

    @property
    def nofollow(self) -> bool:
        """Whether its author does not vouch for it."""
        return bool(self.rel) and not UNVOUCHED.isdisjoint(self.rel.lower().split())


class PageLinks(msgspec.Struct, frozen=True):
    """The links of a page.

    Attributes:
        links: in their order.
        base: the address in the page's ``<base>``, which they are relative to; empty without one.
        canonical: the address that the page names as its own (``rel=canonical``); empty without.
        unread: why the page was not read, and so has no links; empty when it was. See
            `lc_assets.text.html.page_text`.
    """

    links: tuple[Link, ...] = ()
    base: str = ""
    canonical: str = ""
    unread: str = ""


def page_links(html: str, extractor: Extractor = "html5") -> PageLinks:
    """The links of a page and its ``<base>``; the paper ignores ``<base>``."""
    if extractor == "paper":
        found = tuple(Link(href, text) for href, text in scanned(html))
        return PageLinks(found) if len(found) <= MAX_LINKS else PageLinks(unread=TOO_MANY_LINKS)
    page = html.encode("utf-8", "replace")
    refused = refusal_of(page)
    if refused is not None:
        return PageLinks(unread=refused)
    parsed = LexborHTMLParser(page)
    titles = _remove_hidden(parsed)
    nodes = list[LexborNode]()
    addresses = dict[str, str]()
    for node in parsed.css(_READ):  # one walk: each takes as long as a third of the parsing
        if node.tag == "a":
            nodes.append(node)
        else:
            addresses.setdefault(str(node.tag), _attribute(node, "href"))
    if len(nodes) > MAX_LINKS:
        return PageLinks(unread=TOO_MANY_LINKS)
    if (
        len(nodes) * len(page) > _TEXT_BYTES
        and max(_counted_above(nodes, {node.mem_id for node in nodes})) > MAX_LINKS_AROUND
    ):
        return PageLinks(unread=LINKS_IN_LINKS)
    menus = {menu.mem_id for menu in parsed.css(_MENUS)}
    above = _counted_above(nodes, menus) if menus else [0] * len(nodes)
    links = tuple(
        _link(node, n_menus > 0, titles) for node, n_menus in zip(nodes, above, strict=True)
    )
    return PageLinks(links, addresses.get("base", ""), addresses.get("link", ""))


def scanned(html: str) -> Iterator[tuple[str, str]]:
    """Address and anchor text of each link that the paper's expressions find, in time linear in the
    page.

    >>> list(scanned('<a x href="u">one</a><a href="">none</a><a href="v"><b>two</b></a>'))
    [('u', 'one')]
    """
    start = html.find("<a")
    while start >= 0:
        tag_end = html.find(">", start + 2)
        if tag_end < 0:
            return
        text_end = html.find("<", tag_end + 1)
        if text_end < 0:
            return
        address = html.find('href="', start + 3, tag_end)
        is_link = (
            text_end > tag_end + 1
            and address >= 0
            and html.find('"', address + 7, tag_end) >= 0
            and html.startswith("</a>", text_end)
        )
        if is_link and (url := REGEX_URL.search(html, start, text_end)):
            yield url[1], html[tag_end + 1 : text_end]
        start = html.find("<a", text_end)


def _remove_hidden(parsed: LexborHTMLParser) -> dict[int, str]:
    """Remove what browsers do not show; returns the SVG titles of links that have one."""
    hidden = parsed.css(_HIDDEN)
    if not hidden:
        return {}
    titles = {}
    if parsed.css_first(_SVG_TITLE) is not None:
        for node in parsed.css("a[href]"):
            title = node.css_first(_SVG_TITLE)
            if title is not None:
                titles[node.mem_id] = title.text()
    within = _counted_above(hidden, {node.mem_id for node in hidden})
    for node, n_around in zip(hidden, within, strict=True):
        if not n_around:  # the others are removed with what is around them
            node.decompose()
    return titles


def _link(node: LexborNode, navigation: bool, titles: dict[int, str]) -> Link:
    attributes = node.attributes
    href = attributes.get("href") or attributes.get("xlink:href") or ""  # the latter in SVG
    text = " ".join(node.text().split())
    label = "" if text else _label(node, titles.get(node.mem_id, ""))
    return Link(href, text, attributes.get("rel") or "", navigation, label)


def _label(node: LexborNode, svg_title: str) -> str:
    image = node.css_first("img[alt]:not([alt=''])")
    named = (
        _attribute(image, "alt") if image is not None else "",
        svg_title,
        _attribute(node, "title"),
        _attribute(node, "aria-label"),
    )
    return next((found for name in named if (found := " ".join(name.split()))), "")


def _attribute(node: LexborNode, name: str) -> str:
    return node.attributes.get(name) or ""


def _counted_above(nodes: list[LexborNode], counted: set[int]) -> list[int]:
    """How many of the counted elements each node is below; every ancestor is visited once."""
    known: dict[int, int] = {}
    found = []
    for node in nodes:
        path, above = [], node.parent
        while above is not None and above.mem_id not in known:
            path.append(above.mem_id)
            above = above.parent
        n_counted = 0 if above is None else known[above.mem_id]
        for element in reversed(path):
            n_counted += element in counted
            known[element] = n_counted
        found.append(n_counted)
    return found
