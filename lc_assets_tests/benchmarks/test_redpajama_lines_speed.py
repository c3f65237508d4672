"""How fast lines come out of gzip, against the standard library and bare decompression; run with
``-s`` to see the figures.
"""

import gzip
import io
from functools import partial

from isal import igzip

from lc_assets.formats.redpajama.lines import read_lines
from lc_assets_tests.benchmarks.test_signals_speed import zipf_prose
from lc_assets_tests.benchmarks.timing import by_turns

N_LINES = 4000
ROUNDS = 5


def shard_file() -> bytes:
    """Lines of some 3 KB, as in a documents file."""
    prose = zipf_prose(400_000).replace("\n", "\\n")
    starts = (
        place % 390_000 for place in range(0, 4999 * N_LINES, 4999)
    )  # far apart: gzip finds little to repeat
    lines = (prose[start : start + 1500 + start % 3001] for start in starts)
    return gzip.compress("\n".join(lines).encode(), mtime=0)


def bare_bytes(content: bytes) -> int:
    with igzip.IGzipFile(fileobj=io.BytesIO(content), mode="rb") as file:
        return sum(map(len, iter(lambda: file.read(1 << 18), b"")))


def standard_lines(content: bytes) -> list[bytes]:
    with gzip.open(io.BytesIO(content)) as file:
        return [line.rstrip(b"\n") for line in iter(file.readline, b"")]


def our_lines(content: bytes) -> list[bytes]:
    return [line for _, line in read_lines(io.BytesIO(content), where="x", max_line_bytes=1 << 24)]


def test_lines_are_the_standard_librarys_and_faster():
    content = shard_file()
    lines = our_lines(content)
    assert lines == standard_lines(content)
    assert len(lines) == N_LINES
    n_megabytes = bare_bytes(content) / 1e6
    works = {work: partial(work, content) for work in (our_lines, standard_lines, bare_bytes)}
    ours, theirs, bare = (n_megabytes / seconds for seconds in by_turns(ROUNDS, works).values())
    print(
        f"\nread_lines: {ours:.0f} MB per CPU-second; gzip + readline {theirs:.0f} (ratio "
        f"{ours / theirs:.1f}); isal alone {bare:.0f}"
    )
    assert ours > max(1.5 * theirs, 0.62 * bare)
