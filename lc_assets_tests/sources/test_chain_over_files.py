"""The whole chain over two sources of files: JSON lines and Parquet, several partitions."""

from dataclasses import replace

import msgspec
import pyarrow.parquet as pq
import pytest

from lc_assets.builds.checks import documents_files
from lc_assets.errors import BadInput
from lc_assets.lake.lake import Lake
from lc_assets.sources.settings import SourceSettings
from lc_assets.stages.catalogue import stage_named
from lc_assets.stages.deduplication import removals, removed_documents
from lc_assets.stages.documents import filtered_documents as filtering, raw_snapshot as raw
from lc_assets.stages.lineage import histories, tracing, whereabouts
from lc_assets.stages.planning import keys_of
from lc_assets.stages.rows import longcrawl_flat as flat
from lc_assets.vocabulary import parse_document_id, parse_snapshot
from lc_assets_tests.builders import wanted_steps
from lc_assets_tests.sources.own_documents import (
    N_STORIES,
    PARTITIONS,
    STORIES,
    WEB_NEW,
    own_context,
    texts,
)


@pytest.fixture(scope="module")
def context(tmp_path_factory):
    """Both sources, with every default stage built."""
    made = own_context(tmp_path_factory.mktemp("own"))
    for step in wanted_steps():
        for key in keys_of(step, made.recipe, PARTITIONS):
            step.build(made, key)
    return made


def table_of(context, stage, key):
    published = context.lake.partition(stage.name, key).require()
    return [
        line
        for path in documents_files(published.folder)
        for line in pq.read_table(path).to_pylist()
    ]


def test_every_default_stage_is_published(context):
    for step in wanted_steps():
        for key in keys_of(step, context.recipe, PARTITIONS):
            assert context.lake.partition(step.name, key).current() is not None


def test_documents_are_named_by_their_own_ids_or_lines(context):
    stories = table_of(context, filtering.STAGE, STORIES)
    assert [line["id"] for line in stories] == [
        f"stories/part-{number // 6}/{number}" for number in range(N_STORIES)
    ]
    assert [line["raw_content"] for line in stories] == texts("stories", N_STORIES)
    pages = table_of(context, filtering.STAGE, WEB_NEW)
    assert [line["id"] for line in pages] == [
        f"{WEB_NEW}/CC-MAIN-2024-18-000_00000/line-{number}" for number in range(8)
    ]
    assert {line["source_domain"] for line in pages} == {"example.org"}


def test_unreadable_records_are_counted(context):
    counts = context.lake.partition(filtering.STAGE.name, STORIES).require().receipt.counts
    assert (counts.seen, counts.kept, counts.dropped) == (N_STORIES + 1, N_STORIES, {"not JSON": 1})


def test_duplicates_are_found_across_sources(context):
    copy = f"{WEB_NEW}/CC-MAIN-2024-18-000_00000/line-0"
    assert whereabouts.find(context.lake, "document", copy) == []
    published = context.lake.partition(removed_documents.STAGE.name, WEB_NEW).require()
    (line,) = removals.removals_in(published.folder)
    assert (line["id"], line["kept_id"]) == (copy, "stories/part-0/0")


def test_every_row_leads_back_to_its_record(context):
    n_rows = context.lake.partition(flat.STAGE.name).require().receipt.counts.extra["train rows"]
    by_id = {
        line["id"]: line["raw_content"]
        for key in PARTITIONS
        for line in table_of(context, filtering.STAGE, key)
    }
    for number in range(n_rows):
        row = tracing.row_of_order(context.lake, "train", number)
        assert row.id in by_id
        assert parse_document_id(row.id)[0].snapshot == row.snapshot
        assert [found.span.row for found in whereabouts.find(context.lake, "document", row.id)] == [
            row.row
        ]
        assert histories.documents_by(context.lake, "document", row.id)[0]["id"] == row.id


def test_a_document_is_shown_with_its_file(context):
    assert raw.place_in_source(context.lake, "stories/part-1/11") == "part-1.jsonl, id 11"
    page = f"{WEB_NEW}/CC-MAIN-2024-18-000_00000/line-3"
    expected = "CC-MAIN-2024-18/000_00000.parquet, line 3 (from 0)"
    assert raw.place_in_source(context.lake, page) == expected
    assert parse_document_id(page)[1] == 3


def test_a_second_build_reuses_everything(context):
    for step in wanted_steps():
        for key in keys_of(step, context.recipe, PARTITIONS):
            assert step.build(context, key).reused


def test_a_text_field_that_is_not_there_is_named(context, tmp_path):
    folder = tmp_path / "corpus"
    folder.mkdir()
    (folder / "a.jsonl").write_text('{"body": "a page", "n": 1}\n')
    sources = {"mine": SourceSettings(path=str(folder))}
    recipe = msgspec.structs.replace(context.recipe, sources=sources)
    own = replace(context, recipe=recipe, lake=Lake(tmp_path / "lake"))
    stage_named("raw_snapshot").build(own, parse_snapshot("mine"))
    with pytest.raises(
        BadInput,
        match=r"none of 1 documents in 1 files has a text \(no text\); looked for it in "
        r"raw_content, text, content; the fields of a.jsonl are body, n; .*--text-field",
    ):
        stage_named("filtered_documents").build(own, parse_snapshot("mine"))
