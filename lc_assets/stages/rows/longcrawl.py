"""`longcrawl`: one global order over the grids of all published snapshots. Small and cheap to
rebuild.

Each row has its own priority, and each grid is sorted by it. Merging the grids by priority
interleaves uniform shuffles and gives the uniform shuffle of the union. A new snapshot's rows are
inserted between the others, which keep their order and are not rewritten (docs/decisions.md, 0003).
"""

from collections.abc import Mapping
from operator import attrgetter
from typing import Any

import numpy as np

from lc_assets.arrays import UInt64s
from lc_assets.builds.stage import (
    ALL_SNAPSHOTS,
    BuildContext,
    CheckInput,
    CheckResult,
    Stage,
    StagingFolder,
)
from lc_assets.counts import Counts
from lc_assets.errors import Mismatch, NotPublished
from lc_assets.formats.arrays.grid import GridReader
from lc_assets.formats.arrays.order import GlobalOrder, OrderSource, write_order, write_sources
from lc_assets.lake.versions import Published
from lc_assets.randomness import KEYED_ALGORITHM
from lc_assets.stages.rows.token_grid import ROWS_FILE, rows_of, shared_nothing
from lc_assets.tokens.orders import interleave
from lc_assets.vocabulary import SPLITS


def write_longcrawl(_context: BuildContext, staging: StagingFolder) -> Counts:
    """Write the order over all published grids.

    Raises:
        NotPublished: if there is none.
    """
    grids = grids_of(staging.inputs)
    if not grids:
        raise NotPublished(
            "no snapshot's grid is published: there is nothing to order; materialize "
            "`token_grid` of one first"
        )
    lengths = {grid.name: int(grid.params["row_tokens"]) for grid in grids}
    readers = [GridReader(grid.only("*/zarr.json") / "train.zarr") for grid in grids]
    tokenizers = [str(reader.attributes.get("tokenizer")) for reader in readers]
    common_of(dict(zip(lengths, tokenizers, strict=True)), "tokenizers")
    write_sources(
        staging.folder,
        [source_of(grid) for grid in grids],
        row_tokens=common_of(lengths, "lengths"),
        vocab_size=readers[0].vocab_size,
    )
    counts = {}
    for split in SPLITS:
        source, row = interleave([_priorities(grid, split) for grid in grids])
        write_order(staging.folder, split, source, row)
        counts[f"{split} rows"] = len(row)
    n_seen = sum(grid.counts.extra[f"{split} rows"] for grid in grids for split in SPLITS)
    extra = counts | {"snapshots": len(grids)}
    return Counts(seen=n_seen, kept=sum(counts.values()), extra=extra)


def grids_of(inputs: Mapping[str, Published]) -> list[Published]:
    """The grids of a stage's inputs, in the order that numbers them."""
    return [inputs[name] for name in sorted(inputs) if name.startswith("token_grid/")]


def common_of(values: Mapping[str, Any], what: str, *, to_make: str = "order") -> Any:
    """The value that all partitions share; ``values`` are by their names.

    Raises:
        Mismatch: when two differ.
    """
    if len(set(values.values())) > 1:
        raise Mismatch(
            f"rows of different {what} have no common {to_make}: {values}; materialize them by one "
            "recipe"
        )
    return next(iter(values.values()))


def source_of(grid: Published) -> OrderSource:
    """How an order names one grid."""
    extra = grid.counts.extra
    return OrderSource(
        snapshot=grid.key,
        version=grid.version,
        digest=grid.digest,
        train_rows=extra["train rows"],
        heldout_rows=extra["heldout rows"],
    )


def tokens_by_snapshot(order: Published) -> dict[str, float]:
    """Tokens that each snapshot has in the order, both splits together."""
    opened = GlobalOrder.open(order.folder, "train")
    return {
        source.snapshot: float((source.train_rows + source.heldout_rows) * opened.row_tokens)
        for source in opened.sources
    }


def every_row_has_one_place(check_input: CheckInput) -> CheckResult:
    """The order contains each row of each grid exactly once, and each grid's rows in their own
    order.
    """
    orders = [GlobalOrder.open(check_input.folder, split) for split in SPLITS]
    for order in orders:
        order.require_riffle()
    n_rows = sum(map(len, orders))
    return CheckResult(
        passed=n_rows == check_input.counts.kept,
        message=f"{n_rows:,} rows placed of {check_input.counts.seen:,}",
        values={"rows": n_rows},
    )


def the_order_rises_by_priority(check_input: CheckInput) -> CheckResult:
    """Along the order the rows' priorities never fall, so it is the shuffle that the priorities
    define.
    """
    falls = 0
    for split in SPLITS:
        order = GlobalOrder.open(check_input.folder, split)
        order.require_riffle()
        along = np.empty(len(order), np.uint64)
        for number, source in enumerate(order.sources):
            grid = check_input.inputs.get(f"token_grid/{source.snapshot}")
            if grid is None or source_of(grid) != source:
                raise Mismatch(
                    f"the order is over token_grid/{source.snapshot}, of which it was not made, or "
                    "whose version is gone"
                )
            along[order.source == number] = _priorities(grid, split)
        falls += int((along[1:] < along[:-1]).sum())
    return CheckResult(
        passed=falls == 0,
        message=f"{falls:,} falls along {check_input.counts.kept:,} rows",
        values={"falls": falls},
    )


def no_document_is_on_both_sides(check_input: CheckInput) -> CheckResult:
    """Over all snapshots, no document and no text, by its digest, is both trained on and held
    out.
    """
    tables = [grid.only(ROWS_FILE) / ROWS_FILE for grid in grids_of(check_input.inputs)]
    return shared_nothing(tables)


def _priorities(grid: Published, split: str) -> UInt64s:
    """Of a grid's rows of one split, in their order."""
    return np.asarray(rows_of(grid.only(ROWS_FILE), split, ["priority"])["priority"])


STAGE = Stage(
    name="longcrawl",
    description=(
        "One global order over the rows of all published snapshots: a uniform shuffle, "
        "stored as a small index."
    ),
    code_version="1",
    reads={"token_grid": ALL_SNAPSHOTS},
    params=lambda _, __: {},
    checks=(every_row_has_one_place, the_order_rises_by_priority, no_document_is_on_both_sides),
    partitioned_by="nothing",
    group="tokens",
    job="all_snapshots",
    kinds=("numpy",),
    counted="rows",
    randomness=lambda _, __: {"riffle": f"{KEYED_ALGORITHM}: the grids' own priorities, merged"},
    write=write_longcrawl,
    cited=attrgetter("version"),
    pool=None,
)
"""The global order over all snapshots."""
