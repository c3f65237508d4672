"""What is outside the lake, as external assets, and the sensors.

`upstream` and `crawl` are observable source assets. The data version of a partition is the state of
a snapshot (`lc_assets.stages.watching`), which needs no request per shard. It is observed by a
person in the UI, by the step that builds `raw_snapshot` or `html_index`, whose materialization
records it, and by a sensor. The sensor requests a snapshot in another state until a materialization
records that state. So no change is missed when the daemon is off, a run fails or the history is
gone; a request without a result is repeated after ten minutes, then twenty, and so on up to a day.

New snapshots do not become partitions automatically: the partitions are a list under version
control (`lc_assets.sources.opening`). Each tick reports snapshots that are listed upstream but
missing there. Downstream stages are requested by the condition
(`lc_assets.orchestration.automation`).
"""

import functools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import dagster as dg
import msgspec
from dagster._core.definitions.data_version import DATA_VERSION_TAG

from lc_assets.builds.settings.common import DagsterSettings
from lc_assets.errors import Unreachable, without_secrets
from lc_assets.lake.upstream import Upstream
from lc_assets.orchestration.metadata import STATE
from lc_assets.orchestration.resources import BuildContextResource, without_notices
from lc_assets.records import record
from lc_assets.sources.opening import has_redpajama, upstream_of
from lc_assets.stages.documents import raw_snapshot as raw
from lc_assets.stages.links import html_index
from lc_assets.stages.watching import Survey, survey, survey_crawl

if TYPE_CHECKING:
    from lc_assets.orchestration.automation import DagsterPlanner

AGAIN_AFTER_SECONDS = 600.0
AGAIN_AT_LATEST_SECONDS = 86_400.0
BUILD_EVERY_SECONDS = 30

WATCHES_UPSTREAM = "Requests the manifest of each snapshot that is new or changed upstream."
WATCHES_CRAWL = "Requests the index of pages of each snapshot whose archives have changed."
SOURCES: Mapping[str, tuple[str, str]] = {
    "upstream": ("documents", "What the sources offer"),
    "crawl": ("links", "The crawl's archives of pages"),
}
"""External asset → its group and the begin of its description."""
RUNNING = (
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
)


class Request(msgspec.Struct, frozen=True):
    """A request: the requested state, the number of attempts, and the time of the last one."""

    state: str
    times: int
    at: float

    def is_due(self, now: float) -> bool:
        """Whether to repeat it now, if it had no result."""
        return now - self.at >= min(
            AGAIN_AFTER_SECONDS * 2.0 ** (self.times - 1), AGAIN_AT_LATEST_SECONDS
        )


class Cursor(msgspec.Struct, frozen=True, kw_only=True):
    """A sensor's cursor.

    Attributes:
        seen: the last materialized state of each snapshot.
        requested: requests without a result so far.
        next: the snapshot to start with.
    """

    seen: dict[str, str] = {}
    requested: dict[str, Request] = {}
    next: str | None = None


def decide(
    found: Survey,
    cursor: Cursor,
    *,
    looked: Callable[[str], str | None],
    is_running: Callable[[str], bool],
    now: float,
) -> tuple[dict[str, Request], Cursor]:
    """Decide which snapshots to request; return the requests and the new cursor.

    Args:
        found: what the tick saw.
        cursor: the current cursor.
        looked: the state of a snapshot's last materialization in the history.
        is_running: whether it is being materialized.
        now: seconds.
    """
    seen, requested, requests = dict(cursor.seen), dict(cursor.requested), dict[str, Request]()
    for snapshot, state in found.states.items():
        if seen.get(snapshot) == state or looked(snapshot) == state:
            seen[snapshot] = state
            requested.pop(snapshot, None)
            continue
        before = requested.get(snapshot)
        if before is None or before.state != state:
            before = Request(state, 0, -AGAIN_AT_LATEST_SECONDS)
        if not is_running(snapshot) and before.is_due(now):
            requests[snapshot] = Request(state, before.times + 1, now)
    return requests, Cursor(seen=seen, requested=requested | requests, next=found.next)


