"""The signals of one document in columns, and as spans when somebody asks for them.

Here: the value. Not here: how it is computed (`lc_assets.text.signals`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lc_assets.text.fast_signals import FAST_SCORES, Measured
from lc_assets.text.signal_lists import WordLists
from lc_assets.text.signal_names import BULLET_LINES, LINE_SIGNALS, RULE_SIGNALS, Signals, Span

_BULLETS = "rps_lines_start_with_bulletpoint"


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredSignals:
    """What was measured of a document.

    Attributes:
        n_chars: of the text; every span of the whole document ends there.
        scalars: the signals of the whole document by name, rounded, None where a mean has nothing
            to be a mean of; and `BULLET_LINES`, by the lines of the text. Signals without a list
            are left out.
        line_ends: int64, where each line ends, in characters.
        line_scores: int64 or float64 of each line, rounded, by name.
    """

    n_chars: int
    scalars: Mapping[str, float | None]
    line_ends: NDArray[np.int64]
    line_scores: Mapping[str, NDArray[np.int64] | NDArray[np.float64]]

    def spans(self) -> dict[str, list[Span]]:
        """The signals as published: ``{name: [(start, end, score), ...]}``."""
        whole = {
            name: [(0, self.n_chars, score)]
            for name, score in self.scalars.items()
            if name != BULLET_LINES
        }
        ends = self.line_ends.tolist()
        starts = [0, *ends[:-1]]
        lines: dict[str, list[Span]] = {
            name: list(zip(starts, ends, self.line_scores[name].tolist(), strict=False))
            for name in LINE_SIGNALS
        }
        if not ends:
            lines[_BULLETS] = [(0, self.n_chars, None)]
        found: dict[str, list[Span]] = {**whole, **lines}
        return {name: found[name] for name in RULE_SIGNALS if name in found}


def measured_of_columns(
    text: str, measured: Measured, lists: WordLists, *, language: str, source_domain: str
) -> MeasuredSignals:
    """Name what the compiled loops found; leave out what had no list."""
    # Only NaN differs from itself.
    scalars = {
        name: None if score != score else score  # noqa: PLR0124
        for name, score in zip(FAST_SCORES, measured.scores.tolist(), strict=True)
    }
    scalars["rps_doc_word_count"] = int(scalars["rps_doc_word_count"] or 0)
    if language not in lists.bad_words:
        del scalars["rps_doc_ldnoobw_words"]
    if language not in lists.stop_words:
        del scalars["rps_doc_stop_word_fraction"]
    if lists.domains is not None:
        scalars["rps_doc_ut1_blacklist"] = lists.domains.get(source_domain)
    ends, terminal, javascript, words, bullets = measured.line_counts
    columns: dict[str, NDArray[np.int64] | NDArray[np.float64]] = {
        "rps_lines_ending_with_terminal_punctution_mark": terminal.astype(np.float64),
        "rps_lines_javascript_counts": javascript.astype(np.float64),
        "rps_lines_num_words": words,
        "rps_lines_numerical_chars_fraction": measured.line_shares[0],
        _BULLETS: bullets.astype(np.float64),
        "rps_lines_uppercase_letter_fraction": measured.line_shares[1],
    }
    scalars[BULLET_LINES] = _bullets_of(text, len(ends), float(bullets.sum()))
    return MeasuredSignals(len(text), scalars, ends, columns)


def measured_of_spans(text: str, signals: Signals) -> MeasuredSignals:
    """Put spans into columns: the plain way round."""
    scalars: dict[str, float | None] = {
        name: first_score(spans) for name, spans in signals.items() if name not in LINE_SIGNALS
    }
    ends = np.array([end for _, end, _ in signals["rps_lines_num_words"]], np.int64)
    columns: dict[str, NDArray[np.int64] | NDArray[np.float64]] = {
        name: np.array([score for _, _, score in signals[name] if score is not None], np.float64)
        for name in LINE_SIGNALS
    }
    columns["rps_lines_num_words"] = columns["rps_lines_num_words"].astype(np.int64)
    scalars[BULLET_LINES] = _bullets_of(text, len(ends), float(columns[_BULLETS].sum()))
    return MeasuredSignals(len(text), scalars, ends, columns)


def first_score(spans: Sequence[Span]) -> float | None:
    """Score of the first span; None when there is none."""
    return spans[0][2] if spans else None


def bullet_fraction(bullets: Sequence[Span], n_lines: float | None) -> float | None:
    """Lines that start with a bullet, per line as CCNet counts them (a last empty line included).

    None when either is missing or there are no lines; `gopher_rules_pass` on the data set's card
    computes it so.

    >>> bullet_fraction([(0, 5, 1.0), (5, 9, 0.0)], 2.0)
    0.5
    """
    scores = [score for _, _, score in bullets if score is not None]
    return sum(scores) / n_lines if n_lines and scores else None


def _bullets_of(text: str, n_lines: int, n_bullets: float) -> float | None:
    return n_bullets / (text.count("\n") + 1) if n_lines else None
