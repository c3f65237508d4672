"""``lc megatron write``: any corpus to Megatron's ``.bin`` and ``.idx``."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lc_assets.cli import options
from lc_assets.cli.printing import complain, facts, say, table

if TYPE_CHECKING:
    from lc_assets.counts import Counts


def write(
    sources: Annotated[
        list[Path], typer.Argument(metavar="IN...", help="Files of documents, or folders of them.")
    ],
    output: Annotated[
        Path,
        typer.Option("--output", help="Prefix of the .bin and the .idx; with --per-file a folder."),
    ],
    tokenizer: Annotated[
        str,
        typer.Option(
            "--tokenizer",
            help="gpt2, cl100k_base, ...; a tokenizer.json or .model; a folder; owner/model of "
            "the hub.",
        ),
    ],
    append_eod: Annotated[
        bool,
        typer.Option("--append-eod", help="End every document with the tokenizer's end of text."),
    ] = False,
    dtype: Annotated[
        str,
        typer.Option(
            "--dtype", help="auto (uint16 below 65,500 ids, as Megatron), uint16 or int32."
        ),
    ] = "auto",
    text_field: Annotated[
        str | None,
        typer.Option(
            "--text-field",
            help="Where a record's text is; by default raw_content, text or content.",
        ),
    ] = None,
    batch_size: Annotated[
        int, typer.Option("--batch-size", help="Documents that are written at once.")
    ] = 1000,
    per_file: Annotated[
        bool,
        typer.Option(
            "--per-file", help="A data set per input file, named by its hash, as NeMo Curator."
        ),
    ] = False,
    workers: options.Workers = None,
) -> None:
    """Tokenize documents into one sequence each; byte for byte what Megatron's preprocess_data.py
    writes.

    A run that was stopped goes on where it was. Prints what was seen, written and dropped; the
    counts add up.

    Example: lc megatron write corpus --output data/mine --tokenizer gpt2 --append-eod
    """
    from lc_assets.execution.local import executor_of
    from lc_assets.stages.megatron.megatron_settings import Writing, settle
    from lc_assets.stages.megatron.megatron_writing import write_data_set, write_parts

    settled = settle(
        Writing(
            tokenizer=tokenizer,
            append_eod=append_eod,
            dtype=dtype,
            text_field=text_field,
            batch_size=batch_size,
        )
    )
    for warning in settled.warnings:
        complain(f"warning: {warning}")
    executor = executor_of(workers)
    if per_file:
        counts, receipts = write_parts(sources, output, settled, executor=executor)
        _summary(counts)
        table(
            ("file", "data set", "documents", "tokens"),
            [(*_names(path, output), r.documents, r.tokens) for path, r in receipts.items()],
        )
    else:
        counts, receipt = write_data_set(sources, output, settled, executor=executor)
        _summary(counts)
        facts(
            [
                ("written to", str(output)),
                ("dtype", settled.ids.dtype),
                ("SHA-256 of the .bin", receipt.bin_sha256),
            ]
        )


def _names(named: tuple[Path, Path], folder: Path) -> tuple[str, str]:
    file, prefix = named
    return str(file), str(prefix.relative_to(folder))


def _summary(counts: "Counts") -> None:
    from lc_assets.stages.megatron.megatron_writing import CHARACTERS, FILES, TOKENS
    from lc_assets.stages.tokens.checked_tokenizing import BY_REFERENCE, UNCHECKED

    say(
        f"{counts.seen:,} documents = {counts.kept:,} written + {sum(counts.dropped.values()):,} "
        "dropped"
    )
    facts(
        [
            *counts.dropped.items(),
            *((name, counts.extra.get(name, 0)) for name in (TOKENS, CHARACTERS, FILES)),
        ]
    )
    if n := counts.extra.get(BY_REFERENCE, 0):
        complain(
            f"warning: {n:,} files were tokenized by the reference tokenizer, because the fast one "
            "cannot read this kind, or its ids differed"
        )
    if n := counts.extra.get(UNCHECKED, 0):
        complain(
            f"warning: {n:,} files were not checked by the reference tokenizer, because it refused "
            "theirs"
        )
