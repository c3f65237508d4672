"""Phrases of a text, their ranks, and where they are mentioned.

A **phrase** is one to three words of a run; phrases overlap. Words are ranked by TextRank: PageRank
over the graph that joins words of a sentence at most two words apart, stop words not counted, once
per occurrence. Ranks are integers with mean `ONE`: their sums do not depend on the order, so the
same sentences in any order, on any machine, have the same ranks to the last digit.

Source: "TextRank: Bringing Order into Text" (Mihalcea and Tarau, 2004), with its damping and its
undirected graph.
"""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lc_assets.compiling import compiled, inlined
from lc_assets.text.hashing import absorb, bits_of, hash_seed, slot_of, whole
from lc_assets.text.referrals.words import CAPITAL, INITIAL, JOINED, Words

ONE: Final = 1 << 28
ROUNDS: Final = 20
DAMPING: Final = (17, 20)
NEAR_SENTENCES: Final = 3
"""How many sentences back a pronoun can refer."""


class Grams(NamedTuple):
    """The phrases of a text: first single words, numbered as in `Words`, then the others in the
    order of first occurrence.

    Attributes:
        left: int32[phrases of two or three words], the phrase that it extends.
        right: int32[phrases of two or three words], the word that it adds.
        pairs: int32[n], the phrase of two words that begins at each word, or -1.
        triples: int32[n], the one of three.
        uses: int32[phrase], its occurrences where a capital is informative.
        capitals: int32[phrase], those where all its words have one.
    """

    left: NDArray[np.int32]
    right: NDArray[np.int32]
    pairs: NDArray[np.int32]
    triples: NDArray[np.int32]
    uses: NDArray[np.int32]
    capitals: NDArray[np.int32]


_NUMBER: Final = np.uint64(0xFFFFFFFF)
_TAG: Final = np.uint64(0xFFFFFFFF00000000)
_KEPT, _OUT_OF = DAMPING
_BASE: Final = ONE * (_OUT_OF - _KEPT) // _OUT_OF


@inlined
def _number(
    one: int, other: int, seed: np.uint64, n_bits: int, n_found: int,
    slots: NDArray[np.uint64], left: NDArray[np.int32], right: NDArray[np.int32],
) -> int:  # fmt: skip
    """Index of a phrase among those of two and three words; a new one is added at ``n_found``."""
    state = absorb(absorb(seed, np.uint64(one)), np.uint64(other))
    tag = state & _TAG
    slot = slot_of(state, n_bits)
    mask = slots.size - 1
    found = -1
    while slots[slot]:
        if slots[slot] & _TAG == tag:
            number = whole(slots[slot] & _NUMBER) - 1
            if left[number] == one and right[number] == other:
                found = number
                break
        slot = (slot + 1) & mask
    if found < 0:
        slots[slot] = tag | np.uint64(n_found + 1)
        left[n_found], right[n_found] = one, other
        found = n_found
    return found


