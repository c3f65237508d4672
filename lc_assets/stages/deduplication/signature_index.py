"""`signature_index`: the LSH bands of a snapshot's signatures, sorted once, for itself and for every
newer snapshot.

A search for near duplicates of a newer snapshot reads them in one pass, and opens neither the
signatures nor the texts of what shares no band with something new. A version depends on its own
snapshot's filtered documents and signatures alone. The files: `lc_assets.stages.deduplication.index`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lc_assets.build.building import (
    build,
    run_shards,
)
from lc_assets.build.checks import DOCUMENTS_SUFFIX, documents_files, evenly_spaced
from lc_assets.build.lookups import write_in_groups
from lc_assets.build.recipe import Recipe
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
from lc_assets.build.tables import count_lines, read_table, write_table
from lc_assets.counts import Counts
from lc_assets.errors import Mismatch
from lc_assets.formats.redpajama.minhash import read_signatures, scheme_label_of
from lc_assets.lake.staging import once
from lc_assets.publishing import publish_bytes
from lc_assets.stages.deduplication.document_signatures import MINHASH_SUFFIX
from lc_assets.stages.deduplication.document_signatures import STAGE as DOCUMENT_SIGNATURES
from lc_assets.stages.deduplication.facts import write_facts
from lc_assets.stages.deduplication.index import (
    BANDED,
    BANDED_SHARDS,
    BANDS,
    MANIFEST,
    ROWS,
    BandsManifest,
    bands_path,
    documents_path,
    facts_path,
    publish_bands,
    read_bands,
    read_bands_manifest,
    read_rows,
    shards_path,
)
from lc_assets.stages.documents.filtered_documents import STAGE as FILTERED_DOCUMENTS
from lc_assets.text.duplicates.keys import ROW_BITS, band_keys
from lc_assets.vocabulary import SnapshotId

TOGETHER: Final = 1 << 16
"""Documents from which on no further shard goes into the same file of bands.

RedPajama-V2's shards keep some 40 documents each, and a search opens each file some forty times:
one a shard would cost 15 CPU-milliseconds, and be mapped into memory more often than Linux lets a
process.
"""
CUT_AGAIN: Final = 5
"""Shards whose bands the audit cuts anew from their signatures."""
SIGNED, NOT_SIGNED = "cut into bands", "not signed: fewer than 13 words"


@dataclass(frozen=True, slots=True, kw_only=True)
class CutTask:
    """Some shards, tables of documents with their files of signatures, to become file ``number`` of
    the bands in ``folder``.
    """

    shards: tuple[tuple[Path, Path], ...]
    number: int
    folder: Path
    facts: bool = False

    @property
    def name(self) -> str:
        """The file's number."""
        return f"{self.number:05d}"

    def __str__(self) -> str:
        return f"{self.shards[0][1]} and {len(self.shards) - 1:,} more"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """The bands of one shard: who, ``(n, BANDS)`` keys, zeros of those that are not signed, and
    ``(n,)`` which are.
    """

    documents: pa.Table
    keys: NDArray[np.uint64]
    signed: NDArray[np.bool_]


def write_signature_index(context: BuildContext, snapshot: SnapshotId) -> Built:
    """Publish the bands of one snapshot's signatures; none where near duplicates are not looked
    for.

    Raises:
        NotPublished: when filtered documents or signatures of the snapshot are not there.
        Mismatch: when signatures are of other documents than those that stand filtered.
    """

    def fill(staging: StagingFolder) -> Counts:
        facts = bool(context.recipe.removed_documents.exact)
        wanted = context.recipe.near_duplicate_pairs.near or facts
        shards = _shards(staging, snapshot) if wanted else []
        groups = enumerate(_together(shards))
        tasks = [
            CutTask(shards=group, number=number, folder=staging.folder, facts=facts)
            for number, group in groups
        ]
        counted = run_shards(context, staging, cut_bands, tasks, what=f"cut bands of {snapshot}")
        manifest = BandsManifest(
            signature=scheme_label_of(shards[0][1], where=str(shards[0][1])) if shards else "",
            bands=BANDS,
            rows=ROWS,
            documents=tuple(
                count_lines(documents_path(staging.folder, task.number)) for task in tasks
            ),
        )
        publish_bytes(staging.folder / MANIFEST, msgspec.json.format(msgspec.json.encode(manifest)))
        return counted

    return build(context, STAGE, snapshot, fill)


