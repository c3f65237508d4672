"""The chunk cache: bounded in bytes, least recently used goes first."""

import pickle
import threading
from collections import OrderedDict

import numpy as np
import pytest
from hypothesis import given, strategies as st

from lc_assets.errors import BadInput
from lc_assets.loaders.cache import ChunkCache


def chunk(n_bytes, value=0):
    return np.full(n_bytes, value, np.uint8)


def unread():
    raise AssertionError("the chunk was there and is read again")


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(1, 5)), max_size=60), st.integers(5, 15))
def test_the_last_requests_are_kept(requests, max_bytes):
    """Against a plain model: a list of the last requests, cut where their sizes exceed the
    bound.
    """
    cache, model = ChunkCache(max_bytes), OrderedDict()
    for key, size in requests:
        found = cache.get(
            (key,),
            size,
            unread if key in model else lambda key=key, size=size: chunk(size, key),
        )
        assert (found == key).all()
        model[key] = found
        model.move_to_end(key)
        while sum(each.nbytes for each in model.values()) > max_bytes:
            model.popitem(last=False)
        assert cache.n_bytes == sum(each.nbytes for each in model.values()) <= max_bytes
    for key in model:
        cache.get((key,), 0, unread)


def test_others_are_dropped_before_a_chunk_is_read():
    """Never is there more than the bound."""
    cache, left = ChunkCache(30), []
    for number in range(5):
        cache.get(("a", number), 10, lambda: left.append(cache.n_bytes) or chunk(10))
    assert left == [0, 10, 20, 20, 20]


def test_a_bound_below_one_chunk_is_refused():
    """It would decode every chunk for every batch, silently."""
    with pytest.raises(BadInput, match="a cache of 99 bytes cannot hold one chunk of 100"):
        ChunkCache(99).get(("a",), 100, lambda: chunk(100))
    for max_bytes in (0, -1):
        with pytest.raises(BadInput):
            ChunkCache(max_bytes).require_room(1)
    ChunkCache(100).require_room(100)


def test_a_kept_chunk_cannot_be_changed():
    """It is shared by all who ask for it."""
    found = ChunkCache(100).get(("a",), 5, lambda: chunk(5))
    with pytest.raises(ValueError, match="read-only"):
        found[0] = 1


def test_a_failed_read_keeps_nothing():
    cache = ChunkCache(100)
    with pytest.raises(AssertionError):
        cache.get(("a",), 5, unread)
    assert (cache.get(("a",), 5, lambda: chunk(5, 3)) == 3).all()


def test_a_cache_sent_elsewhere_arrives_empty():
    """A reader process gets the bound, not a quarter of a gigabyte of chunks."""
    cache = ChunkCache(100)
    cache.get(("a",), 50, lambda: chunk(50))
    # How multiprocessing sends objects; nothing stored is read so.
    copy = pickle.loads(pickle.dumps(cache))  # noqa: S301
    assert (copy.max_bytes, copy.n_bytes) == (100, 0)


def test_threads_may_share_a_cache():
    cache = ChunkCache(64)
    wrong = []

    def work(seed):
        keys = np.random.default_rng(seed).integers(0, 20, 2000).tolist()
        wrong.extend(
            key
            for key in keys
            if (cache.get((key,), 8, lambda key=key: chunk(8, key)) != key).any()
        )

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert cache.n_bytes <= 64
    assert cache.hits + cache.misses == 8000


def test_a_source_makes_room_for_its_own():
    """A source that goes on replaces what it had, not what another source still needs, though that
    was asked for earlier.
    """
    cache = ChunkCache(30)
    for source in "abc":
        cache.get((source, 0), 10, lambda: chunk(10))
    cache.get(("c", 1), 10, lambda: chunk(10))
    for kept in (("a", 0), ("b", 0), ("c", 1)):
        cache.get(kept, 10, unread)
    assert cache.get(("c", 0), 10, lambda: chunk(10, 1))[0] == 1


def test_by_default_the_bound_is_what_the_walks_need():
    """The most of them; a bound that was given stays; both survive being sent."""
    cache = ChunkCache()
    cache.fit(100)
    cache.fit(50)
    given = ChunkCache(70)
    given.fit(100)
    assert (cache.max_bytes, given.max_bytes) == (100, 70)
    for each in (cache, given):
        # How multiprocessing sends objects.
        assert pickle.loads(pickle.dumps(each)).max_bytes == each.max_bytes  # noqa: S301


def test_what_one_thread_reads_others_wait_for():
    """And when the reading fails, each of them reads for itself and gets the error."""
    cache, n_reads = ChunkCache(100), []
    begun, go_on = threading.Event(), threading.Event()

    def slowly():
        n_reads.append(1)
        begun.set()
        go_on.wait(5)
        return chunk(5, 3)

    found = []
    threads = [
        threading.Thread(target=lambda: found.append(int(cache.get(("a",), 5, slowly)[0])))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    begun.wait(5)
    go_on.set()
    for thread in threads:
        thread.join()
    assert (found, len(n_reads)) == ([3, 3, 3, 3], 1)
