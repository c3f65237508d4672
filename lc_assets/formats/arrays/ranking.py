"""Make the configuration of the codec ``lc_ranked`` from ids: `formats.arrays.ranked`.

Contexts are classes of ids after which much the same follows: each id is moved to the context by
whose frequencies those after it take the fewest bits, until none moves.

Source: the exchange algorithm of Kneser and Ney 1993, with classes on one side; Huffman 1952.
"""

import heapq
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from lc_assets.arrays import Array, Floats, Int64s
from lc_assets.formats.arrays.grid_layout import Configuration
from lc_assets.formats.arrays.ranked_codes import (
    CODE_BITS,
    CONTEXTS,
    OWN,
    classes_of,
    ids_in_order,
    places_of,
)

if TYPE_CHECKING:
    from lc_assets.formats.arrays.chunks import TokenArray

MOST_RANKED = 2**14
"""Ids that are ranked by frequency: those behind are rare, and the metadata stay small."""
PAIRS = 2**21
"""Pairs of ids by which contexts are made."""
ROUNDS = 15
_BLOCK = 2**20


def configuration_for(rows: "TokenArray", vocab_size: int) -> Configuration:
    """The configuration that suits some rows, (row, token); by it, any ids of the vocabulary can be
    coded.
    """
    flat = rows.ravel()
    counts = np.bincount(flat, minlength=vocab_size)
    ranked = np.argsort(-counts, kind="stable")[: min(MOST_RANKED, int((counts > 0).sum()))]
    ranks, contexts = np.argsort(ids_in_order(ranked, vocab_size)), np.zeros(vocab_size, np.int64)
    step, n_ranked = max(flat.size // PAIRS, 1), len(ranked)
    contexts[:n_ranked] = _contexts(ranks[flat[:-1:step]], ranks[flat[1::step]], n_ranked)
    seen = np.zeros(CONTEXTS * vocab_size, np.int64)
    for begin in range(0, flat.size, _BLOCK):
        own = ranks[flat[begin : begin + _BLOCK + 1]]
        seen += np.bincount(contexts[own[:-1]] * vocab_size + own[1:], minlength=len(seen))
    lists, lengths = [], []
    for counts in seen.reshape(CONTEXTS, vocab_size):
        own = np.argsort(-counts[:n_ranked], kind="stable")[:OWN]
        lists.append(own.astype("<u2").tobytes())
        _, found = places_of(own, vocab_size)
        weights = np.bincount(found[:-1], counts, len(classes_of(vocab_size)[0])).astype(np.int64)
        lengths.append("".join(f"{length:x}" for length in _code_lengths(weights)))
    digits = "".join(f"{context:x}" for context in contexts[:n_ranked])
    return Configuration(vocab_size, tuple(ranked.tolist()), tuple(lengths), digits, tuple(lists))


def _contexts(before: Int64s, after: Int64s, n_ranked: int) -> Int64s:
    """A context for each ranked id, by pairs of ranks."""
    width = n_ranked + 1
    is_ranked = before < n_ranked
    keys = before[is_ranked] * width + np.minimum(after[is_ranked], n_ranked)
    keys, counts = np.unique(keys, return_counts=True)
    before, after = keys // width, keys % width
    everywhere = np.bincount(after, counts, width)
    contexts = np.arange(n_ranked) % CONTEXTS
    for _ in range(ROUNDS):
        costs = []
        for context in range(CONTEXTS):
            own = np.bincount(after, counts * (contexts[before] == context), width)
            bits = _bits(1024 * own + everywhere + 1)
            costs.append(np.bincount(before, counts * bits[after], n_ranked))
        moved = np.argmin(costs, axis=0)
        if np.array_equal(moved, contexts):
            break
        contexts = moved
    return contexts


def _bits(weights: Array) -> Floats:
    """Whole 256ths of a bit that a code by such weights takes: the logarithm is linear between
    powers of two, so that it is the same on every machine (Mitchell 1962).

    >>> _bits(np.array([2.0, 6.0, 8.0]))
    array([768., 384., 256.])
    """
    mantissas, exponents = np.frexp(np.append(weights, weights.sum()))
    logarithms = np.floor(256 * (exponents + 2 * mantissas))
    bits: Floats = logarithms[-1] - logarithms[:-1]
    return bits


def _code_lengths(weights: Int64s) -> list[int]:
    """Bits of the code of each class; none is longer than `CODE_BITS`."""
    weights = np.maximum(weights, 1)
    while max(depths := _huffman(weights.tolist())) > CODE_BITS:
        weights = (weights >> 1) + 1
    return depths


def _huffman(weights: Sequence[int]) -> list[int]:
    """Depths of the leaves of a Huffman tree; of equal weights the earlier is taken first.

    >>> _huffman([8, 1, 1, 2])
    [1, 3, 3, 2]
    """
    heap = [(weight, number) for number, weight in enumerate(weights)]
    heapq.heapify(heap)
    parents = [0] * (2 * len(weights) - 1)
    for node in range(len(weights), len(parents)):
        (lightest, one), (light, other) = heapq.heappop(heap), heapq.heappop(heap)
        parents[one] = parents[other] = node
        heapq.heappush(heap, (lightest + light, node))
    depths = [0] * len(parents)
    for node in reversed(range(len(parents) - 1)):
        depths[node] = depths[parents[node]] + 1
    return depths[: len(weights)]
