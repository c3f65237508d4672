"""GPT indices on disk, and Megatron's cache of them.

===========================  =================================================================
file                         array
===========================  =================================================================
``{name}_document_index``    int32, place in the sequence of documents → document
``{name}_sample_index``      int32 or int64, boundary × (place, token within that document)
``{name}_shuffle_index``     uint32 or int64, order of training → sample
===========================  =================================================================

Each is a ``.npy`` file. Megatron caches the same arrays under names with a hash of its
settings (`lc_assets.mixing.cache_names`). Beside them this package writes two files that Megatron
ignores: ``lc_cache.json`` has the digest of each data set's ``.idx``, so that a change is detected,
and ``per_dataset_sequences.json`` is for its option ``--per-dataset-sequences-path``. Arrays are
staged and renamed, the description last: an interrupted write is never a cache hit.

Source: Megatron-LM ``megatron/core/datasets/gpt_dataset.py``.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np

from lc_assets.errors import UNDECODABLE, CorruptFile
from lc_assets.formats.arrays.npy import read_npy, write_npy
from lc_assets.mixing.cache_names import GPT_FILES
from lc_assets.mixing.gpt_index import GptIndex
from lc_assets.publishing import publish_bytes, publish_linked


def write_gpt_index(prefix: Path, index: GptIndex) -> None:
    """Write an index as ``{prefix}_….npy``, each file atomically."""
    for name in GPT_FILES:
        write_npy(index_path(prefix, name), getattr(index, name))


def read_gpt_index(prefix: Path) -> GptIndex:
    """Map an index into memory.

    Raises:
        CorruptFile: if an array is missing or truncated, or the three do not match.
    """
    index = GptIndex(*(read_npy(index_path(prefix, name)) for name in GPT_FILES))
    if index.sample_index.shape != (index.n_samples + 1, 2):
        expected = f"{index.n_samples:,} samples need {index.n_samples + 1:,} × 2"
        raise CorruptFile(
            f"{prefix}: sample_index has shape {index.sample_index.shape}, {expected}"
        )
    return index


def index_path(prefix: Path, name: str) -> Path:
    """Path of one of the arrays."""
    return prefix.with_name(f"{prefix.name}_{name}.npy")


DESCRIPTION = "description.txt"
MANIFEST = "lc_cache.json"
SEQUENCES = "per_dataset_sequences.json"


class PrefixFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Facts of a data set when its indices were built.

    Attributes:
        digest: of its ``.idx``, on which all indices depend, and of the size of its ``.bin``.
        sequences: in the ``.idx``.
        boundaries: number of documents plus one, which the header calls document count.
    """

    digest: str
    sequences: int
    boundaries: int


def entry_files(cache: Path, stem: str, names: Sequence[str]) -> list[Path]:
    """The files that Megatron looks for: the description, then the arrays."""
    return [cache / f"{stem}-{DESCRIPTION}", *(cache / f"{stem}-{name}.npy" for name in names)]


def write_entry(
    cache: Path, stems: Mapping[str, str], arrays: Mapping[str, np.ndarray | Path]
) -> None:
    """Write arrays once, and publish them under every stem. The folder's names are not flushed:
    after a power cut, an index of which a name is missing is built again.

    Args:
        cache: the folder.
        stems: description by the beginning of the files' names.
        arrays: or files of arrays, to be linked, by the end of the files' names.
    """
    first, *others = (entry_files(cache, stem, list(arrays)) for stem in stems)
    for path, array in zip(first[1:], arrays.values(), strict=True):
        if isinstance(array, Path):
            publish_linked(array, path)
        else:
            write_npy(path, array, flush_names=False)
    for files in others:
        for source, path in zip(first[1:], files[1:], strict=True):
            publish_linked(source, path)
    for (path, *_), text in zip([first, *others], stems.values(), strict=True):
        publish_bytes(path, text.encode(), flush_names=False)


def read_manifest(cache: Path) -> dict[str, PrefixFacts]:
    """Facts of the data sets when the cache was built; empty without a manifest.

    Raises:
        CorruptFile: if it cannot be read.
    """
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
    """Write the facts of the data sets, for this package and for
    ``--per-dataset-sequences-path``; all names in the folder survive a power cut then.
    """
    sequences = {prefix: [one.sequences, one.boundaries] for prefix, one in facts.items()}
    for name, value in ((SEQUENCES, sequences), (MANIFEST, facts)):
        content = msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"
        publish_bytes(cache / name, content)
