"""`clean_documents`: the documents of a partition that no stage excluded, as a corpus.

Each shard has its documents as compressed JSON lines or Parquet, a table that identifies them, and
a table of the excluded ones with reasons. A file's records are read again, so that each is written
with its original fields; its text is the filtered one without the removed spans. The stage is
optional: tokens and rows do not need it. It is the last stage of commands that output documents
(`lc dedup`, `lc decontaminate`), and a source of files can read its output.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from lc_assets.builds.building import run_shards
from lc_assets.builds.check_runs import by_workers
from lc_assets.builds.checks import (
    DOCUMENTS_SUFFIX,
    DROPPED_SUFFIX,
    JSON_SUFFIX,
    TABLE_SUFFIX,
    counts_add_up,
    documents_files,
    every_document_is_named_once,
    reads_all_upstream_documents,
    shard_counts_match,
)
from lc_assets.builds.recipe import Recipe
from lc_assets.builds.sharding import Read, Reads, Sharding
from lc_assets.builds.stage import (
    SAME_SNAPSHOT,
    BuildContext,
    CheckInput,
    CheckResult,
    Stage,
    StagingFolder,
)
from lc_assets.builds.tables import (
    read_lines,
    read_table,
)
from lc_assets.counts import Counts
from lc_assets.formats.corpora.json_lines import text_lengths
from lc_assets.lake.digests import digest_of
from lc_assets.lake.receipts import SCRATCH
from lc_assets.lake.versions import Published
from lc_assets.sources.opening import file_source
from lc_assets.sources.settings import source_of_key
from lc_assets.stages.decontamination.contaminated_documents import EVIDENCE_SUFFIX, INDEX
from lc_assets.stages.deduplication.paragraphs import (
    PARAGRAPHS_FILE,
    ParagraphsTask,
    publish_repeated,
)
from lc_assets.stages.deduplication.removals import remaining_read, removed_in
from lc_assets.stages.documents.cleaning import CLEAN, TEXT, CleanTask, clean_shard
from lc_assets.stages.documents.raw_snapshot import read_manifest


def write_clean_documents(context: BuildContext, staging: StagingFolder) -> Counts:
    """Write the documents of one partition that no stage excluded."""
    snapshot = staging.key
    raw = staging.inputs[f"raw_snapshot/{snapshot}"]
    files = {found.shard.name: found for found in read_manifest(raw)}
    found = staging.inputs.get(f"contaminated_documents/{snapshot}")
    removed = removed_in(staging.inputs, snapshot)
    shards = documents_files(staging.inputs[f"filtered_documents/{snapshot}"].folder)
    least_chars = context.recipe.clean_documents.paragraphs
    paragraphs = None
    if least_chars is not None and shards:
        paragraphs = staging.folder / PARAGRAPHS_FILE
        searches = [
            ParagraphsTask(
                documents=path,
                number=number,
                removed=removed.get(path.name.removesuffix(DOCUMENTS_SUFFIX), {}),
                least_chars=least_chars,
                work=staging.folder / SCRATCH / "paragraphs",
            )
            for number, path in enumerate(shards)
        ]
        prefer = context.recipe.removed_documents.prefer
        publish_repeated(searches, paragraphs, prefer, executor=context.executor)
    tasks = [
        CleanTask(
            documents=path,
            folder=staging.folder,
            file_format=context.recipe.clean_documents.file_format,
            removed=removed.get(name, {}),
            source=file_source(context.recipe.sources, snapshot),
            files=files[name],
            contamination=found.folder if found else None,
            settings=context.recipe.contaminated_documents,
            number=number,
            paragraphs=paragraphs,
        )
        for number, path in enumerate(shards)
        for name in [path.name.removesuffix(DOCUMENTS_SUFFIX)]
    ]
    return run_shards(context, staging, clean_shard, tasks, what=f"write {snapshot}")


def files_hold_the_documents(check_input: CheckInput) -> CheckResult:
    """Each file has as many documents as its table, with the same lengths."""
    text_field = check_input.params["text_field"] or None
    files = documents_files(check_input.folder)
    found = by_workers(check_input, partial(_other_lengths, text_field=text_field), files)
    wrong, n_documents = [name for name, _ in found if name], sum(n for _, n in found)
    return CheckResult(
        passed=not wrong,
        message=f"{n_documents:,} documents; {len(wrong):,} files differ from their tables"
        + (f", such as {wrong[0]}" if wrong else ""),
        values={"documents": n_documents, "differ": len(wrong)},
    )


def _other_lengths(documents: Path, text_field: str | None) -> tuple[str, int]:
    """Names a shard, given by its table, if its file has other lengths; and its documents."""
    name = documents.name.removesuffix(DOCUMENTS_SUFFIX)
    expected = read_table(documents, ["n_chars"])["n_chars"].to_pylist()
    found = list(_lengths(documents.with_name(name), text_field))
    return "" if found == expected else name, len(expected)


def _lengths(shard: Path, text_field: str | None) -> Iterator[int]:
    """Characters of each document in a shard's file; -1 for one that cannot be read."""
    table = shard.with_name(f"{shard.name}{TABLE_SUFFIX}")
    if table.is_file():
        yield from (len(line[TEXT]) for line in read_lines(table, [TEXT]))
        return
    yield from text_lengths(shard.with_name(f"{shard.name}{JSON_SUFFIX}"), text_field)


