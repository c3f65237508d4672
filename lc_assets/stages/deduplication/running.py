"""A search for duplicates from beginning to end, going on from an older one, and deciding anew.

::

    out/
      index/            facts and bands: what a later search goes on from
      pairs.parquet     evidence: everything that is alike at least to the floor
      clusters.parquet, removed.parquet, kept.parquet
      summary.json      settings and counts; written last, so what has one is whole

A search that was killed is run again: what it left is begun anew, and nothing in it can be taken for finished.
"""

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np
import pyarrow.parquet as pq

from lc_assets.engines.local import Engine
from lc_assets.errors import BadInput, CorruptFile, NotPublished
from lc_assets.formats.corpora.reading import corpus_files
from lc_assets.formats.npy import npy_bytes, read_npy
from lc_assets.publishing import disk_said_plainly, publish_bytes
from lc_assets.stages.deduplication.candidates import SliceTask, pair_slice, slices_for
from lc_assets.stages.deduplication.deciding import PAIRS_FILE, decide, repeated_texts
from lc_assets.stages.deduplication.facts import FactsTask, Signer, gather_facts
from lc_assets.stages.deduplication.index import PLACE_BITS, Index, IndexedFile, Manifest, open_index, publish_manifest
from lc_assets.stages.deduplication.queries import Queries, parquet, queries
from lc_assets.stages.deduplication.settings import NEAR, PAIRS, Decision, Means, Scheme, require_threshold
from lc_assets.stages.deduplication.verification import (
    DISTINCT,
    PAIRS_OF_A_TASK,
    ShinglesTask,
    VerifyTask,
    gather_shingles,
    verify,
)
from lc_assets.tally import Tally
from lc_assets.text.duplicates import Numbers

INDEX, WORK, SUMMARY = "index", "work", "summary.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Signing:
    """How documents are signed.

    Attributes:
        name: says it in words and numbers; indexes with another name cannot be matched.
        bands: of a signature.
        sign: a module-level function.
    """

    name: str
    bands: int
    sign: Signer


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """What a search did, or a decision after it; ``evidence`` is empty, or where the evidence of this decision lies."""

    scheme: Scheme
    decision: Decision
    tally: Tally
    work: dict[str, int]
    evidence: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """A search for duplicates.

    Attributes:
        sources: files and folders; their order is the documents', as far as an order matters.
        out: the folder to write into.
        signing: how documents are signed.
        decision: what is removed.
        scheme: what is evidence.
        means: memory.
        engine: where the work runs.
        against: index folder, or the output, of an older search.
        text_field: see `read_corpus`.
        workers: how many tasks the engine runs at once.
    """

    sources: Sequence[Path]
    out: Path
    signing: Signing
    engine: Engine
    decision: Decision = Decision()
    scheme: Scheme = Scheme()
    means: Means = Means()
    against: Path | None = None
    text_field: str | None = None
    workers: int = 1

    @property
    def work(self) -> Path:
        """Scratch, removed in the end."""
        return self.out / WORK


