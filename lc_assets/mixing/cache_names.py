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

A launch has sources with weights, samples per split, a sequence length and a seed; a list of
weights and prefixes, or a split such as ``98,2,0``, is read by Megatron's rules. Launch arguments:
`lc_assets.formats.megatron.launch_arguments`.

Source: Megatron-LM ``megatron/core/datasets``: ``utils.py`` (``get_blend_from_list``),
    ``blended_megatron_dataset_config.py``, ``megatron_dataset.py``, ``gpt_dataset.py``,
    ``blended_dataset.py``, ``blended_megatron_dataset_builder.py`` (core 0.16.1; unchanged in this
    up to 0.19.2). Identities as printed by megatron-core 0.16.1, 0.19.2 and Megatron-LM's main of
    2026-08.
"""

import hashlib
import itertools
import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from lc_assets.errors import BadInput
from lc_assets.mixing.blending import SURPLUS, normalise, requests, targets
from lc_assets.records import record

SPLITS = ("train", "valid", "test")
"""Megatron's names."""

Bounds: TypeAlias = tuple[float, float]
"""Where a split begins and ends, as shares of the sequences."""
WHOLE: Bounds = (0.0, 1.0)


@record
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


@record
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
        several_validation_sets: ``--multiple-validation-sets``: the sources of valid stay apart.
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


def _number(word: str) -> float | None:
    try:
        return float(word)
    except ValueError:
        return None


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
        weights: None for an index; shares of a blend with a size, else all samples of each source.
        size: samples of the blend, or None.
    """

    split: str
    parts: tuple[Part, ...]
    weights: tuple[float, ...] | tuple[int, ...] | None = None
    size: int | None = None

    def __str__(self) -> str:
        return f"{self.split} of {', '.join(part.prefix for part in self.parts)}"

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

        >>> web = Sources(prefixes=("web",))
        >>> launch = Launch(
        ...     sequence_length=8, n_samples=(5, 0, 0), sources=(web, web, web), split="1,0,0"
        ... )
        >>> requested(launch, lambda split, part: 9)[0].stem(launch, {})
        'f464cdd8937a60fd462ca47c99b762fa-GPTDataset-train'
        """
        return self.stem_of(self.description(launch, tokenizer))

    def stem_of(self, description: str) -> str:
        """The `stem` under a description that was made before: that of a large blend takes long."""
        digest = hashlib.md5(description.encode(), usedforsecurity=False).hexdigest()
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

    For any other tokenizer, use the output of Megatron:
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
