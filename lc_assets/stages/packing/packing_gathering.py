"""Gathering pieces: tokens of planned pieces, out of the token files to where they stand.

Here: reading. Not here: the plan (`stages.packing_plans`), what the tokens are written to
    (`stages.packing_writing`).
"""

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lc_assets.formats.megatron.indexed import MegatronReader
from lc_assets.formats.megatron.stretches import read_stretches
from lc_assets.stages.rows.gathering import GATHERING_THREADS

COLUMNS: Final = ("token_shard", "document", "document_start", "document_stop", "n_tokens")
"""Of `PACKED_SPANS`: what is read of a plan."""


def gather_pieces(
    plan: pa.Table, tokens: Path, out: NDArray[Any], places: NDArray[np.int64], *, eot: int | None
) -> None:
    """Copy the tokens of planned pieces into ``out``.

    Args:
        plan: lines with `COLUMNS`, a piece each.
        tokens: folder of the token store.
        out: one-dimensional, of the grid's dtype; what no piece covers stays as it is.
        places: int64, where in ``out`` each piece begins.
        eot: what stands behind a document's last token, where a piece reaches beyond it.

    Raises:
        CorruptFile: when a token file is missing or cut off.
        BadInput: when a document has no such tokens.
    """
    shard = plan["token_shard"].combine_chunks().dictionary_encode()
    codes = np.asarray(shard.indices)
    document, start, stop, n_tokens = (np.asarray(plan[name], np.int64) for name in COLUMNS[1:])
    lengths = np.minimum(stop, n_tokens) - start
    if eot is not None:
        out[(places + lengths)[stop > n_tokens]] = eot

    def read(code: int) -> None:
        own = np.flatnonzero((codes == code) & (lengths > 0))
        own = own[np.lexsort((start[own], document[own]))]
        columns = (column[own].tolist() for column in (document, start, places, lengths))
        _read(
            MegatronReader(tokens / shard.dictionary[code].as_py()), zip(*columns, strict=True), out
        )

    with ThreadPoolExecutor(GATHERING_THREADS, "lc-gather") as pool:
        for _ in pool.map(read, range(len(shard.dictionary))):
            pass


def _read(
    reader: MegatronReader, pieces: Iterator[tuple[int, int, int, int]], out: NDArray[Any]
) -> None:
    """Read pieces (document, first token, place, tokens) of one shard."""
    if reader.dtype.itemsize == out.itemsize and sys.byteorder == "little":
        read_stretches(
            reader,
            (
                (document, start, (out[place : place + length],))
                for document, start, place, length in pieces
            ),
        )
        return
    for document, start, place, length in pieces:
        out[place : place + length] = reader.read(document, start, start + length)
