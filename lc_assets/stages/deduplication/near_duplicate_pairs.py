"""`near_duplicate_pairs`: which documents of a snapshot are near duplicates of others of it, or of
an older one.

A partition reads its own and all older snapshots, so a newer one makes none of them out of date.
Snapshots are ordered by name, as text. Candidates share one of 18 LSH bands of 7 numbers of their
signatures, under any signature scheme; of older snapshots only band keys are read
(`lc_assets.stages.deduplication.index`), and the texts of documents that share a band with a new
one. Candidates are compared by their texts, and pairs at or above the floor are published. Which
documents are removed is decided in `lc_assets.stages.deduplication.removed_documents`, so another
threshold costs no comparison.
"""

import contextlib
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lc_assets import arrow_compute as pc
from lc_assets.builds.checks import DOCUMENTS_SUFFIX, evenly_spaced
from lc_assets.builds.inputs import made_from
from lc_assets.builds.recipe import Recipe
from lc_assets.builds.stage import (
    THIS_AND_OLDER,
    BuildContext,
    CheckInput,
    CheckResult,
    Stage,
    StagingFolder,
)
from lc_assets.builds.tables import read_all, read_table, write_table
from lc_assets.counts import Counts
from lc_assets.errors import BadInput, Mismatch, NotPublished
from lc_assets.lake.receipts import SCRATCH
from lc_assets.lake.versions import Published
from lc_assets.publishing import publish
from lc_assets.stages.deduplication.document_signatures import shingles_of
from lc_assets.stages.deduplication.index import (
    BANDS,
    PLACE_BITS,
    PLACES,
    ROWS,
    IndexedFile,
    bands_path,
    documents_path,
    indexed_files,
    shards_at,
)
from lc_assets.stages.deduplication.verification import VERIFIED, Part, compared_pairs
from lc_assets.stages.tokens.tokenized_text import (
    privacy_of,
    privacy_params,
    read_texts,
)
from lc_assets.text.duplicates.clusters import Measure, Numbers
from lc_assets.text.duplicates.grams import Hashes
from lc_assets.text.duplicates.keys import (
    Shingles,
    containment,
    jaccard,
    shingle_hashes,
)
from lc_assets.text.texts import parts
from lc_assets.tokens.tokenizers import n_characters
from lc_assets.vocabulary import Shard, parse_document_id

NEAR_PAIRS = pa.schema(
    {
        "a": "string",
        "b": "string",
        "bands": "uint64",
        "similarity": "float64",
    }
)
"""`near_duplicate_pairs`: two documents, ``b`` of this snapshot, the bands that they share, and
their true similarity: by default the Jaccard index.
"""

TABLE = "near_pairs.parquet"
REFUTED = "less alike than the floor"
GROUP_PAIRS = 1 << 16
"""Of a row group of the table."""
LEAST_AGAIN, MOST_AGAIN, CHARS_AGAIN = 4, 20, 1 << 20
"""Pairs whose similarity the check recomputes: of some so many characters together."""


def write_near_duplicate_pairs(context: BuildContext, staging: StagingFolder) -> Counts:
    """Write the near duplicates of one snapshot, among itself and the older ones.

    Raises:
        NotPublished: when the snapshot's filtered documents or index are missing.
        Mismatch: when an index is of other documents than the current filtered ones, or of
            signatures of another scheme.
    """
    snapshot = staging.key
    for stage in STAGE.upstream:
        if f"{stage}/{snapshot}" not in staging.inputs:
            raise NotPublished(f"{stage}/{snapshot} has not been published")
    settings, inputs = context.recipe.near_duplicate_pairs, staging.inputs
    work = staging.folder / SCRATCH / "search"
    shutil.rmtree(work, ignore_errors=True)
    files = indexed_files(inputs, "*") if settings.near else []
    if settings.near:
        _require_comparable(inputs, files)
    if files:
        tables, counted = compared_pairs(
            work,
            context.executor,
            {bands_path(file.folder, file.number): file.n_documents for file in files},
            lambda number, places: _parts_of(inputs, files[number], places),
            first_new=sum(file.snapshot != snapshot for file in files),
            floor=settings.evidence_floor,
            privacy=context.recipe.token_documents.privacy,
            shingles=shingles_of(context.recipe),
            measure=settings.measure,
        )
        documents = [documents_path(file.folder, file.number) for file in files]
        return publish_pairs(staging.folder / TABLE, tables, documents, counted)
    write_table(staging.folder / TABLE, NEAR_PAIRS.empty_table())
    return Counts.of(0, {REFUTED: 0})


