"""`packed_rows`: rows of a fixed length, filled with documents of any length, with every span of
theirs known.

Published are rows as a token grid, the same pieces as Megatron's documents, and the spans, as
arrays for training and as a table for people (docs/formats/packed.md). Here: one snapshot's
version. Not here: how rows are filled (`lc_assets.packing`, docs/packing.md), what must hold of
them (`stages.packed_claims`).
"""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lc_assets.build.building import (
    build,
    run_shards,
)
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
from lc_assets.build.tables import opened_table
from lc_assets.counts import Counts
from lc_assets.errors import BadInput
from lc_assets.formats.arrays.grid import GridReader
from lc_assets.formats.packed_spans import PackedSpans
from lc_assets.formats.tokenizers.named import text_of
from lc_assets.lake.versions import Published
from lc_assets.packing.cutting import Ends
from lc_assets.packing.methods import CUT_AT_ENDS
from lc_assets.packing.pieces import Balance, Packing, balance
from lc_assets.stages.packing.packed_claims import (
    every_token_is_packed_as_often_as_asked,
    packed_train_and_heldout_share_nothing,
    rows_are_filled_from_the_left,
    rows_hold_their_pieces,
    spans_are_megatrons_documents,
    the_method_kept_its_word,
)
from lc_assets.stages.packing.packing_documents import PackingDocuments, read_documents
from lc_assets.stages.packing.packing_ends import ends_tasks, find_ends, read_ends
from lc_assets.stages.packing.packing_plans import drawn_by, ended_lengths, plan_packing, source_of
from lc_assets.stages.packing.packing_tables import SPANS_FILE
from lc_assets.stages.packing.packing_writing import Vocabulary, write_plan, write_task
from lc_assets.stages.tokens.packing_tokens import STAGE as PACKING_TOKENS
from lc_assets.vocabulary import SPLITS, SnapshotId

NOT_TAKEN = "not taken by the method"


def write_packed_rows(context: BuildContext, snapshot: SnapshotId) -> Built:
    """Publish one snapshot's packed rows.

    Raises:
        NotPublished: when the token ids of its documents are not there.
        BadInput: when documents are to be ended and the tokenizer has no end of text.
    """
    settings = context.recipe.packed_rows

    def fill(staging: StagingFolder) -> Counts:
        store = staging.inputs[f"packing_tokens/{snapshot}"]
        vocabulary = vocabulary_of_store(store, settings)
        documents = read_documents(store.folder, source=source_of(settings))
        ends = _ends(context, staging, store, documents)
        plans = plan_packing(documents, settings, ends)
        about = {"packing": settings.method, "documents_end": settings.append_eod}
        tasks = write_plan(
            plans,
            documents,
            store.folder,
            staging.folder,
            vocabulary,
            about=about,
            whole_rows=settings.megatron == "rows",
        )
        run_shards(context, staging, write_task, tasks, what=f"pack {snapshot}")
        return counted(plans, ended_lengths(documents, settings))

    return build(context, STAGE, snapshot, fill, randomness=drawn_by(settings))


