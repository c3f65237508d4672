"""Steps of equal cost: every row once, keyed, and the largest rank close to the mean."""

import itertools

import numpy as np
import pytest
from hypothesis import given, strategies as st

from lc_assets.packing.methods import Shape, pack
from lc_assets.packing.steps import equal_steps, row_costs

ROW_TOKENS = 8192


def imbalance(costs: np.ndarray, n_ranks: int, rows_per_rank: int) -> float:
    """How much more the most expensive rank of a step costs than the mean, over all steps; whole
    steps are counted.
    """
    n_rows = n_ranks * rows_per_rank
    whole = costs[: len(costs) // n_rows * n_rows].reshape(-1, n_ranks, rows_per_rank)
    ranks = whole.sum(axis=2, dtype=np.float64)
    return float(ranks.max(axis=1).sum() / ranks.mean(axis=1).sum())


@given(
    costs=st.lists(st.integers(0, 30), max_size=60),
    n_together=st.integers(1, 9),
    seed=st.integers(0, 5),
)
def test_every_row_comes_once_among_its_neighbours_in_cost(costs, n_together, seed):
    drawn = np.random.default_rng(seed).permutation(len(costs))
    order = equal_steps(np.array(costs, np.int64), drawn, n_together)
    assert sorted(order.tolist()) == list(range(len(costs)))
    n_whole = len(costs) // n_together * n_together
    groups = np.array(costs, np.int64)[order][:n_whole].reshape(-1, n_together)
    by_cost = groups[np.lexsort((groups.max(axis=1, initial=0), groups.min(axis=1, initial=99)))]
    assert (by_cost[:-1].max(axis=1, initial=0) <= by_cost[1:].min(axis=1, initial=99)).all()


def is_possible(costs: np.ndarray, n_together: int, most: float) -> bool:
    """Whether any order has an `imbalance` of at most ``most``, whichever rows are left over: the
    least sum of the groups' largest costs less ``most`` times their means, group by group.

    Groups of neighbours in cost have the least largest ones (`lc_assets.packing.steps`).
    """
    ordered = np.sort(costs)[::-1].astype(np.float64)
    sums = np.append(0, np.cumsum(ordered))
    n_groups, n_left = divmod(len(costs), n_together)
    least = np.zeros(n_left + 1)  # by how many rows before are left over
    for first in range(0, n_groups * n_together, n_together):
        at = first + np.arange(n_left + 1)
        means = (sums[at + n_together] - sums[at]) / n_together
        least = np.minimum.accumulate(least + ordered[at] - most * means)
    return bool(least[-1] <= 0)


@given(costs=st.lists(st.integers(1, 30), min_size=4, max_size=6), n_together=st.integers(2, 3))
def test_what_is_possible_is_the_best_of_all_orders(costs, n_together):
    costs = np.array(costs)
    best = min(
        imbalance(costs[[*o]], n_together, 1) for o in itertools.permutations(range(len(costs)))
    )
    assert is_possible(costs, n_together, best + 1e-9)
    assert not is_possible(costs, n_together, best - 1e-9)


@given(costs=st.lists(st.integers(1, 30), min_size=6, max_size=6), n_together=st.integers(2, 3))
def test_no_other_order_has_more_equal_groups(costs, n_together):
    costs = np.array(costs, np.int64)
    found = imbalance(costs[equal_steps(costs, np.arange(len(costs)), n_together)], n_together, 1)
    others = (imbalance(np.array(order), n_together, 1) for order in itertools.permutations(costs))
    assert found <= min(others) + 1e-9


def costs_of_a_crawl(row_tokens: int, n_documents: int) -> np.ndarray:
    """Of rows packed with documents of a crawl's lengths."""
    rng = np.random.default_rng(0)
    lengths = np.clip(rng.lognormal(np.log(1100), 1.3, n_documents), 1, 10**6).astype(np.int64)
    shape = Shape(row_tokens=row_tokens, segment_tokens=4096)
    order = rng.permutation(len(lengths))
    packing = pack(lengths, method="bestfit", shape=shape, ends=None, order=order)
    lengths, n_rows = packing.pieces.lengths, packing.n_rows
    return row_costs(packing.row, lengths, n_rows=n_rows, row_tokens=row_tokens)


@pytest.fixture(scope="module")
def costs():
    return costs_of_a_crawl(ROW_TOKENS, 300_000)


@pytest.mark.parametrize(("n_ranks", "rows_per_rank"), [(8, 1), (8, 4), (64, 1), (64, 4), (512, 1)])
def test_the_largest_rank_costs_at_most_two_percent_more(costs, n_ranks, rows_per_rank):
    """In one order for all numbers of ranks; a random one costs a third more or worse."""
    drawn = np.random.default_rng(1).permutation(len(costs))
    order = equal_steps(costs, drawn, 512)
    assert imbalance(costs[order], n_ranks, rows_per_rank) <= 1.02
    assert imbalance(costs[np.argsort(drawn)], n_ranks, rows_per_rank) > 1.3


@pytest.mark.parametrize(
    ("n_documents", "shapes"),
    [(10**6, [(8, 1), (8, 4), (64, 1), (64, 4)]), (2 * 10**6, [(512, 1)])],
)
def test_so_it_does_in_fewer_groups_of_long_rows(n_documents, shapes):
    """39,147 and 78,235 rows. 64 × 4: 1.030 where eighths of a group, not halves, are neighbours."""
    costs = costs_of_a_crawl(65_536, n_documents)
    costs = costs[equal_steps(costs, np.random.default_rng(1).permutation(len(costs)), 512)]
    assert max(imbalance(costs, *shape) for shape in shapes) <= 1.02


def test_so_few_groups_of_long_rows_cannot_cost_the_same():
    """76 groups of 512: whatever the order, the largest rank costs 3.4 % more than the mean; ours
    is 0.5 % above that, as its cheapest rows are left over.
    """
    costs = costs_of_a_crawl(65_536, 10**6)
    assert len(costs) // 512 == 76
    assert not is_possible(costs, 512, 1.034)
    assert is_possible(costs, 512, 1.035)
    order = equal_steps(costs, np.random.default_rng(1).permutation(len(costs)), 512)
    assert imbalance(costs[order], 512, 1) < 1.039


def test_fewer_ranks_are_closer_within_a_group():
    """Few groups: 1.047 and 1.095 without parts of them."""
    costs = np.exp(np.random.default_rng(3).normal(0, 0.7, 39_000))
    order = equal_steps(costs, np.random.default_rng(1).permutation(len(costs)), 512)
    assert imbalance(costs[order], 8, 1) <= 1.01
    assert imbalance(costs[order], 64, 1) <= 1.02
    octets = np.sort(costs[order][: len(costs) // 8 * 8].reshape(-1, 8), axis=1)
    assert (costs[order][: len(octets) * 8].reshape(-1, 8) != octets).mean() > 0.8


def test_another_model_of_cost_and_larger_steps(costs):
    """With a cost per token, and four rows for each of 512 ranks."""
    modelled = costs + 12.0 * 4096 * ROW_TOKENS
    order = equal_steps(modelled, np.random.default_rng(1).permutation(len(costs)), 2048)
    assert imbalance(modelled[order], 512, 4) <= 1.02
