"""The global order: the sequence in which the rows of several snapshots' grids are visited, as if
they were one array.

Drawing the order: `lc_assets.tokens`; reading rows in it: `loaders.arrays`. Within one source
the rows are in ascending order, so that a new snapshot leaves earlier orders exact.

Source: NumPy's ``.npy`` format 1.0, without pickle.

==========================  ========================================================================
file                        content
==========================  ========================================================================
``{split}_source.npy``      uint16, one per position: which entry of ``sources``
``{split}_row.npy``         uint32, one per position: which row of that source's split
``sources.json``            ``{"row_tokens", "vocab_size", "sources": [{"snapshot", "version",
                            "digest", "train_rows", "heldout_rows"}, ...]}``: the versions of the
                            grids, and their published digests
==========================  ========================================================================

A position is an index into the two arrays. An order may leave rows out, but names none twice.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Self

import msgspec
import numpy as np

from lc_assets.arrays import UInt16s, UInt32s
from lc_assets.errors import UNDECODABLE, BadInput, CorruptFile, Mismatch, NotPublished
from lc_assets.formats.arrays.npy import read_npy, write_npy
from lc_assets.publishing import publish_bytes
from lc_assets.records import distinct
from lc_assets.vocabulary import SPLITS, parse_snapshot

SOURCES = "sources.json"
MAX_SOURCES = 2**16

_VERSION = re.compile(r"[A-Za-z0-9]{1,64}", re.ASCII)


class OrderSource(msgspec.Struct, frozen=True, kw_only=True):
    """One version of one snapshot's grid.

    Attributes:
        snapshot: the snapshot's name.
        version: name of the grid's version folder.
        digest: the grid's published digest.
        train_rows: rows of its train split.
        heldout_rows: rows of its heldout split.
    """

    snapshot: str
    version: str
    digest: str
    train_rows: int
    heldout_rows: int

    def __post_init__(self) -> None:
        parse_snapshot(self.snapshot)
        if not _VERSION.fullmatch(self.version):
            raise BadInput(f"not a version's name: {self.version!r}")
        if min(self.train_rows, self.heldout_rows) < 0:
            raise BadInput(
                f"{self.snapshot}: a split cannot have {self.train_rows:,} or "
                f"{self.heldout_rows:,} rows"
            )

    def rows(self, split: str) -> int:
        """Number of rows of one split."""
        return {"train": self.train_rows, "heldout": self.heldout_rows}[require_split(split)]


class _SourcesJson(msgspec.Struct, frozen=True, kw_only=True):
    row_tokens: int
    vocab_size: int
    sources: tuple[OrderSource, ...]

    def __post_init__(self) -> None:
        if self.row_tokens < 1 or self.vocab_size < 1 or len(self.sources) > MAX_SOURCES:
            raise BadInput(
                "sources have at least one token per row and one id, and are at most "
                f"{MAX_SOURCES:,};"
                f" got row_tokens {self.row_tokens:,}, vocab_size {self.vocab_size:,}, "
                f"{len(self.sources):,} sources"
            )


def write_sources(
    folder: Path, sources: Sequence[OrderSource], *, row_tokens: int, vocab_size: int
) -> None:
    """Write ``sources.json``.

    Args:
        folder: the order's folder.
        sources: the grids, in the order of their numbers.
        row_tokens: tokens of a row, in every source.
        vocab_size: ids are below it, in every source.

    Raises:
        BadInput: if there are more than 65,536 sources, or a size is not possible.
    """
    document = _SourcesJson(row_tokens=row_tokens, vocab_size=vocab_size, sources=tuple(sources))
    publish_bytes(
        folder / SOURCES, msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"
    )


def write_order(folder: Path, split: str, source: UInt16s, row: UInt32s) -> None:
    """Write one split's order.

    Args:
        folder: folder of ``sources.json``.
        split: ``train`` or ``heldout``.
        source: which source, per position.
        row: which row of it, per position.

    Raises:
        BadInput: if there is no such split.
    """
    require_split(split)
    source_path, row_path = order_files(folder, split)
    write_npy(source_path, source)
    write_npy(row_path, row)


@distinct
class GlobalOrder:
    """One split's order, mapped into memory.

    Attributes:
        split: ``train`` or ``heldout``.
        sources: the grids it is over, in the order of their numbers.
        row_tokens: tokens of a row, in every source.
        vocab_size: ids are below it, in every source.
        source: uint16, which source, per position.
        row: uint32, which row of it, per position.
    """

    split: str
    sources: tuple[OrderSource, ...]
    row_tokens: int
    vocab_size: int
    source: UInt16s
    row: UInt32s

    @classmethod
    def open(cls, folder: Path, split: str, *, pass_over: bool = True) -> Self:
        """Open the order of one split; reads ``sources.json``.

        Args:
            folder: folder of the files.
            split: ``train`` or ``heldout``.
            pass_over: whether to check all positions; a caller that needs few may check those.

        Raises:
            BadInput: if there is no such split.
            NotPublished: if a file is missing.
            CorruptFile: if a file is not of this format, the arrays differ in length, or a source
                does not exist.
        """
        require_split(split)
        described = _read_sources(folder)
        source_path, row_path = order_files(folder, split)
        source, row = (
            read_npy(path, row_of=dtype, missing=NotPublished)
            for path, dtype in ((source_path, np.dtype("<u2")), (row_path, np.dtype("<u4")))
        )
        if len(source) != len(row):
            raise CorruptFile(
                f"{source_path} has {len(source):,} positions, {row_path.name} has {len(row):,}: "
                "they must be of one length"
            )
        if pass_over and len(source) and int(source.max()) >= len(described.sources):
            raise CorruptFile(
                f"{source_path}: names source {int(source.max()):,}, {SOURCES} has "
                f"{len(described.sources):,}"
            )
        return cls(
            split, described.sources, described.row_tokens, described.vocab_size, source, row
        )

    def __len__(self) -> int:
        return len(self.source)

    def require_riffle(self) -> None:
        """Check that the order names every row of every source once, ascending within each source;
        one pass per source.

        Raises:
            Mismatch: if it does not; names the source.
        """
        for number, source in enumerate(self.sources):
            rows = self.row[self.source == number]
            if len(rows) != source.rows(self.split) or not np.array_equal(
                rows, np.arange(len(rows))
            ):
                raise Mismatch(
                    f"the {self.split} order names {len(rows):,} rows of {source.snapshot}, which "
                    f"has {source.rows(self.split):,}:"
                    " expected each of them once, in ascending order"
                )


def require_split(split: str) -> str:
    """Return ``split`` if there is one of that name.

    Raises:
        BadInput: if there is not.
    """
    if split not in SPLITS:
        raise BadInput(f"no split is called {split!r}: there are {' and '.join(SPLITS)}")
    return split


def _read_sources(folder: Path) -> _SourcesJson:
    path = folder / SOURCES
    try:
        return msgspec.json.decode(path.read_bytes(), type=_SourcesJson)
    except FileNotFoundError as error:
        raise NotPublished(f"{folder}: no global order here (no {SOURCES})") from error
    except UNDECODABLE as error:
        raise CorruptFile(f"{path}: not the sources of a global order: {error}") from error


def order_files(folder: Path, split: str) -> tuple[Path, Path]:
    """Files of one split's order: sources and rows."""
    return folder / f"{split}_source.npy", folder / f"{split}_row.npy"
