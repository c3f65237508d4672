"""What a rebuild costs, by the verbs and through Dagster: ``pytest -s -m "benchmark and slow"
lc_assets_tests/benchmarks/test_rebuild_costs.py``.

Six snapshots of four small shards, compared with each other, with rows, Megatron's files, a mix and
the card; then the changes that a person makes, one after the other. Runs and steps are those that
the daemon's condition would ask for: one run per partition with what can be built in a row.
"""

import json
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import msgspec
import pytest

from lc_assets.builds.settings.common import WithdrawalSettings
from lc_assets.builds.settings.longpack import PackingSettings
from lc_assets.builds.settings.rows import MixSettings
from lc_assets.builds.shard_runs import log_shards_to
from lc_assets.builds.stage import BuildContext
from lc_assets.definitions import build_defs
from lc_assets.formats.lists.withdrawal_lists import COLUMNS, Withdrawal, line_of
from lc_assets.lake.digests import digest_of
from lc_assets.orchestration.automation import instance_at, recorder
from lc_assets.stages.catalogue import STAGES, stage_named
from lc_assets.stages.documents.raw_snapshot import look_at_snapshot, manifest_of
from lc_assets.stages.planning import Run, plan
from lc_assets.stages.rebuilding import rebuild
from lc_assets.stages.rows.token_grid import rows_table
from lc_assets.vocabulary import Shard, parse_snapshot
from lc_assets_tests.builders import (
    N_LONG,
    recipe_file,
    tiny_context,
    tiny_documents,
    tiny_upstream,
    write_shard,
)

