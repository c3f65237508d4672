"""Untrusted values as inert Markdown, for data-set cards and the Dagster UI.

No text from a web page can end a table cell, hide a link, load an image or add an element.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

SHOWN_CHARS = 160
"""Of a cell of `table`."""


def cell(value: object) -> str:
    r"""Untrusted text as one cell of a table: no line ends, no Markdown, no HTML.

    >>> cell("a|b\n<img src=x> [c](d) `e`")
    'a\\|b \\<img src=x\\> \\[c\\](d) \\`e\\`'
    >>> cell("https://a.org/b_c")
    'https&#58;//a.org/b\\_c'
    """
    words = " ".join(
        "".join(letter if letter.isprintable() else " " for letter in str(value)).split()
    )
    # Renderers that link bare addresses would include the backslashes.
    return (
        re.sub(r"([\\`*_\[\]<>|~!&])", r"\\\1", words)
        .replace("://", "&#58;//")
        .replace("www.", "www&#46;")
    )


def table(lines: Sequence[Mapping[str, Any]]) -> str:
    """A table of plain values with the columns of the first row; numbers right-aligned, long text
    shortened.

    >>> print(table([{"rule": "words", "kept": 1234, "share": 0.123456}]))
    | rule | kept | share |
    |---|---:|---:|
    | words | 1,234 | 0.1235 |
    >>> table([])
    'nothing'
    """
    if not lines:
        return "nothing"
    names = list(dict.fromkeys(name for line in lines for name in line))
    sides = [
        "---:" if all(_is_number(line.get(name)) for line in lines) else "---" for name in names
    ]
    rows = [" | ".join(cell(shown(line.get(name))) for name in names) for line in lines]
    return "\n".join(
        [
            f"| {' | '.join(map(cell, names))} |",
            f"|{'|'.join(sides)}|",
            *(f"| {row} |" for row in rows),
        ]
    )


def passages(lines: Sequence[Mapping[str, Any]]) -> str:
    """How texts begin and end, one below the other, each under its other values.

    >>> print(passages([{"id": "a/1", "begins": "Once upon", "ends": "ever after."}]))
    **id** a/1
    <BLANKLINE>
    > Once upon
    >
    > … ever after.
    """
    said = []
    for line in lines:
        values = " · ".join(
            f"**{cell(name)}** {cell(shown(value))}"
            for name, value in line.items()
            if name not in {"begins", "ends"}
        )
        said.append(f"{values}\n\n> {cell(line['begins'])}\n>\n> … {cell(line['ends'])}")
    return "\n\n".join(said) or "nothing"


def shown(value: Any) -> str:
    """A plain value for people: four digits of a fraction, thousands apart, the beginning of a long
    text, nothing for None.

    >>> shown(12345), shown(0.48888), shown(True), shown(None), len(shown("long " * 100))
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
