"""`contamination`: which filtered documents of a snapshot hold too much of an evaluation item, and
where.

Where the recipe names no evaluation sets, nothing is looked for and nothing found. Documents are
judged one by one, so a snapshot needs no other; what is common in a whole corpus, and cutting
instead of dropping, are for `lc_assets.stages.decontamination.decontaminating`. Who goes is written down by
`lc_assets.stages.deduplication.removed_documents`.
"""

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from lc_assets.counts import Counts
from lc_assets.formats.evaluations import evaluation_files
from lc_assets.formats.gram_index_files import open_index, write_index
from lc_assets.lake.digests import sha256_of_file
from lc_assets.lake.scratch import once
from lc_assets.lake.versions import Published
from lc_assets.publishing import finished, publish
from lc_assets.stages.building import (
    BuildContext,
    Built,
    CheckInput,
    CheckResult,
    Stage,
    StagingFolder,
    build,
    run_shards,
)
from lc_assets.stages.claims import (
    DOCUMENTS_SUFFIX,
    all_that_was_kept_came_in,
    documents_files,
    evenly_spaced,
    the_shards_add_up,
)
from lc_assets.stages.decontamination.contamination_files import EVIDENCE, lines_of
from lc_assets.stages.decontamination.decontaminating import CONTAMINATED, index_of
from lc_assets.stages.recipe import Recipe, plain
from lc_assets.stages.settings import DecontaminationSettings
from lc_assets.stages.sharding import Reads, Sharding, documents_read
from lc_assets.stages.tables import TableWriter, read_lines, read_table
from lc_assets.text.contamination import ContaminationRule, Weigher, in_many_items
from lc_assets.text.gram_scan import find_grams
from lc_assets.vocabulary import SnapshotId

EVIDENCE_SUFFIX: Final = ".contamination.parquet"
INDEX: Final = "index"
WEIGHED_AGAIN: Final = 20
"""Documents that the audit scans anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanTask:
    """One shard of filtered documents to be held against the index in ``index``."""

    documents: Path
    folder: Path
    index: Path
    settings: DecontaminationSettings

    @property
    def name(self) -> str:
        """The shard's name."""
        return self.documents.name.removesuffix(DOCUMENTS_SUFFIX)

    def __str__(self) -> str:
        return str(self.documents)


def find_contamination(context: BuildContext, snapshot: SnapshotId) -> Built:
    """Publish what one snapshot's filtered documents hold of the recipe's evaluation sets.

    Raises:
        NotPublished: when the filtered documents are not there.
        BadInput: when an evaluation set cannot be read, or holds nothing to look for.
    """
    settings = context.recipe.decontamination

    def fill(staging: StagingFolder) -> Counts:
        filtered = staging.inputs[f"filtered/{snapshot}"]
        if not settings.against:
            n_documents = filtered.receipt.counts.kept
            return Counts(seen=n_documents, kept=n_documents)
        index = staging.folder / INDEX
        write_index(index, index_of(settings))
        tasks = [
            ScanTask(documents=path, folder=staging.folder, index=index, settings=settings)
            for path in documents_files(filtered.folder)
        ]
        return run_shards(context, staging, scan_shard, tasks, what=f"decontaminate {snapshot}")

    return build(context, STAGE, snapshot, fill)


def _reads(inputs: Mapping[str, Published], key: str) -> dict[str, Reads]:
    """The shard's filtered documents; what is looked for stands in the settings, by its digests."""
    return {
        name: (read,)
        for name, read in documents_read(inputs[f"filtered/{key}"], DOCUMENTS_SUFFIX).items()
    }


@once
def scan_shard(task: ScanTask) -> Counts:
    """Publish the evidence against the documents of one shard."""
    index = open_index(task.index)
    weigher = Weigher(index, in_many_items(index, task.settings.max_items))
    rule = ContaminationRule(mode=task.settings.mode, threshold=task.settings.threshold)
    n_seen = n_dropped = 0
    with contextlib.ExitStack() as stack:
        staging = stack.enter_context(publish(task.folder / f"{task.name}{EVIDENCE_SUFFIX}"))
        table = stack.enter_context(contextlib.closing(TableWriter(staging, EVIDENCE)))
        for line in read_lines(task.documents, ["id", "raw_content"], batch_lines=16):
            overlaps = weigher.overlaps_of(find_grams(line["raw_content"], index))
            n_seen += 1
            n_dropped += any(map(rule.condemns, overlaps))
            for found in lines_of(line["id"], overlaps, index, rule.condemns):
                table.add(found)
    dropped = {CONTAMINATED: n_dropped} if n_dropped else {}
    return Counts(seen=n_seen, kept=n_seen - n_dropped, dropped=dropped, failed_rules=dropped)


