"""Which rules, lists and models apply to the documents of a partition, and computing the columns
that rules test.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np

from lc_assets.arrays import Floats
from lc_assets.builds.columns import PLACES
from lc_assets.builds.recipe import Recipe
from lc_assets.builds.settings.common import ModelSettings
from lc_assets.builds.settings.documents import FilteringSettings, ListSettings
from lc_assets.errors import BadInput
from lc_assets.execution.containment import at_documents
from lc_assets.formats.corpora.containers import NO_FIELDS, CorpusDocument
from lc_assets.formats.lists.models import open_models
from lc_assets.formats.lists.rule_files import read_rules, rule_on, with_thresholds
from lc_assets.formats.lists.word_lists import read_word_lists
from lc_assets.formats.redpajama.documents import DocumentRecord
from lc_assets.formats.redpajama.signals import CCNET_FIELDS, ccnet_scores, record_fields
from lc_assets.sources.settings import source_of_key
from lc_assets.text.links.addresses import host_of
from lc_assets.text.rules.columns import require_computable, values_of_each
from lc_assets.text.rules.line_rules import edited
from lc_assets.text.rules.models import (
    NO_MODELS,
    PERPLEXITY,
    Models,
    Offered,
    language_of,
    needs_of,
)
from lc_assets.text.rules.rules import RuleSet, long_enough
from lc_assets.text.signals.names import CCNET_SIGNALS, NO_LISTS, SCALARS, WordLists
from lc_assets.text.texts import together

Document = DocumentRecord | CorpusDocument
Numbered = TypeVar("Numbered", bound=tuple[Any, ...])

_COPIED = frozenset((*CCNET_SIGNALS, PERPLEXITY))

_TWO_LETTERS = {"eng": "en", "deu": "de", "fra": "fr", "spa": "es", "ita": "it"}
"""Common Crawl names languages by three letters, signals by two."""


def rules_of_key(recipe: Recipe, key: str) -> tuple[RuleSet, FilteringSettings]:
    """The rules and settings that a partition is filtered by: the recipe's, or those of its source.

    Raises:
        BadInput: when a rule file, a rule's name or a bound is not acceptable.
    """
    source, settings = source_of_key(recipe.sources, key), recipe.filtered_documents
    if source.rules:
        settings = msgspec.structs.replace(settings, rules=source.rules, thresholds={})
    if source.min_words is not None:
        settings = msgspec.structs.replace(settings, min_words=source.min_words)
    is_files = source.kind == "files"
    if is_files:
        settings = msgspec.structs.replace(settings, missing_signals="compute")
    return rules_of(settings, edits=is_files), settings


def rules_of(settings: FilteringSettings, *, edits: bool = False) -> RuleSet:
    """The rules in force: the file's, with the recipe's thresholds; then the recipe's own bounds,
    and the minimum of words.

    Args:
        settings: which file, which thresholds and bounds.
        edits: whether the rules may edit lines: published signals are of whole texts.

    Raises:
        BadInput: when the file, a rule's name or a bound is not acceptable.
    """
    overrides = {name: bounds.given() for name, bounds in settings.thresholds.items()}
    own = (rule_on(column, **bounds.given()) for column, bounds in settings.bounds.items())
    shortest = (long_enough(settings.min_words),) if settings.min_words else ()
    rules = with_thresholds(read_rules(settings.rules), overrides).and_also(*own, *shortest)
    if rules.edit is not None and not edits:
        raise BadInput(
            f"rules {rules.name}: edit lines ({rules.edit.name}), but published signals are of "
            "the whole text; take the [lines] table out of a copy of the file, or filter files by "
            "them: lc filter"
        )
    computed = computed_columns(rules, settings)
    require_computable(computed, lists_of(settings.lists), models_of(settings.models, computed))
    return rules


def computed_columns(rules: RuleSet, settings: FilteringSettings) -> frozenset[str]:
    """Columns that may have to be computed: unpublished ones, and all tested ones if missing
    signals are computed.
    """
    return rules.columns if settings.missing_signals == "compute" else rules.but_on(SCALARS).columns


def lists_of(settings: ListSettings) -> WordLists:
    """The lists that the settings name, read once in a process, and again when a file of them was
    written since.

    Raises:
        BadInput: as `lc_assets.formats.lists.word_lists.read_word_lists`.
    """
    named = msgspec.structs.asdict(settings)
    return _read_lists(settings, _written(named.values())) if any(named.values()) else NO_LISTS


def models_of(settings: ModelSettings, columns: Collection[str]) -> Models:
    """The models that some columns need, of those that the settings name; opened once in a process,
    as the lists are.

    Raises:
        BadInput: as `lc_assets.formats.lists.models.open_models`; a model that is needed and not
            named is merely absent.
        CorruptFile: as well.
    """
    needs = needs_of(columns)
    if not needs:
        return NO_MODELS
    quality = msgspec.structs.asdict(settings.quality)
    named = settings.language, settings.blocklist, settings.perplexity, *quality.values()
    return _open_models(settings, needs, _written(named))


@lru_cache(maxsize=4)
def _open_models(settings: ModelSettings, needs: frozenset[str], _written: object) -> Models:
    paths = msgspec.structs.asdict(settings)
    quality = _paths(msgspec.structs.asdict(paths.pop("quality")))
    return open_models(needs, quality=quality, **_paths(paths))


@lru_cache(maxsize=4)
def _read_lists(settings: ListSettings, _written: object) -> WordLists:
    return read_word_lists(**_paths(msgspec.structs.asdict(settings)))


def _paths(named: Mapping[str, str]) -> dict[str, Path]:
    """The paths that are given, by name."""
    return {name: Path(path) for name, path in named.items() if path}


def _written(paths: Iterable[str]) -> tuple[tuple[str, int, int], ...]:
    """When each file of some files and folders was written last, and its size."""
    roots = [Path(path) for path in paths if path]
    files = (path for root in roots for path in (root, *root.rglob("*")) if path.is_file())
    return tuple(
        sorted((str(path), path.stat().st_mtime_ns, path.stat().st_size) for path in files)
    )


def record_offers(record: Document, rules: RuleSet, *, copies: bool = False) -> Offered:
    """The inputs for computing a document's values.

    Args:
        record: of RedPajama-V2, or of a file.
        rules: determine how the lines of a file's document are edited, and which values are tested.
        copies: whether to include values from a file's record even if they are not tested.
    """
    if isinstance(record, DocumentRecord):
        return Offered(
            text=record.raw_content,
            url=record.url or None,
            language=record.language,
            source_domain=record.source_domain,
            copied=ccnet_scores(msgspec.structs.asdict(record)),
        )
    text = record.text if rules.edit is None else edited(record.text, rules.edit).text
    copies = copies or not _COPIED.isdisjoint(rules.signals)
    return Offered(
        text,
        None if rules.edit is None else record.text,
        record.url or None,
        record.language,
        record.source_domain,
        ccnet_scores(record_fields(record)) if copies else {},
    )


def in_batches(documents: Iterable[Numbered]) -> Iterator[list[Numbered]]:
    """Split documents into batches that are measured together, which the worker states; a long one
    has a batch of its own, and so has each where a worker was lost at its batch before.

    Args:
        documents: tuples that begin with a number and end with a document, or what is in its place.
    """
    for batch in together(documents, _n_chars):
        for some in at_documents([numbered[0] for numbered in batch]):
            yield batch[some]


def _n_chars(numbered: tuple[Any, ...]) -> int:
    found = numbered[-1]
    if isinstance(found, CorpusDocument):
        return len(found.text)
    return len(found.raw_content) if isinstance(found, DocumentRecord) else 0


def numbers_of(
    records: Sequence[Document],
    columns: Collection[str],
    rules: RuleSet,
    lists: WordLists,
    models: Models,
) -> Floats:
    """Compute columns of a batch of documents: float64[documents, columns]; NaN where there is no
    value.
    """
    if not records or not columns:
        return np.empty((len(records), len(columns)))
    offered = [record_offers(record, rules) for record in records]
    return values_of_each(offered, columns, lists, models)


def languages_of(
    columns: Mapping[str, list[Any]], numbers: Sequence[int], default: str, models: Models
) -> list[str]:
    """The language of each document of a file: the record's, the source's, or the one that is
    identified.

    Args:
        columns: as `lc_assets.formats.corpora.batches.Batch` has them.
        numbers: of the documents, which a worker states where it identifies languages.
        default: the source's, or "".
        models: of which one may identify languages.
    """
    languages = [_two_letters(stated) or default for stated in columns["language"]]
    if models.language is not None and "" in languages:
        for some in at_documents(numbers):
            languages[some] = [
                language or language_of(text, models.language)[0]
                for language, text in zip(languages[some], columns["text"][some], strict=True)
            ]
    return languages


@lru_cache(maxsize=1 << 10)
def _two_letters(stated: str) -> str:
    """The first language that a record states; cached, because most state the same."""
    named = stated.partition(",")[0].strip().lower()
    return _TWO_LETTERS.get(named, named)


class _Rest(msgspec.Struct, frozen=True):
    """Fields of a file's record that `FILTERED` has a column for."""

    digest: Any = ""
    title: Any = ""
    bucket: Any = ""


