"""The stage that docs/contributing.md adds works as it is written there."""

import importlib.util
import re
import shutil
from pathlib import Path

import dagster as dg
import pytest

from lc_assets.definitions import build_defs
from lc_assets.lake.lake import Lake
from lc_assets.stages.catalogue import STAGES
from lc_assets_tests.builders import SNAPSHOTS, recipe_file

PAGE = Path(__file__).parents[2] / "docs" / "contributing.md"


@pytest.fixture
def added(tmp_path):
    """The stage of the page, imported from a module of its name."""
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    path = tmp_path / "word_counts.py"
    path.write_text(code, "utf-8")
    spec = importlib.util.spec_from_file_location("word_counts", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.STAGE


def test_a_stage_is_added_by_its_declaration(added, published_lake, tmp_path):
    """Dagster materializes it behind what it reads, with its check, table and description."""
    lake = Lake(Path(shutil.copytree(published_lake.root, tmp_path / "lake")))
    defs = build_defs(
        lake=str(lake.root),
        recipe=str(recipe_file(tmp_path / "recipe.toml", published_lake.context.recipe)),
        stages=(*STAGES, added),
    )
    (spec,) = [
        found for found in defs.resolve_all_asset_specs() if found.key == dg.AssetKey(added.name)
    ]
    assert [dep.asset_key.to_user_string() for dep in spec.deps] == ["filtered_documents"]
    with dg.DagsterInstance.ephemeral() as instance:
        ended = defs.resolve_implicit_global_asset_job_def().execute_in_process(
            instance=instance,
            partition_key=SNAPSHOTS[0],
            asset_selection=[dg.AssetKey(added.name)],
        )
        (record,) = instance.fetch_materializations(dg.AssetKey(added.name), limit=2).records
    assert ended.success
    assert all(check.passed for check in ended.get_asset_check_evaluations())
    published = lake.partition(added.name, SNAPSHOTS[0]).require()
    assert published.receipt.counts.kept == 27
    assert record.asset_materialization.metadata["dagster/row_count"].value == 27
    assert record.asset_materialization.metadata["longest"].value
