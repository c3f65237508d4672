"""`grid`: the first 65,536 tokens of each document become a row: shuffled, rolled, split, written as Zarr.

Every draw belongs to one document and depends on it alone (`lc_assets.tokens.orders`): its priority decides
its place, its shift where its row begins, the hash of its content whether it is held out. So adding or
withdrawing other documents moves none of them. The plan is a table, ``rows.parquet``, published first; the
doing is a loop over bands of 2,048 rows.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lc_assets.errors import Mismatch
from lc_assets.formats.chunks import RowBlock
from lc_assets.formats.gpt2_tokenizer import gpt2_text
from lc_assets.formats.grid import GridLayout, GridReader, create_grid, plan_bands, write_band
from lc_assets.formats.megatron import MegatronReader
from lc_assets.randomness import KEYED_ALGORITHM
from lc_assets.stages.building import Built, Draft, Evidence, Finding, Stage, Workshop, build, run_shards
from lc_assets.stages.claims import DOCUMENTS_SUFFIX, all_that_was_kept_came_in, documents_files, evenly_spaced
from lc_assets.stages.recipe import GriddingSettings, plain
from lc_assets.stages.schemas import complaints_about
from lc_assets.stages.tables import ROWS, TOKENIZED, read_table, write_table
from lc_assets.stages.uniformity import FALSE_ALARM, uniform_on_a_line
from lc_assets.storage.lake import Published
from lc_assets.storage.workings import once
from lc_assets.tally import Tally
from lc_assets.tokens.orders import heldout, priorities, shifts, shuffled
from lc_assets.tokens.rolling import roll_rows, unroll_rows
from lc_assets.vocabulary import GPT2_VOCAB_SIZE, SPLITS, SnapshotId

ROWS_FILE = "rows.parquet"
CHECKED_ROWS = 256
"""Rows of each split that the audit unrolls and compares with the token store: all of them when there are fewer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BandTask:
    """One band of rows of one split to be written into ``folder``."""

    tokens: Path
    folder: Path
    split: str
    block: RowBlock
    row_tokens: int

    @property
    def name(self) -> str:
        """Split and first row."""
        return f"{self.split}-{self.block.start:09d}"

    def __str__(self) -> str:
        return f"{self.folder.name} {self.name}"


def lay_grid(workshop: Workshop, snapshot: SnapshotId) -> Built:
    """Publish one snapshot's rows.

    Raises:
        NotPublished: when the token documents are not there.
        Mismatch: when they were published for shorter rows.
    """
    settings = workshop.recipe.gridding

    def fill(draft: Draft) -> Tally:
        tokens = draft.inputs[f"tokens/{snapshot}"].folder
        _require_long_enough(draft.inputs[f"tokens/{snapshot}"], settings)
        rows = plan_rows(_documents(tokens), settings)
        write_table(draft.folder / ROWS_FILE, rows)
        tasks = [task for split in SPLITS for task in _bands(tokens, draft.folder, split, rows, settings)]
        written = run_shards(workshop, draft, write_rows, tasks, what=f"grid {snapshot}")
        by_split = {f"{split} rows": _n_rows(rows, split) for split in SPLITS}
        return Tally(seen=rows.num_rows, kept=written.kept, also=by_split | {"tokens": rows.num_rows * settings.row_tokens})

    return build(workshop, STAGE, snapshot, fill, randomness=drawn_by(settings.seed))


def _require_long_enough(tokens: Published, settings: GriddingSettings) -> None:
    """Within one recipe documents are never shorter than rows; what stands published may be of an older recipe."""
    shortest = int(tokens.receipt.fingerprint.params["min_tokens"])
    if shortest < settings.row_tokens:
        raise Mismatch(
            f"{tokens.name} holds documents from {shortest:,} tokens on, rows have {settings.row_tokens:,}:"
            " it was made by another recipe; materialize it by this one first"
        )


def drawn_by(seed: int) -> dict[str, str]:
    """What a grid draws, for its receipt."""
    return {name: f"{KEYED_ALGORITHM}, seed {seed}, key {key}" for name, key in (("shuffle", "id"), ("shift", "id"), ("heldout", "digest"))}


