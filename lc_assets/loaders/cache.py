"""A least-recently-used cache of decoded chunks, bounded in bytes.

Here: which chunks stay in memory. Not here: reading them (`formats`), what they are read for
    (`loaders.rows`).

A loader that walks column by column reads the same chunk in many consecutive steps; without a cache
each step decodes it again (LongCrawl64, "How to use the dataset").
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import Final

import numpy as np

from lc_assets.errors import BadInput
from lc_assets.formats.chunks import TokenArray

DEFAULT_CACHE_BYTES: Final = 256 * 2**20
"""2,048 inner chunks of 128 KiB: the bound until a walk says what it needs."""

_SETTLES_ALLOCATOR: Final = 2**25 - 2**16
"""Bytes that are asked for once and given back untouched. From then on glibc takes blocks up to
that size from memory it keeps, where it handed those above 128 KiB back to the kernel each time: 34
page faults a batch of 64 × 1,024, 62 of 8 × 65,536, a tenth to a quarter of the loader's CPU time.
Elsewhere it does nothing.
"""


class ChunkCache:
    """Keeps the chunks that were asked for last, never more than ``max_bytes`` of them.

    May be shared by several arrays and threads: what one thread is reading, others wait for, so
    that nothing is decoded twice. Sent to another process, it arrives empty.

    Attributes:
        max_bytes: the bound.
        n_bytes: size of the chunks that are kept.
        hits: how often a chunk was there.
        misses: how often it had to be read.
    """

    def __init__(self, max_bytes: int | None = None) -> None:
        """Bound the cache by ``max_bytes``; None leaves the bound to the walks that are laid over
        it (`fit`).
        """
        self._given = max_bytes
        self.max_bytes = DEFAULT_CACHE_BYTES if max_bytes is None else max_bytes
        self.n_bytes = self.hits = self.misses = self._fitted = 0
        self._chunks: OrderedDict[Hashable, TokenArray] = OrderedDict()
        self._reading: dict[Hashable, threading.Event] = {}
        self._lock = threading.Lock()
        np.empty(_SETTLES_ALLOCATOR, np.uint8)

    def __reduce__(self) -> tuple[Callable[..., "ChunkCache"], tuple[int | None, int]]:
        return _emptied, (self._given, self._fitted)

    def require_room(self, chunk_bytes: int) -> None:
        """Refuse chunks that would never fit.

        Raises:
            BadInput: when the bound is below one chunk.
        """
        if self.max_bytes < chunk_bytes and self._given is not None:
            raise BadInput(
                f"a cache of {self.max_bytes:,} bytes cannot hold one chunk of {chunk_bytes:,}: "
                "give it at least that"
            )

    def fit(self, n_bytes: int) -> None:
        """Take what a walk needs for the bound, or the most that several walks need; a bound that
        was given stays.
        """
        if self._given is None:
            self._fitted = self.max_bytes = max(self._fitted, n_bytes)

    def kept(self, key: Hashable) -> TokenArray | None:
        """Return the chunk named ``key`` when it is kept; shared: do not change it."""
        with self._lock:
            chunk = self._chunks.get(key)
            if chunk is not None:
                self.hits += 1
                self._chunks.move_to_end(key)
            return chunk

    def get(
        self, key: Hashable, read: Callable[[], TokenArray], *, family: Sequence[Hashable] = ()
    ) -> TokenArray:
        """Return the chunk named ``key``, read by ``read`` when it is not kept. It is shared: do
        not change it.

        Args:
            key: names the chunk.
            read: makes it, outside the lock.
            family: keys begin with it that are read for the same reader, one after another. When
                there is no room, the one of them that was asked for longest ago goes first: in a
                walk, the one above, which will not be needed again. Without it a reader of many
                sources would lose what another source still needs.

        Raises:
            BadInput: when it is larger than the bound.
        """
        while True:
            with self._lock:
                chunk = self._chunks.get(key)
                if chunk is not None:
                    self.hits += 1
                    self._chunks.move_to_end(key)
                    return chunk
                reading = self._reading.get(key)
                if reading is None:
                    self._reading[key] = threading.Event()
                    break
            reading.wait()
        return self._made(key, read, tuple(family))

    def _made(
        self, key: Hashable, read: Callable[[], TokenArray], family: tuple[Hashable, ...]
    ) -> TokenArray:
        try:
            chunk = read()
            self.require_room(chunk.nbytes)
            chunk.flags.writeable = False
            with self._lock:
                self.misses += 1
                self._keep(key, chunk, family)
        finally:
            with self._lock:
                self._reading.pop(key).set()
        return chunk

    def _keep(self, key: Hashable, chunk: TokenArray, family: tuple[Hashable, ...]) -> None:
        if family and self.n_bytes + chunk.nbytes > self.max_bytes:
            relative = next(
                (
                    other
                    for other in self._chunks
                    if isinstance(other, tuple) and other[: len(family)] == family
                ),
                None,
            )
            self.n_bytes -= 0 if relative is None else self._chunks.pop(relative).nbytes
        self._chunks[key] = chunk
        self.n_bytes += chunk.nbytes
        while self.n_bytes > self.max_bytes and len(self._chunks) > 1:
            self.n_bytes -= self._chunks.popitem(last=False)[1].nbytes


def _emptied(max_bytes: int | None, fitted: int) -> ChunkCache:
    cache = ChunkCache(max_bytes)
    cache.fit(fitted) if fitted else None
    return cache
