"""`pyarrow.compute`, imported at the first use of a function: its import takes 40 CPU-ms.

>>> from lc_assets import arrow_compute as pc
>>> pc.sum([1, 2]).as_py()
3
"""

from typing import Any


def __getattr__(name: str) -> Any:
    import pyarrow.compute

    return getattr(pyarrow.compute, name)
