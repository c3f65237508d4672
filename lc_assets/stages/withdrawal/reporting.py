"""Reports of withdrawn documents: what a withdrawal affects, before anything is rebuilt; and what
was withdrawn, afterwards.

Before, the published rows contain the documents. Afterwards, rows and tokens are those of the
newest version of a grid that contains the document; when all such versions are purged they count as
zero.
Nothing is built or written.
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lc_assets.build.tables import read_table
from lc_assets.lake.lake import Lake
from lc_assets.lake.versions import Published
from lc_assets.stages.catalogue import STAGES
from lc_assets.stages.deduplication import removed_documents
from lc_assets.stages.lineage.row_lineage import rows_of
from lc_assets.stages.lineage.spans import Span, row_tokens_of, span_of_row
from lc_assets.stages.lineage.whereabouts import mixes_of, samples_of
from lc_assets.stages.mixes import blended_mix
from lc_assets.stages.packing import packed_rows
from lc_assets.stages.releases.pruning import pinned_versions
from lc_assets.stages.rows import token_grid
from lc_assets.stages.withdrawal.contents import Held, versions_with
from lc_assets.stages.withdrawal.withdrawn_documents import LISTED, NEAR_DUPLICATE, SAME_DIGEST
from lc_assets.text.links.addresses import Kind
from lc_assets.vocabulary import parse_document_id

COLUMNS = (
    "date",
    "reason",
    "documents",
    LISTED,
    SAME_DIGEST,
    NEAR_DUPLICATE,
    "rows",
    "tokens",
    "still served",
)
"""Of the report."""
Line = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Affected:
    """What withdrawing some documents affects.

    Attributes:
        by_reason: a line per date and reason, oldest first: documents by how they were matched,
            rows, tokens, samples per mix.
        partitions: names of the published partitions to rebuild, upstream first.
    """

    by_reason: list[Line]
    partitions: list[str]


def affected_by(lake: Lake, lines: Sequence[Line]) -> Affected:
    """Find what withdrawing documents, given as rows of `tables.WITHDRAWN`, affects."""
    by_snapshot: dict[str, list[str]] = {}
    for line in lines:
        by_snapshot.setdefault(parse_document_id(line["id"])[0].snapshot, []).append(line["id"])
    rows: dict[str, list[Span]] = {}
    for snapshot, ids in sorted(by_snapshot.items()):
        for row in _rows_of(lake, snapshot, ids):
            rows.setdefault(row.id, []).append(row)
    losing = [
        snapshot
        for snapshot, ids in sorted(by_snapshot.items())
        if _any_goes_on(lake, snapshot, ids)
    ]
    counts = {name: (len(of), sum(row.row_stop for row in of)) for name, of in rows.items()}
    groups = _by_reason(lines, counts, lambda line: {f"of these {line['how']}": 1})
    mixes = mixes_of(lake) if rows else {}
    for group, found in groups.items():
        names = {line["id"] for line in lines if (line["date"], line["reason"]) == group}
        spans = [row for name in names for row in rows.get(name, ())]
        samples = samples_of(lake, mixes, spans)
        found.update({f"samples of {mix}": len(of) for mix, of in samples.items()})
    with_rows = {row.snapshot for of in rows.values() for row in of}
    return Affected(
        by_reason=[{"date": date, "reason": why, **of} for (date, why), of in groups.items()],
        partitions=_to_rebuild(lake, losing, with_rows),
    )


def _rows_of(lake: Lake, snapshot: str, ids: Sequence[str]) -> list[Span]:
    grid = lake.partition(token_grid.STAGE.name, snapshot).current()
    if grid is None:
        return []
    sought: list[tuple[Kind, str]] = [("document", name) for name in ids]
    return [span_of_row(grid, line) for _, line in rows_of(lake, grid).find_all(sought)]


def _any_goes_on(lake: Lake, snapshot: str, ids: Sequence[str]) -> bool:
    removals = lake.partition(removed_documents.STAGE.name, snapshot).current()
    return (
        removals is not None
        and not set(ids)
        <= removed_documents.removed_ids(removals.only(removed_documents.TABLE)).keys()
    )


def _by_reason(
    lines: Sequence[Line],
    rows: Mapping[str, tuple[int, int]],
    counted: Callable[[Line], Mapping[str, int]],
) -> dict[tuple[str, str], Counter[str]]:
    """Documents, rows and tokens, and what else is ``counted``, by date and reason, oldest
    first.
    """
    found: dict[tuple[str, str], Counter[str]] = {}
    for line in lines:
        n_rows, n_tokens = rows.get(line["id"], (0, 0))
        counts = {"documents": 1, "rows": n_rows, "tokens": n_tokens, **counted(line)}
        found.setdefault((line["date"], line["reason"]), Counter()).update(counts)
    return dict(sorted(found.items()))


def _to_rebuild(lake: Lake, losing: Sequence[str], with_rows: set[str]) -> list[str]:
    """Published partitions downstream of `removed_documents` that the documents are part of."""
    below = {removed_documents.STAGE.name}
    below.update(stage.name for stage in STAGES if below.intersection(stage.upstream))
    stages = [stage for stage in STAGES if stage.name in below]
    changed = with_rows | {f"{packed_rows.STAGE.name}/{key}" for key in losing}
    return [
        *(
            f"{stage.name}/{key}"
            for key in losing
            for stage in stages
            if stage.partitioned_by == "snapshot" and key in lake.keys(stage.name)
        ),
        *(
            f"{stage.name}/{key}"
            for stage in stages
            if stage.partitioned_by == "nothing" and with_rows
            for key in lake.keys(stage.name)
        ),
        *(
            f"{blended_mix.STAGE.name}/{name}"
            for name, (_, mix) in mixes_of(lake).items()
            if changed & {source.name for source in mix.sources}
        ),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class WithdrawalReport:
    """What was withdrawn.

    Attributes:
        by_reason: a line per date and reason.
        held: the versions that contain some of it, and why each still exists.
    """

    by_reason: tuple[Line, ...]
    held: tuple[tuple[Held, str], ...]


def report(lake: Lake, lines: Sequence[Line]) -> WithdrawalReport:
    """Report on the withdrawn documents, given as rows of `tables.WITHDRAWN`."""
    held = list(versions_with(lake, [line["id"] for line in lines])) if lines else []
    rows, served = _rows_in(lake, held)
    groups = _by_reason(
        lines, rows, lambda line: {line["how"]: 1, "still served": int(line["id"] in served)}
    )
    pinned = pinned_versions(lake)
    return WithdrawalReport(
        by_reason=tuple(
            dict(zip(COLUMNS, (*group, *(counts[name] for name in COLUMNS[2:])), strict=True))
            for group, counts in groups.items()
        ),
        held=tuple((version, _state(version, pinned.get(version.name, ()))) for version in held),
    )


def _state(held: Held, releases: Collection[str]) -> str:
    state = "published now" if held.is_current else "not published"
    state += ", working material" if held.is_working_material else ""
    return f"{state}, pinned by {', '.join(sorted(releases))}" if releases else state


def _rows_in(lake: Lake, held: Sequence[Held]) -> tuple[dict[str, tuple[int, int]], set[str]]:
    """Rows and tokens of each document in the newest grid that contains it; and the documents in
    published grids.
    """
    grids = [one for one in held if one.published.stage == token_grid.STAGE.name]
    rows: dict[str, tuple[int, int]] = {}
    served: set[str] = set()
    for one in sorted(grids, key=lambda one: _finished(lake, one.published)):
        table = read_table(one.published.only(token_grid.ROWS_FILE) / token_grid.ROWS_FILE, ["id"])
        counts = Counter(table["id"].to_pylist())
        row_tokens = row_tokens_of(one.published)
        rows |= {name: (n_rows, n_rows * row_tokens) for name, n_rows in counts.items()}
        served |= counts.keys() if one.is_current else set()
    return rows, served


def _finished(lake: Lake, grid: Published) -> float:
    kept = lake.partition(*grid.name.split("/")).folders().get(grid.version)
    return (kept.finished if kept else None) or 0.0
