"""What became of each shard: a structured line apiece, for programs that watch.

Lines go to Python's logger ``lc_assets.shards``, whose records carry the `Fate` as ``record.fate``;
nobody listens unless somebody asks. `fates_into` writes them as JSON lines into a file. They do not
go through Dagster's log: a line there costs 5 ms and more, and a snapshot has thousands of shards.
What a stage did as a whole is one sentence, see `lc_assets.build.shard_runs`.
"""

import contextlib
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal

import msgspec

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
