"""``lc sample`` and ``lc demo``: from a folder of texts to batches, through Dagster; the second
time nothing is built.
"""

import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import dagster as dg
import pytest

from lc_assets.builds.recipe import Recipe
from lc_assets.builds.recipe_files import parse_recipe
from lc_assets.cli.lakes.demo import COUNTED, Workplace, recipe_text
from lc_assets.cli.printing import shown
from lc_assets.definitions import build_defs
from lc_assets.lake.lake import GLOBAL, Lake
from lc_assets.orchestration.automation import instance_at, recorder
from lc_assets.stages.catalogue import STAGES
from lc_assets.stages.planning import Plan, Run
from lc_assets.stages.rebuilding import PartitionFailed
from lc_assets_tests.builders import made_up_text
from lc_assets_tests.materializations import skip_plots
from lc_assets_tests.named_draws import rng_for

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """A folder of sixteen made-up texts of 120 to 300 words."""
    folder = tmp_path_factory.mktemp("texts")
    rng = rng_for("texts of a folder", seed=0)
    for number in range(16):
        (folder / f"{number:02d}.txt").write_text(
            f"Text {number}\n{made_up_text(rng, n_words=120 + 12 * number)}"
        )
    return folder


def test_a_sample_is_written_and_its_numbers_said(lc, texts, tmp_path):
    said = lc(
        "sample", tmp_path / "sample", "--from", texts, "--snapshot", "2023-06", "--workers", 1
    )
    assert said.code == 0
    kinds = "16 pages, 2 duplicates, 0 excerpts; 2 are listed as duplicates"
    assert f"18 documents in {tmp_path}/sample: {kinds}" in said.out
    assert said.out.splitlines()[-1].endswith("--snapshot 2023-06")
    again = lc(
        "sample", tmp_path / "sample", "--from", texts, "--snapshot", "2023-06", "--workers", 1
    )
    assert again.out == said.out


@pytest.mark.parametrize(
    "words", [("--from", "/nowhere"), ("--snapshot", "../etc"), ("--workers", "0")]
)
def test_a_sample_that_cannot_be_meant_is_refused(lc, tmp_path, texts, words):
    said = lc(
        "sample", tmp_path / "new", *(("--from", texts) if words[0] != "--from" else ()), *words
    )
    assert said.code == 2


def test_the_demo_builds_reports_and_the_second_time_reuses(lc, texts, tmp_path, monkeypatch):
    """Every stage's line balances and sees what the one before kept; Dagster's history has each
    asset; the report is the lake's; nothing is added to the documents.
    """
    skip_plots(monkeypatch)
    words = ("demo", "--dir", tmp_path / "demo", "--from", texts)
    words += ("--row-tokens", 64, "--workers", 1)
    said = lc(*words)
    assert said.code == 0
    place = Workplace(tmp_path / "demo")
    lake = Lake(Path(place.lake))
    published = {
        version.name: version for step in STAGES for version in lake.published(step.name).values()
    }
    (snapshot,) = lake.published("filtered_documents")
    assert f"[{len(published)}/{len(published)}]" in said.out
    report = said.out[said.out.index("\nDocuments\n") : said.out.index("\nAll in ")]
    for stage in COUNTED:
        counts = published[f"{stage}/{snapshot}"].receipt.counts
        row = next(line.split() for line in report.splitlines() if line.split()[:1] == [stage])
        assert row[1:] == [shown(counts.seen), shown(counts.kept)]
    counted = report[: report.index("\nFirst batch\n")]
    assert not any(version.version in counted for version in published.values())
    assert published[f"filtered_documents/{snapshot}"].receipt.counts.seen == 16
    assert "<|endoftext|>" in said.out
    assert ".txt, line 0" in said.out
    with instance_at(place.dagster_home) as instance:
        assert all(run.is_success for run in instance.get_runs())
        assert instance.get_materialized_partitions(dg.AssetKey("token_grid")) == {snapshot}
        assert instance.get_latest_materialization_event(dg.AssetKey("longcrawl_flat")) is not None

    plan = lc("plan", "--lake", lake.root)
    assert plan.code == 0
    assert f"recipe: {lake.root}/recipe.toml" in plan.out
    assert f"{len(published)} current, 0 out of date" in " ".join(plan.out.split())

    monkeypatch.setitem(
        sys.modules, "lc_assets.orchestration.automation", None
    )  # importing it fails: nothing may be run
    again = lc(*words)
    assert again.code == 0
    assert "everything is current, nothing is built" in again.out
    assert report in again.out
    next_steps = again.out[again.out.index("\nNext steps\n") :]
    assert next_steps.splitlines()[-1] == place.ui_command
    for line in next_steps.splitlines():
        if line.startswith(("lc show", "lc trace")):
            assert lc(*shlex.split(line.split("    ")[0])[1:]).code == 0

    recipe = place.recipe.read_text()
    place.recipe.write_text(recipe.replace("heldout_fraction = 0.1", "heldout_fraction = 0.2"))
    (rebuild,) = [line for line in next_steps.splitlines() if line.startswith("lc rebuild")]
    planned = lc(*shlex.split(rebuild.split("    ")[0])[1:], "--dry-run")
    assert planned.code == 3
    assert "heldout_fraction 0.1 → 0.2" in planned.out


