"""Plain reference of the preferences of `lc_assets.stages.deduplication.deciding`."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from lc_assets.builds.settings.documents import SOURCE

ASCENDING = ("oldest", "best_perplexity")


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """What a preference can compare.

    Attributes:
        id: the document's.
        number: its index among all documents, for documents that share an id.
        source: name of the folder or file it came in.
        date: ISO 8601; empty when not known.
        n_chars: length of the text.
        perplexity: None when not known.
    """

    id: str
    number: int
    source: str = ""
    date: str = ""
    n_chars: int = 0
    perplexity: float | None = None


def ranked(prefer: Sequence[str], candidates: Iterable[Candidate]) -> list[Candidate]:
    """The documents in the order in which they are kept.

    >>> old, new = Candidate(id="b", number=0, date="2014"), Candidate(id="a", number=1, date="2023")
    >>> [candidate.id for candidate in ranked(["oldest"], [new, old])]
    ['b', 'a']
    """
    order = sorted(candidates, key=lambda candidate: (candidate.id, candidate.number))
    for key in reversed(prefer):
        order.sort(key=partial(_value, key), reverse=key not in ASCENDING)
    return order


def why(prefer: Sequence[str], kept: Candidate, other: Candidate) -> str:
    """Why ``kept`` is kept rather than ``other``.

    >>> why(["newest"], Candidate(id="a", number=0, date="2023"), Candidate(id="b", number=1, date="2014"))
    'newer: 2023 rather than 2014'
    """
    for key in prefer:
        if _value(key, kept) != _value(key, other):
            return _words(key, kept, other)
    return "first by id"


def _value(key: str, candidate: Candidate) -> Any:
    """What a key compares: the greatest is kept, or the least for a key in `ASCENDING`."""
    if key == "newest":
        return candidate.date
    if key == "oldest":
        return (candidate.date == "", candidate.date)
    if key == "longest":
        return candidate.n_chars
    if key == "best_perplexity":
        return (candidate.perplexity is None, candidate.perplexity or 0.0)
    return candidate.source == key.removeprefix(SOURCE)


def _words(key: str, kept: Candidate, other: Candidate) -> str:
    if key in {"newest", "oldest"}:
        return (
            f"{'newer' if key == 'newest' else 'older'}: {kept.date} rather than "
            f"{other.date or 'no date'}"
        )
    if key == "longest":
        return f"longer: {kept.n_chars} rather than {other.n_chars} characters"
    if key == "best_perplexity":
        return (
            f"better perplexity: {kept.perplexity} rather than "
            f"{'none' if other.perplexity is None else other.perplexity}"
        )
    return f"from {key.removeprefix(SOURCE)}"
