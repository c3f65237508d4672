"""Every column that a rule can test, and computing the requested ones of documents.

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

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from itertools import groupby
from operator import attrgetter

import numpy as np

from lc_assets.arrays import Floats
from lc_assets.errors import BadInput
from lc_assets.text.measures.measures import MEASURES, columns, measure_each
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
from lc_assets.text.signals.signals import WORD_SIGNALS, measure_words, signals_of_each
from lc_assets.text.texts import Texts, none_for_nan

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
    found = values_of_each([document], wanted, lists, models)[0].tolist()
    return dict(zip(wanted, none_for_nan(found), strict=True))


def values_of_each(
    documents: Sequence[Offered],
    wanted: Collection[str],
    lists: WordLists = NO_LISTS,
    models: Models = NO_MODELS,
) -> Floats:
    """Compute the columns of some documents, few or short enough to be measured together:
    float64[documents, wanted], NaN for None; see `values_of`.
    """
    of_whole, modelled, needy, signals, measures, others = _sorted_out(tuple(wanted))
    if of_whole:
        wholes = [
            document._replace(text=document.whole, edited_from=None) for document in documents
        ]
        plain = [column.removesuffix(UNEDITED) for column in of_whole]
        before = values_of_each(wholes, plain, lists, models).T
        after = values_of_each(documents, others, lists, models).T
        columns = dict(zip((*of_whole, *others), (*before, *after), strict=True))
        return _stacked(documents, wanted, columns)
    if needy:
        require_computable(wanted, lists, models)
    found = _copied(documents, wanted, models, modelled)
    texts = Texts(document.text for document in documents)
    is_word_count = len(signals) == 1 and _WORD_COUNT in signals
    if not signals <= WORD_SIGNALS:
        found |= _signals(documents, lists)
    elif signals and not is_word_count:
        found |= measure_words(texts)
    if measures:
        urls, whole = zip(*((document.url, document.whole) for document in documents), strict=True)
        found |= measure_each(texts, measures, urls, whole)
    if is_word_count:
        found[_WORD_COUNT] = found[_CHEAP_WORD_COUNT]
    return _stacked(documents, wanted, found)


def _stacked(
    documents: Sequence[Offered], wanted: Collection[str], found: Mapping[str, Floats]
) -> Floats:
    """The wanted columns, float64[documents, wanted]; NaN for those that are not found."""
    values = np.full((len(documents), len(wanted)), np.nan)
    for at, column in enumerate(wanted):
        if column in found:
            values[:, at] = found[column]
    return values


def _copied(
    documents: Sequence[Offered], wanted: Collection[str], models: Models, modelled: bool
) -> dict[str, Floats]:
    """The wanted columns of the documents' records, and of models."""
    rows: list[Mapping[str, float | None]] = [
        {**document.copied, **model_values(document, wanted, models)}
        if modelled
        else document.copied
        for document in documents
    ]
    names = {name for row in rows for name in row} & set(wanted)
    return {name: np.array([row.get(name) for row in rows], np.float64) for name in names}


def _signals(documents: Sequence[Offered], lists: WordLists) -> dict[str, Floats]:
    """The signals of documents, by the lists of their languages."""
    parts = list[dict[str, Floats]]()
    for language, some in groupby(documents, key=attrgetter("language")):
        texts, domains = zip(*((one.text, one.source_domain) for one in some), strict=True)
        parts.append(signals_of_each(Texts(texts), domains, lists, language=language).columns())
    sizes = [len(part[_WORD_COUNT]) for part in parts]
    return {
        name: np.concatenate(
            [part.get(name, np.full(size, np.nan)) for part, size in zip(parts, sizes, strict=True)]
        )
        for name in {name for part in parts for name in part}
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
