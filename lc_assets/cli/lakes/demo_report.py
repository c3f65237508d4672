"""The demo's report: documents at each stage, rows, arrays, a batch, a trace, digests and times."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from lc_assets.cli.inspect.batch import decode
from lc_assets.cli.inspect.trace_shown import show_span
from lc_assets.cli.printing import facts, heading, lasted, say, sized, table, visible
from lc_assets.errors import BadInput
from lc_assets.formats.arrays.flat import FlatReader
from lc_assets.formats.arrays.grid import GridReader
from lc_assets.lake.bucket_lake import open_lake
from lc_assets.lake.digests import short
from lc_assets.lake.lake import Lake
from lc_assets.lake.versions import Published
from lc_assets.loaders.grid import GridLoader
from lc_assets.loaders.rows import open_rows
from lc_assets.stages.catalogue import STAGES
from lc_assets.stages.lineage.tracing import row_of_order
from lc_assets.vocabulary import SPLITS

OF_DOCUMENTS = ("filtered_documents", "removed_documents", "token_documents", "token_grid")
"""Stages whose counts count documents."""

BATCH_ROWS = 4
CONTEXT_TOKENS = 1024
HEAD_CHARS = 240

Versions = Mapping[str, Mapping[str, Published]]
"""Published versions by stage and key."""


def report(url: str, n_written: int | None, heldout_fraction: float) -> None:
    """Print everything about a lake; ``n_written`` documents are in the sample, if there is one."""
    lake = open_lake(url)
    published = {stage.name: lake.published(stage.name) for stage in STAGES}
    written = "" if n_written is None else f"{n_written:,} written, "
    heading(f"Documents: {written}in = kept + dropped at every stage")
    columns = ("snapshot", "stage", "in", "kept", "dropped", "why, by first reason")
    table(columns, list(_document_lines(published)))
    show_rows(published, heldout_fraction)
    show_arrays(lake, published)
    show_first_batch(lake)
    heading("Where train row 0 came from")
    show_span(lake, row_of_order(lake, "train", 0))
    heading("What is published, and how long it took")
    lines = [
        (
            version.name,
            short(version.digest),
            lasted(version.receipt.measured["seconds"]),
            f"{version.receipt.measured['peak_rss_mb']:,.0f} MB",
        )
        for versions in published.values()
        for version in versions.values()
    ]
    table(("artefact", "data digest", "took", "peak memory"), lines)


def _document_lines(published: Versions) -> Iterator[tuple[str, str, int, int, int, str]]:
    for snapshot in published["filtered_documents"]:
        for stage in OF_DOCUMENTS:
            counts = published[stage][snapshot].receipt.counts
            most_first = sorted(counts.dropped.items(), key=lambda item: -item[1])
            reasons = ", ".join(f"{n:,} {reason}" for reason, n in most_first)
            yield snapshot, stage, counts.seen, counts.kept, sum(counts.dropped.values()), reasons


def show_rows(published: Versions, heldout_fraction: float) -> None:
    """Print tokens, rows and samples."""
    heading("Tokens and rows")
    lines = []
    for snapshot, grid in published["token_grid"].items():
        extra = grid.receipt.counts.extra
        tokens = published["token_documents"][snapshot].receipt.counts.extra.get("tokens", 0)
        lines.append(
            (snapshot, tokens, extra["train rows"], extra["heldout rows"], extra["tokens"])
        )
    table(
        ("snapshot", "tokens of whole documents", "train rows", "heldout rows", "tokens in rows"),
        lines,
    )
    n_rows = sum(line[2] + line[3] for line in lines)
    say(
        f"{heldout_fraction:g} of the documents are held out; 1/128, the default, would be "
        f"{n_rows / 128:.1f} of these {n_rows:,} rows."
    )
    mixes = [(name, mix.receipt.counts) for name, mix in published["blended_mix"].items()]
    table(
        ("mix", "samples", "sources"),
        [(name, counts.kept, counts.extra["sources"]) for name, counts in mixes],
    )


def show_arrays(lake: Lake, published: Versions) -> None:
    """Print the Zarr arrays and what everything takes on disk."""
    heading("Arrays")
    lines = []
    for stage in ("token_grid", "longcrawl_flat"):
        for version in published[stage].values():
            for split in SPLITS:
                path = version.folder / f"{split}.zarr"
                reader = GridReader(path) if stage == "token_grid" else FlatReader(path)
                chunks = " × ".join(f"{length:,}" for length in reader.chunk_shape)
                shape = f"{reader.n_rows:,} × {reader.row_tokens:,}"
                where = str(path.relative_to(lake.root))
                lines.append((where, shape, str(reader.dtype), chunks, sized(size_of(path))))
    table(("array", "rows × tokens", "type", "chunks", "on disk"), lines)
    sizes = [
        (name, len(versions), sized(sum(one.receipt.n_bytes for one in versions.values())))
        for name, versions in published.items()
    ]
    table(("stage", "partitions", "on disk"), sizes)


def size_of(folder: Path) -> int:
    """Bytes of all files below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def show_first_batch(lake: Lake) -> None:
    """Print the shape and the decoded beginning of the first training batch.

    Raises:
        BadInput: when there is no row.
    """
    heading("First batch")
    rows = open_rows(lake.url, "train")
    if not rows.n_rows:
        raise BadInput(
            "no document was long enough to fill a row: choose fewer --row-tokens, or longer texts"
        )
    length = context_of(rows.row_tokens)
    loader = GridLoader(rows, batch_rows=min(BATCH_ROWS, rows.n_rows), context_tokens=length)
    batch = loader[0]
    shape = " × ".join(f"{length:,}" for length in batch.text.shape)
    facts(
        [
            ("shape", f"{shape} {batch.text.dtype}, of {len(loader):,} steps"),
            ("text", " ".join(map(str, batch.text[0, :12].tolist())) + " …"),
            ("targets", " ".join(map(str, batch.targets[0, :12].tolist())) + " …"),
            ("decoded", visible(decode(batch.text[0, :HEAD_CHARS])[:HEAD_CHARS]) + " …"),
        ]
    )


def context_of(row_tokens: int) -> int:
    """The longest context of at most `CONTEXT_TOKENS` that divides a row.

    >>> context_of(65_536), context_of(100), context_of(1_030)
    (1024, 100, 515)
    """
    lengths = range(min(CONTEXT_TOKENS, row_tokens), 0, -1)
    return next(length for length in lengths if row_tokens % length == 0)
