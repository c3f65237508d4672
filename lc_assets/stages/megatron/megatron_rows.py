"""`megatron_rows`: one snapshot's rows as Megatron data sets, and the GPT index that Megatron would
build over them.

Each row is a document of exactly ``row_tokens`` tokens, in the grid's order; no end-of-document
token is added. A split without rows has no files: Megatron cannot map an empty ``.bin``.
"""

from functools import partial
from pathlib import Path

import numpy as np

from lc_assets.builds.building import run_shards
from lc_assets.builds.check_runs import by_workers
from lc_assets.builds.checks import an_eighth, by_chunk, evenly_spaced
from lc_assets.builds.recipe import plain
from lc_assets.builds.settings.rows import MegatronSettings
from lc_assets.builds.stage import (
    SAME_SNAPSHOT,
    BuildContext,
    CheckInput,
    CheckResult,
    Stage,
    StagingFolder,
)
from lc_assets.counts import Counts
from lc_assets.errors import BadInput
from lc_assets.formats.arrays.chunks import plan_rows
from lc_assets.formats.arrays.grid import GridReader
from lc_assets.formats.megatron.gpt_index import read_gpt_index, write_gpt_index
from lc_assets.formats.megatron.indexed import MegatronReader, MegatronWriter
from lc_assets.lake.versions import Published
from lc_assets.mixing.gpt_index import build_gpt_index
from lc_assets.records import record
from lc_assets.tokens.dtypes import megatron_dtype
from lc_assets.vocabulary import SPLITS

COPIED_ROWS = 256
"""Rows in memory while they are copied: 32 MiB."""

CHECKED_ROWS = 64
"""Rows of each split that are compared with the grid."""

MOST_EPOCHS = 1000
"""Maximum number of epochs; more are assumed to be a mistake, and the index may not fit into
memory.
"""


def write_megatron_rows(context: BuildContext, staging: StagingFolder) -> Counts:
    """Write ``train`` and ``heldout`` of one snapshot for Megatron.

    Raises:
        BadInput: if far more samples are requested than its rows give.
    """
    settings = context.recipe.megatron_rows
    grid = staging.inputs[f"token_grid/{staging.key}"].folder
    tasks = [CopyTask(grid=grid, folder=staging.folder, name=split) for split in SPLITS]
    copied = run_shards(context, staging, copy_rows, tasks, what=f"Megatron {staging.key}")
    if (staging.folder / "train.idx").is_file():
        index_train(staging.folder, settings)
    return copied


@record
class CopyTask:
    """The rows of a grid's split ``name``, to be copied into ``folder``."""

    grid: Path
    folder: Path
    name: str

    def __str__(self) -> str:
        return f"{self.grid} {self.name}"


def copy_rows(task: CopyTask) -> Counts:
    """Write one split's rows as ``{split}.bin`` and ``{split}.idx``."""
    split, reader = task.name, GridReader(task.grid / f"{task.name}.zarr")
    if reader.n_rows:
        prefix, dtype = task.folder / split, megatron_dtype(reader.vocab_size)
        with MegatronWriter.publishing(prefix, dtype) as writer:
            for block in plan_rows(reader.n_rows, COPIED_ROWS):
                for row in reader.read(slice(block.start, block.stop)):
                    writer.add(row)
    return Counts(
        seen=reader.n_rows,
        kept=reader.n_rows,
        extra={f"{split} rows": reader.n_rows, "tokens": reader.n_rows * reader.row_tokens},
    )


def index_train(folder: Path, settings: MegatronSettings) -> None:
    """Write the GPT index over the training rows."""
    reader = MegatronReader(folder / "train")
    if settings.samples is not None:
        require_sensible(
            settings.samples,
            reader.n_tokens / settings.sequence_length,
            whose="megatron_rows.samples",
        )
    index = build_gpt_index(
        reader.lengths,
        sequence_length=settings.sequence_length,
        seed=settings.seed,
        n_samples=settings.samples,
    )
    write_gpt_index(folder / "train", index)


