"""Referrals of documents: what is measured of one, and of a corpus file by file.

If common words are excluded, a corpus is read twice: they are known only after its background was
read (`lc_assets.text.referrals.concepts`). Background documents are selected by a keyed hash of
their ids, so the order of files and the number of workers do not matter. Not here: the report of a
snapshot's document sets (`lc_assets.stages.reports.referral_report`).
"""

import dataclasses
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from lc_assets.build.tables import TableWriter, read_lines
from lc_assets.counts import Counts
from lc_assets.errors import BadInput
from lc_assets.execution.executor import Executor
from lc_assets.formats.corpora.reading import corpus_files, read_corpus
from lc_assets.formats.corpora.records import CorpusDocument, Unread
from lc_assets.formats.gzipping import gzipped
from lc_assets.formats.lists.word_lists import read_special_words
from lc_assets.formats.spacy_concepts import spacy_concepts
from lc_assets.formats.tokenizers.named import tokenizer_of
from lc_assets.publishing import publish
from lc_assets.randomness import keyed_u64
from lc_assets.stages.reports.report_tables import REFERRALS
from lc_assets.text.referrals.concepts import Background, Concepts, LexicalConcepts, Part
from lc_assets.text.referrals.referrals import (
    DISTANCES,
    ReferralCounts,
    count_referrals,
    require_edges,
)
from lc_assets.text.referrals.tables import LENGTHS, Sums, group_names, group_of

TABLES: Final = (".parquet", ".jsonl", ".jsonl.gz")
BACKGROUND_BYTES: Final = 64 << 20
"""Of a larger corpus, a share of the documents with about this many bytes is the background."""

CHARACTERS, WITHOUT_SPANS = "characters", "documents without spans"
NAMES_OF_DOCUMENTS: Final = ("document", "child_id", "url", "id")
"""Fields of a span that identify its document; the first that is present and not empty counts;
without any, each span is a document.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measuring:
    """What is measured, and how.

    Attributes:
        buckets: lower ends of the buckets after the first.
        scope: where equal concepts match: in a whole ``text``, or within one ``document`` of it, if
            its spans are known.
        max_df: share of a corpus's pieces from which a word is common and no concept; 1 excludes
            none.
        tokenizer: what counts tokens; see `lc_assets.formats.tokenizers.named`.
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
class Measured:
    """What was measured of a corpus.

    Attributes:
        counts: documents, by why they were not measured.
        groups: sums by group of lengths.
        background: what common words were looked for in.
        common: the common words.
    """

    counts: Counts
    groups: tuple[Sums, ...]
    background: Background
    common: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class BackgroundTask:
    """One file of which a share of the documents is counted."""

    file: Path
    share: float
    settings: Measuring

    def __str__(self) -> str:
        return str(self.file)


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureTask:
    """One file to measure; ``part`` is where its table goes, if wanted."""

    number: int
    file: Path
    part: Path | None
    settings: Measuring
    common: frozenset[str]

    def __str__(self) -> str:
        return str(self.file)


def measure_corpus(
    sources: Sequence[Path], settings: Measuring, *, executor: Executor, table: Path | None = None
) -> Measured:
    """Measure the referrals of plain files.

    Args:
        sources: files and folders.
        settings: what to measure.
        executor: what runs the files.
        table: gets a line per document, Parquet or JSON lines by the end of its name.

    Raises:
        BadInput: when a source, the words, the tokenizer or the table's kind cannot be meant.
        CorruptFile: when a file's container is damaged.
    """
    if table is not None and not table.name.endswith(TABLES):
        raise BadInput(f"{table}: a table of documents ends in {', '.join(TABLES)}")
    tokenizer_of(settings.tokenizer)  # so that what cannot be meant is said before any work is done
    finder_of(settings)
    files = corpus_files(sources)
    background = _background(files, settings, executor)
    common = background.common(settings.max_df)
    with tempfile.TemporaryDirectory(prefix="lc-referrals-") as folder:
        parts = [
            None if table is None else Path(folder) / f"{number}.parquet"
            for number in range(len(files))
        ]
        tasks = [
            MeasureTask(number=number, file=file, part=part, settings=settings, common=common)
            for number, (file, part) in enumerate(zip(files, parts, strict=True))
        ]
        found = {
            task.number: result
            for task, result in executor.run(measure_file, tasks, what="referrals")
        }
        if table is not None:
            _publish(table, [part for part in parts if part is not None])
    groups = tuple(Sums() for _ in LENGTHS)
    for number in sorted(found):
        for group, sums in zip(groups, found[number][1], strict=True):
            group.merge(sums)
    counts = Counts.total(found[number][0] for number in sorted(found))
    return Measured(counts=counts, groups=groups, background=background, common=common)


def _background(files: Sequence[Path], settings: Measuring, executor: Executor) -> Background:
    if settings.max_df >= 1 or settings.pipeline:
        return Background()
    share = min(1.0, BACKGROUND_BYTES / max(sum(file.stat().st_size for file in files), 1))
    tasks = [BackgroundTask(file=file, share=share, settings=settings) for file in files]
    return Background.total(
        found for _, found in executor.run(background_of_file, tasks, what="background")
    )


