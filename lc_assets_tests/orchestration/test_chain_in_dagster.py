"""The chain in Dagster: materialized by its jobs, stale exactly where something changed, wrong
nowhere in silence.
"""

import json
from pathlib import Path

import dagster as dg
import msgspec
import pytest
from dagster._config import process_config
from dagster._core.definitions.data_version import CachingStaleStatusResolver, StaleStatus
from dagster._core.execution.asset_backfill import AssetBackfillData
from dagster._core.loader import LoadingContextForTest

from lc_assets.builds.columns import UNKNOWN
from lc_assets.builds.recipe import Recipe
from lc_assets.builds.settings.documents import FilteringSettings
from lc_assets.builds.settings.longpack import PackingSettings
from lc_assets.definitions import build_defs, from_environment
from lc_assets.lake.lake import GLOBAL, Lake
from lc_assets.stages.catalogue import STAGES, needed_by, stage_named
from lc_assets.stages.planning import plan
from lc_assets.stages.reports.data_set_card import PLOTS
from lc_assets_tests.builders import SNAPSHOTS, recipe_file, tiny_recipe, tiny_upstream
from lc_assets_tests.materializations import assert_columns_described, assert_metadata

BY_NAME = {stage.name: stage for stage in STAGES}

PER_SNAPSHOT = (
    "raw_snapshot",
    "filtered_documents",
    "token_documents",
    "token_grid",
    "megatron_rows",
)
OLD, NEW = SNAPSHOTS


class CodeLocation:
    """A lake, its upstream and a Dagster instance, for one test."""

    def __init__(self, folder: Path, upstream: Path) -> None:
        self.folder, self.upstream = folder, upstream
        self.lake = Lake(folder / "lake")
        (folder / "instance").mkdir()
        self.instance = dg.DagsterInstance.ephemeral(tempdir=str(folder / "instance"))
        self.recipe = tiny_recipe(
            folder, packed_rows=PackingSettings()
        )  # packed rows: test_packed_rows_in_dagster.py
        self.defs = self.fresh()

    def fresh(self) -> dg.Definitions:
        path = recipe_file(self.folder / "recipe.toml", self.recipe)
        return build_defs(lake=str(self.lake.root), upstream=str(self.upstream), recipe=str(path))

    def change_recipe(self, **changes) -> None:
        """Change the recipe and load the code location again, as a person would."""
        self.recipe = msgspec.structs.replace(self.recipe, **changes)
        self.defs = self.fresh()

    def run(
        self, job: str, key: str | None = None, *, fails: bool = False, **config: object
    ) -> dg.ExecuteInProcessResult:
        found = self.defs.resolve_job_def(job).execute_in_process(
            partition_key=key,
            instance=self.instance,
            raise_on_error=False,
            run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
            | {"ops": {name: {"config": given} for name, given in config.items()}},
        )
        assert found.success is not fails, [
            event.message for event in found.all_events if event.is_failure
        ]
        return found

    def run_all(self, snapshots=SNAPSHOTS) -> None:
        for snapshot in snapshots:
            self.run("snapshot", snapshot)
        for job in ("withdrawn", "all_snapshots"):
            self.run(job)
        for mix in sorted(self.recipe.blended_mix):
            self.run("mixes", mix)
        self.run("card")

    def stale(self) -> set[str]:
        """What Dagster itself calls stale, by asset and partition."""
        graph = self.defs.resolve_asset_graph()
        resolver = CachingStaleStatusResolver(
            self.instance, graph, LoadingContextForTest(self.instance)
        )
        found = set()
        for key in graph.materializable_asset_keys:
            partitions = graph.get(key).partitions_def
            keys = partitions.get_partition_keys() if partitions else [None]
            for partition in set(keys) & {None, *SNAPSHOTS, *self.recipe.blended_mix}:
                if resolver.get_status(key, partition) == StaleStatus.STALE:
                    found.add(f"{key.to_user_string()}/{partition}")
        return found

    def planned(self) -> dict[str, str]:
        """What our planner calls out of date."""
        return {
            made.name: made.status
            for made in plan(self.lake, self.recipe, SNAPSHOTS)
            if made.status != "current"
        }


