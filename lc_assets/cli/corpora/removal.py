"""``lc dedup``: remove duplicates, exact and near, with evidence; ``lc minhash``: signatures; and
``lc decontaminate``: remove documents that contain evaluation items.
"""

from collections import Counter
from itertools import islice
from pathlib import Path

import msgspec

from lc_assets.api import corpora as api
from lc_assets.api.files import Output
from lc_assets.builds.settings.common import DecontaminationSettings
from lc_assets.builds.settings.documents import (
    CleanDocumentsSettings,
    NearDuplicateSettings,
    RemovalSettings,
    SignatureSettings,
)
from lc_assets.builds.tables import read_lines, read_table
from lc_assets.cli import options
from lc_assets.cli.printing import facts, heading, say, shortened, show_counts, shown, sized, table
from lc_assets.cli.setting_options import settings_options
from lc_assets.counts import Counts
from lc_assets.formats.arrays.npy import read_npy
from lc_assets.formats.gram_index_files import open_index
from lc_assets.stages.decontamination.contaminated_documents import IGNORED, INDEX, ITEMS_FILE
from lc_assets.stages.deduplication.removals import CLUSTERS_FILE
from lc_assets.stages.deduplication.signing import COMPUTED, TOO_SHORT

SHOWN_LINES = 20
CLUSTER_COLUMNS = ("cluster", "id", "similarity_to_kept", "why")


def dedup(
    corpus: options.Corpus,
    by: str = "digest,text,url,near",
    prefer: str = "newest",
    pairs: NearDuplicateSettings = settings_options(
        NearDuplicateSettings(), "measure", evidence_floor="--floor"
    ),
    removal: RemovalSettings = settings_options(RemovalSettings(), "threshold"),
    clean: CleanDocumentsSettings = settings_options(
        CleanDocumentsSettings(wanted=True), "paragraphs"
    ),
    signed: SignatureSettings = settings_options(
        SignatureSettings(signatures="fast"), "shingle_size", "shingle_of"
    ),
) -> None:
    """Remove duplicates by digest, text, address and shingles; near ones are compared first.

    OUT is a lake: `clean_documents` holds the documents that are left, `near_duplicate_pairs` and
    `removed_documents` the evidence, `filtered_documents` all texts, uncompressed. Another
    threshold or more IN reuse what was computed.

    Args:
        by: of digest, text, url and near, with commas.
        prefer: which document is kept: newest, oldest, longest, best_perplexity, source=NAME (the
            name of an IN); several with commas.

    Example: lc dedup crawl out --threshold 0.8
    """
    output = corpus.run(
        api.deduplicate,
        by=_listed(by),
        prefer=_listed(prefer),
        threshold=removal.threshold,
        floor=pairs.evidence_floor,
        paragraphs=clean.paragraphs,
        shingle_size=signed.shingle_size,
        shingle_of=signed.shingle_of,
        measure=pairs.measure,
    )
    _show_duplicates(output)


def _listed(words: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in words.split(",") if word.strip())


def _show_duplicates(output: Output) -> None:
    show_counts(output.counts, "kept", "removed")
    if found := output.stages.get("near_duplicate_pairs"):
        pairs = Counts.total(one.counts for one in found.values())
        facts([("candidates", pairs.seen), ("pairs", pairs.kept), *pairs.dropped.items()])
    _show_clusters([one.published.folder for one in output["removed_documents"]])
    say(f"{output.folder}: documents in clean_documents, reasons in removed_documents")
    if found:
        say("Pairs are in near_duplicate_pairs; run it again with another --threshold to use them")


def _show_clusters(folders: list[Path]) -> None:
    """The first lines of the table of clusters."""
    path = next((path for folder in folders if (path := folder / CLUSTERS_FILE).is_file()), None)
    lines = list(islice(read_lines(path, CLUSTER_COLUMNS), SHOWN_LINES)) if path else []
    if lines:
        heading("The first clusters of near duplicates")
        table(
            ("cluster", "document", "like the one that is kept", "why that one"),
            [[line[name] for name in CLUSTER_COLUMNS] for line in lines],
        )


def minhash(
    corpus: options.Corpus,
    fast: bool = False,
) -> None:
    """Compute the MinHash signature of every document: 128 numbers that similar documents share, in
    bands as RedPajama-V2 publishes them.

    OUT is a lake: `document_signatures` holds a table per file, `filtered_documents` the texts,
    uncompressed. The signatures are bit for bit those of RedPajama-V2, unless --fast. A text of
    fewer than 13 words has none.

    Args:
        fast: this package's own hashes: twice as fast, not RedPajama-V2's bits.

    Example: lc minhash documents minhash --workers 2
    """
    signatures = SignatureSettings(signatures="fast" if fast else "computed")
    sections = {"document_signatures": signatures, **api.UNCOMPRESSED}
    output = corpus.build("document_signatures", sections, **api.ANY_LANGUAGE)
    counts = output.counts
    signed = {name: counts.extra.get(name, 0) for name in (COMPUTED, TOO_SHORT)}
    counts = msgspec.structs.replace(counts, extra=signed)
    show_counts(counts, "in the tables", "that could not be read")
    say(f"{corpus.out}: tables in document_signatures")


SHOWN_ITEMS = 10
SHOWN_CHARS = 60
ITEM_COLUMNS = {
    "item": "item_id",
    "coverage": "best_coverage",
    "longest, words": "longest_words",
    "documents": "documents",
    "contaminated": "condemned_documents",
    "most of it in": "best_document",
}
"""Columns of the table of items, and of the file."""


def decontaminate(
    corpus: options.Corpus,
    search: DecontaminationSettings = settings_options(
        DecontaminationSettings(),
        "against",
        "rule",
        "ngram",
        "min_words",
        "sample",
        "mode",
        "threshold",
        "ignore_common",
        "max_items",
        "action",
        "margin",
        fields="--field",
    ),
) -> None:
    """Remove the documents that contain evaluation items, found by their 13-grams.

    OUT is a lake: `clean_documents` holds the documents that are left, `contaminated_documents` the
    evidence (document × item) and a line per item, `filtered_documents` all texts, uncompressed. IN
    may be another command's OUT.

    Example: lc decontaminate corpus cleaned --against evals --mode any
    """
    _show_items(corpus.run(api.decontaminate, search))


def _show_items(output: Output) -> None:
    """Print the balance, the items by result, and those of which most was found."""
    folders = [found.published.folder for found in output["contaminated_documents"]]
    items = [line for folder in folders for line in read_table(folder / ITEMS_FILE).to_pylist()]
    index = open_index(folders[0] / INDEX)
    n_ignored = sum(len(read_npy(folder / INDEX / IGNORED)) for folder in folders)
    results = Counter(line["verdict"] for line in items)
    by_result = ", ".join(f"{n:,} {result}" for result, n in sorted(results.items()))
    size = sized(index.n_bytes)
    searched = f"{index.n_grams:,} in {size}; {n_ignored:,} too common to count"
    show_counts(output.counts, "kept", "dropped")
    facts([("evaluation items", f"{len(items):,}: {by_result}"), ("n-grams looked for", searched)])
    worst = sorted(
        (line for line in items if line["documents"]),
        key=lambda line: (-line["best_coverage"], -line["longest_words"]),
    )
    if worst:
        heading("Items of which most was found")
        table(
            list(ITEM_COLUMNS),
            [
                [shortened(shown(line[name]), SHOWN_CHARS) for name in ITEM_COLUMNS.values()]
                for line in worst[:SHOWN_ITEMS]
            ],
        )
    say(f"{output.folder}: documents in clean_documents, every item in contaminated_documents")
