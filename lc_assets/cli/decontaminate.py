"""``lc decontaminate``: let go of the documents that hold evaluation items, with evidence for
each.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lc_assets.cli import options
from lc_assets.cli.printing import facts, heading, say, shortened, sized, table
from lc_assets.cli.sample import executor_of

if TYPE_CHECKING:
    from lc_assets.stages.decontamination.decontaminating import Decontaminated

SHOWN_ITEMS = 10
SHOWN_CHARS = 60


def decontaminate(
    sources: Annotated[
        list[Path],
        typer.Argument(
            metavar="IN... OUT",
            help="Files and folders of documents, and a folder for what comes of it.",
        ),
    ],
    against: Annotated[
        list[Path],
        typer.Option(
            "--against",
            help="Evaluation set or held-out corpus: a file or a folder; may be repeated.",
        ),
    ],
    field: Annotated[
        list[str] | None,
        typer.Option(
            "--field", help="Field of an evaluation record to take; by default the usual ones."
        ),
    ] = None,
    text_field: Annotated[
        str | None, typer.Option("--text-field", help="Field that holds a document's text.")
    ] = None,
    ngram: Annotated[int, typer.Option("--ngram", min=1, max=64, help="Words of an n-gram.")] = 13,
    min_words: Annotated[
        int,
        typer.Option(
            "--min-words", min=1, max=64, help="Fewest words of an item shorter than that."
        ),
    ] = 8,
    sample: Annotated[
        int,
        typer.Option(
            "--sample", min=1, help="Keep one n-gram in so many: for a large held-out corpus."
        ),
    ] = 1,
    mode: Annotated[
        str,
        typer.Option("--mode", help="coverage of an item, any n-gram, or overlap on either side."),
    ] = "coverage",
    threshold: Annotated[
        float, typer.Option("--threshold", help="Least share that condemns a document.")
    ] = 0.5,
    ignore_common: Annotated[
        int | None,
        typer.Option("--ignore-common", min=0, help="Ignore n-grams in more documents than this."),
    ] = None,
    max_items: Annotated[
        int, typer.Option("--max-items", min=1, help="Ignore n-grams in more items than this.")
    ] = 100,
    cut: Annotated[
        bool, typer.Option("--cut", help="Cut out what was found instead of dropping the document.")
    ] = False,
    margin: Annotated[
        int, typer.Option("--margin", min=0, help="Characters cut on either side as well.")
    ] = 0,
    workers: options.Workers = None,
) -> None:
    """Find evaluation items in documents by their 13-grams, and let the documents that hold too
    much of one go.

    Writes OUT/kept, OUT/dropped, OUT/evidence (document × item) and OUT/items.parquet (a line per
    item).

    Example: lc decontaminate corpus cleaned --against evals --mode any
    """
    import msgspec

    from lc_assets.errors import BadInput
    from lc_assets.stages.decontamination.decontaminating import decontaminate as run
    from lc_assets.stages.settings import DecontaminationSettings

    *inputs, out = sources
    if not inputs:
        raise BadInput(
            "name what to read and where to write: lc decontaminate IN OUT --against EVALS"
        )
    given = {
        "against": [str(path) for path in against],
        "fields": field or [],
        "ngram": ngram,
        "min_words": min(min_words, ngram),
        "sample": sample,
        "mode": mode,
        "threshold": threshold,
        "ignore_common": ignore_common,
        "max_items": max_items,
        "action": "cut" if cut else "drop",
        "margin": margin,
    }
    try:
        settings = msgspec.convert(given, DecontaminationSettings)
    except msgspec.ValidationError as error:
        raise BadInput(
            f"not a way to decontaminate: {error}; there are the modes coverage, any and overlap"
        ) from error
    show(run(inputs, out, settings, executor=executor_of(workers), text_field=text_field), out)


def show(report: "Decontaminated", out: Path) -> None:
    """Print the balance, the items by verdict, and those of which most was found."""
    counts = report.counts
    items = ", ".join(f"{n:,} {verdict}" for verdict, n in report.items.items())
    facts(
        [
            ("documents", counts.seen),
            ("kept", counts.kept),
            *((f"dropped: {reason}", n) for reason, n in counts.dropped.items()),
            *counts.extra.items(),
            ("evaluation items", f"{sum(report.items.values()):,}: {items}"),
            (
                "n-grams looked for",
                (
                    f"{report.n_grams:,} in {sized(report.index_bytes)}; {report.ignored:,} too "
                    "common to count"
                ),
            ),
        ]
    )
    if report.worst:
        heading("Items of which most was found")
        table(
            ("item", "coverage", "longest, words", "documents", "condemned", "most of it in"),
            map(_line, report.worst[:SHOWN_ITEMS]),
        )
    say(
        f"{counts.seen:,} = {counts.kept:,} kept + {counts.seen - counts.kept:,} dropped; every item "
        f"and document is in {out}"
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
