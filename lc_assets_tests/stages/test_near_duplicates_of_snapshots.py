"""`near_pairs` and `removals`: near duplicates of a snapshot and older ones, who goes, and what a
newer snapshot changes.
"""

import shutil
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lc_assets.builds.building import check_input_of
from lc_assets.builds.recipe import Recipe
from lc_assets.builds.settings.documents import FilteringSettings
from lc_assets.builds.settings.rows import GriddingSettings
from lc_assets.errors import BadInput, Mismatch, NotPublished
from lc_assets.stages.catalogue import stage_named
from lc_assets.stages.deduplication import (
    near_duplicate_pairs as near_pairs,
    removals,
    removed_documents,
    signature_index as signature_bands,
)
from lc_assets.stages.deduplication.heldout_pairs import held_out
from lc_assets.stages.deduplication.index import BANDS, ROWS
from lc_assets.stages.deduplication.removals import removals_in, removed_ids
from lc_assets.stages.tokens.tokenized_text import text_digest
from lc_assets.text.duplicates.keys import jaccard, shingle_hashes
from lc_assets.text.duplicates.minhash import RPV2, signature
from lc_assets.vocabulary import Shard, parse_snapshot
from lc_assets_tests.builders import (
    TAGS,
    deduplication,
    made_up_record,
    made_up_text,
    tiny_context,
    tiny_upstream,
    write_shard,
)
from lc_assets_tests.stages.deduplication.corpora import lines

OLD, NEW = parse_snapshot("2023-06"), parse_snapshot("2023-14")
SETTINGS = {"signatures": "computed", "prefer": ("newest",)}


@pytest.fixture(scope="module")
def upstream(tmp_path_factory):
    """Each shard holds texts of its own; those of the newer snapshot also hold versions of the
    older one's texts.
    """
    folder = tiny_upstream(tmp_path_factory.mktemp("near") / "upstream")
    rng = np.random.default_rng(5)
    for tag in TAGS:
        texts = [made_up_text(rng, n_words=int(rng.integers(100, 140))) for _ in range(8)]
        more = [
            text + " " + " ".join(f"extra{number}" for number in range(7 * version))
            for version, text in enumerate(texts)
        ]
        for snapshot, found in ((OLD, texts), (NEW, [*more, more[0] + " once more"])):
            shard = Shard.parse(f"{snapshot}/{tag}")
            write_shard(
                folder,
                shard,
                [dated(made_up_record(shard, line, text)) for line, text in enumerate(found)],
            )
    return folder


def dated(record):
    """A record of a page that was crawled when its snapshot was made."""
    week = int(record.cc_segment.split("-")[4][:2])
    return msgspec.structs.replace(record, date_download=f"2023-{week // 4 + 1:02d}-03T04:05:06Z")


def context_of(tmp_path, upstream, *, workers=1, token_grid=None, **settings):
    made = tiny_context(
        tmp_path,
        upstream=upstream,
        workers=workers,
        **deduplication(**SETTINGS, **settings),
    )
    filtering = FilteringSettings(rules=made.recipe.filtered_documents.rules, min_words=20)
    recipe = msgspec.structs.replace(
        made.recipe, filtered_documents=filtering, token_grid=token_grid or made.recipe.token_grid
    )
    return replace(made, recipe=recipe)


def build(context, *snapshots):
    for snapshot in snapshots:
        stage_named("raw_snapshot").build(context, snapshot)
        stage_named("filtered_documents").build(context, snapshot)
        stage_named("document_signatures").build(context, snapshot)
        stage_named("signature_index").build(context, snapshot)
        stage_named("near_duplicate_pairs").build(context, snapshot)
    cut_withdrawals(context, *snapshots)
    return {
        snapshot: stage_named("removed_documents").build(context, snapshot)
        for snapshot in snapshots
    }


def cut_withdrawals(context, *snapshots):
    stage_named("withdrawn_documents").build(context, "all")
    for snapshot in snapshots:
        stage_named("document_keys").build(context, snapshot)
    for snapshot in snapshots:
        stage_named("heldout_pairs").build(context, snapshot)
        stage_named("snapshot_withdrawals").build(context, snapshot)