@record
class Watch:
    """Something outside the lake that an asset is made from.

    Attributes:
        name: of the sensor and of the external asset.
        root: where it is; not watched if empty.
        asset: made from it; its materializations have the metadata `STATE`.
        see: what a tick sees, beginning with a snapshot.
        description: of the sensor.
        own: path of the file of a user's own snapshots.
    """

    name: str
    root: str
    asset: dg.AssetKey
    see: Callable[[str | None], Survey]
    description: str
    own: str | None

    def source(
        self, partitions: dg.PartitionsDefinition | None, settings: DagsterSettings
    ) -> dg.AssetsDefinition:
        """The external asset, whose partitions are the snapshots; ``settings`` are the recipe's."""
        group, sentence = SOURCES[self.name]
        spec = dg.AssetSpec(
            self.name,
            partitions_def=partitions,
            group_name=group,
            description=f"{sentence}. A partition's data version changes with the names, sizes and "
            "times of its files, or on a web server with its listings; no data is read.",
            metadata={"place": without_secrets(self.root)},
            owners=settings.owners,
            tags=settings.tags,
        )

        def observe(context: dg.AssetExecutionContext) -> Iterator[dg.ObserveResult]:
            states, found = dict[str, str](), self.see(None)
            while not found.states.keys() <= states.keys():
                states |= found.states
                found = self.see(found.next)
            for snapshot, state in states.items():
                context.log_event(observation(self.name, snapshot, state))
            yield dg.ObserveResult(metadata={"snapshots": len(states)})

        with without_notices():
            made: dg.AssetsDefinition = dg.multi_observable_source_asset(
                specs=[spec], name=self.name
            )(observe)
        return made

    def tick(self, context: dg.SensorEvaluationContext) -> dg.SensorResult:
        """Compare the states with the history, and request snapshots that differ."""
        cursor = msgspec.json.decode(context.cursor, type=Cursor) if context.cursor else Cursor()
        before = cursor.seen | {name: one.state for name, one in cursor.requested.items()}
        try:
            found = self.see(cursor.next)
        except Unreachable as error:
            return dg.SensorResult(skip_reason=f"{self.name} does not answer: {error}")

        def looked(snapshot: str) -> str | None:
            filters = dg.AssetRecordsFilter(asset_key=self.asset, asset_partitions=[snapshot])
            records = context.instance.fetch_materializations(filters, limit=1).records
            made = records[0].asset_materialization if records else None
            state = made.metadata.get(STATE) if made else None
            return None if state is None else str(state.value)

        def is_running(snapshot: str) -> bool:
            filters = dg.RunsFilter(statuses=list(RUNNING), tags={"dagster/partition": snapshot})
            selected = [run.asset_selection for run in context.instance.get_runs(filters)]
            return any(assets is None or self.asset in assets for assets in selected)

        requests, cursor = decide(
            found, cursor, looked=looked, is_running=is_running, now=time.time()
        )
        message = self._message(found, len(requests), len(cursor.requested))
        context.log.info(message)
        return dg.SensorResult(
            run_requests=[
                dg.RunRequest(
                    run_key=f"{snapshot}/{request.state}/{request.times}",
                    partition_key=snapshot,
                    asset_selection=[self.asset],
                    tags={"dagster/priority": "-1", "lc/upstream_state": request.state},
                )
                for snapshot, request in requests.items()
            ]
            or None,
            skip_reason=None if requests else message,
            cursor=msgspec.json.encode(cursor).decode(),
            asset_events=[
                observation(self.name, snapshot, state)
                for snapshot, state in found.states.items()
                if before.get(snapshot) != state
            ],
        )

    def _message(self, found: Survey, n_requests: int, n_open: int) -> str:
        """What a tick found and requested, and the snapshots that are on no list."""
        message = (
            f"{len(found.states):,} snapshots seen, {n_requests:,} to look at, {n_open:,} "
            "requested and not done"
        )
        if found.next is not None:
            message += f"; the next tick continues with {found.next}"
        if found.unknown:
            where = (
                f"add them to {self.own}"
                if self.own
                else "write them into a text file, a name per line, and set LC_SNAPSHOTS to it"
            )
            message += (
                f"; listed upstream, but no partitions: {', '.join(found.unknown)}: {where}, then "
                "reload the code location"
            )
        return message


