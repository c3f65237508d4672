"""`clean_documents`: the documents of a partition that no stage removed, as a corpus of their own.

Published per shard are the documents, as compressed JSON lines or as Parquet, a table of who they
are, and a table of the others with the reason. The stage is built on request: tokens and rows are
made without it. Commands that end with documents (`lc dedup`, `lc decontaminate`) end here, and a
source of files can read what it wrote.
"""

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec
import pyarrow as pa

from lc_assets.counts import Counts
from lc_assets.errors import CorruptFile, Mismatch
from lc_assets.formats.corpora.containers import json_line
from lc_assets.formats.corpora.reading import read_corpus
from lc_assets.formats.corpora.records import CorpusDocument
from lc_assets.formats.gzipping import gzipped
from lc_assets.lake.receipts import SCRATCH
from lc_assets.lake.staging import once
from lc_assets.publishing import publish
from lc_assets.sources.files import FileSource, own_id
from lc_assets.sources.opening import file_source
from lc_assets.sources.settings import source_of_key
from lc_assets.stages.building import (
    SAME_SNAPSHOT,
    WORKERS,
    BuildContext,
    Built,
    CheckInput,
    CheckResult,
    Stage,
    StagingFolder,
    build,
    later,
    run_shards,
)
from lc_assets.stages.claims import (
    DOCUMENTS_SUFFIX,
    DROPPED_SUFFIX,
    all_that_was_kept_came_in,
    counts_add_up,
    documents_files,
    every_document_is_named_once,
    the_shards_add_up,
)
from lc_assets.stages.decontamination.contaminated_documents import STAGE as CONTAMINATED_DOCUMENTS
from lc_assets.stages.decontamination.contaminated_documents import Cutter
from lc_assets.stages.deduplication.removed_documents import STAGE as REMOVED_DOCUMENTS
from lc_assets.stages.deduplication.removed_documents import (
    TABLE as REMOVALS_TABLE,
)
from lc_assets.stages.deduplication.removed_documents import remaining_read, removed_by_shard
from lc_assets.stages.documents.filtered_documents import STAGE as FILTERED_DOCUMENTS
from lc_assets.stages.documents.raw_snapshot import STAGE as RAW_SNAPSHOT
from lc_assets.stages.documents.raw_snapshot import ShardFiles, read_manifest
from lc_assets.stages.documents.shard_inputs import require_unchanged
from lc_assets.stages.recipe import Recipe
from lc_assets.stages.settings import DecontaminationSettings
from lc_assets.stages.sharding import Sharding
from lc_assets.stages.tables import (
    DROPPED,
    FILTERED,
    IDENTITY,
    TableWriter,
    read_lines,
    read_schema,
    read_table,
)
from lc_assets.vocabulary import SnapshotId

JSON_SUFFIX: Final = ".jsonl.gz"
TABLE_SUFFIX: Final = ".texts.parquet"
CLEAN: Final = pa.schema([*IDENTITY, ("date_download", pa.string()), ("n_chars", pa.int64())])
"""Who the published documents are, in the order of their file."""
_TEXT: Final = "raw_content"
DOCUMENTS_CUT: Final = "documents cut"
CHARACTERS_CUT: Final = "characters cut"


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanTask:
    """One shard of filtered documents, to be written into ``folder``.

    Attributes:
        documents: the filtered documents.
        folder: of the version.
        file_format: see `CleanDocumentsSettings`.
        removed: reason of each removed document, by id.
        source: where the records are; None where the filtered documents have all of their fields.
        files: the shard, and its file in the source.
        contamination: folder of `contaminated_documents` whose items are cut out of the texts;
            None where contaminated documents are removed.
        settings: that these were found by.
    """

    documents: Path
    folder: Path
    file_format: str
    removed: Mapping[str, str]
    source: FileSource | None
    files: ShardFiles
    contamination: Path | None
    settings: DecontaminationSettings

    @property
    def name(self) -> str:
        """The shard's name."""
        return self.documents.name.removesuffix(DOCUMENTS_SUFFIX)

    def __str__(self) -> str:
        return str(self.documents)


def write_clean_documents(context: BuildContext, snapshot: SnapshotId) -> Built:
    """Publish the documents of one partition that no stage removed.

    Raises:
        NotPublished: when the filtered documents or the removals are not published.
    """

    def fill(staging: StagingFolder) -> Counts:
        raw = staging.inputs[f"raw_snapshot/{snapshot}"]
        files = {found.shard.name: found for found in read_manifest(raw)}
        found = staging.inputs.get(f"contaminated_documents/{snapshot}")
        removed = removed_by_shard(
            staging.inputs[f"removed_documents/{snapshot}"].only(REMOVALS_TABLE)
        )
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
            )
            for path in documents_files(staging.inputs[f"filtered_documents/{snapshot}"].folder)
            for name in [path.name.removesuffix(DOCUMENTS_SUFFIX)]
        ]
        return run_shards(context, staging, clean_shard, tasks, what=f"write {snapshot}")

    return build(context, STAGE, snapshot, fill)


