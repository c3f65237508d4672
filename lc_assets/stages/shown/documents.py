"""What stages of documents show: filtering, duplicates, evaluation items, withdrawals."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from lc_assets import arrow_compute as pc
from lc_assets.builds.checks import documents_files
from lc_assets.builds.showing import Passages, Plot, Shown, Table, plot_of
from lc_assets.builds.stage import BuildContext, Built
from lc_assets.builds.tables import read_lines, read_schema, read_table
from lc_assets.lake.versions import Published
from lc_assets.stages.decontamination import contaminated_documents as contamination
from lc_assets.stages.deduplication import (
    near_duplicate_pairs as pairing,
    removals as removing,
    signature_index as indexing,
    signing,
)
from lc_assets.stages.documents import (
    document_keys as keying,
    filtered_documents as filtering,
    kept_lines,
    raw_snapshot as raw,
    sweeping,
)
from lc_assets.stages.documents.measuring import rules_of_key
from lc_assets.stages.withdrawal import (
    snapshot_withdrawals as withdrawals,
    withdrawn_documents as withdrawing,
)
from lc_assets.stages.withdrawal.reporting import partitions_to_rebuild, withdrawn_by_reason

SHOWN_MULTIPLES = (0.5, 0.8, 0.9, 1, 1.1, 1.25, 2)
"""Of the applied threshold; the plot has more."""
SHOWN_DOCUMENTS = 8
SHOWN_DOMAINS = 12
SHOWN_LINES = 10
HEAD, TAIL = 180, 120
"""Characters of a document that are shown."""


def counted(built: Built, names: Sequence[str]) -> dict[str, int]:
    """Some of a version's further counts."""
    return {name: built.counts.extra.get(name, 0) for name in names}


