"""Blending: the order in which a weighted mix takes samples from its data sets, as Megatron builds
it.

The rule is greedy: sample ``n`` comes from the data set that is furthest behind, the first with the
largest ``weight × max(n, 1) − taken``. So no data set is ever far from its share, and a longer
blend only appends.

The products and differences are rounded one by one, to double precision. Where a compiler fuses
them, as in the aarch64 build of megatron-core 0.16.1, the *same weights give another order*: 79,998
of 200,000 samples for weights 0.6 and 0.4. A blend that is published is the same on every machine.

Source: Megatron-LM ``helpers.cpp`` (``build_blending_indices``,
    ``build_exhaustive_blending_indices``), ``blended_megatron_dataset_builder.py``
    (``_get_size_per_split_per_dataset``), ``utils.py`` (``normalize``).

The compiled loop, `_draw`, does not compare all data sets for every sample. A *lane* is all data
sets with one weight. They are served in turn, so the next of them represents the lane. How far a
lane is behind at step ``n``, ``weight × max(n, 1) − rounds``, only increases until its round is
over, also in rounded arithmetic. So for a block of steps, only the lanes are compared that reach a
*bar* by its last step: as long as the furthest of these is at or above the bar, it is the furthest
of all. If it is not, a new block begins, with a lower bar. The multiplication and the subtraction
are rounded one by one; LLVM fuses them only on request, and a test reads the machine code.
"""

import math
from bisect import bisect_right
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from lc_assets.arrays import Bytes, Floats, Int16s, Int64s, Integers
from lc_assets.compiling import compiled
from lc_assets.errors import BadInput

MOST_DATASETS = 32_766
"""Megatron numbers data sets with an int16 and asserts that they are fewer than 32,767."""
MOST_DATASETS_UINT8 = 254
"""Megatron-DeepSpeed, BigScience's fork and GPT-NeoX number data sets in one byte, and assert that
they are fewer than 255.
"""
SURPLUS = 0.005
"""Samples of a data set that Megatron adds to those its blend should need, as a share
(``mid_level_dataset_surplus``).
"""

_FEW = 32
"""Up to this number, all lanes are compared at every step."""
_BLOCK = 16
"""Least number of steps of a block; the square root of the lanes if that is more."""
_ENDLESS = 2**62
_COUNTED = 2**20

Blend: TypeAlias = tuple[Int16s, Int64s]
"""``dataset_index`` and ``dataset_sample_index``."""


def normalise(weights: Sequence[float | int]) -> Floats:
    """Divide the weights by their sum, in double precision, as Megatron's ``normalize``.

    Megatron does so twice, when a mix is configured and when it is built; the second time may
    change a last bit.

    >>> normalise([3, 1])
    array([0.75, 0.25])

    Raises:
        BadInput: if there are none or too many, or one is not a positive finite number.
    """
    found = np.array(weights, np.float64)
    _check_count(len(found))
    wrong = np.flatnonzero(~(np.isfinite(found) & (found > 0)))
    if len(wrong):
        raise BadInput(
            f"weight {wrong[0]} is {found[wrong[0]]}: expected a positive number; to give a data "
            "set no weight, leave it out"
        )
    shares = found / np.sum(found)
    if not (shares > 0).all():
        raise BadInput(
            f"weights range from {found.min():g} to {found.max():g}: some shares are zero in "
            "double precision"
        )
    return shares


def targets(weights: Sequence[float | int], n_samples: int) -> list[int]:
    """Samples of each data set in a blend of at least ``n_samples``: its share, rounded up.

    Their sum is the size of the blend that Megatron builds.

    >>> targets([0.5, 0.25, 0.25], 10)
    [5, 3, 3]

    Raises:
        BadInput: if a weight or the number is out of range.
    """
    _check_size(n_samples)
    return [math.ceil(n_samples * weight) for weight in normalise(weights).tolist()]


def requests(
    weights: Sequence[float | int], n_samples: int, *, surplus: float | int = SURPLUS
) -> list[int]:
    """Samples that Megatron requests of each data set's index: the target plus a surplus, rounded
    up.

    >>> requests([0.5, 0.25, 0.25], 10)
    [6, 4, 4]

    Raises:
        BadInput: if a weight, the number or the surplus is out of range.
    """
    if not 0 <= surplus < math.inf:
        raise BadInput(f"the surplus must be a share of at least 0, got {surplus}")
    return [math.ceil(target * (1 + surplus)) for target in targets(weights, n_samples)]


