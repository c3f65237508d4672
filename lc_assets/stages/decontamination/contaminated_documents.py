"""Which filtered documents of a partition are contaminated by evaluation items, and where.

Without evaluation sets in the recipe nothing is searched. Each shard is scanned once: every
occurrence of an n-gram is published (``*.finds.parquet``) and summarised per document and item
(``*.contamination.parquet``). If ``ignore_common`` is set, all shards are scanned before the first
is summarised, because document frequencies are known only then. ``items.parquet`` and
``common.parquet`` report on items and n-grams. Which documents are dropped is decided in
`lc_assets.stages.deduplication.removed_documents`.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from lc_assets.builds.building import run_shards
from lc_assets.builds.check_runs import by_workers
from lc_assets.builds.checks import (
    DOCUMENTS_SUFFIX,
    DocumentsTask,
    documents_files,
    evenly_spaced,
    files_holding,
    reads_all_upstream_documents,
    shard_counts_match,
)
from lc_assets.builds.recipe import Recipe, plain
from lc_assets.builds.settings.common import DecontaminationSettings, by_rule
from lc_assets.builds.sharding import Reads, Sharding, documents_read
from lc_assets.builds.stage import (
    SAME_SNAPSHOT,
    BuildContext,
    CheckInput,
    CheckResult,
    Stage,
    StagingFolder,
)
from lc_assets.builds.tables import Line, count_lines, read_lines, read_table, writing_table
from lc_assets.counts import Counts
from lc_assets.formats.arrays.npy import read_npy, write_npy
from lc_assets.formats.gram_index_files import open_index, write_index
from lc_assets.formats.lists.evaluations import evaluation_files
from lc_assets.lake.digests import sha256_of_file
from lc_assets.lake.versions import Published
from lc_assets.publishing import finished
from lc_assets.records import record
from lc_assets.stages.decontamination.evidence import (
    CONTAMINATED,
    EVIDENCE,
    FIND_COLUMNS,
    FINDS,
    document_counts,
    index_of,
    read_finds,
    write_common,
    write_items,
)
from lc_assets.text.contamination.overlaps import (
    Mode,
    Weigher,
    in_many_items,
    is_contaminated,
    without_spans,
)
from lc_assets.text.contamination.scanning import Finds, find_grams

EVIDENCE_SUFFIX = ".contamination.parquet"
FINDS_SUFFIX = ".finds.parquet"
ITEMS_FILE = "items.parquet"
COMMON_FILE = "common.parquet"
INDEX = "index"
IGNORED = "ignored.npy"
_CHECKED_DOCUMENTS = 20
"""Documents that the check scans again."""


@record
class ShardTask(DocumentsTask):
    """One shard of filtered documents, to be compared with the index in ``folder``."""

    settings: DecontaminationSettings

    @property
    def finds(self) -> Path:
        """Table of the shard's occurrences."""
        return self.folder / f"{self.name}{FINDS_SUFFIX}"


def write_contaminated_documents(context: BuildContext, staging: StagingFolder) -> Counts:
    """Write which filtered documents of a partition contain evaluation items, and where.

    Raises:
        BadInput: when an evaluation set cannot be read or has no items.
    """
    snapshot = staging.key
    settings = by_rule(context.recipe.contaminated_documents)
    filtered = staging.inputs[f"filtered_documents/{snapshot}"]
    if not settings.against:
        n_documents = filtered.counts.kept
        return Counts(seen=n_documents, kept=n_documents)
    index = index_of(settings)
    write_index(staging.folder / INDEX, index)
    tasks = [
        ShardTask(documents=path, folder=staging.folder, settings=settings)
        for path in documents_files(filtered.folder)
    ]
    finds = [task.finds for task in tasks]
    ignored = in_many_items(index, settings.max_items)
    if settings.ignore_common is not None:
        list(context.executor.run(scan_shard, tasks, what=f"scan {snapshot}"))
        documents = document_counts(finds, index.n_grams)
        ignored = np.union1d(ignored, np.flatnonzero(documents > settings.ignore_common))
    write_npy(staging.folder / INDEX / IGNORED, ignored)
    counts = run_shards(context, staging, weigh_shard, tasks, what=f"decontaminate {snapshot}")
    documents = document_counts(finds, index.n_grams)
    write_common(staging.folder / COMMON_FILE, index, documents, ignored)
    evidence = finished(staging.folder.glob(f"*{EVIDENCE_SUFFIX}"))
    write_items(staging.folder / ITEMS_FILE, index, ignored, evidence)
    return counts


