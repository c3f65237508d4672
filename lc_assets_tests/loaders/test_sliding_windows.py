"""Sliding windows: as many as the formula message, each what it should hold, whatever the ids lie
in.
"""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from lc_assets.errors import BadInput, CorruptFile
from lc_assets.formats.megatron.idx import bin_path
from lc_assets.formats.megatron.indexed import MegatronReader, MegatronWriter
from lc_assets.loaders.rows import open_rows
from lc_assets.loaders.sliding import SlidingWindows
from lc_assets_tests.grid_builders import write_grid


def token_file(folder, lengths):
    """Documents in which each token is its place in the file."""
    with MegatronWriter.publishing(folder / "numbers", np.dtype(np.uint16)) as writer:
        place = 0
        for length in lengths:
            writer.add(np.arange(place, place + length).astype(np.uint16))
            place += length
    return MegatronReader(folder / "numbers")


@given(n=st.integers(0, 60), context=st.integers(1, 12), stride=st.integers(1, 15))
def test_windows_are_counted_by_trying_every_beginning(n, context, stride):
    whole = [start for start in range(0, n, stride) if start + context + 1 <= n]
    short = [start for start in range(0, n, stride) if start not in whole and n - start > 1][:1]
    for pad, expected in ((None, len(whole)), (0, len(whole) + len(short))):
        settings = {"ids": np.zeros(n, np.uint16), "context_tokens": context, "stride": stride}
        if expected:
            assert len(SlidingWindows(**settings, pad=pad)) == expected
        else:
            with pytest.raises(BadInput, match="a window needs"):
                SlidingWindows(**settings, pad=pad)


@pytest.mark.parametrize("kind", ["memory", "file"])
def test_a_window_is_the_ids_and_the_ids_one_further(tmp_path, kind):
    ids = np.arange(23, dtype=np.uint16)
    source = ids if kind == "memory" else token_file(tmp_path, [9, 14])
    windows = SlidingWindows(ids=source, context_tokens=5, stride=3)
    assert len(windows) == 6
    for number in range(len(windows)):
        window = windows[number]
        assert window.inputs.tolist() == list(range(number * 3, number * 3 + 5))
        assert window.targets.tolist() == list(range(number * 3 + 1, number * 3 + 6))
        assert window.inputs.dtype == window.targets.dtype == np.int64
        assert window.mask.all()
        assert window.positions.tolist() == [0, 1, 2, 3, 4]


def test_rows_of_a_grid_are_streams_of_their_own(tmp_path):
    rows = np.arange(3 * 20, dtype=np.uint16).reshape(3, 20)
    windows = SlidingWindows(
        ids=open_rows(write_grid(tmp_path / "a.zarr", rows)), context_tokens=6, stride=6
    )
    assert len(windows) == 3 * 3
    assert [windows[number].inputs[0] for number in range(len(windows))] == [
        0,
        6,
        12,
        20,
        26,
        32,
        40,
        46,
        52,
    ]


def test_the_last_short_window_is_padded_and_masked_when_asked():
    windows = SlidingWindows(ids=np.arange(1, 9), context_tokens=5, stride=4, pad=0)
    last = windows[len(windows) - 1]
    assert last.inputs.tolist() == [5, 6, 7, 8, 0]
    assert last.targets.tolist() == [6, 7, 8, 0, 0]
    assert last.mask.tolist() == [True, True, True, False, False]


def test_windows_that_stay_hold_one_document(tmp_path):
    windows = SlidingWindows(
        ids=token_file(tmp_path, [7, 3, 12]), context_tokens=4, stride=2, boundaries="stay"
    )
    found = [window.inputs.tolist() for window in map(windows.__getitem__, range(len(windows)))]
    assert found == [
        [0, 1, 2, 3],
        [2, 3, 4, 5],
        [10, 11, 12, 13],
        [12, 13, 14, 15],
        [14, 15, 16, 17],
        [16, 17, 18, 19],
    ]


