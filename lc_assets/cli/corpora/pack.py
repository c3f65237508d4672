"""``lc pack``: any corpus into rows of a fixed length, with every span of every document known."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lc_assets.cli import options
from lc_assets.cli.printing import complain, facts, say, table

if TYPE_CHECKING:
    from lc_assets.build.settings.longpack import PackingSettings
    from lc_assets.stages.packing.packing_corpora import PackedCorpus


def pack(
    sources: Annotated[
        list[Path],
        typer.Argument(
            metavar="IN... OUT", help="Files and folders of documents, and a new folder."
        ),
    ],
    method: Annotated[
        str, typer.Option("--method", help="bestfit, concat, segment, reorder or upsample.")
    ] = "bestfit",
    length: Annotated[int, typer.Option("--length", help="Tokens of a row.")] = 65_536,
    segment: Annotated[
        int, typer.Option("--segment", help="Tokens of a segment at most, for segment and reorder.")
    ] = 4096,
    tokenizer: Annotated[
        str,
        typer.Option(
            "--tokenizer",
            help="As for `lc megatron write`: a name, a file, a folder or owner/model.",
        ),
    ] = "gpt2",
    seed: Annotated[int, typer.Option("--seed", help="Of the order of documents and rows.")] = 64,
    min_tokens: Annotated[
        int, typer.Option("--min-tokens", help="Leave shorter documents out.")
    ] = 1,
    threshold: Annotated[
        int,
        typer.Option("--threshold", help="Tokens from which upsample takes a document for long."),
    ] = 8192,
    keep_short: Annotated[
        float,
        typer.Option("--keep-short", help="Share of the shorter documents that upsample keeps."),
    ] = 0.1,
    budget: Annotated[
        float,
        typer.Option(
            "--budget", help="Tokens that upsample takes, in multiples of those that came in."
        ),
    ] = 1.0,
    source_field: Annotated[
        str | None,
        typer.Option(
            "--source-field",
            help="Field of a record that names its source; upsample keeps each source's share.",
        ),
    ] = None,
    order_by: Annotated[
        str | None,
        typer.Option(
            "--order-by",
            help="Field of a record with a number: pack documents in this order.",
        ),
    ] = None,
    group_by: Annotated[
        str | None,
        typer.Option(
            "--group-by",
            help="Field that names a document's group, such as its repository: pack the documents "
            "of a group together, in the order of --order-by.",
        ),
    ] = None,
    text_field: Annotated[
        str | None,
        typer.Option(
            "--text-field",
            help="Where a record's text is; by default raw_content, text or content.",
        ),
    ] = None,
    no_eod: Annotated[
        bool, typer.Option("--no-eod", help="Let no end of text stand behind documents.")
    ] = False,
    cut_anywhere: Annotated[
        bool,
        typer.Option(
            "--cut-anywhere", help="Cut segments at their full length, not where a sentence ends."
        ),
    ] = False,
    megatron: Annotated[
        str, typer.Option("--megatron", help="What Megatron's documents are: spans, or whole rows.")
    ] = "spans",
    no_texts: Annotated[bool, typer.Option("--no-texts", help="Write no texts of rows.")] = False,
    workers: options.Workers = None,
) -> None:
    """Pack documents into rows, and print where all tokens are.

    Writes OUT/train.zarr and the spans that training reads, OUT/train.bin and .idx for Megatron,
    OUT/spans.parquet, and OUT/texts, the rows as a corpus with spans, which `lc referrals --scope
    document` measures.

    Example: lc pack corpus packed --method bestfit --length 65536
    """
    import msgspec

    from lc_assets.build.settings.longpack import PackingSettings
    from lc_assets.errors import BadInput
    from lc_assets.execution.local import executor_of
    from lc_assets.stages.megatron.megatron_settings import Writing, settle
    from lc_assets.stages.packing.packing_corpora import CorpusPacking, pack_corpus

    *inputs, out = sources
    if not inputs:
        raise BadInput("name what to read and where to write: lc pack IN OUT")
    given = {
        "method": method,
        "row_tokens": length,
        "segment_tokens": segment,
        "seed": seed,
        "min_tokens": min_tokens,
        "append_eod": not no_eod,
        "cut_at": "anywhere" if cut_anywhere else "ends",
        "megatron": megatron,
        "heldout_fraction": 0,
        "upsampling": {"threshold": threshold, "keep_short": keep_short, "budget": budget},
    }
    try:
        settings = msgspec.convert(given, PackingSettings)
    except msgspec.ValidationError as error:
        raise BadInput(
            f"not a way to pack: {error}; there are the methods bestfit, concat, segment, reorder "
            "and upsample"
        ) from error
    settled = settle(Writing(tokenizer=tokenizer, append_eod=not no_eod, text_field=text_field))
    if settled.ids.eod is None and not no_eod:
        raise BadInput(
            f"{settled.ids.tokenizer} has no end of text to end documents with: pass --no-eod"
        )
    for warning in settled.warnings:
        complain(f"warning: {warning}")
    packing = CorpusPacking(
        settled=settled,
        settings=settings,
        source_field=source_field,
        texts=not no_texts,
        order_field=order_by,
        group_field=group_by,
    )
    show(pack_corpus(inputs, out, packing, executor=executor_of(workers)), settings, out)


def show(report: "PackedCorpus", settings: "PackingSettings", out: Path) -> None:
    """Print what was read, where its tokens are, and what that costs."""
    read, found = report.read, report.balance
    seen = [
        ("documents", read.seen),
        *((f"dropped: {why}", n) for why, n in read.dropped.items()),
        ("tokenized", read.kept),
    ]
    facts([*seen, ("packed", found.taken)])
    lines = [
        ("tokens of documents", found.tokens),
        ("+ repeated", found.repeated),
        ("- left over", found.left_over),
        ("= tokens in rows", found.in_rows),
        ("+ padding", found.padding),
        (f"= {found.rows:,} rows of {found.row_tokens:,}", found.rows * found.row_tokens),
    ]
    table(("balance", "tokens"), lines)
    facts(
        [
            ("pieces", found.pieces),
            ("documents cut", found.cut),
            (
                "of these, no longer than a row",
                f"{found.cut_needlessly:,}, {found.cut_share:.2%} of all",
            ),
            ("padding", f"{found.padding_share:.4%}"),
            (
                "attention within pieces",
                f"{found.attention_share:.2%} of attention over whole rows",
            ),
            *report.texts.extra.items(),
        ]
    )
    held = found.tokens + found.repeated - found.left_over
    say(
        f"{found.tokens:,} + {found.repeated:,} - {found.left_over:,} = {held:,} tokens in rows, "
        f"packed by {settings.method} into {out}"
    )
