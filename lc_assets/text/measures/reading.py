"""What is read of texts for measures, each thing when it is first needed."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lc_assets.arrays import Bytes, Int64s
from lc_assets.text.hashing import hash_seed
from lc_assets.text.measures.lines import LineCounts, count_lines
from lc_assets.text.measures.ngrams import GramCounts, find_unique_starts, seen_before
from lc_assets.text.measures.words import Words, WordsOfTexts, read_words
from lc_assets.text.numbering import count_grams, number_pieces
from lc_assets.text.rules.line_rules import C4, FINEWEB, REFINEDWEB, Edited, edit
from lc_assets.text.texts import Texts


@dataclass(eq=False)
class Reading:
    """Some texts, and what is read of them for measures, each thing when it is first needed.

    Attributes:
        texts: the texts.
        wholes: the texts before their lines were edited.
        urls: their addresses, which are also searched for licences.
        kind: of words.
        longest: words of the longest n-grams that are counted.
    """

    texts: Texts
    wholes: Sequence[str]
    urls: Sequence[str | None]
    kind: str
    longest: int

    @cached_property
    def words(self) -> WordsOfTexts:
        """Their words."""
        return read_words(self.texts, self.kind)

    @cached_property
    def lines(self) -> LineCounts:
        """Counts of their lines."""
        return count_lines(self.texts)

    @cached_property
    def c4(self) -> list[Edited]:
        """What C4's line editing leaves of each."""
        return [edit(whole, C4) for whole in self.wholes]

    @cached_property
    def fineweb(self) -> list[Edited]:
        """What FineWeb's line editing leaves of each."""
        return [edit(whole, FINEWEB) for whole in self.wholes]

    @cached_property
    def refinedweb(self) -> list[Edited]:
        """What RefinedWeb's line editing leaves of each."""
        return [edit(whole, REFINEDWEB) for whole in self.wholes]

    @cached_property
    def grams(self) -> list[GramCounts]:
        """Counts of n-grams, at n; int64[texts] each."""
        counts = np.array([self._grams_of(words) for words in self.words.each()])
        return [GramCounts(*counts[:, :, n].T) for n in range(self.longest + 1)]

    def _grams_of(self, words: Words) -> Int64s:
        """The four counts of one text, int64[4, longest + 1]."""
        seed, chars, starts, ends = hash_seed(), words.chars, words.ends[:-1], words.ends[1:]
        numbers, grams = np.empty(len(starts), np.int32), np.zeros((self.longest + 1, 4), np.int64)
        number_pieces(words.joined, starts, ends, seed, numbers)
        count_grams(numbers, np.bincount(numbers), chars, seed, grams)
        for n in range(self.longest + 1):
            grams[n, 3] = (chars[n:] - chars[: max(len(chars) - n, 0)]).sum()
        return grams.T

    @cached_property
    def unique_starts(self) -> list[Bytes]:
        """See `find_unique_starts`; of each."""
        found = []
        for words in self.words.each():
            found.append(np.empty(len(words.ends) - 1, np.uint8))
            find_unique_starts(words.joined, words.ends, hash_seed(), found[-1])
        return found

    def n_chars_seen(self, length: int) -> Int64s:
        """Characters of n-grams of some length that were seen before."""
        found = [
            seen_before(*words, unique, length, hash_seed())
            for words, unique in zip(self.words.each(), self.unique_starts, strict=True)
        ]
        return np.array(found, np.int64)
