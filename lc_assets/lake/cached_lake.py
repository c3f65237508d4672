"""What stands in a lake at one moment: each pointer is read once, each receipt by its head.

A planner asks for the same input once for every partition that reads it, 84 times and more; this
answers from memory, and so from one moment. Receipts come without their files and counts
(`lc_assets.lake.lake.Partition.current_summary`).
"""

from dataclasses import dataclass, field

from lc_assets.errors import LcError
from lc_assets.lake.lake import GLOBAL, Lake, Partition
from lc_assets.lake.versions import Published

Answer = Published | LcError | None


@dataclass(frozen=True, slots=True)
class CachedPartition(Partition):
    """A place, asked once."""

    partition: Partition
    answers: list[Answer] = field(default_factory=list)

    def current(self) -> Published | None:
        """See `Partition.current_summary`."""
        if not self.answers:
            self.answers.append(self._asked())
        (answer,) = self.answers
        if isinstance(answer, LcError):
            raise type(answer)(
                *answer.args
            )  # a fresh one: each time it is raised an exception grows by a traceback
        return answer

    def current_summary(self) -> Published | None:
        """See `Partition.current_summary`; here both are one answer."""
        return self.current()

    def _asked(self) -> Answer:
        try:
            return self.partition.current_summary()
        except LcError as error:
            return error


@dataclass(frozen=True, slots=True)
class CachedLake(Lake):
    """A lake, each place of which is asked once; for one plan, then thrown away."""

    lake: Lake
    capacity: dict[tuple[str, str], CachedPartition] = field(default_factory=dict)
    keys_of_stage: dict[str, list[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, lake: Lake) -> "CachedLake":
        """What stands in ``lake`` from now on, as far as it is asked."""
        return cls(lake.root, lake)

    @property
    def url(self) -> str:
        """See `Lake.url`."""
        return self.lake.url

    def partition(self, stage: str, key: str = GLOBAL) -> Partition:
        """See `Lake.partition`."""
        if (stage, key) not in self.capacity:
            partition = self.lake.partition(stage, key)
            self.capacity[stage, key] = CachedPartition(partition.folder, partition)
        return self.capacity[stage, key]

    def keys(self, stage: str) -> list[str]:
        """See `Lake.keys`."""
        if stage not in self.keys_of_stage:
            self.keys_of_stage[stage] = self.lake.keys(stage)
        return self.keys_of_stage[stage]
