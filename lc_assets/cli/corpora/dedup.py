"""``lc dedup``: remove duplicates, exact and near, with evidence. ``lc minhash``: signatures."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from lc_assets.build.settings.documents import (
    CleanDocumentsSettings,
    NearDuplicateSettings,
    RemovalSettings,
    SignatureSettings,
)
from lc_assets.cli import options
from lc_assets.cli.printing import facts, heading, say, table
from lc_assets.errors import BadInput

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lc_assets.build.stage import Built

SHOWN_CLUSTERS = 5
SHOWN_MEMBERS = 12
NEAR = "near"


@dataclass(frozen=True, kw_only=True)
class KindOptions:
    """Which kinds of duplicates are removed, and which document is kept."""

    by: Annotated[str, Option("--by", help="Of digest, text, url and near, with commas.")] = (
        "digest,text,url,near"
    )
    prefer: Annotated[
        str,
        Option(
            "--prefer",
            help="Which document is kept: newest, oldest, longest, best_perplexity, source=NAME "
            "(the name of an IN); several with commas.",
        ),
    ] = "newest"


@options.with_options
def dedup(
    corpus: options.Corpus,
    kinds: KindOptions,
    pairs: NearDuplicateSettings = options.settings_options(
        NearDuplicateSettings(), evidence_floor="--floor"
    ),
    removal: RemovalSettings = options.settings_options(RemovalSettings(), "threshold"),
    clean: CleanDocumentsSettings = options.settings_options(
        CleanDocumentsSettings(wanted=True), "paragraphs"
    ),
) -> None:
    """Remove duplicates by digest, text, address and shingles; near ones are compared first.

    OUT is a lake: `clean_documents` holds the documents that are left, `near_duplicate_pairs` and
    `removed_documents` the evidence. Running it again with another threshold or with more IN reuses
    what was computed.

    Example: lc dedup crawl out --threshold 0.8
    """
    from lc_assets.stages.file_lakes import replaced

    by = _listed(kinds.by)
    if not by:
        raise BadInput("--by: name at least one of digest, text, url and near")
    removal = replaced(
        removal,
        heldout_floor=max(pairs.evidence_floor, removal.heldout_floor),
        prefer=_listed(kinds.prefer),
        exact=[kind for kind in by if kind != NEAR],
    )
    settings = {
        "document_signatures": SignatureSettings(signatures="fast"),
        "near_duplicate_pairs": replaced(pairs, near=NEAR in by),
        "removed_documents": removal,
        "clean_documents": clean,
    }
    _show(corpus.build("clean_documents", settings), corpus.out)


def _listed(words: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in words.split(",") if word.strip())


def _show(built: "Mapping[str, Mapping[str, Built]]", out: Path) -> None:
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
        "removed_documents"
    )
    say("Run it again with another --threshold to reuse the pairs")


def _show_clusters(folders: list[Path]) -> None:
    """The first few clusters, a line per document."""
    from lc_assets.build.tables import read_lines
    from lc_assets.stages.deduplication.removed_documents import CLUSTERS_FILE

    path = next((path for folder in folders if (path := folder / CLUSTERS_FILE).is_file()), None)
    columns = ("cluster", "id", "similarity_to_kept", "why")
    shown: dict[str, list[list[object]]] = {}
    for line in read_lines(path) if path else ():
        if line["cluster"] not in shown and len(shown) == SHOWN_CLUSTERS:
            break
        shown.setdefault(line["cluster"], []).append([line[name] for name in columns])
    if shown:
        heading(f"The first {len(shown)} clusters of near duplicates")
        table(
            ("cluster", "document", "like the one that is kept", "why that one"),
            [line for lines in shown.values() for line in lines[:SHOWN_MEMBERS]],
        )


@options.with_options
def minhash(
    corpus: options.Corpus,
    fast: Annotated[
        bool,
        Option(
            "--fast",
            help="This package's own hashes: eight times as fast, not RedPajama-V2's bits.",
        ),
    ] = False,
) -> None:
    """Compute the MinHash signature of every document: 128 numbers that similar documents share, in
    bands as RedPajama-V2 publishes them.

    OUT is a lake: `document_signatures` holds a table per file. The signatures are bit for bit
    those of RedPajama-V2, unless --fast. A text of fewer than 13 words has none, but null.

    Example: lc minhash documents minhash --workers 2
    """
    from lc_assets.stages.deduplication.document_signatures import COMPUTED, TOO_SHORT
    from lc_assets.stages.file_lakes import counts_of

    signatures = SignatureSettings(signatures="fast" if fast else "computed")
    built = corpus.build("document_signatures", {"document_signatures": signatures})
    counts = counts_of(built)
    say(
        f"{counts.seen:,} documents = {counts.kept:,} in the tables + "
        f"{counts.seen - counts.kept:,} that could not be read"
    )
    signed = [(name, counts.extra.get(name, 0)) for name in (COMPUTED, TOO_SHORT)]
    facts([*signed, *counts.dropped.items(), ("written to", f"{corpus.out}/document_signatures")])
