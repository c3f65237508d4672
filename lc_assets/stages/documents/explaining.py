"""Why one document is kept or dropped: its known values, every rule, and the result of filtering.

===========  =====================================================================================
in           is known
===========  =====================================================================================
plain files  the text, so everything that a text can give
a lake       what `filtered_documents` kept of it, or why it or `token_documents` dropped it; what
             `document_signals` stored of it; all published signals too, given the upstream
===========  =====================================================================================
"""

from collections.abc import Mapping
from dataclasses import field
from math import isnan
from pathlib import Path
from typing import Any

import msgspec

from lc_assets import arrow_compute as pc
from lc_assets.builds.checks import DOCUMENTS_SUFFIX
from lc_assets.builds.columns import PLACES
from lc_assets.builds.lookups import lines_where
from lc_assets.builds.tables import FILTERED
from lc_assets.errors import BadInput, NotPublished
from lc_assets.formats.corpora.containers import Unread
from lc_assets.formats.corpora.reading import corpus_files, read_corpus
from lc_assets.formats.redpajama.signals import read_signals
from lc_assets.lake.lake import Lake
from lc_assets.lake.upstream import Upstream
from lc_assets.lake.versions import Published
from lc_assets.records import record
from lc_assets.sources.redpajama_v2 import part_path
from lc_assets.stages.documents.measuring import record_offers
from lc_assets.stages.documents.shard_inputs import VALUES_SUFFIX
from lc_assets.stages.lineage.histories import why_dropped
from lc_assets.text.rules.columns import computable, require_computable, values_of
from lc_assets.text.rules.line_rules import edited
from lc_assets.text.rules.models import NO_MODELS, Models
from lc_assets.text.rules.rules import RuleSet
from lc_assets.text.signals.names import NO_LISTS, SCALARS, WordLists
from lc_assets.vocabulary import parse_document_id

Values = Mapping[str, float | None]
MAX_LINE_BYTES = 256 << 20


@record
class Explained:
    """All published information on one document.

    Attributes:
        id: of the document.
        url: its address, or empty.
        where: the file or the stage's version that was read.
        rules: the rules that explain it.
        values: known values by column; None where there is no value.
        others: reasons other than rules, with the tested values.
        text: the filtered text; None if unavailable.
        removed: lines and pieces that were removed before: ``(text, reason)``.
        digests: of the lists and models used to compute values.
    """

    id: str
    url: str
    where: str
    rules: RuleSet
    values: Values
    others: tuple[str, ...] = ()
    text: str | None = None
    removed: tuple[tuple[str, str], ...] = ()
    digests: Mapping[str, str] = field(default_factory=dict)

    @property
    def reasons(self) -> tuple[str, ...]:
        """Reasons for dropping it, the first one first; empty if it is kept."""
        known = (rule for rule in self.rules.rules if rule.column in self.values)
        found = (rule.failure(self.values[rule.column]) for rule in known)
        return (*self.others, *(words for words in found if words is not None))

    @property
    def decision(self) -> str:
        """One sentence."""
        reasons, n_rules = self.reasons, len(self.rules.rules)
        if reasons:
            more = f", and {len(reasons) - 1:,} more" if len(reasons) > 1 else ""
            return f"{self.id} is dropped by {self.rules.name}: {reasons[0]}{more}."
        unknown = sum(rule.column not in self.values for rule in self.rules.rules)
        words = f"; {unknown:,} of its rules test what is not known here" if unknown else ""
        return f"{self.id} is kept by {self.rules.name}: it passes {n_rules:,} rules{words}."


