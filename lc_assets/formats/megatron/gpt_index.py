"""GPT indices on disk, and Megatron's cache of them.

===========================  =================================================================
file                         array
===========================  =================================================================
``{name}_document_index``    int32, place in the sequence of documents → document
``{name}_sample_index``      int32 or int64, boundary × (place, token within that document)
``{name}_shuffle_index``     uint32 or int64, order of training → sample
===========================  =================================================================

Each is a ``.npy`` file. Megatron caches the same arrays under names that hold a hash of its
settings (`lc_assets.mixing.cache_names`). Beside them this package writes two files that Megatron
ignores: ``lc_cache.json`` holds the digest of each data set's ``.idx``, so that a change is
    noticed, and
``per_dataset_sequences.json`` is for its option ``--per-dataset-sequences-path``. Arrays are staged
and renamed, the description last: an interrupted write is never a hit.

Source: Megatron-LM ``megatron/core/datasets/gpt_dataset.py``.
"""

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from lc_assets.errors import UNDECODABLE, CorruptFile
from lc_assets.formats.arrays.npy import read_npy, write_npy
from lc_assets.mixing.gpt_index import GptIndex
from lc_assets.publishing import publish, publish_bytes

ARRAYS = ("document_index", "sample_index", "shuffle_index")


def write_gpt_index(prefix: Path, index: GptIndex) -> None:
    """Write an index as ``{prefix}_….npy``, each file whole."""
    for name in ARRAYS:
        write_npy(index_path(prefix, name), getattr(index, name))


def read_gpt_index(prefix: Path) -> GptIndex:
    """Map an index into memory.

    Raises:
        CorruptFile: when an array is missing, cut short, or the three do not belong together.
    """
    index = GptIndex(*(read_npy(index_path(prefix, name)) for name in ARRAYS))
    if index.sample_index.shape != (index.n_samples + 1, 2):
        wanted = f"{index.n_samples:,} samples need {index.n_samples + 1:,} × 2"
        raise CorruptFile(f"{prefix}: sample_index has shape {index.sample_index.shape}, {wanted}")
    return index


def index_path(prefix: Path, name: str) -> Path:
    """Where one of the arrays lies."""
    return prefix.with_name(f"{prefix.name}_{name}.npy")


DESCRIPTION = "description.txt"
MANIFEST = "lc_cache.json"
SEQUENCES = "per_dataset_sequences.json"


class PrefixFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Facts of a data set when its indices were built.

    Attributes:
        digest: of its ``.idx``, on which all indices depend, and of the size of its ``.bin``.
        sequences: in the ``.idx``.
        boundaries: of documents: their number plus one, which the header calls document count.
    """

    digest: str
    sequences: int
    boundaries: int


def write_entry(cache: Path, stems: Mapping[str, str], arrays: Mapping[str, np.ndarray]) -> None:
    """Write arrays once, and show them under every stem.

    Args:
        cache: the folder.
        stems: description by what the files' names begin with.
        arrays: by what the files' names end with.
    """
    first, *others = stems
    for name, array in arrays.items():
        write_npy(array_path(cache, first, name), array)
        for stem in others:
            _link(array_path(cache, first, name), array_path(cache, stem, name))
    for stem, text in stems.items():
        publish_bytes(cache / f"{stem}-{DESCRIPTION}", text.encode())


def array_path(cache: Path, stem: str, name: str) -> Path:
    """Where one of the arrays lies."""
    return cache / f"{stem}-{name}.npy"


def missing_files(cache: Path, stem: str, names: Sequence[str]) -> list[str]:
    """Names of the files that Megatron would look for and not find."""
    wanted = [cache / f"{stem}-{DESCRIPTION}", *(array_path(cache, stem, name) for name in names)]
    return [path.name for path in wanted if not path.is_file()]


def entry_shapes(cache: Path, stem: str, names: Sequence[str]) -> list[tuple[int, ...]]:
    """Shapes of the arrays.

    Raises:
        CorruptFile: when one is cut short, or none.
    """
    return [read_npy(array_path(cache, stem, name)).shape for name in names]


def read_manifest(cache: Path) -> dict[str, PrefixFacts]:
    """What the data sets were when the cache was built; empty where nothing says so."""
    path = cache / MANIFEST
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, PrefixFacts])
    except FileNotFoundError:
        return {}
    except UNDECODABLE as error:
        raise CorruptFile(
            f"{path}: cannot be read: {error}; remove it, and the cache is rebuilt"
        ) from error


def write_manifest(cache: Path, facts: Mapping[str, PrefixFacts]) -> None:
    """State what the data sets are, for us and for ``--per-dataset-sequences-path``."""
    publish_bytes(
        cache / SEQUENCES,
        _json({prefix: [one.sequences, one.boundaries] for prefix, one in facts.items()}),
    )
    publish_bytes(cache / MANIFEST, _json(facts))


def _json(value: Any) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"


def _link(source: Path, target: Path) -> None:
    with publish(target) as draft:
        try:
            os.link(source, draft)
        except OSError:  # a file system without hard links
            shutil.copyfile(source, draft)
