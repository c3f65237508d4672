"""Megatron's cache: which files a launch looks for, and what they must hold.

Megatron names a cached index by the MD5 of a description: a JSON text of the data set's path *as it
is written*, the samples asked for, split, seed, sequence length, and what identifies the tokenizer.
It looks whether files of these names are there, and reads them; what they hold it never compares.
So the names must be met to the letter, and whoever writes another data set under the same path
serves stale indices.

================================================================  =============================================
file                                                              what
================================================================  =============================================
``{md5}-GPTDataset-{split}-description.txt``                      the JSON text; only its presence counts
``{md5}-GPTDataset-{split}-{document,sample,shuffle}_index.npy``  `lc_assets.mixing.gpt_index`
``{md5}-BlendedDataset-{split}-description.txt``                  the same, of a blend
``{md5}-BlendedDataset-{split}-dataset_index.npy``                `lc_assets.mixing.blending`
``{md5}-BlendedDataset-{split}-dataset_sample_index.npy``
================================================================  =============================================

The tokenizer's identity differs from version to version of megatron-core, the arrays do not: one
build serves several versions by several names.

Here: names and descriptions. Not here: files (`lc_assets.stages.megatron.caching`).
Source: Megatron-LM ``megatron/core/datasets``: ``megatron_dataset.py``, ``gpt_dataset.py``,
    ``blended_dataset.py``,
``blended_megatron_dataset_builder.py`` (core 0.16.1; unchanged in this up to 0.19.2).
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lc_assets.errors import BadInput
from lc_assets.mixing.blending import normalise, requests, targets
from lc_assets.mixing.launch import SPLITS, Bounds, Launch, Sources

WHOLE = (0.0, 1.0)
_WHOLE: Bounds = WHOLE
GPT_FILES = ("document_index", "sample_index", "shuffle_index")
BLEND_FILES = ("dataset_index", "dataset_sample_index")

Identity = Mapping[str, Any]
"""What Megatron's tokenizer says of itself: ``tokenizer.unique_identifiers``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GptRequest:
    """One source's index as one split of a launch asks for it."""

    prefix: str
    split: str
    bounds: Bounds
    n_samples: int | None

    @property
    def files(self) -> tuple[str, ...]:
        """Names of its arrays."""
        return GPT_FILES

    def described(self, launch: Launch, tokenizer: Identity) -> dict[str, Any]:
        """What Megatron says of it, in Megatron's order."""
        return {
            "class": "GPTDataset",
            "dataset_path": self.prefix,
            "num_samples": self.n_samples,
            "index_split": self.split,
            "random_seed": launch.seed,
            "sequence_length": launch.sequence_length,
            "split": launch.split,
            "split_matrix": launch.bounds,
            "tokenizer": tokenizer,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class BlendRequest:
    """One split's blend.

    Attributes:
        sources: in the order of the data sets' numbers.
        weights: shares, when the blend has a size; samples of each source, when it takes them all.
        size: of the blend, or None.
    """

    split: str
    sources: tuple[GptRequest, ...]
    weights: tuple[float, ...] | tuple[int, ...]
    size: int | None

    @property
    def files(self) -> tuple[str, ...]:
        """Names of its arrays."""
        return BLEND_FILES

    def described(self, launch: Launch, tokenizer: Identity) -> dict[str, Any]:
        """What Megatron says of it, in Megatron's order."""
        return {
            "class": "BlendedDataset",
            "datasets": [source.described(launch, tokenizer) for source in self.sources],
            "split": self.split,
            "weights": list(self.weights),
            "size": self.size,
        }


Request = GptRequest | BlendRequest


def description(request: Request, launch: Launch, tokenizer: Identity) -> str:
    """The text whose MD5 names the files."""
    return json.dumps(request.described(launch, tokenizer), indent=4)


def stem(request: Request, launch: Launch, tokenizer: Identity) -> str:
    """What the names of a request's files begin with.

    >>> from lc_assets.mixing.launch import Sources
    >>> launch = Launch(sequence_length=8, n_samples=(5, 0, 0), blend=Sources(prefixes=("web",)), split="1,0,0")
    >>> stem(requested(launch, lambda _: 9)[0], launch, {})
    'f464cdd8937a60fd462ca47c99b762fa-GPTDataset-train'
    """
    text = description(request, launch, tokenizer)
    digest = hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()
    return f"{digest}-{request.described(launch, tokenizer)['class']}-{request.split}"


def requested(launch: Launch, n_samples_of: Callable[[GptRequest], int]) -> list[Request]:
    """Every index that a launch looks for, each source's before the blends that take from it.

    Args:
        launch: the launch.
        n_samples_of: how many samples a source's index holds; asked of blends that have no weights.

    Raises:
        BadInput: when weights are given and the number of samples is not, or the blend cannot be
            meant.
    """
    found: dict[Request, None] = {}
    for number, split in enumerate(SPLITS):
        for request in _of_split(launch, number, split, n_samples_of):
            found[request] = None
    return list(found)


def _of_split(
    launch: Launch, number: int, split: str, n_samples_of: Callable[[GptRequest], int]
) -> Sequence[Request]:
    size = launch.n_samples[number]
    if launch.per_split is not None:
        sources, bounds = launch.per_split[number], _WHOLE
        alone = sources is not None and (
            len(sources) == 1 or (launch.several_validation_sets and split == "valid")
        )
    else:
        sources, bounds = launch.blend, (launch.bounds or (None,) * len(SPLITS))[number]
        alone = sources is not None and len(sources) == 1 and sources.weights is None
    if sources is None or bounds is None:
        return []
    if alone:
        return [
            GptRequest(prefix=prefix, split=split, bounds=bounds, n_samples=size)
            for prefix in sources.prefixes
        ]
    return _blended(
        launch,
        sources,
        GptRequest(prefix="", split=split, bounds=bounds, n_samples=size),
        n_samples_of,
    )


def _blended(
    launch: Launch, sources: Sources, like: GptRequest, n_samples_of: Callable[[GptRequest], int]
) -> Sequence[Request]:
    size = like.n_samples
    asked: Sequence[int | None] = [None] * len(sources)
    if sources.weights is not None:
        if size is None:
            raise BadInput(
                f"{like.split}: sources with weights need a number of samples; leave the weights "
                "or --full-validation out"
            )
        asked = requests(sources.weights, size, surplus=launch.surplus)
    each = tuple(
        GptRequest(prefix=prefix, split=like.split, bounds=like.bounds, n_samples=n)
        for prefix, n in zip(sources.prefixes, asked, strict=True)
    )
    if sources.weights is not None and size is not None:
        # Megatron normalises twice: when it asks the sources, and when it draws up the blend.
        weights = normalise(normalise(sources.weights).tolist()).tolist()
        return [
            *each,
            BlendRequest(
                split=like.split,
                sources=each,
                weights=tuple(weights),
                size=sum(targets(sources.weights, size)),
            ),
        ]
    available = [n_samples_of(one) for one in each]
    if empty := [
        one.prefix for one, n_samples in zip(each, available, strict=True) if n_samples < 1
    ]:
        raise BadInput(
            f"{empty[0]}: its {like.split} split holds less than one sample; leave it out of the "
            "blend"
        )
    if size is None:
        return [
            *each,
            BlendRequest(split=like.split, sources=each, weights=tuple(available), size=None),
        ]
    weights = normalise(available).tolist()
    return [
        *each,
        BlendRequest(
            split=like.split, sources=each, weights=tuple(weights), size=min(size, sum(available))
        ),
    ]