@pytest.fixture(scope="module")
def upstream(tmp_path_factory):
    return tiny_upstream(tmp_path_factory.mktemp("upstream"))


@pytest.fixture
def location(tmp_path, upstream):
    return CodeLocation(tmp_path, upstream)


@pytest.fixture(scope="module")
def finished(tmp_path_factory, upstream):
    """A location in which everything is built; tests only look."""
    found = CodeLocation(tmp_path_factory.mktemp("finished"), upstream)
    found.run_all()
    return found


def materializations(location: CodeLocation, asset: str) -> list[dg.AssetMaterialization]:
    records = location.instance.fetch_materializations(dg.AssetKey(asset), limit=10).records
    return [record.asset_materialization for record in records]


def stages_of(defs: dg.Definitions) -> list[dg.AssetSpec]:
    """The assets that are made from stages, without what is outside the lake."""
    return [spec for spec in defs.resolve_all_asset_specs() if "lc_assets/stage" in spec.tags]


def test_every_stage_is_an_asset_and_says_what_it_is():
    """Assets and stages are the same chain; each asset has one sentence, a group, a kind, an owner,
    a code version.
    """
    defs = build_defs()
    assert {stage.name for stage in STAGES} == {step.name for step in STAGES}
    for spec in stages_of(defs):
        assert spec.description.endswith(".")
        assert spec.group_name in {
            "documents",
            "links",
            "packing",
            "tokens",
            "training",
            "published",
            "reports",
        }
        assert spec.kinds
        assert spec.owners
        assert spec.tags["lc_assets/stage"] in {step.name for step in STAGES}
        assert spec.code_version


def test_the_code_location_is_loadable():
    """Every job resolves and no two things share a name, as the web server and the daemon
    demand.
    """
    dg.Definitions.validate_loadable(build_defs())


def test_the_graph_follows_the_chain():
    """The edges between assets are the stages' own, without those from assets that the recipe does not
    build, of which the UI would say that they are missing; and except for the
    one from all snapshots' withdrawals back to each snapshot: that snapshot's step builds them, and
    follows what they read.
    """
    built = needed_by(Recipe())
    needed = {
        name: {other for other in stage.reads if other in built or name not in built}
        for name, stage in BY_NAME.items()
    }
    assert needed["filtered_documents"] == {"raw_snapshot"}
    needed |= {"upstream": set()}
    needed["raw_snapshot"] |= {"upstream"}
    needed["snapshot_withdrawals"] |= needed["withdrawn_documents"]
    needed["snapshot_withdrawals"] -= {"withdrawn_documents"}
    assert {
        spec.key.to_user_string(): {dep.asset_key.to_user_string() for dep in spec.deps}
        for spec in build_defs().resolve_all_asset_specs()
    } == needed


@pytest.mark.filterwarnings("ignore:Function `AssetSelection.sources`")  # of Dagster by itself
@pytest.mark.parametrize("chosen", [["2014-15"], ["2023-06", "2014-15"]])
def test_a_backfill_targets_the_chosen_snapshots_only(chosen):
    """Of every asset of a snapshot, whatever older snapshots it reads; each snapshot is one run."""
    graph = build_defs().resolve_asset_graph()
    with dg.DagsterInstance.ephemeral() as instance:
        target = AssetBackfillData.from_asset_partitions(
            graph, chosen, sorted(graph.materializable_asset_keys), instance, 0.0, False
        ).target_subset
    assert {
        asset.to_user_string(): sorted(subset.get_partition_keys())
        for asset, subset in target.partitions_subsets_by_asset_key.items()
        if asset.to_user_string() != "blended_mix"
    } == {
        name: sorted(chosen)
        for name, stage in BY_NAME.items()
        if stage.partitioned_by == "snapshot"
    }