def vocabulary_of_store(store: Published, settings: PackingSettings) -> Vocabulary:
    """What the ids of a published token store mean.

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
            "packed_rows.append_eod "
            "= false"
        )
    return found


def _ends(
    context: BuildContext, staging: StagingFolder, store: Published, documents: PackingDocuments
) -> Ends | None:
    settings = context.recipe.packed_rows
    if settings.method not in CUT_AT_ENDS or settings.cut_at == "anywhere":
        return None
    tasks = ends_tasks(
        documents.shards,
        store.folder,
        staging.folder,
        tokenizer=context.recipe.token_documents.tokenizer,
        n_ids=int(store.receipt.fingerprint.params["n_ids"]),
        segment_tokens=settings.segment_tokens,
    )
    run_shards(context, staging, find_ends, tasks, what="find ends")
    return read_ends(tasks)


def counted(plans: dict[str, Packing], lengths: np.ndarray) -> Counts:
    """What went where: documents kept and not taken, tokens, rows, padding, cuts."""
    taken = np.zeros(len(lengths), np.bool_)
    for plan in plans.values():
        taken[plan.pieces.document] = True
    taken |= lengths == 0
    sums = [balance(plan, lengths) for plan in plans.values()]
    n_taken = int(taken.sum())
    dropped = {NOT_TAKEN: len(lengths) - n_taken} if n_taken < len(lengths) else {}
    extra = {
        "tokens of documents": int(lengths.sum()),
        "tokens left over": int(lengths[~taken].sum()),
        "tokens repeated": sum(found.repeated for found in sums),
        "tokens in rows": sum(found.in_rows for found in sums),
        "padding": sum(found.padding for found in sums),
        "pieces": sum(found.pieces for found in sums),
        "documents cut": sum(found.cut for found in sums),
        "documents cut though a row holds them": sum(found.cut_needlessly for found in sums),
        "attention within pieces": sum(found.attention for found in sums),
        **{f"{split} rows": plan.n_rows for split, plan in plans.items()},
    }
    return Counts(
        seen=len(lengths), kept=n_taken, dropped=dropped, failed_rules=dropped, extra=extra
    )


def balance_of(counts: Counts, settings: PackingSettings) -> Balance:
    """The counts of a receipt as a balance of all splits together."""
    extra = counts.extra
    return Balance(
        documents=counts.seen,
        taken=counts.kept,
        tokens=extra["tokens of documents"],
        repeated=extra["tokens repeated"],
        left_over=extra["tokens left over"],
        in_rows=extra["tokens in rows"],
        padding=extra["padding"],
        rows=sum(extra[f"{split} rows"] for split in SPLITS),
        row_tokens=settings.row_tokens,
        pieces=extra["pieces"],
        cut=extra["documents cut"],
        cut_needlessly=extra["documents cut though a row holds them"],
        attention=extra["attention within pieces"],
    )


def piece_lengths(folder: Path) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Tokens of every piece of all splits, and pieces of every row."""
    lengths, counts = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for split in SPLITS:
        spans = PackedSpans.open(
            folder, split, row_tokens=GridReader(folder / f"{split}.zarr").row_tokens
        )
        lengths.append(spans.lengths)
        counts.append(np.diff(spans.first))
    return np.concatenate(lengths), np.concatenate(counts)


def decoded_packed_rows(
    folder: Path, tokenizer: str, *, n_rows: int, n_tokens: int = 16
) -> list[dict[str, Any]]:
    """How the pieces of the first training rows begin, as text, for people; a line per piece."""
    path = folder / SPANS_FILE
    with opened_table(path) as file:
        lines = file.read_row_group(0).to_pylist() if file.num_row_groups else []
    reader = GridReader(folder / "train.zarr")
    chosen = [line for line in lines if line["split"] == "train" and line["row"] < n_rows]
    rows = (
        reader.read(slice(0, min(n_rows, reader.n_rows)), slice(0, reader.row_tokens))
        if chosen
        else ()
    )
    return [
        {
            "row": line["row"],
            "piece": line["piece"],
            "begins": " ".join(
                text_of(
                    tokenizer, rows[line["row"]][line["row_start"] : line["row_stop"]][:n_tokens]
                ).split()
            )[:80],
            "tokens": (
                f"{line['document_start']:,} to {line['document_stop']:,} of {line['n_tokens']:,}"
            ),
            "url": line["url"],
        }
        for line in chosen
    ]


def _params(recipe: Recipe, _: str) -> dict[str, Any]:
    """All settings but which documents: that is `packing_tokens`' own."""
    return {
        name: value
        for name, value in plain(recipe.packed_rows).items()
        if name not in {"wanted", "documents", "min_tokens"}
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
