"""Texts that are measured together, in one call of each kernel.

A call costs as much as measuring some hundred characters, and so does what surrounds it.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import accumulate
from math import isnan
from typing import TypeVar

import numpy as np

from lc_assets.arrays import Array, Bytes, Int64s
from lc_assets.compiling import borrowing
from lc_assets.text.numbering import EVERY, HIGH_BITS, eight_bytes

Document = TypeVar("Document")

CHARS_TOGETHER = 1 << 19
"""Characters of the texts that are measured together, or one text that has more."""
TEXTS_TOGETHER = 1 << 12


class Texts:
    """Some texts and their UTF-8, one behind the other.

    Attributes:
        texts: the texts.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        self.texts: Sequence[str] = tuple(texts)
        self._utf8: tuple[Bytes, Int64s] | None = None

    @property
    def utf8(self) -> tuple[Bytes, Int64s]:
        """The bytes, uint8[n], read-only, lone surrogates in three each; and after the last of each
        text, int64[texts]. Made again for every kernel where they are many.
        """
        if self._utf8 is not None:
            return self._utf8
        contents = [text.encode("utf-8", "surrogatepass") for text in self.texts]
        ends = np.fromiter(accumulate(map(len, contents)), np.int64, len(contents))
        joined = contents[0] if len(contents) == 1 else b"".join(contents)
        found = np.frombuffer(joined, np.uint8), ends
        if len(joined) <= 4 * CHARS_TOGETHER:
            self._utf8 = found
        return found

    @property
    def n_chars(self) -> Int64s:
        """Characters of each text."""
        return np.fromiter(map(len, self.texts), np.int64, len(self.texts))

    @cached_property
    def n_newlines(self) -> Int64s:
        """Newlines of each text."""
        return self.count("\n")

    def count(self, *marks: str) -> Int64s:
        """How often any of some marks occurs in each text, as `str.count` counts."""
        counts = np.zeros(len(self.texts), np.int64)
        for mark in marks:
            _count_in_each(*self.utf8, np.frombuffer(mark.encode(), np.uint8), counts)
        return counts


@borrowing
def _count_in_each(data: Bytes, ends: Int64s, mark: Bytes, counts: Int64s) -> None:
    """Add how often a mark occurs in each text, eight bytes at a time where its first is none."""
    at = 0
    first = np.uint64(mark[0]) * EVERY
    for text in range(len(ends)):
        last = ends[text] - len(mark)
        while at <= last:
            if at + 8 <= ends[text]:
                others = eight_bytes(data, at) ^ first
                if not (others - EVERY) & ~others & HIGH_BITS:
                    at += 8
                    continue
            n_equal = 0
            while n_equal < len(mark) and data[at + n_equal] == mark[n_equal]:
                n_equal += 1
            is_found = n_equal == len(mark)
            counts[text] += is_found
            at += len(mark) if is_found else 1
        at = ends[text]


def parts(data: Array, ends: Int64s) -> Iterator[Array]:
    """Views of what is of each text, one behind the other in an array, by where each ends.

    >>> [part.tolist() for part in parts(np.arange(3), np.array([1, 1, 3]))]
    [[0], [], [1, 2]]
    """
    begin = 0
    for end in ends.tolist():
        yield data[begin:end]
        begin = end


def chosen(data: Bytes, ends: Int64s, places: Sequence[int]) -> tuple[Bytes, Int64s]:
    """Some of the texts that lie one behind the other, the same way.

    >>> [array.tolist() for array in chosen(np.arange(3), np.array([1, 1, 3]), [1, 2])]
    [[1, 2], [0, 2]]
    """
    if len(places) == len(ends):
        return data, ends
    some = [part for place, part in enumerate(parts(data, ends)) if place in set(places)]
    return np.concatenate([data[:0], *some]), np.cumsum(list(map(len, some)), dtype=np.int64)


def none_for_nan(values: Iterable[float]) -> list[float | None]:
    """Values of one document, None for those that are missing."""
    return [None if isnan(value) else value for value in values]


def together(
    documents: Iterable[Document], n_chars: Callable[[Document], int], most: int = CHARS_TOGETHER
) -> Iterator[list[Document]]:
    """Split documents into those that are measured together; a long one is alone, and held by the
    caller only.

    >>> list(map(len, together([CHARS_TOGETHER, 1, 1], int)))
    [1, 2]
    """
    some: list[Document] = []
    n_some = 0
    for document in documents:
        n = n_chars(document)
        if some and (n_some + n > most or len(some) >= TEXTS_TOGETHER):
            yield some
            some, n_some = [], 0
        some.append(document)
        del document
        n_some += n
        if n_some >= most:
            yield some
            some, n_some = [], 0
    if some:
        yield some
