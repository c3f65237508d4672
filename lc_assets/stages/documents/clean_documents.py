"""`clean_documents`: the documents of a partition that no stage excluded, as a corpus.

Each shard has its documents as compressed JSON lines or Parquet, a table that identifies them, and
a table of the excluded ones with reasons. A file's records are read again, so that each is written
with its original fields; its text is the filtered one without the removed spans. The stage is
optional: tokens and rows do not need it. It is the last stage of commands that output documents
(`lc dedup`, `lc decontaminate`), and a source of files can read its output.
"""

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from lc_assets.builds.building import run_shards
from lc_assets.builds.check_runs import by_workers
from lc_assets.builds.checks import (
    DOCUMENTS_SUFFIX,
    DROPPED_SUFFIX,
    JSON_SUFFIX,
    TABLE_SUFFIX,
    DocumentsTask,
    counts_add_up,
    documents_files,
    every_document_is_named_once,
    reads_all_upstream_documents,
    shard_counts_match,
)
from lc_assets.builds.columns import PLACES
from lc_assets.builds.recipe import Recipe
from lc_assets.builds.settings.common import DecontaminationSettings
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
    DROPPED,
    FILTERED,
    IDENTITY,
    read_lines,
    read_schema,
    read_table,
    writing_table,
)
from lc_assets.counts import Counts
from lc_assets.errors import Mismatch
from lc_assets.formats.corpora.containers import CorpusDocument, Unread, json_line, release_text
from lc_assets.formats.corpora.reading import text_lengths
from lc_assets.lake.digests import digest_of
from lc_assets.lake.receipts import SCRATCH
from lc_assets.lake.versions import Published
from lc_assets.publishing import gzipped, publish
from lc_assets.records import record
from lc_assets.sources.files import FileSource
from lc_assets.sources.opening import file_source
from lc_assets.sources.settings import source_of_key
from lc_assets.stages.decontamination.contaminated_documents import EVIDENCE_SUFFIX, INDEX, cutter
from lc_assets.stages.deduplication.paragraphs import (
    NOTHING_LEFT,
    PARAGRAPHS_FILE,
    ParagraphsTask,
    publish_repeated,
    spans_by_id,
)
from lc_assets.stages.deduplication.removals import remaining_read, removed_in
from lc_assets.stages.documents.dropping import dropped_line
from lc_assets.stages.documents.raw_snapshot import ShardFiles, read_manifest
from lc_assets.stages.documents.shard_inputs import file_records
from lc_assets.text.contamination.overlaps import without_spans
from lc_assets.tokens.tokenizers import n_characters

CLEAN = pa.schema({**IDENTITY, "date_download": "string", "n_chars": "int64"})
"""The published documents, in the order of their file."""
TEXT = "raw_content"


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


@record
class CleanTask(DocumentsTask):
    """One shard of filtered documents, to be written into ``folder``.

    Attributes:
        file_format: see `CleanDocumentsSettings`.
        removed: reason of each excluded document, by id.
        source: the files of the records; None if the filtered documents have all of their fields.
        files: the shard, and its file in the source.
        contamination: folder of the items to cut out; None if their documents are dropped.
        settings: the decontamination settings.
        number: of the shard.
        paragraphs: table of removed paragraphs; None if texts are unchanged.
    """

    file_format: str
    removed: Mapping[str, str]
    source: FileSource | None
    files: ShardFiles
    contamination: Path | None
    settings: DecontaminationSettings
    number: int
    paragraphs: Path | None


def clean_shard(task: CleanTask) -> Counts:
    """Write one shard."""
    dropped, extra, n_kept = Counter[str](), Counter[str](characters=0), 0
    edits = _edits_of(task)
    with contextlib.ExitStack() as stack:
        kept_table, dropped_table = (
            stack.enter_context(writing_table(task.folder / f"{task.name}{suffix}", schema))
            for suffix, schema in ((DOCUMENTS_SUFFIX, CLEAN), (DROPPED_SUFFIX, DROPPED))
        )
        write = _document_writer(task, stack)
        for line in read_lines(task.documents, batch_lines=16, utf8=TEXT):
            reason = task.removed.get(line["id"])
            if reason is None and edits and not _edited(line, edits, extra):
                reason = NOTHING_LEFT
            if reason is not None:
                dropped[reason] += 1
                dropped_table.add(dropped_line(line, reason))
                continue
            n_kept, n_chars = n_kept + 1, n_characters(line[TEXT])
            extra["characters"] += n_chars
            found = line | {"n_chars": n_chars}
            kept_table.add({name: found[name] for name in CLEAN.names})
            write(line)
    return Counts.of(n_kept, dropped, extra)


def _edits_of(task: CleanTask) -> dict[str, Callable[[str, str], str]]:
    """The edits of a document's text, functions of id and text, by kind."""
    edits: dict[str, Callable[[str, str], str]] = {}
    if task.paragraphs is not None:
        spans = spans_by_id(task.paragraphs, task.number)
        edits["edited"] = lambda name, text: without_spans(text, spans.get(name, []))
    if task.contamination is not None:
        edits["cut"] = cutter(task.contamination, task.name, task.settings)
    return edits


def _edited(
    line: dict[str, Any], edits: Mapping[str, Callable[[str, str], str]], extra: Counter[str]
) -> bool:
    """Edit a document's text and count the changes; return whether any text remains."""
    text = before = line[TEXT].decode()
    for what, edit in edits.items():
        n_before, text = len(text), edit(line["id"], text)
        n_gone = n_before - len(text)
        extra.update({f"documents {what}": int(n_gone > 0), f"characters {what}": n_gone})
    line[TEXT] = text.encode()
    return bool(text.strip()) or not before.strip()


def _document_writer(
    task: CleanTask, stack: contextlib.ExitStack
) -> Callable[[dict[str, Any]], object]:
    """Open the file of a shard's documents until ``stack`` is left; return what writes one line of
    the filtered table.
    """
    if task.file_format == "parquet":
        path = task.folder / f"{task.name}{TABLE_SUFFIX}"
        columns = [field for field in read_schema(task.documents) if field != PLACES]
        table = stack.enter_context(writing_table(path, pa.schema(columns)))
        return lambda line: table.add(line, n_bytes=len(line[TEXT]))
    staging = stack.enter_context(publish(task.folder / f"{task.name}{JSON_SUFFIX}"))
    stream = stack.enter_context(gzipped(staging))
    source = task.source
    records = source and file_records(source, task.files, task.folder)
    return lambda line: stream.write(
        json_line(_record_of(line, records)) if records else _json_line(line)
    )


def _json_line(line: dict[str, Any]) -> bytes:
    line[TEXT] = line[TEXT].decode()
    fields = {name: line[name] for name in FILTERED.names if name == TEXT or line[name]}
    return msgspec.json.Encoder().encode_lines([fields])


def _record_of(
    line: dict[str, Any], records: Iterator[tuple[int, str, CorpusDocument | Unread]]
) -> CorpusDocument:
    """The record of a filtered document, with its text as it was filtered."""
    for _, name, found in records:
        if name == line["id"] and isinstance(found, CorpusDocument):
            release_text(found)
            return msgspec.structs.replace(found, id=name, text=line.pop(TEXT).decode())
    raise Mismatch(f"{line['id']}: its file no longer holds it; filter the partition again")


def files_hold_the_documents(check_input: CheckInput) -> CheckResult:
    """Each file has as many documents as its table, with the same lengths."""
    text_field = check_input.fingerprint.params["text_field"] or None
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
        file = files[name].parts["documents"]
        found[name] = (*reads, Read("records", "" if file is None else file.identity))
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
