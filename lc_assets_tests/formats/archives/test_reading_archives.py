"""Pages out of archives: every one with its place, everything else counted, damage told."""

import base64
import gzip
import io
import json
import sys
import zlib
from collections import Counter

import numpy as np
import pytest
import zstandard
from fastwarc.stream_io import BrotliWriter
from hypothesis import assume, given, strategies as st
from isal import igzip
from warcio.archiveiterator import ArchiveIterator

from lc_assets.errors import BadInput, CorruptFile, Unreachable
from lc_assets.formats.archives.fetching import HtmlPage
from lc_assets.formats.archives.members import NO_PLACE, Members
from lc_assets.formats.archives.responses import Undecodable, decoded, undone
from lc_assets.formats.corpora.containers import Unread
from lc_assets.text.html.page_text import page_content
from lc_assets_tests.formats.archives.warc_bytes import gzipped, http, page, record
from lc_assets_tests.memory import added
from lc_assets_tests.named_draws import rng_for
from lc_assets_tests.reference.pages import html_pages, page_text

ARTICLE = (
    "<nav>Menu</nav><article>"
    + "<p>Green tea is a kind of tea that is made from leaves that have not withered.</p>" * 3
)
MANUALS = ("apachedoc", "gitdoc", "sqlitedoc")
BODY = b"<html><p>Caf\xc3\xa9 au lait.</p></html>"


def read(content: bytes, name: str = "x.warc.gz", **how) -> list[HtmlPage | Unread]:
    return list(html_pages(io.BytesIO(content), filename=name, **how))


def reasons(found) -> list[str]:
    return [one.why if isinstance(one, Unread) else "" for one in found]


@pytest.fixture(scope="module")
def hyperlinked(shared_data):
    folder = shared_data / "hyperlinked"
    if not folder.is_dir():
        pytest.skip("no hyperlinked pages beside the checkout")
    return folder


@pytest.mark.parametrize("name", MANUALS)
def test_real_pages_lie_where_their_index_says(hyperlinked, name):
    """Every page, its address, its place and its digest are those of the index that another program
    wrote.
    """
    lines = [
        json.loads(line.split(" ", 2)[2])
        for line in (hyperlinked / f"warc/{name}.cdxj").read_text().splitlines()
    ]
    indexed = {
        (line["url"], line["filename"], int(line["offset"]), int(line["length"]), line["digest"])
        for line in lines
    }
    found = list(html_pages(hyperlinked / f"warc/{name}.warc.gz"))
    pages = [one for one in found if isinstance(one, HtmlPage)]
    assert {(one.url, one.filename, one.offset, one.length, one.digest) for one in pages} == indexed
    assert len(pages) == len(indexed)
    assert Counter(reasons(found)) == {"": len(indexed), "warcinfo record": 1}


@pytest.mark.parametrize("name", MANUALS)
def test_the_texts_of_real_pages_are_the_published_ones(hyperlinked, name):
    """Word for word; of pages with images, the published texts have alternative texts, too."""
    with gzip.open(hyperlinked / f"pages_{name}.jsonl.gz") as lines:
        texts = {line["url"]: line["text"] for line in map(json.loads, lines)}
    pages = [
        one for one in html_pages(hyperlinked / f"warc/{name}.warc.gz") if isinstance(one, HtmlPage)
    ]
    assert {one.url for one in pages} == texts.keys()
    for one in pages:
        found, published = page_text(one.html), texts[one.url]
        published_words = iter(published.split())
        assert all(word in published_words for word in found.split())  # in this order
        assert found == published or "alt=" in one.html


def test_warcio_reads_the_same_bytes(hyperlinked):
    """The slow reference: another library, the same pages in the same order."""
    path = hyperlinked / "warc/gitdoc.warc.gz"
    ours = [(one.url, one.html) for one in html_pages(path) if isinstance(one, HtmlPage)]
    with path.open("rb") as stream:
        responses = (one for one in ArchiveIterator(stream) if one.rec_type == "response")
        theirs = [
            (one.rec_headers.get_header("WARC-Target-URI"), one.content_stream().read().decode())
            for one in responses
        ]
    assert ours == theirs


def test_common_crawls_records_are_read(shared_data):
    """Its archives hold requests and metadata beside the pages."""
    found = list(html_pages(shared_data / "warc/whirlwind.warc.gz"))
    assert reasons(found) == ["warcinfo record", "request record", "", "metadata record"]
    assert (found[2].url, found[2].offset, found[2].length) == (
        "https://an.wikipedia.org/wiki/Escopete",
        1023,
        17351,
    )
    assert "Escopete" in found[2].html


