"""A canvas for small plots: axes, ticks, letters, lines and boxes, as PNG.

Drawn with Pillow, twice as large and then reduced: a library for plots takes 0.4 s to import.
"""

import io
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from lc_assets.arrays import Floats

WIDTH, HEIGHT = 576, 234
"""Pixels of a plot."""
TITLE, TEXT, SMALL = 12, 10, 9
"""Sizes of letters in pixels."""
INK = "#1f3a5f"
ACCENT = "#c0572b"
SHADES = (INK, ACCENT, "#4f8a4e", "#8c6bb1", "#96801f", "#7f7f7f", "#3a87a3")
"""Each has a contrast of at least 3 to 1 against `PAPER`, as WCAG 2.2 requires of graphics."""

PAPER = "#ffffff"
"""Background of every plot, also in a dark theme."""

MOST_CHARS = 40
"""Longest label; longer ones are shortened."""

_LETTERS = "#000000"
_SCALE = 2


class Scale(NamedTuple):
    """Values from ``low`` to ``high`` on a line of pixels."""

    low: float
    high: float
    begin: float
    end: float
    is_log: bool = False

    def at(self, value: float) -> float:
        """The pixel of a value; the nearest where it is outside."""
        low, high, value = self.low, self.high, min(max(value, self.low), self.high)
        if self.is_log:
            low, high, value = math.log(low), math.log(high), math.log(value)
        return self.begin + (self.end - self.begin) * (value - low) / (high - low)


class Canvas:
    """A white plot with a title, an axis below and one at the left; in pixels from the top left."""

    def __init__(self, title: str, height: int, *, left: int, right: int = WIDTH - 17) -> None:
        from PIL import Image, ImageDraw

        self.left, self.right, self.top, self.bottom = left, right, 32, height - 42
        self._image = Image.new("RGB", (WIDTH * _SCALE, height * _SCALE), PAPER)
        self._draw = ImageDraw.Draw(self._image)
        self.text(left, 12, title, "lm", TITLE)

    def text(self, x: float, y: float, words: str, anchor: str, size: int = TEXT) -> None:
        """Write words; ``anchor`` is Pillow's: of their box, which point is at the place."""
        place = (x * _SCALE, y * _SCALE)
        self._draw.text(place, words, _LETTERS, _font(size), anchor=anchor)

    def box(self, left: float, top: float, right: float, bottom: float, color: str) -> None:
        """Fill a box, one without a width by nothing."""
        corners = [round(edge * _SCALE) for edge in (left, top, right, bottom)]
        if corners[2] > corners[0] and corners[3] > corners[1]:
            self._draw.rectangle((*corners[:2], corners[2] - 1, corners[3] - 1), color)

    def line(
        self, points: Sequence[tuple[float, float]], color: str, width: float, dash: int = 0
    ) -> None:
        """Draw a line through some points, with dashes and gaps of some pixels."""
        for part in dashes(np.array(points), dash) if dash else [np.array(points)]:
            corners = [*map(float, (part * _SCALE).ravel())]
            self._draw.line(corners, color, round(width * _SCALE), joint="curve")

    def legend(self, colors: Mapping[str, str]) -> None:
        """Name colors, above at the right."""
        right: float = self.right
        for name, color in [*colors.items()][::-1]:
            self.text(right, self.top - 18, name, "rm")
            right -= width_of(name) + 6
            self.box(right - 14, self.top - 22, right, self.top - 14, color)
            right -= 26

    def axis_left(self, up: Scale, ticks: Iterable[float], unit: str) -> None:
        """Draw the axis at the left and its ticks; the unit is written upwards."""
        from PIL import Image, ImageDraw

        self.line([(self.left, self.top), (self.left, self.bottom)], _LETTERS, 1)
        for tick in ticks:
            self.line([(self.left - 3, up.at(tick)), (self.left, up.at(tick))], _LETTERS, 1)
            self.text(self.left - 5, up.at(tick), counted_as(tick), "rm")
        across = Image.new("RGB", (_SCALE * width_of(unit), _SCALE * 14), PAPER)
        ImageDraw.Draw(across).text((0, 0), unit, _LETTERS, _font(TEXT))
        begin = (self.top + self.bottom - width_of(unit)) // 2 * _SCALE
        self._image.paste(across.rotate(90, expand=True), (_SCALE, begin))

    def axis_below(
        self,
        along: Scale,
        ticks: Iterable[float],
        unit: str,
        names: Mapping[int, str] | None = None,
    ) -> None:
        """Draw the axis below, its ticks by name or else by value; a label that would touch the one
        before is left out.
        """
        self.line([(self.left, self.bottom), (self.right, self.bottom)], _LETTERS, 1)
        free = 0.0
        for tick in ticks:
            label, x = names[int(tick)] if names else counted_as(tick), along.at(tick)
            self.line([(x, self.bottom), (x, self.bottom + 3)], _LETTERS, 1)
            if x - width_of(label) / 2 > free:
                self.text(x, self.bottom + 10, label, "mm")
                free = x + width_of(label) / 2 + 4
        self.text((self.left + self.right) / 2, self.bottom + 26, unit, "mm")

    def png(self) -> bytes:
        """The plot as a file."""
        png = io.BytesIO()
        self._image.reduce(_SCALE).save(png, "PNG", compress_level=9)
        return png.getvalue()


