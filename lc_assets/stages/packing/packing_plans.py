"""The plan of packed rows: which piece of which document is where in which row of which split.

Documents are ordered by their keyed hashes, independently of shards and workers; the rows that a
method makes are shuffled by the keyed hash of their first piece. Instead, a column may give the
order and the groups of documents, or similarity the groups; and rows of similar cost may be
neighbours (`lc_assets.packing.steps`). Whether a document is held out is
recorded (`lc_assets.stages.deduplication.sides`), as for a grid.

Memory holds the documents' ids, addresses and digests in Arrow, and four integers per piece: about
300 bytes per document; with ``similar`` also their words.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa

from lc_assets.arrays import Booleans, Floats, Int32s, Int64s
from lc_assets.builds.checks import DOCUMENTS_SUFFIX, documents_files
from lc_assets.builds.settings.longpack import PackingSettings
from lc_assets.builds.tables import PACKED_SPANS, read_table
from lc_assets.errors import BadInput
from lc_assets.lake.versions import Published
from lc_assets.packing.cutting import Ends
from lc_assets.packing.methods import Shape, pack, pack_groups
from lc_assets.packing.pieces import Packing, aligned, numbered
from lc_assets.packing.steps import equal_steps, row_costs
from lc_assets.packing.upsampling import upsampled
from lc_assets.randomness import KEYED_ALGORITHM, keyed_u64
from lc_assets.stages.deduplication.sides import held_out_in
from lc_assets.stages.tokens.tokenizing_tasks import TERMS
from lc_assets.vocabulary import SPLITS

DOCUMENTS = pa.schema(
    {
        "id": "string",
        "url": "string",
        "digest": "string",
        "tokenized_digest": "string",
        "document": "int64",
        "n_tokens": "int64",
    }
)
"""What every plan reads of a document, besides its shard."""
UPSAMPLE = "upsample"
TURN = "packing"
ROW_TURN = "packed rows"
GROUP_TURN = "packing groups"
LINES_AT_ONCE = 1 << 16
"""Documents whose digests are held as Python strings at once."""


@dataclass(frozen=True, eq=False)
class PackingDocuments:
    """All documents of a token store, numbered in the order of its shards.

    Attributes:
        table: `DOCUMENTS`, and the columns that the settings name.
        shards: names of the shards.
        shard: int32, number of each document's shard.
        settings: how they are packed.
        held_out: which documents are held out.
    """

    table: pa.Table
    shards: tuple[str, ...]
    shard: Int32s
    settings: PackingSettings
    held_out: Booleans

    def __len__(self) -> int:
        return int(self.table.num_rows)

    @property
    def n_tokens(self) -> Int64s:
        """Tokens of each document."""
        return np.asarray(self.table["n_tokens"], np.int64)

    def column(self, name: str, numbers: Int64s) -> list[str]:
        """A column of some documents; where there is no value, an empty string."""
        return [value or "" for value in self.table[name].take(pa.array(numbers)).to_pylist()]

    @property
    def lengths(self) -> Int64s:
        """Tokens of each document, with the end of text where documents are ended."""
        return np.asarray(self.n_tokens + int(self.settings.append_eod))

    @property
    def room(self) -> Int64s:
        """Tokens that each document takes of a row, with the padding that aligns the next one."""
        return aligned(self.lengths, self.settings.align_tokens or 1)

    @cached_property
    def times(self) -> Int64s:
        """How often each document is packed: once, except where long ones are upsampled; held-out
        ones always once.
        """
        times, own = np.ones(len(self), np.int64), np.flatnonzero(~self.held_out)
        if self.settings.method == UPSAMPLE and len(own):
            upsampling, lengths = self.settings.upsampling, self.n_tokens[own]
            times[own] = upsampled(
                lengths,
                self.column(upsampling.by, own) if self.settings.fields else None,
                self.column("id", own),
                threshold=upsampling.threshold,
                keep_short=upsampling.keep_short,
                budget_tokens=int(upsampling.budget * int(lengths.sum())),
                seed=self.settings.seed,
            )
        return times


def read_documents(
    tokens: Path, settings: PackingSettings, inputs: Mapping[str, Published], key: str
) -> PackingDocuments:
    """The documents of a token store, with what the settings need of them; and, out of a stage's
    inputs, which of a partition are held out.

    Raises:
        Mismatch: when nothing was decided on a text.
        CorruptFile: when a table is damaged.
    """
    paths = documents_files(tokens)
    more = [pa.field(name, pa.string()) for name in sorted(settings.fields - {*DOCUMENTS.names})]
    schema = pa.schema([*DOCUMENTS, *more, *(TERMS if settings.similar is not None else ())])
    parts = [read_table(path, schema.names) for path in paths]
    table = pa.concat_tables(parts).combine_chunks() if parts else schema.empty_table()
    return PackingDocuments(
        table=table,
        shards=tuple(path.name.removesuffix(DOCUMENTS_SUFFIX) for path in paths),
        shard=np.repeat(np.arange(len(parts), dtype=np.int32), [part.num_rows for part in parts]),
        settings=settings,
        held_out=np.asarray(held_out_in(inputs, key, table["tokenized_digest"])),
    )


def drawn_by(settings: PackingSettings, split_seed: int) -> dict[str, str]:
    """What a plan draws, for its receipt."""
    keys = [
        ("documents", TURN, "id"),
        ("rows", ROW_TURN, "id#first token of the row's first piece"),
    ]
    if settings.method == UPSAMPLE:
        keys += [
            ("short documents that are kept", "keep short", "id"),
            ("further copies", TURN, "id#number of the copy"),
        ]
    if settings.group_by:
        keys += [("groups", GROUP_TURN, "name of the group")]
    drawn = {
        name: f"{KEYED_ALGORITHM}, seed {settings.seed}, purpose {purpose!r}, key {key}"
        for name, purpose, key in keys
    }
    return drawn | {"heldout": f"{KEYED_ALGORITHM}, seed {split_seed}, key tokenized_digest"}


def plan_packing(documents: PackingDocuments, ends: Ends | None = None) -> dict[str, Packing]:
    """Pack the documents of each split into rows, in the order of training.

    Args:
        documents: all of them, numbered.
        ends: where segments of each document should end, for the methods that cut them.

    Raises:
        BadInput: when a setting is out of range, or a document has no number to be ordered by.
    """
    settings, room = documents.settings, documents.room
    shape = Shape(row_tokens=settings.row_tokens, segment_tokens=settings.segment_tokens)
    method = "concat" if settings.method == UPSAMPLE else settings.method
    plans = {}
    for split in SPLITS:
        own = np.flatnonzero(documents.held_out == (split == "heldout"))
        if settings.order_by or settings.similar is not None:
            groups = _groups(documents, own)
            packing = pack_groups(room[own], *groups, method=method, shape=shape)
            packing = packing.of_documents(own)
        else:
            order = _order(documents, own)
            packing = pack(room, method=method, shape=shape, ends=ends, order=order)
        packing = packing.padded(documents.lengths, settings.align_tokens or 1)
        in_order = settings.order_by and not settings.group_by
        plans[split] = packing if in_order else _shuffled(packing, documents)
    return plans


def _groups(documents: PackingDocuments, own: Int64s) -> tuple[Int64s, Floats]:
    """The group of each document, groups in the order in which they are packed, and what orders the
    documents of a group.
    """
    settings = documents.settings
    if settings.similar is not None:
        return _similar(documents, own)
    column = documents.table[settings.order_by].take(pa.array(own))
    try:
        order_by = np.asarray(column.cast(pa.float64()))
    except pa.ArrowInvalid as error:
        raise BadInput(f"packed_rows.order_by = {settings.order_by!r}: {error}") from error
    if not settings.group_by:
        return np.zeros(len(own), np.int64), order_by
    group_of = np.array(documents.column(settings.group_by, own), np.object_)
    names, number = np.unique(group_of, return_inverse=True)
    drawn = keyed_u64(GROUP_TURN, seed=settings.seed, keys=names.tolist())
    return np.argsort(np.argsort(drawn, kind="stable"))[number], order_by


def _similar(documents: PackingDocuments, own: Int64s) -> tuple[Int64s, Floats]:
    """Groups of similar documents, each as long as a row at most."""
    from lc_assets.packing.similarity import (
        Similarity,
        similar_packs,
    )
    from lc_assets.packing.term_vectors import PageTerms, term_vectors

    lines = documents.table.take(pa.array(own)).combine_chunks()
    terms, counts = (lines[name].combine_chunks() for name in TERMS.names)
    counted = PageTerms(
        begins=np.asarray(terms.offsets, np.int64),
        terms=np.asarray(terms.flatten()),
        weights=np.asarray(counts.flatten()),
    )
    packs = similar_packs(
        term_vectors(counted),
        documents.room[own],
        documents.column("id", own),
        max_tokens=documents.settings.row_tokens,
        similarity=Similarity(**msgspec.to_builtins(documents.settings.similar)),
        seed=documents.settings.seed,
    )
    group, order_by = np.empty(len(own), np.int64), np.empty(len(own))
    group[packs.order] = np.repeat(np.arange(len(packs)), np.diff(packs.first))
    order_by[packs.order] = np.arange(len(own))
    return group, order_by


def _order(documents: PackingDocuments, own: Int64s) -> Int64s:
    """Some documents in the order of their hashes, each as often as it is taken; every copy has a
    hash of its own, from the second on with its number.
    """
    whose, copy = numbered(documents.times[own])
    order = own[whose]
    drawn = [np.empty(0, np.uint64)]
    for start in range(0, len(order), LINES_AT_ONCE):
        part = slice(start, start + LINES_AT_ONCE)
        names = zip(documents.column("id", order[part]), copy[part].tolist(), strict=True)
        keys = [f"{name}#{nth}" if nth else name for name, nth in names]
        drawn.append(keyed_u64(TURN, seed=documents.settings.seed, keys=keys))
    return np.asarray(order[np.argsort(np.concatenate(drawn), kind="stable")])


def _shuffled(packing: Packing, documents: PackingDocuments) -> Packing:
    """Order rows by the keyed hash of their first piece."""
    first = packing.pieces.take(packing.first[:-1])
    names = zip(documents.column("id", first.document), first.start.tolist(), strict=True)
    keys = (f"{name}#{start}" for name, start in names)
    drawn = keyed_u64(ROW_TURN, seed=documents.settings.seed, keys=keys)
    if n_together := documents.settings.equal_steps:
        return packing.in_row_order(equal_steps(costs_of(packing), drawn, n_together))
    return packing.in_row_order(np.argsort(drawn, kind="stable"))


def costs_of(packing: Packing) -> Int64s:
    """Cost of each row, as `row_costs` has it; padding that aligns a piece costs as the piece."""
    row_tokens = packing.row_tokens
    return row_costs(packing.row, packing.room, n_rows=packing.n_rows, row_tokens=row_tokens)


def span_lines(
    plan: Packing, documents: PackingDocuments, split: str, start: int, stop: int
) -> pa.Table:
    """Lines of `PACKED_SPANS`: pieces ``start`` to ``stop`` (exclusive) of a split."""
    pieces, row = plan.pieces.take(np.arange(start, stop)), plan.row[start:stop]
    begins, shard = plan.places[start:stop], pa.array(documents.shard[pieces.document])
    known = documents.table.select(DOCUMENTS.names).take(pa.array(pieces.document))
    columns = {
        "split": pa.repeat(split, stop - start),
        "row": row,
        "piece": np.arange(start, stop) - plan.first[row],
        "document_start": pieces.start,
        "document_stop": pieces.stop,
        "row_start": begins,
        "row_stop": begins + pieces.lengths,
        "token_shard": pa.array(documents.shards, pa.string()).take(shard),
        **{name: known[name] for name in DOCUMENTS.names},
    }
    return pa.table({name: columns[name] for name in PACKED_SPANS.names}, schema=PACKED_SPANS)
