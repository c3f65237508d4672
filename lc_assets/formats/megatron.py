r"""Megatron's indexed data set: token ids in ``{prefix}.bin``, where each sequence lies in ``{prefix}.idx``.

``.bin`` is the ids of all sequences one after another, little-endian, and nothing else; `lc_assets.formats.megatron_idx`
is the specification of the ``.idx``. In short, for ``S`` sequences and ``D`` boundaries: a header of 34 bytes, then int32
lengths[S], int64 byte offsets[S], int64 document boundaries[D].

Megatron's GPT data set never looks at the boundaries: what it calls documents are the sequences. So this
package writes one sequence per document. Megatron itself checks neither the size of the ``.bin`` nor the
offsets, wraps ids that do not fit the dtype, and cannot map an empty ``.bin``; here the first three are
checked, and the fourth is never written.

Here: writing, reading and checking both files. Not here: the dtype rules (`lc_assets.tokens.dtypes`), Megatron's
sample order (`lc_assets.mixing.gpt_index`).
Source: Megatron-LM ``megatron/core/datasets/indexed_dataset.py``; ``lc_assets_tests/golden/megatron`` holds files that
megatron-core 0.16.1 wrote.
"""

import array
import contextlib
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from lc_assets.errors import BadInput, CorruptFile
from lc_assets.formats.megatron_idx import MOST_TOKENS, Array, MegatronIndex, code_of, idx_bytes, parse_idx
from lc_assets.publishing import DRAFT_PREFIX, disk_said_plainly, flush
from lc_assets.tokens.dtypes import as_dtype


def bin_path(prefix: Path) -> Path:
    """``{prefix}.bin``; a prefix may hold dots."""
    return prefix.with_name(f"{prefix.name}.bin")


def idx_path(prefix: Path) -> Path:
    """``{prefix}.idx``; a prefix may hold dots."""
    return prefix.with_name(f"{prefix.name}.idx")


class MegatronWriter:
    """Writes a data set, one sequence per document, without holding its ids in memory.

    Args:
        path: of the ``.bin``, which is created or overwritten.
        dtype: of the ids, as `lc_assets.tokens.dtypes.megatron_dtype` says.
    """

    def __init__(self, path: Path, dtype: np.dtype[Any]) -> None:
        code_of(dtype)
        self._dtype, self._path = dtype, path
        self._lengths = array.array("i")
        self._n_tokens = 0
        self._stream = path.open("wb")

    @classmethod
    @contextlib.contextmanager
    def publishing(cls, prefix: Path, dtype: np.dtype[Any]) -> Iterator["MegatronWriter"]:
        """Hand out a writer; when the block ends well, put both files in their places, the ``.idx`` last.

        When no document was added, no file is left or replaced: Megatron could not open an empty data set.
        When the block fails, nothing is left behind, and files that stood there before still stand.

        Raises:
            StorageFull: when the disk is full.
            NotWritable: when nothing may be written there.
        """
        draft = prefix.with_name(f"{DRAFT_PREFIX}{uuid.uuid4().hex[:8]}-{prefix.name}")
        with disk_said_plainly(prefix):
            prefix.parent.mkdir(parents=True, exist_ok=True)
            writer = cls(bin_path(draft), dtype)
            try:
                yield writer
                if writer.n_documents:
                    writer.finish(idx_path(draft))
                    _put_in_place(draft, prefix)
            finally:
                bin_path(draft).unlink(missing_ok=True)
                idx_path(draft).unlink(missing_ok=True)
                writer.close()  # last, because on a full disk this fails once more

    @property
    def n_documents(self) -> int:
        """Documents added so far."""
        return len(self._lengths)

    @property
    def n_tokens(self) -> int:
        """Ids added so far."""
        return self._n_tokens

    def add(self, ids: Array) -> None:
        """Append one document.

        Raises:
            BadInput: when it is empty, too long, or not a row of integers; nothing is written then.
            Mismatch: when an id does not fit the dtype.
        """
        if ids.ndim != 1 or not 0 < len(ids) <= MOST_TOKENS:
            raise BadInput(f"{self._path}: document {self.n_documents:,} has shape {ids.shape}; wanted 1 to {MOST_TOKENS:,} ids")
        self._stream.write(np.ascontiguousarray(as_dtype(ids, self._dtype)).data)
        self._lengths.append(len(ids))
        self._n_tokens += len(ids)

    def finish(self, idx: Path) -> MegatronIndex:
        """Close the ``.bin`` and write the ``.idx``.

        Raises:
            BadInput: when no document was added: Megatron cannot open an empty data set.
        """
        self.close()
        if not self.n_documents:
            raise BadInput(f"{self._path}: no document was added, and Megatron cannot map an empty file: leave the data set out")
        index = MegatronIndex(self._dtype, np.array(self._lengths, "<i4"), np.arange(self.n_documents + 1, dtype="<i8"))
        idx.write_bytes(idx_bytes(index.lengths, index.document_boundaries, index.dtype))
        return index

    def close(self) -> None:
        """Close the ``.bin``; harmless when it is closed."""
        self._stream.close()


