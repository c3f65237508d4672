"""Regression tests of what the fuzzer and the bombs found."""

import contextlib
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lc_assets.builds.recipe_files import parse_recipe
from lc_assets.builds.tables import read_lines, read_table
from lc_assets.errors import BadInput, CorruptFile, LcError
from lc_assets.formats.archives.fetching import Spot
from lc_assets.formats.arrays.flat import ZSTD, FlatReader
from lc_assets.formats.arrays.grid import GridReader
from lc_assets.formats.arrays.npy import read_npy
from lc_assets.formats.corpora.reading import read_corpus
from lc_assets.formats.gram_index_files import open_index, write_index
from lc_assets.formats.key_index import KeyIndex, write_key_index
from lc_assets.formats.lists.evaluations import read_items
from lc_assets.formats.lists.rule_files import parse_rules
from lc_assets.formats.megatron.launch_arguments import read_identities, read_launch
from lc_assets.formats.parquet.footer import STRING, Chunk, Leaf
from lc_assets.formats.parquet.pages import walk
from lc_assets.lake.lake import Lake
from lc_assets.lake.upstream import Upstream
from lc_assets.lake.versions import version_named
from lc_assets.text.contamination.grams import GramSettings, Item, build_index
from lc_assets.text.links.page_keys import page_key
from lc_assets_tests.fuzzing.array_readers import make_flat, make_grid
from lc_assets_tests.fuzzing.crawl_readers import columnar, make_columnar
from lc_assets_tests.fuzzing.parquet_bytes import Page, encoded, flat, parquet_bytes, text
from lc_assets_tests.fuzzing.readers import READERS
from lc_assets_tests.fuzzing.table import Reader
from lc_assets_tests.reference.pages import page_at

DEEP = b"[" * 100_000 + b"]" * 100_000


@pytest.mark.parametrize("offset", [2**62, 2**63, 2**64])
def test_a_place_behind_all_files_is_refused(tmp_path, offset):
    """One line of an index ended the whole run: the disk's refusal was taken for a disk in
    trouble.
    """
    (tmp_path / "x.warc.gz").write_bytes(b"x")
    assert page_at(Upstream(str(tmp_path)), "x.warc.gz", offset, 5).why == "place refused"
    assert Spot("x.warc.gz", offset, 5).offset == offset


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b'{"text": "a", "perplexity": 1' + b"0" * 400 + b"}", "not JSON"),
        (b'{"text": "a", "length": 1e400}', "not JSON"),
        (b'{"text": "a", "meta": ' + b"[" * 300 + b"]" * 300 + b"}", "nested too deeply"),
        (b'{"text": "a", "meta": ' + DEEP + b"}", "not JSON"),
        (b'{"text": "a", "id": ' + DEEP + b"}", "not JSON"),
    ],
    ids=["a number of 400 digits", "a number beyond float64", "300 deep", "deep", "deep id"],
)
def test_records_that_nobody_behind_could_decode_are_counted(tmp_path, line, why):
    """They came through the reader as they stood and stopped a stage when something was made of
    them.
    """
    (tmp_path / "x.jsonl").write_bytes(line + b'\n{"text": "b", "meta": ["' + b"[" * 400 + b'"]}\n')
    first, second = read_corpus(tmp_path / "x.jsonl")
    if b"perplexity" in line:
        assert first.perplexity is None
    else:
        assert first.why == why
    assert second.text == "b"


@pytest.mark.parametrize(
    "column",
    [
        pa.array([2**40], pa.timestamp("s")),
        pa.array([2**30], pa.date32()),
        pa.array([1], pa.timestamp("s", "Mars/Olympus")),
    ],
    ids=["a year beyond all", "a day beyond all", "a time zone that nobody knows"],
)
def test_values_that_python_does_not_have_cost_their_rows(tmp_path, column):
    pq.write_table(pa.table({"text": ["a"], "date": column}), tmp_path / "x.parquet")
    (found,) = read_corpus(tmp_path / "x.parquet")
    assert found.why == "a value that Python does not have"
    with pytest.raises(BadInput, match="row 0"):
        list(read_items(tmp_path / "x.parquet"))


def test_a_key_is_never_too_long_to_be_its_own_key():
    """Escapes are longer than what they stand for, so an address within the limit had a key beyond
    it.
    """
    for n_chars in (1000, 2720, 2726, 4000, 8000):
        key = page_key("http://a.example/" + "\u00fc" * n_chars)
        assert (key is None) == (n_chars > 1360)
        assert key is None or page_key(f"http://{key}") == key
    assert page_key("http://a.example/" + "x" * 8170) == "a.example/" + "x" * 8170


