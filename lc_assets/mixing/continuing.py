"""Change a mix in the middle of a run: samples already used stay, the rest follows new weights.

* The first ``after`` samples are those of the old blend. Then comes the blend that the new weights
  give from its beginning; every source continues with the sample after its last one.
* If a source's index has too few samples for that, it is lengthened, not built again: an index over
  more epochs is another shuffle from its first sample on. The documents continue with whole epochs,
  shuffled among themselves by a separate stream, the cuts continue where they ended, and the new
  samples are served after all old ones.

Megatron can do neither. It reads both nevertheless, because it never checks what a cached index
contains.
"""

import numpy as np
from jaxtyping import Integer

from lc_assets.errors import BadInput
from lc_assets.mixing.blending import Blend, counts
from lc_assets.mixing.gpt_index import (
    Cut,
    GptIndex,
    chosen_documents,
    sample_index,
    served_in_order,
)
from lc_assets.mixing.shuffling import shuffle
from lc_assets.randomness import keyed_u64


def continued_blend(before: Blend, after: int, rest: Blend) -> Blend:
    """The first ``after`` samples of one blend, then another one over the same data sets.

    >>> old = np.array([0, 1, 0, 1], np.int16), np.array([0, 0, 1, 1])
    >>> new = np.array([1, 1, 2], np.int16), np.array([0, 1, 0])
    >>> continued_blend(old, 3, new)
    (array([0, 1, 0, 1, 1, 2], dtype=int16), array([0, 0, 1, 1, 2, 0]))

    Raises:
        BadInput: if the first blend is shorter than that.
    """
    if not 0 <= after <= len(before[0]):
        raise BadInput(f"cannot keep {after:,} samples of a mix of {len(before[0]):,}")
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
    extra_token: bool = True,
) -> GptIndex:
    """An index of at least ``n_samples`` that serves what ``index`` serves, and then more.

    Args:
        index: whole epochs of the same documents, without a partial last sample.
        lengths: tokens of each document of the data set.
        sequence_length: that of ``index``.
        seed: seed of the new epochs; they differ from all earlier ones for any seed.
        n_samples: samples that are needed.
        extra_token: that of ``index``.

    Raises:
        BadInput: if the index was not built over these documents.
    """
    if n_samples <= index.n_samples:
        return index
    chosen = chosen_documents(len(lengths))
    n_before, rest = divmod(len(index.document_index), max(len(chosen), 1))
    epoch_tokens = int(lengths.sum(dtype=np.int64))
    cut = Cut(sequence_length=sequence_length, extra_token=extra_token)
    if rest or not n_before or cut.n_whole(n_before * epoch_tokens) != index.n_samples:
        raise BadInput(
            "an index can be lengthened only over the documents and with the sequence length that "
            "it was built with"
        )
    n_epochs = -(-(n_samples * sequence_length + extra_token) // epoch_tokens)
    drawn = keyed_u64("gpt index, lengthened", seed=seed, keys=[str(n_before)])
    state = np.random.RandomState(int(drawn[0]) % 2**32)
    order = np.concatenate([index.document_index, np.tile(chosen, n_epochs - n_before)])
    shuffle(order[len(index.document_index) :], state)
    cuts = sample_index(lengths, order, cut, n_epochs * epoch_tokens)
    served = served_in_order(len(cuts) - 1)
    served[: index.n_samples] = index.shuffle_index
    shuffle(served[index.n_samples :], state)
    return GptIndex(order, cuts, served)
