"""The token grid: what is written is read, by everybody; what is damaged is never read as
tokens.
"""

import json
import struct
from pathlib import Path

import google_crc32c
import numpy as np
import pytest
import tensorstore
import zarr
from hypothesis import given, strategies as st
from numcodecs.zstd import Zstd
from zarr.codecs import ZstdCodec

from lc_assets.errors import BadInput, CorruptFile, NotPublished
from lc_assets.formats.arrays.grid import (
    GridReader,
    create_grid,
    encode_shard,
    plan_bands,
    write_band,
)
from lc_assets.formats.arrays.grid_layout import (
    INNER_ROWS,
    SHARD_ROWS,
    SHARDS,
    GridLayout,
    shard_rows_of,
)
from lc_assets.formats.arrays.zstd_frames import frame_content_bytes
from lc_assets_tests.grid_builders import ids, write_grid

ABSENT = 2**64 - 1


def with_index(shard: Path, n_inner: int, change) -> None:
    """Rewrite a shard's index, with a right checksum, after ``change`` has had its way with the
    entries.
    """
    content = shard.read_bytes()
    index = np.frombuffer(content[-16 * n_inner - 4 : -4], "<u8").reshape(n_inner, 2).copy()
    change(index)
    shard.write_bytes(
        content[: -16 * n_inner - 4]
        + index.tobytes()
        + struct.pack("<I", google_crc32c.value(index.tobytes()))
    )


def with_metadata(path: Path, change) -> None:
    """Rewrite a grid's metadata after ``change`` has had its way with the document."""
    document = json.loads((path / "zarr.json").read_text())
    change(document)
    (path / "zarr.json").write_text(json.dumps(document))


def tensorstore_of(path: Path):
    """The array as tensorstore opens it."""
    return tensorstore.open(
        {"driver": "zarr3", "kvstore": {"driver": "file", "path": str(path)}}
    ).result()


shapes = st.tuples(st.integers(1, 150), st.integers(1, 70))


@given(
    shape=shapes,
    shard_rows=st.sampled_from([40, 64, 128, 2048]),
    vocab_size=st.sampled_from([2, 50_257, 65_535, 65_536, 2**32 - 1]),
)
def test_what_is_written_is_what_everybody_reads(tmp_path_factory, shape, shard_rows, vocab_size):
    """Any shape, shard and vocabulary: our reader, zarr-python and tensorstore give back the
    ids.
    """
    rows = ids(*shape, vocab_size=vocab_size)
    path = write_grid(
        tmp_path_factory.mktemp("grid") / "a.zarr",
        rows,
        vocab_size=vocab_size,
        shard_rows=shard_rows,
    )
    reader = GridReader(path)
    assert (reader.n_rows, reader.row_tokens, reader.vocab_size) == (*shape, vocab_size)
    np.testing.assert_array_equal(reader.read(), rows)
    np.testing.assert_array_equal(zarr.open_array(path, mode="r")[:], rows)
    np.testing.assert_array_equal(tensorstore_of(path).read().result(), rows)
    assert reader.read().dtype == zarr.open_array(path, mode="r").dtype == reader.dtype
    assert reader.missing() == []


@given(
    shape=shapes,
    inner=st.tuples(st.integers(1, 40), st.integers(1, 40)),
    times=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    level=st.sampled_from([1, 3, 9]),
)
def test_chunks_of_any_shape_are_read(tmp_path_factory, shape, inner, times, level):
    """The reader takes shapes and level from the array, ragged at every edge; so do the others."""
    rows, folder = ids(*shape), tmp_path_factory.mktemp("grid")
    sizes = {
        "inner_rows": inner[0],
        "inner_tokens": inner[1],
        "shard_rows": inner[0] * times[0],
        "shard_tokens": inner[1] * times[1],
    }
    reader = GridReader(path := write_grid(folder / "a.zarr", rows, **sizes, zstd_level=level))
    assert reader.chunk_shape == (min(inner[0], shape[0]), min(inner[1], shape[1]))
    np.testing.assert_array_equal(reader.read(), rows)
    np.testing.assert_array_equal(zarr.open_array(path, mode="r")[:], rows)
    np.testing.assert_array_equal(tensorstore_of(path).read().result(), rows)
    assert reader.missing() == []


