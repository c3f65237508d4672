"""`length_report`: how long the documents of a snapshot's sets are, in tokens: natural documents,
LongPack documents, spans of packed rows.

Publishes a table per set and shard, one of all sets by groups of lengths, and how roots grew by
packing. Not here: the sets (`lc_assets.stages.reports.document_sets`), the checks
(`lc_assets.stages.reports.length_claims`), growth (`lc_assets.packing`).
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lc_assets.build.building import (
    build,
    run_shards,
)
from lc_assets.build.recipe import Recipe
from lc_assets.build.stage import (
    SAME_SNAPSHOT,
    WORKERS,
    BuildContext,
    Built,
    Stage,
    StagingFolder,
    later,
)
from lc_assets.build.tables import TableWriter, read_lines, write_table
from lc_assets.counts import Counts
from lc_assets.errors import BadInput
from lc_assets.formats.tokenizers.named import tokenizer_of
from lc_assets.lake.staging import once
from lc_assets.packing.lengths import growth
from lc_assets.publishing import publish
from lc_assets.stages.deduplication.removed_documents import STAGE as REMOVED_DOCUMENTS
from lc_assets.stages.deduplication.removed_documents import removed_by_shard
from lc_assets.stages.documents.filtered_documents import STAGE as FILTERED_DOCUMENTS
from lc_assets.stages.longpack.gathering import SPANS_SUFFIX
from lc_assets.stages.longpack.growing import roots_tried
from lc_assets.stages.longpack.link_claims import STAGE as LINK_CLAIMS
from lc_assets.stages.longpack.longpack_documents import STAGE as LONGPACK_DOCUMENTS
from lc_assets.stages.packing.packed_rows import STAGE as PACKED_ROWS
from lc_assets.stages.reports.document_sets import (
    LONGPACK,
    NATURAL,
    PACKED,
    SetShard,
    piece_lengths,
    shards_of_sets,
    texts_of,
)
from lc_assets.stages.reports.length_claims import (
    SHARES_FILE,
    SUFFIX,
    every_document_has_a_length,
    lengths_are_counted_anew,
    lengths_files,
    shares_of,
    the_shares_are_those_of_the_lengths,
)
from lc_assets.stages.reports.report_tables import GROWTH, LENGTH_SHARES, LENGTHS
from lc_assets.stages.tokens.token_documents import params_of
from lc_assets.text.referrals.tables import LENGTHS as LOWER
from lc_assets.text.referrals.tables import group_names, group_of
from lc_assets.tokens.tokenizers import TextEncoding, escape
from lc_assets.vocabulary import SnapshotId

GROWTH_FILE: Final = "growth.parquet"
GAVE_UP: Final = "the tokenizer gave up"
NO_TOKENS: Final = "no tokens"


@dataclass(frozen=True, slots=True, kw_only=True)
class LengthTask:
    """One shard of a set to be counted into ``folder``; ``removed`` has reasons by id."""

    shard: SetShard
    folder: Path
    tokenizer: str
    text_encoding: TextEncoding
    removed: Mapping[str, str]

    @property
    def name(self) -> str:
        """The shard's name among those of all sets."""
        return self.shard.name

    def __str__(self) -> str:
        return self.name


def write_length_report(context: BuildContext, snapshot: SnapshotId) -> Built:
    """Publish the lengths of one snapshot's document sets.

    Raises:
        NotPublished: when a set that the recipe wants is not there.
    """
    settings = context.recipe.token_documents

    def fill(staging: StagingFolder) -> Counts:
        removed = removed_by_shard(staging.inputs[f"removed_documents/{snapshot}"].folder)
        tasks = [
            LengthTask(
                shard=shard,
                folder=staging.folder,
                tokenizer=settings.tokenizer,
                text_encoding=settings.text_encoding,
                removed=removed.get(shard.shard, {}) if shard.document_set == NATURAL else {},
            )
            for shard in shards_of_sets(staging.inputs, snapshot, context.recipe)
        ]
        counts = run_shards(context, staging, count_shard, tasks, what=f"lengths of {snapshot}")
        write_table(
            staging.folder / SHARES_FILE,
            pa.Table.from_pylist(shares_of(staging.folder), schema=LENGTH_SHARES),
        )
        write_table(
            staging.folder / GROWTH_FILE,
            pa.Table.from_pylist(_growth(staging, snapshot), schema=GROWTH),
        )
        return counts

    return build(context, STAGE, snapshot, fill)


