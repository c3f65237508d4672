"""Signals of every line of a document.

==============================================  =============================================================
rps_lines_ending_with_terminal_punctution_mark  1.0 when it ends with ``.``, ``!``, ``?`` or ``”``,
whitespace aside
rps_lines_javascript_counts                     normalized words that are "javascript"
rps_lines_num_words                             normalized words
rps_lines_numerical_chars_fraction              numeric characters, per character of the normalized line
rps_lines_start_with_bulletpoint                1.0 when it starts with one of ten bullets, whitespace aside;
                                                ``-`` and ``*`` are not among them. A document
                                                without lines has one span without a score
rps_lines_uppercase_letter_fraction             upper case characters, per character with the newline
==============================================  =============================================================

Source: ``quality_signals/lines.py`` of togethercomputer/RedPajama-Data.
"""

from collections.abc import Iterator

from lc_assets.text.words import Document

TERMINAL_MARKS = (".", "!", "?", "\u201d")
BULLETS = tuple("\u2022\u2023\u25b6\u25c0\u25e6\u25a0\u25a1\u25aa\u25ab\u2013")

Scores = list[tuple[tuple[int, int], float | None]]


def line_signals(document: Document) -> dict[str, Scores]:
    """Compute all six: ``{name: [((start, end), unrounded score), ...]}``."""
    spans, lines, line_words = document.line_spans, document.lines, document.line_words

    def scored(scores: Iterator[float]) -> Scores:
        return list(zip(spans, scores, strict=True))

    return {
        "rps_lines_ending_with_terminal_punctution_mark": scored(
            float(line.rstrip().endswith(TERMINAL_MARKS)) for line in lines
        ),
        "rps_lines_javascript_counts": scored(
            float(words.count("javascript")) for words in line_words
        ),
        "rps_lines_num_words": scored(map(len, line_words)),
        "rps_lines_numerical_chars_fraction": scored(map(_numeric_fraction, line_words)),
        "rps_lines_start_with_bulletpoint": scored(
            float(line.lstrip().startswith(BULLETS)) for line in lines
        )
        or [(document.span, None)],
        "rps_lines_uppercase_letter_fraction": scored(
            sum(map(str.isupper, line)) / len(line) for line in lines
        ),
    }


def _numeric_fraction(words: list[str]) -> float:
    line = " ".join(words)
    return sum(map(str.isnumeric, line)) / (len(line) or 1)
