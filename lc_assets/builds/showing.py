"""What a stage shows of a published version: plots, tables, texts and numbers as plain values.

`lc_assets.orchestration.metadata` makes Dagster's metadata of them. Untrusted values become inert
Markdown: no text of a page can end a table cell, hide a link, load an image or add an element.
"""

import base64
import importlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from lc_assets.records import frozen, record


@frozen
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


@frozen
class Table:
    """Lines of plain values, all with the same columns."""

    lines: Sequence[Mapping[str, Any]]


@frozen
class Passages:
    """Lines with long texts."""

    lines: Sequence[Mapping[str, Any]]


@frozen
class Markdown:
    """A text in Markdown."""

    text: str


Value = Plot | Table | Passages | Markdown | Path | str | int | float


@record
class Shown:
    """What a stage shows of one version.

    Attributes:
        values: by name, in the order they are shown in.
        columns: of the published table, when settings add some to the stage's.
        rows: the number to plot over time; by default what was kept.
    """

    values: Mapping[str, Value] = field(default_factory=dict)
    columns: pa.Schema | None = None
    rows: int | None = None


def inline(png: bytes) -> str:
    """A picture as an address that holds it."""
    return f"data:image/png;base64,{base64.b64encode(png).decode()}"


Kind = Literal["bars", "histogram", "timeline", "curves"]


def plot_of(kind: Kind, title: str, *values: Any, **options: Any) -> Plot:
    """A plot with the values and options of a function of `lc_assets.stages.reports.drawing`."""
    return Plot(kind, title, values, options)


SHOWN_CHARS = 160
"""Of a cell of `as_table`."""


def cell(value: object) -> str:
    r"""Untrusted text as one cell of a table: no line ends, no Markdown, no HTML.

    >>> cell("a|b\n<img src=x> [c](d) `e`")
    'a\\|b \\<img src=x\\> \\[c\\](d) \\`e\\`'
    >>> cell("https://a.org/b_c")
    'https&#58;//a.org/b\\_c'
    >>> cell("# a"), cell("1. b")
    ('\\# a', '1\\. b')
    """
    words = " ".join(
        "".join(letter if letter.isprintable() else " " for letter in str(value)).split()
    )
    escaped = re.sub(r"([\\`*_\[\]<>|~!&])", r"\\\1", words)
    # Where the text begins a paragraph, it could be a heading or the item of a list.
    escaped = re.sub(r"^(\d*)(?=[-+#.)]+ )", r"\1\\", escaped)
    # Renderers that link bare addresses would include the backslashes.
    return escaped.replace("://", "&#58;//").replace("www.", "www&#46;")


def as_table(lines: Sequence[Mapping[str, Any]]) -> str:
    """A table of plain values with the columns of the first row; numbers right-aligned, long text
    shortened.

    >>> print(as_table([{"rule": "words", "kept": 1234, "share": 0.123456}]))
    | rule | kept | share |
    |---|---:|---:|
    | words | 1,234 | 0.1235 |
    >>> as_table([])
    'nothing'
    """
    if not lines:
        return "nothing"
    names = list(dict.fromkeys(name for line in lines for name in line))
    sides = [
        "---:" if all(_is_number(line.get(name)) for line in lines) else "---" for name in names
    ]
    rows = [" | ".join(cell(as_text(line.get(name))) for name in names) for line in lines]
    return "\n".join(
        [
            f"| {' | '.join(map(cell, names))} |",
            f"|{'|'.join(sides)}|",
            *(f"| {row} |" for row in rows),
        ]
    )


def as_passages(lines: Sequence[Mapping[str, Any]]) -> str:
    """How texts begin and end, one below the other, each under its other values.

    >>> print(as_passages([{"id": "a/1", "begins": "Once upon", "ends": "ever after."}]))
    **id** a/1
    <BLANKLINE>
    > Once upon
    >
    > … ever after.
    """
    said = []
    for line in lines:
        values = " · ".join(
            f"**{cell(name)}** {cell(as_text(value))}"
            for name, value in line.items()
            if name not in {"begins", "ends"}
        )
        said.append(f"{values}\n\n> {cell(line['begins'])}\n>\n> … {cell(line['ends'])}")
    return "\n\n".join(said) or "nothing"


def as_text(value: Any) -> str:
    """A plain value for display: four digits of a fraction, thousands separators, the beginning of
    a long text, empty for None.

    >>> as_text(12345), as_text(0.48888), as_text(True), as_text(None), len(as_text("long " * 100))
    ('12,345', '0.4889', 'yes', '', 161)
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return f"{value:,.0f}" if value == value // 1 else f"{value:,.4g}"
    words = str(value)
    return f"{words[:SHOWN_CHARS]}…" if len(words) > SHOWN_CHARS else words


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))
