"""A recipe reads the same from its own folder, from any working directory, and as a lake, in a folder
or a bucket, has recorded it.
"""

import pytest

from lc_assets.builds.recipe_files import read_recipe, record_recipe, recorded_recipe
from lc_assets.cli.app import app
from lc_assets_tests.bucket_server import bucket_server

RELATIVE = """\
[sources.web]
path = "corpus"
rules = "rules.toml"
[filtered_documents]
rules = "gopher-paper"
[filtered_documents.lists]
stop_words = "lists/stop.json"
[contaminated_documents]
against = ["/sets/gsm8k.jsonl", "sets/own.jsonl"]
[withdrawn_documents]
lists = ["gone.csv"]
"""


@pytest.fixture
def recipe(tmp_path, monkeypatch):
    """A recipe with relative paths; the working directory is another folder with such files."""
    for name in ("home", "elsewhere"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "rules.toml").touch()
    monkeypatch.chdir(tmp_path / "elsewhere")
    path = tmp_path / "home" / "recipe.toml"
    path.write_text(RELATIVE)
    return path


def test_relative_paths_are_below_the_recipes_folder(recipe):
    found, home = read_recipe(recipe), recipe.parent
    assert found.sources["web"].path == str(home / "corpus")
    assert found.sources["web"].rules == str(home / "rules.toml")
    assert found.filtered_documents.rules == "gopher-paper"
    assert found.filtered_documents.lists.stop_words == str(home / "lists/stop.json")
    assert found.contaminated_documents.against == (
        "/sets/gsm8k.jsonl",
        str(home / "sets/own.jsonl"),
    )
    assert found.withdrawn_documents.lists == (str(home / "gone.csv"),)


def test_a_lake_records_what_the_recipe_means(recipe, tmp_path):
    assert recorded_recipe(tmp_path / "lake") is None
    record_recipe(tmp_path / "lake", recipe)
    recorded = recorded_recipe(tmp_path / "lake")
    assert recorded == tmp_path / "lake" / "recipe.toml"
    assert read_recipe(recorded) == read_recipe(recipe)
    record_recipe(tmp_path / "lake", recorded)
    record_recipe(tmp_path / "copy", recorded)
    assert read_recipe(recorded_recipe(tmp_path / "copy")) == read_recipe(recipe)
    recipe.write_text("[filtered_documents]\nmin_words = 7  # more\n")
    record_recipe(tmp_path / "lake", recipe)
    assert recorded.read_text() == recipe.read_text()


def test_a_lake_in_a_bucket_records_it_too(recipe, tmp_path, monkeypatch):
    pytest.importorskip("gcsfs")
    monkeypatch.setenv("LC_CACHE", str(tmp_path / "copies"))
    with bucket_server(monkeypatch):
        assert recorded_recipe("gs://crawl/lake") is None
        record_recipe("gs://crawl/lake", recipe)
        assert read_recipe(recorded_recipe("gs://crawl/lake")) == read_recipe(recipe)
        monkeypatch.setenv("LC_CACHE", str(tmp_path / "another machine"))
        recorded = recorded_recipe("gs://crawl/lake")
        assert read_recipe(recorded) == read_recipe(recipe)
        recipe.write_text("")
        record_recipe("gs://crawl/lake", recipe)
        assert recorded_recipe("gs://crawl/lake").read_bytes() == b""


def test_lc_build_records_it_as_other_commands_do(tmp_path, monkeypatch):
    """`lc plan` from any working directory reads what `lc build` has recorded."""
    from typer.testing import CliRunner

    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus/a.jsonl").write_text('{"text": "a page of some words"}\n')
    monkeypatch.chdir(tmp_path)
    words = ["build", "--source", "corpus", "--lake", "lake", "--to", "filtered_documents"]
    ended = CliRunner().invoke(app, [*words, "--workers", "1"])
    assert ended.exit_code == 0, ended.output
    monkeypatch.chdir(tmp_path / "corpus")
    ended = CliRunner().invoke(app, ["plan", "--lake", "../lake", "--all"])
    assert "recipe: ../lake/recipe.toml" in ended.output
    assert "filtered_documents/corpus" in ended.output
    recipe = read_recipe(recorded_recipe("../lake"))
    assert recipe.sources["corpus"].path == str(tmp_path / "corpus")
