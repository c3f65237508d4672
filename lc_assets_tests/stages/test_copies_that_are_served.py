"""Of several copies one is served: the document that others are removed for passes every rule."""

import json
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pytest

from lc_assets.builds.checks import documents_files
from lc_assets.builds.recipe import Recipe
from lc_assets.builds.settings.common import DecontaminationSettings
from lc_assets.builds.settings.documents import Bounds, CleanDocumentsSettings, RemovalSettings
from lc_assets.builds.settings.longpack import PackingSettings
from lc_assets.builds.settings.rows import GriddingSettings
from lc_assets.builds.stage import Built
from lc_assets.formats.tokenizers.named import tokenizer_of
from lc_assets.stages.catalogue import STAGES, needed_by, stage_named
from lc_assets.stages.deduplication.heldout_pairs import held_out
from lc_assets.stages.deduplication.lengths import least_tokens, too_short
from lc_assets.stages.deduplication.removals import removals_in
from lc_assets.stages.deduplication.removed_documents import STAGE
from lc_assets.stages.planning import keys_of
from lc_assets.stages.rows.token_grid import rows_table
from lc_assets.stages.tokens.tokenized_text import text_digest
from lc_assets.vocabulary import Shard
from lc_assets_tests.builders import (
    SNAPSHOTS,
    TAGS,
    deduplication,
    made_up_record,
    made_up_text,
    tiny_context,
    tiny_upstream,
    write_shard,
)
from lc_assets_tests.stages.deduplication.corpora import lines
from lc_assets_tests.withdrawing import with_list

OLD, NEW = SNAPSHOTS
LONG = 500


@pytest.fixture
def words() -> list[str]:
    return made_up_text(np.random.default_rng(3), n_words=LONG).split()


def lake_of(folder: Path, old: list[str], new: list[str], **changes):
    """A context over two snapshots with these texts in one shard; rows are of 64 tokens."""
    tiny_upstream(folder / "upstream")
    for snapshot, texts in ((OLD, old), (NEW, new)):
        shard = Shard.parse(f"{snapshot}/{TAGS[0]}")
        records = [made_up_record(shard, line, text) for line, text in enumerate(texts)]
        write_shard(folder / "upstream", shard, records)
    changes = deduplication(signatures="computed") | changes
    return tiny_context(folder, upstream=folder / "upstream", **changes)


def rows_built(context) -> dict[str, Built]:
    """Build all stages up to the rows."""
    recipe = msgspec.structs.replace(context.recipe, target="token_grid")
    return {
        f"{stage.name}/{key}": stage.build(context, key)
        for stage in STAGES
        if stage.name in needed_by(recipe)
        for key in keys_of(stage, recipe, SNAPSHOTS)
    }


def of(snapshot: str, line: int) -> str:
    return Shard.parse(f"{snapshot}/{TAGS[0]}").document_id(line)


def served(built) -> set[str]:
    """Documents of the shard that have a row."""
    ids = {
        row["id"]
        for snapshot in SNAPSHOTS
        for row in rows_table(built[f"token_grid/{snapshot}"].published).to_pylist()
    }
    return {name for name in ids if f"/{TAGS[0]}" in name}


def removed(built, snapshot: str) -> dict[str, tuple[str, str]]:
    """Reason and kept document of the excluded documents, by id."""
    folder = built[f"removed_documents/{snapshot}"].published.folder
    return {line["id"]: (line["reason"], line["kept_id"]) for line in removals_in(folder)}


def test_a_page_that_grew_past_a_row_is_kept_for_its_older_version(tmp_path, words):
    """The older version is too short for a row, so the newer one is not removed for it."""
    texts = " ".join(words[:440]), " ".join(words)
    context = lake_of(tmp_path, [texts[0]], [texts[1]])
    tokens = msgspec.structs.replace(context.recipe.token_documents, min_tokens=n_between(*texts))
    recipe = {"token_documents": tokens, "packed_rows": PackingSettings()}
    built = rows_built(with_recipe(context, **recipe))
    assert removed(built, NEW) == {}
    assert served(built) == {of(NEW, 0)}