def texts_of(context, *snapshots):
    folders = [
        context.lake.partition("filtered_documents", snapshot).require().folder
        for snapshot in snapshots
    ]
    return {
        line["id"]: line["raw_content"]
        for folder in folders
        for path in folder.glob("*.documents.parquet")
        for line in lines(path)
    }


def pairs_of(context, snapshot):
    table = lines(
        context.lake.partition("near_duplicate_pairs", snapshot).require().folder / near_pairs.TABLE
    )
    return {frozenset((line["a"], line["b"])): line["similarity"] for line in table}


@pytest.fixture(scope="module")
def made(tmp_path_factory, upstream):
    context = context_of(tmp_path_factory.mktemp("made"), upstream)
    return context, build(context, OLD, NEW)


def test_pairs_are_those_that_share_a_band_and_are_alike_by_comparing_all(made):
    context, _ = made
    texts = texts_of(context, OLD, NEW)
    sets = {name: shingle_hashes(text) for name, text in texts.items()}
    bands = {
        name: signature(text, RPV2)[: BANDS * ROWS].reshape(BANDS, ROWS)
        for name, text in texts.items()
    }
    alike = {
        frozenset((a, b)): found
        for a, b in combinations(sets, 2)
        if (bands[a] == bands[b]).all(axis=1).any() and (found := jaccard(sets[a], sets[b])) >= 0.5
    }
    assert pairs_of(context, OLD) | pairs_of(context, NEW) == alike
    assert not pairs_of(context, OLD)
    assert len(alike) > 20


def test_the_newest_stays_and_everything_adds_up(made):
    context, built = made
    texts = texts_of(context, OLD, NEW)
    gone = {snapshot: removed_ids(made.published.folder) for snapshot, made in built.items()}
    assert {reason for found in gone.values() for reason in found.values()} >= {"near duplicate"}
    for snapshot, made_now in built.items():
        assert made_now.counts.seen == sum(name.startswith(snapshot) for name in texts)
        assert sum(made_now.counts.dropped.values()) == len(gone[snapshot])
    for line in (
        line for made_now in built.values() for line in removals_in(made_now.published.folder)
    ):
        if line["reason"] == "near duplicate":
            assert line["kept_id"].startswith(f"{NEW}/") or line["id"].startswith(f"{OLD}/")
            assert line["kept_id"] not in {
                name
                for found in gone.values()
                for name, why in found.items()
                if why == "near duplicate"
            }


def test_what_is_like_the_held_out_is_not_trained_on(tmp_path, upstream):
    context = context_of(
        tmp_path,
        upstream,
        threshold=1.0,
        token_grid=GriddingSettings(row_tokens=64, heldout_fraction=0.5),
    )
    built = build(context, OLD, NEW)
    gone = {
        name: why
        for found in built.values()
        for name, why in removed_ids(found.published.folder).items()
    }
    assert set(gone.values()) <= {"near duplicate", "near heldout"}
    assert "near heldout" in gone.values()
    documents = [line for snapshot in (OLD, NEW) for line in _documents(context, snapshot)]
    digests = [text_digest(line["raw_content"].encode()) for line in documents]
    out = dict(
        zip(
            [line["id"] for line in documents],
            held_out(digests, GriddingSettings(seed=64, heldout_fraction=0.5)).tolist(),
            strict=True,
        )
    )
    for pair in pairs_of(context, NEW):
        a, b = pair
        assert a in gone or b in gone or out[a] == out[b]
    for line in (line for found in built.values() for line in removals_in(found.published.folder)):
        if line["reason"] == "near heldout":
            assert out[line["id"]] != out[line["kept_id"]]
            assert line["id"].partition("/")[0] <= line["kept_id"].partition("/")[0]  # newest first


def test_with_the_oldest_preferred_a_newer_snapshot_changes_nothing_of_what_stands(
    tmp_path, upstream
):
    context = context_of(tmp_path, upstream)
    recipe = context.recipe
    context = replace(
        context, recipe=msgspec.structs.replace(recipe, **deduplication(recipe, prefer=("oldest",)))
    )
    before = build(context, OLD)[OLD]
    after = build(context, NEW)[NEW]
    assert stage_named("removed_documents").build(context, OLD).reused
    gone = removed_ids(after.published.folder)
    assert "near duplicate" in gone.values()
    assert not before.counts.dropped
    for line in removals_in(after.published.folder):
        assert line["kept_id"] not in gone
        if line["reason"] == "near duplicate" and line["kept_id"].startswith(f"{OLD}/"):
            assert line["why"].startswith("older")


