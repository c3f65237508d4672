"""Building a version: audited before it is published, found again when nothing changed, resumed
after a kill.
"""

import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from lc_assets.builds.building import (
    audit,
    check_input_of,
)
from lc_assets.builds.recipe import Recipe
from lc_assets.builds.stage import (
    ALL_SNAPSHOTS,
    SAME_SNAPSHOT,
    BuildContext,
    CheckResult,
    Stage,
)
from lc_assets.counts import Counts
from lc_assets.errors import Busy, CheckFailed, NotPublished, StorageFull
from lc_assets.execution.local import LocalExecutor
from lc_assets.lake import staging
from lc_assets.lake.digests import digest_of
from lc_assets.lake.lake import Lake
from lc_assets.lake.upstream import Upstream
from lc_assets.publishing import publish_bytes
from lc_assets_tests.builders import build


def it_says_hello(evidence):
    """The file says hello."""
    said = (evidence.folder / "a.txt").read_bytes()
    return CheckResult(check="it_says_hello", passed=said == b"hello", message=f"it says {said!r}")


def it_is_short(evidence):
    """The file is short."""
    n_bytes = (evidence.folder / "a.txt").stat().st_size
    return CheckResult(
        check="it_is_short", passed=n_bytes < 4, message=f"{n_bytes} bytes", severity="warning"
    )


def a_stage(**changes):
    fields = {
        "name": "toy",
        "code_version": "1",
        "reads": {},
        "params": lambda recipe, key: {"min_words": recipe.filtered_documents.min_words},
        "checks": (it_says_hello, it_is_short),
        "write": lambda context, staging: saying(b"hello")(staging),
    }
    return Stage(**(fields | changes))


@pytest.fixture
def context(tmp_path):
    return BuildContext(
        lake=Lake(tmp_path),
        upstream=Upstream("memory://none"),
        recipe=Recipe(),
        executor=LocalExecutor(),
    )


def saying(words, calls=None):
    def fill(draft):
        if calls is not None:
            calls.append(draft.folder.name)
        publish_bytes(draft.folder / "a.txt", words)
        return Counts(seen=1, kept=1)

    return fill


def test_what_is_built_is_published_with_its_findings(context):
    """A warning does not block; the receipt states counts, settings and what it was made of."""
    table = pa.table({"path": ["a"]})
    stage = a_stage(outside={"upstream": lambda context, key: table})
    built = build(context, stage, "k", saying(b"hello"))
    assert context.lake.partition("toy", "k").require() == built.published
    assert [(finding.check, finding.passed) for finding in built.findings] == [
        ("it_says_hello", True),
        ("it_is_short", False),
    ]
    assert built.published.receipt.fingerprint.inputs == {"upstream": digest_of(table.to_pylist())}
    assert built.published.receipt.fingerprint.params == {"min_words": 16000}
    assert built.published.receipt.measured["peak_rss_mb"] > 1
    assert built.published.damage() == []


def test_nothing_is_done_twice(context):
    """The same inputs, settings and code: nothing is computed, nothing is written."""
    calls = []
    first = build(context, a_stage(), "k", saying(b"hello", calls))
    before = sorted(
        (path, path.stat().st_mtime_ns)
        for path in context.lake.root.rglob("*")
        if path.name != ".lock"
    )
    again = build(context, a_stage(), "k", saying(b"hello", calls))
    after = sorted(
        (path, path.stat().st_mtime_ns)
        for path in context.lake.root.rglob("*")
        if path.name != ".lock"
    )
    assert len(calls) == 1
    assert again.reused
    assert again.published == first.published
    assert before == after


def test_going_back_to_old_settings_finds_the_old_version(context):
    """Version 1, then 2, then 1 again: the third build computes nothing and publishes the first's
    files.
    """
    calls = []
    first = build(context, a_stage(), "k", saying(b"hello", calls))
    build(context, a_stage(code_version="2"), "k", saying(b"hello", calls))
    third = build(context, a_stage(), "k", saying(b"hello", calls))
    assert len(calls) == 2
    assert context.lake.partition("toy", "k").require() == third.published == first.published


def test_the_same_bytes_have_the_same_data_version(context):
    """A new code version that changes no byte makes nothing downstream stale."""
    first = build(context, a_stage(), "k", saying(b"hello"))
    second = build(context, a_stage(code_version="2"), "k", saying(b"hello"))
    assert first.published.folder != second.published.folder
    assert first.published.digest == second.published.digest


def test_a_failed_audit_publishes_nothing(context):
    """The old version stays, the error names the claim, the rejected files can be looked at, a
    rerun starts anew.
    """
    first = build(context, a_stage(), "k", saying(b"hello"))
    with pytest.raises(
        CheckFailed, match="toy/k is not published.*it_says_hello: it says b'hullo'.*rejected-"
    ):
        build(context, a_stage(code_version="2"), "k", saying(b"hullo"))
    assert context.lake.partition("toy", "k").require() == first.published
    (rejected,) = context.lake.partition("toy", "k").folder.glob("rejected-*")
    assert (rejected / "a.txt").read_bytes() == b"hullo"
    repaired = build(context, a_stage(code_version="2"), "k", saying(b"hello"))
    assert not repaired.reused


def test_a_full_disk_publishes_nothing_and_a_rerun_goes_on(context):
    """ENOSPC anywhere in a stage becomes StorageFull; the partition is still unpublished, then
    built.
    """

    def fill(draft):
        raise OSError(28, "No space left on device")

    with pytest.raises(StorageFull, match="free some space"):
        build(context, a_stage(), "k", fill)
    assert context.lake.partition("toy", "k").current() is None
    assert not build(context, a_stage(), "k", saying(b"hello")).reused


