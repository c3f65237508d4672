"""The plan of a grid: which stretch of which document becomes which row of which split, and how far
it is rolled.

Every draw depends on one document only (`lc_assets.tokens.orders`): its priority determines its
position, its shift the start of its row. So adding or withdrawing other documents changes neither.
From its second row on a document draws under ``id#stretch``. Its side of the split is
recorded (`lc_assets.stages.deduplication.sides`), for all its rows.
"""

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lc_assets import arrow_compute as pc
from lc_assets.arrays import Array, Int64s
from lc_assets.builds.checks import DOCUMENTS_SUFFIX, documents_files, evenly_spaced
from lc_assets.builds.settings.rows import GriddingSettings
from lc_assets.builds.tables import ROWS, TOKENIZED, read_table
from lc_assets.formats.arrays.grid_layout import Configuration, grid_dtype
from lc_assets.formats.megatron.stretches import gather
from lc_assets.lake.versions import Published
from lc_assets.randomness import KEYED_ALGORITHM, shuffled
from lc_assets.tokens.orders import priorities, rolled_parts, shifts
from lc_assets.vocabulary import SPLITS


def drawn_by(seed: int) -> dict[str, str]:
    """What a grid draws, for its receipt."""
    keys = (("shuffle", "id#stretch"), ("shift", "id#stretch"), ("heldout", "tokenized_digest"))
    return {name: f"{KEYED_ALGORITHM}, seed {seed}, key {key}" for name, key in keys}


def tokenized(tokens: Path) -> pa.Table:
    """The tables of all shards of a folder of token documents, each line with its shard."""
    parts = [pa.schema([*TOKENIZED, ("token_shard", pa.string())]).empty_table()]
    for path in documents_files(tokens):
        table = read_table(path, TOKENIZED.names)
        shard = pa.repeat(path.name.removesuffix(DOCUMENTS_SUFFIX), table.num_rows)
        parts.append(table.append_column("token_shard", shard))
    return pa.concat_tables(parts)


def plan_rows(
    documents: pa.Table, settings: GriddingSettings, held_out: pa.ChunkedArray | None = None
) -> pa.Table:
    """Decide the position and shift of each document's rows.

    Args:
        documents: rows of `TOKENIZED` with ``token_shard``, in any order, each of at least
            ``row_tokens`` tokens.
        settings: of the grid.
        held_out: which documents are held out; by default none.

    Returns:
        A table of `ROWS`: train first, each split's rows in order.
    """
    held = pa.repeat(False, len(documents)) if held_out is None else held_out
    rows = _cut(documents.append_column("split", pc.if_else(held, "heldout", "train")), settings)
    keys = row_keys(rows)
    priority = priorities(keys, seed=settings.seed)
    table = (
        rows.append_column(
            "shift", pa.array(shifts(keys, seed=settings.seed, row_tokens=settings.row_tokens))
        )
        .append_column("priority", pa.array(priority))
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


def rows_of_documents(n_tokens: Int64s, *, row_tokens: int, most: int) -> Int64s:
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


def gather_rows(
    plan: pa.Table,
    tokens: Path,
    *,
    row_tokens: int,
    n_ids: int,
    shifts: Sequence[int] | None = None,
) -> Array:
    """The planned stretches of ``row_tokens`` tokens, in the plan's order, each rolled right by its
    shift, if any; tokens are copied directly to their rolled position.

    Returns:
        row × token; uint16, or uint32 for vocabularies of more than 65,535 ids.
    """
    rows = np.empty((plan.num_rows, row_tokens), grid_dtype(n_ids))
    gather(
        tokens,
        plan["token_shard"],
        np.asarray(plan["document"], np.int64),
        np.asarray(plan["stretch"], np.int64) * row_tokens,
        lambda at: rolled_parts(rows[at], shifts[at] if shifts else 0),
    )
    return rows


def gather_columns(
    plan: pa.Table, tokens: Path, columns: range, *, row_tokens: int, n_ids: int
) -> Array:
    """Some columns of the planned rows, rolled by the plan's shifts; a reference for `gather_rows`:
    where each column's token is in its stretch is computed from the shift.
    """
    found = np.empty((plan.num_rows, len(columns)), grid_dtype(n_ids))
    first = (columns.start - np.asarray(plan["shift"], np.int64)) % row_tokens
    cut = np.minimum(row_tokens - first, len(columns)).tolist()
    parts = [row[:n] for row, n in zip(found, cut, strict=True)]
    parts += [row[n:] for row, n in zip(found, cut, strict=True)]
    begin = np.asarray(plan["stretch"], np.int64) * row_tokens
    shards = pa.chunked_array(2 * plan["token_shard"].chunks, pa.string())
    document = np.tile(np.asarray(plan["document"], np.int64), 2)
    gather(tokens, shards, document, np.append(begin + first, begin), lambda at: [parts[at]])
    return found


def coder_for(tokens: Published, rows: pa.Table, settings: GriddingSettings) -> Configuration:
    """The codec's configuration for planned rows, by an even sample of them."""
    from lc_assets.formats.arrays.ranking import configuration_for

    n_ids = int(tokens.params["n_ids"])
    some = rows.take(evenly_spaced(rows.num_rows, max(CODER_TOKENS // settings.row_tokens, 1)))
    ids = gather_rows(some, tokens.folder, row_tokens=settings.row_tokens, n_ids=n_ids)
    return configuration_for(ids, n_ids)


CODER_TOKENS = 2**24
"""Tokens by which the codec is made: more hardly make rows smaller."""
FALSE_ALARM = 1e-6
"""How often, at most, a sound draw is called unsound: once in a million builds."""


def uniform_on_a_line(points: NDArray[np.floating]) -> float:
    """Bound the p-value of the hypothesis that ``points``, float64 in [0, 1), are drawn uniformly.

    The Kolmogorov distance between the points' distribution and the uniform one exceeds e with
    probability at most ``2 exp(-2 n e²)`` (Dvoretzky, Kiefer and Wolfowitz 1956, with Massart's
    constant of 1990), for any n and also for discrete draws.

    >>> uniform_on_a_line((np.arange(4096) + 0.5) / 4096)
    1.0
    >>> uniform_on_a_line(np.zeros(4096)) < FALSE_ALARM
    True
    >>> uniform_on_a_line(np.array([]))
    1.0
    """
    n, ordered, steps = len(points), np.sort(points), np.arange(len(points) + 1)
    above, below = steps[1:] / max(n, 1) - ordered, ordered - steps[:-1] / max(n, 1)
    distance = float(max(above.max(initial=0), below.max(initial=0)))
    return min(1.0, 2 * math.exp(-2 * n * distance**2))
