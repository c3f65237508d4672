"""Published versions that were damaged afterwards: digests find all of it, readers and planner say
it, a rebuild mends it.
"""

import contextlib
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from lc_assets.builds.building import (
    audit,
    check_input_of,
)
from lc_assets.errors import CorruptFile, LcError, NotPublished
from lc_assets.formats.arrays.grid import GridReader
from lc_assets.formats.megatron.gpt_index import read_gpt_index
from lc_assets.formats.megatron.indexed import MegatronReader
from lc_assets.lake.lake import Lake
from lc_assets.lake.partition import CURRENT
from lc_assets.lake.receipts import RECEIPT, Receipt, decode_json, encode_json, with_checksum
from lc_assets.lake.versions import Published
from lc_assets.loaders.rows import open_rows
from lc_assets.orchestration.assets import every_file_is_as_published
from lc_assets.stages.catalogue import STAGES, stage_named
from lc_assets.stages.planning import plan
from lc_assets.vocabulary import SPLITS
from lc_assets_tests.builders import SNAPSHOTS, TinyLake, build_all, tiny_lake
from lc_assets_tests.faults import cut_short, digests, emptied, flipped
from lc_assets_tests.two_versions import SAMPLE

OLD = SNAPSHOTS[0]
NOT_LOOKED_AT = {(".zattrs", "longcrawl_flat")}
"""Files of other programs' formats that hold nothing."""


def gone(path: Path) -> None:
    """Remove the file."""
    path.unlink()


def not_text(path: Path) -> None:
    """Leave a string that is not UTF-8."""
    path.write_bytes(b'{"version": "\xff", "digest": "\xff"}')


def other_words(path: Path, old: str, new: str) -> None:
    """Replace some words."""
    path.write_text(path.read_text().replace(old, new))


FAULTS = (flipped, cut_short, emptied, gone)


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> TinyLake:
    """A lake in which everything is built; a test that damages it repairs it."""
    return tiny_lake(tmp_path_factory.mktemp("whole"))


@contextlib.contextmanager
def spoilt(path: Path, fault, *where) -> Iterator[None]:
    """Spoil a file for the length of a block."""
    content = path.read_bytes()
    try:
        fault(path, *where)
        yield
    finally:
        path.write_bytes(content)


def versions(lake: Lake) -> Iterator[Published]:
    """Every published version of the chain."""
    for found in STAGES:
        yield from lake.published(found.name).values()


def one_of_each_kind(lake: Lake) -> list[tuple[Published, str]]:
    """One file of every kind that every stage publishes, with its version."""
    found: dict[tuple[str, str], tuple[Published, str]] = {}
    for published in versions(lake):
        for fact in published.receipt.files:
            parts = fact.path.split("/")
            kind = (
                "chunk"
                if parts[-1][0].isdigit() and ".zarr" in fact.path
                else parts[-1].partition("-")[2].partition("_")[2] or parts[-1]
            )
            found.setdefault((published.receipt.fingerprint.stage, kind), (published, fact.path))
    return list(found.values())


def test_every_damaged_file_is_found_and_named(whole):
    """Each file of each version in turn, with one bit flipped, cut, emptied and gone: `damage()`
    says that file and no other.
    """
    n_files = 0
    for published in versions(whole.context.lake):
        for fact in published.receipt.files:
            for fault in FAULTS if fact.n_bytes else [gone]:
                with spoilt(published.folder / fact.path, fault):
                    (said,) = published.damage()
                assert said.startswith(f"{fact.path}: ")
            n_files += 1
    assert n_files > 80
    assert all(published.damage() == [] for published in versions(whole.context.lake))


@pytest.mark.parametrize("fault", [cut_short, emptied, gone], ids=lambda fault: fault.__name__)
def test_claims_about_a_damaged_version_fail_in_words(whole, fault):
    """One file of each kind in turn: no claim raises, and one at least fails, naming what could not
    be read.
    """
    for published, name in one_of_each_kind(whole.context.lake):
        stage = stage_named(published.receipt.fingerprint.stage)
        with spoilt(published.folder / name, fault):
            failed = [
                finding
                for finding in audit(stage, check_input_of(whole.context.lake, published))
                if not finding.passed
            ]
        may_be_missing = fault is gone and name.endswith(".crc32")  # as in data of other programs
        assert failed or may_be_missing or (name.rpartition("/")[2], stage.name) in NOT_LOOKED_AT, (
            f"{published.name} {name}"
        )
        assert all(finding.message for finding in failed)


