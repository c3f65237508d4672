"""Verifying a Megatron data set: the reader checks header, sizes, offsets and boundaries; this
module checks ids, document ends and digests.

Ids are read in blocks, so memory does not grow with the file.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lc_assets.errors import CorruptFile
from lc_assets.formats.megatron.idx import bin_path, idx_path
from lc_assets.formats.megatron.indexed import MegatronReader
from lc_assets.lake.digests import sha256_of_file
from lc_assets.lake.receipts import has_valid_checksum
from lc_assets.records import record
from lc_assets.stages.megatron.megatron_merging import DataSetReceipt, read_receipt, receipt_path
from lc_assets.tokens.dtypes import header_warning

BLOCK = 1 << 22
"""Ids, or sequences, that are checked at once."""


@record
class Verified:
    """What was found.

    Attributes:
        facts: names with values.
        damage: one sentence per contradiction; empty if there is none.
        warnings: unusual properties that are not damage.
    """

    facts: Sequence[tuple[str, Any]]
    damage: Sequence[str]
    warnings: Sequence[str]


@dataclass(slots=True)
class _Ids:
    """What one pass over the ids finds."""

    lowest: int = np.iinfo(np.int64).max
    highest: int = np.iinfo(np.int64).min
    n_outside: int = 0
    first_outside: int = -1
    n_eod: int = 0


def verify_data_set(
    prefix: Path, *, n_ids: int | None = None, eod: int | None = None, appended: bool = False
) -> Verified:
    """Read every byte of a data set and compare it with its header, its receipt and the arguments.

    Args:
        prefix: of the data set.
        n_ids: every id is smaller; by default as the receipt states.
        eod: id of end of document; the receipt's comes first.
        appended: whether every document must end with it, as it must if the receipt states it.

    Raises:
        CorruptFile: if a file is missing or broken, or the two do not match.
    """
    reader, receipt = MegatronReader(prefix), read_receipt(prefix)
    stated = receipt.ids if receipt else None
    by = f"by {receipt.made_by}" if receipt else "none beside it"
    if stated is not None:
        by += f", {stated.tokenizer}"
        n_ids = stated.n_ids if n_ids is None else n_ids
        eod, appended = (eod, appended) if stated.eod is None else (stated.eod, True)
    most = np.iinfo(reader.dtype).max if n_ids is None else n_ids - 1
    found = _scan(reader, most, eod)
    digests = {path(prefix): sha256_of_file(path(prefix)) for path in (bin_path, idx_path)}
    damage = [*_outside(reader, found, most), *_contradicted(reader, receipt, digests)]
    damage += _unlike_checksums(reader)
    facts: list[tuple[str, Any]] = [
        ("documents", len(reader.document_indices) - 1),
        ("sequences", len(reader)),
        ("empty sequences", int((reader.lengths == 0).sum())),
        ("tokens", reader.n_tokens),
        ("dtype", reader.dtype.name),
        (
            "ids",
            f"{found.lowest:,} to {found.highest:,}"
            + ("" if n_ids is None else f", of a vocabulary of {n_ids:,}"),
        ),
        *((f"SHA-256 of the {path.suffix}", digest) for path, digest in digests.items()),
        ("receipt", by),
    ]
    if eod is not None:
        n_ending, n_due = _n_ending(reader, eod)
        n_inside = found.n_eod - n_ending
        facts.append(
            (
                f"end of document {eod:,}",
                f"behind {n_ending:,} of {n_due:,} documents, {n_inside:,} times inside",
            )
        )
        damage += _misplaced(reader, n_due - n_ending, n_due, n_inside) if appended else []
    warning = header_warning(n_ids, reader.dtype) if n_ids is not None else None
    return Verified(facts=facts, damage=damage, warnings=[warning] if warning else [])


def _scan(reader: MegatronReader, most: int, eod: int | None) -> _Ids:
    found = _Ids()
    for start in range(0, reader.n_tokens, BLOCK):
        block = reader.ids[start : start + BLOCK]
        found.lowest = min(found.lowest, int(block.min()))
        found.highest = max(found.highest, int(block.max()))
        outside = np.flatnonzero((block < 0) | (block > most))
        if len(outside) and not found.n_outside:
            found.first_outside = start + int(outside[0])
        found.n_outside += len(outside)
        found.n_eod += 0 if eod is None else int(np.count_nonzero(block == eod))
    return found


def _outside(reader: MegatronReader, found: _Ids, most: int) -> Iterator[str]:
    if found.n_outside:
        first = found.first_outside
        starts = reader.index.byte_offsets // reader.dtype.itemsize
        yield (
            f"{bin_path(reader.prefix)}: {found.n_outside:,} ids are outside the vocabulary, the "
            f"first {reader.ids[first]:,} in sequence "
            f"{int(np.searchsorted(starts, first, side='right')) - 1:,}; expected 0 to {most:,}: "
            "written with another tokenizer than you name, or with another dtype than the header "
            "states"
        )


def _misplaced(reader: MegatronReader, n_missing: int, n_due: int, n_inside: int) -> Iterator[str]:
    where = f"{bin_path(reader.prefix)}: end of document"
    if n_missing:
        yield (f"{where}: {n_missing:,} of {n_due:,} documents do not end with it; write it again")
    if n_inside:
        yield (
            f"{where}: {n_inside:,} are inside documents, where masks and positions would be "
            "reset; write it again"
        )


def _n_ending(reader: MegatronReader, eod: int) -> tuple[int, int]:
    """How many documents end with ``eod``, and how many have a sequence."""
    n_ending = n_due = 0
    for start in range(0, len(reader.document_indices) - 1, BLOCK):
        bounds = reader.document_indices[start : start + BLOCK + 1]
        last = bounds[1:][np.diff(bounds) > 0] - 1
        lengths = reader.lengths[last]
        ends = (reader.index.byte_offsets[last] // reader.dtype.itemsize + lengths - 1)[lengths > 0]
        n_ending += int(np.count_nonzero(reader.ids[ends] == eod))
        n_due += len(last)
    return n_ending, n_due


def _unlike_checksums(reader: MegatronReader) -> Iterator[str]:
    try:
        reader.between(0, reader.n_tokens)
    except CorruptFile as error:
        yield str(error)


def _contradicted(
    reader: MegatronReader, receipt: DataSetReceipt | None, digests: dict[Path, str]
) -> Iterator[str]:
    """Where the receipt states something else."""
    if receipt is None:
        return
    path = receipt_path(reader.prefix)
    promised = receipt.bin_sha256, receipt.idx_sha256
    for (file, digest), expected in zip(digests.items(), promised, strict=True):
        if digest != expected:
            yield (
                f"{file}: SHA-256 {digest}, {path.name} states {expected}: it changed since; write "
                "it again"
            )
    n_documents = len(reader.document_indices) - 1
    if (receipt.documents, receipt.tokens) != (n_documents, reader.n_tokens):
        yield (
            f"{reader.prefix}: {n_documents:,} documents, {reader.n_tokens:,} tokens; its receipt "
            f"states {receipt.documents:,}, {receipt.tokens:,}"
        )
    if not has_valid_checksum(path.read_bytes()):
        yield f"{path}: its content does not match its checksum: it changed since; write it again"
