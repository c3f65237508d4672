"""`token_grid`: the first 65,536 tokens of each document become a row: shuffled, rolled, split,
written as Zarr.

The plan is a table, ``rows.parquet`` (`lc_assets.stages.rows.row_plans`), written first; then
workers write blocks of at most 2,048 rows. A longer document may give several rows; tokens after
its last row are counted.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from lc_assets import arrow_compute as pc
from lc_assets.builds.building import run_shards
from lc_assets.builds.check_runs import by_workers
from lc_assets.builds.checks import (
    an_eighth,
    by_chunk,
    evenly_spaced,
    reads_all_upstream_documents,
)
from lc_assets.builds.recipe import plain
from lc_assets.builds.settings.rows import GriddingSettings
from lc_assets.builds.stage import (
    SAME_SNAPSHOT,
    BuildContext,
    CheckInput,
    CheckResult,
    Stage,
    StagingFolder,
)
from lc_assets.builds.table_checks import table_failures
from lc_assets.builds.tables import ROWS, Line, read_table, write_table
from lc_assets.counts import Counts
from lc_assets.errors import Mismatch
from lc_assets.formats.arrays.grid import (
    GridReader,
    create_grid,
    create_group,
    plan_bands,
    write_band,
)
from lc_assets.formats.arrays.grid_layout import Configuration
from lc_assets.formats.tokenizers.named import text_of
from lc_assets.lake.versions import Published
from lc_assets.records import record
from lc_assets.stages.deduplication.sides import held_out_in
from lc_assets.stages.rows.row_plans import (
    FALSE_ALARM,
    coder_for,
    drawn_by,
    gather_columns,
    gather_rows,
    plan_rows,
    row_keys,
    rows_of_documents,
    tokenized,
    uniform_on_a_line,
)
from lc_assets.stages.tokens.tokenized_text import are_held_out
from lc_assets.vocabulary import SPLITS

ROWS_FILE = "rows.parquet"
SHOWN_TOKENS, SHOWN_CHARS = 48, 80
CHECKED_ROWS, CHECKED_SHARE = 256, 16
"""At least so many rows of each split, and one in so many, are compared with the token files."""


@record
class BlockTask:
    """A block of rows of one split, to be written into ``folder``."""

    folder: Path
    split: str
    block: range

    @property
    def name(self) -> str:
        """Split and first row."""
        return f"{self.split}-{self.block.start:09d}"

    def __str__(self) -> str:
        return f"{self.folder.name} {self.name}"


@record
class BandTask(BlockTask):
    """A block of a grid's rows, made of documents in ``tokens``."""

    tokens: Path
    row_tokens: int
    n_ids: int


def write_token_grid(context: BuildContext, staging: StagingFolder) -> Counts:
    """Write one snapshot's rows.

    Raises:
        Mismatch: when they were made for shorter rows, by an older recipe.
    """
    snapshot, settings = staging.key, context.recipe.token_grid
    tokens = staging.inputs[f"token_documents/{snapshot}"]
    shortest = int(tokens.params["min_tokens"])
    if shortest < settings.row_tokens:
        raise Mismatch(
            f"{tokens.name} holds documents from {shortest:,} tokens on, rows have "
            f"{settings.row_tokens:,}: it was made by another recipe; materialize it by this "
            "one first"
        )
    documents = tokenized(tokens.folder)
    held_out = held_out_in(staging.inputs, snapshot, documents["tokenized_digest"])
    rows = plan_rows(documents, settings, held_out)
    write_table(staging.folder / ROWS_FILE, rows)
    coder = coder_for(tokens, rows, settings) if settings.codec == "ranked" else None
    made = partial(_tasks, tokens, staging, rows=rows, settings=settings, coder=coder)
    tasks = [task for split in SPLITS for task in made(split)]
    create_group(staging.folder)
    written = run_shards(context, staging, write_rows, tasks, what=f"grid {snapshot}")
    if written.kept != rows.num_rows:
        raise Mismatch(f"{rows.num_rows:,} rows were planned and {written.kept:,} written")
    n_tokens, n_documents = rows.num_rows * settings.row_tokens, documents.num_rows
    behind = int(pc.sum(documents["n_tokens"]).as_py() or 0) - n_tokens
    extra = {f"{split} rows": of_split(rows, split).num_rows for split in SPLITS}
    extra |= {"tokens": n_tokens, "tokens behind the rows": behind}
    return Counts(seen=n_documents, kept=n_documents, extra=extra)


def _params(settings: GriddingSettings) -> dict[str, Any]:
    """The settings that affect the bytes; the usual codec is not named, the other has a version."""
    named = {"zstd": {}, "ranked": {"codec": "ranked 2"}}[settings.codec]
    return {name: value for name, value in plain(settings).items() if name != "codec"} | named


