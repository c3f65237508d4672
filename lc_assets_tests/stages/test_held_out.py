"""Held out means held out: one side per text, and nothing similar on the other side."""

import re
from dataclasses import replace
from itertools import combinations
from math import comb
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pytest

import lc_assets
from lc_assets.builds.settings.common import PrivacySettings
from lc_assets.builds.settings.longpack import PackingSettings
from lc_assets.builds.stage import Built
from lc_assets.builds.tables import SPANS_FILE, read_table
from lc_assets.errors import Mismatch
from lc_assets.stages.catalogue import STAGES, needed_by
from lc_assets.stages.deduplication import heldout_pairs
from lc_assets.stages.deduplication.heldout_pairs import held_out
from lc_assets.stages.deduplication.removals import DECISIONS, TABLE
from lc_assets.stages.deduplication.sides import held_out_in
from lc_assets.stages.planning import keys_of
from lc_assets.stages.rows.token_grid import rows_table
from lc_assets.text.duplicates.keys import PUBLISHED_SHINGLES, Shingles, jaccard, shingle_hashes
from lc_assets.text.duplicates.sketches import (
    SKETCH_HASHES,
    index_sketches,
    least_shared,
    similar_sketches,
    sketch,
)
from lc_assets.vocabulary import Shard
from lc_assets_tests.builders import (
    SNAPSHOTS,
    TAGS,
    deduplication,
    made_up_record,
    tiny_context,
    tiny_upstream,
    write_shard,
)
from lc_assets_tests.random_histories import Record, World

OLD, NEW = SNAPSHOTS
PACKED = PackingSettings(wanted=True, row_tokens=128, min_tokens=1)
WORDS = [f"word{number}" for number in range(4000)]


def built_lake(folder: Path, texts: dict[str, list[str]], **changes) -> dict[str, Built]:
    """Documents with digests of their own, built up to rows and packed rows; a half is held out."""
    tiny_upstream(folder / "upstream")
    for snapshot in SNAPSHOTS:
        shard = Shard.parse(f"{snapshot}/{TAGS[0]}")
        records = [
            msgspec.structs.replace(
                made_up_record(shard, line, text), digest=f"sha1:{snapshot}/{line}"
            )
            for line, text in enumerate(texts.get(snapshot, []))
        ]
        write_shard(folder / "upstream", shard, records)
    near = changes.pop("near", True)
    sections = deduplication(**changes.pop("signed", {"signatures": "computed"}))
    pairs = msgspec.structs.replace(sections["near_duplicate_pairs"], near=near)
    sections |= {"near_duplicate_pairs": pairs, "packed_rows": PACKED}
    context = tiny_context(folder, upstream=folder / "upstream", **(sections | changes))
    grid = msgspec.structs.replace(context.recipe.token_grid, heldout_fraction=0.5)
    recipe = msgspec.structs.replace(context.recipe, token_grid=grid)
    context = replace(context, recipe=recipe)
    return {
        f"{stage.name}/{key}": stage.build(context, key)
        for stage in STAGES
        if stage.name in needed_by(recipe)
        for key in keys_of(stage, recipe, SNAPSHOTS)
    }


def sides_of(built: dict[str, Built], stage: str) -> dict[str, str]:
    """Side of every document of the shard with texts of these tests that has rows, by id."""
    tables = [
        rows_table(built[f"{stage}/{snapshot}"].published)
        if stage == "token_grid"
        else read_table(built[f"{stage}/{snapshot}"].published.folder / SPANS_FILE, ["id", "split"])
        for snapshot in SNAPSHOTS
    ]
    return {
        line["id"]: line["split"]
        for table in tables
        for line in table.to_pylist()
        if f"/{TAGS[0]}" in line["id"]
    }


def decisions_of(built: dict[str, Built]) -> dict[str, dict]:
    return {
        line["id"]: line
        for snapshot in SNAPSHOTS
        for line in read_table(
            built[f"removed_documents/{snapshot}"].published.folder / TABLE, DECISIONS.names
        ).to_pylist()
    }


def similar_pairs(n_pairs: int, seed: int = 11) -> list[tuple[str, str]]:
    """Pairs of texts of Jaccard indices between 0.5 and 0.8."""
    rng, pairs = np.random.default_rng(seed), []
    for number in range(n_pairs):
        wanted, n_words = 0.5 + 0.3 * number / n_pairs, 160
        words = rng.choice(WORDS, 2 * n_words).tolist()
        shift = int((1 - wanted) / (1 + wanted) * (n_words - 12))
        pairs.append((" ".join(words[:n_words]), " ".join(words[shift : shift + n_words])))
    return pairs


