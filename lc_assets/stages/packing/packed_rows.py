"""`packed_rows`: rows of a fixed length, filled with documents of any length, with the span of
every document.

It publishes rows as a token grid, the same pieces as Megatron documents, spans as arrays for
training and as a table, and optionally the rows' texts (docs/formats/packed.md). How rows are
filled: `lc_assets.packing`, docs/packing.md.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from lc_assets.arrays import Int64s
from lc_assets.builds.building import run_shards
from lc_assets.builds.checks import reads_all_upstream_documents
from lc_assets.builds.recipe import Recipe, plain
from lc_assets.builds.settings.longpack import PackingSettings
from lc_assets.builds.stage import (
    SAME_SNAPSHOT,
    BuildContext,
    Stage,
    StagingFolder,
)
from lc_assets.builds.tables import PACKED_SPANS
from lc_assets.counts import Counts
from lc_assets.errors import BadInput
from lc_assets.formats.tokenizers.files import Vocabulary
from lc_assets.lake.versions import Published
from lc_assets.packing.methods import CUT_AT_ENDS
from lc_assets.packing.pieces import Balance, Packing, balance
from lc_assets.stages.packing.packed_checks import (
    every_token_is_packed_as_planned,
    packed_train_and_heldout_share_nothing,
    rows_are_as_the_method_makes_them,
    rows_are_filled_from_the_left,
    rows_hold_their_pieces,
    spans_are_megatrons_documents,
)
from lc_assets.stages.packing.packing_plans import drawn_by, plan_packing, read_documents
from lc_assets.stages.packing.packing_writing import PackedTask, read_ends, write_plan, write_task
from lc_assets.stages.tokens.tokenized_text import are_held_out
from lc_assets.vocabulary import SPLITS

NOT_TAKEN = "not taken by the method"


def write_packed_rows(context: BuildContext, staging: StagingFolder) -> Counts:
    """Write one snapshot's packed rows.

    Raises:
        BadInput: when documents must end with end of text and the tokenizer has none.
    """
    snapshot = staging.key
    settings = context.recipe.packed_rows
    store = staging.inputs[f"packing_tokens/{snapshot}"]
    common = PackedTask(
        tokens=store.folder,
        folder=staging.folder,
        settings=settings,
        tokenizer=context.recipe.token_documents.tokenizer,
        vocabulary=vocabulary_of_store(store, settings),
    )
    documents = read_documents(store.folder, settings, staging.inputs, snapshot)
    ends = None
    if settings.method in CUT_AT_ENDS and settings.cut_at == "ends":
        tasks = [replace(common, kind="ends", part=shard) for shard in documents.shards]
        run_shards(context, staging, write_task, tasks, what="find ends")
        n_documents = np.bincount(documents.shard, minlength=len(tasks)).tolist()
        ends = read_ends(tasks, n_documents)
    plans = plan_packing(documents, ends)
    tasks = write_plan(plans, documents, common)
    run_shards(context, staging, write_task, tasks, what=f"pack {snapshot}")
    return counted(plans, documents.lengths)


def vocabulary_of_store(store: Published, settings: PackingSettings) -> Vocabulary:
    """The vocabulary of a published token store.

    Raises:
        BadInput: when documents are to be ended and its tokenizer has no end of text.
    """
    made_by = store.params
    found = Vocabulary(
        name=made_by["tokenizer"],
        n_ids=int(made_by["n_ids"]),
        eot=made_by["eot"],
        sha256=made_by["tokenizer_sha256"],
    )
    if settings.append_eod and found.eot is None:
        raise BadInput(
            f"{found.name} has no end of text to end documents with: set "
            "packed_rows.append_eod = false"
        )
    return found


LATER = ("equal_steps", "align_tokens")
_SUMS = {
    "repeated": "tokens repeated",
    "in_rows": "tokens in rows",
    "padding": "padding",
    "pieces": "pieces",
    "cut": "documents cut",
    "cut_needlessly": "documents cut though a row holds them",
    "attention": "attention within pieces",
}
"""Counts that are summed over the splits: field of `Balance` → name in the receipt."""


def counted(plans: dict[str, Packing], lengths: Int64s) -> Counts:
    """Counts: documents packed and skipped, tokens, rows, padding, cuts."""
    taken = lengths == 0
    for plan in plans.values():
        taken[plan.pieces.document] = True
    sums = [balance(plan, lengths) for plan in plans.values()]
    n_taken = int(taken.sum())
    return Counts.of(
        n_taken,
        {NOT_TAKEN: len(lengths) - n_taken},
        {
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
        and (value or name not in {"order_by", "group_by", "similar", "texts", *LATER})
    }


STAGE = Stage(
    name="packed_rows",
    description=(
        "Rows of fixed length filled with documents of any length: Zarr, Megatron files, "
        "and spans for masks."
    ),
    code_version="6",
    reads={"packing_tokens": SAME_SNAPSHOT, "heldout_pairs": SAME_SNAPSHOT.only_if(are_held_out)},
    params=_params,
    checks=(
        reads_all_upstream_documents("packing_tokens"),
        every_token_is_packed_as_planned,
        rows_are_filled_from_the_left,
        spans_are_megatrons_documents,
        rows_hold_their_pieces,
        rows_are_as_the_method_makes_them,
        packed_train_and_heldout_share_nothing,
    ),
    columns=PACKED_SPANS,
    wanted=lambda recipe: recipe.packed_rows.wanted,
    group="packing",
    job="snapshot_packing",
    kinds=("zarr", "numpy", "parquet"),
    randomness=lambda recipe, _: drawn_by(recipe.packed_rows, recipe.token_grid.seed),
    write=write_packed_rows,
)
"""Documents of any length in rows of a fixed one."""
