"""Plain corpora: the same documents out of every container, and nothing lost in silence."""

import gzip
import io
import json

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import example, given, strategies as st

from lc_assets.errors import BadInput, CorruptFile
from lc_assets.formats.corpora.containers import (
    NO_FIELDS,
    SUFFIXES,
    CorpusDocument,
    Unread,
    write_corpus,
)
from lc_assets.formats.corpora.json_lines import KNOWN, text_lengths
from lc_assets.formats.corpora.reading import corpus_files, read_corpus
from lc_assets_tests.memory import added
from lc_assets_tests.reference.records import document_of

RECORDS = [
    {
        "id": "a",
        "url": "https://a.org/x",
        "text": "One café.\nTwo.",
        "language": "en",
        "n": {"deep": [1, 2.5, None]},
        "perplexity": 12,
    },
    {"doc_id": 7, "text": "", "date": "2024-01-01", "source_domain": "b.org"},
    {"text": "\u0000 nul and \U0001f600", "text2": "stays"},
]


def lines_of(records):
    return b"".join(json.dumps(record, ensure_ascii=False).encode() + b"\n" for record in records)


def zstd(content):
    return zstandard.ZstdCompressor().compress(content)


PACKED = {
    ".jsonl": bytes,
    ".json": bytes,
    ".jsonl.gz": gzip.compress,
    ".json.gz": gzip.compress,
    ".jsonl.zst": zstd,
    ".json.zst": zstd,
}


def read(path, content, **how):
    path.write_bytes(content)
    return list(read_corpus(path, **how))


def reasons(found):
    return [document.why if isinstance(document, Unread) else "" for document in found]


@pytest.mark.parametrize("suffix", PACKED)
def test_lines_are_the_same_documents_in_every_container(tmp_path, suffix):
    """Two members, a last line without its end, names from the place where a record has none."""
    pack, (first, *others) = PACKED[suffix], RECORDS
    found = read(tmp_path / f"x{suffix}", pack(lines_of([first])) + pack(lines_of(others)[:-1]))
    assert [document.id for document in found] == ["a", "7", f"x{suffix}/2"]
    assert [document.text for document in found] == [record["text"] for record in RECORDS]
    assert [
        (found[0].url, found[0].language, found[0].perplexity),
        (found[1].date, found[1].source_domain),
    ] == [
        ("https://a.org/x", "en", 12.0),
        ("2024-01-01", "b.org"),
    ]
    for document, record in zip(found, RECORDS, strict=True):
        assert msgspec.json.decode(document.rest) == {
            name: value for name, value in record.items() if name != "text"
        }


def test_rows_are_the_same_documents(tmp_path):
    """Groups of two rows; columns that a record lacks are null."""
    names = sorted({name for record in RECORDS for name in record} - {"doc_id"})
    pq.write_table(
        pa.table({name: [record.get(name) for record in RECORDS] for name in names}),
        tmp_path / "x.parquet",
        row_group_size=2,
    )
    found = list(read_corpus(tmp_path / "x.parquet"))
    assert [(document.id, document.text) for document in found] == [
        (identity, record["text"])
        for identity, record in zip(("a", "x.parquet/1", "x.parquet/2"), RECORDS, strict=True)
    ]
    assert msgspec.json.decode(found[0].rest)["n"] == RECORDS[0]["n"]


def test_what_is_written_is_read_again(tmp_path):
    """Fields, text under its own name, and a name for what had none; the clock and the file's name
    do not matter.
    """
    documents = read(tmp_path / "x.jsonl", lines_of(RECORDS))
    assert (
        write_corpus(tmp_path / "y.jsonl.gz", documents)
        == write_corpus(tmp_path / "z.jsonl.gz", iter(documents))
        == 3
    )
    assert (tmp_path / "y.jsonl.gz").read_bytes() == (tmp_path / "z.jsonl.gz").read_bytes()
    written = [
        json.loads(line)
        for line in gzip.decompress((tmp_path / "y.jsonl.gz").read_bytes()).splitlines()
    ]
    assert written == [*RECORDS[:2], {"id": "x.jsonl/2", **RECORDS[2]}]


