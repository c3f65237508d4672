"""Duplicates files: lines out of ids, and damage is told."""

import io
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lc_assets.errors import CorruptFile
from lc_assets.formats.redpajama.documents import read_duplicates, write_duplicates
from lc_assets.vocabulary import Shard

SHARD = Shard.parse("2023-06/0000/en_head")
ROWS = [(3, "sha1:46OPKWZ7MAG5624VYYA3U3YH2MJ727B6"), (17, "XQZHW7QWIG54HVAV3KPRW6MK5ILDNCER")]


def lines_of(content: bytes) -> frozenset[int]:
    return read_duplicates(io.BytesIO(content), shard=SHARD, where="en_head.duplicates")


def written(path) -> bytes:
    write_duplicates(path, SHARD, ROWS)
    return path.read_bytes()


def parquet_of(columns: dict) -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.table(columns), out)
    return out.getvalue()


def row(**other) -> dict:
    ours = {
        "shard_id": ["2023-06/0000/en_head.json.gz"],
        "doc_id": ["2023-06/0000/en_head.json.gz/3"],
        "digest": ["A"],
    }
    return {name: other.get(name, column) for name, column in ours.items()}


def test_lines_survive_writing_and_reading(tmp_path):
    """From a path and from a stream."""
    content = written(tmp_path / "x.parquet")
    assert (
        lines_of(content)
        == read_duplicates(tmp_path / "x.parquet", shard=SHARD, where="here")
        == {3, 17}
    )


def test_the_columns_are_the_published_ones(tmp_path):
    """Strings, the digest without its prefix, whichever way it was given."""
    write_duplicates(tmp_path / "x.parquet", SHARD, iter(ROWS))
    assert pq.read_table(tmp_path / "x.parquet").to_pydict() == {
        "shard_id": ["2023-06/0000/en_head.json.gz"] * 2,
        "doc_id": ["2023-06/0000/en_head.json.gz/3", "2023-06/0000/en_head.json.gz/17"],
        "digest": ["46OPKWZ7MAG5624VYYA3U3YH2MJ727B6", "XQZHW7QWIG54HVAV3KPRW6MK5ILDNCER"],
    }
    assert written(tmp_path / "y.parquet") == (tmp_path / "x.parquet").read_bytes()


def test_no_duplicates_is_a_file_too(tmp_path):
    write_duplicates(tmp_path / "x.parquet", SHARD, [])
    assert lines_of((tmp_path / "x.parquet").read_bytes()) == frozenset()


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (row(doc_id=["2023-06/0001/en_head.json.gz/3"]), "2023-06/0001/en_head.json.gz/3"),
        (row(doc_id=["3"]), "found id '3'"),
        (row(doc_id=pa.array([None], pa.string())), "found id ''"),
        (row(doc_id=[3]), "doc_id: int64"),
        ({"doc_id": ["x"]}, "expected strings named shard_id, doc_id, digest"),
    ],
)
def test_foreign_shards_and_other_columns_are_refused(columns, message):
    with pytest.raises(CorruptFile, match=f"^en_head.duplicates: .*{message}"):
        lines_of(parquet_of(columns))


@pytest.mark.parametrize("n_kept", [0, 3, 200, -1, -10])
def test_a_file_cut_short_is_refused(tmp_path, n_kept):
    with pytest.raises(CorruptFile, match=r"^en_head.duplicates: not a readable Parquet file"):
        lines_of(written(tmp_path / "x.parquet")[:n_kept])


def test_damaged_bytes_are_refused_or_harmless(tmp_path):
    """Any byte may be wrong: whatever Arrow makes of it, what comes out is an answer or our
    error.
    """
    content = written(tmp_path / "x.parquet")
    draw = random.Random(0)  # noqa: S311  which bytes to damage is no secret
    n_refused = 0
    for _ in range(300):
        damaged = bytearray(content)
        damaged[draw.randrange(len(damaged))] = draw.randrange(256)
        try:
            assert all(isinstance(line, int) for line in lines_of(bytes(damaged)))
        except CorruptFile:
            n_refused += 1
    assert n_refused > 100


def test_a_missing_file_is_not_called_corrupt(tmp_path):
    """What to do about a missing file is another's decision."""
    with pytest.raises(FileNotFoundError):
        read_duplicates(tmp_path / "none.parquet", shard=SHARD, where="here")
