"""A gigabyte out of a megabyte: each reader that unpacks stops at its limit, in a child process
that may not take more.

The child's address space is what it has after importing and reading something small, and `ROOM`
more.
"""

import gzip
import io
import json
import re
import subprocess
import sys
import textwrap

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from isal import igzip

from lc_assets_tests.formats.archives.warc_bytes import gzipped, http, page, record
from lc_assets_tests.fuzzing.parquet_bytes import (
    RLE_DICTIONARY,
    Page,
    data_page,
    dictionary_page,
    flat,
    levels,
    listed,
    parquet_bytes,
    text,
    varint,
)
from lc_assets_tests.fuzzing.readers import READERS
from lc_assets_tests.processes import HANG_SECONDS

GIGABYTE = 1 << 30
ROOM = 400 << 20
"""Less than half of what any of the bombs holds; a batch of rows may take more (`PARQUET_ROOM`)."""

WIDE_ROOM = 900 << 20
"""Where the limit itself is a quarter of a gigabyte."""

PARQUET_ROOM = 1500 << 20

CHILD = """
import resource, sys
from pathlib import Path
from lc_assets.errors import LcError
from lc_assets_tests.memory import added

def read(path):
{body}

def said(path):
    try:
        return read(path)
    except LcError as error:
        return f"{{type(error).__name__}}: {{error}}"

said(Path(sys.argv[1]))
now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (now + {room}, resource.RLIM_INFINITY))
with added() as more:
    print(said(Path(sys.argv[2])))
    print(more())
"""

CORPUS = """
    from lc_assets.formats.corpora.reading import read_corpus
    return sorted(getattr(one, "why", "read") for one in read_corpus(path, max_document_bytes=1 << 20))
"""
EVALUATION = """
    from lc_assets.formats.lists.evaluations import read_items
    return sum(1 for _ in read_items(path))
"""
BLOCKLIST = """
    from lc_assets.formats.lists.models import read_blocklist
    return len(read_blocklist(path).domains)
"""
LINES = """
    from lc_assets.formats.redpajama.lines import read_lines
    return [line if line is None else len(line) for _, line in read_lines(path.open("rb"), where="x", max_line_bytes=1 << 20)]
"""
SIGNALS = """
    from lc_assets.formats.redpajama.signals import read_signals
    from lc_assets.vocabulary import Shard
    shard = Shard.parse("2023-06/0000/en_head")
    return read_signals(path.open("rb"), shard=shard, where="x", names=["rps_doc_word_count"], max_line_bytes=1 << 20).n_oversize
"""
PAGES = """
    from lc_assets_tests.reference.pages import html_pages
    return [getattr(one, "why", "read") for one in html_pages(path, max_page_bytes=1 << 20)]
"""
WAT = """
    from lc_assets_tests.reference.pages import wat_pages
    pages = wat_pages(path, filename=path.name, max_links_bytes=1 << 20)
    return [getattr(one, "why", "read") for one in pages]
"""
CDXJ = """
    from lc_assets.formats.archives.captures import blocks_of_lines
    return sum(map(len, blocks_of_lines(path, where=path.name)))
"""
LIST = """
    from lc_assets.formats.archives.paths import listed_paths
    return len(listed_paths(path.read_bytes(), where="x"))
"""
DUPLICATES = """
    from lc_assets.formats.redpajama.documents import read_duplicates
    from lc_assets.vocabulary import Shard
    return len(read_duplicates(path, shard=Shard.parse("2023-06/0000/en_head"), where="x"))
"""
MINHASH = """
    from lc_assets.formats.redpajama.minhash import read_signatures
    return sum(len(part.ids) for part in read_signatures(path, where="x"))
"""
COLUMNAR = """
    from lc_assets.formats.archives.paths import index_batches
    return sum(batch.num_rows for batch in index_batches(path.open("rb"), where="x"))
"""


def survived(tmp_path, body: str, name: str, small: bytes, bomb: bytes, *, room: int = ROOM) -> str:
    """What a child says of the bomb, in whose bounds it stays."""
    assert len(bomb) < 4 << 20
    for folder, content in (("small", small), ("bomb", bomb)):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / name).write_bytes(content)
    code = CHILD.format(body=textwrap.dedent(body).replace("\n", "\n    "), room=room)
    command = [
        sys.executable,
        "-c",
        code,
        str(tmp_path / "small" / name),
        str(tmp_path / "bomb" / name),
    ]
    ended = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=HANG_SECONDS
    )
    assert ended.returncode == 0, ended.stderr[-2000:]
    *words, more = ended.stdout.splitlines()
    assert int(more) < room
    return "\n".join(words)


