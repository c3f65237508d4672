"""The codec ``lc_ranked``: what is coded is decoded, by a plain reference too and by zarr-python;
what is damaged or hostile is refused.
"""

import subprocess
import sys
import tomllib
from pathlib import Path

import google_crc32c
import msgspec
import numpy as np
import pytest
import zarr
from hypothesis import given, strategies as st
from zarr.registry import register_codec

from lc_assets.builds.settings.rows import GriddingSettings
from lc_assets.errors import BadInput, CorruptFile
from lc_assets.formats.arrays.grid import GridReader, create_grid, encode_shard, write_band
from lc_assets.formats.arrays.grid_layout import CODER, GridLayout
from lc_assets.formats.arrays.ranked import (
    CODE_BITS,
    CONTEXTS,
    MOST_IDS,
    RankedCodec,
    _classes,
    configuration_for,
)
from lc_assets_tests.grid_builders import ids, write_grid, zipf_ids

ROOT = Path(__file__).parents[2]


def reference(configuration, content, n):
    """Decode by the page of the format, a bit at a time."""
    n_ids = configuration.vocab_size
    in_order = [*configuration.ranked, *sorted(set(range(n_ids)) - set(configuration.ranked)), None]
    firsts, extra = (part.tolist() for part in _classes(n_ids))
    firsts, extra = [*firsts, 0], [*extra, n_ids.bit_length()]
    codes = []
    for digits in configuration.lengths:
        code, own = 0, {}
        for length in range(1, CODE_BITS + 1):
            for number, digit in enumerate(digits):
                if int(digit, 16) == length:
                    own[f"{code:0{length}b}"] = number
                    code += 1
            code <<= 1
        codes.append(own)
    sizes, each = np.frombuffer(content, "<u4", 8).tolist(), -(-n // 8)
    found, at = [], 32
    for size in sizes:
        number = int.from_bytes(content[at : at + 4 * size], "little")
        bits, before, at = iter(f"{number:0{32 * size}b}"[::-1]), 0, at + 4 * size
        for _ in range(each):
            code = ""
            while code not in codes[min(before, CONTEXTS - 1)]:
                code += next(bits)
            own = codes[min(before, CONTEXTS - 1)][code]
            place = sum(int(next(bits)) << bit for bit in range(extra[own]))
            before = firsts[own] + place
            found.append(in_order[before])
    return found[:n]


def some_ids(n, n_ids, seed):
    """Ids of which few are frequent, and the first and the last of the vocabulary."""
    drawn = np.random.default_rng(seed).integers(0, n_ids, n) % max(n_ids // (1 + seed % 7), 1)
    return np.append(drawn, [0, n_ids - 1])[-n:].astype(np.uint32)


@given(
    n=st.integers(1, 300),
    n_ids=st.sampled_from([1, 2, 255, 256, 300, 50_257, 65_535, 65_536, MOST_IDS]),
    seed=st.integers(0, 100),
    is_foreign=st.booleans(),
)
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
        plain = reference(codec.configuration, content, len(whole))
        assert [fill if number is None else number for number in plain] == whole.tolist()


@given(st.data())
def test_what_is_damaged_is_refused(data):
    """A changed byte by the checksum; bytes with a right checksum, by where the streams end, or
    they are some ids: never more memory, never bytes from elsewhere.
    """
    rows = zipf_ids(8, 64)
    codec = RankedCodec(configuration_for(rows, 50_257))
    content, out = bytearray(codec.encode(rows)), np.empty_like(rows)
    at = data.draw(st.integers(0, len(content) - 1))
    content[at] ^= data.draw(st.integers(1, 255))
    with pytest.raises(ValueError, match="checksum"):
        codec.decode(bytes(content), out)
    hostile = bytes(content[:-4])[: data.draw(st.integers(0, len(content)))]
    hostile += google_crc32c.value(hostile).to_bytes(4, "little")
    found = []
    for _ in range(2):
        try:
            codec.decode(hostile, out)
            found.append(out.copy())
        except ValueError as error:
            found.append(str(error))
    np.testing.assert_equal(*found)


def changed(configuration, **changes):
    return RankedCodec(msgspec.structs.replace(configuration, **changes))


def test_a_configuration_that_is_none_is_refused():
    own = configuration_for(zipf_ids(4, 64), 50_257)
    n_codes = len(own.lengths[0])
    for changes, said in (
        ({"vocab_size": 0}, "vocab_size must be 1 to"),
        ({"vocab_size": MOST_IDS + 1}, "vocab_size must be 1 to 1,048,574"),
        ({"ranked": (1, 1)}, "different ids below 50,257"),
        ({"ranked": (50_257,)}, "different ids below 50,257"),
        ({"lengths": own.lengths[1:]}, "128 strings"),
        ({"lengths": (own.lengths[0][1:], *own.lengths[1:-1], own.lengths[-1] + "0")}, "strings"),
        ({"lengths": ("f" * n_codes,) * CONTEXTS}, "digits up to b"),
        ({"lengths": ("A" * n_codes,) * CONTEXTS}, "digits up to b"),
        ({"lengths": ("1" * n_codes,) * CONTEXTS}, "no code's"),
        ({"lengths": ("0" * n_codes,) * CONTEXTS}, "no escape"),
    ):
        with pytest.raises(BadInput, match=said):
            changed(own, **changes)


def ranked_grid(path, rows, **chunks):
    return write_grid(path, rows, coder=configuration_for(rows, 50_257), **chunks)


def test_a_grid_of_it_is_read(tmp_path):
    """Chunks that extend beyond the array, too."""
    rows = zipf_ids(70, 300)
    path = ranked_grid(
        tmp_path / "a.zarr", rows, inner_rows=16, inner_tokens=64, shard_tokens=128, shard_rows=32
    )
    reader = GridReader(path)
    assert reader.layout.coder is not None
    np.testing.assert_array_equal(reader.read(), rows)
    np.testing.assert_array_equal(reader.read(slice(3, 69), slice(60, 299)), rows[3:69, 60:299])
    assert reader.missing() == []
    content = (path / "zarr.json").read_text()
    (path / "zarr.json").write_text(content.replace('"ranked": [', '"ranked": [60000,'))
    with pytest.raises(CorruptFile, match="different ids below 50,257"):
        GridReader(path)


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
    from lc_assets.formats.arrays.zarr_codec import RankedZarrCodec

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