def test_two_runs_of_one_partition_do_not_interleave(context, monkeypatch):
    """While another process holds the partition, a run waits a while and then says so."""
    monkeypatch.setattr(staging, "BUSY_SECONDS", 0.1)
    partition = context.lake.partition("toy", "k")
    with (
        staging.locked(partition.folder),
        pytest.raises(Busy, match="toy/k: another command has been working there"),
    ):
        build(context, a_stage(), "k", saying(b"hello"))


def test_inputs_are_the_published_versions(context):
    """A stage's inputs are named with their digests, and it can find those very versions later."""
    upstream = build(context, a_stage(), "k", saying(b"hello"))
    reads = a_stage(name="reader", reads={"toy": SAME_SNAPSHOT}, checks=())
    built = build(context, reads, "k", saying(b"x"))
    assert built.published.receipt.fingerprint.inputs == {"toy/k": upstream.published.digest}
    build(context, a_stage(code_version="2", checks=()), "k", saying(b"other"))
    assert (
        check_input_of(context.lake, built.published).only_input("toy").folder
        == upstream.published.folder
    )
    with pytest.raises(NotPublished, match="toy/other is not published"):
        build(context, reads, "other", saying(b"x"))


def test_a_global_stage_reads_every_partition_it_wants(context):
    """All published partitions are inputs, or those that it chooses."""
    for key in ("a", "b", "c"):
        build(context, a_stage(), key, saying(b"hello"))
    everything = a_stage(name="all", reads={"toy": ALL_SNAPSHOTS}, checks=())
    some = a_stage(
        name="some",
        checks=(),
        reads={"toy": ALL_SNAPSHOTS.where(lambda recipe, key, other: other != "b")},
    )
    assert list(
        build(context, everything, "all", saying(b"x")).published.receipt.fingerprint.inputs
    ) == ["toy/a", "toy/b", "toy/c"]
    assert list(build(context, some, "all", saying(b"x")).published.receipt.fingerprint.inputs) == [
        "toy/a",
        "toy/c",
    ]


def test_an_audit_reads_what_stands_published(context):
    """The same claims, tested again later, see a change on disk."""
    stage = a_stage()
    built = build(context, stage, "k", saying(b"hello"))
    assert all(
        finding.passed
        for finding in audit(stage, check_input_of(context.lake, built.published))
        if finding.severity == "error"
    )
    (built.published.folder / "a.txt").write_bytes(b"hullo")
    assert not audit(stage, check_input_of(context.lake, built.published))[0].passed


KILLED_AT = """
import os, signal, sys
from dataclasses import dataclass
from pathlib import Path
from lc_assets.execution.local import LocalExecutor
from lc_assets.builds.building import run_shards
from lc_assets.builds.stage import (Stage, BuildContext,)
from lc_assets.builds.recipe import Recipe
from lc_assets import publishing
from lc_assets.lake.lake import Lake
from lc_assets.publishing import publish_bytes
from lc_assets.lake.upstream import Upstream
from lc_assets.counts import Counts

@dataclass(frozen=True)
class Task:
    folder: Path
    name: str

def work(task):
    print("did", task.name)
    publish_bytes(task.folder / task.name, task.name.encode())
    return Counts(seen=1, kept=1)

steps, kill_at, real = 0, int(sys.argv[2]), publishing.flush

def flush(path):
    global steps
    steps += 1
    if steps == kill_at:
        os.kill(os.getpid(), signal.SIGKILL)
    real(path)

publishing.flush = flush
context = BuildContext(lake=Lake(Path(sys.argv[1])), upstream=Upstream("memory://x"), recipe=Recipe(), executor=LocalExecutor())
stage = Stage(name="toy", code_version=sys.argv[3], reads={}, write=lambda context, draft: run_shards(context, draft, work, [Task(draft.folder, name) for name in "abc"], what="x"), params=lambda r, k: {}, checks=())
built = stage.build(context, "k")
print("digest", built.published.digest, built.counts.kept)
"""


def run_until(lake: Path, kill_at: int, code_version: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "-c", KILLED_AT, str(lake), str(kill_at), code_version]
    return subprocess.run(
        command, check=False, capture_output=True, text=True, cwd=Path(__file__).parents[2]
    )


def test_a_kill_at_every_flush_leaves_the_old_or_the_new(tmp_path):
    """SIGKILL at each fsync of a build in turn: the old version stands until the new does, and a
    rerun gives the same bytes.
    """
    lake = Lake(tmp_path / "lake")
    whole = run_until(tmp_path / "other", 0, "2").stdout.splitlines()[-1]
    run_until(lake.root, 0, "1")
    old = lake.partition("toy", "k").require()
    kills = 0
    for kill_at in range(1, 100):
        ended = run_until(lake.root, kill_at, "2")
        now = lake.partition("toy", "k").require()
        assert now.damage() == []
        if ended.returncode == 0:
            assert ended.stdout.splitlines()[-1] == whole
            break
        assert ended.returncode == -signal.SIGKILL
        assert now == old or ended.stdout.count("did") == 0
        kills += 1
    assert kills > 3


def test_a_rerun_after_a_kill_does_only_what_is_missing(tmp_path):
    """Killed in the middle of the second of three shards, the rerun does the second and the
    third.
    """
    killed = run_until(tmp_path, 11, "1")  # four flushes are of new folders' names
    assert killed.returncode == -signal.SIGKILL
    assert killed.stdout.split() == ["did", "a", "did", "b"]
    again = run_until(tmp_path, 0, "1")
    assert again.stdout.split()[:4] == ["did", "b", "did", "c"]
    assert Lake(tmp_path).partition("toy", "k").require().damage() == []
    assert not list(tmp_path.rglob(".staging-*"))
    assert not list(tmp_path.rglob(".scratch"))