def test_a_flipped_bit_raises_nothing_but_our_errors(whole):
    """Bits all over every kind of file: claims answer, whatever they read; what has a checksum or a
    form is refused.
    """
    refused = set()
    for published, name in one_of_each_kind(whole.context.lake):
        stage = stage_named(published.receipt.fingerprint.stage)
        path = published.folder / name
        n_bytes = path.stat().st_size
        for at in range(0, n_bytes, max(1, n_bytes // 3)):
            with spoilt(path, flipped, at):
                findings = audit(stage, check_input_of(whole.context.lake, published))
            if not all(finding.passed for finding in findings):
                refused.add(f"{stage.name} {path.name}")
    assert {
        "token_grid zarr.json",
        "token_grid 0",
        "token_documents 0000-en_head.idx",
        "longcrawl sources.json",
        "blended_mix mix.json",
    } <= refused


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_a_damaged_chunk_of_the_grid_never_becomes_tokens(whole, fault):
    """The grid, the global order over it and its audit name the file; a hole is no row of some
    token.
    """
    grid = whole.context.lake.partition("token_grid", OLD).require()
    readers = (
        lambda: GridReader(grid.folder / "train.zarr").read(),
        lambda: open_rows(whole.root, "train").read(),
    )
    with spoilt(grid.folder / "train.zarr/c/0/0", fault):
        for read in readers:
            with pytest.raises(CorruptFile, match="train.zarr/c/0/0"):
                read()
        assert len(open_rows(whole.root, "heldout").read()) > 0


@pytest.mark.parametrize(
    ("fault", "words"),
    [(cut_short, "bytes, its .idx promises"), (emptied, "is empty"), (gone, "is missing")],
)
def test_a_cut_bin_is_not_mapped(whole, fault, words):
    """Megatron would read beyond its end, or take what is left for the whole."""
    megatron = whole.context.lake.partition("megatron_rows", OLD).require()
    with (
        spoilt(megatron.folder / "train.bin", fault),
        pytest.raises(CorruptFile, match=rf"train.bin: .*{words}"),
    ):
        MegatronReader(megatron.folder / "train")


@pytest.mark.parametrize("fault", [cut_short, emptied, gone], ids=lambda fault: fault.__name__)
@pytest.mark.parametrize(
    "name", ["train_document_index", "train_sample_index", "train_shuffle_index"]
)
def test_a_cut_index_is_not_mapped(whole, fault, name):
    """Each of the three arrays is named."""
    megatron = whole.context.lake.partition("megatron_rows", OLD).require()
    with spoilt(megatron.folder / f"{name}.npy", fault), pytest.raises(CorruptFile, match=name):
        read_gpt_index(megatron.folder / "train")


@pytest.mark.parametrize(
    "fault", [cut_short, emptied, not_text, gone], ids=lambda fault: fault.__name__
)
@pytest.mark.parametrize("name", [RECEIPT, CURRENT])
@pytest.mark.parametrize(
    "stages",
    [SAMPLE, pytest.param([found.name for found in STAGES], marks=pytest.mark.slow)],
    ids=["some stages", "all stages"],
)
def test_a_damaged_receipt_or_pointer_is_planned_and_built_again(whole, fault, name, stages):
    """The planner names the partition and says why, its followers wait; a build makes it again with
    the same bytes.
    """
    lake, recipe = whole.context.lake, whole.context.recipe
    before = digests(whole.built)
    for published in list(versions(lake)):
        if published.receipt.fingerprint.stage not in stages:
            continue
        path = (published.folder if name == RECEIPT else published.folder.parent) / name
        fault(path)
        made = {found.name: found for found in plan(lake, recipe, SNAPSHOTS)}
        assert made[published.name].status == (
            "missing" if (name, fault) == (CURRENT, gone) else "stale"
        )
        rebuilt = stage_named(published.receipt.fingerprint.stage).build(
            whole.context, published.receipt.fingerprint.key
        )
        assert rebuilt.published.digest == before[published.name]
        assert lake.partition(*published.name.split("/")).require().damage() == []
    assert all(found.status == "current" for found in plan(lake, recipe, SNAPSHOTS))


@pytest.mark.parametrize("fault", [cut_short, gone], ids=lambda fault: fault.__name__)
@pytest.mark.parametrize(
    "stages",
    [SAMPLE, pytest.param([found.name for found in STAGES], marks=pytest.mark.slow)],
    ids=["some stages", "all stages"],
)
def test_a_lost_file_is_planned_and_built_again(whole, fault, stages):
    """The planner names the file; only that version is built, under its name, with the same bytes;
    nothing that reads it is out of date then.
    """
    lake, recipe = whole.context.lake, whole.context.recipe
    for published, name in one_of_each_kind(lake):
        if published.stage not in stages:
            continue
        path = published.folder / name
        content = path.read_bytes()
        if not content:
            continue
        fault(path)
        made = {found.name: found for found in plan(lake, recipe, SNAPSHOTS)}[published.name]
        assert (made.status, made.damaged, made.target) == ("stale", True, published.version)
        assert made.reasons == (f"missing or truncated: {name}",)
        built = stage_named(published.stage).build(whole.context, published.key)
        assert not built.reused
        assert built.published.home == published.home
        assert built.published.digest == published.digest
        assert built.published.damage() == []
        assert path.read_bytes() == content
        assert all(found.status == "current" for found in plan(lake, recipe, SNAPSHOTS))


def test_intact_shards_are_kept_when_a_lost_one_is_built_again(whole):
    """Those that the receipt proves are linked to themselves; a changed one is computed, too."""
    filtered = whole.context.lake.partition("filtered_documents", OLD).require()
    first, second, *others = sorted(filtered.folder.glob("*.documents.parquet"))
    contents = {path: path.read_bytes() for path in (first, second, *others)}
    gone(first)
    flipped(second)
    lines = []
    context = replace(whole.context, say=lines.append)
    stage_named("filtered_documents").build(context, OLD)
    assert lines == [f"filtered_documents/{OLD}: 2 of 3 shards computed, 1 reused unchanged"]
    assert {path: path.read_bytes() for path in contents} == contents


def test_a_receipt_that_contradicts_itself_is_damage(whole):
    """Another fingerprint than its folder's, with a wrong checksum and a right one; a pointer that
    names another digest.
    """
    grid = whole.context.lake.partition("token_grid", OLD).require()
    words = f"receipt.json: the version of its fingerprint is .*, not {grid.folder.name}"
    with spoilt(grid.folder / RECEIPT, other_words, '"row_tokens": 64', '"row_tokens": 65'):
        with pytest.raises(CorruptFile, match="does not match its checksum"):
            Published.at(grid.folder)
        changed = with_checksum(decode_json(grid.folder / RECEIPT, Receipt))
        (grid.folder / RECEIPT).write_bytes(encode_json(changed))
        (said,) = Published.at(grid.folder).damage()
    assert re.fullmatch(words, said)
    partition, words = (
        whole.context.lake.partition("token_grid", OLD),
        "current.json: names digest 000000000000, version",
    )
    with (
        spoilt(partition.folder / CURRENT, other_words, grid.digest, "0" * 64),
        pytest.raises(CorruptFile, match=words),
    ):
        partition.current()


def test_damage_is_mended_as_the_check_says(whole, tmp_path):
    """The check names the files and the folder to remove; without it the planner asks for the
    partition, and the bytes are the same.
    """
    shutil.copytree(whole.root, tmp_path / "lake")
    context = replace(whole.context, lake=Lake(tmp_path / "lake"))
    grid = context.lake.partition("token_grid", OLD).require()
    flipped(grid.folder / "train.zarr/c/0/0")
    said = every_file_is_as_published(grid)
    assert not said.passed
    assert said.message.startswith("train.zarr/c/0/0: digest ")
    assert said.message.endswith(f"remove the folder {grid.folder} and materialize this partition")
    shutil.rmtree(grid.folder)
    statuses = {found.name: found.status for found in plan(context.lake, context.recipe, SNAPSHOTS)}
    assert {name for name, status in statuses.items() if status == "stale"} == {f"token_grid/{OLD}"}
    with pytest.raises(NotPublished, match="not a finished version"):
        stage_named("megatron_rows").build(context, OLD)
    assert digests(build_all(context)) == digests(whole.built)


def test_the_planner_speaks_of_damage_outside_its_list(whole):
    """A snapshot that nobody asked for, but that the order reads, is damaged: the order waits, and
    says for what.
    """
    with spoilt(
        whole.context.lake.partition("token_grid", OLD).require().folder / RECEIPT, cut_short
    ):
        made = {
            found.name: found
            for found in plan(whole.context.lake, whole.context.recipe, SNAPSHOTS[1:])
        }
    assert made["longcrawl/all"].status == "waiting"
    assert "an input cannot be read" in made["longcrawl/all"].reasons[0]
    assert "not a readable receipt" in made["longcrawl/all"].reasons[0]


def test_an_old_version_with_a_damaged_receipt_hinders_nobody(whole, tmp_path):
    """Looking for the version that an audit needs passes over one that cannot be read."""
    partition = whole.context.lake.partition("token_documents", OLD)
    broken = partition.folder / "0broken"
    broken.mkdir()
    (broken / RECEIPT).write_text("{")
    try:
        grid = whole.context.lake.partition("token_grid", OLD).require()
        assert (
            check_input_of(whole.context.lake, grid).only_input("token_documents")
            == partition.require()
        )
        assert partition.with_digest("none") is None
    finally:
        shutil.rmtree(broken)


def test_readers_of_a_lake_without_a_grid_say_so(whole, tmp_path):
    """The order stands, a grid's folder was removed by hand: opening names it."""
    shutil.copytree(whole.root, tmp_path / "lake")
    lake = Lake(tmp_path / "lake")
    shutil.rmtree(lake.partition("token_grid", OLD).folder)
    for split in SPLITS:
        with pytest.raises(LcError, match=f"token_grid/{OLD}/.*: no receipt.json"):
            open_rows(lake.root, split)
