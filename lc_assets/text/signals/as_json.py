"""Signals of many texts as JSON: ``"name":[[start,end,score],...]``, byte for byte as msgspec
writes them.

Nine tenths of a line of signals are spans of lines of text; to make a Python object of each takes
as long as to measure the texts. Scores have at most eight decimal digits, so the shortest number
that reads as a score is its decimal digits without zeros at the end.
"""

import msgspec
import numpy as np

from lc_assets.arrays import Booleans, Bytes, Floats, Int64s
from lc_assets.compiling import borrowing
from lc_assets.text.signals.names import LINE_SIGNALS, RULE_SIGNALS
from lc_assets.text.signals.signals import MeasuredTexts
from lc_assets.text.texts import parts

_WHOLE = frozenset(("rps_doc_word_count", "rps_doc_ut1_blacklist", "rps_lines_num_words"))
"""Signals that are whole numbers, which are written without a point."""
_OF_NO_LINES = LINE_SIGNALS.index("rps_lines_start_with_bulletpoint")
"""The signal of lines that has a span without a score where a text has no lines."""
_SCORE_BYTES = 20
"""Bytes of a score, at most."""
_SPAN_BYTES = 6
"""Bytes beside the numbers of a span, at most."""
_DIGITS = 8
_SCALE = 10**_DIGITS
_TINY = 1000
"""Scores below 1e-5, this many times 1e-8, are written with an exponent."""
_MOST, _MOST_WHOLE = 1e7, 2.0**53
"""Larger scores have more digits than a float64 tells apart."""
_ZERO, _OPEN, _CLOSE, _COMMA, _POINT, _EXPONENT, _MINUS = (np.uint8(ord(it)) for it in "0[],.e-")
_NULL = np.frombuffer(b"null", np.uint8)
_FAILED = -1

Whole = int | np.int64
"""A whole number as kernels have it."""


def spans_as_json(measured: MeasuredTexts) -> list[bytes]:
    """The signals of each text as a JSON object, without its braces."""
    written = None if _write_each.is_interpreted else _written(measured)
    if written is not None:
        return written
    spans = measured.spans()
    return [
        msgspec.json.encode(dict(zip(spans, own, strict=True)))[1:-1]
        for own in zip(*spans.values(), strict=True)
    ]


def _written(measured: MeasuredTexts) -> list[bytes] | None:
    """The same, by a kernel; None where a score has too many digits."""
    columns, lines = measured.columns(), measured.scores_of_lines()
    of_texts = [name for name in RULE_SIGNALS if name in columns]
    signals = [*of_texts, *LINE_SIGNALS]
    names = [f'"{name}":'.encode() for name in signals]
    n_chars, stops = measured.texts.n_chars, measured.line_stops
    width = 2 * len(str(n_chars.max(initial=0))) + _SCORE_BYTES + _SPAN_BYTES
    n_spans = len(n_chars) * (len(signals) + 1) + len(stops) * len(LINE_SIGNALS)
    out = np.empty(n_spans * width + len(n_chars) * sum(map(len, names)), np.uint8)
    ends = np.empty(len(n_chars), np.int64)
    is_written = _write_each(
        np.frombuffer(b"".join(names), np.uint8),
        np.cumsum([0, *map(len, names)]),
        np.array([name in _WHOLE for name in signals]),
        n_chars,
        np.stack([columns[name] for name in of_texts], axis=1),
        stops,
        measured.line_ends,
        np.stack([lines[name] for name in LINE_SIGNALS], axis=1, dtype=np.float64),
        out,
        ends,
    )
    return [part.tobytes() for part in parts(out, ends)] if is_written else None


