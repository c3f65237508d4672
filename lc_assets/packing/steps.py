"""Steps of equal cost: an order of packed rows in which those trained together cost the same.

Attention within pieces costs the squares of their lengths, so rows of equal length differ by any
factor, and a step takes as long as its most expensive rank. In this order every so many consecutive
rows are neighbours in cost: whichever number of ranks share them, one row each or several, their
sums are close. Groups are in random order, and so are the two halves of a group, neighbours in cost
too, and their halves, so that steps of fewer rows are closer; each row comes once.

No order of the grouped rows makes the groups' largest ones cost less in sum: the n-th most
expensive group has one at least as expensive as the first row behind n - 1 groups of the most
expensive rows.

Source: ProLong (arXiv 2410.02660) sorts batches by the same sum.
"""

import numpy as np

from lc_assets.arrays import Array, Int64s


def row_costs(row: Int64s, lengths: Int64s, *, n_rows: int, row_tokens: int) -> Int64s:
    """Sum of the squares of each row's pieces, padding among them; int64 [row].

    Args:
        row: of each piece.
        lengths: tokens of each piece.
        n_rows: number of rows.
        row_tokens: length of a row.

    >>> row_costs(np.array([0, 0, 1]), np.array([3, 5, 6]), n_rows=2, row_tokens=8)
    array([34, 40])
    """
    n_filled, costs = np.zeros((2, n_rows), np.int64)
    np.add.at(n_filled, row, lengths)
    np.add.at(costs, row, lengths**2)
    return np.asarray(costs + (row_tokens - n_filled) ** 2)


def equal_steps(costs: Array, drawn: Array, n_together: int) -> Int64s:
    """An order of rows in which groups of consecutive rows cost about the same.

    Args:
        costs: of each row, by any model.
        drawn: random number of each row, of which the order is made.
        n_together: rows of a group. The rows that are left over, the cheapest ones, come last.

    Returns:
        Each row once; int64.

    >>> equal_steps(np.array([9, 1, 5, 8, 5]), np.array([2, 0, 4, 3, 1]), 2).tolist()
    [4, 2, 0, 3, 1]
    """
    by_cost = np.lexsort((drawn, costs))
    left, whole = np.split(by_cost, [len(costs) % n_together])
    groups = _in_turns(whole.reshape(-1, n_together), drawn)
    turns = np.argsort(drawn[groups[:, 0]], kind="stable")
    rest = left[np.argsort(drawn[left], kind="stable")]
    return np.concatenate([groups[turns].ravel(), rest])


def _in_turns(groups: Int64s, drawn: Array) -> Int64s:
    """The rows of each group, (group, row), by cost: its halves in random order, or as many parts
    as its rows' smallest divisor.
    """
    n_groups, n_rows = groups.shape
    n_parts = next((parts for parts in range(2, n_rows) if n_rows % parts == 0), n_rows)
    parts = groups.reshape(n_groups, n_parts, n_rows // n_parts)
    if parts.shape[2] > 1:
        flat = parts.reshape(n_groups * n_parts, parts.shape[2])
        parts = _in_turns(flat, drawn).reshape(parts.shape)
    turns = np.argsort(drawn[parts[:, :, 0]], axis=1, kind="stable")
    return np.take_along_axis(parts, turns[:, :, None], axis=1).reshape(groups.shape)
