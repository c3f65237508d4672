"""Measuring the text of the few documents that pass by their published signals, for the rules that
no published signal serves.

Here: their values, the complaints about them, what a document offers to be computed from, and the
    lists and models. Not here: computing
(`lc_assets.text.rules.columns`), the fates of documents (`verdicts`).
"""

from array import array
from collections.abc import Collection
from functools import lru_cache
from math import nan
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from lc_assets.build.settings.common import ModelSettings
from lc_assets.build.settings.documents import ListSettings
from lc_assets.formats.corpora.records import CorpusDocument, as_float
from lc_assets.formats.lists.models import open_models
from lc_assets.formats.lists.word_lists import read_word_lists
from lc_assets.formats.redpajama.documents import DocumentRecord
from lc_assets.formats.redpajama.signals import BUCKET_SCORES, ccnet_signals
from lc_assets.stages.documents.verdicts import Verdicts
from lc_assets.text.links.addresses import host_of
from lc_assets.text.rules.columns import Offered, values_of
from lc_assets.text.rules.line_rules import LineRules, edit, line_rules_of
from lc_assets.text.rules.models import NO_MODELS, PERPLEXITY, Models, language_of, needs_of
from lc_assets.text.rules.rules import Complaint, LineEdit, RuleSet, judge
from lc_assets.text.signals.names import CCNET_SIGNALS, NO_LISTS, WordLists
from lc_assets.text.signals.signals import first_score

NOTHING: Final[dict[str, float]] = {}
NO_RULES: Final = RuleSet("none", ())

_TWO_LETTERS: Final = {"eng": "en", "deu": "de", "fra": "fr", "spa": "es", "ita": "it"}
"""Common Crawl names languages by three letters, signals by two."""


def lists_of(settings: ListSettings) -> WordLists:
    """The lists that the settings name, read once in a process, and again when a file of them was
    written since.

    Raises:
        BadInput: as `lc_assets.formats.lists.word_lists.read_word_lists`.
    """
    return _read_lists(
        settings,
        _written(settings.stop_words),
        _written(settings.bad_words),
        _written(settings.domains),
    )


def models_of(settings: ModelSettings, columns: Collection[str]) -> Models:
    """The models that some columns need, of those that the settings name; opened once in a process,
    as the lists are.

    Raises:
        BadInput: as `lc_assets.formats.lists.models.open_models`; a model that is needed and not named is
            merely absent.
        CorruptFile: as well.
    """
    needs = needs_of(columns)
    places = (
        (settings.language, settings.blocklist, settings.perplexity, *_quality(settings).values())
        if needs
        else ()
    )
    return _open_models(settings, needs, *map(_written, places)) if needs else NO_MODELS


@lru_cache(maxsize=4)
def _open_models(settings: ModelSettings, needs: frozenset[str], *_: object) -> Models:
    return open_models(
        needs,
        language=_path(settings.language),
        blocklist=_path(settings.blocklist),
        perplexity=_path(settings.perplexity),
        quality={name: Path(place) for name, place in _quality(settings).items() if place},
    )


def _quality(settings: ModelSettings) -> dict[str, str]:
    return {
        "palm": settings.quality.palm,
        "wikiref": settings.quality.wikiref,
        "wikipedia": settings.quality.wikipedia,
    }


def _path(place: str) -> Path | None:
    return Path(place) if place else None


@lru_cache(maxsize=4)
def _read_lists(settings: ListSettings, *_: object) -> WordLists:
    named = {
        "stop_words": settings.stop_words,
        "bad_words": settings.bad_words,
        "domains": settings.domains,
    }
    return read_word_lists(**{name: _path(place) for name, place in named.items()})


def _written(place: str) -> tuple[tuple[str, int, int], ...]:
    """When each file was written last, and its size; nothing where there is none."""
    files = (
        [path for path in (Path(place), *Path(place).rglob("*")) if path.is_file()] if place else []
    )
    return tuple(
        sorted((str(path), path.stat().st_mtime_ns, path.stat().st_size) for path in files)
    )


def record_offers(
    record: DocumentRecord | CorpusDocument, rules: RuleSet = NO_RULES, *, copies: bool = False
) -> Offered:
    """What a document offers to be computed from.

    Args:
        record: of RedPajama-V2, or of a file.
        rules: which say how the lines of a file's document are edited, and what is judged.
        copies: whether values that came with a file's record are wanted whatever is judged.
    """
    if isinstance(record, CorpusDocument):
        edited = None if rules.edit is None else edit(record.text, _line_rules(rules.edit)).text
        return Offered(
            text=record.text if edited is None else edited,
            whole=None if edited is None else record.text,
            url=record.url or None,
            language=record.language,
            source_domain=record.source_domain,
            copied=_copied(record) if copies or _needs_copies(rules) else {},
        )
    return Offered(
        text=record.raw_content,
        url=record.url or None,
        language=record.language,
        source_domain=record.source_domain,
        copied={name: first_score(spans) for name, spans in ccnet_signals(record).items()},
    )