def test_where_short_documents_are_packed_the_older_one_is_kept(tmp_path, words):
    texts = " ".join(words[:440]), " ".join(words)
    context = lake_of(tmp_path, [texts[0]], [texts[1]])
    tokens = msgspec.structs.replace(context.recipe.token_documents, min_tokens=n_between(*texts))
    packed = PackingSettings(wanted=True, row_tokens=1000)
    built = rows_built(with_recipe(context, token_documents=tokens, packed_rows=packed))
    assert removed(built, NEW) == {of(NEW, 0): ("near duplicate", of(OLD, 0))}


@pytest.mark.parametrize(
    ("changes", "least"),
    [
        ({}, 65_536),
        ({"packed_rows": PackingSettings(wanted=True, min_tokens=100)}, 100),
        ({"packed_rows": PackingSettings(min_tokens=100)}, 65_536),
    ],
)
def test_the_least_length_is_that_of_the_outputs_that_are_wanted(changes, least):
    assert least_tokens(Recipe(**changes)) == least


def test_only_what_decides_lengths_makes_a_decision_stale():
    """Nor is a vocabulary loaded where any length will do."""

    def settings(*, clean=False, **changes):
        recipe = Recipe(
            token_documents=msgspec.structs.replace(Recipe().token_documents, **changes),
            clean_documents=CleanDocumentsSettings(wanted=clean),
            **deduplication(),
        )
        return STAGE.params(recipe, OLD)

    assert settings(append_eod=True, dtype="int32") == settings()
    for changes in ({"min_tokens": 70_000}, {"text_encoding": "json_utf8"}):
        assert settings(**changes) != settings()
    assert "lengths" not in settings(clean=True, tokenizer="missing.json")


def test_the_files_of_a_snapshot_are_looked_up_together(tmp_path):
    """Each look-up goes through all files of a version, of which there may be 30,000."""
    context = tiny_context(tmp_path, upstream=tiny_upstream(tmp_path / "upstream"))
    for stage in ("raw_snapshot", "filtered_documents"):
        published = stage_named(stage).build(context, OLD).published
    asked = list[tuple[str, ...]]()

    class Asked:
        def only(self, *names):
            asked.append(names)
            return published.only(*names)

    ids = [line["id"] for path in documents_files(published.folder) for line in lines(path)]
    too_short(context, {f"filtered_documents/{OLD}": Asked()}, pa.chunked_array([ids]))
    assert [len(names) for names in asked] == [len(TAGS)]


def test_a_contaminated_copy_is_not_the_one_that_is_kept(tmp_path, words):
    """The older copy holds an evaluation item; the clean newer one stays and is served."""
    item = made_up_text(np.random.default_rng(9), n_words=30)
    (tmp_path / "evals.jsonl").write_text(json.dumps({"id": "item", "question": item}) + "\n")
    dirty, clean = " ".join([*words, item]), " ".join(words)
    against = DecontaminationSettings(against=(str(tmp_path / "evals.jsonl"),))
    context = lake_of(tmp_path, [dirty], [clean], contaminated_documents=against)
    built = rows_built(context)
    assert removed(built, OLD)[of(OLD, 0)][0] == "contaminated"
    assert removed(built, NEW) == {}
    assert served(built) == {of(NEW, 0)}


def test_a_document_is_removed_only_for_one_that_it_is_like(tmp_path, words):
    """Three texts, each like the next but not the one after: the first and the third stay."""
    more = made_up_text(np.random.default_rng(4), n_words=LONG).split()
    texts = [" ".join([*words, *more][start : start + LONG]) for start in (0, 45, 90)]
    context = lake_of(tmp_path, texts, [])
    grid = msgspec.structs.replace(context.recipe.token_grid, heldout_fraction=0.0)
    built = rows_built(with_recipe(context, token_grid=grid))
    assert removed(built, OLD) == {of(OLD, 1): ("near duplicate", of(OLD, 0))}
    assert served(built) == {of(OLD, 0), of(OLD, 2)}


