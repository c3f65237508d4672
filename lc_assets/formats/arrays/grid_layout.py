"""Shapes of a token grid and its metadata file ``zarr.json``.

Rows: `formats.arrays.grid`; reasons for the defaults: docs/chunking.md.

Source: Zarr v3 core specification and its ``sharding_indexed`` codec.
"""

import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import msgspec
import numpy as np

from lc_assets.errors import UNDECODABLE, BadInput, CorruptFile
from lc_assets.records import frozen

METADATA = "zarr.json"
FORMAT = "lc-token-grid"
CODER = "lc_ranked"
OWN = ("format", "format_version", "row_tokens", "vocab_size", "tokenizer")
"""The format's own attributes."""
FORMAT_VERSION = 2
"""Version 1, which differs only in its default sizes, is read as well."""

SHARD_ROWS = 2048
SHARD_TOKENS = 65_536
SHARDS = 16
"""Shards of an array that is too small for as many full ones: workers write one each."""
INNER_ROWS = 64
"""Rows of an inner chunk. A walk with long contexts keeps as many rows decoded, 84 times as many
over 84 interleaved arrays (docs/chunking.md).
"""
INNER_TOKENS = 1024
"""Tokens of an inner chunk. A context of this length decodes a chunk once, of half the length
twice.
"""
ZSTD_LEVEL = 4
"""For inputs of up to 128 KiB, zstd finds matches as short as two ids only from level 4 on; for
larger ones from level 3 on.
"""
MOST_INNER_BYTES = 2**26
"""Largest inner chunk that is read or written; a reader holds at least one."""
MOST_INNER = 2**16
"""Most inner chunks of a shard: an index of a megabyte."""


def grid_dtype(vocab_size: int) -> np.dtype[Any]:
    """Dtype of a grid's ids: uint16 unless its largest number is an id of the vocabulary
    (docs/decisions.md, 0005).

    >>> grid_dtype(65_535), grid_dtype(65_536)
    (dtype('uint16'), dtype('uint32'))
    """
    return np.dtype(np.uint16 if vocab_size <= np.iinfo(np.uint16).max else np.uint32)


