"""`token_grid`: the first 65,536 tokens of each document become a row: shuffled, rolled, split,
written as Zarr.

The plan is a table, ``rows.parquet`` (`lc_assets.stages.rows.row_plans`), written first; then
blocks of 2,048 rows are written in a loop. A longer document may give several rows; tokens after
its last row are counted.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lc_assets.build.building import (
    build,
    run_shards,
)
from lc_assets.build.checks import (
    DOCUMENTS_SUFFIX,
    by_chunk,
    complaints_about,
    documents_files,
    evenly_spaced,
    reads_all_upstream_documents,
)
from lc_assets.build.recipe import plain
from lc_assets.build.settings.rows import GriddingSettings
from lc_assets.build.stage import (
    SAME_SNAPSHOT,
    WORKERS,
    BuildContext,
    Built,
    CheckInput,
    CheckResult,
    Stage,
    StagingFolder,
    later,
)
from lc_assets.build.tables import ROWS, TOKENIZED, read_table, write_table
from lc_assets.counts import Counts
from lc_assets.errors import Mismatch
from lc_assets.formats.arrays.grid import GridReader, create_grid, plan_bands, write_band
from lc_assets.formats.tokenizers.named import text_of
from lc_assets.lake.staging import once
from lc_assets.lake.versions import Published
from lc_assets.stages.rows.gathering import gather
from lc_assets.stages.rows.row_plans import drawn_by, plan_rows, row_keys, rows_of_documents
from lc_assets.stages.rows.uniformity import FALSE_ALARM, uniform_on_a_line
from lc_assets.stages.tokens.token_documents import STAGE as TOKEN_DOCUMENTS
from lc_assets.tokens.rolling import unroll_rows
from lc_assets.vocabulary import SPLITS, SnapshotId

ROWS_FILE = "rows.parquet"
CHECKED_ROWS = 256
"""Rows of each split that the check unrolls and compares with the token files; all rows if there
are fewer.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class BandTask:
    """One band of rows of one split to be written into ``folder``."""

    tokens: Path
    folder: Path
    split: str
    block: range
    row_tokens: int
    n_ids: int

    @property
    def name(self) -> str:
        """Split and first row."""
        return f"{self.split}-{self.block.start:09d}"

    def __str__(self) -> str:
        return f"{self.folder.name} {self.name}"


def write_token_grid(context: BuildContext, snapshot: SnapshotId) -> Built:
    """Publish one snapshot's rows.

    Raises:
        NotPublished: when the token documents are not there.
        Mismatch: when they were published for shorter rows.
    """
    settings = context.recipe.token_grid

    def fill(staging: StagingFolder) -> Counts:
        tokens = staging.inputs[f"token_documents/{snapshot}"].folder
        _require_long_enough(staging.inputs[f"token_documents/{snapshot}"], settings)
        documents = _documents(tokens)
        rows = plan_rows(documents, settings)
        write_table(staging.folder / ROWS_FILE, rows)
        tasks = [
            task
            for split in SPLITS
            for task in _bands(
                staging.inputs[f"token_documents/{snapshot}"], staging.folder, split, rows, settings
            )
        ]
        written = run_shards(context, staging, write_rows, tasks, what=f"grid {snapshot}")
        if written.kept != rows.num_rows:
            raise Mismatch(f"{rows.num_rows:,} rows were planned and {written.kept:,} written")
        extra = {f"{split} rows": count_of(rows, split) for split in SPLITS} | {
            "tokens": rows.num_rows * settings.row_tokens
        }
        behind = int(pc.sum(documents["n_tokens"]).as_py() or 0) - extra["tokens"]
        return Counts(
            seen=documents.num_rows,
            kept=documents.num_rows,
            extra=extra | {"tokens behind the rows": behind},
        )

    return build(context, STAGE, snapshot, fill, randomness=drawn_by(settings.seed))


def _require_long_enough(tokens: Published, settings: GriddingSettings) -> None:
    """Within one recipe documents are never shorter than rows; a published version may be of an
    older recipe.
    """
    shortest = int(tokens.receipt.fingerprint.params["min_tokens"])
    if shortest < settings.row_tokens:
        raise Mismatch(
            f"{tokens.name} holds documents from {shortest:,} tokens on, rows have "
            f"{settings.row_tokens:,}:"
            " it was made by another recipe; materialize it by this one first"
        )


@once
def write_rows(task: BandTask) -> Counts:
    """Write one band: gather its documents' tokens, roll each, hand the band to the grid."""
    plan = _plan_of(task)
    rows = gather(
        plan,
        task.tokens,
        row_tokens=task.row_tokens,
        n_ids=task.n_ids,
        shifts=plan["shift"].to_pylist(),
    )
    write_band(task.folder / f"{task.split}.zarr", task.block, rows)
    return Counts(seen=len(rows), kept=len(rows))


def _documents(tokens: Path) -> pa.Table:
    parts = [
        read_table(path, TOKENIZED.names).append_column("token_shard", _repeated(path))
        for path in documents_files(tokens)
    ]
    empty = pa.schema([*TOKENIZED, ("token_shard", pa.string())]).empty_table()
    return pa.concat_tables([empty, *parts])


