"""`referral_report`: how densely the documents of a snapshot's sets refer back to earlier mentions,
beside the LongPack paper's tables.

A sample of each set and group of lengths is measured, selected by a keyed hash of the ids. Words
that are common among the pieces of natural documents are no concepts in any set, so that sets are
comparable. Publishes a table per set and shard, the means of all sets, and the common words. A
referral is defined in `lc_assets.text.referrals.referrals`.
"""

import heapq
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from lc_assets.build.building import build, run_shards
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
from lc_assets.build.tables import read_lines, read_table, write_table
from lc_assets.counts import Counts
from lc_assets.formats.lists.word_lists import digest_of_words
from lc_assets.randomness import KEYED_ALGORITHM, keyed_u64
from lc_assets.stages.documents.filtered_documents import STAGE as FILTERED_DOCUMENTS
from lc_assets.stages.longpack.longpack_documents import STAGE as LONGPACK_DOCUMENTS
from lc_assets.stages.packing.packed_rows import STAGE as PACKED_ROWS
from lc_assets.stages.reports.document_sets import (
    DENSITIES,
    LONGPACK,
    NATURAL,
    PACKED,
    SETS,
    SetShard,
    group_of,
    pieces_of_rows,
    shards_of_sets,
)
from lc_assets.stages.reports.length_report import STAGE as LENGTH_REPORT
from lc_assets.stages.reports.length_report import SUFFIX as LENGTHS_SUFFIX
from lc_assets.stages.reports.length_report import lengths_files
from lc_assets.stages.reports.measuring import (
    BACKGROUND,
    Measuring,
    ReferralTask,
    find_common_words,
    measure_shard,
    referral_lines,
    sums_of,
)
from lc_assets.text.referrals.referrals import KINDS, bucket_names, paper_figures
from lc_assets.vocabulary import SnapshotId

DENSITIES_FILE: Final = "densities.parquet"
BACKGROUND_DOCUMENTS: Final = 2000
"""Natural documents from whose pieces common words are determined."""
SAMPLED: Final = "referral sample"

PAPER_SET: Final = {NATURAL: "RefinedWeb", LONGPACK: "Packed"}
"""Which of the paper's sets is shown beside one of ours."""


def write_referral_report(context: BuildContext, snapshot: SnapshotId) -> Built:
    """Publish the referrals of a sample of one snapshot's document sets.

    Raises:
        NotPublished: when a set that the recipe enables, or its lengths, are missing.
        BadInput: when the words that the recipe names cannot be read.
    """
    reports = context.recipe.referral_report
    settings = Measuring(
        buckets=reports.buckets,
        scope=reports.scope,
        max_df=reports.max_df,
        words=Path(reports.words) if reports.words else None,
    )

    def fill(staging: StagingFolder) -> Counts:
        folder, lengths = staging.folder, staging.inputs[f"length_report/{snapshot}"].folder
        shards = shards_of_sets(staging.inputs, snapshot, context.recipe)

        def run(function: Any, tasks: Sequence[Any], what: str) -> Counts:
            return run_shards(context, staging, function, tasks, what=what)

        natural = [shard for shard in shards if shard.document_set == NATURAL]
        ranked = (
            (-rank, name)
            for shard in natural
            for rank, _, name, _ in _ranked(shard, lengths, BACKGROUND)
        )
        first = dict.fromkeys((name for _, name in heapq.nlargest(BACKGROUND_DOCUMENTS, ranked)), 0)
        sample = sampled(shards, lengths, reports.sample)

        def task(shard: SetShard, chosen: Mapping[str, int]) -> ReferralTask:
            return ReferralTask(shard=shard, folder=folder, settings=settings, chosen=chosen)

        background = [task(shard, first) for shard in natural if reports.max_df < 1]
        find_common_words(run, folder, background, reports.max_df)
        tasks = [task(shard, sample[shard.name]) for shard in shards]
        counts = run(measure_shard, tasks, f"referrals of {snapshot}")
        densities = pa.Table.from_pylist(densities_of(folder, reports.buckets), schema=DENSITIES)
        write_table(folder / DENSITIES_FILE, densities)
        return counts

    return build(context, STAGE, snapshot, fill, randomness={SAMPLED: f"{KEYED_ALGORITHM}, seed 0"})


