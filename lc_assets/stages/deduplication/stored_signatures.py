"""Signatures that lie in files already: those of `lc minhash`, or RedPajama-V2's published ones;
found by id.

A document's signature is looked for in ``FOLDER/{path of its file below its
source}.minhash.parquet``, where ``lc minhash`` puts it, and then in the file of the shard that its
id names: ``FOLDER/{tag}.minhash.parquet``, or ``FOLDER/minhash/...``. Two files are held at a time,
at 600 bytes a document. Whether a text is still the one that was signed is not asked: what changed
since may be missed as a candidate, never wrongly removed, for candidates are compared.

Here: finding and checking them. Not here: reading a file (`lc_assets.formats.redpajama.minhash`).
"""

import functools
from collections import Counter
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from lc_assets.errors import BadInput
from lc_assets.formats.redpajama.listings import minhash_path
from lc_assets.formats.redpajama.minhash import read_signatures, scheme_label_of
from lc_assets.publishing import finished
from lc_assets.text.duplicates.minhash import N_PERMUTATIONS
from lc_assets.vocabulary import parse_document_id

SUFFIX: Final = ".minhash.parquet"
NOTHING: Final[tuple[dict[str, int], NDArray[np.uint32]]] = (
    {},
    np.empty((0, N_PERMUTATIONS), np.uint32),
)


def label_of_signatures(folder: Path) -> str:
    """By which scheme all signatures in a folder were made.

    Raises:
        BadInput: when there are none, or they were made by several, so that they cannot be
            compared.
        CorruptFile: when a file of them is none.
    """
    labels = {
        path: scheme_label_of(path, where=str(path))
        for path in finished(folder.rglob(f"*{SUFFIX}"))
    }
    if not labels:
        raise BadInput(f"{folder}: holds no *{SUFFIX}; make them: lc minhash IN {folder}")
    if len(set(labels.values())) > 1:
        found = ", ".join(
            f"{label} ({path.name})"
            for label, path in sorted({label: path for path, label in labels.items()}.items())
        )
        raise BadInput(
            f"{folder}: its signatures were made by several schemes, which do not compare: "
            f"{found}; keep one of them"
        )
    return next(iter(labels.values()))


class StoredSignatures:
    """The signatures of one file's documents, as so many bands."""

    def __init__(self, folder: Path, stem: str, n_bands: int) -> None:
        """Look in ``folder``.

        Args:
            folder: of the signatures.
            stem: path of the documents' file below its source, without the ends of its name.
            n_bands: into how many bands a signature is cut; the numbers that are left over are not
                taken.
        """
        self._folder, self._own = folder, folder / f"{stem}{SUFFIX}"
        self._n_bands, self._n_rows = n_bands, N_PERMUTATIONS // n_bands

    def of(self, identity: str) -> NDArray[np.uint32] | None:
        """``(bands, rows)`` uint32 of a document; None when its text has fewer than 13 words.

        Raises:
            BadInput: when nobody signed it, or two documents of its id.
            CorruptFile: when a file of signatures is damaged.
        """
        for path in (self._own, *_by_shard(self._folder, identity)):
            row_of, numbers = _rows(path, path.stat().st_mtime_ns) if path.is_file() else NOTHING
            if (row := row_of.get(identity)) is not None:
                return (
                    None
                    if row < 0
                    else numbers[row, : self._n_bands * self._n_rows].reshape(
                        self._n_bands, self._n_rows
                    )
                )
        raise BadInput(
            f"{identity}: has no signature in {self._folder}; sign its file (lc minhash), or "
            "leave --signatures out"
        )


def _by_shard(folder: Path, identity: str) -> list[Path]:
    try:
        shard, _ = parse_document_id(identity)
    except BadInput:
        return []
    return [folder / f"{shard.tag}{SUFFIX}", folder / minhash_path(shard)]


@functools.lru_cache(maxsize=2)
def _rows(path: Path, _written: int) -> tuple[dict[str, int], NDArray[np.uint32]]:
    """Each document's row, -1 where it has none; and the rows."""
    ids: list[str] = []
    signed, numbers = [np.empty(0, np.bool_)], [np.empty((0, N_PERMUTATIONS), np.uint32)]
    for part in read_signatures(path, where=str(path)):
        ids += part.ids
        signed.append(part.is_signed)
        numbers.append(part.numbers[part.is_signed])
    is_signed = np.concatenate(signed)
    rows = np.where(is_signed, np.cumsum(is_signed) - 1, -1).tolist()
    found = dict(zip(ids, rows, strict=True))
    if len(found) != len(ids):
        twice = Counter(ids).most_common(1)[0][0]
        raise BadInput(
            f"{path}: signs two documents called {twice}, so neither can be told by its id; leave "
            "--signatures out"
        )
    return found, np.concatenate(numbers)
