"""Where the documents of a token store had better be cut: behind sentences and lines, found in
their ids.

Here: one pass over each shard, what is found kept for the build. Not here: what an end is
    (`lc_assets.packing.cutting`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lc_assets.counts import Counts
from lc_assets.formats.arrays.npy import read_npy, write_npy
from lc_assets.formats.megatron.idx import idx_path
from lc_assets.formats.megatron.indexed import MegatronReader
from lc_assets.formats.tokenizers.named import sentence_flags
from lc_assets.lake.receipts import SCRATCH
from lc_assets.lake.staging import once
from lc_assets.packing.cutting import Ends, ends_in, spacing


@dataclass(frozen=True, slots=True, kw_only=True)
class EndsTask:
    """One shard of a token store, whose ends are to be found for a version in ``folder``."""

    tokens: Path
    shard: str
    folder: Path
    tokenizer: str
    n_ids: int
    segment_tokens: int

    @property
    def name(self) -> str:
        """Of the shard's ends."""
        return f"ends-{self.shard}"

    @property
    def files(self) -> tuple[Path, Path]:
        """Where they are kept while the version is built."""
        stem = self.folder / SCRATCH / self.name
        return stem.with_name(f"{self.name}_first.npy"), stem.with_name(f"{self.name}_token.npy")

    def __str__(self) -> str:
        return str(self.tokens / self.shard)


def ends_tasks(
    shards: Sequence[str],
    tokens: Path,
    folder: Path,
    *,
    tokenizer: str,
    n_ids: int,
    segment_tokens: int,
) -> list[EndsTask]:
    """A task per shard, in the shards' order."""
    return [
        EndsTask(
            tokens=tokens,
            shard=shard,
            folder=folder,
            tokenizer=tokenizer,
            n_ids=n_ids,
            segment_tokens=segment_tokens,
        )
        for shard in shards
    ]


@once
def find_ends(task: EndsTask) -> Counts:
    """Find the ends of one shard's documents."""
    flags = sentence_flags(task.tokenizer)
    prefix = task.tokens / task.shard
    documents = MegatronReader(prefix) if idx_path(prefix).is_file() else ()
    found = Ends.joined(ends_in(ids, flags, spacing(task.segment_tokens)) for ids in documents)
    for path, array in zip(task.files, (found.first, found.token), strict=True):
        write_npy(path, array)
    return Counts(extra={"ends of sentences and lines": len(found.token)})


def read_ends(tasks: list[EndsTask]) -> Ends:
    """The ends of all shards, in the order of the tasks."""
    firsts, tokens = (
        zip(*([read_npy(path) for path in task.files] for task in tasks), strict=True)
        if tasks
        else ((), ())
    )
    counts = np.concatenate([np.empty(0, np.int64), *(np.diff(first) for first in firsts)])
    return Ends(
        first=np.concatenate([[0], np.cumsum(counts)]),
        token=np.concatenate([np.empty(0, np.int64), *tokens]),
    )
