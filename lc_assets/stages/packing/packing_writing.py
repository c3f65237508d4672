"""Writing packed rows: one folder that training reads, and Megatron too (docs/formats/packed.md).

``spans.parquet`` is written first, in groups of whole rows that no band shares with another; bands
of rows and Megatron's files are then written from it by tasks of their own, a group at a time. So
memory is a band of rows, or a group, whatever the set's size.

Here: files. Not here: the plan (`stages.packing_plans`).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from lc_assets.build.tables import COMPRESSION, opened_table
from lc_assets.counts import Counts
from lc_assets.execution.executor import Executor
from lc_assets.formats.arrays.grid import create_grid, plan_bands, write_band
from lc_assets.formats.arrays.grid_layout import (
    INNER_ROWS,
    SHARD_ROWS,
    SHARD_TOKENS,
    GridLayout,
    grid_dtype,
)
from lc_assets.formats.megatron.indexed import MegatronWriter
from lc_assets.formats.packed_spans import PackedSpans
from lc_assets.lake.staging import once
from lc_assets.packing.pieces import Packing
from lc_assets.publishing import publish
from lc_assets.stages.packing.packing_documents import PackingDocuments
from lc_assets.stages.packing.packing_gathering import COLUMNS, gather_pieces
from lc_assets.stages.packing.packing_plans import span_lines
from lc_assets.stages.packing.packing_tables import PACKED_SPANS, SPANS_FILE
from lc_assets.tokens.dtypes import megatron_dtype

MOST_PIECES: Final = 1 << 16
MOST_TOKENS: Final = 1 << 24
"""Pieces and tokens of a group, unless one row has more: 64 MiB of ids of four bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Vocabulary:
    """What ids mean.

    Attributes:
        tokenizer: its name.
        n_ids: every id is smaller.
        eot: end of text, or None where there is none.
    """

    tokenizer: str
    n_ids: int
    eot: int | None

    @property
    def pad(self) -> int:
        """What rows are filled up with: an id of the vocabulary, because readers refuse others."""
        return 0 if self.eot is None else self.eot


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedBandTask:
    """One band of rows of one split, whose pieces are some groups of ``spans.parquet``, to be
    written into ``folder``.
    """

    tokens: Path
    folder: Path
    split: str
    block: range
    groups: range
    row_tokens: int
    vocabulary: Vocabulary

    @property
    def name(self) -> str:
        """Split and first row."""
        return f"{self.split}-{self.block.start:09d}"

    def __str__(self) -> str:
        return f"{self.folder.name} {self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedMegatronTask:
    """One split's pieces, or ``whole_rows``, each a document of Megatron's, to be written into
    ``folder``.
    """

    tokens: Path
    folder: Path
    split: str
    groups: range
    row_tokens: int
    vocabulary: Vocabulary
    whole_rows: bool

    @property
    def name(self) -> str:
        """Split, and whose files."""
        return f"{self.split}-megatron"

    def __str__(self) -> str:
        return f"{self.folder.name} {self.name}"


PackedTask = PackedBandTask | PackedMegatronTask


def layout_of(n_rows: int, row_tokens: int, n_ids: int) -> GridLayout:
    """Layout of packed rows: as a grid's, with fewer rows a shard where rows are long, so that a
    band stays in memory.
    """
    rows = SHARD_ROWS * SHARD_TOKENS // row_tokens // INNER_ROWS * INNER_ROWS
    return GridLayout(n_rows, row_tokens, n_ids, shard_rows=min(max(rows, INNER_ROWS), SHARD_ROWS))


