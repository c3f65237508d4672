"""What the UI shows of assets of one snapshot's documents: what is upstream, and what is worth
keeping.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from lc_assets.build import showing
from lc_assets.build.checks import documents_files, dropped_files
from lc_assets.build.showing import Passages, Plot, Shown, Table
from lc_assets.build.stage import (
    BuildContext,
    Built,
)
from lc_assets.build.tables import MANIFEST, read_lines, read_schema
from lc_assets.lake.versions import Published
from lc_assets.stages.documents import document_keys as keying
from lc_assets.stages.documents import filtered_documents as filtering
from lc_assets.stages.documents import raw_snapshot as raw
from lc_assets.stages.documents import shard_filtering, sweeping
from lc_assets.stages.shown import origins
from lc_assets.text.rules import sweeps

SHOWN_MULTIPLES = (0.5, 0.8, 0.9, 1, 1.1, 1.25, 2)
"""Of the threshold in force; the plot has more."""
SHOWN_DOCUMENTS = 8
SHOWN_DOMAINS = 12
HEAD, TAIL = 180, 120
"""Characters of a document that are shown."""


def raw_snapshot(_context: BuildContext, built: Built) -> Shown:
    """Of `raw_snapshot`."""
    sizes = raw.bytes_by_part(built.published)
    return Shown(
        columns=MANIFEST,
        values={"size_by_part": showing.bars("Size upstream", sizes, unit="bytes")},
    )


def filtered_documents(context: BuildContext, built: Built) -> Shown:
    """Of `filtered_documents`."""
    words = filtering.word_counts(built.published)
    key = built.published.receipt.fingerprint.key
    rules, settings = filtering.rules_of_key(context.recipe, key)
    return Shown(
        columns=shard_filtering.schema_of(rules),
        origins=origins.FILTERED,
        values={
            "why_dropped": showing.bars(
                "Why documents were dropped",
                dict(sorted(built.counts.failed_rules.items(), key=lambda item: -item[1])),
                unit="documents",
                beside=built.counts.dropped,
                names=("any reason", "first reason"),
            ),
            "thresholds": thresholds_plot(built.published),
            "kept_by_threshold": Table(thresholds_table(built.published)),
            "lengths": showing.histogram(
                "Length of kept documents",
                words,
                unit="words",
                mark=settings.min_words,
                mark_name="minimum",
            ),
            "sizes": showing.bars(
                "Size of what was kept",
                {
                    "read": built.counts.extra.get(
                        "bytes of JSON", built.published.receipt.measured["bytes_read"]
                    ),
                    "stored": built.published.receipt.n_bytes,
                },
                unit="bytes",
            ),
            "median_words": float(np.median(words)) if len(words) else 0.0,
            "sample_documents": Passages(heads_and_tails(built.published)),
            "dropped_tables": len(dropped_files(built.published.folder)),
        },
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


def document_keys(_context: BuildContext, built: Built) -> Shown:
    """Of `document_keys`."""
    schema = read_schema(built.published.only(keying.DOCUMENTS_FILE) / keying.DOCUMENTS_FILE)
    return Shown(
        columns=schema,
        origins=origins.KEYED,
        values={
            "domains": showing.bars(
                "Hosts with most documents",
                keying.most_common_domains(built.published, SHOWN_DOMAINS),
                unit="documents",
            )
        },
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


def thresholds_plot(filtered: Published) -> Plot:
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
    return showing.curves(
        "What each threshold would keep",
        curves,
        along="threshold, in multiples of the one in force",
        unit="documents",
    )
