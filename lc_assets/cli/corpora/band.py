"""``lc band``: the middle of a corpus by one measure."""

from pathlib import Path
from typing import Annotated

import typer

from lc_assets.cli import options
from lc_assets.cli.printing import facts, say


def band(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="IN", help="Documents (a file, or a folder of them), or stored signals."
        ),
    ],
    out: Annotated[
        Path,
        typer.Argument(
            metavar="OUT", help="Folder for kept, dropped, signals, rules.toml and summary.json."
        ),
    ],
    measure: Annotated[
        str,
        typer.Option(
            "--measure", help="A signal or measure; with :words where it depends on what a word is."
        ),
    ] = "gzip_ratio",
    drop_low: Annotated[
        float,
        typer.Option(
            "--drop-low", help="Share of the documents with the lowest values that is left out."
        ),
    ] = 0.2,
    drop_high: Annotated[
        float, typer.Option("--drop-high", help="Share of those with the highest.")
    ] = 0.2,
    lang: Annotated[
        str, typer.Option("--lang", help="Language of documents that do not say theirs.")
    ] = "en",
    text_field: Annotated[
        str | None, typer.Option("--text-field", help="Where a record's text is.")
    ] = None,
    workers: options.Workers = None,
) -> None:
    """Leave out the documents with the lowest and the highest values of a measure: quantiles of
    this very corpus, exactly.

    By default the fifth that gzip packs best, which repeats itself, and the fifth that it packs
    worst, which is noise. The bounds are written to OUT/rules.toml, which `lc judge` and a recipe
    take; for another band, read OUT/signals.

    Example: lc band pages.jsonl.gz banded --measure gzip_ratio --drop-low 0.2 --drop-high 0.2
    """
    from lc_assets.execution.local import executor_of
    from lc_assets.stages.documents.banding import band_corpus
    from lc_assets.text.rules.rules import Shares

    shares = Shares(low=drop_low, high=drop_high)
    found = band_corpus(
        [source],
        out,
        measure,
        shares,
        executor=executor_of(workers),
        text_field=text_field,
        language=lang,
    )
    n_dropped = sum(found.dropped.values())
    say(f"{found.seen:,} documents = {found.kept:,} kept + {n_dropped:,} dropped")
    bounds = [("at least", found.at_least), ("at most", found.at_most)]
    facts(
        [
            ("measure", found.column),
            *((name, repr(bound)) for name, bound in bounds if bound is not None),
            *sorted(found.dropped.items()),
        ]
    )
    say(f"written to {out}")
