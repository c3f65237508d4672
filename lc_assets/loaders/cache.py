"""A least-recently-used cache of decoded chunks, bounded in bytes.

Here: which chunks stay in memory. Not here: reading them (`formats`), what they are read for (`loaders.rows`).

A loader that walks column by column reads the same chunk in many consecutive steps; without a cache each
step decodes it again (LongCrawl64, "How to use the dataset").
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Final

from lc_assets.errors import BadInput
from lc_assets.formats.chunks import TokenArray

DEFAULT_CACHE_BYTES: Final = 256 * 2**20
"""1,024 inner chunks of 256 KiB."""


class ChunkCache:
    """Keeps the chunks that were asked for last, never more than ``max_bytes`` of them.

    May be shared by several arrays and threads. Sent to another process, it arrives empty.

    Attributes:
        max_bytes: the bound.
        n_bytes: size of the chunks that are kept.
        hits: how often a chunk was there.
        misses: how often it had to be read.
    """

    def __init__(self, max_bytes: int = DEFAULT_CACHE_BYTES) -> None:
        self.max_bytes = max_bytes
        self.n_bytes = self.hits = self.misses = 0
        self._chunks: OrderedDict[Hashable, TokenArray] = OrderedDict()
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[type["ChunkCache"], tuple[int]]:
        return ChunkCache, (self.max_bytes,)

    def require_room(self, chunk_bytes: int) -> None:
        """Refuse chunks that would never fit.

        Raises:
            BadInput: when the bound is below one chunk.
        """
        if self.max_bytes < chunk_bytes:
            raise BadInput(f"a cache of {self.max_bytes:,} bytes cannot hold one chunk of {chunk_bytes:,}: give it at least that")

    def get(self, key: Hashable, read: Callable[[], TokenArray]) -> TokenArray:
        """Return the chunk named ``key``, read by ``read`` when it is not kept. It is shared: do not change it.

        Raises:
            BadInput: when it is larger than the bound.
        """
        with self._lock:
            chunk = self._chunks.get(key)
            if chunk is not None:
                self.hits += 1
                self._chunks.move_to_end(key)
                return chunk
        chunk = read()
        self.require_room(chunk.nbytes)
        chunk.flags.writeable = False
        with self._lock:
            self.misses += 1
            self._keep(key, chunk)
        return chunk

    def _keep(self, key: Hashable, chunk: TokenArray) -> None:
        replaced = self._chunks.pop(key, None)
        self.n_bytes += chunk.nbytes - (0 if replaced is None else replaced.nbytes)
        self._chunks[key] = chunk
        while self.n_bytes > self.max_bytes:
            self.n_bytes -= self._chunks.popitem(last=False)[1].nbytes
