"""Folding the UTF-8 of texts: the bytes of `lc_assets.text.words.normalize` in one pass.

The table maps characters up to U+FFFF. A stretch with a character whose folding depends on its
neighbours (capital sigma, marks out of canonical order), or that is rare (most beyond U+FFFF), goes
through `normalize`.
"""

import string
import unicodedata
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from lc_assets.arrays import Bytes, Int64s
from lc_assets.compiling import borrowing, inlined
from lc_assets.text.characters import code_point
from lc_assets.text.hashing import whole
from lc_assets.text.numbering import EVERY, HIGH_BITS, LOW_BITS, count_bytes, eight_bytes
from lc_assets.text.words import normalize

_DROPPED = 255
"""In the table of ASCII: the character is removed. No ASCII character maps to it otherwise."""
_IRREGULAR = 1
"""A kind: what the character becomes depends on its neighbours."""
_WHITE = 2
"""A kind: white space."""

_SPACE = 32
_1, _2, _8, _56 = map(np.uint64, (1, 2, 8, 56))
_SPACES = EVERY * np.uint64(_SPACE)
_NEWLINE = 10
_EMOJI_FIRST, _EMOJI_LAST = 0x1F000, 0x1FBEF
_IDEOGRAPHS_FIRST, _IDEOGRAPHS_LAST = 0x20000, 0x2F7FF
_CAPITAL_SIGMA = "\u03a3"

_GROWTH = 3
"""Maximum bytes of folded text per byte of text: U+0390 is two bytes, its decomposition six."""
_PIECE_BYTES = 1 << 16
"""Bytes folded at a time, or a few more: one rare character sends that much through `normalize`."""


class FoldingTables(NamedTuple):
    """Replacements of characters.

    An entry packs, from the lowest bits up: canonical combining class of the replacement's last
    character (8 bits), of its first (8), the character's kind (8), bytes of the replacement (8; 0
    for a character that stays as it is), and where in ``pool`` it begins (32).

    Attributes:
        ascii_table: uint8[128], the replacement of each ASCII character; `_DROPPED` for nothing.
        entries: int64[65536], by code point.
        pool: uint8, bytes of all replacements.
    """

    ascii_table: Bytes
    entries: Int64s
    pool: Bytes


def normalized_utf8(text: str | bytes) -> Bytes:
    """The normalized text, given as such or in UTF-8, in UTF-8: uint8[n], lone surrogates in three
    bytes each.

    >>> bytes(normalized_utf8("  The U.S.A. – Today ")).decode()
    'the usa – today'
    """
    content = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    return normalized_each(np.frombuffer(content, np.uint8), np.array([len(content)]))[0]


def normalized_each(data: Bytes, ends: Int64s) -> tuple[Bytes, Int64s]:
    """The same of several texts.

    Args:
        data: their UTF-8, one behind the other.
        ends: after the last byte of each, int64.

    Returns:
        The same of the normalized texts.
    """
    return _folded_each(data, ends, folding_tables, normalize)


def folded_lines(data: Bytes, ends: Int64s) -> tuple[Bytes, Int64s]:
    r"""The same, with every newline kept: words are separated by spaces and newlines, of which
    there may be several.

    >>> text = np.frombuffer(b"The  U.S.A.\n\nToday", np.uint8)
    >>> bytes(folded_lines(text, np.array([len(text)]))[0]).decode()
    'the usa\n\ntoday'
    """
    return _folded_each(data, ends, _line_tables, _normalize_lines)


def _folded_each(
    data: Bytes, ends: Int64s, tables: Callable[[], FoldingTables], plainly: Callable[[str], str]
) -> tuple[Bytes, Int64s]:
    growth = 1 if data.max(initial=0) < 0x80 else _GROWTH
    out, out_ends = np.empty(growth * len(data) + 8, np.uint8), np.empty(len(ends), np.int64)
    text = 0
    while text < len(ends):
        if not _fold_each.is_interpreted:  # else the tables would take longer than the text
            text = _fold_each(data, ends, out, out_ends, text, tables())
            if text == len(ends):
                break
        begin, at = (ends[text - 1], out_ends[text - 1]) if text else (0, 0)
        out_ends[text] = at + _fold_pieces(data[begin : ends[text]], out[at:], tables, plainly)
        text += 1
    return out[: out_ends[-1]] if len(ends) else out[:0], out_ends


