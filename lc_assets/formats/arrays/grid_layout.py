"""Shapes of a token grid and its metadata file ``zarr.json``.

Here: the numbers, their defaults and limits, and the metadata document. Not here: the rows
(`formats.grid`), why the defaults are what they are (docs/chunking.md).

Source: Zarr v3 core specification and its ``sharding_indexed`` codec.
"""

import contextlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import numpy as np

from lc_assets.errors import UNDECODABLE, BadInput, CorruptFile
from lc_assets.formats.arrays.shard import ShardShape

METADATA: Final = "zarr.json"
FORMAT: Final = "lc-token-grid"
FORMAT_VERSION: Final = 2
READABLE_VERSIONS: Final = (1, 2)

SHARD_ROWS: Final = 2048
SHARD_TOKENS: Final = 65_536
INNER_ROWS: Final = 64
"""Rows of an inner chunk. A walk with long contexts keeps as many rows decoded, 84 times as many
over 84 interleaved arrays (docs/chunking.md).
"""
INNER_TOKENS: Final = 1024
"""Tokens of an inner chunk. A context of this length decodes a chunk once, of half the length
twice.
"""
ZSTD_LEVEL: Final = 4
"""For inputs of up to 128 KiB, zstd finds matches as short as two ids only from level 4 on; for
larger ones from level 3 on.
"""
MOST_INNER_BYTES: Final = 2**26
"""Largest inner chunk that is read or written; a reader holds at least one."""
MOST_INNER: Final = 2**16
"""Most inner chunks of a shard: an index of a megabyte."""


def grid_dtype(vocab_size: int) -> np.dtype[Any]:
    """Data type of a grid's ids: uint16 unless its largest number is an id of the vocabulary
    (docs/decisions/0005).

    >>> grid_dtype(65_535), grid_dtype(65_536)
    (dtype('uint16'), dtype('uint32'))
    """
    return np.dtype(np.uint16 if vocab_size <= np.iinfo(np.uint16).max else np.uint32)


@dataclass(frozen=True, slots=True)
class GridLayout:
    """Shape of a grid and of its chunks.

    Attributes:
        n_rows: rows of the array; may be zero.
        row_tokens: tokens of a row.
        vocab_size: ids are 0 to ``vocab_size`` - 1.
        shard_rows: rows of one file: at most ``inner_rows``, or a multiple of it. A grid of fewer
            rows has smaller shards: as many whole inner chunks as it needs.
        shard_tokens: tokens of one file's rows; likewise with ``inner_tokens``.
        inner_rows: rows of an inner chunk, at most those of the array.
        inner_tokens: tokens of its rows, at most those of the array's rows.
        zstd_level: compression level of the chunks.

    >>> GridLayout(5000, 65_536, 50_257).shards
    ShardShape(shard=(2048, 65536), inner=(64, 1024), dtype=dtype('uint16'), level=4)
    >>> GridLayout(100, 64, 50_257).shards
    ShardShape(shard=(128, 64), inner=(64, 64), dtype=dtype('uint16'), level=4)
    """

    n_rows: int
    row_tokens: int
    vocab_size: int
    shard_rows: int = SHARD_ROWS
    shard_tokens: int = SHARD_TOKENS
    inner_rows: int = INNER_ROWS
    inner_tokens: int = INNER_TOKENS
    zstd_level: int = ZSTD_LEVEL

    def __post_init__(self) -> None:
        if self.n_rows < 0 or self.row_tokens < 1:
            raise BadInput(
                "a grid needs a row count of at least 0 and at least one token per row, got "
                f"{self.n_rows:,} × {self.row_tokens:,}"
            )
        if not 1 <= self.vocab_size < 2**32:
            raise BadInput(
                f"vocab_size must be 1 to {2**32 - 1:,}, so that the fill value is no token; got "
                f"{self.vocab_size:,}"
            )
        for axis in ("rows", "tokens"):
            shard, inner = getattr(self, f"shard_{axis}"), getattr(self, f"inner_{axis}")
            if inner < 1 or shard < 1 or (shard > inner and shard % inner):
                raise BadInput(
                    f"shard_{axis} must be at most inner_{axis}, {inner:,}, or a multiple of it, "
                    f"got {shard:,}"
                )
        if not 1 <= self.zstd_level <= 22:
            raise BadInput(f"zstd_level must be 1 to 22, got {self.zstd_level}")
        shards = self.shards
        if shards.inner_bytes > MOST_INNER_BYTES or math.prod(shards.grid) > MOST_INNER:
            raise BadInput(
                f"an inner chunk has at most {MOST_INNER_BYTES:,} bytes, a shard at most "
                f"{MOST_INNER:,} inner chunks; got {shards.inner_bytes:,} bytes and "
                f"{math.prod(shards.grid):,} chunks"
            )

    @property
    def shape(self) -> tuple[int, int]:
        """Rows × tokens."""
        return self.n_rows, self.row_tokens

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the ids."""
        return grid_dtype(self.vocab_size)

    @property
    def fill(self) -> int:
        """The data type's largest number, which is no token."""
        return int(np.iinfo(self.dtype).max)

    @property
    def shards(self) -> ShardShape:
        """Shape of every shard file, including the last ones, which reach beyond the array."""
        down = _shrunk(self.n_rows, self.shard_rows, self.inner_rows)
        across = _shrunk(self.row_tokens, self.shard_tokens, self.inner_tokens)
        return ShardShape((down[0], across[0]), (down[1], across[1]), self.dtype, self.zstd_level)