def _reads(inputs: Mapping[str, Published], key: str) -> dict[str, Reads]:
    """The shard's filtered documents; the settings hold the digests of the evaluation sets."""
    found = documents_read(inputs[f"filtered_documents/{key}"], DOCUMENTS_SUFFIX)
    return {name: (read,) for name, read in found.items()}


def scan_shard(task: ShardTask) -> None:
    """Publish every occurrence of an n-gram in one shard, unless that is done."""
    if task.finds.is_file():
        return
    index = open_index(task.folder / INDEX)
    with writing_table(task.finds, FINDS) as table:
        lines = read_lines(task.documents, ["id", "raw_content"], batch_lines=16)
        for number, line in enumerate(lines):
            finds = find_grams(line["raw_content"], index)
            if len(finds):
                columns = {name: getattr(finds, name).tolist() for name in FIND_COLUMNS}
                found = {"place": number, "id": line["id"], "n_words": finds.n_words}
                table.add(found | columns, n_bytes=256 + 128 * len(finds))


def weigh_shard(task: ShardTask) -> Counts:
    """Publish the matches in the documents of one shard."""
    scan_shard(task)
    mode, threshold = task.settings.mode, task.settings.threshold
    weigher = _open_weigher(task.folder, mode)
    n_seen, n_dropped = count_lines(task.documents), 0
    with writing_table(task.folder / f"{task.name}{EVIDENCE_SUFFIX}", EVIDENCE) as table:
        for name, finds in read_finds(task.finds):
            lines = _evidence(weigher, name, finds, mode, threshold)
            n_dropped += any(line["condemned"] for line in lines)
            for line in lines:
                table.add(line)
    return Counts.of(n_seen - n_dropped, {CONTAMINATED: n_dropped})


def _open_weigher(folder: Path, mode: Mode) -> Weigher:
    """A version's index, without the n-grams that it ignores."""
    return Weigher(open_index(folder / INDEX), read_npy(folder / INDEX / IGNORED).tolist(), mode)


def _evidence(
    weigher: Weigher, name: str, finds: Finds, mode: Mode, threshold: float
) -> list[Line]:
    """The lines of the contamination table for a document."""
    return [
        {"id": name, "item_id": weigher.index.item_ids[overlap.item]}
        | {"condemned": is_contaminated(overlap, mode, threshold)}
        | msgspec.structs.asdict(overlap)
        for overlap in weigher.overlaps_of(finds)
    ]


def cutter(
    folder: Path, shard: str, settings: DecontaminationSettings
) -> Callable[[str, str], str]:
    """A function that cuts the items that contaminate a document out of its text, given its id and
    its text.

    Args:
        folder: of the version.
        shard: name of the shard that the documents are of.
        settings: ``margin`` characters on either side are cut too.
    """
    settings = by_rule(settings)
    weigher, items = _open_weigher(folder, settings.mode), dict[str, list[int]]()
    for line in read_lines(folder / f"{shard}{EVIDENCE_SUFFIX}", ["id", "item", "condemned"]):
        if line["condemned"]:
            items.setdefault(line["id"], []).append(line["item"])

    def cut(name: str, text: str) -> str:
        if name not in items:
            return text
        finds = find_grams(text, weigher.index)
        spans = weigher.spans_of(finds, items[name], settings.threshold)
        return without_spans(text, spans, settings.margin)

    return cut


def contaminated_ids(folder: Path) -> dict[str, tuple[str, float]]:
    """Maps the id of each contaminated document to the item with the highest coverage, and that
    coverage.
    """
    found: dict[str, tuple[str, float]] = {}
    for line in evidence_lines(folder):
        if line["condemned"] and line["coverage"] > found.get(line["id"], ("", -1.0))[1]:
            found[line["id"]] = (line["item_id"], line["coverage"])
    return found


def evidence_lines(folder: Path) -> Iterator[Line]:
    """The contamination tables of a version, shard by shard."""
    for path in finished(folder.glob(f"*{EVIDENCE_SUFFIX}")):
        yield from read_lines(path, EVIDENCE.names)


