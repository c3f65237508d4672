"""The data of a Megatron launch: sources with weights, samples per split, sequence length, seed.

Megatron's rules for reading them: a list of weights and prefixes, a split such as ``98,2,0``,
iterations. Launch arguments: `lc_assets.formats.megatron.launch_arguments`.
Source: Megatron-LM ``megatron/core/datasets/utils.py`` (``get_blend_from_list``),
    ``blended_megatron_dataset_config.py`` (``parse_and_normalize_split``,
    ``convert_split_vector_to_split_matrix``), ``megatron/training/training.py``
    (``get_train_valid_test_num_samples``).
"""

import itertools
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from lc_assets.errors import BadInput
from lc_assets.mixing.blending import SURPLUS, normalise

SPLITS = ("train", "valid", "test")
"""Megatron's names."""

Bounds: TypeAlias = tuple[float, float]
"""Where a split begins and ends, as shares of the sequences."""
WHOLE: Bounds = (0.0, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """Prefixes of one blend as written, and their weights; without weights, each is used once."""

    prefixes: tuple[str, ...]
    weights: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        if not self.prefixes:
            raise BadInput("a blend needs at least one prefix")
        if twice := [prefix for prefix, count in Counter(self.prefixes).items() if count > 1]:
            raise BadInput(
                f"{twice[0]} occurs twice in one blend, and would serve the same samples twice: "
                "list it once, with the sum of both weights"
            )
        if self.weights is not None:
            if len(self.weights) != len(self.prefixes):
                raise BadInput(f"{len(self.weights):,} weights for {len(self.prefixes):,} prefixes")
            normalise(self.weights)

    def __len__(self) -> int:
        return len(self.prefixes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """Everything that determines the indices of a launch.

    Attributes:
        sequence_length: Megatron's ``--seq-length``.
        seed: Megatron's ``--seed``.
        n_samples: samples of train, valid and test; None uses each source once.
        sources: sources of train, valid and test; None if a split has none.
        split: as written, such as ``98,2,0``: the shares of all splits in the same sources. None if
            each split has sources of its own.
        surplus: Megatron's ``mid_level_dataset_surplus``.
        several_validation_sets: Megatron's ``--multiple-validation-sets``: the sources of valid are
            not blended.
    """

    sequence_length: int
    seed: int = 1234
    n_samples: tuple[int | None, int | None, int | None]
    sources: tuple[Sources | None, Sources | None, Sources | None]
    split: str | None = None
    surplus: float = SURPLUS
    several_validation_sets: bool = False

    @property
    def bounds(self) -> tuple[Bounds | None, Bounds | None, Bounds | None]:
        """Shares of the sequences of each split; None if it is empty."""
        return (WHOLE, WHOLE, WHOLE) if self.split is None else split_bounds(self.split)


def sources_of(words: Sequence[str]) -> Sources:
    """Parse a list of prefixes, or of alternating weights and prefixes, as Megatron does.

    >>> sources_of(["0.7", "web", "0.3", "books"])
    Sources(prefixes=('web', 'books'), weights=(0.7, 0.3))
    >>> sources_of(["web", "books"])
    Sources(prefixes=('web', 'books'), weights=None)

    Raises:
        BadInput: if only some of the weights are numbers, or one is out of range.
    """
    weights = [_number(word) for word in words[::2]]
    if len(words) % 2 or all(weight is None for weight in weights):
        return Sources(prefixes=tuple(word.strip() for word in words))
    if None in weights:
        raise BadInput(
            f"expected a weight, got {words[2 * weights.index(None)]!r}: give a weight before "
            "every prefix, or none at all"
        )
    return Sources(
        prefixes=tuple(word.strip() for word in words[1::2]),
        weights=tuple(weight for weight in weights if weight is not None),
    )


def split_bounds(split: str) -> tuple[Bounds | None, Bounds | None, Bounds | None]:
    """Where train, valid and test begin and end, with Megatron's arithmetic.

    >>> split_bounds("98,2,0")
    ((0, 0.98), (0.98, 1.0), None)

    Raises:
        BadInput: if there are more than three shares, or none above 0.
    """
    try:
        shares = [float(found) for found in re.findall(r"[.0-9]+", split)]
    except ValueError as error:
        raise BadInput(f"--split {split!r} is not a list of shares such as 98,2,0") from error
    if not 1 <= len(shares) <= len(SPLITS) or not sum(shares) > 0:
        raise BadInput(
            f"--split {split!r}: expected one to three shares, at least one above 0, such as 98,2,0"
        )
    shares += [0.0] * (len(SPLITS) - len(shares))
    total = float(np.sum(np.array(shares)))
    # The first bound is the integer 0, as in the names of the cache's files.
    ends = list(itertools.accumulate((share / total for share in shares), initial=0))
    first, second, third = (
        (begin, end) if end > begin else None for begin, end in itertools.pairwise(ends)
    )
    return first, second, third


def documents_of(bounds: Bounds | None, n_sequences: int) -> range:
    """Sequences of a split, with Megatron's rounding of halves to the even number.

    >>> documents_of((0.98, 1.0), 100)
    range(98, 100)
    """
    if bounds is None:
        return range(0)
    return range(round(bounds[0] * float(n_sequences)), round(bounds[1] * float(n_sequences)))


def samples_per_split(
    *,
    train_samples: int | None,
    train_iters: int | None,
    global_batch_size: int | None,
    eval_interval: int,
    eval_iters: int,
    full_validation: bool = False,
) -> tuple[int, int | None, int]:
    """Samples that Megatron requests of train, valid and test.

    >>> samples_per_split(
    ...     train_samples=None,
    ...     train_iters=1000,
    ...     global_batch_size=8,
    ...     eval_interval=100,
    ...     eval_iters=10,
    ... )
    (8000, 880, 80)

    Raises:
        BadInput: if a number is missing or out of range.
    """
    if global_batch_size is None:
        raise BadInput("--global-batch-size is missing: the numbers of samples depend on it")
    if global_batch_size < 1:
        raise BadInput(f"--global-batch-size must be at least 1, got {global_batch_size:,}")
    if train_samples is None and train_iters is None:
        raise BadInput(
            "neither --train-samples nor --train-iters is given: the number of samples depends on "
            "one of them"
        )
    n_train = train_samples or (train_iters or 0) * global_batch_size
    iterations = train_iters if not train_samples else train_samples // global_batch_size
    if eval_interval < 1:
        raise BadInput(f"--eval-interval must be at least 1, got {eval_interval:,}")
    n_valid = ((iterations or 0) // eval_interval + 1) * eval_iters * global_batch_size
    return n_train, None if full_validation else n_valid, eval_iters * global_batch_size


def _number(word: str) -> float | None:
    try:
        return float(word)
    except ValueError:
        return None