def upright(
    title: str, most: float, unit: str, height: int = HEIGHT, *, right: int = WIDTH - 17
) -> tuple[Canvas, Scale]:
    """A plot with an axis at the left, of values from 0 to a bit more than the greatest, and that
    axis' scale.
    """
    high = most * 1.05 or 1
    ticks = whole_ticks(high)
    left = 24 + max(width_of(counted_as(tick)) for tick in ticks)
    plot = Canvas(title, height, left=left, right=right)
    up = Scale(0, high, plot.bottom, plot.top)
    plot.axis_left(up, ticks, unit)
    return plot, up


@cache
def _font(size: int) -> Any:
    from PIL import ImageFont

    return ImageFont.load_default(size * _SCALE)


def width_of(words: str) -> int:
    """Pixels of a label."""
    return math.ceil(float(_font(TEXT).getlength(words)) / _SCALE)


def dashes(points: Floats, dash: int) -> list[Floats]:
    """Parts of a line through points ``(n, 2)``, each of some pixels, with gaps of as many."""
    lengths = np.hypot(*np.diff(points, axis=0).T)
    ends = np.concatenate([[0], np.cumsum(lengths)])
    walked = np.arange(0, ends[-1], 1)
    path = np.stack([np.interp(walked, ends, side) for side in points.T], axis=1)
    return [path[at : at + dash + 1] for at in range(0, len(path) - 1, 2 * dash)]


def whole_ticks(most: float) -> list[float]:
    """Whole numbers from 0, at most seven.

    >>> whole_ticks(1.05), whole_ticks(70_000)
    ([0, 1], [0, 20000, 40000, 60000])
    """
    power = 10 ** max(math.floor(math.log10(max(most, 1) / 6)), 0)
    step = next(times * power for times in (1, 2, 5, 10, 20) if times * power * 6 >= most)
    return [*range(0, math.floor(most) + 1, step)]


def log_ticks(low: float, high: float) -> list[float]:
    """Ones, twos and fives of each power of ten, or ones alone where these are many.

    >>> log_ticks(0.4, 3), log_ticks(0.9, 2e6)[-1]
    ([0.5, 1.0, 2.0], 1000000.0)
    """
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    times = (1, 2, 5) if len(powers) < 6 else (1,)
    ticks = [float(f"{time}e{power}") for power in powers for time in times]
    return [tick for tick in ticks if low <= tick <= high]


def label_of(name: str) -> str:
    r"""An untrusted name as a label; characters outside the font are replaced.

    >>> label_of("no such page"), label_of("例え.jp\n"), len(label_of("a" * 300))
    ('no such page', '??.jp?', 40)
    """
    words = "".join(
        letter
        if letter.isprintable() and (letter < "\u0250" or "\u2010" <= letter < "\u2300")
        else "?"
        for letter in name
    )
    return words if len(words) <= MOST_CHARS else f"{words[: MOST_CHARS - 1]}…"


def counted_as(value: float) -> str:
    """A number at the end of a bar or at a tick.

    >>> counted_as(12345.0), counted_as(0.125), counted_as(0)
    ('12,345', '0.125', '0')
    """
    return f"{value:,.0f}" if value == int(value) or value >= 100 else f"{value:.3g}"