def largest_request(weights: Sequence[float | int], size: int) -> int:
    """The most samples that can be requested of a blend with at most ``size``: see `targets`.

    >>> largest_request([0.5, 0.25, 0.25], 10), targets([0.5, 0.25, 0.25], 8)
    (8, [4, 2, 2])

    Raises:
        BadInput: if a weight or the size is out of range.
    """
    least = max(0, size - len(weights))
    sizes = range(least, size + 1)
    return least + bisect_right(sizes, size, key=lambda n: sum(targets(weights, n))) - 1


def blend(weights: Floats, size: int) -> Blend:
    """Build a blend.

    Args:
        weights: as `normalise` returns them; used unchanged.
        size: number of samples.

    Returns:
        For each sample, its data set (int16), and its number among that set's samples (int64).

    >>> blend(normalise([2, 1]), 6)
    (array([0, 1, 0, 0, 1, 0], dtype=int16), array([0, 0, 1, 2, 1, 3]))

    Raises:
        BadInput: if there are none or too many, or the size is negative.
    """
    _check_size(size)
    _check_count(len(weights))
    return _drawn(weights, np.full(len(weights), _ENDLESS, np.int64), size)


def blend_all(sizes: Sequence[int]) -> Blend:
    """Build the blend that takes every sample of every data set once, in proportion to their sizes.

    >>> blend_all([2, 1])
    (array([0, 1, 0], dtype=int16), array([0, 0, 1]))

    Raises:
        BadInput: if a size is below 1, where Megatron would write past the end of its arrays.
    """
    _check_count(len(sizes))
    if min(sizes) < 1:
        raise BadInput(
            f"data set {sizes.index(min(sizes))} has {min(sizes):,} samples, expected at least 1: "
            "leave it out"
        )
    limits = np.array(sizes, np.int64)
    return _drawn(limits / float(sum(sizes)), limits, sum(sizes))


def _drawn(weights: Floats, limits: Int64s, size: int) -> Blend:
    """Draw lane by lane; a lane shares weight and limit."""
    chosen, samples = np.empty(size, np.int16), np.empty(size, np.int64)
    _, lane_of = np.unique(np.rec.fromarrays([weights, limits]), return_inverse=True)
    members = np.argsort(lane_of, kind="stable").astype(np.int64, copy=False)
    starts = np.concatenate([[0], np.cumsum(np.bincount(lane_of))]).astype(np.int64, copy=False)
    heads = members[starts[:-1]]
    _draw(weights[heads], limits[heads], starts, members, chosen, samples)
    return chosen, samples


@compiled
def _draw(
    weights: Floats,
    limits: Int64s,
    starts: Int64s,
    members: Int64s,
    chosen: Int16s,
    samples: Int64s,
) -> None:
    """Fill in ``chosen`` and ``samples``; see the module.

    Args:
        weights: weight of each lane.
        limits: samples of each data set of a lane.
        starts: lane ``l`` is ``members[starts[l] : starts[l + 1]]``.
        members: numbers of data sets, ascending within a lane.
        chosen: data set of each sample; filled in.
        samples: number of the sample in its data set; filled in.
    """
    n_lanes = len(weights)
    # Per lane: rounds in which all its data sets were served, and data sets served since. Per lane
    # that is compared: its number, weight, rounds, and next data set.
    rounds, turns = np.zeros(n_lanes), np.zeros(n_lanes, np.int64)
    near, following = np.empty(n_lanes, np.int64), np.empty(n_lanes, np.int64)
    near_weights, near_rounds, behind = np.empty(n_lanes), np.empty(n_lanes), np.empty(n_lanes)
    block, margin = max(_BLOCK, int(np.sqrt(n_lanes))), np.inf if n_lanes <= _FEW else 0.125
    n = 0
    while n < len(chosen):
        # Begin a block: put the bar below the furthest lane, and find those that will reach it.
        until = min(n + block, len(chosen))
        now, last, bar = float(max(n, 1)), float(max(until - 1, 1)), -np.inf
        for lane in range(n_lanes):
            behind[lane] = weights[lane] * now - rounds[lane]
            # Not max(), which checks for NaN.
            bar = behind[lane] if behind[lane] > bar else bar
        bar -= margin
        n_near = 0
        for lane in range(n_lanes):
            near[n_near] = lane
            n_near += int(weights[lane] * last - rounds[lane] >= bar)
        for at in range(n_near):
            lane = near[at]
            near_weights[at], near_rounds[at] = weights[lane], rounds[lane]
            following[at] = members[starts[lane] + turns[lane]]
        while n < until:
            # Find the furthest lane; the smaller data set breaks ties.
            now, most, best = float(max(n, 1)), -np.inf, 0
            for at in range(n_near):
                behind[at] = near_weights[at] * now - near_rounds[at]
                most = behind[at] if behind[at] > most else most
            if most < bar:
                break
            while behind[best] != most:
                best += 1
            for at in range(best + 1, n_near):
                if behind[at] == most and following[at] < following[best]:
                    best = at
            # Serve its next data set.
            lane = near[best]
            chosen[n], samples[n] = following[best], np.int64(near_rounds[best])
            n += 1
            turns[lane] += 1
            if starts[lane] + turns[lane] == starts[lane + 1]:
                turns[lane] = 0
                near_rounds[best] += 1
                if near_rounds[best] >= limits[lane]:
                    near_rounds[best] = np.inf
                rounds[lane] = near_rounds[best]
            following[best] = members[starts[lane] + turns[lane]]
        # If the bar was too high, lower it; if too many lanes were compared, raise it.
        if n < until:
            margin *= 2
        elif n_near > 2 * block:
            margin *= 0.8