def test_the_job_of_a_snapshot_can_be_launched_as_one_run():
    """All its assets have the same partitions, so the dialog offers a single run beside a backfill."""
    job = build_defs().resolve_job_def("snapshot")
    assert {
        job.asset_layer.get(key).partitions_def for key in job.asset_layer.executable_asset_keys
    } == {job.partitions_def}


def test_the_chain_lists_what_is_read_before_what_reads_it():
    """The planner and a build of everything go down the list once."""
    names = [step.name for step in STAGES]
    assert [
        (step.name, other)
        for step in STAGES
        for other in step.upstream
        if names.index(other) > names.index(step.name)
    ] == []


def test_definitions_load_on_an_empty_machine(tmp_path, monkeypatch):
    """No lake, no upstream, no recipe: the code location loads and touches nothing."""
    monkeypatch.chdir(tmp_path)
    assert len(stages_of(from_environment({}))) == len(STAGES)
    assert list(tmp_path.iterdir()) == []


def test_a_users_own_snapshots_are_partitions(tmp_path):
    """A name in LC_SNAPSHOTS can be materialized like RedPajama-V2's."""
    (tmp_path / "mine.txt").write_text("books-1\n")
    (spec,) = [
        spec
        for spec in build_defs(snapshots=str(tmp_path / "mine.txt")).resolve_all_asset_specs()
        if spec.key.path == ["token_grid"]
    ]
    assert len(spec.partitions_def.get_partition_keys()) == 85
    assert "books-1" in spec.partitions_def.get_partition_keys()


def test_a_materialization_tells_its_story(finished):
    """A summary that balances, a plot, the place on disk, the receipt's digest as data version."""
    (newest, *_) = materializations(finished, "filtered_documents")
    published = finished.lake.partition("filtered_documents", newest.partition).require()
    assert "**36 documents in: 27 kept, 9 dropped.**" in newest.metadata["summary"].value
    assert newest.metadata["why_dropped"].value.startswith(
        "![Why documents were dropped](data:image/png;base64,"
    )
    assert len(newest.metadata["why_dropped"].value) < 100_000
    assert newest.metadata["dagster/uri"].value == published.folder.as_uri()
    assert newest.metadata["dagster/row_count"].value == 27
    assert newest.tags["dagster/data_version"] == published.digest


def test_every_materialization_tells_what_a_person_wants_to_know(finished):
    told = {
        name: materializations(finished, name)[0]
        for name, stage in BY_NAME.items()
        if stage.wanted(finished.recipe)
    }
    for name, found in told.items():
        assert_metadata(
            found,
            finished.lake.partition(stage_named(name).name, found.partition or GLOBAL).require(),
        )
    assert_columns_described(told, judged={"filtered_documents", "document_keys"})


def test_the_card_in_the_ui_shows_its_plots(finished):
    (told, *_) = materializations(finished, "data_set_card")
    assert told.metadata["card"].value.count("](data:image/png;base64,") == len(PLOTS)


def test_whatever_runs_by_itself_says_what_it_does():
    defs = build_defs()
    for made in (*defs.sensors, *defs.schedules, *defs.jobs):
        assert made.description.endswith("."), made.name


def test_every_claim_is_a_check_that_passed(finished):
    """After a run each claim of each stage stands in the UI, for each partition."""
    for name, stage in BY_NAME.items():
        if not stage.wanted(finished.recipe):
            continue
        checks = {claim.__name__ for claim in stage.checks} | {"every_file_is_as_published"}
        summaries = finished.instance.event_log_storage.get_asset_check_summary_records(
            [dg.AssetCheckKey(dg.AssetKey(name), check) for check in checks]
        )
        for key, summary in summaries.items():
            assert summary.last_check_execution_record.status.value == "SUCCEEDED", key


def test_what_is_built_is_fresh(finished):
    """When everything is built, neither Dagster nor the planner calls anything out of date."""
    assert finished.stale() == set()
    assert finished.planned() == {}


