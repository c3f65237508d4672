"""Batches as dictionaries of NumPy arrays, for training loops that are not PyTorch's.

Here: dtype and layout. Not here: the order (`loaders.grid`, `loaders.windows`), tensors
    (`loaders.torch`). Nothing of
JAX is imported: its functions take such dictionaries as they are.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lc_assets.loaders.stepping import Batch


def as_arrays(
    batches: Iterable[Batch], dtype: type[np.integer[Any]] = np.int32
) -> Iterator[dict[str, NDArray[Any]]]:
    """Yield ``{"text": …, "targets": …}``: contiguous arrays of one dtype, all batches of one
    shape.

    A compiled step is therefore compiled once, and a dictionary is a tree that ``jax.device_put``
    takes whole, also with a sharding. The arrays are new each time, so a copy to a device may still
    be under way while the next one is made.

    Args:
        batches: a loader, or what iterates like one.
        dtype: int32 holds every id of vocabularies below 2³¹, and is what JAX makes of int64
            anyway.

    >>> [sorted(batch) for batch in as_arrays([Batch(np.zeros((1, 2), np.uint16), np.ones((1, 2), np.uint16))])]
    [['targets', 'text']]
    """
    for batch in batches:
        yield {name: np.array(values, dtype, order="C") for name, values in batch._asdict().items()}
