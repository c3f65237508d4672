"""Bodies of HTTP answers without their codings: chunks put together, compression undone, never more
than was asked for.

FastWARC undoes both itself, but all at once: a gigabyte out of a megabyte takes a gigabyte of
memory. Here a body is unpacked up to a limit. What ends early gives what is there, as browsers do;
what is no such coding is an `Undecodable`.
Source: RFC 9110, 8.4 (content codings); RFC 9112, 7.1 (chunks, which may have extensions, and of
    which the last may be missing).
"""

import contextlib
import io
import re
import zlib
from collections.abc import Callable
from typing import BinaryIO, Final, cast

import zstandard
from fastwarc.stream_io import BrotliReader

from lc_assets.errors import CorruptFile
from lc_assets.formats.archives.members import Members

_CHUNK: Final = re.compile(rb"([0-9A-Fa-f]{1,8})[ \t]*(?:;[^\r\n]*)?\r\n")
_READ_BYTES: Final = 1 << 16


class Undecodable(Exception):
    """A body is not coded as it says; the message says how it should be."""


def undone(body: bytes, *, transfer: str, content: str, most_bytes: int) -> bytes:
    r"""The body without its codings, cut off behind ``most_bytes``: one that is so long may be
    longer, and still coded.

    Args:
        body: as it was sent.
        transfer: the header ``Transfer-Encoding``; empty when there is none.
        content: the header ``Content-Encoding``.
        most_bytes: no more is unpacked.

    Raises:
        Undecodable: when the body is not coded so, or the coding is not known.

    >>> undone(b"3;x=y\r\n<p>\r\n5 \r\nhello\r\n0\r\n\r\n", transfer="chunked", content="", most_bytes=99)
    b'<p>hello'
    """
    for coding in [*reversed(_names(transfer)), *reversed(_names(content))]:
        if coding not in UNDOING:
            raise Undecodable(f"the coding {coding} is not known")
        body = UNDOING[coding](body, most_bytes)
        if len(body) >= most_bytes:  # what lies below another coding would be cut off, too
            break
    return body[:most_bytes]


def _names(header: str) -> list[str]:
    return [name for part in header.lower().split(",") if (name := part.strip()) not in NOTHING]


def _put_together(body: bytes, _: int) -> bytes:
    chunks, at = list[bytes](), 0
    while head := _CHUNK.match(body, at):
        at = head.end() + int(head[1], 16)
        if at > len(body):
            raise Undecodable("a chunk is cut short")
        chunks.append(body[head.end() : at])
        if at == head.end():
            return b"".join(chunks)
        at += 2 * body.startswith(b"\r\n", at)
    if at < len(body):
        raise Undecodable("not in chunks")
    return b"".join(chunks)


def _ungzipped(body: bytes, most_bytes: int) -> bytes:
    return _read(Members(io.BytesIO(body), where="a body"), most_bytes) if body else b""


def _inflated(body: bytes, most_bytes: int) -> bytes:
    """With the head of zlib, as it should be, or without, as some servers send it."""
    for bits in (zlib.MAX_WBITS, -zlib.MAX_WBITS):
        unpacker = zlib.decompressobj(bits)
        with contextlib.suppress(zlib.error):
            found = unpacker.decompress(body, most_bytes)
            if found or unpacker.eof:
                return found
    raise Undecodable("not deflated")


def _without_brotli(body: bytes, most_bytes: int) -> bytes:
    return _read(cast("BinaryIO", BrotliReader(io.BytesIO(body))), most_bytes) if body else b""


def _without_zstd(body: bytes, most_bytes: int) -> bytes:
    unpacker = zstandard.ZstdDecompressor(max_window_size=1 << 23)  # RFC 9659: of HTTP
    return _read(unpacker.stream_reader(body), most_bytes)


def _read(source: BinaryIO | Members, most_bytes: int) -> bytes:
    found = bytearray()
    try:
        while len(found) < most_bytes and (
            piece := source.read(min(_READ_BYTES, most_bytes - len(found)))
        ):
            found += piece
    except (CorruptFile, OSError, zstandard.ZstdError) as error:
        if not found:
            raise Undecodable(str(error)) from error
    return bytes(found)


NOTHING: Final = frozenset(("", "identity", "none"))
UNDOING: Final[dict[str, Callable[[bytes, int], bytes]]] = {
    "chunked": _put_together,
    "gzip": _ungzipped,
    "x-gzip": _ungzipped,
    "deflate": _inflated,
    "br": _without_brotli,
    "zstd": _without_zstd,
}
"""What undoes a coding; each unpacks no more than it is told to."""
