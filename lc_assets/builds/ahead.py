"""Shards made ahead: of a table while another stage writes it, so that it is not read again.

The version that they belong to has no name yet, for that holds the digests of all its inputs. A
shard's fingerprint needs those of its own inputs alone. So shards that are made ahead wait in the
folder `AHEAD` of their partition with their fingerprints, and the build that follows reuses them
like those of an older version. What was not made ahead, or not of the same, it makes itself.
"""

import contextlib
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from lc_assets.builds.sharding import Read, Reads, ShardRecord, fingerprints, record_ahead
from lc_assets.builds.stage import BuildContext, StagingFolder
from lc_assets.builds.table_writer import WATCHER
from lc_assets.counts import Counts
from lc_assets.errors import LcError
from lc_assets.execution.containment import unattributed
from lc_assets.lake.digests import FileFact, fact_of, matching
from lc_assets.lake.receipts import AHEAD, Fingerprint
from lc_assets.records import record

Making = Generator[None, Iterator[Any] | None, Counts]
"""Makes a shard's files of what it is sent, publishes them at None, and returns the counts; what is
not published is removed when it is closed.
"""


@record
class Ahead:
    """A shard that can be made ahead.

    Attributes:
        fingerprint: of its version, without inputs.
        table: name of the file that it is made of.
        beside: its other inputs.
        task: what a worker makes it from, with its ``name`` and ``folder``.
        files: names of its files.
        begin: begins to make it.
        read: what is sent of some lines of the table.
    """

    fingerprint: Fingerprint
    table: str
    beside: Reads
    task: Any
    files: tuple[str, ...]
    begin: Callable[[Any], Making]
    read: Callable[[Any, pa.Table], Iterator[Any]]


def ahead_of(context: BuildContext, staging: StagingFolder) -> dict[str, Ahead]:
    """What stages that are built next can make of a version's shards ahead, by their names."""
    found: dict[str, Ahead] = {}
    for stage in context.following:
        if stage.sharding is None or stage.sharding.ahead is None:
            continue
        with contextlib.suppress(LcError):  # its own build reports it
            made = stage.fingerprint(stage.resolved(context.recipe, staging.key), staging.key, {})
            folder = context.lake.partition(stage.name, staging.key).folder / AHEAD
            found |= stage.sharding.ahead(context, staging, made, folder)
    return found


def finished(making: Making) -> Counts:
    """Have the files published; return the counts."""
    try:
        making.send(None)
    except StopIteration as end:
        counts: Counts = end.value
    return counts


@contextlib.contextmanager
def making_ahead(ahead: Ahead | None) -> Iterator[Callable[[Sequence[FileFact]], None]]:
    """In a worker: make a shard ahead while its table is written within the block. Yield what
    publishes it, given what was published in the block. At any error it is left to its own build,
    which reports it.
    """
    if ahead is None:
        yield lambda _files: None
        return
    with contextlib.closing(_Watch(ahead)) as watch:
        token = WATCHER.set(watch.begin)
        try:
            yield watch.finish
        finally:
            WATCHER.reset(token)


class _Watch:
    """Sends what is written of a table to what makes a shard of it, as long as that can."""

    def __init__(self, ahead: Ahead) -> None:
        self._ahead = ahead
        self._making: Making | None = None

    def close(self) -> None:
        """Make no more."""
        making, self._making = self._making, None
        if making is not None:
            making.close()

    def begin(self, path: Path) -> Callable[[pa.Table], None] | None:
        """What gets the row groups of a table that is begun; after an error, again."""
        if not path.name.endswith(f"-{self._ahead.table}"):
            return None
        self.close()
        with contextlib.suppress(Exception):
            making = self._ahead.begin(self._ahead.task)
            next(making)
            self._making = making
        return self._add

    def _add(self, table: pa.Table) -> None:
        making, self._making = self._making, None
        if making is not None:
            with contextlib.suppress(Exception), unattributed():
                making.send(self._ahead.read(self._ahead.task, table))
                self._making = making

    def finish(self, files: Sequence[FileFact]) -> None:
        """Publish the shard, if the task has published its table."""
        making, self._making = self._making, None
        for table in matching(files, [self._ahead.table]):
            with contextlib.suppress(Exception):
                if making is not None:
                    self._record(table, finished(making))

    def _record(self, table: FileFact, counts: Counts) -> None:
        """Record what the published shard is made of."""
        ahead, name, folder = self._ahead, self._ahead.task.name, self._ahead.task.folder
        reads = (Read("documents", table.sha256, table.n_bytes), *ahead.beside)
        files = tuple(fact_of(folder, file) for file in ahead.files)
        made_of = fingerprints(ahead.fingerprint, {name: reads})[name]
        record_ahead(folder, ShardRecord(shard=name, made_of=made_of, counts=counts, files=files))
