"""`near_duplicate_pairs`: which documents of a snapshot are nearly the same as others of it, or of
an older one.

A partition reads its own and all older snapshots, so a newer one makes none of them out of date.
Older means that the name comes before, as text. Candidates share one of 18 bands of 7 numbers of
their signatures, whichever scheme made these. Bands were cut once, with their snapshot
(`lc_assets.stages.deduplication.signature_index`): of older ones the keys are passed by, and
nothing is opened but what is like something new. Candidates are compared by their texts; pairs that
are alike to the floor are published. Who goes is not decided here
(`lc_assets.stages.deduplication.removed_documents`), so another threshold costs no comparison.
"""

import contextlib
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from lc_assets.build.building import build
from lc_assets.build.checks import DOCUMENTS_SUFFIX, evenly_spaced
from lc_assets.build.recipe import Recipe
from lc_assets.build.stage import (
    THIS_AND_OLDER,
    WORKERS,
    BuildContext,
    Built,
    CheckInput,
    CheckResult,
    Stage,
    StagingFolder,
    later,
)
from lc_assets.build.tables import read_lines, read_table
from lc_assets.counts import Counts
from lc_assets.errors import BadInput, Mismatch, NotPublished
from lc_assets.lake.receipts import SCRATCH
from lc_assets.lake.versions import Published
from lc_assets.stages.deduplication.banded_documents import (
    bands_of,
    documents_at,
    read_bands_manifest,
    shards_at,
)
from lc_assets.stages.deduplication.evidence import (
    Banded,
    Comparing,
    compared_pairs,
    name_documents,
)
from lc_assets.stages.deduplication.index import PLACE_BITS, FilePart, bands_path
from lc_assets.stages.deduplication.queries import queries
from lc_assets.stages.deduplication.settings import BANDS, ROWS, Means, Scheme
from lc_assets.stages.deduplication.signature_index import STAGE as SIGNATURE_INDEX
from lc_assets.stages.documents.filtered_documents import STAGE as FILTERED_DOCUMENTS
from lc_assets.text.duplicates.clusters import Numbers
from lc_assets.text.duplicates.shingles import jaccard, shingle_hashes
from lc_assets.vocabulary import Shard, SnapshotId, parse_document_id

NEAR_PAIRS: Final = pa.schema(
    [("a", pa.string()), ("b", pa.string()), ("bands", pa.uint64()), ("similarity", pa.float64())]
)
"""`near_duplicate_pairs`: two documents, ``b`` of this snapshot, the bands that they share, and
their true Jaccard index.
"""

TABLE: Final = "near_pairs.parquet"
REFUTED: Final = "less alike than the floor"
COMPARED_AGAIN: Final = 20
"""Pairs whose similarity the audit computes anew from the texts."""


def write_near_duplicate_pairs(context: BuildContext, snapshot: SnapshotId) -> Built:
    """Publish the near duplicates of one snapshot, among itself and the older ones.

    Raises:
        NotPublished: when filtered documents or bands of the snapshot are not there.
        Mismatch: when bands are of other documents than those that stand filtered, or signed
            otherwise than those of another one.
    """

    def fill(staging: StagingFolder) -> Counts:
        for stage in STAGE.upstream:
            if f"{stage}/{snapshot}" not in staging.inputs:
                raise NotPublished(f"{stage}/{snapshot} has not been published")
        return _fill(context, staging, snapshot)

    return build(context, STAGE, snapshot, fill)


