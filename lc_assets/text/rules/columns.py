"""Every column that a rule can test, and computing the requested ones of a document.

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

from collections.abc import Collection
from typing import Final

from lc_assets.errors import BadInput
from lc_assets.text.measures.measures import measure
from lc_assets.text.measures.words import MEASURES, columns
from lc_assets.text.rules.models import (
    MODEL_MEASURES,
    MODELLED,
    NO_MODELS,
    Models,
    Offered,
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
"""Prefixes of measures of a line editing."""

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


def known_signals() -> tuple[str, ...]:
    """Names that a rule can give as its ``signal``: published ones first."""
    return (*SCALARS, *MEASURES, *MODEL_MEASURES)


def words_allowed(signal: str) -> tuple[str, ...]:
    """The kinds of words that a signal can be computed with; empty when it does not depend on
    words, or its name implies the kind.

    >>> words_allowed("word_count"), words_allowed("rps_doc_word_count")
    (('normalized', 'raw', 'whitespace'), ())
    """
    return MEASURES.get(signal, ())


def require_computable(
    wanted: Collection[str], lists: WordLists = NO_LISTS, models: Models = NO_MODELS
) -> None:
    """Refuse columns that cannot be computed with the given lists and models.

    Raises:
        BadInput: names them, and the option or setting that gives what the first of them lacks.
    """
    lost = sorted((set(wanted) & _NOT_OF_TEXT_ALONE) - _listed(lists) - set(models.columns))
    if lost:
        raise BadInput(
            f"{', '.join(lost)}: cannot be computed without {_lacks(lost[0])}; {_remedy(lost[0])}"
        )


def computable(models: Models = NO_MODELS) -> tuple[str, ...]:
    """Every column computed from text, with every kind of words, and those of the given models."""
    return (*CCNET_SIGNALS, *TEXT_DOC_SIGNALS, BULLET_LINES, *columns(), *models.columns)


def values_of(
    document: Offered,
    wanted: Collection[str],
    lists: WordLists = NO_LISTS,
    models: Models = NO_MODELS,
) -> dict[str, float | None]:
    """Compute only the requested columns of one document.

    Returns:
        A value per column, in the order of ``wanted``; None where it is missing, or a mean over
        nothing.

    >>> values_of(Offered(text="To be, or not to be."), ["rps_doc_word_count", "ccnet_perplexity"])
    {'rps_doc_word_count': 6.0, 'ccnet_perplexity': None}

    Raises:
        BadInput: when a column does not exist, or its list or model is not given.
    """
    found: dict[str, float | None] = dict(document.copied)
    if not _NOT_OF_TEXT_ALONE.isdisjoint(wanted):
        require_computable(wanted, lists, models)
        found |= model_values(document, wanted, models)
    signals = [column for column in wanted if column in _PUBLISHED and column not in MODELLED]
    measures = [column for column in wanted if column not in _PUBLISHED and column not in MODELLED]
    found |= {**_signals(document, signals, lists), **_measures(document, measures)}
    return {
        column: None if (value := found.get(column)) is None else float(value) for column in wanted
    }


def _listed(lists: WordLists) -> set[str]:
    """The signals that the lists are needed for."""
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


def _signals(document: Offered, wanted: list[str], lists: WordLists) -> dict[str, float | None]:
    """Compute the signals of a text."""
    costly = [name for name in wanted if name not in CCNET_SIGNALS and name not in _LIKE_A_MEASURE]
    if not costly:
        alike = {_LIKE_A_MEASURE[name]: name for name in wanted if name in _LIKE_A_MEASURE}
        found = measure(document.text, list(alike)) if alike else {}
        return {alike[column]: value for column, value in found.items()}
    return dict(
        measure_signals(
            document.text, lists, language=document.language, source_domain=document.source_domain
        ).scalars
    )


def _measures(document: Offered, wanted: list[str]) -> dict[str, float | None]:
    found: dict[str, float | None] = {}
    for text, names in (
        (document.text, [column for column in wanted if not column.startswith(OF_THE_EDIT)]),
        (document.whole, [column for column in wanted if column.startswith(OF_THE_EDIT)]),
    ):
        if names:
            found |= measure(text, names, document.url)
    return found
