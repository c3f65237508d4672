"""Readers of what crawls and corpora hold: RedPajama-V2's files, plain corpora, archives, indexes,
pages, addresses.
"""

import contextlib
import datetime as dt
import gzip
import json
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

from lc_assets.errors import CorruptFile
from lc_assets.formats.archives.captures import capture_of, captures_in, matches
from lc_assets.formats.archives.fetching import Spot, pages_at
from lc_assets.formats.archives.paths import index_batches, is_inside, listed_paths
from lc_assets.formats.corpora.containers import CorpusDocument, Unread, json_line
from lc_assets.formats.corpora.reading import read_corpus
from lc_assets.formats.redpajama.documents import (
    DocumentRecord,
    decode_document,
    read_duplicates,
    write_documents,
    write_duplicates,
)
from lc_assets.formats.redpajama.lines import read_lines
from lc_assets.formats.redpajama.minhash import (
    Signatures,
    SignaturesWriter,
    read_signatures,
    scheme_label_of,
)
from lc_assets.formats.redpajama.signals import read_signals, signals_lines, write_signals
from lc_assets.lake.upstream import Upstream
from lc_assets.sources.redpajama_v2 import parse_listing
from lc_assets.text.duplicates.minhash import RPV2
from lc_assets.text.links.addresses import KINDS, address_key, domains_above, host_of, normal
from lc_assets.text.links.links import page_links
from lc_assets.text.links.page_keys import page_key, surt
from lc_assets.text.links.targets import targets_of
from lc_assets.text.signals.names import SCALARS
from lc_assets.text.signals.signals import signals_of_each
from lc_assets.text.texts import Texts
from lc_assets.vocabulary import Shard, parse_snapshot
from lc_assets_tests.formats.archives.warc_bytes import gzipped, page, record
from lc_assets_tests.fuzzing.table import Reader
from lc_assets_tests.reference.pages import html_pages, look_up, page_text, wat_pages

SHARD = Shard.parse("2023-06/0000/en_head")
TEXTS = ("One two three.\nFour five.", "Caf\u00e9 \u65e5\u672c <|endoftext|>", "x " * 200)
RECORDS = [
    DocumentRecord(
        url=f"https://example.org/{n}",
        digest="sha1:ABC",
        length=9,
        raw_content=text,
        line_ids=[1, 2],
        bucket="head",
    )
    for n, text in enumerate(TEXTS)
]
PAGE = (
    b"<!doctype html><html><head><base href='/d/'><title>T</title></head><body><nav><a href='/n'>N</a></nav>"
    b"<p>Text <a class=x rel='nofollow ugc' href=\"b.html?q=1&amp;r=2#f\">To <b>B</b></a> <a href='//c.org'><img alt=C></a>"
    b"<table><tr><td><a href=mailto:x@y>m</a></table><script>a</script></body></html>"
)


def documents(folder: Path) -> Any:
    with (folder / "x.json.gz").open("rb") as stream:
        return [
            _document(line) for _, line in read_lines(stream, where="x", max_line_bytes=1 << 16)
        ]


def _document(line: bytes | None) -> Any:
    if line is None:
        return "too long"
    try:
        return decode_document(line, where="x")
    except CorruptFile:
        return "unreadable"


def signals(folder: Path) -> Any:
    with (folder / "x.json.gz").open("rb") as stream:
        table = read_signals(stream, shard=SHARD, where="x", names=SCALARS, max_line_bytes=1 << 16)
    assert (np.diff(table.lines) > 0).all()
    columns = {name: column.tolist() for name, column in table.columns.items()}
    return table.lines.tolist(), table.urls, repr(columns), table.n_undecodable, table.n_oversize


def make_signals(folder: Path) -> None:
    scores = {name: [(0, 1, 0.5)] for name in SCALARS if not name.startswith("ccnet")}
    write_signals(
        folder / "x.json.gz", SHARD, [(line, one, scores) for line, one in enumerate(RECORDS)]
    )


def make_signatures(folder: Path) -> None:
    with contextlib.closing(SignaturesWriter(folder / "x.parquet", RPV2.label)) as writer:
        file = f"{SHARD.tag}.json.gz"
        some = Signatures(
            ids=[f"{file}/{number}" for number in range(5)],
            numbers=np.random.default_rng(0).integers(2**32, size=(5, 128), dtype=np.uint32),
            is_signed=np.arange(5) != 2,
        )
        writer.add(some, file)


def signatures(folder: Path) -> Any:
    parts = list(read_signatures(folder / "x.parquet", where="x"))
    label = scheme_label_of(folder / "x.parquet", where="x")
    return label, [(part.ids, part.numbers.tolist(), part.is_signed.tolist()) for part in parts]


def listing(folder: Path) -> Any:
    return parse_listing(
        (folder / "x.txt").read_bytes(), snapshot=parse_snapshot("2023-06"), where="x"
    )


