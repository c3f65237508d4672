"""What a reader is to the fuzzer: how sound files are made, how they are read, and what lies in
them.
"""

import resource
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from lc_assets.errors import LcError

CPU_SECONDS: Final = 5.0
"""Of one reading; sound files take milliseconds."""

MORE_BYTES: Final = 1 << 30
"""What one reading may add to the address space, mapped files and stacks of threads with it."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Reader:
    """A reader of bytes from outside.

    Attributes:
        name: for people.
        make: writes sound files into a folder.
        read: reads all there is in the folder; returns something that can be compared.
        layers: of each file, by how its name ends; of files not named, none.
        guarded: whether a single flipped bit in compressed or summed bytes never changes what is
            read, unless an error is raised.
    """

    name: str
    make: Callable[[Path], None]
    read: Callable[[Path], Any]
    layers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    guarded: bool = False

    def layers_of(self, name: str) -> tuple[str, ...]:
        """How far one can look into a file."""
        return next((layers for end, layers in self.layers.items() if name.endswith(end)), ())


def files_of(folder: Path) -> dict[str, bytes]:
    """Every file of a folder by its relative path."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@contextmanager
def bounded() -> Iterator[None]:
    """Let what happens within take no more than `MORE_BYTES` of address space and `CPU_SECONDS`."""
    before, hard = resource.getrlimit(resource.RLIMIT_AS)
    now = int(Path("/proc/self/statm").read_text("ascii").split()[0]) * resource.getpagesize()
    began = time.process_time()
    resource.setrlimit(resource.RLIMIT_AS, (now + MORE_BYTES, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (before, hard))
    spent = time.process_time() - began
    assert spent < CPU_SECONDS, f"{spent:.1f} seconds"


def outcome(reader: Reader, folder: Path) -> Any:
    """What reading gives: a value, or the name of our error; any other exception goes through."""
    try:
        with bounded():
            return reader.read(folder)
    except LcError as error:
        assert str(error), "an error without words"  # noqa: PT017 - it is one of many outcomes
        return type(error)
