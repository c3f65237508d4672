"""The value that `lc show` prints: what lies at a path, what it says of itself, and what is wrong
with it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

Lines = list[tuple[Any, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table to be shown: a title, the columns' names, the lines."""

    title: str
    columns: tuple[str, ...]
    lines: Lines


@dataclass(frozen=True, slots=True, kw_only=True)
class Artefact:
    """What lies at a path.

    Attributes:
        kind: in a few words.
        facts: names with values, most telling first.
        tables: what is better said in a table.
        damage: one sentence for each thing that is not as promised; empty when whole.
        checked: what was compared to find out, in a few words; empty when there was nothing to
            compare with.
    """

    kind: str
    facts: Sequence[tuple[str, Any]] = ()
    tables: Sequence[Table] = ()
    damage: Sequence[str] = ()
    checked: str = ""
