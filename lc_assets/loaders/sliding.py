"""Sliding windows, one example at a time: inputs and targets of next-token prediction, from ids in
memory, a token file, or rows.

A window is ``context_tokens + 1`` consecutive ids; windows begin every ``stride`` ids. A shorter
one at the end is left out, or padded and masked. Three ways to treat documents:

==========  ========================================================================================
``ignore``  ids are one stream; a window may continue into the next document
``stay``    each document is a stream of its own; no window has parts of two
``reset``   as ``ignore``, but positions restart with each document, ``documents`` numbers them
            within the window (for an attention mask), and the last token of a document does not
            predict the first one of the next
==========  ========================================================================================

Rows of a grid are always streams of their own. For batches at full speed, see `loaders.windows`.
Source: the number of windows is that of the "Tokenized Dataset with Sliding Window" lesson; resets
    are those of Megatron's ``get_ltor_masks_and_position_ids``.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal, NamedTuple, cast

import numpy as np

from lc_assets.arrays import Array, Booleans, Int64s, Integers
from lc_assets.errors import BadInput
from lc_assets.formats.megatron.indexed import MegatronReader
from lc_assets.loaders.windows import Permutation
from lc_assets.records import frozen

if TYPE_CHECKING:
    from lc_assets.loaders.arrays import RowSource

Boundaries = Literal["ignore", "stay", "reset"]
BOUNDARIES = ("ignore", "stay", "reset")


class Window(NamedTuple):
    """One example; arrays of ``context_tokens``.

    Attributes:
        inputs: int64 ids.
        targets: int64 ids, one further.
        mask: bool; False for padding and, with ``reset``, for the first token of a document.
        positions: int64, of each input in its document, from the document's start in the window.
        documents: int64, number of each input's document within the window, from 0.
    """

    inputs: Int64s
    targets: Int64s
    mask: Booleans
    positions: Int64s
    documents: Int64s


@dataclass(frozen=True, eq=False, kw_only=True)
class SlidingWindows:
    """All windows of some ids, by number, in the order of the ids.

    Attributes:
        ids: one stream: a list, an array or a tensor; a token file; or rows, each of which is a
            stream.
        context_tokens: tokens of an example.
        stride: ids from the beginning of one window to that of the next.
        boundaries: see the module; only a token file knows where documents end.
        pad: fills up the last window of a stream; None leaves that window out.

    Raises:
        BadInput: if a number is out of range, there is no window, or the ids have no boundaries.
    """

    ids: "Sequence[int] | Array | MegatronReader | RowSource"
    context_tokens: int
    stride: int
    boundaries: Boundaries = "ignore"
    pad: int | None = None

    def __post_init__(self) -> None:
        if isinstance(self.ids, Sequence) or hasattr(self.ids, "__array__"):
            object.__setattr__(self, "ids", np.asarray(self.ids))
        if min(self.context_tokens, self.stride) < 1:
            raise BadInput(
                f"context_tokens and stride must be at least 1, got {self.context_tokens:,} and "
                f"{self.stride:,}"
            )
        if self.boundaries not in BOUNDARIES:
            raise BadInput(
                f"boundaries {self.boundaries!r}: expected one of {', '.join(BOUNDARIES)}"
            )
        if self.boundaries != "ignore" and not isinstance(self.ids, MegatronReader):
            raise BadInput(
                f"boundaries {self.boundaries!r} need a token file, which has the ends of documents"
            )
        if not len(self):
            raise BadInput(
                f"a window needs {self.context_tokens + 1:,} tokens, the longest stream has "
                f"{int(self._lengths.max(initial=0)):,}"
            )

    def __len__(self) -> int:
        return int(self._first[-1])

    def __getitem__(self, number: int) -> Window:
        """One window; negative numbers count from the end.

        Raises:
            IndexError: if there is no such window.
        """
        return self._window(*self._ids(number))

    def batch(self, numbers: Sequence[int] | Int64s) -> Window:
        """Some windows, as arrays (window, token); faster than one by one.

        Raises:
            IndexError: if there is no such window.
        """
        starts = None if self.boundaries == "reset" else self._starts(numbers)
        if starts is None:
            return Window(*map(np.stack, zip(*map(self.__getitem__, numbers), strict=True)))
        inputs, targets = self._pairs_at(starts)
        mask, documents = np.ones(inputs.shape, np.bool_), np.zeros(inputs.shape, np.int64)
        positions = documents + np.arange(self.context_tokens)
        return Window(inputs, targets, mask, positions, documents)

    def pairs(self, numbers: Sequence[int] | Int64s) -> tuple[Int64s, Int64s]:
        """Inputs and targets of some windows, (window, token) int64 each; faster than `batch`.

        Raises:
            IndexError: if there is no such window.
        """
        starts = self._starts(numbers)
        if starts is not None:
            return self._pairs_at(starts)
        pad = 0 if self.pad is None else self.pad
        inputs = np.full((len(numbers), self.context_tokens), pad, np.int64)
        targets = inputs.copy()
        for at, number in enumerate(numbers):
            _, found = self._ids(number)
            inputs[at, : len(found)] = found[: self.context_tokens]
            targets[at, : len(found) - 1] = found[1:]
        return inputs, targets

    def _pairs_at(self, starts: Int64s) -> tuple[Int64s, Int64s]:
        inputs, targets = self._parts[starts], self._parts[1:][starts]
        return inputs.astype(np.int64, copy=False), targets.astype(np.int64, copy=False)

    def _starts(self, numbers: Sequence[int] | Int64s) -> Int64s | None:
        """First id of each window among all ids; None if they are in rows, or one is short, is
        counted from the end or is not there.
        """
        numbers = np.asarray(numbers, np.int64)
        few = numbers.tolist()  # for which NumPy's reductions take longer
        if not few or min(few) < 0 or max(few) >= self._n_counted:
            return None
        if len(self._lengths) == 1:
            starts = numbers * self.stride
        else:
            stream = np.searchsorted(self._first, numbers, "right") - 1
            within = (numbers - self._first[stream]) * self.stride
            if (within + self.context_tokens >= self._lengths[stream]).any():
                return None
            starts = within + self._document_starts[stream]
        if isinstance(self.ids, MegatronReader):
            blocks = self.ids.blocks
            blocks.check_blocks(blocks.blocks_of(starts, self.context_tokens + 1))
        return starts

    @cached_property
    def _n_counted(self) -> int:
        """Windows that `_starts` finds; of one stream those that are whole."""
        if not isinstance(self.ids, np.ndarray | MegatronReader):
            return 0
        if len(self._lengths) > 1:
            return len(self)
        return max(0, 1 + (int(self._lengths[0]) - self.context_tokens - 1) // self.stride)

    @cached_property
    def _parts(self) -> Integers:
        """All parts of the ids that are as long as a window."""
        ids = self.ids.ids if isinstance(self.ids, MegatronReader) else cast("Integers", self.ids)
        return np.lib.stride_tricks.sliding_window_view(ids, self.context_tokens)

    def _ids(self, number: int) -> tuple[int, Integers]:
        """Where a window begins in its stream, and its ids."""
        found = number + len(self) if number < 0 else number
        if not 0 <= found < len(self):
            raise IndexError(f"no window {number:,}: there are {len(self):,}, numbered from 0")
        stream = 0 if len(self._lengths) == 1 else bisect_right(self._first, found) - 1
        start = (found - int(self._first[stream])) * self.stride
        stop = min(start + self.context_tokens + 1, int(self._lengths[stream]))
        return start, self._read(stream, start, stop)

    def order(self, *, base_seed: int, epoch: int, first: int = 0) -> Int64s:
        """Windows from position ``first`` of an epoch's shuffle on; int64.

        The seed is ``base_seed + epoch``. Any part can be computed alone: to resume in the middle
        of an epoch, with any number of workers and ranks.
        """
        places = np.arange(first, len(self))
        return Permutation(len(self), f"sliding/{base_seed + epoch}").at(places)

    @cached_property
    def _lengths(self) -> Int64s:
        """Ids of each stream."""
        if isinstance(self.ids, MegatronReader):
            lengths = np.asarray(self.ids.lengths, np.int64)
            return lengths if self.boundaries == "stay" else lengths.sum(keepdims=True)
        if isinstance(self.ids, np.ndarray):
            return np.array([len(self.ids)], np.int64)
        rows = cast("RowSource", self.ids)
        return np.full(rows.n_rows, rows.row_tokens, np.int64)

    @cached_property
    def _first(self) -> Int64s:
        """Number of each stream's first window; then the number of windows."""
        n_tokens, padded = self._lengths, self.pad is not None
        whole = np.maximum(0, 1 + (n_tokens - (self.context_tokens + 1)) // self.stride)
        counts = whole + (n_tokens - whole * self.stride > 1) if padded else whole
        return np.concatenate([[0], np.cumsum(counts)])

    @cached_property
    def _document_starts(self) -> Int64s:
        lengths = np.asarray(getattr(self.ids, "lengths", ()), np.int64)
        return np.cumsum(lengths) - lengths

    def _read(self, stream: int, start: int, stop: int) -> Integers:
        if isinstance(self.ids, np.ndarray):
            return self.ids[start:stop]
        if isinstance(self.ids, MegatronReader):
            begin = int(self._document_starts[stream]) if self.boundaries == "stay" else 0
            return self.ids.between(begin + start, begin + stop)
        rows = cast("RowSource", self.ids)
        return np.asarray(rows.read(slice(stream, stream + 1), slice(start, stop))[0])

    def _window(self, start: int, found: Integers) -> Window:
        n_found, context = len(found), self.context_tokens
        padded = np.full(context + 1, 0 if self.pad is None else self.pad, np.int64)
        padded[:n_found] = found
        mask = np.arange(1, context + 1) < n_found
        positions, documents = np.arange(context), np.zeros(context, np.int64)
        if self.boundaries == "reset":
            starts = self._document_starts
            first, last = np.searchsorted(starts, [start + 1, start + n_found])
            near = starts[first:last] - start
            begins = np.unique(near)  # an empty document begins where the next does
            documents = np.searchsorted(begins, positions, "right")
            positions = positions - np.concatenate([[0], begins])[documents]
            mask[begins[begins <= context] - 1] = False
        return Window(padded[:-1], padded[1:], mask, positions, documents)


@frozen
class WindowBatches:
    """Whole batches of windows for a ``DataLoader``, which asks for them by ``__getitems__``."""

    windows: SlidingWindows

    def __len__(self) -> int:
        return len(self.windows)

    def __getitem__(self, number: int) -> Window:
        return self.windows[number]

    def __getitems__(self, numbers: Sequence[int] | Int64s) -> Window:
        return self.windows.batch(numbers)


@frozen
class WindowPairs:
    """As `WindowBatches`, of pairs (inputs, targets), where nothing else is to be known."""

    windows: SlidingWindows

    def __len__(self) -> int:
        return len(self.windows)

    def __getitem__(self, number: int) -> tuple[Int64s, Int64s]:
        inputs, targets = self.windows.pairs([number])
        return inputs[0], targets[0]

    def __getitems__(self, numbers: Sequence[int] | Int64s) -> tuple[Int64s, Int64s]:
        return self.windows.pairs(numbers)
