"""Verifying a Megatron data set: header, sizes, offsets and boundaries by its reader; here the ids,
their ends, and the digests.

Ids are looked at in blocks, so memory does not grow with the file.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lc_assets.formats.megatron.idx import bin_path, idx_path
from lc_assets.formats.megatron.indexed import MegatronReader
from lc_assets.lake.digests import sha256_of_file
from lc_assets.lake.receipts import has_valid_checksum
from lc_assets.stages.megatron.megatron_receipts import DataSetReceipt, read_receipt, receipt_path
from lc_assets.tokens.dtypes import header_warning

BLOCK: Final = 1 << 22
"""Ids, or sequences, that are looked at at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What is known of the ids beside what a receipt says.

    Attributes:
        n_ids: every id is smaller; None when that is not known.
        eod: id of end of document; None when that is not known.
        appended: whether every document must end with it.
    """

    n_ids: int | None = None
    eod: int | None = None
    appended: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """What was found.

    Attributes:
        facts: names with values.
        damage: one sentence for each thing that is not as promised; empty when whole.
        warnings: what is not damage but may surprise.
    """

    facts: Sequence[tuple[str, Any]]
    damage: Sequence[str]
    warnings: Sequence[str]


def verify_data_set(prefix: Path, expected: Expected) -> Verified:
    """Read every byte of a data set and hold it against its own promises, its receipt's, and those
    of whoever asks.

    Raises:
        CorruptFile: when a file is missing or broken, or the two do not fit: nothing more can be
            said then.
    """
    reader, receipt = MegatronReader(prefix), read_receipt(prefix)
    ids = receipt.ids if receipt else None
    n_ids = expected.n_ids if expected.n_ids is not None else (ids.n_ids if ids else None)
    eod = ids.eod if ids and ids.eod is not None else expected.eod
    appended = expected.appended or bool(ids and ids.eod is not None)
    lowest, highest = _range(reader)
    digests = {
        "SHA-256 of the .bin": sha256_of_file(bin_path(prefix)),
        "SHA-256 of the .idx": sha256_of_file(idx_path(prefix)),
    }
    damage = [
        *_outside(reader, lowest, highest, n_ids),
        *_contradicted(prefix, reader, receipt, digests),
    ]
    facts: list[tuple[str, Any]] = [
        ("documents", len(reader.document_indices) - 1),
        ("sequences", len(reader)),
        ("empty sequences", int((reader.lengths == 0).sum())),
        ("tokens", reader.n_tokens),
        ("dtype", reader.dtype.name),
        (
            "ids",
            f"{lowest:,} to {highest:,}"
            + ("" if n_ids is None else f", of a vocabulary of {n_ids:,}"),
        ),
        *digests.items(),
        (
            "receipt",
            "none beside it"
            if receipt is None
            else f"by {receipt.made_by}" + (f", {ids.tokenizer}" if ids else ""),
        ),
    ]
    if eod is not None:
        n_ending, n_inside = _ends(reader, eod)
        facts.append(
            (
                f"end of document {eod:,}",
                f"behind {n_ending:,} of {len(reader):,} sequences, {n_inside:,} times inside",
            )
        )
        damage += _misplaced(prefix, len(reader), n_ending, n_inside) if appended else []
    trap = header_warning(n_ids, reader.dtype) if n_ids is not None else None
    return Verified(facts=facts, damage=damage, warnings=[trap] if trap else [])


def _blocks(reader: MegatronReader) -> Iterator[NDArray[Any]]:
    return (reader.ids[start : start + BLOCK] for start in range(0, reader.n_tokens, BLOCK))


def _range(reader: MegatronReader) -> tuple[int, int]:
    found = [(int(block.min()), int(block.max())) for block in _blocks(reader)]
    return min(lowest for lowest, _ in found), max(highest for _, highest in found)


def _outside(reader: MegatronReader, lowest: int, highest: int, n_ids: int | None) -> Iterator[str]:
    """Ids that no vocabulary, or not this one, has."""
    most = np.iinfo(reader.dtype).max if n_ids is None else n_ids - 1
    if lowest >= 0 and highest <= most:
        return
    n_wrong, first = 0, -1
    for number, block in enumerate(_blocks(reader)):
        wrong = np.flatnonzero((block < 0) | (block > most))
        if len(wrong) and first < 0:
            first = number * BLOCK + int(wrong[0])
        n_wrong += len(wrong)
    sequence = (
        int(np.searchsorted(reader.index.byte_offsets, first * reader.dtype.itemsize, side="right"))
        - 1
    )
    where = (
        f"{bin_path(reader.prefix)}: {n_wrong:,} ids are outside the vocabulary, the first "
        f"{reader.ids[first]:,} in sequence {sequence:,}"
    )
    yield (
        f"{where}; expected 0 to {most:,}: written with another tokenizer than you name, or with "
        "another dtype than the header says"
    )


def _ends(reader: MegatronReader, eod: int) -> tuple[int, int]:
    """How many sequences end with ``eod``, and how often it stands elsewhere."""
    n_all = sum(int(np.count_nonzero(block == eod)) for block in _blocks(reader))
    n_ending = 0
    for start in range(0, len(reader), BLOCK):
        offsets, lengths = (
            reader.index.byte_offsets[start : start + BLOCK],
            reader.lengths[start : start + BLOCK],
        )
        filled = lengths > 0
        last = offsets[filled] // reader.dtype.itemsize + lengths[filled] - 1
        n_ending += int(np.count_nonzero(reader.ids[last] == eod))
    return n_ending, n_all - n_ending


def _misplaced(prefix: Path, n_sequences: int, n_ending: int, n_inside: int) -> Iterator[str]:
    where = f"{bin_path(prefix)}: end of document"
    if n_ending < n_sequences:
        yield (
            f"{where}: {n_sequences - n_ending:,} of {n_sequences:,} documents do not end with "
            "it; write it again"
        )
    if n_inside:
        yield (
            f"{where}: {n_inside:,} stand inside documents, where masks and positions would be "
            "reset; write it again"
        )


def _contradicted(
    prefix: Path, reader: MegatronReader, receipt: DataSetReceipt | None, digests: dict[str, str]
) -> Iterator[str]:
    """What the receipt says otherwise."""
    if receipt is None:
        return
    n_documents = len(reader.document_indices) - 1
    said = {
        bin_path(prefix): (receipt.bin_sha256, digests["SHA-256 of the .bin"]),
        idx_path(prefix): (receipt.idx_sha256, digests["SHA-256 of the .idx"]),
    }
    for path, (promised, found) in said.items():
        if promised != found:
            yield (
                f"{path}: SHA-256 {found}, {receipt_path(prefix).name} says {promised}: it "
                "changed since; write it again"
            )
    if (receipt.documents, receipt.tokens) != (n_documents, reader.n_tokens):
        yield (
            f"{prefix}: {n_documents:,} documents, {reader.n_tokens:,} tokens; its receipt says "
            f"{receipt.documents:,}, {receipt.tokens:,}"
        )
    if not has_valid_checksum(receipt_path(prefix).read_bytes(), receipt):
        yield (
            f"{receipt_path(prefix)}: its content does not match its checksum: it changed since; "
            "write it again"
        )
