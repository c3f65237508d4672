"""`signature_bands`: what a snapshot's bands hold, that they are cut once, and that a newer
snapshot opens only what is like its own.
"""

import shutil
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lc_assets.builds.building import check_input_of
from lc_assets.builds.inputs import inputs_of
from lc_assets.errors import CorruptFile, Mismatch, NotPublished
from lc_assets.formats.arrays.npy import read_npy, write_npy
from lc_assets.lake.lake import memoized
from lc_assets.stages.catalogue import stage_named
from lc_assets.stages.deduplication import (
    near_duplicate_pairs as near_pairs,
    removed_documents as removals,
    signature_index as signature_bands,
    verification,
)
from lc_assets.stages.deduplication.facts import gather_families
from lc_assets.stages.deduplication.index import (
    BANDED,
    MANIFEST,
    documents_path,
    read_bands_manifest,
    shards_at,
    shards_path,
)
from lc_assets.stages.deduplication.near_duplicate_pairs import TABLE
from lc_assets.stages.deduplication.queries import queries
from lc_assets.stages.deduplication.signature_index import NOT_SIGNED, SIGNED
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

OLD, NEW = parse_snapshot("2023-06"), parse_snapshot("2023-14")


@pytest.fixture(scope="module")
def upstream(tmp_path_factory):
    """Texts of their own everywhere, but one pair within the older snapshot, and one of the newer's
    first shard with the older's last.
    """
    folder = tiny_upstream(tmp_path_factory.mktemp("bands") / "upstream")
    rng = np.random.default_rng(7)
    known = ""
    for snapshot in (OLD, NEW):
        for tag in TAGS:
            texts = [made_up_text(rng, n_words=int(rng.integers(100, 140))) for _ in range(9)] + [
                "one two three"
            ]
            if snapshot == NEW and tag == TAGS[0]:
                texts[3] = known + " and a little more"
            if snapshot == OLD and tag == TAGS[1]:
                texts[6] = texts[5] + " and some more"
            known = texts[4] if snapshot == OLD and tag == TAGS[-1] else known
            shard = Shard.parse(f"{snapshot}/{tag}")
            write_shard(
                folder,
                shard,
                [made_up_record(shard, line, text) for line, text in enumerate(texts)],
            )
    return folder


def context_of(tmp_path, upstream, **settings):
    made = tiny_context(
        tmp_path,
        upstream=upstream,
        **deduplication(**{"signatures": "computed"} | settings),
    )
    filtering = msgspec.structs.replace(made.recipe.filtered_documents, min_words=0)
    return replace(made, recipe=msgspec.structs.replace(made.recipe, filtered_documents=filtering))


def with_recipe(context, **settings):
    return replace(
        context,
        recipe=msgspec.structs.replace(context.recipe, **deduplication(context.recipe, **settings)),
    )


def signed(context, *snapshots):
    for snapshot in snapshots:
        stage_named("raw_snapshot").build(context, snapshot)
        stage_named("filtered_documents").build(context, snapshot)
        stage_named("document_signatures").build(context, snapshot)
    return context


