"""What an audit reads, by pyarrow and numpy alone: tables, rows, Megatron data sets."""

import struct
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from lc_assets.arrays import Array, Int64s, UInt64s
from lc_assets.formats.arrays.chunks import ChunkedArray
from lc_assets.lake.versions import Published

DOCUMENTS, DROPPED = "*.documents.parquet", "*.dropped.parquet"
IDX_HEADER = struct.Struct("<9sQBQQ")
DTYPES = {1: "u1", 2: "i1", 3: "<i2", 4: "<i4", 5: "<i8", 8: "<u2"}
LINES_AT_ONCE = 1024
Line = dict[str, Any]


class Sequences:
    """A Megatron data set, mapped into memory; without files it is empty."""

    def __init__(self, prefix: Path) -> None:
        path, self.lengths = prefix.with_name(f"{prefix.name}.idx"), np.empty(0, np.int32)
        if path.is_file():
            with path.open("rb") as file:
                _, _, code, n, _ = IDX_HEADER.unpack(file.read(IDX_HEADER.size))
                self.lengths = np.fromfile(file, "<i4", n)
                self.offsets = np.fromfile(file, "<i8", n)
            self.ids = np.memmap(path.with_suffix(".bin"), DTYPES[code], "r")

    def __iter__(self) -> Iterator[Array]:
        return map(self.__getitem__, range(len(self.lengths)))

    def __getitem__(self, number: int) -> Array:
        length = int(self.lengths[number])
        return self.ids[int(self.offsets[number]) // self.ids.itemsize :][:length]


class Store:
    """The documents of a version of tokens: ids, sequences and their hashes, by shard."""

    def __init__(self, tokens: Published) -> None:
        self.eot = tokens.params["eot"]
        paths = {path.name.split(".")[0]: path for path in sorted(tokens.folder.glob(DOCUMENTS))}
        self.names = {
            name: pq.read_table(path, columns=["id"])["id"] for name, path in paths.items()
        }
        self.data = {name: Sequences(path.with_name(name)) for name, path in paths.items()}
        self.hashes = {
            name: [hash_of(ids[: len(ids) - int(ids[-1] == self.eot)]) for ids in data]
            for name, data in self.data.items()
        }

    def put(self, piece: Line, row: Int64s) -> None:
        """Write the tokens of a piece into its row; -1 if it names no such tokens."""
        shard, number = piece["token_shard"], piece["document"]
        target = row[piece["row_start"] : piece["row_stop"]]
        part = self.data[shard][number][piece["document_start"] : piece["document_stop"]]
        if len(part) == len(target) - 1 and self.eot is not None:
            part = np.append(part, self.eot)
        named = str(self.names[shard][number]) == piece["id"]
        target[:] = part if named and len(part) == len(target) else -1

    def keys_of(self, line: Line) -> list[int]:
        """Hashes of a document's id and of its tokens."""
        own = self.hashes[line["token_shard"]][line["document"]]
        return [_digest(f"id {line['id']}".encode()), own]


def rows_of(array: ChunkedArray) -> Iterator[Array]:
    """The rows of an array, a row of chunks in memory."""
    step = array.chunk_shape[0]
    for first in range(0, array.n_rows, step):
        yield from array.read(slice(first, min(first + step, array.n_rows)))


def _digest(content: bytes) -> int:
    return int.from_bytes(blake2b(content, digest_size=8).digest(), "little")


def hash_of(ids: Any) -> int:
    """Hash of some ids, whatever their dtype."""
    return _digest(np.asarray(ids, "<u4").tobytes())


def lines_of(path: Path, *columns: str) -> Iterator[Line]:
    """Lines of a table, of all columns by default."""
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(LINES_AT_ONCE, columns=columns or None):
            yield from batch.to_pylist()


def ids_in(published: Published, pattern: str, with_a: str = "id") -> UInt64s:
    """Hashes of the ids in some tables, sorted."""
    paths = sorted(published.folder.glob(pattern))
    lines = (line for path in paths for line in lines_of(path, *{"id", with_a}))
    hashes = [_digest(line["id"].encode()) for line in lines if line[with_a]]
    return np.sort(np.array(hashes, np.uint64))
