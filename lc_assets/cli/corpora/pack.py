"""``lc pack``: documents into rows of a fixed length, with the span of every document known."""

from typing import TYPE_CHECKING, Annotated

import msgspec
from typer import Option

from lc_assets.build.settings.longpack import (
    NO_SOURCE,
    PackingSettings,
    SimilarSettings,
    UpsamplingSettings,
)
from lc_assets.build.settings.rows import TokenizingSettings
from lc_assets.cli import options
from lc_assets.cli.printing import facts, say, table
from lc_assets.errors import BadInput

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lc_assets.build.stage import Built


@options.with_options
def pack(
    corpus: options.Corpus,
    rows: PackingSettings = options.settings_options(
        PackingSettings(wanted=True, heldout_fraction=0),
        "method",
        "seed",
        "min_tokens",
        "order_by",
        "group_by",
        "megatron",
        "texts",
        row_tokens="--length",
        segment_tokens="--segment",
    ),
    upsampling: UpsamplingSettings = options.settings_options(
        UpsamplingSettings(by=NO_SOURCE), "threshold", "keep_short", "budget", by="--source-field"
    ),
    neighbourhood: SimilarSettings = options.settings_options(
        SimilarSettings(), "neighbours", "path", "min_similarity", "max_similarity"
    ),
    similar: Annotated[
        bool,
        Option(
            "--similar", help="Pack groups of similar documents, each as long as a row at most."
        ),
    ] = False,
    no_eod: Annotated[
        bool, Option("--no-eod", help="Put no end of text behind documents.")
    ] = False,
    cut_anywhere: Annotated[
        bool,
        Option(
            "--cut-anywhere", help="Cut segments at their full length, not where a sentence ends."
        ),
    ] = False,
    tokenizer: options.Tokenizer = "gpt2",
) -> None:
    """Pack documents into rows, and print where all tokens are; each IN has rows of its own.

    OUT is a lake: `packed_rows` holds train.zarr with its spans for training, train.bin and
    train.idx for Megatron, spans.parquet, and with --texts the rows as a corpus.

    Example: lc pack corpus packed --method bestfit --length 65536
    """
    from lc_assets.formats.tokenizers.named import located, vocabulary_of
    from lc_assets.stages.file_lakes import replaced

    settings = replaced(
        rows,
        append_eod=not no_eod,
        cut_at="anywhere" if cut_anywhere else "ends",
        upsampling=msgspec.to_builtins(upsampling),
        similar=msgspec.to_builtins(neighbourhood) if similar else None,
    )
    tokens = replaced(TokenizingSettings(), tokenizer=located(tokenizer))
    if vocabulary_of(tokens.tokenizer).eot is None and not no_eod:
        raise BadInput(f"{tokenizer} has no end of text to end documents with: pass --no-eod")
    sections = {"packed_rows": settings, "token_documents": tokens}
    show(corpus.build("packed_rows", sections), settings)


def show(built: "Mapping[str, Mapping[str, Built]]", settings: PackingSettings) -> None:
    """Print what was read, where its tokens are, and what that costs."""
    from lc_assets.counts import Counts
    from lc_assets.stages.file_lakes import counts_of
    from lc_assets.stages.packing.packed_rows import balance_of

    counts = counts_of(built)
    tokenized = Counts.total(version.counts for version in built["packing_tokens"].values())
    packed = Counts.total(version.counts for version in built["packed_rows"].values())
    if not packed.seen:
        dropped = ", ".join(f"{n:,} {why}" for why, n in counts.dropped.items())
        raise BadInput(f"no document to pack of {counts.seen:,} seen: {dropped}")
    found = balance_of(packed, settings)
    left_out = [(f"dropped: {why}", n) for why, n in counts.dropped.items()]
    facts(
        [
            ("documents", counts.seen),
            *left_out,
            ("tokenized", tokenized.kept),
            ("packed", found.taken),
        ]
    )
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
        ]
    )
    held = found.tokens + found.repeated - found.left_over
    say(
        f"{found.tokens:,} + {found.repeated:,} - {found.left_over:,} = {held:,} tokens in rows, "
        f"packed by {settings.method}"
    )
    for version in built["packed_rows"].values():
        say(f"written to {version.published.folder}")