PLACES = {
    "x.warc.gz": gzipped(
        record(b"warcinfo", b"a: b"), page(BODY), page(BODY, url=b"<https://b.org/>")
    ),
    "x.warc": record(b"warcinfo", b"a: b") + page(BODY) + page(BODY, url=b"<https://b.org/>"),
}


@pytest.mark.parametrize("name", PLACES)
def test_the_range_of_a_page_holds_its_record_and_nothing_else(name):
    """Cut out of the file, it is an archive of that page alone; angle brackets around addresses are
    no part of them.
    """
    content = PLACES[name]
    _, *pages = read(content, name)
    assert [one.url for one in pages] == ["https://a.org/x", "https://b.org/"]
    for one in pages:
        (alone,) = read(content[one.offset : one.offset + one.length], name)
        assert (alone.url, alone.html) == (one.url, one.html)
    assert sum(one.length for one in pages) + pages[0].offset == len(content)


def test_records_that_share_a_member_have_no_place():
    """They are read, but nobody can fetch one of them alone; those before and behind have
    theirs.
    """
    content = gzipped(page(BODY), page(BODY) + page(BODY), page(BODY))
    found = read(content)
    assert [one.html for one in found] == [BODY.decode()] * 4
    assert [(one.offset, one.length) for one in found[1:3]] == [(-1, 0), (-1, 0)]
    assert [content[one.offset : one.offset + one.length] for one in (found[0], found[3])] == [
        gzipped(page(BODY))
    ] * 2


def test_members_may_be_empty_and_records_cut_into_several():
    """As some writers flush; a record's place is where its first member begins."""
    whole = page(BODY)
    content = (
        gzip.compress(b"", mtime=0)
        + gzip.compress(whole[:100], mtime=0)
        + gzip.compress(whole[100:], mtime=0)
        + gzipped(whole)
    )
    found = read(content)
    assert [one.html for one in found] == [BODY.decode()] * 2
    for one in found:
        assert read(content[one.offset : one.offset + one.length])[0].html == BODY.decode()


@given(st.lists(st.binary(max_size=300), max_size=8), st.integers(1, 200), st.integers(1, 90))
def test_members_are_gzip_s_bytes_and_know_where_they_begin(parts, size, packed_size):
    """Against the standard library, however small the pieces are that are read and asked for."""
    packed = [gzip.compress(part, mtime=0) for part in parts]

    class Trickling(io.BytesIO):
        def read(self, _=-1):
            return super().read(packed_size)

    if not parts:
        return
    members = Members(Trickling(b"".join(packed)), where="x.gz")
    plain = b"".join(iter(lambda: members.read(size), b""))
    assert plain == gzip.decompress(b"".join(packed))
    assert members.n_packed == sum(map(len, packed))
    starts = {
        sum(map(len, parts[:place])): sum(map(len, packed[:place])) for place in range(len(parts))
    }
    assert {
        position: members.place_of(position) for position in sorted({*starts, *range(len(plain))})
    } == {
        position: starts.get(position, NO_PLACE)
        for position in sorted({*starts, *range(len(plain))})
    }


