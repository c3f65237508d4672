"""Plots: small, the same bytes for the same numbers, whatever is missing; legible whatever is
behind them.
"""

import io

import pytest
from matplotlib.colors import to_rgb
from matplotlib.image import imread

from lc_assets.stages.reports.drawing import (
    PAPER,
    SHADES,
    bars,
    curves,
    histogram,
    timeline,
)


def test_the_same_numbers_give_the_same_small_picture():
    heights, paper = {"0-4K": 0.5, "4K-8K": 12.0}, {"4K-8K": 3.0}
    one, again, other = (
        bars("Pairs", heights, unit="per token", beside=beside, names=("here", "paper"))
        for beside in (paper, paper, heights)
    )
    assert one == again
    assert one.startswith(b"\x89PNG")
    assert len(one) < 40_000
    assert one != other


@pytest.mark.parametrize("heights", [{}, {"natural": 0.0}])
def test_nothing_to_draw_is_drawn(heights):
    assert bars("Pairs", heights, unit="per token").startswith(b"\x89PNG")


LIGHT, DARK = "#ffffff", "#030615"
"""What Dagster's UI is on, in its two themes; seen in its pages."""

DRAWN = {
    "bars": lambda: bars(
        "Kept", {"a": 1, "b": 2}, unit="documents", beside={"a": 1}, names=("asked", "got")
    ),
    "histogram": lambda: histogram(
        "Lengths", [1, 10, 70_000], unit="tokens", mark=65_536, mark_name="64K"
    ),
    "timeline": lambda: timeline("Tokens", {"2019-04": 1, "2023-06": 2}, unit="tokens"),
    "curves": lambda: curves(
        "Thresholds",
        {f"rule {n}": [(0.5, n), (2, n + 1)] for n in range(30)},
        along="multiples",
        unit="documents",
    ),
    "shares": lambda: histogram("Alike", [0.5, 1.0], unit="index", shares=True),
}


@pytest.mark.parametrize("name", DRAWN)
def test_plots_bring_their_own_paper_into_both_themes(name):
    """Nothing shines through, so that ink stays on what it was chosen for."""
    pixels = imread(io.BytesIO(DRAWN[name]()))
    assert (pixels[..., 3] == 1).all()
    assert {tuple(pixels[y, x, :3]) for y in (0, -1) for x in (0, -1)} == {to_rgb(PAPER)}
    assert pixels.shape[1] <= 640, "wider than what Dagster shows it in"


@pytest.mark.parametrize("shade", SHADES)
def test_shades_stand_out_from_the_paper(shade):
    """WCAG 2.2, 1.4.11: 3 to 1 for what carries meaning in a picture."""
    assert contrast(shade, PAPER) >= 3


def test_the_paper_is_seen_in_the_dark_theme_and_ink_on_it_in_the_light_one():
    assert contrast(PAPER, DARK) >= 3
    assert contrast("#000000", LIGHT) >= 7


def contrast(one: str, other: str) -> float:
    """Of two colours, as WCAG 2.2 defines it: from 1 to 21."""
    low, high = sorted(map(luminance, (one, other)))
    return (high + 0.05) / (low + 0.05)


def luminance(colour: str) -> float:
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in to_rgb(colour)
    ]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize(
    "name", ["", "$\\frac{a", "例え.jp", "a" * 300, "x\ny\x1b[31m", "%d {0} \\"]
)
def test_a_hostile_name_is_a_label(name):
    """Hosts of web pages become labels; matplotlib would read some as formulas, and warns of
    letters that its font has not.
    """
    assert bars("Hosts", {name: 1, "b": 2}, unit="documents").startswith(b"\x89PNG")


@pytest.mark.parametrize("heights", [{}, {"a": 0}, {"a": 1}])
def test_few_bars_are_drawn(heights):
    assert bars("Withdrawn", heights, unit="documents").startswith(b"\x89PNG")
