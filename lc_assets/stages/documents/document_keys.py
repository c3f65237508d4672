"""`document_keys`: an index of one snapshot's filtered documents by id, address, domain and digest,
with their tested values.

It answers whether a snapshot contains a document without reading texts: a look-up is a binary
search in a memory-mapped array, and one row group of ``documents.parquet`` to compare the value.
The stage reads every text once, for its digests and its sketch, unless these are published.

=====================  =============================================================================
file                   what
=====================  =============================================================================
``documents.parquet``  a line per filtered document, by shard and line: `tables.KEYED`, and the
                       values judged
``document_key.npy``   keys of all kinds (`lc_assets.text.links.addresses`), see
                       `lc_assets.formats.key_index`
``document_place.npy`` which line of ``documents.parquet`` each key is of
``passages.parquet``   where the recipe's lists of withdrawals name passages: the ids of documents
                       that contain one, and the passage
``sketches.npy``       uint64, a sketch of each line's text (`lc_assets.text.duplicates.sketches`),
                       where the recipe holds documents out, or withdraws any
=====================  =============================================================================
"""

from collections.abc import Iterable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from lc_assets.builds.building import run_shards
from lc_assets.builds.check_runs import by_workers
from lc_assets.builds.checks import (
    DocumentsTask,
    documents_files,
    first_of_each,
    reads_all_upstream_documents,
)
from lc_assets.builds.columns import PLACES
from lc_assets.builds.inputs import made_from
from lc_assets.builds.lookups import (
    HERE,
    LINES_AT_ONCE,
    KeyedTable,
    keys_in,
    parts_of,
    read_some,
    regrouped,
    write_keyed,
)
from lc_assets.builds.recipe import Recipe
from lc_assets.builds.settings.common import PrivacySettings
from lc_assets.builds.stage import (
    SAME_SNAPSHOT,
    BuildContext,
    CheckInput,
    CheckResult,
    Stage,
    StagingFolder,
)
from lc_assets.builds.tables import (
    FILTERED,
    IDENTITY,
    KEYED,
    count_lines,
    read_all,
    read_lines,
    read_schema,
    read_table,
    write_table,
)
from lc_assets.counts import Counts
from lc_assets.execution.executor import Executor
from lc_assets.formats.arrays.npy import read_npy, write_npy
from lc_assets.formats.key_index import KeyIndex
from lc_assets.formats.lists.withdrawal_lists import entries_of
from lc_assets.lake.lake import Lake
from lc_assets.lake.receipts import SCRATCH
from lc_assets.lake.versions import Published
from lc_assets.publishing import publish
from lc_assets.records import record
from lc_assets.stages.deduplication.document_signatures import (
    digests_are_published,
    shingles_of,
)
from lc_assets.stages.deduplication.signing import MINHASH_SUFFIX, signatures_of
from lc_assets.stages.documents.keyed_texts import (
    SKETCH,
    are_listed,
    are_sketched,
    by_line,
    differing,
    identity_of,
    with_digests,
    with_published,
    with_sketches,
    without_sketches,
)
from lc_assets.stages.tokens.tokenized_text import privacy_params
from lc_assets.text.duplicates.keys import Shingles
from lc_assets.text.duplicates.sketches import SKETCH_HASHES

DOCUMENTS_FILE, PASSAGES_FILE = "documents.parquet", "passages.parquet"
PASSAGES = pa.schema({"id": "string", "passage": "string"})
SKETCHES_FILE = "sketches.npy"
INDEX = "document"
KEY_COLUMNS = ("id", "url", "digest", "text_digest")
TEXTS_AT_ONCE = 32
DIGESTS_AGAIN = 20
"""Number of documents whose text the check reads again."""
EVERY, LINES_AGAIN = 8, 256
"""Every eighth line's keys are made again, or so many: what a merge loses or shifts shows there."""
_OF_TEXT = ("text_digest", "tokenized_digest")


@record
class KeyTask(DocumentsTask):
    """One shard of filtered documents to be listed, with the digests of its texts; and those that
    contain some passages.

    Attributes:
        passages: in the texts as they are.
        privacy: what is replaced in a text before it is tokenized.
        shingles: that texts are sketched by; None where they are not.
        known: folder of the published digests and sketches, if any.
    """

    passages: tuple[str, ...]
    privacy: PrivacySettings
    shingles: Shingles | None
    known: Path | None = None

    @property
    def listed(self) -> Path:
        """Path of its lines in scratch, before they are merged: an Arrow file, which the main
        process reads in a tenth of the time of a Parquet file.
        """
        return self.folder / SCRATCH / "listed" / f"{self.name}.arrow"

    @property
    def found(self) -> Path:
        """Path of the passages found in it."""
        return self.folder / SCRATCH / "passages" / f"{self.name}.parquet"


