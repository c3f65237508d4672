"""The chain in another project, from a few lines of ``defs.yaml``."""

import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import dagster as dg
import pytest
import yaml
from dagster.components.core.component_tree import ComponentTreeException
from dagster.components.core.package_entry import get_package_objects_in_module
from dagster.components.testing import create_defs_folder_sandbox
from dagster.components.testing.utils import DefsFolderSandbox

from lc_assets import components
from lc_assets.builds.recipe_files import read_recipe, record_recipe, recorded_recipe
from lc_assets.components import CorpusChain, Mix, PackedRows
from lc_assets.definitions import ASSET_OF, build_defs
from lc_assets.errors import BadInput
from lc_assets.vocabulary import REDPAJAMA_V2
from lc_assets_tests.builders import tiny_upstream

pytestmark = [  # of Dagster's own code
    pytest.mark.filterwarnings("ignore::pydantic.PydanticDeprecatedSince20"),
    pytest.mark.filterwarnings("ignore::dagster.BetaWarning"),
]

ROOT = Path(__file__).parents[2]
DG = Path(sys.executable).parent / "dg"
SNAPSHOT = "2023-06"


@pytest.fixture
def project() -> Iterator[DefsFolderSandbox]:
    """An empty project."""
    with create_defs_folder_sandbox() as sandbox:
        yield sandbox


def declare(folder: Path, *declared: tuple[type[dg.Component], dict], **files: str) -> Path:
    """Write a ``defs.yaml`` of components with their attributes, and files beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / f"{name}.toml").write_text(content)
    (folder / "defs.yaml").write_text(
        yaml.safe_dump_all(
            {"type": f"lc_assets.components.{kind.__name__}", "attributes": attributes}
            for kind, attributes in declared
        )
    )
    return folder


def loaded(project: DefsFolderSandbox) -> dg.Definitions:
    """The project's definitions; loading them writes nothing."""
    before = files_of(project)
    with project.build_all_defs() as defs:
        assert files_of(project) == before
        return defs


def files_of(project: DefsFolderSandbox) -> set[Path]:
    return {path for path in project.project_root.rglob("*") if "__pycache__" not in path.parts}


def refusal(project: DefsFolderSandbox) -> str:
    """Why the project cannot be loaded."""
    with pytest.raises(ComponentTreeException) as raised:
        loaded(project)
    return str(raised.value.__cause__)


def mixes_of(defs: dg.Definitions) -> list[str]:
    return defs.resolve_assets_def(ASSET_OF["blended_mix"]).partitions_def.get_partition_keys()


def settings_of(defs: dg.Definitions, stage: str) -> dict:
    key = ASSET_OF[stage]
    return defs.resolve_assets_def(key).metadata_by_key[key]["settings"].value


def test_a_few_lines_give_the_whole_chain(project):
    """With its checks, jobs, sensors and schedules, and places below the component's folder."""
    folder = declare(
        project.defs_folder_path / "chain",
        (CorpusChain, {"lake": "lake", "recipe": "recipe.toml"}),
        recipe='target = "token_grid"',
    )
    defs, whole = loaded(project), build_defs()
    keys = [set(found.resolve_all_asset_keys()) for found in (defs, whole)]
    assert keys[0] == keys[1] == {*ASSET_OF.values(), dg.AssetKey("upstream")}
    for part in ("jobs", "sensors", "schedules"):
        names = [{one.name for one in getattr(found, part)} for found in (defs, whole)]
        assert names[0] == names[1] != set(), part
    settings = defs.resources["build_context"]
    assert settings.lake == str(folder / "lake")
    assert settings.recipe == str(folder / "recipe.toml")
    assert settings.upstream == REDPAJAMA_V2


def test_packed_rows_and_mixes_are_sections_of_the_chains_recipe(project):
    """In files of their own or in one; assets, partitions and runs are of the joined recipe."""
    chain = (CorpusChain, {"lake": "lake", "recipe": "recipe.toml"})
    rows = (PackedRows, {"row_tokens": "{{ 4 * 1024 }}", "megatron": "rows"})
    mixes = [
        (Mix, {"name": "half", "parts": {"packed_rows": 0.5, "megatron_rows": 0.5}}),
        (Mix, {"name": "rising", "schedule": [{"samples": 9, "weights": {SNAPSHOT: 1.0}}]}),
    ]
    declare(project.defs_folder_path / "b", chain, recipe="[blended_mix.own]\nseed = 5")
    declare(project.defs_folder_path / "a" / "rows", rows)
    declare(project.defs_folder_path / "c", *mixes)
    defs = loaded(project)
    assert mixes_of(defs) == ["half", "own", "rising"]
    assert settings_of(defs, "packed_rows")["row_tokens"] == 4096
    recipe = defs.resources["build_context"].read_recipe()
    assert recipe.packed_rows.wanted
    assert recipe.blended_mix["rising"].schedule[0].weights == {SNAPSHOT: 1.0}
    assert recipe.blended_mix["own"].seed == 5


