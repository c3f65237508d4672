"""Exports: the same ids in the other format, whole or not at all."""

import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from lc_assets.errors import BadInput, Mismatch
from lc_assets.formats.megatron.indexed import MegatronReader, MegatronWriter
from lc_assets.stages.megatron import megatron_files
from lc_assets.stages.megatron.megatron_files import export_datasets, export_mds, export_nanogpt
from lc_assets.tokens.dtypes import INT32, UINT16

GOLDEN = Path(__file__).parents[1] / "golden" / "megatron"
ROWS = [[row * 10 + column for column in range(4)] for row in range(5)]


def written(prefix, documents, dtype=UINT16):
    with MegatronWriter.publishing(prefix, dtype) as writer:
        for ids in documents:
            writer.add(np.array(ids))
    return prefix


@pytest.mark.parametrize("block", [1, 5, 1 << 20])
def test_nanogpts_file_is_the_ids_and_nothing_else(tmp_path, monkeypatch, block):
    """As LongCrawl64's own script has it: ``chunk[:, -1] = 50256``, then the rows one after
    another; and without.
    """
    monkeypatch.setattr(megatron_files, "BLOCK_IDS", block)
    prefix = written(tmp_path / "rows", ROWS)
    chunk = np.array(ROWS, np.uint16)
    assert export_nanogpt(prefix, tmp_path / "plain.bin") == chunk.size
    assert (tmp_path / "plain.bin").read_bytes() == chunk.tobytes()
    export_nanogpt(prefix, tmp_path / "ends.bin", over_last=50_256)
    chunk[:, -1] = 50_256
    np.testing.assert_array_equal(
        np.memmap(tmp_path / "ends.bin", np.uint16, "r"), chunk.reshape(-1)
    )
    assert [ids.tolist() for ids in MegatronReader(prefix)] == ROWS


def test_ids_of_four_bytes_that_fit_two_are_nanogpts_too(tmp_path):
    export_nanogpt(written(tmp_path / "a", ROWS, INT32), tmp_path / "a.out")
    assert (
        np.fromfile(tmp_path / "a.out", np.uint16).tolist() == np.array(ROWS).reshape(-1).tolist()
    )


def test_ids_that_do_not_fit_are_refused_and_nothing_is_left(tmp_path):
    prefix = written(tmp_path / "a", [[65_536]], INT32)
    with pytest.raises(Mismatch, match="65,536 does not fit uint16"):
        export_nanogpt(prefix, tmp_path / "out" / "a.bin")
    assert not list((tmp_path / "out").iterdir())
    with pytest.raises(BadInput, match="65,536 is none"):
        export_nanogpt(prefix, tmp_path / "a.out", over_last=65_536)


@pytest.mark.parametrize("name", ["uint16", "int32", "empty_document"])
def test_parquet_has_a_list_per_document(tmp_path, monkeypatch, name):
    """In as many files as their size asks for, none of which cuts a document."""
    monkeypatch.setattr(megatron_files, "BLOCK_IDS", 2)
    n_files = export_datasets(GOLDEN / name, tmp_path / "out", split="valid", file_bytes=12)
    paths = sorted((tmp_path / "out").iterdir())
    assert [path.name for path in paths] == [
        f"valid-{number:05}-of-{n_files:05}.parquet" for number in range(n_files)
    ]
    tables = [pq.read_table(path) for path in paths]
    assert n_files > 1
    found = [ids for table in tables for ids in table["input_ids"].to_pylist()]
    assert found == [ids.tolist() for ids in MegatronReader(GOLDEN / name)]


def test_a_folder_that_holds_something_is_left_alone(tmp_path):
    (tmp_path / "mine").write_text("x")
    with pytest.raises(BadInput, match="there is something already"):
        export_datasets(GOLDEN / "uint16", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
    with pytest.raises(BadInput, match="cannot be a split's name"):
        export_datasets(GOLDEN / "uint16", tmp_path / "new", split="a/b")


def test_mds_without_its_package_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "streaming", None)
    with pytest.raises(
        BadInput, match="streaming is not installed: pip install mosaicml-streaming"
    ):
        export_mds(GOLDEN / "uint16", tmp_path / "out")
    assert not list(tmp_path.iterdir())


@pytest.mark.network
def test_hugging_faces_own_program_reads_the_parquet(tmp_path):
    datasets = pytest.importorskip("datasets", reason="datasets is not installed")
    export_datasets(GOLDEN / "uint16", tmp_path / "out")
    found = datasets.load_dataset(
        "parquet", data_dir=str(tmp_path / "out"), cache_dir=str(tmp_path / "cache")
    )["train"]
    assert [row["input_ids"] for row in found] == [
        ids.tolist() for ids in MegatronReader(GOLDEN / "uint16")
    ]


@pytest.mark.network
def test_mosaicmls_own_program_reads_the_mds(tmp_path):
    streaming = pytest.importorskip("streaming", reason="mosaicml-streaming is not installed")
    assert export_mds(GOLDEN / "uint16", tmp_path / "out") == 3
    found = streaming.LocalDataset(str(tmp_path / "out"))
    assert [found[place]["input_ids"].tolist() for place in range(3)] == [
        ids.tolist() for ids in MegatronReader(GOLDEN / "uint16")
    ]
