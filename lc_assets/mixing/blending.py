"""Blending: the order in which a weighted mix takes samples from its data sets, as Megatron draws
it up.

The rule is greedy: sample ``n`` comes from the data set that is furthest behind, the first with the
largest ``weight × max(n, 1) − taken``. So no data set is ever far from its share, and a longer
blend only appends.

The products and differences are rounded one by one, to double precision. That matters: where a
compiler fuses them (the aarch64 build of megatron-core 0.16.1 does), the *same weights give another
order*: 79,998 of 200,000 places for weights 0.6 and 0.4. A blend that is published is the same on
every machine.

Here: the order and the sizes that go with it. Not here: what a sample is
    (`lc_assets.mixing.gpt_index`), files.
Source: Megatron-LM ``helpers.cpp`` (``build_blending_indices``,
    ``build_exhaustive_blending_indices``),
``blended_megatron_dataset_builder.py`` (``_get_size_per_split_per_dataset``), ``utils.py``
(``normalize``).
"""

import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from jaxtyping import Float64, Int16, Int64, Integer, UInt8

from lc_assets.compiling import COMPILED
from lc_assets.errors import BadInput

MOST_DATASETS = 32_766
"""Megatron numbers data sets with an int16 and asserts that they are fewer than 32,767."""
MOST_DATASETS_UINT8 = 254
"""Megatron-DeepSpeed, BigScience's fork and GPT-NeoX number them in one byte, and assert that they
are fewer than 255.
"""
SURPLUS = 0.005
"""Share by which Megatron draws up more samples of a data set than its blend should need
(``mid_level_dataset_surplus``).
"""

FEW = 64
"""As many data sets are all looked at for every sample: 10 to 40 ns; what many need costs 60."""
SHARED = 4
"""Unless so many of them share a weight: then they are drawn lane by lane, 10 ns however many there
are.
"""
COMPILED_FROM = 1_000_000
"""Looks (samples × data sets) from which compiled code is worth loading: numba takes half a second
to import.
"""
_ENDLESS = 2**62
_COUNTED = 2**20

Blend: TypeAlias = tuple[Int16[np.ndarray, " sample"], Int64[np.ndarray, " sample"]]
"""``dataset_index`` and ``dataset_sample_index``."""


def normalise(weights: Sequence[float | int]) -> Float64[np.ndarray, " dataset"]:
    """Divide the weights by their sum, in double precision, as Megatron's ``normalize``.

    Megatron does it twice over, when a mix is set up and when it is drawn up; the second may move a
    last bit.

    >>> normalise([3, 1])
    array([0.75, 0.25])

    Raises:
        BadInput: when there is none or too many, or one is not a positive finite number.
    """
    found = np.array(weights, np.float64)
    _check_count(len(found))
    wrong = np.flatnonzero(~(np.isfinite(found) & (found > 0)))
    if len(wrong):
        raise BadInput(
            f"weight {wrong[0]} is {found[wrong[0]]}: wanted a positive number; leave a data set "
            "out to give it none"
        )
    shares = found / np.sum(found)
    if not (shares > 0).all():
        raise BadInput(
            f"weights from {found.min():g} to {found.max():g} lie too far apart: some shares are "
            "zero"
        )
    return shares


def targets(weights: Sequence[float | int], n_samples: int) -> list[int]:
    """Samples that each data set gives to a blend of at least ``n_samples``: its share, rounded up.

    Their sum is the size of the blend that Megatron draws up.

    >>> targets([0.5, 0.25, 0.25], 10)
    [5, 3, 3]

    Raises:
        BadInput: when a weight or the number cannot be meant.
    """
    _check_size(n_samples)
    return [math.ceil(n_samples * weight) for weight in normalise(weights).tolist()]


def requests(
    weights: Sequence[float | int], n_samples: int, *, surplus: float | int = SURPLUS
) -> list[int]:
    """Samples that Megatron asks each data set's own index to hold: the target and a surplus,
    rounded up.

    >>> requests([0.5, 0.25, 0.25], 10)
    [6, 4, 4]

    Raises:
        BadInput: when a weight, the number or the surplus cannot be meant.
    """
    if not 0 <= surplus < math.inf:
        raise BadInput(f"the surplus is a share of at least 0, got {surplus}")
    return [math.ceil(target * (1 + surplus)) for target in targets(weights, n_samples)]


def blend(weights: Float64[np.ndarray, " dataset"], size: int) -> Blend:
    """Draw up a blend.

    Args:
        weights: as `normalise` gives them; taken as they are.
        size: number of samples.

    Returns:
        For each sample: its data set (int16), and which of that set's samples it is, counted from 0
        (int64).

    >>> blend(normalise([2, 1]), 6)
    (array([0, 1, 0, 0, 1, 0], dtype=int16), array([0, 0, 1, 2, 1, 3]))

    Raises:
        BadInput: when a weight is not a positive finite number, or the size is negative.
    """
    _check_size(size)
    _check_count(len(weights))
    if not (np.isfinite(weights) & (weights > 0)).all():
        raise BadInput(f"weights are positive numbers, got {weights.min()} to {weights.max()}")
    return _drawn(weights, np.full(len(weights), _ENDLESS, np.int64), size)


