"""A Megatron data set into several: one for each length 2^k, of pieces that never cross a document.

``OUT/tokens-00256.bin``, ``.idx`` and ``.receipt``, and so on up to the longest. A length without
pieces has no files. Ids pass through in blocks; memory is bounded by one block, and by 4 bytes for
every piece of the results.

Here: reading and writing. Not here: where the pieces are (`lc_assets.packing.decomposition`).
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np

from lc_assets.counts import Counts
from lc_assets.errors import BadInput
from lc_assets.formats.megatron.idx import idx_path
from lc_assets.formats.megatron.indexed import MegatronReader, MegatronWriter
from lc_assets.packing.decomposition import decomposed
from lc_assets.stages.megatron.megatron_receipts import Ids, read_receipt, write_receipt

BLOCK_IDS: Final = 1 << 22
LEFT_OVER: Final = "left over"


def decompose(
    prefix: Path, folder: Path, *, shortest: int, longest: int, seed: int | None = None
) -> Counts:
    """Cut the documents of a data set into pieces, and write those of each length as a data set of
    its own.

    Args:
        prefix: of the data set.
        folder: of the results.
        shortest: tokens of the shortest pieces, a power of two; what is left of a document is
            shorter, and is counted.
        longest: tokens of the longest.
        seed: draws the order of a document's pieces by its number; None: longest first.

    Returns:
        Tokens seen, kept and left over; ``also`` has the pieces of each length.

    Raises:
        BadInput: when a length is no power of two, or the folder holds such a data set.
        CorruptFile: when the data set is damaged.
        NotWritable, StorageFull: when the place cannot be written to.
    """
    low, high = exponent_of(shortest), exponent_of(longest)
    decomposed(
        np.zeros(0, np.int64), shortest=low, longest=high
    )  # refuses what cannot be meant before anything is written
    reader, places = (
        MegatronReader(prefix),
        {exponent: folder / f"tokens-{1 << exponent:05}" for exponent in range(low, high + 1)},
    )
    if standing := [place for place in places.values() if idx_path(place).exists()]:
        raise BadInput(f"{standing[0]}: there is a data set already; name a new folder")
    n_kept = 0
    with contextlib.ExitStack() as stack:
        writers = {
            exponent: stack.enter_context(MegatronWriter.publishing(place, reader.dtype))
            for exponent, place in places.items()
        }
        for start, stop in _blocks(reader):
            keys = None if seed is None else [str(document) for document in range(start, stop)]
            lengths = reader.lengths[start:stop].astype(np.int64)
            pieces = decomposed(lengths, shortest=low, longest=high, keys=keys, seed=seed or 0)
            base = reader.places(start, stop)[0] + np.cumsum(lengths) - lengths
            for exponent, writer in writers.items():
                documents, starts = pieces.of(exponent)
                parts = [
                    reader.ids[at : at + (1 << exponent)]
                    for at in (base[documents] + starts).tolist()
                ]
                writer.add_documents(parts, [1 << exponent] * len(parts))
                n_kept += len(parts) << exponent
        extra = {
            f"pieces of {1 << exponent}": writer.n_documents for exponent, writer in writers.items()
        }
    _write_receipts([place for place in places.values() if idx_path(place).exists()], _ids(prefix))
    left_over = {LEFT_OVER: reader.n_tokens - n_kept} if reader.n_tokens > n_kept else {}
    return Counts(seen=reader.n_tokens, kept=n_kept, dropped=left_over, extra=extra)


def exponent_of(n_tokens: int) -> int:
    """Which power of two a length is.

    >>> exponent_of(1), exponent_of(8192)
    (0, 13)

    Raises:
        BadInput: when it is none.
    """
    if n_tokens < 1 or n_tokens & (n_tokens - 1):
        raise BadInput(
            f"pieces have a power of two of tokens, such as 256 or 8192; got {n_tokens:,}"
        )
    return n_tokens.bit_length() - 1


def _ids(prefix: Path) -> Ids | None:
    """What the ids mean; pieces do not end with an end of document, but where a document does."""
    receipt = read_receipt(prefix)
    return (
        None
        if receipt is None or receipt.ids is None or receipt.ids.eod is not None
        else receipt.ids
    )


def _write_receipts(prefixes: list[Path], ids: Ids | None) -> None:
    for prefix in prefixes:
        write_receipt(prefix, made_by="decompose", ids=ids, dropped={})


def _blocks(reader: MegatronReader) -> Iterator[tuple[int, int]]:
    """Stretches of documents of about `BLOCK_IDS` ids, at least one each."""
    ends = np.cumsum(reader.lengths, dtype=np.int64)
    start = 0
    while start < len(reader):
        before = int(ends[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, before + BLOCK_IDS, side="right")))
        yield start, stop
        start = stop
