"""The dtype rules: how many bytes a stored token id has, and where readers disagree about it.

Two rules are in use, and they differ for vocabularies of 65,500 to 65,536 tokens:

==================  ===========================  ====================================================
rule                two bytes (uint16) when      used by
==================  ===========================  ====================================================
`megatron_dtype`    vocabulary < 65,500          Megatron's ``tools/preprocess_data.py``
`curator_dtype`     vocabulary <= 65,536         NeMo Curator's writer; Megatron's *reader* when it is
                                                 started with ``--per-dataset-sequences-path``
==================  ===========================  ====================================================

The reader's trap: with that option Megatron does not look at the dtype in the ``.idx`` at all, it
goes by the second rule. A file of int32 ids for a vocabulary of 65,500 to 65,536, or of int32 "to
be on the safe side", is then read as uint16, twice as many ids and all wrong, without an error. For
GPT-2's 50,257 tokens both rules say uint16.

`stored_dtype` follows the first rule unless it is told otherwise, and `readers_trap` says when the
second would misread what was stored.

Here: the rules and a cast that refuses to wrap. Not here: the codes that stand in a file
    (`lc_assets.formats.megatron`).
Source: Megatron-LM ``megatron/core/datasets/indexed_dataset.py`` (``DType.optimal_dtype``) and
``gpt_dataset.py`` (``token_dtype_code``); NeMo Curator ``megatron_tokenizer.py``.
"""

from typing import Any, Final

import numpy as np
from jaxtyping import Integer

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

    Raises:
        BadInput: when the vocabulary is empty.
    """
    return UINT16 if _sound(vocab_size) < MEGATRON_INT32_FROM else INT32


def curator_dtype(vocab_size: int) -> np.dtype[Any]:
    """Dtype in which NeMo Curator stores the ids of a vocabulary, and in which Megatron's
    header-less reader expects them.

    >>> curator_dtype(65_536), curator_dtype(65_537)
    (dtype('uint16'), dtype('int32'))

    Raises:
        BadInput: when the vocabulary is empty.
    """
    return INT32 if _sound(vocab_size) > CURATOR_INT32_ABOVE else UINT16


CHOICES: Final = ("auto", "uint16", "int32")
"""What a person may ask for."""


def stored_dtype(vocab_size: int, wanted: str = "auto") -> np.dtype[Any]:
    """Dtype in which a data set's ids are to be stored.

    Args:
        vocab_size: every id is smaller.
        wanted: ``auto`` for `megatron_dtype`, which is what ``preprocess_data.py`` writes; or
            ``uint16`` or ``int32``.

    >>> stored_dtype(65_500), stored_dtype(65_536, "uint16")
    (dtype('int32'), dtype('uint16'))

    Raises:
        BadInput: when it is none of the three, or the vocabulary has ids that two bytes do not
            hold.
    """
    if wanted not in CHOICES:
        raise BadInput(f"no dtype {wanted!r}; there are {', '.join(CHOICES)}")
    if wanted == "uint16" and vocab_size > CURATOR_INT32_ABOVE:
        raise BadInput(
            f"uint16 holds 65,536 ids, the vocabulary has {vocab_size:,}: take int32, or auto"
        )
    if wanted == "auto":
        return megatron_dtype(vocab_size)
    return UINT16 if wanted == "uint16" else INT32


def readers_trap(vocab_size: int, dtype: np.dtype[Any]) -> str | None:
    """Say what a reader that does not look at the header would do with ids of this dtype; None when
    it reads them right.

    >>> readers_trap(50_257, UINT16), readers_trap(100_277, INT32)
    (None, None)
    """
    expected = curator_dtype(vocab_size)
    if dtype == expected:
        return None
    return (
        f"ids of a vocabulary of {vocab_size:,} stored as {dtype.name}: Megatron started with "
        "--per-dataset-sequences-path does not read "
        f"the header and takes them for {expected.name}, all wrong, without an error; for such a "
        f"start take --dtype {expected.name}"
    )


def memory_dtype(vocab_size: int) -> np.dtype[Any]:
    """Dtype of ids in memory: the narrowest unsigned one of two or four bytes that holds every id.

    >>> memory_dtype(65_536), memory_dtype(65_537)
    (dtype('uint16'), dtype('uint32'))

    Raises:
        BadInput: when the vocabulary is empty.
    """
    return UINT16 if _sound(vocab_size) <= CURATOR_INT32_ABOVE else UINT32


def as_dtype(ids: Integer[np.ndarray, "..."], dtype: np.dtype[Any]) -> Integer[np.ndarray, "..."]:
    """Cast ids to ``dtype``; an id that does not fit is an error, never another id.

    >>> as_dtype(np.array([0, 65_535]), UINT16)
    array([    0, 65535], dtype=uint16)

    Raises:
        Mismatch: when an id lies outside the dtype's range; names it.
        BadInput: when ``ids`` or ``dtype`` is not of integers.
    """
    if ids.dtype.kind not in "ui" or dtype.kind not in "ui":
        raise BadInput(f"token ids are integers; got {ids.dtype} to be stored as {dtype}")
    if ids.size and not np.can_cast(ids.dtype, dtype):
        _check_range(int(ids.min()), int(ids.max()), dtype)
    return ids.astype(dtype, copy=False)


def _check_range(lowest: int, highest: int, dtype: np.dtype[Any]) -> None:
    bounds = np.iinfo(dtype)
    if lowest < bounds.min or highest > bounds.max:
        found = lowest if lowest < bounds.min else highest
        raise Mismatch(
            f"token id {found:,} does not fit {dtype.name} ({bounds.min:,} to {bounds.max:,}): "
            "store the ids in a wider dtype"
        )


def _sound(vocab_size: int) -> int:
    if vocab_size < 1:
        raise BadInput(f"a vocabulary has at least one token, got {vocab_size:,}")
    return vocab_size
