"""Some lines out of gzip, without touching the others: long ones, or all but those of given
numbers.

Nearly every line of a crawl is thrown away for its length, or for what its signals say, before it
is read. So a text is read in blocks; in each the ends of lines are counted, and a line is cut out
only when it is wanted. All lines are numbered and their bytes counted, so that what was passed over
is known as exactly as what was read.

Two facts make this fast. A line of 65,536 bytes cannot lie between two ends within one block of as
many, so only the lines across the seams of blocks can be that long. And a run of consecutive
numbers that are all to be passed over is recognised by two look-ups.

Here: choosing lines. Not here: reading all of them (`lc_assets.formats.redpajama.lines`), decoding
    one.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO, Final, TypeAlias

from lc_assets.formats.redpajama.lines import gunzipped

Line: TypeAlias = tuple[int, bytes | None]

BLOCK_BYTES: Final = 1 << 16
"""Of 16 KiB to 1 MiB no size is more than a twentieth faster."""


@dataclass(slots=True)
class LineCount:
    """What a text holds, counted while it is read.

    Attributes:
        n_lines: lines so far, whether handed out or not.
        n_bytes: their bytes without the newlines, but for lines that are too long.
    """

    n_lines: int = 0
    n_bytes: int = 0


def read_long_lines(
    stream: BinaryIO, *, where: str, min_bytes: int, max_line_bytes: int, count: LineCount
) -> Iterator[Line]:
    r"""Yield each line of at least ``min_bytes`` of a gzip stream with its 0-based number; None in
    place of one that is too long.

    Otherwise as `lc_assets.formats.redpajama.lines.read_lines`. A token covers at least one byte,
    and JSON never shortens a text: a line of fewer bytes than tokens are wanted can be passed over.

    Args:
        stream: the gzipped text.
        where: its name, for messages.
        min_bytes: length of a line, without its newline.
        max_line_bytes: a longer line comes as None, ``min_bytes`` or not.
        count: what is added to while lines are read, and is whole after the last one.

    >>> import gzip, io
    >>> text, count = io.BytesIO(gzip.compress(b"one\nthree\ntwo\n")), LineCount()
    >>> list(read_long_lines(text, where="here", min_bytes=4, max_line_bytes=100, count=count)), count
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
    r"""Yield each line of a gzip stream but those whose 0-based numbers are given; None in place of
    one that is too long.

    A line that is too long comes also when its number is one to be passed over.

    Args:
        stream: the gzipped text.
        where: its name, for messages.
        passed_over: ascending, no two equal.
        max_line_bytes: a longer line comes as None.
        count: as for `read_long_lines`.

    >>> import gzip, io
    >>> text = io.BytesIO(gzip.compress(b"one\nthree\ntwo\n"))
    >>> list(read_other_lines(text, where="here", passed_over=[0, 2], max_line_bytes=100, count=LineCount()))
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
    """Goes through a text block by block.

    Args:
        max_line_bytes: as above.
        count: as above.
        wanted: whether a line of that number and length is wanted.
        any_wanted: whether any line from one number to before another may be, when all of them lie
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
        ] = []  # the beginning of a line that goes on; nothing of one that is too long
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
        """The wanted of ``n_lines`` whole lines of a block; ``stop`` is the last one's newline."""
        number = self._count.n_lines
        if self._max_line_bytes < BLOCK_BYTES or self._any_wanted(number, number + n_lines):
            for line in block[start:stop].split(b"\n"):
                yield from self._end_line(line, len(line))
        else:
            self._count.n_lines += n_lines
            self._count.n_bytes += stop - start - (n_lines - 1)
