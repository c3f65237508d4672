"""Stretches of Megatron data sets, read from their files into existing arrays. Without a memory
map, ids occupy this process's memory once, not twice.
"""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from lc_assets.arrays import Array, Int64s
from lc_assets.errors import CorruptFile
from lc_assets.formats.megatron.idx import bin_path
from lc_assets.formats.megatron.indexed import MegatronReader

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
        reader = MegatronReader(tokens / shard.dictionary[code].as_py())
        with bin_path(reader.prefix).open("rb", buffering=0) as stream:
            if hasattr(os, "posix_fadvise"):  # rows are far apart: what follows one is not needed
                os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
            for at in order[bounds[code] : bounds[code + 1]].tolist():
                _read_stretch(reader, stream, int(document[at]), int(start[at]), into(at))

    with ThreadPoolExecutor(GATHERING_THREADS, "lc-gather") as pool:
        for _ in pool.map(read, range(len(shard.dictionary))):
            pass


def _read_stretch(
    reader: MegatronReader, stream: Any, document: int, start: int, parts: Sequence[Array]
) -> None:
    stop = start + sum(map(len, parts))
    first, _ = reader.places_in(document, start, stop)
    stream.seek(first * reader.dtype.itemsize)
    for part in parts:
        ids = np.empty(len(part), reader.dtype)
        if stream.readinto(ids.data) != ids.nbytes:
            raise CorruptFile(
                f"{bin_path(reader.prefix)}: ends within document {document:,}: it was cut off "
                "after it was opened"
            )
        part[:] = ids