def write_plan(
    plans: Mapping[str, Packing],
    documents: PackingDocuments,
    tokens: Path,
    folder: Path,
    vocabulary: Vocabulary,
    *,
    about: Mapping[str, Any],
    whole_rows: bool = False,
) -> list[PackedTask]:
    """Write the spans of all splits and the arrays' metadata; return the tasks that write the rest.

    Args:
        plans: by split, in the order that splits stand in.
        documents: that they are of.
        tokens: folder of the token store.
        folder: for all of it.
        vocabulary: of the ids.
        about: more attributes of the arrays.
        whole_rows: whether Megatron's documents are rows, not pieces.
    """
    tasks: list[PackedTask] = []
    n_groups = 0
    with (
        publish(folder / SPANS_FILE) as draft,
        pq.ParquetWriter(draft, PACKED_SPANS, compression=COMPRESSION) as writer,
    ):
        for split, plan in plans.items():
            layout = layout_of(plan.n_rows, plan.row_tokens, vocabulary.n_ids)
            attributes = {"eot": vocabulary.eot, "pad": vocabulary.pad, **about}
            create_grid(
                folder / f"{split}.zarr",
                layout,
                tokenizer=vocabulary.tokenizer,
                attributes=attributes,
            )
            begin = n_groups
            for block in plan_bands(layout):
                first_of_band = n_groups
                for start, stop in groups_of(plan, block):
                    writer.write_table(
                        span_lines(plan, documents, split, start, stop), row_group_size=stop - start
                    )
                    n_groups += 1
                tasks.append(
                    PackedBandTask(
                        tokens=tokens,
                        folder=folder,
                        split=split,
                        block=block,
                        groups=range(first_of_band, n_groups),
                        row_tokens=plan.row_tokens,
                        vocabulary=vocabulary,
                    )
                )
            tasks.append(
                PackedMegatronTask(
                    tokens=tokens,
                    folder=folder,
                    split=split,
                    groups=range(begin, n_groups),
                    row_tokens=plan.row_tokens,
                    vocabulary=vocabulary,
                    whole_rows=whole_rows,
                )
            )
            stops = plan.places + plan.pieces.lengths
            PackedSpans.of(plan.row, stops, plan.pieces.document, n_rows=plan.n_rows).write(
                folder, split
            )
    return tasks


def groups_of(plan: Packing, block: range) -> Iterator[tuple[int, int]]:
    """First and last (exclusive) piece of each group of a band: whole rows, at most `MOST_PIECES`
    and `MOST_TOKENS` unless one has more.
    """
    most_rows = max(MOST_TOKENS // plan.row_tokens, 1)
    row = block.start
    while row < block.stop:
        by_pieces = (
            int(np.searchsorted(plan.first, plan.first[row] + MOST_PIECES, side="right")) - 1
        )
        until = min(max(by_pieces, row + 1), row + most_rows, block.stop)
        yield int(plan.first[row]), int(plan.first[until])
        row = until


def write_task(task: PackedTask) -> Counts:
    """Write one band, or one split for Megatron, unless it was written before."""
    return (
        write_packed_band(task)
        if isinstance(task, PackedBandTask)
        else write_packed_documents(task)
    )


@once
def write_packed_band(task: PackedBandTask) -> Counts:
    """Write one band of rows: their pieces one behind the other, and padding."""
    rows = np.full(
        (len(task.block), task.row_tokens), task.vocabulary.pad, grid_dtype(task.vocabulary.n_ids)
    )
    for plan in read_groups(task.folder, task.groups):
        places = (np.asarray(plan["row"]) - task.block.start) * task.row_tokens + np.asarray(
            plan["row_start"]
        )
        gather_pieces(plan, task.tokens, rows.reshape(-1), places, eot=task.vocabulary.eot)
    write_band(task.folder / f"{task.split}.zarr", task.block, rows)
    return Counts(seen=len(rows), kept=len(rows))


@once
def write_packed_documents(task: PackedMegatronTask) -> Counts:
    """Write one split for Megatron, in the rows' order: every piece is a document, without padding;
    or every row is one, with it.
    """
    with MegatronWriter.publishing(
        task.folder / task.split, megatron_dtype(task.vocabulary.n_ids)
    ) as writer:
        for plan in read_groups(task.folder, task.groups):
            row, lengths = (
                np.asarray(plan["row"]),
                np.asarray(plan["document_stop"]) - np.asarray(plan["document_start"]),
            )
            places = np.cumsum(lengths) - lengths
            if task.whole_rows:
                places = (row - row[0]) * task.row_tokens + np.asarray(plan["row_start"])
                lengths = np.full(int(row[-1] - row[0]) + 1, task.row_tokens)
            ids: NDArray[Any] = np.full(
                int(lengths.sum()), task.vocabulary.pad, grid_dtype(task.vocabulary.n_ids)
            )
            gather_pieces(plan, task.tokens, ids, places, eot=task.vocabulary.eot)
            writer.add_documents([ids], lengths.tolist())
    return Counts()


def read_groups(folder: Path, groups: range) -> Iterator[pa.Table]:
    """The lines of some groups of ``spans.parquet``, a group at a time: what is needed to write
    them.

    Raises:
        CorruptFile: when it is damaged.
    """
    path = folder / SPANS_FILE
    with opened_table(path) as file:
        for group in groups:
            yield file.read_row_group(group, columns=["row", "row_start", *COLUMNS])


def run_tasks(tasks: list[PackedTask], *, executor: Executor, what: str) -> Counts:
    """Write everything that is planned, where no version of the lake is built."""
    return Counts.total(counted for _, counted in executor.run(write_task, tasks, what=what))
