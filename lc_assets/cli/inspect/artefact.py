"""What `lc show` prints: the kind of artefact, its facts, and its damage."""

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
    """An artefact at a path.

    Attributes:
        kind: in a few words.
        facts: names with values, most informative first.
        tables: further facts.
        damage: one sentence for each deviation; empty if intact.
        checked: what was compared, in a few words; empty if there was nothing to compare with.
    """

    kind: str
    facts: Sequence[tuple[str, Any]] = ()
    tables: Sequence[Table] = ()
    damage: Sequence[str] = ()
    checked: str = ""
