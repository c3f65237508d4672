"""A least-recently-used cache of decoded chunks, bounded in bytes.

A loader that walks column by column reads the same chunk in many consecutive steps; without a cache
each step would decode it again (LongCrawl64, "How to use the dataset"). Threads that need the same
chunk wait for the one that reads it.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable

import numpy as np

from lc_assets.errors import BadInput
from lc_assets.formats.arrays.chunks import TokenArray

DEFAULT_CACHE_BYTES = 256 * 2**20
"""2,048 inner chunks of 128 KiB: the bound until a walk states what it needs."""

_ALLOCATED_ONCE = 2**25 - 2**16
"""Bytes that are allocated once and freed. From then on glibc keeps freed blocks up to this size,
where it returned those above 128 KiB to the kernel each time: 34 page faults per batch of 64 ×
1,024, 62 of 8 × 65,536, a tenth to a quarter of the loader's CPU time. Elsewhere it has no effect.
"""


class ChunkCache:
    """Keeps the chunks that were used last, at most ``max_bytes`` of them.

    Several arrays and threads may share it. A copy in another process is empty.

    Attributes:
        max_bytes: the bound.
        n_bytes: size of the chunks that are kept.
        hits: requests for a chunk that was cached.
        misses: requests for a chunk that had to be read.
    """

    def __init__(self, max_bytes: int | None = None, fitted: int = 0) -> None:
        """Set the bound; None leaves it to the walks that use the cache, which need ``fitted``
        bytes so far (`fit`).
        """
        self._given, self._fitted = max_bytes, fitted
        self.max_bytes = (fitted or DEFAULT_CACHE_BYTES) if max_bytes is None else max_bytes
        self.n_bytes = self.hits = self.misses = 0
        self._chunks: OrderedDict[tuple[Hashable, ...], TokenArray] = OrderedDict()
        self._reading: dict[tuple[Hashable, ...], threading.Lock] = {}
        self._lock = threading.Lock()
        np.empty(_ALLOCATED_ONCE, np.uint8)

    def __reduce__(self) -> tuple[type["ChunkCache"], tuple[int | None, int]]:
        return ChunkCache, (self._given, self._fitted)

    @property
    def is_fitted(self) -> bool:
        """Whether the walks determine the bound."""
        return self._given is None

    def require_room(self, chunk_bytes: int) -> None:
        """Check that a chunk fits.

        Raises:
            BadInput: if the bound is below one chunk.
        """
        if self.max_bytes < chunk_bytes and not self.is_fitted:
            raise BadInput(
                f"a cache of {self.max_bytes:,} bytes cannot hold one chunk of {chunk_bytes:,} "
                "bytes: increase cache_bytes"
            )

    def fit(self, n_bytes: int) -> None:
        """Raise the bound to the bytes that a walk needs, unless the user set one."""
        if self.is_fitted:
            self._fitted = self.max_bytes = max(self._fitted, n_bytes)

    def get(
        self, key: tuple[Hashable, ...], n_bytes: int, read: Callable[[], TokenArray]
    ) -> TokenArray:
        """The chunk named ``key``, read by ``read`` if it is not cached; shared: do not change it.

        Args:
            key: name of the chunk; its first part names a source. If the cache is full, what the
                same source used least recently is dropped first, since its walk no longer needs it.
                Otherwise a reader of many sources would lose what another source still needs.
            n_bytes: its size. Others are dropped before it is read: it gets their memory, which the
                processor's cache still has.
            read: reads it, without the lock.

        Raises:
            BadInput: if it is larger than a bound that was given.
        """
        self.require_room(n_bytes)
        while True:
            with self._lock:
                chunk = self._chunks.get(key)
                if chunk is not None:
                    self.hits += 1
                    self._chunks.move_to_end(key)
                    return chunk
                reading = self._reading.get(key)
                if reading is None:
                    reading = self._reading[key] = threading.Lock()
                    reading.acquire()
                    self._make_room(key[0], n_bytes)
                    break
            with reading:
                pass
        try:
            chunk = read()
            chunk.flags.writeable = False
            with self._lock:
                self.misses += 1
                self._make_room(key[0], n_bytes)
                self._chunks[key] = chunk
                self.n_bytes += n_bytes
        finally:
            with self._lock:
                self._reading.pop(key).release()
        return chunk

    def _make_room(self, source: Hashable, n_bytes: int) -> None:
        """Drop what was used least recently, first of ``source``, until so many bytes fit."""
        if self.n_bytes + n_bytes > self.max_bytes:
            own = next((key for key in self._chunks if key[0] == source), None)
            if own is not None:
                self.n_bytes -= self._chunks.pop(own).nbytes
        while self._chunks and self.n_bytes + n_bytes > self.max_bytes:
            self.n_bytes -= self._chunks.popitem(last=False)[1].nbytes
