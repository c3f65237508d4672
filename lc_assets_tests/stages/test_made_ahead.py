"""Signatures that are made while documents are filtered: the same files as afterwards, and nothing is
lost where they cannot be.
"""

import json
import logging
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs

from lc_assets.builds.recipe import Recipe
from lc_assets.builds.settings.common import PrivacySettings
from lc_assets.builds.settings.documents import (
    FilteringSettings,
    NearDuplicateSettings,
    RemovalSettings,
    SignatureSettings,
)
from lc_assets.builds.settings.rows import TokenizingSettings
from lc_assets.builds.sharding import ShardRecord, record_ahead
from lc_assets.builds.stage import BuildContext
from lc_assets.builds.table_writer import TableWriter
from lc_assets.errors import BadInput, CheckFailed, NotWritable, Unreachable
from lc_assets.execution.local import LocalExecutor
from lc_assets.lake.digests import fact_of
from lc_assets.lake.lake import Lake
from lc_assets.lake.receipts import AHEAD, decode_json
from lc_assets.lake.upstream import Upstream
from lc_assets.sources.settings import SourceSettings
from lc_assets.stages.catalogue import stage_named
from lc_assets.stages.deduplication import signing
from lc_assets.stages.documents import shard_filtering
from lc_assets.stages.file_lakes import build_for
from lc_assets.stages.planning import Plan, Run
from lc_assets.stages.rebuilding import build_run
from lc_assets.stages.releases.pruning import plan_purge
from lc_assets.vocabulary import NO_RULES
from lc_assets_tests.killing import Killer

KEY = "a"
NAMES = ("raw_snapshot", "filtered_documents", "document_signatures")
SIGNED = stage_named(NAMES[-1])
TEXTS = [
    "Call me Ishmael. " * 40,
    "naïve 你好 x@example.org\n\n " * 30,
    "short",
    "the end of times " * 50,
]


@pytest.fixture
def context(tmp_path) -> BuildContext:
    """Two files of documents, a shard each, in row groups of a few."""
    source = tmp_path / "in"
    source.mkdir()
    for name in "xy":
        lines = [
            json.dumps({"id": f"{name}{n}", "text": f"{name} {n} {text}"}) + "\n"
            for n, text in enumerate(TEXTS)
        ]
        (source / f"{name}.jsonl").write_text("".join(lines))
    recipe = Recipe(
        sources={KEY: SourceSettings(path=str(source))},
        filtered_documents=FilteringSettings(rules=NO_RULES, min_words=0),
        document_signatures=SignatureSettings(signatures="fast"),
        removed_documents=RemovalSettings(exact=("digest", "text")),
        near_duplicate_pairs=NearDuplicateSettings(near=True),
        token_documents=TokenizingSettings(privacy=PrivacySettings(replace=("email",))),
    )
    return BuildContext(
        lake=Lake(tmp_path / "lake"), upstream=Upstream(""), recipe=recipe, executor=LocalExecutor()
    )


def filtered(context, following=(SIGNED,)):
    stage_named("raw_snapshot").build(context, KEY)
    return stage_named("filtered_documents").build(replace(context, following=following), KEY)


def folder(context):
    return context.lake.partition(SIGNED.name, KEY).folder / AHEAD


def signed(context, caplog):
    """The version of signatures, and where each shard comes from."""
    caplog.clear()
    with caplog.at_level(logging.INFO, "lc_assets.shards"):
        built = SIGNED.build(context, KEY)
    assert not folder(context).exists()
    found = {
        record.outcome.shard: record.outcome.outcome
        for record in caplog.records
        if record.name == "lc_assets.shards"
    }
    return built, found


def afterwards(context, tmp_path):
    """The version that is made where nothing is made ahead."""
    other = replace(context, lake=Lake(tmp_path / "other"))
    filtered(other, ())
    assert not folder(other).exists()
    return SIGNED.build(other, KEY)


def assert_same(built, wanted):
    assert built.published.digest == wanted.published.digest
    assert built.published.version == wanted.published.version
    assert built.counts == wanted.counts
    for fact in wanted.published.receipt.files:
        assert (built.published.home / fact.path).read_bytes() == (
            wanted.published.home / fact.path
        ).read_bytes()


@pytest.mark.parametrize("group_bytes", [1, 1500, 1 << 25])
def test_the_same_files_without_reading_the_texts_again(
    context, tmp_path, caplog, monkeypatch, group_bytes
):
    monkeypatch.setitem(TableWriter.__init__.__kwdefaults__, "group_bytes", group_bytes)
    wanted = afterwards(context, tmp_path)
    monkeypatch.setattr(signing, "read_texts", None)
    filtered(context)
    built, how = signed(context, caplog)
    assert how == {"x": "ahead", "y": "ahead"}
    assert_same(built, wanted)
    measured = built.published.receipt.measured
    assert (measured["shards_computed"], measured["shards_reused"]) == (2, 0)


def over_files(context):
    build_for(context, SIGNED.name)


def rebuilt(context):
    plans = tuple(Plan(stage=name, key=KEY, status="missing") for name in NAMES)
    build_run(context, lambda _plan, _built: None, Run(key=KEY, plans=plans))


@pytest.mark.parametrize("build", [over_files, rebuilt])
def test_commands_make_them_ahead(context, monkeypatch, build):
    monkeypatch.setattr(signing, "read_texts", None)
    build(context)
    assert context.lake.partition(SIGNED.name, KEY).require().receipt.counts.kept == 8


