"""Megatron's GPT index: which tokens make up sample number ``n`` of a data set, shuffled over whole
epochs.

Three arrays, as Megatron's ``GPTDataset`` builds them (a *document* is a sequence of the ``.idx``):

==================  ======================  ===========================================================
``document_index``  int32 [E × documents]   the epochs' documents in the order they are read
``sample_index``    int32 or int64 [n+1, 2] sample ``s`` begins at token ``[s, 1]`` of the document in
                                            place ``[s, 0]`` of ``document_index``, and ends where
                                            ``s+1`` begins
``shuffle_index``   uint32 or int64 [n]     sample that is served ``i``-th
==================  ======================  ===========================================================

The documents of all epochs are laid end to end and cut every ``sequence_length`` tokens; with the
extra token (the last target) two neighbours share one. When the last epoch is needed for less than
80 % of its samples, it is kept apart in both shuffles, so that the others are served whole first.
All shuffles come from one ``RandomState(seed)``, whose stream NumPy has frozen.

Here: the arrays. Not here: files (`lc_assets.formats`), blending several data sets
    (`lc_assets.mixing.blending`).
Source: Megatron-LM ``gpt_dataset.py`` and ``helpers.cpp`` (``build_sample_idx``), equal in core
    0.16.1 to 0.19.2.
"""

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from jaxtyping import Int32, Int64, Integer, UInt32

from lc_assets.compiling import COMPILED
from lc_assets.errors import BadInput
from lc_assets.mixing.shuffling import COMPILED_FROM, shuffle

SEPARATE_BELOW = 0.80
"""Share of its samples below which the last epoch is kept apart."""
MOST_INT32 = 2**31 - 1
INT64_SHUFFLE_FROM = 2**32 - 2

Documents: TypeAlias = Int32[np.ndarray, " document"]
SampleIndex: TypeAlias = Int32[np.ndarray, "boundary 2"] | Int64[np.ndarray, "boundary 2"]
ShuffleIndex: TypeAlias = UInt32[np.ndarray, " sample"] | Int64[np.ndarray, " sample"]


@dataclass(frozen=True, slots=True, eq=False)
class GptIndex:
    """The three arrays."""

    document_index: Documents
    sample_index: SampleIndex
    shuffle_index: ShuffleIndex

    @property
    def n_samples(self) -> int:
        """Samples that can be served; at least as many as were asked for."""
        return len(self.shuffle_index)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """How the line of tokens is cut into samples.

    Attributes:
        sequence_length: tokens from the beginning of one sample to the beginning of the next.
        extra_token: whether a sample has one token more, the target of its last.
        keep_partial: whether a last, shorter sample counts (only Megatron's validation split has
            that choice).
    """

    sequence_length: int
    extra_token: bool = True
    keep_partial: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.sequence_length <= MOST_INT32:
            raise BadInput(
                f"sequence_length lies between 1 and {MOST_INT32:,}, got {self.sequence_length:,}"
            )

    def n_whole(self, n_tokens: int) -> int:
        """Whole samples in a line of tokens."""
        return (n_tokens - self.extra_token) // self.sequence_length

    def n_samples(self, n_tokens: int) -> int:
        """Samples in a line of tokens, as Megatron counts them: with a partial one, in 32-bit
        floating point.

        >>> Cut(sequence_length=4096, keep_partial=True).n_samples(4_096_000_002)
        1000000
        """
        if not self.keep_partial:
            return self.n_whole(n_tokens)
        return math.ceil(np.float32(n_tokens - self.extra_token) / np.float32(self.sequence_length))


@dataclass(frozen=True, slots=True, kw_only=True)
class Epochs:
    """How often the documents are gone through.

    Attributes:
        n_epochs: at least 1.
        n_before_last: whole samples of all epochs but the last when that is kept apart, else None.
    """

    n_epochs: int
    n_before_last: int | None


def build_gpt_index(
    lengths: Integer[np.ndarray, " all_documents"],
    *,
    sequence_length: int,
    seed: int,
    n_samples: int | None = None,
    documents: Integer[np.ndarray, " document"] | None = None,
    extra_token: bool = True,
    keep_partial: bool = False,
) -> GptIndex:
    """Build the three arrays.

    Args:
        lengths: tokens of each document of the data set.
        sequence_length: Megatron's ``--seq-length``.
        seed: Megatron's ``--seed``, 0 to 2³² - 1.
        n_samples: how many are needed, over as many epochs as that takes; None means one epoch.
        documents: numbers of those that belong to the split; None means all.
        extra_token: Megatron's ``add_extra_token_to_sequence``.
        keep_partial: the opposite of ``drop_last_partial_validation_sequence``.

    Raises:
        BadInput: when the documents hold no token (Megatron loops for ever), or an argument cannot
            be meant.
    """
    if not 0 <= seed < 2**32:
        raise BadInput(f"the seed lies between 0 and 2**32 - 1, got {seed:,}")
    chosen = chosen_documents(len(lengths), documents)
    cut = Cut(sequence_length=sequence_length, extra_token=extra_token, keep_partial=keep_partial)
    epoch_tokens = int((lengths if documents is None else lengths[chosen]).sum(dtype=np.int64))
    epochs = plan_epochs(epoch_tokens, cut, n_samples)
    # Megatron's stream is the legacy one, and NumPy promises never to change it.
    state = np.random.RandomState(seed)
    order = document_index(chosen, epochs, state)
    samples = sample_index(lengths, order, cut, epochs.n_epochs * epoch_tokens)
    return GptIndex(order, samples, shuffle_index(len(samples) - 1, epochs, state))


