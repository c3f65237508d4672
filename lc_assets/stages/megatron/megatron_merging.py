"""Megatron data sets out of others: many into one, or into several of a chosen size; one into
several, one for each length 2^k.

``merge`` is a streaming copy, as ``tools/merge_datasets.py`` and NeMo Curator's
``merge_file_prefixes.py``: lengths and ids one after the other, document boundaries moved. Every
source is checked before the first byte is copied; a document is never cut. Memory is 4 bytes per
document of the result, and, if a size is chosen, some 40 bytes per document of one source; ids pass
through in blocks.

``decompose`` writes pieces that never cross a document: ``OUT/tokens-00256.bin``, ``.idx`` and
``.receipt``, and so on up to the longest. A length without pieces has no files. Where the pieces
are: `lc_assets.packing.cutting`.

Beside each result is its receipt, ``{prefix}.receipt``: JSON that states what the two files are and
where they come from. Megatron ignores it; `lc verify` reads digests, vocabulary and end of document
from it. Its name does not end in ``.json``, because a file that does is a corpus to `lc`.

Source: Megatron-LM ``IndexedDatasetBuilder.add_index``. Megatron's docs recommend files of 10 GB
    and more: a thousand small ones take minutes to open.
"""

import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from lc_assets.counts import Counts
from lc_assets.errors import BadInput, Mismatch
from lc_assets.formats.megatron.idx import bin_path, idx_path
from lc_assets.formats.megatron.indexed import MegatronReader, MegatronWriter
from lc_assets.lake.digests import sha256_of_file
from lc_assets.lake.located import located
from lc_assets.lake.receipts import decode_json, encode_json, with_checksum
from lc_assets.packing.cutting import decomposed
from lc_assets.publishing import publish_bytes, publish_folder, writing_in

BLOCK_IDS = 1 << 22
LEFT_OVER = "left over"
SUFFIX = ".receipt"
TOKENS = "token_documents"


class Ids(msgspec.Struct, frozen=True, kw_only=True):
    """The vocabulary of a data set's ids.

    Attributes:
        tokenizer: name of the vocabulary.
        tokenizer_sha256: of the file that defines it.
        n_ids: every id is smaller.
        eod: the id that ends every document; None when none was appended.
        dtype: of the ids.
    """

    tokenizer: str
    tokenizer_sha256: str
    n_ids: int
    eod: int | None
    dtype: str


class DataSetReceipt(msgspec.Struct, frozen=True, kw_only=True):
    """The receipt of a data set.

    Attributes:
        made_by: ``merge`` or ``decompose``.
        ids: their vocabulary; None if the parts of a merged data set do not state it.
        documents: number of documents.
        tokens: number of ids.
        bin_sha256: of the ``.bin``.
        idx_sha256: of the ``.idx``; together they are the content's version.
        dropped: empty; no document is left out.
        checksum: of the file (`lc_assets.lake.receipts.with_checksum`).
    """

    made_by: str
    ids: Ids | None
    documents: int
    tokens: int
    bin_sha256: str
    idx_sha256: str
    dropped: dict[str, int] = {}
    checksum: str = ""


def receipt_path(prefix: Path) -> Path:
    """``{prefix}.receipt``; a prefix may hold dots."""
    return prefix.with_name(f"{prefix.name}{SUFFIX}")


def write_receipt(prefix: Path, *, made_by: str, ids: Ids | None) -> DataSetReceipt:
    """Read a data set whole and publish its receipt."""
    reader = MegatronReader(prefix)
    receipt = with_checksum(
        DataSetReceipt(
            made_by=made_by,
            ids=ids,
            documents=len(reader.document_indices) - 1,
            tokens=reader.n_tokens,
            bin_sha256=sha256_of_file(bin_path(prefix)),
            idx_sha256=sha256_of_file(idx_path(prefix)),
        )
    )
    publish_bytes(receipt_path(prefix), encode_json(receipt))
    return receipt


def read_receipt(prefix: Path) -> DataSetReceipt | None:
    """The receipt beside a data set, or None when there is none.

    Raises:
        CorruptFile: when there is one that cannot be read.
    """
    path = receipt_path(prefix)
    return decode_json(path, DataSetReceipt) if path.is_file() else None