@pytest.mark.parametrize(
    ("one", "why"),
    [
        (record(b"request", b"GET / HTTP/1.1\r\n\r\n"), "request record"),
        (record(b"revisit", http(b"")), "revisit record"),
        (record(b"metadata", b"{}"), "metadata record"),
        (record(b"anything else", b""), "unknown record"),
        (page(BODY, status=b"404 Not Found"), "status not 200"),
        (page(BODY, status=b"301 Moved"), "status not 200"),
        (page(BODY, status=b"fine"), "status not 200"),
        (record(b"response", b"no HTTP at all"), "status not 200"),
        (record(b"response", b""), "status not 200"),
        (page(BODY, b"Content-Type: image/png"), "not HTML"),
        (page(b"Words.", b"X: y"), "not HTML"),
        (
            page(
                BODY,
                b"Content-Type: image/png",
                more=b"WARC-Identified-Payload-Type: text/html\r\n",
            ),
            "not HTML",
        ),
        (page(BODY, more=b"WARC-Truncated: length\r\n"), "cut short"),
        (page(b"x" * 5000), "record too long"),
        (
            page(
                gzip.compress(bytes(100_000), mtime=0),
                b"Content-Type: text/html\r\nContent-Encoding: gzip",
            ),
            "record too long",
        ),
        (
            page(b"no gzip", b"Content-Type: text/html\r\nContent-Encoding: gzip"),
            "undecodable HTTP",
        ),
        (
            page(b"zz\r\nabc", b"Content-Type: text/html\r\nTransfer-Encoding: chunked"),
            "undecodable HTTP",
        ),
        (
            page(b"fff\r\nabc", b"Content-Type: text/html\r\nTransfer-Encoding: chunked"),
            "undecodable HTTP",
        ),
        (
            page(b"f" * 99 + b"\r\nabc", b"Content-Type: text/html\r\nTransfer-Encoding: chunked"),
            "undecodable HTTP",
        ),
    ],
)
def test_what_is_no_page_is_counted_and_the_next_one_read(one, why):
    found = read(gzipped(one, page(BODY)), max_page_bytes=4000)
    assert reasons(found) == [why, ""]
    assert found[0].id == "urn:uuid:12"
    assert found[0].where == "x.warc.gz, record 0"


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        (b"Content-Type: TEXT/HTML", BODY),
        (b'content-type: application/xhtml+xml; charset="UTF-8"', BODY),
        (b"Content-Type: text/html; charset=ISO-8859-1", BODY.decode().encode("latin1")),
        (b"Content-Type: text/html; charset=utf-8", BODY.decode().encode("latin1")),
        (b"Content-Type: text/html; charset=latin1", b"\xef\xbb\xbf" + BODY),
        (
            b"Content-Type: text/html; charset=utf-8",
            "\ufeff".encode("utf-16-le") + BODY.decode().encode("utf-16-le"),
        ),
        (
            b"Content-Type: text/html; charset=utf-8",
            "\ufeff".encode("utf-16-be") + BODY.decode().encode("utf-16-be"),
        ),
        (b"Content-Type: text/html\r\nContent-Encoding: gzip", gzip.compress(BODY, mtime=0)),
        (
            b"Content-Type: text/html\r\nTransfer-Encoding: chunked",
            b"5\r\n%s\r\n%x;x=y\r\n%s\r\n0\r\n\r\n" % (BODY[:5], len(BODY) - 5, BODY[5:]),
        ),
        (b"Content-Type: text/html\r\nContent-Encoding: gzip\r\nContent-Length: 7", BODY),
        (b"Content-Type: text/html\r\nContent-Encoding: br\r\nTransfer-Encoding: chunked", BODY),
        (b"Content-Type: text/html\r\nContent-Length: 99999999999", BODY),
        (b"Content-Type: text/html\r\nContent-Length: -1", BODY),
    ],
)
def test_pages_are_decoded_whatever_their_labels_say(headers, body):
    """Chunks and compression undone; a mark in the bytes is believed more than the server, letters
    more than a wrong charset; bodies that are decoded already, under the labels that came with
    them, are taken as they are.
    """
    (found,) = read(gzipped(page(body, headers)))
    assert found.html.strip() == BODY.decode()


@pytest.mark.parametrize(
    "coding", ["gzip", "x-gzip", "deflate", "raw deflate", "br", "zstd", "gzip, br"]
)
def test_bodies_are_unpacked_up_to_a_limit(coding):
    """Of a body that is cut short there is what was sent; of rubbish there is nothing; and no more
    than was asked for.
    """
    plain = b"<p>%s" % base64.b64encode(rng_for("bodies", seed=7).bytes(100_000))
    raw = zlib.compressobj(wbits=-15)
    packed = {
        "gzip": gzip.compress(plain, mtime=0),
        "deflate": zlib.compress(plain),
        "raw deflate": raw.compress(plain) + raw.flush(),
        "br": brotli(plain),
        "zstd": zstandard.compress(plain),
        "gzip, br": brotli(gzip.compress(plain, mtime=0)),
    }[coding.removeprefix("x-")]

    def unpacked(body, most_bytes=1 << 20):
        return undone(body, transfer="", content=coding.removeprefix("raw "), most_bytes=most_bytes)

    assert unpacked(packed) == plain
    assert len(unpacked(packed, 100)) == 100
    if coding != "gzip, br":
        assert unpacked(packed, 100) == plain[:100]
        assert plain.startswith(unpacked(packed[:-9]))
    for rubbish in (BODY, *([] if "deflate" in coding else [b"rubbish"])):
        with pytest.raises(Undecodable):
            unpacked(rubbish)


def brotli(plain: bytes) -> bytes:
    packed = io.BytesIO()
    writer = BrotliWriter(packed)
    writer.write(plain)
    writer.close()
    return packed.getvalue()


