"""Lines of gzipped JSON: streaming them out of a file, decoding one, writing them.

Here: what documents and signals share. Not here: their fields.

Memory is bounded by the longest line wanted, never by a line's or a file's size, so neither a gzip
bomb nor a file without newlines can exhaust it.
"""

import contextlib
import gzip
import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final, NoReturn, TypeVar, cast

import msgspec
from isal import igzip, igzip_lib

from lc_assets.errors import CorruptFile
from lc_assets.formats.gzipping import gzipped

T = TypeVar("T")

SKIPPED_BYTES: Final = 1 << 20
"""How much of a line that is too long is held while it is passed over."""

# isal's type stubs call its exception class an exception.
_DAMAGE: Final = (gzip.BadGzipFile, cast("type[Exception]", igzip_lib.IsalError))


def read_lines(
    stream: BinaryIO, *, where: str, max_line_bytes: int
) -> Iterator[tuple[int, bytes | None]]:
    r"""Yield each line of a gzip stream with its 0-based number, without its newline.

    A line of more than ``max_line_bytes`` comes as None and still counts. Blank lines come as
    ``b""``; the last line needs no newline. A file may have several members; zeros after the last
    one are padding.

    >>> import io
    >>> list(read_lines(io.BytesIO(gzip.compress(b"one\ntwo and a half\n\nthree")), where="numbers", max_line_bytes=5))
    [(0, b'one'), (1, None), (2, b''), (3, b'three')]

    Raises:
        CorruptFile: when the stream is empty, cut short or damaged; names ``where`` and says how
            many lines came before. Up to some ten kilobytes of sound text just before the damage
            are not handed out.
    """
    n_lines = 0
    with gunzipped(stream, where, lambda: n_lines) as text:
        for line in bounded_lines(text, max_line_bytes):
            n_lines += 1
            yield n_lines - 1, line


@contextlib.contextmanager
def gunzipped(
    stream: BinaryIO, where: str, n_lines: Callable[[], int]
) -> Iterator[igzip.IGzipFile]:
    """Open what a gzip stream holds for reading; ``n_lines`` says how far one got, for the message
    when it is damaged.

    Raises:
        CorruptFile: as `read_lines` does, while it is read.
    """
    start = stream.tell()
    with igzip.IGzipFile(fileobj=stream, mode="rb") as text:
        try:
            yield text
        except EOFError as error:
            raise CorruptFile(
                f"{where}: cut short after {n_lines():,} lines; fetch it again"
            ) from error
        except _DAMAGE as error:
            raise CorruptFile(
                f"{where}: not sound gzip after {n_lines():,} lines: {error}; fetch it again"
            ) from error
    if n_lines() == 0 and stream.tell() == start:
        raise CorruptFile(f"{where}: the file is empty, not even a gzip header; fetch it again")


def bounded_lines(text: BinaryIO, max_line_bytes: int) -> Iterator[bytes | None]:
    r"""Yield each line of a stream without its newline, None in place of one of more than
    ``max_line_bytes``.

    >>> import io
    >>> list(bounded_lines(io.BytesIO(b"one\ntwo and a half\n\nthree"), 5))
    [b'one', None, b'', b'three']
    """
    while line := text.readline(max_line_bytes + 1):
        if line.endswith(b"\n"):
            yield line[:-1]
        elif len(line) <= max_line_bytes:
            yield line
        else:
            while line and not line.endswith(b"\n"):
                line = text.readline(SKIPPED_BYTES)
            yield None


def decode_json(line: bytes, decoder: msgspec.json.Decoder[T], *, where: str) -> T:
    r"""Decode one line by its type; lone surrogates become U+FFFD, as in tiktoken.

    >>> decode_json(rb'["\ud83d!", "\ud83d\ude00"]', msgspec.json.Decoder(list[str]), where="line 0")
    ['�!', '😀']

    Raises:
        CorruptFile: when the line is not UTF-8, not JSON, or not of that type; says ``where`` and
            why.
    """
    try:
        return decoder.decode(line)
    except (
        msgspec.ValidationError,
        UnicodeDecodeError,
    ) as error:  # the latter for a string that is not UTF-8
        raise CorruptFile(f"{where}: {error}") from error
    except RecursionError as error:
        raise CorruptFile(f"{where}: nested too deeply") from error
    except msgspec.DecodeError:
        return _decode_slowly(line, decoder, where)


def write_json_lines(path: Path, records: Iterable[Any]) -> None:
    """Write one JSON line per record, gzipped."""
    with gzipped(path) as out:
        out.writelines(msgspec.json.encode(record) + b"\n" for record in records)


def _decode_slowly(line: bytes, decoder: msgspec.json.Decoder[T], where: str) -> T:
    """Decode with the standard library, which accepts lone surrogates where msgspec does not."""
    try:
        value = json.loads(line.decode("utf-8"), parse_constant=_reject)
        return msgspec.convert(_without_surrogates(value), decoder.type)
    except ValueError as error:  # undecodable UTF-8 and msgspec's ValidationError are ValueErrors
        raise CorruptFile(f"{where}: {error}") from error
    except RecursionError as error:
        raise CorruptFile(f"{where}: nested too deeply") from error


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [_without_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {
            _without_surrogates(name): _without_surrogates(item) for name, item in value.items()
        }
    return value


def _reject(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")
