"""The documents that no stage removed, written as a corpus of their own."""

import gzip
import json
import shutil
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from lc_assets.api.files import build_over
from lc_assets.builds.checks import DOCUMENTS_SUFFIX, documents_files
from lc_assets.builds.settings.common import DecontaminationSettings
from lc_assets.builds.settings.documents import CleanDocumentsSettings, FilteringSettings
from lc_assets.builds.stage import CheckInput
from lc_assets.builds.tables import read_table
from lc_assets.formats.corpora.reading import read_corpus
from lc_assets.lake.lake import Lake
from lc_assets.stages.deduplication.removals import removed_ids
from lc_assets.stages.documents import cleaning
from lc_assets.stages.documents.clean_documents import (
    JSON_SUFFIX,
    TABLE_SUFFIX,
    files_hold_the_documents,
)
from lc_assets.vocabulary import NO_RULES
from lc_assets_tests.builders import SNAPSHOTS, tiny_context
from lc_assets_tests.faults import BEFORE_TOKENS, adds_up, build_snapshot
from lc_assets_tests.sources.own_documents import STORIES, own_context

OLD = SNAPSHOTS[0]


def built_in(folder, **settings):
    """A snapshot up to its clean documents, of which one holds an evaluation item."""
    folder.mkdir(exist_ok=True)
    evals = folder / "evals.jsonl"
    context = tiny_context(
        folder,
        clean_documents=CleanDocumentsSettings(wanted=True, **settings),
        contaminated_documents=DecontaminationSettings(against=(str(evals),)),
    )
    filtered = build_snapshot(context, OLD, ["raw_snapshot", "filtered_documents"])
    victim = next(iter(filtered_texts(filtered).values()))
    evals.write_text(json.dumps({"question": " ".join(victim.split()[10:30])}) + "\n", "utf-8")
    return build_snapshot(context, OLD, [*BEFORE_TOKENS, "clean_documents"])


def filtered_texts(built):
    """Texts of the filtered documents, by id."""
    lines = [
        line
        for path in documents_files(built["filtered_documents"].published.folder)
        for line in read_table(path, ["id", "raw_content"]).to_pylist()
    ]
    return {line["id"]: line["raw_content"] for line in lines}


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    return built_in(tmp_path_factory.mktemp("clean"))


def test_what_is_written_is_what_was_filtered_and_not_removed(built):
    removed = removed_ids(built["removed_documents"].published.folder)
    expected = {name: text for name, text in filtered_texts(built).items() if name not in removed}
    files = sorted(built["clean_documents"].published.folder.glob(f"*{JSON_SUFFIX}"))
    found = {document.id: document.text for path in files for document in read_corpus(path)}
    assert removed
    assert found == expected


def test_counts_add_up_by_reason(built):
    counts = built["clean_documents"].counts
    assert adds_up(built["clean_documents"])
    assert counts.dropped == built["removed_documents"].counts.dropped
    assert counts.kept == built["removed_documents"].counts.kept


def test_a_changed_text_is_found(built, tmp_path):
    published = built["clean_documents"].published
    folder = Path(shutil.copytree(published.folder, tmp_path / "copy"))
    check_input = CheckInput(
        folder=folder,
        fingerprint=published.receipt.fingerprint,
        counts=published.receipt.counts,
        lake=None,
        inputs={},
    )
    assert files_hold_the_documents(check_input).passed
    path = min(folder.glob(f"*{JSON_SUFFIX}"))
    path.write_bytes(gzip.compress(gzip.decompress(path.read_bytes()).replace(b" the ", b" ", 1)))
    assert not files_hold_the_documents(check_input).passed


def test_parquet_has_every_column_of_the_filtered_documents(built, tmp_path):
    again = built_in(tmp_path, file_format="parquet")
    folder = again["clean_documents"].published.folder
    kept = {
        name
        for path in documents_files(folder)
        for name in read_table(path, ["id"])["id"].to_pylist()
    }
    for path in documents_files(again["filtered_documents"].published.folder):
        name = path.name.removesuffix(DOCUMENTS_SUFFIX)
        filtered = [line for line in read_table(path).to_pylist() if line["id"] in kept]
        assert read_table(folder / f"{name}{TABLE_SUFFIX}").to_pylist() == filtered


