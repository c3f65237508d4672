"""A chain by another tokenizer: ids of four bytes where two do not hold them, and no mixing of two
vocabularies.
"""

from dataclasses import replace

import msgspec
import numpy as np
import pytest

from lc_assets.build.checks import DOCUMENTS_SUFFIX, documents_files
from lc_assets.build.settings.rows import TokenizingSettings
from lc_assets.build.tables import read_table
from lc_assets.errors import BadInput, Mismatch
from lc_assets.formats.arrays.grid import GridReader
from lc_assets.formats.megatron.indexed import MegatronReader
from lc_assets.formats.tokenizers.named import tokenizer_of
from lc_assets.loaders.grid import GridLoader
from lc_assets.loaders.rows import open_rows
from lc_assets.stages.rows.token_grid import decoded_rows
from lc_assets.stages.tokens.tokenizing import BY_REFERENCE
from lc_assets_tests.builders import SNAPSHOTS, TINY_ROW_TOKENS, tiny_context, tokenizer_json
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
    with pytest.raises(Mismatch, match="grids of different tokenizers have no common order"):
        build_snapshot(changed, NEW, ["longcrawl"])
