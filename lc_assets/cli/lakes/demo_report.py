"""The demo's report: what every stage published, arrays, a batch and a trace."""

from collections.abc import Iterator
from typing import Any

from lc_assets.cli.inspect.batch import batch
from lc_assets.cli.inspect.trace_shown import show_span
from lc_assets.cli.printing import heading, lasted, sized, table
from lc_assets.errors import BadInput
from lc_assets.formats.arrays.flat import FlatReader
from lc_assets.formats.arrays.grid import GridReader
from lc_assets.lake.bucket_lake import open_lake
from lc_assets.lake.digests import short
from lc_assets.lake.lake import Lake
from lc_assets.loaders.rows import open_rows
from lc_assets.stages.catalogue import STAGES
from lc_assets.stages.lineage.tracing import row_of_order
from lc_assets.vocabulary import SPLITS

BATCH_ROWS = 4
COLUMNS = ("partition", "stage", "in", "kept", "dropped", "on disk", "data digest", "took")


def report(url: str) -> None:
    """Print everything about a lake.

    Raises:
        BadInput: when there is no row.
    """
    lake = open_lake(url)
    heading("Documents: in = kept + dropped at every stage, with the first reasons")
    table((*COLUMNS, "why"), _published_lines(lake))
    heading("Arrays")
    table(("array", "rows × tokens", "type", "chunks", "on disk"), _array_lines(lake))
    heading("First batch")
    rows = open_rows(url, "train")
    if not rows.n_rows:
        raise BadInput(
            "no document was long enough to fill a row: choose fewer --row-tokens, or longer texts"
        )
    batch(url, rows=min(BATCH_ROWS, rows.n_rows), context=rows.row_tokens)
    heading("Where train row 0 came from")
    show_span(lake, row_of_order(lake, "train", 0))


def _published_lines(lake: Lake) -> Iterator[tuple[Any, ...]]:
    """A line per published version."""
    for stage in STAGES:
        for key, version in lake.published(stage.name).items():
            receipt = version.receipt
            counts = receipt.counts
            most_first = sorted(counts.dropped.items(), key=lambda item: -item[1])
            yield (
                key,
                stage.name,
                counts.seen,
                counts.kept,
                counts.seen - counts.kept,
                sized(receipt.n_bytes),
                short(version.digest),
                lasted(receipt.measured["seconds"]),
                ", ".join(f"{n:,} {reason}" for reason, n in most_first),
            )


def _array_lines(lake: Lake) -> Iterator[tuple[str, ...]]:
    """A line per Zarr array."""
    for stage, reader_of in (("token_grid", GridReader), ("longcrawl_flat", FlatReader)):
        for version in lake.published(stage).values():
            for split in SPLITS:
                path = version.folder / f"{split}.zarr"
                reader = reader_of(path)
                yield (
                    str(path.relative_to(lake.root)),
                    f"{reader.n_rows:,} × {reader.row_tokens:,}",
                    str(reader.dtype),
                    " × ".join(f"{length:,}" for length in reader.chunk_shape),
                    sized(sum(of.stat().st_size for of in path.rglob("*") if of.is_file())),
                )
