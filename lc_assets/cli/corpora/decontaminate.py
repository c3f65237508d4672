"""``lc decontaminate``: remove documents that contain evaluation items."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from lc_assets.build.settings.common import DecontaminationSettings
from lc_assets.cli import options
from lc_assets.cli.printing import facts, heading, say, shortened, sized, table
from lc_assets.errors import BadInput

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lc_assets.build.stage import Built

SHOWN_ITEMS = 10
SHOWN_CHARS = 60


@options.with_options
def decontaminate(
    corpus: options.Corpus,
    search: DecontaminationSettings = options.settings_options(
        DecontaminationSettings(),
        "against",
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
    evidence (document × item) and a line per item. IN may be the OUT of another command.

    Example: lc decontaminate corpus cleaned --against evals --mode any
    """
    if not search.against:
        raise BadInput("name evaluation sets or a held-out corpus: --against")
    search = msgspec.structs.replace(search, min_words=min(search.min_words, search.ngram))
    _show(corpus.build("clean_documents", {"contaminated_documents": search}), corpus.out)


def _show(built: "Mapping[str, Mapping[str, Built]]", out: Path) -> None:
    """Print the balance, the items by verdict, and those of which most was found."""
    from lc_assets.build.tables import read_table
    from lc_assets.formats.arrays.npy import read_npy
    from lc_assets.formats.gram_index_files import open_index
    from lc_assets.stages.decontamination.contaminated_documents import (
        IGNORED,
        INDEX,
        ITEMS_FILE,
    )
    from lc_assets.stages.file_lakes import counts_of

    counts = counts_of(built)
    folders = [found.published.folder for found in built["contaminated_documents"].values()]
    items = [line for folder in folders for line in read_table(folder / ITEMS_FILE).to_pylist()]
    verdicts = sorted({line["verdict"] for line in items})
    by_verdict = ", ".join(
        f"{sum(line['verdict'] == verdict for line in items):,} {verdict}" for verdict in verdicts
    )
    index = open_index(folders[0] / INDEX)
    n_ignored = sum(len(read_npy(folder / INDEX / IGNORED)) for folder in folders)
    facts(
        [
            ("documents", counts.seen),
            ("kept", counts.kept),
            *((f"dropped: {reason}", n) for reason, n in counts.dropped.items()),
            *counts.extra.items(),
            ("evaluation items", f"{len(items):,}: {by_verdict}"),
            (
                "n-grams looked for",
                f"{index.n_grams:,} in {sized(index.n_bytes)}; {n_ignored:,} too common to count",
            ),
        ]
    )
    worst = sorted(
        (line for line in items if line["documents"]),
        key=lambda line: (-line["best_coverage"], -line["longest_words"]),
    )
    if worst:
        heading("Items of which most was found")
        table(
            ("item", "coverage", "longest, words", "documents", "condemned", "most of it in"),
            map(_line, worst[:SHOWN_ITEMS]),
        )
    say(
        f"{counts.seen:,} = {counts.kept:,} kept + {counts.seen - counts.kept:,} dropped; the "
        f"documents are in {out}/clean_documents, every item in {out}/contaminated_documents"
    )


def _line(item: dict[str, Any]) -> tuple[Any, ...]:
    numbers = (
        item["best_coverage"],
        item["longest_words"],
        item["documents"],
        item["condemned_documents"],
    )
    return (
        shortened(item["item_id"], SHOWN_CHARS),
        *numbers,
        shortened(item["best_document"], SHOWN_CHARS),
    )