def blend_all(sizes: Sequence[int]) -> Blend:
    """Draw up the blend that takes every sample of every data set once, in proportion to their
    sizes.

    >>> blend_all([2, 1])
    (array([0, 1, 0], dtype=int16), array([0, 0, 1]))

    Raises:
        BadInput: when a size is not at least 1 (Megatron would write past the end of its arrays).
    """
    _check_count(len(sizes))
    if min(sizes) < 1:
        raise BadInput(
            f"data set {sizes.index(min(sizes))} has {min(sizes):,} samples; wanted at least 1: "
            "leave it out"
        )
    limits = np.array(sizes, np.int64)
    return _drawn(limits / float(sum(sizes)), limits, sum(sizes))


def plain_blend(
    weights: Float64[np.ndarray, " dataset"], limits: Int64[np.ndarray, " dataset"], size: int
) -> Blend:
    """The rule in NumPy, for small blends and where there is no compiler."""
    taken, behind = np.zeros(len(weights)), np.empty(len(weights))
    chosen = np.empty(size, np.int16)
    for n in range(size):
        # Two calls, each rounding on its own: one fused step would give another order. argmax
        # returns the first largest.
        np.multiply(weights, float(max(n, 1)), out=behind)
        np.subtract(behind, taken, out=behind)
        chosen[n] = dataset = int(behind.argmax())
        taken[dataset] += 1
        if taken[dataset] >= limits[dataset]:
            taken[dataset] = np.inf  # spent: never behind again
    return chosen, occurrence(chosen)


def compiled_blend(
    weights: Float64[np.ndarray, " dataset"], limits: Int64[np.ndarray, " dataset"], size: int
) -> Blend:
    """The rule in compiled code: a few data sets one by one, many of them lane by lane."""
    # Numba takes half a second to import.
    from lc_assets.mixing.kernels.drawing import draw, draw_few  # noqa: PLC0415

    chosen, samples = np.empty(size, np.int16), np.empty(size, np.int64)
    lane_limits, lane_of = np.unique(np.rec.fromarrays([weights, limits]), return_inverse=True)
    if len(weights) <= FEW and SHARED * len(lane_limits) > len(weights):
        draw_few(weights, limits, chosen, samples)
        return chosen, samples
    members = np.argsort(lane_of, kind="stable").astype(np.int64, copy=False)
    starts = np.concatenate([[0], np.cumsum(np.bincount(lane_of))]).astype(np.int64, copy=False)
    spokesmen = members[starts[:-1]]
    draw(weights[spokesmen], limits[spokesmen], starts, members, chosen, samples)
    return chosen, samples


def _drawn(
    weights: Float64[np.ndarray, " dataset"], limits: Int64[np.ndarray, " dataset"], size: int
) -> Blend:
    worth_it = COMPILED and size * (20 + len(weights)) >= COMPILED_FROM
    return (compiled_blend if worth_it else plain_blend)(weights, limits, size)


def counts(chosen: Integer[np.ndarray, " sample"], n_datasets: int) -> list[int]:
    """How often each data set was chosen.

    >>> counts(np.array([0, 2, 0], np.int16), 3)
    [2, 0, 1]
    """
    found = np.zeros(n_datasets, np.int64)
    for start in range(
        0, len(chosen), _COUNTED
    ):  # a stretch at a time: bincount makes eight bytes of each entry
        found += np.bincount(chosen[start : start + _COUNTED], minlength=n_datasets)
    return [int(count) for count in found]


def for_uint8(
    chosen: Int16[np.ndarray, " sample"], n_datasets: int
) -> UInt8[np.ndarray, " sample"]:
    """The same blend as Megatron's older forks number it, in one byte.

    >>> for_uint8(np.array([0, 2], np.int16), 3)
    array([0, 2], dtype=uint8)

    Raises:
        BadInput: when there are more data sets than the forks take.
    """
    if n_datasets > MOST_DATASETS_UINT8:
        raise BadInput(
            f"{n_datasets:,} data sets; a fork that numbers them in one byte takes at most "
            f"{MOST_DATASETS_UINT8}: merge some"
        )
    return chosen.astype(np.uint8)


def occurrence(chosen: Int16[np.ndarray, " sample"]) -> Int64[np.ndarray, " sample"]:
    """How often each value stood before its place.

    >>> occurrence(np.array([4, 4, 1, 4], np.int16))
    array([0, 1, 0, 2])
    """
    order = np.argsort(chosen, kind="stable")
    counts = np.bincount(chosen) if len(chosen) else np.zeros(0, np.int64)
    first = np.cumsum(counts) - counts
    found = np.empty(len(chosen), np.int64)
    found[order] = np.arange(len(chosen)) - np.repeat(first, counts)
    return found


def _check_count(n_datasets: int) -> None:
    if not 1 <= n_datasets <= MOST_DATASETS:
        raise BadInput(f"a blend has 1 to {MOST_DATASETS:,} data sets, got {n_datasets:,}")


def _check_size(n_samples: int) -> None:
    if n_samples < 0:
        raise BadInput(f"a blend has at least 0 samples, got {n_samples:,}")