def _require_comparable(inputs: Mapping[str, Published], files: Sequence[IndexedFile]) -> None:
    """Require that all indices are of the current documents, and of signatures of one scheme.

    Raises:
        Mismatch: when one is not.
    """
    for _, filtered in sorted(inputs.items()):
        if filtered.stage == "filtered_documents":
            made_from(inputs, "signature_index", filtered)
    schemes = {file.snapshot: file.signature for file in files}
    newest = schemes[max(schemes)] if schemes else ""
    if other := [snapshot for snapshot, scheme in schemes.items() if scheme != newest]:
        raise Mismatch(
            f"signatures of {', '.join(other)} were made by {schemes[other[0]]}, those of "
            f"{max(schemes)} by {newest}, and the two do not compare: materialize "
            "`document_signatures` and `signature_index` of all snapshots by one recipe"
        )


def _parts_of(
    inputs: Mapping[str, Published], file: IndexedFile, places: Numbers
) -> tuple[Part, ...]:
    """The tables that hold some documents of a file, by index; no others are opened."""
    shards = shards_at(file.folder, file.number, places).to_pylist()
    names = [f"{shard['shard']}{DOCUMENTS_SUFFIX}" for shard in shards]
    folder = inputs[f"filtered_documents/{file.snapshot}"].only(*names)
    return tuple(
        (folder / name, range(shard["first"], shard["first"] + shard["n_documents"]))
        for name, shard in zip(names, shards, strict=True)
    )


def publish_pairs(
    path: Path, tables: Sequence[Path], documents: Sequence[Path], counted: Counts
) -> Counts:
    """Publish verified pairs as `NEAR_PAIRS`, sorted; count them.

    Args:
        path: the table.
        tables: the pairs, by number.
        documents: tables with the ids of the documents of every file, by place.
        counted: by `verified_pairs`.
    """
    extra = dict(counted.extra)
    n_seen, n_pairs = extra.pop("candidates"), extra.pop("verified")
    pairs = read_all(tables, VERIFIED)
    numbers = np.union1d(pairs["a"].to_numpy(), pairs["b"].to_numpy())
    cuts = np.searchsorted(numbers, np.arange(1, len(documents)) << PLACE_BITS)
    ids = [pa.array([], pa.large_string())]  # together they may be more than 2 GiB
    for file, ours in zip(documents, np.split(numbers & PLACES, cuts), strict=True):
        if len(ours):
            found = read_table(file, ["id"])["id"].take(pa.array(ours))
            ids += found.cast(pa.large_string()).chunks
    names = pa.concat_arrays(ids)
    sides = [names.take(np.searchsorted(numbers, pairs[side].to_numpy())) for side in ("a", "b")]
    named = pa.table([*sides, *pairs.columns[2:]], NEAR_PAIRS.names)
    named = named.sort_by([("a", "ascending"), ("b", "ascending")])
    with publish(path) as draft, pq.ParquetWriter(draft, NEAR_PAIRS, compression="zstd") as writer:
        for start in range(0, n_pairs, GROUP_PAIRS):
            writer.write_table(named.slice(start, GROUP_PAIRS).cast(NEAR_PAIRS))
    return Counts.of(n_pairs, {REFUTED: n_seen - n_pairs}, extra)


def the_pairs_add_up(check_input: CheckInput) -> CheckResult:
    """The table holds as many pairs as counted, without repeats, all of this snapshot and at least
    as similar as the floor.
    """
    table = read_table(check_input.folder / TABLE, NEAR_PAIRS.names)
    a, b, similar = (table[name] for name in ("a", "b", "similarity"))
    floor, key = check_input.fingerprint.params["evidence_floor"], check_input.fingerprint.key
    alike = pc.and_(pc.less_equal(floor, similar), pc.less_equal(similar, 1))
    n_unlike = len(table) - pc.sum(alike, min_count=0).as_py()
    n_foreign = len(table) - pc.sum(pc.starts_with(b, f"{key}/"), min_count=0).as_py()
    swapped = pc.less(b, a)
    ends = pa.table([pc.if_else(swapped, b, a), pc.if_else(swapped, a, b)], ["a", "b"])
    pairs = ends.filter(pc.not_equal(a, b)).group_by(["a", "b"], use_threads=False).aggregate([])
    n_twice, n_counted = len(table) - len(pairs), check_input.counts.kept
    return CheckResult(
        passed=len(table) == n_counted and not n_unlike and not n_foreign and not n_twice,
        message=f"{len(table):,} pairs of {n_counted:,} counted; {n_twice:,} twice or of one "
        f"document, {n_unlike:,} less alike than {floor}, {n_foreign:,} of other snapshots",
        values={"pairs": len(table)},
    )


