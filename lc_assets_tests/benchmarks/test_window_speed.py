"""Windows of a token file in random order, against what a course's data set and Megatron's do. Run
with ``-s`` to see the figures.

Batches of 32 × 1,024 as int64. Megatron's way needs no Megatron: its ``IndexedDataset.get`` is a
slice of a mapped file, which `MegatronReader.read` is, too; its samples are then stacked.
"""

import collections
import itertools
import math
import time

import numpy as np
import pytest

from lc_assets.formats.megatron.indexed import MegatronReader, MegatronWriter
from lc_assets.loaders.sliding import SlidingWindows
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


@pytest.mark.parametrize(
    ("batch", "context", "stride"), [(4, 256, 128), (8, 256, 128), (32, 1024, 1024)]
)
def test_a_sliding_loader_is_as_fast_as_an_articles_ten_lines(batch, context, stride):
    """Pairs, of a list of ids, against tensors of all windows cut out beforehand, as the article
    does; at its own shape first. In turns, the best of ten.
    """
    torch = pytest.importorskip("torch")
    from lc_assets.loaders.torch import sliding_loader

    ids = token_rows(N_ROWS, ROW_TOKENS)[1].ravel()[:400_000].tolist()

    class Article(torch.utils.data.Dataset):
        def __init__(self):
            self.pairs = []
            for i in range(0, len(ids) - context, stride):
                text, targets = ids[i : i + context], ids[i + 1 : i + context + 1]
                self.pairs.append((torch.tensor(text), torch.tensor(targets)))

        def __len__(self):
            return len(self.pairs)

        def __getitem__(self, index):
            return self.pairs[index]

    windows = SlidingWindows(ids=ids, context_tokens=context, stride=stride)
    settings = {"batch_size": batch, "base_seed": 1, "epoch": 0}
    loaders = {
        "pairs": sliding_loader(windows, **settings, pairs=True),
        "article": torch.utils.data.DataLoader(Article(), batch, shuffle=True, drop_last=True),
        "dictionaries": sliding_loader(windows, **settings),
    }
    seconds = dict.fromkeys(loaders, math.inf)
    for _, (name, loader) in itertools.product(range(10), loaders.items()):
        begun = time.process_time()
        collections.deque(loader, maxlen=0)
        seconds[name] = min(seconds[name], time.process_time() - begun)
    speeds = {name: len(loaders[name]) * batch * context / 1e6 / seconds[name] for name in loaders}
    print(f"\n{batch} × {context:,}, M tokens per CPU-second: {speeds}")
    assert speeds["pairs"] > speeds["article"]
    assert speeds["dictionaries"] > 0.4 * speeds["article"]
