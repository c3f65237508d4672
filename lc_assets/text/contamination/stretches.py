"""Stretches of a document that resemble an item: n-grams of one item that lie close together.

Of an item of which one word is changed, 13-grams leave nothing where fewer than 13 words are on
either side; 4-grams leave all words but at most four. Single 4-grams are common, so only those
count that follow each other, at most `MOST_MISSED` n-grams apart, and a stretch covers at least as
many words, of the item and of the document, as a whole item must have.

A stretch's share is that of the item's words that its n-grams cover. With ``weighted`` each word
counts by its inverse document frequency among the items, ``ln((items + 1) / items with it)``, so
that what questions have in common ("which of the following is") counts little.

Source: the weights and the distance are those of AI2's decon (``doc/simple.md`` and
``config/default.yaml`` of allenai/decon), there per n-gram and on tokens.
"""

import numpy as np

from lc_assets.arrays import Array, Floats, Int64s
from lc_assets.records import distinct
from lc_assets.text.contamination.grams import GramIndex, postings
from lc_assets.text.contamination.scanning import Finds

MOST_MISSED = 2
"""N-grams between two of the same stretch."""


@distinct
class Stretches:
    """Stretches of a document, by item, then from its beginning.

    Attributes:
        items: ``(n,)`` int64, number of the item.
        shares: ``(n,)`` float64, share of the item that the stretch covers, by weight.
        words: ``(n,)`` int64, words of the item that it covers; ``grams``: its n-grams.
        starts: ``(n,)`` int64, first character; ``ends``: after the last one.
    """

    items: Int64s
    shares: Floats
    words: Int64s
    grams: Int64s
    starts: Int64s
    ends: Int64s


class StretchFinder:
    """Finds the stretches of documents.

    Args:
        index: the n-grams of the items.
        weighted: whether words count by their inverse document frequency.
    """

    def __init__(self, index: GramIndex, *, weighted: bool) -> None:
        self.index = index
        self.begins = np.cumsum(index.item_words) - index.item_words
        weights = np.ones(len(index.words))
        if weighted:
            owners = np.repeat(np.arange(len(index.item_ids)), index.item_words)
            pairs = np.unique(np.stack([owners, index.words.astype(np.int64)]), axis=1)
            frequencies = np.bincount(pairs[1], minlength=len(index.vocabulary_ends))
            weights = np.log((len(index.item_ids) + 1) / np.maximum(frequencies, 1))[index.words]
        self.weights_before = np.append(0.0, np.cumsum(weights))

    def stretches_of(self, finds: Finds, counted: Int64s) -> Stretches:
        """The stretches of a document that cover enough words.

        Args:
            finds: in the document.
            counted: indices of those that count, at least one.
        """
        items, positions, owners = postings(self.index, finds.grams[counted])
        occurrences = counted[owners]
        lasts = finds.lasts[occurrences]
        order = np.lexsort((lasts, items))
        items, occurrences, lasts = items[order], occurrences[order], lasts[order]
        lengths = self.index.gram_lengths[finds.grams[occurrences]].astype(np.int64)
        gaps = np.diff(lasts - lengths, prepend=0) - np.append(0, lengths[:-1])
        apart = gaps > MOST_MISSED * self.index.settings.ngram
        is_first = apart | (np.diff(items, prepend=-1) != 0)
        numbers, firsts = np.cumsum(is_first) - 1, np.flatnonzero(is_first)
        places = self.begins[items] + positions[order]
        words, weights = self._covered(numbers, places, lengths)
        # A repeated phrase of an item may occur once in the document.
        extents = np.maximum.reduceat(lasts, firsts)
        extents -= np.minimum.reduceat(lasts - lengths, firsts)
        enough = np.minimum(words, extents) >= self.index.settings.min_words
        chosen = items[firsts[enough]]
        ends = self.begins[chosen] + self.index.item_words[chosen]
        totals = self.weights_before[ends] - self.weights_before[self.begins[chosen]]
        return Stretches(
            items=chosen.astype(np.int64),
            shares=np.minimum(weights[enough] / totals, 1.0),
            words=words[enough].astype(np.int64),
            grams=np.bincount(numbers)[enough],
            starts=np.minimum.reduceat(finds.starts[occurrences], firsts)[enough],
            ends=np.maximum.reduceat(finds.ends[occurrences], firsts)[enough],
        )

    def _covered(self, numbers: Array, places: Array, lengths: Array) -> tuple[Array, Array]:
        """Words, and their weights, that the n-grams of each stretch cover, each once.

        Args:
            numbers: of the n-grams' stretches, ascending.
            places: where in the index's words they begin.
            lengths: their words.
        """
        order = np.lexsort((places, numbers))
        numbers, places, lengths = numbers[order], places[order], lengths[order]
        above = numbers * (len(self.index.words) + 1)  # keeps stretches apart
        ends = above + places + lengths
        before = np.append(0, np.maximum.accumulate(ends)[:-1])
        begins = np.minimum(np.maximum(before, above + places), ends) - above
        weights = self.weights_before[places + lengths] - self.weights_before[begins]
        return (
            np.bincount(numbers, places + lengths - begins),
            np.bincount(numbers, weights),
        )
