"""The two dtype rules at their edges, and a cast that never wraps."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as hnp

from lc_assets.errors import BadInput, Mismatch
from lc_assets.tokens.dtypes import (
    INT32,
    UINT16,
    UINT32,
    as_dtype,
    curator_dtype,
    header_warning,
    megatron_dtype,
    memory_dtype,
    stored_dtype,
)
from lc_assets.vocabulary import GPT2_VOCAB_SIZE


@pytest.mark.parametrize("vocab_size", [1, 65_499, 65_500, 65_536, 65_537, 200_000])
def test_what_is_stored_is_megatrons_rule_unless_one_says_otherwise(vocab_size):
    """And a reader that goes by the other rule is warned of exactly where the two part."""
    assert stored_dtype(vocab_size) == megatron_dtype(vocab_size)
    assert stored_dtype(vocab_size, "int32") == INT32
    for dtype in (UINT16, INT32):
        assert (header_warning(vocab_size, dtype) is None) == (dtype == curator_dtype(vocab_size))
    if vocab_size <= 65_536:
        assert stored_dtype(vocab_size, "uint16") == UINT16
    else:
        with pytest.raises(BadInput, match="use int32 or auto"):
            stored_dtype(vocab_size, "uint16")


@pytest.mark.parametrize(
    ("vocab_size", "megatron", "curator", "memory"),
    [
        (1, UINT16, UINT16, UINT16),
        (GPT2_VOCAB_SIZE, UINT16, UINT16, UINT16),
        (65_499, UINT16, UINT16, UINT16),
        (65_500, INT32, UINT16, UINT16),
        (65_535, INT32, UINT16, UINT16),
        (65_536, INT32, UINT16, UINT16),
        (65_537, INT32, INT32, UINT32),
    ],
)
def test_the_rules_part_between_65500_and_65536(vocab_size, megatron, curator, memory):
    """Megatron's writer goes to int32 at 65,500, Curator and Megatron's header-less reader above
    65,536.
    """
    assert (megatron_dtype(vocab_size), curator_dtype(vocab_size), memory_dtype(vocab_size)) == (
        megatron,
        curator,
        memory,
    )


@given(
    hnp.arrays(
        st.sampled_from([np.uint16, np.int32, np.uint32, np.int64, np.uint64]), st.integers(0, 6)
    ),
    st.sampled_from([UINT16, INT32]),
)
def test_a_cast_keeps_every_id_or_refuses(ids, dtype):
    """Whatever comes out equals what went in."""
    fits = all(np.iinfo(dtype).min <= value <= np.iinfo(dtype).max for value in ids.tolist())
    if fits:
        stored = as_dtype(ids, dtype)
        assert stored.dtype == dtype
        assert stored.tolist() == ids.tolist()
    else:
        with pytest.raises(Mismatch):
            as_dtype(ids, dtype)


def test_the_id_that_does_not_fit_is_named():
    """65,536 would become 0, which is a real token."""
    with pytest.raises(Mismatch, match=r"token id 65,536 does not fit uint16 \(0 to 65,535\)"):
        as_dtype(np.array([7, 65_536]), UINT16)
    with pytest.raises(Mismatch, match="token id -1 does not fit"):
        as_dtype(np.array([70_000, -1]), UINT16)


def test_ids_are_integers():
    """Floating point is a mistake upstream."""
    with pytest.raises(BadInput, match="integers"):
        as_dtype(np.array([1.0]), UINT16)
