"""How much of each evaluation item a document contains, and whether it is contaminated.

A document is scanned once (`lc_assets.text.contamination.scanning`). From what was found, `Weigher`
computes per item how much of it the document holds, and `is_contaminated` decides. Finds can be
kept and decided on again with another rule, without another scan.

============  ======================================================================================
mode          a document is contaminated when
============  ======================================================================================
``coverage``  it holds at least ``threshold`` of some item's n-grams: the item can be learned from
it
``any``       it holds any n-gram of any item, as the authors of GPT-3 searched; finds most, and
              quotations too
``overlap``   as ``coverage``, or at least ``threshold`` of the document's own words are in items: a
              document that is a piece of a held-out one; for training data against held-out data
``words``     n-grams that lie close together cover at least ``threshold`` of some item's words:
              survives edits; see `lc_assets.text.contamination.stretches`
``weighted``  as ``words``, each word by its rarity among the items
============  ======================================================================================

Common n-grams (licence texts, templates of questions) do not identify an item. Those in many items
are left out of every share (`in_many_items`). Those in many documents of a corpus are reported, and
left out from a given number of documents on: Brown et al. 2020 ignore n-grams in more than ten.
"""

from collections.abc import Collection, Sequence
from typing import Literal

import msgspec
import numpy as np

from lc_assets.arrays import Array, Bytes, Int64s
from lc_assets.text.contamination.grams import GramIndex, postings
from lc_assets.text.contamination.scanning import Finds
from lc_assets.text.contamination.stretches import Stretches, StretchFinder

Mode = Literal["coverage", "any", "overlap", "words", "weighted"]
OF_STRETCHES = ("words", "weighted")
"""Modes that judge stretches."""


class Overlap(msgspec.Struct, frozen=True, kw_only=True):
    """How much of one item a document contains.

    Attributes:
        item: the item's number in the index.
        grams: distinct n-grams of the item in the document; ``item_grams``: in the item.
        coverage: their share; of modes that judge stretches, the share of the item's words, by
            weight, that the stretch with most of them covers; ``grams``, ``longest_words``,
            ``start`` and ``end`` then are of this stretch.
        longest_words: words of the item's longest stretch that these n-grams cover without a gap.
        document_share: share of the document's words that n-grams of any item cover; the same in
            all its overlaps.
        start: first character of the item's longest matched stretch in the document; ``end``: after
            its last one.
    """

    item: int
    grams: int
    item_grams: int
    coverage: float
    longest_words: int
    document_share: float
    start: int
    end: int


def is_contaminated(overlap: Overlap, mode: Mode, threshold: float) -> bool:
    """Whether an overlap makes a document contaminated.

    Args:
        overlap: of one item.
        mode: see the module.
        threshold: minimum share, above 0 and at most 1; not used by ``any``.
    """
    if mode == "any":
        return True
    share = max(overlap.coverage, overlap.document_share if mode == "overlap" else 0)
    return share >= threshold