def test_what_is_of_all_snapshots_is_recorded_once(finished):
    """A snapshot's run records the withdrawals of all snapshots only where it made them current."""
    before = len(materializations(finished, "withdrawn_documents"))
    finished.run("snapshot_rows", NEW)
    assert len(materializations(finished, "withdrawn_documents")) == before
    assert finished.stale() == set()


def test_a_new_snapshot_rebuilds_itself_and_the_small_global_things(location):
    """With one snapshot built and a second added, the first's versions stay as they are."""
    location.change_recipe(blended_mix={"by-tokens": location.recipe.blended_mix["by-tokens"]})
    location.run_all(snapshots=[OLD])
    before = {
        name: location.lake.partition(name, OLD).require()
        for name in (
            "filtered_documents",
            "near_duplicate_pairs",
            "removed_documents",
            "token_documents",
            "token_grid",
            "megatron_rows",
        )
    }
    assert {name for name, status in location.planned().items() if status == "missing"} == {
        f"raw_snapshot/{NEW}",
        f"snapshot_withdrawals/{NEW}",  # without lists it reads no document
    }
    location.run("snapshot", NEW)
    assert location.stale() == {
        "longcrawl/None",
        *(f"blended_mix/{mix}" for mix in location.recipe.blended_mix),
        "data_set_card/None",
    }
    location.run("all_snapshots")
    assert {name: location.lake.partition(name, OLD).require() for name in before} == before
    sources = json.loads(
        (location.lake.partition("longcrawl").require().folder / "sources.json").read_text()
    )["sources"]
    assert [source["snapshot"] for source in sources] == sorted(SNAPSHOTS)


def test_a_failed_audit_fails_the_run_and_publishes_nothing(location, monkeypatch):
    """A stage that finds its output wrong stops the run there, in words; the published version and
    its followers stay.
    """
    location.run("snapshot", NEW)
    before = location.lake.partition("filtered_documents", NEW).require()
    wrong = {"id": "2023-06/0000/en_head.json.gz/0", "raw_content": "x"}
    monkeypatch.setattr(
        "lc_assets.stages.documents.kept_lines.described",
        lambda records, *_: {name: [of] * len(records) for name, of in wrong.items()},
    )
    location.change_recipe(
        filtered_documents=msgspec.structs.replace(location.recipe.filtered_documents, min_words=41)
    )
    failed = location.run("snapshot", NEW, fails=True)
    (failure,) = [event for event in failed.all_events if event.event_type_value == "STEP_FAILURE"]
    assert (
        "CheckFailed: filtered_documents/2023-14 is not published"
        in failure.step_failure_data.user_failure_data.description
    )
    assert location.lake.partition("filtered_documents", NEW).require() == before
    assert not [
        event
        for event in failed.all_events
        if event.event_type_value == "ASSET_MATERIALIZATION" and event.partition == NEW
    ][1:]


def test_a_damaged_file_turns_a_check_red(location):
    """A flipped byte in a published file is found by the check that reads digests, in the next run
    of it.
    """
    location.run("snapshot", NEW)
    (victim, *_) = sorted(
        (location.lake.partition("token_documents", NEW).require().folder).glob("*.bin")
    )
    content = bytearray(victim.read_bytes())
    content[7] ^= 1
    victim.write_bytes(content)
    result = location.run("snapshot", NEW, fails=True)
    red = [
        event.asset_check_evaluation_data
        for event in result.all_events
        if event.event_type_value == "ASSET_CHECK_EVALUATION"
    ]
    failed = {
        (found.check_name, found.asset_key.to_user_string()) for found in red if not found.passed
    }
    assert ("every_file_is_as_published", "token_documents") in failed
    assert {asset for _, asset in failed} == {"token_documents"}  # a check that reads tokens, too


def test_an_unknown_partition_is_refused(location):
    """A misspelt snapshot names itself; nothing is written."""
    with pytest.raises(dg.DagsterUnknownPartitionError, match="2023-99"):
        location.run("snapshot", "2023-99")
    assert not location.lake.root.exists()


