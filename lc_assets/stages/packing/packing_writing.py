"""Writing packed rows: one folder for training, including with Megatron (docs/formats/packed.md).

``spans.parquet`` is written first, in groups of whole rows that no block of rows shares with
another; blocks of rows, Megatron's files and texts are then written from it by tasks of their own,
a group at a time. So memory is a block of rows, or a group, whatever the size of the set.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lc_assets.arrays import Array, Int64s
from lc_assets.builds.settings.longpack import PackingSettings
from lc_assets.builds.table_writer import COMPRESSION
from lc_assets.builds.tables import PACKED_SPANS, SPANS_FILE, Line, opened_table
from lc_assets.counts import Counts
from lc_assets.formats.arrays.grid import create_grid, create_group, plan_bands, write_band
from lc_assets.formats.arrays.grid_layout import (
    INNER_ROWS,
    SHARD_ROWS,
    SHARD_TOKENS,
    GridLayout,
    grid_dtype,
    shard_rows_of,
)
from lc_assets.formats.arrays.npy import read_npy, write_npy
from lc_assets.formats.corpora.containers import CorpusDocument, write_corpus
from lc_assets.formats.megatron.idx import idx_path
from lc_assets.formats.megatron.indexed import MegatronReader, MegatronWriter
from lc_assets.formats.megatron.stretches import gather
from lc_assets.formats.packed_spans import PackedSpans
from lc_assets.formats.tokenizers.files import Vocabulary
from lc_assets.formats.tokenizers.named import sentence_flags, text_of
from lc_assets.lake.receipts import SCRATCH
from lc_assets.packing.cutting import Ends, ends_in, spacing
from lc_assets.packing.pieces import Packing
from lc_assets.publishing import publish
from lc_assets.records import record
from lc_assets.stages.packing.packing_plans import PackingDocuments, costs_of, span_lines
from lc_assets.tokens.dtypes import megatron_dtype

MOST_PIECES = 1 << 16
MOST_TOKENS = 1 << 24
"""Pieces and tokens of a group, unless one row has more: 64 MiB of ids of four bytes."""

COST = "row_cost"
"""``{split}_row_cost.npy``: int64, the sum of the squares of each row's pieces."""
TEXTS = "texts"
SEPARATOR = "\n\n"


@record
class PackedTask:
    """A part of packed rows, written to ``folder``, from some groups of its ``spans.parquet``.

    Attributes:
        kind: ``rows``, a block of one split's rows; ``megatron``, one split's pieces, or rows, each
            a document of Megatron's; ``texts``, the texts of a group; or ``ends``, where sentences
            and lines of one shard's documents end, which plans need.
        part: the split, or the shard.
        tokens: folder of the token store.
        settings: how documents are packed.
        tokenizer: its setting.
        vocabulary: its facts, as the token store has them.
        block: of rows.
    """

    kind: str = "rows"
    part: str = ""
    tokens: Path
    folder: Path
    settings: PackingSettings
    tokenizer: str
    vocabulary: Vocabulary
    groups: range = range(0)
    block: range = range(0)

    @property
    def name(self) -> str:
        """Kind, part, first row and first group."""
        return f"{self.kind}-{self.part}-{self.block.start}-{self.groups.start}"

    @property
    def ends_file(self) -> Path:
        """Where the ends of a shard's documents are, until the plan is made."""
        return self.folder / SCRATCH / f"{self.name}.npy"

    @property
    def pad(self) -> int:
        """The padding id: an id of the vocabulary, because readers reject others."""
        return self.vocabulary.eot or 0

    def __str__(self) -> str:
        return f"{self.folder.name} {self.name}"


def layout_of(n_rows: int, row_tokens: int, n_ids: int) -> GridLayout:
    """Layout of packed rows: as a grid's, with fewer rows a shard where rows are long, so that a
    block stays in memory.
    """
    rows = SHARD_ROWS * SHARD_TOKENS // row_tokens // INNER_ROWS * INNER_ROWS
    most = min(max(rows, INNER_ROWS), SHARD_ROWS)
    shard_rows = shard_rows_of(n_rows, INNER_ROWS, most)
    return GridLayout(n_rows, row_tokens, n_ids, shard_rows=shard_rows)


