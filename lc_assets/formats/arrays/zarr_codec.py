"""``lc_ranked`` for zarr-python 3, which finds it by an entry point of the group ``zarr.codecs``.

Source: zarr-python's ``BytesBytesCodec``; docs/formats/ranked.md.
"""

import asyncio
from dataclasses import dataclass, field
from typing import Any, Self

import msgspec
import numpy as np
from zarr.abc.codec import BytesBytesCodec

from lc_assets.formats.arrays.grid_layout import CODER, Configuration
from lc_assets.formats.arrays.ranked import RankedCodec


@dataclass(frozen=True)
class RankedZarrCodec(BytesBytesCodec):  # type: ignore[misc]
    """The codec of one array; chunks are uint16 or uint32, little-endian."""

    codec: RankedCodec = field(compare=False)

    is_fixed_size = False

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Of its metadata.

        Raises:
            BadInput, msgspec.ValidationError: if they are not this codec's.
        """
        return cls(RankedCodec(msgspec.convert(data["configuration"], Configuration)))

    def to_dict(self) -> dict[str, Any]:
        """Its metadata."""
        return {"name": CODER, "configuration": msgspec.to_builtins(self.codec.configuration)}

    def compute_encoded_size(self, input_byte_length: int, chunk_spec: Any) -> int:
        """Not known before."""
        raise NotImplementedError

    async def _decode_single(self, chunk_data: Any, chunk_spec: Any) -> Any:
        out = np.empty(chunk_spec.shape, chunk_spec.dtype.to_native_dtype())
        await asyncio.to_thread(self.codec.decode, chunk_data.to_bytes(), out)
        return chunk_spec.prototype.buffer.from_bytes(out.tobytes())

    async def _encode_single(self, chunk_data: Any, chunk_spec: Any) -> Any:
        ids = np.frombuffer(chunk_data.to_bytes(), chunk_spec.dtype.to_native_dtype())
        content = await asyncio.to_thread(self.codec.encode, ids)
        return chunk_spec.prototype.buffer.from_bytes(content)
