"""Pages that are made from the declarations of stages."""

import re
from pathlib import Path

import msgspec
import pytest

from lc_assets.builds.recipe import Recipe
from lc_assets.builds.settings.common import attributes_of
from lc_assets.builds.settings.rows import TokenizingSettings
from lc_assets.cli.setting_options import settings_options
from lc_assets.stages.catalogue import STAGES
from lc_assets_tests.made_pages import pages
from lc_assets_tests.made_reference import variables

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("path", pages(ROOT), ids=lambda path: path.name)
def test_made_pages_are_up_to_date(path):
    """Run ``python -m lc_assets_tests.made_pages`` when this fails."""
    assert path.read_text("utf-8") == pages(ROOT)[path]


def test_every_environment_variable_is_described():
    """All that the package names, except a variable of the C library."""
    code = "\n".join(path.read_text("utf-8") for path in (ROOT / "lc_assets").rglob("*.py"))
    named = {name.strip("_") for name in re.findall(r"\bLC_[A-Z_]+", code)} - {"LC_ALL"}
    assert named == {row[0].strip("`") for row in variables()}


def test_help_keeps_the_case_of_values():
    """It says gpt2, not Gpt2, which is no tokenizer."""
    options = settings_options(TokenizingSettings(), "tokenizer", "min_tokens").parameters()
    words = [option.annotation.__metadata__[0].help for option in options]
    assert [text.split()[0] for text in words] == ["gpt2,", "Shorter"]


def test_every_setting_is_described():
    """Each section of the recipe describes each of its settings."""
    sections = [part for part in vars_of(Recipe()).values() if isinstance(part, msgspec.Struct)]
    missing = {
        f"{type(section).__name__}.{name}"
        for section in sections
        for name in section.__struct_fields__
        if name not in attributes_of(type(section))
    }
    assert missing == set()


def test_sections_are_named_like_stages():
    """A setting is in the section of a stage, except the sources, the target, and what
    Dagster says of all of them.
    """
    others = set(Recipe.__struct_fields__) - {stage.name for stage in STAGES}
    assert others == {"sources", "target", "reuses", "dagster"}


def test_stages_are_named_like_their_modules():
    """One name: of the module, the asset, the folder in the lake, the section."""
    assert [stage.name for stage in STAGES] == [
        stage.write.__module__.rpartition(".")[2] for stage in STAGES
    ]


def vars_of(recipe):
    return {name: getattr(recipe, name) for name in recipe.__struct_fields__}
