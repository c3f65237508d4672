"""Partitions with no document and with one: every stage builds, the plan is current, everything
that is shown can be shown; commands over such files end well.
"""

import gzip
import json
from dataclasses import replace

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from typer.testing import CliRunner

from lc_assets.builds import showing
from lc_assets.builds.settings.rows import MixSettings
from lc_assets.cli.app import app
from lc_assets.sources import redpajama_v2
from lc_assets.stages.catalogue import STAGES, stage_named
from lc_assets.stages.planning import plan
from lc_assets.stages.releases.releasing import release
from lc_assets.stages.shown import shown
from lc_assets.vocabulary import Shard, parse_snapshot
from lc_assets_tests.builders import (
    CRAWL,
    N_LONG,
    SNAPSHOTS,
    build_all,
    tiny_crawl,
    tiny_documents,
    tiny_upstream,
    write_shard,
)
from lc_assets_tests.cli.command_world import OVER_FILES, files_to_read, words_of
from lc_assets_tests.two_versions import all_wanted

SHARD = Shard.parse(f"{SNAPSHOTS[0]}/0000/en_head")
TAKING_ALL = {"a": MixSettings(), "b": MixSettings(weights="equal")}
EMPTY = {
    "corpus.jsonl": b"",
    "corpus.jsonl.gz": gzip.compress(b""),
    "corpus.jsonl.zst": zstandard.compress(b""),
    "corpus.txt": b"",
    "corpus.warc.gz": b"",
}


@pytest.fixture
def context(tmp_path):
    """Every stage wanted, over snapshots without a shard."""
    upstream = tiny_upstream(tmp_path / "upstream")
    for listing in (upstream / "listings").iterdir():
        listing.write_bytes(b"")
    found = all_wanted(tmp_path, upstream)
    return replace(found, recipe=msgspec.structs.replace(found.recipe, blended_mix=TAKING_ALL))


def assert_whole(context, built) -> None:
    """All is current, can be shown and be released."""
    assert {one.status for one in plan(context.lake, context.recipe, SNAPSHOTS)} == {"current"}
    assert {name.partition("/")[0] for name in built} == {stage.name for stage in STAGES}
    for name, version in built.items():
        seen = shown(stage_named(name.partition("/")[0]), context, version)
        assert all(one.png() for one in seen.values.values() if isinstance(one, showing.Plot))
    release(context.lake, "v1", context.recipe)


def test_no_document_in_any_snapshot(context):
    built = build_all(context)
    assert {found.counts.seen for found in built.values()} == {0}
    assert_whole(context, built)


@pytest.mark.parametrize("number", [0, N_LONG + 1], ids=["kept", "dropped"])
def test_one_document_in_all_snapshots(context, number):
    """The one that fills a row, or one that the rules drop."""
    document = tiny_documents(SHARD)[number]
    upstream = context.lake.root.parent / "upstream"
    write_shard(upstream, SHARD, [document])
    redpajama_v2.write_listing(
        upstream / redpajama_v2.listing_path(parse_snapshot(SNAPSHOTS[0]), "en"), [SHARD]
    )
    tiny_crawl(upstream / CRAWL / SNAPSHOTS[0], [document])
    built = build_all(context)
    assert built[f"filtered_documents/{SNAPSHOTS[0]}"].counts.seen == 1
    assert built["longcrawl/all"].counts.kept == (number == 0)
    assert_whole(context, built)


def lc(*words: object) -> str:
    """What a command prints; it ends well."""
    ended = CliRunner().invoke(app, [str(word) for word in words])
    assert ended.exit_code == 0, ended.output
    return ended.stdout


VERBS = [name for name in OVER_FILES if "corpus.jsonl" in OVER_FILES[name]]
REFUSING = ("pack", "tokenize")
"""They make data sets, which cannot be empty."""


@pytest.mark.parametrize("name", VERBS)
def test_a_command_over_no_document(name, tmp_path, monkeypatch):
    files_to_read(tmp_path)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "corpus.jsonl").write_bytes(b"")
    if name.startswith(REFUSING):
        ended = CliRunner().invoke(app, words_of(name, tmp_path / "out"))
        assert ended.exit_code == 2
        assert ended.stderr == "no document is left of 0 seen: IN is empty\n"
        return
    lc(*words_of(name, tmp_path / "out"))
    assert " 0 out of date" in lc("plan", "--lake", "out")


@pytest.mark.parametrize("name", VERBS)
def test_a_command_over_one_document_leaves_a_current_lake(name, tmp_path, monkeypatch):
    """Whose recipe holds the paths that were given relative to where the command was run."""
    files_to_read(tmp_path)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "corpus.jsonl").write_text((tmp_path / "corpus.jsonl").read_text().split("\n")[0])
    lc(*words_of(name, tmp_path / "out"))
    monkeypatch.chdir(tmp_path.parent)
    assert " 0 out of date" in lc("plan", "--lake", tmp_path / "out")


@pytest.mark.parametrize("name", [*EMPTY, "corpus.parquet"])
def test_an_empty_file_of_each_kind(name, tmp_path):
    if name in EMPTY:
        (tmp_path / name).write_bytes(EMPTY[name])
    else:
        pq.write_table(pa.table({"text": pa.array([], pa.string())}), tmp_path / name)
    lc("filter", tmp_path / name, tmp_path / "out", "--rules", "gopher-paper", "--workers", 1)
    assert " 0 out of date" in lc("plan", "--lake", tmp_path / "out")


def test_pages_of_archives_without_pages(tmp_path):
    """And one page of which no link leads anywhere."""
    files_to_read(tmp_path)
    (tmp_path / "none.warc.gz").write_bytes(b"")
    lc("links", tmp_path / "none.warc.gz", tmp_path / "links", "--workers", 1)
    one = tmp_path / "one.jsonl"
    one.write_text(json.dumps({"url": "http://b.org/1", "text": "A page that nobody links to."}))
    crawl = ("--warc", tmp_path / "crawl.warc.gz", "--any-language", "--workers", 1)
    said = lc("longpack", one, tmp_path / "out", *crawl)
    assert "1 = 1 documents" in " ".join(said.split())
