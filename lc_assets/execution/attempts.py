"""One task in a worker: tried again after what may pass, ended when it takes too long, its result
weighed. The same on every executor.
"""

import errno
import faulthandler
import sys
from collections.abc import Callable
from multiprocessing.reduction import ForkingPickler
from typing import Final

from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_exponential

from lc_assets.errors import LcError, Mismatch
from lc_assets.execution.executor import MEGABYTE, Result, Task, TaskPolicy

PASSING: Final = frozenset(
    {errno.EIO, errno.ESTALE, errno.ETIMEDOUT, errno.ECONNRESET, errno.EAGAIN, errno.EREMOTEIO}
)
"""Faults of shared disks that come and go. A full disk and a folder that may not be written are
none.
"""

LONGEST_PAUSE: Final = 60.0


def run_task(function: Callable[[Task], Result], task: Task, policy: TaskPolicy) -> Result:
    """Do one task in a worker that may be ended.

    Raises:
        Mismatch: when the result is more than it may be.
        Exception: whatever ``function`` raises for good.
    """
    if (
        policy.seconds
    ):  # a thread of its own in C, which needs no lock of Python's: it ends a loop in a library too
        faulthandler.dump_traceback_later(
            policy.seconds, exit=True, file=sys.__stderr__ or sys.stderr
        )
    try:
        result = with_retries(function, task, policy)
    finally:
        faulthandler.cancel_dump_traceback_later()
    n_bytes = len(ForkingPickler.dumps(result))  # as it goes to the other process
    if n_bytes > policy.result_bytes:
        most = policy.result_bytes / MEGABYTE
        raise Mismatch(
            f"{task}: its result has {n_bytes / MEGABYTE:,.1f} MiB, at most {most:,.1f} may "
            "cross: write files and name them"
        )
    return result


def with_retries(function: Callable[[Task], Result], task: Task, policy: TaskPolicy) -> Result:
    """Do one task, and again after a pause where what failed may pass."""
    again = Retrying(
        retry=retry_if_exception(is_transient),
        stop=stop_after_attempt(policy.tries),
        wait=wait_exponential(policy.pause, max=LONGEST_PAUSE),
        reraise=True,
    )
    return again(function, task)


def is_transient(error: BaseException) -> bool:
    """Whether another try may go well.

    >>> may_pass(OSError(errno.ESTALE, "stale")), may_pass(OSError(errno.ENOSPC, "full")), may_pass(ValueError("no number"))
    (True, False, False)
    """
    return isinstance(error, OSError) and not isinstance(error, LcError) and error.errno in PASSING
