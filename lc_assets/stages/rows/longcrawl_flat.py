"""`longcrawl_flat`: all snapshots' rows in the global order as one Zarr, in LongCrawl64's published
layout.

An optional full copy for readers that support only that layout. The global order serves the same
rows at the size of an index (`lc_assets.stages.rows.longcrawl`).
"""

from functools import lru_cache, partial
from itertools import groupby
from pathlib import Path

import numpy as np

from lc_assets.arrays import Array
from lc_assets.builds.building import run_shards
from lc_assets.builds.check_runs import by_workers
from lc_assets.builds.checks import an_eighth, by_chunk, evenly_spaced
from lc_assets.builds.recipe import Recipe, plain
from lc_assets.builds.stage import (
    UNPARTITIONED,
    BuildContext,
    CheckInput,
    CheckResult,
    Stage,
    StagingFolder,
)
from lc_assets.counts import Counts
from lc_assets.formats.arrays.chunks import plan_rows
from lc_assets.formats.arrays.flat import (
    BLOSC,
    CHUNK,
    MOST_IDS,
    ZSTD,
    FlatCodec,
    FlatReader,
    create_flat,
)
from lc_assets.formats.arrays.grid import GridReader
from lc_assets.formats.arrays.grid_layout import grid_dtype
from lc_assets.formats.arrays.npy import read_npy, write_npy
from lc_assets.formats.arrays.order import GlobalOrder
from lc_assets.formats.tokenizers.named import vocabulary_of
from lc_assets.lake.lake import GLOBAL, Lake
from lc_assets.lake.receipts import SCRATCH
from lc_assets.lake.versions import Published
from lc_assets.records import record
from lc_assets.stages.rows.token_grid import BlockTask
from lc_assets.vocabulary import SPLITS

CHECKED_ROWS = 64
PART_TOKENS = 8 * CHUNK[1]
"""Tokens of each row that a task copies: few rows, too, are several tasks."""
CODECS: dict[str, FlatCodec] = {"blosc-lz4": BLOSC, "zstd": ZSTD}


@record
class FlatTask(BlockTask):
    """Some columns of one band of the flat array of one split."""

    root: Path
    order: Path
    tokens: range

    @property
    def name(self) -> str:
        """Split, first row and first token."""
        return f"{self.split}-{self.block.start:09d}-{self.tokens.start:09d}"

    @property
    def checksums(self) -> Path:
        """Where those of its chunks are, until those of the whole band are known."""
        return self.folder / SCRATCH / f"{self.name}.npy"


