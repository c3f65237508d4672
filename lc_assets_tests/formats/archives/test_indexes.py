"""Indexes of crawls: what they say is found, what they should not say is refused; lists of links;
archives of our own.
"""

import datetime as dt
import gzip
import io
import json

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, strategies as st
from warcio.archiveiterator import ArchiveIterator

from lc_assets.errors import CorruptFile
from lc_assets.formats.archives.captures import (
    BLOCK_BYTES,
    MAX_LINE_BYTES,
    Capture,
    blocks_of_lines,
    capture_of,
    captures_in,
    matches,
    timestamp_of,
)
from lc_assets.formats.archives.fetching import HtmlPage, Spot, pages_at
from lc_assets.formats.archives.paths import INDEX, index_batches
from lc_assets.formats.archives.wat import (
    WatPage,
    captures_in_wat,
    wat_pages_at,
)
from lc_assets.formats.archives.writing import FetchedPage, index_lines, write_pages
from lc_assets.formats.corpora.containers import Unread
from lc_assets.lake.upstream import Upstream
from lc_assets.text.links.links import Link
from lc_assets_tests.formats.archives.warc_bytes import gzipped, page, record
from lc_assets_tests.reference.pages import html_pages, look_up, wat_pages

KEYS = st.lists(st.text("ab,)/?", max_size=4).map(str.encode), max_size=30)


def line(key: bytes, **said) -> bytes:
    whole = {
        "url": "http://a.org/",
        "mime": "text/html",
        "status": "200",
        "length": "5",
        "offset": "7",
        "filename": "x.warc.gz",
    } | said
    return key + b" 20240518015810 " + json.dumps(whole).encode()


def test_captures_are_the_pages_and_what_is_none():
    """A response is a capture, whatever it answers; other records stand in their place, as do those
    that nobody can fetch.
    """
    content = gzipped(
        page(b"x"),
        page(b"x", status=b"404 Not Found"),
        record(b"request", b"GET"),
        page(b"x", b"Content-Type: image/png"),
    )
    found = list(
        captures_in(io.BytesIO(content + gzipped(page(b"a") + page(b"b"))), filename="in/x.warc.gz")
    )
    assert [one.is_page if isinstance(one, Capture) else one.why for one in found] == [
        True,
        False,
        "request record",
        False,
        "no place of its own",
        "no place of its own",
    ]
    assert found[0] == Capture(
        "https://a.org/x", "20240101000000", True, "", "in/x.warc.gz", 0, len(gzipped(page(b"x")))
    )


def test_captures_of_real_archives_are_the_lines_of_their_index(shared_data):
    folder = shared_data / "hyperlinked/warc"
    if not folder.is_dir():
        pytest.skip("no hyperlinked pages beside the checkout")
    path = folder / "gitdoc.warc.gz"
    captures = [one for one in captures_in(path, filename=path.name) if isinstance(one, Capture)]
    lines = path.with_name("gitdoc.cdxj").read_bytes().splitlines()
    assert sorted(captures, key=lambda one: one.offset) == sorted(
        map(capture_of, lines), key=lambda one: one.offset
    )


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"offset": "-1"}, "impossible place"),
        ({"offset": -(1 << 80)}, "impossible place"),
        ({"offset": "9" * 30}, "impossible place"),
        ({"offset": "seven"}, "impossible place"),
        ({"offset": 1.5}, "line not read"),
        ({"offset": None}, "line not read"),
        ({"length": "0"}, "impossible place"),
        ({"length": -5}, "impossible place"),
        ({"filename": "../secret.warc.gz"}, "path outside"),
        ({"filename": "/etc/passwd"}, "path outside"),
        ({"filename": "https://b.org/x.warc.gz"}, "path outside"),
        ({"filename": ""}, "path outside"),
        ({"filename": "a\u0000b"}, "path outside"),
        ({"filename": ["x"]}, "line not read"),
        ({"url": 5}, "line not read"),
        ({"status": ["200"]}, "line not read"),
    ],
)
def test_lines_that_lie_are_refused(said, why):
    assert capture_of(line(b"org,a)/", **said)) == why


