"""The plan of packed rows: which piece of which document is where in which row of which split.

Documents are ordered by their keyed hashes, independently of shards and workers; the rows that a
method makes are shuffled by the keyed hash of their first piece. Instead, a column may give the
order and the groups of documents, or similarity the groups. Whether a document is held out depends
on its content alone, as in a grid.

Memory holds the documents' ids, addresses and digests in Arrow, and four integers per piece: about
300 bytes per document; with ``similar`` also their words.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lc_assets.build.checks import DOCUMENTS_SUFFIX, documents_files
from lc_assets.build.settings.longpack import PackingSettings
from lc_assets.build.tables import PACKED_SPANS, read_table
from lc_assets.errors import BadInput
from lc_assets.packing.cutting import Ends
from lc_assets.packing.methods import Shape, pack, pack_groups
from lc_assets.packing.pieces import Packing, numbered
from lc_assets.packing.upsampling import upsampled
from lc_assets.randomness import KEYED_ALGORITHM, keyed_u64
from lc_assets.stages.tokens.tokenizing import TERMS
from lc_assets.tokens.orders import heldout
from lc_assets.vocabulary import SPLITS

DOCUMENTS: Final = pa.schema(
    {"id": "string", "url": "string", "digest": "string", "document": "int64", "n_tokens": "int64"}
)
"""What every plan reads of a document, besides its shard."""
UPSAMPLE: Final = "upsample"
TURN: Final = "packing"
ROW_TURN: Final = "packed rows"
GROUP_TURN: Final = "packing groups"
LINES_AT_ONCE: Final = 1 << 16
"""Documents whose ids and digests are held as Python strings at once."""


@dataclass(frozen=True, slots=True, eq=False)
class PackingDocuments:
    """All documents of a token store, numbered in the order of its shards.

    Attributes:
        table: `DOCUMENTS`, and the columns that the settings name.
        shards: names of the shards.
        shard: int32, number of each document's shard.
    """

    table: pa.Table
    shards: tuple[str, ...]
    shard: NDArray[np.int32]

    def __len__(self) -> int:
        return int(self.table.num_rows)

    @property
    def n_tokens(self) -> NDArray[np.int64]:
        """Tokens of each document."""
        return np.asarray(self.table["n_tokens"], np.int64)

    def column(self, name: str, numbers: NDArray[np.int64]) -> list[str]:
        """A column of some documents; where there is no value, an empty string."""
        return [value or "" for value in self.table[name].take(pa.array(numbers)).to_pylist()]

    def content_keys(self) -> Iterator[list[str]]:
        """Each document's digest, or its id where there is none; in parts, in order."""
        for start in range(0, len(self), LINES_AT_ONCE):
            lines = self.table.slice(start, LINES_AT_ONCE)
            digests, names = (lines[name].to_pylist() for name in ("digest", "id"))
            yield [digest or name for digest, name in zip(digests, names, strict=True)]


def read_documents(tokens: Path, settings: PackingSettings) -> PackingDocuments:
    """The documents of a token store, with what the settings need of them.

    Raises:
        CorruptFile: when a table is damaged.
    """
    paths = documents_files(tokens)
    more = [pa.field(name, pa.string()) for name in sorted(settings.fields - {*DOCUMENTS.names})]
    schema = pa.schema([*DOCUMENTS, *more, *(TERMS if settings.similar is not None else ())])
    parts = [read_table(path, schema.names) for path in paths]
    return PackingDocuments(
        table=pa.concat_tables(parts).combine_chunks() if parts else schema.empty_table(),
        shards=tuple(path.name.removesuffix(DOCUMENTS_SUFFIX) for path in paths),
        shard=np.repeat(np.arange(len(parts), dtype=np.int32), [part.num_rows for part in parts]),
    )


def drawn_by(settings: PackingSettings) -> dict[str, str]:
    """What a plan draws, for its receipt."""
    keys = [
        ("documents", TURN, "id"),
        ("rows", ROW_TURN, "id#first token of the row's first piece"),
        ("heldout", "heldout", "digest"),
    ]
    if settings.method == UPSAMPLE:
        keys += [
            ("short documents that are kept", "keep short", "id"),
            ("further copies", TURN, "id#number of the copy"),
        ]
    if settings.group_by:
        keys += [("groups", GROUP_TURN, "name of the group")]
    return {
        name: f"{KEYED_ALGORITHM}, seed {settings.seed}, purpose {purpose!r}, key {key}"
        for name, purpose, key in keys
    }


def ended_lengths(documents: PackingDocuments, settings: PackingSettings) -> NDArray[np.int64]:
    """Tokens of each document, with the end of text where documents are ended."""
    return np.asarray(documents.n_tokens + int(settings.append_eod))


def held_out(documents: PackingDocuments, settings: PackingSettings) -> NDArray[np.bool_]:
    """Which documents are held out: by the hash of their content, so that one text is never on
    both sides.
    """
    parts = [
        heldout(keys, seed=settings.seed, fraction=settings.heldout_fraction)
        for keys in documents.content_keys()
    ]
    return np.concatenate([np.empty(0, np.bool_), *parts])


