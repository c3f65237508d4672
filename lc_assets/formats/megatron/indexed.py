r"""Megatron's indexed data set: token ids in ``{prefix}.bin``, the offsets of sequences in
``{prefix}.idx``.

``.bin`` is the ids of all sequences one after another, little-endian, and nothing else;
`lc_assets.formats.megatron.idx` is the specification of the ``.idx``. In short, for ``S`` sequences
and ``D`` boundaries: a header of 34 bytes, then int32 lengths[S], int64 byte offsets[S], int64
document boundaries[D].

Megatron's GPT data set never looks at the boundaries: what it calls documents are the sequences. So
this package writes one sequence per document. Megatron itself checks neither the size of the
``.bin`` nor the offsets, wraps ids that do not fit the dtype, and cannot map an empty ``.bin``;
here the first three are checked, and the fourth is never written. ``{prefix}.bin.crc32`` holds
checksums of the ``.bin`` (`lc_assets.formats.checksums`), with which readers compare it.

Rules for dtypes: `lc_assets.tokens.dtypes`; Megatron's sample order: `lc_assets.mixing.gpt_index`.

Source: Megatron-LM ``megatron/core/datasets/indexed_dataset.py``;
    ``lc_assets_tests/golden/megatron`` has files that megatron-core 0.16.1 wrote.
"""

import array
import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, overload

import numpy as np

from lc_assets.arrays import Array
from lc_assets.errors import BadInput, CorruptFile
from lc_assets.foreign_errors import os_errors_as_lc_errors
from lc_assets.formats.checksums import BlockChecksums, CheckedBlocks, checksums_path
from lc_assets.formats.megatron.idx import (
    MOST_TOKENS,
    Boundaries,
    bin_path,
    code_of,
    files_of,
    idx_blocks,
    idx_path,
    is_plain,
    map_bytes,
    read_index,
)
from lc_assets.publishing import PUBLISHED, flush, make_folder, staging_path
from lc_assets.tokens.dtypes import as_dtype

COPIED_BYTES = 4 << 20
"""Bytes of a ``.bin`` that are copied, or written, at a time."""