def observation(name: str, snapshot: str, state: str) -> dg.AssetObservation:
    """That a snapshot was in a state outside the lake."""
    return dg.AssetObservation(name, partition=snapshot, tags={DATA_VERSION_TAG: state})


def see_upstream(planner: "DagsterPlanner", root: str, first: str | None) -> Survey:
    """The states of the sources' snapshots, beginning with one."""
    recipe, upstream = planner.recipe(), Upstream(root)
    if has_redpajama(recipe.sources):
        upstream = upstream_of(recipe.sources, "", upstream)
    return survey(
        upstream,
        recipe.raw_snapshot,
        sources=recipe.sources,
        known=planner.snapshots,
        begun=planner.lake().keys(raw.STAGE.name),
        first=first,
    )


def see_crawl(planner: "DagsterPlanner", root: str, first: str | None) -> Survey:
    """The states of the archives that were indexed before, beginning with one."""
    stage = html_index.STAGE
    indexed = planner.lake().keys(stage.name) if stage.wanted(planner.recipe()) else ()
    return survey_crawl(Upstream(root), set(indexed) & set(planner.snapshots), first=first)


def watches_of(
    planner: "DagsterPlanner",
    resource: BuildContextResource,
    asset_of: Mapping[str, dg.AssetKey],
    *,
    own: str | None,
) -> list[Watch]:
    """What is watched outside the lake; the crawl only if one is configured.

    Args:
        planner: holds lake, recipe and partitions.
        resource: names the upstream and the crawl.
        asset_of: asset by stage.
        own: path of the file of a user's own snapshots.
    """
    watched = [
        ("upstream", raw.STAGE.name, see_upstream, resource.upstream, WATCHES_UPSTREAM),
        ("crawl", html_index.STAGE.name, see_crawl, resource.crawl, WATCHES_CRAWL),
    ]
    return [
        Watch(
            name=name,
            root=root,
            asset=asset_of[stage],
            see=functools.partial(see, planner, root),
            description=description,
            own=own,
        )
        for name, stage, see, root, description in watched
        if root
    ]


def sensors_of(
    watches: Sequence[Watch],
    asset_of: Mapping[str, dg.AssetKey],
    *,
    look_every: int,
    running: bool,
) -> list[dg.SensorDefinition]:
    """Make the sensors.

    Args:
        watches: what is watched outside the lake.
        asset_of: asset by stage.
        look_every: minimum seconds between ticks of the sensors that read from outside the lake.
        running: whether they run from the start.
    """
    status = dg.DefaultSensorStatus.RUNNING if running else dg.DefaultSensorStatus.STOPPED
    looking = [
        dg.sensor(
            name=watch.name,
            target=[watch.asset],
            minimum_interval_seconds=look_every,
            default_status=status,
            description=watch.description,
        )(watch.tick)
        for watch in watches
    ]
    with without_notices():
        # `use_user_code_server`: our condition is a class of this package, which the daemon does
        # not know.
        building = dg.AutomationConditionSensorDefinition(
            name="out_of_date",
            target=dg.AssetSelection.assets(*asset_of.values()),
            default_status=status,
            minimum_interval_seconds=BUILD_EVERY_SECONDS,
            run_tags={"dagster/priority": "-1"},
            use_user_code_server=True,
            # One run per partition with all that goes in a row; a backfill waits for its own
            # daemon, and splits the rows.
            emit_backfills=False,
            description="Builds what the planner reports as out of date, in order; see `lc plan`.",
        )
    return [*looking, building]
