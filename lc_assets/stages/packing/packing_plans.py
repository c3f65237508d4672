"""The plan of packed rows: which piece of which document stands where in which row of which split.

Documents come in the order of their keyed hashes, so neither shards nor workers matter; the rows
that a method makes are shuffled by the keyed hash of their first piece. Whether a document is held
out depends on its content alone, as in a grid.

In memory are the documents' ids, addresses and digests, as Arrow holds them, and four integers a
piece: about 300 bytes a document. Here: the plan. Not here: the methods (`lc_assets.packing`), the
    documents (`stages.packing_documents`), reading tokens
(`stages.packing_gathering`), writing rows (`stages.packing_writing`).
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lc_assets.build.settings.longpack import PackingSettings
from lc_assets.packing.cutting import Ends
from lc_assets.packing.methods import Shape, pack, pack_groups
from lc_assets.packing.pieces import Packing, numbered
from lc_assets.packing.upsampling import upsampled
from lc_assets.randomness import KEYED_ALGORITHM, keyed_u64
from lc_assets.stages.packing.packing_documents import (
    DOCUMENTS,
    LINES_AT_ONCE,
    NO_SOURCE,
    PackingDocuments,
)
from lc_assets.stages.packing.packing_tables import PACKED_SPANS
from lc_assets.tokens.orders import heldout
from lc_assets.vocabulary import SPLITS

UPSAMPLE: Final = "upsample"
TURN: Final = "packing"
ROW_TURN: Final = "packed rows"
GROUP_TURN: Final = "packing groups"


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
    return {
        name: f"{KEYED_ALGORITHM}, seed {settings.seed}, purpose {purpose!r}, key {key}"
        for name, purpose, key in keys
    }


def source_of(settings: PackingSettings) -> str:
    """Column that names a document's source, where a method asks for it."""
    return settings.upsampling.by if settings.method == UPSAMPLE else NO_SOURCE


def ended_lengths(documents: PackingDocuments, settings: PackingSettings) -> NDArray[np.int64]:
    """Tokens of each document, with the end of text that stands behind it where documents are
    ended.
    """
    return np.asarray(documents.n_tokens + int(settings.append_eod))