@once
def clean_shard(task: CleanTask) -> Counts:
    """Write one shard."""
    dropped, extra, n_kept = Counter[str](), Counter[str](characters=0), 0
    cutter = None
    if task.contamination is not None:
        cutter = Cutter(task.contamination, task.name, task.settings)
    with contextlib.ExitStack() as stack:
        kept_table, dropped_table = (
            stack.enter_context(
                contextlib.closing(
                    TableWriter(
                        stack.enter_context(publish(task.folder / f"{task.name}{suffix}")), schema
                    )
                )
            )
            for suffix, schema in ((DOCUMENTS_SUFFIX, CLEAN), (DROPPED_SUFFIX, DROPPED))
        )
        write = stack.enter_context(_document_writer(task))
        for line in read_lines(task.documents, batch_lines=16):
            reason = task.removed.get(line["id"])
            if reason is not None:
                dropped[reason] += 1
                dropped_table.add(_dropped_line(line, reason))
                continue
            if cutter is not None:
                text = cutter.cut(line["id"], line[_TEXT])
                n_cut = len(line[_TEXT]) - len(text)
                extra.update({DOCUMENTS_CUT: int(n_cut > 0), CHARACTERS_CUT: n_cut})
                line[_TEXT] = text
            write(line)
            n_kept += 1
            extra["characters"] += len(line[_TEXT])
            who = {name: line[name] for name in CLEAN.names if name != "n_chars"}
            kept_table.add(who | {"n_chars": len(line[_TEXT])})
    return Counts(
        seen=n_kept + dropped.total(),
        kept=n_kept,
        dropped=dict(dropped),
        failed_rules=dict(dropped),
        extra=dict(extra),
    )


@contextlib.contextmanager
def _document_writer(task: CleanTask) -> Iterator[Callable[[dict[str, Any]], object]]:
    """Open the file of a shard's documents; yield what writes one line of the filtered table."""
    with contextlib.ExitStack() as stack:
        if task.file_format == "parquet":
            staging = stack.enter_context(publish(task.folder / f"{task.name}{TABLE_SUFFIX}"))
            schema = read_schema(task.documents)
            table = stack.enter_context(contextlib.closing(TableWriter(staging, schema)))
            yield lambda line: table.add(line, n_bytes=len(line[_TEXT]))
        else:
            staging = stack.enter_context(publish(task.folder / f"{task.name}{JSON_SUFFIX}"))
            stream = stack.enter_context(gzipped(staging))
            records = None if task.source is None else _records(task, task.source)
            yield lambda line: stream.write(
                _json_line(line) if records is None else json_line(_record_of(line, records))
            )


def _json_line(line: dict[str, Any]) -> bytes:
    fields = {name: line[name] for name in FILTERED.names if line[name] not in (None, "")}
    return msgspec.json.encode(fields | {_TEXT: line[_TEXT]}) + b"\n"


def _records(task: CleanTask, source: FileSource) -> Iterator[CorpusDocument]:
    """The records of a shard's file, each under its document id."""
    file, seen, shard = task.files.parts["documents"], set[str](), task.files.shard
    if file is None:
        raise CorruptFile(f"{shard.tag}: its file is missing")
    require_unchanged(source.upstream, file)
    for line, document in source.documents(file.path, task.folder / SCRATCH):
        own = own_id(document, seen, shard)
        if isinstance(document, CorpusDocument):
            yield msgspec.structs.replace(document, id=shard.document_id(own or line))


def _record_of(line: dict[str, Any], records: Iterator[CorpusDocument]) -> CorpusDocument:
    """The record of a filtered document, with its text as it was filtered.

    Raises:
        Mismatch: when the file no longer holds it.
    """
    for record in records:
        if record.id == line["id"]:
            return msgspec.structs.replace(record, text=line[_TEXT])
    raise Mismatch(f"{line['id']}: its file no longer holds it; filter the partition again")


def _dropped_line(line: dict[str, Any], reason: str) -> dict[str, Any]:
    return {
        "id": line["id"],
        "url": line["url"],
        "reason": reason,
        "value": None,
        "reasons": [reason],
        "values": [None],
    }


def files_hold_the_documents(check_input: CheckInput) -> CheckResult:
    """Each file holds as many documents as its table, of the same lengths."""
    wrong, n_documents = [], 0
    for path in documents_files(check_input.folder):
        name = path.name.removesuffix(DOCUMENTS_SUFFIX)
        expected = read_table(path, ["n_chars"])["n_chars"].to_pylist()
        n_documents += len(expected)
        if list(_lengths(check_input, name)) != expected:
            wrong.append(name)
    return CheckResult(
        claim="files_hold_the_documents",
        passed=not wrong,
        words=f"{n_documents:,} documents; {len(wrong):,} files differ from their tables"
        + (f", such as {wrong[0]}" if wrong else ""),
        numbers={"documents": n_documents, "differ": len(wrong)},
    )


def _lengths(check_input: CheckInput, name: str) -> Iterator[int]:
    """Characters of each document in a shard's file; -1 for one that cannot be read."""
    table = check_input.folder / f"{name}{TABLE_SUFFIX}"
    if table.is_file():
        yield from (len(line[_TEXT]) for line in read_lines(table, [_TEXT]))
        return
    text_field = check_input.fingerprint.params["text_field"] or None
    for document in read_corpus(check_input.folder / f"{name}{JSON_SUFFIX}", text_field=text_field):
        yield len(document.text) if isinstance(document, CorpusDocument) else -1


def _params(recipe: Recipe, key: str) -> dict[str, Any]:
    return {
        "file_format": recipe.clean_documents.file_format,
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
    claims=(
        counts_add_up,
        all_that_was_kept_came_in("filtered_documents"),
        every_document_is_named_once,
        files_hold_the_documents,
        the_shards_add_up,
    ),
    wanted=lambda recipe: recipe.clean_documents.wanted,
    sharding=Sharding(
        reads=remaining_read,
        suffixes=(JSON_SUFFIX, TABLE_SUFFIX, DOCUMENTS_SUFFIX, DROPPED_SUFFIX),
    ),
    group="documents",
    pool=WORKERS,
    kinds=("json", "parquet"),
    write=write_clean_documents,
    show=later("lc_assets.stages.shown.removing:clean_documents"),
)
"""The documents that no stage removed, as JSON lines or Parquet."""
