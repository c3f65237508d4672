"""`length_report`: lengths in tokens of the documents of a snapshot's sets.

Publishes a table per set and shard, one of all sets by groups of lengths, and how roots grew by
packing (`lc_assets.packing.lengths`).
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from lc_assets.arrays import Int64s
from lc_assets.builds.building import run_shards
from lc_assets.builds.checks import SPANS_SUFFIX
from lc_assets.builds.recipe import Recipe
from lc_assets.builds.stage import (
    SAME_SNAPSHOT,
    BuildContext,
    CheckInput,
    CheckResult,
    Stage,
    StagingFolder,
)
from lc_assets.builds.tables import (
    SPANS_FILE,
    Line,
    read_all,
    read_lines,
    write_table,
    writing_table,
)
from lc_assets.counts import Counts
from lc_assets.errors import BadInput
from lc_assets.formats.tokenizers.named import tokenizer_of
from lc_assets.packing.lengths import EDGES, bucket_counts, growth
from lc_assets.publishing import finished
from lc_assets.records import record
from lc_assets.stages.deduplication.removals import removed_in
from lc_assets.stages.longpack.page_index import roots_tried
from lc_assets.stages.reports.document_sets import (
    GROUPS,
    GROWTH,
    LENGTH_SHARES,
    LENGTHS,
    LONGPACK,
    NATURAL,
    PACKED,
    SETS,
    STAGE_OF_SET,
    SetShard,
    group_of,
    shards_of_sets,
    texts_of,
)
from lc_assets.stages.tokens.tokenizing_tasks import params_of
from lc_assets.tokens.tokenizers import TextEncoding, escape

SUFFIX = ".lengths.parquet"
SHARES_FILE = "lengths.parquet"
GROWTH_FILE = "growth.parquet"


@record
class LengthTask:
    """One shard of a set to be counted into ``folder``; ``removed`` has reasons by id."""

    shard: SetShard
    folder: Path
    text_encoding: TextEncoding
    removed: Mapping[str, str]

    @property
    def name(self) -> str:
        """The shard's name among those of all sets."""
        return self.shard.name

    def __str__(self) -> str:
        return self.name


def write_length_report(context: BuildContext, staging: StagingFolder) -> Counts:
    """Write the lengths of one snapshot's document sets.

    Raises:
        NotPublished: when a set that the recipe enables is missing.
    """
    snapshot = staging.key
    removed = removed_in(staging.inputs, snapshot)
    tasks = [
        LengthTask(
            shard=shard,
            folder=staging.folder,
            text_encoding=context.recipe.token_documents.text_encoding,
            removed=removed.get(shard.shard, {}) if shard.document_set == NATURAL else {},
        )
        for shard in shards_of_sets(staging.inputs, snapshot, context.recipe)
    ]
    counts = run_shards(context, staging, count_shard, tasks, what=f"lengths of {snapshot}")
    for name, lines, schema in (
        (SHARES_FILE, shares_of(staging.folder), LENGTH_SHARES),
        (GROWTH_FILE, _growth(staging, snapshot), GROWTH),
    ):
        write_table(staging.folder / name, pa.Table.from_pylist(lines, schema=schema))
    return counts


def count_shard(task: LengthTask) -> Counts:
    """Count the tokens of one shard's documents."""
    dropped, kept, tokens = Counter[str](), 0, 0
    with writing_table(task.folder / f"{task.name}{SUFFIX}", LENGTHS) as writer:
        for name, n_tokens, n_chars in _lengths(task, dropped):
            sizes = {"n_tokens": n_tokens, "n_chars": n_chars}
            writer.add({"id": name, "length_group": group_of(n_tokens)} | sizes)
            kept, tokens = kept + 1, tokens + n_tokens
    document_set = task.shard.document_set
    sums = {f"{document_set} documents": kept, f"{document_set} tokens": tokens}
    return Counts.of(kept, dropped, sums)


def _lengths(task: LengthTask, dropped: Counter[str]) -> Iterator[tuple[str, int, int | None]]:
    shard = task.shard
    if shard.document_set == PACKED:
        columns = ["split", "id", "row_start", "row_stop"]
        for line in read_lines(shard.path / SPANS_FILE, columns, batch_lines=4096):
            if line["split"] == shard.shard:
                yield line["id"], line["row_stop"] - line["row_start"], None
        return
    tokenizer = tokenizer_of(shard.tokenizer)
    for document in texts_of(shard):
        reason = task.removed.get(document.id)
        n_tokens = 0
        if reason is None:
            try:
                n_tokens = len(tokenizer.encode(escape(document.text, task.text_encoding)))
                reason = None if n_tokens else "no tokens"
            except BadInput:
                reason = "the tokenizer gave up"
        if reason is None:
            yield document.id, n_tokens, len(document.text)
        else:
            dropped[reason] += 1