def test_arrays_of_the_first_version_are_read(tmp_path):
    """Inner chunks of 64 × 2,048 at zstd level 3, shards of 2,048 × 2,048, format_version 1."""
    rows = ids(70, 2100)
    sizes = {"inner_tokens": 2048, "shard_tokens": 2048, "zstd_level": 3}
    path = write_grid(tmp_path / "a.zarr", rows, **sizes)
    with_metadata(path, lambda document: document["attributes"].update(format_version=1))
    np.testing.assert_array_equal(GridReader(path).read(), rows)
    assert sorted(
        file.relative_to(path).as_posix() for file in path.rglob("*") if file.is_file()
    ) == ["c/0/0", "c/0/1", "zarr.json"]
    write_band(path, range(70), rows)
    np.testing.assert_array_equal(GridReader(path).read(), rows)


@pytest.fixture(scope="module")
def seamed(tmp_path_factory):
    """70 × 2,100 ids in shards of 16 rows, with the grid they were written to."""
    rows = ids(70, 2100)
    return rows, GridReader(
        write_grid(tmp_path_factory.mktemp("seamed") / "a.zarr", rows, shard_rows=16)
    )


@given(st.data())
def test_a_rectangle_is_the_slice_of_the_whole(seamed, data):
    """Reading through shards and chunks of every raggedness is numpy's slicing, also across the
    2,048-token seam.
    """
    rows, reader = seamed
    top, bottom = sorted(data.draw(st.tuples(st.integers(0, 70), st.integers(0, 70))))
    left, right = sorted(data.draw(st.tuples(st.integers(2000, 2100), st.integers(0, 2100))))
    np.testing.assert_array_equal(
        reader.read(slice(top, bottom), slice(left, right)), rows[top:bottom, left:right]
    )


def test_the_metadata_is_zarr_pythons_own(tmp_path):
    """zarr-python, asked for the same array, writes the same metadata, field by field."""
    create_grid(
        tmp_path / "ours.zarr", GridLayout(5000, 4096, 50_257), attributes={"split": "train"}
    )
    ours = json.loads((tmp_path / "ours.zarr" / "zarr.json").read_text())
    zarr.create_array(
        store=tmp_path / "theirs.zarr",
        shape=(5000, 4096),
        dtype="uint16",
        chunks=(64, 1024),
        shards=(2048, 4096),
        compressors=ZstdCodec(level=4, checksum=True),
        fill_value=65_535,
        attributes=ours["attributes"],
        dimension_names=("row", "token"),
    )
    theirs = json.loads((tmp_path / "theirs.zarr" / "zarr.json").read_text())
    theirs.pop("storage_transformers", None)
    assert ours == theirs
    own = {
        "format": "lc-token-grid",
        "format_version": 2,
        "row_tokens": 4096,
        "vocab_size": 50_257,
        "tokenizer": "gpt2",
    }
    assert ours["attributes"] == {**own, "split": "train"}


def test_full_shards_are_zarr_pythons_bytes(tmp_path):
    """A shard that lies wholly in the array has the very bytes that zarr-python writes with empty
    chunks kept.
    """
    rows = ids(128, 40)
    ours = write_grid(tmp_path / "ours.zarr", rows)
    theirs = zarr.create_array(
        store=tmp_path / "theirs.zarr",
        shape=(128, 40),
        dtype="uint16",
        chunks=(64, 40),
        shards=(128, 40),
        compressors=ZstdCodec(level=4, checksum=True),
        fill_value=65_535,
        config={"write_empty_chunks": True},
    )
    theirs[:] = rows
    assert (ours / "c/0/0").read_bytes() == (tmp_path / "theirs.zarr/c/0/0").read_bytes()


def test_a_grid_that_zarr_python_wrote_is_read(tmp_path):
    """The reader knows the format, not the writer: zarr-python fills an array that we laid out."""
    rows = ids(100, 64)
    create_grid(tmp_path / "a.zarr", GridLayout(100, 64, 50_257))
    theirs = zarr.open_array(tmp_path / "a.zarr", mode="r+", config={"write_empty_chunks": True})
    theirs[:] = rows
    theirs.attrs["note"] = "touched"
    np.testing.assert_array_equal(GridReader(tmp_path / "a.zarr").read(), rows)


