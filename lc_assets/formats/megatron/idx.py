r"""Megatron's ``.idx``: the offset of each sequence in the ``.bin``, and which sequences make up a
document.

Little-endian, without padding; ``S`` sequences, ``D`` document boundaries:

=============  ======  ==========================================================================
offset         bytes   content
=============  ======  ==========================================================================
0              9       ``MMIDIDX\x00\x00``
9              8       uint64 version: 1
17             1       uint8 dtype code: 1 uint8, 2 int8, 3 int16, 4 int32, 5 int64, 8 uint16
                       (6 float64 and 7 float32 exist, but are no token ids)
18             8       uint64 ``S``
26             8       uint64 ``D``, which is the number of documents **plus one**
34             4 S     int32 length of each sequence, in tokens
34 + 4 S       8 S     int64 byte offset of each sequence in the ``.bin``
34 + 12 S      8 D     int64 first sequence of each document, and ``S`` at the end
=============  ======  ==========================================================================

Indices are read and written in blocks, and every field is checked; an index of millions of
sequences takes no more memory than its lengths. Files: `lc_assets.formats.megatron.indexed`.

Source: Megatron-LM ``megatron/core/datasets/indexed_dataset.py`` (``_IndexWriter``,
    ``_IndexReader``), unchanged in this from core 0.5 to 0.19.
"""

import io
import mmap
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from lc_assets.arrays import Array
from lc_assets.errors import BadInput, CorruptFile
from lc_assets.formats.checksums import checksums_path
from lc_assets.records import distinct

MAGIC = b"MMIDIDX\x00\x00"
VERSION = 1
HEADER = struct.Struct("<9sQBQQ")
DTYPES = {
    code: np.dtype(name)
    for code, name in ((1, "u1"), (2, "i1"), (3, "<i2"), (4, "<i4"), (5, "<i8"), (8, "<u2"))
}
"""Dtype of the ids by its code in the header."""
CODES = {dtype: code for code, dtype in DTYPES.items()}
MOST_TOKENS = 2**31 - 1
"""Longest sequence that an int32 length can state."""
BLOCK = 1 << 17
"""Sequences that are checked, or written, at once: 1 MiB of offsets."""

Boundaries: TypeAlias = Array | range
"""Integers; a range if every sequence is a document."""


def bin_path(prefix: Path) -> Path:
    """``{prefix}.bin``; a prefix may contain dots."""
    return prefix.with_name(f"{prefix.name}.bin")


def idx_path(prefix: Path) -> Path:
    """``{prefix}.idx``; a prefix may contain dots."""
    return prefix.with_name(f"{prefix.name}.idx")


def files_of(prefix: Path) -> list[Path]:
    """The files of a data set, in the order in which they are published."""
    return [bin_path(prefix), checksums_path(bin_path(prefix)), idx_path(prefix)]


@distinct
class MegatronIndex:
    """Content of an ``.idx``.

    Attributes:
        dtype: dtype of the ids in the ``.bin``.
        lengths: int32, tokens of each sequence.
        document_boundaries: int64, first sequence of each document, then the number of sequences.
        byte_offsets: int64, first byte of each sequence in the ``.bin``.
        where: names the file in errors.
    """

    dtype: np.dtype[Any]
    lengths: Array
    document_boundaries: Array
    byte_offsets: Array
    where: str

    @property
    def n_tokens(self) -> int:
        """Ids in the ``.bin``."""
        return int(self.lengths.sum(dtype=np.int64))

    def places_in(self, document: int, start: int, stop: int) -> tuple[int, int]:
        """First and last (exclusive) of ids ``start`` to ``stop`` (exclusive) of a document, of one
        sequence, in the ``.bin``.

        Raises:
            BadInput: if there is no such document, or it has no such ids.
        """
        n_tokens = int(self.lengths[self.known(document)])
        if not 0 <= start <= stop <= n_tokens:
            raise BadInput(
                f"{self.where}: document {document:,} has {n_tokens:,} tokens; requested "
                f"{start:,} to {stop:,}"
            )
        first = int(self.byte_offsets[document]) // self.dtype.itemsize
        return first + start, first + stop

    def known(self, document: int) -> int:
        """``document``, if there is one of this number; raises as `places_in`."""
        if not 0 <= document < len(self.lengths):
            raise BadInput(
                f"{self.where}: there is no document {document:,}; it has {len(self.lengths):,}, "
                "counted from 0"
            )
        return document

    def blocks(
        self, n_ids: int, start: int = 0, stop: int | None = None
    ) -> Iterator[tuple[int, int]]:
        """First and last (exclusive) of consecutive sequences with about ``n_ids`` ids, at least
        one sequence each.
        """
        end, starts = len(self.lengths) if stop is None else stop, self.byte_offsets
        while start < end:
            limit = int(starts[start]) + n_ids * self.dtype.itemsize
            after = min(max(int(np.searchsorted(starts, limit, side="right")) - 1, start + 1), end)
            yield start, after
            start = after


