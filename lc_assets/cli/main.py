"""The program ``lc``: what precedes slow imports, so that it can be stopped during them. So it
imports as little as possible itself.
"""

import contextlib
import errno
import gc
import io
import os
import signal
import sys
from typing import Any

_stops: list[int] = []
"""Signals that were received, until the end is reported."""
_arrivals: list[int] = []
"""The end of a pipe from which the signals can be read that another handler received: Dagster's,
which takes each for SIGINT.
"""

_STOPPED = "stopped; run the command again to finish"


class OutputError(OSError):
    """Standard output cannot be written."""


class _Output(io.FileIO):
    """Standard output, whose errors differ from those of files."""

    def write(self, content: Any, /) -> int:
        try:
            return super().write(content)
        except OSError as error:
            raise OutputError(*error.args) from error


def report_end(error: KeyboardInterrupt | OSError | RuntimeError) -> int:
    """Print in one line why the program ends before its work is done; return its exit status.

    After a signal, a query raises an error of its own, and what reads the output may have ended.

    Raises:
        OSError: as given, when there was no signal, and it is neither of standard output nor a
            missing permission.
        RuntimeError: as given, when there was no signal.
    """
    _end_at_signals()
    of_output = isinstance(error, OutputError)
    if of_output:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what is still buffered would fail again
    if _stops or isinstance(error, KeyboardInterrupt):
        print(_STOPPED, file=sys.stderr)
        number = (*_stops, *_arrived(), signal.SIGINT)[0]
        _stops.clear()
        return 128 + number
    if isinstance(error, PermissionError):
        print(f"{error.filename}: {error.strerror}; look at owner and permissions", file=sys.stderr)
    elif of_output:
        print("standard output:", error.args[1], file=sys.stderr)
    else:
        raise error
    return 1


def main() -> None:
    """The program ``lc``."""
    ends = os.pipe()
    for end in ends:
        os.set_blocking(end, False)
    _arrivals[:] = ends[:1]
    try:
        signal.set_wakeup_fd(ends[1], warn_on_full_buffer=False)
        for number in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, _stop)
        if sys.stdout is None:
            raise OutputError(errno.EBADF, os.strerror(errno.EBADF))
        sys.stdout = io.TextIOWrapper(
            io.BufferedWriter(_Output(1, "wb", closefd=False)),
            encoding=sys.stdout.encoding,
            errors=sys.stdout.errors,
            line_buffering=sys.stdout.isatty(),
        )
        # NumPy's BLAS would start a thread per core, which takes 0.1 CPU-seconds and computes
        # nothing.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        # Half a million objects come with the imports; collecting among them took 0.1 CPU-seconds.
        gc.set_threshold(400_000)
        from lc_assets.arrow_without_pandas import keep_pandas_out
        from lc_assets.cli.app import app

        keep_pandas_out()
        app()
    except ModuleNotFoundError as error:
        if error.name != "typer":
            raise
        sys.exit("only the loaders are installed; commands need pip install 'lc-assets[chain]'")
    except (KeyboardInterrupt, OSError, RuntimeError) as error:
        sys.exit(report_end(error))
    except SystemExit:
        if _stops:  # outside a command, typer ends without a message
            sys.exit(report_end(KeyboardInterrupt()))
        raise
    finally:
        _end_at_signals()
        signal.set_wakeup_fd(-1)


def _arrived() -> list[int]:
    found = b""
    with contextlib.suppress(BlockingIOError):
        found = b"".join(os.read(end, 64) for end in _arrivals)
    return [number for number in found if number in {signal.SIGINT, signal.SIGTERM}]


def _end_at_signals() -> None:
    """Let signals end the process at once: from now on an exception would be a traceback."""
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is _stop:
            signal.signal(number, signal.SIG_DFL)


def _stop(number: int, frame: Any) -> None:
    _stops.append(number)
    while frame is not None:
        name = frame.f_code.co_filename
        if "importlib" in name or "llvmlite" in name or "numba" in name:
            # What loads a compiled module, or is called by one, would lose the exception.
            os.write(2, f"{_STOPPED}\n".encode())
            os._exit(128 + number)
        frame = frame.f_back
    raise KeyboardInterrupt