def test_other_settings_are_signed_again(context, tmp_path, caplog):
    filtered(context)
    settings = SignatureSettings(signatures="fast", shingle_size=5)
    other = replace(context, recipe=structs.replace(context.recipe, document_signatures=settings))
    built, how = signed(other, caplog)
    assert how == {"x": "computed", "y": "computed"}
    assert_same(built, afterwards(other, tmp_path))


def test_other_documents_are_signed_again(context, tmp_path, caplog):
    """Of two shards, one is filtered again by a run that makes nothing ahead."""
    filtered(context)
    path = tmp_path / "in" / "x.jsonl"
    path.write_text(path.read_text().replace("Ishmael", "Ahab"))
    filtered(context, ())
    built, how = signed(context, caplog)
    assert how == {"x": "computed", "y": "ahead"}
    assert_same(built, afterwards(context, tmp_path))


@pytest.mark.parametrize("suffix", [".json", signing.MINHASH_SUFFIX])
@pytest.mark.parametrize(
    "damage",
    [Path.unlink, lambda path: path.write_bytes(b"x" * path.stat().st_size)],
    ids=["lost", "damaged"],
)
def test_what_is_lost_or_damaged_is_signed_again(context, tmp_path, caplog, suffix, damage):
    filtered(context)
    damage(folder(context) / f"x{suffix}")
    built, how = signed(context, caplog)
    assert how == {"x": "computed", "y": "ahead"}
    assert_same(built, afterwards(context, tmp_path))


def test_what_a_check_refuses_is_made_again(context, tmp_path, caplog):
    """Signatures of another shard, with a record that agrees."""
    filtered(context)
    x, y = (folder(context) / f"{name}{signing.MINHASH_SUFFIX}" for name in "xy")
    x.write_bytes(y.read_bytes())
    made = decode_json(folder(context) / "x.json", ShardRecord)
    files = (fact_of(folder(context), x.name),)
    record_ahead(folder(context), structs.replace(made, files=files))
    with pytest.raises(CheckFailed, match="names other documents"):
        SIGNED.build(context, KEY)
    built, how = signed(context, caplog)
    assert how == {"x": "computed", "y": "computed"}
    assert_same(built, afterwards(context, tmp_path))


@pytest.mark.parametrize("fails", ["shingles_each", "publish"])
def test_a_failure_is_that_of_the_signatures_alone(context, tmp_path, caplog, monkeypatch, fails):
    """The documents are published; the error is reported where signatures are built."""

    def failing(*_args, **_more):
        raise NotWritable("no place")

    with monkeypatch.context() as patched:
        patched.setattr(signing, fails, failing)
        filtered(context)
        assert not list(folder(context).glob("*"))
        with pytest.raises(NotWritable):
            SIGNED.build(context, KEY)
    built, how = signed(context, caplog)
    assert how == {"x": "computed", "y": "computed"}
    assert_same(built, afterwards(context, tmp_path))


def test_settings_that_cannot_be_meant_are_reported_by_their_stage(context):
    settings = SignatureSettings(signatures="computed", shingle_size=5)
    other = replace(context, recipe=structs.replace(context.recipe, document_signatures=settings))
    filtered(other)
    with pytest.raises(BadInput, match="shingle_size"):
        SIGNED.build(other, KEY)


def test_a_long_text_is_signed_when_it_is_written(context, caplog, monkeypatch):
    """Memory holds it once less; nothing of its shard is made ahead, and nothing is left of it."""
    monkeypatch.setattr(signing, "MOST_BYTES", 700)
    filtered(context)
    assert list(folder(context).iterdir()) == []
    _, how = signed(context, caplog)
    assert how == {"x": "computed", "y": "computed"}


def test_a_file_that_is_read_again_is_signed_once(context, tmp_path, caplog, monkeypatch):
    """After an error that passes, the table is written again, and so are its signatures."""
    monkeypatch.setitem(TableWriter.__init__.__kwdefaults__, "group_bytes", 1)
    sweep, tries = shard_filtering.sweep, []

    def failing_once(*args, **more):
        tries.append(args)
        if len(tries) == 1:
            raise Unreachable("for a while")
        return sweep(*args, **more)

    monkeypatch.setattr(shard_filtering, "sweep", failing_once)
    filtered(context)
    built, how = signed(context, caplog)
    assert (len(tries), how) == (3, {"x": "ahead", "y": "ahead"})
    assert_same(built, afterwards(context, tmp_path))


def test_a_killed_run_loses_nothing_that_it_finished(context, tmp_path, caplog):
    """Killed at a flush of files, the run again ends with the same; signatures that were finished
    are not made again.
    """
    wanted = afterwards(context, tmp_path)
    stage_named("raw_snapshot").build(context, KEY)
    partition, made = context.lake.partition("filtered_documents", KEY), set[str]()
    with Killer(replace(context, following=(SIGNED,))) as killer:
        for kill_at in range(1, 80, 3):
            for left in (partition.folder, folder(context).parent):
                shutil.rmtree(left, ignore_errors=True)
            if not killer.kill("filtered_documents", KEY, kill_at):
                break
            filtered(context)
            built, how = signed(context, caplog)
            made |= {*how.values()}
            assert_same(built, wanted)
    assert 30 < kill_at < 79
    assert made == {"ahead", "computed"}


def test_a_purge_names_what_no_version_holds_yet(context):
    filtered(context)
    purged = plan_purge(context.lake, {"a/x/line-0"})
    assert f"{SIGNED.name}/{KEY}/{AHEAD}" in {one.name for one in purged.deletions}
