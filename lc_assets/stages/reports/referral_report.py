"""`referral_report`: how densely the documents of a snapshot's sets refer back to earlier mentions,
beside the LongPack paper's tables.

A sample of each set and length group is measured, selected by a keyed hash of the ids. Words that
are common among the pieces of natural documents are no concepts in any set, so that sets are
comparable. Publishes a table per set and shard, the means of all sets, and the common words. Not
here: the definition of a referral (`lc_assets.text.referrals.referrals`), the sets
(`lc_assets.stages.reports.document_sets`), plain files (`lc_assets.stages.reports.referring`).
"""

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from lc_assets.build.building import (
    build,
    run_shards,
)
from lc_assets.build.recipe import Recipe
from lc_assets.build.stage import (
    SAME_SNAPSHOT,
    WORKERS,
    BuildContext,
    Built,
    Stage,
    StagingFolder,
    later,
)
from lc_assets.build.tables import TableWriter, read_lines, read_table, write_table
from lc_assets.counts import Counts
from lc_assets.formats.lists.word_lists import digest_of_words, read_special_words
from lc_assets.lake.receipts import SCRATCH
from lc_assets.lake.staging import once
from lc_assets.publishing import publish
from lc_assets.randomness import KEYED_ALGORITHM, keyed_u64
from lc_assets.stages.documents.filtered_documents import STAGE as FILTERED_DOCUMENTS
from lc_assets.stages.longpack.longpack_documents import STAGE as LONGPACK_DOCUMENTS
from lc_assets.stages.packing.packed_rows import STAGE as PACKED_ROWS
from lc_assets.stages.reports.document_sets import (
    NATURAL,
    PACKED,
    SetShard,
    pieces_of_rows,
    shards_of_sets,
    texts_of,
)
from lc_assets.stages.reports.length_claims import SUFFIX as LENGTHS_SUFFIX
from lc_assets.stages.reports.length_report import STAGE as LENGTH_REPORT
from lc_assets.stages.reports.referral_claims import (
    COMMON_FILE,
    DENSITIES_FILE,
    SUFFIX,
    densities_of,
    every_sample_is_as_asked,
    referrals_are_counted_anew,
    the_densities_are_the_documents_means,
    the_identities_of_referrals_hold,
)
from lc_assets.stages.reports.referring import Measuring, finder_of, line_of
from lc_assets.stages.reports.report_tables import COMMON_WORDS, DENSITIES, REFERRALS
from lc_assets.text.referrals.concepts import Background, LexicalConcepts
from lc_assets.text.referrals.referrals import count_referrals
from lc_assets.text.referrals.tables import group_names, group_of
from lc_assets.vocabulary import SnapshotId

BACKGROUND_DOCUMENTS: Final = 2000
"""Natural documents from whose pieces common words are determined."""

SAMPLED: Final = "referral sample"


@dataclass(frozen=True, slots=True, kw_only=True)
class BackgroundTask:
    """Documents of one shard whose pieces are counted; the table of words and counts goes to the
    scratch folder of ``folder``.
    """

    shard: SetShard
    folder: Path
    chosen: frozenset[str]
    words: str

    @property
    def name(self) -> str:
        """A name that is unique among the tasks of a version."""
        return f"background-{self.shard.name}"

    @property
    def table(self) -> Path:
        """Where the counts go."""
        return self.folder / SCRATCH / f"{self.name}.parquet"

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferralTask:
    """Documents of one shard to be measured into ``folder``: tokens by id."""

    shard: SetShard
    folder: Path
    chosen: Mapping[str, int]
    settings: Measuring

    @property
    def name(self) -> str:
        """The shard's name among those of all sets."""
        return self.shard.name

    def __str__(self) -> str:
        return self.name


def write_referral_report(context: BuildContext, snapshot: SnapshotId) -> Built:
    """Publish the referrals of a sample of one snapshot's document sets.

    Raises:
        NotPublished: when a set that the recipe wants, or its lengths, are not there.
        BadInput: when the words that the recipe names cannot be read.
    """

    def fill(staging: StagingFolder) -> Counts:
        reports, lengths = (
            context.recipe.referral_report,
            staging.inputs[f"length_report/{snapshot}"].folder,
        )
        settings = measuring_of(context.recipe)
        shards = shards_of_sets(staging.inputs, snapshot, context.recipe)
        background = _background(context, staging, shards, lengths)
        _write_common(staging.folder, background, reports.max_df)
        chosen = sampled(shards, lengths, reports.sample)
        tasks = [
            ReferralTask(
                shard=shard, folder=staging.folder, chosen=chosen[shard.name], settings=settings
            )
            for shard in shards
        ]
        counts = run_shards(context, staging, measure_shard, tasks, what=f"referrals of {snapshot}")
        write_table(
            staging.folder / DENSITIES_FILE,
            pa.Table.from_pylist(densities_of(staging.folder, reports.buckets), schema=DENSITIES),
        )
        return counts

    return build(context, STAGE, snapshot, fill, randomness={SAMPLED: f"{KEYED_ALGORITHM}, seed 0"})