def edited_pairs(n_pairs: int, seed: int = 12) -> list[tuple[str, str]]:
    """Pairs of texts, every sixteenth word of one replaced: of 13 words few shingles are the same."""
    rng, pairs = np.random.default_rng(seed), []
    for _ in range(n_pairs):
        words = rng.choice(WORDS, 160).tolist()
        edited = [word if place % 16 else f"new{word}" for place, word in enumerate(words)]
        pairs.append((" ".join(words), " ".join(edited)))
    return pairs


def test_only_one_stage_draws_the_split():
    """All others read its record."""
    root = Path(lc_assets.__file__).parent
    words = re.compile(r'keyed_u64\("heldout"|\bheld_out\(')
    drawing = [path for path in root.rglob("*.py") if words.search(path.read_text("utf-8"))]
    assert drawing == [Path(heldout_pairs.__file__)]


def test_rows_are_on_the_sides_that_are_recorded(tmp_path, monkeypatch):
    """Also on others than are drawn: nothing but the record decides."""
    monkeypatch.setattr(heldout_pairs, "held_out", lambda *drawn: ~held_out(*drawn))
    rng = np.random.default_rng(5)
    texts = {key: [" ".join(rng.choice(WORDS, 160)) for _ in range(8)] for key in SNAPSHOTS}
    built = built_lake(tmp_path, texts)
    recorded = {name: line["side"] for name, line in decisions_of(built).items()}
    for stage in ("token_grid", "packed_rows"):
        sides = sides_of(built, stage)
        assert set(sides.values()) == {"train", "heldout"}
        assert sides == {name: recorded[name] for name in sides}
    inputs = {"heldout_pairs/new": built[f"heldout_pairs/{NEW}"].published}
    with pytest.raises(Mismatch, match="lacks 1 texts that were tokenized"):
        held_out_in(inputs, "new", pa.chunked_array([["sha256:unknown"]]))


@pytest.mark.parametrize(
    ("near", "shingles"),
    [
        (True, PUBLISHED_SHINGLES),
        pytest.param(False, PUBLISHED_SHINGLES, marks=pytest.mark.slow),
        pytest.param(True, Shingles(5), marks=pytest.mark.slow),
        pytest.param(False, Shingles(5), marks=pytest.mark.slow),
        (False, Shingles(9, "characters")),
    ],
    ids=str,
)
def test_no_similar_pair_is_on_both_sides(tmp_path, near, shingles):
    """Of 240 pairs between 0.5 and 0.8, half of each newer; above half of them crossed the split.
    Pairs that are similar by other shingles are not by 13 words.
    """
    signed = {"signatures": "computed"}
    if shingles == PUBLISHED_SHINGLES:
        pairs = similar_pairs(240)
    else:
        pairs = edited_pairs(240)
        assert all(jaccard(*map(shingle_hashes, pair)) < 0.4 for pair in pairs)
        signed = {"signatures": "fast", "shingle_size": shingles.size, "shingle_of": shingles.of}
    texts = {OLD: [left for left, _ in pairs], NEW: [right for _, right in pairs]}
    built = built_lake(tmp_path, texts, near=near, signed=signed)
    sides, decisions = sides_of(built, "token_grid"), decisions_of(built)
    n_across, left = 0, []
    for number, (one, other) in enumerate(pairs):
        names = [Shard.parse(f"{key}/{TAGS[0]}").document_id(number) for key in SNAPSHOTS]
        found = [shingle_hashes(text, shingles.size, shingles.of) for text in (one, other)]
        if jaccard(*found) < 0.5:
            continue
        n_across += len({decisions[name]["side"] for name in names}) == 2
        if len({sides[name] for name in names if name in sides}) == 2:
            left.append(names)
        assert any(name in sides for name in names)
    assert n_across > 90
    assert left == []


def test_other_shingles_make_what_compares_by_them_out_of_date(tmp_path):
    """And nothing where they are as before."""
    context = tiny_context(tmp_path)
    signed = msgspec.structs.replace(context.recipe.document_signatures, signatures="fast")
    by_stage = {stage.name: stage for stage in STAGES}
    for changed in ({}, {"shingle_size": 5}, {"shingle_of": "characters"}):
        found = [
            msgspec.structs.replace(
                context.recipe, document_signatures=msgspec.structs.replace(signed, **change)
            )
            for change in ({}, changed)
        ]
        for name in ("document_keys", "heldout_pairs", "near_duplicate_pairs"):
            before, after = (by_stage[name].params(recipe, NEW) for recipe in found)
            assert (before != after) == bool(changed)


