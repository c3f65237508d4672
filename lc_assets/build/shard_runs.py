"""Running a version's shards: those that an older version holds are taken over, the others are
done, all are noted.

A shard is taken over by a hard link, after its bytes were read and held against the older version's
receipt: damage does not spread, a shard that is damaged there is done again. Nothing ever writes
    into a published file, so two versions may
share one; where no link can be made it is copied.

Here: one version's shards on an executor. Not here: which shards are the same
    (`lc_assets.build.sharding`).
"""

import contextlib
import functools
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from lc_assets.build import shard_log as fates
from lc_assets.build.metering import Meter, Spent, metered
from lc_assets.build.sharding import Older, ShardRecord, Shards, write_records
from lc_assets.counts import Counts
from lc_assets.execution.executor import Executor
from lc_assets.lake.digests import FileFact, fact_of
from lc_assets.lake.receipts import Fingerprint
from lc_assets.lake.staging import is_remembered
from lc_assets.publishing import flush, publish_linked


class Done(msgspec.Struct, frozen=True):
    """What a worker answers: counts, the shard's files, what it took."""

    counts: Counts
    files: tuple[FileFact, ...]
    spent: Spent


@dataclass(frozen=True, slots=True)
class TakeTask:
    """One shard of an older version, in ``source``, that is to stand in ``folder`` too."""

    source: Path
    folder: Path
    record: ShardRecord

    def __str__(self) -> str:
        return f"{self.folder.name} {self.record.shard}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardRun:
    """The shards of one version while they are run.

    Attributes:
        executor: what runs them.
        folder: the version's folder.
        fingerprint: of the version.
        meter: is told what was spent.
        shards: how the version falls into shards; None where the stage does not say.
        say: is told in one sentence what was done.
        facts: filled with the facts of files that need not be read again.
    """

    executor: Executor
    folder: Path
    fingerprint: Fingerprint
    meter: Meter
    shards: Shards | None
    say: Callable[[str], object]
    facts: dict[str, FileFact]
    records: list[ShardRecord] = field(default_factory=list)

    def run(self, function: Callable[[Any], Counts], tasks: Sequence[Any], *, what: str) -> Counts:
        """Do the tasks, or find them done; return what was counted in all of them."""
        if self.shards is None:
            return Counts.total([done.counts for _, done in self._done(function, tasks, what)])
        left = self._take_over(tasks, what)
        taken = len(tasks) - len(left)
        for task, done in self._done(function, left, what):
            self._note(task.name, done.counts, done.files)
        self.meter.shards_taken_over += taken
        self._conclude(taken, len(left))
        return Counts.total([record.counts for record in self.records])

    def _done(
        self, function: Callable[[Any], Counts], tasks: Sequence[Any], what: str
    ) -> Iterator[tuple[Any, Done]]:
        remembered = {name_of(task) for task in tasks if is_remembered(task)}
        suffixes = self.shards.suffixes if self.shards else ()
        for task, done in self.executor.run(
            functools.partial(do, function, suffixes), self._largest_first(tasks), what=what
        ):
            name = name_of(task)
            self.meter.add(done.spent)
            self._tell(name, "remembered" if name in remembered else "computed", done)
            self.meter.shards_computed += self.shards is not None and name not in remembered
            yield task, done

    def _largest_first(self, tasks: Sequence[Any]) -> Sequence[Any]:
        """In which order they are begun: a large shard that is begun last keeps one worker busy
        while all others wait.
        """
        shards = self.shards
        return sorted(tasks, key=lambda task: -shards.n_bytes([name_of(task)])) if shards else tasks

    def _take_over(self, tasks: Sequence[Any], what: str) -> list[Any]:
        """Take over what can be; return the tasks that are left."""
        older = self.shards.older if self.shards else {}
        known = {
            task.name: older[task.name]
            for task in tasks
            if task.name in older and not is_remembered(task)
        }
        if not known:
            return list(tasks)
        folders = {found.version.home: self._brought(found) for found in known.values()}
        takes = [
            TakeTask(folders[found.version.home], self.folder, found.record)
            for found in known.values()
        ]
        taken = set()
        for take, done in self.executor.run(take_over, takes, what=f"{what}, taken over"):
            if done is None:
                continue
            name = take.record.shard
            taken.add(name)
            self.meter.add(done.spent)
            self._tell(name, "taken over", done, of=known[name].version.version)
            self._note(name, done.counts, done.files)
        flush(self.folder)
        return [task for task in tasks if task.name not in taken]

    def _brought(self, found: Older) -> Path:
        suffixes = self.shards.suffixes if self.shards else ()
        return found.version.only(*(f"*{suffix}" for suffix in suffixes))

    def _note(self, name: str, counts: Counts, files: tuple[FileFact, ...]) -> None:
        made_of = self.shards.made_of.get(name, "") if self.shards else ""
        self.records.append(ShardRecord(shard=name, made_of=made_of, counts=counts, files=files))
        self.facts.update((fact.path, fact) for fact in files)

    def _conclude(self, n_taken: int, n_left: int) -> None:
        write_records(self.folder, self.records)
        if n_taken:
            name = f"{self.fingerprint.stage}/{self.fingerprint.key}"
            self.say(
                f"{name}: {n_left:,} of {n_left + n_taken:,} shards done, {n_taken:,} taken over "
                "unchanged"
            )

    def _tell(self, name: str, became: Became, done: Done, of: str = "") -> None:
        n_bytes = self.shards.n_bytes([name]) if self.shards else 0
        self.meter.bytes_read += n_bytes if became == "computed" else 0
        made = self.fingerprint
        fates.tell(
            Fate(
                stage=made.stage,
                key=made.key,
                version=self.folder.name,
                shard=name,
                fate=became,
                of=of,
                seen=done.counts.seen,
                kept=done.counts.kept,
                dropped=dict(done.counts.dropped),
                bytes_read=n_bytes,
                seconds=round(done.spent.seconds, 6),
                cpu_seconds=round(done.spent.cpu_seconds, 6),
            )
        )


