"""Megatron's GPT index: which tokens make up sample ``n`` of a data set, shuffled over whole
epochs.

Three arrays, as Megatron's ``GPTDataset`` builds them (a *document* is a sequence of the ``.idx``):

==================  ======================  ========================================================
``document_index``  int32 [E × documents]   the documents of all epochs in the order they are read
``sample_index``    int32 or int64 [n+1, 2] sample ``s`` begins at token ``[s, 1]`` of the document
                                            at index ``[s, 0]`` of ``document_index``, and ends
                                            where ``s+1`` begins
``shuffle_index``   uint32 or int64 [n]     the sample that is served ``i``-th
==================  ======================  ========================================================

The documents of all epochs are concatenated and cut every ``sequence_length`` tokens; a sample has
one token more, its last target, which is the first of the next. If less than 80 % of the last
epoch's samples are needed, it is shuffled separately in both arrays, so that the other epochs are
served completely first. All shuffles use one ``RandomState(seed)``, whose stream NumPy has frozen.

An index is *lengthened*, not built again, if a mix is changed in the middle of a run: an index over
more epochs is another shuffle from its first sample on. The documents continue with whole epochs,
shuffled among themselves by a separate stream, the cuts continue where they ended, and the new
samples are served after all old ones. Megatron cannot do that, but it reads the result, because it
never checks the contents of a cached index.

Source: Megatron-LM ``gpt_dataset.py`` and ``helpers.cpp`` (``build_sample_idx``), equal in core
    0.16.1 to 0.19.2.
"""

from typing import Any, TypeAlias

import numpy as np

from lc_assets.arrays import Int32s, Int64s, Integers, UInt32s
from lc_assets.compiling import compiled
from lc_assets.errors import BadInput
from lc_assets.mixing.shuffling import shuffle
from lc_assets.randomness import keyed_u64
from lc_assets.records import distinct

SEPARATE_BELOW = 0.80
"""Share of its samples below which the last epoch is shuffled separately."""
MOST_INT32 = 2**31 - 1
INT64_SHUFFLE_FROM = 2**32 - 2
_AHEAD = 1024
"""Lengths that are fetched before they are used: the processor fetches many at once."""

SampleIndex: TypeAlias = Int32s | Int64s
ShuffleIndex: TypeAlias = UInt32s | Int64s


@distinct
class GptIndex:
    """The three arrays."""

    document_index: Int32s
    sample_index: SampleIndex
    shuffle_index: ShuffleIndex

    @property
    def n_samples(self) -> int:
        """Number of samples; at least as many as requested."""
        return len(self.shuffle_index)


def n_whole(n_tokens: int, sequence_length: int) -> int:
    """Number of samples that are cut from this many tokens.

    >>> n_whole(100, 10), n_whole(101, 10)
    (9, 10)
    """
    return (n_tokens - 1) // sequence_length


def build_gpt_index(
    lengths: Integers,
    *,
    sequence_length: int,
    seed: int,
    n_samples: int | None = None,
    documents: range | None = None,
) -> GptIndex:
    """Build the three arrays, with Megatron's defaults: a sample has one token more, its last
    target, and a partial last sample is dropped.

    Args:
        lengths: tokens of each document of the data set.
        sequence_length: Megatron's ``--seq-length``.
        seed: Megatron's ``--seed``, 0 to 2³² - 1.
        n_samples: samples that are needed, over as many epochs as necessary; None means one epoch.
        documents: the documents in the split; None means all.

    Raises:
        BadInput: if the documents have no tokens (where Megatron loops endlessly), or an argument
            is out of range.
    """
    if not 0 <= seed < 2**32:
        raise BadInput(f"the seed must be 0 to 2**32 - 1, got {seed:,}")
    own = range(len(lengths)) if documents is None else documents
    if len(lengths) > MOST_INT32:
        raise BadInput(
            f"{len(lengths):,} documents, but Megatron allows at most {MOST_INT32:,} in one data "
            "set: split it"
        )
    if not 0 <= own.start <= own.stop <= len(lengths):
        raise BadInput(f"{own} of {len(lengths):,} documents, counted from 0")
    epoch_tokens = int(lengths[own.start : own.stop].sum(dtype=np.int64))
    n_epochs, n_before_last = plan_epochs(epoch_tokens, sequence_length, n_samples)
    # Megatron uses the legacy stream, which NumPy guarantees never to change.
    state = np.random.RandomState(seed)
    order = np.tile(np.arange(own.start, own.stop, dtype=np.int32), n_epochs)
    _shuffle_apart(order, None if n_before_last is None else len(order) - len(own), state)
    samples = sample_index(lengths, order, sequence_length, n_epochs * epoch_tokens)
    served = _served_in_order(len(samples) - 1)
    _shuffle_apart(served, n_before_last, state)
    return GptIndex(order, samples, served)


def _shuffle_apart(values: Integers, before_last: int | None, state: np.random.RandomState) -> None:
    """Shuffle what belongs to the last epoch by itself, if it begins at ``before_last``."""
    edge = len(values) if before_last is None else before_last
    shuffle(values[:edge], state)
    shuffle(values[edge:], state)


