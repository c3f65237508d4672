"""Every column that a rule can test, and computing the wanted ones of a document.

======================  ========================================================================
column                  comes from
======================  ========================================================================
``ccnet_*``             the document's record, as CCNet left it; None where it is absent
``rps_doc_*`` and       `lc_assets.text.signals.signals`, from the text; those that need a list or
``frac_lines_start_*``  a model where it is given, otherwise only from the published files
``language_*``,         `lc_assets.text.rules.models`, from the text before its lines are edited,
``*_blocked``,          or from the address; ``perplexity`` as published where no model is given
``perplexity``
any other               `lc_assets.text.measures.measures`, from the text; those of a line editing
                        (``c4_*``, ``refinedweb_*``) from the text before its lines are edited
======================  ========================================================================
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

from lc_assets.errors import BadInput
from lc_assets.text.measures.measures import MeasuredText, measure
from lc_assets.text.measures.names import MEASURES
from lc_assets.text.rules.models import (
    MODEL_MEASURES,
    MODELLED,
    NO_MODELS,
    Asked,
    Models,
    given_by,
    model_values,
)
from lc_assets.text.signals.names import (
    BULLET_LINES,
    CCNET_SIGNALS,
    LIST_SIGNALS,
    MODEL_SIGNALS,
    NO_LISTS,
    SCALARS,
    TEXT_DOC_SIGNALS,
    WordLists,
)
from lc_assets.text.signals.signals import measure_signals

OF_THE_EDIT: Final = ("c4_", "refinedweb_")
"""How measures of what a line editing does begin."""

_PUBLISHED: Final = frozenset(SCALARS)
_NOT_OF_TEXT_ALONE: Final = MODELLED | {*LIST_SIGNALS, *MODEL_SIGNALS}
_LIST_OPTIONS: Final = {
    "rps_doc_ldnoobw_words": "bad-words",
    "rps_doc_stop_word_fraction": "stop-words",
    "rps_doc_ut1_blacklist": "domains",
}

_LIKE_A_MEASURE: Final = {"rps_doc_word_count": "word_count:normalized"}
"""Signals that a cheap measure gives too, so that a document with too few words costs no n-grams.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offered:
    """What there is of a document to compute columns from.

    Attributes:
        text: what is judged.
        whole: the text before its lines were edited; None when nothing was edited.
        url: its address; None when nobody knows.
        language: two letters; empty when nobody knows.
        source_domain: host of the page; empty when nobody knows.
        copied: ``ccnet_*`` values that came with it.
    """

    text: str
    whole: str | None = None
    url: str | None = None
    language: str = ""
    source_domain: str = ""
    copied: Mapping[str, float | None] = field(default_factory=dict)


def known_signals() -> tuple[str, ...]:
    """Names that a rule can give as its ``signal``: published ones first."""
    return (*SCALARS, *MEASURES, *MODEL_MEASURES)


def words_allowed(signal: str) -> tuple[str, ...]:
    """The definitions of words that a signal can be asked of; empty when words do not matter to it,
    or it says itself which.

    >>> words_allowed("word_count"), words_allowed("rps_doc_word_count")
    (('normalized', 'raw', 'whitespace'), ())
    """
    return MEASURES[signal].words if signal in MEASURES else ()


def require_computable(
    columns: Collection[str], lists: WordLists = NO_LISTS, models: Models = NO_MODELS
) -> None:
    """Refuse columns that cannot be computed with the lists and models that there are.

    Raises:
        BadInput: names them, and says which option or setting gives what the first of them lacks.
    """
    lost = sorted((set(columns) & _NOT_OF_TEXT_ALONE) - _listed(lists) - set(models.columns))
    if lost:
        raise BadInput(
            f"{', '.join(lost)}: cannot be computed without {_lacks(lost[0])}; {_remedy(lost[0])}"
        )


def by_cost(columns: Collection[str]) -> tuple[tuple[str, ...], ...]:
    """Group columns by what they cost, cheapest first, each group sorted; a group is computed
    together.

    What was copied costs nothing, an address little more; then come one pass over words or lines,
    the language of a beginning (0.13 ms of any text; a pass over 20,000 characters takes as long),
    n-grams and compressing, and last models that read the whole text.

    >>> by_cost(["rps_doc_unigram_entropy", "gzip_ratio", "word_count:raw", "ccnet_perplexity", "rps_doc_word_count"])
    (('ccnet_perplexity',), ('rps_doc_word_count', 'word_count:raw'), ('gzip_ratio', 'rps_doc_unigram_entropy'))
    """
    groups = [
        sorted(column for column in set(columns) if _cost(column) == cost) for cost in range(_COSTS)
    ]
    return tuple(tuple(group) for group in groups if group)


