"""Frames decoded into an array, as where several chunks form one, against zstd's own call."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from lc_assets.formats.arrays.zstd_frames import ZstdFrames

FRAMES = ZstdFrames(4)


def either_way(content: bytes, n_ids: int, dtype: np.dtype) -> list[np.ndarray | None]:
    """The ids as a new array and in a given one; None where the bytes are refused."""
    found, out = [], np.empty(n_ids, dtype)
    for decode in (
        lambda: FRAMES.decoded(content, n_ids, dtype),
        lambda: FRAMES.decode(content, out) or out,
    ):
        try:
            found.append(decode())
        except ValueError:
            found.append(None)
    return found


def drawn(n_ids: int, dtype: type, kind: str) -> np.ndarray:
    """Ids that are stored as they are, coded, or as one repeated byte."""
    most = {"stored": np.iinfo(dtype).max, "coded": 300, "repeated": 0}[kind]
    return np.random.default_rng(n_ids).integers(0, most, n_ids, dtype, endpoint=True)


@given(
    n_ids=st.sampled_from([1, 40, 2560, 65_536, 150_000]),
    dtype=st.sampled_from([np.uint16, np.uint32]),
    kind=st.sampled_from(["stored", "coded", "repeated"]),
)
def test_both_ways_give_the_ids(n_ids, dtype, kind):
    """Of one block or of several, of every type."""
    ids = drawn(n_ids, dtype, kind)
    for found in either_way(FRAMES.encode(ids), n_ids, ids.dtype):
        np.testing.assert_array_equal(found, ids)


@pytest.mark.parametrize("n_ids", [40, 150_000])
def test_both_ways_refuse_what_is_longer_or_cut(n_ids):
    """Also by less than the checksum, after which all ids are there; and before another frame."""
    ids = drawn(n_ids, np.uint16, "coded")
    frame = FRAMES.encode(ids)
    for content in (
        *(frame[:-n] for n in range(1, 9)),
        *(frame + more for more in (b"x", b"more", frame, frame[:4])),
    ):
        assert either_way(content, n_ids, ids.dtype) == [None, None]


@given(at=st.integers(0, 10**6), value=st.integers(1, 255))
def test_both_ways_find_a_flipped_byte(at, value):
    """Or the ids are the same."""
    ids = drawn(2560, np.uint16, "coded")
    content = bytearray(FRAMES.encode(ids))
    content[at % len(content)] ^= value
    for found in either_way(bytes(content), 2560, ids.dtype):
        assert found is None or (found == ids).all()
