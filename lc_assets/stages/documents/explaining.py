"""Why one document is kept or dropped: every value that is known of it, every rule, and the verdict
that judging gives.

=================  =======================================================================================================
asked of           what is known
=================  =======================================================================================================
a plain corpus     the text, so everything that a text can give
stored values      what was stored
a lake             what `filtered_documents` kept of it, or why it or `token_documents` dropped it; all published signals too when upstream is
                   at hand
=================  =======================================================================================================

Here: finding the document and judging it. Not here: judging (`judging`), where a document went
    (`whereabouts`), printing.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from math import isnan
from pathlib import Path
from typing import Any, Final

import msgspec
import pyarrow.compute as pc

from lc_assets.build.checks import DOCUMENTS_SUFFIX
from lc_assets.build.tables import FILTERED
from lc_assets.errors import BadInput, NotPublished
from lc_assets.formats.corpora.reading import corpus_files, read_corpus
from lc_assets.formats.corpora.records import CorpusDocument, Unread
from lc_assets.formats.redpajama.listings import signals_path
from lc_assets.formats.redpajama.signals import read_signals
from lc_assets.lake.lake import Lake
from lc_assets.lake.upstream import Upstream
from lc_assets.lake.versions import Published
from lc_assets.stages.documents.judges import Judge, in_order_of_cost
from lc_assets.stages.documents.stored_values import (
    MAX_LINE_BYTES,
    StoredValues,
    is_stored,
    read_values,
    require_stored,
    stored_columns,
)
from lc_assets.stages.lineage.histories import why_dropped
from lc_assets.stages.lineage.tracing import lines_where
from lc_assets.text.rules.columns import computable, require_computable, values_of
from lc_assets.text.rules.line_rules import edited
from lc_assets.text.rules.models import NO_MODELS, Models
from lc_assets.text.rules.rules import Rule, RuleSet
from lc_assets.text.signals.names import NO_LISTS, SCALARS, WordLists
from lc_assets.vocabulary import parse_document_id

Values = Mapping[str, float | None]
FILTERED_STAGE: Final = "filtered_documents"


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleVerdict:
    """One rule on the document.

    Attributes:
        rule: the rule.
        known: whether its value is known at all.
        value: what it judged; None when that is missing.
        complaint: its objection; None when it has none, or its value is not known.
    """

    rule: Rule
    known: bool
    value: float | None
    complaint: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """Everything that is known of one document.

    Attributes:
        id: of the document.
        url: its address, or empty.
        where: what was asked: a file, or a stage's version.
        rules: name of the set.
        values: what is known, by column.
        verdicts: of the rules, in the order in which they are asked.
        reasons: why it is dropped, the first first; empty when it is kept. Reasons that are no
            rules come with what was judged.
        text: what was judged; None when no text is at hand.
        removed: lines and pieces that were left out before: ``(text, reason)``.
        digests: of the lists and models that values were computed by; of stored values nobody knows
            them here.
    """

    id: str
    url: str
    where: str
    rules: str
    values: Values
    verdicts: tuple[RuleVerdict, ...]
    reasons: tuple[str, ...]
    text: str | None = None
    removed: tuple[tuple[str, str], ...] = field(default=())
    digests: Mapping[str, str] = field(default_factory=dict)

    @property
    def kept(self) -> bool:
        """Whether nothing speaks against it."""
        return not self.reasons

    @property
    def verdict(self) -> str:
        """One sentence."""
        if self.kept:
            unknown = sum(not verdict.known for verdict in self.verdicts)
            caveat = f"; {unknown:,} of its rules judge what is not known here" if unknown else ""
            return (
                f"{self.id} is kept by {self.rules}: none of {len(self.verdicts):,} rules "
                f"speaks against it{caveat}."
            )
        more = f", and {len(self.reasons) - 1:,} more" if len(self.reasons) > 1 else ""
        return f"{self.id} is dropped by {self.rules}: {self.reasons[0]}{more}."


def is_lake(source: Path) -> bool:
    """Whether a folder is a lake that `filtered_documents` was published in."""
    return (source / FILTERED_STAGE).is_dir()


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
    """Explain a document of a plain corpus, or one of stored values: the first of that id.

    Raises:
        BadInput: when no file holds it, it cannot be read, or it cannot be judged by the rules.
    """
    files = corpus_files(sources)
    if not all(map(is_stored, files)):
        require_computable(rules.columns, lists, models)
    found = None
    for file in files:
        if is_stored(file):
            found = _in_stored(file, identity, rules)
        elif (document := _find(file, identity, text_field)) is not None:
            found = explain_document(
                document, rules, where=str(file), language=language, lists=lists, models=models
            )
        if found is not None:
            return found
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
    """Explain a document of a published snapshot, by the rules that it was judged by or by others.

    Raises:
        BadInput: when it is no document id.
        NotPublished: when the snapshot is not, or nothing in it says anything of the document.
    """
    shard, _ = parse_document_id(identity)
    filtered = lake.partition(FILTERED_STAGE, shard.snapshot).require()
    judged_by = rules_of_version(filtered)
    kept = _kept(filtered, shard.name, identity)
    dropped = why_dropped(lake, identity)
    if kept is None and dropped is None:
        raise NotPublished(
            f"{identity}: neither kept nor dropped by {filtered.name}; its shard may have been "
            "left out"
        )
    values: dict[str, float | None] = {}
    if upstream is not None:
        values |= _published_values(upstream, identity)
    if kept is not None:
        values |= {name: _number(kept[name]) for name in kept if name not in FILTERED.names}
    columns = {rule.name: rule.column for rule in judged_by.rules}
    said = () if dropped is None else dropped.reasons
    values |= {columns[name]: _number(value) for name, value in said if name in columns}
    others = [
        f"{name} = {value:,.12g}" if value is not None and not isnan(value) else name
        for name, value in said
        if name not in columns
    ]
    asked = rules or judged_by
    verdicts = _verdicts(asked.rules, values)
    reasons = [
        *others,
        *(verdict.complaint for verdict in verdicts if verdict.complaint is not None),
    ]
    return Explained(
        id=identity,
        url=kept["url"] if kept is not None else dropped.url if dropped is not None else "",
        where=f"{filtered.name} ({filtered.version})"
        if dropped is None
        else f"{dropped.stage}/{shard.snapshot}",
        rules=asked.name,
        values=values,
        verdicts=verdicts,
        reasons=tuple(reasons),
        text=None if kept is None else kept["raw_content"],
        digests=_digests_of_version(filtered),
    )


def rules_of_version(filtered: Published) -> RuleSet:
    """The rules that a version of `filtered_documents` was made by, as its receipt states them."""
    return msgspec.convert(filtered.receipt.fingerprint.params["rules"], RuleSet)


def _digests_of_version(filtered: Published) -> dict[str, str]:
    params = filtered.receipt.fingerprint.params
    return {
        name: str(digest)
        for key in ("lists", "models")
        for name, digest in params.get(key, {}).items()
    }


def _find(file: Path, identity: str, text_field: str | None) -> CorpusDocument | None:
    document = next(
        (found for found in read_corpus(file, text_field=text_field) if found.id == identity), None
    )
    if isinstance(document, Unread):
        raise BadInput(f"{document.where}: {document.why}, so nothing can be said of {identity}")
    return document


def explain_document(
    document: CorpusDocument,
    rules: RuleSet,
    *,
    where: str,
    language: str = "",
    lists: WordLists = NO_LISTS,
    models: Models = NO_MODELS,
) -> Explained:
    """Explain a document by its text: every column that its text and the models can give, and the
    rules.
    """
    judge = Judge(rules, all_signals=True, language=language, lists=lists, models=models)
    ordered = judge.rules
    offered, judged = judge.document(document)
    values = values_of(
        offered, list(dict.fromkeys([*computable(models), *sorted(ordered.columns)])), lists, models
    )
    return Explained(
        id=document.id,
        url=document.url,
        where=where,
        rules=rules.name,
        values=values,
        verdicts=_verdicts(ordered.rules, values),
        reasons=tuple(complaint.words for complaint in judged.complaints),
        text=offered.text,
        removed=_removed(document.text, ordered),
        digests={**lists.digests, **models.digests},
    )


def _in_stored(file: Path, identity: str, rules: RuleSet) -> Explained | None:
    require_stored(file, rules)
    ordered = in_order_of_cost(rules)
    stored = next(
        (found for found in read_values(file, stored_columns(file)) if found.id == identity), None
    )
    return None if stored is None else _of_stored(stored, ordered, str(file))


def _of_stored(stored: StoredValues, rules: RuleSet, where: str) -> Explained:
    judged = Judge(rules, all_signals=True).stored(stored)
    return Explained(
        id=stored.id,
        url=stored.url,
        where=where,
        rules=rules.name,
        values=stored.values,
        verdicts=_verdicts(rules.rules, stored.values),
        reasons=tuple(complaint.words for complaint in judged.complaints),
    )


def _verdicts(rules: Collection[Rule], values: Values) -> tuple[RuleVerdict, ...]:
    return tuple(
        RuleVerdict(
            rule=rule,
            known=rule.column in values,
            value=values.get(rule.column),
            complaint=rule.complaint(values[rule.column]) if rule.column in values else None,
        )
        for rule in rules
    )


def _removed(text: str, rules: RuleSet) -> tuple[tuple[str, str], ...]:
    if rules.edit is None:
        return ()
    return tuple(
        (text[taken.start : taken.end], taken.reason) for taken in edited(text, rules.edit).taken
    )


def _kept(filtered: Published, shard_name: str, identity: str) -> dict[str, Any] | None:
    path = filtered.folder / f"{shard_name}{DOCUMENTS_SUFFIX}"
    return (
        next(iter(lines_where(path, pc.field("id") == identity)), None) if path.is_file() else None
    )


def _published_values(upstream: Upstream, identity: str) -> dict[str, float | None]:
    shard, line = parse_document_id(identity)
    if not isinstance(line, int) or not shard.bucket:
        return {}
    path = signals_path(shard)
    with upstream.open(path) as stream:
        table = read_signals(
            stream, shard=shard, where=path, wanted=SCALARS, max_line_bytes=MAX_LINE_BYTES
        )
    row = table.row_of(line)
    return {} if row is None else table.values_at(row)


def _number(value: float | None) -> float | None:
    return None if value is None or isnan(value) else value
