"""Many Megatron data sets into one, or into several of a chosen size: a streaming copy, validated,
published whole.

What ``tools/merge_datasets.py`` and NeMo Curator's ``merge_file_prefixes.py`` do: lengths and ids
one after the other, document boundaries moved. Every source is checked before the first byte is
copied; a document is never cut. Memory is 4 bytes a document of the result, and where a size is
chosen some 40 bytes a document of one source; ids pass through in blocks.

Source: Megatron-LM ``IndexedDatasetBuilder.add_index``. Megatron's docs ask for files of 10 GB and
    more: a thousand small
ones take minutes to open.
"""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lc_assets.errors import BadInput, Mismatch
from lc_assets.formats.megatron.idx import idx_path
from lc_assets.formats.megatron.indexed import MegatronReader, MegatronWriter
from lc_assets.stages.megatron.megatron_receipts import (
    DataSetReceipt,
    Ids,
    read_receipt,
    write_receipt,
)


@dataclass(frozen=True, slots=True)
class Stretch:
    """Documents ``start`` to ``stop`` (exclusive) of one source."""

    source: Path
    start: int
    stop: int


def data_sets_of(named: Sequence[Path]) -> list[Path]:
    """The prefixes that were named, those of folders sorted by name; ``.bin`` and ``.idx`` may
    stand behind them.

    Raises:
        BadInput: when one is not there, a folder holds none, or one is named twice.
    """
    found = [prefix for path in named for prefix in _prefixes(path)]
    if len(set(found)) < len(found):
        twice = next(prefix for prefix in found if found.count(prefix) > 1)
        raise BadInput(
            f"{twice} is named twice: its documents would be there twice; name it once, or give "
            "it a weight in a blend"
        )
    return found


def prefix_of(path: Path) -> Path:
    """A prefix, from itself or from one of its files.

    >>> prefix_of(Path("a/b.bin")).name, prefix_of(Path("a/b.c")).name
    ('b', 'b.c')
    """
    return path.with_name(path.name[:-4]) if path.name.endswith((".bin", ".idx")) else path


def _prefixes(path: Path) -> list[Path]:
    if path.is_dir():
        inside = sorted(
            prefix_of(idx) for idx in path.glob("*.idx") if not idx.name.startswith(".")
        )
        if not inside:
            raise BadInput(f"{path}: holds no .idx")
        return inside
    prefix = prefix_of(path)
    if not idx_path(prefix).is_file():
        raise BadInput(f"{prefix}: there is no {idx_path(prefix).name}")
    return [prefix]


def merge(
    sources: Sequence[Path], prefix: Path, *, max_bytes: int | None = None
) -> dict[Path, DataSetReceipt]:
    """Merge data sets, in the order given.

    Args:
        sources: their prefixes (`data_sets_of`).
        prefix: of the result; with ``max_bytes`` the results are ``{prefix}-00000``,
            ``{prefix}-00001``, ...
        max_bytes: most bytes of a ``.bin``; a longer document stands alone.

    Returns:
        The receipt of each result, by its prefix.

    Raises:
        BadInput: when there is no source, a result is a source, or the size cannot be meant.
        CorruptFile: when a source is damaged.
        Mismatch: when two sources have other dtypes or, by their receipts, other vocabularies.
        NotWritable, StorageFull: when the place cannot be written to.
    """
    if not sources:
        raise BadInput("nothing to merge: no data set is named")
    if max_bytes is not None and max_bytes < 1:
        raise BadInput(f"max_bytes is at least 1, got {max_bytes:,}")
    ids = _common_ids(sources)
    whole = [
        Stretch(source, 0, len(MegatronReader(source).document_indices) - 1) for source in sources
    ]
    groups = {prefix: whole} if max_bytes is None else _numbered(prefix, cut(whole, max_bytes))
    if taken := {path.absolute() for path in sources} & {path.absolute() for path in groups}:
        raise BadInput(f"{taken.pop()} is both a source and a result; name another result")
    for result, stretches in groups.items():
        _copy(stretches, result)
    return {
        result: write_receipt(result, made_by="merge", ids=ids, dropped={}) for result in groups
    }


def join(sources: Sequence[Path], prefix: Path) -> None:
    """Merge data sets of one dtype into one, without a receipt."""
    _copy(
        [
            Stretch(source, 0, len(MegatronReader(source).document_indices) - 1)
            for source in sources
        ],
        prefix,
    )


def _copy(stretches: Sequence[Stretch], prefix: Path) -> None:
    with contextlib.ExitStack() as stack:
        writer = stack.enter_context(
            MegatronWriter.publishing(prefix, MegatronReader(stretches[0].source).dtype)
        )
        for stretch in stretches:
            writer.copy(MegatronReader(stretch.source), stretch.start, stretch.stop)


def _numbered(prefix: Path, groups: Sequence[list[Stretch]]) -> dict[Path, list[Stretch]]:
    return {
        prefix.with_name(f"{prefix.name}-{number:05}"): group for number, group in enumerate(groups)
    }


def cut(whole: Sequence[Stretch], max_bytes: int) -> list[list[Stretch]]:
    """Stretches by result: each as full as whole documents allow."""
    groups, room = list[list[Stretch]](), 0
    for stretch in whole:
        reader = MegatronReader(stretch.source)
        ends = _document_ends(reader)
        at = 0
        while at < stretch.stop:
            begin = int(ends[at - 1]) if at else 0
            fits = int(np.searchsorted(ends, begin + room, side="right"))
            if fits <= at or not groups:
                groups.append([])
                room = max_bytes
                fits = max(at + 1, int(np.searchsorted(ends, begin + room, side="right")))
            groups[-1].append(Stretch(stretch.source, at, fits))
            room -= int(ends[fits - 1]) - begin
            at = fits
    return groups


def _document_ends(reader: MegatronReader) -> np.ndarray:
    """Byte behind each document's last one."""
    ends = reader.index.byte_offsets + reader.lengths.astype(np.int64) * reader.dtype.itemsize
    last = reader.document_indices[1:] - 1
    return np.where(last >= 0, ends[np.maximum(last, 0)], 0)


def _common_ids(sources: Sequence[Path]) -> Ids | None:
    """What the ids of all sources mean, as far as all their receipts say it."""
    first, receipts = MegatronReader(sources[0]), [read_receipt(source) for source in sources]
    for source in sources[1:]:
        if (dtype := MegatronReader(source).dtype) != first.dtype:
            raise Mismatch(
                f"{source} holds ids of {dtype.name}, {sources[0]} of {first.dtype.name}: write "
                "one of them again by the other's rule"
            )
    known = [
        (source, receipt.ids)
        for source, receipt in zip(sources, receipts, strict=True)
        if receipt and receipt.ids
    ]
    for source, ids in known[1:]:
        if ids != known[0][1]:
            raise Mismatch(
                f"{source} is of {_shown(ids)}, {known[0][0]} of {_shown(known[0][1])}: ids of "
                "two kinds make no data set"
            )
    return known[0][1] if len(known) == len(sources) else None


def _shown(ids: Ids) -> str:
    return (
        f"{ids.tokenizer} with "
        f"{'no end of document' if ids.eod is None else f'end of document {ids.eod:,}'}"
    )
