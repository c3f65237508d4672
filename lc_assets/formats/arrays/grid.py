"""The token grid: one split of one snapshot, rows × tokens, as one sharded Zarr v3 array.

Shapes and metadata: `formats.arrays.grid_layout`; shuffling and rolling: `lc_assets.tokens`;
caching: `loaders.cache`. zarr-python >= 3 and tensorstore read these arrays; why neither is used
here: docs/decisions.md, 0006.

Source: Zarr v3 core specification and its ``sharding_indexed`` codec with ``index_location: end``;
RFC 8878 for zstd frames.

==================  ================================================================================
path                content
==================  ================================================================================
``zarr.json``       metadata, below
``c/{i}/{j}``       shard: the i-th by rows, the j-th by tokens
==================  ================================================================================

==================  ================================================================================
metadata            value
==================  ================================================================================
shape               (rows, row_tokens); zero rows are allowed
data type           uint16 for vocabularies of up to 65,535 ids, else uint32
shard               2,048 × 65,536, and smaller if the array is smaller (`shard_rows_of`); readers
                    take it from here
inner chunk         64 × 1,024 by default: 128 KiB of uint16; readers take it from here
codecs              little-endian bytes; zstd level 4, with its checksum, or `formats.arrays.ranked`
fill value          the data type's largest number, not a token: rows that are missing read as
                    an id outside the vocabulary in any program, never as token 0
attributes          format ``lc-token-grid``, format_version 2, row_tokens, vocab_size, tokenizer,
                    and what the writer adds; version 1, with inner chunks of 64 × 2,048 in shards
                    of 2,048 × 2,048, zstd level 3, is read as well
dimension names     in a lake ``train_row`` or ``heldout_row``, and ``token``; older grids have none
==================  ================================================================================

=================  =================================================================================
bytes of a shard   content
=================  =================================================================================
0 …                inner chunks in C order, each one zstd frame of its little-endian ids in C order;
                   the frame states the size of its content and ends with zstd's own checksum (low
                   32 bits of XXH64)
16 n, before CRC   index: per inner chunk of the shard, in C order, ``offset`` and ``n_bytes``, both
                   uint64 little-endian; both are 2^64 - 1 for an inner chunk that is entirely
                   outside the array
last 4             CRC-32C of the index, uint32 little-endian
=================  =================================================================================

Every inner chunk that overlaps the array is stored, whatever its ids, so a missing one is always
damage. Ids of an inner chunk beyond the array's edges are the array's fill value.
"""

import array
import functools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import google_crc32c
import msgspec
import numpy as np

from lc_assets.arrays import Array
from lc_assets.errors import CorruptFile
from lc_assets.formats.arrays.chunks import (
    ChunkedArray,
    TokenArray,
    n_chunks,
    padded,
    plan_rows,
    require_no_other,
)
from lc_assets.formats.arrays.files import Files, Piece
from lc_assets.formats.arrays.grid_layout import (
    METADATA,
    Configuration,
    GridLayout,
    encode_metadata,
    parse_metadata,
)
from lc_assets.formats.arrays.zstd_frames import ZstdFrames
from lc_assets.publishing import publish_bytes

KEPT_INDEX_BYTES = 2**18
"""Bytes of indexes kept per array. Each inner chunk is read by itself, and without this a walk down
an array would read and check a shard's index 32 times.
"""

_Index: TypeAlias = "tuple[str, array.array[int], int]"
"""Of a shard: its file, offset and size of each inner chunk, and the bytes before them."""
_ABSENT = 2**64 - 1
CRC_BYTES = 4
_FRAME_OVERHEAD = 1024


def create_grid(
    path: Path,
    layout: GridLayout,
    *,
    tokenizer: str = "gpt2",
    attributes: Mapping[str, Any] | None = None,
    rows: str = "row",
) -> None:
    """Write an array's metadata. Its rows are then written by `write_band`, in any order, by any
    process.

    Args:
        path: the array's folder, such as ``train.zarr``.
        layout: its shape.
        tokenizer: name of the vocabulary of the ids.
        attributes: further attributes, JSON-like values.
        rows: name of the dimension of the rows, which differs between the arrays of a folder.

    Raises:
        BadInput: if ``path`` holds another array, or an attribute has the name of one of the
            format's own.
    """
    content = encode_metadata(layout, tokenizer, attributes or {}, (rows, "token"))
    require_no_other(path / METADATA, content)
    publish_bytes(path / METADATA, content)


