"""What stages of tokens and rows show: token documents, grids, packed rows, Megatron, mixes."""

import numpy as np

from lc_assets.builds.checks import documents_files
from lc_assets.builds.showing import Markdown, Plot, Shown, Table, plot_of
from lc_assets.builds.stage import BuildContext, Built
from lc_assets.builds.tables import TOKENIZED, Line, read_all
from lc_assets.formats.arrays.grid import GridReader
from lc_assets.formats.packed_spans import PackedSpans
from lc_assets.formats.tokenizers.named import text_of
from lc_assets.lake.versions import Published
from lc_assets.stages.lineage.spans import spans_of_packed_row
from lc_assets.stages.megatron import megatron_rows as megatron
from lc_assets.stages.mixes import blended_mix as blending, launching
from lc_assets.stages.packing import packed_rows as packing
from lc_assets.stages.rows import (
    longcrawl as ordering,
    longcrawl_flat as flattening,
    token_grid as gridding,
)
from lc_assets.stages.shown.documents import counted
from lc_assets.vocabulary import SPLITS

ROWS_OF_SPLITS = tuple(f"{split} rows" for split in SPLITS)

SHOWN_ROWS, SHOWN_TOKENS, SHOWN_CHARS = 2, 16, 80


def token_documents(context: BuildContext, built: Built) -> Shown:
    """Lengths in tokens."""
    least = context.recipe.token_documents.min_tokens
    plot = _lengths(built, "Length of token documents", least, f"minimum, {least:,}")
    return Shown(values={"lengths": plot})


def packing_tokens(context: BuildContext, built: Built) -> Shown:
    """Lengths in tokens."""
    row = context.recipe.packed_rows.row_tokens
    plot = _lengths(built, "Length of documents to be packed", row, f"a row, {row:,}")
    return Shown(values={"lengths": plot})


def _lengths(built: Built, title: str, mark: int, mark_name: str) -> Plot:
    table = read_all(documents_files(built.published.folder), TOKENIZED, ["n_tokens"])
    lengths = np.asarray(table["n_tokens"])
    return plot_of("histogram", title, lengths, unit="tokens", mark=mark, mark_name=mark_name)


def token_grid(context: BuildContext, built: Built) -> Shown:
    """Sizes, the first rows decoded, and lengths of the rows' documents."""
    tokenizer = context.recipe.token_documents.tokenizer
    reader = GridReader(built.published.folder / "train.zarr")
    n_rows = sum(counted(built, ROWS_OF_SPLITS).values())
    files = built.published.receipt.files
    sizes = {
        "ids as they are": reader.dtype.itemsize * n_rows * reader.row_tokens,
        "stored": sum(fact.n_bytes for fact in files if ".zarr/" in fact.path),
    }
    return Shown(
        rows=n_rows,
        values={
            "sizes": plot_of("bars", "Size of the rows", sizes, unit="bytes"),
            "first_rows": Table(gridding.decoded_rows(built.published, tokenizer, n_rows=5)),
            "document_lengths": plot_of(
                "histogram",
                "Length of the rows' documents",
                gridding.rows_table(built.published)["n_tokens"],
                unit="tokens",
                mark=context.recipe.token_grid.row_tokens,
                mark_name="a row",
            ),
        },
    )


def row_lineage(_context: BuildContext, built: Built) -> Shown:
    """Rows and removed documents in the index."""
    counts = counted(built, (*ROWS_OF_SPLITS, "removals"))
    plot = plot_of("bars", "Indexed", counts, unit="rows, and removed documents")
    return Shown(values={"indexed": plot})


def longcrawl(_context: BuildContext, built: Built) -> Shown:
    """Tokens over the years."""
    tokens = ordering.tokens_by_snapshot(built.published)
    plot = plot_of("timeline", "Tokens by snapshot", tokens, unit="tokens")
    return Shown(values={"tokens_by_snapshot": plot})