def _reads(inputs: Mapping[str, Published], key: str) -> dict[str, Reads]:
    """The inputs of each shard: its filtered documents, the exclusions, its file in the source,
    whose records are copied, and the spans to cut out of its texts.
    """
    files = {found.shard.name: found for found in read_manifest(inputs[f"raw_snapshot/{key}"])}
    contaminated = inputs.get(f"contaminated_documents/{key}")
    facts = [] if contaminated is None else contaminated.receipt.files
    found = {}
    for name, reads in remaining_read(inputs, key).items():
        records = files[name].documents.values()
        identities = (Read("records", "" if file is None else file.identity) for file in records)
        found[name] = (*reads, *identities)
        if contaminated is not None:
            # The matches of the shard, and the index that locates its items.
            ours = sorted(
                [fact.path, fact.sha256]
                for fact in facts
                if fact.path == f"{name}{EVIDENCE_SUFFIX}" or fact.path.startswith(f"{INDEX}/")
            )
            found[name] += (Read("contamination", digest_of(ours)),)
    return found


def _params(recipe: Recipe, key: str) -> dict[str, Any]:
    cutting = recipe.contaminated_documents.action == "cut"
    cut = {"margin": recipe.contaminated_documents.margin} if cutting else {}
    return cut | {
        "file_format": recipe.clean_documents.file_format,
        "paragraphs": recipe.clean_documents.paragraphs,
        "prefer": list(recipe.removed_documents.prefer)
        if recipe.clean_documents.paragraphs
        else [],
        "text_field": source_of_key(recipe.sources, key).text_field,
    }


STAGE = Stage(
    name="clean_documents",
    description=(
        "Documents of one snapshot that no stage removed, as JSON lines or Parquet; on request."
    ),
    code_version="3",
    reads={
        "raw_snapshot": SAME_SNAPSHOT,
        "filtered_documents": SAME_SNAPSHOT,
        "contaminated_documents": SAME_SNAPSHOT.only_if(
            lambda recipe: recipe.contaminated_documents.action == "cut"
        ),
        "removed_documents": SAME_SNAPSHOT,
    },
    params=_params,
    checks=(
        counts_add_up,
        reads_all_upstream_documents("filtered_documents"),
        every_document_is_named_once,
        files_hold_the_documents,
        shard_counts_match,
    ),
    columns=CLEAN,
    wanted=lambda recipe: recipe.clean_documents.wanted,
    sharding=Sharding(
        reads=_reads,
        suffixes=(JSON_SUFFIX, TABLE_SUFFIX, DOCUMENTS_SUFFIX, DROPPED_SUFFIX),
        # Paragraphs are compared across shards, so none is reused.
        idle=lambda params: params["paragraphs"] is not None,
    ),
    kinds=("json", "parquet"),
    write=write_clean_documents,
)
"""The documents that no stage removed, as JSON lines or Parquet."""