@borrowing
def _fold_each(
    data: Bytes, ends: Int64s, out: Bytes, out_ends: Int64s, text: int, tables: FoldingTables
) -> int:
    """Fold texts from one on, up to the first that `_fold_utf8` cannot fold; return its number, or
    how many texts there are.

    Args:
        data: UTF-8 of all texts.
        ends: after the last byte of each.
        out: gets the folded texts, one behind the other; room as for `_fold_utf8`.
        out_ends: gets the place after the last byte of each.
        text: the first text to be folded.
        tables: `folding_tables`.
    """
    begin, at = (ends[text - 1], out_ends[text - 1]) if text else (0, 0)
    while text < len(ends):
        n_out = _fold_utf8(data[begin : ends[text]], out[at:], tables)
        if n_out < 0:
            break
        begin, at = ends[text], at + n_out
        out_ends[text] = at
        text += 1
    return text


def _fold_pieces(
    content: Bytes,
    out: Bytes,
    tables: Callable[[], FoldingTables],
    plainly: Callable[[str], str],
) -> int:
    """Fold a text in pieces that end at spaces, some of them plainly; return how many bytes were
    written. No character's folding depends on what is beyond a space.
    """
    n_out = begin = 0
    while begin < len(content):
        end = _space_from(content, begin + _PIECE_BYTES)
        joint = min(n_out, 1)
        piece, rest = content[begin:end], out[n_out + joint :]
        n_more = -1 if _fold_each.is_interpreted else _fold_utf8(piece, rest, tables())
        if n_more < 0:
            plain = plainly(bytes(piece).decode("utf-8", "surrogatepass"))
            encoded = np.frombuffer(plain.encode("utf-8", "surrogatepass"), np.uint8)
            n_more = len(encoded)
            rest[:n_more] = encoded
        if n_more:
            out[n_out : n_out + joint] = _SPACE
            n_out += joint + n_more
        begin = end + 1
    return n_out


@borrowing
def _space_from(content: Bytes, at: int) -> int:
    """The place of the first space from ``at`` on, or where there is none."""
    while at < len(content) and content[at] != _SPACE:
        at += 1
    return at


@borrowing
def _fold_utf8(source: Bytes, out: Bytes, tables: FoldingTables) -> int:
    """Write normalized text.

    Args:
        source: well-formed UTF-8; lone surrogates are allowed, in three bytes each.
        out: room for three times as many bytes, and one more.
        tables: `folding_tables`.

    Returns:
        How many bytes were written; -1 where a character is irregular or in no table.
    """
    ascii_table, entries, pool = tables
    i = n_out = last_class = 0
    marks_end = -1
    after_space: Any = np.int64(1)
    while i < len(source):
        if i + 8 <= len(source):
            lowered, others = _lowered(eight_bytes(source, i), after_space)
            for at in range(8):
                out[np.uint64(n_out + at)] = np.uint8(lowered >> np.uint64(8 * at))
            if others == 0:  # by constants: the next eight need not wait for the comparison
                i, n_out = i + 8, n_out + 8
                after_space = np.int64(lowered >> _56 == _SPACE)
                continue
            n_plain = whole(count_bytes((others - _1) & ~others)) - 1  # before the first
            i, n_out = i + n_plain, n_out + n_plain
            if n_plain:
                after_space = np.int64(out[np.uint64(n_out - 1)] == _SPACE)
        byte = source[np.uint64(i)]
        if byte < 0x80:
            mapped = ascii_table[byte]
            is_space: Any = np.int64(mapped == _SPACE)
            is_dropped: Any = np.int64(mapped == _DROPPED)
            # Without branches: where words end cannot be predicted.
            out[np.uint64(n_out)] = mapped
            n_out += 1 - (is_dropped | (is_space & after_space))
            after_space = is_space | (is_dropped & after_space)
            i += 1
            continue
        point, length = code_point(source, i)
        beyond = point >= len(entries)
        entry: Any = np.int64(0) if beyond else entries[point]
        kind, first_class = (entry >> 16) & 255, (entry >> 8) & 255
        out_of_order = 0 < first_class < last_class and marks_end == n_out
        if kind == _IRREGULAR or out_of_order or (beyond and not _stays(point)):
            return -1
        if kind == _WHITE:
            out[n_out] = _SPACE
            n_out += 1 - after_space
            after_space = np.int64(1)
        else:
            n_replaced = (entry >> 24) & 255
            if n_replaced:
                n_out = _copied(pool, entry >> 32, n_replaced, out, n_out)
            else:
                n_out = _copied(source, i, length, out, n_out)
            after_space = np.int64(0)
            last_class, marks_end = entry & 255, n_out
        i += length
    return n_out - 1 if n_out > 0 and out[n_out - 1] == _SPACE else n_out


