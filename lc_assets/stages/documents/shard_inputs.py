"""What filtering reads of a shard: the task, RedPajama-V2's files of it, and the policies for what
is missing or broken.
"""

import contextlib
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import nan
from pathlib import Path
from typing import Any

import numpy as np

from lc_assets.build.settings.documents import FilteringSettings
from lc_assets.build.sharding import Read, Reads
from lc_assets.errors import CorruptFile, Mismatch
from lc_assets.formats.redpajama.documents import DocumentRecord, decode_document
from lc_assets.formats.redpajama.duplicates import read_duplicates
from lc_assets.formats.redpajama.lines import LineCount, read_lines, read_other_lines
from lc_assets.formats.redpajama.signals import SignalsTable, read_signals
from lc_assets.lake.upstream import BY_TIME, Upstream, UpstreamFile
from lc_assets.lake.versions import Published
from lc_assets.sources.files import FileSource
from lc_assets.stages.documents.measuring import lists_of, models_of, record_offers
from lc_assets.stages.documents.raw_snapshot import STAGE as RAW
from lc_assets.stages.documents.raw_snapshot import ShardFiles, read_manifest
from lc_assets.stages.documents.verdicts import Verdicts
from lc_assets.text.rules.columns import values_of
from lc_assets.text.rules.rules import RuleSet
from lc_assets.text.signals.names import SCALARS

SKIPPED = "shards skipped"
UNIQUE = "shards treated as unique"
COMPUTED = "shards with computed signals"

PARTS_READ = ("documents", "signals", "duplicates")
"""Parts of a shard that filtering reads."""


class Skip(Exception):
    """A shard is left out; the message is the reason that is counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterTask:
    """One shard to be filtered into ``folder``.

    Attributes:
        upstream: where its files are.
        files: of the shard, as the manifest has them.
        folder: of the version.
        rules: to judge by.
        settings: those of its source.
        source: of files; None means RedPajama-V2.
        perplexity: whether the perplexity that a file's record names is written, see `PERPLEXITY`.
    """

    upstream: Upstream
    files: ShardFiles
    folder: Path
    rules: RuleSet
    settings: FilteringSettings
    source: FileSource | None = None
    perplexity: bool = False

    @property
    def name(self) -> str:
        """The shard's name."""
        return self.files.shard.name

    @property
    def published(self) -> RuleSet:
        """The rules on what RedPajama-V2 publishes: they are applied first, to every document."""
        return self.rules.on(SCALARS)

    @property
    def measured(self) -> RuleSet:
        """The rules on what has to be measured in the text: they are applied to the survivors of
        the others.
        """
        return self.rules.but_on(SCALARS)

    @property
    def models_needed(self) -> frozenset[str]:
        """Columns for which a file's documents need models; a language is identified where neither
        record nor source name one.
        """
        language = () if self.source is None or self.source.settings.language else ("language_is",)
        return self.rules.columns | set(language)

    def __str__(self) -> str:
        return self.files.shard.tag


def reads_of_shards(inputs: Mapping[str, Published], key: str) -> dict[str, Reads]:
    """What filtering reads of each shard: its files upstream, as the manifest has them."""
    return {
        files.shard.name: tuple(map(_read, PARTS_READ, map(files.parts.get, PARTS_READ)))
        for files in read_manifest(inputs[f"{RAW.name}/{key}"])
    }


def _read(part: str, file: UpstreamFile | None) -> Read:
    return Read(part, "") if file is None else Read(part, file.identity, file.n_bytes)


def documents_of(task: FilterTask) -> Iterator[tuple[int, bytes | None]]:
    """Lines of the documents' file with their numbers; None in place of one that is too long.

    Raises:
        Skip: when the file is missing or broken and the policy is to leave the shard out.
        CorruptFile: when it is, and the policy is to fail.
    """
    with (
        skip_by_policy("documents", task.settings.corrupt_documents),
        _opened(task, "documents") as stream,
    ):
        yield from read_lines(
            stream, where=_where(task, "documents"), max_line_bytes=task.settings.max_line_bytes
        )


