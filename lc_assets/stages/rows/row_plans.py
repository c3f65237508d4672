"""The plan of a grid: which stretch of which document becomes which row of which split, and how far
it is rolled.

Every draw depends on one document alone (`lc_assets.tokens.orders`): its priority determines its
position, its shift where its row begins, the hash of its content its split. So adding or
withdrawing other documents moves none. From its second row on a document draws under
``id#stretch``; all its rows are in the same split.

Here: the table. Not here: cutting rows (`lc_assets.stages.rows.token_grid`).
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lc_assets.build.settings.rows import GriddingSettings
from lc_assets.build.tables import ROWS
from lc_assets.randomness import KEYED_ALGORITHM
from lc_assets.tokens.orders import heldout, priorities, shifts, shuffled
from lc_assets.vocabulary import SPLITS


def drawn_by(seed: int) -> dict[str, str]:
    """What a grid draws, for its receipt."""
    keys = (("shuffle", "id#stretch"), ("shift", "id#stretch"), ("heldout", "digest"))
    return {name: f"{KEYED_ALGORITHM}, seed {seed}, key {key}" for name, key in keys}


def plan_rows(documents: pa.Table, settings: GriddingSettings) -> pa.Table:
    """Decide the split of every document, and the position and shift of each of its rows.

    Args:
        documents: rows of `TOKENIZED` with ``token_shard``, in any order, each of at least
            ``row_tokens`` tokens.
        settings: of the grid.

    Returns:
        A table of `ROWS`: train first, each split's rows in order.
    """
    rows = _cut(documents, settings)
    keys = row_keys(rows)
    priority = priorities(keys, seed=settings.seed)
    # The hash is of the content, so one text found in two snapshots never lands on both sides of
    # the split.
    out = heldout(_content_keys(rows), seed=settings.seed, fraction=settings.heldout_fraction)
    table = (
        rows.append_column(
            "shift", pa.array(shifts(keys, seed=settings.seed, row_tokens=settings.row_tokens))
        )
        .append_column("priority", pa.array(priority))
        .append_column("split", pc.if_else(pa.array(out), "heldout", "train"))
        .take(pa.array(shuffled(priority, keys)))
    )
    parts = [table.filter(pc.equal(table["split"], split)) for split in SPLITS]
    return pa.concat_tables(
        [
            part.append_column("row", pa.array(np.arange(part.num_rows))).select(ROWS.names)
            for part in parts
        ]
    ).cast(ROWS)


def row_keys(rows: pa.Table) -> list[str]:
    """What a row is drawn for: its document's id, with the stretch from the second row on.

    >>> row_keys(pa.table({"id": ["a", "a"], "stretch": [0, 1]}))
    ['a', 'a#1']
    """
    return [
        f"{name}#{stretch}" if stretch else name
        for name, stretch in zip(rows["id"].to_pylist(), rows["stretch"].to_pylist(), strict=True)
    ]


def rows_of_documents(
    n_tokens: NDArray[np.int64], *, row_tokens: int, most: int
) -> NDArray[np.int64]:
    """How many rows each document gives, ``most`` at most.

    >>> rows_of_documents(np.array([64, 200, 1000]), row_tokens=64, most=4)
    array([1, 3, 4])
    """
    return np.minimum(n_tokens // row_tokens, most)


def _cut(documents: pa.Table, settings: GriddingSettings) -> pa.Table:
    """A line per row: the documents' lines repeated, numbered by ``stretch``."""
    n_tokens = np.asarray(documents["n_tokens"], np.int64)
    counts = rows_of_documents(
        n_tokens, row_tokens=settings.row_tokens, most=settings.rows_per_document
    )
    lines = np.repeat(np.arange(len(counts)), counts)
    first = np.repeat(np.cumsum(counts) - counts, counts)
    return documents.take(pa.array(lines)).append_column(
        "stretch", pa.array(np.arange(len(lines)) - first)
    )


def _content_keys(documents: pa.Table) -> list[str]:
    lines = zip(documents["digest"].to_pylist(), documents["id"].to_pylist(), strict=True)
    return [digest or identity for digest, identity in lines]
