"""Stretches of a Megatron data set, read from the file into existing arrays. Without a memory map,
ids occupy this process's memory once, not twice.
"""

import os
from collections.abc import Iterable, Sequence

import numpy as np

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
        CorruptFile: if the file is too short: it was cut off after it was opened.
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
