"""Lists of words and of domains, and the three signals that need one.

=========================== ==================================================================================
rps_doc_stop_word_fraction  raw words that are on the language's list as they are spelt, per raw
word; 0 of a
                            document without normalized words
rps_doc_ldnoobw_words       runs of normalized words that, joined by spaces, are on the language's list. The
                            list itself is not normalized, so what holds a capital, an accented
                            letter in one character or ASCII punctuation never matches
rps_doc_ut1_blacklist       number of the domain's set of categories; None of a domain that is not listed
=========================== ==================================================================================

A signal whose list is not given, or not for the document's language, is absent. Here: the lists as
values, and the counting done plainly. Not here: reading them (`lc_assets.formats.word_lists`).

Source: ``app/src/core/quality_signals/content.py`` and ``natural_language.py`` of
    togethercomputer/RedPajama-Data.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lc_assets.text.signal_names import Span


@dataclass(frozen=True, slots=True, kw_only=True)
class WordLists:
    """What the signals of `LIST_SIGNALS` are computed from.

    Attributes:
        stop_words: by language.
        bad_words: by language; an entry may be several words, with a space between two.
        domains: number of its set of categories, by domain; None when no list was given.
        digests: SHA-256 of each file read, in hexadecimal, by what it was read for and its name;
            for receipts.
    """

    stop_words: Mapping[str, frozenset[str]] = field(default_factory=dict)
    bad_words: Mapping[str, frozenset[str]] = field(default_factory=dict)
    domains: Mapping[str, int] | None = None
    digests: Mapping[str, str] = field(default_factory=dict)


NO_LISTS = WordLists()


def list_signals(
    lists: WordLists,
    *,
    words: Sequence[str],
    raw_words: Sequence[str],
    language: str,
    source_domain: str,
    span: tuple[int, int],
) -> dict[str, list[Span]]:
    """Compute the signals whose lists are given.

    >>> lists = WordLists(bad_words={"en": frozenset({"darn", "darn it"})}, domains={"example.org": 3})
    >>> list_signals(lists, words=["darn", "it"], raw_words=[], language="en", source_domain="example.org", span=(0, 7))
    {'rps_doc_ldnoobw_words': [(0, 7, 2.0)], 'rps_doc_ut1_blacklist': [(0, 7, 3)]}
    """
    scores: dict[str, float | int | None] = {}
    if language in lists.bad_words:
        scores["rps_doc_ldnoobw_words"] = float(_n_listed(words, lists.bad_words[language]))
    if language in lists.stop_words:
        stop_words = lists.stop_words[language]
        scores["rps_doc_stop_word_fraction"] = (
            round(sum(word in stop_words for word in raw_words) / len(raw_words), 8)
            if words
            else 0.0
        )
    if lists.domains is not None:
        scores["rps_doc_ut1_blacklist"] = lists.domains.get(source_domain)
    return {name: [(*span, score)] for name, score in scores.items()}


def _n_listed(words: Sequence[str], listed: frozenset[str]) -> int:
    lengths = {phrase.count(" ") + 1 for phrase in listed}
    return sum(
        " ".join(words[start : start + n]) in listed
        for n in lengths
        for start in range(len(words) - n + 1)
    )
