"""Verified reads: while a stage is built, every file that it requests from a version in a lake is
compared with the version's receipt first.

`Published.only` and `Published.folder` give access to a version's files, and verify those that are
requested: many bytes in the workers, few in this process. This is a pass of its own before the
work, because most stages read an input in another order or several times: every task of
`token_grid` reads from all files of token ids. A file is verified once per build.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from lc_assets.execution.executor import Executor
from lc_assets.lake.digests import FileFact, is_unchanged
from lc_assets.lake.versions import VERIFIER

FEW_BYTES = 64 << 20
"""Up to so many are verified in this process."""


@contextlib.contextmanager
def verified_reads(executor: Executor, own: tuple[str, str] = ("", "")) -> Iterator[None]:
    """Verify the files of versions that are requested within the block.

    Args:
        executor: reads them, when they are many bytes.
        own: stage and key of the partition that is built; its older versions are not verified here:
            a damaged shard of theirs is not reused but computed again.
    """
    verified: set[tuple[Path, str]] = set()

    def damaged(home: Path, files: list[FileFact]) -> list[FileFact]:
        if home.parts[-3:-1] == own:
            return []
        left = [fact for fact in files if (home, fact.path) not in verified]
        tasks = [(home / fact.path, fact) for fact in left]
        if sum(fact.n_bytes for _, fact in tasks) <= FEW_BYTES:
            found = [(task, verify_file(task)) for task in tasks]
        else:
            found = list(executor.run(verify_file, tasks, what="verify inputs"))
        verified.update((home, fact.path) for (_, fact), is_sound in found if is_sound)
        return [fact for (_, fact), is_sound in found if not is_sound]

    token = VERIFIER.set(damaged)
    try:
        yield
    finally:
        VERIFIER.reset(token)


def verify_file(task: tuple[Path, FileFact]) -> bool:
    """Whether a file is as its receipt says."""
    return is_unchanged(*task)