def background_of_file(task: BackgroundTask) -> Background:
    """Count the pieces of the chosen documents of one file."""
    found = read_corpus(task.file, text_field=task.settings.text_field)
    texts = (
        document.text
        for document in found
        if isinstance(document, CorpusDocument) and is_chosen(document.id, task.share)
    )
    return Background.of(texts, LexicalConcepts(read_special_words(task.settings.words)).words_in)


def is_chosen(document_id: str, share: float) -> bool:
    """Whether a document is of the background: by the keyed hash of its id."""
    return share >= 1 or int(keyed_u64("background", seed=0, keys=[document_id])[0]) < share * 2**64


def measure_file(task: MeasureTask) -> tuple[Counts, tuple[Sums, ...]]:
    """Measure one file's documents, in their order; one that cannot be is dropped, by why."""
    groups = tuple(Sums() for _ in LENGTHS)
    dropped, extra = Counter[str](), Counter[str]({CHARACTERS: 0})
    lines = _lines(task, groups, dropped, extra)
    n_measured = sum(1 for _ in lines) if task.part is None else _write_part(task.part, lines)
    counts = {"seen": n_measured + dropped.total(), "kept": n_measured}
    return Counts(
        **counts, dropped=dict(dropped), failed_rules=dict(dropped), extra=dict(extra)
    ), groups


def _lines(
    task: MeasureTask, groups: Sequence[Sums], dropped: Counter[str], extra: Counter[str]
) -> Iterator[dict[str, Any]]:
    settings, finder = task.settings, finder_of(task.settings, task.common)
    tokenizer = tokenizer_of(settings.tokenizer)
    for document in read_corpus(task.file, text_field=settings.text_field):
        if isinstance(document, Unread):
            dropped[document.why] += 1
            continue
        try:
            parts = parts_of(document) if settings.scope == "document" else []
            n_tokens = len(tokenizer.encode(document.text))
        except BadInput as error:
            dropped[
                "spans cannot be meant" if isinstance(error, BadSpans) else "the tokenizer gave up"
            ] += 1
            continue
        if not n_tokens:
            dropped["no tokens"] += 1
            continue
        extra[CHARACTERS] += len(document.text)
        if settings.scope == "document":
            extra[WITHOUT_SPANS] += not parts
        counts = count_referrals(finder.mentions(document.text, parts), settings.buckets)
        groups[group_of(n_tokens)].add(counts, n_tokens)
        yield line_of(document.id, len(document.text), n_tokens, len(parts), counts)


def line_of(
    document_id: str, n_chars: int, n_tokens: int, n_parts: int, counts: ReferralCounts
) -> dict[str, Any]:
    """A document's line of `lc_assets.stages.reports.report_tables.REFERRALS`."""
    who = {
        "id": document_id,
        "length_group": group_names()[group_of(n_tokens)],
        "n_tokens": n_tokens,
        "n_chars": n_chars,
    }
    return (
        who
        | {"n_parts": n_parts}
        | {
            name: value
            for name, value in dataclasses.asdict(counts).items()
            if name in REFERRALS.names
        }
    )


class BadSpans(BadInput):
    """A record's spans are not stretches of its text, one after the other."""


def parts_of(document: CorpusDocument) -> list[Part]:
    """The parts of a record's text, by its ``spans``; none where it has none.

    Raises:
        BadSpans: when they overlap, or are not of the text.
    """
    spans = msgspec.json.decode(document.rest).get("spans") or []
    try:
        return parts_of_spans(spans, len(document.text))
    except (TypeError, KeyError, AttributeError) as error:
        raise BadSpans(
            f"{document.id}: spans are not a list of objects with start and stop"
        ) from error


def parts_of_spans(spans: Sequence[dict[str, Any]], n_chars: int) -> list[Part]:
    """Parts of a text by its spans, in characters.

    Raises:
        BadSpans: when they overlap, or are not of the text.
    """
    numbers: dict[Any, int] = {}
    parts, end = list[Part](), 0
    for place, span in enumerate(spans):
        if not end <= span["start"] <= span["stop"] <= n_chars:
            raise BadSpans(
                f"span {place}: {span['start']:,} to {span['stop']:,} of {n_chars:,} characters, "
                f"the one before ends at {end:,}"
            )
        end = span["stop"]
        name = next(
            (span[name] for name in NAMES_OF_DOCUMENTS if span.get(name) not in (None, "")),
            ("span", place),
        )
        parts.append(Part(span["start"], numbers.setdefault(str(name), len(numbers))))
    return parts


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


def _write_part(part: Path, lines: Iterator[dict[str, Any]]) -> int:
    writer, n_lines = TableWriter(part, REFERRALS), 0
    for line in lines:
        writer.add(line)
        n_lines += 1
    writer.close()
    return n_lines


def _publish(table: Path, parts: Sequence[Path]) -> None:
    lines = (line for part in parts for line in read_lines(part, REFERRALS.names))
    with publish(table) as draft:
        if table.name.endswith(".parquet"):
            _write_part(draft, lines)
            return
        with gzipped(draft) if table.name.endswith(".gz") else draft.open("wb") as out:
            for line in lines:
                out.write(msgspec.json.encode(line) + b"\n")
