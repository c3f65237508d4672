"""Named randomness: every draw has a purpose, and depends on ``(purpose, seed, key)`` alone.

`keyed_u64` draws one 64-bit number per key, by BLAKE2b. The number of a document depends on that
document alone, so adding or withdrawing others never changes it, nor does a library upgrade.
"""

import hashlib
from collections.abc import Iterable, Sequence

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
    stream = hashlib.blake2b(f"{purpose}\0{seed}".encode(), digest_size=32).digest()
    start, drawn = hashlib.blake2b(digest_size=8, key=stream).copy, list[bytes]()
    for key in keys:  # in one loop: a function per key takes as long again
        hasher = start()
        hasher.update(key.encode("utf-8", "surrogatepass"))
        drawn.append(hasher.digest())
    return np.frombuffer(b"".join(drawn), dtype="<u8").astype(np.uint64)


def shuffled(priority: NDArray[np.uint64], ids: Sequence[str]) -> NDArray[np.int64]:
    """The permutation that sorts documents by (priority, id): position in the shuffle → document.

    >>> shuffled(np.array([5, 3, 5], np.uint64), ["b", "c", "a"])
    array([1, 2, 0])
    """
    order = np.argsort(priority, kind="stable")
    ordered = priority[order]
    if (ordered[1:] != ordered[:-1]).all():
        return order
    keys = priority.tolist()
    return np.array(
        sorted(range(len(ids)), key=lambda document: (keys[document], ids[document])), np.int64
    )


def within(numbers: NDArray[np.uint64], share: float) -> NDArray[np.bool_]:
    """Which of some drawn numbers are below ``share``, as fractions of 2⁶⁴.

    A larger share includes a smaller one; 0 is none of them, 1 all.

    >>> within(np.array([0, 2**62, 2**63], np.uint64), 0.5)
    array([ True,  True, False])
    """
    if share == 1:
        return np.ones(len(numbers), np.bool_)
    return numbers < np.uint64(int(share * 2**64))
