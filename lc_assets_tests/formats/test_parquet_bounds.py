"""Parquet from outside: what is sound is read as Arrow reads it, what promises too much is refused
before Arrow sees it.
"""

import io
import struct

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, strategies as st

from lc_assets.builds.tables import count_lines, read_schema, read_table
from lc_assets.errors import CorruptFile
from lc_assets.formats import unpacking
from lc_assets.formats.corpora.reading import read_corpus
from lc_assets.formats.parquet import footer, opening, pages
from lc_assets.formats.parquet.footer import MOST_NESTED, read_footer
from lc_assets.formats.parquet.opening import guarded, weighed
from lc_assets.formats.parquet.pages import walk
from lc_assets.formats.parquet.thrift import MOST_DEPTH, read_struct
from lc_assets_tests.fuzzing.parquet_bytes import (
    RLE_DICTIONARY,
    Long,
    data_page,
    dictionary_page,
    encoded,
    flat,
    levels,
    listed,
    parquet_bytes,
    text,
    varint,
)

SOME = st.lists(
    st.fixed_dictionaries(
        {
            "text": st.none() | st.text(max_size=30),
            "n": st.none() | st.integers(-(2**40), 2**40),
            "tags": st.none()
            | st.lists(st.none() | st.sampled_from(["a", "bb", "c" * 40]), max_size=4),
            "meta": st.fixed_dictionaries(
                {"k": st.none() | st.text(max_size=5), "l": st.lists(st.integers(0, 9), max_size=3)}
            ),
        }
    ),
    min_size=1,
    max_size=60,
)
SCHEMA = pa.schema(
    [
        ("text", pa.string()),
        ("n", pa.int64()),
        ("tags", pa.list_(pa.string())),
        ("meta", pa.struct([("k", pa.string()), ("l", pa.list_(pa.int64()))])),
    ]
)


@given(
    rows=SOME,
    named=st.booleans(),
    version=st.sampled_from(["1.0", "2.0"]),
    packed=st.sampled_from(["none", "snappy", "zstd", "gzip", "brotli", "lz4"]),
    encoding=st.sampled_from(["PLAIN", "DELTA_LENGTH_BYTE_ARRAY"]),
    most=st.integers(1, 70),
)
def test_what_is_sound_is_read_as_arrow_reads_it(
    tmp_path_factory, rows, named, version, packed, encoding, most
):
    """The footer says what Arrow's own reader says; pages hold as many values; both readers give
    the same rows.
    """
    path = tmp_path_factory.getbasetemp() / "sound.parquet"
    table = pa.Table.from_pylist(rows, schema=SCHEMA)
    spelled = None if named else {"text": encoding, "tags.list.element": encoding}
    pq.write_table(
        table,
        path,
        use_dictionary=named,
        column_encoding=spelled,
        data_page_version=version,
        compression=packed,
        data_page_size=64,
        row_group_size=25,
    )
    theirs = pq.read_metadata(path)
    with path.open("rb") as file:
        ours = read_footer(file)
        for number, group in enumerate(ours.groups):
            for place, chunk in enumerate(group):
                column, leaf = theirs.row_group(number).column(place), theirs.schema.column(place)
                start = column.dictionary_page_offset or column.data_page_offset
                assert chunk[1:4] == (start, column.total_compressed_size, column.num_values)
                assert chunk.leaf.name == leaf.path
                assert chunk.leaf.is_repeated == (leaf.max_repetition_level > 0)
                assert chunk.leaf.is_optional == (leaf.max_definition_level > 0)
                found = walk(lambda at, n: (file.seek(at), file.read(n))[1], chunk, most_longest=0)
                assert found.bytes_of(chunk.n_rows) < 1 << 20
    with guarded(path, where="x", rows_at_once=most) as file:
        assert (
            pa.Table.from_batches(file.batches(most), schema=file.file.schema_arrow).to_pylist()
            == rows
        )
    found = [one.text for one in read_corpus(path) if hasattr(one, "text")]
    assert found == [row["text"] for row in rows if row["text"] is not None]
    assert read_table(path).to_pylist() == rows
    assert count_lines(path) == len(rows)
    assert read_schema(path).names == SCHEMA.names


