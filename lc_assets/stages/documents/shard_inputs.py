"""The inputs of filtering and measuring, and the policies for missing or broken files."""

import contextlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

from lc_assets.builds.ahead import Ahead
from lc_assets.builds.settings.documents import FilteringSettings
from lc_assets.builds.sharding import Read, Reads
from lc_assets.builds.stage import BuildContext, StagingFolder
from lc_assets.counts import Counts
from lc_assets.errors import CorruptFile
from lc_assets.execution.containment import at_document, skipped_of
from lc_assets.formats.corpora.batches import Batch
from lc_assets.formats.corpora.containers import Unread
from lc_assets.formats.redpajama.documents import decode_document
from lc_assets.formats.redpajama.lines import read_lines
from lc_assets.lake.upstream import Upstream, UpstreamFile
from lc_assets.lake.versions import Published
from lc_assets.records import record
from lc_assets.sources.files import FileSource
from lc_assets.sources.opening import file_source, upstream_of
from lc_assets.stages.documents.file_records import BROKEN, NamedBatch, file_batches
from lc_assets.stages.documents.measuring import (
    FIELDS_READ,
    Document,
    languages_of,
    models_of,
    rules_of_key,
)
from lc_assets.stages.documents.raw_snapshot import (
    ShardFiles,
    read_manifest,
    require_unchanged,
)
from lc_assets.text.rules.models import Models
from lc_assets.text.rules.rules import RuleSet
from lc_assets.text.signals.names import SCALARS

SKIPPED = "shards skipped"
UNREADABLE = "unreadable line"
TOO_LONG = "line too long"

VALUES_SUFFIX = ".values.parquet"
"""Of the tables of values that `document_signals` publishes: columns ``line``, ``id``, ``url``, and
a float64 column per value, NaN where there is none.
"""


def n_skipped(counts: Counts) -> int:
    """How many shards, or files that share one, were skipped, by a policy, because a file is
    missing or broken.
    """
    shards = sum(n for name, n in counts.extra.items() if name.startswith(SKIPPED))
    return shards + counts.dropped.get(BROKEN, 0)


class Skip(Exception):
    """A shard is skipped; the message is the reason that is counted."""


@record
class ShardTask:
    """One shard to be filtered or measured into ``folder``.

    Attributes:
        upstream: where its files are.
        files: of the shard, as the manifest has them.
        folder: of the version.
        rules: to filter by.
        settings: those of its source.
        source: of files; None means RedPajama-V2.
        stored: table of the values of all documents, when `document_signals` has published it.
        perplexity: whether the perplexity that a file's record names is written.
        fields: of a file's records that are written as columns.
        order_by: the field that orders documents in packed rows.
        columns: of values that are stored.
        lines: whether RedPajama-V2's own lines of signals are written.
        ahead: what a later stage makes of its documents while they are written.
    """

    upstream: Upstream
    files: ShardFiles
    folder: Path
    rules: RuleSet
    settings: FilteringSettings
    source: FileSource | None = None
    stored: Path | None = None
    perplexity: bool = False
    fields: tuple[str, ...] = ()
    order_by: str = ""
    columns: tuple[str, ...] = ()
    lines: bool = False
    ahead: Ahead | None = None

    @property
    def name(self) -> str:
        """The shard's name."""
        return self.files.shard.name

    @property
    def published(self) -> RuleSet:
        """The rules that are applied first, to every document: those on what RedPajama-V2
        publishes, or all where all values are stored.
        """
        return self.rules.on(SCALARS) if self.stored is None else self.rules

    @property
    def measured(self) -> RuleSet:
        """The rules on what has to be measured in the texts of documents that pass the others."""
        return self.rules.but_on(self.published.columns)

    @property
    def keeps_all(self) -> bool:
        """Whether every document of a file that can be read is kept, whatever it is."""
        return self.source is not None and not self.rules.columns and not self.fields

    def models(self) -> Models:
        """The models that its columns need; of files one of languages too, where neither record nor
        source name one.
        """
        identifies = self.source is not None and self.source.settings.identifies
        needed = self.rules.columns | set(self.columns) | ({"language_is"} if identifies else set())
        return models_of(self.settings.models, needed)

    def __str__(self) -> str:
        return self.files.shard.tag


def shard_tasks(
    context: BuildContext, staging: StagingFolder, key: str = "", **more: Any
) -> list[ShardTask]:
    """A task for each shard of a partition, by default that which is built; ``more`` are further
    attributes.
    """
    key = key or staging.key
    rules, settings = rules_of_key(context.recipe, key)
    return [
        ShardTask(
            upstream=upstream_of(context.recipe.sources, key, context.upstream),
            files=files,
            folder=staging.folder,
            rules=rules,
            settings=settings,
            source=file_source(context.recipe.sources, key),
            **more,
        )
        for files in read_manifest(staging.inputs[f"raw_snapshot/{key}"])
    ]