def gz(head: bytes = b"", tail: bytes = b"", *, n_bytes: int = GIGABYTE) -> bytes:
    out = io.BytesIO()
    with igzip.IGzipFile(fileobj=out, mode="wb", compresslevel=3) as stream:
        stream.write(head)
        for _ in range(n_bytes >> 20):
            stream.write(bytes(1 << 20))
        stream.write(tail)
    return out.getvalue()


def zst(head: bytes = b"", tail: bytes = b"") -> bytes:
    packer = zstandard.ZstdCompressor(level=1).compressobj()
    parts = [
        packer.compress(head),
        *(packer.compress(bytes(1 << 20)) for _ in range(GIGABYTE >> 20)),
        packer.compress(tail),
        packer.flush(),
    ]
    return b"".join(parts)


SOUND = b'{"text": "one"}\n'
TOO_LONG = r"\['line too long', 'read'\]"
LINE_BOMBS = {
    "corpus .jsonl.gz": (
        CORPUS,
        "x.jsonl.gz",
        gzip.compress(SOUND),
        lambda: gz(tail=b"\n" + SOUND),
        TOO_LONG,
    ),
    "corpus .jsonl.zst": (
        CORPUS,
        "x.jsonl.zst",
        zstandard.compress(SOUND),
        lambda: zst(tail=b"\n" + SOUND),
        "CorruptFile: .*x.jsonl.zst: unpacks to more than 1,000 times its size",
    ),
    "documents": (
        LINES,
        "x.json.gz",
        gzip.compress(SOUND),
        lambda: gz(tail=b"\n" + SOUND),
        r"\[None, 15\]",
    ),
    "signals": (SIGNALS, "x.json.gz", gzip.compress(b"\n"), lambda: gz(tail=b"\n"), "1"),
    "evaluation set": (
        EVALUATION,
        "x.jsonl.gz",
        gzip.compress(b'{"text": "a"}\n'),
        gz,
        "BadInput: .*longer than 268,435,456 bytes",
    ),
    "blocklist": (
        BLOCKLIST,
        "x.gz",
        gzip.compress(b"a.org\n"),
        gz,
        "BadInput: .*is longer than 8,192 bytes",
    ),
    "CDXJ": (CDXJ, "x.cdxj.gz", gzip.compress(b"a 1 {}\n"), gz, "CorruptFile: .*line of more than"),
    "list of paths": (
        LIST,
        "x.gz",
        gzip.compress(b"a.warc.gz\n"),
        gz,
        "CorruptFile: .*unpacks to more than 268,435,456 bytes",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LINE_BOMBS)
def test_a_line_of_a_gigabyte(tmp_path, name):
    """It is counted as too long, and what comes behind it is read; or the file is refused."""
    body, file, small, bomb, said = LINE_BOMBS[name]
    room = WIDE_ROOM if "268" in said else ROOM
    assert re.match(said, survived(tmp_path, body, file, small, bomb(), room=room))


def archive_bombs() -> dict[str, tuple[str, str, bytes, str]]:
    head = http(b"")
    long_block = record(b"response", head, length=len(head) + GIGABYTE)[:-4]
    whole = gz(long_block, b"\r\n\r\n")
    inner = gzipped(page(gz(), b"Content-Type: text/html\r\nContent-Encoding: gzip"))
    notes = gz(record(b"metadata", b"", length=GIGABYTE)[:-4], b"\r\n\r\n")
    wet = gz(record(b"conversion", b"", length=GIGABYTE)[:-4], b"\r\n\r\n")
    return {
        "WARC record": (PAGES, "x.warc.gz", whole, "['record too long', 'read']"),
        "WARC body": (PAGES, "x.warc.gz", inner, "['record too long', 'read']"),
        "WARC corpus": (CORPUS, "x.warc.gz", inner, "['record too long', 'read']"),
        "WET": (CORPUS, "x.wet.gz", wet, "['read', 'record too long']"),
        "WAT": (WAT, "x.wat.gz", notes, "['record too long', 'request record']"),
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", ["WARC record", "WARC body", "WARC corpus", "WET", "WAT"])
def test_a_record_of_a_gigabyte(tmp_path, name):
    """It is counted as too long, and the record behind it is read."""
    body, file, bomb, said = archive_bombs()[name]
    text = b"<html><p>One two three.</p></html>"
    behind = {"x.wet.gz": record(b"conversion", b"text"), "x.wat.gz": record(b"request", b"x")}.get(
        file, page(text)
    )
    assert survived(tmp_path, body, file, gzipped(behind), bomb + gzipped(behind)) in {
        said,
        str(sorted(eval_list(said))),
    }


def eval_list(said: str) -> list[str]:
    return json.loads(said.replace("'", '"'))


def zeros_in(codec: str) -> bytes:
    """A page of Parquet: one string of a gigabyte, compressed."""
    return pa.Codec(codec).compress(text(b"\0" * (GIGABYTE - 4))).to_pybytes()


def named(n_bytes: int, n_rows: int) -> list[Page]:
    """A dictionary of one string, which every row names."""
    packed, plain = pa.Codec("zstd"), text(b"x" * n_bytes)
    places = bytes([1]) + varint(n_rows << 1) + b"\0"
    return [
        dictionary_page(packed.compress(plain).to_pybytes(), 1, unpacked=len(plain)),
        data_page(
            packed.compress(places).to_pybytes(),
            n_rows,
            unpacked=len(places),
            encoding=RLE_DICTIONARY,
        ),
    ]


def listed_in_one_row(n_items: int, word: bytes) -> bytes:
    places = (
        levels((1, 0), (n_items - 1, 1))
        + levels((n_items, 1))
        + bytes([1])
        + varint(n_items << 1)
        + b"\0"
    )
    pages = [dictionary_page(text(word), 1), data_page(places, n_items, encoding=RLE_DICTIONARY)]
    return parquet_bytes(
        [flat(b"text", [data_page(text(b"a"), 1)], 1), listed(b"l", pages, n_items)], 1
    )


MANY = 2**31 - 1
LENGTHS = varint(128) + varint(4) + varint(MANY) + varint(0) + bytes(40)
"""Of strings, by their differences: eight gigabytes to Arrow."""

PARQUET_BOMBS = {
    **{
        f"page, {name}": (
            lambda number=number, name=name: zeros_page(number, name),
            "CorruptFile: .*a page of 1,073,741,824 bytes",
        )
        for number, name in ((2, "gzip"), (4, "brotli"), (6, "zstd"))
    },
    "levels": (
        lambda: parquet_bytes(
            [flat(b"text", [data_page(levels((MANY, 0)), MANY)], MANY, optional=True)], MANY
        ),
        "CorruptFile: .*promises 2,147,483,647 rows",
    ),
    "dictionary": (
        lambda: parquet_bytes([flat(b"text", named(64 << 20, 10**6), 10**6, codec=6)], 10**6),
        "CorruptFile: .*times its size",
    ),
    "list": (
        lambda: listed_in_one_row(MANY, b"one"),
        "CorruptFile: .*2,147,483,647 values for 1 rows",
    ),
    "list of long strings": (
        lambda: listed_in_one_row(1 << 24, b"x" * (1 << 20)),
        r"\['row too long'\]",
    ),
    "lengths": (
        lambda: parquet_bytes([flat(b"text", [data_page(LENGTHS, 1, encoding=6)], 1)], 1),
        "CorruptFile: .*lengths of 2,147,483,647",
    ),
}


def zeros_page(number: int, name: str) -> bytes:
    return parquet_bytes(
        [flat(b"text", [data_page(zeros_in(name), 1, unpacked=GIGABYTE)], 1, codec=number)], 1
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", PARQUET_BOMBS)
def test_a_bomb_of_parquet(tmp_path, name):
    """It is refused, or its row is counted, in less memory than Arrow would take for it."""
    bomb, said = PARQUET_BOMBS[name]
    small = parquet_bytes([flat(b"text", [data_page(text(b"a"), 1)], 1)], 1)
    assert re.match(said, survived(tmp_path, CORPUS, "x.parquet", small, bomb(), room=PARQUET_ROOM))
    if name in {"levels", "lengths"}:
        assert re.match(
            said.replace("CorruptFile", "BadInput"),
            survived(tmp_path, EVALUATION, "x.parquet", small, bomb()),
        )


@pytest.mark.slow
@pytest.mark.parametrize(
    "body", [DUPLICATES, MINHASH, COLUMNAR], ids=["duplicates", "MinHash", "columnar index"]
)
def test_a_dictionary_that_every_row_names(tmp_path, body):
    """In the columns that the reader wants, beside the others."""
    reader = {
        DUPLICATES: "RedPajama duplicates",
        MINHASH: "MinHash Parquet",
        COLUMNAR: "columnar index",
    }[body]
    (sound,) = (one for one in READERS if one.name == reader)
    sound.make(tmp_path)
    (path,) = tmp_path.glob("*.parquet")
    table = pq.read_table(path)
    column = {DUPLICATES: "doc_id", MINHASH: "id", COLUMNAR: "url"}[body]
    long = pa.DictionaryArray.from_arrays(
        pa.array([0] * 10_000, pa.int32()), pa.array(["x" * (64 << 20)])
    )
    place = table.schema.get_field_index(column)
    wide = pa.concat_tables([table.slice(0, 1)] * 10_000).set_column(place, column, long)
    pq.write_table(
        wide, tmp_path / "named by all", compression="zstd", use_dictionary=True, store_schema=False
    )
    said = survived(
        tmp_path, body, "x.parquet", path.read_bytes(), (tmp_path / "named by all").read_bytes()
    )
    assert re.match(f"CorruptFile: .*{column} may unpack to more than 1,073,741,824 bytes", said)
