"""Links out of HTML: those of published lists byte for byte, those of the paper's expressions, and
of pages as browsers read them.
"""

import gzip
import json
from urllib.parse import urldefrag, urljoin

import pytest
from hypothesis import example, given, strategies as st

from lc_assets.text.links.links import (
    MAX_LINKS,
    TOO_MANY_LINKS,
    Link,
    PageLinks,
    page_links,
    scanned,
)
from lc_assets.text.links.page_keys import page_key
from lc_assets.text.links.targets import targets_of
from lc_assets_tests.benchmarks.link_pages import made_up_pages
from lc_assets_tests.reference.links import by_html_parser
from lc_assets_tests.reference.pages import extract_links
from lc_assets_tests.reference.paper_links import paper_links

MANUALS = ("sqlitedoc", "gitdoc", "apachedoc")

PIECES = (
    "<a",
    "<a ",
    "<A ",
    "<abbr ",
    "</a>",
    "</A>",
    "</a >",
    "<a href=",
    'href="',
    "href='",
    ' href="u"',
    ' href=""',
    'data-href="v"',
    '"',
    "'",
    ">",
    "<",
    "/>",
    "text",
    "x",
    " ",
    "\n",
    "&amp;",
    "\0",
    "é",
    "<b>",
    "</b>",
    "<!--",
    "-->",
    "=",
    '"x"',
    '<a href="u">t</a>',
    "<nav>",
    "</nav>",
    "<svg>",
    "</svg>",
    "<title>",
    "</title>",
    "<style>",
    "</style>",
    "<template>",
    "</template>",
    " xlink:href=u>",
    "<option>",
    "<table>",
    "<td>",
    "<p>",
    "<base href=b>",
    "<script>",
    "</script>",
    '<img alt="i">',
    "\ud800",
)


def html_soup() -> st.SearchStrategy[str]:
    """Text dense in what makes links, and in what nearly does."""
    return st.lists(st.sampled_from(PIECES), max_size=30).map("".join)


@given(html_soup())
@example('<a <a href="u">t</a>')
@example('<a href="" x="">href="u"</a>')
@example('<a href="u"">t</a>')
@example('<ahref="u">t</a>')
@example('<a x href="u" href="v">></a>')
@example('<a href=">" href="u">t</a>')
def test_the_scan_finds_what_the_expressions_find(html):
    """One walk along a page gives the list of the paper's three expressions."""
    assert list(scanned(html)) == paper_links(html)


@given(html_soup())
def test_any_soup_is_read(html):
    """Nothing makes the parser fail, and anchor texts are collapsed."""
    for link in extract_links(html):
        assert link.text == " ".join(link.text.split())


def pages_of(shared_data, name):
    """Address and HTML of each page of a manual."""
    from fastwarc.warc import ArchiveIterator, WarcRecordType

    with (shared_data / "hyperlinked" / "warc" / f"{name}.warc.gz").open("rb") as file:
        for record in ArchiveIterator(file, record_types=WarcRecordType.response):
            yield record.headers["WARC-Target-URI"], record.reader.read().decode("utf-8", "replace")


def test_lists_are_those_that_were_published(shared_data):
    """Both extractors give, for every page of a manual, the list that two other parsers and the
    expressions gave.
    """
    with gzip.open(
        shared_data / "hyperlinked" / "links_sqlitedoc.jsonl.gz", "rt", encoding="utf-8"
    ) as lines:
        published = {line["url"]: line for line in map(json.loads, lines)}
    seen = set()
    for url, html in pages_of(shared_data, "sqlitedoc"):
        assert [[link.href, link.text] for link in extract_links(html)] == published[url][
            "html5"
        ], url
        assert [[link.href, link.text] for link in extract_links(html, "paper")] == published[url][
            "paper_regex"
        ], url
        seen.add(url)
    assert seen == published.keys()
    assert len(seen) == 766


@pytest.mark.parametrize("manual", MANUALS)
def test_the_scan_equals_the_expressions_on_every_page(shared_data, manual):
    """On all pages of three manuals."""
    for url, html in pages_of(shared_data, manual):
        assert list(scanned(html)) == paper_links(html), url