def _served_in_order(n_samples: int) -> ShuffleIndex:
    """A shuffle index that is not shuffled yet."""
    dtype: Any = np.int64 if n_samples >= INT64_SHUFFLE_FROM else np.uint32
    return np.arange(n_samples, dtype=dtype)


def plan_epochs(
    epoch_tokens: int, sequence_length: int, n_samples: int | None
) -> tuple[int, int | None]:
    """Number of epochs that are needed; and of the samples before the last one, if that is shuffled
    separately, else None.

    >>> plan_epochs(101, 10, 25)
    (3, 20)

    Raises:
        BadInput: if an epoch has no tokens, or a number is out of range.
    """
    if not 1 <= sequence_length <= MOST_INT32:
        raise BadInput(f"sequence_length must be 1 to {MOST_INT32:,}, got {sequence_length:,}")
    if epoch_tokens < 1:
        raise BadInput(
            "the documents have no tokens, so no number of epochs gives a sample: leave this data "
            "set or split out"
        )
    if n_samples is not None and n_samples < 0:
        raise BadInput(f"n_samples must be at least 0, got {n_samples:,}")
    n_epochs = max(1, -(-((n_samples or 0) * sequence_length + 1) // epoch_tokens))
    if n_samples is None or n_epochs == 1:
        return 1, None
    before_last = n_whole((n_epochs - 1) * epoch_tokens, sequence_length)
    one_epoch = n_whole(epoch_tokens, sequence_length)
    separate = n_samples - before_last < int(SEPARATE_BELOW * one_epoch)
    return n_epochs, before_last if separate else None


def sample_index(
    lengths: Integers, order: Int32s, sequence_length: int, n_tokens: int
) -> SampleIndex:
    """Cut the documents, concatenated in ``order``, into samples; they have ``n_tokens`` tokens."""
    # The lengths of an .idx are at an odd address: one copy, four bytes per document, instead of
    # another compilation.
    whole = np.require(lengths, np.int32, ("ALIGNED", "C_CONTIGUOUS"))
    dtype = np.int32 if len(order) <= MOST_INT32 else np.int64
    index = np.empty((n_whole(n_tokens, sequence_length) + 1, 2), dtype)
    _walk(whole, order, sequence_length, index)
    return index


@compiled
def _walk(lengths: Int32s, order: Int32s, sequence_length: int, out: Integers) -> None:
    """Write where samples begin, and where the last ends, in one pass over the documents."""
    n_rows = len(out)
    row = 1
    out[0, 0] = out[0, 1] = 0
    ahead = sequence_length  # tokens from the beginning of the document to the next cut
    fetched = np.empty(_AHEAD, np.int64)
    for start in range(0, len(order), _AHEAD):
        # Unsigned indices cannot count from the end; checking for that takes two thirds of the
        # time.
        places = order[start : start + _AHEAD].view(np.uint32)
        n_fetched = len(places)
        for at in range(n_fetched):
            fetched[at] = lengths[places[at]]
        for at in range(n_fetched):
            if row == n_rows:
                return
            # Whether the next cut is in a document is unpredictable, so the row is always written:
            # 1.5 times as fast.
            out[row, 0], out[row, 1] = start + at, ahead
            cut_here = int(ahead < fetched[at])
            row += cut_here
            ahead += sequence_length * cut_here
            while ahead < fetched[at]:
                if row == n_rows:
                    return
                out[row, 0], out[row, 1] = start + at, ahead
                row += 1
                ahead += sequence_length
            ahead -= fetched[at]


def lengthened(
    index: GptIndex,
    lengths: Integers,
    *,
    sequence_length: int,
    seed: int,
    n_samples: int,
) -> GptIndex:
    """An index of at least ``n_samples`` that serves what ``index`` serves, and then more.

    Args:
        index: whole epochs of the same documents.
        lengths: tokens of each document of the data set.
        sequence_length: that of ``index``.
        seed: seed of the new epochs; they differ from all earlier ones for any seed.
        n_samples: samples that are needed.

    Raises:
        BadInput: if the index was not built over these documents.
    """
    if n_samples <= index.n_samples:
        return index
    n_before, rest = divmod(len(index.document_index), max(len(lengths), 1))
    epoch_tokens = int(lengths.sum(dtype=np.int64))
    n_served = n_whole(n_before * epoch_tokens, sequence_length)
    if rest or not n_before or n_served != index.n_samples:
        raise BadInput(
            "an index can be lengthened only over the documents and with the sequence length that "
            "it was built with"
        )
    n_epochs = -(-(n_samples * sequence_length + 1) // epoch_tokens)
    drawn = keyed_u64("gpt index, lengthened", seed=seed, keys=[str(n_before)])
    state = np.random.RandomState(int(drawn[0]) % 2**32)
    more = np.tile(np.arange(len(lengths), dtype=np.int32), n_epochs - n_before)
    order = np.concatenate([index.document_index, more])
    shuffle(order[len(index.document_index) :], state)
    cuts = sample_index(lengths, order, sequence_length, n_epochs * epoch_tokens)
    served = _served_in_order(len(cuts) - 1)
    served[: index.n_samples] = index.shuffle_index
    shuffle(served[index.n_samples :], state)
    return GptIndex(order, cuts, served)
