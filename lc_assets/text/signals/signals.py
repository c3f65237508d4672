r"""RedPajama-V2's 29 rule signals of a text, equal to the published ones digit by digit.

Three need a list (`lc_assets.text.signals.names`). Signals that need a model are in
`lc_assets.text.rules.models`; `lc_assets.formats.redpajama.signals` reads published files.
Scores are rounded to eight digits. A mean over nothing is None.

===================================  ===============================================================
rps_doc_word_count                   normalized words (`lc_assets.text.words`)
rps_doc_mean_word_length             characters per normalized word
rps_doc_frac_unique_words            distinct normalized words, per normalized word
rps_doc_unigram_entropy              of the normalized words, natural logarithm
rps_doc_symbol_to_word_ratio         ``#``, ``...`` and ``…`` together, per raw word
rps_doc_frac_no_alph_words           raw words without a letter of ``a-zA-Z``, so punctuation and
                                     Cyrillic words count; ordinary prose scores 0.13 to 0.23
rps_doc_frac_all_caps_words          raw words in upper case
rps_doc_frac_lines_end_with_ellipsis lines that end with ``...`` or ``…``, white space aside
rps_doc_num_sentences                matches of ``\b[^.!?]+[.!?]*``
rps_doc_lorem_ipsum                  occurrences of "lorem ipsum" in the normalized text, per
                                     character of it
rps_doc_curly_bracket                ``{`` and ``}``, per character
rps_doc_frac_chars_top_Ngram         N of 2 to 4: characters of the most frequent n-gram (the first
                                     of equals) times its count, per character of all normalized
                                     words; overlaps count, so "ha ha ha ha" scores above 1; 0 when
                                     none repeats
rps_doc_frac_chars_dupe_Ngrams       N of 5 to 10: characters of the words in any repeated n-gram,
                                     the first occurrence included, each word once, per character
                                     of all normalized words
rps_lines_ending_with_terminal_punctution_mark  1.0 when the line ends with ``.``, ``!``, ``?`` or
                                     ``”``, white space aside
rps_lines_javascript_counts          normalized words that are "javascript"
rps_lines_num_words                  normalized words
rps_lines_numerical_chars_fraction   numeric characters, per character of the normalized line
rps_lines_start_with_bulletpoint     1.0 when the line starts with one of ten bullets, white space
                                     aside; ``-`` and ``*`` are not among them. A document without
                                     lines has one span without a score
rps_lines_uppercase_letter_fraction  upper case characters, per character with the newline
===================================  ===============================================================

Source: ``app/src/core/quality_signals`` of togethercomputer/RedPajama-Data, commit 6d2cee9; equal
    to the output of that code.
"""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from lc_assets.arrays import Floats, Int64s
from lc_assets.records import distinct
from lc_assets.text.characters import character_bits
from lc_assets.text.folding import folded_lines
from lc_assets.text.hashing import WordSet, hash_seed, utf8_of, word_set
from lc_assets.text.numbering import hash_bytes
from lc_assets.text.signals.names import (
    BULLET_LINES,
    NO_LISTS,
    RULE_SIGNALS,
    TEXT_DOC_SIGNALS,
    Span,
    WordLists,
)
from lc_assets.text.signals.passes import (
    BULLETS,
    ENDS,
    JAVASCRIPT,
    N_LINES,
    TERMINAL,
    WORDS,
    scan_words,
)
from lc_assets.text.signals.scores import (
    N_SCORES,
    Phrases,
    score_raw_of_each,
    score_words,
    score_words_of_each,
)
from lc_assets.text.texts import Texts, none_for_nan

_BULLETS = "rps_lines_start_with_bulletpoint"
_SCORES = (*enumerate((*TEXT_DOC_SIGNALS, "rps_doc_stop_word_fraction", "rps_doc_ldnoobw_words")),)
"""The document's scores as `score_words_of_each` orders them: their places and names."""

_NOTHING: frozenset[str] = frozenset()
_LONG = 1 << 24
"""Characters of a text whose memory counts."""

_OF_RAW_WORDS = frozenset(
    f"rps_doc_{name}"
    for name in (
        "curly_bracket",
        "frac_all_caps_words",
        "frac_lines_end_with_ellipsis",
        "frac_no_alph_words",
        "num_sentences",
        "symbol_to_word_ratio",
    )
)
WORD_SIGNALS = frozenset(TEXT_DOC_SIGNALS) - _OF_RAW_WORDS
"""Signals of normalized words alone, see `measure_words`."""
_WORD_COUNT = TEXT_DOC_SIGNALS.index("rps_doc_word_count")
_WORD_SCORES = tuple(place for place in _SCORES if place[1] in WORD_SIGNALS)


