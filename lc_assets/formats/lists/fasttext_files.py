"""Whether a fastText model file is whole, without loading it.

fastText trusts the sizes that a file states: it hangs, takes all memory or ends the process when
they are wrong. Here each part is skipped by its stated size, and none may end beyond the file.

==========  ========================================================================================
part        content, little-endian
==========  ========================================================================================
head        int32: magic number, version; 12 × int32 and a float64: training arguments
dictionary  int32: entries, words, labels; int64: tokens, pruned n-grams (-1 for none); per entry
            its bytes, NUL, int64 count, int8 kind; per pruned n-gram 2 × int32
input       uint8: whether it is quantized; a matrix
output      uint8: whether it is quantized, too; a matrix
matrix      int64: rows, columns; rows × columns float32
quantized   uint8: with norms; int64: rows, columns; int32: bytes of codes; codes; a quantizer; with
matrix      norms, a byte per row and a quantizer
quantizer   4 × int32, the first the number of dimensions; 256 float32 per dimension
==========  ========================================================================================

Source: ``fasttext.cc``, ``dictionary.cc``, ``densematrix.cc``, ``quantmatrix.cc`` and
``productquantizer.cc`` of facebookresearch/fastText 0.9.2.
"""

import mmap
import struct
from pathlib import Path
from typing import Any

from lc_assets.errors import CorruptFile

MAGIC = 793712314
VERSIONS = (11, 12)
_ENTRY_BYTES = 1 + 8 + 1
_CENTROIDS = 256


def require_whole(path: Path) -> None:
    """Refuse a file that is not a fastText model, or not a whole one.

    Raises:
        CorruptFile: names the part that is missing or impossible.
    """
    with path.open("rb") as file:
        if not path.stat().st_size:
            raise CorruptFile(f"{path}: no fastText model: the file is empty; fetch it again")
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            _Parts(content, path).walk()


class _Parts:
    """Walks over the parts of a file."""

    def __init__(self, content: mmap.mmap, path: Path) -> None:
        self.content, self.path, self.at = content, path, 0

    def walk(self) -> None:
        magic, version = self._read("<ii", "head")
        if magic != MAGIC or version not in VERSIONS:
            raise CorruptFile(f"{self.path}: has wrong file format; give a fastText model")
        dim, *_ = self._read("<12id", "head")
        n_labels = self._dictionary()
        (quantized,) = self._read("<B", "input")
        _, columns = self._matrix("input", quantized)
        (quantized_too,) = self._read("<B", "output")
        rows, output_columns = self._matrix("output", quantized and quantized_too)
        self._require(columns == output_columns == dim and rows == n_labels, "shapes")

    def _dictionary(self) -> int:
        """Skip the dictionary; its number of labels."""
        n_entries, n_words, n_labels, _, n_pruned = map(int, self._read("<iiiqq", "dictionary"))
        self._require(min(n_words, n_labels) >= 0 <= n_entries == n_words + n_labels, "dictionary")
        self._require(n_entries * _ENTRY_BYTES <= len(self.content) - self.at, "dictionary")
        find, at = self.content.find, self.at
        for _ in range(n_entries):
            at = find(b"\0", at) + _ENTRY_BYTES
            self._require(self.at < at <= len(self.content), "dictionary")
            self.at = at
        self._skip(8 * max(n_pruned, 0), "dictionary")
        return n_labels

    def _matrix(self, part: str, quantized: int) -> tuple[int, int]:
        """Skip a matrix; its shape."""
        if not quantized:
            rows, columns = self._read("<qq", part)
            self._skip(4 * rows * columns if min(rows, columns) >= 0 else -1, part)
            return rows, columns
        with_norms, rows, columns, n_codes = self._read("<Bqqi", part)
        self._skip(n_codes, part)
        self._quantizer(part)
        if with_norms:
            self._skip(rows, part)
            self._quantizer(part)
        return rows, columns

    def _quantizer(self, part: str) -> None:
        dim, *_ = self._read("<4i", part)
        self._skip(4 * _CENTROIDS * dim, part)

    def _read(self, layout: str, part: str) -> tuple[Any, ...]:
        start = self.at
        self._skip(struct.calcsize(layout), part)
        return struct.unpack_from(layout, self.content, start)

    def _skip(self, n_bytes: int, part: str) -> None:
        self._require(0 <= n_bytes <= len(self.content) - self.at, part)
        self.at += n_bytes

    def _require(self, is_right: bool, part: str) -> None:
        if not is_right:
            raise CorruptFile(
                f"{self.path}: a fastText model that is cut short or damaged ({part}); fetch it "
                "again"
            )