def create_group(folder: Path) -> None:
    """Write the metadata of a folder of arrays, by which xarray opens them together without listing
    the folder.

    Source: ``consolidated_metadata`` as zarr-python 3 writes it.
    """
    arrays = {
        path.parent.name: msgspec.json.decode(path.read_bytes())
        for path in folder.glob(f"*/{METADATA}")
    }
    consolidated = {"kind": "inline", "must_understand": False, "metadata": arrays}
    group = {"zarr_format": 3, "node_type": "group", "consolidated_metadata": consolidated}
    publish_bytes(folder / METADATA, msgspec.json.encode(group, order="deterministic"))


def plan_bands(layout: GridLayout) -> list[range]:
    """Divide a grid's rows into bands, one per row of shard files: each may be written by another
    process.

    >>> plan_bands(GridLayout(5000, 65_536, 50_257, shard_rows=4096))
    [range(0, 4096), range(4096, 5000)]
    """
    return plan_rows(layout.n_rows, layout.shard_rows)


def write_band(path: Path, block: range, rows: Array) -> None:
    """Write one band (see `plan_bands`) of the array in a folder; see `ChunkedArray.write`."""
    GridReader(path).write(block, rows)


def encode_shard(values: TokenArray, layout: GridLayout) -> Iterator[bytes]:
    """Yield the bytes of one shard: one inner chunk at a time, then the index.

    Args:
        values: (row, token) little-endian ids of the layout's dtype, the part of the shard that is
            in the array.
        layout: the grid's.
    """
    index = np.full((*layout.chunks_of_shard, 2), _ABSENT, "<u8")
    inner, fill = layout.inner, layout.fill
    (down, across), offset = inner, 0
    codec = _codec(layout.zstd_level, layout.coder)
    for row, column in np.ndindex(n_chunks(values.shape, inner)):
        part = values[row * down : (row + 1) * down, column * across : (column + 1) * across]
        frame = codec.encode(padded(part, inner, fill))
        index[row, column] = offset, len(frame)
        offset += len(frame)
        yield frame
    yield index.tobytes()
    yield _checksum(index.tobytes())


