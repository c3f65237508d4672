"""What a launch of Megatron asks of its data: sources with weights, samples per split, length,
seed.

Here: the values, and the rules by which Megatron makes them out of words (a list of weights and
    prefixes, a split such
as ``98,2,0``, iterations). Not here: reading launch arguments
(`lc_assets.formats.launch_arguments`), the cache that such a launch looks for
(`lc_assets.mixing.cache_names`).
Source: Megatron-LM ``megatron/core/datasets/utils.py`` (``get_blend_from_list``),
    ``blended_megatron_dataset_config.py``
(``parse_and_normalize_split``, ``convert_split_vector_to_split_matrix``),
``megatron/training/training.py`` (``get_train_valid_test_num_samples``).
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

Bounds: TypeAlias = tuple[float, float] | None
"""Where a split begins and ends, as shares of the sequences; None has no share."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """Prefixes of one blend as they are written, and their weights; without weights each is gone
    through once.
    """

    prefixes: tuple[str, ...]
    weights: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        if not self.prefixes:
            raise BadInput("no data set is named: a blend needs at least one prefix")
        if twice := [prefix for prefix, count in Counter(self.prefixes).items() if count > 1]:
            raise BadInput(
                f"{twice[0]} is named twice in one blend, and would serve the same samples twice: "
                "name it once, with both weights"
            )
        if self.weights is not None:
            if len(self.weights) != len(self.prefixes):
                raise BadInput(f"{len(self.weights):,} weights for {len(self.prefixes):,} prefixes")
            normalise(self.weights)

    def __len__(self) -> int:
        return len(self.prefixes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """What shapes the indices of a launch.

    Attributes:
        sequence_length: Megatron's ``--seq-length``.
        seed: Megatron's ``--seed``.
        n_samples: of train, valid and test; None goes through each source once.
        blend: sources of all splits, parted by ``split``; or None.
        split: as it is written, such as ``98,2,0``; only with ``blend``.
        per_split: sources of each split by itself; only without ``blend``.
        surplus: Megatron's ``mid_level_dataset_surplus``.
        several_validation_sets: Megatron's ``--multiple-validation-sets``: the sources of valid are
            not blended.
    """

    sequence_length: int
    seed: int = 1234
    n_samples: tuple[int | None, int | None, int | None]
    blend: Sources | None = None
    split: str | None = None
    per_split: tuple[Sources | None, Sources | None, Sources | None] | None = None
    surplus: float = SURPLUS
    several_validation_sets: bool = False

    def __post_init__(self) -> None:
        if (self.blend is None) == (self.per_split is None):
            raise BadInput(
                "a launch names its data once: by --data-path, or for each split by itself"
            )
        if (self.blend is None) != (self.split is None):
            raise BadInput("a split such as 98,2,0 belongs to --data-path, and to nothing else")

    @property
    def bounds(self) -> tuple[Bounds, Bounds, Bounds] | None:
        """Shares of the sequences that go to each split; None when each has sources of its own."""
        return None if self.split is None else split_bounds(self.split)


def sources_of(words: Sequence[str]) -> Sources:
    """Read a list of prefixes, or of weights and prefixes in turn, as Megatron does.

    >>> sources_of(["0.7", "web", "0.3", "books"])
    Sources(prefixes=('web', 'books'), weights=(0.7, 0.3))
    >>> sources_of(["web", "books"])
    Sources(prefixes=('web', 'books'), weights=None)

    Raises:
        BadInput: when only some of the weights are numbers, or one cannot be meant.
    """
    weights = [_number(word) for word in words[::2]]
    if len(words) % 2 or all(weight is None for weight in weights):
        return Sources(prefixes=tuple(word.strip() for word in words))
    if None in weights:
        raise BadInput(
            f"{words[2 * weights.index(None)]!r} stands where a weight is wanted; give every "
            "prefix a weight before it, or none"
        )
    return Sources(
        prefixes=tuple(word.strip() for word in words[1::2]),
        weights=tuple(weight for weight in weights if weight is not None),
    )


def split_bounds(split: str) -> tuple[Bounds, Bounds, Bounds]:
    """Where train, valid and test begin and end, by Megatron's arithmetic.

    >>> split_bounds("98,2,0")
    ((0, 0.98), (0.98, 1.0), None)

    Raises:
        BadInput: when there are more than three shares, or none above 0.
    """
    try:
        shares = [float(found) for found in re.findall(r"[.0-9]+", split)]
    except ValueError as error:
        raise BadInput(f"--split {split!r} is not a list of shares such as 98,2,0") from error
    if not 1 <= len(shares) <= len(SPLITS) or not sum(shares) > 0:
        raise BadInput(
            f"--split {split!r}: wanted one to three shares, at least one above 0, such as 98,2,0"
        )
    shares += [0.0] * (len(SPLITS) - len(shares))
    total = float(np.sum(np.array(shares)))
    # The first bound is a whole 0, and stands so in the names of the cache's files.
    ends = list(itertools.accumulate((share / total for share in shares), initial=0))
    first, second, third = (
        (begin, end) if end > begin else None for begin, end in itertools.pairwise(ends)
    )
    return first, second, third


def documents_of(bounds: Bounds, n_sequences: int) -> range:
    """Sequences of a split, by Megatron's rounding: halves to the even number.

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
    """Samples that Megatron asks of train, valid and test.

    >>> samples_per_split(train_samples=None, train_iters=1000, global_batch_size=8, eval_interval=100, eval_iters=10)
    (8000, 880, 80)

    Raises:
        BadInput: when a number is missing.
    """
    if global_batch_size is None:
        raise BadInput(
            "--global-batch-size is missing: the samples that the splits need depend on it"
        )
    if global_batch_size < 1:
        raise BadInput(f"--global-batch-size is at least 1, got {global_batch_size:,}")
    if train_samples is None and train_iters is None:
        raise BadInput(
            "neither --train-samples nor --train-iters is given: one of them says how many "
            "samples there are"
        )
    n_train = train_samples or (train_iters or 0) * global_batch_size
    iterations = train_iters if not train_samples else train_samples // global_batch_size
    if eval_interval < 1:
        raise BadInput(f"--eval-interval is at least 1, got {eval_interval:,}")
    n_valid = ((iterations or 0) // eval_interval + 1) * eval_iters * global_batch_size
    return n_train, None if full_validation else n_valid, eval_iters * global_batch_size


def _number(word: str) -> float | None:
    try:
        return float(word)
    except ValueError:
        return None