def _shards(staging: StagingFolder, snapshot: str) -> list[tuple[Path, Path]]:
    documents, signatures = (staging.inputs[f"{stage}/{snapshot}"] for stage in STAGE.upstream)
    folder = signatures.folder
    files = documents_files(documents.only(f"*{DOCUMENTS_SUFFIX}"))
    return [(path, folder / path.name.replace(DOCUMENTS_SUFFIX, MINHASH_SUFFIX)) for path in files]


def _together(shards: Sequence[tuple[Path, Path]]) -> Iterator[tuple[tuple[Path, Path], ...]]:
    group, n_documents = list[tuple[Path, Path]](), 0
    for shard in shards:
        group.append(shard)
        n_documents += count_lines(shard[0])
        if n_documents >= TOGETHER:
            yield tuple(group)
            group, n_documents = [], 0
    if group:
        yield tuple(group)


@once
def cut_bands(task: CutTask) -> Counts:
    """Publish one file: bands, documents and shards, and facts where they are wanted."""
    if task.facts:
        write_facts(facts_path(task.folder, task.number), [path for path, _ in task.shards])
    cuts = [_cut(*shard) for shard in task.shards]
    keys, signed = (
        np.concatenate([cut.keys for cut in cuts]),
        np.concatenate([cut.signed for cut in cuts]),
    )
    publish_bands(task.folder, task.number, keys, signed)
    write_in_groups(
        documents_path(task.folder, task.number), pa.concat_tables([cut.documents for cut in cuts])
    )
    counts = np.array([cut.documents.num_rows for cut in cuts], np.int64)
    shards = {
        "shard": [path.name.removesuffix(DOCUMENTS_SUFFIX) for path, _ in task.shards],
        "n_bytes": [path.stat().st_size for path, _ in task.shards],
        "n_documents": counts,
        "first": np.cumsum(counts) - counts,
    }
    write_table(shards_path(task.folder, task.number), pa.table(shards, schema=BANDED_SHARDS))
    n_signed = int(signed.sum())
    return Counts(
        seen=len(signed),
        kept=len(signed),
        extra={"shards": len(cuts), SIGNED: n_signed, NOT_SIGNED: len(signed) - n_signed},
    )


def _cut(documents: Path, signatures: Path) -> Cut:
    table = read_table(documents, BANDED.names).cast(BANDED)
    ids, keys, signed = list[str](), [np.empty((0, BANDS), np.uint64)], [np.empty(0, np.bool_)]
    for part in read_signatures(signatures, where=str(signatures)):
        found = band_keys(part.numbers[:, : BANDS * ROWS].reshape(-1, BANDS, ROWS))
        keys.append(np.where(part.is_signed[:, None], found, np.uint64(0)))
        signed.append(part.is_signed)
        ids += part.ids
    if ids != table["id"].to_pylist():
        raise Mismatch(
            f"{signatures}: is of other documents than {documents}; materialize "
            "`document_signatures` of "
            "this snapshot again"
        )
    return Cut(documents=table, keys=np.concatenate(keys), signed=np.concatenate(signed))


def every_document_has_its_place(check_input: CheckInput) -> CheckResult:
    """Files, tables of documents and tables of shards hold as many documents as came in, each shard
    where the one before ends.
    """
    manifest, wrong, n_documents = read_bands_manifest(check_input.folder), list[str](), 0
    for number, wanted in enumerate(manifest.documents):
        shards = read_table(shards_path(check_input.folder, number), BANDED_SHARDS.names)
        counts = shards["n_documents"].to_numpy()
        starts = np.cumsum(counts) - counts
        found = {
            count_lines(documents_path(check_input.folder, number)),
            int(counts.sum()),
            len(read_rows(bands_path(check_input.folder, number))),
        }
        if found != {wanted} or not np.array_equal(shards["first"].to_numpy(), starts):
            wrong.append(f"file {number}: {sorted(found)} documents, of {wanted}")
        n_documents += wanted
    before = (
        check_input.only_input("filtered_documents").receipt.counts.kept
        if check_input.fingerprint.params["near"] or check_input.fingerprint.params["facts"]
        else 0
    )
    right = not wrong and n_documents == before == check_input.counts.seen
    return CheckResult(
        check="every_document_has_its_place",
        passed=right,
        message="; ".join(wrong)
        or f"{n_documents:,} documents in {len(manifest.documents):,} files, {before:,} came in",
        values={"documents": n_documents},
    )