def measuring_of(recipe: Recipe) -> Measuring:
    """The measurement that a recipe requests."""
    reports = recipe.referral_report
    return Measuring(
        buckets=reports.buckets,
        scope=reports.scope,
        max_df=reports.max_df,
        words=Path(reports.words) if reports.words else None,
    )


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
        for rank, (group, name, n_tokens) in _ranked(shard, lengths, SAMPLED):
            ranked = first.setdefault((shard.document_set, group), [])
            entry = (-rank, name, shard.name, n_tokens)
            (heapq.heappush if len(ranked) < n_documents else heapq.heappushpop)(ranked, entry)
    for _, name, shard_name, n_tokens in (entry for ranked in first.values() for entry in ranked):
        found[shard_name][name] = n_tokens
    return found


def _ranked(
    shard: SetShard, lengths: Path, purpose: str
) -> Iterator[tuple[int, tuple[str, str, int]]]:
    """Keyed hash of each document of a shard; its group, id and tokens, as the report of lengths
    has them, or a packed row's pieces.
    """
    if shard.document_set == PACKED:
        sums = (
            (name, sum(piece["row_stop"] - piece["row_start"] for piece in pieces))
            for name, pieces in pieces_of_rows(shard)
        )
        documents = [(group_names()[group_of(n_tokens)], name, n_tokens) for name, n_tokens in sums]
    else:
        columns = ["length_group", "id", "n_tokens"]
        table = read_table(lengths / f"{shard.name}{LENGTHS_SUFFIX}", columns)
        documents = list(zip(*(table[column].to_pylist() for column in columns), strict=True))
    ranks = keyed_u64(purpose, seed=0, keys=[name for _, name, _ in documents]).tolist()
    yield from zip(ranks, documents, strict=True)


def _background(
    context: BuildContext, staging: StagingFolder, shards: Sequence[SetShard], lengths: Path
) -> Background:
    reports = context.recipe.referral_report
    if reports.max_df >= 1:
        return Background()
    natural = [shard for shard in shards if shard.document_set == NATURAL]
    ranked = (
        (-rank, name)
        for shard in natural
        for rank, (_, name, _) in _ranked(shard, lengths, "background")
    )
    chosen = frozenset(name for _, name in heapq.nlargest(BACKGROUND_DOCUMENTS, ranked))
    tasks = [
        BackgroundTask(shard=shard, folder=staging.folder, chosen=chosen, words=reports.words)
        for shard in natural
    ]
    counted = run_shards(context, staging, count_background, tasks, what="background")
    pieces, documents = Counter[str](), Counter[str]()
    for task in tasks:
        for line in read_lines(task.table, batch_lines=4096):
            pieces[line["word"]] += line["n_pieces"]
            documents[line["word"]] += line["n_documents"]
    return Background(
        counted.extra.get("documents", 0), counted.extra.get("pieces", 0), pieces, documents
    )


@once
def count_background(task: BackgroundTask) -> Counts:
    """Count the pieces of the chosen documents of one shard."""
    special = read_special_words(Path(task.words) if task.words else None)
    texts = (document.text for document in texts_of(task.shard, task.chosen))
    found = Background.of(texts, LexicalConcepts(special).words_in)
    words = sorted(found.pieces)
    lines = {
        "word": words,
        "n_pieces": [found.pieces[word] for word in words],
        "n_documents": [found.documents[word] for word in words],
    }
    write_table(task.table, pa.table(lines, schema=COMMON_WORDS))
    return Counts(extra={"documents": found.n_documents, "pieces": found.n_pieces})


def _write_common(folder: Path, background: Background, max_df: float) -> None:
    words = sorted(background.common(max_df))
    counts = {
        "n_pieces": [background.pieces[word] for word in words],
        "n_documents": [background.documents[word] for word in words],
    }
    write_table(folder / COMMON_FILE, pa.table({"word": words} | counts, schema=COMMON_WORDS))


@once
def measure_shard(task: ReferralTask) -> Counts:
    """Measure the chosen documents of one shard."""
    common = frozenset(read_table(task.folder / COMMON_FILE, ["word"])["word"].to_pylist())
    finder, n_measured = finder_of(task.settings, common), 0
    with publish(task.folder / f"{task.name}{SUFFIX}") as staging:
        writer = TableWriter(staging, REFERRALS)
        for document in texts_of(task.shard, task.chosen):
            parts = document.parts if task.settings.scope == "document" else ()
            counts = count_referrals(finder.mentions(document.text, parts), task.settings.buckets)
            writer.add(
                line_of(
                    document.id, len(document.text), task.chosen[document.id], len(parts), counts
                )
            )
            n_measured += 1
        writer.close()
    return Counts(
        seen=n_measured, kept=n_measured, extra={f"{task.shard.document_set} documents": n_measured}
    )


def _params(recipe: Recipe, _: str) -> dict[str, Any]:
    reports = recipe.referral_report
    words = digest_of_words(Path(reports.words) if reports.words else None)
    settings = {
        "buckets": list(reports.buckets),
        "scope": reports.scope,
        "sample": reports.sample,
        "max_df": reports.max_df,
    }
    return settings | {"words_sha256": words}


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
        every_sample_is_as_asked,
        the_identities_of_referrals_hold,
        the_densities_are_the_documents_means,
        referrals_are_counted_anew,
    ),
    wanted=lambda recipe: recipe.referral_report.wanted,
    group="reports",
    job="snapshot_reports",
    pool=WORKERS,
    kinds=("parquet",),
    write=write_referral_report,
    show=later("lc_assets.stages.shown.reports:referral_report"),
)
"""Referrals of a sample of a snapshot's document sets."""
