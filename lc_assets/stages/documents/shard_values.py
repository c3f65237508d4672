"""What is known of a shard's documents before they are read: values, published, stored or computed,
and which documents are duplicates.
"""

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, TypeVar

import numpy as np

from lc_assets.builds.tables import read_table
from lc_assets.errors import CorruptFile
from lc_assets.formats.corpora.containers import Unread
from lc_assets.formats.redpajama.documents import read_duplicates
from lc_assets.formats.redpajama.signals import SignalsTable, read_signals
from lc_assets.stages.documents.measuring import (
    Document,
    in_batches,
    lists_of,
    models_of,
    numbers_of,
)
from lc_assets.stages.documents.shard_inputs import (
    ShardTask,
    opened,
    records_of,
    skip_by_policy,
    where_of,
)
from lc_assets.text.rules.models import Models

T = TypeVar("T")


def signals_of_shard(task: ShardTask) -> tuple[SignalsTable, bool]:
    """The values that the rules test first, and whether they had to be computed because upstream
    has none.

    Raises:
        Skip: when the file is missing or broken and the policy is to skip the shard.
        CorruptFile: when it is missing or broken and the policy is ``fail``.
    """
    if task.stored is not None:
        return stored_values(task.stored, task.published.columns), True
    found = _read_part(
        task,
        "signals",
        task.settings.missing_signals,
        lambda stream: read_signals(
            stream,
            shard=task.files.shard,
            where=where_of(task, "signals"),
            names=task.published.columns,
            max_line_bytes=task.settings.max_line_bytes,
        ),
    )
    if found is not None:
        return found, False
    models = models_of(task.settings.models, task.published.columns)
    documents = [
        (line, document)
        for line, _, document in records_of(task, models)
        if not isinstance(document, Unread)
    ]
    return computed_signals(task, documents, models), True


def computed_signals(
    task: ShardTask, documents: list[tuple[int, Document]], models: Models
) -> SignalsTable:
    """The values that the rules test first, from the documents' texts."""
    lists, names = lists_of(task.settings.lists), sorted(task.published.columns)
    values = np.concatenate(
        [
            np.empty((0, len(names))),
            *(
                numbers_of([found for _, found in batch], names, task.rules, lists, models)
                for batch in (in_batches(documents) if names else ())
            ),
        ]
    )
    return SignalsTable(
        np.array([line for line, _ in documents], np.int64),
        [document.url for _, document in documents],
        {name: np.ascontiguousarray(values[:, at]) for at, name in enumerate(names)},
        0,
        0,
    )


def stored_values(path: Path, columns: frozenset[str]) -> SignalsTable:
    """Values of all documents of a shard that could be read, as `document_signals` published them.

    Raises:
        CorruptFile: when the table cannot be read.
    """
    table = read_table(path, ["line", "url", *sorted(columns)])
    values = {name: table[name].to_numpy() for name in sorted(columns)}
    return SignalsTable(table["line"].to_numpy(), table["url"].to_pylist(), values, 0, 0)


def duplicates_of_shard(task: ShardTask) -> frozenset[int] | None:
    """Lines that are duplicates; None when there is no sound list and the policy is to do without.

    Raises:
        Skip: when the list is missing or broken and the policy is to skip the shard.
        CorruptFile: when it is missing or broken and the policy is ``fail``.
    """
    return _read_part(
        task,
        "duplicates",
        task.settings.missing_duplicates,
        lambda stream: read_duplicates(
            stream, shard=task.files.shard, where=where_of(task, "duplicates")
        ),
    )


def _read_part(task: ShardTask, part: str, policy: str, read: Callable[[BinaryIO], T]) -> T | None:
    """Read one of a shard's files; None when it is missing or broken and the policy is to do
    without it.
    """
    if policy in ("compute", "treat_as_unique"):
        with contextlib.suppress(CorruptFile), opened(task, part) as stream:
            return read(stream)
        return None
    with skip_by_policy(part, policy), opened(task, part) as stream:
        return read(stream)
