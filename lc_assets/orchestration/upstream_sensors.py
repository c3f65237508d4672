"""Sensors that see new and changed snapshots upstream, or changed archives of the crawl, and ask
for a look at them.

What follows is the condition's. They go by states (`lc_assets.stages.watching`), which cost no
request per shard. A materialization of `raw_snapshot` says in which state it found the upstream,
one of `html_index` in which it found the crawl; a snapshot in another state is asked for, until a
materialization has seen that state. So nothing is lost when the daemon is off, a run fails or the
history is gone; what has been asked for in vain is asked for again after ten minutes, then twenty,
and so on up to a day.

New names are not made partitions by themselves: a list under version control says which snapshots
there are (`lc_assets.sources.opening`). What is listed upstream and stands in no list is named,
with what to do, in each tick's words.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import dagster as dg
import msgspec

from lc_assets.errors import Unreachable
from lc_assets.orchestration.metadata import STATE
from lc_assets.stages.watching import Survey

AGAIN_AFTER_SECONDS = 600.0
AGAIN_AT_LATEST_SECONDS = 86_400.0

RUNNING = (
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
)


class Asked(msgspec.Struct, frozen=True):
    """A look that was asked for: in which state, how often, and when last."""

    state: str
    times: int
    at: float

    def is_due(self, now: float) -> bool:
        """Whether it is time to ask again, when nothing has come of it."""
        return now - self.at >= min(
            AGAIN_AFTER_SECONDS * 2.0 ** (self.times - 1), AGAIN_AT_LATEST_SECONDS
        )


class Cursor(msgspec.Struct, frozen=True, kw_only=True):
    """What the sensor remembers.

    Attributes:
        seen: the state in which each snapshot was looked at last.
        asked: looks that nothing has come of yet.
        next: the snapshot to begin with.
    """

    seen: dict[str, str] = {}
    asked: dict[str, Asked] = {}
    next: str | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """What a tick leads to: looks to ask for, and what to remember."""

    looks: tuple[tuple[str, Asked], ...]
    cursor: Cursor


def decide(
    found: Survey,
    cursor: Cursor,
    *,
    looked: Callable[[str], str | None],
    is_running: Callable[[str], bool],
    now: float,
) -> Decision:
    """Which snapshots are to be looked at.

    Args:
        found: what the tick saw.
        cursor: what is remembered.
        looked: the state in which a snapshot was looked at last, as the history has it.
        is_running: whether a look is under way.
        now: seconds.
    """
    seen, asked = dict(cursor.seen), dict(cursor.asked)
    looks = []
    for snapshot, state in found.states.items():
        if seen.get(snapshot) != state and looked(snapshot) == state:
            seen[snapshot] = state
        if seen.get(snapshot) == state:
            asked.pop(snapshot, None)
            continue
        before = asked.get(snapshot)
        again = before is not None and before.state == state
        if is_running(snapshot) or (again and before is not None and not before.is_due(now)):
            continue
        asked[snapshot] = Asked(state, before.times + 1 if again and before is not None else 1, now)
        looks.append((snapshot, asked[snapshot]))
    return Decision(tuple(looks), Cursor(seen=seen, asked=asked, next=found.next))


def words_of(found: Survey, decision: Decision, own: str | None) -> str:
    """What a tick says: what it saw, what it asked for, and which snapshots stand in no list."""
    said = [
        (
            f"{len(found.states):,} snapshots seen, {len(decision.looks):,} to look at, "
            f"{len(decision.cursor.asked):,} asked for and not done"
        )
    ]
    if found.next is not None:
        said.append(f"the next tick goes on with {found.next}")
    if found.unknown:
        where = (
            f"add them to {own}"
            if own
            else "write them into a text file, a name a line, and let LC_SNAPSHOTS name it"
        )
        said.append(
            f"listed upstream, but no partitions: {', '.join(found.unknown)}: {where}, then "
            "reload the code location"
        )
    return "; ".join(said)


def looking_sensor(
    name: str,
    asset: dg.AssetKey,
    *,
    see: Callable[[str | None], Survey],
    own: str | None,
    every: int,
    status: dg.DefaultSensorStatus,
    description: str,
) -> dg.SensorDefinition:
    """Make a sensor that asks for an asset's partitions where something else is there than the
    asset was made from.

    Args:
        name: the sensor's.
        asset: what looks at everything; its materializations say in which `STATE` they found it.
        see: what a tick sees, beginning with a snapshot.
        own: path of the file of a user's own snapshots.
        every: seconds between two ticks, at least.
        status: whether it runs from the start.
        description: what the UI says of it.
    """

    @dg.sensor(
        name=name,
        target=[asset],
        minimum_interval_seconds=every,
        default_status=status,
        description=description,
    )
    def look(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        cursor = msgspec.json.decode(context.cursor, type=Cursor) if context.cursor else Cursor()
        try:
            found = see(cursor.next)
        except Unreachable as error:
            return dg.SensorResult(skip_reason=f"{name} does not answer: {error}")
        history = _History(context.instance, asset)
        decision = decide(
            found, cursor, looked=history.looked, is_running=history.is_running, now=time.time()
        )
        words = words_of(found, decision, own)
        context.log.info(words)
        requests = list(_requests(asset, decision))
        remembered = msgspec.json.encode(decision.cursor).decode()
        if not requests:
            return dg.SensorResult(skip_reason=words, cursor=remembered)
        return dg.SensorResult(run_requests=requests, cursor=remembered)

    return look


def _requests(asset: dg.AssetKey, decision: Decision) -> Iterator[dg.RunRequest]:
    for snapshot, asked in decision.looks:
        tags = {"dagster/priority": "-1", "lc/upstream_state": asked.state}
        key = f"{snapshot}/{asked.state}/{asked.times}"
        yield dg.RunRequest(run_key=key, partition_key=snapshot, asset_selection=[asset], tags=tags)


@dataclass(frozen=True, slots=True)
class _History:
    """What Dagster's history says of looks."""

    instance: dg.DagsterInstance
    asset: dg.AssetKey

    def looked(self, snapshot: str) -> str | None:
        filters = dg.AssetRecordsFilter(asset_key=self.asset, asset_partitions=[snapshot])
        records = self.instance.fetch_materializations(filters, limit=1).records
        metadata: Mapping[str, dg.MetadataValue] = (
            records[0].asset_materialization.metadata
            if records and records[0].asset_materialization
            else {}
        )
        state = metadata.get(STATE)
        return str(state.value) if state is not None else None

    def is_running(self, snapshot: str) -> bool:
        filters = dg.RunsFilter(statuses=list(RUNNING), tags={"dagster/partition": snapshot})
        runs = self.instance.get_runs(filters)
        return any(run.asset_selection is None or self.asset in run.asset_selection for run in runs)