def test_pages_of_one_template_are_on_one_side(tmp_path):
    """Twenty pages of one text with other addresses of e-mail, which are replaced: one is kept
    where near duplicates are removed, and all are on one side where they are not.
    """
    words = np.random.default_rng(4).choice(WORDS, 180).tolist()
    texts = [
        " ".join(
            word if place % 9 else f"ann{number}x{place}@mail.org"
            for place, word in enumerate(words)
        )
        for number in range(20)
    ]
    shingles = [set(shingle_hashes(text).tolist()) for text in texts]
    assert not any(one & other for one, other in combinations(shingles, 2))
    for near in (True, False):
        context = tiny_context(tmp_path / "unused")
        tokens = msgspec.structs.replace(
            context.recipe.token_documents, privacy=PrivacySettings(replace=("email",))
        )
        built = built_lake(
            tmp_path / str(near),
            {OLD: texts[:10], NEW: texts[10:]},
            near=near,
            token_documents=tokens,
        )
        for stage in ("token_grid", "packed_rows"):
            sides = sides_of(built, stage)
            assert len(sides) == (1 if near else 20)
            assert len(set(sides.values())) == 1
        lines = [line for name, line in decisions_of(built).items() if f"/{TAGS[0]}" in name]
        assert len({line["tokenized_digest"] for line in lines}) == 1
        assert len({line["text_digest"] for line in lines}) == 20
        assert {line["first_seen"] for line in lines} == {OLD}


def test_one_text_under_many_digests_is_on_one_side(tmp_path):
    """Also where near duplicates are not looked for, in the grid and in packed rows alike."""
    rng = np.random.default_rng(8)
    texts = [" ".join(rng.choice(WORDS, 150)) for _ in range(29)]
    built = built_lake(
        tmp_path,
        {OLD: texts, NEW: texts},
        near=False,
        packed_rows=msgspec.structs.replace(PACKED, seed=7),  # only of the order of rows
    )
    sides = [sides_of(built, stage) for stage in ("token_grid", "packed_rows")]
    assert len(sides[0]) == 58
    assert (
        sides[0]
        == sides[1]
        == {name: line["side"] for name, line in decisions_of(built).items() if name in sides[0]}
    )
    assert set(sides[0].values()) == {"train", "heldout"}
    for line in range(29):
        old, new = (Shard.parse(f"{key}/{TAGS[0]}").document_id(line) for key in SNAPSHOTS)
        assert sides[0][old] == sides[0][new]


@pytest.mark.parametrize("wanted", [0.5, 0.55, 0.65, 0.75])
def test_sketches_find_what_bands_do_not(wanted):
    """Two hundred pairs of long documents each: all are found, and few strangers."""
    rng = np.random.default_rng(5)
    n_words = 1000
    shift = int((1 - wanted) / (1 + wanted) * (n_words - 12))
    drawn = [rng.integers(10**6, size=2 * n_words).astype(str).tolist() for _ in range(200)]
    ours, others = (
        np.array([sketch(" ".join(words[at : at + n_words])) for words in drawn])
        for at in (0, shift)
    )
    pairs = {
        (int(left), int(right))
        for lefts, rights in similar_sketches(ours, index_sketches(others), 0.5)
        for left, right in zip(lefts, rights, strict=True)
    }
    assert pairs == {(number, number) for number in range(200)}


def test_least_shared_is_the_stated_bound():
    """The probability of fewer is at most one in a million, of as many it is more."""
    for floor in (0.4, 0.5, 0.7):
        terms = [
            comb(SKETCH_HASHES, n) * floor**n * (1 - floor) ** (SKETCH_HASHES - n)
            for n in range(SKETCH_HASHES)
        ]
        least = least_shared(floor)
        assert sum(terms[:least]) <= 1e-6 < sum(terms[: least + 1])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            [(0, 4), (0, 1), (2, 0), (2, 2), (2, 1)],
            [(0, 4, 1), (2, 2, 1), (0, 1, 1), (2, 1, 1)],
        ),
        ([(0, 0, 1), (0, 1, 1)], [(0, 0), (0, 1), (0, 4)]),
    ],
)
def test_who_goes_for_a_held_out_document_goes_for_one_that_is_served(tmp_path, old, new):
    """Copies in two snapshots: none goes for one that itself goes for another."""
    world = World(tmp_path / "world")
    for snapshot, of in (("2021-04", old), ("2022-05", new)):
        world.put(snapshot, "0000/en_head", [Record(*one) for one in of])
    world.change("removed_documents", prefer=("newest",))
    assert world.settle(compare=False) == []
