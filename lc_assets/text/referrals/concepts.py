"""Concepts of a text and where they are mentioned, by spelling alone: no model, no tagger.

A phrase is a **concept** when it is among the best `TOP` of its text, or a name:

- phrases are scored by the mean rank of their words; all that score as high as the last of the best
  are included, so the choice does not depend on the order of sentences;
- a **name** has capitals in at least half of the positions where a capital is informative;
- its words have at least two letters and digits, counting only words that contain a letter and
  are neither stop words nor common. So "said he" is never a concept, and a Chinese phrase has two
  or three characters.

Every occurrence of a concept is a mention, also inside a longer one, but for concepts that occur
nowhere else than inside one longer concept: these are one. "He", "she", "him", "her" and "his"
mention the nearest name before them that is not a day or month; "it" and "they" mention nothing.

A word is **common** when more than ``max_df`` of a corpus's pieces contain it, and pieces of at
least `LEAST_DOCUMENTS` documents: the hero of a novel is in all of its pieces and in no other's. A
document's pieces are `PIECE_CHARACTERS` long, about 1,000 tokens of English, at most `PIECES` of
them, evenly spaced.

Source: "Scaling Long Context Training Data by Long-Distance Referrals" (2025), section 3.1:
TextRank's best 1,000 phrases, spaCy's named entities, and chains of coreference. The differences
are in docs/referrals.md. `lc_assets.formats.spacy_concepts` is a plug-in that uses spaCy.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from lc_assets.arrays import Booleans, Int64s
from lc_assets.errors import BadInput
from lc_assets.records import frozen
from lc_assets.text.referrals.phrases import (
    MOST_WORDS,
    Grams,
    list_mentions,
    number_grams,
    rank_words,
)
from lc_assets.text.referrals.reading import WordReader
from lc_assets.text.referrals.referrals import Mentions
from lc_assets.text.referrals.words import SpecialWords, Words, spelling

PIECE_CHARACTERS = 4000
PIECES = 8
LEAST_DOCUMENTS = 8


@dataclass(slots=True)
class Background:
    """How many pieces, and how many documents, contain a word.

    Attributes:
        n_pieces: all that were counted.
        pieces: by word.
        documents: by word.
    """

    n_pieces: int = 0
    pieces: Counter[str] = field(default_factory=Counter)
    documents: Counter[str] = field(default_factory=Counter)

    def add(self, pieces: Iterable[Iterable[str]]) -> None:
        """Count a document's pieces, given the words of each."""
        found = [frozenset(words) for words in pieces]
        self.n_pieces += len(found)
        for words in found:
            self.pieces.update(words)
        self.documents.update(frozenset().union(*found))

    def common(self, max_df: float) -> frozenset[str]:
        """The words in more than this share of the pieces, and in enough documents.

        >>> each = Background()
        >>> for word in ["cat", "dog"] * 4:
        ...     each.add([["the", word]])
        >>> sorted(each.common(0.5)), sorted(each.common(1))
        (['the'], [])
        """
        least = max_df * self.n_pieces
        return frozenset(
            word
            for word, n_pieces in self.pieces.items()
            if n_pieces > least and self.documents[word] >= LEAST_DOCUMENTS
        )


def pieces_of(text: str) -> list[str]:
    """A document's pieces; of a short one the whole.

    >>> [len(piece) for piece in pieces_of("a" * 9000)], len(pieces_of("a" * 10**6))
    ([4000, 4000], 8)
    """
    n_pieces = min(PIECES, max(len(text) // PIECE_CHARACTERS, 1))
    room = len(text) - PIECE_CHARACTERS
    starts = [number * room // (n_pieces - 1) if number else 0 for number in range(n_pieces)]
    return [text[start : start + PIECE_CHARACTERS] for start in starts]


TOP = 1000
LEAST_LETTERS = 2
LONGEST = 2**30
"""Characters of the longest text: positions are 32 bits wide."""


@frozen
class Part:
    """A part of a text that begins at a character and extends to the next part; the first one
    begins with the text.

    Attributes:
        start: in characters.
        document: which document it is of, from 0; several parts may be of one.
    """

    start: int
    document: int


class Concepts(Protocol):
    """Interface of an extractor of concepts: `LexicalConcepts`, or a plug-in."""

    def mentions(self, text: str, parts: Sequence[Part] = ()) -> Mentions:
        """Where the concepts of a text are mentioned.

        Args:
            text: the text.
            parts: when given, every sentence is in one part only, and a concept of two documents is
                two concepts.
        """


class LexicalConcepts:
    """Finds concepts by spelling.

    Args:
        special: stop words, pronouns, abbreviations, common words.
        top: how many of the best phrases are concepts.
    """

    def __init__(self, special: SpecialWords, *, top: int = TOP) -> None:
        self._reader, self._top = WordReader(special), top

    def mentions(self, text: str, parts: Sequence[Part] = ()) -> Mentions:
        """See `Concepts.mentions`.

        Raises:
            BadInput: when a text is longer than `LONGEST` characters, or parts do not ascend.
        """
        starts = [part.start for part in parts[1:]]
        if len(text) > LONGEST or [0, *starts] != sorted([0, *starts]):
            raise BadInput(
                f"a text of {len(text):,} characters in {len(parts):,} parts: expected at most "
                f"{LONGEST:,}, and parts in order"
            )
        words = self._reader.read(text, starts)
        grams = number_grams(words)
        named, chosen = choose(words, grams, rank_words(words), self._top)
        found = Mentions(words.n_sentences, *list_mentions(words, grams, chosen, named))
        if not parts:
            return found
        return found.within(np.array([part.document for part in parts], np.int32)[words.parts])

    def words_in(self, text: str) -> list[str]:
        """The different words of a text that hold a letter, as they are compared; no stop words and
        no common ones.
        """
        words = self._reader.read(text)
        return [spelling(text, *span.tolist()) for span in words.spellings[words.weights > 0]]

    def word_ranks(self, text: str) -> dict[str, int]:
        """Weight of each word of a text, as it is compared;
        `lc_assets.text.referrals.phrases.ONE` on average.
        """
        words = self._reader.read(text)
        spellings, ranks = words.spellings.tolist(), rank_words(words).tolist()
        return {spelling(text, *span): rank for span, rank in zip(spellings, ranks, strict=True)}


def choose(words: Words, grams: Grams, ranks: Int64s, top: int) -> tuple[Booleans, Booleans]:
    """Determine which phrases are names, and which are concepts.

    Args:
        words: of the text.
        grams: its phrases.
        ranks: int64[word kind].
        top: how many of the best are concepts.

    Returns:
        Two of bool[phrase].
    """
    letters, sums = np.zeros((2, len(grams.sizes)), np.int64)
    for place in range(MOST_WORDS):
        longer = grams.sizes > place
        kinds = words.words[grams.first[longer] + place]
        letters[longer] += words.weights[kinds]
        sums[longer] += ranks[kinds]
    sums *= 6 // grams.sizes  # means of one, two or three ranks, times six
    tells = letters >= LEAST_LETTERS
    named = tells & (grams.uses > 0) & (2 * grams.capitals >= grams.uses)
    scores = sums[tells]
    least = np.partition(scores, -top)[-top] if len(scores) > top else 0
    return named, named | (tells & (sums >= least))
