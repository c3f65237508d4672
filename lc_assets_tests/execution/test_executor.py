"""The loop behind every executor, over workers that are lost as hypothesis likes."""

from collections import Counter

import pytest
from hypothesis import given, strategies as st

from lc_assets.errors import BadInput, WorkerDied
from lc_assets.execution.executor import Done, Lost, TaskPolicy, work_through


class Moody:
    """A crew without processes: ``losses`` says how many workers each task costs, ``order`` in
    which order tasks end.
    """

    def __init__(self, losses, capacity, choose, *, departed=False):
        self.losses, self.n_places, self.choose, self.departed = (
            Counter(losses),
            capacity,
            choose,
            departed,
        )
        self.begun, self.in_hand, self.most = [], {}, 0

    def capacity(self):
        return self.n_places

    def submit(self, function, task, skips):
        assert not skips
        self.begun.append(task)
        handle = len(self.begun)
        self.in_hand[handle] = function, task
        self.most = max(self.most, len(self.in_hand))
        return handle

    def wait(self, handles):
        assert set(handles) == set(self.in_hand)
        handle = self.choose(sorted(handles))
        function, task = self.in_hand.pop(handle)
        if self.losses[task]:
            self.losses[task] -= 1
            return [(handle, Lost("went away", departed=self.departed))]
        return [(handle, Done(function(task)))]


@given(st.data(), st.integers(0, 12), st.integers(1, 5), st.integers(1, 4), st.booleans())
def test_every_task_is_done_once_or_named(data, n_tasks, capacity, deaths, departed):
    """Whatever is lost and in whatever order tasks end: all results, each once, or the first task
    that cost too many.
    """
    losses = {
        task: n for task in range(n_tasks) if (n := data.draw(st.sampled_from([0, 0, 0, 1, 2, 3])))
    }
    pool = Moody(
        losses, capacity, lambda handles: data.draw(st.sampled_from(handles)), departed=departed
    )
    policy = (
        TaskPolicy(departures=deaths, deaths=1)
        if departed
        else TaskPolicy(deaths=deaths, departures=1)
    )
    results = work_through(pool, lambda task: -task, range(n_tasks), policy)
    poison = {task for task, n in losses.items() if n >= deaths}
    if poison:
        with pytest.raises(
            WorkerDied, match=r"^\d+ cost \d (workers|machines): the last went away"
        ) as raised:
            list(results)
        named = int(str(raised.value).split()[0])
        assert named in poison
        assert pool.begun.count(named) == deaths
    else:
        assert sorted(results) == sorted((task, -task) for task in range(n_tasks))
        assert len(pool.begun) == n_tasks + sum(losses.values())
    assert pool.most <= capacity


def test_tasks_are_begun_in_their_order_and_no_more_than_there_is_room():
    pool = Moody({}, 3, min)
    results = work_through(pool, str, range(10_000), TaskPolicy())
    next(results)
    assert pool.begun == [0, 1, 2]


@pytest.mark.parametrize("wrong", [{"deaths": 0}, {"tries": 0}, {"seconds": -1}, {"pause": -1}])
def test_terms_that_mean_nothing_are_refused(wrong):
    with pytest.raises(BadInput, match="at least 1"):
        TaskPolicy(**wrong)