def bands_ascend(check_input: CheckInput) -> CheckResult:
    """The keys of each band ascend, and lead to each signed document once; what divides great
    buckets is the keys' own lowest bits.
    """
    wrong, n_signed = list[str](), 0
    for number in range(len(read_bands_manifest(check_input.folder).documents)):
        at = bands_path(check_input.folder, number)
        bands, rows = read_bands(at), read_rows(at)
        whose = np.sort(bands.places[0])
        n_signed += len(whose)
        if rows.shape[1:] != bands.keys.shape[:1] or (len(whose) and whose[-1] >= len(rows)):
            wrong.append(f"file {number}: {bands.keys.shape} keys, {rows.shape} first rows")
            continue
        for band in range(bands.keys.shape[0]):
            keys, places = bands.keys[band], bands.places[band]
            sound = (
                bool((keys[1:] >= keys[:-1]).all())
                and np.array_equal(np.sort(places), whose)
                and bool((np.diff(whose) > 0).all())
            )
            low = (keys & np.uint64((1 << ROW_BITS) - 1)).astype(np.uint16)
            if not sound or not np.array_equal(rows[places, band], low):
                wrong.append(f"file {number}, band {band}")
    right = not wrong and n_signed == check_input.counts.extra.get(SIGNED, 0)
    return CheckResult(
        check="bands_ascend",
        passed=right,
        message=f"{n_signed:,} signed documents of {check_input.counts.extra.get(SIGNED, 0):,} "
        "counted, "
        f"{len(wrong):,} bands wrong" + (f", such as {wrong[0]}" if wrong else ""),
        values={"signed": n_signed, "wrong": len(wrong)},
    )


def bands_are_those_of_the_signatures(check_input: CheckInput) -> CheckResult:
    """Some shards, cut anew from their signatures, have the very documents and keys that the files
    have at their places.
    """
    manifest = read_bands_manifest(check_input.folder)
    places = [
        (number, line)
        for number in range(len(manifest.documents))
        for line in range(count_lines(shards_path(check_input.folder, number)))
    ]
    chosen = [places[place] for place in evenly_spaced(len(places), CUT_AGAIN)]
    wrong = [
        name for name, same in (_same_again(check_input, *place) for place in chosen) if not same
    ]
    return CheckResult(
        check="bands_are_those_of_the_signatures",
        passed=not wrong,
        message=f"{len(chosen):,} of {len(places):,} shards cut anew, {len(wrong):,} differ"
        + (f", such as {wrong[0]}" if wrong else ""),
        values={"shards cut anew": len(chosen), "differ": len(wrong)},
    )


def _same_again(check_input: CheckInput, number: int, line: int) -> tuple[str, bool]:
    shard = read_table(shards_path(check_input.folder, number)).slice(line, 1).to_pylist()[0]
    names = [f"{shard['shard']}{suffix}" for suffix in (DOCUMENTS_SUFFIX, MINHASH_SUFFIX)]
    again = _cut(
        *(
            check_input.only_input(stage).only(name) / name
            for stage, name in zip(STAGE.upstream, names, strict=True)
        )
    )
    begin, end = shard["first"], shard["first"] + shard["n_documents"]
    listed = read_table(documents_path(check_input.folder, number), BANDED.names).slice(
        begin, shard["n_documents"]
    )
    return shard["shard"], listed.equals(again.documents) and np.array_equal(
        _keys_between(check_input.folder, number, begin, end), again.keys
    )


def _keys_between(folder: Path, number: int, begin: int, end: int) -> NDArray[np.uint64]:
    bands = read_bands(bands_path(folder, number))
    keys = np.zeros((end - begin, bands.keys.shape[0]), np.uint64)
    for band in range(bands.keys.shape[0]):
        places = bands.places[band]
        ours = np.flatnonzero((places >= begin) & (places < end))
        keys[places[ours] - begin, band] = bands.keys[band][ours]
    return keys


def _params(recipe: Recipe, _: str) -> dict[str, Any]:
    return {
        "near": recipe.near_duplicate_pairs.near,
        "facts": bool(recipe.removed_documents.exact),
        "bands": [BANDS, ROWS],
    }


STAGE = Stage(
    name="signature_index",
    description=(
        "LSH bands of one snapshot's signatures, sorted once, for comparison with every "
        "newer snapshot."
    ),
    code_version="1",
    reads={FILTERED_DOCUMENTS: SAME_SNAPSHOT, DOCUMENT_SIGNATURES: SAME_SNAPSHOT},
    params=_params,
    checks=(every_document_has_its_place, bands_ascend, bands_are_those_of_the_signatures),
    group="documents",
    job="snapshot_documents",
    pool=WORKERS,
    kinds=("numpy", "parquet"),
    write=write_signature_index,
    show=later("lc_assets.stages.shown.removing:signature_index"),
)
"""Signatures of a snapshot, cut into bands and sorted."""
