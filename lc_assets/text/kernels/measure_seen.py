"""Compiled counting of n-grams seen before, as datatrove walks: glued together before they are
compared.

Here: the walk, and the sieve that spares it most of the way. The twin is
    `lc_assets.text.gram_counts.seen_before_chars`.

Two n-grams that are equal when glued begin with the same bytes. Where the first 8, 12, 16, 24 or 32
bytes from a word's start on are found at no other word's start, no n-gram of at least as many bytes
can have been seen, whatever its length: the sieve finds that out once, for all lengths.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from lc_assets.compiling import compiled
from lc_assets.text.kernels.measure_grams import (
    MIX,
    MIX_2,
    PATIENCE,
    hash_bytes,
    mixed,
    same_bytes,
    slots_for,
)
from lc_assets.text.kernels.measure_words import eight_bytes, whole

NEVER: Final = 255
"""For a word whose start the sieve finds elsewhere too."""


@compiled
def sieve_starts(
    glued: NDArray[np.uint8], ends: NDArray[np.int32], n_words: int, alone: NDArray[np.uint8]
) -> None:
    """Find, for each word, how many bytes from its start on are enough to be met nowhere else at a
    word's start.

    Args:
        glued: the words' bytes.
        ends: their ends.
        n_words: how many.
        alone: gets 8, 12, 16, 24 or 32, or `NEVER`. It may be too many or `NEVER`, but is never too
            few.
    """
    n_slots = slots_for(2 * n_words)
    keys = np.empty(n_words, np.int32)
    places = np.arange(n_words).astype(np.int32)
    alone[:] = NEVER
    n_bytes, n_left = 8, n_words
    while n_bytes <= 32 and n_left:
        seen = np.zeros(n_slots, np.uint8)
        last = whole(ends[n_words]) - n_bytes
        for index in range(n_left):
            start = whole(ends[places[index]])
            if start > last:
                keys[index] = -1
                continue
            made = eight_bytes(glued, start) * MIX
            if n_bytes > 8:
                made = mixed(made) + eight_bytes(glued, start + n_bytes - 8) * MIX_2
            if n_bytes > 16:
                made = mixed(made) + eight_bytes(glued, start + 8) * MIX
            if n_bytes > 24:
                made = mixed(made) + eight_bytes(glued, start + 16) * MIX_2
            key = whole(mixed(made) & np.uint64(n_slots - 1))
            keys[index] = key
            seen[key] = min(seen[key] + 1, 2)
        n_kept = 0
        for index in range(n_left):
            lonely = keys[index] >= 0 and seen[keys[index]] == 1
            place = places[index]
            alone[place] = n_bytes if lonely else NEVER
            places[n_kept] = place
            n_kept += not lonely
        n_left = n_kept
        n_bytes += 4 if n_bytes < 16 else 8


@compiled
def seen_before(
    glued: NDArray[np.uint8],
    ends: NDArray[np.int32],
    chars: NDArray[np.int32],
    n_words: int,
    alone: NDArray[np.uint8],
    length: int,
) -> int:
    """Characters of n-grams of one length that were seen before, as datatrove walks; -1 when
    patience ran out.
    """
    last = n_words - length
    n_candidates = 0
    for start in range(last + 1):
        n_candidates += (alone[start] == NEVER) | (
            ends[start + length] - ends[start] < alone[start]
        )
    hashes, firsts = np.empty(n_candidates + 1, np.uint64), np.empty(n_candidates + 1, np.int32)
    n_known, n_slots = 0, slots_for(n_candidates)
    slots = np.zeros(n_slots, np.int32)
    n_chars, word = 0, 0
    while word <= last:
        start, end = whole(ends[word]), whole(ends[word + length])
        if alone[word] < NEVER and end - start >= alone[word]:
            word += 1
            continue
        key = hash_bytes(glued, start, end)
        slot, steps = whole(key & np.uint64(n_slots - 1)), 0
        while slots[slot]:
            known = slots[slot] - 1
            if hashes[known] == key:
                begun = whole(ends[firsts[known]])
                if whole(ends[firsts[known] + length]) - begun == end - start and same_bytes(
                    glued, begun, start, end - start
                ):
                    break
            slot = (slot + 1) & (n_slots - 1)
            steps += 1
            if steps > PATIENCE:
                return -1
        if slots[slot]:
            n_chars += chars[word + length] - chars[word]
            word += length
            continue
        hashes[n_known], firsts[n_known] = key, word
        n_known += 1
        slots[slot] = n_known
        word += 1
    return n_chars