def test_only_columns_that_are_read_are_looked_at(tmp_path):
    """Nothing is read twice: Arrow's own requests pass by."""
    pq.write_table(pa.table({"a": ["x"] * 10, "b": ["y"] * 10}), tmp_path / "x.parquet")
    content = (tmp_path / "x.parquet").read_bytes()
    asked = []

    class Counting(io.BytesIO):
        def read(self, n_bytes=-1):
            found = super().read(n_bytes)
            asked.append((self.tell() - len(found), len(found)))
            return found

    with guarded(Counting(content), where="x", rows_at_once=10) as file:
        n_before = len(asked)
        assert sum(batch.num_rows for batch in file.batches(10, ["b"])) == 10
    column = pq.read_metadata(tmp_path / "x.parquet").row_group(0).column(1)
    assert asked[n_before:] == [(column.dictionary_page_offset, column.total_compressed_size)]


ONE = text(b"one")
N = 2**31 - 1


def delta(count: int) -> bytes:
    return varint(128) + varint(4) + varint(count) + varint(0) + bytes(40)


REFUSED = {
    "a page of a gigabyte": (
        parquet_bytes([flat(b"text", [data_page(b"", 1, unpacked=1 << 30)], 1)], 1),
        "a page of 1,073,741,824 bytes",
    ),
    "a run of levels": (
        parquet_bytes([flat(b"text", [data_page(levels((N, 0)), N)], N, optional=True)], N),
        "2,147,483,647 rows",
    ),
    "a list of billions": (
        parquet_bytes(
            [
                flat(b"text", [data_page(ONE, 1)], 1),
                listed(
                    b"l",
                    [
                        dictionary_page(ONE, 1),
                        data_page(levels((1, 0), (N - 1, 1)) * 2, N, encoding=RLE_DICTIONARY),
                    ],
                    N,
                ),
            ],
            1,
        ),
        "2,147,483,647 values for 1 rows",
    ),
    "more lengths than strings": (
        parquet_bytes([flat(b"text", [data_page(delta(N), 1, encoding=6)], 1)], 1),
        "lengths of 2,147,483,647",
    ),
    "more lengths behind prefixes": (
        parquet_bytes([flat(b"text", [data_page(delta(1)[:5] + delta(N), 1, encoding=7)], 1)], 1),
        "lengths of 2,147,483,647",
    ),
    "a dictionary of nothing": (
        parquet_bytes(
            [flat(b"text", [dictionary_page(b"", 1 << 30), data_page(b"\0", 1, encoding=8)], 1)], 1
        ),
        "more entries than bytes",
    ),
    "more values than are left": (
        parquet_bytes([flat(b"text", [data_page(ONE, 9)], 1)], 1),
        "9 values in a page, where 1 are left",
    ),
    "a page that never ends": (
        parquet_bytes([flat(b"text", [data_page(ONE, 0)], 1)], 1),
        "cut short",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_promises_too_much_is_refused_by_both_readers(tmp_path, name):
    content, words = REFUSED[name]
    (tmp_path / "x.parquet").write_bytes(content)
    with (
        pytest.raises(CorruptFile, match=words),
        guarded(tmp_path / "x.parquet", where="x", rows_at_once=10) as file,
    ):
        list(file.batches(10))
    with pytest.raises(CorruptFile, match=words):
        list(read_corpus(tmp_path / "x.parquet"))


def footer_of(**changes: object) -> bytes:
    """A sound file whose footer is replaced."""
    content = parquet_bytes([flat(b"text", [data_page(ONE, 1)], 1)], 1)
    size = struct.unpack("<I", content[-8:-4])[0]
    body = content[: -8 - size]
    chunk = {
        1: 6,
        2: [0],
        3: [b"text"],
        4: 0,
        5: Long(1),
        6: Long(len(body) - 4),
        7: Long(len(body) - 4),
        9: Long(4),
    } | dict(changes.get("chunk", {}))
    group = {
        1: [{2: Long(4), 3: chunk, **dict(changes.get("column", {}))}] * changes.get("times", 1),
        2: Long(1),
        3: Long(1),
    }
    schema = changes.get("schema", [{4: b"schema", 5: 1}, {1: 6, 3: 0, 4: b"text", 6: 0}])
    footer = encoded(
        {1: 1, 2: schema, 3: Long(changes.get("n_rows", 1)), 4: [group] * changes.get("groups", 1)}
    )
    return body + footer + struct.pack("<I", changes.get("size", len(footer))) + b"PAR1"


LEAF = {1: 6, 3: 0, 4: b"text", 6: 0}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"chunk": {9: Long(1 << 40)}}, "outside the file"),
        ({"chunk": {7: Long(1 << 40)}}, "outside the file"),
        ({"chunk": {9: Long(-5)}}, "where a size or a number"),
        ({"chunk": {9: Long(1)}}, "outside the file"),
        ({"chunk": {1: 2}}, "another type"),
        ({"chunk": {5: Long(7)}}, "7 values for 1 rows"),
        ({"column": {1: b"../other.parquet"}}, "another file"),
        ({"groups": 2, "n_rows": 2}, "in the same place"),
        ({"n_rows": 5}, "promises 5 rows, and 1 in its row groups"),
        ({"times": 2}, "2 columns, the schema 1"),
        ({"size": 2**32 - 1}, "a footer of 4,294,967,295 bytes"),
        ({"schema": [{4: b"schema", 5: 2}, LEAF]}, "lacks elements"),
        ({"schema": [{4: b"schema", 5: 1}, LEAF, LEAF]}, "more elements"),
        (
            {"schema": [{4: b"schema", 5: 1}, *[{3: 0, 4: b"a", 5: 1}] * (MOST_NESTED + 1), LEAF]},
            "nested deeper",
        ),
        ({"schema": [7]}, "not Parquet's"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_footers_that_cannot_be_are_refused(tmp_path, changes, words):
    (tmp_path / "x.parquet").write_bytes(footer_of())
    assert [one.text for one in read_corpus(tmp_path / "x.parquet")] == ["one"]
    (tmp_path / "x.parquet").write_bytes(footer_of(**changes))
    for read in (read_table, lambda path: list(read_corpus(path))):
        with pytest.raises(CorruptFile, match=words):
            read(tmp_path / "x.parquet")


def test_deep_metadata_are_refused_before_the_stack_is():
    for deep in (
        b"\x1c" * 100_000,
        b"\x19\xf9\x01" + b"\x19" * 100_000,
        b"\x1b\x01\xbb" + b"\x01\xbb" * 100_000,
    ):
        with pytest.raises(CorruptFile):
            read_struct(deep, 0)
    assert read_struct(b"\x1c" * MOST_DEPTH + b"\0" * (MOST_DEPTH + 1), 0)[1] == 2 * MOST_DEPTH + 1


@given(st.binary(max_size=60))
def test_thrift_of_any_bytes_is_a_struct_or_damage(content):
    try:
        _, end = read_struct(content, 0)
    except CorruptFile:
        return
    assert 0 < end <= len(content)


def named_by_all(n_bytes: int, n_rows: int) -> bytes:
    pages_ = [
        dictionary_page(text(b"x" * n_bytes), 1),
        data_page(bytes([1]) + varint(n_rows << 1) + b"\0", n_rows, encoding=RLE_DICTIONARY),
    ]
    return parquet_bytes([flat(b"text", pages_, n_rows)], n_rows)


def test_rows_that_name_a_long_string_are_read_few_at_a_time(tmp_path, monkeypatch):
    (tmp_path / "x.parquet").write_bytes(named_by_all(1000, 300))
    with weighed(tmp_path / "x.parquet", most_rows=256) as (_, rows):
        assert rows == [256]
    monkeypatch.setattr(opening, "SOME_BYTES", 4000)
    with weighed(tmp_path / "x.parquet", most_rows=256) as (_, rows):
        assert rows == [4]
    assert [one.text for one in read_corpus(tmp_path / "x.parquet")] == ["x" * 1000] * 300
    monkeypatch.setattr(opening, "MOST_BATCH_BYTES", 100_000)
    for most, is_read in ((100, True), (101, False)):
        with guarded(tmp_path / "x.parquet", where="x", rows_at_once=most) as file:
            if is_read:
                assert sum(batch.num_rows for batch in file.batches(most)) == 300
            else:
                with pytest.raises(CorruptFile, match="with smaller row groups"):
                    list(file.batches(most))


def test_a_file_that_comes_to_a_thousand_times_its_size_is_left(tmp_path, monkeypatch):
    (tmp_path / "x.parquet").write_bytes(named_by_all(100_000, 5000))
    monkeypatch.setattr(unpacking, "FREELY", 50 << 20)
    documents = read_corpus(tmp_path / "x.parquet")
    with pytest.raises(CorruptFile, match="more than 1,000 times its size"):
        for number, _ in enumerate(documents):
            assert number < 2000
    with (
        pytest.raises(CorruptFile, match="more than 1,000 times"),
        guarded(tmp_path / "x.parquet", where="x", rows_at_once=10) as file,
    ):
        list(file.batches(10))


def test_a_column_that_arrow_keeps_as_a_dictionary_counts_as_its_rows_do(tmp_path, monkeypatch):
    """Its rows come to 500 MB, in an array of a hundred kilobytes."""
    words = pa.DictionaryArray.from_arrays(pa.array([0] * 5000, pa.int32()), ["x" * 100_000])
    pq.write_table(pa.table({"text": words}), tmp_path / "x.parquet")
    monkeypatch.setattr(unpacking, "FREELY", 50 << 20)
    with pytest.raises(CorruptFile, match="more than 1,000 times its size"):
        for number, _ in enumerate(read_corpus(tmp_path / "x.parquet")):
            assert number < 2000
    with (
        pytest.raises(CorruptFile, match="more than 1,000 times"),
        guarded(tmp_path / "x.parquet", where="x", rows_at_once=10) as file,
    ):
        list(file.batches(10))


def test_millions_of_empty_rows_are_refused_before_one_is_read(tmp_path):
    """Arrow would make them of a few kilobytes, and each takes microseconds wherever it goes."""
    pq.write_table(pa.table({"text": pa.nulls(2_000_000, pa.string())}), tmp_path / "x.parquet")
    assert (tmp_path / "x.parquet").stat().st_size < 10_000
    with pytest.raises(CorruptFile, match="x.parquet: unpacks to more than 1,000 times its size"):
        next(iter(read_corpus(tmp_path / "x.parquet")))


def test_a_row_whose_list_names_one_string_a_million_times_is_counted(tmp_path, monkeypatch):
    """And the rows beside it are read."""
    rows = [
        {"text": "a", "tags": ["x"]},
        {"text": "b", "tags": ["y" * 1000] * 5000},
        {"text": "c", "tags": None},
    ]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "x.parquet")
    assert (tmp_path / "x.parquet").stat().st_size < 3000
    monkeypatch.setattr("lc_assets.formats.corpora.parquet.BATCH_BYTES", 1 << 19)
    monkeypatch.setattr("lc_assets.formats.corpora.parquet.MAX_DOCUMENT_BYTES", 1 << 20)
    assert [
        getattr(one, "why", None) or one.text for one in read_corpus(tmp_path / "x.parquet")
    ] == ["a", "row too long", "c"]


