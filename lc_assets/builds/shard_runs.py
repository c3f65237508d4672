"""Running the shards of one version: unchanged ones are reused from an older version, the others
computed, and all recorded.

A shard is reused by a hard link, or by a copy where the file system has none, after its bytes were
read and compared with the older version's receipt; a damaged shard is computed again. Published
files are never written to, so versions can share them.

Every finished shard is logged on Python's logger ``lc_assets.shards``, with a `ShardOutcome` as
``record.outcome``; `log_shards_to` writes these as JSON lines. Dagster's log is not used: a line
there takes 5 ms, and a snapshot has thousands of shards.
"""

import contextlib
import functools
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, Literal

import msgspec

from lc_assets.builds.ahead import making_ahead
from lc_assets.builds.metering import Spent, metered
from lc_assets.builds.sharding import ShardRecord, Shards, write_records
from lc_assets.builds.stage import BuildContext, StagingFolder
from lc_assets.counts import Counts
from lc_assets.errors import CorruptFile
from lc_assets.lake.digests import FileFact, fact_of, is_unchanged
from lc_assets.lake.receipts import SCRATCH, decode_json, encode_json
from lc_assets.publishing import PUBLISHED, flush, publish_bytes, publish_linked
from lc_assets.records import frozen, record

LOGGER = logging.getLogger("lc_assets.shards")

How = Literal["computed", "reused", "resumed", "ahead"]
"""``reused`` from an older version; ``resumed``: computed by a killed attempt at this version;
``ahead``: while what it is made of was written (`lc_assets.builds.ahead`).
"""


class ShardOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """One finished shard.

    Attributes:
        stage: the stage's name.
        key: the partition.
        version: the version being built.
        shard: the shard's name.
        outcome: where its files come from.
        of: the older version it was reused from; empty otherwise.
        seen: items read, in the stage's unit.
        kept: what was kept.
        dropped: items dropped, by first reason.
        bytes_read: size of its inputs; 0 when unknown.
        seconds: wall-clock time of its task.
        cpu_seconds: processor time of its task.
    """

    stage: str
    key: str
    version: str
    shard: str
    outcome: How
    of: str = ""
    seen: int
    kept: int
    dropped: dict[str, int]
    bytes_read: int
    seconds: float
    cpu_seconds: float

    @property
    def mb_per_second(self) -> float | None:
        """Input per second in 10⁶ bytes; None when unknown."""
        known = self.bytes_read and self.seconds > 0
        return round(self.bytes_read / self.seconds / 1e6, 3) if known else None


class Done(msgspec.Struct, frozen=True):
    """A finished task: counts, the files that it published, resources used."""

    counts: Counts
    files: tuple[FileFact, ...]
    spent: Spent


@frozen
class ReuseTask:
    """A shard of an older version, in ``source``, to be linked into ``folder``."""

    source: Path
    folder: Path
    record: ShardRecord

    def __str__(self) -> str:
        return f"{self.folder.name} {self.record.shard}"


@record
class ShardRun:
    """The shards of one version while they run.

    Attributes:
        context: runs the tasks; its ``say`` is called when shards are reused.
        staging: the version, whose meter and facts are updated.
        records: of the shards that are finished.
    """

    context: BuildContext
    staging: StagingFolder
    records: list[ShardRecord] = field(default_factory=list)

    def run(self, function: Callable[[Any], Counts], tasks: Sequence[Any], *, what: str) -> Counts:
        """Run the tasks that cannot be reused; return the counts of all."""
        if self.staging.shards is None:
            finished = [done for _, done in self._computed(function, tasks, what)]
            self.staging.facts.update((fact.path, fact) for done in finished for fact in done.files)
            return Counts.total([done.counts for done in finished])
        meter = self.staging.meter
        before = meter.shards_reused
        left = self._reuse(self.staging.shards, tasks, what)
        for task, done in self._computed(function, left, what):
            self._record(self.staging.shards, task.name, done)
        write_records(self.staging.folder, self.records)
        if n_reused := meter.shards_reused - before:
            made = self.staging.fingerprint
            self.context.say(
                f"{made.stage}/{made.key}: {len(tasks) - n_reused:,} of {len(tasks):,} shards "
                f"computed, {n_reused:,} reused unchanged"
            )
        return Counts.total([record.counts for record in self.records])

    def _computed(
        self, function: Callable[[Any], Counts], tasks: Sequence[Any], what: str
    ) -> Iterator[tuple[Any, Done]]:
        resumed = {task.name for task in tasks if is_finished(task)}
        shards = self.staging.shards
        if shards:  # largest first: a large shard started last would leave the other workers idle
            tasks = sorted(tasks, key=lambda task: -shards.n_bytes([task.name]))
        do = functools.partial(compute, function, shards.suffixes if shards else ())
        for task, done in self.context.executor.run(do, tasks, what=what):
            name = task.name
            self.staging.meter.shards_computed += shards is not None and name not in resumed
            self._log(name, "resumed" if name in resumed else "computed", done)
            yield task, done

    def _reuse(self, shards: Shards, tasks: Sequence[Any], what: str) -> list[Any]:
        """Reuse what older versions hold; return the other tasks."""
        known = {
            task.name: shards.older[task.name]
            for task in tasks
            if task.name in shards.older and not is_finished(task)
        }
        if not known:
            return list(tasks)
        patterns = [f"*{suffix}" for suffix in shards.suffixes]
        folders = {old.home: old.version.only(*patterns) for old in known.values() if old.version}
        links = [
            ReuseTask(folders.get(old.home, old.home), self.staging.folder, old.record)
            for old in known.values()
        ]
        reused = set()
        for link, done in self.context.executor.run(reuse, links, what=f"{what}, reused"):
            if done is None:
                continue
            name, version = link.record.shard, known[link.record.shard].version
            reused.add(name)
            self.staging.meter.shards_reused += version is not None
            self.staging.meter.shards_computed += version is None
            self._log(name, *(("reused", done, version.version) if version else ("ahead", done)))
            self._record(shards, name, done)
        flush(self.staging.folder)
        return [task for task in tasks if task.name not in reused]

    def _record(self, shards: Shards, name: str, done: Done) -> None:
        made_of = shards.made_of.get(name, "")
        self.records.append(
            ShardRecord(shard=name, made_of=made_of, counts=done.counts, files=done.files)
        )
        self.staging.facts.update((fact.path, fact) for fact in done.files)

    def _log(self, name: str, how: How, done: Done, of: str = "") -> None:
        self.staging.meter.spent.append(done.spent)
        shards = self.staging.shards
        n_bytes = shards.n_bytes([name]) if shards else 0
        self.staging.meter.bytes_read += n_bytes if how == "computed" else 0
        if not LOGGER.isEnabledFor(logging.INFO):
            return
        outcome = ShardOutcome(
            stage=self.staging.fingerprint.stage,
            key=self.staging.fingerprint.key,
            version=self.staging.folder.name,
            shard=name,
            outcome=how,
            of=of,
            seen=done.counts.seen,
            kept=done.counts.kept,
            dropped=dict(done.counts.dropped),
            bytes_read=n_bytes,
            seconds=round(done.spent.seconds, 6),
            cpu_seconds=round(done.spent.cpu_seconds, 6),
        )
        LOGGER.info("%s/%s %s", outcome.stage, name, how, extra={"outcome": outcome})


