"""What a configuration of the codec ``lc_ranked`` says: `formats.arrays.ranked`.

In version 1, the context is the rank before, at most 127, and contexts have no lists of their own.
Its classes are 256 single ranks, then 64 classes each of 2, 4, 8, ... ranks; one may lack a code.
The last class is the escape: the rank itself follows.
"""

from typing import Any, NamedTuple

import numpy as np

from lc_assets.arrays import Array, Int64s
from lc_assets.errors import BadInput
from lc_assets.formats.arrays.grid_layout import CODER, Configuration

CONTEXTS, CODE_BITS = 16, 8
"""Contexts, and the longest code: a table of 16 KiB, half a first-level cache."""
FIRST_CONTEXTS, FIRST_CODE_BITS = 128, 11
"""Those of version 1."""
OWN = 1028
"""Ids of a context's own list."""
MOST_IDS = 2**20 - 2
"""A code and the bits after it have at most 31 bits."""


class Codes(NamedTuple):
    """What a configuration says.

    Attributes:
        bits: of the longest code.
        firsts: first place of a class; 0 for the escape.
        extra: bits after the code of a class.
        lengths: (context, class) bits of a code; 0 where there is none.
        ids: of a rank.
        contexts: of what follows a rank, the fill value's too.
        own: the ranks in each context's own list; none in version 1.
    """

    bits: int
    firsts: Int64s
    extra: Int64s
    lengths: Int64s
    ids: Int64s
    contexts: Int64s
    own: "list[Array]"


def codes_of(configuration: Configuration) -> Codes:
    """Check a configuration and take it apart.

    Raises:
        BadInput: if it is none: says what is wrong.
    """
    n_ids, ranked, strings = configuration.vocab_size, configuration.ranked, configuration.lengths
    if not 1 <= n_ids <= MOST_IDS:
        raise BadInput(f"{CODER}: vocab_size must be 1 to {MOST_IDS:,}, got {n_ids:,}")
    if len(set(ranked)) < len(ranked) or not all(0 <= number < n_ids for number in ranked):
        raise BadInput(f"{CODER}: ranked must be different ids below {n_ids:,}")
    is_first = not (configuration.contexts or configuration.own)
    bits, n_contexts = (FIRST_CODE_BITS, FIRST_CONTEXTS) if is_first else (CODE_BITS, CONTEXTS)
    firsts, extra = _first_classes_of(n_ids) if is_first else classes_of(n_ids)
    if len(strings) != n_contexts or {*map(len, strings)} != {len(firsts)}:
        raise BadInput(f"{CODER}: lengths must be {n_contexts} strings of {len(firsts):,} digits")
    lengths = _numbers("lengths", "".join(strings), bits).reshape(n_contexts, -1)
    room = np.where(lengths, 1 << bits - lengths, 0).sum(axis=1)
    if room.max() > 1 << bits or not (lengths[:, -1:] if is_first else lengths).all():
        raise BadInput(f"{CODER}: a context has lengths that are no code's, or lacks a code")
    contexts = np.minimum(np.arange(n_ids + 1), FIRST_CONTEXTS - 1)
    own = [] if is_first else _own_lists(configuration)
    if not is_first:
        contexts[:] = 0
        contexts[: len(ranked)] = _numbers("contexts", configuration.contexts, CONTEXTS - 1)
    return Codes(bits, firsts, extra, lengths, ids_in_order(ranked, n_ids), contexts, own)


def _own_lists(configuration: Configuration) -> "list[Array]":
    n_ranked = len(configuration.ranked)
    if len(configuration.contexts) != n_ranked:
        raise BadInput(f"{CODER}: contexts must be {n_ranked:,} digits, one per ranked id")
    sizes = [len(ranks) for ranks in configuration.own]
    if len(sizes) != CONTEXTS or any(size % 2 or size > 2 * OWN for size in sizes):
        raise BadInput(f"{CODER}: own must be {CONTEXTS} lists of up to {OWN:,} uint16 numbers")
    own = [np.frombuffer(ranks, "<u2") for ranks in configuration.own]
    if any((ranks >= n_ranked).any() for ranks in own):
        raise BadInput(f"{CODER}: own must be ranks below {n_ranked:,}")
    return own


def _numbers(name: str, digits: str, most: int) -> Int64s:
    codes = np.frombuffer(digits.encode("ascii", "replace"), np.uint8).astype(np.int64)
    numbers = codes - np.where(codes > ord("9"), ord("a") - 10, ord("0"))
    if ((numbers < 0) | (numbers > most)).any():
        raise BadInput(f"{CODER}: {name} must be hexadecimal digits up to {most:x}")
    return numbers


def classes_of(n_ids: int) -> tuple[Int64s, Int64s]:
    """First place of each class, and the bits that say a place in it.

    Of a context's own list 8 single places, then two classes each of 2, 4, ... 256; of all ranks
    64, 128, ... as many as ids and the fill value need.

    >>> [part[[0, 8, 9, 23, 24, 25, -1]].tolist() for part in classes_of(300)]
    [[0, 8, 10, 772, 1028, 1092, 1220], [0, 1, 1, 8, 6, 7, 8]]
    """
    extra = np.concatenate([np.zeros(8, np.int64), np.repeat(np.arange(1, 9), 2), np.arange(6, 21)])
    return _classes_until(OWN + n_ids, extra)


def _first_classes_of(n_ids: int) -> tuple[Int64s, Int64s]:
    """Those of version 1."""
    extra = np.append(np.zeros(256, np.int64), np.repeat(np.arange(1, 20), 64))
    firsts, extra = _classes_until(n_ids, extra)
    return np.append(firsts, 0), np.append(extra, n_ids.bit_length())


def _classes_until(last: int, extra: Int64s) -> tuple[Int64s, Int64s]:
    firsts = np.cumsum(1 << extra) - (1 << extra)
    return firsts[firsts <= last], extra[firsts <= last]


def places_of(own: Array, n_ids: int) -> tuple[Int64s, Int64s]:
    """The place of each rank, the fill value's too, in the own list or behind it in all; and its
    class.
    """
    places = OWN + np.arange(n_ids + 1)
    places[own] = np.arange(len(own))
    return places, np.searchsorted(classes_of(n_ids)[0], places, side="right") - 1


def ids_in_order(ranked: Any, n_ids: int) -> Int64s:
    """The id of each rank."""
    return np.append(ranked, np.setdiff1d(np.arange(n_ids), ranked)).astype(np.int64)
