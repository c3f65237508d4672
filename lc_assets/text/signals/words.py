"""One pass that folds a text and numbers its normalized words in the order of first occurrence.

A word's number is exact: where hashes are equal, characters are compared. Only distinct words are
kept, so memory is bounded by four bytes per two characters and by what is new in the text.
"""

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lc_assets.compiling import compiled
from lc_assets.text.hashing import WordSet, absorb, bits_of, find_word, slot_of
from lc_assets.text.signals.characters import (
    LIMIT,
    NUMERIC,
    NUMERIC_BIT,
    PLAIN,
    REMOVED,
    SPACE,
    CharacterTables,
)
from lc_assets.text.signals.raw import NEWLINE

_FIRST_CAPACITY: Final = 512
_MOST_EXPANDED: Final = 8
"""More characters than any one folds to."""

_FINISHED, _POOL_FULL, _TABLE_FULL, _OUT_OF_ORDER = range(4)
"""Why `_number_words` returned. It never grows an array itself: compiled code would then count
references at every character.
"""

_STATE: Final = np.dtype(
    [
        ("position", np.int64),
        ("n_pool", np.int64),
        ("n_words", np.int64),
        ("n_distinct", np.int64),
        ("n_lorem", np.int64),
        ("javascript", np.int64),
        ("after_lorem", np.int64),
        ("line", np.int64),
        ("line_words", np.int64),
        ("line_javascript", np.int64),
        ("line_chars", np.int64),
        ("line_numeric", np.int64),
    ]
)
"""Where `_number_words` is: the next character; characters in the pool; words, and distinct ones;
times "lorem ipsum" occurred; number of the word "javascript", or -1; whether the last word ends
with "lorem"; the line, and what was counted of it so far.
"""

_UPPER_HALF: Final = np.uint64(0xFFFFFFFF00000000)
_LOWER_HALF: Final = np.uint64(0x00000000FFFFFFFF)
_JAVASCRIPT: Final = np.array(list(map(ord, "javascript")), np.uint32)
_LOREM: Final = np.array(list(map(ord, "lorem")), np.uint32)
_IPSUM: Final = np.array(list(map(ord, "ipsum")), np.uint32)


class WordLines(NamedTuple):
    """What is counted of each line's normalized words; int64[lines] each.

    Attributes:
        words: words.
        javascript: words that are "javascript".
        chars: characters, with a space between two words.
        numeric: numeric characters.
    """

    words: NDArray[np.int64]
    javascript: NDArray[np.int64]
    chars: NDArray[np.int64]
    numeric: NDArray[np.int64]


class NumberedWords(NamedTuple):
    """A text's words as numbers.

    Attributes:
        is_complete: whether folding character by character was right; else nothing else is.
        n_words: words of the text.
        numbers: int32, the number of each word; longer than ``n_words``.
        counts: int64[distinct], occurrences of each distinct word.
        lengths: int64[distinct], its characters.
        listed: int32[distinct], its number in the set of listed words, 0 when it is not there.
        n_lorem: times that "lorem ipsum" occurs.
    """

    is_complete: bool
    n_words: int
    numbers: NDArray[np.int32]
    counts: NDArray[np.int64]
    lengths: NDArray[np.int64]
    listed: NDArray[np.int32]
    n_lorem: int


class _Distinct(NamedTuple):
    """The distinct words so far.

    Attributes:
        table: uint64[2 * capacity], a hash table: upper half of a word's hash and, below, its
            number from 1; 0 in an empty slot.
        hashes: uint64[capacity].
        starts: int64[capacity + 1], where each word begins in ``pool``.
        counts: int64[capacity], occurrences.
        listed: int32[capacity], see `NumberedWords`.
        marks: uint8[capacity], 1 for a word that ends with "lorem", 2 for one that begins with
            "ipsum".
        pool: uint32, the words' characters, one word after another.
    """

    table: NDArray[np.uint64]
    hashes: NDArray[np.uint64]
    starts: NDArray[np.int64]
    counts: NDArray[np.int64]
    listed: NDArray[np.int32]
    marks: NDArray[np.uint8]
    pool: NDArray[np.uint32]