def sampled(
    shards: Iterable[SetShard], lengths: Path, n_documents: int
) -> dict[str, dict[str, int]]:
    """Tokens by id of the documents that are measured, by the names of their shards: of each set
    and group the first by a keyed hash.
    """
    first: dict[tuple[str, str], list[tuple[int, str, str, int]]] = {}
    found: dict[str, dict[str, int]] = {}
    for shard in shards:
        found[shard.name] = {}
        for rank, group, name, n_tokens in _ranked(shard, lengths, SAMPLED):
            ranked = first.setdefault((shard.document_set, group), [])
            entry = (-rank, name, shard.name, n_tokens)
            (heapq.heappush if len(ranked) < n_documents else heapq.heappushpop)(ranked, entry)
    for _, name, shard_name, n_tokens in (entry for ranked in first.values() for entry in ranked):
        found[shard_name][name] = n_tokens
    return found


def _ranked(shard: SetShard, lengths: Path, purpose: str) -> Iterator[tuple[int, str, str, int]]:
    """Keyed hash of each document of a shard; its group, id and tokens, by the report of lengths or
    a packed row's pieces.
    """
    if shard.document_set == PACKED:
        documents = [(group_of(n), name, n) for name, n, _ in pieces_of_rows(shard)]
    else:
        columns = ["length_group", "id", "n_tokens"]
        table = read_table(lengths / f"{shard.name}{LENGTHS_SUFFIX}", columns)
        documents = list(zip(*(table[column].to_pylist() for column in columns), strict=True))
    ranks = keyed_u64(purpose, seed=0, keys=[name for _, name, _ in documents]).tolist()
    for rank, document in zip(ranks, documents, strict=True):
        yield rank, *document


def densities_of(folder: Path, edges: Sequence[int]) -> list[dict[str, Any]]:
    """Lines of the table of means: set, group, kind, bucket."""
    lines: list[dict[str, Any]] = []
    for document_set in SETS:
        for group, sums in sums_of(folder, document_set).items():
            for kind, means in sums.means().items():
                paper: Sequence[float | None] | None = None
                if document_set in PAPER_SET:
                    paper = paper_figures(kind, PAPER_SET[document_set], group, edges=edges)
                lines += [
                    {
                        "document_set": document_set,
                        "length_group": group,
                        "documents": sums.n_documents,
                        "tokens": sums.n_tokens,
                        "counted": kind,
                        "distance": bucket,
                        "figure": figure,
                        "paper": None if printed is None else float(printed),
                    }
                    for bucket, figure, printed in zip(
                        bucket_names(edges),
                        means,
                        (None, *(paper or [None] * (len(edges) + 1))),
                        strict=True,
                    )
                ]
    return lines


