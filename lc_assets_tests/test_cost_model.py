"""docs/scale.md: its tables of costs are what its own model computes."""

from pathlib import Path

import pytest

from lc_assets_tests.test_papers import README, run

PAGE = Path(__file__).parents[1] / "docs" / "scale.md"


@pytest.fixture(scope="module")
def model() -> dict:
    """The page's names after its blocks have run."""
    return run(PAGE)


@pytest.mark.parametrize("table", ["TABLE", "VARIANTS"])
def test_the_page_shows_what_its_model_computes(model, table):
    """Every line of the tables, to the last digit."""
    text = PAGE.read_text("utf-8")
    missing = [line for line in model[table] if f"\n{line}\n" not in text]
    assert not missing, "\n".join(model[table])


def test_the_stages_add_up(model):
    """The last line is the sum of the others, and reading decides the cores."""
    stages = model["STAGES"]
    together = model["total"](stages.values())
    assert together["core-hours"] == pytest.approx(
        sum(cost["core-hours"] for cost in stages.values())
    )
    assert stages["filtered_documents"]["core-hours"] == max(
        cost["core-hours"] for cost in stages.values()
    )


def test_the_readme_states_the_models_hours_and_dollars(model):
    """On 16 cores, at 10 Gbit/s, of one snapshot and of all."""
    together = model["total"](model["STAGES"].values())
    hours, dollars = together["core-hours"] / 16, model["dollars"](together)
    reading, n = model["read_upstream"] * 8 / 10e9 / 3600, model["SNAPSHOTS"]
    month = model["MORE"]["storing the lake for a month"]
    lines = README.read_text("utf-8")
    assert f"| {hours / n:.1f}, and {reading / n:.1f} to read it" in lines
    assert f"| {dollars / n:.2f} |" in lines
    assert f"| {hours:.0f}, and {reading:.0f} | {dollars:.0f}, and {month:.0f} a month" in lines