def idx_blocks(lengths: Array, boundaries: Boundaries, dtype: np.dtype[Any]) -> Iterator[bytes]:
    """Yield the content of an ``.idx`` piece by piece; nothing is yielded if it is invalid.

    Args:
        lengths: integers, tokens of each sequence.
        boundaries: first sequence of each document, then the number of sequences.
        dtype: dtype of the ids.

    >>> len(b"".join(idx_blocks(np.array([3, 5]), range(3), np.dtype("u2"))))
    82

    Raises:
        BadInput: if the dtype has no code, or lengths or boundaries are invalid.
    """
    code = code_of(dtype)
    if problem := _problem(lengths, boundaries):
        raise BadInput(f"not a Megatron index: {problem}")
    yield HEADER.pack(MAGIC, VERSION, code, len(lengths), len(boundaries))
    for start in range(0, len(lengths), BLOCK):
        yield lengths[start : start + BLOCK].astype("<i4", copy=False).tobytes()
    for _, offsets in _offset_blocks(lengths, dtype):
        yield offsets.tobytes()
    for start in range(0, len(boundaries), BLOCK):
        yield _block(boundaries, start, BLOCK).astype("<i8", copy=False).tobytes()


def parse_idx(content: bytes | memoryview, where: str) -> MegatronIndex:
    """Read the content of an ``.idx``; the arrays are views of it.

    Args:
        content: all of the file.
        where: names the file in errors.

    Raises:
        CorruptFile: if it is not a valid index; states what was found and what was expected.
    """
    begin = bytes(content[: len(MAGIC)])
    if len(content) < HEADER.size or begin != MAGIC:
        raise CorruptFile(
            f"{where}: not a Megatron index: starts with {begin!r}, expected {MAGIC!r} and a header"
        )
    _, version, code, n_sequences, n_boundaries = HEADER.unpack(content[: HEADER.size])
    if version != VERSION:
        raise CorruptFile(f"{where}: version {version:,}, expected {VERSION}")
    if code not in DTYPES:
        raise CorruptFile(
            f"{where}: dtype code {code}, expected one of {', '.join(map(str, DTYPES))}: no token "
            "ids"
        )
    n_bytes = HEADER.size + 12 * n_sequences + 8 * n_boundaries
    if len(content) != n_bytes:
        multimodal = len(content) == n_bytes + n_sequences
        raise CorruptFile(
            f"{where}: header promises {n_bytes:,} bytes ({n_sequences:,} sequences, "
            f"{n_boundaries:,} boundaries), file has {len(content):,}"
            f"{'; this is a multimodal index, which is not read here' if multimodal else ''}"
        )
    dtype, start = DTYPES[code], HEADER.size
    lengths = np.frombuffer(content, "<i4", n_sequences, start)
    offsets = np.frombuffer(content, "<i8", n_sequences, start + 4 * n_sequences)
    boundaries = np.frombuffer(content, "<i8", n_boundaries, start + 12 * n_sequences)
    problem = _problem(lengths, boundaries) or _wrong_offset(lengths, offsets, dtype)
    if problem:
        raise CorruptFile(f"{where}: {problem}")
    return MegatronIndex(dtype, lengths, boundaries, offsets, where)