def test_a_snapshot_that_upstream_does_not_list_says_so(location):
    """A real snapshot that this upstream lacks fails with a sentence, and is not retried."""
    failed = location.run("snapshot", "2014-15", fails=True)
    (failure,) = [event for event in failed.all_events if event.event_type_value == "STEP_FAILURE"]
    assert (
        "nothing is listed for snapshot 2014-15"
        in failure.step_failure_data.user_failure_data.description
    )


def test_settings_are_part_of_the_code_version(tmp_path):
    """Two recipes give an asset two code versions where it reads them, and one where it does
    not.
    """
    lenient, strict = (
        _code_versions(FilteringSettings(min_words=words), tmp_path) for words in (10, 20)
    )
    assert {name for name in lenient if lenient[name] != strict[name]} == {"filtered_documents"}


def _code_versions(filtering: FilteringSettings, tmp_path) -> dict[str, str]:
    path = recipe_file(tmp_path / "recipe.toml", Recipe(filtered_documents=filtering))
    return {
        spec.key.to_user_string(): spec.code_version
        for spec in stages_of(build_defs(recipe=str(path)))
    }


def test_an_asset_that_is_not_built_has_its_columns_and_its_code(finished):
    """Every column has a description, and is in the published table too."""
    for spec in stages_of(build_defs()):
        name, metadata = spec.key.to_user_string(), spec.metadata
        (code,) = metadata["dagster/code_references"].code_references
        line = Path(code.file_path).read_text().splitlines()[code.line_number - 1]
        assert line.startswith(("def ", "@")), name
        table = metadata.get("dagster/column_schema")
        assert (table is None) == (stage_named(name).columns is None)
        if table is not None:
            assert all(UNKNOWN not in column.description for column in table.columns), name
            for event in materializations(finished, name):
                shown = event.metadata["dagster/column_schema"].value.columns
                assert {column.name for column in table.columns} <= {one.name for one in shown}


def test_an_asset_shows_the_settings_that_a_run_will_use(tmp_path):
    recipe = tmp_path / "recipe.toml"
    recipe.write_text("[filtered_documents]\nmin_words = 1234\n")
    specs = {spec.key.to_user_string(): spec for spec in stages_of(build_defs(recipe=str(recipe)))}
    assert specs["filtered_documents"].metadata["settings"].value["min_words"] == 1234
    assert specs["token_grid"].metadata["settings"].value == json.loads(
        msgspec.json.encode(Recipe().token_grid)
    )
    assert "settings" not in specs["longcrawl"].metadata


def test_the_launchpad_shows_the_recipe_and_refuses_other_settings(location):
    """It shows every setting of every stage that a job builds. A run may repeat them; of another
    one it says where the setting is changed, and nothing is written.
    """
    job = location.defs.resolve_job_def("snapshot")
    shown = process_config(job.run_config_schema.config_type, {}).value["ops"]
    recipe = msgspec.json.decode(msgspec.json.encode(location.recipe))
    sections = {name: found["config"] for name, found in shown.items() if found.get("config")}
    assert sections == {name: recipe[name] for name in shown if recipe.get(name)}
    assert "filtered_documents" in sections

    same = recipe["filtered_documents"]
    failed = location.run(
        "snapshot", OLD, fails=True, filtered_documents={"min_words": same["min_words"] + 1}
    )
    (failure,) = [event for event in failed.all_events if event.event_type_value == "STEP_FAILURE"]
    said = failure.step_failure_data.user_failure_data.description
    assert f"filtered_documents.min_words is {same['min_words'] + 1} in this run's" in said
    assert not materializations(location, "filtered_documents")
    location.run("snapshot", OLD, filtered_documents=same)


