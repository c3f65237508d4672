"""Windows of a token file: every window once an epoch, in an order that any step can compute."""

import hashlib
import pickle

import numpy as np
import pytest
from hypothesis import given, strategies as st

from lc_assets.errors import BadInput, CorruptFile
from lc_assets.formats.megatron.idx import bin_path
from lc_assets.formats.megatron.indexed import MegatronWriter
from lc_assets.loaders.contracts import (
    assert_ranks_share_every_batch,
    assert_reading_ahead_changes_nothing,
    assert_resume_gives_the_rest,
    assert_step_is_enough,
)
from lc_assets.loaders.windows import Permutation, WindowLoader


def write_numbers(prefix, lengths, dtype=np.uint16):
    """Documents in which each token is its place in the file."""
    with MegatronWriter.publishing(prefix, np.dtype(dtype)) as writer:
        place = 0
        for length in lengths:
            writer.add(np.arange(place, place + length).astype(dtype))
            place += length
    return prefix


@pytest.fixture(scope="module")
def numbers(tmp_path_factory):
    """1,000 tokens in three documents."""
    return write_numbers(tmp_path_factory.mktemp("windows") / "numbers", [300, 1, 699])


@given(n=st.integers(1, 3000), key=st.text(max_size=5))
def test_a_permutation_names_every_number_once(n, key):
    """For lengths on both sides of every power of two."""
    assert sorted(Permutation(n, key).at(np.arange(n)).tolist()) == list(range(n))


def plain_permutation(n, key, position):
    """The same in whole numbers of Python, one position at a time."""
    half = max((n - 1).bit_length() + 1, 2) // 2
    while True:
        left, right = position >> half, position & ((1 << half) - 1)
        for number in range(10):
            mixed = (
                (
                    right
                    ^ int.from_bytes(
                        hashlib.sha256(f"{key}/{number}".encode()).digest()[:8], "little"
                    )
                )
                * 0xBF58476D1CE4E5B9
                % 2**64
            )
            mixed = (mixed ^ mixed >> 29) * 0x94D049BB133111EB % 2**64
            left, right = right, left ^ mixed >> (64 - half)
        position = left << half | right
        if position < n:
            return position


@given(n=st.integers(1, 2**61), key=st.text(max_size=5), data=st.data())
def test_a_permutation_equals_a_plain_one(n, key, data):
    positions = data.draw(st.lists(st.integers(0, n - 1), max_size=8))
    assert Permutation(n, key).at(np.array(positions, np.int64)).tolist() == [
        plain_permutation(n, key, each) for each in positions
    ]


def test_a_permutation_is_the_same_everywhere():
    """Neither numpy's random numbers nor this machine decide it: these are its first numbers for
    ever.
    """
    assert Permutation(1000, "a").at(np.arange(5)).tolist() == [995, 361, 569, 44, 339]
    big = Permutation(2**40, "a").at(np.array([0, 2**40 - 1]))
    assert ((big >= 0) & (big < 2**40)).all()


def test_permutations_are_uniform():
    """Over 12,000 keys the 24 orders of four come equally often: chi-square below its 99.9 %
    quantile at 23 degrees.
    """
    orders = [tuple(Permutation(4, f"{key}").at(np.arange(4)).tolist()) for key in range(12_000)]
    counts = np.array([orders.count(order) for order in set(orders)])
    assert len(counts) == 24
    assert float(((counts - 500) ** 2 / 500).sum()) < 49.7


@given(st.data())
def test_an_epoch_visits_every_window_once(numbers, data):
    """Whatever context, stride and batch: the windows are those of the file, none twice, and those
    left out are counted.
    """
    context, stride, batch = (
        data.draw(st.integers(1, 200)),
        data.draw(st.integers(1, 300)),
        data.draw(st.integers(1, 3)),
    )
    loader = WindowLoader(
        numbers,
        batch_windows=batch,
        context_tokens=context,
        stride=stride,
        seed=data.draw(st.integers(0, 3)),
    )
    starts = [start for step in range(len(loader)) for start in loader.starts_of(step).tolist()]
    every = [start for start in range(0, 1000, stride) if start + context + 1 <= 1000]
    assert loader.n_windows == len(every)
    assert len(starts) == len(set(starts)) == len(every) - loader.n_windows % batch
    assert set(starts) <= set(every)
    for step in (0, len(loader) - 1):
        batch_ = loader[step]
        np.testing.assert_array_equal(
            batch_.text, loader.starts_of(step)[:, None] + np.arange(context)
        )
        np.testing.assert_array_equal(batch_.targets, batch_.text + 1)


def test_every_token_is_a_target_once(numbers):
    """With the usual stride: windows lie side by side, each begins with the last token of the one
    before it.
    """
    loader = WindowLoader(numbers, batch_windows=3, context_tokens=37)
    targets = np.sort(np.concatenate([batch.targets.ravel() for batch in loader]))
    np.testing.assert_array_equal(targets, np.arange(1, 1 + 27 * 37))