@pytest.mark.parametrize(
    "junk",
    [
        b"",
        b"junk",
        b"a b c",
        b"a 20240518015810",
        b"a 20240518015810 {}",
        b"a 2024 " + line(b"a").split(b" ", 2)[2],
        b'a 20240518015810 {"url": "\xff"}',
        b"a 20240518015810 " + b"[" * 100_000,
        b"a 20240518015810 " + line(b"a")[:-3],
    ],
)
def test_junk_is_no_capture(junk):
    assert capture_of(junk) == "line not read"


@pytest.mark.parametrize(
    ("said", "is_page"),
    [
        ({}, True),
        ({"status": 200}, True),
        ({"status": "301"}, False),
        ({"mime": "image/png", "mime-detected": "text/html"}, False),
        ({"mime": "unk", "mime-detected": "application/xhtml+xml"}, True),
        ({"mime": "warc/revisit", "status": "-"}, False),
    ],
)
def test_what_is_a_page_is_what_a_server_calls_one(said, is_page):
    assert capture_of(line(b"a", **said)).is_page is is_page


@given(KEYS, KEYS)
def test_walking_side_by_side_finds_what_a_search_of_all_lines_does(
    tmp_path_factory, indexed, wanted
):
    """The slow reference; and halving finds the same of each key. Keys that begin alike, repeat, or
    are missing.
    """
    lines = sorted(key + b" %d" % number for number, key in enumerate(indexed))
    keys = sorted(set(wanted))
    lines.sort(key=lambda one: one.partition(b" ")[0])
    content = b"\n".join(lines) + b"\n" * bool(lines)
    slow = [(key, one) for key in keys for one in lines if one.partition(b" ")[0] == key]
    assert list(matches(io.BytesIO(content), keys, where="x.cdxj")) == slow
    assert list(matches(io.BytesIO(gzip.compress(content)), keys, where="x.cdxj.gz")) == slow
    path = tmp_path_factory.mktemp("index") / "x.cdxj"
    path.write_bytes(content)
    assert [(key, one) for key in keys for one in look_up(path, key)] == slow


