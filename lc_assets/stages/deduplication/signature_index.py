"""`signature_index`: the LSH bands of a snapshot's signatures, sorted once, for itself and for
every newer snapshot.

A search for near duplicates of a newer snapshot reads them in one pass, and opens no signatures or
texts of documents that share no band with a new one. A version depends only on its own snapshot's
filtered documents and signatures. The files are described in
`lc_assets.stages.deduplication.index`.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa

from lc_assets.arrays import Array, Booleans
from lc_assets.builds.building import run_shards
from lc_assets.builds.check_runs import by_workers
from lc_assets.builds.checks import DOCUMENTS_SUFFIX, documents_files, evenly_spaced
from lc_assets.builds.lookups import write_in_groups
from lc_assets.builds.recipe import Recipe
from lc_assets.builds.settings.common import PrivacySettings
from lc_assets.builds.sharding import records_of
from lc_assets.builds.stage import (
    SAME_SNAPSHOT,
    BuildContext,
    CheckInput,
    CheckResult,
    Stage,
    StagingFolder,
)
from lc_assets.builds.tables import count_lines, read_table, write_table
from lc_assets.counts import Counts
from lc_assets.errors import Mismatch
from lc_assets.formats.redpajama.minhash import read_signatures, scheme_label_of
from lc_assets.lake.versions import Published
from lc_assets.publishing import publish_bytes
from lc_assets.records import record
from lc_assets.stages.deduplication.facts import write_facts
from lc_assets.stages.deduplication.index import (
    BANDED,
    BANDED_SHARDS,
    BANDS,
    MANIFEST,
    ROWS,
    BandsManifest,
    Keys,
    bands_path,
    documents_path,
    facts_path,
    publish_bands,
    read_bands,
    read_bands_manifest,
    read_rows,
    shards_path,
    sorted_bands,
)
from lc_assets.stages.deduplication.signing import signatures_of
from lc_assets.stages.tokens.tokenized_text import privacy_params
from lc_assets.text.duplicates.keys import band_keys

FILE_DOCUMENTS = 1 << 16
"""Number of documents at which a file of the index is complete.

RedPajama-V2's shards keep about 40 documents each, and a search opens each file about forty times:
one file per shard would cost 15 CPU-milliseconds each and exceed Linux's limit on memory maps per
process.
"""
CHECKED_FILES = 2
"""Number of files whose bands the check computes again from the signatures."""
SIGNED, NOT_SIGNED = "cut into bands", "not signed: shorter than a shingle"


@record
class FileTask:
    """File ``number`` of the index in ``folder``, of some shards.

    Attributes:
        documents: the shards' tables of documents.
        signatures: folder of their signatures; None if near duplicates are not searched for.
        number: of the file.
        folder: of the index.
        facts: whether to write the facts for exact duplicates.
        privacy: what is replaced in a text before it is compared.
    """

    documents: tuple[Path, ...]
    signatures: Path | None
    number: int
    folder: Path
    facts: bool
    privacy: PrivacySettings

    @property
    def name(self) -> str:
        """The file's number."""
        return f"{self.number:05d}"

    def __str__(self) -> str:
        return f"{self.documents[0]} and {len(self.documents) - 1:,} more"


class FileBands(NamedTuple):
    """The documents of some shards, `BANDED`; ``(n, BANDS)`` keys, zeros without a signature; and
    ``(n,)`` which are signed.
    """

    documents: pa.Table
    keys: Keys
    signed: Booleans


