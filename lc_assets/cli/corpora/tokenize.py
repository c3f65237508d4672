"""``lc tokenize``: token ids of documents as Megatron's ``.bin`` and ``.idx``."""

from pathlib import Path
from typing import Annotated

import typer

from lc_assets.cli import options
from lc_assets.cli.printing import complain, facts, say, table


def tokenize(
    sources: Annotated[
        list[Path],
        typer.Argument(
            metavar="IN... OUT",
            help="Files and folders of documents, or lakes; and a folder for the lake to write.",
        ),
    ],
    tokenizer: options.Tokenizer = "gpt2",
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
    min_tokens: Annotated[
        int, typer.Option("--min-tokens", help="Leave out shorter documents.")
    ] = 1,
    text_field: options.TextField = None,
    workers: options.Workers = None,
) -> None:
    """Tokenize documents, one sequence each; byte for byte what Megatron's preprocess_data.py
    writes.

    OUT is a lake: `token_documents` holds a data set per input file. `lc megatron merge` joins
    them.

    Example: lc tokenize corpus tokens --tokenizer gpt2 --append-eod
    """
    from lc_assets.build.settings.rows import GriddingSettings, TokenizingSettings
    from lc_assets.errors import BadInput
    from lc_assets.execution.local import executor_of
    from lc_assets.formats.tokenizers.named import located, vocabulary_of
    from lc_assets.stages.file_lakes import build_for, context_over_files, counts_of, replaced
    from lc_assets.stages.tokens.tokenizing import BY_REFERENCE, UNCHECKED
    from lc_assets.tokens.dtypes import header_warning, stored_dtype

    *inputs, out = sources
    if not inputs:
        raise BadInput("name what to read and where to write: lc tokenize IN OUT")
    settings = replaced(
        TokenizingSettings(),
        tokenizer=located(tokenizer),
        append_eod=append_eod,
        dtype=dtype,
        min_tokens=min_tokens,
    )
    vocabulary = vocabulary_of(settings.tokenizer)
    stored = stored_dtype(vocabulary.n_ids, dtype)
    if warning := header_warning(vocabulary.n_ids, stored):
        complain(f"warning: {warning}")
    if append_eod and vocabulary.eot is None:
        complain(f"warning: {vocabulary.name} has no end of text, so none is appended")
    context = context_over_files(
        inputs,
        out,
        executor=executor_of(workers),
        settings={
            "token_documents": settings,
            "token_grid": GriddingSettings(heldout_fraction=0, row_tokens=1),
        },
        text_field=text_field,
    )
    built = build_for(context, "token_documents")
    counts = counts_of(built)
    if not counts.kept:
        dropped = ", ".join(f"{n:,} {why}" for why, n in counts.dropped.items())
        raise BadInput(f"no document to write of {counts.seen:,} seen: {dropped}")
    say(
        f"{counts.seen:,} documents = {counts.kept:,} written + {counts.seen - counts.kept:,} left out"
    )
    for name, why in (
        (BY_REFERENCE, "because the fast one cannot read this kind, or its ids differ"),
        (UNCHECKED, "because it cannot read this kind"),
    ):
        if n := counts.extra.get(name, 0):
            complain(f"warning: {n:,} {name.replace('files', 'files were', 1)}, {why}")
    facts([*counts.dropped.items(), *counts.extra.items(), ("dtype", stored.name)])
    table(
        ("data sets", "documents", "tokens"),
        [
            (str(found.published.folder), found.counts.kept, found.counts.extra.get("tokens", 0))
            for found in built["token_documents"].values()
        ],
    )
