"""Frames of ids are decoded whole or refused."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from lc_assets.formats.arrays.zstd_frames import ZstdFrames

FRAMES = ZstdFrames(4)


def drawn(n_ids: int, dtype: type, kind: str) -> np.ndarray:
    """Ids that are stored as they are, coded, or as one repeated byte."""
    most = {"stored": np.iinfo(dtype).max, "coded": 300, "repeated": 0}[kind]
    return np.random.default_rng(n_ids).integers(0, most, n_ids, dtype, endpoint=True)


@given(
    n_ids=st.sampled_from([1, 40, 2560, 65_536, 150_000]),
    dtype=st.sampled_from([np.uint16, np.uint32]),
    kind=st.sampled_from(["stored", "coded", "repeated"]),
)
def test_a_frame_gives_its_ids(n_ids, dtype, kind):
    """Of one block or of several, of every type."""
    ids = drawn(n_ids, dtype, kind)
    np.testing.assert_array_equal(FRAMES.decoded(FRAMES.encode(ids), n_ids, ids.dtype), ids)


@pytest.mark.parametrize("n_ids", [40, 150_000])
def test_what_is_longer_or_cut_is_refused(n_ids):
    """Also by less than the checksum, after which all ids are there; and before another frame."""
    frame = FRAMES.encode(drawn(n_ids, np.uint16, "coded"))
    for content in (
        *(frame[:-n] for n in range(1, 9)),
        *(frame + more for more in (b"x", b"more", frame, frame[:4])),
    ):
        with pytest.raises(ValueError, match=r"."):
            FRAMES.decoded(content, n_ids, np.dtype(np.uint16))


@given(at=st.integers(0, 10**6), value=st.integers(1, 255))
def test_a_flipped_byte_is_found(at, value):
    """Or the ids are the same."""
    ids = drawn(2560, np.uint16, "coded")
    content = bytearray(FRAMES.encode(ids))
    content[at % len(content)] ^= value
    try:
        found = FRAMES.decoded(bytes(content), 2560, ids.dtype)
    except ValueError:
        return
    np.testing.assert_array_equal(found, ids)