def deduplicate(search: Search) -> Summary:
    """Search a corpus for duplicates, among itself and against an older one, and decide.

    Raises:
        BadInput: when sources, settings and the older index do not go together.
        NotPublished: when the older index is not there.
        Mismatch: when a file of the older corpus has changed, so that a candidate in it cannot be compared.
    """
    scheme = msgspec.structs.replace(search.scheme, signature=search.signing.name)
    require_threshold(search.decision, scheme)
    older = _older(search, scheme)
    with disk_said_plainly(search.out):
        _begin(search.out)
        try:
            index, gathered = _index(search, scheme, older)
            counted = gathered + _evidence(search, index, older)
            with queries(search.work / "duckdb", search.means.memory // 2) as asked:
                tally = decide(asked, index.fact_paths, search.out / PAIRS_FILE, search.decision, search.out)
        finally:
            shutil.rmtree(search.work, ignore_errors=True)
        unread = Tally(seen=gathered.seen - gathered.kept, dropped=gathered.dropped, complaints=gathered.complaints)
        summary = Summary(scheme=scheme, decision=search.decision, tally=tally + unread, work=counted.also)
        publish_bytes(search.out / SUMMARY, msgspec.json.format(msgspec.json.encode(summary)))
    return summary


def decide_again(evidence: Path, out: Path, decision: Decision, means: Means = Means()) -> Summary:  # noqa: B008 - a frozen value
    """Decide anew from the evidence of a finished search, with another threshold, preference, or fewer kinds.

    Raises:
        NotPublished: when there is no finished search in ``evidence``.
        BadInput: when the threshold is below the evidence, or a kind is asked for that was not looked for.
    """
    found = read_summary(evidence)
    require_threshold(decision, found.scheme)
    if missing := set(decision.by) - set(found.decision.by):
        raise BadInput(f"{evidence} was not searched by {', '.join(sorted(missing))}; search it anew")
    index = open_index(evidence / INDEX)
    with disk_said_plainly(out):
        out.mkdir(parents=True, exist_ok=True)
        (out / SUMMARY).unlink(missing_ok=evidence.resolve() != out.resolve())
        try:
            with queries(out / WORK / "duckdb", means.memory // 2) as asked:
                tally = decide(asked, index.fact_paths, evidence / PAIRS_FILE, decision, out)
        finally:
            shutil.rmtree(out / WORK, ignore_errors=True)
        summary = Summary(scheme=found.scheme, decision=decision, tally=tally, work=found.work, evidence=str(evidence))
        publish_bytes(out / SUMMARY, msgspec.json.format(msgspec.json.encode(summary)))
    return summary


def read_summary(folder: Path) -> Summary:
    """The summary of a finished search.

    Raises:
        NotPublished: when there is none.
    """
    path = folder / SUMMARY
    if not path.is_file():
        raise NotPublished(f"{folder}: holds no {SUMMARY}, so no search for duplicates was finished there")
    try:
        return msgspec.json.decode(path.read_bytes(), type=Summary)
    except msgspec.MsgspecError as error:
        raise CorruptFile(f"{path}: not a summary of a search: {error}") from error


def _older(search: Search, scheme: Scheme) -> Index | None:
    if search.against is None:
        return None
    folder = search.against / INDEX if (search.against / INDEX).is_dir() else search.against
    if search.out.resolve() in (folder.resolve(), folder.parent.resolve()):
        raise BadInput(f"{search.out}: is what is searched against; write into another folder")
    index = open_index(folder)
    if index.scheme != scheme:
        raise BadInput(f"{folder}: was made by {index.scheme}, this search by {scheme}; evidence of the two cannot be joined")
    by = read_summary(folder.parent).decision.by
    if missing := set(search.decision.by) - set(by):
        raise BadInput(f"{folder}: was not searched by {', '.join(sorted(missing))}; search it anew")
    return index


def _begin(out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    (out / SUMMARY).unlink(missing_ok=True)
    for folder in (out / INDEX, out / WORK):
        shutil.rmtree(folder, ignore_errors=True)


def _index(search: Search, scheme: Scheme, older: Index | None) -> tuple[Index, Tally]:
    """Gather facts and bands of the new files, and publish the index that they and the older one are."""
    first = len(older.files) if older else 0
    folder = search.out / INDEX
    tasks = [
        FactsTask(
            path=path,
            number=number,
            source=source,
            folder=folder,
            kinds=search.decision.by,
            n_bands=search.signing.bands,
            sign=search.signing.sign,
            text_field=search.text_field,
        )
        for number, (source, path) in enumerate(_files(search.sources), start=first)
    ]
    counted = {task.number: tally for task, tally in search.engine.run(gather_facts, tasks, what="read")}
    files = [
        IndexedFile(
            number=task.number,
            path=str(task.path.resolve()),
            source=task.source,
            n_bytes=task.path.stat().st_size,
            n_documents=counted[task.number].also["places"],
        )
        for task in tasks
    ]
    manifest = Manifest(scheme=scheme, files=tuple(files), older=str(older.parts[-1][0].resolve()) if older else "")
    publish_manifest(folder, manifest)
    return Index(((*older.parts, (folder, manifest)) if older else ((folder, manifest),))), Tally.total(counted.values())


def _files(sources: Sequence[Path]) -> Iterator[tuple[str, Path]]:
    seen: set[Path] = set()
    for source in sources:
        for path in corpus_files([source]):
            if path.resolve() in seen:
                raise BadInput(f"{path}: is given twice, so every document in it would be its own duplicate")
            seen.add(path.resolve())
            yield source.name, path


def _evidence(search: Search, index: Index, older: Index | None) -> Tally:
    """Publish the pairs: those of the older evidence, and those with a new document."""
    if NEAR not in search.decision.by:
        with queries(search.work / "duckdb", search.means.memory // 2) as asked:
            _publish_pairs(search, asked, index, [], older)
        return Tally()
    counted = _candidates(search, index, older)
    with queries(search.work / "duckdb", search.means.memory // 2) as asked:
        wanted = _distinct(search, asked)
    counted += _verified(search, index, wanted)
    with queries(search.work / "duckdb", search.means.memory // 2) as asked:
        _publish_pairs(search, asked, index, sorted((search.work / "verified").glob("*.parquet")), older)
    return counted


def _candidates(search: Search, index: Index, older: Index | None) -> Tally:
    repeats = search.work / "repeats.npy"
    with queries(search.work / "duckdb", search.means.memory // 2) as asked:
        repeated_texts(asked, index.fact_paths)
        again = [np.asarray(batch.column(0)) for batch in asked.batches("SELECT number FROM texts WHERE number <> first ORDER BY 1")]
    publish_bytes(repeats, npy_bytes(np.concatenate([np.empty(0, np.int64), *again])))
    n_documents = sum(file.n_documents for file in index.files.values())
    slices = slices_for(n_documents, search.means.memory // (2 * search.workers))
    tasks = [
        SliceTask(
            folders=tuple(index.folder_of(number) for number in sorted(index.files)),
            first_new=len(older.files) if older else 0,
            repeats=repeats,
            band=band,
            slice=number,
            slices=slices,
            centres=index.scheme.centres,
            out=search.work / "met" / f"{band:02d}-{number:05d}.parquet",
        )
        for band in range(search.signing.bands)
        for number in range(slices)
    ]
    return Tally.total(tally for _, tally in search.engine.run(pair_slice, tasks, what="match bands"))


def _distinct(search: Search, asked: Queries) -> Path:
    """Publish each candidate once, with the bands that it shares; and the numbers of all documents in them."""
    met = parquet(sorted((search.work / "met").glob("*.parquet")))
    query = f"SELECT a, b, bit_or(1::UBIGINT << band) AS bands FROM {met} GROUP BY a, b ORDER BY a, b"
    path = search.work / "candidates.parquet"
    with pq.ParquetWriter(path, DISTINCT, compression="zstd") as writer:
        for batch in asked.batches(query):
            writer.write_batch(batch.cast(DISTINCT), row_group_size=PAIRS_OF_A_TASK)
    shutil.rmtree(search.work / "met")
    documents = f"SELECT a FROM {parquet([path])} UNION SELECT b FROM {parquet([path])} ORDER BY 1"
    numbers = [np.asarray(batch.column(0)) for batch in asked.batches(documents)]
    wanted = search.work / "wanted.npy"
    publish_bytes(wanted, npy_bytes(np.concatenate([np.empty(0, np.int64), *numbers])))
    return wanted


def _verified(search: Search, index: Index, wanted: Path) -> Tally:
    compared: Numbers = np.unique(read_npy(wanted) >> PLACE_BITS)
    shingles = search.work / "shingles"
    gathering = [
        ShinglesTask(
            file=index.files[number], wanted=wanted, words=index.scheme.shingle_words, folder=shingles, text_field=search.text_field
        )
        for number in compared.tolist()
    ]
    counted = Tally.total(tally for _, tally in search.engine.run(gather_shingles, gathering, what="read candidates"))
    candidates = search.work / "candidates.parquet"
    comparing = [
        VerifyTask(
            candidates=candidates,
            block=block,
            shingles=shingles,
            floor=index.scheme.floor,
            out=search.work / "verified" / f"{block:07d}.parquet",
        )
        for block in range(pq.read_metadata(candidates).num_row_groups)
    ]
    counted += Tally.total(tally for _, tally in search.engine.run(verify, comparing, what="compare"))
    shutil.rmtree(shingles, ignore_errors=True)
    return counted


def _publish_pairs(search: Search, asked: Queries, index: Index, verified: list[Path], older: Index | None) -> None:
    columns = ", ".join(PAIRS.names)
    parts = [f"SELECT {columns} FROM {parquet([older.parts[-1][0].parent / PAIRS_FILE])}"] if older else []
    if verified:
        parts.append(f"""
            SELECT l.id AS a, r.id AS b, v.a AS a_number, v.b AS b_number, v.bands, v.similarity, true AS verified
            FROM {parquet(verified)} v JOIN facts l ON l.number = v.a JOIN facts r ON r.number = v.b""")
    if not parts:
        parts = [f"SELECT '' AS a, '' AS b, 0 AS a_number, 0 AS b_number, 0 AS bands, 0.0 AS similarity, true AS verified WHERE false"]
    asked.do(f"CREATE OR REPLACE VIEW facts AS SELECT number, id FROM {parquet(index.fact_paths)}")
    asked.publish(f"{' UNION ALL '.join(parts)} ORDER BY a_number, b_number", search.out / PAIRS_FILE, PAIRS)
