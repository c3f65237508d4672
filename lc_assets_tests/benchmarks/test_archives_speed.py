"""A crawl's archives: pages read through, single records fetched, an index walked beside its keys.
Run with ``-s`` to see the figures.

The archive is one of real manuals where they lie beside the checkout, and one of made-up pages
otherwise.
"""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from warcio.archiveiterator import ArchiveIterator

from lc_assets.formats.archives.captures import Capture, capture_of, captures_in, matches
from lc_assets.formats.archives.fetching import HtmlPage, Spot, pages_at
from lc_assets.formats.archives.writing import FetchedPage, write_pages
from lc_assets.lake.upstream import Upstream
from lc_assets.text.links.page_keys import surt
from lc_assets_tests.benchmarks.crawl import crawl_texts
from lc_assets_tests.benchmarks.timing import cpu_seconds, say
from lc_assets_tests.reference.pages import html_pages

N_CHARS = 10_000_000
N_LINES, EVERY = 150_000, 250


@pytest.fixture(scope="module")
def archive(tmp_path_factory) -> Path:
    for folder in Path(__file__).resolve().parents:
        path = folder / "shared/data/hyperlinked/warc/sqlitedoc.warc.gz"
        if path.is_file():
            return path
    path = tmp_path_factory.mktemp("archive") / "x.warc.gz"
    texts = (text[:100_000] for text in crawl_texts(N_CHARS))
    pages = (
        FetchedPage(f"https://a.org/{n}", "2023-02-03T04:05:06Z", f"<p>{text}</p>")
        for n, text in enumerate(texts)
    )
    write_pages(path, pages, filename=path.name)
    return path


def ours(path: Path) -> list[HtmlPage]:
    return [one for one in html_pages(path) if isinstance(one, HtmlPage)]


def by_warcio(path: Path) -> list[tuple[str, str]]:
    with path.open("rb") as stream:
        responses = (one for one in ArchiveIterator(stream) if one.rec_type == "response")
        return [
            (one.rec_headers.get_header("WARC-Target-URI"), one.content_stream().read().decode())
            for one in responses
        ]


def test_pages_are_warcio_s(archive):
    """MB of HTML per CPU-second, decoded; and the same archive by its records' heads alone, as an
    index is made.
    """
    fast, found = cpu_seconds(lambda _: ours(archive))
    slow, wanted = cpu_seconds(lambda _: by_warcio(archive))
    assert [(one.url, one.html) for one in found] == wanted
    n_bytes = sum(len(one.html.encode()) for one in found)
    say("html_pages", n_bytes / 1e6, "MB of HTML", fast, warcio=slow)
    assert fast < slow / 0.7  # beside others; alone 1.5 and more
    heads, captures = cpu_seconds(
        lambda _: [
            one for one in captures_in(archive, filename=archive.name) if isinstance(one, Capture)
        ]
    )
    assert [one.offset for one in captures] == [one.offset for one in found]
    say("captures_in", n_bytes / 1e6, "MB of HTML", heads, warcio=slow)


def one_by_one(path: Path, spots: list[Spot]) -> list[str]:
    with path.open("rb") as stream:
        found = []
        for spot in spots:
            stream.seek(spot.offset)
            found.append(next(iter(ArchiveIterator(stream))).content_stream().read().decode())
        return found


def test_single_records_are_fetched_sooner_than_by_warcio(archive):
    """Records per CPU-second out of a folder: in any order, and sorted as they lie."""
    spots = [Spot(one.filename, one.offset, one.length) for one in ours(archive)]
    mixed = [spots[place] for place in np.random.default_rng(7).permutation(len(spots))]
    upstream = Upstream(str(archive.parent))
    slow, wanted = cpu_seconds(lambda _: one_by_one(archive, mixed))
    for what, order in (("pages_at, in any order", mixed), ("pages_at, sorted", sorted(mixed))):
        fast, found = cpu_seconds(lambda _, order=order: list(pages_at(upstream, order)))
        assert sorted(one.html for one in found if isinstance(one, HtmlPage)) == sorted(wanted)
        say(what, len(spots), "records", fast, warcio=slow)
        assert fast < 1.5 * slow  # sooner where nothing else runs


@pytest.fixture(scope="module")
def index(tmp_path_factory) -> tuple[Path, list[bytes]]:
    """An index of 60 MB as Common Crawl packs it, and every 250th of its keys: of three billion
    captures, twelve million documents.
    """
    said = {
        "mime": "text/html",
        "mime-detected": "text/html",
        "status": "200",
        "digest": "RY7PLBUFQNI2FFV5FTUQK72W6SNPXLQU",
    }
    said |= {
        "length": "17423",
        "offset": "80610731",
        "filename": f"crawl-data/CC-MAIN-2024-22/segments/1/warc/{'C' * 60}.warc.gz",
    }
    urls = [f"https://example{number % 997:03}.org/path/{number}" for number in range(N_LINES)]
    lines = sorted(
        f"{surt(url)} 20240518015810 {json.dumps({'url': url} | said)}".encode() for url in urls
    )
    path = tmp_path_factory.mktemp("index") / "cdx-00000.gz"
    members = [lines[at : at + 3000] for at in range(0, N_LINES, 3000)]
    path.write_bytes(b"".join(gzip.compress(b"\n".join(member) + b"\n", 6) for member in members))
    return path, [line.partition(b" ")[0] for line in lines[::EVERY]]


def by_a_set(path: Path, keys: list[bytes]) -> list[str]:
    wanted, found = set(keys), []
    with gzip.open(path) as lines:
        for line in lines:
            key, _, said = line.split(b" ", 2)
            if key in wanted:
                found.append(json.loads(said)["url"])
    return found


def test_an_index_is_walked_faster_than_line_by_line(index):
    """Lines of CDXJ per CPU-second, one in 250 of them wanted."""
    path, keys = index
    fast, found = cpu_seconds(
        lambda _: [capture_of(line) for _, line in matches(path, keys, where=path.name)]
    )
    slow, wanted = cpu_seconds(lambda _: by_a_set(path, keys))
    assert [one.url for one in found if isinstance(one, Capture)] == wanted
    assert len(wanted) == -(-N_LINES // EVERY)
    say("CDXJ", N_LINES / 1e6, "M lines", fast, gzip_split_and_a_set=slow)
    assert fast < slow