def contaminated_ids(folder: Path) -> dict[str, tuple[str, float]]:
    """Of every condemned document, by id: the item that it holds most of, and how much."""
    found: dict[str, tuple[str, float]] = {}
    for line in evidence_lines(folder):
        if line["condemned"] and line["coverage"] > found.get(line["id"], ("", -1.0))[1]:
            found[line["id"]] = (line["item_id"], line["coverage"])
    return found


def evidence_lines(folder: Path) -> Iterator[dict[str, Any]]:
    """All evidence of a version, shard by shard."""
    for path in finished(folder.glob(f"*{EVIDENCE_SUFFIX}")):
        yield from read_lines(path, EVIDENCE.names)


def evidence_is_as_it_says(check_input: CheckInput) -> CheckResult:
    """As many documents are condemned as were counted, all of them filtered ones, none by an
    impossible share.
    """
    lines = list(evidence_lines(check_input.folder))
    condemned = {line["id"] for line in lines if line["condemned"]}
    n_counted = check_input.counts.dropped.get(CONTAMINATED, 0)
    filtered = check_input.only_input("filtered").folder
    known = (
        {
            name
            for path in documents_files(filtered)
            for name in read_table(path, ["id"])["id"].to_pylist()
        }
        if lines
        else set()
    )
    strange = {line["id"] for line in lines} - known
    n_wrong = sum(
        not 0 < line["coverage"] <= 1 or not 0 <= line["start"] < line["end"] for line in lines
    )
    return CheckResult(
        claim="evidence_is_as_it_says",
        passed=len(condemned) == n_counted and not strange and not n_wrong,
        words=f"{len(condemned):,} documents condemned, {n_counted:,} counted; {len(strange):,} "
        f"not known; {n_wrong:,} impossible shares",
        numbers={"condemned": len(condemned), "evidence": len(lines)},
    )


def the_text_holds_what_the_evidence_says(check_input: CheckInput) -> CheckResult:
    """An even choice of documents, scanned anew, gives exactly the evidence that was published."""
    by_id: dict[str, list[dict[str, Any]]] = {}
    for line in evidence_lines(check_input.folder):
        by_id.setdefault(line["id"], []).append(line)
    names = sorted(by_id)
    chosen = {names[place] for place in evenly_spaced(len(names), WEIGHED_AGAIN)}
    wrong = _other_evidence(check_input, chosen, by_id) if chosen else []
    return CheckResult(
        claim="the_text_holds_what_the_evidence_says",
        passed=not wrong,
        words=f"{len(chosen):,} of {len(names):,} documents scanned anew, {len(wrong):,} differ"
        + (f", such as {wrong[0]}" if wrong else ""),
        numbers={"scanned anew": len(chosen), "differ": len(wrong)},
    )


def _other_evidence(check_input: CheckInput, chosen: set[str], by_id: dict[str, Any]) -> list[str]:
    asked, index = check_input.fingerprint.params, open_index(check_input.folder / INDEX)
    weigher = Weigher(index, in_many_items(index, asked["max_items"]))
    rule = ContaminationRule(mode=asked["mode"], threshold=asked["threshold"])
    wrong = []
    for path in documents_files(check_input.only_input("filtered").folder):
        for line in (
            line
            for line in read_lines(path, ["id", "raw_content"], batch_lines=16)
            if line["id"] in chosen
        ):
            found = list(
                lines_of(
                    line["id"],
                    weigher.overlaps_of(find_grams(line["raw_content"], index)),
                    index,
                    rule.condemns,
                )
            )
            wrong += [line["id"]] if found != by_id[line["id"]] else []
    return wrong


def _params(recipe: Recipe, _: str) -> dict[str, Any]:
    """The settings, and the content of the evaluation sets: a changed set makes what was made of it
    out of date.
    """
    settings = recipe.decontamination
    files = evaluation_files(map(Path, settings.against)) if settings.against else []
    return plain(settings) | {"evaluations": [[path.name, sha256_of_file(path)] for path in files]}


STAGE = Stage(
    name="contamination",
    code_version="1",
    upstream=("filtered",),
    params=_params,
    claims=(
        all_that_was_kept_came_in("filtered"),
        evidence_is_as_it_says,
        the_text_holds_what_the_evidence_says,
        the_shards_add_up,
    ),
    sharding=Sharding(
        reads=_reads, suffixes=(EVIDENCE_SUFFIX,), idle=lambda params: not params["against"]
    ),
)
"""Filtered documents that hold evaluation items."""