def write_document_keys(context: BuildContext, staging: StagingFolder) -> Counts:
    """Write the index of one snapshot's filtered documents.

    Raises:
        Mismatch: when signatures are of other documents than the current filtered ones.
    """
    snapshot = staging.key
    filtered, known = staging.own("filtered_documents"), None
    if digests_are_published(context.recipe):
        signed = made_from(staging.inputs, "document_signatures", filtered)
        known = signed.only(f"*{MINHASH_SUFFIX}")
    files = documents_files(filtered.folder)
    passages = tuple(staging.fingerprint.params.get("passages", ()))
    privacy, sketched = context.recipe.token_documents.privacy, are_sketched(context.recipe)
    shingles = shingles_of(context.recipe) if sketched else None
    tasks = [
        KeyTask(
            documents=path,
            folder=staging.folder,
            passages=passages,
            privacy=privacy,
            shingles=shingles,
            known=known,
        )
        for path in files
    ]
    counted = run_shards(context, staging, list_shard, tasks, what=f"keys of {snapshot}")
    schema = schema_of(read_schema(files[0])) if files else KEYED
    of_parts = [np.empty((0, SKETCH_HASHES), np.uint64)]
    listed = schema.append(SKETCH) if sketched else schema
    parts = by_line(_listed(task.listed).select(listed.names) for task in tasks)
    n_keys = write_keys(staging.folder, without_sketches(parts, of_parts), schema, context.executor)
    if sketched:
        write_npy(staging.folder / SKETCHES_FILE, np.concatenate(of_parts))
    if passages:
        found = read_all([task.found for task in tasks], PASSAGES)
        write_table(staging.folder / PASSAGES_FILE, found.sort_by("id"))
    return counted + Counts(extra={"keys": n_keys})


def write_keys(
    folder: Path, parts: Iterable[pa.Table], schema: pa.Schema, executor: Executor = HERE
) -> int:
    """Write the files of an index of documents, given in parts; return the number of keys."""
    path, index = folder / DOCUMENTS_FILE, folder / INDEX
    return write_keyed(path, index, parts, schema, KEY_COLUMNS, executor=executor)


def list_shard(task: KeyTask) -> Counts:
    """List one shard's documents, with the digests of their texts."""
    n_documents = 0
    schema = schema_of(read_schema(task.documents))
    listed = schema.append(SKETCH) if task.shingles else schema
    with (
        publish(task.listed) as staging,
        pa.ipc.new_file(staging, listed) as writer,
    ):
        if task.known:
            published = signatures_of(task.documents, task.known)
            tables = with_published(task.documents, published, listed)
        else:
            batches = with_digests(task.documents, listed, task.privacy, task.shingles)
            tables = regrouped((pa.Table.from_batches([batch]) for batch in batches), LINES_AT_ONCE)
        for table in tables:
            writer.write_table(table)
            n_documents += table.num_rows
    if task.passages:
        _find_passages(task)
    return Counts(seen=n_documents, kept=n_documents)


def _find_passages(task: KeyTask) -> None:
    """Publish the documents of a shard that contain passages."""
    from lc_assets.stages.documents.passages import index_of_passages, passages_in

    index = index_of_passages(task.passages)
    found = [
        {"id": line["id"], "passage": passage}
        for line in read_lines(task.documents, ["id", "raw_content"], batch_lines=TEXTS_AT_ONCE)
        for passage in passages_in(line["raw_content"], index)
    ]
    write_table(task.found, pa.Table.from_pylist(found, schema=PASSAGES))


def passage_lines(keys: Published) -> list[dict[str, str]]:
    """Ids of the documents of an index that contain passages, and the passages."""
    path = keys.only(PASSAGES_FILE) / PASSAGES_FILE
    lines: list[dict[str, str]] = read_table(path).to_pylist() if path.is_file() else []
    return lines


def schema_of(filtered: pa.Schema) -> pa.Schema:
    """Columns of ``documents.parquet``, by those of the filtered documents."""
    return pa.schema([*KEYED, *(field for field in filtered if field not in [*FILTERED, PLACES])])


def _listed(path: Path) -> pa.Table:
    """What `list_shard` has written."""
    with pa.memory_map(str(path)) as file:
        return pa.ipc.open_file(file).read_all()


def documents_of(keys: Published) -> KeyedTable:
    """One snapshot's index, for look-ups."""
    return KeyedTable.of(keys, DOCUMENTS_FILE, INDEX)