def test_names_may_be_escaped_or_repeated(tmp_path):
    found = read(
        tmp_path / "x.jsonl",
        rb'{"te\u0078t": "a", "text": "b", "\u0069d": "one", "id": "two", "a\"b": 1}',
    )
    assert [(document.text, document.id, bytes(document.rest)) for document in found] == [
        ("b", "two", b'{"id":"two","a\\"b":1}')
    ]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"[1]", "not JSON"),
        (b'{"text": "cut', "not JSON"),
        (b'{"text": "\xff"}', "not JSON"),
        (b'{"text": "fine", "title": "\xff"}', "not JSON"),
        (b'{"text": "fine", "url": NaN}', "not JSON"),
        (b'{"text": "fine", "a": ' + b"[" * 100_000, "not JSON"),
        ('{"text": "é"}'.encode("utf-16"), "not JSON"),
        (b'{"text": 5}', "no text"),
        (b'{"text": null}', "no text"),
        (b'{"body": "x"}', "no text"),
        (b'{"text": "' + b"x" * 10_000_000 + b'"}', "line too long"),
    ],
)
def test_a_line_that_cannot_be_read_stands_in_its_place(tmp_path, line, why):
    found = read(
        tmp_path / "x.jsonl",
        b'{"text": "before"}\n' + line + b'\n{"text": "after"}',
        max_document_bytes=9_000_000,
    )
    assert reasons(found)[:2] == ["", why]
    assert found[1].id == "x.jsonl/1"
    assert found[-1].text == "after" or b"\n" in line


def test_a_byte_order_mark_loses_no_document(tmp_path):
    """As some editors begin a file."""
    found = read(tmp_path / "x.jsonl", b"\xef\xbb\xbf" + lines_of(RECORDS))
    assert [document.text for document in found] == [record["text"] for record in RECORDS]


def test_the_first_field_that_holds_text_is_the_text(tmp_path):
    """Another one may be null; all are kept."""
    found = read(tmp_path / "x.jsonl", b'{"raw_content": null, "text": "t", "content": "c"}')
    assert [(document.text, document.text_field) for document in found] == [("t", "text")]
    assert bytes(found[0].rest) == b'{"raw_content":null,"content":"c"}'


def test_blank_lines_are_no_documents_and_are_counted_as_lines(tmp_path):
    found = read(tmp_path / "x.jsonl", b'\n{"text": "a"}\n \r\n{"text": "b"}\n\n')
    assert [(document.id, document.text) for document in found] == [
        ("x.jsonl/1", "a"),
        ("x.jsonl/3", "b"),
    ]


def test_odd_fields_are_named_and_lose_no_document(tmp_path):
    record = {"id": 7, "url": ["u"], "language": None, "perplexity": "12.5", "text": "a"}
    found = read(tmp_path / "x.jsonl", lines_of([record, {"text": "b", "perplexity": "?"}]))
    assert [document.odd for document in found] == [("id", "url", "perplexity"), ("perplexity",)]
    assert [document.perplexity for document in found] == [12.5, None]
    assert found[0].id == "7"


FIELDS = st.sampled_from((*KNOWN, "other"))
VALUES = st.text(max_size=3) | st.sampled_from(["7.5", None, True, 0, 7, 2**70, -1.5, ["7"], {}])


