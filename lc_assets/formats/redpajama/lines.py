"""Lines of gzipped JSON: reading all or some of them, decoding one, writing them.

Documents and signals share this module. Memory is bounded by the longest requested line,
independent of the size of other lines and of the file, so neither a gzip bomb nor a file without
newlines can exhaust it.

`read_long_lines` and `read_other_lines` choose lines before anything is decoded, because nearly
every line of a crawl is dropped for its length or by its signals. A text is read in blocks; line
ends are counted in each, and only requested lines are extracted. All lines are numbered and their
bytes counted. Two facts make this fast. A line of 65,536 bytes cannot fit between two line ends
within one block of that size, so only lines that cross blocks can be that long. And a run of
consecutive line numbers to skip is recognised by two look-ups.
"""

import contextlib
import gzip
import json
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final, NoReturn, TypeAlias, TypeVar, cast

import msgspec
from isal import igzip, igzip_lib

from lc_assets.errors import CorruptFile
from lc_assets.publishing import gzipped

T = TypeVar("T")

SKIPPED_BYTES: Final = 1 << 20
"""Bytes of a too long line that are kept while it is skipped."""

# isal's type stubs call its exception class an exception.
_DAMAGE: Final = (gzip.BadGzipFile, cast("type[Exception]", igzip_lib.IsalError))


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
            of lines before. Up to ten kilobytes or so of intact text just before the damage are not
            yielded.
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
    """Open the content of a gzip stream; ``n_lines`` returns how many lines were read, for the
    message when it is damaged.

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
    r"""Yield each line of a stream without its newline, and None for one of more than
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

    >>> decoder = msgspec.json.Decoder(list[str])
    >>> decode_json(rb'["\ud83d!", "\ud83d\ude00"]', decoder, where="line 0")
    ['�!', '😀']

    Raises:
        CorruptFile: when the line is not UTF-8, not JSON, or not of that type; states ``where`` and
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
    """Decode with the standard library, which unlike msgspec accepts lone surrogates."""
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


Line: TypeAlias = tuple[int, bytes | None]

BLOCK_BYTES: Final = 1 << 16
"""No size from 16 KiB to 1 MiB is more than 5 % faster."""


@dataclass(slots=True)
class LineCount:
    """Counts of a text while it is read.

    Attributes:
        n_lines: lines so far, whether yielded or not.
        n_bytes: their bytes without newlines, except lines that are too long.
    """

    n_lines: int = 0
    n_bytes: int = 0


def read_long_lines(
    stream: BinaryIO, *, where: str, min_bytes: int, max_line_bytes: int, count: LineCount
) -> Iterator[Line]:
    r"""Yield each line of at least ``min_bytes`` of a gzip stream with its 0-based number; None for
    one that is too long.

    Otherwise as `lc_assets.formats.redpajama.lines.read_lines`. A token covers at least one byte,
    and JSON never shortens a text: a line with fewer bytes than the required tokens can be skipped.

    Args:
        stream: the gzipped text.
        where: its name, for messages.
        min_bytes: length of a line, without its newline.
        max_line_bytes: a longer line is yielded as None.
        count: updated while lines are read; complete after the last one.

    >>> import gzip, io
    >>> text, count = io.BytesIO(gzip.compress(b"one\nthree\ntwo\n")), LineCount()
    >>> found = read_long_lines(text, where="here", min_bytes=4, max_line_bytes=100, count=count)
    >>> list(found), count
    ([(1, b'three')], LineCount(n_lines=3, n_bytes=11))

    Raises:
        CorruptFile: as `read_lines` does.
    """
    lines = _Lines(
        max_line_bytes,
        count,
        lambda _, n_bytes: n_bytes >= min_bytes,
        lambda _first, _stop: min_bytes < BLOCK_BYTES,
    )
    return lines.read(stream, where)


def read_other_lines(
    stream: BinaryIO,
    *,
    where: str,
    passed_over: Sequence[int],
    max_line_bytes: int,
    count: LineCount,
) -> Iterator[Line]:
    r"""Yield each line of a gzip stream except those whose 0-based numbers are given; None for one
    that is too long.

    A line that is too long is yielded even when its number is given.

    Args:
        stream: the gzipped text.
        where: its name, for messages.
        passed_over: ascending, unique.
        max_line_bytes: a longer line is yielded as None.
        count: as for `read_long_lines`.

    >>> import gzip, io
    >>> text, count = io.BytesIO(gzip.compress(b"one\nthree\ntwo\n")), LineCount()
    >>> limits = {"passed_over": [0, 2], "max_line_bytes": 100}
    >>> list(read_other_lines(text, where="here", count=count, **limits))
    [(1, b'three')]

    Raises:
        CorruptFile: as `read_lines` does.
    """

    def any_other(first: int, stop: int) -> bool:
        return bisect_left(passed_over, stop) - bisect_left(passed_over, first) < stop - first

    return _Lines(
        max_line_bytes, count, lambda number, _: any_other(number, number + 1), any_other
    ).read(stream, where)


class _Lines:
    """Reads a text block by block.

    Args:
        max_line_bytes: as above.
        count: as above.
        wanted: whether a line of that number and length is yielded.
        any_wanted: whether any line in a range of numbers may be yielded, when all of them are
            within one block.
    """

    def __init__(
        self,
        max_line_bytes: int,
        count: LineCount,
        wanted: Callable[[int, int], bool],
        any_wanted: Callable[[int, int], bool],
    ) -> None:
        self._max_line_bytes, self._count, self._wanted, self._any_wanted = (
            max_line_bytes,
            count,
            wanted,
            any_wanted,
        )
        self._held: list[
            bytes
        ] = []  # the beginning of an unfinished line; empty when it is too long
        self._n_held = 0

    def read(self, stream: BinaryIO, where: str) -> Iterator[Line]:
        count = self._count
        with gunzipped(stream, where, lambda: count.n_lines) as text:
            while block := text.read1(BLOCK_BYTES):
                n_ends = block.count(b"\n")
                if n_ends == 0:
                    self._hold(block)
                    continue
                first, last = block.index(b"\n"), block.rindex(b"\n")
                self._hold(block[:first])
                yield from self._end_line(b"".join(self._held), self._n_held)
                if n_ends > 1:
                    yield from self._inner_lines(block, first + 1, last, n_ends - 1)
                self._held, self._n_held = [], 0
                self._hold(block[last + 1 :])
            if self._n_held:
                yield from self._end_line(b"".join(self._held), self._n_held)

    def _hold(self, piece: bytes) -> None:
        self._n_held += len(piece)
        if self._n_held <= self._max_line_bytes:
            self._held.append(piece)
        else:
            self._held.clear()

    def _end_line(self, line: bytes, n_bytes: int) -> Iterator[Line]:
        number = self._count.n_lines
        self._count.n_lines += 1
        if n_bytes > self._max_line_bytes:
            yield number, None
            return
        self._count.n_bytes += n_bytes
        if self._wanted(number, n_bytes):
            yield number, line

    def _inner_lines(self, block: bytes, start: int, stop: int, n_lines: int) -> Iterator[Line]:
        """The lines to yield among ``n_lines`` whole lines of a block; ``stop`` is the last
        newline.
        """
        number = self._count.n_lines
        if self._max_line_bytes < BLOCK_BYTES or self._any_wanted(number, number + n_lines):
            for line in block[start:stop].split(b"\n"):
                yield from self._end_line(line, len(line))
        else:
            self._count.n_lines += n_lines
            self._count.n_bytes += stop - start - (n_lines - 1)