def test_many_blocks_are_one_index(tmp_path):
    """Keys that go on from block to block, lines with either end, members of 3,000 lines as Common
    Crawl's, no end behind the last line.
    """
    lines = [
        line(b"org,%06d)/" % (number // 3 * (number < 9000)), url="x" * (number % 300))
        for number in range(12_000)
    ]
    lines.sort(key=lambda one: one.partition(b" ")[0])
    content = b"\r\n".join(lines)
    assert len(content) > 2 * BLOCK_BYTES
    packed = b"".join(
        gzip.compress(b"".join(one + b"\n" for one in lines[at : at + 3000]), 1)
        for at in range(0, len(lines), 3000)
    )
    keys = sorted({one.partition(b" ")[0] for one in lines})
    for wanted in (keys, keys[::7], keys[:1], keys[-1:], [b"a", *keys[1000:1002], b"z"]):
        slow = [one for one in lines if one.partition(b" ")[0] in set(wanted)]
        assert [one for _, one in matches(io.BytesIO(content), wanted, where="x.cdxj")] == slow
        assert [one for _, one in matches(io.BytesIO(packed), wanted, where="cdx-00000.gz")] == slow


def test_indexes_that_cannot_be_looked_up_are_told(tmp_path):
    lines = [line(b"c"), line(b"a"), line(b"b")]
    with pytest.raises(CorruptFile, match="not sorted by its keys"):
        list(matches(io.BytesIO(b"\n".join(lines)), [b"a"], where="x.cdxj"))
    far = b"".join(line(b"b%06d" % number) + b"\n" for number in range(10_000)) + line(b"a")
    with pytest.raises(CorruptFile, match="not sorted by its keys"):
        list(matches(io.BytesIO(far), [b"a"], where="x.cdxj"))
    with pytest.raises(CorruptFile, match="line of more than"):
        list(blocks_of_lines(io.BytesIO(b"x" * (3 * MAX_LINE_BYTES)), where="x.cdxj"))
    (tmp_path / "x.cdxj").write_bytes(b"x" * (3 * MAX_LINE_BYTES))
    with pytest.raises(CorruptFile, match="line of more than"):
        look_up(tmp_path / "x.cdxj", b"a")
    for cut in (gzip.compress(line(b"a"))[:-1], b"junk", b""):
        with pytest.raises(CorruptFile, match="x.cdxj.gz"):
            list(blocks_of_lines(io.BytesIO(cut), where="x.cdxj.gz"))


def columns(n_rows: int = 3, **changes) -> pa.Table:
    names = {
        "url_surtkey": [f"org,a)/{number}" for number in range(n_rows)],
        "url": [f"http://a.org/{number}" for number in range(n_rows)],
        "fetch_time": pa.array(
            [dt.datetime(2024, 5, 18, 1, 58, 10, 999_000)] * n_rows,  # noqa: DTZ001
            pa.timestamp("ms"),
        ),
        "fetch_status": pa.array([200] * n_rows, pa.int16()),
        "content_digest": ["ABC"] * n_rows,
        "content_mime_type": ["text/html"] * n_rows,
        "content_mime_detected": ["text/html"] * n_rows,
        "warc_filename": ["x.warc.gz"] * n_rows,
        "warc_record_offset": pa.array(range(n_rows), pa.int32()),
        "warc_record_length": pa.array([5] * n_rows, pa.int32()),
        "content_languages": ["eng"] * n_rows,
    }
    return pa.table(
        {name: column for name, column in (names | changes).items() if column is not None}
    )


def rows_of(table: pa.Table) -> list[dict]:
    stream = io.BytesIO()
    pq.write_table(table, stream, row_group_size=2)
    return [
        row
        for batch in index_batches(io.BytesIO(stream.getvalue()), where="x.parquet")
        for row in batch.to_pylist()
    ]


def test_rows_say_what_lines_say():
    """The two indexes of a crawl are one: the same captures out of both."""
    rows = rows_of(columns())
    lines = [
        line(b"org,a)/%d" % number, url=f"http://a.org/{number}", offset=number, digest="ABC")
        for number in range(3)
    ]
    assert [
        Capture(**{name: value for name, value in row.items() if name != "surt"}) for row in rows
    ] == [*map(capture_of, lines)]
    assert [row["surt"] for row in rows] == ["org,a)/0", "org,a)/1", "org,a)/2"]


def test_older_tables_and_odd_rows_are_read():
    """Without types or digests, with nulls, with digests that name their algorithm."""
    changes = {
        "content_mime_detected": None,
        "content_digest": None,
        "fetch_status": pa.array([200, 404, None], pa.int16()),
    }
    rows = rows_of(columns(content_mime_type=["TEXT/HTML", "text/html", "text/html"], **changes))
    assert [row["is_page"] for row in rows] == [True, False, False]
    assert [row["digest"] for row in rows] == [""] * 3
    said = {
        "content_mime_type": ["unk", None, "image/png"],
        "content_digest": ["sha1:X", None, "Y"],
        "warc_record_offset": [None, -5, 7],
    }
    rows = rows_of(columns(**said))
    assert [row["is_page"] for row in rows] == [True, True, False]
    assert [row["digest"] for row in rows] == ["sha1:X", "", "sha1:Y"]
    assert [row["offset"] for row in rows] == [-1, -5, 7]
    assert rows_of(columns(0)) == []


def test_tables_that_are_no_index_are_told():
    with pytest.raises(CorruptFile, match="has no column url_surtkey, warc_filename"):
        rows_of(columns(url_surtkey=None, warc_filename=None))
    with pytest.raises(CorruptFile, match=r"x\.parquet"):
        rows_of(columns(fetch_time=["long ago"] * 3))
    stream = io.BytesIO()
    pq.write_table(columns(1000), stream)
    content = stream.getvalue()
    for damaged in (b"", b"rubbish", content[: len(content) // 2], bytes(60) + content[60:]):
        with pytest.raises(CorruptFile, match=r"x\.parquet"):
            list(index_batches(io.BytesIO(damaged), where="x.parquet"))
    names = [field.name for field in msgspec.structs.fields(Capture)]
    assert INDEX.names[1:] == names


LINKS = [
    {"path": "IMG@/src", "url": "a.png"},
    {"path": "A@/href", "url": "/b", "text": "To B", "rel": "nofollow", "target": "_blank"},
    {"path": "A@/href", "url": "https://c.org/?a=1&b=2", "title": "C"},
    {"path": "A@/href"},
    {"path": "A@/href", "url": None, "text": None},
]


def wat(
    *, status="200", mime="text/html; charset=utf-8", links=LINKS, base="https://a.org/d/", **more
) -> bytes:
    response = {
        "Response-Message": {"Status": status, "Version": "HTTP/1.1"},
        "Headers": {"content-type": mime, "X": "y"},
        "HTML-Metadata": {"Head": {"Base": base} if base else {}, "Links": links},
        "Entity-Digest": "sha1:ABC",
    } | more
    said = {
        "Container": {
            "Filename": "x.warc.gz",
            "Offset": "7",
            "Gzip-Metadata": {"Deflate-Length": "5"},
        },
        "Envelope": {
            "Format": "WARC/1.0",
            "WARC-Header-Metadata": {
                "WARC-Target-URI": "<https://a.org/x>",
                "WARC-Date": "2024-05-18T01:58:10Z",
            },
            "Payload-Metadata": {
                "HTTP-Response-Metadata": {
                    name: value for name, value in response.items() if value is not None
                }
            },
        },
    }
    return record(b"metadata", json.dumps(said).encode())


def links_in(*records: bytes, **how) -> list[WatPage | Unread]:
    return list(wat_pages(io.BytesIO(gzipped(*records)), filename="x.warc.wat.gz", **how))


def test_lists_of_links_are_read(tmp_path):
    """Links of ``<a href>`` as they were written, what they are relative to, and what is left out;
    fetched alone they are the same.
    """
    content = gzipped(record(b"warcinfo", b"x"), wat(), wat(links=[], base=""))
    first, second = links_in(wat(), wat(links=[], base=""))
    assert first.links == (
        Link("/b", "To B", "nofollow"),
        Link("https://c.org/?a=1&b=2", "", label="C"),
    )
    assert (first.url, first.base) == ("https://a.org/x", "https://a.org/d/")
    assert (second.links, second.base) == ((), "")
    (tmp_path / "x.warc.wat.gz").write_bytes(content)
    captures = [
        one
        for one in captures_in_wat(tmp_path / "x.warc.wat.gz", filename="x.warc.wat.gz")
        if isinstance(one, Capture)
    ]
    assert [(one.url, one.timestamp, one.is_page, one.digest) for one in captures] == [
        ("https://a.org/x", "20240518015810", True, "sha1:ABC")
    ] * 2
    alone = list(
        wat_pages_at(
            Upstream(str(tmp_path)),
            [Spot(one.filename, one.offset, one.length) for one in captures],
        )
    )
    assert alone == [
        one
        for one in wat_pages(tmp_path / "x.warc.wat.gz", filename="x.warc.wat.gz")
        if isinstance(one, WatPage)
    ]
    assert [one.links for one in alone] == [first.links, ()]


@pytest.mark.parametrize(
    ("one", "why"),
    [
        (record(b"warcinfo", b"x"), "warcinfo record"),
        (wat(status="404"), "status not 200"),
        (wat(status=200), ""),
        (wat(mime="image/png"), "not HTML"),
        (wat(Headers={}), "not HTML"),
        (wat(Headers={"Content-Type": ["text/html", "x"]}), ""),
        (wat(**{"HTML-Metadata": None}), ""),
        (wat(**{"HTML-Metadata": 5}), "not JSON"),
        (wat(links=[{"path": "A@/href", "url": ["x"]}]), "not JSON"),
        (record(b"metadata", b"{}"), "not JSON"),
        (record(b"metadata", b"\xff"), "not JSON"),
        (record(b"metadata", b"[" * 100_000), "not JSON"),
        (
            record(
                b"metadata", b'{"Envelope": {"Payload-Metadata": {}, "WARC-Header-Metadata": {}}}'
            ),
            "not of a response",
        ),
        (wat(links=LINKS * 5000), "record too long"),
    ],
)
def test_what_is_no_list_of_links_is_counted(one, why):
    found = links_in(one, wat(), max_links_bytes=500_000)
    assert [getattr(each, "why", "") for each in found] == [why, ""]


def test_common_crawls_own_list_is_read(shared_data):
    found = list(
        wat_pages(shared_data / "warc/whirlwind.warc.wat.gz", filename="whirlwind.warc.wat.gz")
    )
    assert [one.why for one in found] == ["warcinfo record", "not of a response"]


PAGES = st.lists(st.tuples(st.text("abc/?&=%\u00e9", max_size=9), st.text(max_size=50)), max_size=8)


@given(PAGES)
def test_archives_of_ours_are_read_by_all(tmp_path_factory, pages):
    """By us from the beginning, by us at the places of the index, by warcio; the same pages give
    the same bytes.
    """
    folder = tmp_path_factory.mktemp("archive")
    fetched = [
        FetchedPage(f"https://a.org/{path}", f"2024-05-18T01:58:{n:02}Z", html)
        for n, (path, html) in enumerate(pages)
    ]
    captures = write_pages(folder / "x.warc.gz", fetched, filename="x.warc.gz")
    assert write_pages(folder / "y.warc.gz", iter(fetched), filename="x.warc.gz") == captures
    assert (folder / "x.warc.gz").read_bytes() == (folder / "y.warc.gz").read_bytes()
    found = [one for one in html_pages(folder / "x.warc.gz") if isinstance(one, HtmlPage)]
    assert [(one.url, one.date, one.html) for one in found] == [
        (one.url, one.date, one.html.encode("utf-8", "replace").decode().removeprefix("\ufeff"))
        for one in fetched
    ]
    lines = index_lines(captures)
    assert lines == sorted(lines)
    spots = sorted(captures, key=lambda one: one.offset)
    assert sorted(map(capture_of, lines), key=lambda one: one.offset) == spots
    assert list(
        pages_at(
            Upstream(str(folder)), [Spot(one.filename, one.offset, one.length) for one in spots]
        )
    ) == [HtmlPage(one.url, one.html) for one in found]
    with (folder / "x.warc.gz").open("rb") as stream:
        records = [
            (one.rec_type, one.content_stream().read())
            for one in ArchiveIterator(stream, check_digests="raise")
        ]
    assert [
        body.decode().removeprefix("\ufeff") for kind, body in records if kind == "response"
    ] == [one.html for one in found]


def test_dates_are_timestamps():
    assert timestamp_of("") == ""
    assert timestamp_of("2024-05-18") == "20240518000000"


def test_hostile_indexes_are_walked_once():
    """Hundreds of thousands of lines of one key, empty lines, lines without an end."""
    for content in (b"a\n" * 1_000_000, b"\n" * 1_000_000, b"a b\n" * 500_000, b"\r" * 1_000_000):
        list(matches(io.BytesIO(content), [b"", b"a", b"b"], where="x.cdxj"))