def every_sample_has_the_requested_size(check_input: CheckInput) -> CheckResult:
    """Each group of natural and packed documents has the requested sample size, or all documents;
    each document once, in the group of its length.
    """
    most = check_input.fingerprint.params["sample"]
    lengths = check_input.only_input("length_report").folder
    wrong, n_measured = list[str](), 0
    for document_set in SETS:
        found = [
            (line["id"], line["n_tokens"], line["length_group"])
            for line in referral_lines(check_input.folder, document_set)
        ]
        n_measured += len(found)
        if len({name for name, _, _ in found}) != len(found):
            wrong.append(f"{document_set}: a document is there twice")
        if document_set == PACKED:
            continue
        known = {
            (line["id"], line["n_tokens"], line["length_group"])
            for path in lengths_files(lengths, document_set)
            for line in read_lines(path, ["id", "n_tokens", "length_group"])
        }
        by_group = Counter(group for _, _, group in found)
        wrong += [
            f"{document_set}: {by_group[group]:,} of {n:,} documents of {group}"
            for group, n in Counter(group for _, _, group in known).items()
            if by_group[group] != min(n, most)
        ]
        wrong += [
            f"{document_set}: {line[0]} has another length" for line in found if line not in known
        ]
    if n_measured != check_input.counts.kept:
        wrong.append(f"{n_measured:,} documents, counted were {check_input.counts.kept:,}")
    return CheckResult(
        passed=not wrong,
        message="; ".join(wrong[:5])
        or f"{n_measured:,} documents measured, at most {most:,} of a group",
        values={"measured": n_measured, "wrong": len(wrong)},
    )


def the_identities_of_referrals_hold(check_input: CheckInput) -> CheckResult:
    """In every row, neighbours equal mentions minus concepts, no bucket has more neighbours than
    pairs, and none is beyond the last sentence.
    """
    lower = [0, 1, *check_input.fingerprint.params["buckets"]]
    n_lines, wrong = 0, list[str]()
    for line in (line for one in SETS for line in referral_lines(check_input.folder, one)):
        n_lines += 1
        if not _identities_hold(line, lower):
            wrong.append(line["id"])
    return CheckResult(
        passed=not wrong,
        message=f"{n_lines:,} documents, {len(wrong):,} are impossible"
        + (f", such as {wrong[0]}" if wrong else ""),
        values={"documents": n_lines, "impossible": len(wrong)},
    )


def _identities_hold(line: dict[str, Any], lower: Sequence[int]) -> bool:
    counts = [line[kind] for kind in KINDS]
    n_neighbours, n_concepts = line["n_mentions"] - line["n_concepts"], line["n_concepts"]
    if any(len(own) != len(lower) for own in counts):
        return False
    # As many pairs as if all mentions were of one concept.
    most_pairs = math.comb(max(n_neighbours + 1, 0), 2)
    return (
        sum(line["neighbours"]) == n_neighbours
        and sum(line["pairs"]) <= most_pairs
        and all(
            0 <= neighbours <= pairs
            and (concepts > 0) == (pairs > 0)
            and concepts <= min(pairs, n_concepts)
            and (pairs == 0 or edge < max(line["n_sentences"], 1))
            for edge, pairs, neighbours, concepts in zip(lower, *counts, strict=True)
        )
    )


def _params(recipe: Recipe, _: str) -> dict[str, Any]:
    reports = recipe.referral_report
    return {
        "buckets": list(reports.buckets),
        "scope": reports.scope,
        "sample": reports.sample,
        "max_df": reports.max_df,
        "words_sha256": digest_of_words(Path(reports.words) if reports.words else None),
    }


STAGE = Stage(
    name="referral_report",
    description=(
        "Density of long-distance referrals in a sample of one snapshot's documents, "
        "beside the LongPack paper's tables."
    ),
    code_version="1",
    reads={
        LENGTH_REPORT: SAME_SNAPSHOT,
        FILTERED_DOCUMENTS: SAME_SNAPSHOT,
        LONGPACK_DOCUMENTS: SAME_SNAPSHOT.only_if(lambda recipe: recipe.longpack_documents.wanted),
        PACKED_ROWS: SAME_SNAPSHOT.only_if(lambda recipe: recipe.packed_rows.wanted),
    },
    params=_params,
    checks=(
        every_sample_has_the_requested_size,
        the_identities_of_referrals_hold,
    ),
    wanted=lambda recipe: recipe.referral_report.wanted,
    group="reports",
    job="snapshot_reports",
    pool=WORKERS,
    kinds=("parquet",),
    write=write_referral_report,
    show=later("lc_assets.stages.shown.reports:referral_report"),
)
