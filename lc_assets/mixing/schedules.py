"""Mixes whose weights move: the order in which they take samples from their sources.

A schedule is a list of stretches, in each of which the weights are constant or move linearly. What
a source is *due* after ``n`` samples is the integral of its weight up to there. Megatron's rule
(`lc_assets.mixing.blending`) may fall behind by more than one sample where weights change. This one
does not, because it looks ahead: of ``k`` sources, one may be served once it is due
``1 / (2k - 2)`` of its next sample, must be served before it is due ``1 - 1 / (2k - 2)``, and of
those that may be, the one that must be first is.

Source: R. Tijdeman, "The chairman assignment problem", Discrete Mathematics 32 (1980), 323-330,
    which proves that no source is ever further than ``1 - 1 / (2k - 2)`` from what it is due.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from lc_assets.arrays import Floats, Int16s, Int64s
from lc_assets.compiling import compiled
from lc_assets.mixing.blending import Blend, normalise
from lc_assets.records import record


@record
class Stretch:
    """Consecutive samples whose weights are constant or move linearly.

    Attributes:
        samples: their number.
        first: weight of each source at the beginning; 0 for none.
        last: at the end.
    """

    samples: int
    first: tuple[float, ...]
    last: tuple[float, ...]


class Dues(NamedTuple):
    """What each source is due. In stretch ``p``, after ``t`` of its samples, source ``i`` is due
    ``begun[p, i] + t * (rates[p, i] + bends[p, i] * t)``.

    Attributes:
        starts: number of the first sample of each stretch, and of all samples; int64.
        begun: (stretch + 1, source), at the stretch's beginning.
        rates: (stretch, source), its share there.
        bends: (stretch, source), half of what its share changes by at each sample.
    """

    starts: Int64s
    begun: Floats
    rates: Floats
    bends: Floats

    def of(self, source: int, samples: Int64s) -> Floats:
        """What a source is due after each of these numbers of samples, which are not negative."""
        at = np.searchsorted(self.starts[1:-1], samples, side="right")
        rest = (samples - self.starts[at]).astype(np.float64)
        rates, bends = self.rates[at, source], self.bends[at, source]
        due: Floats = self.begun[at, source] + rest * (rates + bends * rest)
        return due


def dues_of(schedule: Sequence[Stretch]) -> Dues:
    """What each source is due by a schedule of at least one stretch.

    >>> dues_of([Stretch(samples=4, first=(1, 0), last=(0, 1))]).of(1, np.arange(5)).tolist()
    [0.0, 0.125, 0.5, 1.125, 2.0]

    Raises:
        BadInput: if all weights of a beginning or an end are 0, or one is negative.
    """
    lengths = np.array([stretch.samples for stretch in schedule], np.int64)
    rates, ends = (
        np.array([_shares(weights) for weights in side])
        for side in zip(*((one.first, one.last) for one in schedule), strict=True)
    )
    long = lengths[:, None].astype(np.float64)
    begun = np.zeros((len(schedule) + 1, rates.shape[1]))
    np.cumsum(long * ((rates + ends) / 2), axis=0, out=begun[1:])
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return Dues(starts, begun, rates, (ends - rates) / (2 * long))


def _shares(weights: Sequence[float]) -> Floats:
    found = np.array(weights, np.float64)
    given = found != 0
    found[given] = normalise(found[given].tolist())
    return found


def scheduled_blend(dues: Dues) -> Blend:
    """Draw a blend of all samples of a schedule.

    >>> scheduled_blend(dues_of([Stretch(samples=6, first=(2, 1), last=(2, 1))]))
    (array([0, 1, 0, 0, 1, 0], dtype=int16), array([0, 0, 1, 2, 1, 3]))
    """
    n_samples = int(dues.starts[-1])
    chosen, samples = np.empty(n_samples, np.int16), np.empty(n_samples, np.int64)
    _serve(*dues, chosen, samples)
    return chosen, samples


@compiled
def _serve(
    starts: Int64s,
    begun: Floats,
    rates: Floats,
    bends: Floats,
    chosen: Int16s,
    samples: Int64s,
) -> None:
    """Fill in ``chosen`` and ``samples``, as `lc_assets.mixing.blending.blend` gives them."""
    n_sources = begun.shape[1]
    least = 1 / (2 * max(n_sources, 2) - 2)
    # Per source: samples served, and after how many of the blend the next may and must be served.
    served = np.zeros(n_sources, np.int64)
    opens, closes = np.empty(n_sources, np.int64), np.empty(n_sources, np.int64)
    for source in range(n_sources):
        opens[source] = _reached(starts, begun, rates, bends, source, least)
        closes[source] = _reached(starts, begun, rates, bends, source, 1 - least)
    for n in range(len(chosen)):
        best = -1
        for source in range(n_sources):
            if opens[source] <= n + 1 and (best < 0 or closes[source] < closes[best]):
                best = source
        if best < 0:  # only if a due is rounded
            best = int(np.argmin(opens))
        chosen[n], samples[n] = best, served[best]
        served[best] += 1
        due = served[best] + least
        opens[best] = _reached(starts, begun, rates, bends, best, due)
        due = served[best] + 1 - least
        closes[best] = _reached(starts, begun, rates, bends, best, due)


@compiled
def _reached(
    starts: Int64s, begun: Floats, rates: Floats, bends: Floats, source: int, due: float
) -> int:
    """After how many samples a source is due so much; one more than there are, if never."""
    at = 0
    while at < len(rates) and begun[at + 1, source] < due:
        at += 1
    if at == len(rates):
        return int(starts[-1] + 1)
    low, high = int(starts[at] + 1), int(starts[at + 1])
    while low < high:
        middle = (low + high) // 2
        rest = float(middle - starts[at])
        if begun[at, source] + rest * (rates[at, source] + bends[at, source] * rest) < due:
            low = middle + 1
        else:
            high = middle
    return low
