"""``lc buckets``: documents by their length in tokens."""

from pathlib import Path
from typing import Annotated

import typer

from lc_assets.cli import options
from lc_assets.cli.printing import facts, say, table


def buckets(
    sources: Annotated[
        list[Path],
        typer.Argument(
            metavar="IN... OUT",
            help="Files and folders of documents, or lakes; and a folder for the lake to write.",
        ),
    ],
    edges: Annotated[
        str | None,
        typer.Option("--edges", help="Tokens at which a bucket ends, such as 4096,16384."),
    ] = None,
    tokenizer: options.Tokenizer = "gpt2",
    text_field: options.TextField = None,
    workers: options.Workers = None,
) -> None:
    """Sort documents by their length in tokens, a folder for each bucket; by default 4K, 8K, ...
    128K.

    Example: lc buckets pages.jsonl.gz by-length --edges 8192,65536
    """
    from lc_assets.build.settings.longpack import LengthBucketSettings
    from lc_assets.build.settings.rows import TokenizingSettings
    from lc_assets.errors import BadInput
    from lc_assets.execution.local import executor_of
    from lc_assets.formats.tokenizers.named import located
    from lc_assets.packing.lengths import bucket_names
    from lc_assets.stages.file_lakes import build_for, context_over_files, counts_of, replaced
    from lc_assets.stages.packing.length_buckets import DOCUMENTS, TOKENS

    *inputs, out = sources
    if not inputs:
        raise BadInput("name what to read and where to write: lc buckets IN OUT")
    settings = replaced(LengthBucketSettings(), wanted=True)
    if edges is not None:
        try:
            wanted = [int(number) for number in edges.split(",")]
        except ValueError as error:
            raise BadInput(f"--edges {edges}: expected numbers, such as 4096,16384") from error
        settings = replaced(settings, edges=wanted)
    context = context_over_files(
        inputs,
        out,
        executor=executor_of(workers),
        settings={
            "length_buckets": settings,
            "token_documents": replaced(TokenizingSettings(), tokenizer=located(tokenizer)),
        },
        text_field=text_field,
    )
    built = build_for(context, "length_buckets")
    counts = counts_of(built)
    left_out = counts.seen - counts.kept
    say(f"{counts.seen:,} documents = {counts.kept:,} in buckets + {left_out:,} left out")
    facts(sorted(counts.dropped.items()))
    total = max(sum(n for name, n in counts.extra.items() if name.startswith(TOKENS)), 1)
    lines = []
    for name in bucket_names(settings.edges):
        n_tokens = counts.extra.get(f"{TOKENS}{name}", 0)
        n_documents = counts.extra.get(f"{DOCUMENTS}{name}", 0)
        lines.append((name, n_documents, n_tokens, f"{100 * n_tokens / total:.1f} %"))
    table(("tokens", "documents", "tokens together", "share of tokens"), lines)
    for found in built["length_buckets"].values():
        say(f"written to {found.published.folder}")
