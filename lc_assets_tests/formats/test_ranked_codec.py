"""The codec ``lc_ranked``: what is coded is decoded, by a plain reference too and by zarr-python;
chunks of version 1, which the reference writes, are decoded; what is damaged or hostile is refused.
"""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import google_crc32c
import msgspec
import numpy as np
import pytest
import zarr
from hypothesis import example, given, strategies as st
from zarr.registry import register_codec

from lc_assets.builds.settings.rows import GriddingSettings
from lc_assets.errors import BadInput, CorruptFile
from lc_assets.formats.arrays.grid import GridReader, create_grid, encode_shard, write_band
from lc_assets.formats.arrays.grid_layout import CODER, GridLayout
from lc_assets.formats.arrays.ranked import RankedCodec
from lc_assets.formats.arrays.ranked_codes import MOST_IDS
from lc_assets.formats.arrays.ranking import configuration_for
from lc_assets.formats.arrays.zarr_codec import RankedZarrCodec
from lc_assets.stages.rows.token_grid import _params
from lc_assets_tests.grid_builders import ids, write_grid, zipf_ids
from lc_assets_tests.reference.ranked_pages import Page, first_version, with_checksum

ROOT = Path(__file__).parents[2]


def some_ids(n, n_ids, seed):
    """Ids of which few are frequent, and the first and the last of the vocabulary."""
    drawn = np.random.default_rng(seed).integers(0, n_ids, n) % max(n_ids // (1 + seed % 7), 1)
    return np.append(drawn, [0, n_ids - 1])[-n:].astype(np.uint32)


@given(
    n=st.integers(1, 300),
    n_ids=st.sampled_from([1, 2, 255, 256, 300, 50_257, 65_535, 65_536]),
    seed=st.integers(0, 100),
    is_foreign=st.booleans(),
)
@example(n=9, n_ids=MOST_IDS, seed=3, is_foreign=False)
def test_what_is_coded_is_decoded_as_the_page_says(n, n_ids, seed, is_foreign):
    """Also by tables that were made of other ids, and with fill values."""
    flat = some_ids(n, n_ids, seed)
    made_of = np.zeros((1, 1), np.int64) if is_foreign else flat[None].astype(np.int64)
    codec = RankedCodec(configuration_for(made_of, n_ids))
    dtype = np.uint16 if n_ids <= 65_535 else np.uint32
    fill = np.iinfo(dtype).max
    whole = np.append(flat, [fill] * (seed % 3)).astype(dtype)
    out = np.empty_like(whole)
    codec.decode(content := codec.encode(whole), out)
    np.testing.assert_array_equal(out, whole)
    if n_ids <= 50_257:
        plain = Page(codec.configuration).decode(content, len(whole))
        assert [fill if number is None else number for number in plain] == whole.tolist()


FIRST = {n_ids: Page(first_version(n_ids)) for n_ids in (1, 300, 65_536)}
OLD = {n_ids: RankedCodec(page.configuration) for n_ids, page in FIRST.items()}
WRITTEN = 0xC3BE31CA
"""CRC-32C of a chunk that the codec wrote when version 1 was the only one."""


@given(n=st.integers(1, 100), n_ids=st.sampled_from(list(FIRST)), seed=st.integers(0, 100))
def test_version_1_is_decoded(n, n_ids, seed):
    flat = some_ids(n, n_ids, seed).tolist()
    fill, page = np.iinfo(np.uint32 if n_ids > 65_535 else np.uint16).max, FIRST[n_ids]
    content = page.encode([*flat, None])
    assert page.decode(content, n + 1) == [*flat, None]
    out = np.empty(n + 1, np.uint32 if n_ids > 65_535 else np.uint16)
    OLD[n_ids].decode(content, out)
    assert out.tolist() == [*flat, fill]


def test_version_1_as_it_was_written():
    """The reference writes the bytes that the codec wrote."""
    flat = [number * number % 300 for number in range(500)]
    assert google_crc32c.value(FIRST[300].encode(flat)[:-4]) == WRITTEN
    with pytest.raises(BadInput, match="version 1 is read only"):
        OLD[300].encode(np.array(flat, np.uint16))


ROWS = zipf_ids(8, 63) % np.uint16(300)
OWN = RankedCodec(configuration_for(ROWS, 300))
CHUNKS = [(OWN, OWN.encode(ROWS)), (OLD[300], FIRST[300].encode(ROWS.ravel().tolist()))]


@given(st.data(), st.sampled_from(CHUNKS))
def test_what_is_damaged_is_refused(data, chunk):
    """A changed byte by the checksum; bytes with a right checksum, by where the streams end, or
    they are some ids: never more memory, never bytes from elsewhere.
    """
    codec, content = chunk[0], bytearray(chunk[1])
    out = np.empty_like(ROWS)
    at = data.draw(st.integers(0, len(content) - 1))
    content[at] ^= data.draw(st.integers(1, 255))
    with pytest.raises(ValueError, match="checksum"):
        codec.decode(bytes(content), out)
    hostile = with_checksum(bytes(content[:-4])[: data.draw(st.integers(0, len(content)))])
    found = []
    for _ in range(2):
        try:
            codec.decode(hostile, out)
            found.append(out.copy())
        except ValueError as error:
            found.append(str(error))
    np.testing.assert_equal(*found)


HOSTILE = """
import numpy as np
from lc_assets_tests.formats.test_ranked_codec import CHUNKS, ROWS, with_checksum
rng, out, refused = np.random.default_rng(5), np.empty_like(ROWS), 0
for codec, content in CHUNKS:
    for _ in range(3000):
        damaged = np.frombuffer(content[:-4], np.uint8).copy()
        begin = 32 if rng.integers(2) else 0
        at = rng.integers(begin, len(damaged), rng.integers(1, 200))
        damaged[at] = rng.choice([0, 255, *rng.integers(0, 256, 2)], len(at))
        if rng.integers(2):
            damaged[:32] = np.frombuffer(content, np.uint8, 32)
        try:
            codec.decode(with_checksum(damaged.tobytes()), out)
        except ValueError:
            refused += 1
print(refused)
"""


@pytest.mark.slow
def test_hostile_bytes_do_not_reach_beyond_the_tables(tmp_path):
    """Compiled so that every index is checked."""
    done = subprocess.run(
        [sys.executable, "-c", HOSTILE],
        env={**os.environ, "NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert 3000 < int(done.stdout) <= 6000


def changed(configuration, **changes):
    return RankedCodec(msgspec.structs.replace(configuration, **changes))


def test_a_configuration_that_is_none_is_refused():
    own, first = configuration_for(zipf_ids(4, 64), 50_257), first_version(50_257)
    n_classes, n_ranked = len(own.lengths[0]), len(own.ranked)
    for configuration, changes, said in (
        (own, {"vocab_size": 0}, "vocab_size must be 1 to"),
        (own, {"vocab_size": MOST_IDS + 1}, "vocab_size must be 1 to 1,048,574"),
        (own, {"ranked": (1, 1)}, "different ids below 50,257"),
        (own, {"ranked": (50_257,)}, "different ids below 50,257"),
        (own, {"lengths": own.lengths[1:]}, f"16 strings of {n_classes} digits"),
        (
            own,
            {"lengths": (own.lengths[0][1:], *own.lengths[1:-1], "5" * (n_classes + 1))},
            "16 st",
        ),
        (own, {"lengths": ("9" * n_classes,) * 16}, "digits up to 8"),
        (own, {"lengths": ("A" * n_classes,) * 16}, "digits up to 8"),
        (own, {"lengths": ("é" * n_classes,) * 16}, "digits up to 8"),
        (own, {"lengths": ("1" * n_classes,) * 16}, "no code's"),
        (own, {"lengths": ("8" * (n_classes - 1) + "0",) * 16}, "lacks a code"),
        (own, {"contexts": own.contexts[1:]}, f"contexts must be {n_ranked} digits"),
        (own, {"contexts": "g" * n_ranked}, "contexts must be hexadecimal digits up to f"),
        (own, {"own": own.own[1:]}, "16 lists of up to 1,028"),
        (own, {"own": (bytes(3),) * 16}, "16 lists of up to 1,028"),
        (own, {"own": (bytes(2 * 1029),) * 16}, "16 lists of up to 1,028"),
        (own, {"own": (n_ranked.to_bytes(2, "little"),) * 16}, f"ranks below {n_ranked}"),
        (own, {"own": ()}, "16 lists"),
        (own, {"own": (), "contexts": ""}, "128 strings"),
        (first, {"lengths": first.lengths[1:]}, "128 strings"),
        (first, {"lengths": ("c" * len(first.lengths[0]),) * 128}, "digits up to b"),
        (first, {"lengths": ("a" * (len(first.lengths[0]) - 1) + "0",) * 128}, "lacks a code"),
    ):
        with pytest.raises(BadInput, match=said):
            RankedCodec(msgspec.structs.replace(configuration, **changes))


def test_an_array_without_rows_has_a_configuration():
    codec = RankedCodec(configuration_for(np.zeros((0, 64), np.uint16), 300))
    np.testing.assert_array_equal(
        codec.decoded(codec.encode(ROWS), ROWS.size, ROWS.dtype), ROWS.flat
    )


def test_ids_of_another_data_type_are_refused():
    codec, content = CHUNKS[0]
    with pytest.raises(ValueError, match="its ids are uint16, not uint32"):
        codec.decode(content, np.empty(ROWS.size, np.uint32))


def ranked_grid(path, rows, **chunks):
    return write_grid(path, rows, coder=configuration_for(rows, 50_257), **chunks)


def test_a_grid_of_it_is_read(tmp_path):
    """Chunks that extend beyond the array, too."""
    rows = zipf_ids(70, 300)
    path = ranked_grid(
        tmp_path / "a.zarr", rows, inner_rows=16, inner_tokens=64, shard_tokens=128, shard_rows=32
    )
    reader = GridReader(path)
    assert reader.layout.coder.own
    np.testing.assert_array_equal(reader.read(), rows)
    np.testing.assert_array_equal(reader.read(slice(3, 69), slice(60, 299)), rows[3:69, 60:299])
    assert reader.missing() == []
    content = (path / "zarr.json").read_text()
    (path / "zarr.json").write_text(content.replace('"ranked": [', '"ranked": [60000,'))
    with pytest.raises(CorruptFile, match="different ids below 50,257"):
        GridReader(path)


def test_a_grid_of_version_1_is_read(tmp_path, monkeypatch):
    """By zarr-python, too. Such a grid of a lake is out of date."""
    monkeypatch.setattr(RankedCodec, "encode", lambda _, ids: FIRST[300].encode(ids.ravel()))
    rows, first = np.tile(ROWS[:, :32], 2), FIRST[300].configuration
    path = write_grid(tmp_path / "a.zarr", rows, vocab_size=300, coder=first, inner_rows=4)
    np.testing.assert_array_equal(GridReader(path).read(), rows)
    register_codec(CODER, RankedZarrCodec)
    np.testing.assert_array_equal(zarr.open_array(path, mode="r")[:], rows)
    named = [_params(GriddingSettings(row_tokens=64, codec=codec)) for codec in ("zstd", "ranked")]
    assert [params.get("codec") for params in named] == [None, "ranked 2"]


def test_a_damaged_chunk_is_named(tmp_path):
    rows = ids(8, 64)
    path = ranked_grid(tmp_path / "a.zarr", rows)
    shard = path / "c/0/0"
    content = bytearray(shard.read_bytes())
    content[40] ^= 1
    shard.write_bytes(content)
    with pytest.raises(CorruptFile, match=r"inner chunk \(0, 0\).*do not decompress: the checksum"):
        GridReader(path).read()


def test_a_codec_of_another_vocabulary_is_refused():
    coder = configuration_for(zipf_ids(4, 64), 50_257)
    with pytest.raises(BadInput, match="ids of the codec must be 100 to 100, got 50,257"):
        GriddingSettings(row_tokens=64).layout(4, 100, coder)


def test_zarr_python_reads_and_writes_it(tmp_path):
    register_codec(CODER, RankedZarrCodec)
    rows = zipf_ids(70, 300)
    path = ranked_grid(tmp_path / "a.zarr", rows, inner_rows=16, inner_tokens=64)
    np.testing.assert_array_equal(zarr.open_array(path, mode="r")[:], rows)
    other = ranked_grid(tmp_path / "b.zarr", rows[::-1].copy(), inner_rows=16, inner_tokens=64)
    array = zarr.open_array(other, mode="r+")
    array[:] = rows
    np.testing.assert_array_equal(GridReader(other).read(), rows)


def test_zarr_python_finds_it_by_its_entry_point(tmp_path):
    """In another process, which imports nothing of ours by itself."""
    rows = zipf_ids(8, 64)
    path = ranked_grid(tmp_path / "a.zarr", rows)
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
    info = tmp_path / "site" / "declared-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: declared\nVersion: 1.0\n")
    entries = "".join(f"{name} = {at}\n" for name, at in declared["zarr.codecs"].items())
    (info / "entry_points.txt").write_text(f"[zarr.codecs]\n{entries}")
    program = f"import zarr; print(int(zarr.open_array({str(path)!r}, mode='r')[:].sum()))"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": f"{tmp_path / 'site'}:{ROOT}"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(done.stdout) == int(rows.sum())


def test_it_is_smaller_than_zstd(tmp_path):
    """On ids with word pairs as text has them."""
    rows = zipf_ids(64, 4096)
    size = {
        coder is None: sum(
            map(len, encode_shard(rows, GridLayout(*rows.shape, 50_257, coder=coder)))
        )
        for coder in (None, configuration_for(rows, 50_257))
    }
    assert size[False] < size[True]


def test_writing_again_gives_the_same_bytes(tmp_path):
    rows = zipf_ids(8, 64)
    paths = [ranked_grid(tmp_path / name, rows) for name in ("a.zarr", "b.zarr")]
    create_grid(paths[1], GridReader(paths[1]).layout)
    write_band(paths[1], range(8), rows)
    for name in ("zarr.json", "c/0/0"):
        assert (paths[0] / name).read_bytes() == (paths[1] / name).read_bytes()
