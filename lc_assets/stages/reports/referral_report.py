"""`referral_report`: how densely the documents of a snapshot's sets refer back to earlier mentions,
beside the LongPack paper's tables.

A sample of each set and group of lengths is measured, selected by a keyed hash of the ids. Words
that are common among the pieces of natural documents are not concepts in any set, so that sets are
comparable. Publishes a table per set and shard, the means of all sets, and the common words. A
referral is defined in `lc_assets.text.referrals.referrals`.
"""

import heapq
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from lc_assets.builds.building import run_shards
from lc_assets.builds.recipe import Recipe
from lc_assets.builds.stage import (
    SAME_SNAPSHOT,
    BuildContext,
    CheckInput,
    CheckResult,
    Stage,
    StagingFolder,
)
from lc_assets.builds.tables import Line, read_all, read_lines, read_table, write_table
from lc_assets.counts import Counts
from lc_assets.formats.lists.word_lists import digest_of_words
from lc_assets.packing.lengths import bucket_of
from lc_assets.randomness import KEYED_ALGORITHM, keyed_u64
from lc_assets.stages.reports.document_sets import (
    DENSITIES,
    GROUPS,
    LONGPACK,
    NATURAL,
    PACKED,
    REFERRALS,
    SETS,
    SetShard,
    group_of,
    pieces_of_rows,
    shards_of_sets,
)
from lc_assets.stages.reports.length_report import SUFFIX as LENGTHS_SUFFIX, lengths_files
from lc_assets.stages.reports.measuring import (
    BACKGROUND,
    ReferralTask,
    find_common_words,
    measure_shard,
    referral_files,
    referral_lines,
)
from lc_assets.text.referrals.referrals import DISTANCES, KINDS, bucket_names

DENSITIES_FILE = "densities.parquet"
BACKGROUND_DOCUMENTS = 2000
"""Natural documents from whose pieces common words are determined."""
SAMPLED = "referral sample"

PAPER_SET = {NATURAL: "RefinedWeb", LONGPACK: "Packed"}
"""Which of the paper's sets is shown beside one of ours."""


def write_referral_report(context: BuildContext, staging: StagingFolder) -> Counts:
    """Write the referrals of a sample of one snapshot's document sets.

    Raises:
        NotPublished: when a set that the recipe enables, or its lengths, are missing.
        BadInput: when the words that the recipe names cannot be read.
    """
    snapshot = staging.key
    settings = context.recipe.referral_report
    folder, lengths = staging.folder, staging.inputs[f"length_report/{snapshot}"].folder
    shards = shards_of_sets(staging.inputs, snapshot, context.recipe)

    def tasks_of(chosen: Mapping[str, Mapping[str, int]]) -> list[ReferralTask]:
        return [
            ReferralTask(shard=shard, folder=folder, settings=settings, chosen=chosen[shard.name])
            for shard in shards
            if shard.name in chosen
        ]

    background = list[ReferralTask]()
    if settings.max_df < 1 and not settings.spacy:
        natural = [shard for shard in shards if shard.document_set == NATURAL]
        background = tasks_of(
            sampled(natural, lengths, BACKGROUND_DOCUMENTS, BACKGROUND, by_group=False)
        )
    find_common_words(context, staging, background, settings.max_df)
    tasks = tasks_of(sampled(shards, lengths, settings.sample))
    counts = run_shards(context, staging, measure_shard, tasks, what=f"referrals of {snapshot}")
    densities = pa.Table.from_pylist(densities_of(folder, settings.buckets), schema=DENSITIES)
    write_table(folder / DENSITIES_FILE, densities)
    return counts


def sampled(
    shards: Iterable[SetShard],
    lengths: Path,
    n_documents: int,
    purpose: str = SAMPLED,
    *,
    by_group: bool = True,
) -> dict[str, dict[str, int]]:
    """Tokens by id of the documents that are measured, by the names of their shards: the first by a
    keyed hash, of each set and group or of all.
    """
    first: dict[tuple[str, str], list[tuple[int, str, str, int]]] = {}
    found: dict[str, dict[str, int]] = {}
    for shard in shards:
        found[shard.name] = {}
        for rank, group, name, n_tokens in _ranked(shard, lengths, purpose):
            key = (shard.document_set, group) if by_group else ("", "")
            ranked = first.setdefault(key, [])
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


