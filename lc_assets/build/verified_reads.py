"""Verified reads: while a stage is built, every file that it requests from a version in a lake is
compared with the version's receipt first.

`Published.only` and `Published.folder` give access to a version's files, and verify those that are
requested: many bytes in the workers, few in this process. This is a pass of its own before the
work, because most stages read an input in another order or several times: every task of
`token_grid` reads from all files of token ids. A file is verified once per process, unless it
changes. Files in a bucket are verified when they are downloaded.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from lc_assets.errors import CorruptFile
from lc_assets.execution.executor import Executor
from lc_assets.execution.local import LocalExecutor
from lc_assets.lake.digests import FileFact, is_unchanged
from lc_assets.lake.versions import VERIFIER

FEW_BYTES: Final = 64 << 20
"""Up to so many are verified in this process."""

_VERIFIED: Final[dict[Path, tuple[int, ...]]] = {}
"""State of verified files, see `_state`."""

_MOST_VERIFIED: Final = 1 << 16


@contextlib.contextmanager
def verified_reads(executor: Executor, own: tuple[str, str]) -> Iterator[None]:
    """Verify the files of versions that are requested within the block.

    Args:
        executor: reads them, when they are many bytes.
        own: stage and key of the partition that is built; its older versions are not verified here:
            a damaged shard of theirs is not reused but computed again.

    Raises:
        CorruptFile: when a file is missing or differs from its receipt; names it.
    """

    def verify(home: Path, files: list[FileFact]) -> None:
        if home.parts[-3:-1] == own:
            return
        tasks = [
            (home, fact)
            for fact in files
            if _VERIFIED.get(home / fact.path) != _state(home / fact.path)
        ]
        is_little = sum(fact.n_bytes for _, fact in tasks) <= FEW_BYTES
        run = (LocalExecutor() if is_little else executor).run
        if len(_VERIFIED) > _MOST_VERIFIED:
            _VERIFIED.clear()
        for (_, fact), state in run(verify_file, tasks, what="verify inputs"):
            _VERIFIED[home / fact.path] = state

    token = VERIFIER.set(verify)
    try:
        yield
    finally:
        VERIFIER.reset(token)


def verify_file(task: tuple[Path, FileFact]) -> tuple[int, ...]:
    """Compare one file of a version with its receipt; return its `_state`.

    Raises:
        CorruptFile: when it is missing or differs.
    """
    home, fact = task
    state = _state(home / fact.path)
    if not is_unchanged(home, fact):
        raise CorruptFile(
            f"{home / fact.path}: is missing or differs from its receipt; `lc verify {home}` lists "
            "all damage, `lc rebuild --repair --verify` builds it again"
        )
    return state


def _state(path: Path) -> tuple[int, ...]:
    """Inode, size and time of a file; empty when it is missing."""
    with contextlib.suppress(FileNotFoundError):
        stat = path.stat()
        return stat.st_ino, stat.st_size, stat.st_mtime_ns
    return ()