def chosen_documents(
    n_documents: int, documents: Integer[np.ndarray, " document"] | None
) -> Documents:
    """Numbers of the documents to be read, as int32.

    Raises:
        BadInput: when there are more than an int32 numbers, or one is not there.
    """
    if n_documents > MOST_INT32:
        raise BadInput(
            f"{n_documents:,} documents; Megatron numbers at most {MOST_INT32:,} in one data set: "
            "split it"
        )
    if documents is None:
        return np.arange(n_documents, dtype=np.int32)
    if len(documents) and not 0 <= int(documents.min()) <= int(documents.max()) < n_documents:
        raise BadInput(
            f"documents {documents.min():,} to {documents.max():,} asked for; there are "
            f"{n_documents:,}, counted from 0"
        )
    return documents.astype(np.int32)


def plan_epochs(epoch_tokens: int, cut: Cut, n_samples: int | None) -> Epochs:
    """Say how many epochs are needed, and whether the last is kept apart.

    >>> plan_epochs(101, Cut(sequence_length=10), 25)
    Epochs(n_epochs=3, n_before_last=20)

    Raises:
        BadInput: when an epoch has no token or the number of samples is negative.
    """
    if epoch_tokens < 1:
        raise BadInput(
            "the documents hold no token, so no number of epochs gives a sample: leave this data "
            "set or split out"
        )
    if n_samples is None:
        return Epochs(n_epochs=1, n_before_last=None)
    if n_samples < 0:
        raise BadInput(f"n_samples is at least 0, got {n_samples:,}")
    n_epochs = max(1, -(-(n_samples * cut.sequence_length + cut.extra_token) // epoch_tokens))
    if n_epochs == 1:
        return Epochs(n_epochs=1, n_before_last=None)
    before_last = cut.n_whole((n_epochs - 1) * epoch_tokens)
    separate = n_samples - before_last < int(SEPARATE_BELOW * cut.n_whole(epoch_tokens))
    return Epochs(n_epochs=n_epochs, n_before_last=before_last if separate else None)


def document_index(
    documents: Documents, epochs: Epochs, state: np.random.RandomState
) -> Int32[np.ndarray, " place"]:
    """Every document once per epoch, shuffled across epochs; a last epoch kept apart comes last."""
    order = np.tile(documents, epochs.n_epochs)
    before_last = len(order) if epochs.n_before_last is None else len(order) - len(documents)
    shuffle(order[:before_last], state)
    shuffle(order[before_last:], state)
    return order


def sample_index(
    lengths: Integer[np.ndarray, " all_documents"],
    order: Int32[np.ndarray, " place"],
    cut: Cut,
    n_tokens: int,
) -> SampleIndex:
    """Cut the documents, laid end to end in ``order``, into samples; ``n_tokens`` is what they hold
    together.

    Raises:
        BadInput: when a partial last sample would begin before an empty last document, where
            Megatron stops too.
    """
    plain = not COMPILED or len(order) < COMPILED_FROM
    index = (plain_sample_index if plain else compiled_sample_index)(lengths, order, cut, n_tokens)
    if index[-1, 1] < 0:
        raise BadInput(
            "the last document is empty and a partial last sample was asked for: drop empty "
            "documents, or partial samples"
        )
    return index


def plain_sample_index(
    lengths: Integer[np.ndarray, " all_documents"],
    order: Int32[np.ndarray, " place"],
    cut: Cut,
    n_tokens: int,
) -> SampleIndex:
    """`sample_index` by binary search in the running total of lengths: slower, and 16 bytes a
    document and epoch.
    """
    ends = np.cumsum(lengths[order], dtype=np.int64)
    begins = np.arange(cut.n_samples(n_tokens) + 1, dtype=np.int64) * cut.sequence_length
    # A sample begins in the first document that reaches past its beginning (or up to it, without
    # the extra token).
    place = np.searchsorted(ends, np.minimum(begins + cut.extra_token, n_tokens), side="left")
    offset = begins - (ends - lengths[order])[place]
    place[0] = offset[0] = 0
    beyond = begins + cut.extra_token > n_tokens
    beyond[0] = False
    place[beyond] = len(order) - 1
    offset[beyond] = int(lengths[order[-1]]) - cut.extra_token
    return np.stack([place, offset], axis=1).astype(_dtype_of(order))


def compiled_sample_index(
    lengths: Integer[np.ndarray, " all_documents"],
    order: Int32[np.ndarray, " place"],
    cut: Cut,
    n_tokens: int,
) -> SampleIndex:
    """`sample_index` by one walk over the documents, in compiled code; nothing but the result is
    held.
    """
    # Numba takes half a second to import.
    from lc_assets.mixing.kernels.walking import walk  # noqa: PLC0415

    # Those of an .idx lie at an odd address; one copy, four bytes a document, instead of another
    # compilation.
    whole = np.require(lengths, np.int32, ("ALIGNED", "C_CONTIGUOUS"))
    index = np.empty((cut.n_samples(n_tokens) + 1, 2), _dtype_of(order))
    found = walk(whole, order, cut.sequence_length, int(cut.extra_token), index)
    index[found:] = len(order) - 1, int(lengths[order[-1]]) - cut.extra_token
    return index


def _dtype_of(order: Int32[np.ndarray, " place"]) -> type[np.int32] | type[np.int64]:
    return np.int32 if len(order) <= MOST_INT32 else np.int64


def shuffle_index(n_samples: int, epochs: Epochs, state: np.random.RandomState) -> ShuffleIndex:
    """Order in which the samples are served; those of a last epoch kept apart come last."""
    served = np.arange(n_samples, dtype=np.int64 if n_samples >= INT64_SHUFFLE_FROM else np.uint32)
    before_last = n_samples if epochs.n_before_last is None else epochs.n_before_last
    shuffle(served[:before_last], state)
    shuffle(served[before_last:], state)
    return served
