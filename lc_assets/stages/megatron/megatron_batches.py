"""What `lc_assets.stages.megatron.megatron_writing` does per document: collecting ids, and asking the twin
now and then.
"""

from types import TracebackType
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from lc_assets.errors import BadInput
from lc_assets.formats.megatron import MegatronWriter
from lc_assets.randomness import rng_for
from lc_assets.tokens.tokenizers import Tokenizer, disagreement

MOST_IDS: Final = 1 << 22
"""A batch of so many ids is written even when it has too few documents: 8 or 16 MiB."""
CHECKED_CHARS: Final = 20_000
"""Length of a beginning that the twin tokenizes too: 1.3 ms."""


class TwinDiffers(Exception):
    """The twin gave other ids for the beginning of a document; what was written of the file
    goes.
    """


class Batch:
    """Collects documents and writes them together: one cast, one range check, one write."""

    def __init__(self, writer: MegatronWriter, n_documents: int, *, eod: int | None) -> None:
        self._writer, self._most = writer, n_documents
        self._eod = (
            None
            if eod is None
            else np.array([eod], np.int64 if eod < 0 else np.min_scalar_type(eod))
        )
        self._parts, self._lengths, self._n_ids = list[NDArray[Any]](), list[int](), 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None
    ) -> None:
        if kind is None:
            self.flush()

    def add(self, ids: NDArray[Any]) -> None:
        """Add the ids of one document, at least one, and the end of document where one is
        wanted.
        """
        self._parts.append(ids)
        if self._eod is not None:
            self._parts.append(self._eod)
        length = len(ids) + (self._eod is not None)
        self._lengths.append(length)
        self._n_ids += length
        if len(self._lengths) >= self._most or self._n_ids >= MOST_IDS:
            self.flush()

    def flush(self) -> None:
        """Write what was collected.

        Raises:
            Mismatch: when an id does not fit the data set's dtype.
        """
        self._writer.add_documents(self._parts, self._lengths)
        self._parts, self._lengths, self._n_ids = [], [], 0


class SpotCheck:
    """Compares the fast tokenizer with its twin on the beginnings of some documents of a file.

    One in each of 1, 2 to 3, 4 to 7, 8 to 15, ... is drawn, so that the length of the file need not
    be known: twenty of a million, ten of a thousand.
    """

    def __init__(self, fast: Tokenizer, twin: Tokenizer, *, key: str) -> None:
        self._fast, self._twin = fast, twin
        self._rng = rng_for("spot check", seed=0, key=key)
        self._seen, self._chosen, self._octave_end = 0, 1, 1

    def see(self, text: str) -> None:
        """Look at the file's next document.

        Raises:
            TwinDiffers: when it was drawn, and the twin gives other ids.
        """
        self._seen += 1
        if self._seen == self._chosen:
            try:
                different = disagreement(self._fast, self._twin, [text], head_chars=CHECKED_CHARS)
            except BadInput:  # one of them gives up on such a text: nothing to compare
                different = None
            if different:
                raise TwinDiffers
        if self._seen == self._octave_end:
            begin, self._octave_end = self._octave_end + 1, 2 * self._octave_end + 1
            self._chosen = int(self._rng.integers(begin, self._octave_end + 1))