def test_pages_side_by_side_count_together(tmp_path, monkeypatch):
    """Rows of a mebibyte: as many as fit, whatever the mean over the row group says."""
    rows = ["x" * (1 << 20)] * 8 + ["y"] * 4000
    pq.write_table(
        pa.table({"text": rows}),
        tmp_path / "x.parquet",
        use_dictionary=False,
        write_batch_size=1,
        data_page_size=1,
    )
    monkeypatch.setattr(opening, "SOME_BYTES", 5 << 20)
    with weighed(tmp_path / "x.parquet", most_rows=256) as (_, found):
        assert found == [4]
    monkeypatch.setattr(pages, "MOST_PAGE_BYTES", 1 << 20)
    with (
        pytest.raises(CorruptFile, match="a page of 1,048,5"),
        weighed(tmp_path / "x.parquet", most_rows=256),
    ):
        pass


def test_a_footer_is_checked_once_for_each_content(monkeypatch):
    """Not for each reader; a damaged one is found after the sound one of the same length."""
    stream, checked = io.BytesIO(), []
    pq.write_table(pa.table({"only here": [1, 2, 3]}), stream)
    monkeypatch.setattr(
        footer, "read_struct", lambda *args: checked.append(1) or read_struct(*args)
    )
    first, second = read_footer(stream), read_footer(stream)
    assert (first, len(checked)) == (second, 1)
    content = stream.getvalue()
    with pytest.raises(CorruptFile):
        read_footer(io.BytesIO(content[:-12] + b"XXXX" + content[-8:]))
