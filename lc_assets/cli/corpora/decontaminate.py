"""``lc decontaminate``: remove documents that contain evaluation items."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from lc_assets.cli import options
from lc_assets.cli.printing import facts, heading, say, shortened, sized, table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lc_assets.build.stage import Built

SHOWN_ITEMS = 10
SHOWN_CHARS = 60


@dataclass(kw_only=True)
class Search:
    """The settings of `contaminated_documents`."""

    against: Annotated[
        list[Path],
        Option(
            "--against",
            help="Evaluation set or held-out corpus: a file or a folder; may be repeated.",
        ),
    ]
    fields: Annotated[
        list[str] | None,
        Option("--field", help="Field of an evaluation record to take; by default the usual ones."),
    ] = None
    ngram: Annotated[int, Option("--ngram", min=1, max=64, help="Words of an n-gram.")] = 13
    min_words: Annotated[
        int,
        Option("--min-words", min=1, max=64, help="Fewest words of an item shorter than that."),
    ] = 8
    sample: Annotated[
        int,
        Option("--sample", min=1, help="Keep one n-gram in so many: for a large held-out corpus."),
    ] = 1
    mode: Annotated[
        str,
        Option("--mode", help="coverage of an item, any n-gram, or overlap on either side."),
    ] = "coverage"
    threshold: Annotated[
        float, Option("--threshold", help="Least share that makes a document contaminated.")
    ] = 0.5
    ignore_common: Annotated[
        int | None,
        Option("--ignore-common", min=0, help="Ignore n-grams in more documents than this."),
    ] = None
    max_items: Annotated[
        int, Option("--max-items", min=1, help="Ignore n-grams in more items than this.")
    ] = 100
    cut: Annotated[
        bool, Option("--cut", help="Cut out what was found instead of dropping the document.")
    ] = False
    margin: Annotated[
        int, Option("--margin", min=0, help="Characters cut on either side as well.")
    ] = 0


@options.with_options
def decontaminate(
    sources: options.Sources,
    search: Search,
    text_field: options.TextField = None,
    workers: options.Workers = None,
) -> None:
    """Remove the documents that contain evaluation items, found by their 13-grams.

    OUT is a lake: `clean_documents` holds the documents that are left, `contaminated_documents` the
    evidence (document × item) and a line per item. IN may be the OUT of another command.

    Example: lc decontaminate corpus cleaned --against evals --mode any
    """
    from lc_assets.build.settings.common import DecontaminationSettings
    from lc_assets.stages.file_lakes import replaced

    given = vars(search).copy()
    given["action"] = "cut" if given.pop("cut") else "drop"
    given["against"] = [str(path) for path in search.against]
    given["fields"] = search.fields or []
    given["min_words"] = min(search.min_words, search.ngram)
    built, out = options.built_over_files(
        "decontaminate",
        sources,
        "clean_documents",
        {"contaminated_documents": replaced(DecontaminationSettings(), **given)},
        text_field=text_field,
        workers=workers,
    )
    _show(built, out)


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