def test_a_page_without_a_type_is_what_the_crawler_saw_in_it():
    (found,) = read(
        gzipped(page(BODY, b"X: y", more=b"WARC-Identified-Payload-Type: text/html\r\n"))
    )
    assert found.html == BODY.decode()


@pytest.mark.parametrize(
    "charset", ["utf-7", "x" * 10_000, "\x00", "replacement", "iso-2022-jp", "utf-16", ""]
)
def test_no_encoding_stops_a_page(charset):
    """Whatever a server calls it, and whatever the bytes are."""
    for content in (
        BODY,
        bytes(range(256)),
        b"\xff\xfe\x00",
        b"\x1b$B",
        b"<meta charset=utf-7>+ADw-",
    ):
        assert isinstance(decoded(content, charset), str)


def test_every_cut_is_found_or_falls_between_two_records():
    """A file that ends anywhere within a member is damaged; between two, what is there is whole."""
    content = gzipped(page(BODY), record(b"request", b"x"), page(BODY))
    ends = {one.offset for one in read(content) if isinstance(one, HtmlPage)} | {len(content)}
    ends |= {len(gzipped(page(BODY), record(b"request", b"x")))} | {len(gzipped(page(BODY)))}
    for end in range(1, len(content)):
        if end in ends:
            assert len(read(content[:end])) < 3
        else:
            with pytest.raises(CorruptFile, match="x.warc.gz: .*fetch it again"):
                read(content[:end])
    with pytest.raises(CorruptFile, match="empty, not even a header"):
        read(b"")


def test_a_flipped_bit_is_damage_or_changes_nothing():
    """Only where gzip's head says when and on what system it was made."""
    content = gzipped(page(BODY), page(BODY))
    whole = read(content)
    for at in range(len(content)):
        spoilt = bytearray(content)
        spoilt[at] ^= 0x10
        try:
            assert read(bytes(spoilt)) == whole
        except CorruptFile:
            continue


WRONG_LENGTHS = (0, 1, 20, 10**18, 10**30, -5)
"""`len` of the block is none of them."""
PACKS = ((bytes, "x.warc"), (gzip.compress, "x.warc.gz"))


@pytest.mark.parametrize(("pack", "name"), PACKS)
@pytest.mark.parametrize("length", WRONG_LENGTHS)
@pytest.mark.parametrize("kind", [b"response", b"request"])
def test_a_record_of_a_wrong_length_is_counted_and_the_next_one_read(pack, name, length, kind):
    """Those before and behind it are read, and lie where they lie."""
    wrong = record(kind, http(BODY), length=length)
    content = [page(BODY), wrong, page(BODY), wrong, wrong, page(BODY)]
    found = read(b"".join(map(pack, content)), name)
    assert reasons(found) == ["", "wrong length", "", "wrong length", "wrong length", ""]
    starts = [0, *(len(b"".join(map(pack, content[:number]))) for number in (2, 5))]
    pages = [one for one in found if isinstance(one, HtmlPage)]
    assert [one.offset for one in pages] == starts
    assert {one.length for one in pages} == {len(pack(page(BODY)))}
    assert found[1].id == "urn:uuid:12"
    assert found[1].where == f"{name}, record 1"


@given(
    lengths=st.lists(
        st.one_of(st.none(), st.integers(-10, 2000), st.sampled_from(WRONG_LENGTHS)), max_size=8
    ),
    pack=st.sampled_from(PACKS),
)
def test_every_record_is_read_or_counted(lengths, pack):
    """Whatever the lengths say: up to four bytes more are the ends of lines behind the block."""
    block = http(b"<html><p>%s" % (b"x" * 300))
    content = [record(b"response", block, length=length) for length in lengths]
    starts = np.cumsum([0, *map(len, content)])
    for start, one, length in zip(starts.tolist(), content, lengths, strict=False):
        end = start + one.index(b"\r\n\r\n") + 4 + (length or 0)
        # A length that ends where a later record begins is not seen to be wrong.
        assume(
            not any(
                end <= later <= end + 4 for later in starts.tolist() if later > start + len(one)
            )
        )
    found = read(b"".join(map(pack[0], [*content, page(BODY)])), pack[1])
    right = [length is None or len(block) <= length <= len(block) + 4 for length in lengths]
    assert [one == "" for one in reasons(found)] == [*right, True]