def test_another_cut_takes_over_no_shard_cut_differently(tmp_path):
    """Another evaluation item and another margin: the files are those of a build from nothing."""
    context = tiny_context(
        tmp_path,
        clean_documents=CleanDocumentsSettings(wanted=True),
        contaminated_documents=DecontaminationSettings(
            against=(str(tmp_path / "evals.jsonl"),), action="cut"
        ),
    )
    texts = filtered_texts(build_snapshot(context, OLD, ["raw_snapshot", "filtered_documents"]))

    def built_without(number, margin, lake):
        words = list(texts.values())[number].split()[10:30]
        line = json.dumps({"question": " ".join(words)})
        (tmp_path / "evals.jsonl").write_text(f"{line}\n", "utf-8")
        settings = msgspec.structs.replace(context.recipe.contaminated_documents, margin=margin)
        recipe = msgspec.structs.replace(context.recipe, contaminated_documents=settings)
        there = replace(context, lake=Lake(lake), recipe=recipe)
        built = build_snapshot(there, OLD, [*BEFORE_TOKENS, "clean_documents"])
        return built["clean_documents"]

    for number, margin in ((0, 0), (1, 0), (1, 7)):
        found = built_without(number, margin, tmp_path / "lake")
        scratch = built_without(number, margin, tmp_path / f"nothing-{number}-{margin}")
        assert found.counts.extra["documents cut"] > 0
        assert found.counts == scratch.counts
        assert found.published.receipt.files == scratch.published.receipt.files


def test_a_field_changed_in_the_source_is_written_again(tmp_path):
    """Text and id are the same, so the filtered documents are; the records are not."""
    context = own_context(tmp_path)
    recipe = msgspec.structs.replace(
        context.recipe, clean_documents=CleanDocumentsSettings(wanted=True)
    )
    stages = [*BEFORE_TOKENS, "clean_documents"]
    context = replace(context, recipe=recipe)
    before = build_snapshot(context, STORIES, stages)
    path = tmp_path / "own/stories/part-0.jsonl"
    path.write_text(path.read_text("utf-8").replace("{", '{"grade": 3, ', 1), "utf-8")
    after = build_snapshot(context, STORIES, stages)
    scratch = build_snapshot(replace(context, lake=Lake(tmp_path / "nothing")), STORIES, stages)
    assert (
        before["filtered_documents"].published.folder
        != after["filtered_documents"].published.folder
    )
    found, wanted = (one["clean_documents"].published.receipt.files for one in (after, scratch))
    assert found == wanted
    folder = after["clean_documents"].published.folder
    records = [record for one in folder.glob(f"*{JSON_SUFFIX}") for record in json_lines(one)]
    assert [record["grade"] for record in records if "grade" in record] == [3]


def json_lines(path):
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


WHOLE = "\n".join(f"Line {at} of a text that ends as sentences do." for at in range(9))
MENU = "a line of a menu"


@pytest.mark.parametrize(
    ("how", "text", "is_read"),
    [
        ({}, f"{WHOLE}\n{MENU}", False),
        ({"paragraphs": 10_000}, f"{WHOLE}\n{MENU}", True),
        ({"rules": "c4"}, WHOLE, True),
    ],
)
def test_texts_are_read_from_the_records_unless_edited(tmp_path, monkeypatch, how, text, is_read):
    """Either way the texts are those that were filtered, with the records' other fields."""
    read, plain = [], cleaning.read_lines
    monkeypatch.setattr(
        cleaning,
        "read_lines",
        lambda *args, **kwargs: read.append(args[1]) or plain(*args, **kwargs),
    )
    line = {"id": "a", "text": f"{WHOLE}\n{MENU}", "n": 1}
    (tmp_path / "in.jsonl").write_text(json.dumps(line) + "\n")
    rules = {"rules": how.get("rules", NO_RULES), "min_words": 0}
    sections = {
        "filtered_documents": FilteringSettings(**rules),
        "clean_documents": CleanDocumentsSettings(wanted=True, paragraphs=how.get("paragraphs")),
    }
    made = build_over(tmp_path / "in.jsonl", tmp_path / "out", "clean_documents", sections)
    (folder,) = made.versions
    assert [json_lines(path) for path in folder.glob(f"*{JSON_SUFFIX}")] == [
        [line | {"text": text}]
    ]
    assert [names is None for names in read] == [is_read]
    assert made.counts.extra["characters"] == len(text)