def taken(
    documents: PackingDocuments, settings: PackingSettings, out: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """How often each document is packed: once, except where long ones are upsampled; held-out ones
    always once.

    Raises:
        BadInput: when a setting is out of range.
    """
    times = np.ones(len(documents), np.int64)
    own = np.flatnonzero(~out)
    if settings.method == UPSAMPLE and len(own):
        wanted, lengths = settings.upsampling, documents.n_tokens[own]
        times[own] = upsampled(
            lengths,
            documents.column(wanted.by, own) if settings.fields else None,
            documents.column("id", own),
            threshold=wanted.threshold,
            keep_short=wanted.keep_short,
            budget_tokens=int(wanted.budget * int(lengths.sum())),
            seed=settings.seed,
        )
    return times


def plan_packing(
    documents: PackingDocuments, settings: PackingSettings, ends: Ends | None = None
) -> dict[str, Packing]:
    """Pack the documents of each split into rows, in the order of training.

    Args:
        documents: all of them, numbered.
        settings: how.
        ends: where segments of each document should end, for the methods that cut them.

    Raises:
        BadInput: when a setting is out of range, or a document has no number to be ordered by.
    """
    out, lengths = held_out(documents, settings), ended_lengths(documents, settings)
    times = taken(documents, settings, out)
    shape = Shape(row_tokens=settings.row_tokens, segment_tokens=settings.segment_tokens)
    method = "concat" if settings.method == UPSAMPLE else settings.method
    plans = {}
    for split in SPLITS:
        own = np.flatnonzero(out == (split == "heldout"))
        if settings.order_by or settings.similar is not None:
            groups = _groups(documents, settings, own, lengths[own])
            packing = pack_groups(lengths[own], *groups, method=method, shape=shape)
            packing = packing.of_documents(own)
        else:
            order = _order(documents, own, times, settings.seed)
            packing = pack(lengths, method=method, shape=shape, ends=ends, order=order)
        in_order = settings.order_by and not settings.group_by
        plans[split] = packing if in_order else _shuffled(packing, documents, settings.seed)
    return plans


def _groups(
    documents: PackingDocuments,
    settings: PackingSettings,
    own: NDArray[np.int64],
    lengths: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The group of each document, groups in the order in which they are packed, and what orders the
    documents of a group.
    """
    if settings.similar is not None:
        return _similar(documents, settings, own, lengths)
    column = documents.table[settings.order_by].take(pa.array(own))
    try:
        order_by = np.asarray(column.cast(pa.float64()))
    except pa.ArrowInvalid as error:
        raise BadInput(f"packed_rows.order_by = {settings.order_by!r}: {error}") from error
    if not settings.group_by:
        return np.zeros(len(own), np.int64), order_by
    group_of = documents.column(settings.group_by, own)
    names = sorted(set(group_of))
    drawn = keyed_u64(GROUP_TURN, seed=settings.seed, keys=names)
    place = dict(zip(names, np.argsort(np.argsort(drawn, kind="stable")).tolist(), strict=True))
    return np.array([place[name] for name in group_of], np.int64), order_by


def _similar(
    documents: PackingDocuments,
    settings: PackingSettings,
    own: NDArray[np.int64],
    lengths: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
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
        lengths,
        documents.column("id", own),
        max_tokens=settings.row_tokens,
        similarity=Similarity(**msgspec.to_builtins(settings.similar)),
        seed=settings.seed,
    )
    group, order_by = np.empty(len(own), np.int64), np.empty(len(own))
    group[packs.order] = np.repeat(np.arange(len(packs)), np.diff(packs.first))
    order_by[packs.order] = np.arange(len(own))
    return group, order_by


def _order(
    documents: PackingDocuments, own: NDArray[np.int64], times: NDArray[np.int64], seed: int
) -> NDArray[np.int64]:
    """Some documents in the order of their hashes, each as often as it is taken; every copy has a
    hash of its own, from the second on with its number.
    """
    whose, copy = numbered(times[own])
    order = own[whose]
    drawn = [np.empty(0, np.uint64)]
    for start in range(0, len(order), LINES_AT_ONCE):
        part = slice(start, start + LINES_AT_ONCE)
        names = zip(documents.column("id", order[part]), copy[part].tolist(), strict=True)
        keys = [f"{name}#{nth}" if nth else name for name, nth in names]
        drawn.append(keyed_u64(TURN, seed=seed, keys=keys))
    return np.asarray(order[np.argsort(np.concatenate(drawn), kind="stable")])


def _shuffled(packing: Packing, documents: PackingDocuments, seed: int) -> Packing:
    """Order rows by the keyed hash of their first piece."""
    first = packing.pieces.take(packing.first[:-1])
    names = zip(documents.column("id", first.document), first.start.tolist(), strict=True)
    drawn = keyed_u64(ROW_TURN, seed=seed, keys=(f"{name}#{start}" for name, start in names))
    return packing.in_row_order(np.argsort(drawn, kind="stable"))


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
