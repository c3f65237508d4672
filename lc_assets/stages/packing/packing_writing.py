"""Writing packed rows: one folder for training, including with Megatron (docs/formats/packed.md).

``spans.parquet`` is written first, in groups of whole rows that no block of rows shares with
another; blocks of rows, Megatron's files and texts are then written from it by tasks of their own,
a group at a time. So memory is a block of rows, or a group, whatever the size of the set.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from lc_assets.build.tables import COMPRESSION, PACKED_SPANS, SPANS_FILE, opened_table
from lc_assets.counts import Counts
from lc_assets.formats.arrays.grid import create_grid, plan_bands, write_band
from lc_assets.formats.arrays.grid_layout import (
    INNER_ROWS,
    SHARD_ROWS,
    SHARD_TOKENS,
    GridLayout,
    grid_dtype,
)
from lc_assets.formats.corpora.containers import CorpusDocument, write_corpus
from lc_assets.formats.megatron.indexed import MegatronWriter
from lc_assets.formats.megatron.stretches import gather
from lc_assets.formats.packed_spans import PackedSpans
from lc_assets.formats.tokenizers.named import text_of
from lc_assets.lake.staging import once
from lc_assets.packing.pieces import Packing
from lc_assets.publishing import publish
from lc_assets.stages.packing.packing_plans import PackingDocuments, span_lines
from lc_assets.tokens.dtypes import megatron_dtype

MOST_PIECES: Final = 1 << 16
MOST_TOKENS: Final = 1 << 24
"""Pieces and tokens of a group, unless one row has more: 64 MiB of ids of four bytes."""

TEXTS: Final = "texts"
SEPARATOR: Final = "\n\n"
TORN: Final = "pieces torn within a character"


@dataclass(frozen=True, slots=True, kw_only=True)
class Vocabulary:
    """The vocabulary of ids: the tokenizer's name; every id is below ``n_ids``; ``eot`` is end of
    text, or None where there is none.
    """

    tokenizer: str
    n_ids: int
    eot: int | None

    @property
    def pad(self) -> int:
        """The padding id: an id of the vocabulary, because readers reject others."""
        return 0 if self.eot is None else self.eot


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedTask:
    """A part of what is written from some groups of ``spans.parquet`` in ``folder``.

    Attributes:
        kind: ``rows``, a block of one split's rows; ``megatron``, one split's pieces, or, with
            ``whole_rows``, rows, each a document of Megatron's; or ``texts``, the texts of a group.
        block: of rows.
        tokens: folder of the token store.
        setting: of the tokenizer, for texts.
    """

    kind: str
    tokens: Path
    folder: Path
    split: str
    groups: range
    row_tokens: int
    vocabulary: Vocabulary
    setting: str
    whole_rows: bool
    block: range

    @property
    def name(self) -> str:
        """Split and first row; or split and kind; or number of the texts' file."""
        if self.kind == "rows":
            return f"{self.split}-{self.block.start:09d}"
        return f"{self.split}-megatron" if self.kind == "megatron" else f"{self.groups[0]:05d}"

    def __str__(self) -> str:
        return f"{self.folder.name} {self.name}"


def layout_of(n_rows: int, row_tokens: int, n_ids: int) -> GridLayout:
    """Layout of packed rows: as a grid's, with fewer rows a shard where rows are long, so that a
    block stays in memory.
    """
    rows = SHARD_ROWS * SHARD_TOKENS // row_tokens // INNER_ROWS * INNER_ROWS
    return GridLayout(n_rows, row_tokens, n_ids, shard_rows=min(max(rows, INNER_ROWS), SHARD_ROWS))


def write_plan(
    plans: Mapping[str, Packing],
    documents: PackingDocuments,
    about: Mapping[str, Any],
    task: PackedTask,
    *,
    texts: bool = False,
) -> list[PackedTask]:
    """Write the spans of all splits and the arrays' metadata; return the tasks that write the rest.

    Args:
        plans: by split, in the order of the splits.
        documents: the planned documents.
        about: further attributes of the arrays.
        task: the common attributes of all tasks.
        texts: whether to write the rows' texts too.
    """
    tasks: list[PackedTask] = []
    n_groups, ids = 0, task.vocabulary
    with (
        publish(task.folder / SPANS_FILE) as draft,
        pq.ParquetWriter(draft, PACKED_SPANS, compression=COMPRESSION) as writer,
    ):
        for split, plan in plans.items():
            layout = layout_of(plan.n_rows, plan.row_tokens, ids.n_ids)
            attributes = {"eot": ids.eot, "pad": ids.pad, **about}
            path = task.folder / f"{split}.zarr"
            create_grid(path, layout, tokenizer=ids.tokenizer, attributes=attributes)
            begin = n_groups
            for block in plan_bands(layout):
                first_of_block = n_groups
                for start, stop in groups_of(plan, block):
                    lines = span_lines(plan, documents, split, start, stop)
                    writer.write_table(lines, row_group_size=stop - start)
                    n_groups += 1
                groups = range(first_of_block, n_groups)
                tasks.append(replace(task, kind="rows", split=split, block=block, groups=groups))
            groups = range(begin, n_groups)
            tasks.append(replace(task, kind="megatron", split=split, groups=groups))
            stops = plan.places + plan.pieces.lengths
            spans = PackedSpans.of(plan.row, stops, plan.pieces.document, n_rows=plan.n_rows)
            spans.write(task.folder, split)
    if texts:
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


