"""The decorators of compiled functions, and whether there is a compiler at all."""

import hashlib
from collections.abc import Callable
from functools import cache
from importlib import resources
from importlib.util import find_spec
from typing import Any, ParamSpec, TypeVar

Takes = ParamSpec("Takes")
Gives = TypeVar("Gives")

COMPILED = find_spec("numba") is not None
"""Whether numba is installed; where it is not, plain twins do the work."""


def compiled(function: Callable[Takes, Gives]) -> Callable[Takes, Gives]:
    """Compile a function at its first call, for the types it is called with; the machine code is
    cached on disk.

    Without the interpreter's lock, so that threads may call it side by side. Where numba is missing
    the function stays as it is: right, and far too slow to be used on purpose. Where neither the
    package's folder nor the user's cache may be written to, every process compiles for itself;
    ``NUMBA_CACHE_DIR`` names another folder.
    """
    if not COMPILED:
        return function
    # Takes half a second, which nobody should pay who compiles nothing.
    import numba  # noqa: PLC0415

    try:
        made: Any = numba.njit(cache=True, nogil=True)(function)
    except RuntimeError:  # "cannot cache function: no locator available"
        uncached: Callable[Takes, Gives] = numba.njit(nogil=True)(function)
        return uncached
    # Numba would take a stale result for sound when only a function that this one calls was edited,
    # in another file.
    made._cache._cache_file._source_stamp = sources_digest(function.__module__.rpartition(".")[0])
    compiled_function: Callable[Takes, Gives] = made
    return compiled_function


@cache
def sources_digest(package: str) -> str:
    """SHA-256 of the sources of all kernels beside a kernel: what a cached result must have been
    compiled from.
    """
    files = sorted(
        (file for file in resources.files(package).iterdir() if file.name.endswith(".py")),
        key=lambda file: file.name,
    )
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def inlined(function: Callable[Takes, Gives]) -> Callable[Takes, Gives]:
    """Compile a function into its callers: a call with arrays costs 10 ns, which is much in a loop
    of 50 ns.
    """
    if not COMPILED:
        return function
    import numba  # noqa: PLC0415 - as above

    made: Callable[Takes, Gives] = numba.njit(inline="always")(function)
    return made