def _repeated(path: Path) -> pa.Array:
    return pa.repeat(path.name.removesuffix(DOCUMENTS_SUFFIX), read_table(path, ["id"]).num_rows)


def _bands(
    tokens: Published, folder: Path, split: str, rows: pa.Table, settings: GriddingSettings
) -> list[BandTask]:
    made_by = tokens.receipt.fingerprint.params
    layout = settings.layout(count_of(rows, split), int(made_by["n_ids"]))
    create_grid(
        folder / f"{split}.zarr",
        layout,
        tokenizer=made_by["tokenizer"],
        attributes={"eot": made_by["eot"]},
    )
    return [
        BandTask(
            tokens=tokens.folder,
            folder=folder,
            split=split,
            block=block,
            row_tokens=settings.row_tokens,
            n_ids=layout.vocab_size,
        )
        for block in plan_bands(layout)
    ]


def count_of(rows: pa.Table, split: str) -> int:
    """How many rows of a row table are of one split."""
    return int(pc.sum(pc.equal(rows["split"], split)).as_py() or 0)


def rows_table(grid: Published) -> pa.Table:
    """The whole row table of a published grid."""
    return read_table(grid.folder / ROWS_FILE, ROWS.names)


def sizes_of(grid: Published) -> dict[str, float]:
    """Bytes of the ids as they are, and as they are stored."""
    rows = sum(grid.receipt.counts.extra[f"{split} rows"] for split in SPLITS)
    ids = (
        GridReader(grid.folder / "train.zarr").dtype.itemsize
        * rows
        * int(grid.receipt.fingerprint.params["row_tokens"])
    )
    stored = sum(fact.n_bytes for fact in grid.receipt.files if ".zarr/" in fact.path)
    return {"ids as they are": ids, "stored": stored}


def decoded_rows(
    grid: Published, tokenizer: str, *, n_rows: int, n_tokens: int = 48
) -> list[dict[str, Any]]:
    """The beginnings of the first training rows as text, each with its document."""
    plan = rows_of(grid.folder, "train").slice(0, n_rows)
    reader = GridReader(grid.folder / "train.zarr")
    heads: Iterable[Any] = (
        reader.read(slice(0, plan.num_rows), slice(0, min(n_tokens, reader.row_tokens)))
        if plan.num_rows
        else []
    )
    lines = plan.select(["url", "shift", "n_tokens", "id"]).to_pylist()
    return [
        {"row": row, "begins": _one_line(text_of(tokenizer, head)), **line}
        for row, (line, head) in enumerate(zip(lines, heads, strict=True))
    ]


def _one_line(text: str, n_chars: int = 80) -> str:
    return " ".join(text.split())[:n_chars]


def rows_of(folder: Path, split: str) -> pa.Table:
    """The row table of one split, in row order."""
    table = read_table(folder / ROWS_FILE, ROWS.names)
    return table.filter(pc.equal(table["split"], split))


def _plan_of(task: BandTask) -> pa.Table:
    return rows_of(task.folder, task.split).slice(
        task.block.start, task.block.stop - task.block.start
    )


def every_row_is_planned_once(check_input: CheckInput) -> CheckResult:
    """``rows.parquet`` fits its schema, names each stretch of a document once, counts rows from 0
    without a gap, matches the arrays.
    """
    table = read_table(check_input.folder / ROWS_FILE, ROWS.names)
    wrong = complaints_about([check_input.folder / ROWS_FILE], ROWS)
    n_twice = table.num_rows - len(set(row_keys(table)))
    if n_twice:
        wrong.append(f"{n_twice:,} stretches of documents have a second row")
    for split in SPLITS:
        rows = np.asarray(rows_of(check_input.folder, split)["row"])
        n_array = GridReader(check_input.folder / f"{split}.zarr").n_rows
        if not np.array_equal(rows, np.arange(n_array)):
            wrong.append(
                f"{split}: {len(rows):,} planned rows do not count the array's {n_array:,}"
            )
    asked = check_input.fingerprint.params
    beginnings = np.asarray(table.filter(pc.equal(table["stretch"], 0))["n_tokens"], np.int64)
    n_due = int(
        rows_of_documents(
            beginnings, row_tokens=asked["row_tokens"], most=asked["rows_per_document"]
        ).sum()
    )
    if n_due != table.num_rows:
        wrong.append(f"{table.num_rows:,} rows, the documents give {n_due:,}")
    n_documents, n_rows = (
        pc.count_distinct(table["id"]).as_py(),
        sum(check_input.counts.extra[f"{split} rows"] for split in SPLITS),
    )
    if (n_documents, table.num_rows) != (check_input.counts.seen, n_rows):
        wrong.append(
            f"{table.num_rows:,} rows of {n_documents:,} documents, the receipt says {n_rows:,} "
            f"of {check_input.counts.seen:,}"
        )
    return CheckResult(
        check="every_row_is_planned_once",
        passed=not wrong,
        message="; ".join(wrong)
        or f"{table.num_rows:,} rows of {n_documents:,} documents, no stretch twice",
        values={"rows": table.num_rows},
    )