def _documents(context, snapshot):
    folder = context.lake.partition("filtered_documents", snapshot).require().folder
    return [line for path in sorted(folder.glob("*.documents.parquet")) for line in lines(path)]


def test_a_newer_snapshot_leaves_the_older_ones_pairs_current(tmp_path, upstream):
    context = context_of(tmp_path, upstream)
    build(context, OLD)
    before = context.lake.partition("near_duplicate_pairs", OLD).require().folder
    build(context, NEW)
    again = stage_named("near_duplicate_pairs").build(context, OLD)
    assert again.reused
    assert again.published.folder == before


def test_the_same_bytes_from_two_workers_and_any_order(tmp_path, upstream, made):
    context = context_of(tmp_path, upstream, workers=2)
    for snapshot in (NEW, OLD):
        stage_named("raw_snapshot").build(context, snapshot)
        stage_named("filtered_documents").build(context, snapshot)
        stage_named("document_signatures").build(context, snapshot)
        stage_named("signature_index").build(context, snapshot)
    for snapshot in (NEW, OLD):
        stage_named("near_duplicate_pairs").build(context, snapshot)
    cut_withdrawals(context, NEW, OLD)
    for snapshot in (OLD, NEW):
        ours = (
            stage_named("removed_documents").build(context, snapshot).published.folder
            / removals.TABLE
        )
        assert (
            ours.read_bytes() == (made[1][snapshot].published.folder / removals.TABLE).read_bytes()
        )


def test_another_threshold_compares_nothing_anew(made):
    context, built = made
    recipe = msgspec.structs.replace(context.recipe, **deduplication(**SETTINGS, threshold=0.6))
    lower = replace(context, recipe=recipe)
    assert stage_named("near_duplicate_pairs").build(lower, NEW).reused
    more = stage_named("removed_documents").build(lower, OLD)
    assert not more.reused
    assert more.counts.dropped["near duplicate"] > built[OLD].counts.dropped["near duplicate"]


def test_it_can_be_switched_off(tmp_path, upstream):
    built = build(context_of(tmp_path, upstream, near=False), OLD, NEW)
    assert all(found.counts.dropped.keys() <= {"near heldout"} for found in built.values())


def test_signatures_of_other_documents_are_refused(tmp_path, upstream):
    context = context_of(tmp_path, upstream)
    build(context, OLD)
    stricter = msgspec.structs.replace(
        context.recipe,
        filtered_documents=msgspec.structs.replace(
            context.recipe.filtered_documents, min_words=120
        ),
    )
    stage_named("filtered_documents").build(replace(context, recipe=stricter), OLD)
    with pytest.raises(
        Mismatch,
        match="signature_index/2023-06: is of other documents than filtered_documents/2023-06",
    ):
        stage_named("near_duplicate_pairs").build(context, OLD)
    with pytest.raises(Mismatch, match="materialize `document_signatures` of this snapshot again"):
        stage_named("signature_index").build(context, OLD)


def test_what_is_missing_or_cannot_be_meant_is_said(tmp_path, upstream):
    context = context_of(tmp_path, upstream)
    with pytest.raises(NotPublished, match="filtered_documents/2023-06 has not been published"):
        stage_named("near_duplicate_pairs").build(context, OLD)
    with pytest.raises(BadInput, match="is below near_duplicate_pairs.evidence_floor"):
        Recipe(**deduplication(threshold=0.4))
    with pytest.raises(BadInput, match="no preference 'nicest'"):
        deduplication(prefer=("nicest",))


def edited(path, change):
    pq.write_table(pa.Table.from_pylist(change(lines(path)), schema=pq.read_schema(path)), path)


def with_one_the_other_way_round(found):
    """A pair within the snapshot stands there twice, for another one."""
    one = next(line for line in found if line["a"].startswith(NEW))
    others = [line for line in found if line is not one]
    return [one, one | {"a": one["b"], "b": one["a"]}, *others[1:]]


