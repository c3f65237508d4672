"""Measuring the text of the few documents that published signals speak for, by the rules that no
published signal serves.

Here: their values, the complaints about them, what a document offers to be computed from, and the
    lists and models. Not here: computing
(`lc_assets.text.columns`), the fates of documents (`verdicts`).
"""

from array import array
from collections.abc import Collection
from functools import lru_cache
from math import nan
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from lc_assets.formats.models import open_models
from lc_assets.formats.redpajama.documents import DocumentRecord
from lc_assets.formats.redpajama.signals import ccnet_signals
from lc_assets.formats.word_lists import read_word_lists
from lc_assets.stages.documents.document_settings import ListSettings
from lc_assets.stages.documents.verdicts import Verdicts
from lc_assets.stages.settings import ModelSettings
from lc_assets.text.columns import Offered, values_of
from lc_assets.text.measured_signals import first_score
from lc_assets.text.models import NO_MODELS, Models, needs_of
from lc_assets.text.rules import Complaint, RuleSet, judge
from lc_assets.text.signal_lists import WordLists

NOTHING: Final[dict[str, float]] = {}


def lists_of(settings: ListSettings) -> WordLists:
    """The lists that the settings name, read once in a process, and again when a file of them was
    written since.

    Raises:
        BadInput: as `lc_assets.formats.word_lists.read_word_lists`.
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
        BadInput: as `lc_assets.formats.models.open_models`; a model that is needed and not named is
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


def record_offers(record: DocumentRecord) -> Offered:
    """What RedPajama-V2's record of a document offers to be computed from."""
    return Offered(
        text=record.raw_content,
        url=record.url or None,
        language=record.language,
        source_domain=record.source_domain,
        copied={name: first_score(spans) for name, spans in ccnet_signals(record).items()},
    )


class Survivors:
    """The documents of a shard that are measured: those whom the published signals speak for.

    Attributes:
        rules: on what is measured; none at all costs nothing.
        rows: of the signals' table, one per document that was measured or kept, in the order of the
            lines.
        complaints: about each document that the measures speak against, in the order of its fates.
        latest: the values of the latest document by column, NaN where missing.
    """

    def __init__(self, rules: RuleSet, verdicts: Verdicts, models: Models = NO_MODELS) -> None:
        self.rules = rules
        self.rows = array("q")
        self.complaints: list[tuple[Complaint, ...]] = []
        self.latest = NOTHING
        self._verdicts, self._models = verdicts, models
        self._columns = sorted(rules.columns)
        self._values = array("d")
        self._fails: list[bool] = []

    def fate(self, line: int, record: DocumentRecord) -> int | None:
        """Measure a document; the number of its fate when that speaks against it, None when it is
        kept.
        """
        self.rows.append(self._verdicts.fate_of[line])
        if not self._columns:
            return None
        found = values_of(record_offers(record), self._columns, models=self._models)
        self.latest = {name: nan if value is None else value for name, value in found.items()}
        self._values.extend(self.latest.values())
        complaints = judge(found, self.rules)
        self._fails.append(bool(complaints))
        if not complaints:
            return None
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
        """Which of ``rows`` the measures speak against."""
        return (
            np.array(self._fails, np.bool_) if self._columns else np.zeros(len(self.rows), np.bool_)
        )
