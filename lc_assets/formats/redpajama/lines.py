"""Lines of gzipped JSON: reading them, decoding one, writing them.

Documents and signals share this module. Memory is bounded by the longest requested line,
independent of the size of other lines and of the file, so neither a gzip bomb nor a file without
newlines can exhaust it.
"""

import gzip
import io
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, TypeVar, cast

import msgspec
from isal import igzip, igzip_lib

from lc_assets.errors import CorruptFile
from lc_assets.formats.unpacking import most_here, require_small
from lc_assets.publishing import gzipped

T = TypeVar("T")

_ESCAPES = re.compile(
    rb"\\u[dD][89abAB]\w\w\\u[dD][c-fC-F]\w\w|\\u[dD][89a-fA-F]\w\w|\\.", re.DOTALL
)
"""Pairs of surrogates, lone surrogates, and the beginnings of other escapes in JSON."""

BLOCK_BYTES = 1 << 18
"""Bytes that are read at once."""

# isal's type stubs call its exception class an exception.
_DAMAGE = (gzip.BadGzipFile, cast("type[Exception]", igzip_lib.IsalError))


def read_lines(
    stream: BinaryIO, *, where: str, max_line_bytes: int
) -> Iterator[tuple[int, bytes | None]]:
    r"""Yield each line of a gzip stream with its 0-based number, without its newline.

    A line of more than ``max_line_bytes`` is yielded as None and still counted. Blank lines are
    ``b""``; the last line needs no newline. A file may have several members; zeros after the last
    one are padding.

    >>> import io
    >>> text = io.BytesIO(gzip.compress(b"one\ntwo and a half\n\nthree"))
    >>> list(read_lines(text, where="numbers", max_line_bytes=5))
    [(0, b'one'), (1, None), (2, b''), (3, b'three')]

    Raises:
        CorruptFile: when the stream is empty, truncated or damaged; names ``where`` and the number
            of lines before. Up to `BLOCK_BYTES` of intact text before the damage are not yielded.
    """
    n_lines, start = 0, stream.tell()
    with igzip.IGzipFile(fileobj=stream, mode="rb") as text:
        try:
            for numbered in enumerate(bounded_lines(text, max_line_bytes)):
                held = [numbered]
                del numbered
                n_lines += 1
                yield held.pop()  # the caller alone keeps a long line
        except EOFError as error:
            raise CorruptFile(
                f"{where}: cut short after {n_lines:,} lines; fetch it again"
            ) from error
        except _DAMAGE as error:
            raise CorruptFile(
                f"{where}: not sound gzip after {n_lines:,} lines: {error}; fetch it again"
            ) from error
    if n_lines == 0 and stream.tell() == start:
        raise CorruptFile(f"{where}: the file is empty, not even a gzip header; fetch it again")


def bounded_lines(text: BinaryIO, max_line_bytes: int) -> Iterator[bytes | None]:
    r"""Yield each line of a stream without its newline, and None for one of more than
    ``max_line_bytes``.

    >>> import io
    >>> list(bounded_lines(io.BytesIO(b"one\ntwo and a half\n\nthree"), 5))
    [b'one', None, b'', b'three']
    """
    most = min(max_line_bytes, most_here())
    pieces, n_bytes = list[bytes](), 0
    while block := cast("io.BufferedIOBase", text).read1(BLOCK_BYTES):
        begin = 0
        while begin < len(block):
            newline = block.find(b"\n", begin)
            end = len(block) if newline < 0 else newline
            n_bytes += end - begin
            if n_bytes <= most:
                pieces.append(block[begin:end])
            else:
                pieces.clear()
                if most < max_line_bytes:
                    require_small(n_bytes)
            begin = end + 1
            if newline >= 0:
                held = [b"".join(pieces) if n_bytes <= most else None]
                pieces.clear()
                n_bytes = 0
                yield held.pop()  # the caller alone keeps a long line
    if n_bytes:
        yield b"".join(pieces) if n_bytes <= most else None


def decode_json(line: bytes, decoder: msgspec.json.Decoder[T], *, where: str) -> T:
    r"""Decode one line by its type; lone surrogates become U+FFFD, as in tiktoken.

    >>> decoder = msgspec.json.Decoder(list[str])
    >>> decode_json(rb'["\ud83d!", "\ud83d\ude00"]', decoder, where="line 0")
    ['�!', '😀']

    Raises:
        CorruptFile: when the line is not UTF-8, not JSON, or not of that type; states ``where`` and
            why.
    """
    try:
        try:
            return decoder.decode(line)
        except msgspec.ValidationError:
            raise
        except msgspec.DecodeError:  # msgspec does not accept lone surrogates
            return decoder.decode(_ESCAPES.sub(_without_lone_surrogate, line))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise CorruptFile(f"{where}: {error}") from error
    except RecursionError as error:
        raise CorruptFile(f"{where}: nested too deeply") from error


def _without_lone_surrogate(escape: re.Match[bytes]) -> bytes:
    return rb"\ufffd" if len(escape[0]) == len(rb"\ud800") else escape[0]


def write_json_lines(path: Path, records: Iterable[Any]) -> None:
    """Write one JSON line per record, gzipped."""
    with gzipped(path) as out:
        out.writelines(msgspec.json.encode(record) + b"\n" for record in records)
