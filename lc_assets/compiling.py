"""Compile numeric functions with numba when they are first called.

Importing a module with kernels costs nothing: numba, which takes half a second to import, is
imported at the first call. A kernel may stand beside the plain functions that call it.

Machine code is cached on disk, beside the source or in ``NUMBA_CACHE_DIR``. Numba by itself would
reuse it after an edit to a function or a constant in another file. Here a cached result is valid
only for the same bytecode of the kernel and of all kernels that it calls, in whatever module they
are, and for the same values of the global constants that they use. One process at a time compiles a
kernel; others wait and load the result.
"""

import contextlib
import fcntl
import hashlib
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, update_wrapper
from types import FunctionType, ModuleType
from typing import IO, Any, Generic, ParamSpec, TypeVar, cast

import numpy as np

Takes = ParamSpec("Takes")
Gives = TypeVar("Gives")

_LOCK = threading.RLock()
_THREAD = threading.local()


class Kernel(Generic[Takes, Gives]):
    """A function that is compiled at its first call, with the kernels that it calls.

    Attributes:
        py_func: the function, as numba calls it too.
        dispatcher: numba's compiled function; None before the first call.
    """

    def __init__(
        self, function: Callable[Takes, Gives], *, inline: bool = False, borrows: bool = False
    ) -> None:
        update_wrapper(self, function)
        self.py_func = cast("FunctionType", function)
        self.inline = inline
        vars(self.py_func)["borrows"] = borrows
        self.dispatcher: Any = None

    def __call__(self, *args: Takes.args, **kwargs: Takes.kwargs) -> Gives:
        """Compile the function if that has not been done, and call it; see `interpreted`."""
        dispatcher = self.dispatcher
        if dispatcher is None:
            if self.is_interpreted:
                return cast("Gives", self.py_func(*args, **kwargs))
            dispatcher = self.compile()
        result: Gives = dispatcher(*args, **kwargs)
        return result

    @property
    def is_interpreted(self) -> bool:
        """Whether a call now runs in the interpreter."""
        return self.dispatcher is None and getattr(_THREAD, "interprets", False)

    def compile(self) -> Any:
        """Make numba's dispatcher; numba compiles when it sees the types of the arguments."""
        with _LOCK:
            if self.dispatcher is None:
                stamp = fingerprint(self.py_func)
                names = self.py_func.__globals__
                for name in self.py_func.__code__.co_names:
                    # Numba knows its own dispatchers only, and looks globals up when it compiles.
                    if isinstance(found := names.get(name), Kernel):
                        names[name] = found.compile()
                self.dispatcher = self._inlined() if self.inline else self._cached(stamp)
        return self.dispatcher

    def _inlined(self) -> Any:
        return _numba().njit(inline="always")(self.py_func)

    def _cached(self, stamp: str) -> Any:
        numba = _numba()
        how = {"nogil": True, "_nrt": not vars(self.py_func)["borrows"]}
        try:
            made = numba.njit(cache=True, **how)(self.py_func)
        except RuntimeError:  # "cannot cache function: no locator available"
            return numba.njit(**how)(self.py_func)
        file = made._cache._cache_file
        file._source_stamp = stamp
        # The index is written before the machine code: another stamp's is never behind it.
        file._data_name_pattern = f"{stamp[:16]}.{file._data_name_pattern}"
        _cache_with_locks(made)
        made.get_call_template = _by_types(made.get_call_template)
        return made