def name_of(task: Any) -> str:
    """What a task is called: its name, or how it says itself."""
    return str(getattr(task, "name", task))


def do(function: Callable[[Any], Counts], suffixes: Sequence[str], task: Any) -> Done:
    """Do one task in a worker, and read what it wrote once for its digests."""

    def doing(task: Any) -> tuple[Counts, tuple[FileFact, ...]]:
        return function(task), _files(task, suffixes)

    (counts, files), spent = metered(doing, task)
    return Done(counts, files, spent)


def take_over(task: TakeTask) -> Done | None:
    """Let an older version's shard stand in another folder too; None when its files are not what
    was published.
    """

    def taking(task: TakeTask) -> bool:
        if not all(_is_as_published(task.source, fact) for fact in task.record.files):
            return False
        for fact in task.record.files:
            publish_linked(task.source / fact.path, task.folder / fact.path)
        return True

    taken, spent = metered(taking, task)
    return Done(task.record.counts, task.record.files, spent) if taken else None


def _files(task: Any, suffixes: Sequence[str]) -> tuple[FileFact, ...]:
    names = [f"{task.name}{suffix}" for suffix in suffixes]
    return tuple(fact_of(task.folder, name) for name in names if (task.folder / name).is_file())


def _is_as_published(folder: Path, fact: FileFact) -> bool:
    path = folder / fact.path
    return path.is_file() and fact_of(folder, fact.path) == fact


LOGGER: Final = logging.getLogger("lc_assets.shards")

Became = Literal["computed", "taken over", "remembered"]
"""``taken over`` from an older version; ``remembered`` from an attempt at this version that was
killed.
"""


class Fate(msgspec.Struct, frozen=True, kw_only=True):
    """One finished shard.

    Attributes:
        stage: the stage's name.
        key: the partition.
        version: the version that is being made.
        shard: the shard's name.
        fate: whether it was computed.
        of: the older version that it was taken from; empty otherwise.
        seen: what was looked at in it, in the stage's own unit.
        kept: what went on.
        dropped: what did not, by first reason.
        bytes_read: size of what it is made of; 0 when nobody knows.
        seconds: what it took, by the clock of the process that did it.
        cpu_seconds: the same, of its processor.
    """

    stage: str
    key: str
    version: str
    shard: str
    fate: Became
    of: str = ""
    seen: int
    kept: int
    dropped: dict[str, int]
    bytes_read: int
    seconds: float
    cpu_seconds: float

    @property
    def mb_per_second(self) -> float | None:
        """What was read a second, in 10⁶ bytes; None when that is not known."""
        return (
            round(self.bytes_read / self.seconds / 1e6, 3)
            if self.bytes_read and self.seconds > 0
            else None
        )


def tell(fate: Fate) -> None:
    """Hand a fate to whoever listens."""
    if LOGGER.isEnabledFor(logging.INFO):
        LOGGER.info(
            "%s/%s/%s %s in %.3f s",
            fate.stage,
            fate.key,
            fate.shard,
            fate.fate,
            fate.seconds,
            extra={"fate": fate},
        )


class _JsonLines(logging.FileHandler):
    """Appends each record's fate as a line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """A line; a record without a fate is somebody else's, and gives its message."""
        fate = getattr(record, "fate", None)
        said = (
            {"said": record.getMessage()}
            if fate is None
            else msgspec.to_builtins(fate) | {"mb_per_second": fate.mb_per_second}
        )
        return msgspec.json.encode({"time": record.created} | said).decode()


@contextlib.contextmanager
def fates_into(path: Path | None) -> Iterator[None]:
    """Append the fate of every shard that is finished within the block to a file of JSON lines;
    None means nowhere.
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
