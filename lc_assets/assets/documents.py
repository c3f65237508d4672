"""Assets of one snapshot's documents: what is upstream, and what is worth keeping."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import dagster as dg
import numpy as np

from lc_assets.assets import columns, plots
from lc_assets.assets.reporting import passages, report, table
from lc_assets.lake.versions import Published
from lc_assets.partitions import SNAPSHOTS
from lc_assets.pools import UPSTREAM, WORKERS
from lc_assets.resources import BuildContextResource
from lc_assets.sources.opening import upstream_of
from lc_assets.stages import watching
from lc_assets.stages.claims import documents_files, dropped_files
from lc_assets.stages.documents import document_keys as keying
from lc_assets.stages.documents import filtered_documents as filtering
from lc_assets.stages.documents import raw_snapshot as raw
from lc_assets.stages.documents import shard_filtering, sweeping
from lc_assets.stages.tables import MANIFEST, read_lines, read_schema
from lc_assets.text import sweeps
from lc_assets.vocabulary import parse_snapshot

SHOWN_MULTIPLES = (0.5, 0.8, 0.9, 1, 1.1, 1.25, 2)
"""Of the threshold in force; the plot has more."""

SHOWN_DOCUMENTS = 8
SHOWN_DOMAINS = 12
HEAD, TAIL = 180, 120
"""Characters of a document that are shown."""


@dg.asset(
    pool=UPSTREAM,
    partitions_def=SNAPSHOTS,
    group_name="documents",
    kinds={"json", "parquet"},
    code_version=raw.STAGE.code_version,
)
def raw_snapshot(
    context: dg.AssetExecutionContext, workshop: BuildContextResource
) -> dg.MaterializeResult:
    """The files of one partition of a source: which, how large, with what content; nothing is
    copied.
    """
    with workshop.open(context.log) as opened:
        snapshot = parse_snapshot(context.partition_key)
        # Before the look: what changes meanwhile is looked at again.
        state = watching.state_of(
            upstream_of(opened.recipe.sources, snapshot, opened.upstream),
            snapshot,
            opened.recipe.raw_snapshot,
            sources=opened.recipe.sources,
        )
        built = raw.take_stock(opened, snapshot)
        sizes = raw.bytes_by_part(built.published)
        return report(
            built,
            counted="shards",
            columns=MANIFEST,
            size_by_part=plots.bars("Size upstream", sizes, unit="bytes"),
            upstream_state=state,
        )


@dg.asset(
    pool=WORKERS,
    partitions_def=SNAPSHOTS,
    group_name="documents",
    kinds={"parquet"},
    code_version=filtering.STAGE.code_version,
    deps=[raw_snapshot],
)
def filtered_documents(
    context: dg.AssetExecutionContext, workshop: BuildContextResource
) -> dg.MaterializeResult:
    """Documents of one snapshot that pass the rules and are no duplicates; the others with the
    reasons against them.
    """
    with workshop.open(context.log) as opened:
        built = filtering.filter_snapshot(opened, parse_snapshot(context.partition_key))
        words = filtering.word_counts(built.published)
        rules, settings = filtering.rules_of_key(opened.recipe, context.partition_key)
        return report(
            built,
            columns=shard_filtering.schema_of(rules),
            origins=columns.FILTERED,
            why_dropped=plots.bars(
                "Why documents were dropped",
                dict(sorted(built.counts.failed_rules.items(), key=lambda item: -item[1])),
                unit="documents",
                beside=built.counts.dropped,
                names=("any reason", "first reason"),
            ),
            thresholds=thresholds_plot(built.published),
            kept_by_threshold=table(thresholds_table(built.published)),
            lengths=plots.histogram(
                "Length of kept documents",
                words,
                unit="words",
                mark=settings.min_words,
                mark_name="minimum",
            ),
            sizes=plots.bars(
                "Size of what was kept",
                {
                    "lines of JSON": built.counts.extra["bytes of JSON"],
                    "stored": built.published.receipt.n_bytes,
                },
                unit="bytes",
            ),
            median_words=float(np.median(words)) if len(words) else 0.0,
            sample_documents=passages(heads_and_tails(built.published)),
            dropped_tables=len(dropped_files(built.published.folder)),
        )


def heads_and_tails(filtered: Published) -> list[dict[str, str]]:
    """How some documents begin and end, one of each shard first; the UI shows text as text,
    whatever is in it.
    """
    lines = [
        next(iter(read_lines(path, ["id", "url", "title", "raw_content"], batch_lines=1)), None)
        for path in _some_shards(filtered)
    ]
    return [
        {
            "id": line["id"],
            "url": line["url"],
            "title": line["title"],
            "begins": line["raw_content"][:HEAD],
            "ends": line["raw_content"][-TAIL:],
        }
        for line in lines
        if line is not None
    ]


def _some_shards(filtered: Published) -> list[Path]:
    files = documents_files(filtered.folder)
    return files[:: max(1, len(files) // SHOWN_DOCUMENTS)][:SHOWN_DOCUMENTS]


@dg.asset(
    pool=WORKERS,
    partitions_def=SNAPSHOTS,
    group_name="documents",
    kinds={"parquet", "numpy"},
    code_version=keying.STAGE.code_version,
    deps=[filtered_documents],
)
def document_keys(
    context: dg.AssetExecutionContext, workshop: BuildContextResource
) -> dg.MaterializeResult:
    """An index of one snapshot's filtered documents by id, address, domain and digest, with the
    values they were judged by.
    """
    with workshop.open(context.log) as opened:
        built = keying.key_snapshot(opened, parse_snapshot(context.partition_key))
        schema = read_schema(built.published.only(keying.DOCUMENTS_FILE) / keying.DOCUMENTS_FILE)
        return report(
            built,
            columns=schema,
            origins=columns.KEYED,
            domains=plots.bars(
                "Hosts with most documents",
                keying.most_common_domains(built.published, SHOWN_DOMAINS),
                unit="documents",
            ),
        )


def thresholds_table(filtered: Published) -> list[dict[str, str | float | int | None]]:
    """A line per bound: the threshold in force, and how many documents some multiples of it would
    keep, the others in force.
    """
    lines = sweeping.total_sweep(sweeping.sweep_files(filtered.folder)).to_pylist()
    found = []
    for own in (line for line in lines if line["in_force"]):
        of_bound = {
            line["threshold"]: line["kept_with_the_others"]
            for line in lines
            if _bound(line) == _bound(own)
        }
        at = {
            f"× {multiple:g}": of_bound.get(sweeps.rounded(multiple * own["threshold"]))
            for multiple in SHOWN_MULTIPLES
        }
        found.append({"rule": own["rule"], own["bound"].replace("_", " "): own["threshold"], **at})
    return [
        {"rule": line["rule"], "at least": line.get("at least"), "at most": line.get("at most")}
        | line
        for line in found
    ]


def _bound(line: Mapping[str, Any]) -> tuple[str, str]:
    return line["rule"], line["bound"]


def thresholds_plot(filtered: Published) -> dg.MetadataValue:
    """How many documents each threshold would keep while the others stay in force, as multiples of
    the threshold in force.
    """
    lines = sweeping.total_sweep(sweeping.sweep_files(filtered.folder)).to_pylist()
    own = {(line["rule"], line["bound"]): line["threshold"] for line in lines if line["in_force"]}
    curves: dict[str, list[tuple[float, float]]] = {}
    for line in lines:
        bound = own[line["rule"], line["bound"]]
        if bound and line["threshold"] / bound > 0 and line["kept_with_the_others"] is not None:
            name = f"{line['rule']} {line['bound'].replace('_', ' ')} {bound:,.6g}"
            curves.setdefault(name, []).append(
                (line["threshold"] / bound, line["kept_with_the_others"])
            )
    return plots.curves(
        "What each threshold would keep",
        curves,
        along="threshold, in multiples of the one in force",
        unit="documents",
    )