def test_a_record_that_quotes_another_is_one_record():
    """Only behind a wrong length is a line that looks like a record's first one it."""
    quoting = page(b"<html><pre>\r\n" + page(BODY) + b"</pre>")
    assert reasons(read(quoting + page(BODY), "x.warc")) == ["", ""]
    assert reasons(read(gzipped(quoting[:-9], page(BODY)))) == ["wrong length", ""]


@pytest.mark.parametrize(("pack", "name"), PACKS)
def test_the_last_record_must_have_its_length(pack, name):
    """A file that was cut between two members, or within its last record, is damaged."""
    for length in (10**18, 1000):
        with pytest.raises(CorruptFile, match=rf"{name}: record <urn:uuid:12> .* is cut short"):
            read(pack(page(BODY)) + pack(page(BODY, length=length)), name)


def test_many_wrong_lengths_are_damage():
    """Each may cost reading the file again."""
    wrong = page(BODY, length=10**18)
    assert len(read(gzipped(*100 * [wrong], page(BODY)))) == 101
    with pytest.raises(CorruptFile, match="is cut short"):
        read(gzipped(*101 * [wrong], page(BODY)))


@pytest.mark.parametrize(
    "content",
    [
        page(BODY).replace(b"\r\n", b"\n"),
        page(BODY, more=b"X: " + b"x" * 3_000_000 + b"\r\n"),
        b"rubbish\r\n\r\n",
        b"<html>503 Service Unavailable</html>" * 50,
    ],
)
def test_heads_that_are_none_are_damage(content):
    """Whatever they promise: no memory for it, and never a file that ends early in silence."""
    for pack, name in PACKS:
        with pytest.raises(CorruptFile, match=name):
            read(pack(content) + pack(page(BODY)), name)


def test_a_bomb_costs_neither_memory_nor_the_pages_behind_it():
    """A gigabyte of one record, and one of a body, out of a megabyte each."""
    body = io.BytesIO()
    with igzip.IGzipFile(fileobj=body, mode="wb") as out:
        for _ in range(1000):
            out.write(bytes(1 << 20))
    head = http(b"")
    outer = io.BytesIO()
    with igzip.IGzipFile(fileobj=outer, mode="wb") as out:
        out.write(record(b"response", head, length=len(head) + (1000 << 20))[:-4])
        for _ in range(1000):
            out.write(bytes(1 << 20))
        out.write(b"\r\n\r\n")
    inner = gzipped(page(body.getvalue(), b"Content-Type: text/html\r\nContent-Encoding: gzip"))
    with added() as more:
        assert reasons(read(outer.getvalue() + inner + gzipped(page(BODY)))) == [
            "record too long",
            "record too long",
            "",
        ]
        assert more() < 100_000_000


def test_what_the_stream_says_is_not_damage():
    """A server that stops is `Unreachable`, whatever FastWARC makes of it on the way; a disk's
    error has its number.
    """

    class Stopping(io.BytesIO):
        def __init__(self, error):
            super().__init__(gzipped(page(BODY)))
            self.error = error

        def read(self, size=-1):
            found = super().read(min(size, 50))
            if self.tell() > 100:
                raise self.error
            return found

    for error in (Unreachable("gone"), TimeoutError("slow"), OSError(5, "Input/output error")):
        with pytest.raises(type(error), match=str(error.args[-1])):
            list(html_pages(Stopping(error), filename="x.warc.gz"))


@pytest.mark.parametrize(
    ("html", "title"),
    [
        ("<!-- <title>Old</title> --><title> A &amp;\n b </title><h1>c</h1>", "A & b"),
        ("<title> </title><p>x<h3>Tea <b>time</b></h3><h1>y", "Tea time"),
        ("<svg><title>s</title></svg><p>x", ""),
        ("<frameset><frame>", ""),
        ("", ""),
    ],
)
def test_a_page_has_its_title_or_its_first_heading(html, title):
    assert page_content(html).title == title


def test_texts_of_high_quality_need_their_package(monkeypatch):
    """Too deep is too deep for both; without the package a sentence says how to install it."""
    assert page_text("<div>" * 10_000, "high") is None
    monkeypatch.setitem(sys.modules, "trafilatura", None)
    with pytest.raises(BadInput, match=r"pip install 'lc-assets\[trafilatura\]'"):
        page_text(ARTICLE, "high")


def test_texts_of_high_quality_are_trafilaturas():
    pytest.importorskip("trafilatura", exc_type=ImportError)
    text = page_text(ARTICLE, "high")
    assert "not withered" in text
    assert "Menu" not in text
    assert page_text("", "high") == ""