SPOILS = [
    (near_pairs, "the_pairs_add_up", lambda found: found[1:]),
    (near_pairs, "the_pairs_add_up", with_one_the_other_way_round),
    (near_pairs, "the_pairs_add_up", lambda found: [found[0], *found[:-1]]),
    (near_pairs, "the_pairs_add_up", lambda found: [found[0] | {"similarity": 0.3}, *found[1:]]),
    (
        near_pairs,
        "the_pairs_add_up",
        lambda found: [found[0] | {"b": f"{OLD}/0000/en_head.json.gz/0"}, *found[1:]],
    ),
    (
        near_pairs,
        "pairs_are_as_alike_as_they_say",
        lambda found: [found[0] | {"similarity": 0.99}, *found[1:]],
    ),
    (
        near_pairs,
        "pairs_are_as_alike_as_they_say",
        lambda found: [found[0] | {"a": "nobody/0"}, *found[1:]],
    ),
    (removed_documents, "removals_add_up", lambda found: found[1:]),
    (removed_documents, "removals_add_up", lambda found: [found[0], *found[:-1]]),
    (
        removed_documents,
        "removals_add_up",
        lambda found: [found[0] | {"id": "nobody/0"}, *found[1:]],
    ),
    (
        removed_documents,
        "removals_add_up",
        lambda found: [found[0] | {"reason": "taste"}, *found[1:]],
    ),
    (
        removed_documents,
        "every_near_duplicate_has_one_that_stays",
        lambda found: [found[0] | {"kept_id": found[1]["id"]}, *found[1:]],
    ),
    (
        removed_documents,
        "every_near_duplicate_has_one_that_stays",
        lambda found: [found[0] | {"kept_id": found[0]["id"]}, *found[1:]],
    ),
    (
        removed_documents,
        "every_near_duplicate_has_one_that_stays",
        lambda found: [found[0] | {"similarity": 0.1}, *found[1:]],
    ),
]


@pytest.mark.parametrize(("module", "check", "spoil"), SPOILS)
def test_a_check_fails_with_a_message(made, tmp_path, module, check, spoil):
    context, _ = made
    published = context.lake.partition(
        module.STAGE.name, NEW if module is near_pairs else OLD
    ).require()
    folder = Path(shutil.copytree(published.folder, tmp_path / "copy"))
    check_input = replace(check_input_of(context.lake, published), folder=folder)
    test = {found.__name__: found for found in module.STAGE.checks}[check]
    assert test(check_input).passed
    edited(folder / (near_pairs.TABLE if module is near_pairs else removals.TABLE), spoil)
    found = test(check_input)
    assert not found.passed
    assert found.message


def test_of_long_documents_fewer_pairs_are_compared_again(made):
    """At least some, and of short ones no more than are needed."""
    context, _ = made
    given = check_input_of(
        context.lake, context.lake.partition("near_duplicate_pairs", NEW).require()
    )
    assert given.counts.kept > near_pairs.LEAST_AGAIN
    for chars, wanted in ((10**3, given.counts.kept), (10**5, 5), (10**9, near_pairs.LEAST_AGAIN)):
        extra = {"documents compared": 2, "characters compared": 2 * chars}
        counts = msgspec.structs.replace(given.counts, extra=extra)
        found = near_pairs.pairs_are_as_alike_as_they_say(replace(given, counts=counts))
        assert found.passed
        assert found.values["compared again"] == min(wanted, near_pairs.MOST_AGAIN)


def test_how_many_shards_are_indexed_together_changes_no_byte(tmp_path, upstream, monkeypatch):
    """Each shard by itself, some together, a snapshot's all together; over both snapshots."""
    found = {}
    for together in (1, 9, signature_bands.FILE_DOCUMENTS):
        monkeypatch.setattr(signature_bands, "FILE_DOCUMENTS", together)
        context = context_of(tmp_path / str(together), upstream)
        build(context, OLD, NEW)
        found[together] = [
            context.lake.partition("near_duplicate_pairs", snapshot).require()
            for snapshot in (OLD, NEW)
        ]
    one, *others = ([published.digest for published in versions] for versions in found.values())
    assert all(other == one for other in others)
    assert found[1][1].receipt.counts.kept > 8
    assert [found[1][1].receipt.counts] * 3 == [
        versions[1].receipt.counts for versions in found.values()
    ]