def rows_unroll_to_their_documents(check_input: CheckInput) -> CheckResult:
    """Rows read back from the Zarr, unrolled, are their documents' tokens: all rows, or an even 256
    of each split.
    """
    tokens = check_input.only_input("token_documents").folder
    n_checked, wrong = 0, []
    for split in SPLITS:
        plan = rows_of(check_input.folder, split)
        chosen = evenly_spaced(plan.num_rows, CHECKED_ROWS)
        reader = GridReader(check_input.folder / f"{split}.zarr")
        for rows in by_chunk(chosen, reader.chunk_shape[0]):
            wrong += [
                f"{split} row {row}" for row in _wrong_rows(reader, rows, plan.take(rows), tokens)
            ]
        n_checked += len(chosen)
    return CheckResult(
        check="rows_unroll_to_their_documents",
        passed=not wrong,
        message=f"{n_checked:,} rows read back"
        + (f"; wrong: {', '.join(wrong[:5])}" if wrong else ", all are their documents' tokens"),
        values={"rows read back": n_checked, "wrong": len(wrong)},
    )


def _wrong_rows(reader: GridReader, rows: list[int], plan: pa.Table, tokens: Path) -> list[int]:
    """Those of ``rows``, which are close together, that differ from their documents' tokens."""
    read = reader.read(slice(rows[0], rows[-1] + 1))[np.subtract(rows, rows[0])]
    right = unroll_rows(read, np.asarray(plan["shift"])) == gather(
        plan, tokens, row_tokens=reader.row_tokens, n_ids=reader.vocab_size
    )
    return [
        row for row, is_right in zip(rows, right.all(axis=1).tolist(), strict=True) if not is_right
    ]


def train_and_heldout_share_nothing(check_input: CheckInput) -> CheckResult:
    """No document and no content digest is on both sides of the split."""
    shared = on_both_sides([check_input.folder])
    return CheckResult(
        check="train_and_heldout_share_nothing",
        passed=not shared,
        message=f"{len(shared):,} ids or digests on both sides"
        + (f", such as {min(shared)}" if shared else ""),
        values={
            "shared": len(shared),
            **{f"{split} rows": rows_of(check_input.folder, split).num_rows for split in SPLITS},
        },
    )


def on_both_sides(grids: Sequence[Path]) -> set[str]:
    """Ids and content digests that are both held out and trained on, in any grids; keeps the
    smaller side and one grid in memory.
    """
    heldout_keys = pa.chunked_array(
        [chunk for grid in grids for chunk in _keys(grid, "heldout").chunks], pa.string()
    )
    shared: set[str] = set()
    for grid in grids:
        keys = _keys(grid, "train")
        shared |= set(keys.filter(pc.is_in(keys, value_set=heldout_keys)).to_pylist())
    return shared


def _keys(grid: Path, split: str) -> pa.ChunkedArray:
    rows = rows_of(grid, split)
    keys = pa.chunked_array(
        [chunk for column in ("id", "digest") for chunk in rows[column].chunks], pa.string()
    )
    return keys.filter(pc.not_equal(keys, ""))


def order_and_shifts_are_uniform(check_input: CheckInput) -> CheckResult:
    """Priorities and shifts are spread as a uniform draw would be (Kolmogorov; a false alarm at
    most once in a million builds).
    """
    table = read_table(check_input.folder / ROWS_FILE, ["priority", "shift"])
    row_tokens = check_input.fingerprint.params["row_tokens"]
    p_order = uniform_on_a_line(np.asarray(table["priority"]) / 2.0**64)
    p_shift = uniform_on_a_line(np.asarray(table["shift"]) / row_tokens)
    found = f"p ≤ {p_order:.3g} for the order, ≤ {p_shift:.3g} for the shifts"
    return CheckResult(
        check="order_and_shifts_are_uniform",
        passed=min(p_order, p_shift) >= FALSE_ALARM / 2,
        message=f"{found}, over {table.num_rows:,} rows; alarm below {FALSE_ALARM / 2:g}",
        values={"p of the order": p_order, "p of the shifts": p_shift},
    )


STAGE = Stage(
    name="token_grid",
    description=(
        "Rows of equal length (65,536 tokens by default) of one snapshot: shuffled, "
        "rolled and split, as Zarr, with their documents."
    ),
    code_version="3",
    reads={TOKEN_DOCUMENTS: SAME_SNAPSHOT},
    params=lambda recipe, _: plain(recipe.token_grid),
    checks=(
        reads_all_upstream_documents("token_documents"),
        every_row_is_planned_once,
        rows_unroll_to_their_documents,
        train_and_heldout_share_nothing,
        order_and_shifts_are_uniform,
    ),
    group="tokens",
    job="snapshot_rows",
    pool=WORKERS,
    kinds=("zarr", "numpy"),
    write=write_token_grid,
    show=later("lc_assets.stages.shown.rows:token_grid"),
)
"""Rows of 65,536 tokens, shuffled, rolled and split."""
