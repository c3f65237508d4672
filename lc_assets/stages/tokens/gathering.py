"""Gathering: tokens of planned stretches of documents, out of token files into arrays."""

import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lc_assets.formats.megatron.indexed import MegatronReader
from lc_assets.formats.megatron.stretches import read_stretches

GATHERING_THREADS: Final = 4
"""Token files read at the same time; reading releases the GIL."""


def gather(
    tokens: Path,
    shards: pa.ChunkedArray,
    document: NDArray[np.int64],
    start: NDArray[np.int64],
    into: Callable[[int], Sequence[NDArray[Any]]],
    *,
    itemsize: int,
) -> None:
    """Copy stretches of documents into arrays.

    Token files are opened a few at a time: stretches may lie in more of them than a process may
    hold open.

    Args:
        tokens: folder of the token files.
        shards: string, name of each stretch's shard.
        document: int64, number of its document in the shard.
        start: int64, its first token.
        into: the contiguous arrays that the stretch of a number fills, one after the other.
        itemsize: bytes of an id in these arrays.

    Raises:
        CorruptFile: when a token file is missing or cut short.
        BadInput: when a document has no such tokens.
    """
    shard = shards.combine_chunks().dictionary_encode()
    codes = np.asarray(shard.indices)
    order = np.lexsort((start, document, codes))
    bounds = np.searchsorted(codes[order], np.arange(len(shard.dictionary) + 1))

    def read(code: int) -> None:
        reader = MegatronReader(tokens / shard.dictionary[code].as_py())
        own = order[bounds[code] : bounds[code + 1]]
        places = zip(document[own].tolist(), start[own].tolist(), own.tolist(), strict=True)
        stretches = ((number, first, into(at)) for number, first, at in places)
        if itemsize == reader.dtype.itemsize and sys.byteorder == "little":
            read_stretches(reader, stretches)
            return
        for number, first, parts in stretches:
            bounds_of_parts = np.cumsum([0, *map(len, parts)])
            ids = reader.read(number, first, first + int(bounds_of_parts[-1]))
            for part, begin in zip(parts, bounds_of_parts, strict=False):
                part[:] = ids[begin : begin + len(part)]

    with ThreadPoolExecutor(GATHERING_THREADS, "lc-gather") as pool:
        for _ in pool.map(read, range(len(shard.dictionary))):
            pass