@inlined
def _lowered(eight: np.uint64, after_space: int) -> tuple[np.uint64, np.uint64]:
    """Eight bytes with ASCII's letters in lower case; and high bits of those that are no letters,
    digits or spaces of ASCII, or spaces after another. All are compared at once, as in Warren,
    Hacker's Delight (2002), section 6-1.
    """
    low = eight & LOW_BITS
    letters = _between(low | _SPACES, ord("a"), ord("z")) & ~eight
    spaces = _between(low, _SPACE, _SPACE) & ~eight
    digits = _between(low, ord("0"), ord("9")) & ~eight
    repeated = spaces & (spaces << _8 | np.uint64(after_space << 7))
    return eight | letters >> _2, (letters | spaces | digits) & ~repeated ^ HIGH_BITS


@inlined
def _between(eight: np.uint64, first: int, last: int) -> np.uint64:
    """High bits of those of eight ASCII characters that are between two."""
    from_first = eight + EVERY * np.uint64(0x80 - first)
    return from_first & ~(eight + EVERY * np.uint64(0x7F - last)) & HIGH_BITS


@borrowing
def _stays(point: int) -> bool:
    """Whether a character beyond the table stays as it is."""
    return _EMOJI_FIRST <= point <= _EMOJI_LAST or _IDEOGRAPHS_FIRST <= point <= _IDEOGRAPHS_LAST


@inlined
def _copied(source: Bytes, begin: int, n_bytes: int, out: Bytes, at: int) -> int:
    """Copy some bytes to a place; return the place after them."""
    for i in range(n_bytes):
        out[np.uint64(at + i)] = source[np.uint64(begin + i)]
    return at + n_bytes


@cache
def folding_tables() -> FoldingTables:
    """Make the tables, once per process: some 15 ms, 600 kB."""
    characters = list(map(chr, range(0x80, 0x10000)))
    # All at once: newlines separate them, and none of them becomes a newline.
    folded = unicodedata.normalize("NFD", "\n".join(characters).lower()).split("\n")
    kinds = dict.fromkeys(filter(str.isspace, characters), _WHITE)
    kinds[_CAPITAL_SIGMA] = _IRREGULAR  # its lower case is another letter at the end of a word
    entries, pool = [0] * 0x10000, bytearray()  # ASCII has its own table
    for old, new in zip(characters, folded, strict=True):
        if new != old or old in kinds or unicodedata.combining(old):
            piece = b"" if new == old else new.encode("utf-8", "surrogatepass")
            entries[ord(old)] = (
                len(pool) << 32
                | len(piece) << 24
                | kinds.get(old, 0) << 16
                | unicodedata.combining(new[0]) << 8
                | unicodedata.combining(new[-1])
            )
            pool += piece
    return FoldingTables(
        ascii_table=np.array([_ascii(chr(point)) for point in range(0x80)], np.uint8),
        entries=np.array(entries, np.int64),
        pool=np.frombuffer(bytes(pool), np.uint8),
    )


@cache
def _line_tables() -> FoldingTables:
    ascii_table = folding_tables().ascii_table.copy()
    ascii_table[_NEWLINE] = _NEWLINE
    return folding_tables()._replace(ascii_table=ascii_table)


def _normalize_lines(piece: str) -> str:
    return "\n".join(map(normalize, piece.split("\n")))


def _ascii(character: str) -> int:
    if character in string.punctuation:
        return _DROPPED
    return _SPACE if character.isspace() else ord(character.lower())
