"""Compiled loop over two ascending arrays of keys; its plain twin stands in
`lc_assets.text.key_matches`.
"""

import numpy as np
from numpy.typing import NDArray

from lc_assets.compiling import compiled


@compiled
def mark(keys: NDArray[np.uint64], asked: NDArray[np.uint64], marks: NDArray[np.bool_]) -> None:
    """Set ``marks[i]`` where ``keys[i]`` is one of ``asked``; both ascend."""
    at = 0
    for place in range(len(keys)):
        while at < len(asked) and asked[at] < keys[place]:
            at += 1
        if at == len(asked):
            return
        marks[place] = asked[at] == keys[place]
