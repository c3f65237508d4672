"""Measuring the referrals of documents: of a snapshot's sets, and of plain files.

Common words are determined first, from the pieces of a background of documents
(`lc_assets.text.referrals.concepts`), then every shard is measured into a table of its own.
Documents are selected by a keyed hash of their ids, so the order of files and the number of workers
do not matter.
"""

import dataclasses
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Literal

import msgspec
import pyarrow as pa

from lc_assets.build.tables import TableWriter, read_lines, read_table, write_table
from lc_assets.counts import Counts
from lc_assets.errors import BadInput
from lc_assets.execution.executor import Executor
from lc_assets.formats.corpora.containers import Unread
from lc_assets.formats.corpora.reading import corpus_files
from lc_assets.formats.lists.word_lists import read_special_words
from lc_assets.formats.spacy_concepts import spacy_concepts
from lc_assets.formats.tokenizers.named import tokenizer_of
from lc_assets.lake.receipts import SCRATCH
from lc_assets.lake.staging import once
from lc_assets.publishing import finished, gzipped, publish
from lc_assets.randomness import keyed_u64
from lc_assets.stages.reports.document_sets import (
    COMMON_WORDS,
    FILES,
    GROUPS,
    REFERRALS,
    SetDocument,
    SetShard,
    group_of,
    texts_of,
    texts_of_file,
)
from lc_assets.text.referrals.concepts import Background, Concepts, LexicalConcepts
from lc_assets.text.referrals.referrals import (
    DISTANCES,
    KINDS,
    ReferralCounts,
    Sums,
    count_referrals,
    require_edges,
)

TABLES: Final = (".parquet", ".jsonl", ".jsonl.gz")
SUFFIX: Final = ".referrals.parquet"
COMMON_FILE: Final = "common_words.parquet"
BACKGROUND: Final = "background"
BACKGROUND_BYTES: Final = 64 << 20
"""Of larger files, a share of the documents with about this many bytes is the background."""
WITHOUT_SPANS: Final = "documents without spans"

Run = Callable[[Callable[[Any], Counts], Sequence[Any], str], Counts]
"""Runs a function over tasks and adds up their counts; the last argument is for messages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measuring:
    """What is measured, and how.

    Attributes:
        buckets: lower ends of the buckets after the first.
        scope: where equal concepts match: in a whole ``text``, or within one ``document`` of it, if
            its parts are known.
        max_df: share of the background's pieces that makes a word common, so that it is no concept;
            1 excludes none.
        tokenizer: what counts tokens of files; see `lc_assets.formats.tokenizers.named`.
        words: file of words that are no concepts; by default the English preset.
        pipeline: name or folder of a spaCy pipeline that finds concepts; empty: by spelling.
        text_field: name of a record's text field.
    """

    buckets: tuple[int, ...] = DISTANCES
    scope: Literal["document", "text"] = "text"
    max_df: float = 0.05
    tokenizer: str = "gpt2"
    words: Path | None = None
    pipeline: str = ""
    text_field: str | None = None

    def __post_init__(self) -> None:
        require_edges(self.buckets)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferralTask:
    """Documents of one shard to be measured, or counted as background.

    Attributes:
        shard: the shard that contains them.
        folder: output folder of the table.
        settings: what is measured.
        chosen: ids of the documents, with their tokens; None for those of a file.
        share: of the documents of a file, by the keyed hash of their ids.
        prefix: of the name.
    """

    shard: SetShard
    folder: Path
    settings: Measuring
    chosen: Mapping[str, int] | None = None
    share: float = 1.0
    prefix: str = ""

    @property
    def name(self) -> str:
        """A name that is unique among the tasks of a version."""
        return f"{self.prefix}{self.shard.name}"

    def __str__(self) -> str:
        return self.name

    def documents(self) -> Iterator[SetDocument | Unread]:
        """The documents in order; one that cannot be read is replaced by the reason."""
        if self.chosen is None:
            return texts_of_file(self.shard)
        return iter(texts_of(self.shard, self.chosen))


def find_common_words(
    run: Run, folder: Path, tasks: Sequence[ReferralTask], max_df: float
) -> Background:
    """Count the background and write the table of common words, which `measure_shard` reads."""
    tasks = [dataclasses.replace(task, prefix=f"{BACKGROUND}-") for task in tasks]
    found = Background()
    if tasks:
        counted = run(count_background, tasks, BACKGROUND).extra
        pieces, documents = Counter[str](), Counter[str]()
        for task in tasks:
            for line in read_lines(_background_file(task), batch_lines=4096):
                pieces[line["word"]] += line["n_pieces"]
                documents[line["word"]] += line["n_documents"]
        found = Background(counted.get("documents", 0), counted.get("pieces", 0), pieces, documents)
    _write_words(folder / COMMON_FILE, found, found.common(max_df))
    return found


def _write_words(path: Path, found: Background, words: frozenset[str]) -> None:
    chosen = sorted(words)
    columns = {
        "word": chosen,
        "n_pieces": [found.pieces[word] for word in chosen],
        "n_documents": [found.documents[word] for word in chosen],
    }
    write_table(path, pa.table(columns, schema=COMMON_WORDS))


def _background_file(task: ReferralTask) -> Path:
    return task.folder / SCRATCH / f"{task.name}.parquet"


@once
def count_background(task: ReferralTask) -> Counts:
    """Count the pieces of one shard's documents."""
    texts = (
        document.text
        for document in task.documents()
        if isinstance(document, SetDocument) and is_chosen(document.id, task.share)
    )
    words_in = LexicalConcepts(read_special_words(task.settings.words)).words_in
    found = Background.of(texts, words_in)
    _write_words(_background_file(task), found, frozenset(found.pieces))
    return Counts(extra={"documents": found.n_documents, "pieces": found.n_pieces})


