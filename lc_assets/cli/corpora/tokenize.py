"""``lc tokenize`` and ``lc buckets``: token ids of documents, and documents by their length."""

from typing import TYPE_CHECKING, Annotated

from typer import Option

from lc_assets.build.settings.longpack import LengthBucketSettings
from lc_assets.build.settings.rows import GriddingSettings, TokenizingSettings
from lc_assets.cli import options
from lc_assets.cli.printing import facts, print_error, say, table
from lc_assets.errors import BadInput

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lc_assets.build.stage import Built


@options.with_options
def tokenize(
    corpus: options.Corpus,
    settings: TokenizingSettings = options.settings_options(
        TokenizingSettings(min_tokens=1), "tokenizer", "append_eod", "dtype", "min_tokens"
    ),
) -> None:
    """Tokenize documents, one sequence each; byte for byte what Megatron's preprocess_data.py
    writes.

    OUT is a lake: `token_documents` holds a data set per input file. `lc megatron merge` joins
    them.

    Example: lc tokenize corpus tokens --tokenizer gpt2 --append-eod
    """
    from lc_assets.formats.tokenizers.named import located, vocabulary_of
    from lc_assets.stages.file_lakes import replaced
    from lc_assets.tokens.dtypes import header_warning, stored_dtype

    settings = replaced(settings, tokenizer=located(settings.tokenizer))
    vocabulary = vocabulary_of(settings.tokenizer)
    stored = stored_dtype(vocabulary.n_ids, settings.dtype)
    if warning := header_warning(vocabulary.n_ids, stored):
        print_error(f"warning: {warning}")
    if settings.append_eod and vocabulary.eot is None:
        print_error(f"warning: {vocabulary.name} has no end of text, so none is appended")
    sections = {
        "token_documents": settings,
        "token_grid": GriddingSettings(heldout_fraction=0, row_tokens=1),
    }
    _show_data_sets(corpus.build("token_documents", sections), stored.name)


def _show_data_sets(built: "Mapping[str, Mapping[str, Built]]", dtype: str) -> None:
    """Print the counts, warnings about tokenizers, and the data sets."""
    from lc_assets.stages.file_lakes import counts_of
    from lc_assets.stages.tokens.tokenizing import BY_REFERENCE, UNCHECKED

    counts = counts_of(built)
    if not counts.kept:
        dropped = ", ".join(f"{n:,} {why}" for why, n in counts.dropped.items())
        raise BadInput(f"no document to write of {counts.seen:,} seen: {dropped}")
    say(
        f"{counts.seen:,} documents = {counts.kept:,} written + "
        f"{counts.seen - counts.kept:,} left out"
    )
    for name, why in (
        (BY_REFERENCE, "because the fast one cannot read this kind, or its ids differ"),
        (UNCHECKED, "because it cannot read this kind"),
    ):
        if n := counts.extra.get(name, 0):
            print_error(f"warning: {n:,} {name.replace('files', 'files were', 1)}, {why}")
    facts([*counts.dropped.items(), *counts.extra.items(), ("dtype", dtype)])
    table(
        ("data sets", "documents", "tokens"),
        [
            (str(found.published.folder), found.counts.kept, found.counts.extra.get("tokens", 0))
            for found in built["token_documents"].values()
        ],
    )


@options.with_options
def buckets(
    corpus: options.Corpus,
    edges: Annotated[
        str | None,
        Option("--edges", help="Tokens at which a bucket ends, such as 4096,16384."),
    ] = None,
    tokenizer: options.Tokenizer = "gpt2",
) -> None:
    """Sort documents by their length in tokens, a folder for each bucket; by default 4K, 8K, ...
    128K.

    Example: lc buckets pages.jsonl.gz by-length --edges 8192,65536
    """
    from lc_assets.formats.tokenizers.named import located
    from lc_assets.packing.lengths import bucket_names
    from lc_assets.stages.file_lakes import counts_of, replaced
    from lc_assets.stages.packing.length_buckets import DOCUMENTS, TOKENS

    settings = replaced(LengthBucketSettings(), wanted=True)
    if edges is not None:
        try:
            wanted = [int(number) for number in edges.split(",")]
        except ValueError as error:
            raise BadInput(f"--edges {edges}: expected numbers, such as 4096,16384") from error
        settings = replaced(settings, edges=wanted)
    sections = {
        "length_buckets": settings,
        "token_documents": replaced(TokenizingSettings(), tokenizer=located(tokenizer)),
    }
    built = corpus.build("length_buckets", sections)
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
