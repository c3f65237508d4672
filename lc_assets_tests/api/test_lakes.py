"""`lc_assets.build` builds what ``lc build`` does, and `lc_assets.plan` says what is out of date."""

import json

import pytest

import lc_assets as lc
from lc_assets.errors import BadInput

ROW = 64


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "pages.jsonl"
    texts = [f"The {word} is on the table, and it is red. " * 12 for word in ("cup", "jar", "pot")]
    path.write_text("\n".join(json.dumps({"text": text}) for text in texts))
    return path


def test_a_lake_is_built_planned_and_opened(corpus, tmp_path):
    lake = tmp_path / "lake"
    built = lc.build(corpus, lake, rules="none", row_tokens=ROW, workers=1)
    assert built[:2] == ["raw_snapshot/pages", "filtered_documents/pages"]
    assert {plan.status for plan in lc.plan(lake)} == {"current"}
    assert lc.build(corpus, lake, rules="none", row_tokens=ROW, workers=1) == []
    assert lc.open(lake).rows.row_tokens == ROW


def test_a_changed_recipe_is_out_of_date_and_another_one_refused(corpus, tmp_path):
    lake = tmp_path / "lake"
    lc.build(corpus, lake, rules="none", row_tokens=ROW, workers=1)
    recipe = tmp_path / "recipe.toml"
    recipe.write_text((lake / "recipe.toml").read_text().replace("min_words = 0", "min_words = 5"))
    behind = {plan.stage for plan in lc.plan(lake, recipe=recipe) if plan.status != "current"}
    assert "filtered_documents" in behind
    assert "raw_snapshot" not in behind
    with pytest.raises(BadInput, match="other settings"):
        lc.build(corpus, lake, rules="none", row_tokens=2 * ROW, workers=1)