SIX = ("2021-04", "2021-10", "2021-17", "2021-21", "2021-25", "2021-31")
SEVENTH = "2021-39"
TAGS = ("0000/en_head", "0000/en_middle", "0001/en_head", "0001/en_middle")
OF_ALL = {"longcrawl/all", "longcrawl_flat/all", "blended_mix/by-tokens", "data_set_card/all"}
BEHIND_A_LIST = (
    "removed_documents",
    "token_documents",
    "token_grid",
    "row_lineage",
    "megatron_rows",
)
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What one rebuild took, and which partitions have another version since."""

    seconds: float
    runs: int
    steps: int
    shards: Counter[str]
    of: set[str]
    changed: set[str]

    def line(self, what: str, seconds: float) -> str:
        """A line of the table."""
        computed, taken = self.shards["computed"], self.shards["reused"]
        return (
            f"| {what} | {self.runs} | {self.steps} | {len(self.changed)} | {computed} | "
            f"{taken} | {self.seconds:.1f} | {seconds:.1f} |"
        )


@dataclass
class Side:
    """A lake of its own, and how its partitions are built."""

    context: BuildContext
    folder: Path
    build: Callable[[BuildContext, Run], None]
    names: list[str]

    def ask(self, *, looking: bool):
        lake, recipe = self.context.lake, self.context.recipe
        found = (
            {name: look_at_snapshot(self.context, parse_snapshot(name)) for name in self.names}
            if looking
            else {}
        )
        digests = {name: digest_of(manifest_of(files).to_pylist()) for name, files in found.items()}
        return plan(lake, recipe, self.names, upstream_digests=digests)

    def versions(self) -> dict[str, str]:
        places = ((step.name, key) for step in STAGES for key in self.context.lake.keys(step.name))
        return {
            f"{stage}/{key}": self.context.lake.partition(stage, key).require().version
            for stage, key in places
        }

    def rebuild(self, *, looking: bool = False) -> Cost:
        """Build what is out of date."""
        runs: list[Run] = []
        log, before = self.folder / f"{time.monotonic_ns()}.jsonl", self.versions()

        def build(run: Run) -> None:
            runs.append(run)
            self.build(self.context, run)

        begun = time.process_time()
        with log_shards_to(log):
            made = rebuild(partial(self.ask, looking=looking), build, stop_at_once=True)
        seconds = time.process_time() - begun
        assert not made.left
        fates = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
        after = self.versions()
        return Cost(
            seconds=seconds,
            runs=len(runs),
            steps=sum(len(run.plans) for run in runs),
            shards=Counter(fate["outcome"] for fate in fates),
            of={
                f"{fate['stage']}/{fate['key']}" for fate in fates if fate["outcome"] == "computed"
            },
            changed={name for name, version in after.items() if before.get(name) != version},
        )

    def change_recipe(self, **changes: object) -> None:
        self.context = replace(
            self.context, recipe=msgspec.structs.replace(self.context.recipe, **changes)
        )


def by_verbs(context: BuildContext, run: Run) -> None:
    for made in run.plans:
        stage_named(made.stage).build(context, run.key)


@pytest.fixture(scope="module")
def sides(tmp_path_factory) -> Iterator[tuple[Side, Side]]:
    """Two empty lakes over one upstream: one is built by the verbs, the other by runs of Dagster in
    this process.
    """
    folder = tmp_path_factory.mktemp("costs")
    upstream = tiny_upstream(folder / "upstream", snapshots=SIX, tags=TAGS)
    (folder / "withdrawn.csv").write_text(f"{','.join(COLUMNS)}\n")
    settings = {
        "blended_mix": {"by-tokens": MixSettings()},
        "packed_rows": PackingSettings(),
        "withdrawn_documents": WithdrawalSettings(lists=(str(folder / "withdrawn.csv"),)),
    }
    verbs, dagster = (
        tiny_context(folder / name, upstream=upstream, **settings) for name in ("verbs", "dagster")
    )
    (folder / "home").mkdir()
    shutil.copy(Path(__file__).parents[2] / "dagster.yaml", folder / "home")
    with instance_at(folder / "home") as instance:

        def by_dagster(context: BuildContext, run: Run) -> None:
            recipe = recipe_file(folder / "recipe.toml", context.recipe)
            defs = build_defs(lake=context.lake.url, upstream=str(upstream), recipe=str(recipe))
            recorder(defs, instance, lambda _words: None)(run)

        yield Side(verbs, folder, by_verbs, list(SIX)), Side(dagster, folder, by_dagster, list(SIX))


def test_four_rebuilds_and_what_they_cost(sides):
    """Nothing for nothing; what is behind a threshold; what is of a snapshot; what holds a
    document. Both ways the same.
    """
    upstream = Path(sides[0].context.upstream.root)
    table = []

    def both(what: str, *, looking: bool = False) -> Cost:
        verbs, dagster = (side.rebuild(looking=looking) for side in sides)
        assert replace(verbs, seconds=0) == replace(dagster, seconds=0)
        table.append(verbs.line(what, dagster.seconds))
        return verbs

    first = both("from nothing, six snapshots")
    nothing = both("nothing changed")
    assert (nothing.runs, nothing.steps, nothing.changed, nothing.shards) == (
        0,
        0,
        set(),
        Counter(),
    )

    per_snapshot = {name.split("/")[0] for name in first.changed if name.endswith(SIX[0])}
    filtering = sides[0].context.recipe.filtered_documents
    for side in sides:
        side.change_recipe(filtered_documents=msgspec.structs.replace(filtering, min_words=41))
    idle = both("one threshold changed, which drops no document")
    assert idle.changed == {f"filtered_documents/{name}" for name in SIX}

    for side in sides:
        side.change_recipe(filtered_documents=msgspec.structs.replace(filtering, min_words=100))
    threshold = both("one threshold changed")
    assert threshold.changed == first.changed - {f"raw_snapshot/{name}" for name in SIX} - {
        "withdrawn_documents/all"
    } | (threshold.changed & {"withdrawn_documents/all"})

    shard = Shard.parse(f"{SIX[2]}/{TAGS[1]}")
    write_shard(upstream, shard, tiny_documents(shard, seed=8), duplicates=[N_LONG + 3])
    one_shard = both("one shard of one snapshot changed upstream", looking=True)
    assert {name for name in one_shard.of if name.startswith("filtered_documents/")} == {
        f"filtered_documents/{SIX[2]}"
    }

    tiny_upstream(upstream, snapshots=[SEVENTH], tags=TAGS)
    for side in sides:
        side.names.append(SEVENTH)
    added = both("one snapshot added")
    assert {f"{stage}/{SEVENTH}" for stage in per_snapshot} <= added.changed
    assert {name.split("/")[1] for name in added.of} <= {SEVENTH, "all"}
    assert not any(
        name.endswith(SIX)
        for name in added.changed
        if name.split("/")[0]
        in ("filtered_documents", "token_documents", "token_grid", "megatron_rows")
    )
    assert added.seconds < first.seconds / 2

    holder, lake = SIX[3], sides[0].context.lake
    out = min(rows_table(lake.partition("token_grid", holder).require())["id"].to_pylist())
    with (sides[0].folder / "withdrawn.csv").open("a") as lines:
        lines.write(
            line_of(Withdrawal(kind="document", value=out, reason="asked for", date="2026-03-01"))
            + "\n"
        )
    withdrawn = both("one document withdrawn")
    looked_up = {"withdrawn_documents/all"} | {
        f"snapshot_withdrawals/{name}" for name in sides[0].names
    }
    assert (
        withdrawn.changed - looked_up == {f"{stage}/{holder}" for stage in BEHIND_A_LIST} | OF_ALL
    )
    assert out not in rows_table(lake.partition("token_grid", holder).require())["id"].to_pylist()

    print(
        "\n| what changed | runs | steps | partitions made anew | shards computed | taken over | "
        "CPU-s by the verbs | through Dagster |"
    )
    print("|---|---|---|---|---|---|---|---|")
    print("\n".join(table))