def explain_in_files(
    sources: list[Path],
    identity: str,
    rules: RuleSet,
    *,
    text_field: str | None = None,
    language: str = "",
    lists: WordLists = NO_LISTS,
    models: Models = NO_MODELS,
) -> Explained:
    """Explain a document of plain files, the first of that id, by its text.

    Args:
        sources: files and folders.
        identity: the document's id in its record, or ``file name/number``.
        rules: to explain it by.
        text_field: record field with the text.
        language: of documents without a language of their own.
        lists: for the signals that need one.
        models: for the columns that need one; all of their values are computed.

    Raises:
        BadInput: when no file contains it, it cannot be read, or a rule's column cannot be
            computed.
    """
    require_computable(rules.columns, lists, models)
    files = corpus_files(sources)
    for file in files:
        for document in read_corpus(file, text_field=text_field):
            if document.id != identity:
                continue
            if isinstance(document, Unread):
                raise BadInput(f"{document.where}: {document.why}, so {identity} has no values")
            named = msgspec.structs.replace(document, language=document.language or language)
            offered = record_offers(named, rules, copies=True)
            columns = list(dict.fromkeys([*computable(models), *sorted(rules.columns)]))
            removed = () if rules.edit is None else edited(named.text, rules.edit).taken
            return Explained(
                id=named.id,
                url=named.url,
                where=str(file),
                rules=rules,
                values=values_of(offered, columns, lists, models),
                text=offered.text,
                removed=tuple((named.text[it.start : it.end], it.reason) for it in removed),
                digests={**lists.digests, **models.digests},
            )
    raise BadInput(
        f"{identity}: no document of that id in {len(files):,} files, such as {files[0]}"
    )


def explain_in_lake(
    lake: Lake,
    identity: str,
    rules: RuleSet | None = None,
    *,
    upstream: Upstream | None = None,
) -> Explained:
    """Explain a document of a published partition, by the rules it was filtered with or by others.

    Raises:
        BadInput: if the id is malformed.
        NotPublished: if the partition is not published, or has no information on the document.
    """
    shard, _ = parse_document_id(identity)
    filtered = lake.partition("filtered_documents", shard.snapshot).require()
    stored = lake.partition("document_signals", shard.snapshot).current()
    params = filtered.params
    filtered_by = msgspec.convert(params["rules"], RuleSet)
    kept = _line(filtered, f"{shard.name}{DOCUMENTS_SUFFIX}", identity)
    dropped = why_dropped(lake, identity)
    values: dict[str, float | None] = {}
    if upstream is not None:
        values |= _published_values(upstream, identity)
    if stored is not None:
        values |= _line(stored, f"{shard.name}{VALUES_SUFFIX}", identity)
    values |= kept
    if dropped is not None:
        columns = {rule.name: rule.column for rule in filtered_by.rules}
        values |= {columns[name]: value for name, value in dropped.reasons if name in columns}
        where, url = f"{dropped.stage}/{shard.snapshot}", kept.get("url", dropped.url)
        others = tuple(_shown(*it) for it in dropped.reasons if it[0] not in columns)
    elif kept:
        where, url, others = f"{filtered.name} ({filtered.version})", kept["url"], ()
    else:
        raise NotPublished(
            f"{identity}: neither kept nor dropped by {filtered.name}; its shard may have been "
            "left out"
        )
    return Explained(
        id=identity,
        url=url,
        where=where,
        rules=rules or filtered_by,
        values={
            name: None if value is None or isnan(value) else value
            for name, value in values.items()
            if name not in ("line", *FILTERED.names, PLACES.name)
        },
        others=others,
        text=kept.get("raw_content"),
        digests={
            name: str(digest)
            for key in ("lists", "models")
            for name, digest in params.get(key, {}).items()
        },
    )


def _shown(name: str, value: float | None) -> str:
    """A reason that is no rule."""
    return name if value is None or isnan(value) else f"{name} = {value:,.12g}"


def _line(published: Published, table: str, identity: str) -> dict[str, Any]:
    """The line of a document in a version's table; empty when it has none."""
    path = published.only(table) / table
    lines = lines_where(path, pc.field("id") == identity) if path.is_file() else ()
    return next(iter(lines), {})


def _published_values(upstream: Upstream, identity: str) -> dict[str, float | None]:
    shard, line = parse_document_id(identity)
    if not isinstance(line, int) or not shard.bucket:
        return {}
    path = part_path("signals", shard)
    with upstream.open(path) as stream:
        table = read_signals(
            stream, shard=shard, where=path, names=SCALARS, max_line_bytes=MAX_LINE_BYTES
        )
    row = table.row_of(line)
    return {} if row is None else table.values_at(row)