@pytest.mark.parametrize(
    ("n_rows", "row_tokens", "shard", "inner"),
    [
        (6_609_334, 65_536, (2048, 65_536), (64, 1024)),
        (931, 65_536, (960, 65_536), (64, 1024)),
        (64, 64, (64, 64), (64, 64)),
        (10, 64, (10, 64), (10, 64)),
        (1, 3000, (1, 3072), (1, 1024)),
        (1, 1500, (1, 2048), (1, 1024)),
        (0, 64, (1, 64), (1, 64)),
    ],
)
def test_chunks_shrink_with_the_array(n_rows, row_tokens, shard, inner):
    """Shards of 2,048 × 65,536 and inner chunks of 64 × 1,024, and no more than a small array
    needs.
    """
    layout = GridLayout(n_rows, row_tokens, 50_257)
    assert (layout.shard, layout.inner) == (shard, inner)


def test_zero_rows_are_a_grid(tmp_path):
    """A split without rows is created, opened and read by everybody."""
    path = write_grid(tmp_path / "a.zarr", ids(0, 64))
    assert plan_bands(GridLayout(0, 64, 50_257)) == []
    assert GridReader(path).read().shape == zarr.open_array(path, mode="r").shape == (0, 64)
    assert GridReader(path).missing() == []


def test_bands_may_be_written_again_and_in_any_order(tmp_path):
    """The same rows give the same bytes, whichever band came first, whatever stood there, however
    often.
    """
    rows = ids(20, 30)
    once, again = write_grid(tmp_path / "once.zarr", rows, shard_rows=8), tmp_path / "again.zarr"
    layout = GridLayout(20, 30, 50_257, shard_rows=8)
    create_grid(again, layout)
    create_grid(again, layout)
    for block in [*reversed(plan_bands(layout)), *plan_bands(layout)]:
        (again / f"c/{block.start // 8}").mkdir(parents=True, exist_ok=True)
        (again / f"c/{block.start // 8}/0").write_bytes(b"what a killed machine left")
        write_band(again, block, rows[block.start : block.stop])
    files = sorted(path.relative_to(once) for path in once.rglob("*") if path.is_file())
    assert files == sorted(path.relative_to(again) for path in again.rglob("*") if path.is_file())
    assert all((once / name).read_bytes() == (again / name).read_bytes() for name in files)


def test_another_array_is_not_overwritten(tmp_path):
    """A folder that holds a grid of another shape is refused."""
    create_grid(tmp_path / "a.zarr", GridLayout(5, 64, 50_257))
    with pytest.raises(BadInput, match="describes another array"):
        create_grid(tmp_path / "a.zarr", GridLayout(6, 64, 50_257))


def test_an_attribute_cannot_pose_as_the_formats_own(tmp_path):
    with pytest.raises(
        BadInput, match="must leave format, format_version, row_tokens, vocab_size, tokenizer alone"
    ):
        create_grid(tmp_path / "a.zarr", GridLayout(5, 64, 50_257), attributes={"vocab_size": 3})


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        (np.full((8, 30), 50_257), "row 8, token 0 is id 50,257"),
        (np.pad(np.full((1, 1), -1), ((3, 4), (5, 24))), "row 11, token 5 is id -1"),
        (
            np.zeros((8, 29), np.uint16),
            r"must be integers of shape \(8, 30\), got uint16 of \(8, 29\)",
        ),
        (np.zeros((7, 30), np.uint16), r"of shape \(8, 30\), got uint16 of \(7, 30\)"),
        (np.zeros((8, 30)), "got float64"),
    ],
)
def test_rows_that_do_not_fit_are_refused(tmp_path, rows, says):
    """Ids outside the vocabulary, another width, another number of rows and fractions never reach a
    file.
    """
    layout = GridLayout(20, 30, 50_257, shard_rows=8)
    create_grid(tmp_path / "a.zarr", layout)
    with pytest.raises(BadInput, match=says):
        write_band(tmp_path / "a.zarr", range(8, 16), rows)
    assert not (tmp_path / "a.zarr/c").exists()


