"""Stretches of a Megatron data set, read from the file into existing arrays. Without a memory map,
ids occupy this process's memory once, not twice.

`gather` reads them from many data sets at once.
"""

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lc_assets.errors import BadInput, CorruptFile
from lc_assets.formats.megatron.idx import Array, bin_path
from lc_assets.formats.megatron.indexed import MegatronReader


def read_stretches(
    reader: MegatronReader, stretches: Iterable[tuple[int, int, Sequence[Array]]]
) -> None:
    """Fill arrays with stretches of documents.

    Args:
        reader: of the data set.
        stretches: document, first token, and the arrays that its tokens fill, one behind the other:
            contiguous, little-endian, of an integer type as wide as the data set's.

    Raises:
        BadInput: if there is no such document, or it has no such ids.
        CorruptFile: if the file is too short: it was truncated after it was opened.
    """
    path = bin_path(reader.prefix)
    with path.open("rb", buffering=0) as stream:
        if hasattr(os, "posix_fadvise"):  # rows are far apart: what follows one is not needed
            os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
        for document, start, parts in stretches:
            stream.seek(
                _first_of(reader, document, start, sum(map(len, parts))) * reader.dtype.itemsize
            )
            for part in parts:
                if len(part) and stream.readinto(part.view(np.uint8).data) != part.nbytes:
                    raise CorruptFile(
                        f"{path}: ends within document {document:,}: it was cut off after it was "
                        "opened"
                    )


def _first_of(reader: MegatronReader, document: int, start: int, n_wanted: int) -> int:
    """Where a stretch begins among the ids of all documents."""
    n_tokens = int(reader.lengths[document]) if 0 <= document < len(reader) else 0
    if not 0 <= start <= start + n_wanted <= n_tokens:
        asked = f"requested {start:,} to {start + n_wanted:,} of document {document:,}"
        raise BadInput(
            f"{reader.prefix}: {asked}, of {len(reader):,}, which has {n_tokens:,} tokens"
        )
    return reader.places(document, document + 1)[0] + start


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

    Token files are opened a few at a time: stretches may be in more of them than a process may
    hold open.

    Args:
        tokens: folder of the token files.
        shards: string, name of each stretch's shard.
        document: int64, number of its document in the shard.
        start: int64, its first token.
        into: the contiguous arrays that the stretch of a number fills, one after the other.
        itemsize: bytes of an id in these arrays.

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
