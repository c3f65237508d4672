"""Links out of HTML against the paper's expressions, lxml and the standard library; hostile pages.
Run with ``-s`` to see the figures.
"""

import subprocess
import sys
from collections import Counter
from importlib.util import find_spec
from urllib.parse import urldefrag, urljoin

import pytest
from selectolax.lexbor import LexborHTMLParser

from lc_assets.text.html.guard import refusal_of
from lc_assets.text.links.links import page_links, scanned
from lc_assets.text.links.page_keys import page_key
from lc_assets.text.links.targets import targets_of
from lc_assets_tests.benchmarks.link_pages import HOSTILE, made_up_pages, manual_pages
from lc_assets_tests.benchmarks.timing import cpu_seconds, say
from lc_assets_tests.reference.links import by_html_parser
from lc_assets_tests.reference.paper_links import paper_links

N_PAGES = 150
SECONDS, MEGABYTES = (
    4.0,
    400,
)  # 0.8 s at most on a quiet machine; what takes the square of a page takes minutes


@pytest.fixture(scope="module")
def pages(request):
    """Pages of manuals, or made-up ones."""
    try:
        return manual_pages(request.getfixturevalue("shared_data"))
    except pytest.skip.Exception:
        return made_up_pages(N_PAGES)


def by_lxml(html):
    from lxml import html as lxml

    tree = lxml.document_fromstring(html.encode(), lxml.HTMLParser(encoding="utf-8"))
    return [
        (node.get("href"), " ".join(node.text_content().split()))
        for node in tree.iter("a")
        if "href" in node.attrib
    ]


def by_selectolax(html):
    return [
        (node.attributes["href"], node.text())
        for node in LexborHTMLParser(html).css("a")
        if "href" in node.attributes
    ]


def shared(found, wanted):
    """Share of what was found that is wanted, and of what is wanted that was found, over pages."""
    counted = [(Counter(ours), Counter(theirs)) for ours, theirs in zip(found, wanted, strict=True)]
    both = sum((ours & theirs).total() for ours, theirs in counted)
    return both / sum(map(len, found)), both / sum(map(len, wanted))


def test_links_are_those_of_other_parsers_and_faster(pages):
    """Links and MB of HTML per CPU-second beside lxml, which is slower; lists of the obvious parser
    on made-up pages, nearly lxml's on manuals.
    """
    made_up = made_up_pages(20)
    assert [[(link.href, link.text) for link in page_links(page).links] for page in made_up] == [
        by_html_parser(page) for page in made_up
    ]
    ours, found = cpu_seconds(lambda _: [page_links(page) for page in pages])
    plain, _ = cpu_seconds(lambda _: [by_html_parser(page) for page in pages], rounds=1)
    bare, _ = cpu_seconds(lambda _: [by_selectolax(page) for page in pages])
    guard, _ = cpu_seconds(lambda _: [refusal_of(page.encode()) for page in pages])
    others = {"html_parser": plain, "selectolax_alone": bare}
    if find_spec("lxml"):
        others["lxml"], listed = cpu_seconds(lambda _: [by_lxml(page) for page in pages])
        links = [[(link.href, link.text) for link in one.links] for one in found]
        addresses = [[[href for href, _ in page] for page in of] for of in (links, listed)]
        for what, (precision, recall) in {
            "addresses": shared(*addresses),
            "addresses and texts": shared(links, listed),
        }.items():
            print(f"\n{what} of lxml: precision {precision:.6f}, recall {recall:.6f}")
            assert min(precision, recall) > 0.9995
        assert ours < others["lxml"]
    say("links, HTML5", sum(len(one.links) for one in found) / 1e3, "k links", ours, **others)
    say("… of HTML", sum(map(len, pages)) / 1e6, "MB", ours, asking_first_alone=guard)
    assert ours < plain / 2


def test_the_papers_links_are_those_of_its_expressions(pages):
    """Sound pages take about as long either way; an unclosed tag takes the expressions the cube of
    its length.
    """
    ours, found = cpu_seconds(lambda _: [list(scanned(page)) for page in pages])
    theirs, wanted = cpu_seconds(lambda _: [paper_links(page) for page in pages])
    assert found == wanted
    say("links, the paper's", sum(map(len, found)) / 1e3, "k links", ours, its_expressions=theirs)
    assert ours < 4 * theirs
    hostile = '<a x href="y" ' + 'x href="y" ' * 100
    ours, found = cpu_seconds(lambda _: list(scanned(hostile)))
    theirs, wanted = cpu_seconds(lambda _: paper_links(hostile), rounds=1)
    assert found == wanted == []
    say(f"… {len(hostile):,} bytes of an unclosed tag", 1, "pages", ours, its_expressions=theirs)
    assert ours < theirs / 100


def test_targets_are_those_of_a_plain_loop_and_as_fast(pages):
    """Addresses resolved, named and joined, against urllib's resolving, which reads a few addresses
    otherwise, and the same keys.
    """
    links = [page_links(page).links for page in [*made_up_pages(20), *pages]]
    base = "https://www.sqlite.org/a/page.html"

    def plainly(_):
        found = []
        for some in links:
            keys = [
                page_key(urldefrag(urljoin(base, link.href)).url)
                for link in some
                if link.href and not link.href.startswith("#")
            ]
            found.append(
                list(dict.fromkeys(key for key in keys if key not in (None, page_key(base))))
            )
        return found

    ours, found = cpu_seconds(lambda _: [targets_of(some, base).found for some in links])
    theirs, wanted = cpu_seconds(plainly)
    keys = [[target.key for target in some] for some in found]
    assert keys[:20] == wanted[:20]
    assert sum(one == other for one, other in zip(keys, wanted, strict=True)) > 0.98 * len(keys)
    say("targets", sum(map(len, links)) / 1e3, "k links", ours, urllib_and_a_dictionary=theirs)
    assert ours < 2 * theirs


PROBE = """
import time
from lc_assets.text.links.links import page_links
from lc_assets_tests.benchmarks.link_pages import HOSTILE
from lc_assets_tests.memory import peak_mb
page_links("<p>compile")
for name, make in HOSTILE.items():
    page = make()
    for extractor in ("html5", "paper"):
        begun = time.process_time()
        read = page_links(page, extractor)
        seconds = time.process_time() - begun
        print(name, extractor, len(read.links), seconds, peak_mb(), read.unread, sep="\\t", flush=True)
"""


def test_a_hostile_megabyte_takes_about_a_second_at_most():
    """Each page of a megabyte, by both extractors, in one process whose memory stays bounded."""
    done = subprocess.run([sys.executable, "-c", PROBE], capture_output=True, text=True, check=True)
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    assert len(lines) == 2 * len(HOSTILE)
    print()
    for name, extractor, n_links, seconds, peak, why in lines:
        print(
            f"{name:32} {extractor:6} {float(seconds):6.3f} s {float(peak):5.0f} MB "
            f"{int(n_links):8,} links  {why}"
        )
    assert max(float(line[3]) for line in lines) < SECONDS
    assert max(float(line[4]) for line in lines) < MEGABYTES