FIELDS_READ = frozenset((*_Rest.__struct_fields__, *CCNET_FIELDS))
"""Fields of a file's record, besides those of its document, that are used."""

_REST = msgspec.json.Decoder(_Rest)
_DESCRIBING = ("rest", "text", "source_domain", "url", "language", "date")
_AS_PUBLISHED = ("digest", "source_domain", "cc_segment", "date_download", "title", "raw_content")


def described(
    records: Sequence[Document], language: str, bucket: str, rules: RuleSet
) -> dict[str, list[Any]]:
    """The columns of `FILTERED` besides id and address, and `PLACES` if lines are edited, of some
    documents of one shard; ``language`` and ``bucket`` are those of RedPajama-V2's shard.
    """
    files = [record for record in records if isinstance(record, CorpusDocument)]
    if files:
        columns = {name: list(map(attrgetter(name), files)) for name in _DESCRIBING}
        return described_columns(columns, rules)
    known = {name: [getattr(record, name) for record in records] for name in _AS_PUBLISHED}
    return known | {"language": [language] * len(records), "bucket": [bucket] * len(records)}


def described_columns(columns: Mapping[str, list[Any]], rules: RuleSet) -> dict[str, list[Any]]:
    """The same of documents of files, whose columns are given."""
    texts, n_documents = columns["text"], len(columns["text"])
    known: dict[str, list[Any]] = {
        **{name: [""] * n_documents for name in (*_Rest.__struct_fields__, "cc_segment")},
        "source_domain": list(map(_domain, columns["source_domain"], columns["url"])),
        "language": columns["language"],
        "date_download": columns["date"],
        "raw_content": texts,
    }
    if columns["rest"].count(NO_FIELDS) < n_documents:
        rest = list(map(_REST.decode, columns["rest"]))
        for name in _Rest.__struct_fields__:
            known[name] = [_text(getattr(fields, name)) for fields in rest]
    if rules.edit is not None:
        edits = [edited(text, rules.edit) for text in texts]
        known["raw_content"] = [edit.text for edit in edits]
        places = (edit.places(text) for edit, text in zip(edits, texts, strict=True))
        known[PLACES.name] = list(places)
    return known


def _domain(stated: str, url: str) -> str:
    return stated or host_of(url)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
