"""Reports of withdrawn documents: what a withdrawal affects, before anything is rebuilt; and what
was withdrawn, afterwards. Nothing is built or written.
"""

from collections import Counter
from collections.abc import Collection, Sequence

from lc_assets.builds.tables import Line
from lc_assets.lake.lake import Lake
from lc_assets.stages.catalogue import STAGES
from lc_assets.stages.deduplication import removals
from lc_assets.stages.lineage.row_lineage import rows_of
from lc_assets.stages.lineage.spans import Span, span_of_row
from lc_assets.stages.lineage.whereabouts import mixes_of, samples_of
from lc_assets.stages.releases.pruning import pinned_versions
from lc_assets.stages.withdrawal.contents import Held, versions_with
from lc_assets.stages.withdrawal.remembering import HOWS
from lc_assets.vocabulary import parse_document_id

COLUMNS = ("date", "reason", "documents", *HOWS, "still served")
"""Of the report."""


def affected_by(lake: Lake, lines: Sequence[Line]) -> dict[str, int]:
    """Number of withdrawn documents, given as rows of `tables.WITHDRAWN`, by how they were matched;
    of their published rows, tokens, and samples per mix.
    """
    spans = [row for of in _published_rows(lake, lines).values() for row in of]
    samples = samples_of(lake, mixes_of(lake), spans)
    return {
        "documents": len(lines),
        "rows": len(spans),
        "tokens": sum(row.row_stop for row in spans),
        **Counter(f"of these {line['how']}" for line in lines),
        **{f"samples of {mix}": len(of) for mix, of in samples.items()},
    }


def _ids_by_snapshot(lines: Sequence[Line]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for line in lines:
        found.setdefault(parse_document_id(line["id"])[0].snapshot, set()).add(line["id"])
    return dict(sorted(found.items()))


def _published_rows(lake: Lake, lines: Sequence[Line]) -> dict[str, list[Span]]:
    """Rows of the documents in published grids, by document."""
    found: dict[str, list[Span]] = {}
    for snapshot, names in _ids_by_snapshot(lines).items():
        grid = lake.partition("token_grid", snapshot).current()
        if grid is not None:
            for _, row in rows_of(lake, grid).find_all([("document", name) for name in names]):
                found.setdefault(row["id"], []).append(span_of_row(grid, row))
    return found


def _any_goes_on(lake: Lake, snapshot: str, ids: set[str]) -> bool:
    published = lake.partition("removed_documents", snapshot).current()
    return (
        published is not None
        and not ids <= removals.removed_ids(published.only(removals.TABLE)).keys()
    )


def partitions_to_rebuild(lake: Lake, lines: Sequence[Line]) -> list[str]:
    """Names of the published partitions that withdrawing documents changes, upstream first."""
    below = {"removed_documents"}
    below.update(stage.name for stage in STAGES if below.intersection(stage.upstream))
    stages = [stage for stage in STAGES if stage.name in below]
    ids = _ids_by_snapshot(lines)
    losing = [snapshot for snapshot, names in ids.items() if _any_goes_on(lake, snapshot, names)]
    with_rows = {row.snapshot for of in _published_rows(lake, lines).values() for row in of}
    changed = with_rows | {f"packed_rows/{key}" for key in losing}
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
            f"blended_mix/{name}"
            for name, (_, mix) in mixes_of(lake).items()
            if changed & {source.name for source in mix.sources}
        ),
    ]


def withdrawn_by_reason(lake: Lake, lines: Sequence[Line]) -> list[Line]:
    """Withdrawn documents, given as rows of `tables.WITHDRAWN`, by date and reason: lines of
    `COLUMNS`.
    """
    served = _published_rows(lake, lines)
    groups: dict[tuple[str, str], Counter[str]] = {}
    for line in lines:
        counts = {"documents": 1, line["how"]: 1, "still served": int(line["id"] in served)}
        groups.setdefault((line["date"], line["reason"]), Counter()).update(counts)
    return [
        {"date": date, "reason": reason, **{name: counts[name] for name in COLUMNS[2:]}}
        for (date, reason), counts in sorted(groups.items())
    ]


def versions_holding(
    lake: Lake, lines: Sequence[Line], digests: Collection[str] = ()
) -> list[tuple[Held, str]]:
    """The versions that contain withdrawn documents, and why each still exists."""
    pinned, ids = pinned_versions(lake), [line["id"] for line in lines]
    held = versions_with(lake, ids, digests) if ids or digests else ()
    return [(version, _state(version, sorted(pinned.get(version.name, ())))) for version in held]


def _state(held: Held, releases: Sequence[str]) -> str:
    state = "published now" if held.is_current else "not published"
    state += ", working material" if held.is_working_material else ""
    return f"{state}, pinned by {', '.join(releases)}" if releases else state