def signals_of(
    text: str, lists: WordLists = NO_LISTS, *, language: str = "", source_domain: str = ""
) -> dict[str, list[Span]]:
    r"""Compute the signals of a document's ``raw_content``.

    Args:
        text: the document.
        lists: for the signals that need one.
        language: of the document, two letters; selects the lists.
        source_domain: host of the document's page, to look up in the list of domains.

    Returns:
        ``{name: [(start, end, score), ...]}`` with positions in characters, in RedPajama-V2's key
        order.

    >>> signals = signals_of("The cat sat.\nThe dog ran!")
    >>> signals["rps_doc_word_count"], signals["rps_lines_num_words"]
    ([(0, 25, 6)], [(0, 13, 3), (13, 25, 3)])
    """
    measured = signals_of_each(Texts([text]), [source_domain], lists, language=language)
    return {name: spans for name, (spans,) in measured.spans().items()}


@distinct
class MeasuredTexts:
    """The signals of some texts of one language.

    Attributes:
        texts: the texts.
        scores: float64[texts, 22], see `score_words_of_each`; as are ``lines``.
        lines: int64[lines, 8].
        line_ends: int64[texts], after the last line of each.
        shares: float64[lines, 2], see `score_raw_of_each`.
        places: where in ``scores`` the signals are, and their names; those without a list are not
            among them.
        listed: for each text the number of its domain's set of categories, None for an unlisted
            domain; None when no list was given.
    """

    texts: Texts
    scores: Floats
    lines: Int64s
    line_ends: Int64s
    shares: Floats
    places: Sequence[tuple[int, str]]
    listed: Sequence[int | None] | None

    def columns(self) -> dict[str, Floats]:
        """The signals of whole documents, float64[texts] by name; NaN for None."""
        found = {name: self.scores[:, at] for at, name in self.places}
        if self.listed is not None:
            found["rps_doc_ut1_blacklist"] = np.array(self.listed, np.float64)
        found[BULLET_LINES] = self._bullets()
        return found

    def _bullets(self) -> Floats:
        """Lines with a bullet per line as CCNet counts them: a last empty one included."""
        before = np.append(0, np.cumsum(self.lines[:, BULLETS]))
        begins = np.append(0, self.line_ends[:-1])
        n_bullets = before[self.line_ends] - before[begins]
        shares: Floats = n_bullets / (self.texts.n_newlines + 1)
        return np.where(self.line_ends > begins, shares, np.nan)

    def spans(self) -> dict[str, list[list[Span]]]:
        """The signals as published, by name in RedPajama-V2's order: ``[(start, end, score), ...]``
        of each text.
        """
        n_chars, scores = self.texts.n_chars.tolist(), dict[str, Sequence[float | None]]()
        for name, column in self.columns().items():
            scores[name] = none_for_nan(column.tolist())
        scores["rps_doc_word_count"] = self.scores[:, _WORD_COUNT].astype(np.int64).tolist()
        if self.listed is not None:
            scores["rps_doc_ut1_blacklist"] = self.listed
        found = self._spans_of_lines(n_chars) | {
            name: [[(0, n, score)] for n, score in zip(n_chars, own, strict=True)]
            for name, own in scores.items()
        }
        return {name: found[name] for name in RULE_SIGNALS if name in found}

    @property
    def line_stops(self) -> Int64s:
        """int64[lines], where each line ends in its text, in characters."""
        return self.lines[:, ENDS]

    def scores_of_lines(self) -> dict[str, Int64s | Floats]:
        """The signals of lines, int64 or float64[lines] by name."""
        return {
            "rps_lines_ending_with_terminal_punctution_mark": self.lines[:, TERMINAL].astype(
                np.float64
            ),
            "rps_lines_javascript_counts": self.lines[:, JAVASCRIPT].astype(np.float64),
            "rps_lines_num_words": self.lines[:, WORDS],
            "rps_lines_numerical_chars_fraction": self.shares[:, 0],
            _BULLETS: self.lines[:, BULLETS].astype(np.float64),
            "rps_lines_uppercase_letter_fraction": self.shares[:, 1],
        }

    def _spans_of_lines(self, n_chars: Sequence[int]) -> dict[str, list[list[Span]]]:
        begins, stops = np.append(0, self.line_ends[:-1]), self.line_stops
        starts = np.append(0, stops[:-1])[: len(stops)]
        starts[begins[begins < len(stops)]] = 0
        ranges = list(zip(begins.tolist(), self.line_ends.tolist(), strict=True))
        found = dict[str, list[list[Span]]]()
        for name, scores in self.scores_of_lines().items():
            spans = list(zip(starts.tolist(), stops.tolist(), scores.tolist(), strict=True))
            found[name] = [spans[begin:end] for begin, end in ranges]
        bullets = zip(found[_BULLETS], n_chars, strict=True)
        return found | {_BULLETS: [own or [(0, n, None)] for own, n in bullets]}


