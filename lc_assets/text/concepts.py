"""Concepts of a text and where they are mentioned, by spelling alone: no model, no tagger.

Here: which phrases are concepts; the door to reading and counting, compiled where there is a
    compiler. Not here: words and
sentences (`lc_assets.text.concept_words`), phrases and ranks (`lc_assets.text.concept_grams`), what
is counted (`lc_assets.text.referrals`), a plug-in that asks spaCy
(`lc_assets.formats.spacy_concepts`).

A phrase is a **concept** when it is among the best `TOP` of its text, or a name:

- phrases are scored by the mean rank of their words; all that score as high as the last of the best
  come along, so that the choice does not depend on the order of sentences;
- a **name** has capitals at half of the places or more where a capital says something;
- letters and digits of its words must be two at least, counting only words that hold a letter and
  are neither stop words nor common. So "said he" is none, whatever its rank, and a Chinese phrase
  has two characters or three.

Every occurrence of a concept is a mention, also inside a longer one. "He", "she", "him", "her" and
"his" mention the name nearest before them; "it" and "they" mention nothing.

Source: "Scaling Long Context Training Data by Long-Distance Referrals" (2025), section 3.1:
    TextRank's best 1,000 phrases, spaCy's
named entities, and chains of coreference. What differs, and why, is in docs/referrals.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from lc_assets.compiling import COMPILED
from lc_assets.errors import BadInput
from lc_assets.text.concept_grams import Grams, list_mentions, number_grams, rank_words
from lc_assets.text.concept_words import SpecialWords, Words, read_words, spelling
from lc_assets.text.referrals import Mentions

if TYPE_CHECKING:
    from lc_assets.text.kernels.concept_facade import SpecialTable

TOP: Final = 1000
LEAST_LETTERS: Final = 2
LONGEST: Final = 2**30
"""Characters of the longest text: positions are 32 bits wide."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a text that begins at a character and goes on to the next part; the first one
    begins with the text.

    Attributes:
        start: in characters.
        document: which document it is of, from 0; several parts may be of one.
    """

    start: int
    document: int


class Concepts(Protocol):
    """What finds concepts: `LexicalConcepts`, or a plug-in."""

    def mentions(self, text: str, parts: Sequence[Part] = ()) -> Mentions:
        """Where the concepts of a text are mentioned.

        Args:
            text: any.
            parts: when there are any, a sentence lies in one part alone, and a concept of two
                documents is two concepts.
        """


@dataclass(frozen=True, slots=True, eq=False)
class FoundConcepts:
    """The concepts of one text.

    Attributes:
        text: itself.
        mentions: where they are mentioned, not told apart by documents.
        words: of the text.
        grams: its phrases.
        concepts: int64[concept], the number of each concept's phrase.
        named: bool[concept], which are names.
    """

    text: str
    mentions: Mentions
    words: Words
    grams: Grams
    concepts: NDArray[np.int64]
    named: NDArray[np.bool_]

    def phrase(self, concept: int) -> str:
        """A concept as it is compared."""
        numbers, gram, n_kinds = list[int](), int(self.concepts[concept]), len(self.words.weights)
        while gram >= n_kinds:
            numbers.append(int(self.grams.right[gram - n_kinds]))
            gram = int(self.grams.left[gram - n_kinds])
        return " ".join(
            spelling(self.text, *self.words.spellings[number].tolist())
            for number in [gram, *reversed(numbers)]
        )

    def by_phrase(self) -> dict[str, list[int]]:
        """Sentences by concept."""
        ends = self.mentions.ends.tolist()
        return {
            self.phrase(number): self.mentions.sentences[ends[number] : ends[number + 1]].tolist()
            for number in range(len(ends) - 1)
        }


class LexicalConcepts:
    """Finds concepts by spelling.

    Attributes:
        special: stop words, pronouns, abbreviations, common words.
        top: how many of the best phrases are concepts.
        pronouns: ``nearest``: they mention the name before them; ``none``: they mention nothing.

    With ``plain`` nothing compiled is used: the same, some thirty times slower.
    """

    def __init__(
        self,
        special: SpecialWords,
        *,
        top: int = TOP,
        pronouns: Literal["nearest", "none"] = "nearest",
        plain: bool = False,
    ) -> None:
        if top < 1:
            raise BadInput(f"top must be at least 1, got {top}")
        self.special, self.top, self.pronouns = special, top, pronouns
        self._plain = plain
        self._table: SpecialTable | None = None

    def mentions(self, text: str, parts: Sequence[Part] = ()) -> Mentions:
        """See `Concepts.mentions`.

        Raises:
            BadInput: when a text is longer than `LONGEST` characters, or parts do not ascend.
        """
        found = self.find(text, parts)
        if not parts:
            return found.mentions
        return found.mentions.within(
            np.array([part.document for part in parts], np.int32)[found.words.parts]
        )

    def find(self, text: str, parts: Sequence[Part] = ()) -> FoundConcepts:
        """The concepts with their names.

        Raises:
            BadInput: as `mentions`.
        """
        starts = [part.start for part in parts[1:]]
        if len(text) > LONGEST or any(
            one > other for one, other in zip([0, *starts], starts, strict=False)
        ):
            raise BadInput(
                f"a text of {len(text):,} characters in {len(parts):,} parts: wanted at most "
                f"{LONGEST:,}, and parts in order"
            )
        ways = self._ways()
        words = ways.read_words(text, starts)
        grams = ways.number_grams(words)
        named, chosen = choose(words.weights, grams, ways.rank_words(words), self.top)
        sentences, ends = ways.list_mentions(
            words, grams, chosen, named, nearest=self.pronouns == "nearest"
        )
        concepts = np.flatnonzero(chosen)
        return FoundConcepts(
            text,
            Mentions(words.n_sentences, sentences, ends),
            words,
            grams,
            concepts,
            named[concepts],
        )

    def words_in(self, text: str) -> list[str]:
        """The different words of a text that hold a letter, as they are compared; no stop words and
        no common ones.
        """
        words = self._ways().read_words(text, ())
        return [spelling(text, *place.tolist()) for place in words.spellings[words.weights > 0]]

    def word_ranks(self, text: str) -> dict[str, int]:
        """What each word of a text weighs, as it is compared; `lc_assets.text.concept_grams.ONE` on
        average.
        """
        ways = self._ways()
        words = ways.read_words(text, ())
        places, ranks = words.spellings.tolist(), ways.rank_words(words).tolist()
        return {spelling(text, *place): rank for place, rank in zip(places, ranks, strict=True)}

    def _ways(self) -> Any:
        return self._compiled() if COMPILED and not self._plain else _PlainWays(self.special)

    def _compiled(self) -> "SpecialTable":
        if self._table is None:
            # Numba takes half a second.
            from lc_assets.text.kernels.concept_facade import special_table  # noqa: PLC0415

            self._table = special_table(self.special)
        return self._table


@dataclass(frozen=True, slots=True)
class _PlainWays:
    """The oracle of the compiled ways, and their stand-in."""

    special: SpecialWords

    def read_words(self, text: str, starts: Sequence[int]) -> Words:
        return read_words(text, self.special, starts)

    number_grams = staticmethod(number_grams)
    rank_words = staticmethod(rank_words)
    list_mentions = staticmethod(list_mentions)


def choose(
    weights: NDArray[np.uint8], grams: Grams, ranks: NDArray[np.int64], top: int
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Say which phrases are names, and which are concepts.

    Args:
        weights: uint8[word kind], as in `lc_assets.text.concept_words.Words`.
        grams: the text's phrases.
        ranks: int64[word kind].
        top: how many of the best are concepts.

    Returns:
        Two of bool[phrase].
    """
    n_kinds = len(weights)
    right = grams.right
    from_words = grams.left < n_kinds
    first = np.where(
        from_words, 0, grams.left
    )  # what a phrase of three goes on from stands before it
    letters, sums = (
        np.append(weights, np.zeros(len(right), np.uint8)),
        np.append(ranks, np.zeros(len(right), np.int64)),
    )
    pairs = n_kinds + np.flatnonzero(from_words)
    triples = n_kinds + np.flatnonzero(~from_words)
    for of in (letters, sums):
        of[pairs] = of[grams.left[from_words]] + of[right[from_words]]
        of[triples] = of[first[~from_words]] + of[right[~from_words]]
    sums[:n_kinds] *= 6
    sums[pairs] *= 3
    sums[triples] *= 2
    tells = letters >= LEAST_LETTERS
    named = tells & (grams.uses > 0) & (2 * grams.capitals >= grams.uses)
    scores = sums[tells]
    least = np.partition(scores, -top)[-top] if len(scores) > top else 0
    return named, named | (tells & (sums >= least))
