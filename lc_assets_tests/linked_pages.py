"""HTML pages of a made-up crawl, with menus and links of many kinds: the documents', home pages
and a portal.

A page has a menu (the site's home page, one much-linked page, a portal), its title and lines, and a
footer. Some words of its own lines are links: mostly to pages of the same crawl, a few of which are
linked far more often than others, and to a page that was not crawled. Addresses are written in
full, from the site's root, relative to a ``<base>``, with a fragment, or with tracking parameters;
some anchors contain markup, an image, or only "here". All draws are keyed by the page's address.
"""

import html
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from lc_assets.formats.archives.writing import FetchedPage
from lc_assets.sample.pages import Page, fraction

PORTAL: Final = "https://portal.invalid/"
NOT_CRAWLED: Final = "https://nobody.invalid/was?here=1&there=2"
LEAST_LINKS: Final = 2
DRAWN_LINKS: Final = 7
"""A page has from `LEAST_LINKS` to so many more, exclusive, among its text."""
ANCHOR_WORDS: Final = 3


def fetched_pages(
    pages: Iterable[tuple[Page, str]], *, urls: Sequence[str], seed: int
) -> Iterator[FetchedPage]:
    """The pages of some documents, and those that link to them; arguments as of
    `lc_assets.sample.web.fetched_pages`.
    """
    web, latest = Web(urls, seed), ""
    for page, date in pages:
        latest = max(latest, date)
        yield FetchedPage(page.url, date, web.html(page))
    for url, content in web.portals():
        yield FetchedPage(url, latest, content)


@dataclass(frozen=True, slots=True)
class Web:
    """The pages of one crawl, by their addresses; earlier ones are linked more often."""

    urls: Sequence[str]
    seed: int

    def homes(self) -> dict[str, list[str]]:
        """Home page of each site, unless it is one of the pages, with the site's pages."""
        found: dict[str, list[str]] = {}
        for url in self.urls:
            found.setdefault(_home(url), []).append(url)
        pages = {url.rstrip("/") for url in self.urls}
        return {home: urls for home, urls in sorted(found.items()) if home.rstrip("/") not in pages}

    def portals(self) -> Iterator[tuple[str, str]]:
        """Address and HTML of the pages that only link to others: home pages, and a portal to
        these.
        """
        homes = self.homes()
        for home, urls in homes.items():
            yield home, _list_page(f"Home of {urlsplit(home).hostname}", sorted(urls))
        yield PORTAL, _list_page("Portal", list(homes))

    def html(self, page: Page) -> str:
        """A page of the crawl as HTML."""
        base = _folder(page.url) if self._draw("base", page.url) < 0.2 else ""
        based = f'<base href="{html.escape(base)}">' if base else ""
        title, hub = html.escape(page.title), html.escape(self.urls[0])
        lines = "".join(f"<p>{line}</p>\n" for line in self._lines(page, base))
        return (
            '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
            f"<title>{title}</title>{based}</head>\n"
            f'<body><header><a href="{html.escape(_home(page.url))}">'
            '<img src="/logo.png" alt="Home"></a></header>\n'
            f'<nav><ul><li><a href="{hub}">Overview</a></li>'
            f'<li><a href="{PORTAL}">Portal</a></li></ul></nav>\n'
            f"<main><h1>{title}</h1>\n{lines}</main>\n"
            '<footer><a href="#top">Up</a> <a href="mailto:us@nobody.invalid">Write</a> '
            f'<a rel="nofollow" href="{html.escape(NOT_CRAWLED)}">Imprint &amp; more</a>'
            "</footer></body></html>\n"
        )

    def _lines(self, page: Page, base: str) -> Iterator[str]:
        """The page's lines as HTML; some, evenly spaced, have a link."""
        places = [n for n, line in enumerate(page.lines) if len(line.split()) > ANCHOR_WORDS]
        drawn = int(DRAWN_LINKS * self._draw("number of links", page.url))
        n_links = min(LEAST_LINKS + drawn, len(places))
        linked = {places[n * len(places) // n_links]: n for n in range(n_links)}
        for number, line in enumerate(page.lines):
            if number not in linked:
                yield html.escape(line, quote=False)
                continue
            target = self._target(page.url, linked[number])
            words = [html.escape(word, quote=False) for word in line.split()]
            key = f"{page.url} {target}"
            first = int((len(words) - ANCHOR_WORDS) * self._draw("first word", key))
            style = int(10 * self._draw("style", key))
            href = html.escape(_written(style, target, page.url, base))
            words[first : first + ANCHOR_WORDS] = [
                _link(style, href, words[first : first + ANCHOR_WORDS])
            ]
            yield " ".join(words)

    def _target(self, url: str, number: int) -> str:
        drawn = self._draw(f"target {number}", url) / 0.9
        return (
            NOT_CRAWLED if drawn > 1 else self.urls[int(len(self.urls) * drawn**2) % len(self.urls)]
        )

    def _draw(self, what: str, key: str) -> float:
        return fraction(f"web: {what}", seed=self.seed, key=key)


def _link(style: int, href: str, words: Sequence[str]) -> str:
    anchor = " ".join(words)
    match style:
        case 0:
            rest = " ".join(words[2:])
            return f"<A class=more HREF='{href}'>{words[0]} <b>{words[1]}</b> {rest}</A>"
        case 1:
            return f'{anchor} (<a href="{href}">here</a>)'
        case 2:
            alt = html.escape(html.unescape(anchor))
            return f'<a href="{href}"><img src="/x.png" alt="{alt}"></a> {anchor}'
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
    title = html.escape(title)
    head = f"<!DOCTYPE html>\n<html><head><title>{title}</title></head>"
    return f"{head}<body><h1>{title}</h1><ul>\n{items}</ul></body></html>\n"
