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
                        (``c4_*``, ``fineweb_*``, ``refinedweb_*``) from the text before that
``*@unedited``          the same without this end, from the text before its lines are edited
======================  ========================================================================
"""

from collections.abc import Collection
from functools import lru_cache

from lc_assets.errors import BadInput
from lc_assets.text.measures.measures import MEASURES, columns, measure
from lc_assets.text.rules.models import (
    GIVEN_BY,
    MODEL_MEASURES,
    MODELLED,
    NO_MODELS,
    Models,
    Offered,
    model_values,
)
from lc_assets.text.rules.rules import UNEDITED
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
from lc_assets.text.signals.signals import WORD_SIGNALS, measure_signals, measure_words

_OF_TEXT = frozenset((*TEXT_DOC_SIGNALS, *LIST_SIGNALS, BULLET_LINES))
_WORD_COUNT, _CHEAP_WORD_COUNT = "rps_doc_word_count", "word_count:normalized"
"""A signal that a cheap measure gives too, so that a document with too few words costs no n-grams.
"""

_NOT_OF_TEXT_ALONE = {
    **dict.fromkeys(MODEL_SIGNALS, "a model; use the published signals, or leave the rule out"),
    **{
        signal: f"a list; give --{name.replace('_', '-')} PATH, or {name} in "
        "[filtered_documents.lists]"
        for signal, name in LIST_SIGNALS.items()
    },
    **GIVEN_BY,
}
"""What else a column needs, and how to give it."""
_NEEDY = frozenset(_NOT_OF_TEXT_ALONE)


def known_signals() -> tuple[str, ...]:
    """Names that a rule can give as its ``signal``: published ones first."""
    return (*SCALARS, *MEASURES, *MODEL_MEASURES)


def words_allowed(signal: str) -> tuple[str, ...]:
    """The kinds of words that a signal can be computed with; empty when it does not depend on
    words, or its name implies the kind.

    >>> words_allowed("word_count"), words_allowed("rps_doc_word_count")
    (('normalized', 'raw', 'spacy', 'whitespace'), ())
    """
    return MEASURES.get(signal, ())


def require_computable(
    wanted: Collection[str], lists: WordLists = NO_LISTS, models: Models = NO_MODELS
) -> None:
    """Refuse columns that cannot be computed with the given lists and models.

    Raises:
        BadInput: names them, and the option or setting that gives what the first of them lacks.
    """
    given = {
        *models.columns,
        *(
            signal
            for signal, name in LIST_SIGNALS.items()
            if getattr(lists, name) != getattr(NO_LISTS, name)
        ),
    }
    plain = {column.removesuffix(UNEDITED) for column in wanted}
    lost = sorted((plain & _NOT_OF_TEXT_ALONE.keys()) - given)
    if lost:
        raise BadInput(
            f"{', '.join(lost)}: cannot be computed without {_NOT_OF_TEXT_ALONE[lost[0]]}"
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
    of_whole, modelled, needy, signals, measures, others = _sorted_out(tuple(wanted))
    if of_whole:
        whole = document._replace(text=document.whole, edited_from=None)
        plain = [column.removesuffix(UNEDITED) for column in of_whole]
        before = values_of(whole, plain, lists, models)
        after = values_of(document, others, lists, models)
        return {
            column: before[column.removesuffix(UNEDITED)] if column in of_whole else after[column]
            for column in wanted
        }
    found: dict[str, float | None] = dict(document.copied)
    if needy:
        require_computable(wanted, lists, models)
    if modelled:
        found |= model_values(document, wanted, models)
    is_word_count = len(signals) == 1 and _WORD_COUNT in signals
    if signals <= WORD_SIGNALS:
        found |= measure_words(document.text) if signals and not is_word_count else {}
    else:
        found |= measure_signals(
            document.text, lists, language=document.language, source_domain=document.source_domain
        ).scalars
    if measures:
        found |= measure(document.text, measures, document.url, whole=document.whole)
    if is_word_count:
        found[_WORD_COUNT] = found[_CHEAP_WORD_COUNT]
    return {
        column: None if (value := found.get(column)) is None else float(value) for column in wanted
    }


@lru_cache(maxsize=64)
def _sorted_out(
    wanted: tuple[str, ...],
) -> tuple[frozenset[str], bool, bool, frozenset[str], tuple[str, ...], tuple[str, ...]]:
    """The columns of the text before its lines were edited; whether any is `MODELLED`, and whether
    any is not of the text alone; the signals and the measures to compute; and the columns that are
    not the first. Cached, because every document has the same few sets.
    """
    of_whole = frozenset(column for column in wanted if column.endswith(UNEDITED))
    of_text = set(wanted) - MODELLED
    signals, measures = frozenset(of_text & _OF_TEXT), of_text - set(SCALARS)
    if signals == {_WORD_COUNT}:
        measures.add(_CHEAP_WORD_COUNT)
    others = tuple(column for column in wanted if column not in of_whole)
    modelled, needy = (not some.isdisjoint(wanted) for some in (MODELLED, _NEEDY))
    return of_whole, modelled, needy, signals, tuple(sorted(measures)), others
