"""Plots: small, the same bytes for the same numbers, whatever is missing; legible whatever is
behind them.
"""

import io
from itertools import pairwise

import numpy as np
import pytest
from PIL import Image
from PIL.ImageColor import getrgb

from lc_assets.stages.reports.canvas import PAPER, SHADES, dashes, whole_ticks
from lc_assets.stages.reports.document_sets import LONGPACK, NATURAL
from lc_assets.stages.reports.drawing import bars, curves, histogram, timeline
from lc_assets.stages.shown.reports import _by_distance


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


def test_packed_documents_longer_than_all_natural_ones_are_drawn():
    """The figure of referrals has no natural figure for their lengths: no bar, not an error."""
    line = {"distance": "1-32", "length_group": "0-4K", "figure": 0.5}
    first = line | {"distance": "same sentence", "document_set": NATURAL}
    packed = line | {"document_set": LONGPACK, "length_group": "128K-"}
    plot = _by_distance([first, line | {"document_set": NATURAL}, packed])
    assert plot.png().startswith(b"\x89PNG")


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
    drawn = Image.open(io.BytesIO(DRAWN[name]()))
    assert not drawn.has_transparency_data
    pixels, (width, height) = drawn.convert("RGB"), drawn.size
    corners = {pixels.getpixel((x, y)) for x in (0, width - 1) for y in (0, height - 1)}
    assert corners == {getrgb(PAPER)}
    assert width <= 640, "wider than what Dagster shows it in"
    colors = {color for _, color in pixels.getcolors(width * height)}
    shades = SHADES if name == "curves" else SHADES[:1]
    assert {getrgb(shade) for shade in shades} <= colors, "they are not as they were chosen"


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
        for part in (value / 255 for value in getrgb(colour))
    ]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize(
    "name", ["", "$\\frac{a", "例え.jp", "a" * 300, "x\ny\x1b[31m", "%d {0} \\"]
)
def test_a_hostile_name_is_a_label(name):
    """Hosts of web pages become labels, also those of letters that no font has."""
    assert bars("Hosts", {name: 1, "b": 2}, unit="documents").startswith(b"\x89PNG")


@pytest.mark.parametrize("heights", [{}, {"a": 0}, {"a": 1}])
def test_few_bars_are_drawn(heights):
    assert bars("Withdrawn", heights, unit="documents").startswith(b"\x89PNG")


def test_ticks_are_few_and_whole():
    """At most seven from 0 on, of the right distance: ones, twos or fives of a power of ten."""
    for most in [0.4, 1, 5.9, 6, 7, 11, 12.1, 29, 30, 31, 59, 61, 2.5e9, 7e9, *range(1, 300, 7)]:
        ticks = whole_ticks(most)
        assert len(ticks) in range(1, 8)
        assert ticks[-1] <= most
        assert len(ticks) > 2 or most < 4
        steps = {after - before for before, after in pairwise(ticks)}
        assert len(steps) <= 1
        assert all(f"{step:.0e}"[0] in "125" for step in steps)


def test_a_dashed_line_is_half_gaps():
    parts = dashes(np.array([[0.0, 0.0], [30.0, 0.0], [30.0, 40.0]]), 5)
    assert [part[0].tolist() for part in parts] == [
        [0, 0],
        [10, 0],
        [20, 0],
        [30, 0],
        [30, 10],
        [30, 20],
        [30, 30],
    ]
    assert [len(part) for part in parts] == [6] * 7
