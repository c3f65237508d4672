"""Compiled phrases, ranks and mentions.

Their twin is `lc_assets.text.concept_grams`, which says what each is. Not here: reading words
(`lc_assets.text.kernels.concept_words`).
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from lc_assets.compiling import compiled, inlined
from lc_assets.text.concept_grams import DAMPING, NEAR_SENTENCES, ONE, ROUNDS
from lc_assets.text.concept_words import CAPITAL, INITIAL, JOINED
from lc_assets.text.kernels.hashing import bits_of, slot_of, stirred
from lc_assets.text.kernels.measure_words import whole

_NUMBER: Final = np.uint64(0xFFFFFFFF)
_TAG: Final = np.uint64(0xFFFFFFFF00000000)
_KEPT, _OUT_OF = DAMPING
_BASE: Final = ONE * (_OUT_OF - _KEPT) // _OUT_OF


@compiled
def count_grams(flags: NDArray[np.uint8]) -> int:
    """How many phrases of two and of three words there are, each place counted."""
    n_grams = 0
    for place in range(1, len(flags)):
        joined = flags[place] & JOINED
        n_grams += joined
        n_grams += joined & (flags[place - 1] & JOINED) if place > 1 else 0
    return n_grams


@inlined
def _number(
    one: int, other: int, seed: np.uint64, n_bits: int, n_found: int,
    slots: NDArray[np.uint64], left: NDArray[np.int32], right: NDArray[np.int32],
) -> int:  # fmt: skip
    """Place of a phrase among those of two and three words; ``n_found``, and noted there, when it
    is new.
    """
    state = stirred(stirred(seed, np.uint64(one)), np.uint64(other))
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
def number_grams(
    words: NDArray[np.int32], flags: NDArray[np.uint8], n_kinds: int, seed: np.uint64, slots: NDArray[np.uint64],
    left: NDArray[np.int32], right: NDArray[np.int32], pairs: NDArray[np.int32], triples: NDArray[np.int32],
    uses: NDArray[np.int32], capitals: NDArray[np.int32],
) -> int:  # fmt: skip
    """Number the phrases.

    Args:
        words: as in `lc_assets.text.concept_words.Words`.
        flags: as there.
        n_kinds: how many kinds of words there are.
        seed: what hashes begin with.
        slots: zeros, at least twice as many as `count_grams`, a power of two.
        left: gets what `lc_assets.text.concept_grams.Grams` holds; so do the others. Each is long
            enough; the last two are zeros.
        right: see there.
        pairs: see there.
        triples: see there.
        uses: see there.
        capitals: see there.

    Returns:
        How many phrases of two and of three words there are.
    """
    n_bits = bits_of(slots.size)
    n_words, n_found = len(words), 0
    for place in range(n_words):
        word, flag = words[place], flags[place]
        counted = np.int32(1 - (flag & INITIAL) // INITIAL)
        capital = np.int32((flag & CAPITAL) // CAPITAL) & counted
        uses[word] += counted
        capitals[word] += capital
        pairs[place] = triples[place] = -1
        if place + 1 == n_words or not flags[place + 1] & JOINED:
            continue
        number = _number(word, words[place + 1], seed, n_bits, n_found, slots, left, right)
        n_found += number == n_found
        pair = n_kinds + number
        pairs[place] = pair
        capital &= np.int32((flags[place + 1] & CAPITAL) // CAPITAL)
        uses[pair] += counted
        capitals[pair] += capital
        if place + 2 == n_words or not flags[place + 2] & JOINED:
            continue
        number = _number(pair, words[place + 2], seed, n_bits, n_found, slots, left, right)
        n_found += number == n_found
        triples[place] = n_kinds + number
        uses[n_kinds + number] += counted
        capitals[n_kinds + number] += capital & np.int32((flags[place + 2] & CAPITAL) // CAPITAL)
    return n_found


@compiled
def rank_words(
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
def list_mentions(
    words: NDArray[np.int32], sentences: NDArray[np.int32], pronouns: NDArray[np.int32], pronoun_sentences: NDArray[np.int32],
    parts: NDArray[np.int32], pairs: NDArray[np.int32], triples: NDArray[np.int32], concepts: NDArray[np.int32],
    named: NDArray[np.bool_], n_concepts: int,
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:  # fmt: skip
    """List where concepts are mentioned.

    Args:
        words: as in `lc_assets.text.concept_words.Words`.
        sentences: as there.
        pronouns: as there; empty when pronouns mention nothing.
        pronoun_sentences: as there.
        parts: as there.
        pairs: as in `lc_assets.text.concept_grams.Grams`.
        triples: as there.
        concepts: int32[phrase], number of the concept that it is, or -1.
        named: bool[phrase].
        n_concepts: how many there are.
    """
    n_words, n_pronouns = len(words), len(pronouns)
    ends = np.zeros(n_concepts + 1, np.int64)
    meant = np.empty(n_pronouns, np.int32)
    latest, said, pronoun = -1, 0, 0
    for place in range(n_words + 1):
        while pronoun < n_pronouns and pronouns[pronoun] == place:
            sentence = pronoun_sentences[pronoun]
            meant[pronoun] = -1
            if latest >= 0 and sentence - said <= NEAR_SENTENCES and parts[said] == parts[sentence]:
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
            latest, said = word, sentences[place]
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