def is_chosen(document_id: str, share: float) -> bool:
    """Whether a document is in the background, by the keyed hash of its id."""
    return share >= 1 or int(keyed_u64(BACKGROUND, seed=0, keys=[document_id])[0]) < share * 2**64


@once
def measure_shard(task: ReferralTask) -> Counts:
    """Measure one shard's documents in their order; one that cannot be measured is dropped."""
    settings, shard, dropped, n_measured = task.settings, task.shard, Counter[str](), 0
    common = frozenset(read_table(task.folder / COMMON_FILE, ["word"])["word"].to_pylist())
    finder = finder_of(settings, common)
    with publish(task.folder / f"{task.name}{SUFFIX}") as staging:
        writer = TableWriter(staging, REFERRALS)
        for document in task.documents():
            n_tokens = _tokens_of(document, task, dropped)
            if n_tokens is None or isinstance(document, Unread):
                continue
            parts = document.parts if settings.scope == "document" else ()
            counts = count_referrals(finder.mentions(document.text, parts), settings.buckets)
            sizes = {"n_tokens": n_tokens, "n_chars": len(document.text), "n_parts": len(parts)}
            writer.add(
                {"id": document.id, "length_group": group_of(n_tokens)}
                | sizes
                | dataclasses.asdict(counts)
            )
            n_measured += 1
        writer.close()
    return Counts(
        seen=n_measured + dropped.total(),
        kept=n_measured,
        dropped=dict(dropped),
        failed_rules=dict(dropped),
        extra={f"{shard.document_set} documents": n_measured},
    )


def _tokens_of(
    document: SetDocument | Unread, task: ReferralTask, dropped: Counter[str]
) -> int | None:
    """A document's tokens; None, with the reason counted, when it cannot be measured."""
    if isinstance(document, Unread):
        dropped[document.why] += 1
        return None
    if task.chosen is not None:
        return task.chosen[document.id]
    try:
        if n_tokens := len(tokenizer_of(task.settings.tokenizer).encode(document.text)):
            return n_tokens
        dropped["no tokens"] += 1
    except BadInput:
        dropped["the tokenizer gave up"] += 1
    return None


@lru_cache(maxsize=4)
def _finder(words: Path | None, pipeline: str, common: frozenset[str]) -> Concepts:
    special = dataclasses.replace(read_special_words(words), common=common)
    return spacy_concepts(pipeline, special) if pipeline else LexicalConcepts(special)


