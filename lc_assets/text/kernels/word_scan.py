"""One pass over a text that folds it and numbers its normalized words, in the order of first
occurrence.

A word's number is exact: where hashes are equal, characters are compared. Only distinct words are
kept, so memory is bounded by four bytes per two characters and by what is new in the text.
"""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lc_assets.compiling import compiled
from lc_assets.text.kernels.characters import LIMIT, NUMERIC, NUMERIC_BIT, PLAIN, REMOVED, SPACE
from lc_assets.text.kernels.hashing import bits_of, slot_of, stirred
from lc_assets.text.kernels.raw_scan import NEWLINE, is_known

FIRST_BITS: Final = 10
MOST_EXPANDED: Final = 8
"""More characters than any one folds to."""

FINISHED, POOL_FULL, TABLE_FULL, OUT_OF_ORDER = range(4)
"""Why `number_words` came back. It never grows an array itself: compiled code would count
references at every character.
"""

N_STATE: Final = 12
(
    AT,
    POOL,
    WORDS,
    DISTINCT,
    LOREMS,
    JAVASCRIPTS,
    AFTER_LOREM,
    LINE,
    IN_LINE,
    JAVASCRIPT_IN_LINE,
    CHARS_IN_LINE,
    NUMERIC_IN_LINE,
) = range(N_STATE)
UPPER_HALF: Final = np.uint64(0xFFFFFFFF00000000)
LOWER_HALF: Final = np.uint64(0x00000000FFFFFFFF)

JAVASCRIPT: Final = np.array([ord(character) for character in "javascript"], np.uint32)
LOREM: Final = np.array([ord(character) for character in "lorem"], np.uint32)
IPSUM: Final = np.array([ord(character) for character in "ipsum"], np.uint32)


@compiled
def holds(pool: NDArray[np.uint32], place: int, wanted: NDArray[np.uint32]) -> bool:
    """Whether the characters from ``place`` on are the ``wanted`` ones; that there are as many is
    the caller's to know.
    """
    for at in range(wanted.size):  # noqa: SIM110
        if pool[place + at] != wanted[at]:
            return False
    return True