@pytest.fixture(scope="module")
def made(tmp_path_factory, upstream):
    """Both snapshots, in files of bands of two shards or so."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(signature_bands, "FILE_DOCUMENTS", 15)
        context = signed(context_of(tmp_path_factory.mktemp("made"), upstream), OLD, NEW)
        return context, {
            snapshot: stage_named("signature_index").build(context, snapshot)
            for snapshot in (OLD, NEW)
        }


def listed(context, snapshot):
    """Lines of the filtered documents, shard by shard."""
    files = sorted(
        context.lake.partition("filtered_documents", snapshot)
        .require()
        .folder.glob("*.documents.parquet")
    )
    return {
        path.name.partition(".")[0]: pq.read_table(path, columns=BANDED.names).to_pylist()
        for path in files
    }


def test_every_document_is_found_at_its_place_and_by_its_id(made):
    context, built = made
    folder, shards = built[OLD].published.folder, listed(context, OLD)
    manifest = read_bands_manifest(folder)
    assert len(manifest.documents) > 1
    every = [line for lines in shards.values() for line in lines]
    found = [
        pq.read_table(documents_path(folder, number)) for number in range(len(manifest.documents))
    ]
    assert pa.concat_tables(found).to_pylist() == every
    assert built[OLD].counts.extra == {
        "shards": len(shards),
        SIGNED: len(every) - len(shards),
        NOT_SIGNED: len(shards),
    }
    last = np.array([manifest.documents[0] - 1])
    (shard,) = shards_at(folder, 0, last).to_pylist()
    place = int(last[0]) - shard["first"]
    assert (
        shards[shard["shard"]][place]["id"]
        == pq.read_table(documents_path(folder, 0))["id"][int(last[0])].as_py()
    )
    assert shard["n_documents"] == place + 1


def test_a_place_that_is_not_there_is_said(made):
    folder = made[1][OLD].published.folder
    beyond = np.array([0, read_bands_manifest(folder).documents[0]])
    with pytest.raises(CorruptFile, match=f"place {beyond[1]} is needed"):
        shards_at(folder, 0, beyond)


def test_an_older_snapshot_is_cut_once_and_opened_only_where_it_is_like_the_new(made, monkeypatch):
    """Whatever is done for the newer snapshot, no signature of the older one is read, and of its
    texts one shard's.
    """
    context, _ = made
    opened = []
    reading = verification.read_texts
    monkeypatch.setattr(
        verification,
        "read_texts",
        lambda path, *columns, **options: opened.append(path) or reading(path, *columns, **options),
    )
    monkeypatch.setattr(signature_bands, "_bands_of", None)
    stage_named("near_duplicate_pairs").build(context, OLD)
    opened.clear()
    built = stage_named("near_duplicate_pairs").build(context, NEW)
    (pair,) = pq.read_table(built.published.folder / TABLE).to_pylist()
    assert [pair[side].partition("/")[0] for side in ("a", "b")] == [OLD, NEW]
    of_old = [path for path in opened if f"/{OLD}/" in str(path)]
    assert [path.name for path in of_old] == [
        f"{Shard.parse(f'{OLD}/{TAGS[-1]}').name}.documents.parquet"
    ]
    assert stage_named("signature_index").build(context, OLD).reused
    assert stage_named("signature_index").build(context, NEW).reused


def test_who_goes_is_decided_among_the_families_of_a_snapshot(made, tmp_path):
    """Of the older snapshot's two pairs' documents only the one is looked up that is like a new
    one; its length, where it counts.
    """
    context, _ = made
    tables = [
        stage_named("near_duplicate_pairs").build(context, snapshot).published.folder / TABLE
        for snapshot in (OLD, NEW)
    ]
    for snapshot in (OLD, NEW):
        stage_named("document_keys").build(context, snapshot)
    inputs = inputs_of(removals.STAGE, context.lake, context.recipe, NEW)
    (old,) = pq.read_table(tables[0]).to_pylist()
    (new,) = pq.read_table(tables[1]).to_pylist()
    texts = {
        line["id"]: line["raw_content"] for name in (OLD, NEW) for line in texts_of(context, name)
    }
    for lengths in (False, True):
        with queries(tmp_path / "duckdb", 64 << 20) as database:
            gather_families(database, inputs, NEW, tables, lengths=lengths)
            found = database.lines("SELECT id, source, n_chars FROM facts ORDER BY number")
            pairs = database.lines("SELECT a, b FROM pairs")
        wanted = [(new["a"], OLD), (new["b"], NEW)]
        assert found == [
            {"id": name, "source": source, "n_chars": len(texts[name]) if lengths else 0}
            for name, source in wanted
        ]
        assert pairs == [{"a": new["a"], "b": new["b"]}]
        assert {old["a"], old["b"]}.isdisjoint({new["a"], new["b"]})


def texts_of(context, snapshot):
    files = (
        context.lake.partition("filtered_documents", snapshot)
        .require()
        .folder.glob("*.documents.parquet")
    )
    return [
        line
        for path in files
        for line in pq.read_table(path, columns=["id", "raw_content"]).to_pylist()
    ]


def test_of_older_snapshots_no_list_of_files_is_held(made):
    """What a stage reads by its head has the same digest, whoever asks."""
    context, _ = made
    for lake in (context.lake, memoized(context.lake)):
        found = inputs_of(near_pairs.STAGE, lake, context.recipe, NEW)
        assert not found[f"filtered_documents/{OLD}"].receipt.files
        assert (
            found[f"filtered_documents/{OLD}"].digest
            == context.lake.partition("filtered_documents", OLD).require().digest
        )
    assert inputs_of(near_pairs.STAGE, context.lake, context.recipe, NEW)[
        f"filtered_documents/{NEW}"
    ].receipt.files
    again = check_input_of(
        context.lake,
        stage_named("near_duplicate_pairs").build(context, NEW).published,
        by_summary=near_pairs.STAGE.by_summary,
    )
    assert not again.inputs[f"filtered_documents/{OLD}"].receipt.files


def test_another_way_to_sign_cuts_anew_and_is_not_mixed(tmp_path, upstream):
    context = signed(context_of(tmp_path, upstream), OLD, NEW)
    before = stage_named("signature_index").build(context, OLD)
    faster = with_recipe(context, signatures="fast")
    for snapshot in (OLD, NEW):
        stage_named("document_signatures").build(faster, snapshot)
    stage_named("signature_index").build(faster, NEW)
    with pytest.raises(
        Mismatch,
        match="signatures of 2023-06 were made by .*, those of 2023-14 by .*, and the two do not "
        "compare",
    ):
        stage_named("near_duplicate_pairs").build(faster, NEW)
    after = stage_named("signature_index").build(faster, OLD)
    assert not after.reused
    assert after.published.digest != before.published.digest
    assert stage_named("near_duplicate_pairs").build(faster, NEW).counts.kept == 1


def test_what_is_missing_is_said_and_nothing_is_cut_where_nothing_is_looked_for(tmp_path, upstream):
    context = signed(context_of(tmp_path, upstream), OLD)
    with pytest.raises(NotPublished, match="signature_index/2023-06 has not been published"):
        stage_named("near_duplicate_pairs").build(context, OLD)
    off = with_recipe(context, near=False)
    built = stage_named("signature_index").build(off, OLD)
    assert built.counts.seen == 0
    assert read_bands_manifest(built.published.folder).documents == ()
    assert stage_named("near_duplicate_pairs").build(off, OLD).counts.seen == 0


def lose_a_line(path):
    pq.write_table(pq.read_table(path).slice(1), path)


def edit_array(path, change):
    content = np.array(read_npy(path))
    write_npy(path, change(content))


def swapped(array):
    array[0, :2] = array[0, 1::-1]
    return array


def shifted(array):
    array[:, 0] += 1
    return array


SPOILS = [
    ("every_document_has_its_place", lambda folder: lose_a_line(documents_path(folder, 0))),
    ("every_document_has_its_place", lambda folder: lose_a_line(shards_path(folder, 0))),
    (
        "every_document_has_its_place",
        lambda folder: edit_array(folder / "bands/00000/rows.npy", lambda rows: rows[1:]),
    ),
    ("every_document_has_its_place", lambda folder: (folder / MANIFEST).write_bytes(b"{}")),
    (
        "bands_are_those_of_the_signatures",
        lambda folder: edit_array(folder / "bands/00000/keys.npy", swapped),
    ),
    (
        "bands_are_those_of_the_signatures",
        lambda folder: edit_array(folder / "bands/00000/rows.npy", shifted),
    ),
    (
        "bands_are_those_of_the_signatures",
        lambda folder: edit_array(folder / "bands/00000/places.npy", shifted),
    ),
    (
        "bands_are_those_of_the_signatures",
        lambda folder: edit_array(folder / "bands/00000/keys.npy", lambda keys: keys[:, 1:]),
    ),
    (
        "bands_are_those_of_the_signatures",
        lambda folder: edit_array(folder / "bands/00000/rows.npy", lambda rows: rows[:3]),
    ),
    (
        "bands_are_those_of_the_signatures",
        lambda folder: edit_array(folder / "bands/00000/places.npy", swapped),
    ),
    (
        "bands_are_those_of_the_signatures",
        lambda folder: edit_array(folder / "bands/00000/keys.npy", shifted),
    ),
]


@pytest.mark.parametrize(("check", "spoil"), SPOILS)
def test_a_check_fails_with_a_message(made, tmp_path, check, spoil):
    context, built = made
    published = built[OLD].published
    folder = Path(shutil.copytree(published.folder, tmp_path / "copy"))
    check_input = replace(check_input_of(context.lake, published), folder=folder)
    test = {found.__name__: found for found in signature_bands.STAGE.checks}[check]
    assert test(check_input).passed
    spoil(folder)
    try:
        found = test(check_input)
    except CorruptFile:
        return
    assert not found.passed
    assert found.message


def test_every_check_is_tested():
    assert {check for check, _ in SPOILS} == {
        check.__name__ for check in signature_bands.STAGE.checks
    }
