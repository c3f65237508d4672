"""A report of withdrawn documents: documents, rows and tokens by date and reason, and the versions
that still contain them.

Rows and tokens are those of the newest version of a grid that contains the document; when all such
versions are purged they count as zero. `affected` reports them before anything is built.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lc_assets.build.tables import read_table
from lc_assets.lake.lake import Lake
from lc_assets.lake.versions import Published
from lc_assets.stages.releases.pruning import pinned_versions
from lc_assets.stages.rows.token_grid import ROWS_FILE
from lc_assets.stages.withdrawal.holders import WORKING_MATERIAL, Held, versions_with
from lc_assets.stages.withdrawal.withdrawn_documents import LISTED, NEAR_DUPLICATE, SAME_DIGEST


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldingVersion:
    """A version that contains withdrawn documents, and why it still exists."""

    name: str
    n_documents: int | None
    n_bytes: int
    state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WithdrawalReport:
    """What was withdrawn.

    Attributes:
        by_reason: a line per date and reason.
        held: a line per version that contains some of it.
    """

    by_reason: tuple[dict[str, Any], ...]
    held: tuple[HoldingVersion, ...]


def report(lake: Lake, lines: Sequence[Mapping[str, Any]]) -> WithdrawalReport:
    """Report on the withdrawn documents, given as rows of `tables.WITHDRAWN`."""
    ids = [line["id"] for line in lines]
    held = list(versions_with(lake, ids)) if ids else []
    rows, served = _rows(lake, held, ids)
    found: dict[tuple[str, str], Counter[str]] = {}
    for line in lines:
        n_rows, n_tokens = rows.get(line["id"], (0, 0))
        counts = {
            "documents": 1,
            line["how"]: 1,
            "rows": n_rows,
            "tokens": n_tokens,
            "still served": int(line["id"] in served),
        }
        found.setdefault((line["date"], line["reason"]), Counter()).update(counts)
    names = ("documents", LISTED, SAME_DIGEST, NEAR_DUPLICATE, "rows", "tokens", "still served")
    by_reason = (
        {"date": date, "reason": reason, **{name: counts[name] for name in names}}
        for (date, reason), counts in sorted(found.items())
    )
    pinned = pinned_versions(lake)
    return WithdrawalReport(
        by_reason=tuple(by_reason),
        held=tuple(_held_line(one, pinned) for one in held),
    )


def _held_line(held: Held, pinned: Mapping[str, set[str]]) -> HoldingVersion:
    by = pinned.get(held.name)
    state = "published now" if held.is_current else "not published"
    if held.published.receipt.fingerprint.stage in WORKING_MATERIAL:
        state = f"{state}, working material"
    state = f"{state}, pinned by {', '.join(sorted(by))}" if by else state
    return HoldingVersion(
        name=held.name,
        n_documents=held.n_documents,
        n_bytes=held.published.receipt.n_bytes,
        state=state,
    )


def _rows(
    lake: Lake, held: Sequence[Held], ids: Sequence[str]
) -> tuple[dict[str, tuple[int, int]], set[str]]:
    """Rows and tokens of each document in the newest grid that contains it; and the documents in
    published grids.
    """
    grids = [one for one in held if one.published.receipt.fingerprint.stage == "token_grid"]
    rows: dict[str, tuple[int, int]] = {}
    served: set[str] = set()
    for one in sorted(grids, key=lambda one: _finished(lake, one.published)):
        counts = _counted(one.published, ids)
        row_tokens = int(one.published.receipt.fingerprint.params["row_tokens"])
        rows |= {name: (n_rows, n_rows * row_tokens) for name, n_rows in counts.items()}
        served |= counts.keys() if one.is_current else set()
    return rows, served


def _finished(lake: Lake, grid: Published) -> float:
    kept = lake.partition("token_grid", grid.receipt.fingerprint.key).folders().get(grid.version)
    return (kept.finished if kept else None) or 0.0


def _counted(grid: Published, ids: Sequence[str]) -> Counter[str]:
    table = read_table(grid.only(ROWS_FILE) / ROWS_FILE, ["id"])
    found = table.filter(pc.is_in(table["id"], value_set=pa.array(sorted(ids), pa.string())))
    return Counter(found["id"].to_pylist())