def _tasks(
    tokens: Published,
    staging: StagingFolder,
    split: str,
    *,
    rows: pa.Table,
    settings: GriddingSettings,
    coder: Configuration | None,
) -> list[BandTask]:
    """Create the array of one split; a task per block of its rows."""
    made_by = tokens.params
    layout = settings.layout(of_split(rows, split).num_rows, int(made_by["n_ids"]), coder)
    path, eot, tokenizer = staging.folder / f"{split}.zarr", made_by["eot"], made_by["tokenizer"]
    create_grid(path, layout, tokenizer=tokenizer, attributes={"eot": eot}, rows=f"{split}_row")
    return [
        BandTask(
            tokens=tokens.folder,
            folder=staging.folder,
            split=split,
            block=block,
            row_tokens=settings.row_tokens,
            n_ids=layout.vocab_size,
        )
        for block in plan_bands(layout)
    ]


def write_rows(task: BandTask) -> Counts:
    """Write one block: its documents' tokens, each row rolled."""
    needed = ["token_shard", "document", "stretch", "shift"]
    plan = rows_of(task.folder, task.split, needed).slice(task.block.start, len(task.block))
    rows = gather_rows(
        plan,
        task.tokens,
        row_tokens=task.row_tokens,
        n_ids=task.n_ids,
        shifts=plan["shift"].to_pylist(),
    )
    write_band(task.folder / f"{task.split}.zarr", task.block, rows)
    return Counts(seen=len(rows), kept=len(rows))


def rows_table(grid: Published) -> pa.Table:
    """The whole row table of a published grid."""
    return read_table(grid.folder / ROWS_FILE, ROWS.names)


def rows_of(folder: Path, split: str, columns: Sequence[str] = ROWS.names) -> pa.Table:
    """The row table of one split, or some columns of it, in row order."""
    read = list(dict.fromkeys(["split", *columns]))
    return of_split(read_table(folder / ROWS_FILE, read), split).select(columns)


def of_split(rows: pa.Table, split: str) -> pa.Table:
    """The rows of a row table that are of one split."""
    return rows.filter(pc.equal(rows["split"], split))


def decoded_rows(grid: Published, tokenizer: str, *, n_rows: int) -> list[Line]:
    """The beginnings of the first training rows as text, each with its document."""
    plan = rows_of(grid.folder, "train", ["url", "shift", "n_tokens", "id"])
    lines = plan.slice(0, n_rows).to_pylist()
    if not lines:
        return []
    reader = GridReader(grid.folder / "train.zarr")
    ids = reader.read(slice(0, len(lines)), slice(0, min(SHOWN_TOKENS, reader.row_tokens)))
    texts = (" ".join(text_of(tokenizer, row).split())[:SHOWN_CHARS] for row in ids)
    return [
        {"row": row, "begins": text, **line}
        for row, (text, line) in enumerate(zip(texts, lines, strict=True))
    ]


def every_row_is_planned_once(check_input: CheckInput) -> CheckResult:
    """``rows.parquet`` fits its schema, names each stretch of a document once, counts rows from 0
    without a gap, matches the arrays.
    """
    folder, params = check_input.folder, check_input.params
    table = read_table(folder / ROWS_FILE, ROWS.names)
    wrong = table_failures(folder / ROWS_FILE, ROWS)
    if n_twice := table.num_rows - len(set(row_keys(table))):
        wrong.append(f"{n_twice:,} stretches of documents have a second row")
    for split in SPLITS:
        rows = np.asarray(of_split(table, split)["row"])
        n_array = GridReader(folder / f"{split}.zarr").n_rows
        if not np.array_equal(rows, np.arange(n_array)):
            wrong.append(
                f"{split}: {len(rows):,} planned rows do not count the array's {n_array:,}"
            )
    n_tokens = np.asarray(table.filter(pc.equal(table["stretch"], 0))["n_tokens"], np.int64)
    most = params["rows_per_document"]
    n_due = int(rows_of_documents(n_tokens, row_tokens=params["row_tokens"], most=most).sum())
    if n_due != table.num_rows:
        wrong.append(f"{table.num_rows:,} rows, the documents give {n_due:,}")
    n_documents = pc.count_distinct(table["id"]).as_py()
    n_rows = sum(check_input.counts.extra[f"{split} rows"] for split in SPLITS)
    found = f"{table.num_rows:,} rows of {n_documents:,} documents"
    if (n_documents, table.num_rows) != (check_input.counts.seen, n_rows):
        wrong.append(f"{found}, the receipt has {n_rows:,} of {check_input.counts.seen:,}")
    return CheckResult(
        passed=not wrong,
        message="; ".join(wrong) or f"{found}, no stretch twice",
        values={"rows": table.num_rows},
    )