def test_positions_begin_anew_with_each_document_and_seams_are_not_learnt(tmp_path):
    windows = SlidingWindows(
        ids=token_file(tmp_path, [3, 4, 6]), context_tokens=8, stride=2, boundaries="reset"
    )
    first, second, *_ = map(windows.__getitem__, range(len(windows)))
    assert first.documents.tolist() == [0, 0, 0, 1, 1, 1, 1, 2]
    assert first.positions.tolist() == [0, 1, 2, 0, 1, 2, 3, 0]
    assert first.mask.tolist() == [True, True, False, True, True, True, False, True]
    assert second.inputs.tolist() == list(range(2, 10))
    assert second.positions.tolist() == [0, 0, 1, 2, 3, 0, 1, 2]
    assert second.mask.tolist() == [False, True, True, True, False, True, True, True]


def test_the_last_target_may_be_a_seam(tmp_path):
    windows = SlidingWindows(
        ids=token_file(tmp_path, [4, 4]), context_tokens=4, stride=4, boundaries="reset"
    )
    assert windows[0].mask.tolist() == [True, True, True, False]


def test_an_epochs_order_is_a_shuffle_that_can_be_taken_up_anywhere():
    windows = SlidingWindows(ids=np.arange(500), context_tokens=7, stride=3)
    whole = windows.order(base_seed=4, epoch=2)
    assert sorted(whole.tolist()) == list(range(len(windows)))
    assert windows.order(base_seed=4, epoch=2, first=20).tolist() == whole[20:].tolist()
    assert windows.order(base_seed=6, epoch=0).tolist() == whole.tolist()
    assert windows.order(base_seed=4, epoch=3).tolist() != whole.tolist()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"context_tokens": 0}, "at least 1"),
        ({"stride": 0}, "at least 1"),
        (
            {"context_tokens": 10},
            "a window needs 11 tokens, the longest stream has 10",
        ),
        ({"boundaries": "stop"}, "boundaries 'stop': expected one of ignore, stay, reset"),
        ({"boundaries": "stay"}, "need a token file"),
    ],
)
def test_invalid_arguments_are_refused(settings, message):
    with pytest.raises(BadInput, match=message):
        SlidingWindows(**({"ids": np.arange(10), "context_tokens": 4, "stride": 2} | settings))
    with pytest.raises(IndexError):
        SlidingWindows(ids=np.arange(10), context_tokens=4, stride=2)[3]


@pytest.mark.parametrize(
    ("kind", "boundaries", "pad"),
    [
        ("memory", "ignore", None),
        ("memory", "ignore", 7),
        ("file", "ignore", None),
        ("file", "stay", None),
        ("file", "stay", 7),
        ("file", "reset", 7),
    ],
)
@given(
    lengths=st.lists(st.integers(1, 12), min_size=1, max_size=5),
    context=st.integers(1, 6),
    stride=st.integers(1, 7),
    data=st.data(),
)
def test_a_batch_is_its_windows(
    tmp_path_factory, kind, boundaries, pad, lengths, context, stride, data
):
    """Also where some are short or counted from the end."""
    ids = token_file(tmp_path_factory.mktemp("file"), lengths)
    settings = {"context_tokens": context, "stride": stride, "boundaries": boundaries, "pad": pad}
    try:
        windows = SlidingWindows(ids=ids if kind == "file" else ids.ids.tolist(), **settings)
    except BadInput:
        return
    n = len(windows)
    first = data.draw(st.integers(-n, n - 1))
    numbers = [*range(first, n), *data.draw(st.lists(st.integers(0, n - 1)))]
    one_by_one = [
        np.stack(column) for column in zip(*map(windows.__getitem__, numbers), strict=True)
    ]
    for ours, wanted in zip(windows.batch(numbers), one_by_one, strict=True):
        np.testing.assert_array_equal(ours, wanted)
        assert ours.dtype == wanted.dtype
    np.testing.assert_array_equal(windows.pairs(numbers), one_by_one[:2])
    for beyond in (n, -n - 1):
        with pytest.raises(IndexError):
            windows.batch([0, beyond])


def test_a_batch_of_a_damaged_file_is_refused(tmp_path):
    path = bin_path(token_file(tmp_path, [200]).prefix)
    path.write_bytes(b"\1" + path.read_bytes()[1:])
    windows = SlidingWindows(ids=MegatronReader(tmp_path / "numbers"), context_tokens=5, stride=3)
    with pytest.raises(CorruptFile, match="checksum"):
        windows.pairs([0, 1])
