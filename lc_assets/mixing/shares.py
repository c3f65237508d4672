"""From what a person wants of a mix to weights: sizes with a temperature, tokens, epochs; and how
far a mix can go.

Here: the arithmetic. Not here: drawing a mix up (`lc_assets.mixing.blending`).
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float64

from lc_assets.errors import BadInput
from lc_assets.mixing.blending import blend, normalise


def tempered(sizes: Sequence[int], temperature: float) -> list[float]:
    """Weights by size to the power of ``1 / temperature``: 1 is in proportion, more favours small
    sources, without end all are equal.

    >>> [round(weight, 3) for weight in tempered([900, 100], 1.0)], [round(weight, 3) for weight in tempered([900, 100], 2.0)]
    ([0.9, 0.1], [0.75, 0.25])

    Raises:
        BadInput: when the temperature is not a positive number.
    """
    if not temperature > 0:
        raise BadInput(f"a temperature is a positive number, got {temperature}")
    if temperature == 1:
        return [float(weight) for weight in normalise(sizes).tolist()]
    powers = np.exp(np.log(np.array(sizes, np.float64) / max(sizes)) / temperature)
    return [float(weight) for weight in normalise(powers.tolist()).tolist()]


def samples_for_tokens(tokens: Sequence[int], sequence_length: int) -> list[int]:
    """Samples that come closest to so many tokens, at least one.

    >>> samples_for_tokens([10_000, 100], 4096)
    [2, 1]
    """
    return [max(1, round(n / sequence_length)) for n in tokens]


def samples_for_epochs(epochs: Sequence[float], available: Sequence[int]) -> list[int]:
    """Samples that come closest to so many epochs, at least one.

    >>> samples_for_epochs([1, 2.5], [10, 4])
    [10, 10]
    """
    return [max(1, round(n * one)) for n, one in zip(epochs, available, strict=True)]


def largest_without_repeats(
    weights: Float64[np.ndarray, " dataset"], available: Sequence[int]
) -> int:
    """Length of the longest blend that takes no sample of any source twice.

    >>> largest_without_repeats(np.array([0.5, 0.5]), [10, 4])
    9
    """
    limits = np.array(available, np.int64)
    # One more of every source than its share: at the latest there one of them is exceeded.
    size = int(min((limits + 1) / weights)) + len(weights) + 1
    datasets, samples = blend(weights, size)
    exceeded = np.flatnonzero(samples >= limits[datasets])
    return int(exceeded[0]) if len(exceeded) else size


def whole_epoch_at(weight: float, available: int) -> int | None:
    """Length of a mix at which a source has been gone through once; None when it never is.

    >>> whole_epoch_at(0.25, 10), whole_epoch_at(0.0, 10)
    (40, None)
    """
    return round(available / weight) if weight > 0 else None
