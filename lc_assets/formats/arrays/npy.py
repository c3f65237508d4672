"""NumPy's ``.npy``, version 1.0: one array per file, never pickled.

Source: NumPy's format document (``numpy.lib.format``). Megatron reads its index arrays from such
files.
"""

import tokenize
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import numpy as np

from lc_assets.arrays import Array
from lc_assets.errors import CorruptFile, LcError
from lc_assets.publishing import publish

_DAMAGE = (
    ValueError,
    EOFError,
    OSError,
    OverflowError,
    TypeError,
    SyntaxError,
    tokenize.TokenError,
    Warning,
)
"""Errors and warnings of NumPy for a file that is truncated, not an array, or has a header that
Python cannot parse.
"""


def read_npy(
    path: Path,
    *,
    mode: Literal["r", "c"] = "r",
    row_of: np.dtype[Any] | None = None,
    missing: type[LcError] = CorruptFile,
) -> Array:
    """Map an array into memory.

    Args:
        path: the file.
        mode: ``r``: read-only; ``c``: writing to the array copies a page and leaves the file alone.
        row_of: dtype of the one-dimensional array that the file must hold; by default, any array.
        missing: the error if there is no file.

    Raises:
        CorruptFile: if the file is missing, truncated, contains Python objects, or another array
            than ``row_of`` states.
    """
    try:
        # numpy.load would open a zip archive too, and leave it open when it is none.
        array = np.lib.format.open_memmap(path, mode=mode)
    except FileNotFoundError as error:
        raise missing(f"{path}: is missing") from error
    except _DAMAGE as error:
        raise CorruptFile(f"{path}: not a whole .npy file: {error}") from error
    if row_of is not None and (array.dtype != row_of or array.ndim != 1):
        raise CorruptFile(
            f"{path}: {array.dtype} of shape {array.shape}, expected a one-dimensional array of "
            f"{row_of.name}"
        )
    return array


def write_npy(path: Path, array: Array, *, flush_names: bool = True) -> None:
    """Write an array as a whole file, as `numpy.save` does, without a second copy of it in memory;
    ``flush_names``: see `publish`.

    Raises:
        StorageFull: if the disk is full.
        NotWritable: if the folder cannot be written to.
    """
    with publish(path, flush_names=flush_names) as staging, staging.open("wb") as stream:
        # Into a file NumPy would write by itself, with errors that do not say what is wrong.
        file = SimpleNamespace(write=stream.write)
        np.lib.format.write_array(file, array, version=(1, 0), allow_pickle=False)
