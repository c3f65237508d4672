"""Single records by ranges: the same pages from a folder and a server, and whatever an index says,
no error but of the server.
"""

import gzip
import io
from pathlib import Path

import pytest
from isal import igzip

from lc_assets.errors import BadInput, CorruptFile, Unreachable
from lc_assets.formats.archives.fetching import HtmlPage, Spot, pages_at
from lc_assets.formats.archives.paths import LISTS, MAX_LIST_BYTES, is_inside, listed_paths
from lc_assets.lake.upstream import Upstream
from lc_assets_tests.formats.archives.warc_bytes import gzipped, page, record
from lc_assets_tests.loaders.range_server import RANGE, RangeHandler, served
from lc_assets_tests.memory import added
from lc_assets_tests.reference.pages import html_pages, page_at

BODIES = [b"<html>%d %s</html>" % (number, b"x" * (number % 7 * 1000)) for number in range(200)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two archives, one gzipped record by record and one not at all; and what must never be
    read.
    """
    place = tmp_path_factory.mktemp("crawl")
    (place / "in").mkdir()
    records = [page(body, url=b"https://a.org/%d" % number) for number, body in enumerate(BODIES)]
    (place / "in/a.warc.gz").write_bytes(gzipped(record(b"warcinfo", b"x"), *records))
    (place / "in/b.warc").write_bytes(b"".join(records))
    (place.parent / "secret.warc.gz").write_bytes(gzipped(page(b"<html>secret</html>")))
    return place


def spots_in(folder, name) -> list[Spot]:
    found = html_pages(folder / name, filename=str(folder / name))
    return [Spot(name, one.offset, one.length) for one in found if isinstance(one, HtmlPage)]


@pytest.mark.parametrize("name", ["in/a.warc.gz", "in/b.warc"])
def test_pages_come_in_the_order_that_was_asked_for(folder, name):
    """From a folder and from a server, sorted, backwards, and twice; records side by side are few
    requests.
    """
    spots = spots_in(folder, name)
    assert len(spots) == len(BODIES)
    for order in (spots, spots[::-1], spots[::5] + spots[:5]):
        with served(folder) as (url, handler, _):
            near, far = (list(pages_at(Upstream(root), order)) for root in (str(folder), url))
        assert near == far
        assert [one.html.encode() for one in near] == [BODIES[spots.index(spot)] for spot in order]
        assert len(handler.served) <= 4


def test_pages_far_apart_are_requests_of_their_own(tmp_path):
    """What lies between is not fetched."""
    (tmp_path / "a.warc").write_bytes(
        page(BODIES[0]) + record(b"request", bytes(300_000)) + page(BODIES[1])
    )
    spots = spots_in(tmp_path, "a.warc")
    with served(tmp_path) as (url, handler, _):
        assert [one.html.encode() for one in pages_at(Upstream(url), spots)] == BODIES[:2]
    assert sorted(last - first + 1 for _, first, last in handler.served) == sorted(
        spot.length for spot in spots
    )


def test_real_pages_are_fetched_where_the_index_says(shared_data):
    """Every one, as the archive read from its beginning has it."""
    folder = shared_data / "hyperlinked/warc"
    if not folder.is_dir():
        pytest.skip("no hyperlinked pages beside the checkout")
    pages = [one for one in html_pages(folder / "gitdoc.warc.gz") if isinstance(one, HtmlPage)]
    assert list(
        pages_at(
            Upstream(str(folder)), [Spot(one.filename, one.offset, one.length) for one in pages]
        )
    ) == [HtmlPage(one.url, one.html) for one in pages]


def why(upstream: Upstream, *spot) -> str:
    return page_at(upstream, *spot, max_page_bytes=1 << 20).why


@pytest.mark.parametrize(
    "filename",
    [
        "../secret.warc.gz",
        "in/../../secret.warc.gz",
        "/etc/passwd",
        "file:///etc/passwd",
        "https://b.org/a.warc.gz",
        "",
        "in//a.warc.gz",
    ],
)
def test_paths_that_lead_elsewhere_are_refused(folder, filename):
    with served(folder / "in") as (url, handler, _):
        for root in (str(folder), str(folder / "in"), url):
            assert why(Upstream(root), filename, 0, 200) == "place refused"
    assert handler.served == []


@pytest.mark.parametrize(
    ("offset", "length"), [(-1, 100), (0, 0), (0, -5), (0, 1 << 40), (-(1 << 70), 10)]
)
def test_places_that_cannot_be_are_refused(folder, offset, length):
    assert why(Upstream(str(folder)), "in/a.warc.gz", offset, length) == "place refused"


def test_a_record_that_is_not_where_the_index_says_is_told(folder):
    """Beside it, cut, behind the end of the file; longer than it is does no harm."""
    spot = spots_in(folder, "in/a.warc.gz")[3]
    beyond = (folder / spot.filename).stat().st_size + 5
    with served(folder, Range416) as (url, *_):
        for upstream in (Upstream(str(folder)), Upstream(url)):
            assert why(upstream, spot.filename, spot.offset + 1, spot.length) == "no record there"
            assert why(upstream, spot.filename, spot.offset, spot.length - 1) == "record damaged"
            assert why(upstream, spot.filename, spot.offset, 20) == "record damaged"
            assert why(upstream, spot.filename, spot.offset, 1) == "no record there"
            assert why(upstream, spot.filename, beyond, 100) == "no record there"
            assert why(upstream, "in/none.warc.gz", 0, 100) == "archive missing"
            assert why(upstream, "in/a.warc.gz", 0, 200) == "warcinfo record"
            assert (
                page_at(upstream, spot.filename, spot.offset, spot.length + 999).html.encode()
                == BODIES[3]
            )


class Range416(RangeHandler):
    """Says so when a range begins behind the end of a file, as nginx and buckets do."""

    def send_response(self, code, message=None):
        first = int(RANGE.match(self.headers.get("Range", "bytes=0-1"))[1])
        path = Path(self.translate_path(self.path))
        beyond = path.is_file() and first >= path.stat().st_size
        super().send_response(416 if beyond else code, message)


def test_one_missing_archive_costs_only_its_own_pages(folder):
    spots = spots_in(folder, "in/a.warc.gz")
    order = [spots[0], Spot("in/none.warc.gz", 0, 50), spots[1]]
    with served(folder) as (url, *_):
        for upstream in (Upstream(str(folder)), Upstream(url)):
            first, missing, second = pages_at(upstream, order)
            assert [first.html.encode(), second.html.encode()] == BODIES[:2]
            assert (missing.why, missing.where) == ("archive missing", "in/none.warc.gz at byte 0")


def test_a_server_in_trouble_is_no_missing_page(folder):
    """A 500, a connection that breaks off, nobody there: an error, so that nothing is counted that
    may come back.
    """

    class Broken(RangeHandler):
        def send_response(self, code, message=None):
            super().send_response(503 if code == 206 else code, message)

    with served(folder, Broken) as (url, *_), pytest.raises(Unreachable, match="503"):
        page_at(Upstream(url), "in/a.warc.gz", 0, 100)
    with served(folder) as (url, handler, _):
        handler.breaks_off = 1
        with pytest.raises(Unreachable):
            page_at(Upstream(url), "in/a.warc.gz", 0, 100)
        handler.whole_only = True
        with pytest.raises(BadInput, match="sends whole files"):
            page_at(Upstream(url), "in/a.warc.gz", 0, 100)
    with pytest.raises(Unreachable):
        page_at(Upstream("http://127.0.0.1:1"), "in/a.warc.gz", 0, 100)


def test_a_bomb_is_left_alone_at_the_limit(tmp_path):
    """A gigabyte out of a megabyte, honest about its length or not: no memory, no time."""
    for number, length in enumerate((1000 << 20, 45)):
        packed = io.BytesIO()
        with igzip.IGzipFile(fileobj=packed, mode="wb", compresslevel=2) as out:
            out.write(
                record(
                    b"response",
                    b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n",
                    length=length,
                )[:-4]
            )
            for _ in range(200):
                out.write(bytes(5 << 20))
        (tmp_path / f"{number}.warc.gz").write_bytes(packed.getvalue())
    upstream = Upstream(str(tmp_path))
    with added() as more:
        for name, said in (("0.warc.gz", "record too long"), ("1.warc.gz", None)):
            found = page_at(
                upstream, name, 0, (tmp_path / name).stat().st_size, max_page_bytes=8 << 20
            )
            assert getattr(found, "why", None) == said
        assert more() < 100_000_000


def test_lists_of_paths_hold_paths_below_the_root():
    content = b"crawl-data/a.warc.gz\n\ncrawl-data/b.warc.gz\r\n"
    for packed in (content, gzip.compress(content)):
        assert listed_paths(packed, where="x") == ["crawl-data/a.warc.gz", "crawl-data/b.warc.gz"]
    for wrong in (
        b"../a",
        b"ok\n/etc/passwd",
        b"https://b.org/x",
        b"\xff",
        gzip.compress(content)[:-3],
        b"a\\b",
        b"x" * 5000,
    ):
        with pytest.raises(CorruptFile, match=r"warc\.paths\.gz"):
            listed_paths(wrong, where=LISTS["warc"])
    with pytest.raises(CorruptFile, match="not a list of paths"):
        listed_paths(igzip.compress(bytes(MAX_LIST_BYTES + 1), 0), where="x")
    assert not is_inside("..")
