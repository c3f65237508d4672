"""`packed_rows`: rows of a fixed length, filled with documents of any length, with the span of
every document.

It publishes rows as a token grid, the same pieces as Megatron documents, spans as arrays for
training and as a table, and optionally the rows' texts (docs/formats/packed.md). How rows are
filled: `lc_assets.packing`, docs/packing.md.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lc_assets.build.building import build, run_shards
from lc_assets.build.checks import reads_all_upstream_documents
from lc_assets.build.recipe import Recipe, plain
from lc_assets.build.settings.longpack import PackingSettings
from lc_assets.build.stage import (
    SAME_SNAPSHOT,
    WORKERS,
    BuildContext,
    Built,
    Stage,
    StagingFolder,
    later,
)
from lc_assets.counts import Counts
from lc_assets.errors import BadInput
from lc_assets.formats.arrays.npy import read_npy, write_npy
from lc_assets.formats.megatron.idx import idx_path
from lc_assets.formats.megatron.indexed import MegatronReader
from lc_assets.formats.tokenizers.named import sentence_flags
from lc_assets.lake.receipts import SCRATCH
from lc_assets.lake.staging import once
from lc_assets.lake.versions import Published
from lc_assets.packing.cutting import Ends, ends_in, spacing
from lc_assets.packing.methods import CUT_AT_ENDS
from lc_assets.packing.pieces import Balance, Packing, balance
from lc_assets.stages.packing.packed_checks import (
    every_token_is_packed_as_often_as_asked,
    packed_train_and_heldout_share_nothing,
    rows_are_filled_from_the_left,
    rows_hold_their_pieces,
    spans_are_megatrons_documents,
    the_method_kept_its_word,
)
from lc_assets.stages.packing.packing_plans import (
    drawn_by,
    ended_lengths,
    plan_packing,
    read_documents,
)
from lc_assets.stages.packing.packing_writing import (
    PackedTask,
    Vocabulary,
    write_plan,
    write_task,
)
from lc_assets.stages.tokens.packing_tokens import STAGE as PACKING_TOKENS
from lc_assets.vocabulary import SPLITS, SnapshotId

NOT_TAKEN = "not taken by the method"


def write_packed_rows(context: BuildContext, snapshot: SnapshotId) -> Built:
    """Publish one snapshot's packed rows.

    Raises:
        NotPublished: when the token ids of its documents are not published.
        BadInput: when documents must end with end of text and the tokenizer has none.
    """
    settings = context.recipe.packed_rows

    def fill(staging: StagingFolder) -> Counts:
        store = staging.inputs[f"packing_tokens/{snapshot}"]
        common = PackedTask(
            kind="rows",
            tokens=store.folder,
            folder=staging.folder,
            split="",
            groups=range(0),
            row_tokens=settings.row_tokens,
            vocabulary=vocabulary_of_store(store, settings),
            setting=context.recipe.token_documents.tokenizer,
            whole_rows=settings.megatron == "rows",
            block=range(0),
        )
        documents = read_documents(store.folder, settings)
        ends = None
        if settings.method in CUT_AT_ENDS and settings.cut_at == "ends":
            ends = _find_ends(context, staging, common, documents.shards)
        plans = plan_packing(documents, settings, ends)
        about = {"packing": settings.method, "documents_end": settings.append_eod}
        tasks = write_plan(plans, documents, about, common, texts=settings.texts)
        written = run_shards(context, staging, write_task, tasks, what=f"pack {snapshot}")
        counts = counted(plans, ended_lengths(documents, settings))
        return counts + Counts(extra=written.extra) if settings.texts else counts

    return build(context, STAGE, snapshot, fill, randomness=drawn_by(settings))


def vocabulary_of_store(store: Published, settings: PackingSettings) -> Vocabulary:
    """The vocabulary of a published token store.

    Raises:
        BadInput: when documents are to be ended and its tokenizer has no end of text.
    """
    made_by = store.receipt.fingerprint.params
    found = Vocabulary(
        tokenizer=made_by["tokenizer"], n_ids=int(made_by["n_ids"]), eot=made_by["eot"]
    )
    if settings.append_eod and found.eot is None:
        raise BadInput(
            f"{found.tokenizer} has no end of text to end documents with: set "
            "packed_rows.append_eod = false"
        )
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class EndsTask:
    """One shard of a token store, to be searched for ends of sentences and lines."""

    tokens: Path
    shard: str
    folder: Path
    setting: str
    segment_tokens: int

    @property
    def name(self) -> str:
        """The task's name."""
        return f"ends-{self.shard}"

    @property
    def files(self) -> tuple[Path, Path]:
        """Paths of the two arrays of ends, in scratch."""
        stem = self.folder / SCRATCH / self.name
        return stem.with_name(f"{self.name}_first.npy"), stem.with_name(f"{self.name}_token.npy")

    def __str__(self) -> str:
        return str(self.tokens / self.shard)


