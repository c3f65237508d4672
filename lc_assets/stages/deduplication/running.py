"""A search for duplicates from beginning to end, going on from an older one, and deciding anew.

::

    out/
      index/            facts and bands: what a later search goes on from
      pairs.parquet     evidence: everything that is alike at least to the floor
      clusters.parquet, removed.parquet, kept.parquet
      summary.json      settings and counts; written last, so what has one is whole

A search that was killed is run again: what it left is begun anew, and nothing in it can be taken
for finished.
"""

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from lc_assets.counts import Counts
from lc_assets.errors import UNDECODABLE, BadInput, CorruptFile, NotPublished
from lc_assets.foreign_errors import os_errors_as_lc_errors
from lc_assets.formats.corpora.reading import corpus_files
from lc_assets.publishing import publish_bytes
from lc_assets.stages.corpus_runs import stem_of
from lc_assets.stages.deduplication.asking import WORK, Search
from lc_assets.stages.deduplication.deciding import PAIRS_FILE, decide
from lc_assets.stages.deduplication.evidence import publish_evidence
from lc_assets.stages.deduplication.facts import FactsTask, gather_facts
from lc_assets.stages.deduplication.index import (
    Index,
    IndexedFile,
    Manifest,
    open_index,
    publish_manifest,
)
from lc_assets.stages.deduplication.queries import queries
from lc_assets.stages.deduplication.settings import (
    REASONS,
    Decision,
    Means,
    Scheme,
    require_threshold,
)

INDEX, SUMMARY = "index", "summary.json"


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """What a search did, or a decision after it; ``evidence`` is empty, or where the evidence of
    this decision lies.
    """

    scheme: Scheme
    decision: Decision
    counts: Counts
    work: dict[str, int]
    evidence: str = ""