def pairs_are_as_alike_as_they_say(check_input: CheckInput) -> CheckResult:
    """Evenly chosen pairs, compared again by text, have exactly the similarity in the table.

    They are `MOST_AGAIN` pairs, fewer of long documents. All pairs are compared by one kernel, of
    sets made by one function; tests hold both against every text compared with every other.
    """
    table = read_table(check_input.folder / TABLE, NEAR_PAIRS.names)
    places = evenly_spaced(len(table), _most_again(check_input.counts))
    chosen = table.take(pa.array(places, pa.int64())).to_pylist()
    sets = _shingles(check_input, {line[side] for line in chosen for side in ("a", "b")})
    measure = check_input.fingerprint.params.get("measure", "jaccard")
    wrong = [
        line
        for line in chosen
        if not {line["a"], line["b"]} <= sets.keys()
        or abs(alike(*sets[line["a"]], *sets[line["b"]], measure) - line["similarity"]) > 1e-12
    ]
    return CheckResult(
        passed=not wrong,
        message=f"{len(chosen):,} of {len(table):,} pairs compared again, {len(wrong):,} differ"
        + (f", such as {wrong[0]['a']} and {wrong[0]['b']}" if wrong else ""),
        values={"compared again": len(chosen), "differ": len(wrong)},
    )


def _most_again(counts: Counts) -> int:
    n_documents, n_chars = (
        counts.extra.get(f"{what} compared", 0) for what in ("documents", "characters")
    )
    return min(max(LEAST_AGAIN, CHARS_AGAIN * n_documents // max(2 * n_chars, 1)), MOST_AGAIN)


def alike(
    ours: Hashes, our_chars: int, theirs: Hashes, their_chars: int, measure: Measure
) -> float:
    """How similar two texts are, by their shingles and characters."""
    if measure == "jaccard":
        return jaccard(ours, theirs)
    return containment(ours, theirs, our_chars - their_chars)


def _shingles(check_input: CheckInput, ids: set[str]) -> dict[str, tuple[Hashes, int]]:
    """Shingles and characters of some documents; omits those whose texts are not inputs."""
    found, shards = dict[str, tuple[Hashes, int]](), set[Shard]()
    privacy = privacy_of(check_input.fingerprint.params)
    shingles = Shingles(**check_input.fingerprint.params.get("shingles", {}))
    for name in ids:
        with contextlib.suppress(BadInput):
            shards.add(parse_document_id(name)[0])
    for shard in sorted(shards):
        filtered = check_input.inputs.get(f"filtered_documents/{shard.snapshot}")
        file = f"{shard.name}{DOCUMENTS_SUFFIX}"
        if filtered is not None and (path := filtered.only(file) / file).is_file():
            only = np.asarray(pc.is_in(read_table(path, ["id"])["id"], pa.array(ids, pa.string())))
            for texts in read_texts(path, ["id"], privacy, only):
                names = texts.lines["id"].to_pylist()
                for name, text in zip(names, map(bytes, parts(*texts.tokenized)), strict=True):
                    hashes = shingle_hashes(text, shingles.size, shingles.of)
                    found[name] = hashes, n_characters(text)
    return found


def _params(recipe: Recipe, _: str) -> dict[str, Any]:
    settings = recipe.near_duplicate_pairs
    return {
        "near": settings.near,
        "evidence_floor": settings.evidence_floor,
        "bands": [BANDS, ROWS],
        "shingles": asdict(shingles_of(recipe)),
        **({} if settings.measure == "jaccard" else {"measure": settings.measure}),
    } | privacy_params(recipe)


STAGE = Stage(
    name="near_duplicate_pairs",
    description=(
        "Near duplicates within one snapshot and with older ones; every pair is verified "
        "by its texts."
    ),
    code_version="3",
    reads={"filtered_documents": THIS_AND_OLDER.summarized(), "signature_index": THIS_AND_OLDER},
    params=_params,
    checks=(the_pairs_add_up, pairs_are_as_alike_as_they_say),
    columns=NEAR_PAIRS,
    job="snapshot_documents",
    kinds=("parquet",),
    counted="pairs",
    write=write_near_duplicate_pairs,
)
"""Near duplicates of a snapshot, among itself and the older ones."""
