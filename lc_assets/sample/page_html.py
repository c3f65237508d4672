"""Pages of a sample as a web site would serve them: HTML with menus, links among the text, and what real pages do besides.

A page has a menu (the site's home page, one much-linked page, a portal), its title and lines, and a foot. Some words of its own
lines are links: mostly to pages of the same crawl, of which a few are linked to far more often than the others, and to a page that
nobody crawled. Addresses are written in full, from the site's root, relative to a ``<base>``, with a fragment, or with
parameters that follow visitors; some anchors hold markup, an image, or say "here".

Pure: values in, values out; all draws are keyed by the page's address.
"""

import html
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from lc_assets.sample.plan import fraction

PORTAL: Final = "https://portal.invalid/"
NOT_CRAWLED: Final = "https://nobody.invalid/was?here=1&there=2"
LINKS: Final = (2, 9)
"""A page has so many links among its text, the latter excluded."""
ANCHOR_WORDS: Final = 3


@dataclass(frozen=True, slots=True)
class WebPage:
    """A page to be put into HTML: its address, its title, and its lines without ends."""

    url: str
    title: str
    lines: Sequence[str]
    language: str = "en"


@dataclass(frozen=True, slots=True)
class Web:
    """The pages of one crawl, by their addresses in an order of their own; earlier ones are linked to more often."""

    urls: Sequence[str]
    seed: int

    def homes(self) -> dict[str, list[str]]:
        """Home page of each site that is none of the pages itself, with the site's pages."""
        found: dict[str, list[str]] = {}
        for url in self.urls:
            found.setdefault(_home(url), []).append(url)
        pages = {url.rstrip("/") for url in self.urls}
        return {home: urls for home, urls in sorted(found.items()) if home.rstrip("/") not in pages}

    def portals(self) -> Iterator[tuple[str, str]]:
        """Address and HTML of the pages that only lead to others: home pages, and a portal to all of these."""
        homes = self.homes()
        for home, urls in homes.items():
            yield home, _list_page(f"Home of {urlsplit(home).hostname}", sorted(urls))
        yield PORTAL, _list_page("Portal", list(homes))

    def html(self, page: WebPage) -> str:
        """A page of the crawl as HTML."""
        base = _folder(page.url) if self._draw("base", page.url) < 0.2 else ""
        title, hub = html.escape(page.title), html.escape(self.urls[0])
        return (
            f'<!DOCTYPE html>\n<html lang="{html.escape(page.language)}"><head><meta charset="utf-8"><title>{title}</title>'
            + (f'<base href="{html.escape(base)}">' if base else "")
            + f'</head>\n<body><header><a href="{html.escape(_home(page.url))}"><img src="/logo.png" alt="Home"></a></header>\n'
            f'<nav><ul><li><a href="{hub}">Overview</a></li><li><a href="{PORTAL}">Portal</a></li></ul></nav>\n<main><h1>{title}</h1>\n'
            + "".join(f"<p>{line}</p>\n" for line in self._lines(page, base))
            + '</main>\n<footer><a href="#top">Up</a> <a href="mailto:us@nobody.invalid">Write</a> '
            f'<a rel="nofollow" href="{html.escape(NOT_CRAWLED)}">Imprint &amp; more</a></footer></body></html>\n'
        )

    def _lines(self, page: WebPage, base: str) -> Iterator[str]:
        links = self._links(page)
        for number, line in enumerate(page.lines):
            if number in links:
                yield self._linked(line, links[number], page.url, base)
            else:
                yield html.escape(line, quote=False)

    def _links(self, page: WebPage) -> Mapping[int, str]:
        """What is linked to, by the number of the line that the link is in."""
        least, most = LINKS
        places = [
            number for number, line in enumerate(page.lines) if len(line.split()) > ANCHOR_WORDS
        ]
        n_links = min(
            least + int((most - least) * self._draw("number of links", page.url)), len(places)
        )
        return {
            places[number * len(places) // n_links]: self._target(page.url, number)
            for number in range(n_links)
        }

    def _target(self, url: str, number: int) -> str:
        drawn = self._draw(f"target {number}", url)
        return (
            NOT_CRAWLED
            if drawn > 0.9
            else self.urls[int(len(self.urls) * (drawn / 0.9) ** 2) % len(self.urls)]
        )

    def _linked(self, line: str, target: str, url: str, base: str) -> str:
        words = line.split()
        first = int((len(words) - ANCHOR_WORDS) * self._draw("first word", f"{url} {target}"))
        before, anchor, after = (
            words[:first],
            words[first : first + ANCHOR_WORDS],
            words[first + ANCHOR_WORDS :],
        )
        style = int(10 * self._draw("style", f"{url} {target}"))
        link = _link(
            style,
            html.escape(_written(style, target, url, base)),
            [html.escape(word, quote=False) for word in anchor],
        )
        return " ".join(
            (
                *(html.escape(word, quote=False) for word in before),
                link,
                *(html.escape(word, quote=False) for word in after),
            )
        )

    def _draw(self, what: str, key: str) -> float:
        return fraction(f"web: {what}", seed=self.seed, key=key)


def _link(style: int, href: str, words: Sequence[str]) -> str:
    anchor = " ".join(words)
    match style:
        case 0:
            return f"<A class=more HREF='{href}'>{words[0]} <b>{words[1]}</b> {' '.join(words[2:])}</A>"
        case 1:
            return f'{anchor} (<a href="{href}">here</a>)'
        case 2:
            return f'<a href="{href}"><img src="/x.png" alt="{html.escape(html.unescape(anchor))}"></a> {anchor}'
        case _:
            return f'<a href="{href}">{anchor}</a>'


def _written(style: int, target: str, url: str, base: str) -> str:
    """The target's address as the page writes it."""
    parts = urlsplit(target)
    if style in {3, 4} and (parts.scheme, parts.netloc) == urlsplit(url)[:2]:
        if base and target.startswith(base) and ":" not in target[len(base) :]:
            return target[len(base) :] or "./"
        return target[len(f"{parts.scheme}://{parts.netloc}") :] or "/"
    if style == 5 and not parts.query:
        return f"{target}?utm_source=sample&utm_medium=web"
    return f"{target}#part" if style == 6 else target


def _home(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}/"


def _folder(url: str) -> str:
    return url.partition("?")[0].rpartition("/")[0] + "/" if urlsplit(url).path else _home(url)


def _list_page(title: str, urls: Sequence[str]) -> str:
    items = "".join(
        f'<li><a href="{html.escape(url)}">{html.escape(url.partition("://")[2])}</a></li>\n'
        for url in urls
    )
    head = f"<!DOCTYPE html>\n<html><head><title>{html.escape(title)}</title></head>"
    return f"{head}<body><h1>{html.escape(title)}</h1><ul>\n{items}</ul></body></html>\n"
