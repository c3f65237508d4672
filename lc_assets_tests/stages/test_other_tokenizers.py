"""A chain by another tokenizer: ids of four bytes where two do not hold them, and no mixing of two
vocabularies.
"""

import re
from dataclasses import replace

import msgspec
import numpy as np
import pytest
from typer.testing import CliRunner

from lc_assets.builds.checks import DOCUMENTS_SUFFIX, documents_files
from lc_assets.builds.settings.longpack import LongPackSettings
from lc_assets.builds.settings.rows import TokenizingSettings
from lc_assets.builds.tables import read_table
from lc_assets.cli.app import app
from lc_assets.errors import BadInput, Mismatch
from lc_assets.formats.arrays.grid import GridReader
from lc_assets.formats.megatron.indexed import MegatronReader
from lc_assets.formats.tokenizers.named import tokenizer_of
from lc_assets.lake.receipts import decode_json
from lc_assets.loaders.grid import GridLoader
from lc_assets.loaders.rows import open_rows
from lc_assets.stages.catalogue import needed_by, refused_by
from lc_assets.stages.planning import plan
from lc_assets.stages.reports.data_sheet import Sheet, sheet_of
from lc_assets.stages.rows.token_grid import decoded_rows
from lc_assets.stages.tokens.tokenizing import BY_REFERENCE
from lc_assets_tests.builders import (
    SNAPSHOTS,
    TINY_ROW_TOKENS,
    recipe_file,
    tiny_context,
    tiny_lake,
    tokenizer_json,
)
from lc_assets_tests.faults import BEFORE_TOKENS, build_snapshot

OLD, NEW = SNAPSHOTS
STAGES = [*BEFORE_TOKENS, "token_documents", "token_grid", "megatron_rows"]


def settings_of(path) -> TokenizingSettings:
    return TokenizingSettings(tokenizer=str(path), min_tokens=TINY_ROW_TOKENS)


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """A chain by a vocabulary whose highest id does not fit two bytes."""
    folder = tmp_path_factory.mktemp("large")
    file = tokenizer_json(folder / "tokenizer.json", far_id=70_000)
    context = tiny_context(folder, token_documents=settings_of(file))
    return file, context, build_snapshot(context, OLD, STAGES)


def test_ids_take_four_bytes(large):
    file, _, built = large
    grid = GridReader(built["token_grid"].published.folder / "train.zarr")
    assert (grid.dtype, grid.vocab_size, grid.attributes["eot"]) == (np.uint32, 70_001, 70_000)
    assert MegatronReader(built["megatron_rows"].published.folder / "train").dtype == np.int32
    (first, *_) = decoded_rows(built["token_grid"].published, str(file), n_rows=1)
    assert first["begins"]