def plan_rows(documents: pa.Table, settings: GriddingSettings) -> pa.Table:
    """Decide for every document its split, row and shift.

    Args:
        documents: lines of `TOKENIZED` with ``token_shard``, in any order.
        settings: of the grid.

    Returns:
        A table of `ROWS`: train first, each split's rows in order.
    """
    ids = documents["id"].to_pylist()
    priority = priorities(ids, seed=settings.seed)
    # The hash is of the content, so one text found in two snapshots never lands on both sides of the split.
    out = heldout(_content_keys(documents), seed=settings.seed, fraction=settings.heldout_fraction)
    table = (
        documents.append_column("shift", pa.array(shifts(ids, seed=settings.seed, row_tokens=settings.row_tokens)))
        .append_column("priority", pa.array(priority))
        .append_column("split", pc.if_else(pa.array(out), "heldout", "train"))
        .take(pa.array(shuffled(priority, ids)))
    )
    parts = [table.filter(pc.equal(table["split"], split)) for split in SPLITS]
    return pa.concat_tables([part.append_column("row", pa.array(np.arange(part.num_rows))).select(ROWS.names) for part in parts]).cast(ROWS)


@once
def write_rows(task: BandTask) -> Tally:
    """Write one band: gather its documents' first tokens, roll each, hand the band to the grid."""
    plan = _plan_of(task)
    rows = gather(plan, task.tokens, row_tokens=task.row_tokens)
    write_band(task.folder / f"{task.split}.zarr", task.block, roll_rows(rows, np.asarray(plan["shift"])))
    return Tally(seen=len(rows), kept=len(rows))


def gather(plan: pa.Table, tokens: Path, *, row_tokens: int) -> NDArray[Any]:
    """The first ``row_tokens`` tokens of each planned document, in the plan's order; uint16, row × token."""
    readers = _readers(plan, tokens)
    lines = zip(plan["token_shard"].to_pylist(), plan["document"].to_pylist(), strict=True)
    return np.stack([readers[shard].read(document, 0, row_tokens) for shard, document in lines])


def _readers(plan: pa.Table, tokens: Path) -> Mapping[str, MegatronReader]:
    return {shard: MegatronReader(tokens / shard) for shard in plan["token_shard"].unique().to_pylist()}


def _documents(tokens: Path) -> pa.Table:
    parts = [read_table(path, TOKENIZED.names).append_column("token_shard", _repeated(path)) for path in documents_files(tokens)]
    empty = pa.schema([*TOKENIZED, ("token_shard", pa.string())]).empty_table()
    return pa.concat_tables([empty, *parts])


def _repeated(path: Path) -> pa.Array:
    return pa.repeat(path.name.removesuffix(DOCUMENTS_SUFFIX), read_table(path, ["id"]).num_rows)


def _content_keys(documents: pa.Table) -> list[str]:
    lines = zip(documents["digest"].to_pylist(), documents["id"].to_pylist(), strict=True)
    return [digest or identity for digest, identity in lines]


def _bands(tokens: Path, folder: Path, split: str, rows: pa.Table, settings: GriddingSettings) -> list[BandTask]:
    layout = GridLayout(n_rows=_n_rows(rows, split), row_tokens=settings.row_tokens, vocab_size=GPT2_VOCAB_SIZE)
    create_grid(folder / f"{split}.zarr", layout)
    blocks = plan_bands(layout)
    return [BandTask(tokens=tokens, folder=folder, split=split, block=block, row_tokens=settings.row_tokens) for block in blocks]


def _n_rows(rows: pa.Table, split: str) -> int:
    return int(pc.sum(pc.equal(rows["split"], split)).as_py() or 0)


def rows_table(grid: Published) -> pa.Table:
    """The whole row table of a published grid."""
    return read_table(grid.folder / ROWS_FILE, ROWS.names)


def decoded_rows(grid: Published, *, n_rows: int, n_tokens: int = 48) -> list[dict[str, Any]]:
    """The beginnings of the first training rows as text, for people, with the document each came from."""
    plan = rows_of(grid.folder, "train").slice(0, n_rows)
    reader = GridReader(grid.folder / "train.zarr")
    heads: Iterable[Any] = reader.read(slice(0, plan.num_rows), slice(0, min(n_tokens, reader.row_tokens))) if plan.num_rows else []
    lines = plan.select(["row", "id", "url", "shift", "n_tokens"]).to_pylist()
    return [line | {"begins": gpt2_text(head)} for line, head in zip(lines, heads, strict=True)]


def rows_of(folder: Path, split: str) -> pa.Table:
    """The row table of one split, in row order."""
    table = read_table(folder / ROWS_FILE, ROWS.names)
    return table.filter(pc.equal(table["split"], split))


def _plan_of(task: BandTask) -> pa.Table:
    return rows_of(task.folder, task.split).slice(task.block.start, task.block.stop - task.block.start)