def _cache_with_locks(made: Any) -> None:
    """Let one process compile a kernel while others wait, and none load what another is writing:
    numba replaces index and machine code one after the other.

    Where there is no room for the machine code it is compiled, and not kept. What is cached is
    loaded without what numba can compile, which takes a process 0.15 s to declare; it does that
    again before it compiles.
    """
    from numba.core.compiler_lock import global_compiler_lock
    from numba.core.runtime import rtsys

    cache, compile_now = made._cache, made.compile
    file: IO[bytes] | None = None

    def lock(kind: int) -> None:
        with contextlib.suppress(OSError):  # a file system without locks
            if file is not None:
                fcntl.flock(file, kind)

    def load(types: Any, context: Any) -> Any:
        rtsys.initialize(context)
        for kind in (fcntl.LOCK_SH, fcntl.LOCK_EX):
            lock(kind)
            if found := cache._load_overload(types, context):
                return found
        return None

    def compile_alone(signature: Any) -> Any:
        nonlocal file
        path = f"{cache._cache_file._index_path}.lock"
        with global_compiler_lock, contextlib.ExitStack() as opened:
            with contextlib.suppress(OSError):  # no room
                file = opened.enter_context(open(path, "ab"))  # noqa: PTH123 - numba's path
            try:
                return compile_now(signature)
            finally:
                lock(fcntl.LOCK_UN)  # also where a process that was forked meanwhile has the file
                file = None

    def save(types: Any, library: Any) -> None:
        with contextlib.suppress(OSError):  # no room
            cache._save_overload(types, library)

    cache.load_overload, cache.save_overload, made.compile = load, save, compile_alone


def _by_types(compile_call: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a kernel that other kernels call for types only, never for the constant 0 as well.

    Numba otherwise does that for every variable that begins as a constant, and then for its type.
    """

    def call(args: Iterable[Any], kws: Mapping[str, Any]) -> Any:
        from numba import types

        by_name = {name: types.unliteral(kind) for name, kind in kws.items()}
        return compile_call(tuple(map(types.unliteral, args)), by_name)

    return call


@cache
def _numba() -> Any:
    """The compiler, without the extensions that other packages register with it.

    awkward, which gigatoken brings along, takes 0.4 s to import, and no kernel uses its types.
    """
    import numba
    from numba.core import entrypoints

    entrypoints._already_initialized = True
    return numba


def compiled(function: Callable[Takes, Gives]) -> Kernel[Takes, Gives]:
    """Compile a function at its first call, for the types it is called with.

    It runs without the interpreter's lock, so threads may call it at the same time. Where neither
    the package's folder nor the user's cache can be written to, every process compiles for itself.
    """
    return Kernel(function)


def borrowing(function: Callable[Takes, Gives]) -> Kernel[Takes, Gives]:
    """Compile a function that makes no arrays: it does not count references to those it is given.

    Counting takes some 10 ns per array and call, which is most of the time of a short function.
    """
    return Kernel(function, borrows=True)


def inlined(function: Callable[Takes, Gives]) -> Callable[Takes, Gives]:
    """Compile a function into its callers.

    A call with arrays costs 10 ns, which is much in a loop of 50 ns.
    """
    return Kernel(function, inline=True)


@contextlib.contextmanager
def interpreted(when: bool) -> Iterator[None]:
    """Run kernels in the interpreter, if ``when`` is true and this process has compiled none.

    For small inputs, which take less time than importing numba does. Integers wrap without a
    warning, as in machine code. Kernels of both kinds cannot call each other: machine code returns
    and takes integers of other types.
    """
    before = getattr(_THREAD, "interprets", False)
    _THREAD.interprets = when and not _numba.cache_info().currsize
    try:
        with np.errstate(over="ignore"):
            yield
    finally:
        _THREAD.interprets = before


def fingerprint(function: Callable[..., Any]) -> str:
    """SHA-256 of everything that a kernel's machine code is compiled from; see the module."""
    digest = hashlib.sha256()
    for part in _parts(function, set()):
        digest.update(len(part).to_bytes(8, "little") + part)
    return digest.hexdigest()


def _parts(function: Any, seen: set[str]) -> Iterator[bytes]:
    seen.add(f"{function.__module__}.{function.__qualname__}")
    code = function.__code__
    borrows = vars(function).get("borrows", False)
    yield repr((code.co_code, code.co_consts, code.co_names, code.co_varnames, borrows)).encode()
    for name in code.co_names:
        value = function.__globals__.get(name)
        callee = getattr(value, "py_func", None)
        if callee is not None:
            if f"{callee.__module__}.{callee.__qualname__}" not in seen:
                yield from _parts(callee, seen)
        elif isinstance(value, np.ndarray):
            yield repr((name, value.dtype, value.shape)).encode() + value.tobytes()
        elif not isinstance(value, ModuleType) and not callable(value):
            yield repr((name, value)).encode()
