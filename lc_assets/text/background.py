"""Common words of a body of text: those that so many pieces of it hold that meeting them again says
nothing.

A document's **pieces** are `PIECE_CHARACTERS` long, about 1,000 tokens of English, at most `PIECES`
of them, spread evenly. A word is common when more than ``max_df`` of all pieces hold it, and pieces
of `LEAST_DOCUMENTS` documents at least: the hero of a novel is in all of its pieces, and in no
other's. With fewer documents no word is.

Here: counting pieces, and the common words. Not here: which documents are looked at
    (`lc_assets.stages.reports.referring`), what comes of a
common word (`lc_assets.text.concepts`).
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Self

from lc_assets.errors import BadInput

PIECE_CHARACTERS: Final = 4000
PIECES: Final = 8
LEAST_DOCUMENTS: Final = 8


@dataclass(frozen=True, slots=True)
class Background:
    """How many pieces, and how many documents, hold a word.

    Attributes:
        n_documents: that were looked at.
        n_pieces: of them.
        pieces: by word.
        documents: by word.
    """

    n_documents: int = 0
    n_pieces: int = 0
    pieces: Mapping[str, int] = field(default_factory=dict)
    documents: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, texts: Iterable[str], words_of: Callable[[str], Collection[str]]) -> Self:
        """Count the pieces of some documents.

        Args:
            texts: one per document.
            words_of: the different words of a text.
        """
        n_documents = n_pieces = 0
        pieces, documents = Counter[str](), Counter[str]()
        for text in texts:
            found = [frozenset(words_of(piece)) for piece in pieces_of(text)]
            n_documents += 1
            n_pieces += len(found)
            for words in found:
                pieces.update(words)
            documents.update(frozenset().union(*found))
        return cls(n_documents, n_pieces, pieces, documents)

    @classmethod
    def total(cls, parts: Iterable["Background"]) -> Self:
        """Add up what was counted in parts, whatever their order."""
        n_documents = n_pieces = 0
        pieces, documents = Counter[str](), Counter[str]()
        for part in parts:
            n_documents += part.n_documents
            n_pieces += part.n_pieces
            pieces.update(part.pieces)
            documents.update(part.documents)
        return cls(n_documents, n_pieces, pieces, documents)

    def common(self, max_df: float) -> frozenset[str]:
        """The words in more than this share of the pieces, and in enough documents.

        >>> each = Background.of(["the cat", "the dog"] * 4, str.split)
        >>> sorted(each.common(0.5)), sorted(each.common(1))
        (['the'], [])

        Raises:
            BadInput: when the share is not between 0 and 1.
        """
        if not 0 < max_df <= 1:
            raise BadInput(
                "the share of pieces that makes a word common is above 0 and at most 1, got "
                f"{max_df}"
            )
        least = max_df * self.n_pieces
        return frozenset(
            word
            for word, n_pieces in self.pieces.items()
            if n_pieces > least and self.documents[word] >= LEAST_DOCUMENTS
        )


def pieces_of(text: str) -> list[str]:
    """A document's pieces; of a short one the whole.

    >>> [len(piece) for piece in pieces_of("a" * 9000)], len(pieces_of("a" * 10**6)), pieces_of("ab")
    ([4000, 4000], 8, ['ab'])
    """
    n_pieces = min(PIECES, max(len(text) // PIECE_CHARACTERS, 1))
    room = len(text) - PIECE_CHARACTERS
    starts = [number * room // (n_pieces - 1) if number else 0 for number in range(n_pieces)]
    return [text[start : start + PIECE_CHARACTERS] for start in starts]
