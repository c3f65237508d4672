"""What withdrawing documents affects in what is published: rows, tokens, samples of mixes,
partitions to rebuild.

Computed before anything is built; afterwards the rows are gone and only old versions contain them
(`lc_assets.stages.withdrawal.holders`). Nothing is built or written.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lc_assets.lake.lake import GLOBAL, Lake
from lc_assets.lake.versions import Published
from lc_assets.stages.deduplication.removed_documents import TABLE as REMOVALS_TABLE
from lc_assets.stages.deduplication.removed_documents import removed_ids
from lc_assets.stages.lineage.row_lineage import row_index
from lc_assets.stages.lineage.tracing import Row, row_from
from lc_assets.stages.lineage.whereabouts import lines_of_table, mixes_of, samples_of_rows
from lc_assets.stages.mixes.blended_mix import Mix
from lc_assets.vocabulary import parse_document_id

OF_A_SNAPSHOT = (
    *(
        "removed_documents",
        "clean_documents",
        "link_claims",
        "longpack_documents",
        "token_documents",
        "token_grid",
        "row_lineage",
        "megatron_rows",
    ),
    *("packing_tokens", "packed_rows", "length_report", "referral_report"),
)
"""Published partitions of a snapshot that are rebuilt when one of its documents is withdrawn."""
OF_ALL = ("longcrawl", "longcrawl_flat", "data_set_card")


@dataclass(frozen=True, slots=True, kw_only=True)
class Affected:
    """What some withdrawn documents are part of.

    Attributes:
        lines: the documents, as rows of `tables.WITHDRAWN`.
        rows: their rows in the published grids, each with its grid.
        samples: how many samples of each published mix contain their tokens, by date and reason,
            then by mix.
        going: snapshots that lose a document.
    """

    lines: tuple[dict[str, Any], ...]
    rows: tuple[tuple[Published, Row], ...]
    samples: dict[tuple[str, str], Counter[str]]
    going: tuple[str, ...]

    @property
    def n_tokens(self) -> int:
        """Tokens of the rows."""
        return sum(row.row_tokens for _, row in self.rows)


def affected_by(lake: Lake, lines: Sequence[dict[str, Any]]) -> Affected:
    """Find what some withdrawn documents are part of."""
    by_snapshot: dict[str, list[str]] = {}
    for line in lines:
        by_snapshot.setdefault(parse_document_id(line["id"])[0].snapshot, []).append(line["id"])
    rows = [
        found
        for snapshot, ids in sorted(by_snapshot.items())
        for found in _rows_of(lake, snapshot, ids)
    ]
    going = tuple(
        snapshot
        for snapshot, ids in sorted(by_snapshot.items())
        if _any_goes_on(lake, snapshot, ids)
    )
    return Affected(
        lines=tuple(lines), rows=tuple(rows), samples=_samples(lake, lines, rows), going=going
    )


def _rows_of(lake: Lake, snapshot: str, ids: Sequence[str]) -> list[tuple[Published, Row]]:
    grid = lake.partition("token_grid", snapshot).current()
    if grid is None:
        return []
    index = row_index(lake, grid)
    lines = (
        index.documents(ids)
        if index
        else [line for name in ids for line in lines_of_table(grid, "document", name)]
    )
    return [(grid, row_from(grid, line)) for line in lines]


def _any_goes_on(lake: Lake, snapshot: str, ids: Sequence[str]) -> bool:
    removals = lake.partition("removed_documents", snapshot).current()
    return (
        removals is not None and not set(ids) <= removed_ids(removals.only(REMOVALS_TABLE)).keys()
    )


def _samples(
    lake: Lake, lines: Sequence[dict[str, Any]], rows: Sequence[tuple[Published, Row]]
) -> dict[tuple[str, str], Counter[str]]:
    mixes: dict[str, tuple[Published, Mix]] = mixes_of(lake) if rows else {}
    groups = {line["id"]: _group(line) for line in lines}
    together: dict[tuple[tuple[str, str], str], tuple[Published, list[Row]]] = {}
    for grid, row in rows:
        together.setdefault((groups[row.id], row.snapshot), (grid, []))[1].append(row)
    found: dict[tuple[str, str], Counter[str]] = {}
    for (group, _), (grid, of_group) in together.items():
        counts = {
            mix: len(samples)
            for mix, samples in samples_of_rows(mixes, lake, grid, of_group).items()
        }
        found.setdefault(group, Counter()).update(counts)
    return found


def _group(line: Mapping[str, Any]) -> tuple[str, str]:
    return line["date"], line["reason"]


def by_reason(affected: Affected) -> list[dict[str, Any]]:
    """One line per date and reason, oldest first: documents by how they were matched, rows, tokens,
    samples per mix.
    """
    rows, tokens = Counter[str](), Counter[str]()
    for _, row in affected.rows:
        rows[row.id] += 1
        tokens[row.id] += row.row_tokens
    found: dict[tuple[str, str], Counter[str]] = {}
    for line in affected.lines:
        name, counts = line["id"], found.setdefault(_group(line), Counter())
        counts.update(
            {
                "documents": 1,
                f"of these {line['how']}": 1,
                "rows": rows[name],
                "tokens": tokens[name],
            }
        )
    for group, samples in affected.samples.items():
        found[group].update({f"samples of {mix}": n for mix, n in samples.items()})
    return [
        {"date": date, "reason": reason, **counts}
        for (date, reason), counts in sorted(found.items())
    ]


def partitions(lake: Lake, affected: Affected) -> list[str]:
    """Names of the published partitions to rebuild, upstream first."""
    if not affected.going and not affected.rows:
        return []
    of_snapshots = [f"{stage}/{key}" for key in affected.going for stage in OF_A_SNAPSHOT]
    with_rows = {grid.receipt.fingerprint.key for grid, _ in affected.rows}
    of_all = [f"{stage}/{GLOBAL}" for stage in OF_ALL] if with_rows else []
    changed = with_rows | {f"packed_rows/{key}" for key in affected.going}
    mixes = [
        f"blended_mix/{name}"
        for name, (_, mix) in mixes_of(lake).items()
        if changed & {source.name for source in mix.sources}
    ]
    published = {
        f"{stage}/{key}"
        for stage in (*OF_A_SNAPSHOT, *OF_ALL, "blended_mix")
        for key in lake.keys(stage)
    }
    return [name for name in (*of_snapshots, *of_all, *mixes) if name in published]