def longcrawl_flat(_context: BuildContext, built: Built) -> Shown:
    """Raw and stored size."""
    sizes = {
        "raw ids": flattening.raw_bytes(built.published),
        "stored": built.published.receipt.n_bytes,
    }
    return Shown(values={"sizes": plot_of("bars", "Size of the flat arrays", sizes, unit="bytes")})


def packed_rows(context: BuildContext, built: Built) -> Shown:
    """Padding, cuts, attention, lengths and the first rows decoded."""
    settings, folder = context.recipe.packed_rows, built.published.folder
    found = packing.balance_of(built.counts, settings)
    spans = [PackedSpans.map(folder, split, settings.align_tokens or 1) for split in SPLITS]
    lengths = np.concatenate([found.lengths for found in spans])
    per_row = np.concatenate([np.diff(found.first) for found in spans])
    tokenizer = context.recipe.token_documents.tokenizer
    return Shown(
        rows=found.rows,
        values={
            "padding_share": float(found.padding_share),
            "cut_share": float(found.cut_share),
            "attention_share": float(found.attention_share),
            "where_tokens_are": plot_of(
                "bars",
                f"Tokens of {found.rows:,} rows, {settings.method}",
                {"in rows": found.in_rows, "padding": found.padding},
                unit="tokens",
            ),
            "rows_by_split": plot_of(
                "bars",
                "Rows",
                {split: built.counts.extra[f"{split} rows"] for split in SPLITS},
                unit="rows",
            ),
            "piece_lengths": plot_of(
                "histogram",
                "Length of pieces",
                lengths,
                unit="tokens",
                mark=settings.row_tokens,
                mark_name=f"a row, {settings.row_tokens:,}",
                counted="pieces",
            ),
            "pieces_per_row": plot_of(
                "histogram", "Pieces of a row", per_row, unit="pieces", counted="rows"
            ),
            "first_rows": Table(_first_pieces(built.published, tokenizer)[:20]),
        },
    )


def megatron_rows(_context: BuildContext, built: Built) -> Shown:
    """Samples, and sizes by file."""
    sizes = {fact.path: float(fact.n_bytes) for fact in built.published.receipt.files}
    plot = plot_of("bars", "Files", sizes, unit="bytes")
    return Shown(values={"samples": megatron.samples_of(built.published), "sizes": plot})


def blended_mix(context: BuildContext, built: Built) -> Shown:
    """Composition and repetition by source, and how to train on it."""
    mix = blending.read_mix(built.published.folder)
    launch = launching.shown_launch(context.lake, built.published)
    left = mix.n_samples - mix.after
    return Shown(
        values={
            "composition": plot_of(
                "bars",
                "Samples by source",
                {source.name: source.kept + source.weight * left for source in mix.sources},
                unit="samples",
                beside={source.name: float(source.used) for source in mix.sources},
                names=("requested", "actual"),
            ),
            "repetition": plot_of(
                "bars",
                "Repetition by source",
                {source.name: 100 * source.used / source.available for source in mix.sources},
                unit="% of one epoch",
            ),
            "by_source": Table(blending.table_of(mix)),
            "launch": Markdown("\n\n".join(f"`{line}`" for line in launch)),
        }
    )


def _first_pieces(packed: Published, tokenizer: str) -> list[Line]:
    """How the pieces of the first packed training rows begin, as text; a line per piece."""
    reader, found = GridReader(packed.folder / "train.zarr"), []
    for row in range(min(SHOWN_ROWS, reader.n_rows)):
        ids = reader.read(slice(row, row + 1))[0]
        spans = [span for span in spans_of_packed_row(packed, "train", row) if span.number >= 0]
        for number, span in enumerate(spans):
            piece = ids[span.row_start : span.row_stop][:SHOWN_TOKENS]
            found.append(
                {
                    "row": row,
                    "piece": number,
                    "begins": " ".join(text_of(tokenizer, piece).split())[:SHOWN_CHARS],
                    "tokens": f"{span.document_start:,} to {span.document_stop:,} of "
                    f"{span.n_tokens:,}",
                    "url": span.url,
                }
            )
    return found