def write_signature_index(context: BuildContext, staging: StagingFolder) -> Counts:
    """Write the bands of one snapshot's signatures; none if near duplicates are not searched for.

    Raises:
        Mismatch: when signatures are of other documents than the current filtered ones.
    """
    snapshot = staging.key
    facts = bool(context.recipe.removed_documents.exact)
    documents = staging.inputs[f"filtered_documents/{snapshot}"]
    signed = staging.inputs.get(f"document_signatures/{snapshot}")
    signatures = signed.folder if signed else None
    shards = documents_files(documents.only(f"*{DOCUMENTS_SUFFIX}")) if signed or facts else []
    tasks = [
        FileTask(
            documents=batch,
            signatures=signatures,
            number=number,
            folder=staging.folder,
            facts=facts,
            privacy=context.recipe.token_documents.privacy,
        )
        for number, batch in enumerate(_batches(documents, shards))
    ]
    counted = run_shards(context, staging, index_file, tasks, what=f"cut bands of {snapshot}")
    first = [signatures_of(path, signatures) for path in shards[:1] if signatures]
    scheme = scheme_label_of(first[0], where=str(first[0])) if first else ""
    manifest = BandsManifest(
        signature=scheme,
        bands=BANDS,
        rows=ROWS,
        documents=tuple(count_lines(documents_path(staging.folder, task.number)) for task in tasks),
    )
    publish_bytes(staging.folder / MANIFEST, msgspec.json.format(msgspec.json.encode(manifest)))
    return counted


def _batches(documents: Published, shards: Sequence[Path]) -> Iterator[tuple[Path, ...]]:
    """Consecutive tables, `FILE_DOCUMENTS` or more documents in each batch except the last."""
    kept = {name: known.counts.kept for name, known in records_of(documents).items()}
    batch, n_documents = list[Path](), 0
    for path in shards:
        batch.append(path)
        name = path.name.removesuffix(DOCUMENTS_SUFFIX)
        n_documents += kept[name] if name in kept else count_lines(path)
        if n_documents >= FILE_DOCUMENTS or path is shards[-1]:
            yield tuple(batch)
            batch, n_documents = [], 0


def index_file(task: FileTask) -> Counts:
    """Publish one file: bands, documents and shards, and facts if needed."""
    if task.facts:
        path = facts_path(task.folder, task.number)
        write_facts(path, task.documents, task.privacy, task.signatures)
    bands = _bands_of(task.documents, task.signatures)
    publish_bands(task.folder, task.number, bands.keys, bands.signed)
    write_in_groups(documents_path(task.folder, task.number), bands.documents)
    counts = np.array([count_lines(path) for path in task.documents], np.int64)
    shards = {
        "shard": [path.name.removesuffix(DOCUMENTS_SUFFIX) for path in task.documents],
        "n_bytes": [path.stat().st_size for path in task.documents],
        "n_documents": counts,
        "first": np.cumsum(counts) - counts,
    }
    write_table(shards_path(task.folder, task.number), pa.table(shards, schema=BANDED_SHARDS))
    n_signed, n_documents = int(bands.signed.sum()), len(bands.signed)
    of_signatures = {SIGNED: n_signed, NOT_SIGNED: n_documents - n_signed}
    extra = {"shards": len(counts), **(of_signatures if task.signatures else {})}
    return Counts(seen=n_documents, kept=n_documents, extra=extra)


def _bands_of(documents: Sequence[Path], folder: Path | None) -> FileBands:
    """Bands of some shards, given as tables of documents, by the signatures in a folder, if any."""
    tables = [read_table(path, BANDED.names).cast(BANDED) for path in documents]
    both = pa.concat_tables(tables)
    if folder is None:
        return FileBands(both, np.zeros((len(both), BANDS), np.uint64), np.zeros(len(both), bool))
    keys, signed = list[Keys](), list[Booleans]()
    for path, table in zip(documents, tables, strict=True):
        signatures, ids = signatures_of(path, folder), list[str]()
        for part in read_signatures(signatures, where=str(signatures), repeats=False):
            found = band_keys(part.numbers[:, : BANDS * ROWS].reshape(-1, BANDS, ROWS))
            keys.append(np.where(part.is_signed[:, None], found, np.uint64(0)))
            signed.append(part.is_signed)
            ids += part.ids
        if ids != table["id"].to_pylist():
            raise Mismatch(
                f"{signatures}: is of other documents than {path}; materialize "
                "`document_signatures` of this snapshot again"
            )
    return FileBands(
        both,
        np.concatenate([np.empty((0, BANDS), np.uint64), *keys]),
        np.concatenate([np.empty(0, np.bool_), *signed]),
    )