def counts(chosen: Integers, n_datasets: int) -> list[int]:
    """Samples of each data set in a blend.

    >>> counts(np.array([0, 2, 0], np.int16), 3)
    [2, 0, 1]
    """
    found = np.zeros(n_datasets, np.int64)
    # In parts, because bincount converts every entry to eight bytes.
    for start in range(0, len(chosen), _COUNTED):
        found += np.bincount(chosen[start : start + _COUNTED], minlength=n_datasets)
    return [int(count) for count in found]


def continued_blend(before: Blend, after: int, rest: Blend) -> Blend:
    """The first ``after`` samples of one blend, then another one over the same data sets.

    >>> old = np.array([0, 1, 0, 1], np.int16), np.array([0, 0, 1, 1])
    >>> new = np.array([1, 1, 2], np.int16), np.array([0, 1, 0])
    >>> continued_blend(old, 3, new)
    (array([0, 1, 0, 1, 1, 2], dtype=int16), array([0, 0, 1, 1, 2, 0]))

    Raises:
        BadInput: if the first blend is shorter than that.
    """
    if not 0 <= after <= len(before[0]):
        raise BadInput(f"cannot keep {after:,} samples of a mix of {len(before[0]):,}")
    kept, rest_datasets = before[0][:after], rest[0]
    n_datasets = 1 + max(int(part.max(initial=0)) for part in (kept, rest_datasets))
    begun = np.array(counts(kept, n_datasets), np.int64)
    return np.concatenate([kept, rest_datasets]), np.concatenate(
        [before[1][:after], rest[1] + begun[rest_datasets]]
    )


def for_uint8(chosen: Int16s, n_datasets: int) -> Bytes:
    """Data set numbers in one byte, as in Megatron's older forks.

    >>> for_uint8(np.array([0, 2], np.int16), 3)
    array([0, 2], dtype=uint8)

    Raises:
        BadInput: if there are more data sets than the forks allow.
    """
    if n_datasets > MOST_DATASETS_UINT8:
        raise BadInput(
            f"{n_datasets:,} data sets, but a fork with one-byte numbers allows at most "
            f"{MOST_DATASETS_UINT8}: merge some"
        )
    return chosen.astype(np.uint8)


def tempered(sizes: Sequence[int], temperature: float) -> list[float]:
    """Weights by size to the power of ``1 / temperature``.

    1 is in proportion to size; a higher temperature favours small sources, up to equal weights.

    >>> [round(weight, 3) for weight in tempered([900, 100], 2.0)]
    [0.75, 0.25]
    """
    if temperature == 1:
        return [float(weight) for weight in normalise(sizes).tolist()]
    powers = np.exp(np.log(np.array(sizes, np.float64) / max(sizes)) / temperature)
    return [float(weight) for weight in normalise(powers.tolist()).tolist()]


def largest_without_repeats(weights: Floats, available: Sequence[int]) -> int:
    """Size of the largest blend that repeats no sample.

    >>> largest_without_repeats(np.array([0.5, 0.5]), [10, 4])
    9
    """
    limits = np.array(available, np.int64)
    # A blend of one sample more of every source than it has exceeds at least one of them.
    size = int(min((limits + 1) / weights)) + len(weights) + 1
    datasets, samples = blend(weights, size)
    exceeded = np.flatnonzero(samples >= limits[datasets])
    return int(exceeded[0]) if len(exceeded) else size


def _check_count(n_datasets: int) -> None:
    if not 1 <= n_datasets <= MOST_DATASETS:
        raise BadInput(f"a blend must have 1 to {MOST_DATASETS:,} data sets, got {n_datasets:,}")


def _check_size(n_samples: int) -> None:
    if n_samples < 0:
        raise BadInput(f"a blend must have at least 0 samples, got {n_samples:,}")
