"""Small plots as PNG: dark on a white background, legible in both themes.

Some 5 kB each: they are stored in Dagster's event log and in data-set cards. The same numbers give
the same bytes.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lc_assets.stages.reports.canvas import (
    ACCENT,
    HEIGHT,
    INK,
    SHADES,
    SMALL,
    Canvas,
    Scale,
    counted_as,
    label_of,
    log_ticks,
    upright,
    whole_ticks,
    width_of,
)

_DASHES = (0, 5, 2)
"""Pixels of a dash and of a gap, by kind of line; 0 for none."""


def bars(
    title: str,
    heights: Mapping[str, float],
    *,
    unit: str,
    beside: Mapping[str, float] | None = None,
    names: Sequence[str] = (),
) -> bytes:
    """Horizontal bars, one per name in the given order; ``beside`` adds a second bar per name.

    Args:
        title: of the plot.
        heights: value by name; NaN has no bar.
        unit: of the values.
        beside: a second value by name.
        names: legend of the two kinds of bars.
    """
    kinds = [(heights, INK)] if beside is None else [(heights, INK), (beside, ACCENT)]
    labels = [*map(label_of, heights)]
    most = max([0.0, *(values.get(name, 0) for values, _ in kinds for name in heights)])
    left = 16 + max((width_of(label) for label in labels), default=0)
    plot = Canvas(title, max(144, 72 + 22 * len(labels)), left=left)
    along = Scale(0, most * 1.12 or 1, plot.left, plot.right)  # with space for the numbers
    step = (plot.bottom - plot.top) / max(len(labels), 3)  # few bars are no thicker
    for row, (name, label) in enumerate(zip(heights, labels, strict=True)):
        top, thick = plot.top + (row + 0.1) * step, 0.8 * step / len(kinds)
        plot.text(plot.left - 5, top + 0.4 * step, label, "rm")
        for values, color in kinds:
            value = values.get(name, 0)
            if not math.isnan(value):
                plot.box(plot.left, top, along.at(value), top + thick, color)
                plot.text(along.at(value) + 3, top + thick / 2, counted_as(value), "lm", SMALL)
            top += thick
    if not labels:
        plot.text(plot.left + 8, (plot.top + plot.bottom) / 2, "none", "lm")
    if beside is not None:
        plot.legend(dict(zip(names, (INK, ACCENT), strict=False)))
    plot.axis_below(along, whole_ticks(along.high), unit)
    return plot.png()


def histogram(
    title: str,
    values: Any,
    *,
    unit: str,
    mark: float | None = None,
    mark_name: str = "",
    counted: str = "documents",
    shares: bool = False,
) -> bytes:
    """A histogram over a logarithmic axis, or of shares in twentieths, with a line at ``mark``.

    Args:
        title: of the plot.
        values: numbers, one per document; those below 1 are not shown, unless they are shares.
        unit: what the values count.
        mark: where to draw the line.
        mark_name: what the line means.
        counted: what has one number each.
        shares: whether the values are from 0 to 1.
    """
    numbers = np.asarray(values, dtype=np.float64)
    bins, ticks = np.linspace(0, 1, 21), [0, 0.2, 0.4, 0.6, 0.8, 1]
    if not shares:
        numbers = numbers[numbers >= 1]
        top = max(numbers.max(initial=10.0), mark or 0) * 1.2
        bins = np.geomspace(max(numbers.min(initial=top), 1) * 0.9, top, 40)
        ticks = log_ticks(bins[0], top)
    counts = np.histogram(numbers, bins)[0].tolist()
    plot, up = upright(title, max(counts), counted)
    along = Scale(bins[0], bins[-1], plot.left, plot.right, is_log=not shares)
    for begin, end, count in zip(bins, bins[1:], counts, strict=False):
        plot.box(along.at(begin), up.at(count), along.at(end), plot.bottom, INK)
    if mark is not None:
        plot.line([(along.at(mark), plot.top), (along.at(mark), plot.bottom)], ACCENT, 1.5)
    plot.axis_below(along, ticks, f"{unit}; the line: {mark_name}" if mark_name else unit)
    return plot.png()


def timeline(title: str, heights: Mapping[str, float], *, unit: str) -> bytes:
    """A bar per snapshot from left to right; the first of each year is labelled.

    Args:
        title: of the plot.
        heights: value by snapshot, oldest first; a name without a year is its own label.
        unit: of the values.
    """
    plot, up = upright(title, max(heights.values(), default=0), unit)
    along = Scale(-0.5, max(len(heights), 1) - 0.5, plot.left, plot.right)
    for place, value in enumerate(heights.values()):
        plot.box(along.at(place - 0.4), up.at(value), along.at(place + 0.4), plot.bottom, INK)
    years = [name[:4] if name[:4].isdigit() else label_of(name) for name in heights]
    firsts = {
        place: year for place, year in enumerate(years) if not place or years[place - 1] != year
    }
    plot.axis_below(along, firsts, "", firsts)
    plot.text(plot.right, plot.top - 14, f"{len(heights):,} snapshots", "rm")
    return plot.png()


def curves(
    title: str, lines: Mapping[str, Sequence[tuple[float, float]]], *, along: str, unit: str
) -> bytes:
    """A curve per name over a logarithmic axis, with a line at 1; constant ones are counted.

    Args:
        title: of the plot.
        lines: ``(x, y)`` by name; x is positive.
        along: label of the x axis.
        unit: of the y values.
    """
    moving = {
        name: points for name, points in lines.items() if len({height for _, height in points}) > 1
    }
    most = max((y for points in moving.values() for _, y in points), default=0)
    plot, up = upright(title, most, unit, max(HEIGHT, 100 + 12 * len(moving)), right=357)
    places = [1.0, *(place for points in moving.values() for place, _ in points)]
    below = Scale(min(places) / 1.1, max(places) * 1.1, plot.left, plot.right, is_log=True)
    plot.line([(below.at(1), plot.top), (below.at(1), plot.bottom)], ACCENT, 1)
    for number, (name, points) in enumerate(moving.items()):
        color, dash = SHADES[number % len(SHADES)], _DASHES[number // len(SHADES) % len(_DASHES)]
        plot.line([(below.at(x), up.at(y)) for x, y in points], color, 1, dash)
        height = plot.top + 4 + 12 * number
        plot.line([(plot.right + 8, height), (plot.right + 24, height)], color, 1, dash)
        plot.text(plot.right + 28, height, label_of(name), "lm", SMALL)
    if len(lines) > len(moving):
        words = f"and {len(lines) - len(moving)} that change nothing"
        plot.text(plot.right + 8, plot.bottom + 4, words, "lm", SMALL)
    plot.axis_below(below, log_ticks(below.low, below.high), along)
    return plot.png()
