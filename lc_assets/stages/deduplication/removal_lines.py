"""The lines of excluded documents: what each duplicates or holds, and why it goes."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from lc_assets import arrow_compute as pc
from lc_assets.arrays import Booleans
from lc_assets.lake.versions import Published
from lc_assets.stages.decontamination.contaminated_documents import (
    EVIDENCE_SUFFIX,
    contaminated_ids,
)
from lc_assets.stages.decontamination.evidence import CONTAMINATED
from lc_assets.stages.deduplication.deciding import (
    CODED,
    NEAR,
    NEAR_HELDOUT,
    REASONS,
    WITHDRAWN,
    Decided,
    Involved,
    Standing,
)
from lc_assets.stages.deduplication.preferences import why_rather
from lc_assets.stages.deduplication.removals import CLUSTERS, DECISIONS
from lc_assets.stages.withdrawal.snapshot_withdrawals import (
    TABLE as WITHDRAWALS_TABLE,
    withdrawals_in,
)
from lc_assets.text.duplicates.clusters import Numbers

REMOVED = pa.schema(
    [DECISIONS.field(name) for name in ("id", "reason", "for_id", "kept_id", "similarity", "why")]
)
"""What is said of a document that is excluded."""


def removed_lines(
    known: Involved, standing: Standing, decided: Decided, which: Numbers, prefer: Sequence[str]
) -> pa.Table:
    """The lines, `REMOVED`, of some removed documents: the document that each is a duplicate of,
    the one that is finally kept, their similarity, and the reason for the choice.
    """
    kept = last = decided.kept[which]
    while np.any(goes := decided.kept[last] >= 0):
        last = np.where(goes, decided.kept[last], last)
    others, ours, ends = (known.facts.take(pa.array(places)) for places in (which, kept, last))
    reasons = [CODED[code] for code in decided.reasons[which].tolist()]
    why = list[str]()
    for reason, place, one, other in zip(
        reasons, which.tolist(), ours.to_pylist(), others.to_pylist(), strict=True
    ):
        if reason == NEAR_HELDOUT:
            side = "trained on" if standing.held[place] else "held out"
            why.append(f"the other is {side}")
        elif standing.ineligible[place]:
            why.append("the other is excluded anyway")
        elif standing.late[place]:
            why.append("the other is too similar to one across the split")
        else:
            why.append(why_rather(prefer, one, other))
    alike = pa.array(decided.similarities[which], from_pandas=True)
    columns = [others["id"], reasons, ours["id"], ends["id"], alike, why]
    return pa.table(columns, REMOVED.names).cast(REMOVED)


def in_clusters(decided: Decided, ours: Booleans) -> Numbers:
    """Near duplicates that were removed for the same document as one of ours, or for one of ours;
    ``ours`` is ``(n,)``.
    """
    near = np.flatnonzero(decided.reasons == CODED.index(REASONS[NEAR]))
    kept = decided.kept[near]
    return near[np.isin(kept, kept[ours[near] | ours[kept]])]


def clusters(near: pa.Table) -> pa.Table:
    """`CLUSTERS` of near duplicates, given by their lines: each with the document that is kept."""
    kept = near["for_id"].unique()
    members = pa.concat_tables(
        [
            _members(near["id"], near["for_id"], near["similarity"], near["why"], stays=False),
            _members(kept, kept, [1.0] * len(kept), ["stays"] * len(kept), stays=True),
        ]
    )
    sizes = members.group_by("kept_id", use_threads=False).aggregate(
        [("id", "min"), ("id", "count")]
    )
    of_each = sizes.take(pc.index_in(members["kept_id"], sizes["kept_id"]))
    columns = {name: members[name] for name in members.column_names} | {
        "cluster": of_each["id_min"],
        "size": of_each["id_count"],
    }
    found = pa.table([columns[name] for name in CLUSTERS.names], schema=CLUSTERS)
    return found.sort_by([("cluster", "ascending"), ("id", "ascending")])


def _members(ids: Any, kept: Any, alike: Any, why: Any, *, stays: bool) -> pa.Table:
    names = ["id", "kept_id", "similarity_to_kept", "why", "stays"]
    columns = [ids, kept, alike, why, [stays] * len(ids)]
    schema = pa.schema([CLUSTERS.field(name) for name in names])
    return pa.table(columns, schema=schema)


def _line(name: str, reason: str, for_id: str, similarity: float, why: str) -> dict[str, Any]:
    """A line of an excluded document for which none is kept."""
    values = (name, reason, for_id, "", similarity, why)
    return dict(zip(REMOVED.names, values, strict=True))


def contaminated(published: Published) -> list[dict[str, Any]]:
    """A snapshot's documents that hold too much of an evaluation item."""
    evidence = published.only(f"*{EVIDENCE_SUFFIX}")
    return [
        _line(name, CONTAMINATED, item, share, f"holds {share:.0%} of {item}")
        for name, (item, share) in contaminated_ids(evidence).items()
    ]


def withdrawn(published: Published) -> list[dict[str, Any]]:
    """A snapshot's documents that must not be served."""
    return [
        _line(line["id"], WITHDRAWN, line["for_id"], line["similarity"], line["how"])
        for line in withdrawals_in(published.only(WITHDRAWALS_TABLE))
    ]
