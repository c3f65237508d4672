"""Windows of a token file in random order: batches cut at any place out of Megatron's ``.bin``,
which stays on disk.

Here: which windows make a step, and copying them out of the mapped file. Not here: the file's
    format
(`lc_assets.formats.megatron`), the order (`loaders.permutation`), rows of a grid (`loaders.grid`).

A window is ``context_tokens + 1`` ids that follow each other: all but the last are inputs, all but
the first are targets, so both are views of one copy. Windows begin every ``stride`` tokens, of the
file as a whole: where a document ends, a window goes on into the next, as nanoGPT's and Megatron's
samples do.
"""

import hashlib
import operator
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lc_assets.errors import BadInput
from lc_assets.formats.megatron import MegatronReader, bin_path
from lc_assets.loaders.permutation import Permutation
from lc_assets.loaders.stepping import Batch, SteppedLoader
from lc_assets.loaders.walk import divisors

STEPS_AT_ONCE: Final = 256
"""Steps whose windows are drawn together: the arithmetic of one step costs as much as copying its
windows, of 256 a fiftieth of that.
"""


class WindowLoader(SteppedLoader[Batch]):
    """Batches of windows of a Megatron data set; every window comes once an epoch, each epoch in
    another order.

    Attributes:
        n_windows: windows of the file.
        dropped_windows: how many an epoch leaves out, because they fill no batch: other ones each
            epoch.
    """

    def __init__(
        self,
        prefix: Path,
        *,
        batch_windows: int,
        context_tokens: int,
        stride: int | None = None,
        seed: int = 0,
        epochs: int = 1,
        shuffled: bool = True,
        dtype: type[np.integer[Any]] | None = None,
        rank: int = 0,
        n_ranks: int = 1,
        prefetch: int = 0,
        threads: int = 1,
    ) -> None:
        """Open ``{prefix}.bin`` and ``.idx``.

        Args:
            prefix: path of both files without their endings.
            batch_windows: windows of a step, of all ranks together.
            context_tokens: tokens of a window's inputs.
            stride: tokens from the beginning of one window to that of the next; by default
                ``context_tokens``, so that every token is a target once an epoch (but those at the
                end that fill no window).
            seed: of the order.
            epochs: how often the file is gone through.
            shuffled: False gives the windows in the file's order.
            dtype: of the batches; by default the file's. ``np.int64`` is what PyTorch's embeddings
                take.
            rank: which part of every batch this loader gives, of ``n_ranks`` equal ones.
            n_ranks: how many loaders share the batches.
            prefetch: batches that are read ahead while one is used, when iterating.
            threads: how many are read at once.

        Raises:
            CorruptFile: when a file is missing or the two do not fit.
            BadInput: when the file has no window or fewer than a batch, or a number cannot be
                meant; says which.
        """
        super().__init__(prefetch=prefetch, threads=threads)
        reader = MegatronReader(prefix)
        stride = context_tokens if stride is None else stride
        if min(context_tokens, stride, epochs) < 1:
            raise BadInput(
                f"context_tokens, stride and epochs must be at least 1, got {context_tokens:,}, "
                f"{stride:,} and {epochs:,}"
            )
        self.n_windows = (
            (reader.n_tokens - context_tokens - 1) // stride + 1
            if reader.n_tokens > context_tokens
            else 0
        )
        if not self.n_windows:
            raise BadInput(
                f"{bin_path(prefix)}: {reader.n_tokens:,} tokens are no window of "
                f"{context_tokens:,} and the one behind it"
            )
        if not 1 <= batch_windows <= self.n_windows:
            raise BadInput(
                f"batch_windows must be 1 to {self.n_windows:,}, the windows of "
                f"{bin_path(prefix)}, got {batch_windows:,}"
            )
        if not 0 <= rank < n_ranks or batch_windows % n_ranks:
            raise BadInput(
                f"{n_ranks:,} ranks, of which this is {rank}, cannot share {batch_windows:,} "
                f"windows equally: {divisors(batch_windows)} can"
            )
        self._reader, self._prefix = reader, prefix
        self._shape = {
            "batch_windows": batch_windows,
            "context_tokens": context_tokens,
            "stride": stride,
            "seed": seed,
        }
        self._epochs, self._shuffled, self._dtype = epochs, shuffled, dtype
        share = batch_windows // n_ranks
        self.rank, self.n_ranks, self._share = (
            rank,
            n_ranks,
            slice(rank * share, (rank + 1) * share),
        )
        self._windows = np.lib.stride_tricks.sliding_window_view(reader.ids, context_tokens + 1)
        self._steps_per_epoch = self.n_windows // batch_windows
        self._drawn: tuple[tuple[int, int], NDArray[np.int64]] = (
            (-1, 0),
            np.empty((0, 0), np.int64),
        )

    def __reduce__(self) -> tuple[Any, ...]:
        settings = {
            "epochs": self._epochs,
            "shuffled": self._shuffled,
            "dtype": self._dtype,
            "rank": self.rank,
            "n_ranks": self.n_ranks,
        }
        ahead = {"prefetch": self.prefetch, "threads": self.threads}
        return _reopened, (self._prefix, {**self._shape, **settings, **ahead}, self.step)

    @property
    def dropped_windows(self) -> int:
        """Windows of an epoch that fill no batch."""
        return self.n_windows % self._shape["batch_windows"]

    def __len__(self) -> int:
        return self._steps_per_epoch * self._epochs

    def __getitem__(self, step: int) -> Batch:
        picked = self._windows[self.starts_of(step)]
        windows = picked if self._dtype is None else picked.astype(self._dtype)
        return Batch(windows[:, :-1], windows[:, 1:])

    def starts_of(self, step: int) -> NDArray[np.int64]:
        """Places in the file where the windows of a step begin, in tokens; int64.

        Raises:
            IndexError: when there is no such step.
        """
        step = operator.index(step)
        if not 0 <= step < len(self):
            raise IndexError(f"no step {step:,}: there are {len(self):,}, numbered from 0")
        epoch, inside = divmod(step, self._steps_per_epoch)
        block, row = divmod(inside, STEPS_AT_ONCE)
        drawn = self._drawn
        if drawn[0] != (epoch, block):
            drawn = self._drawn = ((epoch, block), self._starts(epoch, block))
        return np.asarray(drawn[1][row][self._share])

    def _starts(self, epoch: int, block: int) -> NDArray[np.int64]:
        """Places where the windows of some steps begin: (step, window)."""
        n_windows = self._shape["batch_windows"]
        last = min((block + 1) * STEPS_AT_ONCE, self._steps_per_epoch)
        positions = np.arange(block * STEPS_AT_ONCE * n_windows, last * n_windows)
        if self._shuffled:
            positions = Permutation(self.n_windows, f"windows/{self._shape['seed']}/{epoch}").at(
                positions
            )
        return (positions * self._shape["stride"]).reshape(-1, n_windows)

    def identity(self) -> dict[str, Any]:
        """Data set, shape and order; equal for all ranks, and for any number of epochs."""
        return {"data": self._data, **self._shape, "shuffled": self._shuffled}

    @cached_property
    def _data(self) -> str:
        """SHA-256 of the documents' lengths and of the first and last ids: tells other data apart,
        not forgeries.
        """
        hasher = hashlib.sha256(np.ascontiguousarray(self._reader.lengths).data)
        for part in (self._reader.ids[:65_536], self._reader.ids[-65_536:]):
            hasher.update(np.ascontiguousarray(part).data)
        return hasher.hexdigest()


def _reopened(prefix: Path, settings: dict[str, Any], step: int) -> WindowLoader:
    loader = WindowLoader(prefix, **settings)
    loader.step = step
    return loader
