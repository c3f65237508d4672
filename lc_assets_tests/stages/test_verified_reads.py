"""Damage in a published input never becomes a new version: the stage that reads it fails, names the
file, and publishes nothing.
"""

import json
import re
import shutil
from dataclasses import replace

import msgspec
import pytest

from lc_assets.builds import building, shard_runs, verified_reads
from lc_assets.errors import CorruptFile, DamagedInput
from lc_assets.execution.local import LocalExecutor
from lc_assets.lake.digests import FileFact, digest_of_facts
from lc_assets.lake.receipts import RECEIPT, encode_json, with_checksum
from lc_assets.lake.versions import Published
from lc_assets.loaders.packed import open_packed
from lc_assets.loaders.rows import open_rows
from lc_assets.publishing import publish_bytes
from lc_assets.stages.catalogue import stage_named
from lc_assets.stages.deduplication.removal_checks import removals_add_up
from lc_assets.stages.deduplication.removal_lines import contaminated
from lc_assets_tests.builders import SNAPSHOTS, TinyLake, tiny_lake
from lc_assets_tests.faults import flipped

OLD = SNAPSHOTS[0]
READ = (
    ("filtered_documents", OLD, "*.documents.parquet", "document_signatures", OLD),
    ("filtered_documents", OLD, "*.documents.parquet", "token_documents", OLD),
    ("removed_documents", OLD, "*.parquet", "token_documents", OLD),
    ("document_signatures", OLD, "*.parquet", "signature_index", OLD),
    ("token_documents", OLD, "*.documents.parquet", "token_grid", OLD),
    ("token_documents", OLD, "*.bin", "token_grid", OLD),
    ("token_documents", OLD, "*.idx", "token_grid", OLD),
    ("token_grid", OLD, "train.zarr/c/*/*", "megatron_rows", OLD),
    ("token_grid", OLD, "train.zarr/zarr.json", "longcrawl", "all"),
    ("token_grid", OLD, "rows.parquet", "longcrawl", "all"),
    ("token_grid", OLD, "train.zarr/c/*/*", "longcrawl_flat", "all"),
    ("longcrawl", "all", "train_*.npy", "longcrawl_flat", "all"),
    ("megatron_rows", OLD, "train.idx", "blended_mix", "by-tokens"),
    ("packing_tokens", OLD, "*.bin", "packed_rows", OLD),
)
"""A file of an input, and a stage that reads it."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> TinyLake:
    """A lake in which everything is built; tests repair what they damage."""
    return tiny_lake(tmp_path_factory.mktemp("whole"))


@pytest.mark.parametrize(("upstream", "key", "pattern", "stage", "built"), READ)
@pytest.mark.parametrize("few_bytes", [verified_reads.FEW_BYTES, -1], ids=["here", "in workers"])
def test_no_stage_reads_a_flipped_bit(
    whole, monkeypatch, few_bytes, upstream, key, pattern, stage, built
):
    """In the first and in the last byte: verified in this process and in workers."""
    monkeypatch.setattr(verified_reads, "FEW_BYTES", few_bytes)
    context = replace(whole.context, executor=LocalExecutor(workers=2))
    partition = context.lake.partition(stage, built)
    digest = partition.require().digest
    away = partition.folder.rename(whole.root.parent / "away")
    path = min(context.lake.partition(upstream, key).require().folder.glob(pattern))
    content = path.read_bytes()
    try:
        for at in (0, len(content) - 1):
            flipped(path, at)
            with pytest.raises(CorruptFile, match=f"{re.escape(str(path))}: .*lc rebuild"):
                stage_named(stage).build(context, built)
            assert partition.current() is None
            path.write_bytes(content)
        assert stage_named(stage).build(context, built).published.digest == digest
    finally:
        path.write_bytes(content)
        shutil.rmtree(partition.folder)
        away.rename(partition.folder)


@pytest.mark.parametrize("scheme", ["", "file://"])
@pytest.mark.parametrize(
    ("stage", "key", "name", "opened"),
    [
        ("longcrawl", "all", "train_row.npy", open_rows),
        ("longcrawl", "all", "sources.json", open_rows),
        ("packed_rows", OLD, "train_first_span.npy", open_packed),
        ("packed_rows", OLD, "train_span_stop.npy", open_packed),
        ("packed_rows", OLD, "train_span_document.npy", open_packed),
    ],
)
def test_no_loader_opens_a_flipped_order_or_span(whole, scheme, stage, key, name, opened):
    """From a folder and from a URL; the receipt beside it tells. Without one, it is not known."""
    home = whole.context.lake.partition(stage, key).require().folder
    path, receipt = home / name, home / RECEIPT
    content, facts = path.read_bytes(), receipt.read_bytes()
    try:
        flipped(path, len(content) - 2)
        with pytest.raises(CorruptFile, match=f"{re.escape(f'{scheme}{path}')}: .*lc rebuild"):
            opened(f"{scheme}{home}")
        path.write_bytes(content)
        receipt.unlink()
        opened(f"{scheme}{home}")
    finally:
        path.write_bytes(content)
        receipt.write_bytes(facts)


def test_removals_are_checked_without_reading_texts(whole, monkeypatch):
    """Nor is what a stage does not read compared: the evaluation items' index."""
    lake, read, verify = whole.context.lake, set(), verified_reads.verify_file
    monkeypatch.setattr(
        verified_reads, "verify_file", lambda task: read.add(task[0]) or verify(task)
    )
    with verified_reads.verified_reads(LocalExecutor()):
        published = lake.partition("removed_documents", OLD).require()
        assert removals_add_up(building.check_input_of(lake, published)).passed
        contaminated(lake.partition("contaminated_documents", OLD).require())
    assert read
    assert not [path for path in read if path.match("filtered_documents/*/*/*")]
    assert not [path for path in read if path.match("contaminated_documents/*/*/index/*")]


