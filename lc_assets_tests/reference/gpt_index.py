"""Megatron's GPT index, the slow and obvious way: write every token down, then point at the ones
that begin a sample.
"""

import math
from typing import Any

import numpy as np


def slow_gpt_index(
    lengths: list[int],
    *,
    sequence_length: int,
    seed: int,
    n_samples: int | None = None,
    documents: list[int] | None = None,
    extra_token: bool = True,
    keep_partial: bool = False,
) -> tuple[list[int], list[tuple[int, int]], list[int]]:
    """Return document, sample and shuffle index as lists."""
    chosen = list(range(len(lengths))) if documents is None else list(documents)
    epoch_tokens, n_epochs = sum(lengths[document] for document in chosen), 1
    while (
        n_samples is not None
        and n_epochs * epoch_tokens < n_samples * sequence_length + extra_token
    ):
        n_epochs += 1
    before_last = ((n_epochs - 1) * epoch_tokens - extra_token) // sequence_length
    apart = n_epochs > 1 and n_samples - before_last < int(
        0.8 * ((epoch_tokens - extra_token) // sequence_length)
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
    begins = [(0, 0)]
    for sample in range(1, (len(tokens) - extra_token) // sequence_length + 1):
        place, offset = tokens[sample * sequence_length - 1]
        begins.append(tokens[sample * sequence_length] if extra_token else (place, offset + 1))
    if keep_partial and len(begins) - 1 < math.ceil((len(tokens) - extra_token) / sequence_length):
        begins.append((len(order) - 1, lengths[order[-1]] - extra_token))

    first = before_last if apart else len(begins) - 1
    return order, begins, _mixed(range(first), state) + _mixed(range(first, len(begins) - 1), state)


def _mixed(values: Any, state: np.random.RandomState) -> list[int]:
    values = list(values)
    state.shuffle(values)
    return values