def evidence_is_as_it_says(check_input: CheckInput) -> CheckResult:
    """As many documents are contaminated as counted, all of them filtered documents, with valid
    shares.
    """
    lines = list(evidence_lines(check_input.folder))
    condemned = {line["id"] for line in lines if line["condemned"]}
    n_counted = check_input.counts.dropped.get(CONTAMINATED, 0)
    read = documents_files(check_input.only_input("filtered_documents").folder) if lines else []
    known = {name for path in read for name in read_table(path, ["id"])["id"].to_pylist()}
    unknown = {line["id"] for line in lines} - known
    n_wrong = sum(
        not 0 < line["coverage"] <= 1 or not 0 <= line["start"] < line["end"] for line in lines
    )
    return CheckResult(
        passed=len(condemned) == n_counted and not unknown and not n_wrong,
        message=f"{len(condemned):,} documents condemned, {n_counted:,} counted; {len(unknown):,} "
        f"not known; {n_wrong:,} impossible shares",
        values={"condemned": len(condemned), "evidence": len(lines)},
    )


def the_text_holds_what_the_evidence_says(check_input: CheckInput) -> CheckResult:
    """Evenly chosen documents, scanned again, give exactly the published matches."""
    by_id: dict[str, list[Line]] = {}
    for line in evidence_lines(check_input.folder):
        by_id.setdefault(line["id"], []).append(line)
    names = sorted(by_id)
    chosen = [names[place] for place in evenly_spaced(len(names), _CHECKED_DOCUMENTS)]
    files = documents_files(check_input.only_input("filtered_documents").folder) if chosen else []
    stated, params = {name: by_id[name] for name in chosen}, check_input.params
    scan = partial(_other_evidence, check_input.folder, params, stated)
    found = by_workers(check_input, scan, files_holding(chosen, files))
    wrong = [name for names in found for name in names]
    return CheckResult(
        passed=not wrong,
        message=f"{len(chosen):,} of {len(by_id):,} documents scanned again, {len(wrong):,} differ"
        + (f", such as {wrong[0]}" if wrong else ""),
        values={"scanned again": len(chosen), "differ": len(wrong)},
    )


def _other_evidence(
    folder: Path, params: Mapping[str, Any], stated: Mapping[str, Any], documents: Path
) -> list[str]:
    """Documents of a shard whose evidence is not as stated, by id."""
    weigher = _open_weigher(folder, params["mode"])
    return [
        line["id"]
        for line in read_lines(documents, ["id", "raw_content"], batch_lines=16)
        if line["id"] in stated
        and stated[line["id"]]
        != _evidence(
            weigher,
            line["id"],
            find_grams(line["raw_content"], weigher.index),
            params["mode"],
            params["threshold"],
        )
    ]


def _params(recipe: Recipe, _: str) -> dict[str, Any]:
    """The settings, and the digests of the evaluation sets, so that a changed set is noticed."""
    settings = by_rule(recipe.contaminated_documents)
    files = evaluation_files(map(Path, settings.against)) if settings.against else []
    params = plain(settings)
    del params["rule"]  # the settings that it stands for determine the bytes
    return params | {
        "against": [path.name for path in files],
        "evaluations": [[path.name, sha256_of_file(path)] for path in files],
    }


STAGE = Stage(
    name="contaminated_documents",
    description=(
        "Filtered documents of one snapshot that contain items of the recipe's "
        "evaluation sets, and where."
    ),
    code_version="3",
    reads={"filtered_documents": SAME_SNAPSHOT},
    params=_params,
    checks=(
        reads_all_upstream_documents("filtered_documents"),
        evidence_is_as_it_says,
        the_text_holds_what_the_evidence_says,
        shard_counts_match,
    ),
    columns=EVIDENCE,
    sharding=Sharding(
        reads=_reads,
        suffixes=(FINDS_SUFFIX, EVIDENCE_SUFFIX),
        # With ignore_common a shard's matches depend on all shards, so none is reused.
        idle=lambda params: not params["against"] or params["ignore_common"] is not None,
    ),
    job="snapshot_documents",
    write=write_contaminated_documents,
)
"""Filtered documents that contain evaluation items."""