def test_a_missing_input_is_named(whole):
    """As in a version that someone has cleaned up."""
    tokens = whole.context.lake.partition("token_documents", OLD).require()
    grid = whole.context.lake.partition("token_grid", OLD)
    away = grid.folder.rename(whole.root.parent / "away")
    path = min(tokens.folder.glob("*.bin"))
    gone = path.rename(whole.root.parent / "gone")
    try:
        with pytest.raises(CorruptFile, match=f"{path.name}: is missing"):
            stage_named("token_grid").build(whole.context, OLD)
    finally:
        gone.rename(path)
        shutil.rmtree(grid.folder)
        away.rename(grid.folder)


@pytest.mark.parametrize("stage", ["token_grid", "megatron_rows", "longcrawl", "packed_rows"])
def test_a_file_is_verified_once_per_build(whole, monkeypatch, stage):
    """Also where a stage, its tasks and its checks all read it; and again in the next build."""
    files: list[str] = []
    verify = verified_reads.verify_file

    def counting(task):
        files.append(str(task[0]))
        return verify(task)

    monkeypatch.setattr(verified_reads, "verify_file", counting)
    key = "all" if stage == "longcrawl" else OLD
    partition = whole.context.lake.partition(stage, key)
    away = partition.folder.rename(whole.root.parent / "away")
    try:
        stage_named(stage).build(whole.context, key)
        assert len(files) == len(set(files)) >= 3
        shutil.rmtree(partition.folder)
        once = len(files)
        stage_named(stage).build(whole.context, key)
        assert files[:once] == files[once:]
    finally:
        shutil.rmtree(partition.folder)
        away.rename(partition.folder)


def test_receipts_without_crc32_are_compared_by_sha256(whole):
    """Those of older releases."""
    tokens = whole.context.lake.partition("token_documents", OLD).require()
    grid = whole.context.lake.partition("token_grid", OLD)
    digest = grid.require().digest
    receipt = (tokens.home / RECEIPT).read_bytes()
    files = [FileFact(fact.path, fact.n_bytes, fact.sha256) for fact in tokens.receipt.files]
    older = with_checksum(msgspec.structs.replace(tokens.receipt, files=files))
    assert older.digest == digest_of_facts(files)
    path = min(tokens.folder.glob("*.bin"))
    away = grid.folder.rename(whole.root.parent / "away")
    try:
        (tokens.home / RECEIPT).write_bytes(encode_json(older))
        assert b"crc32" not in (tokens.home / RECEIPT).read_bytes().replace(b".crc32", b"")
        assert Published.at(tokens.home).damage() == []
        flipped(path)
        with pytest.raises(DamagedInput, match=re.escape(str(path))):
            stage_named("token_grid").build(whole.context, OLD)
        flipped(path)
        assert stage_named("token_grid").build(whole.context, OLD).published.digest == digest
    finally:
        (tokens.home / RECEIPT).write_bytes(receipt)
        shutil.rmtree(grid.folder, ignore_errors=True)
        away.rename(grid.folder)


class Killed(Exception):
    """In place of a signal."""


@pytest.mark.parametrize("stage", ["token_documents", "token_grid", "longcrawl_flat"])
@pytest.mark.parametrize("damaged", ["a file of the shard", "what is stored of it", "lost"])
def test_a_damaged_shard_of_a_killed_run_is_computed_again(whole, monkeypatch, stage, damaged):
    """The run ends when all shards are finished; one bit changes, or a file is lost, and the rerun
    has the same digest, with one shard computed.
    """
    key = "all" if stage == "longcrawl_flat" else OLD
    partition = whole.context.lake.partition(stage, key)
    digest = partition.require().digest
    away = partition.folder.rename(whole.root.parent / "away")

    def killed(*_args):
        raise Killed

    try:
        with monkeypatch.context() as patched:
            patched.setattr(building, "version_files", killed)
            with pytest.raises(Killed):
                stage_named(stage).build(whole.context, key)
        (folder,) = partition.folder.glob("*/.scratch")
        memos = sorted(folder.glob("*.json"))
        memo = json.loads(memos[0].read_bytes())
        assert memo[1], "no file is stored"
        path = memos[0] if "stored" in damaged else folder.parent / memo[1][-1]["path"]
        path.unlink() if damaged == "lost" else flipped(path)
        stored: list[str] = []

        def storing(path, content):
            stored.append(path.name)
            publish_bytes(path, content)

        monkeypatch.setattr(shard_runs, "publish_bytes", storing)
        assert stage_named(stage).build(whole.context, key).published.digest == digest
        assert stored == [memos[0].name]
    finally:
        shutil.rmtree(partition.folder)
        away.rename(partition.folder)