@pytest.mark.parametrize(
    ("html", "links"),
    [
        ("<A HREF='u'> one\n <b>two</b>&amp;\u00a03 </A>", [Link("u", "one two& 3")]),
        ("<a href=u title=T></a>", [Link("u", "", label="T")]),
        ("<a href=u aria-label=' A  B '><img alt=''><img alt=I></a>", [Link("u", "", label="I")]),
        ("<a href=u aria-label=A title=''><img></a>", [Link("u", "", label="A")]),
        ("<a href=u title=T>x</a>", [Link("u", "x")]),
        ("<a href>x</a><a name=n>y</a>", [Link("", "x")]),
        (
            (
                "<!-- <a href=u>x</a> --><script>'<a href=u>x</a>'</script><template><a "
                "href=u>x</a></template>"
            ),
            [],
        ),
        ("<noscript><a href=u>x</a></noscript>", [Link("u", "x")]),
        ('<svg><a xlink:href="/b">b</a></svg><a href=u>x</a>', [Link("/b", "b"), Link("u", "x")]),
        ("<math><a xlink:href=u>x</a></math>", [Link("u", "x")]),
        ("<a href=u><svg><style>.st0{fill:#fff}</style></svg></a>", [Link("u", "")]),
        (
            "<a href=u>x<style>.a{}</style><script>s()</script><iframe>f</iframe> y</a>",
            [Link("u", "x y")],
        ),
        (
            "<a href=u><svg><title>Home</title><desc>d</desc><g><style>.b</style></svg></a>",
            [Link("u", "", label="Home")],
        ),
        ("<a href=u><svg><title>Icon</title></svg>Home</a>", [Link("u", "Home")]),
        (
            "<svg><style><style><a href=u>x</a></style></style><title><title>t</title></title>",
            [],
        ),
        ("<a href=u>x<a href=v>y", [Link("u", "x"), Link("v", "y")]),
        ("<a href='&lt;&#x2f;a' rel='NoFollow  me'>x</a>", [Link("</a", "x", rel="NoFollow  me")]),
        (
            "<header><div><a href=u>x</a></div></header><a href=v>y</a>",
            [Link("u", "x", navigation=True), Link("v", "y")],
        ),
        (
            (
                "<div role='Navigation menu'><a href=u>x</a></div><div role=navigational><a "
                "href=v>y</a></div>"
            ),
            None,
        ),
        (
            (
                "<main><a href=u>x</a><nav><p><a href=v>y</a><a href=w>z</a></nav><a "
                "href=q>r</a></main>"
            ),
            None,
        ),
    ],
)
def test_pages_are_read_as_browsers_read_them(html, links):
    """Quotes, case, entities, nested markup, labels, what is hidden, what is a menu."""
    found = extract_links(html)
    if links is None:
        assert [link.navigation for link in found] == {
            2: [True, False],
            4: [False, True, True, False],
        }[len(found)]
    else:
        assert found == links


def test_a_page_of_more_links_than_any_is_not_read():
    """To the link, by both extractors."""
    for extractor in ("html5", "paper"):
        page = '<a href="x">y</a>' * MAX_LINKS
        assert len(page_links(page, extractor).links) == MAX_LINKS
        assert page_links(page + '<a href="x">y</a>', extractor) == PageLinks(unread=TOO_MANY_LINKS)


def test_rel_says_what_is_not_vouched_for():
    """Any of three words of the attribute, in any case."""
    rels = ["nofollow", "me UGC", "sponsored,x", "noopener", "", "Sponsored"]
    assert [Link("u", "x", rel=rel).nofollow for rel in rels] == [
        True,
        True,
        False,
        False,
        False,
        True,
    ]


def test_the_base_is_handed_out():
    """The first one that has an address; none in what the paper sees."""
    html = "<base target=x><base href=' /b/ '><base href=/c/><a href=\"u\">x</a>"
    assert page_links(html).base == " /b/ "
    assert page_links(html, "paper") == page_links('<a href="u">x</a>', "paper")
    assert page_links("<p>").base == ""


def test_links_and_targets_are_those_of_the_standard_library():
    """Of sound pages: addresses and texts by its HTML parser, keys of targets by its resolving."""
    base = "https://www.sqlite.org/a/page.html"
    for page in made_up_pages(3):
        links = page_links(page).links
        assert [(link.href, link.text) for link in links] == by_html_parser(page)
        keys = [
            page_key(urldefrag(urljoin(base, link.href)).url)
            for link in links
            if link.href and not link.href.startswith("#")
        ]
        assert [target.key for target in targets_of(links, base).found] == list(
            dict.fromkeys(key for key in keys if key not in (None, page_key(base)))
        )
