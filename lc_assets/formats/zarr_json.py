"""``zarr.json``: the metadata of a sharded Zarr v3 array, as far as the token grid uses it.

Here: the document as a value, its bytes, and holding one against another. Not here: what a token
    grid's
numbers are (`formats.grid`).

Source: Zarr v3 core specification and its ``sharding_indexed`` codec.
"""

from typing import Any, Final, Self

import msgspec

from lc_assets.errors import UNDECODABLE, CorruptFile
from lc_assets.formats.shard import ShardShape

METADATA: Final = "zarr.json"


class Named(msgspec.Struct, omit_defaults=True):
    """A codec, chunk grid or key encoding: a name and its settings."""

    name: str
    configuration: dict[str, Any] = {}


class ZarrJson(msgspec.Struct):
    """The fields that the format fixes; others are allowed and not looked at."""

    zarr_format: int
    node_type: str
    shape: tuple[int, int]
    data_type: str
    chunk_grid: Named
    chunk_key_encoding: Named
    fill_value: int
    codecs: list[Named]
    attributes: dict[str, Any]

    @classmethod
    def of(
        cls, shape: tuple[int, int], shards: ShardShape, *, fill: int, attributes: dict[str, Any]
    ) -> Self:
        """Describe an array whose files `formats.shard` writes."""
        little_endian = Named("bytes", {"endian": "little"})
        sharding = {
            "chunk_shape": list(shards.inner),
            "codecs": [little_endian, Named("zstd", {"level": shards.level, "checksum": True})],
            "index_codecs": [little_endian, Named("crc32c")],
            "index_location": "end",
        }
        return cls(
            zarr_format=3,
            node_type="array",
            shape=shape,
            data_type=shards.dtype.name,
            chunk_grid=Named("regular", {"chunk_shape": list(shards.shard)}),
            chunk_key_encoding=Named("default", {"separator": "/"}),
            fill_value=fill,
            codecs=[Named("sharding_indexed", msgspec.to_builtins(sharding))],
            attributes=attributes,
        )

    @classmethod
    def parse(cls, content: bytes, path: str) -> Self:
        """Read a document's bytes; ``path`` is for the message.

        Raises:
            CorruptFile: when it is not the metadata of a two-dimensional Zarr v3 array of integers.
        """
        try:
            return msgspec.json.decode(content, type=cls)
        except UNDECODABLE as error:
            raise CorruptFile(f"{path}: not the metadata of a token grid: {error}") from error

    @property
    def shard_shape(self) -> Any:
        """The shards' shape, as found: unchecked."""
        return self.chunk_grid.configuration.get("chunk_shape")

    @property
    def inner_shape(self) -> Any:
        """The inner chunks' shape, as found: unchecked; None where there are none."""
        return self.codecs[0].configuration.get("chunk_shape") if self.codecs else None

    @property
    def zstd_level(self) -> int | None:
        """At which inner chunks are packed; None where nothing says so."""
        try:
            codecs = (
                msgspec.convert(self.codecs[0].configuration.get("codecs"), list[Named])
                if self.codecs
                else []
            )
            return next(
                (
                    msgspec.convert(codec.configuration.get("level"), int)
                    for codec in codecs
                    if codec.name == "zstd"
                ),
                None,
            )
        except msgspec.ValidationError:
            return None

    def encode(self) -> bytes:
        """Return the file's bytes: indented and sorted."""
        return (
            msgspec.json.format(msgspec.json.encode(self, order="deterministic"), indent=2) + b"\n"
        )

    def require_equal(self, wanted: "ZarrJson", path: str) -> None:
        """Hold this document against another; ``path`` is for the message.

        Raises:
            CorruptFile: when a field differs; says which, what it is and what was expected.
        """
        for field in self.__struct_fields__:
            found, expected = (
                msgspec.json.encode(getattr(document, field), order="deterministic")
                for document in (self, wanted)
            )
            if found != expected:
                raise CorruptFile(
                    f"{path}: {field} is {found.decode()}, a token grid's is {expected.decode()}"
                )