def rows_unroll_to_their_documents(check_input: CheckInput) -> CheckResult:
    """Rows read back from the Zarr, unrolled, are their documents' tokens over an eighth of the
    columns: an even 256 rows of each split, or one in 16.
    """
    tokens = check_input.only_input("token_documents").folder
    n_checked, wrong = 0, list[str]()
    table = read_table(check_input.folder / ROWS_FILE, ROWS.names)
    for split in SPLITS:
        reader, plan = GridReader(check_input.folder / f"{split}.zarr"), of_split(table, split)
        chosen = evenly_spaced(plan.num_rows, max(CHECKED_ROWS, plan.num_rows // CHECKED_SHARE))
        close = enumerate(by_chunk(chosen, reader.file_shape[0]))
        planned = [(number, rows, plan.take(rows)) for number, rows in close]
        found = by_workers(check_input, partial(_wrong_rows, reader.path, tokens), planned)
        wrong += [f"{split} row {row}" for rows in found for row in rows]
        n_checked += len(chosen)
    said = f"wrong: {', '.join(wrong[:5])}" if wrong else "all are their documents' tokens"
    return CheckResult(
        passed=not wrong,
        message=f"{n_checked:,} rows read back; {said}",
        values={"rows read back": n_checked, "wrong": len(wrong)},
    )


def _wrong_rows(array: Path, tokens: Path, part: tuple[int, list[int], pa.Table]) -> list[int]:
    """Those of some rows of an array, which are close together and planned so, that differ in the
    eighth of a number from their documents' tokens.
    """
    (number, rows, plan), reader = part, GridReader(array)
    columns = an_eighth(range(reader.row_tokens), reader.chunk_shape[1], number)
    read = reader.read(slice(rows[0], rows[-1] + 1), slice(columns.start, columns.stop))
    sizes = {"row_tokens": reader.row_tokens, "n_ids": reader.vocab_size}
    right = gather_columns(plan, tokens, columns, **sizes)
    is_wrong = (read[np.subtract(rows, rows[0])] != right).any(axis=1)
    return [row for row, wrong in zip(rows, is_wrong.tolist(), strict=True) if wrong]


def train_and_heldout_share_nothing(check_input: CheckInput) -> CheckResult:
    """No document and no text, by its digest, is on both sides of the split."""
    return shared_nothing([check_input.folder / ROWS_FILE])


def shared_nothing(tables: Sequence[Path]) -> CheckResult:
    """Whether no id and no digest of a text is both held out and trained on, in any tables of rows
    or pieces; keeps the smaller side and one table in memory.
    """
    shared = set[str]()
    heldout = pa.chunked_array(
        [chunk for table in tables for chunk in _keys(table, "heldout").chunks], pa.string()
    )
    for table in tables:
        keys = _keys(table, "train")
        shared |= set(keys.filter(pc.is_in(keys, value_set=heldout)).to_pylist())
    return CheckResult(
        passed=not shared,
        message=f"{len(shared):,} ids or digests on both sides"
        + (f", such as {min(shared)}" if shared else ""),
        values={"shared": len(shared)},
    )


def _keys(table: Path, split: str) -> pa.ChunkedArray:
    rows = of_split(read_table(table, ["split", "id", "tokenized_digest"]), split)
    chunks = [chunk for column in ("id", "tokenized_digest") for chunk in rows[column].chunks]
    keys = pa.chunked_array(chunks, pa.string())
    return keys.filter(pc.not_equal(keys, ""))


def order_and_shifts_are_uniform(check_input: CheckInput) -> CheckResult:
    """Priorities and shifts are spread as a uniform draw would be (Kolmogorov; a false alarm at
    most once in a million builds).
    """
    table = read_table(check_input.folder / ROWS_FILE, ["priority", "shift"])
    row_tokens = check_input.params["row_tokens"]
    p_order = uniform_on_a_line(np.asarray(table["priority"]) / 2.0**64)
    p_shift = uniform_on_a_line(np.asarray(table["shift"]) / row_tokens)
    found = f"p ≤ {p_order:.3g} for the order, ≤ {p_shift:.3g} for the shifts"
    return CheckResult(
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
    code_version="5",
    reads={"token_documents": SAME_SNAPSHOT, "heldout_pairs": SAME_SNAPSHOT.only_if(are_held_out)},
    params=lambda recipe, _: _params(recipe.token_grid),
    checks=(
        reads_all_upstream_documents("token_documents"),
        every_row_is_planned_once,
        rows_unroll_to_their_documents,
        train_and_heldout_share_nothing,
        order_and_shifts_are_uniform,
    ),
    columns=ROWS,
    group="tokens",
    job="snapshot_rows",
    kinds=("zarr", "numpy"),
    randomness=lambda recipe, _: drawn_by(recipe.token_grid.seed),
    write=write_token_grid,
)
"""Rows of 65,536 tokens, shuffled, rolled and split."""
