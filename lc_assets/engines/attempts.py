"""One task in a worker: tried again after what may pass, ended when it takes too long, its result
weighed. The same on every engine.
"""

import errno
import faulthandler
import sys
from collections.abc import Callable
from multiprocessing.reduction import ForkingPickler
from typing import Final

from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_exponential

from lc_assets.engines.engine import MEGABYTE, Result, Task, Terms
from lc_assets.errors import LcError, Mismatch

PASSING: Final = frozenset(
    {errno.EIO, errno.ESTALE, errno.ETIMEDOUT, errno.ECONNRESET, errno.EAGAIN, errno.EREMOTEIO}
)
"""Faults of shared disks that come and go. A full disk and a folder that may not be written are
none.
"""

LONGEST_PAUSE: Final = 60.0


def attempt(function: Callable[[Task], Result], task: Task, terms: Terms) -> Result:
    """Do one task in a worker that may be ended.

    Raises:
        Mismatch: when the result is more than it may be.
        Exception: whatever ``function`` raises for good.
    """
    if (
        terms.seconds
    ):  # a thread of its own in C, which needs no lock of Python's: it ends a loop in a library too
        faulthandler.dump_traceback_later(
            terms.seconds, exit=True, file=sys.__stderr__ or sys.stderr
        )
    try:
        result = patiently(function, task, terms)
    finally:
        faulthandler.cancel_dump_traceback_later()
    n_bytes = len(ForkingPickler.dumps(result))  # as it goes to the other process
    if n_bytes > terms.result_bytes:
        most = terms.result_bytes / MEGABYTE
        raise Mismatch(
            f"{task}: its result has {n_bytes / MEGABYTE:,.1f} MiB, at most {most:,.1f} may "
            "cross: write files and name them"
        )
    return result


def patiently(function: Callable[[Task], Result], task: Task, terms: Terms) -> Result:
    """Do one task, and again after a pause where what failed may pass."""
    again = Retrying(
        retry=retry_if_exception(may_pass),
        stop=stop_after_attempt(terms.tries),
        wait=wait_exponential(terms.pause, max=LONGEST_PAUSE),
        reraise=True,
    )
    return again(function, task)


def may_pass(error: BaseException) -> bool:
    """Whether another try may go well.

    >>> may_pass(OSError(errno.ESTALE, "stale")), may_pass(OSError(errno.ENOSPC, "full")), may_pass(ValueError("no number"))
    (True, False, False)
    """
    return isinstance(error, OSError) and not isinstance(error, LcError) and error.errno in PASSING