def write_plan(
    plans: Mapping[str, Packing],
    documents: PackingDocuments,
    task: PackedTask,
) -> list[PackedTask]:
    """Write the spans of all splits and the arrays' metadata; return the tasks that write the rest.

    Args:
        plans: by split, in the order of the splits.
        documents: the planned documents.
        task: the common attributes of all tasks.
    """
    tasks: list[PackedTask] = []
    n_groups, ids, settings = 0, task.vocabulary, task.settings
    attributes = {
        "eot": ids.eot,
        "pad": task.pad,
        "packing": settings.method,
        "documents_end": settings.append_eod,
        **({"align_tokens": settings.align_tokens} if settings.align_tokens else {}),
    }
    with (
        publish(task.folder / SPANS_FILE) as draft,
        pq.ParquetWriter(draft, PACKED_SPANS, compression=COMPRESSION) as writer,
    ):
        for split, plan in plans.items():
            layout = layout_of(plan.n_rows, plan.row_tokens, ids.n_ids)
            path = task.folder / f"{split}.zarr"
            rows = f"{split}_row"
            create_grid(path, layout, tokenizer=ids.name, attributes=attributes, rows=rows)
            begin = n_groups
            for block in plan_bands(layout):
                first_of_block = n_groups
                for start, stop in groups_of(plan, block):
                    lines = span_lines(plan, documents, split, start, stop)
                    writer.write_table(lines, row_group_size=stop - start)
                    n_groups += 1
                groups = range(first_of_block, n_groups)
                tasks.append(replace(task, kind="rows", part=split, block=block, groups=groups))
            groups = range(begin, n_groups)
            tasks.append(replace(task, kind="megatron", part=split, groups=groups))
            stops = plan.places + plan.pieces.lengths
            spans = PackedSpans.of(plan.row, stops, plan.pieces.document, n_rows=plan.n_rows)
            spans.write(task.folder, split)
            if settings.equal_steps:
                write_npy(task.folder / f"{split}_{COST}.npy", costs_of(plan))
    create_group(task.folder)
    if settings.texts:
        of_group = (range(number, number + 1) for number in range(n_groups))
        tasks += [replace(task, kind="texts", groups=group) for group in of_group]
    return tasks