def test_names_of_lists_are_text_and_differ(tmp_path):
    """Which lists stay in a dictionary is said to Arrow by their names."""
    pq.write_table(pa.table({"text": ["a"], "choices": [["x"]]}), tmp_path / "x.parquet")
    content = (tmp_path / "x.parquet").read_bytes()
    (tmp_path / "x.parquet").write_bytes(content.replace(b"choices", b"cho\xff\xffes"))
    with pytest.raises(CorruptFile, match="'utf-8' codec can't decode"):
        list(read_corpus(tmp_path / "x.parquet"))
    pq.write_table(
        pa.table([["a"], [["x"]], [["y"]]], names=["text", "l", "l"]), tmp_path / "x.parquet"
    )
    with pytest.raises(CorruptFile, match="two columns of one name"):
        list(read_corpus(tmp_path / "x.parquet"))


def test_names_that_no_file_system_takes_are_refused(tmp_path):
    """The system's own error came through: a version in a pointer or a release, and a file that a
    launch names.
    """
    for name in ("x" * 70_000, "\u00fc" * 101):
        with pytest.raises(BadInput, match="not a version's name"):
            version_named(name, "x")
        with pytest.raises(BadInput, match="not the name of a stage"):
            Lake(tmp_path).partition("token_grid", name)
    (tmp_path / "x.args").write_text(
        f"--seq-length 24 --per-split-data-args-path {'x' * 300} --train-samples 80 "
        "--global-batch-size 8"
    )
    with pytest.raises(BadInput, match="cannot be read"):
        read_launch(tmp_path / "x.args")


def test_an_index_of_a_crawl_is_text(tmp_path):
    """Arrow believes a file's word that bytes are text; who took a row out of the batch was told so
    by Python.
    """
    make_columnar(tmp_path)
    table = pq.read_table(tmp_path / "x.parquet")
    place = table.schema.get_field_index("url")
    bytes_ = pa.array([b"\xff"] * 3)
    as_text = pa.Array.from_buffers(pa.string(), 3, bytes_.buffers())
    pq.write_table(table.set_column(place, "url", as_text), tmp_path / "x.parquet")
    with pytest.raises(CorruptFile, match="not a readable index"):
        columnar(tmp_path)


def test_tables_of_a_lake_hold_no_times(tmp_path):
    """A time zone that nobody knows is a `KeyError` to who asks for the value."""
    pq.write_table(
        pa.table({"id": ["a"], "at": pa.array([1], pa.timestamp("s", "Mars/Olympus"))}),
        tmp_path / "x.parquet",
    )
    for read in (read_table, lambda path: list(read_lines(path))):
        with pytest.raises(CorruptFile, match="at holds times"):
            read(tmp_path / "x.parquet")


def test_deep_json_is_damage_to_every_reader_of_json(tmp_path):
    """Ten readers said `RecursionError`: metadata of arrays, orders, receipts, pointers, releases,
    caches, records of shards.
    """
    for reader in READERS:
        for name in strikable(reader, tmp_path / reader.name.replace("/", " ")):
            name.write_bytes(b'{"attributes": ' + DEEP + b"}")
            try:
                reader.read(tmp_path / reader.name.replace("/", " "))
            except LcError as error:
                assert str(error)  # noqa: PT017 - a reader may pass over it, too


def strikable(reader: Reader, folder):
    """The files of a reader that are JSON, one after the other."""
    folder.mkdir()
    reader.make(folder)
    for path in sorted(folder.rglob("*")):
        if path.is_file() and "json" in reader.layers_of(path.name)[:1]:
            before = path.read_bytes()
            yield path
            path.write_bytes(before)


def test_settings_that_are_deep_or_endless_are_refused(tmp_path):
    with pytest.raises(BadInput, match="not a recipe"):
        parse_recipe("a = " + "[" * 5000 + "]" * 5000, where="x")
    with pytest.raises(BadInput, match="thousands of digits"):
        parse_rules(
            f'name = "x"\n[[rule]]\nname = "a"\nsignal = "b"\nat_most = 0x{"f" * 5000}\n', where="x"
        )
    (tmp_path / "x.json").write_bytes(DEEP)
    with pytest.raises(BadInput):
        read_identities(tmp_path / "x.json")