def shard_rows_of(n_rows: int, inner_rows: int, most: int = SHARD_ROWS) -> int:
    """Rows of a shard: a sixteenth of the array's, in whole inner chunks, and at most ``most``.

    >>> shard_rows_of(340, 64), shard_rows_of(5000, 64), shard_rows_of(100_000, 64)
    (64, 320, 2048)
    """
    return min(max(-(-n_rows // (inner_rows * SHARDS)), 1) * inner_rows, most)


class Configuration(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The configuration of the codec ``lc_ranked``: `lc_assets.formats.arrays.ranked`. Version 1
    has neither contexts nor own lists.
    """

    vocab_size: int
    ranked: tuple[int, ...]
    lengths: tuple[str, ...]
    contexts: str = ""
    own: tuple[bytes, ...] = ()


@frozen
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
        coder: configuration of the codec that codes them in the place of zstd; None for zstd.

    >>> GridLayout(5000, 65_536, 50_257).shard, GridLayout(5000, 65_536, 50_257).inner
    ((2048, 65536), (64, 1024))
    >>> GridLayout(100, 64, 50_257).shard, GridLayout(100, 64, 50_257).inner
    ((128, 64), (64, 64))
    """

    n_rows: int
    row_tokens: int
    vocab_size: int
    shard_rows: int = SHARD_ROWS
    shard_tokens: int = SHARD_TOKENS
    inner_rows: int = INNER_ROWS
    inner_tokens: int = INNER_TOKENS
    zstd_level: int = ZSTD_LEVEL
    coder: Configuration | None = None

    def __post_init__(self) -> None:
        _require("n_rows", self.n_rows, 0)
        _require("row_tokens", self.row_tokens, 1)
        _require("vocab_size", self.vocab_size, 1, 2**32 - 1)  # the fill value is no token
        _require("zstd_level", self.zstd_level, 1, 22)
        for axis in ("rows", "tokens"):
            shard, inner = getattr(self, f"shard_{axis}"), getattr(self, f"inner_{axis}")
            if inner < 1 or shard < 1 or (shard > inner and shard % inner):
                raise BadInput(
                    f"shard_{axis} must be at most inner_{axis}, {inner:,}, or a multiple of it, "
                    f"got {shard:,}"
                )
        _require("bytes of an inner chunk", self.inner_bytes, 1, MOST_INNER_BYTES)
        _require("inner chunks of a shard", math.prod(self.chunks_of_shard), 1, MOST_INNER)
        if self.coder is not None:
            # Most grids are read without it.
            from lc_assets.formats.arrays.ranked import RankedCodec

            RankedCodec(self.coder)
            _require("ids of the codec", self.coder.vocab_size, self.vocab_size, self.vocab_size)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Dtype of the ids."""
        return grid_dtype(self.vocab_size)

    @property
    def fill(self) -> int:
        """The data type's largest number, which is not a token."""
        return int(np.iinfo(self.dtype).max)

    @property
    def inner(self) -> tuple[int, int]:
        """Rows × tokens of an inner chunk."""
        return (
            min(self.inner_rows, self.shard_rows, max(self.n_rows, 1)),
            min(self.inner_tokens, self.shard_tokens, self.row_tokens),
        )

    @property
    def shard(self) -> tuple[int, int]:
        """Rows × tokens of every shard file, including the last ones, which extend beyond the
        array.
        """
        down, across = self.inner
        return (
            min(self.shard_rows, -(-max(self.n_rows, 1) // down) * down),
            min(self.shard_tokens, -(-self.row_tokens // across) * across),
        )

    @property
    def chunks_of_shard(self) -> tuple[int, int]:
        """Inner chunks of a shard, along each axis."""
        return self.shard[0] // self.inner[0], self.shard[1] // self.inner[1]

    @property
    def inner_bytes(self) -> int:
        """Size of an inner chunk before compression."""
        return math.prod(self.inner) * self.dtype.itemsize


def _require(what: str, found: int, least: int, most: int = 2**63 - 1) -> None:
    if not least <= found <= most:
        raise BadInput(f"{what} must be {least:,} to {most:,}, got {found:,}")


def encode_metadata(
    layout: GridLayout, tokenizer: str, attributes: Mapping[str, Any], dimensions: tuple[str, str]
) -> bytes:
    """The bytes of ``zarr.json``.

    Args:
        layout: the grid's.
        dimensions: names of its rows and of their tokens.
        tokenizer: name of the vocabulary of the ids.
        attributes: JSON-like values, stored beside the format's own.

    Raises:
        BadInput: if an attribute has the name of one of the format's own.
    """
    if not attributes.keys().isdisjoint(OWN):
        raise BadInput(f"attributes must leave {', '.join(OWN)} alone, got {', '.join(attributes)}")
    document = _document(layout, {**attributes, "tokenizer": tokenizer}, FORMAT_VERSION, dimensions)
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


def parse_metadata(content: bytes, where: str) -> tuple[GridLayout, dict[str, Any]]:
    """Read the layout and the attributes out of the bytes of ``zarr.json``.

    The metadata that a grid of this layout must have is built and compared, so nothing unknown to a
    reader is overlooked. ``where`` names the file in messages.

    Raises:
        CorruptFile: if a field differs from a token grid's; names the field, its value and the
            expected one.
    """
    try:
        found = msgspec.json.decode(content, type=dict[str, Any])
        layout = _layout_of(found)
        dimensions = msgspec.convert(found.get("dimension_names"), tuple[str, str] | None)
    except (*UNDECODABLE, BadInput, KeyError, TypeError, ValueError) as error:
        raise CorruptFile(f"{where}: not the metadata of a token grid: {error}") from error
    attributes = found["attributes"]
    version = 1 if attributes.get("format_version") == 1 else FORMAT_VERSION
    for field, value in _document(layout, attributes, version, dimensions).items():
        stated, expected = _json(found.get(field)).decode(), _json(value).decode()
        if stated != expected:
            raise CorruptFile(f"{where}: {field} is {stated}, a token grid's is {expected}")
    return layout, attributes


def _layout_of(found: Mapping[str, Any]) -> GridLayout:
    """The layout by the few values that may differ between grids."""
    sharding = _configuration(found["codecs"], "sharding_indexed")
    inner = sharding.get("codecs")
    values = (
        *msgspec.convert(found["shape"], tuple[int, int]),
        found["attributes"]["vocab_size"],
        *msgspec.convert(found["chunk_grid"]["configuration"]["chunk_shape"], tuple[int, int]),
        *msgspec.convert(sharding.get("chunk_shape", (INNER_ROWS, INNER_TOKENS)), tuple[int, int]),
        _configuration(inner, "zstd").get("level", ZSTD_LEVEL),
        _configuration(inner, CODER) or None,
    )
    names = (field.name for field in fields(GridLayout))
    return msgspec.convert(dict(zip(names, values, strict=True)), GridLayout)


def _configuration(codecs: Any, name: str) -> dict[str, Any]:
    """Settings of a codec of this name; empty if there is none, which the comparison reports."""
    known = codecs if isinstance(codecs, list) else []
    ours = (codec for codec in known if isinstance(codec, dict) and codec.get("name") == name)
    return msgspec.convert(next(ours, {}).get("configuration", {}), dict[str, Any])


def _document(
    layout: GridLayout,
    attributes: Mapping[str, Any],
    version: int,
    dimensions: tuple[str, str] | None,
) -> dict[str, Any]:
    """The fields that the format fixes, in the order in which they are written, with ``attributes``
    by name, and the names of the dimensions, which older grids lack.
    """
    numbers = {"row_tokens": layout.row_tokens, "vocab_size": layout.vocab_size}
    ours = {"format": FORMAT, "format_version": version, **numbers}
    little_endian = {"configuration": {"endian": "little"}, "name": "bytes"}
    codec: dict[str, Any]
    codec = {"configuration": {"checksum": True, "level": layout.zstd_level}, "name": "zstd"}
    if layout.coder is not None:
        codec = {"configuration": msgspec.to_builtins(layout.coder), "name": CODER}
    sharding = {
        "chunk_shape": layout.inner,
        "codecs": [little_endian, codec],
        "index_codecs": [little_endian, {"name": "crc32c"}],
        "index_location": "end",
    }
    return {
        "zarr_format": 3,
        "node_type": "array",
        "shape": (layout.n_rows, layout.row_tokens),
        "data_type": layout.dtype.name,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": layout.shard}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": layout.fill,
        "codecs": [{"name": "sharding_indexed", "configuration": sharding}],
        "attributes": msgspec.json.decode(_json({**attributes, **ours})),
        **({"dimension_names": dimensions} if dimensions else {}),
    }


def _json(value: Any) -> bytes:
    return msgspec.json.encode(value, order="deterministic")
