"""Growth: two statistics that differ."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from lc_assets.counts import Counts
from lc_assets.packing.lengths import PAPER, growth
from lc_assets.stages.longpack.page_index import beside_the_paper


@given(
    st.lists(st.tuples(st.integers(1, 1000), st.integers(0, 5000)), min_size=1, max_size=30),
    st.integers(0, 50),
)
def test_growth_is_what_it_says(documents, others):
    before = np.array([one for one, _ in documents])
    after = before + np.array([more for _, more in documents])
    found = growth(before, after, n_roots=len(documents) + others)
    assert found.n_packed == len(documents)
    assert found.hit_rate == len(documents) / (len(documents) + others)
    ratios = sorted(a / b for b, a in zip(before.tolist(), after.tolist(), strict=True))
    assert found.mean_of_ratios == pytest.approx(sum(ratios) / len(ratios))
    assert found.ratio_of_sums == pytest.approx(sum(after.tolist()) / sum(before.tolist()))
    assert ratios[(len(ratios) - 1) // 2] <= found.median_ratio <= ratios[len(ratios) // 2]
    assert ratios[0] <= found.ratio_of_sums <= ratios[-1]


def test_nothing_packed_is_no_growth():
    found = growth(np.zeros(0, np.int64), np.zeros(0, np.int64), n_roots=5)
    assert (found.hit_rate, found.ratio_of_sums, found.n_roots) == (0, 0, 5)
    assert growth(np.array([0]), np.array([7]), n_roots=1).mean_of_ratios == 7


def test_the_papers_figures_agree_with_themselves():
    assert round(PAPER.n_packed / PAPER.n_roots, 3) == PAPER.hit_rate


def test_growth_by_hand():
    """Three of eight roots that had a turn, of ten, grew 11, 2 and 1.5 times."""
    found = growth(np.array([10, 20, 100]), np.array([110, 40, 150]), n_roots=8)
    assert found.n_packed == 3
    assert found.mean_of_ratios == pytest.approx(14.5 / 3)
    assert found.ratio_of_sums == 300 / 130
    assert found.median_ratio == 2
    measures = {
        name: ours for name, ours, _ in beside_the_paper(found, Counts(extra={"roots": 10}))
    }
    assert (measures["hit rate"], measures["hit rate of turns"]) == (0.3, 0.375)