@given(
    st.lists(st.dictionaries(FIELDS, VALUES), min_size=1, max_size=4),
    st.sampled_from([None, "url"]),
    st.sampled_from([None, frozenset[str]()]),
)
@example([{}, {"perplexity": "7.5"}, {"perplexity": 7}, {"perplexity": True}], None, None)
@example([{"date": 7}, {"date": "d", "date_download": "e"}, {"date_download": None}], None, None)
@example([{"url": "x", "doc_id": 7}, {"doc_id": 8}, {"url": 0}], "url", None)
@example([{"id": "", "doc_id": 0}, {"doc_id": ""}, {"id": 0, "doc_id": 1}], None, None)
def test_documents_are_what_the_fields_of_their_records_say(
    tmp_path_factory, records, id_field, read_fields
):
    """Documents are made together; the reference makes one after the other."""
    path = tmp_path_factory.mktemp("fields") / "a.jsonl"
    lines = lines_of([fields | {"text": "x"} for fields in records])
    found = read(path, lines, id_field=id_field, fields=read_fields)
    expected = [
        document_of(fields, "x", place=f"a.jsonl/{number}", id_field=id_field)
        for number, fields in enumerate(records)
    ]
    if read_fields is None:
        assert [msgspec.json.decode(it.rest) for it in found] == records
    assert [msgspec.structs.replace(it, rest=NO_FIELDS) for it in found] == expected


def test_zero_is_an_id(tmp_path):
    """An empty one is none."""
    found = read(tmp_path / "x.jsonl", lines_of([{"id": n, "text": "a"} for n in (0, 1, "")]))
    assert [document.id for document in found] == ["0", "1", "x.jsonl/2"]


def test_lone_surrogates_and_nul_are_text(tmp_path):
    found = read(tmp_path / "x.jsonl", rb'{"text": "a\ud83d\u0000b", "title": "\udc00"}')
    assert [(document.text, bytes(document.rest)) for document in found] == [
        ("a\ufffd\0b", '{"title":"\ufffd"}'.encode())
    ]


@pytest.mark.parametrize("suffix", [".jsonl.gz", ".jsonl.zst", ".wet.gz", ".warc.gz"])
def test_a_compressed_file_that_is_cut_or_empty_or_none_is_corrupt(tmp_path, suffix):
    whole = PACKED.get(suffix, gzip.compress)(
        conversion(b"text") if "w" in suffix else lines_of(RECORDS) * 1000
    )
    assert read(tmp_path / f"x{suffix}", whole) or suffix == ".warc.gz"
    for content in (
        whole[: len(whole) // 2],
        whole[:-1],
        b"",
        b"rubbish that is nothing",
        whole + b"rubbish that is nothing",
    ):
        with pytest.raises(CorruptFile, match=f"x{suffix}"):
            read(tmp_path / f"x{suffix}", content)


def test_a_window_beyond_bounds_is_refused(tmp_path):
    """A gigabyte of window is asked for in ten bytes."""
    packer = zstandard.ZstdCompressor(
        compression_params=zstandard.ZstdCompressionParameters(window_log=30)
    ).compressobj()
    with pytest.raises(CorruptFile, match="too much memory"):
        read(tmp_path / "x.jsonl.zst", packer.compress(lines_of(RECORDS)) + packer.flush())


def test_a_file_of_zstd_that_comes_to_a_thousand_times_its_size_is_left(tmp_path, monkeypatch):
    """Its lines up to there are read."""
    content = zstd(lines_of([{"text": "a"}]) * 1_000_000)
    assert len(content) < 10_000
    (tmp_path / "x.jsonl.zst").write_bytes(content)
    monkeypatch.setattr("lc_assets.formats.unpacking.FREELY", 1 << 20)
    documents = read_corpus(tmp_path / "x.jsonl.zst")
    with pytest.raises(CorruptFile, match="x.jsonl.zst: unpacks to more than 1,000 times its size"):
        for number, document in enumerate(documents):
            assert document.text == "a"
            assert number < 500_000


@pytest.mark.parametrize("suffix", [".jsonl.gz", ".jsonl.zst"])
def test_a_bomb_costs_no_memory(tmp_path, suffix):
    """200 MB in one line, out of a file of 200 KB at most."""
    content = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=content, mode="wb")
        if "gz" in suffix
        else zstandard.ZstdCompressor().stream_writer(content, closefd=False) as out
    ):
        for _ in range(200):
            out.write(bytes(1 << 20))
        out.write(b'\n{"text": "after"}\n')
    with added() as more:
        found = read(tmp_path / f"x{suffix}", content.getvalue(), max_document_bytes=1 << 20)
        assert reasons(found) == ["line too long", ""]
        assert more() < 60_000_000


