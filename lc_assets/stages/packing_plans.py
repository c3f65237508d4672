"""The plan of packed rows: which piece of which document stands where in which row of which split.

Documents come in the order of their keyed hashes, so neither shards nor workers matter; the rows that a method makes are
shuffled by the keyed hash of their first piece. Whether a document is held out depends on its content alone, as in a grid.

In memory are the documents' ids, addresses and digests, as Arrow holds them, and four integers a piece: about 250 bytes a
document. Here: the plan. Not here: the methods (`lc_assets.packing`), reading tokens (`stages.packing_gathering`), writing rows
(`stages.packing_writing`).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lc_assets.packing.cutting import Ends
from lc_assets.packing.methods import Shape, pack
from lc_assets.packing.pieces import Packing
from lc_assets.randomness import KEYED_ALGORITHM, keyed_u64
from lc_assets.stages.claims import DOCUMENTS_SUFFIX, documents_files
from lc_assets.stages.longpack_settings import PackingSettings
from lc_assets.stages.packing_tables import PACKED_SPANS
from lc_assets.stages.tables import read_table
from lc_assets.tokens.orders import heldout
from lc_assets.vocabulary import SPLITS

DOCUMENTS: Final = pa.schema(
    [
        ("id", pa.string()),
        ("url", pa.string()),
        ("digest", pa.string()),
        ("document", pa.int64()),
        ("n_tokens", pa.int64()),
    ]
)
"""What a plan knows of a document, beside its shard."""

TURN: Final = "packing"
ROW_TURN: Final = "packed rows"
LINES_AT_ONCE: Final = 1 << 16
"""Documents whose keys are strings of Python's at once."""


@dataclass(frozen=True, slots=True, eq=False)
class PackingDocuments:
    """All documents of a token store, numbered in the order of its shards.

    Attributes:
        table: of `DOCUMENTS`.
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


def read_documents(tokens: Path) -> PackingDocuments:
    """The documents of a token store.

    Raises:
        CorruptFile: when a table is damaged.
    """
    paths = documents_files(tokens)
    parts = [read_table(path, DOCUMENTS.names) for path in paths]
    shard = np.repeat(np.arange(len(parts), dtype=np.int32), [part.num_rows for part in parts])
    names = tuple(path.name.removesuffix(DOCUMENTS_SUFFIX) for path in paths)
    return PackingDocuments(pa.concat_tables([DOCUMENTS.empty_table(), *parts]).combine_chunks(), names, shard)


def drawn_by(seed: int) -> dict[str, str]:
    """What a plan draws, for its receipt."""
    keys = (("documents", TURN, "id"), ("rows", ROW_TURN, "id#first token of the row's first piece"), ("heldout", "heldout", "digest"))
    return {name: f"{KEYED_ALGORITHM}, seed {seed}, purpose {purpose!r}, key {key}" for name, purpose, key in keys}


def ended_lengths(documents: PackingDocuments, settings: PackingSettings) -> NDArray[np.int64]:
    """Tokens of each document, with the end of text that stands behind it where documents are ended."""
    return np.asarray(documents.n_tokens + int(settings.append_eod))


def plan_packing(documents: PackingDocuments, settings: PackingSettings, ends: Ends | None = None) -> dict[str, Packing]:
    """Pack the documents of each split into rows, in the order that they are to be trained on.

    Args:
        documents: all of them, numbered.
        settings: how.
        ends: of each document, where it had better be cut; for the methods that ask.

    Raises:
        BadInput: when the method cannot be meant.
    """
    priority = np.concatenate([keyed_u64(TURN, seed=settings.seed, keys=ids) for ids in _keys(documents, "id")])
    out = np.concatenate([heldout(keys, seed=settings.seed, fraction=settings.heldout_fraction) for keys in _content_keys(documents)])
    lengths, shape = ended_lengths(documents, settings), Shape(row_tokens=settings.row_tokens, segment_tokens=settings.segment_tokens)
    plans = {}
    for split in SPLITS:
        own = np.flatnonzero(out == (split == "heldout"))
        order = own[np.argsort(priority[own], kind="stable")]
        packing = pack(lengths, method=settings.method, shape=shape, ends=ends, order=order)
        plans[split] = packing.in_row_order(np.argsort(_row_priorities(packing, documents, settings.seed), kind="stable"))
    return plans


def _row_priorities(packing: Packing, documents: PackingDocuments, seed: int) -> NDArray[np.uint64]:
    first = packing.first[:-1]
    ids = documents.table["id"].take(pa.array(packing.pieces.document[first])).to_pylist()
    starts = packing.pieces.start[first].tolist()
    return keyed_u64(ROW_TURN, seed=seed, keys=(f"{name}#{start}" for name, start in zip(ids, starts, strict=True)))


def _keys(documents: PackingDocuments, column: str) -> Iterator[list[str]]:
    found = documents.table[column]
    for start in range(0, max(len(found), 1), LINES_AT_ONCE):
        yield found.slice(start, LINES_AT_ONCE).to_pylist()


def _content_keys(documents: PackingDocuments) -> Iterator[list[str]]:
    """The hash of what a document says, so that one text never lands on both sides; the id where there is none."""
    for digests, ids in zip(_keys(documents, "digest"), _keys(documents, "id"), strict=True):
        yield [digest or name for digest, name in zip(digests, ids, strict=True)]


def span_lines(plan: Packing, documents: PackingDocuments, split: str, start: int, stop: int) -> pa.Table:
    """Lines of `PACKED_SPANS`: pieces ``start`` to ``stop`` (exclusive) of a split."""
    pieces, row, begins = plan.pieces.take(np.arange(start, stop)), plan.row[start:stop], plan.places[start:stop]
    known = documents.table.take(pa.array(pieces.document))
    columns = {
        "split": pa.repeat(split, stop - start),
        "row": row,
        "piece": np.arange(start, stop) - plan.first[row],
        "document_start": pieces.start,
        "document_stop": pieces.stop,
        "row_start": begins,
        "row_stop": begins + pieces.lengths,
        "token_shard": pa.array(documents.shards, pa.string()).take(pa.array(documents.shard[pieces.document])),
        **{name: known[name] for name in DOCUMENTS.names},
    }
    return pa.table({name: columns[name] for name in PACKED_SPANS.names}, schema=PACKED_SPANS)