class MegatronWriter:
    """Writes a data set, one sequence per document, without keeping its ids in memory.

    Args:
        path: path of the ``.bin``, which is created or overwritten.
        dtype: dtype of the ids, such as `lc_assets.tokens.dtypes.megatron_dtype` returns.
    """

    def __init__(self, path: Path, dtype: np.dtype[Any]) -> None:
        code_of(dtype)
        self._dtype, self._path = dtype, path
        self._lengths = array.array("i")
        # None: so far every sequence is a document.
        self._boundaries: array.array[int] | None = None
        self._n_tokens = 0
        self._checksums = BlockChecksums()
        self._stream = path.open("wb", COPIED_BYTES)

    @classmethod
    @contextlib.contextmanager
    def publishing(cls, prefix: Path, dtype: np.dtype[Any]) -> Iterator["MegatronWriter"]:
        """Yield a writer; when the block succeeds, publish the files, the ``.idx`` last.

        When no document was added, no file is left or replaced: Megatron could not open an empty
        data set. When the block fails, nothing is left behind, and earlier files are untouched.

        Raises:
            StorageFull: if the disk is full.
            NotWritable: if the folder is not writable.
        """
        draft = staging_path(prefix)
        with os_errors_as_lc_errors(prefix):
            make_folder(prefix.parent)
            writer = cls(bin_path(draft), dtype)
            try:
                yield writer
                if writer.n_tokens:
                    writer.finish(idx_path(draft))
                    _put_in_place(draft, prefix)
            finally:
                for path in files_of(draft):
                    path.unlink(missing_ok=True)
                writer.close()  # last, because on a full disk this fails once more

    @property
    def n_documents(self) -> int:
        """Documents added so far; of copied documents with several sequences, the sequences."""
        return len(self._lengths)

    @property
    def n_tokens(self) -> int:
        """Ids added so far."""
        return self._n_tokens

    def add(self, ids: Array) -> None:
        """Append one document; raises as `add_documents`."""
        if ids.ndim != 1 or not len(ids):
            raise BadInput(
                f"{self._path}: document {self.n_documents:,} has shape {ids.shape}; expected a row"
            )
        self.add_documents([ids], [len(ids)])

    def add_documents(
        self, parts: Sequence[Array], lengths: Sequence[int], *, together: bool = False
    ) -> None:
        """Append several documents whose ids are ``parts``, one after the other.

        Args:
            parts: rows of integers; their boundaries are ignored.
            lengths: ids of each document, at least 1; their sum is that of the parts.
            together: whether they are the sequences of one document.

        Raises:
            BadInput: if a document is empty or too long, or the sums differ; nothing is written
                then.
            Mismatch: if an id does not fit the dtype; nothing is written then.
        """
        n_ids = sum(map(len, parts))
        shortest, longest = min(lengths, default=1), max(lengths, default=1)
        if sum(lengths) != n_ids or shortest < 1 or longest > MOST_TOKENS:
            raise BadInput(
                f"{self._path}: documents of {shortest:,} to {longest:,} ids, "
                f"{sum(lengths):,} together, in {n_ids:,} ids"
            )
        if len(parts) > 1 and n_ids * self._dtype.itemsize < COPIED_BYTES:
            parts = [np.concatenate(parts)]
        for ids in [as_dtype(part, self._dtype) for part in parts]:
            self._write(ids)
        ends = range(self.n_documents + 1, self.n_documents + 1 + len(lengths))
        if together and len(ends) > 1 and self._boundaries is None:
            self._boundaries = array.array("q", range(self.n_documents + 1))
        if self._boundaries is not None:
            self._boundaries.extend(ends[-1:] if together else ends)
        self._lengths.extend(lengths)
        self._n_tokens += n_ids

    def copy(self, data: "MegatronReader", start: int, stop: int) -> None:
        """Append documents ``start`` to ``stop`` (exclusive) of another data set, with all their
        sequences, in blocks.

        Raises:
            BadInput: if the other has no such documents, or another dtype.
        """
        if data.dtype != self._dtype:
            raise BadInput(
                f"{data.prefix}: its ids are {data.dtype.name}, those of {self._path} are "
                f"{self._dtype.name}"
            )
        boundaries = data.document_indices
        if not 0 <= start <= stop < len(boundaries):
            raise BadInput(
                f"{data.prefix}: has {len(boundaries) - 1:,} documents; requested {start:,} to "
                f"{stop:,}"
            )
        own = boundaries[start : stop + 1]
        if self._boundaries is None and not is_plain(own):
            self._boundaries = array.array("q", range(self.n_documents + 1))
        if self._boundaries is not None:
            ends = own[1:] - own[0] + self.n_documents
            self._boundaries.frombytes(ends.astype("i8").tobytes())
        first, last = int(own[0]), int(own[-1])
        self._lengths.frombytes(data.lengths[first:last].astype("i4").tobytes())
        ids = data.between(*data.places(first, last))
        step = COPIED_BYTES // self._dtype.itemsize
        for place in range(0, len(ids), step):
            self._write(ids[place : place + step])
        self._n_tokens += len(ids)

    def _write(self, ids: Array) -> None:
        content = np.ascontiguousarray(ids).view(np.uint8).data
        self._stream.write(content)
        self._checksums.add(content)

    def finish(self, idx: Path) -> None:
        """Close the ``.bin``, write its checksums and the ``.idx``.

        Raises:
            BadInput: if no document was added: Megatron cannot open an empty data set.
        """
        self.close()
        if not self._n_tokens:
            raise BadInput(
                f"{self._path}: no document was added, and Megatron cannot map an empty file: "
                "leave the data set out"
            )
        boundaries: Boundaries = range(self.n_documents + 1)
        if self._boundaries is not None:
            boundaries = np.frombuffer(self._boundaries, "i8")
        checksums_path(self._path).write_bytes(self._checksums.content())
        with idx.open("wb") as stream:
            stream.writelines(
                idx_blocks(np.frombuffer(self._lengths, "i4"), boundaries, self._dtype)
            )

    def close(self) -> None:
        """Close the ``.bin``; does nothing when it is closed."""
        self._stream.close()