def test_parquet_that_is_not_utf8_costs_its_rows_only(tmp_path):
    texts = pa.Array.from_buffers(pa.string(), 3, pa.array([b"a", b"\xff", b"c"]).buffers())
    pq.write_table(
        pa.table({"text": texts, "when": pa.array([1, 2, 3], pa.duration("s"))}),
        tmp_path / "x.parquet",
    )
    assert reasons(read_corpus(tmp_path / "x.parquet")) == ["", "not UTF-8", ""]
    pq.write_table(pa.table({"text": [b"a", b"\xff", None, b"long"]}), tmp_path / "x.parquet")
    assert reasons(read_corpus(tmp_path / "x.parquet", max_document_bytes=3)) == [
        "",
        "not UTF-8",
        "no text",
        "text too long",
    ]


def test_parquet_without_the_column_or_damaged_is_told(tmp_path):
    pq.write_table(pa.table({"text": ["x" * 1000]}), tmp_path / "x.parquet")
    with pytest.raises(BadInput, match="no column body; its columns are text"):
        list(read_corpus(tmp_path / "x.parquet", text_field="body"))
    content = (tmp_path / "x.parquet").read_bytes()
    for damaged in (b"", b"rubbish", content[: len(content) // 2], bytes(40) + content[40:]):
        with pytest.raises(CorruptFile, match=r"x\.parquet"):
            read(tmp_path / "x.parquet", damaged)


def conversion(
    text, *, length=None, more=b"WARC-Identified-Content-Language: eng\r\n", kind=b"conversion"
):
    n_bytes = len(text) if length is None else length
    return (
        b"WARC/1.0\r\nWARC-Type: %s\r\nWARC-Target-URI: <https://a.org/x>\r\nWARC-Date: 2024-01-01T00:00:00Z\r\n"
        b"WARC-Record-ID: <urn:uuid:12>\r\n%sContent-Length: %d\r\n\r\n%s\r\n\r\n"
        % (kind, more, n_bytes, text)
    )


def response(body, headers=b"Content-Type: text/html"):
    return conversion(
        b"HTTP/1.1 200 OK\r\n%s\r\n\r\n%s" % (headers, body),
        kind=b"response",
        more=b"Content-Type: application/http\r\n",
    )


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        (b" <!DOCTYPE HTML><p>Words.", ["Words."]),
        (b"\xef\xbb\xbf<html><p>Words.", ["Words."]),
        (b"{<html>}", []),
        (b"<htmlx>", []),
    ],
)
def test_what_begins_like_html_is_html_without_a_type(tmp_path, body, wanted):
    found = read(tmp_path / "x.warc", response(body, b"X: y"))
    assert [one.text for one in found if isinstance(one, CorpusDocument)] == wanted


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_wet_records_are_documents(tmp_path, pack):
    records = [
        conversion(b"x: y\r\n", kind=b"warcinfo"),
        conversion("Café.\nTwo.".encode()),
        conversion(b""),
        conversion(b"\xff"),
        conversion(b"long one"),
    ]
    found = read(
        tmp_path / ("x.wet" if pack is bytes else "x.wet.gz"),
        b"".join(map(pack, records)),
        max_document_bytes=11 if pack is bytes else 1 << 20,
    )
    first = found[0]
    assert (first.id, first.url, first.language, first.date) == (
        "urn:uuid:12",
        "https://a.org/x",
        "eng",
        "2024-01-01T00:00:00Z",
    )
    assert first.text == "Café.\nTwo."
    assert msgspec.json.decode(first.rest) == {
        "id": first.id,
        "url": first.url,
        "date": first.date,
        "language": "eng",
    }
    assert reasons(found) == ["", "empty", "not UTF-8", ""]


@pytest.mark.parametrize(
    "content",
    [
        conversion(b"abc", more=b"X: " + b"x" * 3_000_000 + b"\r\n"),
        conversion(b"abc").replace(b"\r\n", b"\n"),
        conversion(b"abc")[:-6],
        b"rubbish\r\n\r\n",
    ],
)
def test_hostile_headers_are_corruption(tmp_path, content):
    """Whatever a header promises: no memory for it, and never a file that ends early in silence."""
    with pytest.raises(CorruptFile, match=r"x\.wet"):
        read(
            tmp_path / "x.wet",
            content + conversion(b"next" * 9) if not content.endswith(b"\r\na") else content,
        )


