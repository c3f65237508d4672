"""``lc dedup``: remove duplicates, exact and near, with evidence."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lc_assets.cli import options
from lc_assets.cli.printing import facts, heading, lasted, say, table
from lc_assets.errors import BadInput

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lc_assets.build.stage import Built

SHOWN_CLUSTERS = 5
SHOWN_MEMBERS = 12
NEAR = "near"


def dedup(
    sources: options.Sources,
    threshold: Annotated[
        float,
        typer.Option("--threshold", help="Share of 13-grams that near duplicates have in common."),
    ] = 0.8,
    by: Annotated[
        str, typer.Option("--by", help="Of digest, text, url and near, with commas.")
    ] = "digest,text,url,near",
    prefer: Annotated[
        str,
        typer.Option(
            "--prefer",
            help="Which document is kept: newest, oldest, longest, best_perplexity, source=NAME "
            "(the name of an IN); several with commas.",
        ),
    ] = "newest",
    floor: Annotated[
        float, typer.Option("--floor", help="Pairs that are less alike are not written down.")
    ] = 0.5,
    paragraphs: Annotated[
        int | None,
        typer.Option(
            "--paragraphs",
            min=1,
            help="Then remove lines of so many characters that another document of the IN has.",
        ),
    ] = None,
    text_field: options.TextField = None,
    workers: options.Workers = None,
) -> None:
    """Remove duplicates by digest, text, address and shingles; near ones are compared first.

    OUT is a lake: `clean_documents` holds the documents that are left, `near_duplicate_pairs` and
    `removed_documents` the evidence. Running it again with another threshold or with more IN reuses
    what was computed.

    Example: lc dedup crawl out --threshold 0.8
    """
    import time

    from lc_assets.build.settings.documents import (
        CleanDocumentsSettings,
        NearDuplicateSettings,
        RemovalSettings,
        SignatureSettings,
    )
    from lc_assets.execution.local import executor_of
    from lc_assets.stages.file_lakes import build_for, context_over_files, replaced

    inputs, out = options.inputs_and_out(sources, "dedup")
    kinds = _listed(by)
    if not kinds:
        raise BadInput("--by: name at least one of digest, text, url and near")
    settings = {
        "document_signatures": SignatureSettings(signatures="fast"),
        "near_duplicate_pairs": replaced(
            NearDuplicateSettings(), near=NEAR in kinds, evidence_floor=floor
        ),
        "removed_documents": replaced(
            RemovalSettings(),
            threshold=threshold,
            heldout_floor=max(floor, RemovalSettings().heldout_floor),
            prefer=_listed(prefer),
            exact=[kind for kind in kinds if kind != NEAR],
        ),
        "clean_documents": CleanDocumentsSettings(wanted=True, paragraphs=paragraphs),
    }
    begun = time.perf_counter()
    context = context_over_files(
        inputs, out, executor=executor_of(workers), settings=settings, text_field=text_field
    )
    built = build_for(context, "clean_documents")
    _show(built, out, time.perf_counter() - begun)


def _listed(words: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in words.split(",") if word.strip())


def _show(built: "Mapping[str, Mapping[str, Built]]", out: Path, seconds: float) -> None:
    from lc_assets.counts import Counts
    from lc_assets.stages.file_lakes import counts_of

    counts = counts_of(built)
    table(
        ("documents", "number"),
        [
            ("seen", counts.seen),
            ("kept", counts.kept),
            *((f"removed: {reason}", count) for reason, count in counts.dropped.items()),
        ],
    )
    pairs = Counts.total(found.counts for found in built.get("near_duplicate_pairs", {}).values())
    facts(
        [
            ("candidates", pairs.seen),
            ("pairs", pairs.kept),
            *pairs.dropped.items(),
            *counts.extra.items(),
        ]
    )
    _show_clusters([found.published.folder for found in built["removed_documents"].values()])
    say(
        f"{out}: documents in clean_documents, pairs in near_duplicate_pairs, reasons in "
        f"removed_documents; {lasted(seconds)}"
    )
    say("Run it again with another --threshold to reuse the pairs")


def _show_clusters(folders: list[Path]) -> None:
    """The first few clusters, a line per document."""
    from lc_assets.build.tables import read_lines
    from lc_assets.stages.deduplication.removed_documents import CLUSTERS_FILE

    seen: dict[str, int] = {}
    lines = []
    path = next((path for folder in folders if (path := folder / CLUSTERS_FILE).is_file()), None)
    for line in read_lines(path) if path else ():
        if line["cluster"] not in seen and len(seen) == SHOWN_CLUSTERS:
            break
        seen[line["cluster"]] = seen.get(line["cluster"], 0) + 1
        if seen[line["cluster"]] <= SHOWN_MEMBERS:
            lines.append((line["cluster"], line["id"], line["similarity_to_kept"], line["why"]))
    if lines:
        heading(f"The first {len(seen)} clusters of near duplicates")
        table(("cluster", "document", "like the one that is kept", "why that one"), lines)
