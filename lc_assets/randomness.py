"""Named randomness: every draw has a purpose, and depends on ``(purpose, seed, key)`` alone.

* `keyed_u64`: one 64-bit number per key, by BLAKE2b. The number of a document depends on that
  document alone, so adding or withdrawing others never changes it, nor does a library upgrade.
* `rng_for`: a NumPy generator, for draws without a key. NumPy promises the same stream only for the
  same build, so whatever is drawn from it is published with the data.
"""

import hashlib
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

KEYED_ALGORITHM = "blake2b-64-le"
"""Algorithm of `keyed_u64`, for receipts: BLAKE2b, 8-byte digest as a little-endian number."""


def keyed_u64(purpose: str, *, seed: int, keys: Iterable[str]) -> NDArray[np.uint64]:
    """One uniform 64-bit number per key.

    Args:
        purpose: name of the draw, such as ``"shift"``; draws with other purposes are independent.
        seed: seed of the data set.
        keys: one string per number, usually document ids.

    Returns:
        uint64 array, one number per key, in the keys' order.

    >>> keyed_u64("shift", seed=7, keys=["a", "b"])
    array([ 4902123096426904483, 17066088407852071399], dtype=uint64)
    """
    stem = hashlib.blake2b(digest_size=8, key=_stream(purpose, seed))

    def draw(key: str) -> bytes:
        hasher = stem.copy()
        hasher.update(key.encode("utf-8", "surrogatepass"))
        return hasher.digest()

    return np.frombuffer(b"".join(map(draw, keys)), dtype="<u8").astype(np.uint64)


def rng_for(purpose: str, *, seed: int, key: str = "") -> np.random.Generator:
    """The generator of one named, independent stream.

    >>> rngs = [rng_for("spot check", seed=7, key="2023-06") for _ in range(2)]
    >>> first, again = (rng.integers(100, size=3) for rng in rngs)
    >>> bool((first == again).all())
    True
    """
    entropy = hashlib.blake2b(key.encode(), digest_size=32, key=_stream(purpose, seed)).digest()
    return np.random.Generator(np.random.PCG64(int.from_bytes(entropy, "little")))


def _stream(purpose: str, seed: int) -> bytes:
    return hashlib.blake2b(f"{purpose}\0{seed}".encode(), digest_size=32).digest()