def test_the_loader_keeps_its_contracts(numbers):
    def make(rank=0, n_ranks=1, prefetch=0, threads=1):
        more = {"rank": rank, "n_ranks": n_ranks, "prefetch": prefetch, "threads": threads}
        return WindowLoader(
            numbers, batch_windows=12, context_tokens=5, stride=2, epochs=2, seed=4, **more
        )

    assert_step_is_enough(make(), steps=range(len(make())))
    assert_resume_gives_the_rest(make, stop_after=50)
    assert_ranks_share_every_batch(make, world_sizes=[2, 3, 12], steps=range(0, len(make()), 7))
    assert_resume_gives_the_rest(make, world_sizes=[3, 4, 1], stop_after=20)
    assert_reading_ahead_changes_nothing(
        lambda n, t: make(prefetch=n, threads=t), prefetches=[(1, 1), (4, 3)]
    )


def test_epochs_differ_and_seeds_differ(numbers):
    loader = WindowLoader(numbers, batch_windows=9, context_tokens=100, epochs=3)
    assert len(loader) == 3
    orders = [tuple(loader.starts_of(step).tolist()) for step in range(3)]
    other = WindowLoader(numbers, batch_windows=9, context_tokens=100, seed=1)
    assert len({*orders, tuple(other.starts_of(0).tolist())}) == 4
    plain = WindowLoader(numbers, batch_windows=9, context_tokens=100, shuffled=False)
    assert plain.starts_of(0).tolist() == list(range(0, 900, 100))


def test_a_state_of_another_order_or_file_is_refused(numbers, tmp_path):
    state = WindowLoader(numbers, batch_windows=3, context_tokens=10, seed=1).state_dict()
    for other, name in (
        (WindowLoader(numbers, batch_windows=3, context_tokens=10), "seed"),
        (WindowLoader(numbers, batch_windows=3, context_tokens=10, seed=1, stride=5), "stride"),
        (
            WindowLoader(
                write_numbers(tmp_path / "b", [1000]), batch_windows=3, context_tokens=10, seed=1
            ),
            "data",
        ),
    ):
        with pytest.raises(BadInput, match=f"its {name} is"):
            other.load_state_dict(state)


def test_batches_are_of_the_wanted_dtype_and_the_readers_own(numbers):
    assert WindowLoader(numbers, batch_windows=3, context_tokens=10)[0].text.dtype == np.uint16
    loader = WindowLoader(numbers, batch_windows=3, context_tokens=10, dtype=np.int64)
    before = loader[0].targets.copy()
    assert before.dtype == np.int64
    loader[0].targets[:] = 7
    np.testing.assert_array_equal(loader[0].targets, before)


def test_a_loader_can_be_sent_to_another_process(numbers):
    """It opens the file there; the ids are not sent."""
    loader = WindowLoader(numbers, batch_windows=4, context_tokens=10, seed=3, rank=1, n_ranks=2)
    loader.step = 5
    sent = pickle.dumps(loader)
    # How multiprocessing sends objects; nothing stored is read so.
    copy = pickle.loads(sent)  # noqa: S301
    assert len(sent) < 2000
    assert copy.state_dict() == loader.state_dict()
    np.testing.assert_equal(copy[5], loader[5])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"context_tokens": 1000}, "a window needs 1,001 tokens, the file has 1,000"),
        (
            {"batch_windows": 100},
            "batch_windows must be 1 to 99, the windows of .*numbers.bin, got 100",
        ),
        ({"batch_windows": 0}, "batch_windows must be 1 to 99"),
        ({"stride": 0}, "must be at least 1, got 10, 0 and 1"),
        ({"epochs": 0}, "must be at least 1"),
        ({"context_tokens": 0}, "must be at least 1"),
        ({"n_ranks": 2}, "2 ranks cannot share 3 windows equally: use one of 1, 3 ranks"),
        ({"rank": 3, "n_ranks": 3}, "there is no rank 3 of 3"),
    ],
)
def test_invalid_arguments_are_refused(numbers, settings, message):
    with pytest.raises(BadInput, match=message):
        WindowLoader(numbers, **({"batch_windows": 3, "context_tokens": 10} | settings))


@pytest.mark.parametrize("step", [-1, 33])
def test_a_step_outside_is_an_index_error(numbers, step):
    with pytest.raises(IndexError, match="there are 33, numbered from 0"):
        WindowLoader(numbers, batch_windows=3, context_tokens=10)[step]


def test_a_truncated_file_is_damage(tmp_path):
    prefix = write_numbers(tmp_path / "cut", [100])
    bin_path(prefix).write_bytes(bin_path(prefix).read_bytes()[:-2])
    with pytest.raises(CorruptFile, match="198 bytes, its .idx promises 200"):
        WindowLoader(prefix, batch_windows=1, context_tokens=10)
