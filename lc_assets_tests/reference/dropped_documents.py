"""Dropping documents one at a time: a dictionary per document, its rules tested one by one."""

from collections import Counter
from collections.abc import Collection, Iterable
from math import nan
from typing import Any

from lc_assets.formats.redpajama.signals import SignalsTable
from lc_assets.stages.documents.shard_filtering import NO_SIGNALS
from lc_assets.stages.documents.shard_inputs import TOO_LONG, UNREADABLE
from lc_assets.text.rules.rules import RuleSet, failures
from lc_assets.vocabulary import Shard

OTHERS = {
    UNREADABLE: (UNREADABLE, nan),
    TOO_LONG: (TOO_LONG, 1000.0),
    NO_SIGNALS: (NO_SIGNALS, nan),
}


def slow_reasons(
    table: SignalsTable, duplicates: Collection[int], rules: RuleSet, line: int
) -> list[tuple[str, float]]:
    """Reasons against the document on a line that has signals, with the tested values."""
    found = failures(table.values_at(table.row_of(line)), rules)
    return [("duplicate", 1.0)] * (line in duplicates) + found


def slow_lines(
    shard: Shard, table: SignalsTable, dropped: Iterable[tuple[int, list[tuple[str, float]]]]
) -> list[dict[str, Any]]:
    """Lines of the table of dropped documents."""
    return [
        {
            "id": shard.document_id(line),
            "url": "" if table.row_of(line) is None else table.urls[table.row_of(line)],
            "digest": f"sha1:{line}",
            "reason": reasons[0][0],
            "value": reasons[0][1],
            "reasons": [name for name, _ in reasons],
            "values": [value for _, value in reasons],
        }
        for line, reasons in dropped
    ]


def slow_counts(
    dropped: Iterable[tuple[int, list[tuple[str, float]]]],
) -> tuple[dict[str, int], dict[str, int]]:
    """How often each reason is a document's first, and how often it is found."""
    first, every = Counter[str](), Counter[str]()
    for _, reasons in dropped:
        first[reasons[0][0]] += 1
        every.update(name for name, _ in reasons)
    return dict(first), dict(every)
