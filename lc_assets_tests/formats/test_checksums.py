"""Damage in a ``.bin`` or a flat array is found by every loader: each flipped bit, zeroed range and
swapped chunk, when its part is read.
"""

import shutil
import tempfile
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from lc_assets.errors import CorruptFile
from lc_assets.formats import checksums
from lc_assets.formats.arrays.flat import ZSTD, FlatReader, create_flat
from lc_assets.formats.checksums import BlockChecksums, checksums_path
from lc_assets.formats.megatron.idx import bin_path, files_of
from lc_assets.formats.megatron.indexed import MegatronReader, MegatronWriter
from lc_assets.loaders.grid import GridLoader
from lc_assets.loaders.rows import open_rows
from lc_assets.loaders.sliding import SlidingWindows
from lc_assets.loaders.windows import WindowLoader
from lc_assets.stages.megatron.megatron_verifying import verify_data_set
from lc_assets_tests.grid_builders import ids, write_flat

BLOCK = 64
N_IDS = 1000
"""2,000 bytes: 31 blocks and a part of one."""


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """So that a file of two kilobytes has many."""
    monkeypatch.setattr(checksums, "BLOCK", BLOCK)


def write_data_set(prefix):
    """Documents of 100 ids."""
    with MegatronWriter.publishing(prefix, np.dtype("<u2")) as writer:
        for document in ids(10, N_IDS // 10):
            writer.add(document)
    return prefix


def whole_epoch(prefix, context_tokens=19, **options):
    """All batches of windows; the file's last ids are in no window of another length."""
    loader = WindowLoader(
        prefix, batch_windows=4, context_tokens=context_tokens, stride=1, epochs=2, **options
    )
    return list(map(loader.__getitem__, range(len(loader))))


def sliding(prefix, boundaries):
    """All single windows."""
    windows = SlidingWindows(
        ids=MegatronReader(prefix), context_tokens=9, stride=10, boundaries=boundaries, pad=0
    )
    return [windows[number] for number in range(len(windows))]


def copied(prefix):
    """A copy of the data set."""
    reader = MegatronReader(prefix)
    with MegatronWriter.publishing(prefix.with_name("copy"), reader.dtype) as writer:
        writer.copy(reader, 0, len(reader))


READERS = {
    "windows": whole_epoch,
    "windows longer than a block": lambda prefix: whole_epoch(prefix, context_tokens=99),
    "windows of the second rank": lambda prefix: [
        *whole_epoch(prefix, rank=0, n_ranks=2),
        *whole_epoch(prefix, rank=1, n_ranks=2),
    ],
    "sliding windows": lambda prefix: sliding(prefix, "ignore"),
    "sliding windows with resets": lambda prefix: sliding(prefix, "reset"),
    "sliding windows in documents": lambda prefix: sliding(prefix, "stay"),
    "documents": lambda prefix: list(MegatronReader(prefix)),
    "a copy": copied,
}


@st.composite
def damages(draw, n_bytes):
    """A function that damages as many bytes: a flipped bit, or a range of zeros."""
    at = draw(st.integers(0, n_bytes - 1))
    if draw(st.booleans()):
        bit = 1 << draw(st.integers(0, 7))
        return lambda content: content[:at] + bytes([content[at] ^ bit]) + content[at + 1 :]
    size = draw(st.integers(1, n_bytes - at))
    return lambda content: content[:at] + bytes(size) + content[at + size :]


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
@given(damage=damages(2 * N_IDS))
@settings(max_examples=30)
def test_damage_in_a_bin_is_found(tmp_path_factory, read, damage):
    folder = tmp_path_factory.getbasetemp() / "damaged-bin"
    prefix = folder / "a"
    if not folder.exists():
        write_data_set(prefix)
        shutil.copy(bin_path(prefix), folder / "whole")
        read(prefix)
    whole = (folder / "whole").read_bytes()
    damaged = damage(whole)
    bin_path(prefix).write_bytes(damaged)
    if damaged == whole:
        read(prefix)
        return
    with pytest.raises(CorruptFile, match=r"a\.bin: the block at byte .* match its checksum"):
        read(prefix)
    assert any("checksum" in line for line in verify_data_set(prefix).damage)


@given(sizes=st.lists(st.integers(0, 200), max_size=12))
def test_checksums_do_not_depend_on_the_writes(sizes):
    """Those of zlib, however the bytes are divided."""
    content = np.random.default_rng(len(sizes)).bytes(sum(sizes))
    blocks, at = BlockChecksums(), 0
    for size in sizes:
        blocks.add(memoryview(content)[at : at + size])
        at += size
    expected = [zlib.crc32(content[at : at + BLOCK]) for at in range(0, len(content), BLOCK)]
    assert np.frombuffer(blocks.content(), "<u4").tolist() == expected


def test_a_block_is_compared_when_it_is_read_and_once(tmp_path):
    """Documents beside the damage are read; bytes that were compared are not compared again."""
    prefix = write_data_set(tmp_path / "a")
    reader, content = MegatronReader(prefix), bytearray(bin_path(prefix).read_bytes())
    first = reader[0].copy()
    content[0] ^= 1
    content[1000] ^= 1
    bin_path(prefix).write_bytes(content)
    assert (reader[0][1:] == first[1:]).all()
    assert len(reader[9]) == 100
    with pytest.raises(CorruptFile, match=f"the block at byte {1000 // BLOCK * BLOCK:,} "):
        reader[5]


def test_data_of_other_programs_is_read_without_checksums(tmp_path):
    """Neither a token file nor a flat array has to have any."""
    prefix = write_data_set(tmp_path / "a")
    whole = [document.tolist() for document in MegatronReader(prefix)]
    checksums_path(bin_path(prefix)).unlink()
    assert [document.tolist() for document in MegatronReader(prefix)] == whole
    whole_epoch(prefix)
    flat, rows = tmp_path / "a.zarr", ids(10, 16)
    write_flat(flat, rows)
    for path in flat.glob("*.crc32"):
        path.unlink()
    np.testing.assert_array_equal(open_rows(flat).read(), rows)


def test_checksums_of_another_file_are_refused(tmp_path):
    prefix = write_data_set(tmp_path / "a")
    with checksums_path(bin_path(prefix)).open("ab") as stream:
        stream.write(b"more")
    with pytest.raises(CorruptFile, match=r"a\.bin\.crc32: 132 bytes, expected 128 for 32 blocks"):
        MegatronReader(prefix)
    flat = write_flat(tmp_path / "a.zarr", ids(10, 16))
    (flat / "1.crc32").write_bytes(b"less")
    with pytest.raises(CorruptFile, match=r"a\.zarr/1\.crc32: 4 bytes, expected 8 for 2 blocks"):
        open_rows(flat).read()


def test_a_data_set_is_replaced_with_its_checksums(tmp_path):
    """And a failed attempt leaves those that were there."""
    prefix = write_data_set(tmp_path / "a")
    with MegatronWriter.publishing(prefix, np.dtype("<u2")) as writer:
        writer.add(np.arange(7))
    assert MegatronReader(prefix)[0].tolist() == list(range(7))
    with pytest.raises(ZeroDivisionError), MegatronWriter.publishing(prefix, np.dtype("u1")):
        raise ZeroDivisionError
    assert MegatronReader(prefix)[0].tolist() == list(range(7))
    assert sorted(tmp_path.iterdir()) == sorted(files_of(prefix))


def rows_of(path):
    """All rows through a loader's cache."""
    loader = GridLoader(open_rows(path), batch_rows=4, context_tokens=8)
    return list(loader)


@pytest.mark.parametrize("read", [rows_of, lambda path: FlatReader(path).read()])
@pytest.mark.parametrize("codec", ["blosc", "zstd"])
@given(chunk=st.sampled_from(["0.0", "0.1", "1.0", "1.1"]), drawn=st.data())
@settings(max_examples=40)
def test_damage_in_a_flat_array_is_found(codec, read, chunk, drawn):
    """Not read as other tokens, also where it decompresses."""
    with tempfile.TemporaryDirectory() as folder:
        path = write_flat(
            Path(folder, "a.zarr"), ids(8, 16), **({"codec": ZSTD} if codec == "zstd" else {})
        )
        whole = (path / chunk).read_bytes()
        damaged = drawn.draw(damages(len(whole)))(whole)
        (path / chunk).write_bytes(damaged)
        if damaged == whole:
            read(path)
            return
        with pytest.raises(CorruptFile, match=rf"a\.zarr/{chunk}: .* match its checksum"):
            read(path)


@pytest.mark.parametrize("pair", [("0.0", "0.1"), ("0.0", "1.0"), ("0.1", "1.0")])
def test_swapped_chunks_are_found(tmp_path, pair):
    path = write_flat(tmp_path / "a.zarr", ids(8, 16))
    first, second = (path / name for name in pair)
    contents = first.read_bytes(), second.read_bytes()
    second.write_bytes(contents[0])
    first.write_bytes(contents[1])
    with pytest.raises(CorruptFile, match="match its checksum"):
        rows_of(path)


def test_a_chunk_that_was_written_again_is_read_by_the_same_reader(tmp_path):
    """After its damage was reported."""
    rows, path = ids(8, 16), tmp_path / "a.zarr"
    write_flat(path, rows)
    (path / "0.1").write_bytes(b"damaged")
    reader = FlatReader(path)
    with pytest.raises(CorruptFile, match="match its checksum"):
        reader.read()
    FlatReader(path).write(range(4), 1 + rows[:4] // 2)
    np.testing.assert_array_equal(reader.read()[:4], 1 + rows[:4] // 2)


def test_a_column_that_is_written_again_gets_its_checksum(tmp_path):
    """In a band that has checksums; another program's band gets none."""
    rows, path = ids(4, 16), tmp_path / "a.zarr"
    write_flat(path, rows)
    rows[:, 8:] = 1
    FlatReader(path).write(range(4), rows[:, 8:], slice(8, 16))
    np.testing.assert_array_equal(FlatReader(path).read(), rows)
    (path / "0.crc32").unlink()
    FlatReader(path).write(range(4), rows[:, :8], slice(0, 8))
    assert not (path / "0.crc32").exists()
    np.testing.assert_array_equal(FlatReader(path).read(), rows)


def test_an_array_without_rows_has_no_checksums(tmp_path):
    create_flat(tmp_path / "a.zarr", 0, 16)
    assert FlatReader(tmp_path / "a.zarr").read().shape == (0, 16)