def corpus_lines() -> bytes:
    known = {
        "perplexity": 7.5,
        "language": "en",
        "date": "2024",
        "meta": {"a": [1, None], "b": {"c": "d"}},
        "length": 9,
        "bucket": "head",
    }
    rows = [
        {"id": f"d{n}", "text": text, "url": f"https://a.org/{n}", **known}
        for n, text in enumerate(TEXTS)
    ]
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def make_corpus_parquet(folder: Path) -> None:
    rows = [msgspec.json.decode(line) for line in corpus_lines().splitlines()]
    pq.write_table(pa.Table.from_pylist(rows), folder / "x.parquet")


def compared(one: CorpusDocument | Unread) -> Any:
    """A document as what can be compared."""
    return (one.id, one.text, bytes(one.rest)) if isinstance(one, CorpusDocument) else one


def corpus(name: str) -> Any:
    def read(folder: Path) -> Any:
        found = []
        for one in read_corpus(folder / name, max_document_bytes=1 << 16):
            if isinstance(one, CorpusDocument):
                msgspec.json.decode(json_line(one), type=dict[str, msgspec.Raw])
                measured = signals_of_each(Texts([one.text[:500]]), [""])
                json.loads(signals_lines([one], measured, [""], language=one.language))
            found.append(compared(one))
        return found

    return read


def archive() -> bytes:
    return gzipped(
        record(b"warcinfo", b"software: x"),
        page(PAGE, url=b"https://a.org/x"),
        record(b"request", b"GET / HTTP/1.1\r\n\r\n"),
        page(
            gzip.compress(PAGE, mtime=0),
            b"Content-Type: text/html\r\nContent-Encoding: gzip",
            url=b"https://b.org/y",
        ),
        page(
            b"5;x\r\n<p>Hi\r\n0\r\n\r\n", b"Content-Type: text/html\r\nTransfer-Encoding: chunked"
        ),
        record(b"conversion", TEXTS[1].encode()),
    )


def pages(folder: Path) -> Any:
    path = folder / "x.warc.gz"
    return list(html_pages(path, max_page_bytes=1 << 16)), list(
        captures_in(path, filename="x.warc.gz")
    )


def fetched(folder: Path) -> Any:
    sound = archive()
    spots = [Spot("x.warc.gz", at, len(sound) - at) for at in range(0, len(sound), 150)]
    odd = [
        Spot("../x", 0, 9),
        Spot("x.warc.gz", -1, 9),
        Spot("x.warc.gz", 2**62, 9),
        Spot("none.warc.gz", 0, 9),
    ]
    return list(pages_at(Upstream(str(folder)), [*spots, *odd], max_page_bytes=1 << 16))


def make_wat(folder: Path) -> None:
    links = [
        {"path": "A@/href", "url": "/b", "text": "To B", "rel": "nofollow"},
        {"path": "IMG@/src", "url": "a.png"},
    ]
    html = {"Head": {"Base": "https://a.org/d/"}, "Links": links}
    response = {
        "Response-Message": {"Status": "200"},
        "Headers": {"Content-Type": "text/html"},
        "HTML-Metadata": html,
    }
    warc = {"WARC-Target-URI": "https://a.org/x", "WARC-Date": "2024-05-18T01:58:10Z"}
    said = {
        "Envelope": {
            "WARC-Header-Metadata": warc,
            "Payload-Metadata": {"HTTP-Response-Metadata": response},
        }
    }
    (folder / "x.wat").write_bytes(record(b"metadata", json.dumps(said).encode()) * 2)


def cdxj_lines() -> bytes:
    said = {
        "mime": "text/html",
        "status": "200",
        "length": "5",
        "offset": "7",
        "filename": "a/x.warc.gz",
        "digest": "ABC",
    }
    return b"".join(
        b"org,a)/%d 20240518015810 " % n
        + json.dumps({"url": f"http://a.org/{n}", **said}).encode()
        + b"\n"
        for n in range(5)
    )


def cdxj(folder: Path) -> Any:
    path = folder / "x.cdxj"
    keys = [b"org,a)/%d" % n for n in range(5)]
    lines = [line for _, line in matches(path, keys, where="x.cdxj")] + [
        line for key in keys for line in look_up(path, key)
    ]
    found = [capture_of(line) for line in lines]
    assert all(isinstance(one, str) or is_inside(one.filename) for one in found)
    return found


def make_columnar(folder: Path) -> None:
    columns = {
        "url_surtkey": [f"org,a)/{n}" for n in range(3)],
        "url": [f"http://a.org/{n}" for n in range(3)],
        "fetch_time": pa.array(
            [dt.datetime(2024, 5, 18, tzinfo=dt.UTC)] * 3, pa.timestamp("ms", "UTC")
        ),
        "fetch_status": pa.array([200] * 3, pa.int16()),
        "content_digest": ["ABC"] * 3,
        "content_mime_type": ["text/html"] * 3,
        "warc_filename": ["x.warc.gz"] * 3,
        "warc_record_offset": pa.array(range(3), pa.int32()),
        "warc_record_length": pa.array([5] * 3, pa.int32()),
    }
    pq.write_table(pa.table(columns), folder / "x.parquet")