def ids_of(reader: MegatronReader) -> Ids | None:
    """The vocabulary of a data set, by its own receipt or that of its version in a lake."""
    receipt = read_receipt(reader.prefix)
    if receipt is not None:
        return receipt.ids
    found = located(str(reader.prefix.parent))
    params = found.published.params if found and found.version else {}
    if "tokenizer_sha256" not in params:
        return None
    return Ids(
        tokenizer=params["tokenizer"],
        tokenizer_sha256=params["tokenizer_sha256"],
        n_ids=params["n_ids"],
        eod=params["eot"] if params.get("append_eod") else None,
        dtype=reader.dtype.name,
    )


class Stretch(NamedTuple):
    """Documents ``start`` to ``stop`` (exclusive) of one source."""

    source: MegatronReader
    start: int
    stop: int


def whole_of(prefix: Path) -> Stretch:
    """All documents of a data set.

    Raises:
        CorruptFile: if it is damaged.
    """
    reader = MegatronReader(prefix)
    return Stretch(reader, 0, len(reader.document_indices) - 1)


def data_sets_of(named: Sequence[Path]) -> list[Path]:
    """The prefixes that were named, those of folders sorted by name; ``.bin`` and ``.idx`` may
    follow them. Of a lake, these are its token documents.

    Raises:
        BadInput: if one does not exist, a folder has none, or one is named twice.
    """
    found: list[Path] = []
    for path in named:
        inside = [path]
        if path.is_dir():
            lake = located(str(path))
            folders = [path]
            if lake is not None and not lake.version:
                folders = [found.folder for found in lake.lake.published(TOKENS).values()]
            inside = [idx for folder in folders for idx in folder.glob("[!.]*.idx")]
            if not inside:
                raise BadInput(f"{path}: has no .idx")
        for prefix in sorted(map(prefix_of, inside)):
            if not idx_path(prefix).is_file():
                raise BadInput(f"{prefix}: there is no {idx_path(prefix).name}")
            if prefix in found:
                raise BadInput(
                    f"{prefix} is named twice, so its documents would occur twice; name it once, "
                    "or give it a weight in a blend"
                )
            found.append(prefix)
    return found


def prefix_of(path: Path) -> Path:
    """A prefix, from itself or from one of its files.

    >>> prefix_of(Path("a/b.bin")).name, prefix_of(Path("a/b.c")).name
    ('b', 'b.c')
    """
    return path.with_name(path.name[:-4]) if path.name.endswith((".bin", ".idx")) else path


def merge(
    sources: Sequence[Path], prefix: Path, *, max_bytes: int | None = None
) -> dict[Path, DataSetReceipt]:
    """Merge data sets, in the order given.

    Args:
        sources: their prefixes (`data_sets_of`).
        prefix: of the result; with ``max_bytes`` the results are ``{prefix}-00000``,
            ``{prefix}-00001``, ...
        max_bytes: most bytes of a ``.bin``; a longer document has a result of its own.

    Returns:
        The receipt of each result, by its prefix.

    Raises:
        BadInput: if there is no source, a result is a source, or the size is out of range.
        CorruptFile: if a source is damaged.
        Mismatch: if two sources have different dtypes or, by their receipts, vocabularies.
        NotWritable, StorageFull: if the results cannot be written.
    """
    if not sources:
        raise BadInput("nothing to merge: no data set is named")
    if max_bytes is not None and max_bytes < 1:
        raise BadInput(f"max_bytes is at least 1, got {max_bytes:,}")
    whole = [whole_of(source) for source in sources]
    ids = _common_ids([stretch.source for stretch in whole])
    results = {prefix: whole}
    if max_bytes is not None:
        results = {
            prefix.with_name(f"{prefix.name}-{number:05}"): stretches
            for number, stretches in enumerate(cut(whole, max_bytes))
        }
    if taken := {path.absolute() for path in sources} & {path.absolute() for path in results}:
        raise BadInput(f"{taken.pop()} is both a source and a result; name another result")
    with writing_in(prefix.parent):
        for result, stretches in results.items():
            with MegatronWriter.publishing(result, stretches[0].source.dtype) as writer:
                for stretch in stretches:
                    writer.copy(*stretch)
        return {result: write_receipt(result, made_by="merge", ids=ids) for result in results}


def cut(whole: Sequence[Stretch], max_bytes: int) -> list[list[Stretch]]:
    """Stretches by result: each as full as whole documents allow."""
    groups, room = list[list[Stretch]](), 0
    for reader, start, stop in whole:
        edges = np.append(reader.index.byte_offsets, reader.n_tokens * reader.dtype.itemsize)
        ends, at = edges[reader.document_indices[1:]], start  # the byte after each document
        while at < stop:
            begin = int(ends[at - 1]) if at else 0
            fits = int(np.searchsorted(ends, begin + room, side="right"))
            if fits <= at or not groups:
                groups.append([])
                room = max_bytes
                fits = max(at + 1, int(np.searchsorted(ends, begin + room, side="right")))
            groups[-1].append(Stretch(reader, at, fits))
            room -= int(ends[fits - 1]) - begin
            at = fits
    return groups