@pytest.mark.parametrize(("start", "stop"), [(0, 4), (4, 8), (16, 24), (24, 32)])
def test_a_band_shares_no_file_with_another(tmp_path, start, stop):
    """Blocks that end inside a shard, or outside the array, are no bands: two writers could lose
    each other's rows.
    """
    create_grid(tmp_path / "a.zarr", GridLayout(20, 30, 50_257, shard_rows=8))
    with pytest.raises(BadInput, match="are no band of 20 rows"):
        write_band(tmp_path / "a.zarr", range(start, stop), ids(stop - start, 30))


@pytest.fixture
def grid(tmp_path):
    """192 × 40 ids in shards of 128 rows: two shards, the second ragged, inner chunks of 64 ×
    40.
    """
    return write_grid(tmp_path / "a.zarr", ids(192, 40), shard_rows=128)


def test_a_missing_shard_is_damage(grid):
    """Nobody gets tokens for rows that are not there, and ours is told which file to write
    again.
    """
    (grid / "c/1/0").unlink()
    with pytest.raises(CorruptFile, match=r"a.zarr/c/1/0: the shard is missing"):
        GridReader(grid).read(slice(120, 130))
    assert GridReader(grid).read(slice(0, 128)).shape == (128, 40)
    assert len(GridReader(grid).missing()) == 1


def test_a_hole_is_no_token_to_any_reader(grid):
    """Through zarr-python and tensorstore, missing rows come out as an id outside every vocabulary,
    never as token 0.
    """
    (grid / "c/1/0").unlink()
    assert (zarr.open_array(grid, mode="r")[128:] == 65_535).all()
    assert (tensorstore_of(grid)[128:].read().result() == 65_535).all()


def test_a_missing_inner_chunk_is_damage(grid):
    """A shard whose index lacks one inner chunk is whole to Zarr; here it is not."""
    with_index(grid / "c/0/0", 2, lambda index: index.__setitem__(1, ABSENT))
    with pytest.raises(CorruptFile, match=r"a.zarr/c/0/0: inner chunk \(1, 0\) is missing"):
        GridReader(grid).read()
    assert GridReader(grid).read(slice(0, 64)).shape == (64, 40)
    assert GridReader(grid).missing() == [
        f"{grid}/c/0/0: inner chunk (1, 0) is missing from the index; write its band again"
    ]


def test_inner_chunks_that_changed_places_are_damage(grid):
    """Two entries of the index swapped: every frame is whole, every id a token, and only the
    index's checksum tells.
    """
    shard = grid / "c/0/0"
    content, right = shard.read_bytes(), shard.read_bytes()[-4:]
    with_index(shard, 2, lambda index: index.__setitem__(slice(None), index[::-1].copy()))
    shard.write_bytes(shard.read_bytes()[:-4] + right)
    assert len(shard.read_bytes()) == len(content)
    with pytest.raises(CorruptFile, match="index does not match its checksum"):
        GridReader(grid).read()


@pytest.mark.parametrize(
    "vocab_size", [1, 50_257, 65_499, 65_500, 65_535, 65_536, 65_537, 2**32 - 1]
)
def test_the_fill_value_is_no_token(vocab_size):
    """For vocabularies on both sides of every dtype's edge."""
    layout = GridLayout(1, 1, vocab_size)
    assert layout.fill >= vocab_size
    assert layout.dtype.itemsize == (2 if vocab_size <= 65_535 else 4)


@pytest.mark.parametrize("keep", [0, 3, 30, -1, -40])
def test_a_truncated_shard_is_damage(grid, keep):
    shard = grid / "c/0/0"
    shard.write_bytes(shard.read_bytes()[:keep])
    with pytest.raises(CorruptFile, match=r"a\.zarr/c/0/0"):
        GridReader(grid).read()
    assert len(GridReader(grid).missing()) == 1


