"""Phrases of a text, what they weigh, and where they are mentioned: the plain way, oracle of
`lc_assets.text.kernels.concepts`.

Here: numbering phrases, ranking words, listing mentions. Not here: reading words
    (`lc_assets.text.concept_words`), choosing
concepts (`lc_assets.text.concepts`).

A **phrase** is one to three words of a run; phrases overlap. Words are ranked by TextRank: PageRank
over the graph in which words of a sentence are joined that stand at most `WINDOW` - 1 words apart,
stop words not counted, once per time they do. Ranks are whole numbers, of which `ONE` is the mean:
sums of them do not depend on their order, so that the same sentences in any order, on any machine,
have the same ranks to the last digit.

Source: "TextRank: Bringing Order into Text" (Mihalcea and Tarau, 2004), with its damping and its
    undirected graph.
"""

from collections import defaultdict
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from lc_assets.text.concept_words import CAPITAL, INITIAL, JOINED, Words

WINDOW: Final = 3
ONE: Final = 1 << 28
ROUNDS: Final = 20
DAMPING: Final = (17, 20)
NEAR_SENTENCES: Final = 3
"""So many sentences back a pronoun looks for a name."""


@dataclass(frozen=True, slots=True, eq=False)
class Grams:
    """The phrases of a text. The first are single words, numbered as in `Words`; the others follow
    as they appear.

    Attributes:
        left: int32[phrases of two or three words], the phrase that such a one goes on from.
        right: int32[phrases of two or three words], the word that it adds.
        pairs: int32[n], the phrase of two words that begins at each word, or -1.
        triples: int32[n], the one of three.
        uses: int32[phrase], how often it stands where a capital says something.
        capitals: int32[phrase], how often all its words have one there.
    """

    left: NDArray[np.int32]
    right: NDArray[np.int32]
    pairs: NDArray[np.int32]
    triples: NDArray[np.int32]
    uses: NDArray[np.int32]
    capitals: NDArray[np.int32]


def number_grams(words: Words) -> Grams:
    """Number the phrases."""
    n_kinds, n_words = len(words.weights), len(words.words)
    numbers: dict[tuple[int, int], int] = {}
    pairs, triples = np.full(n_words, -1, np.int32), np.full(n_words, -1, np.int32)
    uses, capitals = defaultdict[int, int](int), defaultdict[int, int](int)
    for place, word in enumerate(words.words.tolist()):
        gram, capital = word, True
        for further in range(3):
            if place + further >= n_words or (
                further and not words.flags[place + further] & JOINED
            ):
                break
            if further:
                key = (gram, int(words.words[place + further]))
                gram = numbers.setdefault(key, n_kinds + len(numbers))
                (pairs if further == 1 else triples)[place] = gram
            capital = capital and bool(words.flags[place + further] & CAPITAL)
            if not words.flags[place] & INITIAL:
                uses[gram] += 1
                capitals[gram] += capital
    left, right = np.array(list(numbers), np.int32).reshape(-1, 2).T
    every = range(n_kinds + len(numbers))
    return Grams(
        left,
        right,
        pairs,
        triples,
        *(np.array([of[gram] for gram in every], np.int32) for of in (uses, capitals)),
    )


def rank_words(words: Words) -> NDArray[np.int64]:
    """Rank the kinds of words; int64[word kind], `ONE` on average."""
    n_kinds = len(words.weights)
    joined = [
        (words.words[:-apart][same], words.words[apart:][same])
        for apart in range(1, WINDOW)
        for same in [
            (words.sentences[:-apart] == words.sentences[apart:])
            & (words.words[:-apart] != words.words[apart:])
        ]
    ]
    source = np.concatenate([part for one, other in joined for part in (one, other)])
    target = np.concatenate([part for one, other in joined for part in (other, one)])
    degrees = np.bincount(source, minlength=n_kinds)
    ranks = np.full(n_kinds, ONE, np.int64)
    for _ in range(ROUNDS):
        shares = ranks // np.maximum(degrees, 1)
        sums = np.zeros(n_kinds, np.int64)
        np.add.at(sums, target, shares[source])
        ranks = ONE * (DAMPING[1] - DAMPING[0]) // DAMPING[1] + sums * DAMPING[0] // DAMPING[1]
    return ranks


def list_mentions(
    words: Words,
    grams: Grams,
    chosen: NDArray[np.bool_],
    named: NDArray[np.bool_],
    *,
    nearest: bool,
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """List where the chosen phrases are mentioned.

    Args:
        words: of the text.
        grams: its phrases.
        chosen: bool[phrase], which are concepts.
        named: bool[phrase], which are names.
        nearest: whether a pronoun mentions the word of a name that stands last before it, at most
            `NEAR_SENTENCES` back and in the same part of the text.

    Returns:
        Sentences and ends as in `lc_assets.text.referrals.Mentions`; concepts in the order of their
        phrases' numbers.
    """
    sentences_of: dict[int, list[int]] = {int(gram): [] for gram in np.flatnonzero(chosen)}
    behind = defaultdict[int, list[int]](list)
    for place, sentence in zip(
        words.pronouns.tolist(), words.pronoun_sentences.tolist(), strict=True
    ):
        behind[place].append(sentence)
    name, name_said = -1, 0
    for place in range(len(words.words) + 1):
        for sentence in behind[place] if nearest else ():
            is_near = (
                sentence - name_said <= NEAR_SENTENCES
                and words.parts[name_said] == words.parts[sentence]
            )
            if is_near and name in sentences_of:
                sentences_of[name].append(sentence)
        if place == len(words.words):
            break
        word, said = int(words.words[place]), int(words.sentences[place])
        for gram in (word, int(grams.pairs[place]), int(grams.triples[place])):
            if gram in sentences_of:
                sentences_of[gram].append(said)
        if named[word]:
            name, name_said = word, said
    flat = [sentence for found in sentences_of.values() for sentence in found]
    return np.array(flat, np.int32), np.cumsum(
        [0, *map(len, sentences_of.values())], dtype=np.int64
    )
