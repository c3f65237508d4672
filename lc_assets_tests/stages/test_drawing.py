"""Columns by group: small, the same bytes for the same numbers, whatever is missing."""

import pytest

from lc_assets.stages.drawing import columns

GROUPS = ("0-4K", "4K-8K")


@pytest.mark.parametrize("logarithmic", [False, True])
def test_the_same_numbers_give_the_same_small_picture(logarithmic):
    heights = {"natural": [0.5, 12.0], "paper": [None, 3.0]}
    one, again = (columns("Pairs", GROUPS, heights, unit="per token", logarithmic=logarithmic) for _ in range(2))
    assert one == again
    assert one.startswith(b"\x89PNG")
    assert len(one) < 40_000
    assert one != columns("Pairs", GROUPS, heights | {"paper": [0.5, 3.0]}, unit="per token", logarithmic=logarithmic)


@pytest.mark.parametrize("heights", [{}, {"natural": [None, None]}, {"natural": [0.0, 0.0]}])
def test_nothing_to_draw_is_drawn(heights):
    """Zeros have no place on a logarithmic axis."""
    assert columns("Pairs", GROUPS, heights, unit="per token", logarithmic=True).startswith(b"\x89PNG")
    assert columns("Pairs", (), {}, unit="per token").startswith(b"\x89PNG")
