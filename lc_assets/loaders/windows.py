"""Windows of a token file in random order: batches from any position of Megatron's ``.bin``.

A window is ``context_tokens + 1`` consecutive ids: all but the last are inputs, all but the first
are targets, so both are views of one copy. Windows begin every ``stride`` tokens of the whole file:
at the end of a document, a window continues into the next, as the samples of nanoGPT and Megatron
do. The file is mapped, not read.

The order is a keyed permutation of 0 to n - 1 that takes no memory: its value at any position is
computed. (The global order of rows is drawn and published instead, because it must outlive this
code: `lc_assets.tokens.orders`.)
Source: Luby and Rackoff, "How to construct pseudorandom permutations from pseudorandom functions"
    (1988), with cycle walking: Black and Rogaway, "Ciphers with arbitrary finite domains" (2002).
    Ten rounds: four were visibly not uniform (chi-square 669 at 23 degrees of freedom), eight were
    (24.5).
"""

import hashlib
import operator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from lc_assets.arrays import Array, Int64s, UInt64s
from lc_assets.errors import BadInput
from lc_assets.formats.megatron.idx import bin_path
from lc_assets.formats.megatron.indexed import MegatronReader
from lc_assets.loaders.stepping import Batch, ShareOptions, SteppedLoader

ROUNDS = 10
_MULTIPLIERS = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))  # SplitMix64's

STEPS_AT_ONCE = 256
"""Steps whose windows are drawn together: drawing one step's costs as much as copying its windows,
drawing 256 at once a fiftieth of that per step.
"""


@dataclass(frozen=True)
class Permutation:
    """A permutation of 0 to ``n`` - 1 that depends on ``key`` alone, on no library's random
    numbers.

    >>> sorted(Permutation(5, "epoch 0").at(np.arange(5)).tolist())
    [0, 1, 2, 3, 4]
    """

    n: int
    key: str

    @cached_property
    def _half_bits(self) -> int:
        return max((self.n - 1).bit_length() + 1, 2) // 2

    @cached_property
    def _round_keys(self) -> UInt64s:
        seeds = (
            hashlib.sha256(f"{self.key}/{number}".encode()).digest()[:8] for number in range(ROUNDS)
        )
        return np.array([int.from_bytes(seed, "little") for seed in seeds], np.uint64)

    def at(self, positions: Int64s) -> Int64s:
        """The numbers at some positions, int64; every position must be 0 to ``n`` - 1."""
        found = self._shuffled(positions.astype(np.uint64))
        while len(outside := np.flatnonzero(found >= self.n)):
            found[outside] = self._shuffled(found[outside])
        return found.astype(np.int64)

    def _shuffled(self, values: UInt64s) -> UInt64s:
        """A permutation of the smallest even power of two that holds ``n``.

        It is below 4 n, so few values need another pass.
        """
        half, rest = np.uint64(self._half_bits), np.uint64(64 - self._half_bits)
        mask = np.uint64((1 << self._half_bits) - 1)
        left, right = values >> half, values & mask
        for key in self._round_keys:
            mixed = (right ^ key) * _MULTIPLIERS[0]
            mixed ^= mixed >> np.uint64(29)
            mixed *= _MULTIPLIERS[1]
            left, right = right, left ^ (mixed >> rest)
        return (left << half) | right