class GridReader(ChunkedArray):
    """Reads rectangles of a grid, without a cache; every id it returns is a token.

    Threads may share it.

    Attributes:
        layout: shape of the array and its chunks.
        attributes: of the array, the format's own and the writer's.
        tokenizer: name of the vocabulary of the ids; empty if the writer did not state it.
        eot: id of end of text, if the writer stated it.
        align_tokens: documents begin at multiples of it; 1 if the writer did not state it.
    """

    METADATA, KIND, FILE = METADATA, "token grid", "c/{}/{}"

    def __init__(self, path: Path, *, files: Files | None = None) -> None:
        """Read the metadata and nothing else, from the folder ``path`` or from ``files``; ``path``
        is only a name then.

        Raises:
            NotPublished: if there is no such array.
            CorruptFile: if the metadata is not this format's; names the field, its value and the
                expected one.
        """
        super().__init__(path, files)
        self.layout, self.attributes = parse_metadata(self.metadata, self._files.where(METADATA))
        self.n_rows, self.row_tokens = self.layout.n_rows, self.layout.row_tokens
        self.tokenizer = str(self.attributes.get("tokenizer", ""))
        eot, align = (self.attributes.get(name) for name in ("eot", "align_tokens"))
        self.eot = eot if isinstance(eot, int) else None
        self.align_tokens = align if isinstance(align, int) else 1
        self.vocab_size, self.dtype = self.layout.vocab_size, self.layout.dtype
        self.chunk_shape, self.file_shape = self.layout.inner, self.layout.shard
        self._chunks_of_shard = self.layout.chunks_of_shard
        self._most_bytes = 2 * self.layout.inner_bytes + _FRAME_OVERHEAD
        self._codec = _codec(self.layout.zstd_level, self.layout.coder)
        self._index_bytes = 16 * self._chunks_of_shard[0] * self._chunks_of_shard[1] + CRC_BYTES
        self._indexes: dict[tuple[int, int], _Index] = {}

    def chunks(self, row: int, columns: range) -> Iterator[TokenArray]:
        """See `ChunkedArray.chunks`; all their bytes are requested at once."""
        try:
            frames = self._read([self._piece(row, column) for column in columns])
            for column, frame in zip(columns, frames, strict=True):
                yield self._chunk(row, column, frame)
        except CorruptFile as error:
            self._indexes = {}  # so that a shard written again is found at the next call
            self._require_published(error)
            raise

    def _chunk(self, row: int, column: int, frame: bytes) -> TokenArray:
        down, across = self.chunk_shape
        try:
            ids: TokenArray = self._codec.decoded(frame, down * across, self.dtype)
        except ValueError as error:
            what = f"{len(frame):,} bytes do not decompress: {error}"
            raise CorruptFile(f"{self._named(row, column)}: {what}") from error
        chunk = ids.reshape(down, across)
        self._check(row, column, chunk)
        return chunk

    def _named(self, row: int, column: int) -> str:
        down, across = self._chunks_of_shard
        path = self._file(row // down, column // across)
        return f"{self._files.where(path)}: inner chunk {row % down, column % across}"

    def _piece(self, row: int, column: int) -> Piece:
        down, across = self._chunks_of_shard
        shard = row // down, column // across
        path, index, room = self._indexes.get(shard) or self._index(shard)
        at = 2 * (row % down * across + column % across)
        offset, n_bytes = index[at], index[at + 1]
        if 0 < n_bytes <= min(room - offset, self._most_bytes):
            return Piece(path, offset, offset + n_bytes)
        if offset == n_bytes == _ABSENT:
            raise CorruptFile(
                f"{self._named(row, column)} is missing from the index; write its band again"
            )
        raise CorruptFile(
            f"{self._named(row, column)} cannot be {n_bytes:,} bytes at {offset:,}: the file has "
            f"{room:,} before its index"
        )

    def _index(self, shard: tuple[int, int]) -> _Index:
        """Read the index of a shard."""
        path, size = self._file(*shard), self._index_bytes
        try:
            n_bytes = self._files.n_bytes(path)
        except FileNotFoundError as error:
            raise self._lost([path]) from error
        (content,) = self._read([Piece(path, max(n_bytes - size, 0), n_bytes)])
        if len(content) < size:
            raise CorruptFile(
                f"{self._files.where(path)}: {len(content):,} bytes cannot hold a shard's index of "
                f"{size:,}; write its band again"
            )
        if _checksum(content[:-CRC_BYTES]) != content[-CRC_BYTES:]:
            raise CorruptFile(
                f"{self._files.where(path)}: the shard's index does not match its checksum: "
                "truncated or damaged; write its band again"
            )
        places = np.frombuffer(content, "<u8", count=size // 8).astype(np.uint64)
        if len(self._indexes) >= max(KEPT_INDEX_BYTES // size, 4):
            self._indexes = {}
        found = self._indexes[shard] = path, array.array("Q", places.tobytes()), n_bytes - size
        return found

    def _read(self, pieces: list[Piece]) -> list[bytes]:
        try:
            return self._files.read(pieces)
        except FileNotFoundError as error:
            raise self._lost(sorted({piece.path for piece in pieces})[:2]) from error

    def _lost(self, paths: list[str]) -> CorruptFile:
        return CorruptFile(
            f"{', '.join(map(self._files.where, paths))}: the shard is missing: its rows were "
            "never written, or were lost; write its band again"
        )

    def _encoded(self, ids: TokenArray) -> Iterator[bytes]:
        return encode_shard(ids, self.layout)

    def _damage(self, row: int, column: int) -> str:
        """Reads the index only, so damage inside a chunk is not found."""
        down, across = self.file_shape
        rest = min(down, self.n_rows - row * down), min(across, self.row_tokens - column * across)
        first = row * self._chunks_of_shard[0], column * self._chunks_of_shard[1]
        try:
            for at in np.ndindex(n_chunks(rest, self.chunk_shape)):
                self._piece(first[0] + at[0], first[1] + at[1])
        except CorruptFile as error:
            return str(error)
        return ""


def _checksum(index: bytes) -> bytes:
    return int(google_crc32c.value(index)).to_bytes(CRC_BYTES, "little")


@functools.lru_cache(maxsize=32)
def _codec(level: int, coder: Configuration | None) -> Any:
    from lc_assets.formats.arrays.ranked import RankedCodec

    return ZstdFrames(level) if coder is None else RankedCodec(coder)
