"""Values that hold threads or connections, which no process may use that was forked from theirs."""

import os
from collections.abc import Callable
from typing import Any, Generic, TypeVar

Value = TypeVar("Value")


class PerProcess(Generic[Value]):
    """A property that is computed at its first use in each process, and then kept."""

    def __init__(self, compute: Callable[[Any], Value]) -> None:
        self._compute = compute
        self._kept = f"_kept{compute.__name__}"

    def __get__(self, instance: Any, owner: type | None = None) -> Value:
        process, value = instance.__dict__.get(self._kept, (0, None))
        if process != os.getpid():
            value = self._compute(instance)
            instance.__dict__[self._kept] = os.getpid(), value
        return value  # type: ignore[no-any-return]
