"""The chain in another project, from a few lines of ``defs.yaml``."""

import os
import subprocess
import sys
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path

import dagster as dg
import pytest
from dagster.components.core.component_tree import ComponentTreeException
from dagster.components.testing import create_defs_folder_sandbox

from lc_assets.components import CorpusChain
from lc_assets.definitions import ASSET_OF, build_defs
from lc_assets.vocabulary import REDPAJAMA_V2

pytestmark = [  # of Dagster's own code
    pytest.mark.filterwarnings("ignore::pydantic.PydanticDeprecatedSince20"),
    pytest.mark.filterwarnings("ignore::dagster.BetaWarning"),
]

ROOT = Path(__file__).parents[2]


def loaded(attributes: dict, **files: str) -> tuple[dg.Definitions, Path]:
    """The definitions of a project whose ``defs.yaml`` has these attributes, and its folder."""
    with create_defs_folder_sandbox() as sandbox:
        path = sandbox.scaffold_component(
            component_cls=CorpusChain,
            defs_yaml_contents={
                "type": "lc_assets.components.CorpusChain",
                "attributes": attributes,
            },
        )
        for name, content in files.items():
            (path / f"{name}.toml").write_text(content)
        with sandbox.load_component_and_build_defs(defs_path=path) as (_, defs):
            return defs, path


def test_a_few_lines_give_the_whole_chain():
    """With its checks, jobs, sensors and schedules, and places below the component's folder."""
    defs, folder = loaded({"lake": "lake", "recipe": "recipe.toml"}, recipe='target = "token_grid"')
    whole = build_defs()
    keys = [set(found.resolve_all_asset_keys()) for found in (defs, whole)]
    assert keys[0] == keys[1] == {*ASSET_OF.values(), dg.AssetKey("upstream")}
    for part in ("jobs", "sensors", "schedules"):
        names = [{one.name for one in getattr(found, part)} for found in (defs, whole)]
        assert names[0] == names[1] != set(), part
    settings = defs.resources["build_context"]
    assert settings.lake == str(folder / "lake")
    assert settings.recipe == str(folder / "recipe.toml")
    assert settings.upstream == REDPAJAMA_V2


def test_a_wrong_attribute_is_named():
    with pytest.raises(ComponentTreeException) as raised:
        loaded({"lakes": "lake"})
    assert "lakes" in str(raised.value.__cause__)


def test_dg_finds_the_component_by_an_entry_point():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    ((name, value),) = project["entry-points"]["dagster_dg_cli.registry_modules"].items()
    assert EntryPoint(name, value, "").load().CorpusChain is CorpusChain


def test_dg_shows_the_chain_in_an_empty_project_and_names_a_wrong_key(tmp_path):
    """Where dagster-dg-cli is installed."""
    pytest.importorskip("dagster_dg_cli")
    folder = tmp_path / "mine"
    (folder / "defs" / "chain").mkdir(parents=True)
    (folder / "__init__.py").touch()
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nname = "mine"\nversion = "0"\n[tool.dg]\ndirectory_type = "project"\n'
        '[tool.dg.project]\nroot_module = "mine"\n'
    )
    (folder / "definitions.py").write_text(
        "from pathlib import Path\nimport dagster as dg\n\n\n@dg.definitions\ndef defs():\n"
        "    return dg.load_from_defs_folder(path_within_project=Path(__file__).parent)\n"
    )
    settings = folder / "defs" / "chain" / "defs.yaml"
    lines = "type: lc_assets.components.CorpusChain\nattributes:\n  lake: lake\n"

    def said(*words: str) -> tuple[int, str]:
        ended = subprocess.run(
            [Path(sys.executable).parent / "dg", *words],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path}"},
            capture_output=True,
            text=True,
            check=False,
        )
        return ended.returncode, ended.stdout + ended.stderr

    settings.write_text(f"{lines}  recipes: mine.toml\n")
    code, words = said("check", "yaml")
    assert code == 1
    assert "'recipes' was unexpected" in words
    settings.write_text(lines)
    assert said("check", "yaml")[0] == 0
    code, words = said("list", "defs", "--json")
    assert code == 0
    assert all(f'"{key.to_user_string()}"' in words for key in ASSET_OF.values())