def _find_ends(
    context: BuildContext, staging: StagingFolder, common: PackedTask, shards: tuple[str, ...]
) -> Ends:
    """Where sentences and lines end in all documents, in the order of their shards."""
    most = context.recipe.packed_rows.segment_tokens
    tasks = [
        EndsTask(
            tokens=common.tokens,
            shard=shard,
            folder=common.folder,
            setting=common.setting,
            segment_tokens=most,
        )
        for shard in shards
    ]
    run_shards(context, staging, find_ends, tasks, what="find ends")
    found = [tuple(map(read_npy, task.files)) for task in tasks]
    counts = np.concatenate([np.zeros(1, np.int64), *(np.diff(first) for first, _ in found)])
    token = np.concatenate([np.empty(0, np.int64), *(token for _, token in found)])
    return Ends(first=np.cumsum(counts), token=token)


@once
def find_ends(task: EndsTask) -> Counts:
    """Find the ends of one shard's documents."""
    flags, prefix = sentence_flags(task.setting), task.tokens / task.shard
    documents = MegatronReader(prefix) if idx_path(prefix).is_file() else ()
    found = Ends.joined(ends_in(ids, flags, spacing(task.segment_tokens)) for ids in documents)
    for path, array in zip(task.files, (found.first, found.token), strict=True):
        write_npy(path, array)
    return Counts()


_SUMS: Final = {
    "repeated": "tokens repeated",
    "in_rows": "tokens in rows",
    "padding": "padding",
    "pieces": "pieces",
    "cut": "documents cut",
    "cut_needlessly": "documents cut though a row holds them",
    "attention": "attention within pieces",
}
"""Counts that are summed over the splits: field of `Balance` → name in the receipt."""


def counted(plans: dict[str, Packing], lengths: NDArray[np.int64]) -> Counts:
    """Counts: documents packed and skipped, tokens, rows, padding, cuts."""
    taken = lengths == 0
    for plan in plans.values():
        taken[plan.pieces.document] = True
    sums = [balance(plan, lengths) for plan in plans.values()]
    n_left = int((~taken).sum())
    dropped = {NOT_TAKEN: n_left} if n_left else {}
    return Counts(
        seen=len(lengths),
        kept=len(lengths) - n_left,
        dropped=dropped,
        failed_rules=dropped,
        extra={
            "tokens of documents": int(lengths.sum()),
            "tokens left over": int(lengths[~taken].sum()),
            **{name: sum(getattr(found, own) for found in sums) for own, name in _SUMS.items()},
            **{f"{split} rows": plan.n_rows for split, plan in plans.items()},
        },
    )


def balance_of(counts: Counts, settings: PackingSettings) -> Balance:
    """The counts of a receipt as a balance of all splits together."""
    extra = counts.extra
    return Balance(
        documents=counts.seen,
        taken=counts.kept,
        tokens=extra["tokens of documents"],
        left_over=extra["tokens left over"],
        rows=sum(extra[f"{split} rows"] for split in SPLITS),
        row_tokens=settings.row_tokens,
        **{own: extra[name] for own, name in _SUMS.items()},
    )


def _params(recipe: Recipe, _: str) -> dict[str, Any]:
    """All settings but those of `packing_tokens`; those added later where they are given."""
    return {
        name: value
        for name, value in plain(recipe.packed_rows).items()
        if name not in {"wanted", "documents", "min_tokens"}
        and (value or name not in {"order_by", "group_by", "similar", "texts"})
    }


STAGE = Stage(
    name="packed_rows",
    description=(
        "Rows of fixed length filled with documents of any length: Zarr, Megatron files, "
        "and spans for masks."
    ),
    code_version="1",
    reads={PACKING_TOKENS: SAME_SNAPSHOT},
    params=_params,
    checks=(
        reads_all_upstream_documents("packing_tokens"),
        every_token_is_packed_as_often_as_asked,
        rows_are_filled_from_the_left,
        spans_are_megatrons_documents,
        rows_hold_their_pieces,
        the_method_kept_its_word,
        packed_train_and_heldout_share_nothing,
    ),
    wanted=lambda recipe: recipe.packed_rows.wanted,
    group="packing",
    job="snapshot_packing",
    pool=WORKERS,
    kinds=("zarr", "numpy", "parquet"),
    write=write_packed_rows,
    show=later("lc_assets.stages.shown.rows:packed_rows"),
)
"""Documents of any length in rows of a fixed one."""
