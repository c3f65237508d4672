"""Stretches of Megatron data sets, read from their files into existing arrays. Without a memory
map, ids occupy this process's memory once, not twice.
"""

import io
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa

from lc_assets.arrays import Array, Int64s
from lc_assets.errors import CorruptFile
from lc_assets.formats.megatron.idx import MegatronIndex, bin_path, opened, read_index

GATHERING_THREADS = 4
"""Token files read at the same time; reading releases the GIL."""


def gather(
    tokens: Path,
    shards: pa.ChunkedArray,
    document: Int64s,
    start: Int64s,
    into: Callable[[int], Sequence[Array]],
) -> None:
    """Copy stretches of documents into arrays.

    Token files are opened a few at a time: stretches may be in more of them than a process may
    hold open.

    Args:
        tokens: folder of the token files.
        shards: string, name of each stretch's shard.
        document: int64, number of its document in the shard.
        start: int64, its first token.
        into: the arrays that the stretch of a number fills, one after the other.

    Raises:
        CorruptFile: when a token file is missing or truncated.
        BadInput: when a document has no such tokens.
    """
    shard = shards.combine_chunks().dictionary_encode()
    codes = np.asarray(shard.indices)
    order = np.lexsort((start, document, codes))
    bounds = np.searchsorted(codes[order], np.arange(len(shard.dictionary) + 1))

    def read(code: int) -> None:
        prefix = tokens / shard.dictionary[code].as_py()
        index = read_index(prefix)
        with opened(bin_path(prefix)) as stream:
            if hasattr(os, "posix_fadvise"):  # rows are far apart: what follows one is not needed
                os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
            for at in order[bounds[code] : bounds[code + 1]].tolist():
                _read_stretch(index, stream, int(document[at]), int(start[at]), into(at))

    with ThreadPoolExecutor(GATHERING_THREADS, "lc-gather") as pool:
        for _ in pool.map(read, range(len(shard.dictionary))):
            pass


def _read_stretch(
    index: MegatronIndex, stream: io.FileIO, document: int, start: int, parts: Sequence[Array]
) -> None:
    """Fill arrays, directly where their ids have as many bytes as the file's."""
    first, end = index.places_in(document, start, start + sum(map(len, parts)))
    is_same = all(part.itemsize == index.dtype.itemsize for part in parts)
    rooms = parts if is_same else [np.empty(len(part), index.dtype) for part in parts]
    into = [room.data for room in rooms]
    n_read = os.preadv(stream.fileno(), into, first * index.dtype.itemsize)
    if n_read != (end - first) * index.dtype.itemsize:
        raise CorruptFile(
            f"{stream.name}: ends within document {document:,}: it was cut off after it was opened"
        )
    if not is_same:
        for part, ids in zip(parts, rooms, strict=True):
            part[:] = ids
