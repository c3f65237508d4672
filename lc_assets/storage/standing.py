"""What stands in a lake at one moment: each pointer is read once, each receipt by its head.

A planner asks for the same input once for every partition that reads it, 84 times and more; this
answers from memory, and so from one moment. Receipts come without their files and counts
(`lc_assets.storage.lake.Place.glance`).
"""

from dataclasses import dataclass, field

from lc_assets.errors import LcError
from lc_assets.storage.lake import GLOBAL, LakeFolder, Place
from lc_assets.storage.versions import Published

Answer = Published | LcError | None


@dataclass(frozen=True, slots=True)
class StandingPlace(Place):
    """A place, asked once."""

    place: Place
    answers: list[Answer] = field(default_factory=list)

    def current(self) -> Published | None:
        """See `Place.glance`."""
        if not self.answers:
            self.answers.append(self._asked())
        (answer,) = self.answers
        if isinstance(answer, LcError):
            raise type(answer)(
                *answer.args
            )  # a fresh one: each time it is raised an exception grows by a traceback
        return answer

    def glance(self) -> Published | None:
        """See `Place.glance`; here both are one answer."""
        return self.current()

    def _asked(self) -> Answer:
        try:
            return self.place.glance()
        except LcError as error:
            return error


@dataclass(frozen=True, slots=True)
class StandingLake(LakeFolder):
    """A lake, each place of which is asked once; for one plan, then thrown away."""

    lake: LakeFolder
    places: dict[tuple[str, str], StandingPlace] = field(default_factory=dict)
    keys_of_stage: dict[str, list[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, lake: LakeFolder) -> "StandingLake":
        """What stands in ``lake`` from now on, as far as it is asked."""
        return cls(lake.root, lake)

    @property
    def url(self) -> str:
        """See `LakeFolder.url`."""
        return self.lake.url

    def place(self, stage: str, key: str = GLOBAL) -> Place:
        """See `LakeFolder.place`."""
        if (stage, key) not in self.places:
            place = self.lake.place(stage, key)
            self.places[stage, key] = StandingPlace(place.folder, place)
        return self.places[stage, key]

    def keys(self, stage: str) -> list[str]:
        """See `LakeFolder.keys`."""
        if stage not in self.keys_of_stage:
            self.keys_of_stage[stage] = self.lake.keys(stage)
        return self.keys_of_stage[stage]
