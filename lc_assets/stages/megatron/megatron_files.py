"""One GPT index or one blend as files, outside any lake.

The arrays have plain names; the names that Megatron looks for are a cache's
(`lc_assets.stages.megatron.caching`).
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from lc_assets.errors import BadInput
from lc_assets.formats.arrays.npy import write_npy
from lc_assets.formats.megatron.indexed import MegatronReader
from lc_assets.mixing.blending import blend, blend_all, counts, for_uint8, normalise
from lc_assets.mixing.cache_names import BLEND_FILES, GPT_FILES
from lc_assets.mixing.gpt_index import Cut, build_gpt_index, plan_epochs
from lc_assets.mixing.launch import SPLITS, documents_of, split_bounds

EPOCHS_SUGGESTED = 4


def index_prefix(
    prefix: Path,
    out: Path,
    *,
    sequence_length: int,
    seed: int,
    n_samples: int | None,
    split: str | None = None,
    part: str = "train",
) -> list[tuple[str, object]]:
    """Write the GPT index of a data set, or of one part of a split of it; return its facts.

    Raises:
        BadInput: if the part has no token, or an argument is out of range.
        CorruptFile: if the data set is missing or damaged.
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
    index = build_gpt_index(
        lengths,
        sequence_length=sequence_length,
        seed=seed,
        n_samples=n_samples,
        documents=chosen,
    )
    for name in GPT_FILES:
        write_npy(out / f"{name}.npy", getattr(index, name))
    whole = (cut.n_whole(n * epoch_tokens) for n in range(1, EPOCHS_SUGGESTED + 1))
    return [
        ("documents", len(chosen)),
        ("tokens of one epoch", epoch_tokens),
        ("epochs", epochs.n_epochs),
        ("last epoch apart", epochs.n_before_last is not None),
        ("samples", index.n_samples),
        ("--train-samples for whole epochs", ", ".join(f"{n:,}" for n in whole)),
        ("written to", str(out)),
    ]


def write_blend(
    out: Path,
    *,
    weights: Sequence[str] | None,
    sizes: Sequence[str] | None,
    size: int | None,
    uint8: bool = False,
) -> list[tuple[float, int]]:
    """Write a blend by weights, or of everything; return each source's weight or size, and the
    samples taken of it.

    Raises:
        BadInput: if a weight or size is no number or out of range.
    """
    if (weights is None) == (sizes is None):
        raise BadInput("expected either --weights with --size, or --sizes")
    if (sizes is None) == (size is None):
        raise BadInput(
            "--size says how long a blend by --weights is; one by --sizes takes everything"
        )
    stated = _numbers(weights or sizes or ())
    if size is not None:
        numbers, samples = blend(normalise(normalise(stated).tolist()), size)
    elif fractions := [number for number in stated if number != int(number)]:
        raise BadInput(f"a size is a whole number of samples, got {fractions[0]}")
    else:
        numbers, samples = blend_all([int(number) for number in stated])
    taken = counts(numbers, len(stated))
    arrays = for_uint8(numbers, len(stated)) if uint8 else numbers, samples
    for name, array in zip(BLEND_FILES, arrays, strict=True):
        write_npy(out / f"{name}.npy", array)
    return list(zip(stated, taken, strict=True))


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
                f"{word!r} is not a number; expected weights such as 0.7 0.2 0.1, or sizes such "
                "as 700 200"
            ) from error
    if odd := [number for number in found if not np.isfinite(number)]:
        raise BadInput(f"{odd[0]} is neither a weight nor a size")
    return found