class WindowLoader(SteppedLoader[Batch]):
    """Batches of windows of a Megatron data set; every epoch has every window once, in another
    order.

    Attributes:
        n_windows: windows of the file. An epoch leaves out those that fill no batch: others each
            time.
    """

    _drawn: tuple[tuple[int, int], Int64s, Int64s] = (-1, 0), *(np.empty((0, 0), int),) * 2

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
        **options: Unpack[ShareOptions],
    ) -> None:
        """Open ``{prefix}.bin`` and ``.idx``.

        Args:
            prefix: path of both files without endings.
            batch_windows: windows of a step, of all ranks together.
            context_tokens: tokens of a window's inputs.
            stride: tokens between beginnings of windows; by default ``context_tokens``.
            seed: seed of the order.
            epochs: number of passes over the file.
            shuffled: False keeps the order of the file.
            dtype: of the batches; by default the file's. PyTorch's embeddings need ``np.int64``.
            options: see `ShareOptions`.

        Raises:
            CorruptFile: if a file is missing or the two do not match.
            BadInput: if the file has no window or fewer than a batch, or a number is out of range.
        """
        super().__init__(**options)
        self._prefix, self._n_ids = prefix, context_tokens + 1
        stride = context_tokens if stride is None else stride
        if min(context_tokens, stride, epochs) < 1:
            raise BadInput(
                f"context_tokens, stride and epochs must be at least 1, got {context_tokens:,}, "
                f"{stride:,} and {epochs:,}"
            )
        self.n_windows = max(0, (self._reader.n_tokens - context_tokens - 1) // stride + 1)
        if not self.n_windows:
            raise BadInput(
                f"{bin_path(prefix)}: a window needs {context_tokens + 1:,} tokens, the file has "
                f"{self._reader.n_tokens:,}"
            )
        if not 1 <= batch_windows <= self.n_windows:
            raise BadInput(
                f"batch_windows must be 1 to {self.n_windows:,}, the windows of "
                f"{bin_path(prefix)}, got {batch_windows:,}"
            )
        share = self.share_of(batch_windows, f"{batch_windows:,} windows")
        self._share = slice(self.rank * share, (self.rank + 1) * share)
        self._shape = {
            "batch_windows": batch_windows,
            "context_tokens": context_tokens,
            "stride": stride,
            "seed": seed,
        }
        self._epochs, self._shuffled, self._dtype = epochs, shuffled, dtype
        self._steps_per_epoch = self.n_windows // batch_windows

    def __getstate__(self) -> dict[str, Any]:
        """Without the mapped file, which is opened again where the loader is sent."""
        mapped = ("_reader", "_windows", "_drawn")
        return {name: value for name, value in self.__dict__.items() if name not in mapped}

    @cached_property
    def _reader(self) -> MegatronReader:
        return MegatronReader(self._prefix)

    @cached_property
    def _windows(self) -> Array:
        return np.lib.stride_tricks.sliding_window_view(self._reader.ids, self._n_ids)

    def __len__(self) -> int:
        return self._steps_per_epoch * self._epochs

    def __getitem__(self, step: int) -> Batch:
        starts, blocks = self._part_of(step)
        self._reader.blocks.check_blocks(blocks)
        picked = self._windows[starts]
        windows = picked if self._dtype is None else picked.astype(self._dtype)
        return Batch(windows[:, :-1], windows[:, 1:])

    def starts_of(self, step: int) -> Int64s:
        """First token of each window of a step; int64.

        Raises:
            IndexError: if there is no such step.
        """
        return self._part_of(step)[0]

    def _part_of(self, step: int) -> tuple[Int64s, Int64s]:
        """First token of each window of a step, and the blocks of the file that they are in."""
        step = operator.index(step)
        if not 0 <= step < len(self):
            raise IndexError(f"no step {step:,}: there are {len(self):,}, numbered from 0")
        epoch, inside = divmod(step, self._steps_per_epoch)
        block, row = divmod(inside, STEPS_AT_ONCE)
        drawn = self._drawn
        if drawn[0] != (epoch, block):
            starts = self._starts(epoch, block)
            blocks = self._reader.blocks.blocks_of(starts, self._n_ids)
            drawn = self._drawn = (epoch, block), starts, blocks
        return drawn[1][row], drawn[2][row]

    def _starts(self, epoch: int, block: int) -> Int64s:
        """First tokens of this rank's windows of a block of steps: (step, window)."""
        n_windows = self._shape["batch_windows"]
        last = min((block + 1) * STEPS_AT_ONCE, self._steps_per_epoch)
        every = np.arange(block * STEPS_AT_ONCE * n_windows, last * n_windows)
        positions = every.reshape(-1, n_windows)[:, self._share]
        if self._shuffled:
            key = f"windows/{self._shape['seed']}/{epoch}"
            drawn = Permutation(self.n_windows, key).at(positions.ravel())
            positions = drawn.reshape(positions.shape)
        return positions * self._shape["stride"]

    def identity(self) -> dict[str, Any]:
        """Data set, shape and order; equal for all ranks and any number of epochs."""
        return {"data": self._data, **self._shape, "shuffled": self._shuffled}

    @cached_property
    def _data(self) -> str:
        """SHA-256 of the documents' lengths and of the first and last ids; no protection against
        forgery.
        """
        hasher = hashlib.sha256(np.ascontiguousarray(self._reader.lengths).data)
        for part in (self._reader.ids[:65_536], self._reader.ids[-65_536:]):
            hasher.update(np.ascontiguousarray(part).data)
        return hasher.hexdigest()