def test_without_a_recipe_the_lakes_own_is_joined(project, tmp_path):
    """A run records the joined recipe; a component that is taken away goes from it, and what the lake
    was built by before stays.
    """
    lake, upstream = tmp_path / "lake", tiny_upstream(tmp_path / "upstream", snapshots=[SNAPSHOT])
    lake.mkdir()
    own = '[raw_snapshot]\nlanguages = ["en"]\n[filtered_documents]\nmin_words = 5\n'
    (lake / "recipe.toml").write_text(own)
    folder = project.defs_folder_path
    chain = (CorpusChain, {"lake": str(lake), "upstream": str(upstream), "workers": 1})
    declare(folder / "chain", chain)
    rows = declare(folder / "rows", (PackedRows, {"row_tokens": 4096}))

    def run() -> None:
        job = loaded(project).resolve_implicit_global_asset_job_def()
        raw = [ASSET_OF["raw_snapshot"]]
        assert job.execute_in_process(partition_key=SNAPSHOT, asset_selection=raw).success

    run()
    recorded = read_recipe(recorded_recipe(lake))
    assert (recorded.packed_rows.wanted, recorded.packed_rows.row_tokens) == (True, 4096)
    assert recorded.filtered_documents.min_words == 5
    assert loaded(project).resources["build_context"].read_recipe() == recorded
    declare(rows, (PackedRows, {"row_tokens": 8192}))
    run()
    assert read_recipe(recorded_recipe(lake)).packed_rows.row_tokens == 8192
    (rows / "defs.yaml").unlink()
    run()
    assert recorded_recipe(lake).read_text() == own


def test_a_recipe_that_was_not_read_is_not_replaced(tmp_path):
    """Such as the one of a lake in a bucket, which loading does not read."""
    (tmp_path / "recipe.toml").write_text("[packed_rows]\n")
    for sections in ("", "[blended_mix.own]\n"):
        with pytest.raises(BadInput, match="was built by a recipe of its own: name a recipe file"):
            record_recipe(tmp_path, None, sections)
    assert (tmp_path / "recipe.toml").read_text() == "[packed_rows]\n"


CHAIN = (CorpusChain, {"lake": "lake"})
ROWS = (PackedRows, {})


@pytest.mark.parametrize(
    ("declared", "why"),
    [
        ([(CorpusChain, {"lakes": "lake"})], "lakes"),
        (
            [CHAIN, (PackedRows, {"row_token": 8})],
            "PackedRows: Object contains unknown field `row_token`",
        ),
        ([CHAIN, (PackedRows, {"row_token": 8})], "did you mean row_tokens"),
        ([CHAIN, (PackedRows, {"method": "bestfitt"})], "did you mean bestfit"),
        (
            [CHAIN, (PackedRows, {"row_tokens": "many"})],
            "Expected `int`, got `str` - at `$.row_tokens`",
        ),
        ([CHAIN, (Mix, {})], "Mix: Object missing required field `name`"),
        ([CHAIN, (Mix, {"name": "a.b"})], "a mix cannot be called 'a.b'"),
        (
            [CHAIN, (Mix, {"name": "a"}), (Mix, {"name": "a"})],
            "Cannot declare ('blended_mix', 'a') twice",
        ),
        ([CHAIN, ROWS, ROWS], "the default recipe and components: not a recipe: Cannot declare"),
        (
            [CHAIN, (Mix, {"name": "a", "parts": {"packed_rows": 1}})],
            'set packed_rows.megatron = "rows"',
        ),
        ([ROWS], "PackedRows is a section of a CorpusChain's recipe: this project needs"),
    ],
)
def test_what_cannot_be_meant_is_refused(project, declared, why):
    declare(project.defs_folder_path / "all", *declared)
    assert why in refusal(project)


def test_a_section_is_in_one_place(project):
    recipe = "[packed_rows]\nwanted = true\n"
    chain = (CorpusChain, {"lake": "lake", "recipe": "mine.toml"})
    declare(project.defs_folder_path / "all", chain, ROWS, mine=recipe)
    why = refusal(project)
    assert "mine.toml and components: not a recipe: Cannot declare ('packed_rows',) twice" in why


def test_dg_finds_the_components_by_an_entry_point():
    metadata = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    ((name, value),) = metadata["entry-points"]["dagster_dg_cli.registry_modules"].items()
    assert EntryPoint(name, value, "").load() is components
    found = {name for name, _ in get_package_objects_in_module(components)}
    assert found == {"CorpusChain", "PackedRows", "Mix"}


