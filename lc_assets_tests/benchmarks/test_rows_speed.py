"""Tokens to grid, and grid to Megatron: whole rows of 65,536 tokens. Run with ``-s`` to see the
figures.
"""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
import zarr
from numcodecs.zstd import Zstd

from lc_assets.builds.settings.rows import GriddingSettings
from lc_assets.builds.tables import IDENTITY, TOKENIZED, read_table, write_table
from lc_assets.formats.arrays.grid import GridReader, create_grid
from lc_assets.formats.arrays.grid_layout import GridLayout
from lc_assets.formats.megatron.idx import idx_blocks
from lc_assets.formats.megatron.indexed import MegatronReader, MegatronWriter
from lc_assets.stages.megatron.megatron_rows import COPIED_ROWS, CopyTask, copy_rows
from lc_assets.stages.rows.row_plans import plan_rows
from lc_assets.stages.rows.token_grid import ROWS_FILE, BandTask, write_rows
from lc_assets.vocabulary import GPT2_VOCAB_SIZE, ROW_TOKENS
from lc_assets_tests.benchmarks.timing import cpu_seconds, say
from lc_assets_tests.grid_builders import write_grid, zipf_ids

N_ROWS = 128
MEGABYTES = N_ROWS * ROW_TOKENS * 2 / 1e6
IDS = np.dtype(np.uint16)


@pytest.fixture(scope="module")
def rows():
    return zipf_ids(N_ROWS, ROW_TOKENS)


@pytest.fixture(scope="module")
def band(rows, tmp_path_factory):
    """A task to write one band, over a token store of as many documents, some tokens longer than a
    row.
    """
    folder = tmp_path_factory.mktemp("tokens")
    with MegatronWriter.publishing(folder / "0000-en_head", IDS) as writer:
        for row in rows:
            writer.add(np.append(row, row[:99]))
    lines = [
        dict.fromkeys((*IDENTITY, "tokenized_digest"), "")
        | {
            "id": f"2023-06/0000/en_head.json.gz/{line}",
            "document": line,
            "n_tokens": ROW_TOKENS + 99,
            "n_chars": 0,
            "n_bytes": 0,
        }
        for line in range(N_ROWS)
    ]
    documents = pa.Table.from_pylist(lines, TOKENIZED).append_column(
        "token_shard", pa.repeat("0000-en_head", N_ROWS)
    )
    write_table(folder / ROWS_FILE, plan_rows(documents, GriddingSettings(heldout_fraction=0)))
    return BandTask(
        tokens=folder,
        folder=folder,
        split="train",
        block=range(N_ROWS),
        row_tokens=ROW_TOKENS,
        n_ids=GPT2_VOCAB_SIZE,
    )


def ours(band, folder):
    """Write the band as the stage does, into a folder of its own."""
    create_grid(folder / "train.zarr", GridLayout(N_ROWS, ROW_TOKENS, GPT2_VOCAB_SIZE))
    write_table(folder / ROWS_FILE, read_table(band.folder / ROWS_FILE))
    return write_rows(replace(band, folder=folder))


def plain(band, path):
    """The same layout by the general libraries: `numpy.roll` per row, `numpy.stack`,
    zarr-python.
    """
    ids = np.fromfile(band.tokens / "0000-en_head.bin", IDS).reshape(N_ROWS, -1)
    plan = read_table(band.folder / ROWS_FILE).to_pylist()
    rows = np.stack([np.roll(ids[line["document"], :ROW_TOKENS], line["shift"]) for line in plan])
    codec = zarr.codecs.ZstdCodec(level=4, checksum=True)
    layout = {
        "shape": rows.shape,
        "chunks": (64, 1024),
        "shards": (N_ROWS, ROW_TOKENS),
        "compressors": codec,
        "filters": None,
    }
    array = zarr.create_array(path, dtype=IDS, fill_value=65_535, **layout)
    array[:] = rows
    return rows


def zstd_alone(rows):
    """Compress the same inner chunks and nothing else."""
    codec = Zstd(level=4, checksum=True)
    corners = [(top, left) for left in range(0, ROW_TOKENS, 1024) for top in range(0, N_ROWS, 64)]
    return sum(
        len(codec.encode(np.ascontiguousarray(rows[top : top + 64, left : left + 1024])))
        for top, left in corners
    )


def test_a_band_is_zarrs_and_cheaper(band, tmp_path):
    """Gather, roll, encode, write; MB of ids per CPU-second."""
    fast, _ = cpu_seconds(lambda number: ours(band, tmp_path / f"ours{number}"))
    slow, rows = cpu_seconds(lambda number: plain(band, tmp_path / f"plain{number}.zarr"))
    bare, _ = cpu_seconds(lambda _: zstd_alone(rows))
    np.testing.assert_array_equal(GridReader(tmp_path / "ours0/train.zarr").read(), rows)
    np.testing.assert_array_equal(zarr.open_array(tmp_path / "plain0.zarr", mode="r")[:], rows)
    say(
        "tokens to grid",
        MEGABYTES,
        "MB",
        fast,
        stack_and_roll_and_zarr_python=slow,
        zstd_alone=bare,
    )


def megatrons_way(grid, prefix):
    """Row by row, as Megatron's builder adds documents: a new array, its bytes, a Python list of
    lengths.
    """
    reader, lengths = GridReader(grid), []
    with prefix.with_suffix(".bin").open("wb") as out:
        for start in range(0, N_ROWS, COPIED_ROWS):
            for row in reader.read(slice(start, min(start + COPIED_ROWS, N_ROWS))):
                ids = np.array(row.astype(np.int64), IDS)
                out.write(ids.tobytes(order="C"))
                lengths.append(ids.size)
    content = b"".join(idx_blocks(np.array(lengths, np.int32), np.arange(len(lengths) + 1), IDS))
    prefix.with_suffix(".idx").write_bytes(content)


def test_the_copy_for_megatron_is_megatrons(rows, tmp_path):
    """Read, decode, check and write rows; MB of ids per CPU-second."""
    grid = write_grid(tmp_path / "train.zarr", rows)
    fast, _ = cpu_seconds(
        lambda number: copy_rows(
            CopyTask(grid=tmp_path, folder=tmp_path / f"ours{number}", name="train")
        )
    )
    slow, _ = cpu_seconds(lambda number: megatrons_way(grid, tmp_path / f"theirs{number}"))
    reading, _ = cpu_seconds(lambda _: GridReader(grid).read())
    for suffix in (".bin", ".idx"):
        assert (tmp_path / f"ours0/train{suffix}").read_bytes() == (
            tmp_path / f"theirs0{suffix}"
        ).read_bytes()
    np.testing.assert_array_equal(MegatronReader(tmp_path / "ours0/train")[N_ROWS - 1], rows[-1])
    say(
        "grid to Megatron",
        MEGABYTES,
        "MB",
        fast,
        row_by_row_through_int64=slow,
        reading_the_grid_alone=reading,
    )
