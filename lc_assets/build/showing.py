"""What a stage shows of a published version: plots, tables, texts and numbers as plain values.

`lc_assets.orchestration.metadata` makes Dagster's metadata of them; ``lc show`` can print them.
"""

import base64
import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Plot:
    """A plot: a function of `lc_assets.stages.reports.drawing`, and what it is called with."""

    kind: str
    title: str
    values: tuple[Any, ...]
    options: Mapping[str, Any]

    def png(self) -> bytes:
        """Draw it."""
        drawing = importlib.import_module("lc_assets.stages.reports.drawing")
        picture: bytes = getattr(drawing, self.kind)(self.title, *self.values, **self.options)
        return picture


@dataclass(frozen=True, slots=True)
class Table:
    """Lines of plain values, all with the same columns."""

    lines: Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Passages:
    """Lines with long texts."""

    lines: Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Markdown:
    """A text in Markdown."""

    text: str


Value = Plot | Table | Passages | Markdown | Path | str | int | float


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What a stage shows of one version.

    Attributes:
        values: by name, in the order they are shown in.
        columns: of the published table, when it is one.
        rows: the number to plot over time; by default what was kept.
    """

    values: Mapping[str, Value] = field(default_factory=dict)
    columns: pa.Schema | None = None
    rows: int | None = None


def inline(png: bytes) -> str:
    """A picture as an address that holds it."""
    return f"data:image/png;base64,{base64.b64encode(png).decode()}"


def bars(title: str, heights: Mapping[str, float], **options: Any) -> Plot:
    """A bar per name; options as in `lc_assets.stages.reports.drawing.bars`."""
    return Plot("bars", title, (heights,), options)


def histogram(title: str, values: Any, **options: Any) -> Plot:
    """How values are spread; options as in `lc_assets.stages.reports.drawing.histogram`."""
    return Plot("histogram", title, (values,), options)


def timeline(title: str, heights: Mapping[str, float], **options: Any) -> Plot:
    """A bar per snapshot; options as in `lc_assets.stages.reports.drawing.timeline`."""
    return Plot("timeline", title, (heights,), options)


def curves(title: str, lines: Mapping[str, Any], **options: Any) -> Plot:
    """Lines; options as in `lc_assets.stages.reports.drawing.curves`."""
    return Plot("curves", title, (lines,), options)


def columns(title: str, groups: Sequence[str], heights: Mapping[str, Any], **options: Any) -> Plot:
    """Columns by group; options as in `lc_assets.stages.reports.drawing.columns`."""
    return Plot("columns", title, (groups, heights), options)


def shares(title: str, values: Any, **options: Any) -> Plot:
    """How shares are spread; options as in `lc_assets.stages.reports.drawing.shares`."""
    return Plot("shares", title, (values,), options)
