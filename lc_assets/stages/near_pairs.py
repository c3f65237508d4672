"""`near_pairs`: which documents of a snapshot are nearly the same as others of it, or of an older one.

A partition reads its own and all older snapshots, so a newer one makes none of them out of date. Older means that the
name comes before, as text. Candidates share one of 18 bands of 7 numbers of their signatures, whichever scheme made
these, and are compared by their texts; pairs that are alike to the floor are published. Who goes is not decided here
(`lc_assets.stages.removals`), so another threshold costs no comparison.
"""
# ruff: noqa: S608 - every name in these queries is this package's own, every path and value is quoted

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lc_assets.errors import Mismatch, NotPublished
from lc_assets.formats.redpajama.minhash import read_signatures
from lc_assets.publishing import publish
from lc_assets.stages.building import Built, Draft, Evidence, Finding, Stage, Workshop, build, run_shards
from lc_assets.stages.claims import DOCUMENTS_SUFFIX, documents_files, evenly_spaced
from lc_assets.stages.deduplication.asking import Search, Signing
from lc_assets.stages.deduplication.deciding import PAIRS_FILE
from lc_assets.stages.deduplication.evidence import publish_evidence
from lc_assets.stages.deduplication.index import PLACE_BITS, FilePart, Index, IndexedFile, Manifest, facts_path, publish_bands
from lc_assets.stages.deduplication.queries import parquet, queries
from lc_assets.stages.deduplication.settings import FACTS, NEAR, Decision, Means, Scheme
from lc_assets.stages.deduplication.signing import BANDS, ROWS, sign
from lc_assets.stages.recipe import Recipe
from lc_assets.stages.signing import MINHASH_SUFFIX
from lc_assets.stages.tables import count_lines, read_lines, read_table
from lc_assets.storage.receipts import WORKINGS
from lc_assets.storage.versions import Published
from lc_assets.tally import Tally
from lc_assets.text.duplicate_keys import band_keys
from lc_assets.text.shingles import jaccard, shingle_hashes
from lc_assets.vocabulary import SnapshotId

NEAR_PAIRS: Final = pa.schema([("a", pa.string()), ("b", pa.string()), ("bands", pa.uint64()), ("similarity", pa.float64())])
"""`near_pairs`: two documents, ``b`` of this snapshot, the bands that they share, and their true Jaccard index."""

TABLE: Final = "near_pairs.parquet"
REFUTED: Final = "less alike than the floor"
COMPARED_AGAIN: Final = 20
"""Pairs whose similarity the audit computes anew from the texts."""


INDEXED_TOGETHER: Final = 1 << 16
"""Documents from which on no further shard of a snapshot goes into the same file of the index.

RedPajama-V2's shards keep some 40 documents each, and a file of the index is opened some forty times: one a shard would cost
15 CPU-milliseconds, and be mapped into memory more often than Linux lets a process.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class BandsTask:
    """Some shards' documents and signatures to become the bands of file ``number`` of an index in ``folder``."""

    shards: tuple[tuple[Path, Path], ...]
    parts: tuple[FilePart, ...]
    number: int
    folder: Path

    @property
    def file(self) -> IndexedFile:
        """The shards as one file."""
        sizes = {name: sum(getattr(part, name) for part in self.parts) for name in ("n_bytes", "n_documents")}
        return IndexedFile(number=self.number, path=self.parts[0].path, source="", parts=self.parts, **sizes)

    def __str__(self) -> str:
        return f"{self.shards[0][1]} and {len(self.shards) - 1:,} more"


def pair_snapshot(workshop: Workshop, snapshot: SnapshotId) -> Built:
    """Publish the near duplicates of one snapshot, among itself and the older ones.

    Raises:
        NotPublished: when filtered documents or signatures of the snapshot are not there.
        Mismatch: when signatures are of other documents than those that stand filtered.
    """

    def fill(draft: Draft) -> Tally:
        for stage in STAGE.upstream:
            if f"{stage}/{snapshot}" not in draft.inputs:
                raise NotPublished(f"{stage}/{snapshot} has not been published")
        return _fill(workshop, draft, snapshot)

    return build(workshop, STAGE, snapshot, fill)