@pytest.mark.parametrize("train", [[[1]], 7, {"a": 1}, [None]])
def test_a_split_of_a_launch_is_words(tmp_path, train):
    (tmp_path / "x.args").write_text(
        "--seq-length 24 --per-split-data-args-path x.json --train-samples 80 --global-batch-size 8"
    )
    (tmp_path / "x.json").write_text(json.dumps({"train": train, "valid": None, "test": None}))
    with pytest.raises(BadInput, match=r"x\.json: expected JSON"):
        read_launch(tmp_path / "x.args")


@pytest.mark.parametrize(
    "other", [np.arange(9), np.zeros((2, 2)), np.float64(1), np.array([], "<i2")]
)
def test_arrays_of_n_grams_are_of_their_type(tmp_path, other):
    """Compiled loops believe what they are given."""
    write_index(
        tmp_path,
        build_index(
            [Item(id="a", parts=("one two three four",))], GramSettings(ngram=3, min_words=2)
        ),
    )
    np.save(tmp_path / "items.npy", other)
    with pytest.raises(CorruptFile):
        open_index(tmp_path)


def test_headers_that_numpy_warns_of_are_damage(tmp_path):
    """A type by a name of old."""
    np.save(tmp_path / "x.npy", np.array([b"ab"]))
    (tmp_path / "x.npy").write_bytes((tmp_path / "x.npy").read_bytes().replace(b"|S2", b"|a2"))
    with pytest.raises(CorruptFile):
        read_npy(tmp_path / "x.npy")


def test_keys_that_do_not_ascend_are_damage_or_find_something(tmp_path):
    """A search among them may end before it began."""
    for seed in range(50):
        keys = np.random.default_rng(seed).permutation(np.arange(64, dtype=np.uint64))
        write_key_index(tmp_path / "x", keys, np.arange(64, dtype=np.uint32))
        with contextlib.suppress(CorruptFile):
            KeyIndex(tmp_path / "x").places_of_all(np.random.default_rng(seed).permutation(keys))


@pytest.mark.parametrize("size", ["0", "-8"])
def test_a_launch_has_a_batch(tmp_path, size):
    (tmp_path / "x.args").write_text(
        f"--seq-length 24 --data-path a --train-samples 80 --global-batch-size {size}"
    )
    with pytest.raises(BadInput, match="at least 1"):
        read_launch(tmp_path / "x.args")


def test_a_page_whose_kind_is_no_number_is_damage(tmp_path):
    """Thrift says of each value what it is, and nobody else did."""
    odd = encoded({1: {1: 2}, 2: 4, 3: 4, 5: {1: 1, 2: 0}}) + text(b"")
    content = parquet_bytes([flat(b"text", [Page(b"", 0, {})], 1)], 1).replace(
        Page(b"", 0, {}).bytes, odd
    )
    (tmp_path / "x.parquet").write_bytes(content)
    with pytest.raises(CorruptFile):
        list(read_corpus(tmp_path / "x.parquet"))
    with pytest.raises(CorruptFile, match="where a size or a number"):
        walk(
            lambda at, n: odd[at : at + n],
            Chunk(Leaf("text", STRING, 0, False, False), 0, len(odd), 1, 1, 0),
            most_longest=0,
        )


def test_missing_files_of_an_array_that_claims_2_62_rows_are_named_in_time(tmp_path):
    """Metadata of 2^62 rows: what is there is looked at, and a thousand of the rest are named."""
    (tmp_path / "flat").mkdir()
    make_flat(ZSTD)(tmp_path / "flat")
    said = json.loads((tmp_path / "flat/.zarray").read_text())
    (tmp_path / "flat/.zarray").write_text(json.dumps(said | {"shape": [2**62, 48]}))
    found = FlatReader(tmp_path / "flat").missing()
    assert len(found) == 1001
    assert found[0] == f"{tmp_path}/flat/2.0: the chunk is missing"
    assert found[-1] == f"{tmp_path}/flat: further files were not checked"
    (tmp_path / "grid").mkdir()
    make_grid(tmp_path / "grid")
    said = json.loads((tmp_path / "grid/zarr.json").read_text())
    (tmp_path / "grid/zarr.json").write_text(json.dumps(said | {"shape": [2**62, 48]}))
    found = GridReader(tmp_path / "grid").missing()
    assert found[-1] == f"{tmp_path}/grid: further files were not checked"
    assert "c/1/0: inner chunk (1, 0) is missing" in found[0]


def test_a_chunk_of_two_frames_is_damage(tmp_path):
    """The first one states the right size; the library adds them up."""
    make_flat(ZSTD)(tmp_path)
    (tmp_path / "0.0").write_bytes((tmp_path / "0.0").read_bytes() * 2)
    with pytest.raises(CorruptFile, match="does not decompress"):
        FlatReader(tmp_path).read()