def write_longcrawl_flat(context: BuildContext, staging: StagingFolder) -> Counts:
    """Write ``train.zarr`` and ``heldout.zarr`` as LongCrawl64 was published."""
    order = staging.inputs[f"longcrawl/{GLOBAL}"].folder
    bring_grids(context.lake, order)
    codec = CODECS[context.recipe.longcrawl_flat.codec]
    tasks = list[FlatTask]()
    for split in SPLITS:
        opened, folder = GlobalOrder.open(order, split), staging.folder
        create_flat(
            folder / f"{split}.zarr",
            len(opened),
            opened.row_tokens,
            chunk=CHUNK,
            codec=codec,
            vocab_size=opened.vocab_size,
        )
        tasks += [
            FlatTask(
                root=context.lake.root,
                order=order,
                folder=folder,
                split=split,
                block=block,
                tokens=tokens,
            )
            for block in plan_rows(len(opened), CHUNK[0])
            for tokens in plan_rows(opened.row_tokens, PART_TOKENS)
        ]
    counts = run_shards(context, staging, write_part, tasks, what="flatten")
    for (split, block), parts in groupby(tasks, key=lambda task: (task.split, task.block)):
        known = [read_npy(part.checksums) for part in parts]
        flat = FlatReader(staging.folder / f"{split}.zarr")
        flat.write_checksums(block.start // CHUNK[0], np.bitwise_or.reduce(known))
    return counts


def write_part(task: FlatTask) -> Counts:
    """Copy some columns of a band of rows out of the grids into the flat array, a column of chunks
    at a time: 16 MiB in memory, not 512.
    """
    rows = OrderedRows(task.root, task.order, task.split)
    flat = FlatReader(task.folder / f"{task.split}.zarr")
    for tokens in _columns(task.tokens):
        ids = rows.read(task.block, tokens)
        flat.write(task.block, ids, tokens)
    write_npy(task.checksums, flat.checksums(task.block.start // CHUNK[0]))
    n_rows = len(task.block) if task.tokens.start == 0 else 0
    return Counts(seen=n_rows, kept=n_rows, extra={f"{task.split} rows": n_rows})


def _columns(tokens: range) -> list[slice]:
    """Some tokens of a row by columns of chunks."""
    return [
        slice(tokens.start + block.start, tokens.start + block.stop)
        for block in plan_rows(len(tokens), CHUNK[1])
    ]


def raw_bytes(flat: Published) -> int:
    """Size of the flat arrays' ids as they are, two bytes each."""
    readers = (FlatReader(flat.folder / f"{split}.zarr") for split in SPLITS)
    return sum(2 * reader.n_rows * reader.row_tokens for reader in readers)


def bring_grids(lake: Lake, order: Path) -> None:
    """Download the grids of an order to this machine if needed, because all of their rows will be
    read.
    """
    for source in GlobalOrder.open(order, "train").sources:
        lake.partition("token_grid", source.snapshot).at(source.version).only("*.zarr/*")


@lru_cache(maxsize=len(SPLITS))
class OrderedRows:
    """The rows of one split in the global order, opened once in a process."""

    def __init__(self, root: Path, order: Path, split: str) -> None:
        self.order = GlobalOrder.open(order, split)
        self.grids = [
            GridReader(root / "token_grid" / source.snapshot / source.version / f"{split}.zarr")
            for source in self.order.sources
        ]

    def read(self, positions: range, tokens: slice) -> Array:
        """Tokens of some rows: one read per grid, whose rows are consecutive in an order."""
        part = slice(positions.start, positions.stop)
        source, row = self.order.source[part], self.order.row[part].astype(np.int64)
        columns = range(self.order.row_tokens)[tokens]
        ids: Array = np.empty((len(positions), len(columns)), grid_dtype(self.order.vocab_size))
        for number in np.unique(source):
            mine = source == number
            first, last = int(row[mine].min()), int(row[mine].max())
            places = row[mine] - first
            found: Array = self.grids[number].read(slice(first, last + 1), tokens)
            if not np.array_equal(places, np.arange(len(found))):
                found = found[places]
            if mine.all():
                return found
            ids[mine] = found
        return ids


def the_flat_rows_are_the_ordered_rows(check_input: CheckInput) -> CheckResult:
    """Rows read back from the flat arrays are the grids' rows in the global order over an eighth of
    the columns: all, or an even 64 of each split.
    """
    order = check_input.only_input("longcrawl").folder
    bring_grids(check_input.lake, order)
    wrong, n_checked = list[str](), 0
    for split in SPLITS:
        flat = FlatReader(check_input.folder / f"{split}.zarr")
        n_ordered = len(GlobalOrder.open(order, split))
        if flat.n_rows != n_ordered:
            wrong.append(f"{split}: {flat.n_rows:,} rows of {n_ordered:,}")
            continue
        chosen = evenly_spaced(flat.n_rows, CHECKED_ROWS)
        check = partial(_wrong_rows, root=check_input.lake.root, order=order, array=flat.path)
        parts = [
            (rows, an_eighth(columns, CHUNK[1], band + task))
            for band, rows in enumerate(by_chunk(chosen, flat.chunk_shape[0]))
            for task, columns in enumerate(plan_rows(flat.row_tokens, PART_TOKENS))
        ]
        found = {row for rows in by_workers(check_input, check, parts) for row in rows}
        wrong += [f"{split} row {row}" for row in sorted(found)]
        n_checked += len(chosen)
    return CheckResult(
        passed=not wrong,
        message="; ".join(wrong[:5]) or f"{n_checked:,} rows read back, all in their places",
        values={"rows read back": n_checked},
    )


def _wrong_rows(part: tuple[list[int], range], root: Path, order: Path, array: Path) -> list[int]:
    """Those of some rows of a flat array, which are close together, that differ in some columns
    from the grids' rows in an order.

    Args:
        part: numbers of the rows, and the columns.
        root: of the lake.
        order: folder of the global order.
        array: of one split.
    """
    rows, columns = part
    ordered, tokens = OrderedRows(root, order, array.stem), slice(columns.start, columns.stop)
    first, stop = rows[0], rows[-1] + 1
    found = FlatReader(array).read(slice(first, stop), tokens)
    differ = (found != ordered.read(range(first, stop), tokens)).any(axis=1)
    return [row for row in rows if differ[row - first]]


def _too_many_ids(recipe: Recipe) -> str:
    """Why a recipe's ids do not fit the layout; empty if they do."""
    n_ids = vocabulary_of(recipe.token_documents.tokenizer).n_ids
    return f"its ids have two bytes, the vocabulary has {n_ids:,} ids" if n_ids > MOST_IDS else ""


STAGE = Stage(
    name="longcrawl_flat",
    description=(
        "All rows in the global order as one Zarr in LongCrawl64's published layout; on request."
    ),
    code_version="2",
    reads={"longcrawl": UNPARTITIONED},
    params=lambda recipe, _: plain(recipe.longcrawl_flat),
    checks=(the_flat_rows_are_the_ordered_rows,),
    refused=_too_many_ids,
    partitioned_by="nothing",
    group="tokens",
    job="all_snapshots",
    kinds=("zarr",),
    counted="rows",
    write=write_longcrawl_flat,
)
"""LongCrawl64's own layout."""