@given(at=st.integers(0, 10**6), value=st.integers(1, 255))
def test_a_flipped_byte_never_changes_a_token(tmp_path_factory, at, value):
    """Whichever byte of a shard is damaged, the rows read back are the same or refused."""
    rows = ids(16, 20)
    layout = GridLayout(16, 20, 50_257)
    content = bytearray(b"".join(encode_shard(rows.astype(np.uint16), layout)))
    content[at % len(content)] ^= value
    path = tmp_path_factory.getbasetemp() / "flipped.zarr"
    create_grid(path, layout)
    (path / "c/0").mkdir(parents=True, exist_ok=True)
    (path / "c/0/0").write_bytes(content)
    try:
        found = GridReader(path).read()
    except CorruptFile:
        return
    np.testing.assert_array_equal(found, rows)


def test_a_flipped_token_byte_is_found_by_the_checksum(grid):
    """A byte amid the compressed ids: the frame's own checksum tells."""
    content = bytearray((grid / "c/0/0").read_bytes())
    content[1000] ^= 1
    (grid / "c/0/0").write_bytes(content)
    with pytest.raises(CorruptFile, match=r"inner chunk \(0, 0\): .* do not decompress"):
        GridReader(grid).read()


def test_an_index_that_points_elsewhere_is_damage(grid):
    """Offsets and sizes from a file are checked before anything is read or allocated."""
    for entry in [(0, 10**15), (10**15, 100), (0, 0), (ABSENT - 1, 3)]:
        with_index(grid / "c/0/0", 2, lambda index, entry=entry: index.__setitem__(0, entry))
        with pytest.raises(CorruptFile, match=r"inner chunk \(0, 0\) cannot be"):
            GridReader(grid).read()


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        b"not a frame",
        Zstd(level=3, checksum=False).encode(np.zeros((64, 40), np.uint16)),
        Zstd(level=3, checksum=True).encode(np.zeros((64, 39), np.uint16)),
        Zstd(level=3, checksum=True).encode(np.zeros((6400, 4000), np.uint16)),
        Zstd(level=3, checksum=True).encode(np.zeros((64, 40), np.uint16)) + b"x",
        Zstd(level=3, checksum=True).encode(np.zeros((64, 40), np.uint16))[:-4],
    ],
    ids=["empty", "other bytes", "without checksum", "too short", "a bomb", "longer", "cut short"],
)
def test_a_frame_of_another_size_is_refused_unopened(grid, frame):
    """A frame must state the chunk's size before it is decompressed, so it can neither leave ids
    unset nor fill the memory.
    """
    index = np.array([[0, len(frame)], [ABSENT, ABSENT]], "<u8").tobytes()
    (grid / "c/0/0").write_bytes(frame + index + struct.pack("<I", google_crc32c.value(index)))
    with pytest.raises(CorruptFile, match=r"inner chunk \(0, 0\)"):
        GridReader(grid).read(slice(0, 1))


@given(st.binary(max_size=400_000))
def test_the_stated_size_is_the_size(content):
    """Frames of every size class state how many bytes they hold."""
    assert frame_content_bytes(Zstd(level=3, checksum=True).encode(content * 3)) == len(content) * 3


@given(st.binary(max_size=20))
def test_any_bytes_can_be_asked_for_their_stated_size(content):
    stated = frame_content_bytes(b"\x28\xb5\x2f\xfd" + content)
    assert stated is None or stated >= 0