def columnar(folder: Path) -> Any:
    with (folder / "x.parquet").open("rb") as stream:
        return [row for batch in index_batches(stream, where="x") for row in batch.to_pylist()]


def html(folder: Path) -> Any:
    text = (folder / "x.html").read_bytes().decode("utf-8", "replace")
    paper, found = page_links(text, "paper"), page_links(text)
    return (
        paper,
        found,
        page_text(text),
        targets_of(found.links, "https://a.org/d/x", base=found.base, text=text),
    )


def addresses(folder: Path) -> Any:
    lines = (folder / "x.txt").read_bytes().decode("utf-8", "replace").split("\n")
    keys = [page_key(line) for line in lines]
    assert all(key is None or page_key(f"http://{key}") == key for key in keys)
    return keys, [
        (
            surt(line),
            domains_above(host_of(line)),
            address_key(line),
            [normal(kind, line) for kind in KINDS],
        )
        for line in lines
    ]


ADDRESSES = (
    "https://user:pw@WWW.B\u00fccher.example:443/a/../b%2F%41/?utm_source=x&b=%zz#f\nhttp://[::1]:80/\n//c.org\nx "
    "y\n"
)


def written(name: str, content: bytes) -> Any:
    def make(folder: Path) -> None:
        (folder / name).write_bytes(content)

    return make


LINES = ("gzip", "json")
READERS = (
    Reader(
        name="RedPajama documents",
        make=lambda at: write_documents(at / "x.json.gz", RECORDS),
        read=documents,
        layers={".gz": LINES},
    ),
    Reader(name="RedPajama signals", make=make_signals, read=signals, layers={".gz": LINES}),
    Reader(
        name="RedPajama duplicates",
        make=lambda at: write_duplicates(at / "x.parquet", SHARD, [(3, "sha1:A"), (7, "B")]),
        read=lambda at: read_duplicates(at / "x.parquet", shard=SHARD, where="x"),
        layers={".parquet": ("parquet",)},
    ),
    Reader(
        name="MinHash Parquet",
        make=make_signatures,
        read=signatures,
        layers={".parquet": ("parquet",)},
    ),
    Reader(
        name="listing",
        make=written("x.txt", b"2023-06/0000/en_head\n2023-06/0001/en_middle\n"),
        read=listing,
        layers={"": ("text",)},
    ),
    Reader(
        name="corpus .jsonl",
        make=written("x.jsonl", corpus_lines()),
        read=corpus("x.jsonl"),
        layers={"": ("json",)},
    ),
    Reader(
        name="corpus .jsonl.gz",
        make=written("x.jsonl.gz", gzip.compress(corpus_lines())),
        read=corpus("x.jsonl.gz"),
        layers={"": LINES},
    ),
    Reader(
        name="corpus .jsonl.zst",
        make=written("x.jsonl.zst", zstandard.compress(corpus_lines())),
        read=corpus("x.jsonl.zst"),
        layers={"": ("zstd", "json")},
    ),
    Reader(
        name="corpus .parquet",
        make=make_corpus_parquet,
        read=corpus("x.parquet"),
        layers={"": ("parquet",)},
    ),
    Reader(
        name="corpus .wet.gz",
        make=written("x.wet.gz", archive()),
        read=corpus("x.wet.gz"),
        layers={"": ("gzip", "headers")},
    ),
    Reader(
        name="corpus .warc.gz",
        make=written("x.warc.gz", archive()),
        read=corpus("x.warc.gz"),
        layers={"": ("gzip", "headers")},
    ),
    Reader(
        name="corpus .txt",
        make=written("x.txt", TEXTS[1].encode()),
        read=corpus("x.txt"),
        layers={"": ("text",)},
    ),
    Reader(
        name="pages of a WARC file",
        make=written("x.warc.gz", archive()),
        read=pages,
        layers={"": ("gzip", "headers")},
    ),
    Reader(name="records by range", make=written("x.warc.gz", archive()), read=fetched),
    Reader(
        name="WAT",
        make=make_wat,
        read=lambda at: list(wat_pages(at / "x.wat", filename="x.wat")),
        layers={"": ("json", "headers")},
    ),
    Reader(
        name="CDXJ", make=written("x.cdxj", cdxj_lines()), read=cdxj, layers={"": ("json", "text")}
    ),
    Reader(name="columnar index", make=make_columnar, read=columnar, layers={"": ("parquet",)}),
    Reader(
        name="list of paths",
        make=written("x.gz", gzip.compress(b"crawl-data/a.warc.gz\ncrawl-data/b.warc.gz\n")),
        read=lambda at: listed_paths((at / "x.gz").read_bytes(), where="x"),
        layers={"": ("gzip", "text")},
    ),
    Reader(
        name="HTML, links and text", make=written("x.html", PAGE), read=html, layers={"": ("text",)}
    ),
    Reader(
        name="addresses",
        make=written("x.txt", ADDRESSES.encode()),
        read=addresses,
        layers={"": ("text",)},
    ),
)
"""Doors for crawls and corpora."""