def passage(line: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """How a document begins and ends, under some of its other fields."""
    text = line["raw_content"]
    return {name: line[name] for name in names} | {"begins": text[:HEAD], "ends": text[-TAIL:]}


def raw_snapshot(_context: BuildContext, built: Built) -> Shown:
    """Sizes of the files upstream."""
    sizes = raw.bytes_by_part(built.published)
    plot = plot_of("bars", "Size upstream", sizes, unit="bytes")
    return Shown(values={"size_by_part": plot})


def filtered_documents(context: BuildContext, built: Built) -> Shown:
    """Reasons, thresholds, lengths, sizes and samples."""
    published, counts = built.published, built.counts
    words = filtering.word_counts(published)
    rules, settings = rules_of_key(context.recipe, published.key)
    read = counts.extra.get("bytes of JSON", published.receipt.measured["bytes_read"])
    curves, numbers = thresholds_of(published)
    files = documents_files(published.folder)
    heads = [
        next(iter(read_lines(path, ["id", "url", "title", "raw_content"], batch_lines=1)), None)
        for path in files[:: max(1, len(files) // SHOWN_DOCUMENTS)][:SHOWN_DOCUMENTS]
    ]
    return Shown(
        columns=kept_lines.schema_of(rules),
        values={
            "why_dropped": plot_of(
                "bars",
                "Why documents were dropped",
                dict(sorted(counts.failed_rules.items(), key=lambda item: -item[1])),
                unit="documents",
                beside=counts.dropped,
                names=("any reason", "first reason"),
            ),
            "thresholds": curves,
            "kept_by_threshold": numbers,
            "lengths": plot_of(
                "histogram",
                "Length of kept documents",
                words,
                unit="words",
                mark=settings.min_words,
                mark_name="minimum",
            ),
            "sizes": plot_of(
                "bars",
                "Size of what was kept",
                {"read": read, "stored": published.receipt.n_bytes},
                unit="bytes",
            ),
            "sample_documents": Passages(
                [passage(line, "id", "url", "title") for line in heads if line is not None]
            ),
        },
    )


def thresholds_of(filtered: Published) -> tuple[Plot, Table]:
    """How many documents multiples of each bound would keep with all others applied: a curve, and a
    line, per bound.
    """
    lines = sweeping.total_sweep([filtered.folder]).to_pylist()
    applied = {
        (line["rule"], line["bound"]): line["threshold"] for line in lines if line["in_force"]
    }
    kept: dict[tuple[str, str], dict[float, int]] = {}
    for line in lines:
        key = line["rule"], line["bound"]
        kept.setdefault(key, {})[line["threshold"]] = line["kept_with_the_others"]
    curves: dict[str, list[tuple[float, int]]] = {}
    table: list[dict[str, Any]] = []
    for (rule, bound), threshold in applied.items():
        own, side = kept[rule, bound], bound.replace("_", " ")
        points = [
            (other / threshold, n_kept)
            for other, n_kept in own.items()
            if threshold and other / threshold > 0 and n_kept is not None
        ]
        if points:
            curves[f"{rule} {side} {threshold:,.6g}"] = points
        multiples = {
            f"× {multiple:g}": own.get(sweeping.rounded(multiple * threshold))
            for multiple in SHOWN_MULTIPLES
        }
        table.append({"rule": rule, "at least": None, "at most": None, side: threshold} | multiples)
    plot = plot_of(
        "curves",
        "What each threshold would keep",
        curves,
        along="threshold, in multiples of the applied one",
        unit="documents",
    )
    return plot, Table(table)


def document_keys(_context: BuildContext, built: Built) -> Shown:
    """Hosts with most documents; ties are sorted by name."""
    path = built.published.only(keying.DOCUMENTS_FILE) / keying.DOCUMENTS_FILE
    found = read_table(path, ["source_domain"])["source_domain"].value_counts().to_pylist()
    most = sorted(found, key=lambda line: (-line["counts"], line["values"]))[:SHOWN_DOMAINS]
    domains = {line["values"]: line["counts"] for line in most}
    plot = plot_of("bars", "Hosts with most documents", domains, unit="documents")
    return Shown(columns=read_schema(path), values={"domains": plot})


def document_signatures(_context: BuildContext, built: Built) -> Shown:
    """Published, computed or none."""
    counts = counted(built, (signing.PUBLISHED, signing.COMPUTED, signing.TOO_SHORT))
    plot = plot_of("bars", "Origin of signatures", counts, unit="documents")
    return Shown(values={"origin": plot})


def signature_index(_context: BuildContext, built: Built) -> Shown:
    """Documents with and without a signature."""
    counts = counted(built, (indexing.SIGNED, indexing.NOT_SIGNED))
    plot = plot_of("bars", "Documents", counts, unit="documents")
    return Shown(values={"documents": plot})


def near_duplicate_pairs(_context: BuildContext, built: Built) -> Shown:
    """Similarities, and the least and most similar pairs."""
    found = read_table(built.published.folder / pairing.TABLE, pairing.NEAR_PAIRS.names)
    ordered = found.take(pc.sort_indices(found["similarity"]))
    last = ordered.slice(max(ordered.num_rows - SHOWN_LINES, 0))
    return Shown(
        values={
            "similarities": plot_of(
                "histogram",
                "Similarity of the pairs",
                found["similarity"],
                unit="Jaccard index",
                counted="pairs",
                shares=True,
            ),
            "least_alike": Table(ordered.slice(0, SHOWN_LINES).to_pylist()),
            "most_alike": Table(last.to_pylist()),
        },
    )


heldout_pairs = near_duplicate_pairs
"""The same of the pairs across the split."""


def contaminated_documents(_context: BuildContext, built: Built) -> Shown:
    """Coverage of evaluation items, and the worst matches."""
    lines = contamination.evidence_lines(built.published.folder)
    worst = sorted(lines, key=lambda line: -line["coverage"])
    coverages = [line["coverage"] for line in worst]
    plot = plot_of(
        "histogram",
        "Share of an item in a document",
        coverages,
        unit="share",
        counted="matches",
        shares=True,
    )
    return Shown(values={"coverage": plot, "worst": Table(worst[:SHOWN_LINES])})


def withdrawn_documents(context: BuildContext, built: Built) -> Shown:
    """Withdrawals by kind and reason, and what is still served until it is rebuilt."""
    lines = withdrawing.withdrawn_lines(built.published)
    lake = context.lake
    served = [{"partition": name} for name in partitions_to_rebuild(lake, lines)]
    return Shown(
        values=_withdrawals(lines)
        | {
            "by_reason": Table(withdrawn_by_reason(lake, lines)),
            "served_until_rebuilt": Table(served),
        },
    )


def snapshot_withdrawals(_context: BuildContext, built: Built) -> Shown:
    """Withdrawals by kind."""
    lines = withdrawals.withdrawals_in(built.published.folder)
    return Shown(values=_withdrawals(lines))


def _withdrawals(lines: Sequence[Mapping[str, Any]]) -> dict[str, Plot | Table]:
    counts = Counter(line["how"] for line in lines)
    plot = plot_of("bars", "Why they are withdrawn", counts, unit="documents")
    return {"how": plot, "documents": Table(lines[:SHOWN_LINES])}


def removed_documents(_context: BuildContext, built: Built) -> Shown:
    """Some removed documents."""
    examples = Table(removing.removals_in(built.published.folder)[:SHOWN_LINES])
    return Shown(values={"examples": examples})