def _fill(workshop: Workshop, draft: Draft, snapshot: SnapshotId) -> Tally:
    settings = workshop.recipe.deduplication
    work = draft.folder / WORKINGS / "search"
    shutil.rmtree(work, ignore_errors=True)
    tasks = _tasks(draft, work / "index") if settings.near else []
    run_shards(workshop, draft, cut_bands, tasks, what=f"bands up to {snapshot}")
    scheme = Scheme(signature=f"{BANDS} × {ROWS}", floor=settings.evidence_floor)
    files = tuple(task.file for task in tasks)
    search = Search(
        sources=(),
        out=work,
        signing=Signing(name=scheme.signature, bands=BANDS, sign=sign),
        engine=workshop.engine,
        decision=Decision(by=(NEAR,)),
        scheme=scheme,
    )
    work.mkdir(parents=True, exist_ok=True)
    n_old = sum(not _is_of(task, draft, snapshot) for task in tasks)
    counted = Tally()
    if tasks:
        index = Index(((work / "index", Manifest(scheme=scheme, files=files)),))
        counted = publish_evidence(search, index, first_new=n_old)
    with queries(work / "duckdb", Means().memory // 2) as asked:
        columns = ", ".join(NEAR_PAIRS.names)
        nothing = "SELECT '' AS a, '' AS b, 0 AS bands, 0.0 AS similarity WHERE false"
        query = f"SELECT {columns} FROM {parquet([work / PAIRS_FILE])} ORDER BY a, b" if tasks else nothing
        n_pairs = asked.publish(query, draft.folder / TABLE, NEAR_PAIRS)
    n_candidates = counted.also.get("candidates", 0)
    dropped = {REFUTED: n_candidates - n_pairs} if n_candidates > n_pairs else {}
    also = {name: count for name, count in counted.also.items() if name in {"documents compared", "characters compared"}}
    return Tally(seen=n_candidates, kept=n_pairs, dropped=dropped, complaints=dropped, also=also)


def _tasks(draft: Draft, folder: Path) -> list[BandsTask]:
    """Shards of all snapshots, oldest first: what is new so comes last; many small ones of a snapshot together."""
    snapshots = sorted(name.partition("/")[2] for name in draft.inputs if name.startswith("filtered/"))
    groups = [(key, parts) for key in snapshots for parts in _together(documents_files(_folder(draft, key)))]
    return [
        BandsTask(
            shards=tuple((Path(part.path), _signatures(draft.inputs, key, Path(part.path))) for part in parts),
            parts=parts,
            number=number,
            folder=folder,
        )
        for number, (key, parts) in enumerate(groups)
    ]


def _together(paths: Sequence[Path]) -> Iterator[tuple[FilePart, ...]]:
    parts, n_documents = list[FilePart](), 0
    for path in paths:
        parts.append(FilePart(path=str(path), n_bytes=path.stat().st_size, n_documents=count_lines(path)))
        n_documents += parts[-1].n_documents
        if n_documents >= INDEXED_TOGETHER:
            yield tuple(parts)
            parts, n_documents = [], 0
    if parts:
        yield tuple(parts)


def _folder(draft: Draft, key: str) -> Path:
    return draft.inputs[f"filtered/{key}"].folder


def _is_of(task: BandsTask, draft: Draft, snapshot: str) -> bool:
    return task.shards[0][0].parent == _folder(draft, snapshot)


def _signatures(inputs: Any, key: str, documents: Path) -> Path:
    published: Published | None = inputs.get(f"signatures/{key}")
    if published is None:
        raise NotPublished(f"signatures/{key} has not been published, filtered/{key} has: materialize it first")
    return published.folder / documents.name.replace(DOCUMENTS_SUFFIX, MINHASH_SUFFIX)


def cut_bands(task: BandsTask) -> Tally:
    """Publish facts (who, nothing else) and bands of some shards."""
    ids, keys, signed = list[str](), [np.empty((0, BANDS), np.uint64)], [np.empty(0, np.bool_)]
    for documents, signatures in task.shards:
        found: list[str] = []
        for part in read_signatures(signatures, where=str(signatures)):
            keys.append(band_keys(part.numbers[:, : BANDS * ROWS].reshape(-1, BANDS, ROWS)))
            signed.append(part.is_signed)
            found += part.ids
        if found != read_table(documents, ["id"])["id"].to_pylist():
            raise Mismatch(f"{signatures}: is of other documents than {documents}; materialize `signatures` of this snapshot again")
        ids += found
    publish_bands(task.folder, task.number, np.concatenate(keys), np.concatenate(signed))
    nothing = {name: pa.nulls(len(ids), FACTS.field(name).type) for name in FACTS.names}
    numbers = task.number << PLACE_BITS | np.arange(len(ids))
    with publish(facts_path(task.folder, task.number)) as draft:
        pq.write_table(pa.table(nothing | {"number": numbers, "id": ids}, schema=FACTS), draft)
    return Tally()


def the_pairs_add_up(evidence: Evidence) -> Finding:
    """The table holds as many pairs as were counted, each once, of this snapshot, and alike at least to the floor."""
    table = read_table(evidence.folder / TABLE, NEAR_PAIRS.names)
    lines = list(zip(table["a"].to_pylist(), table["b"].to_pylist(), table["similarity"].to_pylist(), strict=True))
    floor = evidence.fingerprint.params["evidence_floor"]
    n_unlike = sum(not floor <= alike <= 1 for _, _, alike in lines)
    n_strange = sum(not b.startswith(f"{evidence.fingerprint.key}/") for _, b, _ in lines)
    n_twice = len(lines) - len({frozenset((a, b)) for a, b, _ in lines if a != b})
    right = len(lines) == evidence.tally.kept and not n_unlike and not n_strange and not n_twice
    return Finding(
        claim="the_pairs_add_up",
        passed=right,
        words=f"{len(lines):,} pairs of {evidence.tally.kept:,} counted; {n_twice:,} twice or of one document, "
        f"{n_unlike:,} less alike than {floor}, {n_strange:,} of other snapshots",
        numbers={"pairs": len(lines)},
    )


def pairs_are_as_alike_as_they_say(evidence: Evidence) -> Finding:
    """An even choice of pairs, compared anew by their texts, is exactly as alike as the table says."""
    lines = read_table(evidence.folder / TABLE, NEAR_PAIRS.names).to_pylist()
    chosen = [lines[place] for place in evenly_spaced(len(lines), COMPARED_AGAIN)]
    texts = _texts(evidence, {line[side] for line in chosen for side in ("a", "b")})
    wrong = [line for line in chosen if _unlike(texts, line)]
    return Finding(
        claim="pairs_are_as_alike_as_they_say",
        passed=not wrong,
        words=f"{len(chosen):,} of {len(lines):,} pairs compared anew, {len(wrong):,} differ"
        + (f", such as {wrong[0]['a']} and {wrong[0]['b']}" if wrong else ""),
        numbers={"compared anew": len(chosen), "differ": len(wrong)},
    )


def _unlike(texts: dict[str, str], line: dict[str, Any]) -> bool:
    if line["a"] not in texts or line["b"] not in texts:
        return True
    found = jaccard(shingle_hashes(texts[line["a"]]), shingle_hashes(texts[line["b"]]))
    return bool(abs(found - line["similarity"]) > 1e-12)


def _texts(evidence: Evidence, ids: set[str]) -> dict[str, str]:
    folders = [published.folder for name, published in evidence.inputs.items() if name.startswith("filtered/")]
    shards = {name.rpartition("/")[0] for name in ids}
    found: dict[str, str] = {}
    for path in (path for folder in folders for path in documents_files(folder)):
        first = next(iter(read_lines(path, ["id"], batch_lines=1)), None)
        if first is not None and first["id"].rpartition("/")[0] in shards:
            found |= {line["id"]: line["raw_content"] for line in read_lines(path, ["id", "raw_content"]) if line["id"] in ids}
    return found


def _params(recipe: Recipe, _: str) -> dict[str, Any]:
    settings = recipe.deduplication
    return {"near": settings.near, "evidence_floor": settings.evidence_floor, "bands": [BANDS, ROWS]}


STAGE = Stage(
    name="near_pairs",
    code_version="1",
    upstream=("filtered", "signatures"),
    params=_params,
    claims=(the_pairs_add_up, pairs_are_as_alike_as_they_say),
    global_upstream=True,
    reads=lambda _recipe, key, upstream_key: upstream_key <= key,
)
"""Near duplicates of a snapshot, among itself and the older ones."""