def _common_ids(readers: Sequence[MegatronReader]) -> Ids | None:
    """The common vocabulary of all sources, if all their receipts state it."""
    first, *others = readers
    for reader in others:
        if reader.dtype != first.dtype:
            raise Mismatch(
                f"{reader.prefix} holds ids of {reader.dtype.name}, {first.prefix} of "
                f"{first.dtype.name}: write one of them again by the other's rule"
            )
    prefixes = {ids_of(reader): reader.prefix for reader in readers}
    known = [ids for ids in prefixes if ids is not None]
    if len(known) > 1:
        kinds = ", ".join(f"{prefixes[ids]} is of {ids.tokenizer}, end {ids.eod}" for ids in known)
        raise Mismatch(f"{kinds}: ids of two kinds make no data set")
    return None if None in prefixes else known[0]


def decompose(
    prefix: Path, folder: Path, *, shortest: int, longest: int, seed: int | None = None
) -> Counts:
    """Cut the documents of a data set into pieces, and write those of each length as a data set of
    its own.

    Args:
        prefix: of the data set.
        folder: of the results.
        shortest: tokens of the shortest pieces, a power of two; shorter remainders of documents are
            counted.
        longest: tokens of the longest.
        seed: for the order of a document's pieces, drawn by its number; None: longest first.

    Returns:
        Tokens seen, kept and left over; ``extra`` has the pieces of each length.

    Raises:
        BadInput: if a length is not a power of two, or the folder is not empty.
        CorruptFile: if the data set is damaged.
        NotWritable, StorageFull: if the results cannot be written.
    """
    low, high = _exponent_of(shortest), _exponent_of(longest)
    # Refuses exponents out of range before anything is written.
    decomposed(np.zeros(0, np.int64), shortest=low, longest=high)
    reader = MegatronReader(prefix)
    with publish_folder(folder) as draft:
        results = {
            exponent: draft / f"tokens-{1 << exponent:05}" for exponent in range(low, high + 1)
        }
        n_pieces = _write_pieces(reader, results, seed)
        ids = ids_of(reader)
        if ids is not None and ids.eod is not None:
            ids = None  # pieces do not end with an end of document, except at the end of one
        for exponent, result in results.items():
            if n_pieces[exponent]:
                write_receipt(result, made_by="decompose", ids=ids)
    n_kept = sum(n << exponent for exponent, n in n_pieces.items())
    extra = {f"pieces of {1 << exponent}": n for exponent, n in n_pieces.items()}
    return Counts.of(n_kept, {LEFT_OVER: reader.n_tokens - n_kept}, extra)


def _write_pieces(
    reader: MegatronReader, results: Mapping[int, Path], seed: int | None
) -> dict[int, int]:
    """Write the pieces of 2^n tokens to ``results[n]``; return their numbers."""
    low, high = min(results), max(results)
    with contextlib.ExitStack() as stack:
        writers = {
            exponent: stack.enter_context(MegatronWriter.publishing(result, reader.dtype))
            for exponent, result in results.items()
        }
        for start, stop in reader.index.blocks(BLOCK_IDS):
            keys = None if seed is None else [str(document) for document in range(start, stop)]
            lengths = reader.lengths[start:stop].astype(np.int64)
            pieces = decomposed(lengths, shortest=low, longest=high, keys=keys, seed=seed or 0)
            firsts = reader.index.byte_offsets[start:stop] // reader.dtype.itemsize
            for exponent, writer in writers.items():
                own = pieces.take(np.flatnonzero(pieces.lengths == 1 << exponent))
                places = (firsts[own.document] + own.start).tolist()
                parts = [reader.between(at, at + (1 << exponent)) for at in places]
                writer.add_documents(parts, [1 << exponent] * len(parts))
        return {exponent: writer.n_documents for exponent, writer in writers.items()}


def _exponent_of(n_tokens: int) -> int:
    if n_tokens < 1 or n_tokens & (n_tokens - 1):
        raise BadInput(
            f"pieces have a power of two of tokens, such as 256 or 8192; got {n_tokens:,}"
        )
    return n_tokens.bit_length() - 1
