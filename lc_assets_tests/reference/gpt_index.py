"""Megatron's GPT index, the slow and obvious way: write every token down, then point at the ones
that begin a sample.
"""

from typing import Any

import numpy as np


def slow_gpt_index(
    lengths: list[int],
    *,
    sequence_length: int,
    seed: int,
    n_samples: int | None = None,
    documents: list[int] | None = None,
) -> tuple[list[int], list[tuple[int, int]], list[int]]:
    """Return document, sample and shuffle index as lists."""
    chosen = list(range(len(lengths))) if documents is None else list(documents)
    epoch_tokens, n_epochs = sum(lengths[document] for document in chosen), 1
    while n_samples is not None and n_epochs * epoch_tokens < n_samples * sequence_length + 1:
        n_epochs += 1
    before_last = ((n_epochs - 1) * epoch_tokens - 1) // sequence_length
    apart = n_epochs > 1 and n_samples - before_last < int(
        0.8 * ((epoch_tokens - 1) // sequence_length)
    )
    state = np.random.RandomState(seed)
    order = (
        _mixed(chosen * (n_epochs - 1), state) + _mixed(chosen, state)
        if apart
        else _mixed(chosen * n_epochs, state)
    )

    tokens = [
        (place, offset)
        for place, document in enumerate(order)
        for offset in range(lengths[document])
    ]
    begins = [(0, 0), *tokens[sequence_length::sequence_length]]

    first = before_last if apart else len(begins) - 1
    return order, begins, _mixed(range(first), state) + _mixed(range(first, len(begins) - 1), state)


def _mixed(values: Any, state: np.random.RandomState) -> list[int]:
    values = list(values)
    state.shuffle(values)
    return values