def keyed_documents(lake: Lake, snapshot: str) -> KeyedTable | None:
    """The published index of a snapshot's filtered documents, if any."""
    published = lake.partition("document_keys", snapshot).current_summary()
    return None if published is None else documents_of(published)


def the_documents_are_those_filtered(check_input: CheckInput) -> CheckResult:
    """The index lists every filtered document once with unchanged values, and with the digests and
    sketches that were made of its text as it was signed, if it was; the first texts of some shards
    are read again to compare digests, and sketches that were made here.
    """
    filtered = check_input.only_input("filtered_documents")
    signed = [it for it in check_input.inputs.values() if it.stage == "document_signatures"]
    known = signed[0].only(f"*{MINHASH_SUFFIX}") if signed else None
    path, files = check_input.folder / DOCUMENTS_FILE, documents_files(filtered.folder)
    n_listed, n_standing = count_lines(path), filtered.counts.kept
    names, same, sketches = (*IDENTITY, *(_OF_TEXT if known else ())), n_listed == n_standing, None
    if "sketches" in check_input.params:
        sketches = read_npy(check_input.folder / SKETCHES_FILE)
        same = same and sketches.shape == (n_listed, SKETCH_HASHES)
    listed, parts = pa.schema([KEYED.field(name) for name in names]), parts_of(path, names)
    if known and sketches is not None:
        listed, parts = listed.append(SKETCH), with_sketches(parts, sketches)
    shards = [(file, signatures_of(file, known) if known else None) for file in files]
    standing = by_workers(check_input, partial(identity_of, listed), shards)
    same = same and are_listed(parts, standing, listed)
    places = first_of_each([n for n, _ in standing], DIGESTS_AGAIN) if same else []
    schema = pa.schema([KEYED.field(name) for name in ("id", *_OF_TEXT)])
    stated = {line.pop("id"): line for line in read_some(path, places, schema.names)}
    if sketches is not None and not known:
        schema = schema.append(SKETCH)
        for place, line in zip(places, stated.values(), strict=True):
            line[SKETCH.name] = sketches[place].tobytes()
    wrong = differing(check_input, files, stated, schema)
    return CheckResult(
        passed=same and not wrong,
        message=f"{n_listed:,} listed of {n_standing:,} filtered"
        + ("" if same else ", and they differ")
        + f"; {len(stated):,} texts read again, {len(wrong):,} have another digest",
        values={"listed": n_listed, "digests that differ": len(wrong)},
    )


def every_document_is_found_by_its_keys(check_input: CheckInput) -> CheckResult:
    """There are as many keys as were written, and those of every eighth document, or of all of a
    few, are exactly its own.
    """
    path, index = check_input.folder / DOCUMENTS_FILE, KeyIndex(check_input.folder / INDEX)
    every = max(1, min(EVERY, count_lines(path) // LINES_AGAIN))
    wanted = keys_in(path, KEY_COLUMNS, check_input.executor, every=every)
    n_keys, n_written = len(index.keys()), check_input.counts.extra["keys"]
    right = n_keys == n_written and index.holds(*wanted, every=every)
    return CheckResult(
        passed=right,
        message=f"{n_keys:,} keys of {n_written:,} written, {len(wanted[0]):,} made again"
        + ("" if right else ": they are not the same"),
        values={"keys": n_keys},
    )


def _params(recipe: Recipe, _: str) -> dict[str, Any]:
    """The passages that lists of withdrawals name, what is replaced, and how texts are sketched, if
    any.
    """
    entries = entries_of(recipe.withdrawn_documents.lists)
    passages = [value for kind, value in (entry.sought for entry in entries) if kind == "passage"]
    params: dict[str, Any] = {"passages": sorted(passages)} if passages else {}
    if are_sketched(recipe):
        shingles = asdict(shingles_of(recipe))
        params |= {"sketches": SKETCH_HASHES, "shingles": shingles}
    return params | privacy_params(recipe)


STAGE = Stage(
    name="document_keys",
    description=(
        "Index of one snapshot's filtered documents by id, URL, domain and digest, with "
        "the values that rules used."
    ),
    code_version="2",
    reads={
        "filtered_documents": SAME_SNAPSHOT,
        "document_signatures": SAME_SNAPSHOT.only_if(digests_are_published),
    },
    params=_params,
    checks=(
        reads_all_upstream_documents("filtered_documents"),
        the_documents_are_those_filtered,
        every_document_is_found_by_its_keys,
    ),
    columns=KEYED,
    job="snapshot_documents",
    kinds=("parquet", "numpy"),
    write=write_document_keys,
)
"""Filtered documents by id, address, domain and digest."""
