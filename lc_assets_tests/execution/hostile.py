"""Shard functions over documents that do harm: they loop, allocate, crash, or nest without end."""

import os
import signal
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import selectolax.lexbor

from lc_assets.counts import Counts
from lc_assets.execution.containment import at_document, at_documents, contained, processing

NESTED = "<div>" * 1_000_000
"""5 MB of HTML whose tree lexbor builds in hours: quadratic in the depth, 69 s for 100,000."""


@dataclass(frozen=True)
class Documents:
    """A task: what each document does to its worker, and where attempts are noted."""

    name: str
    deeds: tuple[str, ...]
    folder: Path

    def __str__(self) -> str:
        return self.name

    @property
    def attempts(self) -> int:
        """How often the task was started."""
        return len(list(self.folder.glob(f"{self.name}.*")))


@contained
def process_documents(task: Documents) -> Counts:
    """Process every document; count what is kept and what is skipped."""
    (task.folder / f"{task.name}.{task.attempts}.{os.getpid()}").touch()
    dropped: dict[str, int] = {}
    for number, deed in enumerate(task.deeds):
        with processing(number) as skipped:
            if not skipped:
                DEEDS[deed]()
        if skipped:
            dropped[skipped] = dropped.get(skipped, 0) + 1
    n_kept = len(task.deeds) - sum(dropped.values())
    return Counts(seen=len(task.deeds), kept=n_kept, dropped=dropped)


def note_documents(task: Documents) -> Counts:
    """Process every document that is not to be skipped; they have no limits."""
    (task.folder / f"{task.name}.{task.attempts}.{os.getpid()}").touch()
    dropped: dict[str, int] = {}
    for number, deed in enumerate(task.deeds):
        if skipped := at_document(number):
            dropped[skipped] = dropped.get(skipped, 0) + 1
        else:
            DEEDS[deed]()
    n_kept = len(task.deeds) - sum(dropped.values())
    return Counts(seen=len(task.deeds), kept=n_kept, dropped=dropped)


def note_together(task: Documents) -> Counts:
    """Process the documents that are not to be skipped three at a time."""
    (task.folder / f"{task.name}.{task.attempts}.{os.getpid()}").touch()
    documents = list(enumerate(task.deeds))
    why = [at_document(number) for number, _ in documents]
    for begin in range(0, len(documents), 3):
        batch = documents[begin : begin + 3]
        for some in at_documents([number for number, _ in batch]):
            for number, deed in batch[some]:
                if not why[number]:
                    DEEDS[deed]()
    dropped = Counter(filter(None, why))
    n_kept = len(documents) - dropped.total()
    return Counts(seen=len(documents), kept=n_kept, dropped=dict(dropped))


def note_and_forget(task: Documents) -> Counts:
    """Process every document, also those to be skipped."""
    (task.folder / f"{task.name}.{task.attempts}.{os.getpid()}").touch()
    for number, deed in enumerate(task.deeds):
        at_document(number)
        DEEDS[deed]()
    return Counts(seen=len(task.deeds), kept=len(task.deeds))


def loop() -> None:
    while True:
        time.sleep(0.01)


def allocate() -> None:
    """Take 1 GB and keep it until somebody interferes."""
    taken = bytearray(os.urandom(1 << 20) * 1024)
    signal.pause()
    del taken


def crash() -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def nest() -> None:
    """Parse very deep HTML: lexbor holds the GIL for all of it."""
    selectolax.lexbor.LexborHTMLParser(NESTED)


DEEDS = {
    "fine": lambda: None,
    "loop": loop,
    "allocate": allocate,
    "crash": crash,
    "nest": nest,
}
