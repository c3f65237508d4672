"""From a text to the arrays that the kernels of concepts take, and back.

Here: memory. It is bounded by some forty bytes per character, whatever the text. Not here: the
    loops
(`lc_assets.text.kernels.concept_words`, `lc_assets.text.kernels.concepts`).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lc_assets.text.concept_grams import Grams
from lc_assets.text.concept_words import SpecialWords, Words
from lc_assets.text.kernels import concept_words, concepts
from lc_assets.text.kernels.hashing import WordSet, hash_seed, word_set

_NONE = np.empty(0, np.int32)


@dataclass(frozen=True, slots=True, eq=False)
class SpecialTable:
    """Special words to be looked up, and the compiled ways.

    Attributes:
        words: the words.
        kinds: uint8, bits of each.
    """

    words: WordSet
    kinds: NDArray[np.uint8]

    def read_words(self, text: str, part_starts: Sequence[int] = ()) -> Words:
        """See `lc_assets.text.concept_words.read_words`."""
        codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
        kinds, spelt = np.empty(len(codes), np.uint8), np.empty(len(codes), np.uint32)
        most = concept_words.classify(
            codes, concept_words.class_table(), concept_words.fold_table(), kinds, spelt
        )
        words, sentences, pronouns, pronoun_sentences, parts = (
            np.empty(most, np.int32) for _ in range(5)
        )
        flags = np.empty(most, np.uint8)
        special = self.words
        n_bits = max(
            8, (most // 4).bit_length()
        )  # of most texts a quarter of the words is different
        while True:
            room = 1 << (n_bits - 1)
            spellings, weights, bits = (
                np.empty((room, 2), np.int64),
                np.empty(room, np.uint8),
                np.empty(room, np.uint8),
            )
            n_words, n_pronouns, n_sentences, n_kinds = concept_words.read(
                kinds, spelt, hash_seed(), special.slots, special.hashes, special.places, special.codes, self.kinds,
                np.array(part_starts, np.int64), words, sentences, flags, pronouns, pronoun_sentences, parts,
                np.zeros(1 << n_bits, np.uint64), spellings, weights, bits,
            )  # fmt: skip
            if n_words >= 0:
                break
            n_bits += 2
        return Words(
            n_sentences=n_sentences,
            spellings=spellings[:n_kinds],
            weights=weights[:n_kinds],
            words=words[:n_words],
            sentences=sentences[:n_words],
            flags=flags[:n_words],
            pronouns=pronouns[:n_pronouns],
            pronoun_sentences=pronoun_sentences[:n_pronouns],
            parts=parts[:n_sentences],
        )

    @staticmethod
    def number_grams(words: Words) -> Grams:
        """See `lc_assets.text.concept_grams.number_grams`."""
        most, n_words, n_kinds = (
            concepts.count_grams(words.flags),
            len(words.words),
            len(words.weights),
        )
        left, right = np.empty(most, np.int32), np.empty(most, np.int32)
        pairs, triples = np.empty(n_words, np.int32), np.empty(n_words, np.int32)
        uses, capitals = np.zeros(n_kinds + most, np.int32), np.zeros(n_kinds + most, np.int32)
        slots = np.zeros(2 << most.bit_length(), np.uint64)
        n_grams = concepts.number_grams(
            words.words, words.flags, n_kinds, hash_seed(), slots, left, right, pairs, triples, uses, capitals
        )  # fmt: skip
        end = n_kinds + n_grams
        return Grams(left[:n_grams], right[:n_grams], pairs, triples, uses[:end], capitals[:end])

    @staticmethod
    def rank_words(words: Words) -> NDArray[np.int64]:
        """See `lc_assets.text.concept_grams.rank_words`."""
        return concepts.rank_words(words.words, words.sentences, len(words.weights))

    @staticmethod
    def list_mentions(
        words: Words,
        grams: Grams,
        chosen: NDArray[np.bool_],
        named: NDArray[np.bool_],
        *,
        nearest: bool,
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """See `lc_assets.text.concept_grams.list_mentions`."""
        numbers = np.cumsum(chosen, dtype=np.int32)
        n_concepts = int(numbers[-1]) if len(numbers) else 0
        return concepts.list_mentions(
            words.words, words.sentences, words.pronouns if nearest else _NONE, words.pronoun_sentences if nearest else _NONE,
            words.parts, grams.pairs, grams.triples, np.where(chosen, numbers - 1, np.int32(-1)), named, n_concepts,
        )  # fmt: skip


def special_table(special: SpecialWords) -> SpecialTable:
    """Make the table of some special words."""
    kinds = special.kinds()
    return SpecialTable(word_set(list(kinds)), np.array(list(kinds.values()), np.uint8))
