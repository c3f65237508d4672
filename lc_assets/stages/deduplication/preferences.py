"""Which of some documents is kept, and why: an order over facts
(`lc_assets.stages.deduplication.facts`), and what is said of two of them.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from lc_assets.builds.settings.documents import SOURCE
from lc_assets.stages.deduplication.queries import quoted

_ORDERS = {
    "newest": ("snapshot DESC, date DESC", ("snapshot", "date"), "newer"),
    "oldest": ("snapshot, date = '', date", ("snapshot", "date"), "older"),
    "longest": ("n_chars DESC", ("n_chars",), "longer"),
    "best_perplexity": ("perplexity ASC NULLS LAST", ("perplexity",), "better perplexity"),
}
"""By key of a preference: its ORDER BY over facts, the columns that it compares, and what the
document is that is kept.
"""
COMPARED = ("source", "snapshot", "date", "n_chars", "perplexity")
"""Columns of facts that a preference may compare."""
_MISSING = {"date": "no date", "perplexity": "none"}


def in_order(prefer: Sequence[str]) -> str:
    """An ORDER BY over facts: the document that is kept comes first."""
    keys = [
        _ORDERS[key][0] if key in _ORDERS else f"source = {quoted(key.removeprefix(SOURCE))} DESC"
        for key in prefer
    ]
    return ", ".join([*keys, "id", "number"])


def why_rather(prefer: Sequence[str], kept: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    """Why one document is kept rather than the other, by the first key in which they differ.

    >>> old, new = ({"snapshot": "2023-06", "date": date} for date in ("", "2023-02-01"))
    >>> why_rather(["newest"], new, old)
    'newer: 2023-02-01 rather than no date'
    """
    for key in prefer:
        if key not in _ORDERS:
            name = key.removeprefix(SOURCE)
            if (kept["source"] == name) != (other["source"] == name):
                return f"from {name}"
            continue
        _, columns, better = _ORDERS[key]
        for column in columns:
            if kept[column] != other[column]:
                theirs = _MISSING[column] if other[column] in ("", None) else other[column]
                unit = " characters" if column == "n_chars" else ""
                return f"{better}: {kept[column]} rather than {theirs}{unit}"
    return "first by id"
