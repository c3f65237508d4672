"""What is known of a vocabulary, and the reference tokenizer of one that is a file: what every kind
of file has in common.

Here: values. Not here: reading a kind of file (`formats.hugging_face`,
    `formats.sentencepiece_model`), names that stand
for one (`formats.named_tokenizers`).
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np

from lc_assets.tokens.dtypes import as_dtype, memory_dtype
from lc_assets.tokens.tokenizers import Ids, without_surrogates


@dataclass(frozen=True, slots=True, kw_only=True)
class Vocabulary:
    """What is known of a vocabulary without loading it.

    Attributes:
        name: as in the setting; of a file, its name and the beginning of its digest.
        n_ids: every id is smaller.
        eot: id of end of text, or None where it has none.
        sha256: of the file that defines it.
    """

    name: str
    n_ids: int
    eot: int | None
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VocabularyFile:
    """A file that was read: what it says, and its bytes."""

    vocabulary: Vocabulary
    content: bytes

    @classmethod
    def of(cls, path: Path, content: bytes, *, n_ids: int, eot: int | None) -> Self:
        """A file's vocabulary, named after the file and its digest, wherever it lies."""
        digest = hashlib.sha256(content).hexdigest()
        return cls(
            vocabulary=Vocabulary(
                name=f"{path.name}-{digest[:12]}", n_ids=n_ids, eot=eot, sha256=digest
            ),
            content=content,
        )


class FileTokenizer:
    """The reference program's tokenizer of a file, and the twin of the fast one.

    Args:
        vocabulary: the file's.
        encode: the program: a text without lone surrogates → its ids, nothing added before or
            after.
    """

    def __init__(self, vocabulary: Vocabulary, encode: Callable[[str], Sequence[int]]) -> None:
        self._vocabulary, self._encode = vocabulary, encode
        self._dtype = memory_dtype(vocabulary.n_ids)

    @property
    def name(self) -> str:
        """Name of the vocabulary."""
        return self._vocabulary.name

    @property
    def vocab_size(self) -> int:
        """Number of ids."""
        return self._vocabulary.n_ids

    @property
    def eot(self) -> int | None:
        """Id of end of text, or None."""
        return self._vocabulary.eot

    def encode(self, text: str) -> Ids:
        """Ids of a text."""
        return as_dtype(np.array(self._encode(without_surrogates(text)), np.uint32), self._dtype)