def test_a_recipe_names_owners_tags_and_how_long_an_asset_stays_fresh(tmp_path):
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(
        '[dagster]\nowners = ["ann@example.org", "team:data"]\ntags = { budget = "research" }\n'
        "fresh_hours = 30\n"
    )
    defs = build_defs(lake=str(tmp_path / "lake"), recipe=str(recipe))
    specs = {spec.key.to_user_string(): spec for spec in stages_of(defs)}
    for name, spec in specs.items():
        assert (list(spec.owners), spec.tags["budget"]) == (
            ["ann@example.org", "team:data"],
            "research",
        )
        is_whole = stage_named(name).partitioned_by == "nothing"
        assert (spec.freshness_policy is not None) == is_whole
    assert specs["longcrawl"].freshness_policy.fail_window.to_timedelta().total_seconds() == 108_000
    before = stages_of(build_defs(lake=str(tmp_path / "lake")))
    assert {spec.freshness_policy for spec in before} == {None}
    assert {spec.code_version for spec in before} == {spec.code_version for spec in specs.values()}


def test_columns_are_followed_to_where_they_come_from(finished):
    """Every column that an asset says it is made of stands in the upstream asset's own table."""
    newest = {
        name: found[0].metadata for name in BY_NAME if (found := materializations(finished, name))
    }
    schemas = {
        name: {column.name for column in metadata["dagster/column_schema"].value.columns}
        for name, metadata in newest.items()
        if "dagster/column_schema" in metadata
    }
    followed = {
        name: metadata["dagster/column_lineage"].value
        for name, metadata in newest.items()
        if "dagster/column_lineage" in metadata
    }
    assert set(followed) >= {
        "filtered_documents",
        "near_duplicate_pairs",
        "removed_documents",
        "token_documents",
        "token_grid",
    }
    for name, lineage in followed.items():
        assert set(lineage.deps_by_column) <= schemas[name]
        for deps in lineage.deps_by_column.values():
            assert {dep.asset_key.to_user_string() for dep in deps} <= {*BY_NAME[name].upstream}
            assert all(dep.column_name in schemas[dep.asset_key.to_user_string()] for dep in deps)


def test_what_an_unchanged_rebuild_and_changed_rules_make_stale(finished):
    """In one lake, one after the other; the last test of the module, since it changes what the
    others look at.

    Everything again: found finished, with the same data versions, nothing downstream stale, no byte
    written. A threshold that keeps the same documents: the filter is rebuilt, and only the card,
    which states the threshold, is stale for the planner. A rule that drops some: Dagster and the planner name the filter, and after its rebuild
    nothing, since what follows was rebuilt too.
    """
    location = finished
    files = {
        path: path.stat().st_mtime_ns
        for path in location.lake.root.rglob("*")
        if path.is_file() and path.name != ".lock"
    }
    location.run_all()
    again = {
        path: path.stat().st_mtime_ns
        for path in location.lake.root.rglob("*")
        if path.is_file() and path.name != ".lock"
    }
    assert again == files
    for name, stage in BY_NAME.items():
        for newest in materializations(location, name)[
            : 1 if stage.partitioned_by == "nothing" else 2
        ]:
            assert newest.metadata["built"].value.startswith("found finished")
    assert location.stale() == set()

    location.change_recipe(
        filtered_documents=msgspec.structs.replace(location.recipe.filtered_documents, min_words=41)
    )
    for snapshot in SNAPSHOTS:
        job = location.defs.resolve_implicit_global_asset_job_def()
        asked = [dg.AssetKey("filtered_documents")]
        assert job.execute_in_process(
            partition_key=snapshot, instance=location.instance, asset_selection=asked
        ).success
    assert location.planned() == {"data_set_card/all": "stale"}
    assert location.stale() == set()

    location.change_recipe(
        filtered_documents=msgspec.structs.replace(location.recipe.filtered_documents, min_words=80)
    )
    assert location.stale() == {f"filtered_documents/{snapshot}" for snapshot in SNAPSHOTS}
    assert {name: status for name, status in location.planned().items() if status == "stale"} == {
        f"filtered_documents/{snapshot}": "stale" for snapshot in SNAPSHOTS
    }
    location.run_all()
    assert location.stale() == set()
    assert location.planned() == {}
