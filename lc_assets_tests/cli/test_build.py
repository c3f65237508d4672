"""``lc build``: from a folder of documents to rows, with a recipe in the lake."""

import json

import pytest
from typer.testing import CliRunner

from lc_assets.builds.new_recipes import recipe_text, source_name
from lc_assets.builds.recipe_files import read_recipe
from lc_assets.cli.app import app
from lc_assets.lake.lake import Lake
from lc_assets.sources.settings import SourceSettings
from lc_assets.stages.documents import filtered_documents as filtering
from lc_assets_tests.sources.own_documents import texts


@pytest.fixture
def corpus(tmp_path):
    folder = tmp_path / "corpus"
    folder.mkdir()
    lines = [json.dumps({"id": n, "text": text}) for n, text in enumerate(texts("build", 6))]
    (folder / "a.jsonl").write_text("\n".join(lines))
    (folder / "b.txt").write_text(texts("text", 1)[0])
    return folder


def lc(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def build(corpus, lake, *more):
    return lc("build", "--source", corpus, "--lake", lake, "--to", "filtered_documents", *more)


def test_a_folder_is_read_as_it_is(corpus, tmp_path):
    lake = tmp_path / "lake"
    ended = build(corpus, lake, "--language", "en", "--min-words", "1", "--workers", "1")
    assert ended.exit_code == 0, ended.output
    counts = Lake(lake).partition(filtering.STAGE.name, "corpus").require().receipt.counts
    assert counts.seen == 7
    assert set(counts.dropped) <= {
        rule.name
        for rule in filtering.rules_of_key(read_recipe(lake / "recipe.toml"), "corpus")[0].rules
    }
    again = build(corpus, lake, "--language", "en", "--min-words", "1", "--workers", "1")
    assert "0 partitions built" in again.output
    other = build(corpus, lake, "--language", "de")
    assert other.exit_code == 2
    assert "holds other settings than these options" in other.output


def test_a_corpus_without_the_text_field_is_an_error(tmp_path):
    folder = tmp_path / "corpus"
    folder.mkdir()
    (folder / "a.jsonl").write_text('{"body": "a page", "n": 1}\n')
    ended = build(folder, tmp_path / "lake", "--workers", "1")
    assert ended.exit_code == 1
    words = " ".join(ended.output.split())
    assert "none of 1 documents in 1 files has a text" in words
    assert "the fields of a.jsonl are body, n" in words
    assert "--text-field" in words


def test_a_folder_that_is_not_there_is_an_error(tmp_path):
    ended = build(tmp_path / "none", tmp_path / "lake")
    assert ended.exit_code == 2
    assert "no such folder or file" in " ".join(ended.output.split())


def test_what_is_not_a_stage_is_an_error(corpus, tmp_path):
    ended = lc("build", "--source", corpus, "--lake", tmp_path / "lake", "--to", "rows")
    assert ended.exit_code == 2
    assert "no stage 'rows'" in ended.output


@pytest.mark.parametrize("row_tokens", [8, 2048, 65_536])
def test_the_recipe_is_one(tmp_path, row_tokens):
    path = tmp_path / "recipe.toml"
    corpus = SourceSettings(path='/data/my "own" texts', text_field="body")
    path.write_text(recipe_text(corpus, row_tokens=row_tokens))
    recipe = read_recipe(path)
    (source,) = recipe.sources.values()
    assert (source.path, source.text_field) == ('/data/my "own" texts', "body")
    assert recipe.token_grid.row_tokens == recipe.packed_rows.row_tokens == row_tokens


@pytest.mark.parametrize("path", ["/data/2024-10/", "gs://b/é", "...", "a" * 99])
def test_every_path_gives_a_source_a_name(path):
    assert source_name(path).isidentifier()
