"""The inputs of filtering and measuring, and the policies for missing or broken files."""

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import numpy as np

from lc_assets.builds.ahead import Ahead
from lc_assets.builds.settings.documents import FilteringSettings
from lc_assets.builds.sharding import Read, Reads
from lc_assets.builds.stage import BuildContext, StagingFolder
from lc_assets.builds.tables import read_table
from lc_assets.counts import Counts
from lc_assets.errors import CorruptFile
from lc_assets.execution.containment import at_document
from lc_assets.formats.corpora.containers import Unread
from lc_assets.formats.redpajama.documents import decode_document, read_duplicates
from lc_assets.formats.redpajama.lines import read_lines
from lc_assets.formats.redpajama.signals import SignalsTable, read_signals
from lc_assets.lake.upstream import Upstream, UpstreamFile
from lc_assets.lake.versions import Published
from lc_assets.records import record
from lc_assets.sources.files import FileSource
from lc_assets.sources.opening import file_source, upstream_of
from lc_assets.stages.documents.file_records import BROKEN, file_records
from lc_assets.stages.documents.measuring import (
    FIELDS_READ,
    Document,
    in_batches,
    lists_of,
    models_of,
    numbers_of,
    rules_of_key,
    with_language,
)
from lc_assets.stages.documents.raw_snapshot import (
    ShardFiles,
    read_manifest,
    require_unchanged,
)
from lc_assets.text.rules.models import Models
from lc_assets.text.rules.rules import RuleSet
from lc_assets.text.signals.names import SCALARS

T = TypeVar("T")

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
    shard, source, fails = task.files.shard, task.source, task.settings.corrupt_documents == "fail"
    if source is not None:
        fields = None if task.fields else FIELDS_READ
        with skip_by_policy("documents", task.settings.corrupt_documents):
            for line, name, read in file_records(source, task.files, task.folder, fields):
                if isinstance(read, Unread) and read.why == BROKEN and fails:
                    raise CorruptFile(read.where)
                skipped = at_document(line)
                found = Unread(id=name, where=str(task), why=skipped) if skipped else read
                if not isinstance(found, Unread):
                    found = with_language(found, source.settings.language, models)
                yield line, name, found
                at_document(line + 1)
        return
    for line, raw in lines_of_documents(task):
        yield line, shard.document_id(line), read_document(task, line, raw)


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


def signals_of_shard(task: ShardTask) -> tuple[SignalsTable, bool]:
    """The values that the rules test first, and whether they had to be computed because upstream
    has none.

    Raises:
        Skip: when the file is missing or broken and the policy is to skip the shard.
        CorruptFile: when it is missing or broken and the policy is ``fail``.
    """
    if task.stored is not None:
        return stored_values(task.stored, task.published.columns), True
    found = _read_part(
        task,
        "signals",
        task.settings.missing_signals,
        lambda stream: read_signals(
            stream,
            shard=task.files.shard,
            where=_where(task, "signals"),
            names=task.published.columns,
            max_line_bytes=task.settings.max_line_bytes,
        ),
    )
    if found is not None:
        return found, False
    models = models_of(task.settings.models, task.published.columns)
    documents = [
        (line, document)
        for line, _, document in records_of(task, models)
        if not isinstance(document, Unread)
    ]
    return computed_signals(task, documents, models), True


def computed_signals(
    task: ShardTask, documents: list[tuple[int, Document]], models: Models
) -> SignalsTable:
    """The values that the rules test first, from the documents' texts."""
    lists, names = lists_of(task.settings.lists), sorted(task.published.columns)
    values = np.concatenate(
        [
            np.empty((0, len(names))),
            *(
                numbers_of([found for _, found in batch], names, task.rules, lists, models)
                for batch in (in_batches(documents) if names else ())
            ),
        ]
    )
    return SignalsTable(
        np.array([line for line, _ in documents], np.int64),
        [document.url for _, document in documents],
        {name: np.ascontiguousarray(values[:, at]) for at, name in enumerate(names)},
        0,
        0,
    )


def stored_values(path: Path, columns: frozenset[str]) -> SignalsTable:
    """Values of all documents of a shard that could be read, as `document_signals` published them.

    Raises:
        CorruptFile: when the table cannot be read.
    """
    table = read_table(path, ["line", "url", *sorted(columns)])
    values = {name: table[name].to_numpy() for name in sorted(columns)}
    return SignalsTable(table["line"].to_numpy(), table["url"].to_pylist(), values, 0, 0)


def duplicates_of_shard(task: ShardTask) -> frozenset[int] | None:
    """Lines that are duplicates; None when there is no sound list and the policy is to do without.

    Raises:
        Skip: when the list is missing or broken and the policy is to skip the shard.
        CorruptFile: when it is missing or broken and the policy is ``fail``.
    """
    return _read_part(
        task,
        "duplicates",
        task.settings.missing_duplicates,
        lambda stream: read_duplicates(
            stream, shard=task.files.shard, where=_where(task, "duplicates")
        ),
    )


def _read_part(task: ShardTask, part: str, policy: str, read: Callable[[BinaryIO], T]) -> T | None:
    """Read one of a shard's files; None when it is missing or broken and the policy is to do
    without it.
    """
    if policy in ("compute", "treat_as_unique"):
        with contextlib.suppress(CorruptFile), _opened(task, part) as stream:
            return read(stream)
        return None
    with skip_by_policy(part, policy), _opened(task, part) as stream:
        return read(stream)


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
        _opened(task, "documents") as stream,
    ):
        yield from read_lines(stream, where=_where(task, "documents"), max_line_bytes=limit)


@contextlib.contextmanager
def _opened(task: ShardTask, part: str) -> Iterator[BinaryIO]:
    file = task.files.parts.get(part)
    if file is None:
        raise CorruptFile(f"{_where(task, part)}: is missing upstream")
    require_unchanged(task.upstream, file)
    with task.upstream.open(file.path) as stream:
        yield stream


def _where(task: ShardTask, part: str) -> str:
    return f"{task.files.shard.tag} ({part})"
