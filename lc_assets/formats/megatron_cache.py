"""Megatron's cache on disk: arrays under the names it looks for, and what they were made from.

Beside Megatron's own files (`lc_assets.mixing.cache_names`) lie two of ours, which it never looks
at: ``lc_cache.json`` says which bytes each data set's ``.idx`` had, so that a change is noticed,
    and ``per_dataset_sequences.json`` is what
Megatron's ``--per-dataset-sequences-path`` reads.

Arrays are written beside their places and renamed, and the description last: what is cut short is
never a hit.
"""

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from lc_assets.errors import UNDECODABLE, CorruptFile
from lc_assets.formats.npy import read_npy, write_npy
from lc_assets.publishing import publish, publish_bytes

DESCRIPTION = "description.txt"
MANIFEST = "lc_cache.json"
SEQUENCES = "per_dataset_sequences.json"


class PrefixFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What a data set was when its indices were built.

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
            f"{path}: cannot be read: {error}; remove it, and the cache is built anew"
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
