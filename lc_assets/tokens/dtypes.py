"""How many bytes a stored token id has, and where readers disagree about it.

Two rules are in use, and they differ for vocabularies of 65,500 to 65,536 tokens:

================  ========================  ========================================================
rule              two bytes (uint16) if     used by
================  ========================  ========================================================
`megatron_dtype`  vocabulary < 65,500       Megatron's ``tools/preprocess_data.py``
`curator_dtype`   vocabulary <= 65,536      NeMo Curator's writer; Megatron's *reader* with
                                            ``--per-dataset-sequences-path``
================  ========================  ========================================================

With that option, Megatron ignores the dtype in the ``.idx`` and uses the second rule. A file of
int32 ids for a smaller vocabulary is then read as uint16, twice as many ids and all wrong, without
an error. For GPT-2's 50,257 tokens both rules give uint16.

Source: Megatron-LM ``megatron/core/datasets/indexed_dataset.py`` (``DType.optimal_dtype``) and
    ``gpt_dataset.py`` (``token_dtype_code``); NeMo Curator ``megatron_tokenizer.py``.
"""

import functools
from typing import Any

import numpy as np

from lc_assets.arrays import Array, Integers
from lc_assets.errors import BadInput, Mismatch

UINT16 = np.dtype("<u2")
INT32 = np.dtype("<i4")
UINT32 = np.dtype("<u4")

MEGATRON_INT32_FROM = 65_500
CURATOR_INT32_ABOVE = 65_536


def megatron_dtype(vocab_size: int) -> np.dtype[Any]:
    """Dtype in which ``preprocess_data.py`` stores the ids of a vocabulary.

    >>> megatron_dtype(65_499), megatron_dtype(65_500)
    (dtype('uint16'), dtype('int32'))
    """
    return UINT16 if vocab_size < MEGATRON_INT32_FROM else INT32


def curator_dtype(vocab_size: int) -> np.dtype[Any]:
    """Dtype in which NeMo Curator stores the ids of a vocabulary, and that Megatron expects where
    it ignores the header.

    >>> curator_dtype(65_536), curator_dtype(65_537)
    (dtype('uint16'), dtype('int32'))
    """
    return INT32 if vocab_size > CURATOR_INT32_ABOVE else UINT16


def stored_dtype(vocab_size: int, setting: str = "auto") -> np.dtype[Any]:
    """Dtype in which a data set's ids are stored.

    Args:
        vocab_size: every id is smaller.
        setting: ``auto`` for `megatron_dtype`, as ``preprocess_data.py`` does; ``uint16``;
            ``int32``.

    >>> stored_dtype(65_500), stored_dtype(65_536, "uint16")
    (dtype('int32'), dtype('uint16'))

    Raises:
        BadInput: if the vocabulary is too large for two bytes.
    """
    if setting == "uint16" and vocab_size > CURATOR_INT32_ABOVE:
        raise BadInput(
            f"uint16 holds 65,536 ids, the vocabulary has {vocab_size:,}: use int32 or auto"
        )
    if setting == "auto":
        return megatron_dtype(vocab_size)
    return UINT16 if setting == "uint16" else INT32


def header_warning(vocab_size: int, dtype: np.dtype[Any]) -> str | None:
    """A warning if a reader that ignores the header would misread ids of this dtype, else None.

    >>> header_warning(50_257, UINT16), header_warning(100_277, INT32)
    (None, None)
    """
    expected = curator_dtype(vocab_size)
    if dtype == expected:
        return None
    return (
        f"ids of a vocabulary of {vocab_size:,} stored as {dtype.name}: Megatron with "
        f"--per-dataset-sequences-path ignores the header and reads them as {expected.name}, all "
        f"wrong, without an error; for that option, write them with --dtype {expected.name}"
    )


def memory_dtype(vocab_size: int) -> np.dtype[Any]:
    """Dtype of ids in memory: uint16 if it holds every id, else uint32.

    >>> memory_dtype(65_536), memory_dtype(65_537)
    (dtype('uint16'), dtype('uint32'))
    """
    return UINT16 if vocab_size <= CURATOR_INT32_ABOVE else UINT32


def as_dtype(ids: Integers, dtype: np.dtype[Any]) -> Array:
    """Cast ids to ``dtype``; an id that does not fit is an error.

    >>> as_dtype(np.array([0, 65_535]), UINT16)
    array([    0, 65535], dtype=uint16)

    Raises:
        Mismatch: if an id is outside the dtype's range.
        BadInput: if ``ids`` or ``dtype`` is not of integers.
    """
    if ids.dtype == dtype and dtype.kind in "ui":
        return ids
    if ids.dtype.kind not in "ui" or dtype.kind not in "ui":
        raise BadInput(f"token ids must be integers, got {ids.dtype} to be stored as {dtype}")
    if ids.size and not _fits(ids.dtype, dtype):
        lowest = 0 if ids.dtype.kind == "u" else int(ids.min())
        _check_range(lowest, ids.item(ids.argmax()), dtype)  # of a page, a quarter of max()'s time
    return ids.astype(dtype, copy=False)


_fits = functools.cache(np.can_cast)


def _check_range(lowest: int, highest: int, dtype: np.dtype[Any]) -> None:
    least, most = _bounds(dtype)
    if lowest < least or highest > most:
        found = lowest if lowest < least else highest
        raise Mismatch(
            f"token id {found:,} does not fit {dtype.name} ({least:,} to {most:,}): "
            "store the ids in a wider dtype"
        )


@functools.cache
def _bounds(dtype: np.dtype[Any]) -> tuple[int, int]:
    bounds = np.iinfo(dtype)  # takes longer than to look for the highest id of a page
    return int(bounds.min), int(bounds.max)
