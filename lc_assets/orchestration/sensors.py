"""The code location's sensors: one for what is upstream, one for everything behind it."""

import warnings
from collections.abc import Mapping, Sequence
from functools import partial

import dagster as dg

from lc_assets.lake.upstream import Upstream
from lc_assets.orchestration.planner import Asker
from lc_assets.orchestration.upstream_sensors import looking_sensor
from lc_assets.sources.opening import has_redpajama, upstream_of
from lc_assets.stages.documents import raw_snapshot as raw
from lc_assets.stages.links import html_index
from lc_assets.stages.watching import Survey, survey, survey_crawl

EVERY_SECONDS = 30


def sensors_of(
    asker: Asker,
    asset_of: Mapping[str, dg.AssetKey],
    *,
    upstream: str,
    crawl: str,
    own: str | None,
    look_every: int,
    running: bool,
) -> Sequence[dg.SensorDefinition]:
    """Make the sensors.

    Args:
        asker: asks the planner.
        asset_of: asset by stage.
        upstream: the upstream's root.
        crawl: the root of the crawl's own archives; empty where there are none, and no sensor then
            watches them.
        own: path of the file of a user's own snapshots.
        look_every: seconds between two looks upstream, at least.
        running: whether they run from the start.
    """
    status = dg.DefaultSensorStatus.RUNNING if running else dg.DefaultSensorStatus.STOPPED

    def see_upstream(first: str | None) -> Survey:
        begun, recipe = asker.lake().keys(raw.STAGE.name), asker.recipe()
        return survey(
            upstream_of(recipe.sources, "", Upstream(upstream))
            if has_redpajama(recipe.sources)
            else Upstream(upstream),
            recipe.raw_snapshot,
            sources=recipe.sources,
            known=asker.snapshots,
            begun=begun,
            first=first,
        )

    def see_crawl(first: str | None) -> Survey:
        indexed = (
            asker.lake().keys(html_index.STAGE.name)
            if html_index.STAGE.wanted(asker.recipe())
            else ()
        )
        return survey_crawl(Upstream(crawl), set(indexed) & set(asker.snapshots), first=first)

    look = partial(looking_sensor, own=own, every=look_every, status=status)
    what = "Asks for the manifest of each snapshot that is new or changed upstream."
    looking = [look("upstream", asset_of[raw.STAGE.name], see=see_upstream, description=what)]
    if crawl:
        what = (
            "Asks for the index of pages of each snapshot whose archives have changed since it "
            "was made."
        )
        looking.append(
            look("crawl", asset_of[html_index.STAGE.name], see=see_crawl, description=what)
        )
    with warnings.catch_warnings():
        # `use_user_code_server` is beta in Dagster 1.13. Our condition is a class of this package:
        # the daemon does not know it.
        warnings.simplefilter("ignore", dg.BetaWarning)
        building = dg.AutomationConditionSensorDefinition(
            name="out_of_date",
            target=dg.AssetSelection.assets(*asset_of.values()),
            default_status=status,
            minimum_interval_seconds=EVERY_SECONDS,
            run_tags={"dagster/priority": "-1"},
            use_user_code_server=True,
            # One run per partition with all that goes in a row; a backfill has its own daemon to
            # wait for, and tears the rows apart.
            emit_backfills=False,
            description="Builds whatever the planner calls out of date, in order; `lc plan` says "
            "what that is.",
        )
    return *looking, building