def finder_of(settings: Measuring, common: frozenset[str] = frozenset()) -> Concepts:
    """What finds concepts; the same object every time in a process.

    Raises:
        BadInput: when the words or the pipeline cannot be read.
    """
    return _finder(settings.words, settings.pipeline, common)


def referral_lines(folder: Path, document_set: str) -> Iterator[dict[str, Any]]:
    """Lines of a set's tables, shard by shard."""
    for path in finished(folder.glob(f"{document_set}-*{SUFFIX}")):
        yield from read_lines(path, REFERRALS.names)


def sums_of(folder: Path, document_set: str) -> dict[str, Sums]:
    """Sums over a set's measured documents, by group of lengths."""
    groups = {group: Sums() for group in GROUPS}
    for line in referral_lines(folder, document_set):
        sizes = (line[name] for name in ("n_sentences", "n_concepts", "n_mentions"))
        counts = ReferralCounts(*sizes, *(tuple(line[kind]) for kind in KINDS))
        groups[group_of(line["n_tokens"])].add(counts, line["n_tokens"])
    return groups


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What was measured of files.

    Attributes:
        counts: documents, by why they were not measured.
        groups: sums by group of lengths.
        background: where common words were counted.
        common: the common words.
    """

    counts: Counts
    groups: Mapping[str, Sums]
    background: Background
    common: frozenset[str]


def measure_corpus(
    sources: Sequence[Path], settings: Measuring, *, executor: Executor, table: Path | None = None
) -> Measured:
    """Measure the referrals of plain files.

    Args:
        sources: files and folders.
        settings: what to measure.
        executor: runs a task per file.
        table: where to write a line per document; Parquet or JSON lines by the end of its name.

    Raises:
        BadInput: when a source, the words, the tokenizer or the table's name is not acceptable.
        CorruptFile: when a file's container is damaged.
    """
    if table is not None and not table.name.endswith(TABLES):
        raise BadInput(f"{table}: a table of documents ends in {', '.join(TABLES)}")
    tokenizer_of(settings.tokenizer)  # raises before any work is done
    finder_of(settings)
    by_parts = settings.scope == "document"
    shards = [
        SetShard(
            document_set=FILES,
            path=file,
            shard=f"{number:06}",
            text_field=settings.text_field,
            by_parts=by_parts,
        )
        for number, file in enumerate(corpus_files(sources))
    ]

    def run(function: Callable[[Any], Counts], tasks: Sequence[Any], what: str) -> Counts:
        found = {task.name: counts for task, counts in executor.run(function, tasks, what=what)}
        return Counts.total(found[name] for name in sorted(found))

    with tempfile.TemporaryDirectory(prefix="lc-referrals-") as name:
        folder = Path(name)
        share = BACKGROUND_BYTES / max(sum(shard.path.stat().st_size for shard in shards), 1)
        tasks = [
            ReferralTask(shard=shard, folder=folder, settings=settings, share=share)
            for shard in shards
        ]
        has_common = settings.max_df < 1 and not settings.pipeline
        found = find_common_words(run, folder, tasks if has_common else [], settings.max_df)
        counts = run(measure_shard, tasks, "referrals")
        extra = {}
        if by_parts:
            lines = referral_lines(folder, FILES)
            extra[WITHOUT_SPANS] = sum(not line["n_parts"] for line in lines)
        if table is not None:
            _write_lines(table, referral_lines(folder, FILES))
        return Measured(
            counts=msgspec.structs.replace(counts, extra=extra),
            groups=sums_of(folder, FILES),
            background=found,
            common=found.common(settings.max_df),
        )


def _write_lines(table: Path, lines: Iterator[dict[str, Any]]) -> None:
    with publish(table) as staging:
        if table.name.endswith(".parquet"):
            writer = TableWriter(staging, REFERRALS)
            for line in lines:
                writer.add(line)
            writer.close()
            return
        with gzipped(staging) if table.name.endswith(".gz") else staging.open("wb") as out:
            for line in lines:
                out.write(msgspec.json.encode(line) + b"\n")
