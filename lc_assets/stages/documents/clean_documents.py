"""`clean_documents`: the documents of a partition that no stage excluded, as a corpus.

Each shard has its documents as compressed JSON lines or Parquet, a table that identifies them, and
a table of the excluded ones with reasons. The stage is optional: tokens and rows do not need it. It
is the last stage of commands that output documents (`lc dedup`, `lc decontaminate`), and a source
of files can read its output.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from lc_assets.build.building import (
    build,
    run_shards,
)
from lc_assets.build.checks import (
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
from lc_assets.build.recipe import Recipe
from lc_assets.build.sharding import Read, Reads, Sharding
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
from lc_assets.build.tables import (
    read_lines,
    read_table,
)
from lc_assets.counts import Counts
from lc_assets.formats.corpora.containers import CorpusDocument
from lc_assets.formats.corpora.reading import read_corpus
from lc_assets.lake.digests import digest_of
from lc_assets.lake.receipts import SCRATCH
from lc_assets.lake.versions import Published
from lc_assets.sources.opening import file_source
from lc_assets.sources.settings import source_of_key
from lc_assets.stages.decontamination.contaminated_documents import EVIDENCE_SUFFIX, INDEX
from lc_assets.stages.decontamination.contaminated_documents import STAGE as CONTAMINATED_DOCUMENTS
from lc_assets.stages.deduplication.paragraphs import (
    PARAGRAPHS_FILE,
    ParagraphsTask,
    publish_repeated,
)
from lc_assets.stages.deduplication.removed_documents import STAGE as REMOVED_DOCUMENTS
from lc_assets.stages.deduplication.removed_documents import remaining_read, removed_in
from lc_assets.stages.documents.clean_shards import TEXT, CleanTask, clean_shard
from lc_assets.stages.documents.filtered_documents import STAGE as FILTERED_DOCUMENTS
from lc_assets.stages.documents.raw_snapshot import STAGE as RAW_SNAPSHOT
from lc_assets.stages.documents.raw_snapshot import read_manifest
from lc_assets.vocabulary import SnapshotId


def write_clean_documents(context: BuildContext, snapshot: SnapshotId) -> Built:
    """Publish the documents of one partition that no stage excluded.

    Raises:
        NotPublished: when the filtered documents or the exclusions are not published.
    """

    def fill(staging: StagingFolder) -> Counts:
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

    return build(context, STAGE, snapshot, fill)


def files_hold_the_documents(check_input: CheckInput) -> CheckResult:
    """Each file has as many documents as its table, with the same lengths."""
    wrong, n_documents = [], 0
    for path in documents_files(check_input.folder):
        name = path.name.removesuffix(DOCUMENTS_SUFFIX)
        expected = read_table(path, ["n_chars"])["n_chars"].to_pylist()
        n_documents += len(expected)
        if list(_lengths(check_input, name)) != expected:
            wrong.append(name)
    return CheckResult(
        passed=not wrong,
        message=f"{n_documents:,} documents; {len(wrong):,} files differ from their tables"
        + (f", such as {wrong[0]}" if wrong else ""),
        values={"documents": n_documents, "differ": len(wrong)},
    )


def _lengths(check_input: CheckInput, name: str) -> Iterator[int]:
    """Characters of each document in a shard's file; -1 for one that cannot be read."""
    table = check_input.folder / f"{name}{TABLE_SUFFIX}"
    if table.is_file():
        yield from (len(line[TEXT]) for line in read_lines(table, [TEXT]))
        return
    text_field = check_input.fingerprint.params["text_field"] or None
    for document in read_corpus(check_input.folder / f"{name}{JSON_SUFFIX}", text_field=text_field):
        yield len(document.text) if isinstance(document, CorpusDocument) else -1


def _reads(inputs: Mapping[str, Published], key: str) -> dict[str, Reads]:
    """The inputs of each shard: its filtered documents, the exclusions, its file in the source,
    whose records are copied, and the spans to cut out of its texts.
    """
    files = {found.shard.name: found for found in read_manifest(inputs[f"raw_snapshot/{key}"])}
    contaminated = inputs.get(f"contaminated_documents/{key}")
    found = {}
    for name, reads in remaining_read(inputs, key).items():
        file = files[name].parts["documents"]
        records = Read("records", "") if file is None else Read("records", file.identity)
        cut = () if contaminated is None else (_cut_read(contaminated, name),)
        found[name] = (*reads, records, *cut)
    return found


def _cut_read(contaminated: Published, shard: str) -> Read:
    """The matches of one shard, and the index that locates its items."""
    facts = contaminated.receipt.files
    ours = [
        [fact.path, fact.sha256]
        for fact in facts
        if fact.path == f"{shard}{EVIDENCE_SUFFIX}" or fact.path.startswith(f"{INDEX}/")
    ]
    return Read("contamination", digest_of(sorted(ours)))


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
    code_version="1",
    reads={
        RAW_SNAPSHOT: SAME_SNAPSHOT,
        FILTERED_DOCUMENTS: SAME_SNAPSHOT,
        CONTAMINATED_DOCUMENTS: SAME_SNAPSHOT.only_if(
            lambda recipe: recipe.contaminated_documents.action == "cut"
        ),
        REMOVED_DOCUMENTS: SAME_SNAPSHOT,
    },
    params=_params,
    checks=(
        counts_add_up,
        reads_all_upstream_documents("filtered_documents"),
        every_document_is_named_once,
        files_hold_the_documents,
        shard_counts_match,
    ),
    wanted=lambda recipe: recipe.clean_documents.wanted,
    sharding=Sharding(
        reads=_reads,
        suffixes=(JSON_SUFFIX, TABLE_SUFFIX, DOCUMENTS_SUFFIX, DROPPED_SUFFIX),
        # Paragraphs are compared across shards, so none is reused.
        idle=lambda params: params["paragraphs"] is not None,
    ),
    group="documents",
    pool=WORKERS,
    kinds=("json", "parquet"),
    write=write_clean_documents,
    show=later("lc_assets.stages.shown.documents:clean_documents"),
)
"""The documents that no stage removed, as JSON lines or Parquet."""
