"""``lc pack``: documents into rows of a fixed length, with the span of every document known."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from typer import Option

from lc_assets.cli import options
from lc_assets.cli.printing import facts, say, table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lc_assets.build.settings.longpack import PackingSettings
    from lc_assets.build.stage import Built


@dataclass(kw_only=True)
class Rows:
    """Settings of `packed_rows`."""

    method: Annotated[
        str, Option("--method", help="bestfit, concat, segment, reorder or upsample.")
    ] = "bestfit"
    row_tokens: Annotated[int, Option("--length", help="Tokens of a row.")] = 65_536
    segment_tokens: Annotated[
        int, Option("--segment", help="Tokens of a segment at most, for segment and reorder.")
    ] = 4096
    seed: Annotated[int, Option("--seed", help="Of the order of documents and rows.")] = 64
    min_tokens: Annotated[int, Option("--min-tokens", help="Leave out shorter documents.")] = 1
    order_by: Annotated[
        str,
        Option("--order-by", help="Field of a record with a number: pack documents in this order."),
    ] = ""
    group_by: Annotated[
        str,
        Option(
            "--group-by",
            help="Field that names a document's group, such as its repository: pack the documents "
            "of a group together, in the order of --order-by.",
        ),
    ] = ""
    megatron: Annotated[
        str, Option("--megatron", help="What Megatron's documents are: spans, or whole rows.")
    ] = "spans"
    texts: Annotated[bool, Option("--texts", help="Write the rows' texts too.")] = False


@dataclass(kw_only=True)
class Upsampling:
    """Settings of the method upsample."""

    threshold: Annotated[
        int,
        Option("--threshold", help="Tokens from which upsample takes a document for long."),
    ] = 8192
    keep_short: Annotated[
        float,
        Option("--keep-short", help="Share of the shorter documents that upsample keeps."),
    ] = 0.1
    budget: Annotated[
        float,
        Option("--budget", help="Tokens that upsample takes, in multiples of those read."),
    ] = 1.0
    by: Annotated[
        str,
        Option(
            "--source-field",
            help="Field of a record that names its source; upsample keeps each source's share.",
        ),
    ] = "nothing"


@dataclass(kw_only=True)
class Similar:
    """Settings for grouping similar documents."""

    neighbours: Annotated[
        int, Option("--neighbours", help="Similar documents to find for each of a group.")
    ] = 3
    path: Annotated[
        bool,
        Option("--path", help="Follow one path of nearest neighbours, as in-context pretraining."),
    ] = False
    min_similarity: Annotated[
        float, Option("--min-similarity", help="Least cosine of neighbours.")
    ] = 0.0
    max_similarity: Annotated[
        float, Option("--max-similarity", help="Cosine above which one is a copy.")
    ] = 0.95


@options.with_options
def pack(
    sources: options.Sources,
    rows: Rows,
    upsampling: Upsampling,
    neighbourhood: Similar,
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
    text_field: options.TextField = None,
    workers: options.Workers = None,
) -> None:
    """Pack documents into rows, and print where all tokens are; each IN has rows of its own.

    OUT is a lake: `packed_rows` holds train.zarr with its spans for training, train.bin and
    train.idx for Megatron, spans.parquet, and with --texts the rows as a corpus.

    Example: lc pack corpus packed --method bestfit --length 65536
    """
    from lc_assets.build.settings.longpack import PackingSettings
    from lc_assets.build.settings.rows import TokenizingSettings
    from lc_assets.errors import BadInput
    from lc_assets.formats.tokenizers.named import located, vocabulary_of
    from lc_assets.stages.file_lakes import replaced

    settings = replaced(
        PackingSettings(),
        **vars(rows),
        wanted=True,
        heldout_fraction=0,
        append_eod=not no_eod,
        cut_at="anywhere" if cut_anywhere else "ends",
        upsampling=vars(upsampling),
        similar=vars(neighbourhood) if similar else None,
    )
    tokens = replaced(TokenizingSettings(), tokenizer=located(tokenizer))
    if vocabulary_of(tokens.tokenizer).eot is None and not no_eod:
        raise BadInput(f"{tokenizer} has no end of text to end documents with: pass --no-eod")
    sections = {"packed_rows": settings, "token_documents": tokens}
    built, _ = options.built_over_files(
        "pack", sources, "packed_rows", sections, text_field=text_field, workers=workers
    )
    show(built, settings)


def show(built: "Mapping[str, Mapping[str, Built]]", settings: "PackingSettings") -> None:
    """Print what was read, where its tokens are, and what that costs."""
    from lc_assets.counts import Counts
    from lc_assets.errors import BadInput
    from lc_assets.stages.file_lakes import counts_of
    from lc_assets.stages.packing.packed_rows import balance_of
    from lc_assets.stages.packing.packing_writing import TORN

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
            *((name, packed.extra[name]) for name in (TORN,) if name in packed.extra),
        ]
    )
    held = found.tokens + found.repeated - found.left_over
    say(
        f"{found.tokens:,} + {found.repeated:,} - {found.left_over:,} = {held:,} tokens in rows, "
        f"packed by {settings.method}"
    )
    for version in built["packed_rows"].values():
        say(f"written to {version.published.folder}")
