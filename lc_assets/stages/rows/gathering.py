"""Gathering: copies the tokens of planned rows from token files into a block of rows.

Here: reading and rolling. Not here: the plan (`lc_assets.stages.rows.row_plans`), writing the block
(`lc_assets.stages.rows.token_grid`).
"""

import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lc_assets.formats.arrays.grid_layout import grid_dtype
from lc_assets.formats.megatron.indexed import MegatronReader
from lc_assets.formats.megatron.stretches import read_stretches
from lc_assets.tokens.rolling import roll_into, rolled_parts

GATHERING_THREADS = 4
"""Rows read from disk at the same time; reading releases the GIL."""


def gather(
    plan: pa.Table,
    tokens: Path,
    *,
    row_tokens: int,
    n_ids: int,
    shifts: Sequence[int] | None = None,
) -> NDArray[Any]:
    """The planned stretches of ``row_tokens`` tokens, in the plan's order, each rolled right by its
    shift, if any.

    Tokens are copied directly to their rolled position. Token shards are opened a few at a time:
    the documents of a block may lie in up to 2,048 of them, more than a process may hold open.

    Returns:
        row × token; uint16, or uint32 for vocabularies of more than 65,535 ids.
    """
    rows = np.empty((plan.num_rows, row_tokens), grid_dtype(n_ids))
    documents, stretches = plan["document"].to_pylist(), plan["stretch"].to_pylist()

    def read(shard: str, places: list[int]) -> None:
        reader = MegatronReader(tokens / shard)
        places.sort(key=documents.__getitem__)
        if reader.dtype.itemsize == rows.itemsize and sys.byteorder == "little":
            parts = (rolled_parts(rows[at], shifts[at] if shifts else 0) for at in places)
            read_stretches(
                reader,
                (
                    (documents[at], stretches[at] * row_tokens, part)
                    for at, part in zip(places, parts, strict=True)
                ),
            )
            return
        for at in places:
            start = stretches[at] * row_tokens
            roll_into(
                rows[at],
                reader.read(documents[at], start, start + row_tokens),
                shifts[at] if shifts else 0,
            )

    with ThreadPoolExecutor(GATHERING_THREADS, "lc-gather") as pool:
        by_shard = _by_shard(plan)
        for _ in pool.map(read, by_shard, by_shard.values()):
            pass
    return rows


def _by_shard(plan: pa.Table) -> Mapping[str, list[int]]:
    places: dict[str, list[int]] = {}
    for place, shard in enumerate(plan["token_shard"].to_pylist()):
        places.setdefault(shard, []).append(place)
    return places
