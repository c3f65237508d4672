"""LongCrawl64's layout: what the published data has, key by key, and none of its traps."""

import json
import struct

import numpy as np
import pytest
import zarr
from hypothesis import given, strategies as st
from numcodecs import blosc

from lc_assets.errors import BadInput, CorruptFile, NotPublished
from lc_assets.formats.arrays.flat import ZSTD, FlatReader, create_flat
from lc_assets.loaders.grid import GridLoader
from lc_assets.loaders.rows import open_rows
from lc_assets_tests.grid_builders import ids, write_flat, zipf_ids
from lc_assets_tests.reference.article_loader import ArticleLoader

PUBLISHED = {
    "chunks": [2048, 2048],
    "compressor": {"blocksize": 0, "clevel": 5, "cname": "lz4", "id": "blosc", "shuffle": 1},
    "dtype": "<u2",
    "fill_value": 0,
    "filters": None,
    "order": "C",
    "shape": [52131, 65536],
    "zarr_format": 2,
}
"""The ``.zarray`` of LongCrawl64's heldout split."""


def test_the_metadata_is_the_published_one(tmp_path):
    """Laid out for the heldout split's rows, it is LongCrawl64's own metadata, with no key more or
    less.
    """
    create_flat(tmp_path / "heldout.zarr", 52_131, 65_536)
    assert json.loads((tmp_path / "heldout.zarr/.zarray").read_text()) == PUBLISHED
    assert json.loads((tmp_path / "heldout.zarr/.zattrs").read_text()) == {}
    assert sorted(path.name for path in (tmp_path / "heldout.zarr").iterdir()) == [
        ".zarray",
        ".zattrs",
    ]


def test_the_published_metadata_is_read(tmp_path):
    (tmp_path / ".zarray").write_text(json.dumps(PUBLISHED, indent=4))
    reader = FlatReader(tmp_path)
    assert (reader.n_rows, reader.row_tokens, reader.chunk_shape) == (52_131, 65_536, (2048, 2048))