@once
def count_shard(task: LengthTask) -> Counts:
    """Count the tokens of one shard's documents."""
    counts, dropped, names = Counter[str](), Counter[str](), group_names()
    path = task.folder / f"{task.name}{SUFFIX}"
    with publish(path) as staging:
        writer = TableWriter(staging, LENGTHS)
        for name, n_tokens, n_chars in _lengths(task, dropped):
            writer.add(
                {
                    "id": name,
                    "length_group": names[group_of(n_tokens)],
                    "n_tokens": n_tokens,
                    "n_chars": n_chars,
                }
            )
            counts["documents"] += 1
            counts["tokens"] += n_tokens
        writer.close()
    kept = counts["documents"]
    extra = {f"{task.shard.document_set} {what}": counts[what] for what in ("documents", "tokens")}
    return Counts(
        seen=kept + dropped.total(),
        kept=kept,
        dropped=dict(dropped),
        failed_rules=dict(dropped),
        extra=extra,
    )


def _lengths(task: LengthTask, dropped: Counter[str]) -> Iterator[tuple[str, int, int | None]]:
    if task.shard.document_set == PACKED:
        ids, lengths = piece_lengths(task.shard.path, task.shard.shard)
        yield from ((name, n_tokens, None) for name, n_tokens in zip(ids, lengths, strict=True))
        return
    tokenizer = tokenizer_of(task.tokenizer)
    for document in texts_of(task.shard):
        if document.id in task.removed:
            dropped[task.removed[document.id]] += 1
            continue
        try:
            n_tokens = len(tokenizer.encode(escape(document.text, task.text_encoding)))
        except BadInput:
            dropped[GAVE_UP] += 1
            continue
        if n_tokens:
            yield document.id, n_tokens, len(document.text)
        else:
            dropped[NO_TOKENS] += 1


def _growth(staging: StagingFolder, snapshot: str) -> list[dict[str, Any]]:
    """How roots grew: one line, or none when nothing was packed along links."""
    packed, claims = (
        staging.inputs.get(f"longpack_documents/{snapshot}"),
        staging.inputs.get(f"link_claims/{snapshot}"),
    )
    if packed is None or claims is None:
        return []
    found = growth(
        *_before_and_after(staging.folder, packed.folder),
        n_roots=roots_tried(claims.receipt.counts),
    )
    return [{name: getattr(found, name) for name in GROWTH.names}]


def _before_and_after(lengths: Path, packed: Path) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Tokens of the roots of packed documents, as their spans have them, and of the documents."""
    before, after = list[int](), list[int]()
    for path in lengths_files(lengths, LONGPACK):
        shard = path.name.removeprefix(f"{LONGPACK}-").removesuffix(SUFFIX)
        spans = read_lines(packed / f"{shard}{SPANS_SUFFIX}", ["id", "role", "n_tokens"])
        roots = {span["id"]: span["n_tokens"] for span in spans if span["role"] == "root"}
        for line in read_lines(path, ["id", "n_tokens"]):
            if line["id"] in roots:
                before.append(roots[line["id"]])
                after.append(line["n_tokens"])
    return np.array(before, np.int64), np.array(after, np.int64)


def _params(recipe: Recipe, _: str) -> dict[str, Any]:
    found = params_of(recipe.token_documents)
    return {
        name: found[name] for name in ("tokenizer", "n_ids", "tokenizer_sha256", "text_encoding")
    } | {"lengths": list(LOWER)}


STAGE = Stage(
    name="length_report",
    description=(
        "Lengths in tokens of one snapshot's natural documents, LongPack documents and "
        "packed spans; growth of roots."
    ),
    code_version="1",
    reads={
        FILTERED_DOCUMENTS: SAME_SNAPSHOT,
        REMOVED_DOCUMENTS: SAME_SNAPSHOT,
        LONGPACK_DOCUMENTS: SAME_SNAPSHOT.only_if(lambda recipe: recipe.longpack_documents.wanted),
        LINK_CLAIMS: SAME_SNAPSHOT.only_if(lambda recipe: recipe.longpack_documents.wanted),
        PACKED_ROWS: SAME_SNAPSHOT.only_if(lambda recipe: recipe.packed_rows.wanted),
    },
    params=_params,
    checks=(
        every_document_has_a_length,
        the_shares_are_those_of_the_lengths,
        lengths_are_counted_anew,
    ),
    wanted=lambda recipe: recipe.length_report.wanted or recipe.referral_report.wanted,
    group="reports",
    job="snapshot_reports",
    pool=WORKERS,
    kinds=("parquet",),
    write=write_length_report,
    show=later("lc_assets.stages.shown.reports:length_report"),
)
"""Lengths of a snapshot's document sets."""