@compiled
def scan_words(
    codes: NDArray[np.uint32],
    flags: NDArray[np.uint16],
    folds: NDArray[np.uint32],
    expansions: NDArray[np.uint32],
    combining: NDArray[np.uint8],
    seed: np.uint64,
    slots: NDArray[np.int32],
    hashes: NDArray[np.uint64],
    places: NDArray[np.int64],
    known: NDArray[np.uint32],
    line_words: NDArray[np.int64],
    line_javascript: NDArray[np.int64],
    line_chars: NDArray[np.int64],
    line_numeric: NDArray[np.int64],
) -> tuple[
    bool, int, NDArray[np.int32], int, NDArray[np.int64], NDArray[np.int64], NDArray[np.int32], int
]:
    """Number the words and count each line's.

    Returns:
        Whether folding character by character was right (else nothing else is); number of words;
        the number of each (int32); of distinct words how many there are, how often each occurs, its
        characters, and its number in the set of known words (int32, 0 when it is not there); times
        that "lorem ipsum" occurs.
    """
    state = np.zeros(N_STATE, np.int64)
    state[JAVASCRIPTS] = -1
    numbers = np.empty(codes.size // 2 + 1, np.int32)
    capacity = 1 << (FIRST_BITS - 1)
    table: NDArray[np.uint64] = np.zeros(2 * capacity, np.uint64)
    own: NDArray[np.uint64] = np.empty(capacity, np.uint64)
    starts: NDArray[np.int64] = np.zeros(capacity + 1, np.int64)
    counts: NDArray[np.int64] = np.empty(capacity, np.int64)
    parts: NDArray[np.int32] = np.empty(capacity, np.int32)
    marks: NDArray[np.uint8] = np.empty(capacity, np.uint8)
    pool: NDArray[np.uint32] = np.empty(capacity * 8, np.uint32)
    while True:
        reason = number_words(
            codes, flags, folds, expansions, combining, seed, slots, hashes, places, known, line_words, line_javascript,
            line_chars, line_numeric, state, numbers, table, own, starts, counts, parts, marks, pool,
        )  # fmt: skip
        if reason == POOL_FULL:
            pool = grown(pool, pool.size * 2)
        elif reason == TABLE_FULL:
            capacity *= 4
            own = grown(own, capacity)
            starts = grown(starts, capacity + 1)
            counts = grown(counts, capacity)
            parts = grown(parts, capacity)
            marks = grown(marks, capacity)
            table = table_of(own, state[DISTINCT], 2 * capacity)
        else:
            break
    n = state[DISTINCT]
    lengths = starts[1 : n + 1] - starts[:n]
    return (
        reason == FINISHED,
        state[WORDS],
        numbers,
        n,
        counts[:n],
        lengths,
        parts[:n],
        state[LOREMS],
    )


@compiled
def grown(array: NDArray[Any], size: int) -> NDArray[Any]:
    """A longer array that begins with the same values."""
    longer = np.empty(size, array.dtype)
    longer[: array.size] = array
    return longer


@compiled
def table_of(own: NDArray[np.uint64], n: int, size: int) -> NDArray[np.uint64]:
    """A table of ``size`` slots: upper half of a word's hash, and its number from 1; 0 where there
    is none.
    """
    table = np.zeros(size, np.uint64)
    n_bits = bits_of(size)
    for word in range(n):
        slot = slot_of(own[word], n_bits)
        while table[slot]:
            slot = (slot + 1) & (size - 1)
        table[slot] = own[word] & UPPER_HALF | np.uint64(word + 1)
    return table


@compiled
def number_words(
    codes: NDArray[np.uint32],
    flags: NDArray[np.uint16],
    folds: NDArray[np.uint32],
    expansions: NDArray[np.uint32],
    combining: NDArray[np.uint8],
    seed: np.uint64,
    slots: NDArray[np.int32],
    hashes: NDArray[np.uint64],
    places: NDArray[np.int64],
    known: NDArray[np.uint32],
    line_words: NDArray[np.int64],
    line_javascript: NDArray[np.int64],
    line_chars: NDArray[np.int64],
    line_numeric: NDArray[np.int64],
    state: NDArray[np.int64],
    numbers: NDArray[np.int32],
    table: NDArray[np.uint64],
    own: NDArray[np.uint64],
    starts: NDArray[np.int64],
    counts: NDArray[np.int64],
    parts: NDArray[np.int32],
    marks: NDArray[np.uint8],
    pool: NDArray[np.uint32],
) -> int:
    """Go on where ``state`` says, to the end or until an array is full; return why."""
    n = codes.size
    known_bits = bits_of(slots.size)
    n_bits = bits_of(table.size)
    at, n_pool, n_words, n_distinct = state[AT], state[POOL], state[WORDS], state[DISTINCT]
    n_lorem, javascript, after_lorem = state[LOREMS], state[JAVASCRIPTS], state[AFTER_LOREM]
    line, in_line, js_in_line = state[LINE], state[IN_LINE], state[JAVASCRIPT_IN_LINE]
    chars_in_line, numeric_in_line = state[CHARS_IN_LINE], state[NUMERIC_IN_LINE]
    reason = FINISHED
    while at < n:
        if n_distinct == own.size:
            reason = TABLE_FULL
            break
        first, begin, numeric_before = at, n_pool, numeric_in_line
        hashed = seed
        class_before = np.int64(0)
        while at < n:
            code = np.uint32(codes[at])
            flag = flags[code] if code < LIMIT else PLAIN
            if n_pool + MOST_EXPANDED > pool.size:
                reason = POOL_FULL
                break
            if flag & PLAIN:
                if code < LIMIT:
                    code = folds[code]
                pool[n_pool] = code
                n_pool += 1
                hashed = stirred(hashed, np.uint64(code))
                numeric_in_line += (flag & NUMERIC) >> 6
                class_before = np.int64(0)
            elif flag & SPACE:
                break
            elif not flag & REMOVED:
                place = np.int64(folds[code])
                n_more = np.int64(expansions[place])
                if n_more == 0:
                    return OUT_OF_ORDER
                for more in range(place + 1, place + 1 + n_more):
                    folded = expansions[more] & np.uint32(NUMERIC_BIT - 1)
                    numeric_in_line += np.int64(expansions[more] >> np.uint32(31))
                    own_class = np.int64(combining[folded])
                    if 0 < own_class < class_before:
                        return OUT_OF_ORDER
                    class_before = np.int64(own_class)
                    pool[n_pool] = folded
                    n_pool += 1
                    hashed = stirred(hashed, np.uint64(folded))
            at += 1
        if reason == POOL_FULL:
            at, n_pool, numeric_in_line = first, begin, numeric_before
            break
        if n_pool > begin:
            length = n_pool - begin
            slot = slot_of(hashed, n_bits)
            word = -1
            while table[slot]:
                if (table[slot] ^ hashed) & UPPER_HALF == 0:
                    word = int(np.int64(table[slot] & LOWER_HALF)) - 1
                    if starts[word + 1] - starts[word] == length and equal(
                        pool, starts[word], begin, length
                    ):
                        break
                    word = -1
                slot = (slot + 1) & (table.size - 1)
            if word >= 0:
                n_pool = begin
                counts[word] += 1
            else:
                word = n_distinct
                n_distinct = n_distinct + 1
                table[slot] = hashed & UPPER_HALF | np.uint64(n_distinct)
                own[word] = hashed
                counts[word] = 1
                starts[n_distinct] = n_pool
                parts[word] = is_known(
                    pool, begin, n_pool, hashed, slots, known_bits, hashes, places, known
                )
                marks[word] = 0
                if length >= 5:
                    marks[word] = holds(pool, n_pool - 5, LOREM) | holds(pool, begin, IPSUM) << 1
                    if length == 10 and holds(pool, begin, JAVASCRIPT):
                        javascript = word
            numbers[n_words] = word
            n_words += 1
            in_line += 1
            js_in_line += word == javascript
            chars_in_line += length
            n_lorem += after_lorem & marks[word] >> 1
            after_lorem = np.int64(marks[word] & 1)
        while at < n:
            code = np.uint32(codes[at])
            if code >= LIMIT or not flags[code] & SPACE:
                break
            if code == NEWLINE:
                line_words[line] = in_line
                line_javascript[line] = js_in_line
                line_chars[line] = chars_in_line + max(in_line - 1, 0)
                line_numeric[line] = numeric_in_line
                line += 1
                in_line = js_in_line = chars_in_line = numeric_in_line = 0
            at += 1
    if reason == FINISHED and line < line_words.size:
        line_words[line] = in_line
        line_javascript[line] = js_in_line
        line_chars[line] = chars_in_line + max(in_line - 1, 0)
        line_numeric[line] = numeric_in_line
    state[AT], state[POOL], state[WORDS], state[DISTINCT] = at, n_pool, n_words, n_distinct
    state[LOREMS], state[JAVASCRIPTS], state[AFTER_LOREM] = n_lorem, javascript, after_lorem
    state[LINE], state[IN_LINE], state[JAVASCRIPT_IN_LINE] = line, in_line, js_in_line
    state[CHARS_IN_LINE], state[NUMERIC_IN_LINE] = chars_in_line, numeric_in_line
    return reason


@compiled
def equal(pool: NDArray[np.uint32], first: int, second: int, length: int) -> bool:
    """Whether the same characters stand in two places."""
    for more in range(length):  # noqa: SIM110 - an iterator of its own is slower
        if pool[first + more] != pool[second + more]:
            return False
    return True