class MegatronReader:
    """Reads a data set by mapping it into memory; arrays that it hands out are read-only views and stay valid.

    Args:
        prefix: path of both files without ``.bin`` and ``.idx``.

    Raises:
        CorruptFile: when a file is missing or the two do not fit; says what was found and what was expected.
    """

    def __init__(self, prefix: Path) -> None:
        self.prefix = prefix
        self.index = parse_idx(_mapped(idx_path(prefix)).data, str(idx_path(prefix)))
        self._ids = _mapped_ids(bin_path(prefix), self.index)
        self._first_id = np.cumsum(self.index.lengths, dtype=np.int64) - self.index.lengths

    def __len__(self) -> int:
        return len(self.index.lengths)

    def __getitem__(self, document: int) -> Array:
        return self.read(document, 0, int(self.lengths[self._known(document)]))

    def __iter__(self) -> Iterator[Array]:
        return (self[document] for document in range(len(self)))

    @property
    def lengths(self) -> Array:
        """int32, tokens of each document."""
        return self.index.lengths

    @property
    def dtype(self) -> np.dtype[Any]:
        """Dtype of the ids."""
        return self.index.dtype

    @property
    def ids(self) -> Array:
        """Ids of all documents, one behind the other: a read-only view of the mapped file."""
        return self._ids

    @property
    def n_tokens(self) -> int:
        """Ids of all documents together."""
        return len(self._ids)

    def read(self, document: int, start: int, stop: int) -> Array:
        """Ids ``start`` to ``stop`` (exclusive) of one document.

        Raises:
            BadInput: when there is no such document, or it has no such ids.
        """
        n_tokens = int(self.lengths[self._known(document)])
        if not 0 <= start <= stop <= n_tokens:
            raise BadInput(f"{self.prefix}: document {document:,} has {n_tokens:,} tokens; asked for {start:,} to {stop:,}")
        first = int(self._first_id[document])
        return self._ids[first + start : first + stop]

    def _known(self, document: int) -> int:
        if not 0 <= document < len(self):
            raise BadInput(f"{self.prefix}: document {document:,} asked for; it has {len(self):,}, counted from 0")
        return document


def _mapped_ids(path: Path, index: MegatronIndex) -> Array:
    promised = index.n_tokens * index.dtype.itemsize
    ids = _mapped(path)
    if len(ids) != promised:
        raise CorruptFile(f"{path}: {len(ids):,} bytes, its .idx promises {promised:,} ({index.n_tokens:,} ids of {index.dtype.name})")
    return ids.view(index.dtype)


def _mapped(path: Path) -> Array:
    try:
        if not path.stat().st_size:
            raise CorruptFile(f"{path}: is empty, which Megatron never writes")
        return np.asarray(np.memmap(path, np.uint8, mode="r"))
    except FileNotFoundError as error:
        raise CorruptFile(f"{path}: is missing") from error


def _put_in_place(draft: Path, prefix: Path) -> None:
    for path in (bin_path, idx_path):
        flush(path(draft))
        path(draft).replace(path(prefix))
    flush(prefix.parent)
