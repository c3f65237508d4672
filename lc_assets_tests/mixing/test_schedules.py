"""Mixes whose weights move: no source is ever a whole sample from what it is due."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st

from lc_assets.errors import BadInput
from lc_assets.mixing.blending import counts
from lc_assets.mixing.schedules import Stretch, dues_of, scheduled_blend

WEIGHT = st.one_of(st.just(0), st.integers(1, 9), st.floats(1e-3, 1e3))


@st.composite
def schedules(draw):
    """A few stretches over some sources, of which any may have no weight for a time."""
    n_sources = draw(st.integers(1, 9))
    weights = st.tuples(*[WEIGHT] * n_sources).filter(any)
    length = st.integers(1, 60)
    return draw(
        st.lists(st.builds(Stretch, samples=length, first=weights, last=weights), min_size=1)
    )


def exact_dues(schedule):
    """What each source is due after each sample, in fractions."""
    due = [Fraction(0)] * len(schedule[0].first)
    for stretch in schedule:
        first, last = (
            [Fraction(weight) / sum(map(Fraction, side)) for weight in side]
            for side in (stretch.first, stretch.last)
        )
        for t in range(stretch.samples):
            middle = Fraction(2 * t + 1, 2 * stretch.samples)
            due = [one + a + (b - a) * middle for one, a, b in zip(due, first, last, strict=True)]
            yield due


@given(schedules())
def test_no_source_is_a_whole_sample_from_its_due_at_any_prefix(schedule):
    chosen, samples = scheduled_blend(dues_of(schedule))
    served = [0] * len(schedule[0].first)
    bound = 1 - Fraction(1, 2 * max(len(served), 2) - 2) + Fraction(1, 10**9)
    for source, sample, dues in zip(
        chosen.tolist(), samples.tolist(), exact_dues(schedule), strict=True
    ):
        assert sample == served[source]
        served[source] += 1
        assert all(abs(n - due) <= bound for n, due in zip(served, dues, strict=True))
    assert (chosen.dtype, samples.dtype) == (np.int16, np.int64)


@given(schedules())
def test_what_is_due_is_the_integral_of_the_weights(schedule):
    n, dues = np.arange(1, 1 + sum(one.samples for one in schedule)), dues_of(schedule)
    found = np.array([dues.of(source, n) for source in range(len(schedule[0].first))]).T
    expected = np.array(list(exact_dues(schedule)), float)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)


def test_where_weights_move_the_rule_for_fixed_weights_falls_behind():
    """Serve the source that is furthest behind, and all weight goes to those not served yet."""
    schedule, served = [], []
    for _ in range(8):
        weights = tuple(float(source not in served) for source in range(9))
        schedule.append(Stretch(samples=1, first=weights, last=weights))
        dues = [dues_of(schedule).of(source, np.array([len(schedule)])) for source in range(9)]
        served.append(max(range(9), key=lambda source: dues[source] - served.count(source)))
    assert abs(dues_of(schedule).begun[-1] - np.bincount(served, minlength=9)).max() > 1.5
    chosen, _ = scheduled_blend(dues_of(schedule))
    assert abs(dues_of(schedule).begun[-1] - counts(chosen, 9)).max() < 1


def test_a_million_samples_of_a_hundred_sources():
    """The counts at the end are the dues, to less than a sample."""
    rng = np.random.default_rng(5)
    sides = rng.random((3, 2, 100)) ** 4
    schedule = [
        Stretch(samples=300_000, first=tuple(first), last=tuple(last)) for first, last in sides
    ]
    dues = dues_of(schedule)
    chosen, _ = scheduled_blend(dues)
    assert np.abs(np.array(counts(chosen, 100)) - dues.begun[-1]).max() < 1


def test_a_stretch_without_weights_is_refused():
    with pytest.raises(BadInput, match="must have 1 to"):
        dues_of([Stretch(samples=2, first=(0.0, 0.0), last=(1.0, 0.0))])
