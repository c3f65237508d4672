"""Documents that loop, allocate, crash or nest without end are skipped and counted, or named."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lc_assets.counts import Counts
from lc_assets.errors import WorkerDied
from lc_assets.execution.containment import contained, is_contained, processing, skipping
from lc_assets.execution.executor import Lost, TaskPolicy, _Losses
from lc_assets.execution.local import LocalExecutor
from lc_assets_tests.execution.hostile import (
    Documents,
    note_and_forget,
    note_documents,
    note_together,
    process_documents,
)

SLOW = "skipped: took more than 2 s"
LARGE = "skipped: needed more than 500,000,000 bytes"
TIME = TaskPolicy(document_seconds=2.0)
MEMORY = TaskPolicy(memory_bytes=500_000_000)


class ContainmentContract:
    """Tests of an executor; a subclass has a fixture ``executor_on``, which gives an executor with
    a policy.
    """

    def run(self, executor, *tasks: Documents) -> dict[str, Counts]:
        results = executor.run(process_documents, tasks, what="hostile documents")
        return {task.name: counts for task, counts in results}

    @pytest.mark.parametrize(
        ("policy", "deed", "reason"),
        [
            (TIME, "loop", SLOW),
            (TIME, "nest", SLOW),
            (MEMORY, "allocate", LARGE),
            (MEMORY, "crash", "skipped: killed its worker"),
        ],
    )
    def test_a_hostile_document_is_skipped_and_counted(
        self, executor_on, tmp_path, policy, deed, reason
    ):
        """Everything else of its shard is kept, and so is every other shard."""
        shard = Documents("shard", ("fine", "fine", deed, "fine"), tmp_path)
        other = Documents("other", ("fine",) * 3, tmp_path)
        found = self.run(executor_on(policy), shard, other)
        assert found["shard"] == Counts(seen=4, kept=3, dropped={reason: 1})
        assert found["other"] == Counts(seen=3, kept=3)
        assert shard.attempts == (3 if deed == "crash" else 2), "a crash is given another try"

    def test_several_of_one_shard_are_skipped_one_by_one(self, executor_on, tmp_path):
        policy = TaskPolicy(document_seconds=30, memory_bytes=500_000_000)
        shard = Documents("shard", ("allocate", "fine", "allocate", "crash"), tmp_path)
        found = self.run(executor_on(policy), shard)
        dropped = {LARGE: 2, "skipped: killed its worker": 1}
        assert found["shard"] == Counts(seen=4, kept=1, dropped=dropped)

    def test_more_than_the_policy_allows_end_the_run_by_name(self, executor_on, tmp_path):
        policy = TaskPolicy(document_seconds=2.0, skipped=1)
        shard = Documents("shard", ("fine", "loop", "fine", "loop"), tmp_path)
        with pytest.raises(
            WorkerDied,
            match=r"^shard: document 3 took more than 2 s, after 1 others; at most 1 per task",
        ):
            self.run(executor_on(policy), shard)

    def test_a_policy_that_skips_none_fails_at_the_first(self, executor_on, tmp_path):
        policy = TaskPolicy(memory_bytes=500_000_000, skipped=0)
        shard = Documents("shard", ("fine", "allocate"), tmp_path)
        with pytest.raises(
            WorkerDied, match=r"^shard: document 1 needed more than 500,000,000 bytes; at most 0"
        ):
            self.run(executor_on(policy), shard)
        assert shard.attempts == 1


class TestLocalContainment(ContainmentContract):
    @pytest.fixture(params=[1, 2], ids=["one worker", "two workers"])
    def executor_on(self, request):
        return lambda policy: LocalExecutor(workers=request.param, policy=policy)


def test_nothing_is_skipped_outside_a_worker():
    with processing(3) as skipped:
        assert skipped == ""


@pytest.mark.parametrize("workers", [1, 2])
def test_a_document_without_limits_that_kills_workers_is_named_or_skipped(tmp_path, workers):
    """The one of a function that cannot skip it ends the run at the second loss."""
    executor = LocalExecutor(workers=workers, apart=True)
    shard = Documents("shard", ("fine", "crash", "fine"), tmp_path)
    with pytest.raises(
        WorkerDied, match=r"^shard cost 2 workers at document 1: the last was killed.* for memory"
    ):
        list(executor.run(note_documents, [shard], what="documents"))
    assert shard.attempts == 2
    ((_, counts),) = executor.run(skipping(note_documents), [shard], what="documents")
    assert counts == Counts(seen=3, kept=2, dropped={"skipped: killed its worker": 1})


@pytest.mark.parametrize("workers", [1, 2])
def test_of_documents_that_are_processed_together_the_one_that_kills_is_named_or_skipped(
    tmp_path, workers
):
    """At the second attempt each is alone; the others are kept."""
    executor = LocalExecutor(workers=workers, apart=True)
    shard = Documents("shard", ("fine",) * 5 + ("crash", "fine"), tmp_path)
    with pytest.raises(WorkerDied, match=r"^shard cost 2 workers at document 5: the last was kill"):
        list(executor.run(note_together, [shard], what="documents"))
    assert shard.attempts == 2
    ((_, counts),) = executor.run(skipping(note_together), [shard], what="documents")
    assert counts == Counts(seen=7, kept=6, dropped={"skipped: killed its worker": 1})


def test_documents_that_kill_no_worker_alone_are_named_together():
    lost = Lost("was killed", document=3, last=5)
    losses = _Losses("shard", may_skip=True)
    losses.add(lost, TaskPolicy())
    assert losses.skips == {3: ""}
    with pytest.raises(WorkerDied, match=r"^shard cost 2 workers at one of documents 3 to 5: the "):
        losses.add(lost, TaskPolicy())


def test_a_document_that_kills_workers_although_it_is_skipped_ends_the_run(tmp_path):
    executor = LocalExecutor(apart=True)
    shard = Documents("shard", ("fine", "crash"), tmp_path)
    with pytest.raises(WorkerDied, match=r"^shard cost 2 workers at document 1"):
        list(executor.run(skipping(note_and_forget), [shard], what="documents"))
    assert shard.attempts == 4


def test_a_worker_apart_is_another_process(tmp_path):
    for apart in (False, True):
        shard = Documents(f"{apart}", ("fine",), tmp_path)
        list(LocalExecutor(apart=apart).run(note_documents, [shard], what="documents"))
        (attempt,) = tmp_path.glob(f"{apart}.*")
        assert (attempt.suffix == f".{os.getpid()}") is not apart


def test_an_exception_of_a_document_passes_through():
    with pytest.raises(ValueError, match="bad"), processing(3):
        raise ValueError("bad")


def test_marks_are_found_through_wrappers():
    """Stages wrap a shard function before an executor has it."""
    import functools

    @contained
    def marked(task):
        return task

    def plain(task):
        return task

    assert is_contained(functools.partial(max, marked))
    assert is_contained(marked)
    assert not is_contained(functools.partial(max, plain))


KILLED = """
import sys
from pathlib import Path
from lc_assets.execution.executor import TaskPolicy
from lc_assets.execution.local import LocalExecutor
from lc_assets_tests.execution.hostile import Documents, process_documents

task = Documents("shard", ("fine", "allocate", "fine"), Path(sys.argv[1]))
executor = LocalExecutor(policy=TaskPolicy(memory_bytes=500_000_000))
((_, counts),) = executor.run(process_documents, [task], what="allocate")
print(counts.dropped)
"""


def test_the_process_that_asks_survives(tmp_path):
    """One worker, one task: neither runs in the process that reports."""
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    assert done.stdout == f"{ {LARGE: 1} }\n"
