"""Measuring the referrals of documents.

Common words are determined first, from the pieces of a background of documents
(`lc_assets.text.referrals.concepts`), then every shard is measured into a table of its own.
"""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

import pyarrow as pa

from lc_assets.builds.building import run_shards
from lc_assets.builds.settings.longpack import ReferralReportSettings
from lc_assets.builds.stage import BuildContext, StagingFolder
from lc_assets.builds.tables import Line, read_lines, read_table, write_table, writing_table
from lc_assets.counts import Counts
from lc_assets.formats.lists.word_lists import read_special_words
from lc_assets.formats.spacy_concepts import spacy_concepts
from lc_assets.lake.receipts import SCRATCH
from lc_assets.publishing import finished
from lc_assets.records import record
from lc_assets.stages.reports.document_sets import (
    COMMON_WORDS,
    REFERRALS,
    SetShard,
    group_of,
    texts_of,
)
from lc_assets.text.referrals.concepts import Background, Concepts, LexicalConcepts, pieces_of
from lc_assets.text.referrals.referrals import count_referrals

SUFFIX = ".referrals.parquet"
COMMON_FILE = "common_words.parquet"
BACKGROUND = "background"


@record
class ReferralTask:
    """Documents of one shard to be measured, or counted as background.

    Attributes:
        shard: the shard that contains them.
        folder: output folder of the table.
        settings: what is measured.
        chosen: tokens of the documents, by id.
        prefix: of the name.
    """

    shard: SetShard
    folder: Path
    settings: ReferralReportSettings
    chosen: Mapping[str, int]
    prefix: str = ""

    @property
    def name(self) -> str:
        """A name that is unique among the tasks of a version."""
        return f"{self.prefix}{self.shard.name}"

    def __str__(self) -> str:
        return self.name


def find_common_words(
    context: BuildContext, staging: StagingFolder, tasks: Sequence[ReferralTask], max_df: float
) -> None:
    """Count the background and write the table of common words, which `measure_shard` reads."""
    tasks = [dataclasses.replace(task, prefix=f"{BACKGROUND}-") for task in tasks]
    found = Background()
    if tasks:
        counts = run_shards(context, staging, count_background, tasks, what=BACKGROUND)
        found.n_pieces = counts.extra["pieces"]
    for task in tasks:
        for line in read_lines(_background_file(task), batch_lines=4096):
            found.pieces[line["word"]] += line["n_pieces"]
            found.documents[line["word"]] += line["n_documents"]
    _write_words(staging.folder / COMMON_FILE, found, found.common(max_df))


def _write_words(path: Path, found: Background, words: Iterable[str]) -> None:
    chosen = sorted(words)
    columns = {
        "word": chosen,
        "n_pieces": [found.pieces[word] for word in chosen],
        "n_documents": [found.documents[word] for word in chosen],
    }
    write_table(path, pa.table(columns, schema=COMMON_WORDS))


def _background_file(task: ReferralTask) -> Path:
    return task.folder / SCRATCH / f"{task.name}.parquet"


def count_background(task: ReferralTask) -> Counts:
    """Count the pieces of one shard's documents."""
    finder, found = LexicalConcepts(read_special_words(task.settings.words)), Background()
    for document in texts_of(task.shard, task.chosen):
        found.add(map(finder.words_in, pieces_of(document.text)))
    _write_words(_background_file(task), found, found.pieces)
    return Counts(extra={"pieces": found.n_pieces})


def measure_shard(task: ReferralTask) -> Counts:
    """Measure one shard's documents in their order."""
    settings, n_measured = task.settings, 0
    common = frozenset(read_table(task.folder / COMMON_FILE, ["word"])["word"].to_pylist())
    finder = finder_of(settings, common)
    with writing_table(task.folder / f"{task.name}{SUFFIX}", REFERRALS) as writer:
        for document in texts_of(task.shard, task.chosen):
            n_tokens = task.chosen[document.id]
            parts = document.parts if settings.scope == "document" else ()
            counts = count_referrals(finder.mentions(document.text, parts), settings.buckets)
            sizes = {"n_tokens": n_tokens, "n_chars": len(document.text), "n_parts": len(parts)}
            writer.add(
                {"id": document.id, "length_group": group_of(n_tokens)}
                | sizes
                | dataclasses.asdict(counts)
            )
            n_measured += 1
    return Counts(
        seen=n_measured,
        kept=n_measured,
        extra={f"{task.shard.document_set} documents": n_measured},
    )


@lru_cache(maxsize=4)
def finder_of(settings: ReferralReportSettings, common: frozenset[str]) -> Concepts:
    """What finds concepts; the same object every time in a process.

    Raises:
        BadInput: when the words or the pipeline cannot be read.
    """
    special = dataclasses.replace(read_special_words(settings.words), common=common)
    return spacy_concepts(settings.spacy, special) if settings.spacy else LexicalConcepts(special)


def referral_files(folder: Path, document_set: str) -> list[Path]:
    """The tables of a set, sorted by shard."""
    return finished(folder.glob(f"{document_set}-*{SUFFIX}"))


def referral_lines(folder: Path, document_set: str) -> Iterator[Line]:
    """Lines of a set's tables, shard by shard."""
    for path in referral_files(folder, document_set):
        yield from read_lines(path, REFERRALS.names)
