"""Megatron's cache: the files that a launch looks for, and what they must contain.

Megatron names a cached index by the MD5 of a description: a JSON text of the data set's path *as
written*, the samples requested, split, seed, sequence length, and the tokenizer's identity. It
reads files with these names if they exist, and never checks their contents. So the names must match
exactly, and writing another data set to the same path makes Megatron use stale indices.

================================================================  ==================================
file                                                              contents
================================================================  ==================================
``{md5}-GPTDataset-{split}-description.txt``                      the JSON text; only its presence
                                                                  matters
``{md5}-GPTDataset-{split}-{document,sample,shuffle}_index.npy``  `lc_assets.mixing.gpt_index`
``{md5}-BlendedDataset-{split}-description.txt``                  the JSON text of a blend
``{md5}-BlendedDataset-{split}-dataset_index.npy``                `lc_assets.mixing.blending`
``{md5}-BlendedDataset-{split}-dataset_sample_index.npy``         `lc_assets.mixing.blending`
================================================================  ==================================

The tokenizer's identity differs between versions of megatron-core, the arrays do not: one build
serves several versions under several names.

Source: Megatron-LM ``megatron/core/datasets``: ``megatron_dataset.py``, ``gpt_dataset.py``,
    ``blended_dataset.py``, ``blended_megatron_dataset_builder.py`` (core 0.16.1; unchanged in this
    up to 0.19.2). Identities as printed by megatron-core 0.16.1, 0.19.2 and Megatron-LM's main of
    2026-08.
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
"""Megatron's ``tokenizer.unique_identifiers``."""
_OLDER = "megatron.core.tokenizers.text.models.default_tokenizer.DefaultTokenizerText"
_NEWER = "megatron.core.tokenizers.text.text_tokenizer.MegatronTokenizerText"


@dataclass(frozen=True, slots=True, kw_only=True)
class GptRequest:
    """The index of one source for one split of a launch."""

    prefix: str
    split: str
    bounds: Bounds
    n_samples: int | None

    @property
    def files(self) -> tuple[str, ...]:
        """Names of the arrays."""
        return GPT_FILES

    def described(self, launch: Launch, tokenizer: Identity) -> dict[str, Any]:
        """Megatron's description, in its order."""
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
    """The blend of one split.

    Attributes:
        sources: in the order of the data sets' numbers.
        weights: shares, if the blend has a size; samples of each source, if it takes them all.
        size: samples of the blend, or None.
    """

    split: str
    sources: tuple[GptRequest, ...]
    weights: tuple[float, ...] | tuple[int, ...]
    size: int | None

    @property
    def files(self) -> tuple[str, ...]:
        """Names of the arrays."""
        return BLEND_FILES

    def described(self, launch: Launch, tokenizer: Identity) -> dict[str, Any]:
        """Megatron's description, in its order."""
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
    """Common beginning of the names of a request's files.

    >>> from lc_assets.mixing.launch import Sources
    >>> launch = Launch(sequence_length=8, n_samples=(5, 0, 0), blend=Sources(prefixes=("web",)), split="1,0,0")
    >>> stem(requested(launch, lambda _: 9)[0], launch, {})
    'f464cdd8937a60fd462ca47c99b762fa-GPTDataset-train'
    """
    text = description(request, launch, tokenizer)
    digest = hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()
    return f"{digest}-{request.described(launch, tokenizer)['class']}-{request.split}"


def requested(launch: Launch, n_samples_of: Callable[[GptRequest], int]) -> list[Request]:
    """Every index that a launch looks for; sources come before the blends that use them.

    Args:
        launch: the launch.
        n_samples_of: number of samples of a source's index; called for blends without weights.

    Raises:
        BadInput: if weights are given without a number of samples, or the blend is invalid.
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
    requested_of: Sequence[int | None] = [None] * len(sources)
    if sources.weights is not None:
        if size is None:
            raise BadInput(
                f"{like.split}: sources with weights need a number of samples: remove the weights "
                "or --full-validation"
            )
        requested_of = requests(sources.weights, size, surplus=launch.surplus)
    each = tuple(
        GptRequest(prefix=prefix, split=like.split, bounds=like.bounds, n_samples=n)
        for prefix, n in zip(sources.prefixes, requested_of, strict=True)
    )
    if sources.weights is not None and size is not None:
        # Megatron normalises twice: for the sources, and for the blend.
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
            f"{empty[0]}: its {like.split} split has less than one sample: leave it out of the "
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


def hugging_face_identities(tokenizer_path: str) -> Mapping[str, dict[str, Any]]:
    """Identity of Megatron's Hugging Face tokenizer with default arguments, by megatron-core
    version.

    For any other tokenizer, use what the program itself prints:
    ``json.dumps(tokenizer.unique_identifiers)``.

    Args:
        tokenizer_path: name or folder, exactly as passed to Megatron.

    >>> list(hugging_face_identities("gpt2"))
    ['0.15 to 0.17', '0.18 to 0.19', 'main']
    """
    rest = {
        "vocab_file": "None",
        "merges_file": "None",
        "additional_special_tokens": "[]",
        "use_fast": "True",
        "trust_remote_code": "False",
        "include_special_tokens": "True",
    }
    template = {"chat_template": "None"}
    return {
        "0.15 to 0.17": {"class": _OLDER, "tokenizer_path": tokenizer_path} | rest,
        "0.18 to 0.19": {"class": _OLDER, "tokenizer_path": tokenizer_path} | template | rest,
        "main": {"class": _NEWER, "tokenizer_path": tokenizer_path}
        | template
        | rest
        | {"use_gigatoken": "False"},
    }
