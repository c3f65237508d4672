"""Slow reference of `lc_assets.text.signals.signals`: each signal by itself, straight from its
definition.

Nothing is shared between signals but the words, and no n-gram is left out of any count.
"""

import math
import re
import string
import unicodedata
from collections import Counter

Spans = list[tuple[int, int, float | int | None]]


def normalize(text: str) -> str:
    """Remove ASCII punctuation, lower, strip, collapse whitespace, and decompose last."""
    kept = "".join(character for character in text if character not in string.punctuation)
    return unicodedata.normalize("NFD", re.sub(r"\s+", " ", kept.lower().strip()))


def slow_signals(
    text: str, *, stop_words=None, bad_words=None, domains=None, source_domain: str = ""
) -> dict[str, Spans]:
    """All 29 signals; those without their list (of one language) are left out."""
    words = normalize(text).split()
    raw_words = re.findall(r"\w+|[^\w\s]+", text)
    lines = [
        (match.start(), match.end(), match.group())
        for match in re.finditer(r"[^\n]*\n|[^\n]+$", text)
    ]
    whole = {
        "rps_doc_curly_bracket": sum(character in "{}" for character in text) / len(text)
        if text
        else 0.0,
        "rps_doc_lorem_ipsum": len(re.findall("lorem ipsum", normalize(text)))
        / max(1, len(normalize(text))),
        **{
            f"rps_doc_frac_chars_dupe_{n}grams": dupe_fraction(words, n)
            for n in (10, 5, 6, 7, 8, 9)
        },
        **{f"rps_doc_frac_chars_top_{n}gram": top_fraction(words, n) for n in (2, 3, 4)},
        "rps_doc_frac_all_caps_words": mean([word.isupper() for word in raw_words]),
        "rps_doc_frac_lines_end_with_ellipsis": mean(
            [line.rstrip().endswith(("...", "…")) for *_, line in lines]
        ),
        "rps_doc_frac_no_alph_words": None
        if not raw_words
        else 1 - mean([bool(re.search("[a-zA-Z]", word)) for word in raw_words]),
        "rps_doc_frac_unique_words": len(set(words)) / len(words) if words else None,
        "rps_doc_mean_word_length": mean([len(word) for word in words]),
        "rps_doc_num_sentences": float(len(re.findall(r"\b[^.!?]+[.!?]*", text))),
        "rps_doc_symbol_to_word_ratio": sum(map(text.count, ("#", "...", "…"))) / len(raw_words)
        if raw_words
        else None,
        "rps_doc_unigram_entropy": entropy(words),
        "rps_doc_word_count": len(words),
    }
    if stop_words is not None:
        whole["rps_doc_stop_word_fraction"] = (
            mean([word in stop_words for word in raw_words]) if words else 0.0
        )
    if bad_words is not None:
        whole["rps_doc_ldnoobw_words"] = float(n_bad(words, bad_words))
    if domains is not None:
        whole["rps_doc_ut1_blacklist"] = domains.get(source_domain)
    signals: dict[str, Spans] = {
        name: [(0, len(text), rounded(score))] for name, score in whole.items()
    }
    for name, score_of in LINE_SCORES.items():
        signals[name] = [(start, end, rounded(score_of(line))) for start, end, line in lines]
    if not lines:
        signals["rps_lines_start_with_bulletpoint"] = [(0, len(text), None)]
    return signals


def n_bad(words: list[str], listed) -> int:
    """Runs of words that are listed, of every length that the list has."""
    total = 0
    for n in {entry.count(" ") + 1 for entry in listed}:
        total += sum(
            " ".join(gram) in listed
            for gram in zip(*(words[offset:] for offset in range(n)), strict=False)
        )
    return total


def top_fraction(words: list[str], n: int) -> float:
    """Characters of the most frequent n-gram, the first seen among equals, times its count."""
    grams = Counter(zip(*(words[offset:] for offset in range(n)), strict=False)).most_common(1)
    if not grams or grams[0][1] <= 1:
        return 0.0
    return sum(map(len, grams[0][0])) * grams[0][1] / sum(map(len, words))


def dupe_fraction(words: list[str], n: int) -> float:
    """Characters of words within n-grams that occur more than once."""
    grams = [tuple(words[start : start + n]) for start in range(len(words) - n + 1)]
    counts = Counter(grams)
    marked = {
        start + offset
        for start, gram in enumerate(grams)
        if counts[gram] > 1
        for offset in range(n)
    }
    return sum(len(words[place]) for place in marked) / sum(map(len, words)) if marked else 0.0


def entropy(words: list[str]) -> float | None:
    """Entropy in nats, terms added one by one in the order of first occurrence."""
    if not words:
        return None
    total = 0.0
    for count in Counter(words).values():
        total += -count / len(words) * math.log(count / len(words))
    return total


def mean(values: list[int]) -> float | None:
    """Sum over count; None of nothing."""
    return sum(values) / len(values) if values else None


def rounded(score: float | None) -> float | None:
    """To eight digits."""
    return None if score is None else round(score, 8)


LINE_SCORES = {
    "rps_lines_ending_with_terminal_punctution_mark": lambda line: (
        1.0 if line.rstrip().endswith((".", "!", "?", "”")) else 0.0
    ),
    "rps_lines_javascript_counts": lambda line: float(normalize(line).split().count("javascript")),
    "rps_lines_num_words": lambda line: len(normalize(line).split()),
    "rps_lines_numerical_chars_fraction": lambda line: (
        mean([character.isnumeric() for character in normalize(line)]) or 0.0
    ),
    "rps_lines_start_with_bulletpoint": lambda line: (
        1.0 if line.lstrip()[:1] in set("•‣▶◀◦■□▪▫–") else 0.0
    ),
    "rps_lines_uppercase_letter_fraction": lambda line: mean(
        [character.isupper() for character in line]
    ),
}