@cache
def paper_tables() -> dict[str, dict[str, dict[str, list[float]]]]:
    """Tables 4, 5 and 6 of the LongPack paper by kind, set and group of lengths, for the distances
    ``[0, 32)``, ``[32, 128)``, ``[128, 512)``, ``[512, ∞)``. The sets are natural documents, and
    LongPack's.
    """
    file = resources.files("lc_assets").joinpath("presets/longpack-referrals.json")
    found: dict[str, dict[str, dict[str, list[float]]]] = json.loads(file.read_bytes())
    return found


def paper_figures(
    kind: str, paper_set: str | None, group: str, edges: Sequence[int]
) -> list[float | None]:
    """The paper's figures of a group, after None for the pairs within one sentence; only None where
    it has none, or uses other buckets.

    >>> paper_figures("pairs", "Packed", "32K-64K", (32, 128, 512))
    [None, 1.31, 3.37, 11.52, 27.65]
    >>> paper_figures("pairs", "Packed", "64K-128K", (32, 128, 512))
    [None, None, None, None, None]
    """
    known = paper_tables()[kind].get(paper_set or "", {}) if tuple(edges) == DISTANCES else {}
    return [None, *known.get(group, [None] * (len(edges) + 1))]


def densities_of(folder: Path, edges: Sequence[int]) -> list[Line]:
    """Lines of the table of means: set, group, kind, bucket."""
    lines: list[Line] = []
    for document_set in SETS:
        table = read_all(referral_files(folder, document_set), REFERRALS, ["n_tokens", *KINDS])
        n_tokens = np.asarray(table["n_tokens"])
        groups = bucket_of(n_tokens)
        for number in np.unique(groups).tolist():
            own = np.flatnonzero(groups == number)
            for kind in KINDS:
                counts = np.array(table[kind].take(own).to_pylist())
                values = counts if kind == "concepts" else counts / n_tokens[own, None]
                # Added up one after the other: the sum of an array is of another order.
                means = np.cumsum(values, axis=0)[-1] / len(own)
                lines += [
                    {
                        "document_set": document_set,
                        "length_group": GROUPS[number],
                        "documents": len(own),
                        "tokens": int(n_tokens[own].sum()),
                        "counted": kind,
                        "distance": bucket,
                        "figure": figure,
                        "paper": printed,
                    }
                    for bucket, figure, printed in zip(
                        bucket_names(edges),
                        means.tolist(),
                        paper_figures(kind, PAPER_SET.get(document_set), GROUPS[number], edges),
                        strict=True,
                    )
                ]
    return lines


def every_sample_has_the_requested_size(check_input: CheckInput) -> CheckResult:
    """Each group of natural and packed documents has the requested sample size, or all documents;
    each document once, in the group of its length.
    """
    most = check_input.params["sample"]
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


def _params(recipe: Recipe, _: str) -> dict[str, Any]:
    reports = recipe.referral_report
    return {
        "buckets": list(reports.buckets),
        "scope": reports.scope,
        "sample": reports.sample,
        "max_df": reports.max_df,
        "words_sha256": digest_of_words(reports.words),
    } | ({"spacy": reports.spacy} if reports.spacy else {})


STAGE = Stage(
    name="referral_report",
    description=(
        "Density of long-distance referrals in a sample of one snapshot's documents, "
        "beside the LongPack paper's tables."
    ),
    code_version="2",
    reads={
        "length_report": SAME_SNAPSHOT,
        "filtered_documents": SAME_SNAPSHOT,
        "longpack_documents": SAME_SNAPSHOT.only_if(
            lambda recipe: recipe.longpack_documents.wanted
        ),
        "packed_rows": SAME_SNAPSHOT.only_if(lambda recipe: recipe.packed_rows.wanted),
    },
    params=_params,
    checks=(every_sample_has_the_requested_size,),
    columns=DENSITIES,
    wanted=lambda recipe: recipe.referral_report.wanted,
    group="reports",
    job="snapshot_reports",
    randomness=lambda _, __: {SAMPLED: f"{KEYED_ALGORITHM}, seed 0"},
    write=write_referral_report,
)