def _fill(context: BuildContext, staging: StagingFolder, snapshot: SnapshotId) -> Counts:
    settings = context.recipe.near_duplicate_pairs
    work = staging.folder / SCRATCH / "search"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    verified, counted = list[Path](), Counts()
    files = banded_files(staging.inputs) if settings.near else []
    if files:
        banded = Banded(
            scheme=Scheme(signature=f"{BANDS} × {ROWS}", floor=settings.evidence_floor),
            n_bands=BANDS,
            bands=tuple(bands_path(file.folder, file.number) for file in files),
            documents=tuple(file.n_documents for file in files),
            first_new=sum(file.snapshot != snapshot for file in files),
        )
        comparing = Comparing(work=work, executor=context.executor)
        verified, counted = compared_pairs(
            comparing, banded, partial(_texts_of, staging.inputs, files)
        )
    n_pairs = _publish(staging, work, verified, files)
    n_candidates = counted.extra.get("candidates", 0)
    dropped = {REFUTED: n_candidates - n_pairs} if n_candidates > n_pairs else {}
    extra = {
        name: count
        for name, count in counted.extra.items()
        if name in {"documents compared", "characters compared"}
    }
    return Counts(
        seen=n_candidates, kept=n_pairs, dropped=dropped, failed_rules=dropped, extra=extra
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class BandedFile:
    """A file of bands: of which snapshot, its number there, where it lies, how many documents it is
    of.
    """

    snapshot: str
    number: int
    folder: Path
    n_documents: int


def banded_files(inputs: Mapping[str, Published]) -> list[BandedFile]:
    """The files of bands of all snapshots that are read, oldest first.

    Raises:
        NotPublished: when a snapshot stands filtered whose bands do not.
        Mismatch: when they are of other documents, or were signed otherwise than those of the
            newest snapshot.
    """
    found, schemes = list[BandedFile](), dict[str, str]()
    for snapshot in sorted(
        name.partition("/")[2] for name in inputs if name.startswith("filtered_documents/")
    ):
        folder = _bands_of_what_stands(inputs, snapshot).folder
        manifest = read_bands_manifest(folder)
        counted = enumerate(manifest.documents)
        found += [
            BandedFile(snapshot=snapshot, number=number, folder=folder, n_documents=n_documents)
            for number, n_documents in counted
        ]
        schemes |= {snapshot: manifest.signature} if manifest.signature else {}
    newest = schemes[max(schemes)] if schemes else ""
    if other := [snapshot for snapshot, scheme in schemes.items() if scheme != newest]:
        raise Mismatch(
            f"signatures of {', '.join(other)} were made by {schemes[other[0]]}, those of "
            f"{max(schemes)} by {newest}, and the two do not "
            "compare: materialize `document_signatures` and `signature_index` of all snapshots by "
            "one recipe"
        )
    return found


def _bands_of_what_stands(inputs: Mapping[str, Published], snapshot: str) -> Published:
    bands, filtered = bands_of(inputs, snapshot), inputs[f"filtered_documents/{snapshot}"]
    if bands.receipt.fingerprint.inputs.get(filtered.name) != filtered.digest:
        raise Mismatch(
            f"{bands.name}: is of other documents than {filtered.name} now has; materialize "
            "`signature_index` of this snapshot again"
        )
    return bands


def _texts_of(
    inputs: Mapping[str, Published], files: Sequence[BandedFile], number: int, places: Numbers
) -> tuple[FilePart, ...]:
    """Where the texts of some documents of a file lie: of the shards of that snapshot only those
    that hold one.
    """
    file = files[number]
    shards = shards_at(file.folder, file.number, places).to_pylist()
    names = [f"{shard['shard']}{DOCUMENTS_SUFFIX}" for shard in shards]
    folder = inputs[f"filtered_documents/{file.snapshot}"].only(*names)
    return tuple(
        FilePart(
            path=str(folder / name),
            n_bytes=shard["n_bytes"],
            n_documents=shard["n_documents"],
            first=shard["first"],
        )
        for name, shard in zip(names, shards, strict=True)
    )


def _publish(
    staging: StagingFolder, work: Path, verified: list[Path], files: Sequence[BandedFile]
) -> int:
    """Publish the pairs by their documents' ids, of which only those in a pair are looked up;
    return how many there are.
    """
    nothing = "SELECT '' AS a, '' AS b, 0 AS bands, 0.0 AS similarity WHERE false"
    with queries(work / "duckdb", Means().memory // 2) as asked:
        if verified:
            name_documents(
                asked, verified, work / "names.parquet", lambda numbers: _names(numbers, files)
            )
        named = """SELECT l.id AS a, r.id AS b, bands, similarity
            FROM verified v JOIN names l ON l.number = v.a JOIN names r ON r.number = v.b ORDER BY 1, 2"""
        return asked.publish(named if verified else nothing, staging.folder / TABLE, NEAR_PAIRS)


def _names(numbers: Numbers, files: Sequence[BandedFile]) -> Iterator[pa.Table]:
    """Ids of some documents, by ascending numbers, a file of bands at a time."""
    for number in np.unique(numbers >> PLACE_BITS).tolist():
        begin, end = np.searchsorted(numbers, [number << PLACE_BITS, (number + 1) << PLACE_BITS])
        places = numbers[begin:end] & ((1 << PLACE_BITS) - 1)
        table = documents_at(files[number].folder, files[number].number, places, ["id"])
        yield table.append_column("number", pa.array(numbers[begin:end]))


def the_pairs_add_up(check_input: CheckInput) -> CheckResult:
    """The table holds as many pairs as were counted, each once, of this snapshot, and alike at
    least to the floor.
    """
    table = read_table(check_input.folder / TABLE, NEAR_PAIRS.names)
    lines = list(
        zip(
            table["a"].to_pylist(),
            table["b"].to_pylist(),
            table["similarity"].to_pylist(),
            strict=True,
        )
    )
    floor = check_input.fingerprint.params["evidence_floor"]
    n_unlike = sum(not floor <= alike <= 1 for _, _, alike in lines)
    n_strange = sum(not b.startswith(f"{check_input.fingerprint.key}/") for _, b, _ in lines)
    n_twice = len(lines) - len({frozenset((a, b)) for a, b, _ in lines if a != b})
    right = len(lines) == check_input.counts.kept and not n_unlike and not n_strange and not n_twice
    return CheckResult(
        check="the_pairs_add_up",
        passed=right,
        message=f"{len(lines):,} pairs of {check_input.counts.kept:,} counted; {n_twice:,} twice "
        "or of "
        "one document, "
        f"{n_unlike:,} less alike than {floor}, {n_strange:,} of other snapshots",
        values={"pairs": len(lines)},
    )


def pairs_are_as_alike_as_they_say(check_input: CheckInput) -> CheckResult:
    """An even choice of pairs, compared anew by their texts, is exactly as alike as the table
    says.
    """
    lines = read_table(check_input.folder / TABLE, NEAR_PAIRS.names).to_pylist()
    chosen = [lines[place] for place in evenly_spaced(len(lines), COMPARED_AGAIN)]
    texts = _texts(check_input, {line[side] for line in chosen for side in ("a", "b")})
    wrong = [line for line in chosen if _unlike(texts, line)]
    return CheckResult(
        check="pairs_are_as_alike_as_they_say",
        passed=not wrong,
        message=f"{len(chosen):,} of {len(lines):,} pairs compared anew, {len(wrong):,} differ"
        + (f", such as {wrong[0]['a']} and {wrong[0]['b']}" if wrong else ""),
        values={"compared anew": len(chosen), "differ": len(wrong)},
    )


def _unlike(texts: dict[str, str], line: dict[str, Any]) -> bool:
    if line["a"] not in texts or line["b"] not in texts:
        return True
    found = jaccard(shingle_hashes(texts[line["a"]]), shingle_hashes(texts[line["b"]]))
    return bool(abs(found - line["similarity"]) > 1e-12)


def _texts(check_input: CheckInput, ids: set[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for shard in sorted({shard for shard in map(_shard_of, ids) if shard is not None}):
        filtered, name = (
            check_input.inputs.get(f"filtered_documents/{shard.snapshot}"),
            f"{shard.name}{DOCUMENTS_SUFFIX}",
        )
        if filtered is not None and (path := filtered.only(name) / name).is_file():
            found |= {
                line["id"]: line["raw_content"]
                for line in read_lines(path, ["id", "raw_content"])
                if line["id"] in ids
            }
    return found


def _shard_of(name: str) -> Shard | None:
    with contextlib.suppress(BadInput):
        return parse_document_id(name)[0]
    return None


def _params(recipe: Recipe, _: str) -> dict[str, Any]:
    settings = recipe.near_duplicate_pairs
    return {
        "near": settings.near,
        "evidence_floor": settings.evidence_floor,
        "bands": [BANDS, ROWS],
    }


STAGE = Stage(
    name="near_duplicate_pairs",
    description=(
        "Near duplicates within one snapshot and with older ones; every pair is verified "
        "by its texts."
    ),
    code_version="2",
    reads={FILTERED_DOCUMENTS: THIS_AND_OLDER.summarized(), SIGNATURE_INDEX: THIS_AND_OLDER},
    params=_params,
    checks=(the_pairs_add_up, pairs_are_as_alike_as_they_say),
    group="documents",
    job="snapshot_documents",
    pool=WORKERS,
    kinds=("parquet", "duckdb"),
    counted="pairs",
    write=write_near_duplicate_pairs,
    show=later("lc_assets.stages.shown.removing:near_duplicate_pairs"),
)
"""Near duplicates of a snapshot, among itself and the older ones."""