def held_out(documents: PackingDocuments, settings: PackingSettings) -> NDArray[np.bool_]:
    """Which documents are held out: by the hash of what they say, so that one text never lands on
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
    """How often each document is packed: once, but where long ones are upsampled; held-out ones
    once in any case.

    Raises:
        BadInput: when the settings cannot be meant.
    """
    times = np.ones(len(documents), np.int64)
    own = np.flatnonzero(~out)
    if settings.method == UPSAMPLE and len(own):
        asked, lengths = settings.upsampling, documents.n_tokens[own]
        keys, sources = documents.keys_of(own), documents.sources_of(own)
        times[own] = upsampled(
            lengths,
            sources,
            keys,
            threshold=asked.threshold,
            keep_short=asked.keep_short,
            budget_tokens=int(asked.budget * int(lengths.sum())),
            seed=settings.seed,
        )
    return times


def plan_packing(
    documents: PackingDocuments,
    settings: PackingSettings,
    ends: Ends | None = None,
    *,
    groups: "DocumentGroups | None" = None,
) -> dict[str, Packing]:
    """Pack the documents of each split into rows, in the order that they are to be trained on.

    Args:
        documents: all of them, numbered.
        settings: how.
        ends: of each document, where it had better be cut; for the methods that ask.
        groups: pack the documents of a group together and in this order, instead of in the order
            of their hashes; nothing is held out then.

    Raises:
        BadInput: when the settings cannot be meant.
    """
    if groups is not None:
        return {"train": _plan_groups(documents, settings, groups)}
    out = held_out(documents, settings)
    times = taken(documents, settings, out)
    lengths, shape = (
        ended_lengths(documents, settings),
        Shape(row_tokens=settings.row_tokens, segment_tokens=settings.segment_tokens),
    )
    method = "concat" if settings.method == UPSAMPLE else settings.method
    plans = {}
    for split in SPLITS:
        order = _order(documents, np.flatnonzero(out == (split == "heldout")), times, settings.seed)
        packing = pack(lengths, method=method, shape=shape, ends=ends, order=order)
        plans[split] = _shuffled(packing, documents, settings.seed)
    return plans


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class DocumentGroups:
    """The order of documents where a column of the corpus gives it.

    Attributes:
        order_by: float64, orders the documents of a group.
        names: name of each document's group; None: all documents are one group.
    """

    order_by: NDArray[np.float64]
    names: list[str] | None = None

    def numbers(self, seed: int) -> NDArray[np.int64]:
        """Number each document's group, in the order of the keyed hashes of the groups' names."""
        if self.names is None:
            return np.zeros(len(self.order_by), np.int64)
        names = sorted(set(self.names))
        ranks = np.argsort(np.argsort(keyed_u64(GROUP_TURN, seed=seed, keys=names), kind="stable"))
        numbers = dict(zip(names, ranks.tolist(), strict=True))
        return np.array([numbers[name] for name in self.names], np.int64)


def _plan_groups(
    documents: PackingDocuments, settings: PackingSettings, groups: DocumentGroups
) -> Packing:
    """Pack groups; rows are shuffled unless all documents are one group."""
    packing = pack_groups(
        ended_lengths(documents, settings),
        groups.numbers(settings.seed),
        groups.order_by,
        method=settings.method,
        shape=Shape(row_tokens=settings.row_tokens),
    )
    return packing if groups.names is None else _shuffled(packing, documents, settings.seed)


def _order(
    documents: PackingDocuments, own: NDArray[np.int64], times: NDArray[np.int64], seed: int
) -> NDArray[np.int64]:
    """Some documents in the order of their hashes, each as often as it is taken; every copy has a
    hash of its own.
    """
    whose, copy = numbered(times[own])
    order = own[whose]
    parts = [slice(start, start + LINES_AT_ONCE) for start in range(0, len(order), LINES_AT_ONCE)]
    drawn = [
        keyed_u64(TURN, seed=seed, keys=_copies(documents, order[part], copy[part]))
        for part in parts
    ]
    return np.asarray(
        order[np.argsort(np.concatenate([np.empty(0, np.uint64), *drawn]), kind="stable")]
    )


def _copies(
    documents: PackingDocuments, numbers: NDArray[np.int64], copy: NDArray[np.int64]
) -> list[str]:
    """What a copy of a document is drawn for: its name, with the number of the copy from the second
    on.
    """
    return [
        f"{name}#{nth}" if nth else name
        for name, nth in zip(documents.keys_of(numbers), copy.tolist(), strict=True)
    ]


def _shuffled(packing: Packing, documents: PackingDocuments, seed: int) -> Packing:
    """Order rows by the keyed hash of their first piece."""
    first = packing.first[:-1]
    names, starts = (
        documents.keys_of(packing.pieces.document[first]),
        packing.pieces.start[first].tolist(),
    )
    drawn = keyed_u64(
        ROW_TURN,
        seed=seed,
        keys=(f"{name}#{start}" for name, start in zip(names, starts, strict=True)),
    )
    return packing.in_row_order(np.argsort(drawn, kind="stable"))


def span_lines(
    plan: Packing, documents: PackingDocuments, split: str, start: int, stop: int
) -> pa.Table:
    """Lines of `PACKED_SPANS`: pieces ``start`` to ``stop`` (exclusive) of a split."""
    pieces, row, begins = (
        plan.pieces.take(np.arange(start, stop)),
        plan.row[start:stop],
        plan.places[start:stop],
    )
    known = documents.table.take(pa.array(pieces.document))
    columns = {
        "split": pa.repeat(split, stop - start),
        "row": row,
        "piece": np.arange(start, stop) - plan.first[row],
        "document_start": pieces.start,
        "document_stop": pieces.stop,
        "row_start": begins,
        "row_stop": begins + pieces.lengths,
        "token_shard": pa.array(documents.shards, pa.string()).take(
            pa.array(documents.shard[pieces.document])
        ),
        **{name: known[name] for name in DOCUMENTS.names},
    }
    return pa.table({name: columns[name] for name in PACKED_SPANS.names}, schema=PACKED_SPANS)