def require_sensible(n_samples: float, available: float, *, whose: str) -> None:
    """Reject a size that would repeat its source more than `MOST_EPOCHS` times.

    Raises:
        BadInput: if it does; states the available number of samples.
    """
    if n_samples > MOST_EPOCHS * available:
        raise BadInput(
            f"{whose} requests {n_samples:,.0f} samples, one epoch has {available:,.0f}: that is "
            f"more than {MOST_EPOCHS:,} epochs; request fewer samples, or shorter ones"
        )


def samples_of(megatron: Published) -> int:
    """Number of training samples a snapshot's GPT index gives."""
    folder = megatron.only("train.idx", "train_*.npy")
    return read_gpt_index(folder / "train").n_samples if (folder / "train.idx").is_file() else 0


def megatron_rows_are_the_grids_rows(check_input: CheckInput) -> CheckResult:
    """Each data set has the grid's rows, each exactly full; an even 64 of each split are compared
    over an eighth of the columns.
    """
    grid = check_input.only_input("token_grid").folder
    found = by_workers(check_input, partial(_wrong_rows, grid, check_input.folder), SPLITS)
    wrong = [words for complaints, _ in found for words in complaints]
    n_rows = sum(n_copied for _, n_copied in found)
    return CheckResult(
        passed=not wrong and n_rows == check_input.counts.kept,
        message="; ".join(wrong[:5])
        or f"{n_rows:,} rows, up to {CHECKED_ROWS} of each split compared with the grid",
        values={"rows": n_rows},
    )


def _wrong_rows(grid: Path, folder: Path, split: str) -> tuple[list[str], int]:
    """How the copy of a split differs from a grid, and its number of rows."""
    rows = GridReader(grid / f"{split}.zarr")
    if not rows.n_rows:
        return [], 0
    data, wrong = MegatronReader(folder / split), list[str]()
    if len(data) != rows.n_rows or not (np.asarray(data.lengths) == rows.row_tokens).all():
        wrong.append(
            f"{split}: {len(data):,} documents for {rows.n_rows:,} rows of {rows.row_tokens:,}"
        )
    chosen = evenly_spaced(rows.n_rows, CHECKED_ROWS)
    for number, close in enumerate(by_chunk(chosen, rows.chunk_shape[0])):
        columns = an_eighth(range(rows.row_tokens), rows.chunk_shape[1], number)
        first, tokens = close[0], slice(columns.start, columns.stop)
        read = rows.read(slice(first, close[-1] + 1), tokens)
        wrong += [
            f"{split} row {row}"
            for row in close
            if not np.array_equal(read[row - first], data.read(row, tokens.start, tokens.stop))
        ]
    return wrong, len(data)


def the_index_shuffles_whole_epochs(check_input: CheckInput) -> CheckResult:
    """The GPT index names every training document once per epoch, and its shuffle names every
    sample once.
    """
    if not (check_input.folder / "train.idx").is_file():
        return CheckResult(passed=True, message="no training rows, so no index")
    index = read_gpt_index(check_input.folder / "train")
    n_documents = len(MegatronReader(check_input.folder / "train"))
    known = bool(((index.document_index >= 0) & (index.document_index < n_documents)).all())
    epochs = np.bincount(index.document_index if known else [], minlength=n_documents)
    whole = known and bool((epochs == epochs[0]).all())
    once = bool((np.sort(index.shuffle_index) == np.arange(index.n_samples)).all())
    return CheckResult(
        passed=whole and once,
        message=f"{index.n_samples:,} samples over {int(epochs[0]):,} epochs of {n_documents:,} "
        "documents",
        values={"samples": index.n_samples, "epochs": int(epochs[0])},
    )


STAGE = Stage(
    name="megatron_rows",
    description=(
        "Train and held-out rows of one snapshot as Megatron .bin/.idx, with the GPT "
        "index that Megatron would build."
    ),
    code_version="2",
    reads={"token_grid": SAME_SNAPSHOT},
    params=lambda recipe, _: plain(recipe.megatron_rows),
    checks=(megatron_rows_are_the_grids_rows, the_index_shuffles_whole_epochs),
    group="training",
    job="snapshot_rows",
    kinds=("numpy",),
    counted="rows",
    randomness=lambda recipe, _: {
        "gpt index": f"numpy RandomState (MT19937), seed {recipe.megatron_rows.seed}"
    },
    write=write_megatron_rows,
)
"""Rows for Megatron, with their GPT index."""
