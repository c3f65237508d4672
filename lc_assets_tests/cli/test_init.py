"""`lc init`: a folder from which Dagster, dg and lc work on one lake."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lc_assets.builds.recipe_files import read_recipe
from lc_assets.cli.app import app

ROOT = Path(__file__).parents[2]


def lc(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture
def project(tmp_path):
    (tmp_path / "corpus").mkdir()
    assert lc("init", tmp_path / "project", "--source", tmp_path / "corpus").exit_code == 0
    return tmp_path / "project"


def environment(project: Path) -> dict[str, str]:
    """What a shell has after reading `.env`; only its words are read, as nothing has to be quoted."""
    own = dict(line.split("=", 1) for line in (project / ".env").read_text().splitlines())
    return os.environ | own | {"PYTHONPATH": str(ROOT), "DAGSTER_DISABLE_TELEMETRY": "1"}


def test_a_project_has_its_settings_in_files(project):
    """The recipe reads one's own documents, and the places are absolute; the instance is ours."""
    (source,) = read_recipe(project / "recipe.toml").sources.values()
    assert source.path == str(project.with_name("corpus"))
    assert environment(project)["LC_ROOT"] == str(project / "lake")
    assert (project / "dagster.yaml").read_text() == (ROOT / "dagster.yaml").read_text()


def test_it_is_written_once(project, tmp_path):
    """The same again changes nothing; a changed file is not overwritten."""
    again = ("init", project, "--source", tmp_path / "corpus")
    assert lc(*again).exit_code == 0
    (project / "recipe.toml").write_text("")
    failed = lc(*again)
    assert failed.exit_code == 2
    assert "recipe.toml has other content" in failed.output
    assert (project / "recipe.toml").read_text() == ""


@pytest.mark.parametrize("option", ["--source", "--upstream"])
def test_a_path_that_does_not_exist_is_refused(tmp_path, option):
    failed = lc("init", tmp_path / "project", option, tmp_path / "nowhere")
    assert failed.exit_code == 2
    assert "nowhere: no such folder or file" in failed.output
    assert not (tmp_path / "project").exists()


@pytest.mark.parametrize(
    "program", [("dagster", "definitions", "validate"), ("dg", "check", "defs")]
)
def test_dagster_loads_it(project, program):
    """By its workspace.yaml, and as a project of dg where that is installed."""
    script = Path(sys.executable).with_name(program[0])
    if not script.exists():
        pytest.skip(f"{program[0]} is not installed")
    ended = subprocess.run(
        [script, *program[1:]],
        cwd=project,
        env=environment(project),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