def test_a_loader_begins_rows_with_the_vocabularys_own_end_of_text(large):
    """Not with GPT-2's, which is another word here."""
    _, _, built = large
    rows = open_rows(built["token_grid"].published.folder / "train.zarr")
    assert GridLoader(rows, batch_rows=1, context_tokens=8)[0].text[0, 0] == 70_000


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The whole chain by that vocabulary."""
    folder = tmp_path_factory.mktemp("whole")
    file = tokenizer_json(folder / "tokenizer.json", far_id=70_000)
    tokens = settings_of(file)
    return tiny_lake(
        folder, token_documents=tokens, longpack_documents=LongPackSettings(wanted=True)
    )


def test_the_whole_chain_is_built_and_current(whole):
    """Without the layout that has two bytes for an id."""
    context = whole.context
    plans = plan(context.lake, context.recipe, SNAPSHOTS)
    assert {made.status for made in plans} == {"current"}
    assert {made.stage for made in plans} == set(needed_by(context.recipe))
    assert refused_by(context.recipe) == {
        "longcrawl_flat": "its ids have two bytes, the vocabulary has 70,001 ids"
    }
    assert not context.lake.keys("longcrawl_flat")
    assert open_rows(context.lake.root, "train").read().dtype == np.uint32


def test_the_card_shows_texts_of_ones_own_tokenizer(whole):
    """Receipts name it by its digest, the recipe by its path."""
    card = whole.built["data_set_card/all"].published.folder
    sheet = decode_json(card / "sheet.json", Sheet)
    assert re.fullmatch(r"tokenizer\.json-[0-9a-f]{12}", sheet.tokenizer)
    assert len(sheet.samples) == 3
    assert all(sample["begins"] for sample in sheet.samples)
    inputs = {name: built.published for name, built in whole.built.items()}
    with pytest.raises(Mismatch, match="rows were tokenized by tokenizer.json-.* names gpt2"):
        sheet_of(inputs, "gpt2")


def test_a_plan_says_what_is_left_out(whole, tmp_path):
    recipe = recipe_file(tmp_path / "recipe.toml", whole.context.recipe)
    said = CliRunner().invoke(app, ["plan", f"--lake={whole.root}", f"--recipe={recipe}"])
    assert said.exit_code == 0
    assert "longcrawl_flat is left out: its ids have two bytes, the vocabulary" in said.stdout
    for words in (("show",), ("verify",), ("trace", "--row", "0"), ("batch",)):
        assert CliRunner().invoke(app, [words[0], str(whole.root), *words[1:]]).exit_code == 0


@pytest.mark.parametrize("n_ids", [65_535, 65_536, 65_537])
def test_two_bytes_hold_65_536_ids(tmp_path, n_ids):
    """The flat layout as many, a grid one fewer: its largest number stands for nothing."""
    file = tokenizer_json(tmp_path / "tokenizer.json", far_id=n_ids - 1)
    built = tiny_lake(tmp_path, token_documents=settings_of(file))
    assert ("longcrawl_flat/all" in built.built) == (n_ids <= 65_536)
    grid = GridReader(built.built[f"token_grid/{OLD}"].published.folder / "train.zarr")
    assert (grid.dtype, grid.vocab_size) == (np.uint16 if n_ids < 65_536 else np.uint32, n_ids)
    plans = plan(built.context.lake, built.context.recipe, SNAPSHOTS)
    assert {made.status for made in plans} == {"current"}


def test_rows_that_do_not_say_their_end_of_text_ask_for_it():
    class Silent:
        n_rows, row_tokens, vocab_size, identity = 2, 8, 30_000, "silent"

    with pytest.raises(BadInput, match="pass first_token"):
        GridLoader(Silent(), batch_rows=1, context_tokens=8)


def test_the_ids_are_those_of_the_reference_program(large, tmp_path):
    file, _, built = large
    reference = tokenizer_of(str(file), fast=False)
    n_checked = 0
    for path in documents_files(built["token_documents"].published.folder):
        reader = MegatronReader(path.with_name(path.name.removesuffix(DOCUMENTS_SUFFIX)))
        texts = {
            line["id"]: line["raw_content"]
            for source in documents_files(built["filtered_documents"].published.folder)
            for line in read_table(source, ["id", "raw_content"]).to_pylist()
        }
        for number, line in enumerate(read_table(path, ["id"]).to_pylist()):
            np.testing.assert_array_equal(reader[number], reference.encode(texts[line["id"]]))
            n_checked += 1
    assert n_checked == built["token_documents"].counts.kept > 0


def test_a_program_that_the_fast_one_does_not_know_is_done_by_the_twin(tmp_path):
    """And counted, as a warning."""
    file = tokenizer_json(tmp_path / "tokenizer.json")
    document = msgspec.json.decode(file.read_bytes())
    document["normalizer"] = {"type": "NFKC"}
    file.write_bytes(msgspec.json.encode(document))
    with pytest.raises(BadInput, match="the fast tokenizer does not know this kind of file"):
        tokenizer_of(str(file))
    built = build_snapshot(
        tiny_context(tmp_path, token_documents=settings_of(file)),
        OLD,
        [*BEFORE_TOKENS, "token_documents"],
    )
    extra = built["token_documents"].counts.extra
    assert extra[BY_REFERENCE] == extra["shards"] > 0


def test_grids_of_two_tokenizers_have_no_common_order(tmp_path, large):
    _, context, _ = large
    other = tiny_context(tmp_path, upstream=context.upstream.root)
    mixed = msgspec.structs.replace(
        other.recipe, token_documents=settings_of(tokenizer_json(tmp_path / "tokenizer.json"))
    )
    build_snapshot(other, OLD, STAGES[:-1])
    changed = replace(other, recipe=mixed)
    build_snapshot(changed, NEW, STAGES[:-1])
    with pytest.raises(Mismatch, match="rows of different tokenizers have no common order"):
        build_snapshot(changed, NEW, ["longcrawl"])