def signals_of_each(
    texts: Texts,
    source_domains: Sequence[str],
    lists: WordLists = NO_LISTS,
    *,
    language: str = "",
) -> MeasuredTexts:
    """Compute the signals of some texts; arguments as of `signals_of`.

    >>> measured = signals_of_each(Texts(["The cat sat.", ""]), ["", ""])
    >>> measured.columns()["rps_doc_mean_word_length"].tolist()
    [3.0, nan]
    """
    stop_words = _word_set(lists.stop_words.get(language, _NOTHING))
    scores, lines, line_ends = _word_scores(texts, lists.bad_words.get(language, _NOTHING))
    shares = score_raw_of_each(
        *texts.utf8, hash_seed(), character_bits(), stop_words, scores, lines, line_ends
    )
    there = {
        "rps_doc_ldnoobw_words": language in lists.bad_words,
        "rps_doc_stop_word_fraction": language in lists.stop_words,
    }
    domains = lists.domains
    return MeasuredTexts(
        texts,
        scores,
        lines,
        line_ends,
        shares,
        [place for place in _SCORES if there.get(place[1], True)],
        None if domains is None else [domains.get(domain) for domain in source_domains],
    )


def measure_words(texts: Texts) -> dict[str, Floats]:
    """Compute only the `WORD_SIGNALS` of some texts, in half the time; float64[texts] by name, NaN
    for a mean over nothing.

    >>> measure_words(Texts(["The cat sat."]))["rps_doc_mean_word_length"].tolist()
    [3.0]
    """
    scores, _, _ = _word_scores(texts, _NOTHING)
    return {name: scores[:, at] for at, name in _WORD_SCORES}


def _word_scores(texts: Texts, bad_words: frozenset[str]) -> tuple[Floats, Int64s, Int64s]:
    """What `score_words_of_each` fills, and after the last line of each text."""
    phrases, seed, bits = _phrases(bad_words), hash_seed(), character_bits()
    ends_inside = [text[-1:] not in ("", "\n") for text in texts.texts]
    line_ends = np.cumsum(texts.n_newlines + np.array(ends_inside))
    scores = np.empty((len(line_ends), N_SCORES))
    lines = np.zeros((line_ends[-1], N_LINES), np.int64)
    if len(line_ends) == 1 and len(texts.texts[0]) > _LONG:
        # The normalized form is not kept beside the n-grams.
        words = scan_words(folded_lines(*texts.utf8)[0], bits, seed, phrases.words, lines)
        score_words(words, seed, phrases, scores[0])
    else:
        read = *folded_lines(*texts.utf8), seed, bits, phrases
        score_words_of_each(*read, scores, lines, line_ends)
    return scores, lines, line_ends


def first_score(spans: Sequence[Span]) -> float | None:
    """Score of the first span; None when there is none."""
    return spans[0][2] if spans else None


def bullet_fraction(bullets: Sequence[Span], n_lines: float | None) -> float | None:
    """Lines that start with a bullet, per line as CCNet counts them (a last empty line included).

    None when either is missing or there are no lines; so does `gopher_rules_pass` on the data
    set's card.

    >>> bullet_fraction([(0, 5, 1.0), (5, 9, 0.0)], 2.0)
    0.5
    """
    scores = [score for _, _, score in bullets if score is not None]
    return sum(scores) / n_lines if n_lines and scores else None


@lru_cache(maxsize=64)
def _word_set(words: frozenset[str]) -> WordSet:
    return word_set(sorted(words), utf8_of, lambda word, seed: hash_bytes(word, 0, len(word), seed))


@lru_cache(maxsize=64)
def _phrases(listed: frozenset[str]) -> Phrases:
    split = [tuple(phrase.split(" ")) for phrase in listed]
    words = sorted({word for phrase in split for word in phrase})
    number = {word: i for i, word in enumerate(words, start=1)}
    paths = {tuple(map(number.__getitem__, phrase)) for phrase in split}
    found = {path[:length] for path in paths for length in range(1, len(path) + 1)}
    begins = sorted(found, key=lambda path: (len(path), path))
    state = {path: i for i, path in enumerate([(), *begins])}
    steps = [state[path[:-1]] * (len(words) + 1) + path[-1] for path in begins]
    return Phrases(
        _word_set(frozenset(words)),
        np.array([*steps, np.iinfo(np.int64).max]),
        np.array([path in paths for path in begins], np.bool_),
    )