def test_with_only_the_listed_withdrawn_a_copy_takes_its_place(tmp_path, words):
    texts = " ".join(words), " ".join([*words, "more"])
    context = with_list(lake_of(tmp_path, [texts[0]], [texts[1]]), tmp_path, same_content="stays")
    assert served(rows_built(context)) == {of(OLD, 0)}
    list_file = Path(context.recipe.withdrawn_documents.lists[0])
    list_file.write_text(f"{list_file.read_text()}document,{of(OLD, 0)},asked for,2026-03-01\n")
    built = rows_built(context)
    assert removed(built, OLD) == {of(OLD, 0): ("withdrawn", "")}
    assert served(built) == {of(NEW, 0)}


def test_what_a_newer_copy_joins_still_counts_as_served(tmp_path):
    """Two older texts stay, as they are less alike than the threshold. A newer copy of both does
    not hide that the second is served: the text held out is too much like it.
    """
    words = made_up_text(np.random.default_rng(5), n_words=2 * LONG).split()
    first, second, both, held = (" ".join(words[at : at + LONG]) for at in (0, 64, 32, 164))
    keys = [text_digest(text.encode()) for text in (first, second, both, held)]
    sides = [
        held_out(keys, GriddingSettings(seed=seed, heldout_fraction=0.2)).tolist()
        for seed in range(100)
    ]
    seed = sides.index([False, False, False, True])
    context = lake_of(tmp_path, [first, second], [both, held])
    grid = msgspec.structs.replace(context.recipe.token_grid, heldout_fraction=0.2, seed=seed)
    built = rows_built(with_recipe(context, token_grid=grid))
    assert removed(built, OLD) == {}
    assert removed(built, NEW) == {
        of(NEW, 0): ("near duplicate", of(OLD, 0)),
        of(NEW, 1): ("near heldout", of(OLD, 1)),
    }


def test_copies_of_which_none_is_served_are_all_near_heldout(tmp_path):
    """Two equal texts, and a third on the other side that is like both: neither copy is said to be
    a duplicate of the other.
    """
    words = made_up_text(np.random.default_rng(6), n_words=2 * LONG).split()
    held, copied = " ".join(words[:LONG]), " ".join(words[60 : 60 + LONG])
    keys = [text_digest(text.encode()) for text in (held, copied, copied)]
    sides = [
        held_out(keys, GriddingSettings(seed=seed, heldout_fraction=0.2)).tolist()
        for seed in range(100)
    ]
    context = lake_of(tmp_path, [held], [copied, copied])
    grid = msgspec.structs.replace(
        context.recipe.token_grid, heldout_fraction=0.2, seed=sides.index([True, False, False])
    )
    built = rows_built(with_recipe(context, token_grid=grid))
    assert removed(built, NEW) == {of(NEW, line): ("near heldout", of(OLD, 0)) for line in (0, 1)}


def n_between(shorter: str, longer: str) -> int:
    """A number of tokens between those of two texts."""
    few, many = (len(tokenizer_of("gpt2").encode(text)) for text in (shorter, longer))
    assert few < many
    return (few + many + 1) // 2


def with_recipe(context, **changes):
    return replace(context, recipe=msgspec.structs.replace(context.recipe, **changes))


def test_the_copy_of_best_perplexity_is_served(tmp_path, words):
    """Of RedPajama-V2's documents too, as CCNet published it, whether or not a rule tests it."""
    text = " ".join(words)
    for name, bounds in (("untested", {}), ("tested", {"ccnet_perplexity": Bounds(at_most=999)})):
        context = lake_of(tmp_path / name, [], [], **deduplication(near=False))
        for snapshot, perplexity in ((OLD, 900.0), (NEW, 100.0)):
            shard = Shard.parse(f"{snapshot}/{TAGS[0]}")
            record = made_up_record(shard, 0, text)
            worse = msgspec.structs.replace(record, perplexity=perplexity)
            write_shard(tmp_path / name / "upstream", shard, [worse])
        removal = RemovalSettings(prefer=("best_perplexity",), exact=("text",))
        filtering = msgspec.structs.replace(context.recipe.filtered_documents, bounds=bounds)
        recipe = msgspec.structs.replace(
            context.recipe, removed_documents=removal, filtered_documents=filtering
        )
        built = rows_built(replace(context, recipe=recipe))
        assert built[f"removed_documents/{OLD}"].counts.dropped == {"same text": 1}
        assert not built[f"removed_documents/{NEW}"].counts.dropped
