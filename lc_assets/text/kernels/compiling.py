"""The one decorator of compiled functions, and whether there is a compiler at all."""

from collections.abc import Callable
from importlib.util import find_spec
from typing import ParamSpec, TypeVar

Takes = ParamSpec("Takes")
Gives = TypeVar("Gives")

COMPILED = find_spec("numba") is not None
"""Whether numba is installed; where it is not, plain twins do the work."""


def compiled(function: Callable[Takes, Gives]) -> Callable[Takes, Gives]:
    """Compile a function at its first call, for the types it is called with; the machine code is cached on disk.

    Without the interpreter's lock, so that threads may call it side by side. Where numba is missing the function
    stays as it is: right, and far too slow to be used on purpose.
    """
    if not COMPILED:
        return function
    import numba  # noqa: PLC0415 - takes half a second, which nobody should pay who compiles nothing

    made: Callable[Takes, Gives] = numba.njit(cache=True, nogil=True)(function)
    return made