@given(
    shape=st.tuples(st.integers(1, 30), st.integers(1, 30)),
    chunk=st.tuples(st.integers(5, 12), st.integers(9, 40)),
)
def test_what_is_written_is_what_zarr_reads(tmp_path_factory, shape, chunk):
    """Any shape and chunks: our reader and zarr-python give back the ids; chunks are named
    row.column.
    """
    rows = ids(*shape)
    path = write_flat(tmp_path_factory.mktemp("flat") / "a.zarr", rows, chunk=chunk)
    np.testing.assert_array_equal(FlatReader(path).read(), rows)
    np.testing.assert_array_equal(zarr.open_array(path, mode="r")[:], rows)
    names = {
        f"{row}.{column}"
        for row in range(-(-shape[0] // chunk[0]))
        for column in range(-(-shape[1] // chunk[1]))
    }
    names |= {f"{row}.crc32" for row in range(-(-shape[0] // chunk[0]))}
    assert {file.name for file in path.iterdir()} == names | {".zarray", ".zattrs"}


def test_an_array_that_zarr_python_wrote_is_read(tmp_path):
    """The reader knows the layout, not the writer."""
    rows = ids(10, 20)
    theirs = zarr.create_array(
        store=tmp_path / "a.zarr",
        shape=(10, 20),
        chunks=(4, 8),
        dtype="<u2",
        zarr_format=2,
        fill_value=0,
    )
    theirs[:] = rows
    np.testing.assert_array_equal(
        FlatReader(tmp_path / "a.zarr").read(), rows
    )  # its default is zstd
    document = json.loads((tmp_path / "a.zarr/.zarray").read_text())
    (tmp_path / "a.zarr/.zarray").write_text(
        json.dumps(document | {"compressor": PUBLISHED["compressor"]})
    )
    ours = zarr.open_array(tmp_path / "a.zarr", mode="r+")
    ours[:] = rows
    np.testing.assert_array_equal(FlatReader(tmp_path / "a.zarr").read(), rows)


def test_zstd_chunks_are_smaller_and_open_in_zarr_python(tmp_path):
    """The layout for old readers that cannot read shards."""
    rows = ids(10, 20)
    path = write_flat(tmp_path / "a.zarr", rows, chunk=(4, 8), codec=ZSTD)
    assert json.loads((path / ".zarray").read_text())["compressor"] == {"id": "zstd", "level": 3}
    np.testing.assert_array_equal(zarr.open_array(path, mode="r")[:], rows)
    np.testing.assert_array_equal(FlatReader(path).read(), rows)


@pytest.mark.parametrize(
    "content",
    [b"", b"too short", b"\x28\xb5\x2f\xfd" + 60 * b"x"],
    ids=["empty", "text", "no frame"],
)
def test_a_damaged_zstd_chunk_is_named(tmp_path, content):
    path = write_flat(tmp_path / "a.zarr", ids(10, 20), chunk=(4, 8), codec=ZSTD)
    (path / "1.1").write_bytes(content)
    with pytest.raises(CorruptFile, match="a.zarr/1.1"):
        FlatReader(path).read()


def test_a_truncated_or_longer_zstd_frame_is_named(tmp_path):
    path = write_flat(tmp_path / "a.zarr", ids(10, 20), chunk=(4, 8), codec=ZSTD)
    whole = (path / "1.1").read_bytes()
    other = write_flat(tmp_path / "b.zarr", ids(16, 20), chunk=(8, 8), codec=ZSTD) / "0.0"
    small = write_flat(tmp_path / "c.zarr", ids(4, 4), chunk=(2, 4), codec=ZSTD) / "0.0"
    for content in (whole[:-3], other.read_bytes(), small.read_bytes()):
        (path / "1.1").write_bytes(content)
        with pytest.raises(CorruptFile, match="a.zarr/1.1"):
            FlatReader(path).read()


def test_a_vocabulary_that_is_not_gpt2s_is_stated(tmp_path):
    """Ids above GPT-2's are sound then, and those above the stated size are not."""
    rows = np.array([[60_000, 1]], np.uint16)
    path = write_flat(tmp_path / "a.zarr", rows, chunk=(1, 2), vocab_size=60_001)
    np.testing.assert_array_equal(FlatReader(path).read(), rows)
    (path / ".zattrs").write_text('{"vocab_size": 60000}')
    with pytest.raises(CorruptFile, match="60,000"):
        FlatReader(path).read()
    with pytest.raises(BadInput, match="two bytes"):
        create_flat(tmp_path / "b.zarr", 1, 2, vocab_size=100_277)


def test_a_ragged_chunk_is_of_full_size_and_ends_in_zeros(tmp_path):
    """As in the published copy, whose last chunks hold 931 rows: a reader must go by the shape."""
    path = write_flat(tmp_path / "a.zarr", np.full((5, 9), 7), chunk=(4, 8))
    assert struct.unpack_from("<I", (path / "1.1").read_bytes(), 4) == (4 * 8 * 2,)
    document = json.loads((path / ".zarray").read_text()) | {"shape": [8, 16]}
    (path / ".zarray").write_text(json.dumps(document))
    assert FlatReader(path).read()[4:, 8:].tolist() == [[7] + 7 * [0]] + 3 * [8 * [0]]


def test_bands_may_be_written_again_and_give_the_same_bytes(tmp_path, monkeypatch):
    """Also for chunks large enough for Blosc to start threads, whose blocks would come in any
    order.
    """
    monkeypatch.setattr(blosc, "use_threads", None)
    rows = zipf_ids(2048, 2048)
    create_flat(tmp_path / "a.zarr", 2048, 2048)
    contents = set()
    for _ in range(12):
        FlatReader(tmp_path / "a.zarr").write(range(2048), rows)
        contents.add((tmp_path / "a.zarr/0.0").read_bytes())
    assert len(contents) == 1


def test_a_band_written_column_by_column_is_the_band(tmp_path):
    """Byte for byte; columns that would share a chunk with others are refused."""
    rows = ids(7, 20)
    at_once, by_column = write_flat(tmp_path / "a.zarr", rows, chunk=(7, 8)), tmp_path / "b.zarr"
    create_flat(by_column, 7, 20, chunk=(7, 8))
    flat = FlatReader(by_column)
    for tokens in (slice(16, 20), slice(0, 16)):
        flat.write(range(7), rows[:, tokens], tokens)
    assert {file.name: file.read_bytes() for file in by_column.iterdir()} == {
        file.name: file.read_bytes() for file in at_once.iterdir()
    }
    for tokens in (slice(4, 20), slice(0, 12)):
        with pytest.raises(BadInput, match="are no band of 20 tokens"):
            FlatReader(by_column).write(range(7), rows[:, tokens], tokens=tokens)


@given(n_docs=st.integers(1, 5), context=st.sampled_from([1, 3, 8, 24]))
def test_the_articles_loader_and_ours_give_the_same_batches(tmp_path_factory, n_docs, context):
    """Step by step over a whole epoch, inputs and targets, edges thrown away alike."""
    path = tmp_path_factory.getbasetemp() / "flat-article.zarr"
    if not path.exists():
        write_flat(path, ids(11, 24))
    theirs, ours = (
        ArticleLoader(path, n_docs, context),
        GridLoader(open_rows(path), batch_rows=n_docs, context_tokens=context),
    )
    assert len(ours) == len(theirs)
    for step in range(len(ours)):
        np.testing.assert_array_equal(ours[step].text, theirs[step]["text"])
        np.testing.assert_array_equal(ours[step].targets, theirs[step]["targets"])
        assert ours[step].text.dtype == theirs[step]["text"].dtype == np.uint16


@pytest.fixture
def flat(tmp_path):
    """10 × 16 ids in chunks of 4 × 8."""
    return write_flat(tmp_path / "a.zarr", ids(10, 16))


def test_a_missing_chunk_is_damage(flat):
    """Zarr reads token 0 there, which is a real token: users of the published data trained on
    it.
    """
    (flat / "1.1").unlink()
    assert (zarr.open_array(flat, mode="r")[4:8, 8:] == 0).all()
    with pytest.raises(CorruptFile, match=r"a\.zarr/1\.1: the chunk is missing"):
        FlatReader(flat).read()
    assert FlatReader(flat).read(slice(0, 4)).shape == (4, 16)
    assert FlatReader(flat).missing() == [f"{flat}/1.1: the chunk is missing"]


@pytest.mark.parametrize("keep", [0, 5, 16, 30, -1])
def test_a_truncated_chunk_is_damage(flat, keep):
    """Blosc itself reads beyond the end of such a file, so it is never handed one."""
    (flat / "0.0").write_bytes((flat / "0.0").read_bytes()[:keep])
    (flat / "0.crc32").unlink()
    with pytest.raises(CorruptFile, match=r"a\.zarr/0\.0: "):
        FlatReader(flat).read()


@given(at=st.integers(0, 10**6), value=st.integers(0, 255))
def test_a_flipped_byte_never_gives_an_id_outside_the_vocabulary(tmp_path_factory, at, value):
    """Without checksums damage may pass as other tokens; it never crashes, and never is no token."""
    path = tmp_path_factory.getbasetemp() / "flat-flipped.zarr"
    if not path.exists():
        write_flat(path, ids(40, 40), chunk=(40, 40))
        (path / "whole").write_bytes((path / "0.0").read_bytes())
        (path / "0.crc32").unlink()
    content = bytearray((path / "whole").read_bytes())
    content[at % len(content)] = value
    (path / "0.0").write_bytes(content)
    try:
        assert FlatReader(path).read().max() < 50_257
    except CorruptFile:
        assert content != (path / "whole").read_bytes()


def test_a_chunk_of_another_size_is_damage(flat):
    """A whole chunk of another array, put under this name."""
    other = write_flat(flat.parent / "b.zarr", ids(10, 16), chunk=(5, 8))
    (flat / "0.0").write_bytes((other / "0.0").read_bytes())
    (flat / "0.crc32").unlink()
    with pytest.raises(CorruptFile, match="giving 64"):
        FlatReader(flat).read()


def test_an_id_outside_the_vocabulary_is_damage(flat):
    (flat / ".zattrs").write_bytes(b'{"vocab_size": 50256}')
    with pytest.raises(CorruptFile, match="holds id 50,256: the vocabulary has 50,256 ids"):
        FlatReader(flat).read()


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"dtype": ">u2"}, r"Invalid enum value '>u2' - at `\$.dtype`"),
        ({"order": "F"}, "Invalid enum value 'F'"),
        ({"fill_value": 1}, r"Invalid enum value 1 - at `\$.fill_value`"),
        ({"zarr_format": 3}, r"Invalid enum value 3 - at `\$.zarr_format`"),
        ({"dimension_separator": "/"}, "Invalid enum value '/'"),
        ({"compressor": {"id": "lz4"}}, "not the metadata"),
        ({"compressor": None}, "not the metadata"),
        ({"filters": []}, "not the metadata"),
        ({"shape": [10]}, "not the metadata"),
        ({"shape": [-1, 16]}, "is impossible"),
        ({"chunks": [0, 8]}, "is impossible"),
        ({"chunks": [2**40, 8]}, "are above"),
    ],
)
def test_metadata_of_another_array_is_refused(flat, changed, says):
    document = json.loads((flat / ".zarray").read_text()) | changed
    (flat / ".zarray").write_text(json.dumps(document))
    with pytest.raises(CorruptFile, match=f"a.zarr/.zarray: .*{says}"):
        FlatReader(flat)


def test_rows_and_bands_that_do_not_fit_are_refused(flat):
    with pytest.raises(BadInput, match="are no band of 10 rows"):
        FlatReader(flat).write(range(2, 6), ids(4, 16))
    with pytest.raises(BadInput, match="row 4, token 0 is id 50,257"):
        FlatReader(flat).write(range(4, 8), np.full((4, 16), 50_257))
    with pytest.raises(BadInput, match="describes another array"):
        create_flat(flat, 11, 16)
    with pytest.raises(BadInput, match="cannot lay out"):
        create_flat(flat.parent / "c.zarr", 1, 0)
    with pytest.raises(NotPublished, match="no flat array here"):
        FlatReader(flat.parent)


def test_zero_rows_are_an_array(tmp_path):
    path = write_flat(tmp_path / "a.zarr", ids(0, 16))
    assert FlatReader(path).read().shape == zarr.open_array(path, mode="r").shape == (0, 16)