class MegatronReader:
    """Reads a data set by mapping it into memory; the arrays it returns are read-only views and
    stay valid.

    It returns what Megatron's ``IndexedDataset`` returns: ``data[3]``, ``data[2:5]``, `get`,
    `sequence_lengths`, `document_indices`, and its length. Where Megatron would read into the next
    document, or crash, this raises.

    Attributes:
        prefix: path of both files without ``.bin`` and ``.idx``.
        index: content of the ``.idx``.
        ids: ids of all documents, one after another: a read-only view of the mapped file, which is
            not compared with its checksums.
        blocks: compares the ``.bin`` with its checksums.

    Raises:
        CorruptFile: if a file is missing or they do not match; states what was found and what was
            expected.
    """

    def __init__(self, prefix: Path) -> None:
        self.prefix = prefix
        self.index = read_index(prefix)
        path, n_bytes = bin_path(prefix), self.index.n_tokens * self.index.dtype.itemsize
        content = map_bytes(path)
        if len(content) != n_bytes:
            raise CorruptFile(
                f"{path}: {len(content):,} bytes, its .idx promises {n_bytes:,} "
                f"({self.index.n_tokens:,} ids of {self.index.dtype.name})"
            )
        self.ids = content.view(self.index.dtype)
        self.blocks = CheckedBlocks(path, self.ids)

    def __len__(self) -> int:
        return len(self.index.lengths)

    @overload
    def __getitem__(self, document: int) -> Array: ...

    @overload
    def __getitem__(self, document: slice) -> list[Array]: ...

    def __getitem__(self, document: int | slice) -> Array | list[Array]:
        if isinstance(document, slice):
            return [self[place] for place in range(*document.indices(len(self)))]
        return self.get(document)

    def __iter__(self) -> Iterator[Array]:
        return (self[document] for document in range(len(self)))

    @property
    def lengths(self) -> Array:
        """int32, tokens of each document."""
        return self.index.lengths

    sequence_lengths = lengths
    """The same, by Megatron's name."""

    @property
    def document_indices(self) -> Array:
        """int64, first sequence of each document, then the number of sequences."""
        return self.index.document_boundaries

    @property
    def dtype(self) -> np.dtype[Any]:
        """Dtype of the ids."""
        return self.index.dtype

    @property
    def n_tokens(self) -> int:
        """Ids of all documents together."""
        return len(self.ids)

    def get(self, document: int, offset: int = 0, length: int | None = None) -> Array:
        """Ids of one document from ``offset`` on, ``length`` of them or all that are left;
        Megatron's ``get``; raises as `read`.
        """
        n_tokens = int(self.lengths[self.index.known(document)])
        return self.read(document, offset, n_tokens if length is None else offset + length)

    def read(self, document: int, start: int, stop: int) -> Array:
        """Ids ``start`` to ``stop`` (exclusive) of one document.

        Raises:
            BadInput: if there is no such document, or it has no such ids.
            CorruptFile: if they do not match their checksums.
        """
        return self.between(*self.index.places_in(document, start, stop))

    def between(self, first: int, end: int) -> Array:
        """Ids ``first`` to ``end`` (exclusive) of `ids`.

        Raises:
            CorruptFile: if they do not match their checksums.
        """
        self.blocks.check(first, end)
        return self.ids[first:end]

    def places(self, start: int, stop: int) -> tuple[int, int]:
        """First and last (exclusive) id of sequences ``start`` to ``stop`` (exclusive) in `ids`."""
        first, end = (
            int(self.index.byte_offsets[at]) // self.dtype.itemsize
            if at < len(self)
            else self.n_tokens
            for at in (start, stop)
        )
        return first, end


def _put_in_place(draft: Path, prefix: Path) -> None:
    """Rename a whole data set within a file system, replacing what is there."""
    for path in files_of(draft):
        flush(path)
    # Between the renames there is no data set, rather than a mix of two.
    idx_path(prefix).unlink(missing_ok=True)
    for path, final in zip(files_of(draft), files_of(prefix), strict=True):
        path.replace(final)
        PUBLISHED.get([]).append(final)
    flush(prefix.parent)