def undecided_documents(
    task: FilterTask, verdicts: Verdicts, read: LineCount
) -> Iterator[tuple[int, bytes | None]]:
    """The same, but for the documents that are known to fail by their signals: these are only
    counted, in ``read``.
    """
    failing = verdicts.table.lines[verdicts.failing].tolist()
    with (
        skip_by_policy("documents", task.settings.corrupt_documents),
        _opened(task, "documents") as stream,
    ):
        yield from read_other_lines(
            stream,
            where=_where(task, "documents"),
            passed_over=failing,
            max_line_bytes=task.settings.max_line_bytes,
            count=read,
        )


def signals_of_shard(task: FilterTask) -> tuple[SignalsTable, bool]:
    """The published values that the rules judge, and whether they had to be computed because
    upstream has none.

    Raises:
        Skip: when the file is missing or broken and the policy is to leave the shard out.
        CorruptFile: when it is, and the policy is to fail.
    """
    if task.settings.missing_signals != "compute":
        with skip_by_policy("signals", task.settings.missing_signals):
            return _published_signals(task), False
    with contextlib.suppress(CorruptFile):
        return _published_signals(task), False
    return _computed_signals(task), True


def _published_signals(task: FilterTask) -> SignalsTable:
    with _opened(task, "signals") as stream:
        return read_signals(
            stream,
            shard=task.files.shard,
            where=_where(task, "signals"),
            wanted=task.published.columns,
            max_line_bytes=task.settings.max_line_bytes,
        )


def _computed_signals(task: FilterTask) -> SignalsTable:
    """The same table from the documents' text; what cannot be decoded has no signals, as
    upstream.
    """
    names, lists = sorted(task.published.columns), lists_of(task.settings.lists)
    models = models_of(task.settings.models, names)
    lines, urls, values = array("q"), list[str](), array("d")
    for line, raw in documents_of(task):
        record = None if raw is None else _decoded(raw, f"{task.files.shard.tag} line {line}")
        if record is not None:
            lines.append(line)
            urls.append(record.url)
            found = values_of(record_offers(record), names, lists, models)
            values.extend(nan if (value := found[name]) is None else value for name in names)
    table = np.array(values).reshape(len(lines), len(names))
    columns = {name: np.ascontiguousarray(table[:, place]) for place, name in enumerate(names)}
    return SignalsTable(np.array(lines, np.int64), urls, columns, 0, 0)


def _decoded(raw: bytes, where: str) -> DocumentRecord | None:
    try:
        return decode_document(raw, where=where)
    except CorruptFile:
        return None


def duplicates_of_shard(task: FilterTask) -> frozenset[int] | None:
    """Lines that are duplicates; None when there is no sound list and the policy is to do without.

    Raises:
        Skip: when the list is missing or broken and the policy is to leave the shard out.
        CorruptFile: when it is, and the policy is to fail.
    """
    policy = task.settings.missing_duplicates
    if policy != "treat_as_unique":
        with skip_by_policy("duplicates", policy):
            return _listed_duplicates(task)
    with contextlib.suppress(CorruptFile):
        return _listed_duplicates(task)
    return None


def _listed_duplicates(task: FilterTask) -> frozenset[int]:
    with _opened(task, "duplicates") as stream:
        return read_duplicates(stream, shard=task.files.shard, where=_where(task, "duplicates"))


@contextlib.contextmanager
def skip_by_policy(part: str, policy: str) -> Iterator[None]:
    """Apply a policy to a file that is missing or broken.

    Raises:
        Skip: when the shard is to be left out.
        CorruptFile: when the policy is ``fail``.
    """
    try:
        yield
    except CorruptFile as error:
        if policy == "fail":
            raise
        raise Skip(f"{part} missing or broken") from error


@contextlib.contextmanager
def _opened(task: FilterTask, part: str) -> Iterator[Any]:
    file = task.files.parts.get(part)
    if file is None:
        raise CorruptFile(f"{_where(task, part)}: is missing upstream")
    require_unchanged(task.upstream, file)
    with task.upstream.open(file.path) as stream:
        yield stream


def require_unchanged(upstream: Upstream, file: UpstreamFile) -> None:
    """Refuse a file that is no longer what the manifest says.

    Raises:
        Mismatch: names it.
    """
    now = upstream.look(file.path, trust_times=file.identity.startswith(BY_TIME))
    if now != file:
        raise Mismatch(
            f"{upstream.root}/{file.path} has changed since the manifest was made: materialize "
            "`raw_snapshot` of this snapshot again"
        )


def _where(task: FilterTask, part: str) -> str:
    return f"{task.files.shard.tag} ({part})"