def compute(function: Callable[[Any], Counts], suffixes: Sequence[str], task: Any) -> Done:
    """In a worker: run one task, and store its counts with the digests of the files that it
    published; a task that a killed attempt finished is not repeated, if its files are unchanged.

    They are a JSON file per task in the version's folder `SCRATCH`, published after the task's
    files, part of no digest, and removed when the version has its receipt.
    """

    def counts_and_files(task: Any) -> tuple[Counts, tuple[FileFact, ...]]:
        # There is no memo, or a damaged one, or a file is missing.
        with contextlib.suppress(CorruptFile, FileNotFoundError):
            counts, files = decode_json(_memo(task), tuple[Counts, tuple[FileFact, ...]])
            if all(fact_of(task.folder, fact.path) == fact for fact in files):
                return counts, files
        token = PUBLISHED.set([task.folder / name for name in names])
        with making_ahead(getattr(task, "ahead", None)) as finish_ahead:
            try:
                counts = function(task)
                files = tuple(
                    fact_of(task.folder, path.relative_to(task.folder).as_posix())
                    for path in dict.fromkeys(PUBLISHED.get())
                    if path.is_relative_to(task.folder) and path.is_file()  # not of another lake's
                )
            finally:
                PUBLISHED.reset(token)
            publish_bytes(_memo(task), encode_json((counts, files)))
            finish_ahead(files)
        return counts, files

    names = [f"{task.name}{suffix}" for suffix in suffixes]
    (counts, files), spent = metered(counts_and_files, task)
    own = [fact for fact in files if fact.path in names] if names else files
    return Done(counts, tuple(own), spent)


def is_finished(task: Any) -> bool:
    """Whether an attempt that was killed has finished a task."""
    return _memo(task).is_file()


def _memo(task: Any) -> Path:
    """What is stored of a finished task."""
    path: Path = task.folder / SCRATCH / f"{task.name}.json"
    return path


def reuse(task: ReuseTask) -> Done | None:
    """In a worker: link an older version's shard into another folder; None when its files are
    missing or damaged.
    """

    def link(task: ReuseTask) -> bool:
        if not all(is_unchanged(task.source / fact.path, fact) for fact in task.record.files):
            return False
        for fact in task.record.files:
            publish_linked(task.source / fact.path, task.folder / fact.path)
        return True

    linked, spent = metered(link, task)
    return Done(task.record.counts, task.record.files, spent) if linked else None


class _JsonLines(logging.FileHandler):
    """Appends each record's outcome as a line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """A line."""
        outcome: ShardOutcome = record.__dict__["outcome"]
        values = msgspec.to_builtins(outcome) | {"mb_per_second": outcome.mb_per_second}
        return msgspec.json.encode({"time": record.created} | values).decode()


@contextlib.contextmanager
def log_shards_to(path: Path | None) -> Iterator[None]:
    """Append the outcome of every shard that finishes within the block to a file of JSON lines;
    None does nothing.
    """
    if path is None:
        yield
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    handler, level = _JsonLines(path, encoding="utf-8", delay=True), LOGGER.level
    LOGGER.addHandler(handler)
    LOGGER.setLevel(logging.INFO)
    try:
        yield
    finally:
        LOGGER.setLevel(level)
        LOGGER.removeHandler(handler)
        handler.close()
