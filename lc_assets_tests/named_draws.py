"""Generators of named, independent streams, for draws of tests."""

import hashlib

import numpy as np


def rng_for(purpose: str, *, seed: int, key: str = "") -> np.random.Generator:
    """The generator of one stream; it depends on purpose, seed and key alone."""
    stream = hashlib.blake2b(f"{purpose}\0{seed}".encode(), digest_size=32).digest()
    entropy = hashlib.blake2b(key.encode(), digest_size=32, key=stream).digest()
    return np.random.Generator(np.random.PCG64(int.from_bytes(entropy, "little")))