def _growth(staging: StagingFolder, snapshot: str) -> list[Line]:
    """How roots grew: one line, or none when nothing was packed along links."""
    packed = staging.inputs.get(f"longpack_documents/{snapshot}")
    claims = staging.inputs.get(f"link_claims/{snapshot}")
    if packed is None or claims is None:
        return []
    before, after = list[int](), list[int]()
    for path in lengths_files(staging.folder, LONGPACK):
        shard = path.name.removeprefix(f"{LONGPACK}-").removesuffix(SUFFIX)
        spans = packed.folder / f"{shard}{SPANS_SUFFIX}"
        lines = read_lines(spans, ["id", "role", "n_tokens"])
        roots = {span["id"]: span["n_tokens"] for span in lines if span["role"] == "root"}
        for line in read_lines(path, ["id", "n_tokens"]):
            if line["id"] in roots:
                before.append(roots[line["id"]])
                after.append(line["n_tokens"])
    found = growth(
        np.array(before, np.int64),
        np.array(after, np.int64),
        n_roots=roots_tried(claims.counts),
    )
    return [{name: getattr(found, name) for name in GROWTH.names}]


def lengths_files(folder: Path, document_set: str) -> list[Path]:
    """The tables of lengths of a set, sorted by shard."""
    return finished(folder.glob(f"{document_set}-*{SUFFIX}"))


def lengths_of(folder: Path, document_set: str) -> Int64s:
    """Tokens of each document of a set, shard by shard."""
    table = read_all(lengths_files(folder, document_set), LENGTHS, ["n_tokens"])
    return np.asarray(table["n_tokens"], np.int64)


def shares_of(folder: Path) -> list[Line]:
    """Lines of the table of all sets, from the tables of their documents."""
    lines = []
    for document_set in (name for name in SETS if lengths_files(folder, name)):
        groups = bucket_counts(lengths_of(folder, document_set))
        documents, tokens = [one.n_docs for one in groups], [one.n_tokens for one in groups]
        n_docs, n_tokens = max(sum(documents), 1), max(sum(tokens), 1)
        for number, lower in enumerate((0, *EDGES)):
            longer = sum(documents[number:])
            lines.append(
                {
                    "document_set": document_set,
                    "length_group": GROUPS[number],
                    "lower": lower,
                    "documents": documents[number],
                    "tokens": tokens[number],
                    "document_share": documents[number] / n_docs,
                    "token_share": tokens[number] / n_tokens,
                    "documents_from": longer,
                    "document_share_from": longer / n_docs,
                    "token_share_from": sum(tokens[number:]) / n_tokens,
                }
            )
    return lines


def every_document_has_a_length(check_input: CheckInput) -> CheckResult:
    """Tables and counts have the same rows and tokens, the sets have as many documents, and each
    document is in the group of its length.
    """
    found, came_in, counts = Counter[str](), 0, check_input.counts
    n_misplaced = 0
    for document_set, stage in STAGE_OF_SET.items():
        for path in lengths_files(check_input.folder, document_set):
            for line in read_lines(path, ["length_group", "n_tokens"], batch_lines=4096):
                found[f"{document_set} documents"] += 1
                found[f"{document_set} tokens"] += line["n_tokens"]
                n_misplaced += group_of(line["n_tokens"]) != line["length_group"]
        published = check_input.inputs.get(f"{stage}/{check_input.fingerprint.key}")
        if published is not None:
            upstream = published.counts
            came_in += upstream.extra["pieces"] if document_set == PACKED else upstream.kept
    wrong = [
        f"{what}: {found[what]:,} in the tables, {count:,} counted"
        for what, count in counts.extra.items()
        if found[what] != count
    ]
    if came_in != counts.seen:
        wrong.append(f"{came_in:,} documents upstream, {counts.seen:,} seen")
    if n_misplaced:
        wrong.append(f"{n_misplaced:,} documents in the wrong group")
    return CheckResult(
        passed=not wrong,
        message="; ".join(wrong) or f"{counts.kept:,} lengths of {came_in:,} documents",
        values={"lengths": counts.kept, "documents": came_in, "misplaced": n_misplaced},
    )


def _params(recipe: Recipe, _: str) -> dict[str, Any]:
    found = params_of(recipe.token_documents)
    names = ("tokenizer", "n_ids", "tokenizer_sha256", "text_encoding")
    return {name: found[name] for name in names} | {"lengths": [0, *EDGES]}


STAGE = Stage(
    name="length_report",
    description=(
        "Lengths in tokens of one snapshot's natural documents, LongPack documents and "
        "packed spans; growth of roots."
    ),
    code_version="1",
    reads={
        "filtered_documents": SAME_SNAPSHOT,
        "removed_documents": SAME_SNAPSHOT,
        "longpack_documents": SAME_SNAPSHOT.only_if(
            lambda recipe: recipe.longpack_documents.wanted
        ),
        "link_claims": SAME_SNAPSHOT.only_if(lambda recipe: recipe.longpack_documents.wanted),
        "packed_rows": SAME_SNAPSHOT.only_if(lambda recipe: recipe.packed_rows.wanted),
    },
    params=_params,
    checks=(every_document_has_a_length,),
    columns=LENGTH_SHARES,
    wanted=lambda recipe: recipe.length_report.wanted or recipe.referral_report.wanted,
    group="reports",
    job="snapshot_reports",
    write=write_length_report,
)