def every_row_is_planned_once(evidence: Evidence) -> Finding:
    """``rows.parquet`` fits its schema, names each document once, counts rows from 0 without a gap, and matches the arrays."""
    table = read_table(evidence.folder / ROWS_FILE, ROWS.names)
    wrong = complaints_about([evidence.folder / ROWS_FILE], ROWS, unique="id")
    for split in SPLITS:
        rows = np.asarray(rows_of(evidence.folder, split)["row"])
        n_array = GridReader(evidence.folder / f"{split}.zarr").n_rows
        if not np.array_equal(rows, np.arange(n_array)):
            wrong.append(f"{split}: {len(rows):,} planned rows do not count the array's {n_array:,}")
    if table.num_rows != evidence.tally.seen:
        wrong.append(f"{table.num_rows:,} rows, the receipt says {evidence.tally.seen:,}")
    return Finding(
        claim="every_row_is_planned_once",
        passed=not wrong,
        words="; ".join(wrong) or f"{table.num_rows:,} rows, each of another document",
        numbers={"rows": table.num_rows},
    )


def rows_unroll_to_their_documents(evidence: Evidence) -> Finding:
    """Rows read back from the Zarr, unrolled, are the first tokens of their documents: all rows, or an even 256 of each split."""
    tokens = evidence.only_input("tokens").folder
    n_checked, wrong = 0, []
    for split in SPLITS:
        plan = rows_of(evidence.folder, split)
        chosen = evenly_spaced(plan.num_rows, CHECKED_ROWS)
        wrong += [f"{split} row {row}" for row in chosen if not _row_is_right(evidence.folder, split, plan.slice(row, 1), tokens)]
        n_checked += len(chosen)
    return Finding(
        claim="rows_unroll_to_their_documents",
        passed=not wrong,
        words=f"{n_checked:,} rows read back"
        + (f"; wrong: {', '.join(wrong[:5])}" if wrong else ", all are their documents' first tokens"),
        numbers={"rows read back": n_checked, "wrong": len(wrong)},
    )


def _row_is_right(folder: Path, split: str, plan: pa.Table, tokens: Path) -> bool:
    reader = GridReader(folder / f"{split}.zarr")
    row = plan["row"][0].as_py()
    found = unroll_rows(reader.read(slice(row, row + 1), slice(0, reader.row_tokens)), np.asarray(plan["shift"]))
    return bool(np.array_equal(found, gather(plan, tokens, row_tokens=reader.row_tokens)))


def train_and_heldout_share_nothing(evidence: Evidence) -> Finding:
    """No document and no content digest is on both sides of the split."""
    sides = [{key for column in ("id", "digest") for key in rows_of(evidence.folder, split)[column].to_pylist() if key} for split in SPLITS]
    shared = set.intersection(*sides)
    return Finding(
        claim="train_and_heldout_share_nothing",
        passed=not shared,
        words=f"{len(shared):,} ids or digests on both sides" + (f", such as {min(shared)}" if shared else ""),
        numbers={"shared": len(shared), **{f"{split} rows": rows_of(evidence.folder, split).num_rows for split in SPLITS}},
    )


def order_and_shifts_are_uniform(evidence: Evidence) -> Finding:
    """Priorities and shifts are spread as a uniform draw would be (Kolmogorov; a false alarm at most once in a million builds)."""
    table = read_table(evidence.folder / ROWS_FILE, ["priority", "shift"])
    row_tokens = evidence.fingerprint.params["row_tokens"]
    p_order = uniform_on_a_line(np.asarray(table["priority"]) / 2.0**64)
    p_shift = uniform_on_a_line(np.asarray(table["shift"]) / row_tokens)
    found = f"p ≤ {p_order:.3g} for the order, ≤ {p_shift:.3g} for the shifts"
    return Finding(
        claim="order_and_shifts_are_uniform",
        passed=min(p_order, p_shift) >= FALSE_ALARM / 2,
        words=f"{found}, over {table.num_rows:,} rows; alarm below {FALSE_ALARM / 2:g}",
        numbers={"p of the order": p_order, "p of the shifts": p_shift},
    )


STAGE = Stage(
    name="grid",
    code_version="1",
    upstream=("tokens",),
    params=lambda recipe, _: plain(recipe.gridding),
    claims=(
        all_that_was_kept_came_in("tokens"),
        every_row_is_planned_once,
        rows_unroll_to_their_documents,
        train_and_heldout_share_nothing,
        order_and_shifts_are_uniform,
    ),
)
"""Rows of 65,536 tokens, shuffled, rolled and split."""
