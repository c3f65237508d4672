"""Calling the command line as a person would, in this process."""

import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lc_assets.builds.settings.longpack import PackingSettings
from lc_assets.builds.settings.rows import MixSettings
from lc_assets.cli.app import app
from lc_assets_tests.builders import build_all, recipe_file, tiny_context

ONE = "2023-06"


@dataclass(frozen=True)
class Said:
    """What a command printed and how it ended."""

    code: int
    out: str
    err: str


@pytest.fixture
def lc(monkeypatch):
    """Run ``lc`` with words as arguments; no variable of this machine is seen, and no error but a
    deliberate one passes.
    """
    for name in (
        "LC_ROOT",
        "LC_UPSTREAM",
        "LC_CRAWL",
        "LC_RECIPE",
        "LC_WITHDRAWN",
        "LC_SNAPSHOTS",
        "LC_WORKERS",
        "DAGSTER_HOME",
    ):
        monkeypatch.delenv(name, raising=False)

    def run(*words: object) -> Said:
        ended = CliRunner().invoke(app, [str(word) for word in words])
        if ended.exception is not None and not isinstance(ended.exception, SystemExit):
            raise ended.exception
        return Said(ended.exit_code, ended.stdout, ended.stderr)

    return run


@pytest.fixture(scope="session")
def whole(tmp_path_factory) -> Path:
    """A small lake of the snapshot `ONE`, over its upstream; to be copied."""
    context = tiny_context(
        tmp_path_factory.mktemp("whole"),
        packed_rows=PackingSettings(),
        blended_mix={"mine": MixSettings(samples=60)},
    )
    build_all(context, [ONE])
    recipe_file(context.lake.root.parent / "recipe.toml", context.recipe)
    return context.lake.root.parent


@pytest.fixture
def rebuild(lc, whole, tmp_path):
    """Run ``lc rebuild`` over a copy of it, with a text of the recipe replaced."""
    here = shutil.copytree(whole, tmp_path / "copy")
    text = (here / "recipe.toml").read_text()

    def run(*words, lake=None, change=("", "")):
        recipe = here / "recipe.toml"
        recipe.write_text(text.replace(*change))
        where = ("--lake", lake or here / "lake", "--upstream", here / "upstream")
        given = (*where, "--recipe", recipe, "--snapshot", ONE, "--workers", 1)
        return lc("rebuild", *given, *words)

    run.here = here
    return run
