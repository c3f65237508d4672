"""Characters in repeated n-grams as datatrove and Dolma count them, which is not RedPajama-V2's
way.

* The most frequent n-gram: both count overlaps and take the first of equals, even where none occurs
  twice. datatrove then counts the spaces between its words, Dolma does not.
* n-grams seen before (datatrove): a walk from the left; an n-gram met again counts, and its words
  are skipped. Its words are joined without spaces before they are compared, so ``1 11 1 …`` is met
  again in ``11 1 1 …``.
* repeated n-grams (Dolma): every copy of an n-gram that occurs twice or more counts, overlaps and
  the first one included, of all n-grams' characters.

Counts are exact: where hashes are equal, bytes are compared. Hashes begin with a number that each
process draws, so time is linear whatever the text.

Sources: ``gopher_repetition_filter.py`` of datatrove 0.10.1; ``taggers/gopher.py`` of Dolma.
"""

import numpy as np

from lc_assets.arrays import Bytes, Int32s
from lc_assets.compiling import compiled
from lc_assets.records import frozen
from lc_assets.text.hashing import absorb, bits_of, slot_of, whole
from lc_assets.text.measures.words import Counted
from lc_assets.text.numbering import are_equal, eight_bytes, hash_bytes

TOP_LENGTHS = (2, 3, 4)
"""Words in the n-grams of which the most frequent one counts: Rae et al. 2021, table A1."""

DUPLICATE_LENGTHS = (5, 6, 7, 8, 9, 10)
"""Words in the n-grams of which the repeated ones count: the same table."""

_NEVER = 255
"""Marks a word whose start may occur elsewhere too."""


@frozen
class GramCounts:
    """Counts of n-grams of one length; 0 where there are fewer words.

    Attributes:
        top_count: occurrences of the most frequent n-gram.
        top_chars: characters of its words, once.
        repeated_chars: characters of all occurrences of n-grams that occur twice or more.
        all_chars: characters of all n-grams.
    """

    top_count: Counted
    top_chars: Counted
    repeated_chars: Counted
    all_chars: Counted


@compiled
def find_unique_starts(joined: Bytes, ends: Int32s, seed: np.uint64, unique: Bytes) -> None:
    """Find how many bytes from each word's start on occur at no other word's start.

    Two n-grams that are equal when joined begin with the same bytes. Where the first 8, 12, 16, 24
    or 32 bytes from a word's start on occur at no other start, no n-gram of as many bytes can have
    been seen before, whatever its length. This is determined once for all lengths.

    Args:
        joined: the words' bytes.
        ends: int32[n + 1], their ends.
        seed: of hashes.
        unique: uint8[n]; gets 8, 12, 16, 24 or 32, or `_NEVER`. It may be too many or `_NEVER`, but
            is never too few.
    """
    n_words = n_left = len(unique)
    n_bits = bits_of(4 * n_words + 16)
    slots = np.empty(n_words, np.int64)
    words = np.arange(n_words).astype(np.int32)
    unique[:] = _NEVER
    n_bytes = 8
    while n_bytes <= 32 and n_left:
        seen = np.zeros(1 << n_bits, np.uint8)
        last = whole(ends[n_words]) - n_bytes
        for i in range(n_left):
            start = whole(ends[words[i]])
            if start > last:
                slots[i] = -1
                continue
            state = absorb(seed, eight_bytes(joined, start))
            if n_bytes > 8:
                state = absorb(state, eight_bytes(joined, start + n_bytes - 8))
            if n_bytes > 16:
                state = absorb(state, eight_bytes(joined, start + 8))
            if n_bytes > 24:
                state = absorb(state, eight_bytes(joined, start + 16))
            slots[i] = slot_of(state, n_bits)
            seen[slots[i]] = min(seen[slots[i]] + 1, 2)
        n_kept = 0
        for i in range(n_left):
            is_unique = slots[i] >= 0 and seen[slots[i]] == 1
            word = words[i]
            unique[word] = n_bytes if is_unique else _NEVER
            words[n_kept] = word
            n_kept += not is_unique
        n_left = n_kept
        n_bytes += 4 if n_bytes < 16 else 8


@compiled
def seen_before(
    joined: Bytes,
    ends: Int32s,
    chars: Int32s,
    unique: Bytes,
    length: int,
    seed: np.uint64,
) -> int:
    """Characters of n-grams that were seen before, as datatrove counts them.

    Args:
        joined: the words' bytes.
        ends: int32[n + 1], their ends.
        chars: int32[n + 1], the same in characters.
        unique: of `find_unique_starts`.
        length: words of an n-gram.
        seed: of hashes.
    """
    last = len(unique) - length
    n_candidates = 0
    for word in range(last + 1):
        n_candidates += (unique[word] == _NEVER) | (ends[word + length] - ends[word] < unique[word])
    hashes, firsts = np.empty(n_candidates + 1, np.uint64), np.empty(n_candidates + 1, np.int32)
    n_bits = bits_of(2 * n_candidates + 16)
    slots = np.zeros(1 << n_bits, np.int32)
    n_known = n_chars = word = 0
    while word <= last:
        start, end = whole(ends[word]), whole(ends[word + length])
        if unique[word] < _NEVER and end - start >= unique[word]:
            word += 1
            continue
        key = hash_bytes(joined, start, end, seed)
        slot = slot_of(key, n_bits)
        while slots[slot]:
            known = slots[slot] - 1
            if hashes[known] == key:
                first = whole(ends[firsts[known]])
                if whole(ends[firsts[known] + length]) - first == end - start and are_equal(
                    joined, first, start, end - start
                ):
                    break
            slot = (slot + 1) & (slots.size - 1)
        if slots[slot]:
            n_chars += chars[word + length] - chars[word]
            word += length
            continue
        hashes[n_known], firsts[n_known] = key, word
        n_known += 1
        slots[slot] = n_known
        word += 1
    return n_chars