@pytest.fixture
def empty(tmp_path):
    """A project of ``dg`` without a component: its folder of definitions, and a function that runs a
    command in it and returns its exit status and what it printed.
    """
    folder = tmp_path / "mine"
    (folder / "defs").mkdir(parents=True)
    (folder / "__init__.py").touch()
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nname = "mine"\nversion = "0"\n[tool.dg]\ndirectory_type = "project"\n'
        '[tool.dg.project]\nroot_module = "mine"\n'
    )
    (folder / "definitions.py").write_text(
        "from pathlib import Path\nimport dagster as dg\n\n\n@dg.definitions\ndef defs():\n"
        "    return dg.load_from_defs_folder(path_within_project=Path(__file__).parent)\n"
    )
    (tmp_path / "home").mkdir()
    environment = {
        "PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path}",
        "DAGSTER_HOME": str(tmp_path / "home"),
        "DAGSTER_DISABLE_TELEMETRY": "1",
    }

    def said(*words: str | Path) -> tuple[int, str]:
        ended = subprocess.run(
            words,
            cwd=tmp_path,
            env=os.environ | environment,
            capture_output=True,
            text=True,
            check=False,
        )
        return ended.returncode, ended.stdout + ended.stderr

    return folder / "defs", said


def test_a_run_in_a_process_of_its_own_has_the_joined_recipe(empty, tmp_path):
    """Nothing but the project's files tells it of the sections."""
    folder, said = empty
    upstream = tiny_upstream(tmp_path / "upstream", snapshots=[SNAPSHOT])
    chain = (CorpusChain, {"lake": "lake", "upstream": str(upstream), "recipe": "mine.toml"})
    mix = (Mix, {"name": "equal", "weights": "equal", "seed": 3})
    declare(folder / "chain", chain, ROWS, mix, mine='[raw_snapshot]\nlanguages = ["en"]\n')
    chosen = ("--select", "raw_snapshot", "--partition", SNAPSHOT)
    code, words = said(
        sys.executable, "-m", "dagster", "asset", "materialize", "-m", "mine.definitions", *chosen
    )
    assert code == 0, words
    recorded = read_recipe(recorded_recipe(folder / "chain" / "lake"))
    assert recorded.raw_snapshot.languages == ("en",)
    assert recorded.packed_rows.wanted
    assert {name: one.seed for name, one in recorded.blended_mix.items()} == {"equal": 3}


def test_dg_names_wrong_keys(empty):
    """Where dagster-dg-cli is installed. ``dg check yaml`` looks at one component of each type."""
    pytest.importorskip("dagster_dg_cli")
    folder, said = empty
    wrong = [
        (CorpusChain, {"lake": "lake", "recipes": "mine.toml"}),
        (PackedRows, {"row_token": 8, "min_tokens": "many", "method": "bestfitt"}),
        (Mix, {"weight": "equal", "seed": "{{ env.SEED | int }}"}),
    ]
    declare(folder / "all", *wrong)
    code, words = said(DG, "check", "yaml", "--no-validate-requirements")
    assert code == 1
    for name in ("recipes", "row_token", "weight"):
        assert f"'{name}' was unexpected" in words
    assert "attributes.min_tokens 'many' is not of type 'integer'" in words
    assert "attributes.method 'bestfitt' is not one of ['bestfit', 'concat'" in words
    assert "'name' is a required property" in words
    assert "attributes.seed" not in words


@pytest.mark.slow
def test_dg_shows_the_chain_in_an_empty_project(empty):
    """By each of its commands, every one of which loads Dagster and the chain anew."""
    pytest.importorskip("dagster_dg_cli")
    folder, said = empty
    rows = (PackedRows, {"row_tokens": 8192, "megatron": "rows", "similar": {"neighbours": 5}})
    declare(folder / "all", CHAIN, rows, (Mix, {"name": "all", "parts": {"packed_rows": 1}}))
    assert said(DG, "check", "yaml") == (0, "All component YAML validated successfully.\n")
    assert said(DG, "check", "defs")[0] == 0
    code, words = said(DG, "list", "defs", "--json")
    assert code == 0
    assert all(f'"{key.to_user_string()}"' in words for key in ASSET_OF.values())
    code, words = said(DG, "list", "components")
    assert code == 0
    for kind in (CorpusChain, PackedRows, Mix):
        assert f"lc_assets.components.{kind.__name__} " in words
    code, words = said(DG, "utils", "generate-component-schema")  # for editors
    assert code == 0, words


def test_dg_knows_the_checkout(tmp_path):
    """Where dagster-dg-cli is installed."""
    pytest.importorskip("dagster_dg_cli")
    listed = subprocess.run(
        [DG, "list", "defs", "--json"],
        cwd=ROOT,
        env=os.environ | {"DAGSTER_HOME": str(tmp_path), "DAGSTER_DISABLE_TELEMETRY": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert listed.returncode == 0, listed.stderr
    assert all(f'"{key.to_user_string()}"' in listed.stdout for key in ASSET_OF.values())
