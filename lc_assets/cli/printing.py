"""How results are printed: tables, sizes, and escaped untrusted text.

On a terminal rich wraps to its width; in a pipe or a file lines are as long as needed, without
colours, so that ``grep`` and ``awk`` see whole cells. Nothing from data is interpreted as rich
markup or sent to the terminal as a control sequence.
"""

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TextIO

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from lc_assets.cli.reports import Quantity, report

if TYPE_CHECKING:
    from lc_assets.counts import Counts

PIPED_COLUMNS = 10_000
"""Width of lines in pipes and files: wide enough that nothing is cut or folded."""

_UNITS = ("bytes", "kB", "MB", "GB", "TB", "PB")


def out() -> Console:
    """Console for results."""
    return _console(sys.stdout)


def print_error(sentence: str) -> None:
    """Print an error on standard error, in red on a terminal."""
    if (made := report()) and sentence not in made.errors:
        made.errors.append(sentence)
    _console(sys.stderr).print(Text(harmless(sentence), style="red"), soft_wrap=True)


def say(sentence: str = "", *, style: str = "") -> None:
    """Print a line."""
    if made := report():
        made.say(sentence)
        return
    out().print(Text(harmless(sentence), style=style), soft_wrap=True)


def heading(words: str) -> None:
    """Print a line that opens a section."""
    if made := report():
        made.open_section(words)
        return
    say()
    say(words, style="bold")


def table(columns: Sequence[str], lines: Iterable[Sequence[Any]], *, title: str = "") -> None:
    """Print a table; numbers are right-aligned with thousands separators.

    Args:
        columns: names, one per cell of a line.
        lines: cells: text, numbers, or None for an empty cell.
        title: a line above it.
    """
    cells = [list(line) for line in lines]
    if made := report():
        made.add_table(title, columns, cells)
        return
    drawn = Table(
        box=box.SIMPLE_HEAD,
        title=Text(title) if title else None,
        title_justify="left",
        pad_edge=False,
    )
    for number, name in enumerate(columns):
        numeric = any(_is_number(line[number]) for line in cells)
        drawn.add_column(Text(name), justify="right" if numeric else "left", overflow="fold")
    for line in cells:
        drawn.add_row(*(Text(shown(cell)) for cell in line))
    _draw(drawn)


def facts(lines: Iterable[tuple[str, Any]]) -> None:
    """Print names with their values, one a line."""
    if made := report():
        made.add_facts(dict(lines))
        return
    drawn = Table.grid(padding=(0, 2))
    drawn.add_column()
    drawn.add_column(overflow="fold")
    for name, value in lines:
        drawn.add_row(Text(name, style="dim"), Text(shown(value)))
    _draw(drawn)


def show_counts(counts: "Counts", kept: str, others: str = "left out") -> None:
    """Print the numbers of documents seen and kept, the reasons for the others, and what else was
    counted.
    """
    n_others = counts.seen - counts.kept
    say(f"{counts.seen:,} documents = {counts.kept:,} {kept} + {n_others:,} {others}")
    facts([(f"dropped: {why}", n) for why, n in counts.dropped.items()] + [*counts.extra.items()])


def shown(value: Any) -> str:
    r"""Show a value in a cell, on one line.

    >>> shown(1234567), shown(0.5), shown(None), shown("a\nb")
    ('1,234,567', '0.5', '', 'a\\nb')
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.3g}" if abs(value) < 1000 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else "".join(map(_escaped, str(value)))


def sized(n_bytes: int) -> Quantity:
    """A human-readable size, in powers of 1,000.

    >>> sized(0), sized(999), sized(1_500), sized(8_388_608)
    ('0 bytes', '999 bytes', '1.5 kB', '8.4 MB')
    """
    value, unit = float(n_bytes), 0
    while value >= 999.95 and unit < len(_UNITS) - 1:
        value, unit = value / 1000, unit + 1
    return Quantity(f"{value:.1f} {_UNITS[unit]}" if unit else f"{n_bytes} bytes", n_bytes)


def lasted(seconds: float) -> Quantity:
    """A human-readable duration.

    >>> lasted(0.25), lasted(75), lasted(7260)
    ('0.2 s', '1 min 15 s', '2 h 01 min')
    """
    minutes, rest = divmod(round(seconds), 60)
    words = f"{minutes // 60} h {minutes % 60:02d} min"
    if minutes < 60:
        words = f"{minutes} min {rest:02d} s"
    if round(seconds, 1) < 60:
        words = f"{seconds:.1f} s"
    return Quantity(words, seconds)


def visible(text: str) -> str:
    r"""Text with everything that is not printable written as Python escapes it, and backslashes
    doubled.

    >>> print(visible("a\n\x1b[31mb\u202e\\n"))
    a\n\x1b[31mb\u202e\\n
    """
    return "".join("\\\\" if char == "\\" else _escaped(char) for char in text)


def harmless(text: str) -> str:
    r"""Text without terminal control characters; line ends and backslashes are kept.

    >>> harmless("a\nb\x1b[2J")
    'a\nb\\x1b[2J'
    """
    return "".join(char if char == "\n" else _escaped(char) for char in text)


def _escaped(char: str) -> str:
    return (
        char
        if char.isprintable()
        else char.encode("unicode_escape", "surrogatepass").decode("ascii")
    )


def shortened(text: str, most: int) -> str:
    """Text of at most ``most`` characters; a cut is marked.

    >>> shortened("abcdef", 4)
    'abc…'
    """
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _draw(drawn: Table) -> None:
    console = out()
    if console.is_terminal:
        console.print(drawn)
        return
    with console.capture() as captured:
        console.print(drawn)
    console.file.write("".join(f"{line.rstrip()}\n" for line in captured.get().splitlines()))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _console(stream: TextIO) -> Console:
    width = None if stream.isatty() else PIPED_COLUMNS
    return Console(file=stream, width=width, highlight=False, markup=False, emoji=False)
