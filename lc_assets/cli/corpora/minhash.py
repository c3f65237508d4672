"""``lc minhash``: MinHash signatures of any corpus, in RedPajama-V2's own tables."""

from typing import Annotated

import typer

from lc_assets.cli import options
from lc_assets.cli.printing import facts, say


def minhash(
    sources: options.Sources,
    fast: Annotated[
        bool,
        typer.Option(
            "--fast",
            help="This package's own hashes: eight times as fast, not RedPajama-V2's bits.",
        ),
    ] = False,
    text_field: options.TextField = None,
    workers: options.Workers = None,
) -> None:
    """Compute the MinHash signature of every document: 128 numbers that similar documents share, in
    bands as RedPajama-V2 publishes them.

    OUT is a lake: `document_signatures` holds a table per file. The signatures are bit for bit
    those of RedPajama-V2, unless --fast. A text of fewer than 13 words has none, but null.

    Example: lc minhash documents minhash --workers 2
    """
    from lc_assets.build.settings.documents import SignatureSettings
    from lc_assets.stages.deduplication.document_signatures import COMPUTED, TOO_SHORT
    from lc_assets.stages.file_lakes import counts_of

    built, out = options.built_over_files(
        "minhash",
        sources,
        "document_signatures",
        {"document_signatures": SignatureSettings(signatures="fast" if fast else "computed")},
        text_field=text_field,
        workers=workers,
    )
    counts = counts_of(built)
    say(
        f"{counts.seen:,} documents = {counts.kept:,} in the tables + "
        f"{counts.seen - counts.kept:,} that could not be read"
    )
    signed = [(name, counts.extra.get(name, 0)) for name in (COMPUTED, TOO_SHORT)]
    facts([*signed, *counts.dropped.items(), ("written to", f"{out}/document_signatures")])
