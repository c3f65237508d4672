"""The phrases of concepts that `lc_assets.text.referrals.concepts.LexicalConcepts` finds."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from lc_assets.arrays import Booleans, Int64s
from lc_assets.text.referrals.concepts import LexicalConcepts, Part, choose
from lc_assets.text.referrals.phrases import (
    Grams,
    list_mentions,
    longest_around,
    number_grams,
    rank_words,
)
from lc_assets.text.referrals.referrals import Mentions
from lc_assets.text.referrals.words import Words, spelling


class FoundConcepts(NamedTuple):
    """The concepts of one text.

    Attributes:
        mentions: where they are mentioned, without distinguishing documents.
        words: of the text.
        grams: its phrases.
        concepts: int64[concept], the number of each concept's phrase.
        named: bool[concept], which are names.
    """

    mentions: Mentions
    words: Words
    grams: Grams
    concepts: Int64s
    named: Booleans


def find(finder: LexicalConcepts, text: str, parts: Sequence[Part] = ()) -> FoundConcepts:
    """The concepts with their phrases, by the steps of `LexicalConcepts.mentions`."""
    words = finder._reader.read(text, [part.start for part in parts[1:]])
    grams = number_grams(words)
    named, chosen = choose(words, grams, rank_words(words), finder._top)
    mentions = Mentions(words.n_sentences, *list_mentions(words, grams, chosen, named))
    around = longest_around(grams, chosen)
    concepts = np.flatnonzero(chosen & (around == np.arange(len(chosen))))
    return FoundConcepts(mentions, words, grams, concepts, named[concepts])


def phrase(text: str, found: FoundConcepts, concept: int) -> str:
    """A concept as it is compared."""
    gram = found.concepts[concept]
    first, size = found.grams.first[gram], found.grams.sizes[gram]
    kinds = found.words.words[first : first + size]
    return " ".join(spelling(text, *span) for span in found.words.spellings[kinds].tolist())


def by_phrase(text: str, found: FoundConcepts) -> dict[str, list[int]]:
    """Sentences by concept."""
    ends = found.mentions.ends.tolist()
    return {
        phrase(text, found, number): found.mentions.sentences[
            ends[number] : ends[number + 1]
        ].tolist()
        for number in range(len(ends) - 1)
    }