@once
def write_task(task: PackedTask) -> Counts:
    """Write what a task names, unless it was written before."""
    if task.kind == "megatron":
        return _write_megatron(task)
    return _write_rows(task) if task.kind == "rows" else _write_texts(task)


def _write_rows(task: PackedTask) -> Counts:
    """Write one block of rows: their pieces one after the other, and padding."""
    ids = task.vocabulary
    rows = np.full((len(task.block), task.row_tokens), ids.pad, grid_dtype(ids.n_ids))
    for plan in _groups(task):
        places = (np.asarray(plan["row"]) - task.block.start) * task.row_tokens
        places += np.asarray(plan["row_start"])
        gather_pieces(plan, task.tokens, rows.reshape(-1), places, eot=ids.eot)
    write_band(task.folder / f"{task.split}.zarr", task.block, rows)
    return Counts(seen=len(rows), kept=len(rows))


def _write_megatron(task: PackedTask) -> Counts:
    """Write one split for Megatron, in the rows' order: every piece is a document, without padding;
    or every row is one, with it.
    """
    dtype = megatron_dtype(task.vocabulary.n_ids)
    with MegatronWriter.publishing(task.folder / task.split, dtype) as writer:
        for plan in _groups(task):
            lengths = _lengths(plan)
            places = np.cumsum(lengths) - lengths
            if task.whole_rows:
                row = np.asarray(plan["row"])
                places = (row - row[0]) * task.row_tokens + np.asarray(plan["row_start"])
                lengths = np.full(int(row[-1] - row[0]) + 1, task.row_tokens)
            writer.add_documents([_gathered(task, plan, lengths, places)], lengths.tolist())
    return Counts()


def _write_texts(task: PackedTask) -> Counts:
    """Write the texts of a group of rows: a record per row, with the spans of its pieces in
    characters. Pieces are decoded separately; a piece that begins or ends within a character of
    several bytes has U+FFFD there, and is counted.
    """
    torn, pieces, records = 0, list[tuple[dict[str, Any], str]](), list[CorpusDocument]()
    for plan in _groups(task, PACKED_SPANS.names):
        lengths = _lengths(plan)
        begins = np.cumsum(lengths) - lengths
        ids = _gathered(task, plan, lengths, begins)
        for line, begin in zip(plan.to_pylist(), begins.tolist(), strict=True):
            if pieces and line["row"] != pieces[0][0]["row"]:
                records.append(_record(pieces))
                pieces = []
            start, stop = line["document_start"], min(line["document_stop"], line["n_tokens"])
            text = text_of(task.setting, ids[begin : begin + stop - start])
            torn += int(text[:1] == "\ufffd" and start > 0)
            torn += int(text[-1:] == "\ufffd" and line["document_stop"] < line["n_tokens"])
            pieces.append((line, text))
    records.append(_record(pieces))
    with publish(task.folder / TEXTS / f"{task.name}.jsonl.gz") as draft:
        write_corpus(draft, records)
    return Counts(extra={TORN: torn})


def _record(pieces: list[tuple[dict[str, Any], str]]) -> CorpusDocument:
    """A row's text, and where in it which piece of which document is."""
    spans, start = [], 0
    for line, text in pieces:
        own = {"document": line["id"], "url": line["url"]}
        tokens = {"first_token": line["document_start"], "last_token": line["document_stop"]}
        spans.append({"start": start, "stop": start + len(text), **own, **tokens})
        start += len(text) + len(SEPARATOR)
    first = pieces[0][0]
    identity, n_tokens = f"{first['split']}/{first['row']}", pieces[-1][0]["row_stop"]
    rest = msgspec.Raw(msgspec.json.encode({"id": identity, "n_tokens": n_tokens, "spans": spans}))
    return CorpusDocument(id=identity, text=SEPARATOR.join(text for _, text in pieces), rest=rest)


def _groups(task: PackedTask, columns: list[str] | None = None) -> Iterator[pa.Table]:
    """The lines of a task's groups, a group at a time.

    Raises:
        CorruptFile: when the table is damaged.
    """
    with opened_table(task.folder / SPANS_FILE) as file:
        for group in task.groups:
            yield file.read_row_group(group, columns=columns or ["row", "row_start", *COLUMNS])


def _lengths(plan: pa.Table) -> NDArray[np.int64]:
    lengths: NDArray[np.int64] = np.asarray(plan["document_stop"]) - np.asarray(
        plan["document_start"]
    )
    return lengths


def _gathered(
    task: PackedTask, plan: pa.Table, lengths: NDArray[np.int64], places: NDArray[np.int64]
) -> NDArray[Any]:
    ids = np.full(int(lengths.sum()), task.vocabulary.pad, grid_dtype(task.vocabulary.n_ids))
    gather_pieces(plan, task.tokens, ids, places, eot=task.vocabulary.eot)
    return ids


COLUMNS: Final = ("token_shard", "document", "document_start", "document_stop", "n_tokens")
"""Of `PACKED_SPANS`: what `gather_pieces` reads of a plan."""


def gather_pieces(
    plan: pa.Table, tokens: Path, out: NDArray[Any], places: NDArray[np.int64], *, eot: int | None
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

    def into(piece: int) -> tuple[NDArray[Any]]:
        return (out[places[piece] : ends[piece]],)

    gather(tokens, plan["token_shard"], document, start, into, itemsize=out.itemsize)