def groups_of(plan: Packing, block: range) -> Iterator[tuple[int, int]]:
    """First and last (exclusive) piece of each group of a block: whole rows, at most `MOST_PIECES`
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
    """Write what a task names, unless it was written before."""
    writers = {
        "rows": _write_rows,
        "megatron": _write_megatron,
        "texts": _write_texts,
        "ends": _write_ends,
    }
    return writers[task.kind](task)


def _write_ends(task: PackedTask) -> Counts:
    """Write the number of ends in each document of a shard; then all ends."""
    flags, prefix = sentence_flags(task.tokenizer), task.tokens / task.part
    every = spacing(task.settings.segment_tokens)
    documents = MegatronReader(prefix) if idx_path(prefix).is_file() else ()
    found = [ends_in(ids, flags, every) for ids in documents]
    write_npy(task.ends_file, np.concatenate([np.array([*map(len, found)], np.int64), *found]))
    return Counts()


def read_ends(tasks: Sequence[PackedTask], n_documents: Sequence[int]) -> Ends:
    """The ends that some tasks found, in as many documents each."""
    found = [np.asarray(read_npy(task.ends_file)) for task in tasks]
    parts = [np.split(ends, [n]) for ends, n in zip(found, n_documents, strict=True)]
    counts = [np.zeros(1, np.int64), *(counts for counts, _ in parts)]
    token = [np.empty(0, np.int64), *(token for _, token in parts)]
    return Ends(first=np.cumsum(np.concatenate(counts)), token=np.concatenate(token))


def _write_rows(task: PackedTask) -> Counts:
    """Write one block of rows: their pieces one after the other, and padding."""
    ids, row_tokens = task.vocabulary, task.settings.row_tokens
    rows = np.full((len(task.block), row_tokens), task.pad, grid_dtype(ids.n_ids))
    for plan in _groups(task):
        places = (np.asarray(plan["row"]) - task.block.start) * row_tokens
        places += np.asarray(plan["row_start"])
        gather_pieces(plan, task.tokens, rows.reshape(-1), places, eot=ids.eot)
    write_band(task.folder / f"{task.part}.zarr", task.block, rows)
    return Counts(seen=len(rows), kept=len(rows))


def _write_megatron(task: PackedTask) -> Counts:
    """Write one split for Megatron, in the rows' order: every piece is a document, without padding;
    or every row is one, with it.
    """
    dtype = megatron_dtype(task.vocabulary.n_ids)
    with MegatronWriter.publishing(task.folder / task.part, dtype) as writer:
        for plan in _groups(task):
            lengths = _lengths(plan)
            places = np.cumsum(lengths) - lengths
            if task.settings.megatron == "rows":
                row, row_tokens = np.asarray(plan["row"]), task.settings.row_tokens
                places = (row - row[0]) * row_tokens + np.asarray(plan["row_start"])
                lengths = np.full(int(row[-1] - row[0]) + 1, row_tokens)
            writer.add_documents([_gathered(task, plan, lengths, places)], lengths.tolist())
    return Counts()


def _write_texts(task: PackedTask) -> Counts:
    """Write the texts of a group of rows: a record per row, with the spans of its pieces in
    characters. Pieces are decoded separately; a piece that begins or ends within a character of
    several bytes has U+FFFD there.
    """
    records = list[CorpusDocument]()
    for plan in _groups(task, PACKED_SPANS.names):
        lengths = _lengths(plan)
        begins = np.cumsum(lengths) - lengths
        ids = _gathered(task, plan, lengths, begins)
        pieces = zip(plan.to_pylist(), begins.tolist(), strict=True)
        for _, row in itertools.groupby(pieces, key=lambda piece: piece[0]["row"]):
            records.append(_record(task, ids, list(row)))
    with publish(task.folder / TEXTS / f"{task.groups.start:05d}.jsonl.gz") as draft:
        write_corpus(draft, records)
    return Counts()


def _record(task: PackedTask, ids: Array, row: list[tuple[Line, int]]) -> CorpusDocument:
    """A row's text, and where in it which piece of which document is; ``row`` has the line of each
    piece, and where its ids begin.
    """
    texts, spans, start = [], [], 0
    for line, begin in row:
        first, last = line["document_start"], line["document_stop"]
        text = text_of(task.tokenizer, ids[begin : begin + min(last, line["n_tokens"]) - first])
        own = {"document": line["id"], "url": line["url"]}
        tokens = {"first_token": first, "last_token": last}
        spans.append({"start": start, "stop": start + len(text), **own, **tokens})
        texts.append(text)
        start += len(text) + len(SEPARATOR)
    identity, n_tokens = f"{line['split']}/{line['row']}", line["row_stop"]
    rest = msgspec.Raw(msgspec.json.encode({"id": identity, "n_tokens": n_tokens, "spans": spans}))
    return CorpusDocument(id=identity, text=SEPARATOR.join(texts), rest=rest)


def _groups(task: PackedTask, columns: list[str] | None = None) -> Iterator[pa.Table]:
    """The lines of a task's groups, a group at a time.

    Raises:
        CorruptFile: when the table is damaged.
    """
    with opened_table(task.folder / SPANS_FILE) as file:
        for group in task.groups:
            yield file.read_row_group(group, columns=columns or ["row", "row_start", *COLUMNS])


def _lengths(plan: pa.Table) -> Int64s:
    lengths: Int64s = np.asarray(plan["document_stop"]) - np.asarray(plan["document_start"])
    return lengths


def _gathered(task: PackedTask, plan: pa.Table, lengths: Int64s, places: Int64s) -> Array:
    ids = np.full(int(lengths.sum()), task.pad, grid_dtype(task.vocabulary.n_ids))
    gather_pieces(plan, task.tokens, ids, places, eot=task.vocabulary.eot)
    return ids


COLUMNS = ("token_shard", "document", "document_start", "document_stop", "n_tokens")
"""Of `PACKED_SPANS`: what `gather_pieces` reads of a plan."""


def gather_pieces(
    plan: pa.Table, tokens: Path, out: Array, places: Int64s, *, eot: int | None
) -> None:
    """Copy the tokens of planned pieces into ``out``.

    Args:
        plan: lines with `COLUMNS`, one per piece.
        tokens: folder of the token store.
        out: one-dimensional, of the grid's dtype; positions that no piece covers are unchanged.
        places: int64, where in ``out`` each piece begins.
        eot: the token after a document's last one, where a piece reaches beyond it.

    Raises:
        CorruptFile: when a token file is missing or cut short.
        BadInput: when a document lacks the planned tokens.
    """
    document, start, stop, n_tokens = (np.asarray(plan[name], np.int64) for name in COLUMNS[1:])
    ends = places + np.minimum(stop, n_tokens) - start
    if eot is not None:
        out[ends[stop > n_tokens]] = eot

    def into(piece: int) -> tuple[Array]:
        return (out[places[piece] : ends[piece]],)

    gather(tokens, plan["token_shard"], document, start, into)
