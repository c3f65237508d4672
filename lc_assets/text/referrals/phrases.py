"""Phrases of a text, their ranks, and where they are mentioned.

A **phrase** is one to three words of a run; phrases overlap. Words are ranked by TextRank: PageRank
over the graph that joins words of a sentence at most two words apart, stop words not counted, once
per occurrence. Ranks are integers with mean `ONE`: their sums do not depend on the order, so the
same sentences in any order, on any machine, have the same ranks to the last digit.

Source: "TextRank: Bringing Order into Text" (Mihalcea and Tarau, 2004), with its damping and its
undirected graph.
"""

from typing import NamedTuple

import numpy as np

from lc_assets.arrays import Booleans, Int32s, Int64s
from lc_assets.compiling import compiled
from lc_assets.text.referrals.words import CAPITAL, DATE, INITIAL, JOINED, Words

ONE = 1 << 28
ROUNDS = 20
DAMPING = (17, 20)
NEAR_SENTENCES = 3
"""How many sentences back a pronoun can refer."""
MOST_WORDS = 3
"""Of a phrase."""


class Grams(NamedTuple):
    """The phrases of a text, those of one word first, then those of two and of three.

    Attributes:
        at: int32[3, n], the phrase of one, two and three words that begins at each word, or -1.
        first: int64[phrase], the word at which it begins first.
        sizes: int64[phrase], how many words it has.
        uses: int64[phrase], its occurrences where a capital is informative.
        capitals: int64[phrase], those where all its words have one.
    """

    at: Int32s
    first: Int64s
    sizes: Int64s
    uses: Int64s
    capitals: Int64s


_KEPT, _OUT_OF = DAMPING
_BASE = ONE * (_OUT_OF - _KEPT) // _OUT_OF


@compiled
def _rank_words(words: Int32s, sentences: Int32s, n_kinds: int) -> Int64s:
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


def number_grams(words: Words) -> Grams:
    """Number the phrases of a text."""
    n_words, n_kinds = len(words.words), len(words.weights)
    at = np.full((MOST_WORDS, n_words), -1, np.int32)
    places, number = np.arange(n_words), np.zeros(n_words, np.int64)
    all_capitals = np.ones(n_words, np.bool_)
    found: list[tuple[Int64s, ...]] = []
    n_found = 0
    for size in range(1, MOST_WORDS + 1):
        last = places + size - 1
        all_capitals &= (words.flags[last] & CAPITAL) > 0
        keys = number * n_kinds + words.words[last]
        kinds, first, number = np.unique(keys, return_index=True, return_inverse=True)
        counted = (words.flags[places] & INITIAL) == 0
        uses, capitals = (
            np.bincount(number[which], minlength=len(kinds))
            for which in (counted, counted & all_capitals)
        )
        found.append((places[first], np.full(len(kinds), size), uses, capitals))
        at[size - 1, places] = n_found + number
        n_found += len(kinds)
        longer = np.append(words.flags, 0)[places + size] & JOINED > 0
        places, number, all_capitals = places[longer], number[longer], all_capitals[longer]
    return Grams(at, *(np.concatenate(parts) for parts in zip(*found, strict=True)))


def rank_words(words: Words) -> Int64s:
    """Rank the kinds of words of a text; int64[word kind], `ONE` on average."""
    return _rank_words(words.words, words.sentences, len(words.weights))


def longest_around(grams: Grams, chosen: Booleans) -> Int64s:
    """int64[phrase]: the longest chosen phrase that each is a part of wherever it occurs, or
    itself.
    """
    n_uses = np.bincount(grams.at[grams.at >= 0], minlength=len(chosen))
    around = np.arange(len(chosen))
    for size in range(2, MOST_WORDS + 1):
        starts = np.flatnonzero(grams.at[size - 1] >= 0)
        starts = starts[chosen[grams.at[size - 1, starts]]]
        longer = grams.at[size - 1, starts]
        for part_size in range(1, size):
            for offset in range(size - part_size + 1):
                parts = grams.at[part_size - 1, starts + offset]
                same = n_uses[parts] == n_uses[longer]
                around[parts[same]] = longer[same]
    return around


def list_mentions(
    words: Words, grams: Grams, chosen: Booleans, named: Booleans
) -> tuple[Int32s, Int64s]:
    """List where the chosen phrases are mentioned. One that only occurs within a longer one is not
    counted beside it. A pronoun mentions the word of the last name
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
    around = longest_around(grams, chosen)
    chosen = chosen & (around == np.arange(len(chosen)))
    names = np.flatnonzero(named[grams.at[0]] & (words.flags & DATE == 0))
    before = np.searchsorted(names, words.pronouns)  # how many names come before each pronoun
    meant, pronouns = names[before[before > 0] - 1], words.pronoun_sentences[before > 0]
    near = pronouns - words.sentences[meant] <= NEAR_SENTENCES
    near &= words.parts[pronouns] == words.parts[words.sentences[meant]]
    concepts = np.cumsum(chosen) - 1
    found = []
    for mentioned, sentences in (
        *((at, words.sentences) for at in grams.at),
        (around[grams.at[0, meant[near]]], pronouns[near]),
    ):
        counted = (mentioned >= 0) & chosen[mentioned]
        found.append(concepts[mentioned[counted]] * words.n_sentences + sentences[counted])
    keys = np.concatenate(found)
    del found
    keys.sort()
    sentences = (keys % max(words.n_sentences, 1)).astype(np.int32)
    keys //= max(words.n_sentences, 1)
    n_mentions = np.bincount(keys, minlength=int(chosen.sum()))
    return sentences, np.append(0, np.cumsum(n_mentions))