def test_the_line_for_the_ui_is_a_shell_command_that_names_the_folders(tmp_path):
    """The shell takes the line apart as it was meant, also with a blank in the path."""
    place = Workplace(tmp_path / "a b")
    words = shlex.split(place.ui_command)
    assert dict(word.split("=", 1) for word in words[:5]) == {
        "DAGSTER_HOME": str(place.dagster_home),
        "LC_ROOT": str(place.lake),
        "LC_UPSTREAM": str(place.sample),
        "LC_CRAWL": str(Path(place.sample) / "crawl"),
        "LC_RECIPE": str(place.recipe),
    }
    assert words[6:] == ["dev", "-m", "lc_assets.definitions"]


@pytest.mark.parametrize("row_tokens", [8, 1000, 65_536, 131_072])
def test_the_demos_recipe_differs_from_the_default_in_what_it_must(row_tokens):
    recipe = parse_recipe(recipe_text(row_tokens), where="demo")
    assert recipe.token_grid.row_tokens == recipe.token_documents.min_tokens == row_tokens
    assert recipe.megatron_rows.sequence_length <= row_tokens
    assert recipe.token_grid.heldout_fraction == 0.1
    if row_tokens == 65_536:
        assert recipe.filtered_documents == Recipe().filtered_documents
        assert recipe.megatron_rows == Recipe().megatron_rows


def test_a_workplace_says_that_it_replaces_a_changed_recipe(tmp_path, capsys):
    place = Workplace(tmp_path)
    for row_tokens in (64, 64):
        place.set_up(recipe_text(row_tokens))
        assert capsys.readouterr().out == ""
    place.set_up(recipe_text(128))
    assert place.recipe.read_text() == recipe_text(128)
    assert capsys.readouterr().out == f"{place.recipe}: had other content, and is replaced\n"


def test_a_failed_run_is_said_in_its_own_words(tmp_path):
    """What the stage said is what the person reads, with the run's name to look it up in the
    history.
    """
    Workplace(tmp_path).set_up(recipe_text(64))
    defs = build_defs(lake=str(tmp_path / "lake"), upstream=str(tmp_path), workers=1)
    with (
        instance_at(tmp_path / "dagster_home") as instance,
        pytest.raises(PartitionFailed, match=r"nothing is listed for snapshot 2023-06.*\(run "),
    ):
        recorder(defs, instance, print)(run_of("raw_snapshot", "2023-06"))


def run_of(stage, key):
    """A run of one partition, as the planner asks for it."""
    return Run(key=key, plans=(Plan(stage=stage, key=key, status="missing"),))


def test_finding_that_all_stands_needs_no_dagster():
    """The second demo, and every other command, answers without Dagster's two seconds."""
    code = "import sys, lc_assets.cli.lakes.demo; sys.exit('dagster' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, cwd=ROOT).returncode == 0


def test_a_stop_by_hand_during_a_run_is_a_stop_and_no_failure(tmp_path):
    """Dagster turns Ctrl-C inside a step into a failed step; the command line must still end as
    stopped.
    """

    @dg.asset
    def stopped() -> None:
        signal.raise_signal(signal.SIGINT)
        time.sleep(1)

    Workplace(tmp_path).set_up(recipe_text(64))
    defs = dg.Definitions([stopped])
    with (
        instance_at(tmp_path / "dagster_home") as instance,
        pytest.raises(KeyboardInterrupt),
    ):
        recorder(defs, instance, print)(run_of("stopped", GLOBAL))