def computable(models: Models = NO_MODELS) -> tuple[str, ...]:
    """Every column that text can give, with every kind of words, and the models that there are."""
    measures = (
        f"{name}:{words}" if words else name
        for name, found in MEASURES.items()
        for words in found.words or ("",)
    )
    return (*CCNET_SIGNALS, *TEXT_DOC_SIGNALS, BULLET_LINES, *measures, *models.columns)


def values_of(
    document: Offered,
    wanted: Collection[str],
    lists: WordLists = NO_LISTS,
    models: Models = NO_MODELS,
) -> dict[str, float | None]:
    """Compute the wanted columns of one document, and nothing else.

    Returns:
        A value per column, in the order of ``wanted``; None where it is missing, or a mean over
        nothing.

    >>> values_of(Offered(text="To be, or not to be."), ["rps_doc_word_count", "ccnet_perplexity"])
    {'rps_doc_word_count': 6.0, 'ccnet_perplexity': None}

    Raises:
        BadInput: when a column does not exist, or what it needs was not handed in.
    """
    found: dict[str, float | None] = dict(document.copied)
    if not _NOT_OF_TEXT_ALONE.isdisjoint(wanted):
        require_computable(wanted, lists, models)
        found |= model_values(_asked(document), wanted, models)
    signals = [column for column in wanted if column in _PUBLISHED and column not in MODELLED]
    measures = [column for column in wanted if column not in _PUBLISHED and column not in MODELLED]
    found |= {**_signals(document, signals, lists), **_measures(document, measures)}
    return {
        column: None if (value := found.get(column)) is None else float(value) for column in wanted
    }


def _listed(lists: WordLists) -> set[str]:
    """The signals that the lists serve."""
    given = {
        "rps_doc_ldnoobw_words": bool(lists.bad_words),
        "rps_doc_stop_word_fraction": bool(lists.stop_words),
        "rps_doc_ut1_blacklist": lists.domains is not None,
    }
    return {name for name, there in given.items() if there}


def _lacks(column: str) -> str:
    if column in LIST_SIGNALS:
        return "a list"
    return (
        "a list of addresses"
        if column in MODEL_MEASURES and column.endswith("_blocked")
        else "a model"
    )


def _remedy(column: str) -> str:
    if column in LIST_SIGNALS:
        option = _LIST_OPTIONS[column]
        return f"give --{option} PATH, or {option.replace('-', '_')} in [filtered_documents.lists]"
    if column in MODELLED:
        return f"give {given_by(column)}"
    return "judge by the published signals, or leave the rule out"


def _asked(document: Offered) -> Asked:
    return Asked(
        text=document.text if document.whole is None else document.whole,
        url=document.url,
        language=document.language,
        perplexity=document.copied.get("ccnet_perplexity"),
    )


_COSTS: Final = 6


def _cost(column: str) -> int:
    if column in CCNET_SIGNALS:
        return 0
    if column in MODELLED:
        return 1 if column.endswith("_blocked") else 3 if column.startswith("language_") else 5
    if column in SCALARS:
        return 2 if column in _LIKE_A_MEASURE else 4
    return 4 if column.startswith(("frac_chars_top_", "frac_chars_dupe_", "gzip_ratio")) else 2


def _signals(document: Offered, wanted: list[str], lists: WordLists) -> dict[str, float | None]:
    """The one place that asks for the signals of a text."""
    costly = [name for name in wanted if name not in CCNET_SIGNALS and name not in _LIKE_A_MEASURE]
    if not costly:
        alike = {_LIKE_A_MEASURE[name]: name for name in wanted if name in _LIKE_A_MEASURE}
        found = measure(MeasuredText(document.text), list(alike)) if alike else {}
        return {alike[column]: value for column, value in found.items()}
    return dict(
        measure_signals(
            document.text, lists, language=document.language, source_domain=document.source_domain
        ).scalars
    )


def _measures(document: Offered, wanted: list[str]) -> dict[str, float | None]:
    whole = document.text if document.whole is None else document.whole
    found: dict[str, float | None] = {}
    for text, columns in (
        (document.text, [column for column in wanted if not column.startswith(OF_THE_EDIT)]),
        (whole, [column for column in wanted if column.startswith(OF_THE_EDIT)]),
    ):
        if columns:
            found |= measure(MeasuredText(text, document.url), columns)
    return found
