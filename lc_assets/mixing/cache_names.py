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
from typing import Any, NamedTuple

from lc_assets.errors import BadInput
from lc_assets.mixing.blending import normalise, requests, targets
from lc_assets.mixing.launch import SPLITS, Bounds, Launch, Sources

GPT_FILES = ("document_index", "sample_index", "shuffle_index")
BLEND_FILES = ("dataset_index", "dataset_sample_index")

Identity = Mapping[str, Any]
"""Megatron's ``tokenizer.unique_identifiers``."""
_OLDER = "megatron.core.tokenizers.text.models.default_tokenizer.DefaultTokenizerText"
_NEWER = "megatron.core.tokenizers.text.text_tokenizer.MegatronTokenizerText"


class Part(NamedTuple):
    """The samples of one source that one split needs; None means one epoch."""

    prefix: str
    bounds: Bounds
    n_samples: int | None


class Request(NamedTuple):
    """The index of one source, or the blend of several, for one split of a launch.

    Attributes:
        split: name of the split.
        parts: the source, or the sources in the order of the data sets' numbers.
        weights: None for an index; of a blend, shares if it has a size, else the samples of each
            source, all of which it takes.
        size: samples of the blend, or None.
    """

    split: str
    parts: tuple[Part, ...]
    weights: tuple[float, ...] | tuple[int, ...] | None = None
    size: int | None = None

    @property
    def files(self) -> tuple[str, ...]:
        """Names of the arrays."""
        return GPT_FILES if self.weights is None else BLEND_FILES

    def description(self, launch: Launch, tokenizer: Identity) -> str:
        """The text whose MD5 names the files."""
        data_sets = [
            {
                "class": "GPTDataset",
                "dataset_path": part.prefix,
                "num_samples": part.n_samples,
                "index_split": self.split,
                "random_seed": launch.seed,
                "sequence_length": launch.sequence_length,
                "split": launch.split,
                "split_matrix": launch.bounds if launch.split else None,
                "tokenizer": tokenizer,
            }
            for part in self.parts
        ]
        blend = {
            "class": "BlendedDataset",
            "datasets": data_sets,
            "split": self.split,
            "weights": self.weights,
            "size": self.size,
        }
        return json.dumps(data_sets[0] if self.weights is None else blend, indent=4)

    def stem(self, launch: Launch, tokenizer: Identity) -> str:
        """Common beginning of the names of the files.

        >>> from lc_assets.mixing.launch import Sources
        >>> web = Sources(prefixes=("web",))
        >>> launch = Launch(
        ...     sequence_length=8, n_samples=(5, 0, 0), sources=(web, web, web), split="1,0,0"
        ... )
        >>> requested(launch, lambda split, part: 9)[0].stem(launch, {})
        'f464cdd8937a60fd462ca47c99b762fa-GPTDataset-train'
        """
        content = self.description(launch, tokenizer).encode()
        digest = hashlib.md5(content, usedforsecurity=False).hexdigest()
        kind = "GPTDataset" if self.weights is None else "BlendedDataset"
        return f"{digest}-{kind}-{self.split}"


def requested(launch: Launch, n_samples_of: Callable[[str, Part], int]) -> list[Request]:
    """Every index that a launch looks for; sources come before the blends that use them.

    Args:
        launch: the launch.
        n_samples_of: number of samples of a source's index for a split; called for blends without
            weights.

    Raises:
        BadInput: if weights are given without a number of samples, or the blend is invalid.
    """
    found: dict[Request, None] = {}
    for number, split in enumerate(SPLITS):
        sources, bounds = launch.sources[number], launch.bounds[number]
        if sources is not None and bounds is not None:
            size = launch.n_samples[number]
            found |= dict.fromkeys(_of_split(launch, split, sources, bounds, size, n_samples_of))
    return list(found)


def _of_split(
    launch: Launch,
    split: str,
    sources: Sources,
    bounds: Bounds,
    size: int | None,
    n_samples_of: Callable[[str, Part], int],
) -> list[Request]:
    weights = sources.weights
    alone = len(sources) == 1 and (launch.split is None or weights is None)
    alone |= launch.split is None and launch.several_validation_sets and split == "valid"
    each: Sequence[int | None] = [size if alone else None] * len(sources)
    if weights is not None and not alone:
        if size is None:
            raise BadInput(
                f"{split}: sources with weights need a number of samples: remove the weights or "
                "--full-validation"
            )
        each = requests(weights, size, surplus=launch.surplus)
    parts = tuple(Part(prefix, bounds, n) for prefix, n in zip(sources.prefixes, each, strict=True))
    found = [Request(split, (part,)) for part in parts]
    if alone:
        return found
    if weights is not None and size is not None:
        # Megatron normalises twice: for the sources, and for the blend.
        shares = normalise(normalise(weights).tolist()).tolist()
        return [*found, Request(split, parts, tuple(shares), sum(targets(weights, size)))]
    available = [n_samples_of(split, part) for part in parts]
    if min(available) < 1:
        raise BadInput(
            f"{parts[available.index(min(available))].prefix}: its {split} split has less than one "
            "sample: leave it out of the blend"
        )
    if size is None:
        return [*found, Request(split, parts, tuple(available))]
    shares = normalise(available).tolist()
    return [*found, Request(split, parts, tuple(shares), min(size, sum(available)))]


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
