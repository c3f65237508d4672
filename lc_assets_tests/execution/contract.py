"""What every executor keeps, as tests that an executor's own module takes over: the same faults,
the same words.
"""

import pytest

from lc_assets.errors import CorruptFile, Mismatch, WorkerDied
from lc_assets.execution.executor import TaskPolicy
from lc_assets_tests.execution.work import chores, do_chore

QUICK = TaskPolicy(pause=0.01)


class ExecutorContract:
    """Tests of an executor; a subclass has a fixture ``executor_on``, which gives an executor of
    two workers on given terms.
    """

    def test_every_task_gets_its_own_result(self, executor_on, tmp_path):
        tasks = chores(tmp_path, *["double"] * 30)
        found = dict(executor_on(QUICK).run(do_chore, tasks, what="double"))
        assert found == {task: 2 * task.number for task in tasks}

    def test_no_task_is_no_work(self, executor_on):
        assert list(executor_on(QUICK).run(do_chore, [], what="nothing")) == []

    def test_a_failure_is_raised_as_itself(self, executor_on, tmp_path):
        with pytest.raises(CorruptFile, match="^fail-2 is no good$"):
            list(
                executor_on(QUICK).run(
                    do_chore, chores(tmp_path, "double", "double", "fail", "double"), what="fail"
                )
            )

    def test_a_worker_that_dies_once_costs_its_own_task_again_and_nothing_else(
        self, executor_on, tmp_path
    ):
        tasks = chores(tmp_path, *["double"] * 5, "die_once", *["double"] * 20)
        found = dict(executor_on(QUICK).run(do_chore, tasks, what="die once"))
        assert found == {task: 2 * task.number for task in tasks}
        assert [task.begun for task in tasks] == [1] * 5 + [2] + [1] * 20

    def test_a_task_that_always_kills_its_worker_is_named_after_two_deaths(
        self, executor_on, tmp_path
    ):
        tasks = chores(tmp_path, "while", "while", "die", *["while"] * 50)
        with pytest.raises(WorkerDied, match="^die-2 cost 2 workers: the last was killed"):
            list(executor_on(QUICK).run(do_chore, tasks, what="die"))
        assert tasks[2].begun == 2

    def test_more_deaths_when_more_are_granted(self, executor_on, tmp_path):
        tasks = chores(tmp_path, "die", "double")
        with pytest.raises(WorkerDied, match="^die-0 cost 4 workers"):
            list(executor_on(TaskPolicy(deaths=4)).run(do_chore, tasks, what="die"))
        assert tasks[0].begun == 4

    def test_a_task_that_never_returns_is_ended_and_named(self, executor_on, tmp_path):
        tasks = chores(tmp_path, "double", "hang", "double")
        with pytest.raises(
            WorkerDied, match=r"^hang-1 cost 2 workers: the last was ended after 4 s"
        ):
            list(executor_on(TaskPolicy(seconds=4.0)).run(do_chore, tasks, what="hang"))
        assert tasks[1].begun == 2

    def test_a_fault_that_passes_is_tried_again_where_it_was(self, executor_on, tmp_path):
        tasks = chores(tmp_path, "double", "stale_twice")
        found = dict(executor_on(QUICK).run(do_chore, tasks, what="stale"))
        assert found[tasks[1]] == 2
        assert tasks[1].begun == 3

    def test_a_fault_that_stays_is_not(self, executor_on, tmp_path):
        tasks = chores(tmp_path, "full", "double")
        with pytest.raises(OSError, match="No space left"):
            list(executor_on(QUICK).run(do_chore, tasks, what="full"))
        assert tasks[0].begun == 1

    def test_memory_that_runs_out_counts_as_a_death(self, executor_on, tmp_path):
        tasks = chores(tmp_path, "exhaust", "double")
        with pytest.raises(
            WorkerDied, match="^exhaust-0 cost 2 workers: the last ran out of memory"
        ):
            list(executor_on(QUICK).run(do_chore, tasks, what="exhaust"))

    def test_a_result_that_is_data_is_refused(self, executor_on, tmp_path):
        tasks = chores(tmp_path, "answer_much", "double")
        with pytest.raises(
            Mismatch, match=r"answer_much-0: its result has 2\.0 MiB, at most 1\.0 are allowed"
        ):
            list(executor_on(TaskPolicy(result_bytes=1 << 20)).run(do_chore, tasks, what="much"))

    def test_who_stops_asking_ends_the_work(self, executor_on, tmp_path):
        tasks = chores(tmp_path, "double", "hang", "hang", *["double"] * 50)
        results = executor_on(QUICK).run(do_chore, tasks, what="hang")
        next(results)
        results.close()
        assert sum(task.begun for task in tasks) < 40
