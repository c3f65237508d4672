"""One GPT index or one blend as files, outside any lake: what a person asks for by hand.

The arrays bear the plain names of what they are; those under which Megatron looks for them are a
cache's (`lc_assets.stages.megatron.caching`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lc_assets.errors import BadInput
from lc_assets.formats.arrays.npy import write_npy
from lc_assets.formats.megatron.indexed import MegatronReader
from lc_assets.mixing.blending import blend, blend_all, counts, for_uint8, normalise
from lc_assets.mixing.cache_names import BLEND_FILES, GPT_FILES
from lc_assets.mixing.gpt_index import Cut, build_gpt_index, plan_epochs
from lc_assets.mixing.launch import SPLITS, documents_of, split_bounds


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeIndex:
    """What an index came to."""

    cut: Cut
    n_documents: int
    epoch_tokens: int
    n_epochs: int
    last_apart: bool
    n_samples: int

    def samples_of(self, n_epochs: int) -> int:
        """The most samples that so many epochs give."""
        return self.cut.n_whole(n_epochs * self.epoch_tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeBlend:
    """What a blend came to: weight or size that was asked for, and samples taken, of each
    source.
    """

    size: int
    lines: list[tuple[float | int, int]]


def index_prefix(
    prefix: Path,
    out: Path,
    *,
    sequence_length: int,
    seed: int,
    n_samples: int | None,
    split: str | None = None,
    part: str = "train",
) -> MadeIndex:
    """Write the GPT index of a data set, or of one part of a split of it.

    Raises:
        BadInput: when the part has no token, or an argument cannot be meant.
        CorruptFile: when the data set is missing or damaged.
    """
    lengths = MegatronReader(prefix).lengths
    chosen = _part(len(lengths), split, part)
    cut = Cut(sequence_length=sequence_length)
    epoch_tokens = int(lengths[chosen.start : chosen.stop].sum(dtype=np.int64))
    try:
        epochs = plan_epochs(epoch_tokens, cut, n_samples)
    except BadInput as error:
        raise BadInput(
            f"{prefix}: {len(chosen):,} of {len(lengths):,} documents: {error}"
        ) from error
    documents = (
        None
        if len(chosen) == len(lengths)
        else np.arange(chosen.start, chosen.stop, dtype=np.int32)
    )
    index = build_gpt_index(
        lengths,
        sequence_length=sequence_length,
        seed=seed,
        n_samples=n_samples,
        documents=documents,
    )
    for name in GPT_FILES:
        write_npy(out / f"{name}.npy", getattr(index, name))
    return MadeIndex(
        cut=cut,
        n_documents=len(chosen),
        epoch_tokens=epoch_tokens,
        n_epochs=epochs.n_epochs,
        last_apart=epochs.n_before_last is not None,
        n_samples=index.n_samples,
    )


def write_blend(
    out: Path,
    *,
    weights: Sequence[str] | None,
    sizes: Sequence[str] | None,
    size: int | None,
    uint8: bool = False,
) -> MadeBlend:
    """Write a blend by weights, or of everything.

    Raises:
        BadInput: when a weight or size is no number or cannot be meant.
    """
    if (weights is None) == (sizes is None):
        raise BadInput("wanted either --weights with --size, or --sizes")
    if (sizes is None) == (size is None):
        raise BadInput(
            "--size says how long a blend by --weights is; one by --sizes takes everything"
        )
    asked = _numbers(weights or sizes or ())
    if sizes is not None or size is None:
        if fractions := [number for number in asked if number != int(number)]:
            raise BadInput(f"a size is a whole number of samples, got {fractions[0]}")
        drawn = blend_all([int(number) for number in asked])
    else:
        drawn = blend(normalise(normalise(asked).tolist()), size)
    numbers = for_uint8(drawn[0], len(asked)) if uint8 else drawn[0]
    for name, array in zip(BLEND_FILES, (numbers, drawn[1]), strict=True):
        write_npy(out / f"{name}.npy", array)
    return MadeBlend(
        size=len(numbers), lines=list(zip(asked, counts(numbers, len(asked)), strict=True))
    )


def _part(n_documents: int, split: str | None, part: str) -> range:
    if part not in SPLITS:
        raise BadInput(f"--part {part!r}: there are {', '.join(SPLITS)}")
    if split is None:
        return range(n_documents)
    bounds = split_bounds(split)[SPLITS.index(part)]
    if bounds is None:
        raise BadInput(f"--split {split!r} gives {part} no share")
    return documents_of(bounds, n_documents)


def _numbers(words: Sequence[str]) -> list[float]:
    found = []
    for word in ",".join(words).split(","):
        try:
            found.append(float(word))
        except ValueError as error:
            raise BadInput(
                f"{word!r} is not a number; wanted weights such as 0.7 0.2 0.1, or sizes such as "
                "700 200"
            ) from error
    if odd := [number for number in found if not np.isfinite(number)]:
        raise BadInput(f"{odd[0]} is neither a weight nor a size")
    return found