def test_an_id_outside_the_vocabulary_is_damage(tmp_path):
    """Ids that a program with another vocabulary wrote are refused where they are read."""
    layout = GridLayout(4, 8, 100)
    create_grid(tmp_path / "a.zarr", layout)
    (tmp_path / "a.zarr/c/0").mkdir(parents=True)
    (tmp_path / "a.zarr/c/0/0").write_bytes(
        b"".join(encode_shard(np.full((4, 8), 100, np.uint16), layout))
    )
    with pytest.raises(
        CorruptFile, match=r"c/0/0: inner chunk \(0, 0\) holds id 100: the vocabulary has 100 ids"
    ):
        GridReader(tmp_path / "a.zarr").read(slice(0, 1), slice(0, 1))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            lambda d: d.update(data_type="int16"),
            'data_type is "int16", a token grid\'s is "uint16"',
        ),
        (lambda d: d.update(shape=[192, 41]), "is"),
        (lambda d: d.update(shape=[192]), "not the metadata"),
        (lambda d: d.update(shape=[-1, 40]), "not the metadata"),
        (lambda d: d["attributes"].update(row_tokens=41), "attributes is"),
        (lambda d: d["attributes"].pop("vocab_size"), "not the metadata"),
        (lambda d: d["attributes"].update(format_version=3), "attributes is"),
        (lambda d: d.update(fill_value=0), "fill_value is 0, a token grid's is 65535"),
        (lambda d: d.update(codecs=[{"name": "bytes"}]), "codecs is"),
        (lambda d: d["codecs"][0]["configuration"].update(codecs=7), "codecs is"),
        (lambda d: d["codecs"][0]["configuration"].update(chunk_shape=[2**20, 2**20]), "codecs is"),
        (lambda d: d["codecs"][0]["configuration"].update(chunk_shape=[1, 7]), "multiple of it"),
        (
            lambda d: d["chunk_grid"]["configuration"].update(chunk_shape=[0, 40]),
            "not the metadata",
        ),
        (
            lambda d: d["chunk_grid"]["configuration"].update(chunk_shape=[2**40, 40]),
            "chunk_grid is",
        ),
        (lambda d: d.update(zarr_format=2), "zarr_format is 2"),
    ],
)
def test_metadata_of_another_array_is_refused(grid, change, says):
    """Another dtype, width, vocabulary, codec, fill or version is said, with what it is and what it
    should be.
    """
    with_metadata(grid, change)
    with pytest.raises(CorruptFile, match=f"a.zarr/zarr.json: .*{says}"):
        GridReader(grid)


def test_no_array_and_no_json_are_said(tmp_path):
    with pytest.raises(NotPublished, match="no token grid here"):
        GridReader(tmp_path)
    (tmp_path / "zarr.json").write_bytes(b'{"shape"')
    with pytest.raises(CorruptFile, match="not the metadata of a token grid"):
        GridReader(tmp_path)


@pytest.mark.parametrize(
    "piece",
    [slice(0, 193), slice(-1, None), slice(5, 4), slice(0, 10, 2)],
    ids=["beyond", "negative", "backwards", "a step"],
)
def test_a_rectangle_outside_the_array_is_refused(grid, piece):
    """Slices are never clipped: fewer rows than asked for would be lost in silence."""
    with pytest.raises(BadInput, match=r"rows .* cannot be read"):
        GridReader(grid).read(piece)


@pytest.mark.parametrize("layout", [(-1, 64, 100), (1, 0, 100), (1, 64, 0), (1, 64, 2**32)])
def test_impossible_layouts_do_not_exist(layout):
    with pytest.raises(BadInput):
        GridLayout(*layout)


@pytest.mark.parametrize(
    "sizes",
    [
        {"inner_rows": 2**15, "inner_tokens": 2**15, "shard_rows": 2**15},
        {"inner_rows": 1, "inner_tokens": 1},
        {"inner_tokens": 0},
        {"zstd_level": 0},
    ],
    ids=["chunks of 2 GB", "an index of 2 GB", "no tokens", "no level"],
)
def test_chunks_beyond_reason_are_refused(sizes):
    """What a hostile array says of itself must not ask for memory."""
    with pytest.raises(BadInput):
        GridLayout(2**20, 65_536, 50_257, **sizes)


def test_shard_rows_must_hold_whole_inner_chunks():
    with pytest.raises(
        BadInput, match="shard_rows must be at most inner_rows, 64, or a multiple of it, got 100"
    ):
        GridLayout(1, 64, 100, shard_rows=100)


@pytest.mark.parametrize("n_rows", [1, 64, 65, 1000, 5000, 40_000])
def test_a_small_array_has_shards_for_many_workers(n_rows):
    """Nearly `SHARDS` of them, but none of less than an inner chunk."""
    layout = GridLayout(n_rows, 64, 100, shard_rows=shard_rows_of(n_rows, INNER_ROWS))
    n_shards = len(plan_bands(layout))
    assert min(SHARDS // 2, -(-n_rows // INNER_ROWS)) <= n_shards
    assert n_shards <= max(SHARDS, -(-n_rows // SHARD_ROWS))
