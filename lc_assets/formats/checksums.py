"""Checksums of files whose formats have none: Megatron's ``.bin`` and the flat layout's chunks.

``{file}.crc32`` holds a CRC-32 per `BLOCK` bytes of a file; ``{i}.crc32`` in a flat array holds
one per chunk of row ``i`` of its chunks. They are uint32, little-endian, and nothing else is in the
file; 0 means that a block has no checksum. Other programs ignore these files. Data without them, of
another program, is read without a comparison.

Source: the CRC-32 is gzip's, RFC 1952. zlib-ng computes 30 GB of it per second, google-crc32c 14 GB
    of CRC-32C.
"""

import array
from pathlib import Path

import numpy as np
from zlib_ng import zlib_ng

from lc_assets.arrays import Array, Int64s, UInt32s
from lc_assets.errors import CorruptFile

SUFFIX = ".crc32"
BLOCK = 1 << 16
"""Bytes of a file with one checksum: what a page fault in a mapped file reads at least."""


def checksums_path(path: Path) -> Path:
    """``{path}.crc32``."""
    return path.with_name(path.name + SUFFIX)


def parse_checksums(content: bytes, n: int, where: str) -> UInt32s:
    """The ``n`` checksums in a file's content.

    Raises:
        CorruptFile: if it holds another number of them; ``where`` names the file.
    """
    if len(content) != 4 * n:
        raise CorruptFile(f"{where}: {len(content):,} bytes, expected {4 * n:,} for {n:,} blocks")
    return np.frombuffer(content, "<u4")


class BlockChecksums:
    """Computes the checksums of a file's blocks while it is written from its beginning."""

    def __init__(self) -> None:
        self._done = array.array("I")
        self._crc, self._n_bytes = 0, 0

    def add(self, content: memoryview) -> None:
        """Continue with the bytes that were written next."""
        while content.nbytes:
            part = content[: BLOCK - self._n_bytes]
            self._crc = zlib_ng.crc32(part, self._crc)
            self._n_bytes += len(part)
            content = content[len(part) :]
            if self._n_bytes == BLOCK:
                self._done.append(self._crc)
                self._crc, self._n_bytes = 0, 0

    def content(self) -> bytes:
        """Content of the file of checksums."""
        last = [self._crc] if self._n_bytes else []
        return np.array([*self._done, *last], "<u4").tobytes()


class CheckedBlocks:
    """Compares blocks of a mapped file with their checksums, each when it is first read.

    Args:
        path: the file.
        ids: all that it holds; parts of it are given as numbers of ids.

    Raises:
        CorruptFile: if the checksums are those of a file of another size.
    """

    def __init__(self, path: Path, ids: Array) -> None:
        self._path, self._content = path, ids.view(np.uint8).data
        self._block_ids = BLOCK // ids.itemsize
        stored = checksums_path(path)
        try:
            found = parse_checksums(stored.read_bytes(), -(-ids.nbytes // BLOCK), str(stored))
        except FileNotFoundError:
            found = np.zeros(0, np.uint32)
        self._checksums = array.array("I", found.tobytes())
        self._pending = bytearray((found != 0).tobytes())
        self._is_pending = np.frombuffer(self._pending, np.bool_)
        self._n_pending = int(np.count_nonzero(found))

    def check(self, start: int, stop: int) -> None:
        """Compare the blocks that ids ``start`` to ``stop`` (exclusive) are in.

        Raises:
            CorruptFile: if one does not match; names the file and the block's first byte.
        """
        end = -(-stop // self._block_ids)
        at = self._pending.find(1, start // self._block_ids, end)
        while at >= 0:
            self._check_block(at)
            at = self._pending.find(1, at, end)

    def blocks_of(self, starts: Int64s, n_ids: int) -> Int64s:
        """Blocks that ``n_ids`` ids from each of ``starts`` on are in, for `check_blocks`; int64.

        Shaped as ``starts``, the last dimension times the most blocks of one part.
        """
        first, last = starts // self._block_ids, (starts + n_ids - 1) // self._block_ids
        most = (n_ids + self._block_ids - 2) // self._block_ids + 1
        return np.concatenate([np.minimum(first + more, last) for more in range(most)], axis=-1)

    def check_blocks(self, blocks: Int64s) -> None:
        """Compare some blocks; raises as `check`."""
        if self._n_pending:
            for block in blocks[self._is_pending[blocks]].tolist():
                if self._pending[block]:
                    self._check_block(block)

    def _check_block(self, block: int) -> None:
        begin = block * BLOCK
        if zlib_ng.crc32(self._content[begin : begin + BLOCK]) != self._checksums[block]:
            raise CorruptFile(
                f"{self._path}: the block at byte {begin:,} does not match its checksum: it is "
                "damaged; download or build the file again"
            )
        self._pending[block] = 0
        self._n_pending -= 1