@pytest.mark.parametrize("length", [10**18, 10**30, -5, 1, 300])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_record_of_a_wrong_length_stands_in_its_place(tmp_path, length, pack):
    """Of another kind it is passed over, like all of them."""
    path = tmp_path / ("x.wet" if pack is bytes else "x.wet.gz")
    records = [
        conversion(b"fine"),
        conversion(b"abc", length=length),
        conversion(b"abc", length=length, kind=b"request"),
        conversion(b"next" * 9),
    ]
    assert reasons(read(path, b"".join(map(pack, records)))) == ["", "wrong length", ""]


def test_an_endless_id_is_cut_in_the_message(tmp_path):
    content = conversion(b"abc", length=10**18).replace(b"uuid", b"uuid" * 100_000)
    with pytest.raises(CorruptFile) as refused:
        read(tmp_path / "x.wet", content)
    assert len(str(refused.value)) < 400 + len(str(tmp_path))


def test_a_record_that_is_too_long_stands_in_its_place(tmp_path):
    assert reasons(
        read(tmp_path / "x.wet", conversion(b"x" * 20) + conversion(b"fine"), max_document_bytes=10)
    ) == ["record too long", ""]


PAGE = b"<html><nav><a href=/>Menu</a></nav><script>var x</script><main><p>Caf\xe9 au lait.</p><p>Second paragraph of the page.</p></main>"


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        (b"Content-Type: text/html; charset=ISO-8859-1", PAGE),
        (b"content-type: TEXT/HTML; charset=nonsense", b"<meta charset=latin1>" + PAGE),
        (b"Content-Type: application/xhtml+xml; charset=utf-8", PAGE.decode("latin1").encode()),
        (
            b"Content-Type: text/html; charset=latin1\r\nContent-Encoding: gzip",
            gzip.compress(PAGE, mtime=0),
        ),
        (
            b"Content-Type: text/html; charset=latin1\r\nTransfer-Encoding: chunked",
            b"%x\r\n%s\r\n0\r\n\r\n" % (len(PAGE), PAGE),
        ),
    ],
)
def test_pages_are_decoded_and_their_text_taken_out(tmp_path, headers, body):
    found = read(tmp_path / "x.warc.gz", gzip.compress(response(body, headers)))
    assert [document.text for document in found] == [
        "Café au lait.\n\nSecond paragraph of the page."
    ]


@pytest.mark.parametrize(
    ("record", "why"),
    [
        (response(b"PNG", b"Content-Type: image/png"), "not HTML"),
        (response(b"x", b"X: y"), "not HTML"),
        (response(b""), "empty"),
        (response(b"<script>x</script>"), "empty"),
        (
            response(b"no gzip", b"Content-Type: text/html\r\nContent-Encoding: gzip"),
            "undecodable HTTP",
        ),
        (
            response(b"zz\r\nabc", b"Content-Type: text/html\r\nTransfer-Encoding: chunked"),
            "undecodable HTTP",
        ),
        (
            response(
                gzip.compress(bytes(50_000_000), mtime=0),
                b"Content-Type: text/html\r\nContent-Encoding: gzip",
            ),
            "record too long",
        ),
        (response(b"<div>" * 100_000 + b"x"), "nested too deeply"),
        (response(b"<div><!--</div>-->" * 20_000 + b"x"), "nested too deeply"),
        (response(b"x" * 2_000_000), "record too long"),
        (conversion(b"HTTP/1.1 200 OK\r\n\r\n", kind=b"revisit"), "revisit"),
        (conversion(b"no HTTP at all", kind=b"response"), "status not 200"),
        (response(b"<p>Gone").replace(b"200 OK", b"404 NF"), "status not 200"),
    ],
)
def test_pages_without_text_stand_in_their_place(tmp_path, record, why):
    """And the next page is read as if nothing had been."""
    found = read(
        tmp_path / "x.warc",
        record + response(b"<p>A paragraph that follows."),
        max_document_bytes=1_900_000,
    )
    assert reasons(found) == [why, ""]
    assert found[0].id == "urn:uuid:12"


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_an_end_of_a_name_is_found(tmp_path, suffix):
    for name in (f"a.b{suffix}", f".hidden{suffix}", "readme.txt"):
        (tmp_path / name).touch()
    assert [path.name for path in corpus_files([tmp_path])] == [f"a.b{suffix}"]