def reads_of_shards(inputs: Mapping[str, Published], key: str) -> dict[str, Reads]:
    """The inputs of each shard: its upstream files, as listed in the manifest."""
    return {
        files.shard.name: tuple(
            _read(part, files.parts.get(part))
            for part in (*files.of_documents, "signals", "duplicates")
        )
        for files in read_manifest(inputs[f"raw_snapshot/{key}"])
    }


def _read(part: str, file: UpstreamFile | None) -> Read:
    return Read(part, "") if file is None else Read(part, file.identity, file.n_bytes)


def records_of(task: ShardTask, models: Models) -> Iterator[tuple[int, str, Document | Unread]]:
    """A shard's documents with their lines and ids; a document that cannot be read is replaced by
    the reason.

    Raises:
        Skip: when the file is missing or broken and the policy is to skip the shard.
        CorruptFile: when it is missing or broken and the policy is ``fail``.
    """
    shard = task.files.shard
    if task.source is None:
        for line, raw in lines_of_documents(task):
            yield line, shard.document_id(line), read_document(task, line, raw)
        return
    for batch in batches_of(task, task.source, models):
        for line, name, found in batch.records():
            yield line, name, found
            at_document(line + 1)


def batches_of(task: ShardTask, source: FileSource, models: Models) -> Iterator[NamedBatch]:
    """A shard's documents out of files, with their languages; see `records_of`."""
    policy, default = task.settings.corrupt_documents, source.settings.language
    fields = None if task.fields else FIELDS_READ
    with skip_by_policy("documents", policy):
        at_document(0)
        for batch in file_batches(source, task.files, task.folder, fields):
            broken = (read for read in batch.batch.unread.values() if read.why == BROKEN)
            if policy == "fail" and (read := next(broken, None)):
                raise CorruptFile(read.where)
            if skipped := skipped_of(batch.numbers):
                batch = _without(batch, skipped, str(task))  # noqa: PLW2901
            columns = batch.batch.columns
            columns["language"] = languages_of(columns, batch.readable, default, models)
            at_document(batch.begin)
            yield batch
            at_document(batch.numbers.stop)


def _without(batch: NamedBatch, skipped: Mapping[int, str], where: str) -> NamedBatch:
    """A batch without the texts of some documents."""
    records = [
        Unread(id=name, where=where, why=skipped[line]) if line in skipped else found
        for line, name, found in batch.records()
    ]
    return replace(batch, batch=Batch.of(records))


def read_document(
    task: ShardTask, line: int, raw: bytes | None, odd: Counter[str] | None = None
) -> Document | Unread:
    """Decode a line of RedPajama-V2's documents; see `decode_document`."""
    where = f"{task} line {line}"
    if skipped := at_document(line):
        return Unread(id="", where=where, why=skipped)
    if raw is None:
        return Unread(id="", where=where, why=TOO_LONG)
    try:
        return decode_document(raw, where=where, odd=odd)
    except CorruptFile as error:
        return Unread(id="", where=str(error), why=UNREADABLE)


@contextlib.contextmanager
def skip_by_policy(part: str, policy: str) -> Iterator[None]:
    """Apply a policy to a file that is missing or broken.

    Raises:
        Skip: when the shard is to be skipped.
        CorruptFile: when the policy is ``fail``.
    """
    try:
        yield
    except CorruptFile as error:
        if policy == "fail":
            raise
        raise Skip(f"{part} missing or broken") from error


def lines_of_documents(task: ShardTask) -> Iterator[tuple[int, bytes | None]]:
    """Lines of RedPajama-V2's documents, under the policy for a file that is missing or broken; see
    `read_lines`.
    """
    limit = task.settings.max_line_bytes
    with (
        skip_by_policy("documents", task.settings.corrupt_documents),
        opened(task, "documents") as stream,
    ):
        yield from read_lines(stream, where=where_of(task, "documents"), max_line_bytes=limit)


@contextlib.contextmanager
def opened(task: ShardTask, part: str) -> Iterator[BinaryIO]:
    """Open one of a shard's files, which is compared with the manifest.

    Raises:
        CorruptFile: when it is missing.
    """
    file = task.files.parts.get(part)
    if file is None:
        raise CorruptFile(f"{where_of(task, part)}: is missing upstream")
    require_unchanged(task.upstream, file)
    with task.upstream.open(file.path) as stream:
        yield stream


def where_of(task: ShardTask, part: str) -> str:
    """What a message calls one of a shard's files."""
    return f"{task.files.shard.tag} ({part})"
