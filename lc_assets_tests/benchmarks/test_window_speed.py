"""Windows of a token file in random order, against what a course's data set and Megatron's do. Run
with ``-s`` to see the figures.

Batches of 32 × 1,024 as int64. Megatron's way needs no Megatron: its ``IndexedDataset.get`` is a
slice of a mapped file, which `MegatronReader.read` is, too; its samples are then stacked.
"""

import collections
import itertools

import numpy as np
import pytest

from lc_assets.formats.megatron.indexed import MegatronReader, MegatronWriter
from lc_assets.loaders.windows import WindowLoader
from lc_assets_tests.benchmarks.timing import median_seconds
from lc_assets_tests.benchmarks.token_rows import token_rows

BATCH, CONTEXT, N_STEPS = 32, 1024, 400
N_ROWS, ROW_TOKENS = 512, 65_536


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    _, rows = token_rows(N_ROWS, ROW_TOKENS)
    prefix = tmp_path_factory.mktemp("windows") / "rows"
    with MegatronWriter.publishing(prefix, np.dtype(np.uint16)) as writer:
        for row in rows:
            writer.add(row)
    return prefix


def speed(batches):
    """Million tokens per CPU-second of an iterator's first steps, each let go before the next;
    ``batches`` makes one.
    """
    seconds = median_seconds(
        lambda: collections.deque(itertools.islice(batches(), N_STEPS), maxlen=0)
    )
    return N_STEPS * BATCH * CONTEXT / 1e6 / seconds


def ours(prefix):
    return WindowLoader(prefix, batch_windows=BATCH, context_tokens=CONTEXT, dtype=np.int64)


def test_windows_come_faster_than_megatrons(prefix):
    """The same windows in the same order, cut out one by one."""
    reader, loader = MegatronReader(prefix), ours(prefix)

    def stacked():
        for step in range(N_STEPS):
            places = [divmod(start, ROW_TOKENS) for start in loader.starts_of(step).tolist()]
            # A window that ends in the next row is two reads in Megatron, too.
            windows = [
                reader.read(row, at, at + CONTEXT + 1)
                if at + CONTEXT < ROW_TOKENS
                else np.concatenate(
                    [
                        reader.read(row, at, ROW_TOKENS),
                        reader.read(row + 1, 0, at + CONTEXT + 1 - ROW_TOKENS),
                    ]
                )
                for row, at in places
            ]
            batch = np.stack([window.astype(np.int64) for window in windows])
            yield batch[:, :-1], batch[:, 1:]

    for step, (text, targets) in zip(range(3), stacked(), strict=False):
        np.testing.assert_array_equal(loader[step].text, text)
        np.testing.assert_array_equal(loader[step].targets, targets)
    fast, slow = speed(lambda: map(loader.__getitem__, range(N_STEPS))), speed(stacked)
    print(
        f"\nwindows: {fast:.0f} M tokens per CPU-second, Megatron's way {slow:.0f}: "
        f"{fast / slow:.1f} ×"
    )
    assert fast > 2 * slow


def test_windows_come_faster_than_a_courses_data_set(prefix):
    """PyTorch's ``DataLoader`` without workers over a data set that slices an int64 tensor,
    shuffled.
    """
    torch = pytest.importorskip("torch")
    loader = ours(prefix)
    tokens = torch.from_numpy(MegatronReader(prefix).ids.astype(np.int64))

    class Lesson(torch.utils.data.Dataset):
        def __len__(self):
            return (len(tokens) - 1) // CONTEXT

        def __getitem__(self, index):
            return tokens[index * CONTEXT : (index + 1) * CONTEXT], tokens[
                index * CONTEXT + 1 : (index + 1) * CONTEXT + 1
            ]

    batches = torch.utils.data.DataLoader(Lesson(), batch_size=BATCH, shuffle=True, drop_last=True)
    text, targets = next(iter(batches))
    assert text.shape == targets.shape == loader[0].text.shape
    fast, slow = (
        speed(lambda: map(loader.__getitem__, range(N_STEPS))),
        speed(lambda: iter(batches)),
    )
    print(
        f"\nwindows: {fast:.0f} M tokens per CPU-second, a course's data set {slow:.0f}: "
        f"{fast / slow:.1f} ×"
    )
    assert fast > 2 * slow
