"""Changing a mix in the middle of a run: what was consumed stays, the rest follows the new weights.

* The first ``after`` samples are the old blend's. What follows is the blend that the new weights
  draw up from its own beginning, and every source goes on with the sample behind the last one it
  gave.
* A source's index that has too few samples for that is lengthened, not built anew: an index over
  more epochs is another shuffle from its first sample on. The line of documents goes on with whole
  epochs, shuffled among themselves by a stream of their own, the cuts go on where they ended, and
  the new samples are served behind all old ones.

Megatron has neither. It reads both all the same, because it never compares what a cached index
holds.

Here: arrays. Not here: which mix continues which (`lc_assets.stages.mixes.mix_plans`).
"""

import numpy as np
from jaxtyping import Integer

from lc_assets.errors import BadInput
from lc_assets.mixing.blending import Blend, counts
from lc_assets.mixing.gpt_index import (
    INT64_SHUFFLE_FROM,
    Cut,
    GptIndex,
    chosen_documents,
    sample_index,
)
from lc_assets.mixing.shuffling import shuffle
from lc_assets.randomness import keyed_u64


def continued_blend(before: Blend, after: int, rest: Blend) -> Blend:
    """The first ``after`` samples of one blend, and then another over the same data sets.

    >>> old = np.array([0, 1, 0, 1], np.int16), np.array([0, 0, 1, 1])
    >>> new = np.array([1, 1, 2], np.int16), np.array([0, 1, 0])
    >>> continued_blend(old, 3, new)
    (array([0, 1, 0, 1, 1, 2], dtype=int16), array([0, 0, 1, 1, 2, 0]))

    Raises:
        BadInput: when the first blend is shorter than that.
    """
    if not 0 <= after <= len(before[0]):
        raise BadInput(f"{after:,} samples are to be kept of a mix that has {len(before[0]):,}")
    kept, rest_datasets = before[0][:after], rest[0]
    n_datasets = 1 + max(int(part.max(initial=0)) for part in (kept, rest_datasets))
    begun = np.array(counts(kept, n_datasets), np.int64)
    return np.concatenate([kept, rest_datasets]), np.concatenate(
        [before[1][:after], rest[1] + begun[rest_datasets]]
    )


def lengthened(
    index: GptIndex,
    lengths: Integer[np.ndarray, " all_documents"],
    *,
    sequence_length: int,
    seed: int,
    n_samples: int,
    documents: Integer[np.ndarray, " document"] | None = None,
    extra_token: bool = True,
) -> GptIndex:
    """An index of at least ``n_samples`` that serves what ``index`` serves, and then more.

    Args:
        index: over whole epochs of the same documents, without a partial last sample.
        lengths: tokens of each document of the data set.
        sequence_length: as ``index`` was built.
        seed: of the epochs that are added; they differ from all epochs before for every seed.
        n_samples: that are needed.
        documents: numbers of those that belong to the split; None means all.
        extra_token: as ``index`` was built.

    Raises:
        BadInput: when the index is not one of these documents.
    """
    if n_samples <= index.n_samples:
        return index
    chosen = chosen_documents(len(lengths), documents)
    n_before, rest = divmod(len(index.document_index), max(len(chosen), 1))
    epoch_tokens = int(lengths[chosen].sum(dtype=np.int64))
    cut = Cut(sequence_length=sequence_length, extra_token=extra_token)
    if rest or not n_before or cut.n_whole(n_before * epoch_tokens) != index.n_samples:
        raise BadInput(
            "an index can be lengthened over the very documents, and by the very sequence length, "
            "it was built with"
        )
    n_epochs = -(-(n_samples * sequence_length + extra_token) // epoch_tokens)
    drawn = keyed_u64("gpt index, lengthened", seed=seed, keys=[str(n_before)])
    state = np.random.RandomState(int(drawn[0]) % 2**32)
    order = np.concatenate([index.document_index, np.tile(chosen, n_epochs - n_before)])
    shuffle(order[len(index.document_index) :], state)
    cuts = sample_index(lengths, order, cut, n_epochs * epoch_tokens)
    served = np.arange(
        len(cuts) - 1, dtype=np.int64 if len(cuts) - 1 >= INT64_SHUFFLE_FROM else np.uint32
    )
    served[: index.n_samples] = index.shuffle_index
    shuffle(served[index.n_samples :], state)
    return GptIndex(order, cuts, served)