def _shrunk(n: int, shard: int, inner: int) -> tuple[int, int]:
    """Lengths of a shard and of an inner chunk along an axis of ``n``."""
    inner = min(inner, shard, max(n, 1))
    return min(shard, -(-max(n, 1) // inner) * inner), inner


class _Codec(msgspec.Struct):
    """A codec or chunk grid: a name and its settings."""

    name: str
    configuration: dict[str, Any] = {}


class _Document(msgspec.Struct):
    """The fields from which the layout is read."""

    shape: tuple[int, int]
    chunk_grid: _Codec
    codecs: list[_Codec]
    attributes: dict[str, Any]


def encode_metadata(layout: GridLayout, tokenizer: str, attributes: Mapping[str, Any]) -> bytes:
    """Return the bytes of ``zarr.json``.

    Args:
        layout: the grid's.
        tokenizer: name of the vocabulary that the ids belong to.
        attributes: JSON-like values, stored beside the format's own.

    Raises:
        BadInput: when an attribute has the name of one of the format's own.
    """
    ours = {**_own_attributes(layout, FORMAT_VERSION), "tokenizer": tokenizer}
    if ours.keys() & attributes.keys():
        raise BadInput(
            f"attributes must leave {', '.join(ours)} alone, got {', '.join(attributes)}"
        )
    document = _document(layout, msgspec.json.decode(_json({**ours, **attributes})))
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


def parse_metadata(content: bytes, where: str) -> tuple[GridLayout, dict[str, Any]]:
    """Read the layout and the attributes out of the bytes of ``zarr.json``.

    The metadata a grid of this layout must have is rebuilt and compared, so that nothing that a
    reader does not know goes unnoticed. ``where`` names the file in messages.

    Raises:
        CorruptFile: when a field differs from a token grid's; says which, what it is and what was
            expected.
    """
    try:
        fields = msgspec.json.decode(content, type=dict[str, Any])
        document = msgspec.convert(fields, _Document)
        layout = _layout_of(document)
    except (*UNDECODABLE, BadInput) as error:
        raise CorruptFile(f"{where}: not the metadata of a token grid: {error}") from error
    version = document.attributes.get("format_version")
    ours = _own_attributes(layout, version if version in READABLE_VERSIONS else FORMAT_VERSION)
    for field, wanted in _document(layout, {**document.attributes, **ours}).items():
        found, expected = _json(fields.get(field)), _json(wanted)
        if found != expected:
            raise CorruptFile(
                f"{where}: {field} is {found.decode()}, a token grid's is {expected.decode()}"
            )
    return layout, document.attributes


def _layout_of(document: _Document) -> GridLayout:
    """The layout by the few numbers that may differ between grids."""
    configuration = document.codecs[0].configuration if document.codecs else {}
    shard_rows, shard_tokens = _pair(document.chunk_grid.configuration.get("chunk_shape"))
    inner_rows, inner_tokens = _pair(configuration.get("chunk_shape") or (INNER_ROWS, INNER_TOKENS))
    return GridLayout(
        *document.shape,
        msgspec.convert(document.attributes.get("vocab_size"), int),
        shard_rows=shard_rows,
        shard_tokens=shard_tokens,
        inner_rows=inner_rows,
        inner_tokens=inner_tokens,
        zstd_level=_zstd_level(configuration.get("codecs")),
    )


def _zstd_level(codecs: Any) -> int:
    with contextlib.suppress(msgspec.ValidationError, KeyError):
        for codec in msgspec.convert(codecs, list[_Codec]):
            if codec.name == "zstd":
                return msgspec.convert(codec.configuration["level"], int)
    return ZSTD_LEVEL


def _pair(value: Any) -> tuple[int, int]:
    return msgspec.convert(value, tuple[int, int])


def _own_attributes(layout: GridLayout, version: int) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "format_version": version,
        "row_tokens": layout.row_tokens,
        "vocab_size": layout.vocab_size,
    }


def _document(layout: GridLayout, attributes: dict[str, Any]) -> dict[str, Any]:
    """The fields that the format fixes, in the order in which they are written."""
    shards = layout.shards
    little_endian = {"configuration": {"endian": "little"}, "name": "bytes"}
    zstd = {"configuration": {"checksum": True, "level": shards.level}, "name": "zstd"}
    sharding = {
        "chunk_shape": shards.inner,
        "codecs": [little_endian, zstd],
        "index_codecs": [little_endian, {"name": "crc32c"}],
        "index_location": "end",
    }
    return {
        "zarr_format": 3,
        "node_type": "array",
        "shape": layout.shape,
        "data_type": shards.dtype.name,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": shards.shard}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": layout.fill,
        "codecs": [{"name": "sharding_indexed", "configuration": sharding}],
        "attributes": attributes,
    }


def _json(value: Any) -> bytes:
    return msgspec.json.encode(value, order="deterministic")