def is_plain(boundaries: Boundaries) -> bool:
    """Whether every document is one sequence.

    >>> is_plain(np.array([5, 6, 7])), is_plain(np.array([0, 1, 1])), is_plain(np.array([0, 2]))
    (True, False, False)
    """
    return all((steps == 1).all() for steps in _steps(boundaries))


def _steps(boundaries: Boundaries) -> Iterator[Array]:
    """Sequences of each document, a block at a time."""
    for start in range(0, len(boundaries), BLOCK):
        yield np.diff(_block(boundaries, start, BLOCK + 1))


def _block(boundaries: Boundaries, start: int, n: int) -> Array:
    block = boundaries[start : start + n]
    return np.arange(block.start, block.stop) if isinstance(block, range) else block


def _problem(lengths: Array, boundaries: Boundaries) -> str:
    """A description of what is invalid; empty if nothing is."""
    if len(lengths) and not 0 <= int(lengths.min()) <= int(lengths.max()) <= MOST_TOKENS:
        return (
            f"sequence lengths from {lengths.min():,} to {lengths.max():,}, expected 0 to "
            f"{MOST_TOKENS:,}"
        )
    if not len(boundaries) or boundaries[0] != 0 or boundaries[-1] != len(lengths):
        ends = f"{boundaries[0]:,} to {boundaries[-1]:,}" if len(boundaries) else "absent"
        return (
            f"document boundaries are {ends}, expected 0 to {len(lengths):,}, the number of "
            "sequences"
        )
    if any((steps < 0).any() for steps in _steps(boundaries)):
        return "document boundaries fall, expected them in order"
    return ""


def _wrong_offset(lengths: Array, offsets: Array, dtype: np.dtype[Any]) -> str:
    """Description of a byte offset that is not the sum of the lengths before it; empty if none."""
    for start, right in _offset_blocks(lengths, dtype):
        wrong = np.flatnonzero(offsets[start : start + len(right)] != right)
        if len(wrong):
            at = start + int(wrong[0])
            hint = ": negative, as Megatron before core 0.15 merged with NumPy 2; merge the sources"
            hint += " again with `lc megatron merge`"  # Megatron-LM #1672
            return (
                f"sequence {at:,} is said to begin at byte {offsets[at]:,}, its predecessors end "
                f"at {right[at - start]:,}{hint if offsets[at] < 0 else ''}"
            )
    return ""


def _offset_blocks(lengths: Array, dtype: np.dtype[Any]) -> Iterator[tuple[int, Array]]:
    """First sequence of a block, int64 byte offsets of the block's sequences."""
    begin = 0
    for start in range(0, len(lengths), BLOCK):
        ends = begin + np.cumsum(lengths[start : start + BLOCK], dtype="<i8") * dtype.itemsize
        yield start, np.concatenate([[begin], ends[:-1]])
        begin = int(ends[-1])


def code_of(dtype: np.dtype[Any]) -> int:
    """Code of ``dtype`` in the header.

    Raises:
        BadInput: if there is none.
    """
    if dtype not in CODES:
        raise BadInput(
            f"Megatron has no token dtype {dtype}; it has "
            f"{', '.join(known.name for known in CODES)}"
        )
    return CODES[dtype]


def read_index(prefix: Path) -> MegatronIndex:
    """The ``.idx`` alone, mapped: lengths and documents, even without the ``.bin``.

    Raises:
        CorruptFile: if it is missing or does not follow the format.
    """
    return parse_idx(map_bytes(idx_path(prefix)).data, str(idx_path(prefix)))


def map_bytes(path: Path) -> Array:
    """The bytes of a file, mapped into memory.

    Raises:
        CorruptFile: if the file is missing or empty.
    """
    with opened(path) as file:  # NumPy's would resolve the path: twice the time
        if not os.fstat(file.fileno()).st_size:
            raise CorruptFile(f"{path}: is empty, which Megatron never writes")
        return np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), np.uint8)


def opened(path: Path) -> io.FileIO:
    """Open a file, to be read without a buffer.

    Raises:
        CorruptFile: if it is missing.
    """
    try:
        return path.open("rb", buffering=0)
    except FileNotFoundError as error:
        raise CorruptFile(f"{path}: is missing") from error