def deduplicate(search: Search) -> Summary:
    """Search a corpus for duplicates, among itself and against an older one, and decide.

    Raises:
        BadInput: when sources, settings and the older index do not go together.
        NotPublished: when the older index is not there.
        Mismatch: when a file of the older corpus has changed, so that a candidate in it cannot be
            compared.
    """
    scheme = msgspec.structs.replace(search.scheme, signature=search.signing.name)
    require_threshold(search.decision, scheme)
    older = _older(search, scheme)
    with os_errors_as_lc_errors(search.out):
        _begin(search.out)
        try:
            index, gathered = _index(search, scheme, older)
            old_pairs = older.parts[-1][0].parent / PAIRS_FILE if older else None
            counted = gathered + publish_evidence(
                search, index, first_new=len(older.files) if older else 0, old_pairs=old_pairs
            )
            with queries(search.work / "duckdb", search.means.memory // 2) as asked:
                counts = decide(
                    asked, index.fact_paths, search.out / PAIRS_FILE, search.decision, search.out
                )
        finally:
            shutil.rmtree(search.work, ignore_errors=True)
        unread = Counts(
            seen=gathered.seen - gathered.kept,
            dropped=gathered.dropped,
            failed_rules=gathered.failed_rules,
        )
        summary = Summary(
            scheme=scheme, decision=search.decision, counts=counts + unread, work=counted.extra
        )
        publish_bytes(search.out / SUMMARY, msgspec.json.format(msgspec.json.encode(summary)))
    return summary


def decide_again(evidence: Path, out: Path, decision: Decision, means: Means) -> Summary:
    """Decide anew from the evidence of a finished search, with another threshold, preference, or
    fewer kinds.

    Raises:
        NotPublished: when there is no finished search in ``evidence``.
        BadInput: when the threshold is below the evidence, or a kind is asked for that was not
            looked for.
    """
    found = read_summary(evidence)
    require_threshold(decision, found.scheme)
    if missing := set(decision.by) - set(found.decision.by):
        raise BadInput(
            f"{evidence} was not searched by {', '.join(sorted(missing))}; search it anew"
        )
    index = open_index(evidence / INDEX)
    with os_errors_as_lc_errors(out):
        out.mkdir(parents=True, exist_ok=True)
        (out / SUMMARY).unlink(missing_ok=evidence.resolve() != out.resolve())
        try:
            with queries(out / WORK / "duckdb", means.memory // 2) as asked:
                counts = decide(asked, index.fact_paths, evidence / PAIRS_FILE, decision, out)
        finally:
            shutil.rmtree(out / WORK, ignore_errors=True)
        unread = {
            reason: count
            for reason, count in found.counts.dropped.items()
            if reason not in REASONS.values()
        }
        counts += Counts(seen=sum(unread.values()), dropped=unread, failed_rules=unread)
        summary = Summary(
            scheme=found.scheme,
            decision=decision,
            counts=counts,
            work=found.work,
            evidence=str(evidence),
        )
        publish_bytes(out / SUMMARY, msgspec.json.format(msgspec.json.encode(summary)))
    return summary


def read_summary(folder: Path) -> Summary:
    """The summary of a finished search.

    Raises:
        NotPublished: when there is none.
    """
    path = folder / SUMMARY
    if not path.is_file():
        raise NotPublished(
            f"{folder}: holds no {SUMMARY}, so no search for duplicates was finished there"
        )
    try:
        return msgspec.json.decode(path.read_bytes(), type=Summary)
    except UNDECODABLE as error:
        raise CorruptFile(f"{path}: not a summary of a search: {error}") from error


def _older(search: Search, scheme: Scheme) -> Index | None:
    if search.against is None:
        return None
    folder = search.against / INDEX if (search.against / INDEX).is_dir() else search.against
    if search.out.resolve() in (folder.resolve(), folder.parent.resolve()):
        raise BadInput(f"{search.out}: is what is searched against; write into another folder")
    index = open_index(folder)
    if index.scheme != scheme:
        raise BadInput(
            f"{folder}: was made by {index.scheme}, this search by {scheme}; evidence of the two "
            "cannot be joined"
        )
    by = read_summary(folder.parent).decision.by
    if missing := set(search.decision.by) - set(by):
        raise BadInput(
            f"{folder}: was not searched by {', '.join(sorted(missing))}; search it anew"
        )
    return index


def _begin(out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    (out / SUMMARY).unlink(missing_ok=True)
    for folder in (out / INDEX, out / WORK):
        shutil.rmtree(folder, ignore_errors=True)


def _index(search: Search, scheme: Scheme, older: Index | None) -> tuple[Index, Counts]:
    """Gather facts and bands of the new files, and publish the index that they and the older one
    are.
    """
    first = len(older.files) if older else 0
    folder = search.out / INDEX
    tasks = [
        FactsTask(
            path=path,
            number=number,
            source=source.name,
            folder=folder,
            kinds=search.decision.by,
            n_bands=search.signing.bands,
            sign=search.signing.sign,
            stored=search.signing.stored,
            stem=stem_of(source, path),
            text_field=search.text_field,
        )
        for number, (source, path) in enumerate(_files(search.sources), start=first)
    ]
    counted = {
        task.number: counts
        for task, counts in search.executor.run(gather_facts, tasks, what="read")
    }
    files = [
        IndexedFile(
            number=task.number,
            path=str(task.path.resolve()),
            source=task.source,
            n_bytes=task.path.stat().st_size,
            n_documents=counted[task.number].extra["places"],
        )
        for task in tasks
    ]
    manifest = Manifest(
        scheme=scheme, files=tuple(files), older=str(older.parts[-1][0].resolve()) if older else ""
    )
    publish_manifest(folder, manifest)
    return Index(
        (*older.parts, (folder, manifest)) if older else ((folder, manifest),)
    ), Counts.total(counted.values())


def _files(sources: Sequence[Path]) -> Iterator[tuple[Path, Path]]:
    seen: set[Path] = set()
    for source in sources:
        for path in corpus_files([source]):
            if path.resolve() in seen:
                raise BadInput(
                    f"{path}: is given twice, so every document in it would be its own duplicate"
                )
            seen.add(path.resolve())
            yield source, path
