"""Scan lines of a signals file for some of their scores, without decoding the rest.

Nine tenths of a line are scores of single lines of text. `LineScanner` reads what RedPajama-V2's
program writes: compact JSON, fields in its order, no escapes in id and address, numbers of few
digits. Of any other line it returns None, and the caller decodes it as JSON. Scores that are not
needed are checked for their characters only.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from lc_assets.arrays import Bytes, Floats, Int64s
from lc_assets.compiling import borrowing, inlined
from lc_assets.text.signals.names import BULLET_LINES

BULLET_NEEDS = ("rps_lines_start_with_bulletpoint", "ccnet_nlines")
"""Signals that the share of lines with a bullet is computed from."""

_QUOTE, _BACKSLASH, _COLON, _COMMA = (np.uint8(ord(it)) for it in '"\\:,')
_OPEN, _CLOSE = (np.uint8(ord(it)) for it in "[]")
_ZERO, _NINE, _POINT, _MINUS = (np.uint8(ord(it)) for it in "09.-")
_CONTROLS = np.uint8(32)
"""Bytes below are control characters."""
_NUMERIC = np.isin(np.arange(256), list(b"0123456789+-.eE,[]nul"))
"""Characters of numbers, null, and lists of them."""
_ID_INT, _METADATA, _URL, _SIGNALS, _NULL, _LISTS, _NEXT, _BRACES = (
    np.frombuffer(it.encode(), np.uint8)
    for it in (
        *('","id_int":', ',"metadata":{"', "url", '},"quality_signals":{"'),
        *("null", "[[", ',"', "}}"),
    )
)
_MOST_DIGITS = 10
"""Of the number of a line."""
_POWERS = 10.0 ** np.arange(16)
"""Powers of ten that a float64 holds exactly."""
_FAILED = -1
NOT_READ = -1
_REPLACED = "\ufffd"
"""In an address that is not UTF-8."""


class Scanned(NamedTuple):
    """Some lines of a signals file.

    Attributes:
        lines: int64, line of each one's document; `NOT_READ` where it must be decoded.
        urls: addresses of the documents.
        scores: float64[line, name], NaN where there is none.
    """

    lines: Int64s
    urls: list[str]
    scores: Floats


class LineScanner:
    """Reads some signals of lines.

    Args:
        names: of `lc_assets.text.signals.names.SCALARS`.
        prefix: what each line's id has before the number of its document's line.
    """

    def __init__(self, names: Sequence[str], prefix: str) -> None:
        keys = [name for name in names if name != BULLET_LINES]
        self._bullets = names.index(BULLET_LINES) if BULLET_LINES in names else -1
        self._places = np.array([names.index(name) for name in keys], np.int64)
        self._needs = (-1, -1)
        if self._bullets >= 0:
            keys += [name for name in BULLET_NEEDS if name not in keys]
            self._needs = keys.index(BULLET_NEEDS[0]), keys.index(BULLET_NEEDS[1])
        begin, joined = (
            np.frombuffer(text.encode(), np.uint8) for text in (f'{{"id":"{prefix}', "".join(keys))
        )
        self._wanted = begin, joined, np.cumsum([0, *map(len, keys)], dtype=np.int64)
        self._n_names = len(names)

    def scan(self, lines: Sequence[bytes]) -> Scanned:
        """Read lines without their newlines; empty ones are not read."""
        numbers, scores = np.full(len(lines), NOT_READ), np.empty((len(lines), self._n_names))
        if not any(lines):
            return Scanned(numbers, [""] * len(lines), scores)
        content, places = b"".join(lines), np.cumsum([0, *map(len, lines)], dtype=np.int64)
        bounds = np.zeros((len(lines), 2), np.int64)
        values = np.full((len(lines), len(self._wanted[2]) - 1, 3), np.nan)
        joined = np.frombuffer(content, np.uint8), places
        _read_lines(joined, self._wanted, numbers, bounds, values)
        scores[:, self._places] = values[:, : len(self._places), 0]
        if self._bullets >= 0:
            starts, of_lines = self._needs
            _, n_scores, total = values[:, starts].T
            n_lines = values[:, of_lines, 0]
            scores[:, self._bullets] = np.nan
            has_any = (n_scores > 0) & (n_lines != 0)
            np.divide(total, n_lines, out=scores[:, self._bullets], where=has_any)
            numbers[total % 1 > 0] = NOT_READ  # other sums depend on who adds them
        bounds += places[:-1, np.newaxis]
        urls = [content[begin:end].decode(errors="replace") for begin, end in bounds.tolist()]
        numbers[[_REPLACED in url for url in urls]] = NOT_READ
        return Scanned(numbers, urls, scores)


@inlined
def _holds(line: Bytes, at: int, wanted: Bytes) -> bool:
    """Whether a line has these bytes at a place."""
    if at + len(wanted) > len(line):
        return False
    for i in range(len(wanted)):  # noqa: SIM110 - numba compiles no generators
        if line[at + i] != wanted[i]:
            return False
    return True


@inlined
def _string_end(line: Bytes, at: int) -> int:
    """Place of the quote that ends a string which begins here; negative where it has escapes or
    control characters, or does not end.
    """
    while at < len(line):
        byte = line[at]
        if byte == _QUOTE:
            return at
        if byte == _BACKSLASH or byte < _CONTROLS:
            return _FAILED
        at += 1
    return _FAILED


@inlined
def _digits_end(line: Bytes, at: int) -> int:
    """Place behind a whole number without a sign; negative where there is none."""
    begin = at
    while at < len(line) and _ZERO <= line[at] <= _NINE:
        at += 1
    return at if at == begin + 1 or (at > begin and line[begin] != _ZERO) else _FAILED


@borrowing
def _number(line: Bytes, at: int) -> tuple[int, float]:
    """Read a number of at most 15 digits without an exponent; return the place behind it, or a
    negative one for any other, and the number. One division of exact numbers rounds as a decimal
    reader does.
    """
    negative = at < len(line) and line[at] == _MINUS
    begin = at + negative
    at = point = _digits_end(line, begin)
    if at < 0:
        return _FAILED, np.nan
    if at < len(line) and line[at] == _POINT:
        at += 1
        while at < len(line) and _ZERO <= line[at] <= _NINE:
            at += 1
        if at == point + 1:
            return _FAILED, np.nan
    if at - begin > 15:
        return _FAILED, np.nan
    whole = np.int64(0)
    for i in range(begin, at):
        if i != point:
            whole = whole * 10 + np.int64(line[i] - _ZERO)
    found = np.float64(whole) / _POWERS[max(at - point - 1, 0)]
    return at, -found if negative else found


@borrowing
def _score_end(line: Bytes, at: int) -> tuple[int, float]:
    """Read ``[start,end,score]``; return the place behind it, or a negative one, and the score, NaN
    where it is null.
    """
    if at >= len(line) or line[at] != _OPEN:
        return _FAILED, np.nan
    for _ in range(2):
        at = _digits_end(line, at + 1)
        if at < 0 or at >= len(line) or line[at] != _COMMA:
            return _FAILED, np.nan
    score = np.nan
    if _holds(line, at + 1, _NULL):
        at += 5
    else:
        at, score = _number(line, at + 1)
    return (at + 1 if 0 <= at < len(line) and line[at] == _CLOSE else _FAILED), score


@borrowing
def _scores_end(line: Bytes, at: int, value: Floats) -> int:
    """Read ``[[start,end,score],…]`` into the first score (NaN where there is none), how many are
    not null, and their sum; return the place behind it, or a negative one.
    """
    value[1] = value[2] = 0.0
    at, n_spans = at + 1, 0
    if not _holds(line, at - 1, _LISTS):
        return at + 1 if at < len(line) and line[at] == _CLOSE else _FAILED
    while at < len(line) and (line[at] == _COMMA or not n_spans):
        at, score = _score_end(line, at + (n_spans > 0))
        if at < 0:
            return _FAILED
        if not n_spans:
            value[0] = score
        n_spans += 1
        if not np.isnan(score):
            value[1] += 1.0
            value[2] += score
    return at + 1 if at < len(line) and line[at] == _CLOSE else _FAILED


@inlined
def _skipped_end(line: Bytes, at: int) -> int:
    """Pass over a value of numbers in lists; return the place behind it, or a negative one."""
    begin = at
    while at < len(line) and _NUMERIC[line[at]]:
        at += 1
    if at < len(line) and line[at] == _QUOTE:  # of the next name, behind a comma
        at -= 1
    return at if at > begin + 1 and line[begin] == _OPEN and line[at - 1] == _CLOSE else _FAILED


@inlined
def _key_at(line: Bytes, begin: int, end: int, keys: Bytes, ends: Int64s) -> int:
    """Number of a name among the wanted ones, or a negative one."""
    for number in range(len(ends) - 1):
        if ends[number + 1] - ends[number] == end - begin and _holds(
            line, begin, keys[ends[number] : ends[number + 1]]
        ):
            return number
    return _FAILED


@inlined
def _name_end(line: Bytes, at: int) -> int:
    """Place of the quote that ends a name which begins here and has a value; else negative."""
    at = _string_end(line, at)
    return at if 0 <= at < len(line) - 2 and line[at + 1] == _COLON else _FAILED


@borrowing
def _identity_end(line: Bytes, begin: Bytes, number: Int64s, bounds: Int64s) -> int:
    """Read the beginning of a line; return the place behind the quote before its first signal, or a
    negative one.

    Args:
        line: without its newline.
        begin: as it begins, up to the number in its id.
        number: ``(1,)``, filled with that.
        bounds: ``(2,)``, filled with where the address begins and ends.
    """
    at = _digits_end(line, len(begin)) if _holds(line, 0, begin) else _FAILED
    if at < 0 or at - len(begin) > _MOST_DIGITS or not _holds(line, at, _ID_INT):
        return _FAILED
    number[0] = 0
    for i in range(len(begin), at):
        number[0] = number[0] * 10 + np.int64(line[i] - _ZERO)
    at = _digits_end(line, at + len(_ID_INT))
    if at < 0 or not _holds(line, at, _METADATA):
        return _FAILED
    at += len(_METADATA)
    while True:
        start, at = at, _name_end(line, at)
        if at < 0 or line[at + 2] != _QUOTE:
            return _FAILED
        is_url = at - start == len(_URL) and _holds(line, start, _URL)
        start, at = at + 3, _string_end(line, at + 3)
        if at < 0 or (is_url and bounds[0]):
            return _FAILED
        if is_url:
            bounds[0], bounds[1] = start, at
        if _holds(line, at + 1, _SIGNALS):
            return at + 1 + len(_SIGNALS)
        if not _holds(line, at + 1, _NEXT):
            return _FAILED
        at += 1 + len(_NEXT)


@borrowing
def _read_signals(line: Bytes, at: int, keys: Bytes, ends: Int64s, values: Floats) -> bool:
    """Read the signals of a line; False where it must be decoded.

    Args:
        line: without its newline.
        at: behind the quote before its first signal.
        keys: the names of wanted signals, one behind the other.
        ends: ``(n + 1,)``, where names begin and end.
        values: ``(n, 3)``, NaN, filled with the first score, the number of scores that are not
            null, and their sum.
    """
    while True:
        begin, at = at, _name_end(line, at)
        if at < 0:
            return False
        key = _key_at(line, begin, at, keys, ends)
        if key < 0:
            at = _skipped_end(line, at + 2)
        elif not np.isnan(values[key, 1]):
            return False  # a second time
        else:
            at = _scores_end(line, at + 2, values[key])
        if at < 0 or not _holds(line, at, _NEXT):
            return at >= 0 and at + len(_BRACES) == len(line) and _holds(line, at, _BRACES)
        at += len(_NEXT)


@borrowing
def _read_lines(
    lines: tuple[Bytes, Int64s],
    wanted: tuple[Bytes, Bytes, Int64s],
    numbers: Int64s,
    bounds: Int64s,
    values: Floats,
) -> None:
    """Read lines; see `_identity_end` and `_read_signals`.

    Args:
        lines: one behind the other, without newlines; and ``(lines + 1,)``, where they begin and
            end.
        wanted: how each begins, up to the number in its id; names of signals, and their ends.
        numbers: ``(lines,)``, filled where a line was read, else `NOT_READ`.
        bounds: ``(lines, 2)``, zeros, filled with where addresses begin and end.
        values: ``(lines, n, 3)``, NaN, filled.
    """
    (content, places), (begin, keys, ends) = lines, wanted
    for i in range(len(numbers)):
        line = content[places[i] : places[i + 1]]
        at = _identity_end(line, begin, numbers[i : i + 1], bounds[i])
        if at < 0 or not _read_signals(line, at, keys, ends, values[i]):
            numbers[i] = NOT_READ
