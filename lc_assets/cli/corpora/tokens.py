"""``lc tokenize``, ``lc buckets`` and ``lc pack``: token ids of documents, documents by their
length, and rows of a fixed length.
"""

from typing import Annotated

import msgspec
from msgspec import structs
from typer import Option

from lc_assets.api import corpora as api
from lc_assets.api.files import Output
from lc_assets.builds.settings.longpack import (
    NO_SOURCE,
    LengthBucketSettings,
    PackingSettings,
    SimilarSettings,
    UpsamplingSettings,
)
from lc_assets.builds.settings.rows import TokenizingSettings
from lc_assets.cli import options
from lc_assets.cli.printing import facts, print_error, say, show_counts, table
from lc_assets.cli.setting_options import settings_options
from lc_assets.counts import Counts
from lc_assets.formats.tokenizers.named import located, vocabulary_of
from lc_assets.packing.lengths import bucket_names
from lc_assets.stages.file_lakes import replaced
from lc_assets.stages.packing.length_buckets import DOCUMENTS, TOKENS
from lc_assets.stages.packing.packed_rows import balance_of
from lc_assets.stages.tokens.tokenizing import BY_REFERENCE, UNCHECKED
from lc_assets.tokens.dtypes import header_warning, stored_dtype


def tokenize(
    corpus: options.Corpus,
    settings: TokenizingSettings = settings_options(
        TokenizingSettings(min_tokens=1),
        "append_eod",
        "dtype",
        "min_tokens",
        "split_sentences",
        "keep_newlines",
    ),
    tokenizers: Annotated[list[str] | None, Option("--tokenizer")] = None,
    json_keys: Annotated[list[str] | None, Option("--json-key")] = None,
) -> None:
    """Tokenize documents, one sequence each; byte for byte what Megatron's preprocess_data.py
    writes.

    OUT is a lake: `token_documents` holds a data set per input file, `filtered_documents` the
    texts, uncompressed. `lc megatron merge` joins the data sets.

    Args:
        tokenizers: ``gpt2`` (the default), cl100k_base, ...; a tokenizer.json or .model; a folder;
            owner/model of the hub. May be given several times, for a lake of each in OUT, from one
            reading of the texts.
        json_keys: a field with a text; may be given several times, for a data set of each, as
            preprocess_data.py --json-keys.

    Example: lc tokenize corpus tokens --tokenizer gpt2 --append-eod
    """
    names, how = tokenizers or [settings.tokenizer], {"json_keys": json_keys or ()}
    dtypes = [_stored(name, settings) for name in names]
    if len(names) > 1:
        outputs = list(corpus.call(api.tokenize_each, names, settings, **how).values())
        corpus.noted(outputs[0])
    else:
        settings = structs.replace(settings, tokenizer=names[0])
        outputs = [corpus.run(api.tokenize, settings, **how)]
    for output, dtype in zip(outputs, dtypes, strict=True):
        _show_data_sets(output, dtype)


def _stored(tokenizer: str, settings: TokenizingSettings) -> str:
    """The dtype of the ids; warn about what a user may not expect of a vocabulary."""
    vocabulary = vocabulary_of(located(tokenizer))
    stored = stored_dtype(vocabulary.n_ids, settings.dtype)
    if warning := header_warning(vocabulary.n_ids, stored):
        print_error(f"warning: {warning}")
    if settings.append_eod and vocabulary.eot is None:
        print_error(f"warning: {vocabulary.name} has no end of text, so none is appended")
    return stored.name


def _show_data_sets(output: Output, dtype: str) -> None:
    """Print the counts, warnings about tokenizers, and the data sets."""
    counts = output.counts
    options.require_documents(counts.kept, counts)
    show_counts(counts, "written")
    for name, why in (
        (BY_REFERENCE, "because the fast one cannot read this kind, or its ids differ"),
        (UNCHECKED, "because it cannot read this kind"),
    ):
        if n := counts.extra.get(name, 0):
            print_error(f"warning: {n:,} {name.replace('files', 'files were', 1)}, {why}")
    facts([("dtype", dtype)])
    table(
        ("data sets", "documents", "tokens"),
        [
            (str(found.published.folder), found.counts.kept, found.counts.extra.get("tokens", 0))
            for found in output["token_documents"]
        ],
    )


def buckets(
    corpus: options.Corpus,
    edges: str | None = None,
    tokenizer: options.Tokenizer = "gpt2",
) -> None:
    """Sort documents by their length in tokens, a folder for each bucket; by default 4K, 8K, ...
    128K.

    Args:
        edges: tokens at which a bucket ends, such as 4096,16384.

    Example: lc buckets pages.jsonl.gz by-length --edges 8192,65536
    """
    settings = replaced(LengthBucketSettings(), wanted=True)
    if edges is not None:
        settings = replaced(settings, edges=options.numbers_of("--edges", edges))
    sections = {
        "length_buckets": settings,
        "token_documents": replaced(TokenizingSettings(), tokenizer=located(tokenizer)),
    }
    output = corpus.build("length_buckets", sections)
    counts = output.counts
    show_counts(msgspec.structs.replace(counts, extra={}), "in buckets")
    total = max(sum(n for name, n in counts.extra.items() if name.startswith(TOKENS)), 1)
    lines = []
    for name in bucket_names(settings.edges):
        n_tokens = counts.extra.get(f"{TOKENS}{name}", 0)
        n_documents = counts.extra.get(f"{DOCUMENTS}{name}", 0)
        lines.append((name, n_documents, n_tokens, f"{100 * n_tokens / total:.1f} %"))
    table(("tokens", "documents", "tokens together", "share of tokens"), lines)
    for folder in output.versions:
        say(f"written to {folder}")


def pack(
    corpus: options.Corpus,
    rows: PackingSettings = settings_options(
        PackingSettings(wanted=True),
        "method",
        "seed",
        "min_tokens",
        "order_by",
        "group_by",
        "megatron",
        "texts",
        "equal_steps",
        "align_tokens",
        append_eod="--append-eod/--no-eod",
        cut_at="--cut-at",
        row_tokens="--length",
        segment_tokens="--segment",
    ),
    upsampling: UpsamplingSettings = settings_options(
        UpsamplingSettings(by=NO_SOURCE), "threshold", "keep_short", "budget", by="--source-field"
    ),
    neighbourhood: SimilarSettings = settings_options(
        SimilarSettings(), "neighbours", "path", "min_similarity", "max_similarity"
    ),
    similar: bool = False,
    tokenizer: options.Tokenizer = "gpt2",
) -> None:
    """Pack documents into rows, and print where all tokens are; each IN has rows of its own.

    OUT is a lake: `packed_rows` holds train.zarr with its spans for training, train.bin and
    train.idx for Megatron, spans.parquet, and with --texts the rows as a corpus.

    Args:
        similar: pack groups of similar documents, each as long as a row at most.

    Example: lc pack corpus packed --method bestfit --length 65536
    """
    settings = replaced(
        rows,
        upsampling=msgspec.to_builtins(upsampling),
        similar=msgspec.to_builtins(neighbourhood) if similar else None,
    )
    _show_rows(corpus.run(api.pack, settings, tokenizer=tokenizer), settings)


def _show_rows(output: Output, settings: PackingSettings) -> None:
    """Print what was read, where its tokens are, and what that costs."""
    counts = output.counts
    tokenized = Counts.total(version.counts for version in output["packing_tokens"])
    packed = Counts.total(version.counts for version in output["packed_rows"])
    options.require_documents(packed.seen, counts)
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
    for folder in output.versions:
        say(f"written to {folder}")
