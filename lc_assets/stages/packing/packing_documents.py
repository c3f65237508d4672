"""The documents of a token store, numbered in the order of its shards: what a plan of packed rows
knows of them.

Here: reading them. Not here: where they are to stand (`stages.packing_plans`).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lc_assets.build.checks import DOCUMENTS_SUFFIX, documents_files
from lc_assets.build.tables import read_table

DOCUMENTS: Final = pa.schema(
    [
        ("id", pa.string()),
        ("url", pa.string()),
        ("digest", pa.string()),
        ("document", pa.int64()),
        ("n_tokens", pa.int64()),
    ]
)
"""What is read of a document, beside its shard and its source."""
NO_SOURCE: Final = "nothing"
LINES_AT_ONCE: Final = 1 << 16
"""Documents whose names and digests are strings of Python's at once."""


@dataclass(frozen=True, slots=True, eq=False)
class PackingDocuments:
    """All documents of a token store.

    Attributes:
        table: of `DOCUMENTS`.
        shards: names of the shards.
        shard: int32, number of each document's shard.
        source: name of each document's source; None where all are of one.
        named: whether ids name documents; where they may repeat, shard and number do.
    """

    table: pa.Table
    shards: tuple[str, ...]
    shard: NDArray[np.int32]
    source: pa.ChunkedArray | None = None
    named: bool = True

    def __len__(self) -> int:
        return int(self.table.num_rows)

    @property
    def n_tokens(self) -> NDArray[np.int64]:
        """Tokens of each document."""
        return np.asarray(self.table["n_tokens"], np.int64)

    def keys_of(self, numbers: NDArray[np.int64]) -> list[str]:
        """A name of each of some documents that no other has."""
        if self.named:
            names: list[str] = self.table["id"].take(pa.array(numbers)).to_pylist()
            return names
        places = np.asarray(self.table["document"], np.int64)[numbers].tolist()
        return [
            f"{self.shards[shard]}/{place}"
            for shard, place in zip(self.shard[numbers].tolist(), places, strict=True)
        ]

    def sources_of(self, numbers: NDArray[np.int64]) -> list[str] | None:
        """The sources of some documents; None where all are of one."""
        if self.source is None:
            return None
        return [name or "" for name in self.source.take(pa.array(numbers)).to_pylist()]

    def content_keys(self) -> Iterator[list[str]]:
        """What each document says, as a digest; its name where there is none. In parts, in
        order.
        """
        for start in range(0, len(self), LINES_AT_ONCE):
            digests = self.table["digest"].slice(start, LINES_AT_ONCE).to_pylist()
            names = self.keys_of(np.arange(start, start + len(digests)))
            yield [digest or name for digest, name in zip(digests, names, strict=True)]


def read_documents(
    tokens: Path, *, source: str = NO_SOURCE, named: bool = True
) -> PackingDocuments:
    """The documents of a token store.

    Args:
        tokens: its folder.
        source: column that names a document's source; ``nothing``: all are of one.
        named: whether ids name documents.

    Raises:
        CorruptFile: when a table is damaged.
    """
    paths = documents_files(tokens)
    columns = DOCUMENTS.names if source == NO_SOURCE else [*DOCUMENTS.names, source]
    empty = (
        DOCUMENTS.empty_table()
        if source == NO_SOURCE
        else DOCUMENTS.append(pa.field(source, pa.string())).empty_table()
    )
    parts = [read_table(path, columns) for path in paths]
    table = pa.concat_tables([empty, *parts]).combine_chunks()
    return PackingDocuments(
        table=table.select(DOCUMENTS.names),
        shards=tuple(path.name.removesuffix(DOCUMENTS_SUFFIX) for path in paths),
        shard=np.repeat(np.arange(len(parts), dtype=np.int32), [part.num_rows for part in parts]),
        source=None if source == NO_SOURCE else table[source],
        named=named,
    )