class Weigher:
    """Computes how much of each item the finds cover.

    Args:
        index: the index that was scanned for.
        ignored: n-grams that count neither as found nor as missing.
        mode: how documents will be judged.
    """

    def __init__(
        self, index: GramIndex, ignored: Collection[int] = (), mode: Mode = "coverage"
    ) -> None:
        self.index = index
        self.finder = (
            StretchFinder(index, weighted=mode == "weighted") if mode in OF_STRETCHES else None
        )
        self.counts = np.ones(index.n_grams, np.bool_)
        self.counts[np.array(sorted(ignored), np.int64)] = False
        _, items = items_of(index, np.flatnonzero(~self.counts))
        self.item_grams = index.item_grams - np.bincount(items, minlength=len(index.item_ids))

    def overlaps_of(self, finds: Finds) -> tuple[Overlap, ...]:
        """How much of each item some finds cover, the most covered first, then by number."""
        counted = np.flatnonzero(self.counts[finds.grams])
        if not len(counted):
            return ()
        lengths = self.index.gram_lengths[finds.grams[counted]]
        share = _covered(finds.lasts[counted], lengths) / finds.n_words
        found = (
            self._of_items(finds, counted, share)
            if self.finder is None
            else self._of_stretches(self.finder.stretches_of(finds, counted), share)
        )
        return tuple(sorted(found, key=lambda overlap: (-overlap.coverage, overlap.item)))

    def _of_items(self, finds: Finds, counted: Int64s, share: float) -> list[Overlap]:
        grams, starts, ends = finds.grams[counted], finds.starts[counted], finds.ends[counted]
        distinct, firsts = np.unique(grams, return_index=True)
        items, positions, owners = postings(self.index, distinct)
        order = np.lexsort((positions, items))
        items, positions, owners = items[order], positions[order], owners[order]
        edges = np.flatnonzero(np.append(True, items[1:] != items[:-1])).tolist()
        found = []
        for begin, end in zip(edges, [*edges[1:], len(items)], strict=True):
            of_item = owners[begin:end]
            longest, stretch = _longest_stretch(
                positions[begin:end], self.index.gram_lengths[distinct[of_item]]
            )
            at = firsts[of_item[stretch]]
            start, stop = max(
                merged(starts[at].tolist(), ends[at].tolist()), key=lambda span: span[1] - span[0]
            )
            n_grams, n_item = len(np.unique(of_item)), int(self.item_grams[items[begin]])
            found.append(
                Overlap(
                    item=int(items[begin]),
                    grams=n_grams,
                    item_grams=n_item,
                    coverage=n_grams / n_item,
                    longest_words=longest,
                    document_share=share,
                    start=start,
                    end=stop,
                )
            )
        return found

    def _of_stretches(self, found: Stretches, share: float) -> list[Overlap]:
        """The stretch of each item that covers most of it, the first of several."""
        order = np.lexsort((-found.shares, found.items))
        best = order[np.diff(found.items[order], prepend=-1) != 0]
        return [
            Overlap(
                item=int(found.items[number]),
                grams=int(found.grams[number]),
                item_grams=int(self.item_grams[found.items[number]]),
                coverage=float(found.shares[number]),
                longest_words=int(found.words[number]),
                document_share=share,
                start=int(found.starts[number]),
                end=int(found.ends[number]),
            )
            for number in best.tolist()
        ]

    def spans_of(
        self, finds: Finds, items: Collection[int], threshold: float
    ) -> list[tuple[int, int]]:
        """What is cut of a document that some items contaminate, in order, none touching the next:
        every occurrence of their n-grams; or stretches that cover ``threshold`` of one.
        """
        counted = np.flatnonzero(self.counts[finds.grams])
        if self.finder is None:
            distinct = np.unique(finds.grams[counted])
            of_grams, of_items = items_of(self.index, distinct)
            ours = distinct[of_grams[np.isin(of_items, sorted(items))]]
            chosen = np.isin(finds.grams, ours)
            return merged(finds.starts[chosen].tolist(), finds.ends[chosen].tolist())
        found = self.finder.stretches_of(finds, counted)
        chosen = np.isin(found.items, sorted(items)) & (found.shares >= threshold)
        return merged(found.starts[chosen].tolist(), found.ends[chosen].tolist())


def in_many_items(index: GramIndex, most: int) -> Int64s:
    """The n-grams in more than ``most`` items, which do not identify an item."""
    # Repeats within an item count here, so these are a superset.
    suspects = np.flatnonzero(np.diff(index.posting_ends, prepend=0) > most)
    owners, _ = items_of(index, suspects)
    many: Int64s = suspects[np.bincount(owners, minlength=len(suspects)) > most]
    return many


def merged(starts: Sequence[int], ends: Sequence[int]) -> list[tuple[int, int]]:
    """The union of some spans, in order, none touching the next.

    >>> merged([5, 0, 8], [9, 3, 12])
    [(0, 3), (5, 12)]
    """
    spans: list[tuple[int, int]] = []
    for start, end in sorted(zip(starts, ends, strict=True)):
        if spans and start <= spans[-1][1]:
            spans[-1] = spans[-1][0], max(end, spans[-1][1])
        else:
            spans.append((start, end))
    return spans


def without_spans(text: str, spans: Sequence[tuple[int, int]], margin: int = 0) -> str:
    """A text without some spans and ``margin`` characters on either side of each.

    >>> without_spans("abcdefgh", [(2, 3), (5, 6)], 1)
    'ah'
    """
    wider = merged(
        [max(start - margin, 0) for start, _ in spans],
        [min(end + margin, len(text)) for _, end in spans],
    )
    edges = [0, *(edge for span in wider for edge in span), len(text)]
    return "".join(text[start:end] for start, end in zip(edges[::2], edges[1::2], strict=True))


def items_of(index: GramIndex, grams: Int64s) -> tuple[Int64s, Int64s]:
    """Distinct pairs of an n-gram, as its index in ``grams``, and an item that has it."""
    items, _, owners = postings(index, grams)
    pairs = np.unique(np.stack([owners, items.astype(np.int64)]), axis=1)
    return pairs[0], pairs[1]


def _covered(lasts: Int64s, lengths: Bytes) -> int:
    """Words of a text that some occurrences cover, from the number of each one's last word."""
    return sum(end - start for start, end in merged((lasts - lengths).tolist(), lasts.tolist()))


def _longest_stretch(positions: Array, lengths: Bytes) -> tuple[int, Int64s]:
    """Words of the longest stretch of an item that ascending occurrences cover without a gap, and
    which these are.
    """
    ends = np.maximum.accumulate(positions.astype(np.int64) + lengths)
    begins = np.flatnonzero(np.append(True, positions[1:] > ends[:-1]))
    stops = np.append(begins[1:], len(positions))
    sizes = ends[stops - 1] - positions[begins]
    longest = int(np.argmax(sizes))
    return int(sizes[longest]), np.arange(begins[longest], stops[longest])
