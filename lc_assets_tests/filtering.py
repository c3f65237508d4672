"""Filtering plain files into a lake, and reading the results; results of rules for one document."""

import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq

from lc_assets.builds.settings.documents import DocumentSignalSettings, FilteringSettings
from lc_assets.builds.stage import Built
from lc_assets.execution.local import LocalExecutor
from lc_assets.formats.corpora.containers import CorpusDocument
from lc_assets.stages.documents.measuring import record_offers
from lc_assets.stages.file_lakes import build_for, context_over_files
from lc_assets.text.rules.columns import values_of
from lc_assets.text.rules.models import NO_MODELS, Models
from lc_assets.text.rules.rules import RuleSet, failures


@dataclass(frozen=True)
class Filtered:
    """A lake that files were filtered into."""

    context: Any
    built: Mapping[str, Mapping[str, Built]]

    @property
    def counts(self):
        """Of the only partition."""
        (found,) = self.built["filtered_documents"].values()
        return found.counts

    def rows(self, suffix: str, stage: str = "filtered_documents") -> list[dict[str, Any]]:
        """Lines of the tables with this suffix."""
        return [
            row
            for found in self.built[stage].values()
            for path in sorted(found.published.folder.glob(f"*.{suffix}.parquet"))
            for row in pq.read_table(path).to_pylist()
        ]


def filter_files(
    source: Path, out: Path, rules: str, *, workers: int = 1, target="filtered_documents", **how
) -> Filtered:
    """Filter a file or folder as ``lc filter`` does.

    Args:
        source: of documents.
        out: the lake.
        rules: preset, or path of a file of rules.
        workers: processes.
        target: stage to build.
        how: ``all_signals``, ``lines``, ``language``; other settings of `filtered_documents`.
    """
    signals = DocumentSignalSettings(
        values=how.pop("all_signals", False), lines=how.pop("lines", False)
    )
    language = how.pop("language", "en")
    plain = msgspec.to_builtins({"rules": rules, "min_words": 0, **how})
    context = context_over_files(
        [source],
        out,
        executor=LocalExecutor(workers=workers),
        settings={
            "filtered_documents": msgspec.convert(plain, FilteringSettings),
            "document_signals": signals,
        },
        language=language,
    )
    return Filtered(context, build_for(context, target))


def values_and_failures(
    document: CorpusDocument, rules: RuleSet, models: Models = NO_MODELS, *, language: str = ""
) -> tuple[dict[str, float | None], list[str]]:
    """The values that rules test of a document, and the names of the rules that it fails."""
    document = msgspec.structs.replace(document, language=document.language or language)
    values = values_of(
        record_offers(document, rules, copies=True), sorted(rules.columns), models=models
    )
    return values, [name for name, _ in failures(values, rules)]


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Lines of a gzipped file of JSON lines."""
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