@compiled
def scan_words(
    codes: NDArray[np.uint32],
    tables: CharacterTables,
    seed: np.uint64,
    listed_words: WordSet,
    lines: WordLines,
) -> NumberedWords:
    """Number a text's words, and count those of each line.

    Args:
        codes: the text's code points.
        tables: what characters are.
        seed: of hashes.
        listed_words: words whose numbers are wanted.
        lines: filled.
    """
    states = np.zeros(1, _STATE)
    states[0].javascript = -1
    numbers = np.empty(codes.size // 2 + 1, np.int32)
    capacity = _FIRST_CAPACITY
    words = _Distinct(
        np.zeros(2 * capacity, np.uint64),
        np.empty(capacity, np.uint64),
        np.zeros(capacity + 1, np.int64),
        np.empty(capacity, np.int64),
        np.empty(capacity, np.int32),
        np.empty(capacity, np.uint8),
        np.empty(capacity * 8, np.uint32),
    )
    while True:
        reason = _number_words(codes, tables, seed, listed_words, lines, states, numbers, words)
        if reason == _POOL_FULL:
            words = _Distinct(
                words.table, words.hashes, words.starts, words.counts, words.listed, words.marks,
                _grown(words.pool, words.pool.size * 2),
            )  # fmt: skip
        elif reason == _TABLE_FULL:
            capacity *= 4
            words = _Distinct(
                _table_of(words.hashes, states[0].n_distinct, 2 * capacity),
                _grown(words.hashes, capacity),
                _grown(words.starts, capacity + 1),
                _grown(words.counts, capacity),
                _grown(words.listed, capacity),
                _grown(words.marks, capacity),
                words.pool,
            )
        else:
            break
    n = states[0].n_distinct
    return NumberedWords(
        reason == _FINISHED,
        states[0].n_words,
        numbers,
        words.counts[:n],
        words.starts[1 : n + 1] - words.starts[:n],
        words.listed[:n],
        states[0].n_lorem,
    )


@compiled
def _grown(array: NDArray[Any], size: int) -> NDArray[Any]:
    """A longer array that begins with the same values."""
    longer = np.empty(size, array.dtype)
    for i in range(array.size):  # a slice would add a second to the time it takes to compile
        longer[i] = array[i]
    return longer


@compiled
def _table_of(hashes: NDArray[np.uint64], n: int, n_slots: int) -> NDArray[np.uint64]:
    """The hash table of ``n`` words."""
    table = np.zeros(n_slots, np.uint64)
    n_bits = bits_of(n_slots)
    for word in range(n):
        slot = slot_of(hashes[word], n_bits)
        while table[slot]:
            slot = (slot + 1) & (n_slots - 1)
        table[slot] = hashes[word] & _UPPER_HALF | np.uint64(word + 1)
    return table


@compiled
def _is_at(pool: NDArray[np.uint32], start: int, wanted: NDArray[np.uint32]) -> bool:
    """Whether the pool holds the wanted characters from ``start`` on."""
    for i in range(wanted.size):  # noqa: SIM110
        if pool[start + i] != wanted[i]:
            return False
    return True


@compiled
def _are_equal(pool: NDArray[np.uint32], first: int, second: int, length: int) -> bool:
    """Whether the pool holds the same characters from two positions on."""
    for i in range(length):  # noqa: SIM110 - an iterator of its own is slower
        if pool[first + i] != pool[second + i]:
            return False
    return True


@compiled
def _number_words(
    codes: NDArray[np.uint32],
    tables: CharacterTables,
    seed: np.uint64,
    listed_words: WordSet,
    lines: WordLines,
    states: NDArray[Any],
    numbers: NDArray[np.int32],
    words: _Distinct,
) -> int:
    """Continue at ``states[0]`` until the text ends or an array is full; return why."""
    flags, folds, expansions, combining = tables
    table, hashes, starts, counts, listed, marks, pool = words
    n = codes.size
    n_bits = bits_of(table.size)
    state = states[0]
    i, n_pool, n_words, n_distinct = state.position, state.n_pool, state.n_words, state.n_distinct
    n_lorem, javascript, after_lorem = state.n_lorem, state.javascript, state.after_lorem
    line, in_line, js_in_line = state.line, state.line_words, state.line_javascript
    chars_in_line, numeric_in_line = state.line_chars, state.line_numeric
    reason = _FINISHED
    while i < n:
        if n_distinct == hashes.size:
            reason = _TABLE_FULL
            break
        # Phase 1: fold the characters up to the next white space onto the end of the pool.
        first, begin, numeric_before = i, n_pool, numeric_in_line
        hashed = seed
        class_before = np.int64(0)
        while i < n:
            code = np.uint32(codes[i])
            flag = flags[code] if code < LIMIT else PLAIN
            if n_pool + _MOST_EXPANDED > pool.size:
                reason = _POOL_FULL
                break
            if flag & PLAIN:
                if code < LIMIT:
                    code = folds[code]
                pool[n_pool] = code
                n_pool += 1
                hashed = absorb(hashed, np.uint64(code))
                numeric_in_line += (flag & NUMERIC) >> 6
                class_before = np.int64(0)
            elif flag & SPACE:
                break
            elif not flag & REMOVED:
                entry = np.int64(folds[code])
                n_folded = np.int64(expansions[entry])
                if n_folded == 0:
                    return _OUT_OF_ORDER
                for j in range(entry + 1, entry + 1 + n_folded):
                    folded = expansions[j] & np.uint32(NUMERIC_BIT - 1)
                    numeric_in_line += np.int64(expansions[j] >> np.uint32(31))
                    own_class = np.int64(combining[folded])
                    if 0 < own_class < class_before:
                        return _OUT_OF_ORDER
                    class_before = np.int64(own_class)
                    pool[n_pool] = folded
                    n_pool += 1
                    hashed = absorb(hashed, np.uint64(folded))
            i += 1
        if reason == _POOL_FULL:
            i, n_pool, numeric_in_line = first, begin, numeric_before
            break
        if n_pool > begin:
            # Phase 2: find the word among those seen; a known word leaves the pool again.
            length = n_pool - begin
            slot = slot_of(hashed, n_bits)
            word = -1
            while table[slot]:
                if (table[slot] ^ hashed) & _UPPER_HALF == 0:
                    word = int(np.int64(table[slot] & _LOWER_HALF)) - 1
                    if starts[word + 1] - starts[word] == length and _are_equal(
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
                table[slot] = hashed & _UPPER_HALF | np.uint64(n_distinct)
                hashes[word] = hashed
                counts[word] = 1
                starts[n_distinct] = n_pool
                listed[word] = find_word(pool, begin, n_pool, hashed, listed_words)
                marks[word] = 0
                if length >= 5:
                    marks[word] = (
                        _is_at(pool, n_pool - 5, _LOREM) | _is_at(pool, begin, _IPSUM) << 1
                    )
                    if length == 10 and _is_at(pool, begin, _JAVASCRIPT):
                        javascript = word
            # Phase 3: count it for the text and for the line.
            numbers[n_words] = word
            n_words += 1
            in_line += 1
            js_in_line += word == javascript
            chars_in_line += length
            n_lorem += after_lorem & marks[word] >> 1
            after_lorem = np.int64(marks[word] & 1)
        # Phase 4: pass white space; a newline ends the line.
        while i < n:
            code = np.uint32(codes[i])
            if code >= LIMIT or not flags[code] & SPACE:
                break
            if code == NEWLINE:
                lines.words[line] = in_line
                lines.javascript[line] = js_in_line
                lines.chars[line] = chars_in_line + max(in_line - 1, 0)
                lines.numeric[line] = numeric_in_line
                line += 1
                in_line = js_in_line = chars_in_line = numeric_in_line = 0
            i += 1
    if reason == _FINISHED and line < lines.words.size:
        lines.words[line] = in_line
        lines.javascript[line] = js_in_line
        lines.chars[line] = chars_in_line + max(in_line - 1, 0)
        lines.numeric[line] = numeric_in_line
    state.position, state.n_pool, state.n_words, state.n_distinct = i, n_pool, n_words, n_distinct
    state.n_lorem, state.javascript, state.after_lorem = n_lorem, javascript, after_lorem
    state.line, state.line_words, state.line_javascript = line, in_line, js_in_line
    state.line_chars, state.line_numeric = chars_in_line, numeric_in_line
    return reason