@compiled
def _number_grams(words: Words, seed: np.uint64, slots: NDArray[np.uint64], grams: Grams) -> int:
    """Number the phrases.

    Args:
        words: of the text.
        seed: of hashes.
        slots: zeros, at least twice as many as phrases, a power of two.
        grams: filled; ``uses`` and ``capitals`` must be zeros.

    Returns:
        How many phrases of two and of three words there are.
    """
    left, right, pairs, triples, uses, capitals = grams
    kinds, flags, n_kinds = words.words, words.flags, len(words.weights)
    n_bits = bits_of(slots.size)
    n_words, n_found = len(kinds), 0
    for place in range(n_words):
        word, flag = kinds[place], flags[place]
        counted = np.int32(1 - (flag & INITIAL) // INITIAL)
        capital = np.int32((flag & CAPITAL) // CAPITAL) & counted
        uses[word] += counted
        capitals[word] += capital
        pairs[place] = triples[place] = -1
        if place + 1 == n_words or not flags[place + 1] & JOINED:
            continue
        number = _number(word, kinds[place + 1], seed, n_bits, n_found, slots, left, right)
        n_found += number == n_found
        pair = n_kinds + number
        pairs[place] = pair
        capital &= np.int32((flags[place + 1] & CAPITAL) // CAPITAL)
        uses[pair] += counted
        capitals[pair] += capital
        if place + 2 == n_words or not flags[place + 2] & JOINED:
            continue
        number = _number(pair, kinds[place + 2], seed, n_bits, n_found, slots, left, right)
        n_found += number == n_found
        triples[place] = n_kinds + number
        uses[n_kinds + number] += counted
        capitals[n_kinds + number] += capital & np.int32((flags[place + 2] & CAPITAL) // CAPITAL)
    return n_found


@compiled
def _rank_words(
    words: NDArray[np.int32], sentences: NDArray[np.int32], n_kinds: int
) -> NDArray[np.int64]:
    """Rank the kinds of words; int64[word kind]."""
    n_words = len(words)
    degrees = np.zeros(n_kinds, np.int64)
    for place in range(n_words):
        for further in (place + 1, place + 2):
            if (
                further < n_words
                and sentences[further] == sentences[place]
                and words[further] != words[place]
            ):
                degrees[words[place]] += 1
                degrees[words[further]] += 1
    for kind in range(n_kinds):
        degrees[kind] = max(degrees[kind], 1)
    ranks, sums, shares = (
        np.full(n_kinds, ONE, np.int64),
        np.empty(n_kinds, np.int64),
        np.empty(n_kinds, np.int64),
    )
    for _ in range(ROUNDS):
        for kind in range(n_kinds):
            shares[kind] = ranks[kind] // degrees[kind]
            sums[kind] = 0
        for place in range(n_words):
            word = words[place]
            for further in (place + 1, place + 2):
                if further < n_words and sentences[further] == sentences[place]:
                    other = words[further]
                    if other != word:
                        sums[word] += shares[other]
                        sums[other] += shares[word]
        for kind in range(n_kinds):
            ranks[kind] = _BASE + sums[kind] * _KEPT // _OUT_OF
    return ranks


@compiled
def _list_mentions(
    found_words: Words,
    grams: Grams,
    concepts: NDArray[np.int32],
    named: NDArray[np.bool_],
    n_concepts: int,
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """List where concepts are mentioned.

    Args:
        found_words: of the text.
        grams: its phrases.
        concepts: int32[phrase], number of the concept that it is, or -1.
        named: bool[phrase].
        n_concepts: how many there are.
    """
    words, sentences, parts = found_words.words, found_words.sentences, found_words.parts
    pronouns, pronoun_sentences = found_words.pronouns, found_words.pronoun_sentences
    pairs, triples = grams.pairs, grams.triples
    n_words, n_pronouns = len(words), len(pronouns)
    # Phase 1: count each concept's mentions, and resolve pronouns.
    ends = np.zeros(n_concepts + 1, np.int64)
    meant = np.empty(n_pronouns, np.int32)
    latest, latest_sentence, pronoun = -1, 0, 0
    for place in range(n_words + 1):
        while pronoun < n_pronouns and pronouns[pronoun] == place:
            sentence = pronoun_sentences[pronoun]
            meant[pronoun] = -1
            if (
                latest >= 0
                and sentence - latest_sentence <= NEAR_SENTENCES
                and parts[latest_sentence] == parts[sentence]
            ):
                meant[pronoun] = concepts[latest]
                if concepts[latest] >= 0:
                    ends[concepts[latest] + 1] += 1
            pronoun += 1
        if place == n_words:
            break
        word = words[place]
        if concepts[word] >= 0:
            ends[concepts[word] + 1] += 1
        if pairs[place] >= 0 and concepts[pairs[place]] >= 0:
            ends[concepts[pairs[place]] + 1] += 1
        if triples[place] >= 0 and concepts[triples[place]] >= 0:
            ends[concepts[triples[place]] + 1] += 1
        if named[word]:
            latest, latest_sentence = word, sentences[place]
    # Phase 2: write them in the same order.
    for concept in range(n_concepts):
        ends[concept + 1] += ends[concept]
    filled = ends[:-1].copy()
    found = np.empty(ends[n_concepts], np.int32)
    pronoun = 0
    for place in range(n_words + 1):
        while pronoun < n_pronouns and pronouns[pronoun] == place:
            if meant[pronoun] >= 0:
                found[filled[meant[pronoun]]] = pronoun_sentences[pronoun]
                filled[meant[pronoun]] += 1
            pronoun += 1
        if place == n_words:
            break
        sentence = sentences[place]
        for gram in (words[place], pairs[place], triples[place]):
            if gram >= 0 and concepts[gram] >= 0:
                found[filled[concepts[gram]]] = sentence
                filled[concepts[gram]] += 1
    return found, ends


def number_grams(words: Words) -> Grams:
    """Number the phrases of a text."""
    joined = words.flags[1:] & JOINED
    most = int(joined.sum()) + int((joined[1:] & joined[:-1]).sum())
    n_words, n_kinds = len(words.words), len(words.weights)
    grams = Grams(
        np.empty(most, np.int32),
        np.empty(most, np.int32),
        np.empty(n_words, np.int32),
        np.empty(n_words, np.int32),
        np.zeros(n_kinds + most, np.int32),
        np.zeros(n_kinds + most, np.int32),
    )
    slots = np.zeros(2 << most.bit_length(), np.uint64)
    n = _number_grams(words, hash_seed(), slots, grams)
    end = n_kinds + n
    return Grams(
        grams.left[:n],
        grams.right[:n],
        grams.pairs,
        grams.triples,
        grams.uses[:end],
        grams.capitals[:end],
    )


def rank_words(words: Words) -> NDArray[np.int64]:
    """Rank the kinds of words of a text; int64[word kind], `ONE` on average."""
    return _rank_words(words.words, words.sentences, len(words.weights))


def list_mentions(
    words: Words, grams: Grams, chosen: NDArray[np.bool_], named: NDArray[np.bool_]
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """List where the chosen phrases are mentioned. A pronoun mentions the word of the last name
    before it, at most `NEAR_SENTENCES` back and in the same part of the text.

    Args:
        words: of the text.
        grams: its phrases.
        chosen: bool[phrase], which are concepts.
        named: bool[phrase], which are names.

    Returns:
        Sentences and ends as in `lc_assets.text.referrals.referrals.Mentions`; concepts in the
        order of their phrases' numbers.
    """
    numbers = np.cumsum(chosen, dtype=np.int32)
    n_concepts = int(numbers[-1]) if len(numbers) else 0
    concepts = np.where(chosen, numbers - 1, np.int32(-1))
    return _list_mentions(words, grams, concepts, named, n_concepts)