def every_document_has_its_place(check_input: CheckInput) -> CheckResult:
    """Files, tables of documents and tables of shards hold all documents that came in, each shard
    where the one before ends.
    """
    folder, params = check_input.folder, check_input.fingerprint.params
    wrong, n_documents, n_signed, n_before = list[str](), 0, 0, 0
    for number, wanted in enumerate(read_bands_manifest(folder).documents):
        shards = read_table(shards_path(folder, number), BANDED_SHARDS.names)
        counts = shards["n_documents"].to_numpy()
        starts = np.cumsum(counts) - counts
        bands = bands_path(folder, number)
        n_rows = len(read_rows(bands))
        n_signed += read_bands(bands)[0].shape[1]
        found = {count_lines(documents_path(folder, number)), int(counts.sum()), n_rows}
        if found != {wanted} or not np.array_equal(shards["first"].to_numpy(), starts):
            wrong.append(f"file {number}: {sorted(found)} documents, of {wanted}")
        n_documents += wanted
    if params["near"] or params["facts"]:
        n_before = check_input.only_input("filtered_documents").receipt.counts.kept
    n_counted = check_input.counts.extra.get(SIGNED, 0)
    return CheckResult(
        passed=not wrong
        and n_documents == n_before == check_input.counts.seen
        and n_signed == n_counted,
        message="; ".join(wrong)
        or f"{n_documents:,} documents, {n_before:,} came in; "
        f"{n_signed:,} signed, of {n_counted:,} counted",
        values={"documents": n_documents},
    )


def bands_are_those_of_the_signatures(check_input: CheckInput) -> CheckResult:
    """Documents and bands of some files, computed again from the signatures, equal the files."""
    folder, params = check_input.folder, check_input.fingerprint.params
    n_files = len(read_bands_manifest(folder).documents)
    documents, *signed = map(check_input.only_input, STAGE.upstream[: 1 + params["near"]])
    signatures = signed[0].folder if signed else None
    chosen = list[tuple[int, list[Path]]]()
    for number in evenly_spaced(n_files, CHECKED_FILES):
        shards = read_table(shards_path(folder, number), ["shard"])["shard"].to_pylist()
        names = [f"{shard}{DOCUMENTS_SUFFIX}" for shard in shards]
        tables = documents.only(*names)
        chosen.append((number, [tables / name for name in names]))
    found = by_workers(check_input, partial(_other_bands, folder, signatures), chosen)
    wrong = [words for words in found if words]
    return CheckResult(
        passed=not wrong,
        message=f"{len(chosen):,} of {n_files:,} files computed again, {len(wrong):,} differ"
        + (f", such as {wrong[0]}" if wrong else ""),
        values={"files computed again": len(chosen), "differ": len(wrong)},
    )


def _other_bands(folder: Path, signatures: Path | None, file: tuple[int, list[Path]]) -> str:
    """Names a file of an index, if it differs from the bands of its shards' documents."""
    number, shards = file
    again = _bands_of(shards, signatures)
    listed = read_table(documents_path(folder, number), BANDED.names)
    at, expected = bands_path(folder, number), sorted_bands(again.keys, again.signed)
    keys, places = read_bands(at)
    found: dict[str, Array] = {"keys": keys, "places": places, "rows": read_rows(at)}
    same = listed.equals(again.documents) and all(
        np.array_equal(found[name], expected[name]) for name in expected
    )
    return "" if same else f"file {number}"


def _params(recipe: Recipe, _: str) -> dict[str, Any]:
    return {
        "near": recipe.near_duplicate_pairs.near,
        "facts": bool(recipe.removed_documents.exact),
        "bands": [BANDS, ROWS],
    } | (privacy_params(recipe) if recipe.removed_documents.exact else {})


STAGE = Stage(
    name="signature_index",
    description=(
        "LSH bands of one snapshot's signatures, sorted once, for comparison with every "
        "newer snapshot."
    ),
    code_version="4",
    reads={
        "filtered_documents": SAME_SNAPSHOT,
        "document_signatures": SAME_SNAPSHOT.only_if(
            lambda recipe: recipe.near_duplicate_pairs.near
        ),
    },
    params=_params,
    checks=(every_document_has_its_place, bands_are_those_of_the_signatures),
    columns=BANDED,
    job="snapshot_documents",
    kinds=("numpy", "parquet"),
    write=write_signature_index,
)
"""Signatures of a snapshot, divided into bands and sorted."""