def test_files_that_hold_nothing_are_corpora_without_documents(tmp_path):
    """Nothing compressed is a header at least; plain lines may be none."""
    pq.write_table(pa.table({"text": pa.array([], pa.string())}), tmp_path / "x.parquet")
    assert list(read_corpus(tmp_path / "x.parquet")) == []
    assert [read(tmp_path / f"x{suffix}", b"") for suffix in (".jsonl", ".wet", ".warc")] == [
        [],
        [],
        [],
    ]
    assert read(tmp_path / "x.jsonl.gz", gzip.compress(b"")) == []


def test_sources_that_cannot_be_meant(tmp_path):
    with pytest.raises(BadInput, match="does not exist"):
        corpus_files([tmp_path / "nowhere"])
    with pytest.raises(BadInput, match="holds no file"):
        corpus_files([tmp_path])
    (tmp_path / "x.pdf").write_text("x")
    with pytest.raises(BadInput, match="of no known kind"):
        read_corpus(tmp_path / "x.pdf")


def test_a_text_file_is_one_document_where_it_is_named(tmp_path):
    """Or in a folder without other documents; beside these it may be a README."""
    assert read(tmp_path / "a.txt", b"\xef\xbb\xbfOne\r\ntwo") == [
        CorpusDocument(id="a.txt", text="One\r\ntwo")
    ]
    assert read(tmp_path / "b.txt", b"caf\xe9")[0].why == "not UTF-8"
    assert next(iter(read_corpus(tmp_path / "a.txt", max_document_bytes=5))).why == "text too long"
    assert corpus_files([tmp_path]) == [tmp_path / "a.txt", tmp_path / "b.txt"]
    (tmp_path / "c.jsonl").write_text("{}")
    assert corpus_files([tmp_path]) == [tmp_path / "c.jsonl"]
    with pytest.raises(BadInput, match="holds no file"):
        corpus_files([tmp_path], suffixes=(".wet",))
    assert corpus_files([tmp_path / "a.txt"]) == [tmp_path / "a.txt"]


def test_a_document_names_its_text_s_field():
    assert CorpusDocument(id="x", text="y").text_field == "text"


def test_an_id_field_that_is_named_alone_gives_the_id(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(lines_of([{"name": "n", "id": "a", "text": "x"}, {"id": "b", "text": "y"}]))
    assert [found.own_id for found in read_corpus(path, id_field="name")] == ["n", ""]


VALUES = st.none() | st.integers(-9, 9) | st.text(max_size=9) | st.lists(st.text(max_size=3))
NAMES = ("raw_content", "text", "content", "id", "a-b")


@given(
    st.lists(st.dictionaries(st.sampled_from(NAMES), VALUES), max_size=5),
    st.sampled_from([None, "text", "a-b"]),
)
def test_lengths_of_texts_are_those_of_the_documents(tmp_path_factory, records, text_field):
    path = tmp_path_factory.mktemp("lengths") / "x.jsonl"
    broken = b'{"text": "\\ud800"}\n[]\n{"text"\n'
    path.write_bytes(lines_of(records) + broken)
    documents = list(read_corpus(path, text_field=text_field))
    found = list(text_lengths(path, text_field))
    assert len(found) == len(records) + 3
    assert found[: len(records)] == [
        len(one.text) if isinstance(one, CorpusDocument) else -1 for one in documents[:-3]
    ]
    assert found[len(records) :] == [-1, -1, -1]
