"""A disk that runs full, or may not be written to, in every stage: said plainly, nothing published,
gone on with later.

The disks are real: small tmpfs mounts, made smaller and larger while they are mounted. Where
mounting is refused these tests are skipped.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace

import pytest

from lc_assets.builds.stage import BuildContext
from lc_assets.errors import NotWritable, StorageFull
from lc_assets.execution.local import LocalExecutor
from lc_assets.lake.lake import Lake
from lc_assets.lake.versions import Published
from lc_assets.loaders.rows import open_rows
from lc_assets.stages.catalogue import STAGES, stage_named
from lc_assets.stages.planning import plan
from lc_assets_tests.builders import (
    SNAPSHOTS,
    TinyLake,
    build_all,
    tiny_upstream,
    wanted_steps,
)
from lc_assets_tests.faults import digests, with_policies
from lc_assets_tests.named_draws import rng_for
from lc_assets_tests.small_disks import PAGE, ROOMY, Disk, doubling, small_disk
from lc_assets_tests.two_versions import all_wanted, key_of, left_behind, sampled

OLD = SNAPSHOTS[0]
STAGES = [found.name for found in STAGES]
PLAIN = [found.name for found in wanted_steps()]
EVERY = sampled(STAGES)
N_RANDOM = 12


@pytest.fixture
def disk(tmp_path) -> Iterator[Disk]:
    with small_disk(tmp_path / "disk") as found:
        yield found


@pytest.fixture(scope="module")
def roomy(published_lake) -> TinyLake:
    """The chain on a disk with room for it."""
    return published_lake


@pytest.fixture(scope="module")
def everything(tmp_path_factory) -> TinyLake:
    """Every stage there is on a disk with room for it."""
    folder = tmp_path_factory.mktemp("everything")
    context = all_wanted(folder, tiny_upstream(folder / "upstream"))
    return TinyLake(context, build_all(context))


@pytest.fixture
def with_room(request, stage) -> TinyLake:
    """The smaller one of the two in which a stage is built."""
    return request.getfixturevalue("roomy" if stage in PLAIN else "everything")


def on_disk(disk: Disk, roomy: TinyLake, stage: str) -> BuildContext:
    """A context whose lake lies on the small disk and holds all that stands before a stage."""
    lake = Lake(disk.folder / "lake")
    for before in STAGES[: STAGES.index(stage)]:
        if (roomy.root / before).is_dir():
            shutil.copytree(roomy.root / before, lake.root / before)
    return replace(roomy.context, lake=lake)


def fill_until_it_fits(
    disk: Disk, context: BuildContext, stage: str, sizes: Iterator[int]
) -> tuple[Published, int]:
    """Build one partition with ever more room; each time the disk is full, nothing of it is
    published.
    """
    partition = context.lake.partition(stage, key_of(stage))
    for n_full, n_bytes in enumerate(sizes):
        disk.leave(n_bytes)
        try:
            return stage_named(stage).build(context, key_of(stage)).published, n_full
        except StorageFull as error:
            words = str(error)
        assert re.fullmatch(
            f"the disk is full while writing {context.lake.root}.*: nothing was published; free "
            "some .*",
            words,
        )
        assert partition.current() is None
    raise AssertionError("the disk is full, however large")


@pytest.mark.parametrize("stage", EVERY)
def test_a_full_disk_publishes_nothing_and_room_lets_the_stage_go_on(disk, with_room, stage):
    """No room at all, then 1, 2, 4 … pages: every attempt but the last says that the disk is full;
    the last has the same bytes as ever.
    """
    context = on_disk(disk, with_room, stage)
    published, n_full = fill_until_it_fits(disk, context, stage, doubling())
    assert n_full >= 2
    assert published.digest == with_room.built[f"{stage}/{key_of(stage)}"].published.digest
    assert published.damage() == []
    assert not list(context.lake.root.rglob(".staging-*"))
    assert not list(context.lake.root.rglob(".scratch"))


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("stage", STAGES)
def test_a_disk_that_runs_full_at_a_random_place_publishes_nothing_or_all(disk, with_room, stage):
    """Each time from the beginning, with room for a part drawn at random; what stopped goes on when
    there is room, with the same bytes.
    """
    context, rng = on_disk(disk, with_room, stage), rng_for("full disks", seed=64, key=stage)
    partition, wanted = (
        context.lake.partition(stage, key_of(stage)),
        with_room.built[f"{stage}/{key_of(stage)}"].published,
    )
    n_pages = 2 + 2 * sum(-(-fact.n_bytes // PAGE) for fact in wanted.receipt.files)
    n_full = 0
    for free in rng.integers(n_pages, size=N_RANDOM).tolist():
        subprocess.run(["rm", "-rf", str(partition.folder)], check=True)
        disk.leave(free * PAGE)
        try:
            stage_named(stage).build(context, key_of(stage))
        except StorageFull:
            n_full += 1
            assert partition.current() is None
        disk.leave(ROOMY)
        assert stage_named(stage).build(context, key_of(stage)).published.digest == wanted.digest
        assert partition.require().damage() == left_behind(partition) == []
    print(f"\n{stage}: full {n_full} times of {N_RANDOM}")
    assert n_full


@pytest.mark.slow
@pytest.mark.parametrize("stage", PLAIN)
def test_a_disk_that_runs_full_anywhere_publishes_nothing(disk, with_room, stage):
    """One page more each time, from nothing, and each attempt from the beginning: full at every
    place a stage can be, among them the receipt, the pointer and a file where it writes one.
    """
    context = on_disk(disk, with_room, stage)
    partition = context.lake.partition(stage, key_of(stage))

    def one_page_more() -> Iterator[int]:
        for n_pages in range(400):
            subprocess.run(["rm", "-rf", str(partition.folder)], check=True)
            yield n_pages * PAGE

    published, n_full = fill_until_it_fits(disk, context, stage, one_page_more())
    assert n_full >= 2 + bool(published.receipt.files)
    assert published.digest == with_room.built[f"{stage}/{key_of(stage)}"].published.digest


def test_the_old_version_stays_while_the_disk_is_full(disk, roomy):
    """With other settings and no room the published documents are still there and whole; with room
    the new ones are.
    """
    context = on_disk(disk, roomy, "token_documents")
    before = context.lake.partition("filtered_documents", OLD).require()
    stricter = with_policies(context, min_words=80)
    disk.leave(2 * PAGE)
    with pytest.raises(StorageFull):
        stage_named("filtered_documents").build(stricter, OLD)
    assert context.lake.partition("filtered_documents", OLD).require() == before
    assert before.damage() == []
    disk.leave(ROOMY)
    after = stage_named("filtered_documents").build(stricter, OLD)
    assert after.counts.kept < 27
    assert context.lake.partition("filtered_documents", OLD).require() == after.published


def test_a_worker_process_says_that_the_disk_is_full(disk, roomy):
    """The sentence arrives from another process; two workers then complete with the same bytes."""
    executor = LocalExecutor(workers=2, preload=("lc_assets.stages.catalogue",))
    context = replace(on_disk(disk, roomy, "token_documents"), executor=executor)
    disk.leave(5 * PAGE)
    with pytest.raises(StorageFull, match="the disk is full while writing"):
        stage_named("token_documents").build(context, OLD)
    assert context.lake.partition("token_documents", OLD).current() is None
    disk.leave(ROOMY)
    assert (
        stage_named("token_documents").build(context, OLD).published.digest
        == roomy.built[f"token_documents/{OLD}"].published.digest
    )


@pytest.mark.parametrize("stage", EVERY)
def test_a_lake_that_may_not_be_written_to_says_so(disk, with_room, stage):
    """The folder is named, nothing is changed, what stands published is read and planned; writable
    again, the stage completes.
    """
    context = on_disk(disk, with_room, stage)
    (disk.folder / "lake").mkdir(exist_ok=True)
    before = sorted(context.lake.root.rglob("*"))
    disk.be_writable(False)
    with pytest.raises(
        NotWritable,
        match=rf"{context.lake.root}/{stage}.*: Read-only file system.*nothing was published; look at owner",
    ):
        stage_named(stage).build(context, key_of(stage))
    assert sorted(context.lake.root.rglob("*")) == before
    assert {made.name: made.status for made in plan(context.lake, context.recipe, SNAPSHOTS)}[
        f"{stage}/{key_of(stage)}"
    ] == "missing"
    disk.be_writable(True)
    assert (
        stage_named(stage).build(context, key_of(stage)).published.digest
        == with_room.built[f"{stage}/{key_of(stage)}"].published.digest
    )


def test_a_lake_that_becomes_read_only_is_still_read(disk, roomy):
    """Readers, planner and audits need no right to write."""
    context = replace(roomy.context, lake=Lake(disk.folder / "lake"))
    built = build_all(context)
    assert digests(built) == digests(roomy.built)
    disk.be_writable(False)
    assert open_rows(context.lake.root, "train").read().shape == (37, 64)
    assert all(made.status == "current" for made in plan(context.lake, context.recipe, SNAPSHOTS))
    assert all(found.published.damage() == [] for found in built.values())


def test_a_lake_that_is_a_file_says_so(roomy, tmp_path):
    """A path that was given by mistake is named, and the file is left alone."""
    (tmp_path / "lake").write_text("my notes")
    context = replace(roomy.context, lake=Lake(tmp_path / "lake"))
    with pytest.raises(NotWritable, match=f"{tmp_path}/lake.*: (Not a directory|File exists)"):
        stage_named("raw_snapshot").build(context, OLD)
    assert (tmp_path / "lake").read_text() == "my notes"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write where permissions forbid it")
def test_a_folder_without_permission_says_so(roomy, tmp_path):
    """Somebody else's folder is named."""
    (tmp_path / "lake").mkdir(mode=0o555)
    context = replace(roomy.context, lake=Lake(tmp_path / "lake"))
    with pytest.raises(NotWritable, match=f"{tmp_path}/lake.*: Permission denied"):
        stage_named("raw_snapshot").build(context, OLD)