@borrowing
def _write_each(
    names: Bytes,
    name_ends: Int64s,
    is_whole: Booleans,
    n_chars: Int64s,
    scores: Floats,
    stops: Int64s,
    line_ends: Int64s,
    line_scores: Floats,
    out: Bytes,
    ends: Int64s,
) -> bool:
    """Write the signals of each text behind those of the one before; False where a score has too
    many digits.

    Args:
        names: of the signals, of texts and then of lines, in quotes and with a colon, one behind
            the other.
        name_ends: 0, and after the last byte of each name.
        is_whole: which signals are whole numbers.
        n_chars: characters of each text.
        scores: ``(texts, signals of texts)``, NaN for null.
        stops: where each line ends, in characters.
        line_ends: after the last line of each text.
        line_scores: ``(lines, signals of lines)``.
        out: filled.
        ends: after the last byte of each text, filled.
    """
    at, line, n_scores = 0, 0, scores.shape[1]
    for text in range(len(ends)):
        for signal in range(len(is_whole)):
            if signal:
                out[at] = _COMMA
                at += 1
            for place in range(name_ends[signal], name_ends[signal + 1]):
                out[at] = names[place]
                at += 1
            out[at] = _OPEN
            at += 1
            if signal < n_scores:
                score = scores[text, signal]
                at = _write_span(out, at, 0, n_chars[text], score, is_whole[signal])
            elif line < line_ends[text]:
                own = line_scores[line : line_ends[text], signal - n_scores]
                at = _write_spans(out, at, stops[line : line_ends[text]], own, is_whole[signal])
            elif signal == n_scores + _OF_NO_LINES:
                at = _write_span(out, at, 0, n_chars[text], np.nan, False)
            if at < 0:
                return False
            out[at] = _CLOSE
            at += 1
        line, ends[text] = line_ends[text], at
    return True


@borrowing
def _write_spans(out: Bytes, at: int, stops: Int64s, scores: Floats, is_whole: bool) -> int:
    """Write the spans of lines at a place; return the place behind them, or a negative one."""
    start = np.int64(0)
    for line in range(len(stops)):
        if line:
            out[at] = _COMMA
            at += 1
        at = _write_span(out, at, start, stops[line], scores[line], is_whole)
        if at < 0:
            break
        start = stops[line]
    return at


@borrowing
def _write_span(out: Bytes, at: int, start: Whole, end: Whole, score: float, is_whole: bool) -> int:
    """Write ``[start,end,score]``; see `_write_spans`."""
    out[at] = _OPEN
    at = _write_digits(out, at + 1, start, 1)
    out[at] = _COMMA
    at = _write_digits(out, at + 1, end, 1)
    out[at] = _COMMA
    at = _write_score(out, at + 1, score, is_whole)
    if at >= 0:
        out[at] = _CLOSE
        at += 1
    return at


@borrowing
def _write_digits(out: Bytes, at: int, number: Whole, least: int) -> int:
    """Write a number from 0 with ``least`` or more digits; return the place behind it."""
    n_digits, rest = 1, number // 10
    while rest > 0:
        n_digits += 1
        rest //= 10
    end = at + max(n_digits, least)
    for place in range(end - 1, at - 1, -1):
        out[place] = _ZERO + np.uint8(number % 10)
        number //= 10
    return end


@borrowing
def _write_score(out: Bytes, at: int, score: float, is_whole: bool) -> int:
    """Write a score, without a point where it ``is_whole``; see `_write_spans`."""
    if np.isnan(score):
        for byte in _NULL:
            out[at] = byte
            at += 1
        return at
    if np.signbit(score) or score >= _MOST_WHOLE:
        return _FAILED
    if score == np.floor(score):
        at = _write_digits(out, at, np.int64(score), 1)
        if not is_whole:
            out[at], out[at + 1] = _POINT, _ZERO
            at += 2
        return at
    scaled = np.int64(np.rint(score * _SCALE))
    if score >= _MOST or scaled / _SCALE != score:
        return _FAILED
    if scaled < _TINY:
        return _write_tiny(out, at, scaled)
    at = _write_digits(out, at, scaled // _SCALE, 1)
    out[at] = _POINT
    at = _write_digits(out, at + 1, scaled % _SCALE, _DIGITS)
    while out[at - 1] == _ZERO:
        at -= 1
    return at


@borrowing
def _write_tiny(out: Bytes, at: int, scaled: Whole) -> int:
    """Write ``scaled`` times 1e-8, from 1 to 999, such as ``1.5e-7``."""
    begin, exponent = at, _DIGITS
    at = _write_digits(out, at + 1, scaled, 1)
    exponent -= at - begin - 2
    while out[at - 1] == _ZERO:
        at -= 1
    out[begin] = out[begin + 1]
    out[begin + 1] = _POINT
    if at == begin + 2:
        at -= 1
    out[at], out[at + 1], out[at + 2] = _EXPONENT, _MINUS, _ZERO + np.uint8(exponent)
    return at + 3
