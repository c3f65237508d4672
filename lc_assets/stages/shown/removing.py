"""What the UI shows of assets of what does not go on although it is worth keeping: near duplicates,
evaluation items, the withdrawn.
"""

from collections import Counter

import pyarrow.compute as pc

from lc_assets.build import showing
from lc_assets.build.showing import Shown, Table
from lc_assets.build.stage import (
    BuildContext,
    Built,
)
from lc_assets.build.tables import WITHDRAWN, read_table
from lc_assets.formats.redpajama.minhash import SCHEMA
from lc_assets.stages.decontamination import contaminated_documents as contamination
from lc_assets.stages.decontamination.evidence import EVIDENCE
from lc_assets.stages.deduplication import document_signatures as signing
from lc_assets.stages.deduplication import near_duplicate_pairs as near_pairs
from lc_assets.stages.deduplication import removed_documents as removals
from lc_assets.stages.deduplication import signature_index as signature_bands
from lc_assets.stages.deduplication.index import BANDED
from lc_assets.stages.documents.clean_shards import CLEAN
from lc_assets.stages.shown import origins
from lc_assets.stages.withdrawal import affected
from lc_assets.stages.withdrawal import snapshot_withdrawals as withdrawals
from lc_assets.stages.withdrawal import withdrawn_documents as withdrawing

SHOWN = 10


def document_signatures(_context: BuildContext, built: Built) -> Shown:
    """Of `document_signatures`."""
    counts = {
        name: built.counts.extra.get(name, 0)
        for name in (signing.PUBLISHED, signing.COMPUTED, signing.TOO_SHORT)
    }
    return Shown(
        columns=SCHEMA,
        origins=origins.SIGNATURES,
        values={"origin": showing.bars("Where signatures are from", counts, unit="documents")},
    )


def signature_index(_context: BuildContext, built: Built) -> Shown:
    """Of `signature_index`."""
    counts = {
        name: built.counts.extra.get(name, 0)
        for name in (signature_bands.SIGNED, signature_bands.NOT_SIGNED)
    }
    return Shown(
        columns=BANDED,
        origins=origins.BANDED,
        values={"documents": showing.bars("Documents", counts, unit="documents")},
    )


def near_duplicate_pairs(_context: BuildContext, built: Built) -> Shown:
    """Of `near_duplicate_pairs`."""
    found = read_table(built.published.folder / near_pairs.TABLE, near_pairs.NEAR_PAIRS.names)
    alike = found.take(pc.sort_indices(found["similarity"]))
    return Shown(
        columns=near_pairs.NEAR_PAIRS,
        origins=origins.NEAR_PAIRS,
        values={
            "similarities": showing.shares(
                "How alike the pairs are", found["similarity"], along="Jaccard index", unit="pairs"
            ),
            "least_alike": Table(alike.slice(0, SHOWN).to_pylist()),
            "most_alike": Table(alike.slice(max(alike.num_rows - SHOWN, 0)).to_pylist()),
        },
    )


def contaminated_documents(_context: BuildContext, built: Built) -> Shown:
    """Of `contaminated_documents`."""
    worst = sorted(
        contamination.evidence_lines(built.published.folder), key=lambda line: -line["coverage"]
    )
    return Shown(
        columns=EVIDENCE,
        origins=origins.CONTAMINATED,
        values={
            "coverage": showing.shares(
                "How much of an item stands in a document",
                [line["coverage"] for line in worst],
                unit="finds",
            ),
            "worst": Table(worst[:SHOWN]),
        },
    )


def withdrawn_documents(context: BuildContext, built: Built) -> Shown:
    """Of `withdrawn_documents`."""
    lines = withdrawing.withdrawn_lines(built.published)
    found = affected.affected_by(context.lake, lines)
    return Shown(
        columns=WITHDRAWN,
        origins=origins.WITHDRAWN,
        values={
            "how": showing.bars(
                "Why they are withdrawn", Counter(line["how"] for line in lines), unit="documents"
            ),
            "taken_out": Table(affected.by_reason(found)),
            "stands_until_rebuilt": Table(
                [{"partition": name} for name in affected.partitions(context.lake, found)]
            ),
            "documents": Table(lines[:SHOWN]),
        },
    )


def snapshot_withdrawals(_context: BuildContext, built: Built) -> Shown:
    """Of `snapshot_withdrawals`."""
    lines = withdrawals.withdrawals_in(built.published.folder)
    return Shown(
        columns=withdrawals.WITHDRAWALS,
        origins=origins.WITHDRAWALS,
        values={
            "how": showing.bars(
                "Why they are withdrawn", Counter(line["how"] for line in lines), unit="documents"
            ),
            "documents": Table(lines[:SHOWN]),
        },
    )


def removed_documents(_context: BuildContext, built: Built) -> Shown:
    """Of `removed_documents`."""
    lines = (
        read_table(built.published.folder / removals.TABLE, removals.REMOVALS.names)
        .slice(0, SHOWN)
        .to_pylist()
    )
    return Shown(
        columns=removals.REMOVALS, origins=origins.REMOVED, values={"examples": Table(lines)}
    )


def clean_documents(_context: BuildContext, built: Built) -> Shown:
    """Of `clean_documents`."""
    return Shown(
        columns=CLEAN,
        origins=origins.CLEAN,
        values={
            "why_dropped": showing.bars(
                "Why documents were removed", dict(built.counts.dropped), unit="documents"
            )
        },
    )
