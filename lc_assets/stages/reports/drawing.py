"""Small plots as PNG, drawn by matplotlib: dark on a white background, legible in both themes.

About 15 kB each: they are stored in Dagster's event log and in data-set cards. The same numbers
give the same bytes.
"""

import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

INCHES = (6.4, 2.6)
DOTS_PER_INCH = 90
INK = "#1f3a5f"
ACCENT = "#c0572b"
SHADES = (INK, ACCENT, "#4f8a4e", "#8c6bb1", "#96801f", "#7f7f7f", "#3a87a3")
"""Each has a contrast of at least 3 to 1 against `PAPER`, as WCAG 2.2 requires of graphics."""

PAPER = "#ffffff"
"""Background of every plot, also in a dark theme."""

MOST_CHARS = 40
"""Longest label; longer ones are shortened."""

OUTSIDE = {"loc": "upper left", "bbox_to_anchor": (1.01, 1)}
ABOVE = {"loc": "lower right", "bbox_to_anchor": (1, 1), "ncols": 2}
"""Positions of a legend."""


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
        heights: value by name.
        unit: of the values.
        beside: a second value by name.
        names: legend of the two kinds of bars.
    """
    labels = [_label(name) for name in heights]
    tall, left = (
        max(1.6, 0.8 + 0.24 * len(heights)),
        0.03 + 0.0105 * max(map(len, labels), default=0),
    )
    figure, axes = _figure(title, tall, left=left)
    at = np.arange(len(labels))[::-1]
    kinds = (
        [(0.0, heights, INK)] if beside is None else [(0.2, heights, INK), (-0.2, beside, ACCENT)]
    )
    for number, (shift, values, color) in enumerate(kinds):
        drawn = axes.barh(
            at + shift,
            [values.get(name, 0) for name in heights],
            0.8 / len(kinds),
            color=color,
            label=names[number] if names else None,
        )
        axes.bar_label(drawn, fmt=_counted, fontsize=6, padding=2)
    if beside is not None:
        axes.legend(fontsize=7, frameon=False, borderaxespad=0, **ABOVE)
    axes.set_yticks(at, labels, fontsize=7, parse_math=False)
    axes.margins(x=0.12)  # space for the numbers
    axes.set_xlim(0, None if any(any(values.values()) for _, values, _ in kinds) else 1)
    axes.set_ylim(min(len(labels) - 3, 0) - 0.6, len(labels) - 0.4)  # few bars are no thicker
    if not labels:
        axes.annotate("none", (0.02, 0.5), xycoords="axes fraction", fontsize=7)
    _numbered(axes.xaxis, unit)
    return _png(figure)


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
    figure, axes = _figure(title, right=0.95)
    numbers, bins = np.asarray(values, dtype=np.float64), np.linspace(0, 1, 21)
    axes.set_xlabel(f"{unit}; the line: {mark_name}" if mark_name else unit, fontsize=7)
    if not shares:
        numbers = numbers[numbers >= 1]
        top = max(numbers.max(initial=10.0), mark or 0) * 1.2
        bins = np.geomspace(max(numbers.min(initial=top), 1) * 0.9, top, 40)
        axes.set_xscale("log")
        _numbered(axes.xaxis, axes.get_xlabel(), logarithmic=True)
    axes.hist(numbers, bins=bins, color=INK)
    if mark is not None:
        axes.axvline(mark, color=ACCENT, linewidth=1.5)
    _numbered(axes.yaxis, counted)
    return _png(figure)


def timeline(title: str, heights: Mapping[str, float], *, unit: str) -> bytes:
    """A bar per snapshot from left to right; the first of each year is labelled.

    Args:
        title: of the plot.
        heights: value by snapshot, oldest first; a name without a year is its own label.
        unit: of the values.
    """
    figure, axes = _figure(title, left=0.11)
    axes.bar(np.arange(len(heights)), list(heights.values()), 0.8, color=INK)
    years = [name[:4] if name[:4].isdigit() else name for name in heights]
    first = [place for place, year in enumerate(years) if place == 0 or years[place - 1] != year]
    axes.set_xticks(first, [years[place] for place in first], rotation=0 if len(first) < 12 else 45)
    axes.set_ylim(bottom=0)
    axes.annotate(
        f"{len(heights):,} snapshots", (1, 1), xycoords="axes fraction", fontsize=7, ha="right"
    )
    _numbered(axes.yaxis, unit)
    return _png(figure)


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
    figure, axes = _figure(title, max(2.6, 1.1 + 0.125 * len(moving)), right=0.62)
    for number, (name, points) in enumerate(moving.items()):
        style = {"color": SHADES[number % len(SHADES)], "label": name}
        dashes = ("-", "--", ":")[number // len(SHADES) % 3]
        axes.plot(*zip(*points, strict=True), linewidth=1, linestyle=dashes, **style)
    axes.axvline(1, color=ACCENT, linewidth=1)
    axes.set_xscale("log")
    axes.set_xlabel(along, fontsize=7)
    axes.set_ylim(bottom=0)
    _numbered(axes.yaxis, unit)
    if moving:
        axes.legend(fontsize=6, frameon=False, borderaxespad=0, **OUTSIDE)
    if len(lines) > len(moving):
        words = f"and {len(lines) - len(moving)} that change nothing"
        axes.annotate(words, (1.02, -0.02), xycoords="axes fraction", fontsize=6, va="top")
    return _png(figure)


def _figure(
    title: str, height: float = INCHES[1], *, left: float = 0.09, right: float = 0.97
) -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    # Fixed margins: matplotlib's layout engines draw everything twice, 0.1 s a plot.
    figure = Figure(figsize=(INCHES[0], height), dpi=DOTS_PER_INCH, facecolor=PAPER)
    axes = figure.add_axes((left, 0.45 / height, right - left, 1 - 0.75 / height))
    axes.set_title(title, fontsize=9, loc="left")
    axes.tick_params(labelsize=7)
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _label(name: str) -> str:
    r"""An untrusted name as a label; characters outside the font are replaced.

    >>> _label("no such page"), _label("例え.jp\n"), len(_label("a" * 300))
    ('no such page', '??.jp?', 40)
    """
    words = "".join(
        letter
        if letter.isprintable() and (letter < "\u0250" or "\u2010" <= letter < "\u2300")
        else "?"
        for letter in name
    )
    return words if len(words) <= MOST_CHARS else f"{words[: MOST_CHARS - 1]}…"


def _counted(value: float) -> str:
    """A number at the end of a bar.

    >>> _counted(12345.0), _counted(0.125), _counted(0)
    ('12,345', '0.125', '0')
    """
    return f"{value:,.0f}" if value == int(value) or value >= 100 else f"{value:.3g}"


def _numbered(axis: Any, unit: str, *, logarithmic: bool = False) -> None:
    """Label an axis with whole numbers such as 50,000."""
    from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter, StrMethodFormatter

    axis.set_label_text(unit, fontsize=7)
    axis.set_major_locator(
        LogLocator(subs=(1, 2, 5)) if logarithmic else MaxNLocator(6, integer=True)
    )
    axis.set_minor_formatter(NullFormatter())
    axis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))


def _png(figure: Any) -> bytes:
    png = io.BytesIO()
    figure.savefig(png, format="png", metadata={"Software": None})  # omits matplotlib's version
    return png.getvalue()
