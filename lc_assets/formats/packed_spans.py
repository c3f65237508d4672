"""Spans of packed rows: which document each range of a row's tokens belongs to, as three small
arrays.

================================  ==================================================================
file                              what
================================  ==================================================================
``{split}_first_span.npy``        int64, one per row and one more: the row's first span; then the
                                  number of spans
``{split}_span_stop.npy``         int32, one per span: where in its row it ends. A row's first span
                                  begins at 0, each other where the one before ends, or at the next
                                  multiple of the array's attribute ``align_tokens``; the rest of
                                  the row is padding
``{split}_span_document.npy``     int32, one per span: number of the document among all of the
                                  version's. Equal numbers are one document, wherever in the rows
                                  its pieces are
================================  ==================================================================

Training nodes read these and no Parquet; ``spans.parquet`` identifies the documents
(docs/formats/packed.md).

Source: NumPy's ``.npy`` format 1.0, without pickle.
"""

from pathlib import Path
from typing import Any, Self

import numpy as np

from lc_assets.arrays import Array, Int32s, Int64s
from lc_assets.errors import BadInput, CorruptFile, NotPublished
from lc_assets.formats.arrays.npy import read_npy, write_npy
from lc_assets.formats.arrays.order import require_split
from lc_assets.packing.pieces import aligned
from lc_assets.records import distinct

MOST_DOCUMENTS = 2**31 - 1
FILES = ("first_span", "span_stop", "span_document")
DTYPES: tuple[np.dtype[Any], ...] = (np.dtype("<i8"), np.dtype("<i4"), np.dtype("<i4"))


@distinct
class PackedSpans:
    """Spans of one split's rows.

    Attributes:
        first: int64, first span of each row, then the number of spans.
        stop: int32, where in its row each span ends.
        document: int32, number of its document.
        align_tokens: every span begins at a multiple of it; where the one before ends elsewhere,
            padding is between.
    """

    first: Int64s
    stop: Int32s
    document: Int32s
    align_tokens: int = 1

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.first) - 1

    @classmethod
    def of(
        cls,
        row: Int64s,
        stop: Int64s,
        document: Int64s,
        *,
        n_rows: int,
    ) -> Self:
        """From one entry per span, in the rows' order.

        Args:
            row: of each span, ascending.
            stop: where in its row it ends.
            document: number of its document.
            n_rows: number of rows.

        Raises:
            BadInput: when there are more documents than an int32 numbers.
        """
        if len(document) and int(document.max()) > MOST_DOCUMENTS:
            raise BadInput(
                f"document {int(document.max()):,} cannot be numbered by int32: pack fewer than "
                f"{MOST_DOCUMENTS:,} at once"
            )
        first = np.searchsorted(row, np.arange(n_rows + 1)).astype(np.int64)
        return cls(first, stop.astype(np.int32), document.astype(np.int32))

    def write(self, folder: Path, split: str) -> None:
        """Publish the three files of a split."""
        arrays: tuple[Array, ...] = (self.first, self.stop, self.document)
        for path, dtype, array in zip(span_files(folder, split), DTYPES, arrays, strict=True):
            write_npy(path, array.astype(dtype, copy=False))

    @classmethod
    def open(cls, folder: Path, split: str, *, row_tokens: int, align_tokens: int = 1) -> Self:
        """Map the spans of a split into memory, and check them in one pass.

        Raises:
            NotPublished: when a file is missing, so the rows are not packed rows.
            CorruptFile: when the files are not of this format, do not match each other, or name
                tokens that a row does not have.
        """
        found = cls.map(folder, split, align_tokens)
        if problem := found.problem(row_tokens):
            raise CorruptFile(f"{span_files(folder, split)[0]}: {problem}: make the rows again")
        return found

    @classmethod
    def map(cls, folder: Path, split: str, align_tokens: int = 1) -> Self:
        """The same without checking them, for callers that need few rows.

        Raises:
            NotPublished: when a file is missing.
            CorruptFile: when the files are not of this format.
        """
        first, stop, document = (
            read_npy(path, row_of=dtype, missing=NotPublished)
            for path, dtype in zip(span_files(folder, split), DTYPES, strict=True)
        )
        return cls(first, stop, document, align_tokens)

    @property
    def lengths(self) -> Int64s:
        """Tokens of each span."""
        begins = np.concatenate([[0], aligned(self.stop[:-1], self.align_tokens)])
        begins[self.first[:-1]] = 0
        return np.asarray(self.stop - begins, np.int64)

    def problem(self, row_tokens: int) -> str:
        """A description of what is invalid in these spans; empty when nothing is."""
        edges = self.first
        if self.align_tokens < 1 or row_tokens % self.align_tokens:
            return f"spans begin at multiples of {self.align_tokens:,}, which do not divide a row"
        if (
            not len(edges)
            or edges[0] != 0
            or (edges[1:] <= edges[:-1]).any()
            or int(edges[-1]) != len(self.stop)
        ):
            return (
                f"rows have spans {edges[:1].tolist()} to {edges[-1:].tolist()}, in order and "
                f"none without; there are {len(self.stop):,}"
            )
        if len(self.stop) != len(self.document):
            return f"{len(self.stop):,} spans end somewhere, {len(self.document):,} have a document"
        if len(self.stop) and (
            int(self.lengths.min()) < 1
            or int(self.stop.max()) > row_tokens
            or int(self.document.min()) < 0
        ):
            return f"spans are empty, overlap, end behind token {row_tokens:,} or have no document"
        return ""


def span_files(folder: Path, split: str) -> tuple[Path, Path, Path]:
    """The three files of a split.

    Raises:
        BadInput: when there is no such split.
    """
    first, stop, document = (folder / f"{require_split(split)}_{name}.npy" for name in FILES)
    return first, stop, document