def with_language(document: CorpusDocument, default: str, models: Models) -> CorpusDocument:
    """A document with its language: the record's, the source's, or the one that is identified."""
    named = document.language.partition(",")[0].strip().lower()
    language = _TWO_LETTERS.get(named, named) or default
    if not language and models.language is not None:
        language = language_of(document.text, models.language).language
    if language == document.language:
        return document
    return msgspec.structs.replace(document, language=language)


class _Rest(msgspec.Struct, frozen=True):
    """Fields of a file's record that `FILTERED` has a column for."""

    digest: Any = ""
    title: Any = ""
    bucket: Any = ""


_REST: Final = msgspec.json.Decoder(_Rest)


def described(record: CorpusDocument, rules: RuleSet) -> dict[str, str]:
    """What `FILTERED` says of a file's document besides its id and address."""
    rest = _REST.decode(record.rest)
    return {
        "digest": _text(rest.digest),
        "source_domain": record.source_domain or host_of(record.url),
        "cc_segment": "",
        "language": record.language,
        "bucket": _text(rest.bucket),
        "date_download": record.date,
        "title": _text(rest.title),
        "raw_content": record_offers(record, rules).text,
    }


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


@lru_cache(maxsize=4)
def _line_rules_by_name(name: str, parameters: bytes) -> LineRules:
    return line_rules_of(LineEdit(name, msgspec.json.decode(parameters)))


def _line_rules(wanted: LineEdit) -> LineRules:
    return _line_rules_by_name(wanted.name, msgspec.json.encode(dict(wanted.parameters)))


def _needs_copies(rules: RuleSet) -> bool:
    return not rules.columns.isdisjoint((*CCNET_SIGNALS, PERPLEXITY))


def _copied(document: CorpusDocument) -> dict[str, float | None]:
    """What CCNet measured, where the document's record holds it and holds numbers."""
    rest = msgspec.json.decode(document.rest, type=dict[str, msgspec.Raw])
    values: dict[str, float | None] = {}
    for name in CCNET_SIGNALS:
        found = msgspec.json.decode(rest.get(name.removeprefix("ccnet_"), msgspec.Raw(b"null")))
        number = (
            BUCKET_SCORES.get(found) if isinstance(found, str) and name == "ccnet_bucket" else found
        )
        values[name] = as_float(number)
    if document.perplexity is not None:
        values["ccnet_perplexity"] = document.perplexity
    return values


class Survivors:
    """The documents of a shard that are measured: those that pass by their signals.

    Attributes:
        rules: on what is measured; none at all costs nothing.
        rows: of the signals' table, one per document that was measured or kept, in the order of the
            lines.
        complaints: about each document that fails by its measures, in the order of its fates.
        latest: the values of the latest document by column, NaN where missing.
    """

    def __init__(
        self,
        rules: RuleSet,
        verdicts: Verdicts,
        models: Models = NO_MODELS,
        lists: WordLists = NO_LISTS,
    ) -> None:
        self.rules = rules
        self.rows = array("q")
        self.complaints: list[tuple[Complaint, ...]] = []
        self.latest = NOTHING
        self._verdicts, self._models, self._lists = verdicts, models, lists
        self._columns = sorted(rules.columns)
        self._values = array("d")
        self._fails: list[bool] = []

    def fate(self, line: int, record: DocumentRecord | CorpusDocument) -> int | None:
        """Measure a document; the number of its fate when it fails, None when it is kept."""
        self.rows.append(self._verdicts.fate_of[line])
        if not self._columns:
            return None
        offered = record_offers(record, self.rules)
        found = values_of(offered, self._columns, self._lists, self._models)
        self.latest = {name: nan if value is None else value for name, value in found.items()}
        self._values.extend(self.latest.values())
        complaints = judge(found, self.rules)
        self._fails.append(bool(complaints))
        return self.fate_of_complaints(complaints) if complaints else None

    def fate_of_complaints(self, complaints: tuple[Complaint, ...]) -> int:
        """The number of a fate that is made of these reasons."""
        self.complaints.append(complaints)
        return len(self._verdicts.table.lines) + len(self.complaints) - 1

    @property
    def columns(self) -> dict[str, NDArray[np.float64]]:
        """What was measured, by column, one value per entry of ``rows``; NaN where missing."""
        values = np.array(self._values, np.float64).reshape(-1, max(len(self._columns), 1))
        return {
            name: np.ascontiguousarray(values[:, place]) for place, name in enumerate(self._columns)
        }

    @property
    def fails(self) -> NDArray[np.bool_]:
        """Which of ``rows`` fail by their measures."""
        return (
            np.array(self._fails, np.bool_) if self._columns else np.zeros(len(self.rows), np.bool_)
        )
