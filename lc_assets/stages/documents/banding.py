"""Keeping the middle of a corpus by one measure: its documents are measured, and then those within
the band are kept.

::

    OUT/signals/{stem}.parquet     the measure of every document (`stored_values`): another band needs no text
    OUT/kept/{stem}.jsonl.gz       the documents within the band, as they came; of stored values, ids and addresses
    OUT/dropped/{stem}.jsonl.gz    id, url, and the reason, with the value and what was wanted
    OUT/rules.toml                 the band as a file of rules: for `lc judge`, and for a recipe
    OUT/summary.json               what was counted

Two passes, a task per file in each; the second reads the measures that the first stored. Memory:
one document, and 8 bytes for every document of the corpus between the passes.

Here: files. Not here: the bounds (`lc_assets.text.rules.rules`), computing a measure (`judges`).
"""

import contextlib
import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from lc_assets.build.tables import TableWriter
from lc_assets.counts import Counts
from lc_assets.errors import Mismatch
from lc_assets.execution.executor import Executor
from lc_assets.formats.corpora.containers import json_line
from lc_assets.formats.corpora.reading import corpus_files, read_corpus
from lc_assets.formats.corpora.records import Unread
from lc_assets.formats.gzipping import gzipped
from lc_assets.formats.lists.rule_files import parse_rules
from lc_assets.publishing import publish, publish_bytes
from lc_assets.stages.corpus_runs import over_corpus
from lc_assets.stages.documents.judges import Judge
from lc_assets.stages.documents.judging import require_judgeable
from lc_assets.stages.documents.stored_values import is_stored, read_values, values_schema
from lc_assets.text.rules.rules import Rule, RuleSet, Shares, band

NO_VALUE: Final = "no value"
SUMMARY_FILE: Final = "summary.json"
RULES_FILE: Final = "rules.toml"


class Banded(msgspec.Struct, frozen=True, kw_only=True):
    """Content of ``summary.json``.

    Attributes:
        column: that was measured.
        at_least: the lower bound; ``at_most``: the upper; None where nothing was to be left out.
        seen: documents met; ``kept``: within the band; ``dropped``: the others, by reason.
    """

    column: str
    at_least: float | None
    at_most: float | None
    seen: int
    kept: int
    dropped: dict[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class BandTask:
    """One file to be measured, or to be parted.

    Attributes:
        file: of texts, or of stored values.
        out: the folder of all results.
        stem: path of the results below ``kept`` and so on.
        rule: the band; any value, while documents are measured.
        text_field: where a record's text is.
        language: of documents that do not say theirs.
    """

    file: Path
    out: Path
    stem: str
    rule: Rule
    text_field: str | None = None
    language: str = ""

    def place(self, what: str, suffix: str) -> Path:
        """Where a result goes."""
        return self.out / what / f"{self.stem}{suffix}"

    @property
    def values(self) -> Path:
        """Where the file's measures are."""
        return self.file if is_stored(self.file) else self.place("signals", ".parquet")

    def __str__(self) -> str:
        return str(self.file)


class _Found(NamedTuple):
    """A document with its measure; without a line where it could not be read, and why."""

    id: str
    url: str
    value: float | None
    line: bytes | None
    why: str = NO_VALUE


def band_corpus(
    sources: Sequence[Path],
    out: Path,
    column: str,
    shares: Shares,
    *,
    executor: Executor,
    text_field: str | None = None,
    language: str = "",
) -> Banded:
    """Keep the middle of a corpus, and write the results below ``out``.

    Args:
        sources: files and folders: of texts, or of stored values.
        out: folder of the results.
        column: ``signal``, or ``signal:words``, that needs neither list nor model.
        shares: of the documents that are left out below and above.
        executor: runs a task per file, twice.
        text_field: where a record's text is.
        language: of documents that do not say theirs.

    Raises:
        BadInput: when there is no such column, a file of stored values has it not, or no document
            has a value.
        CorruptFile: when a file is damaged.
    """
    signal, _, words = column.partition(":")
    # No value of a document is as large as the largest number that there is.
    widest = sys.float_info.max
    any_value = Rule(
        name="band",
        signal=signal,
        words=words,
        at_least=-widest,
        at_most=widest,
        source="any value",
    )
    rules = parse_rules(as_toml(any_value), where=column)  # knows which columns there are
    for file in corpus_files(sources):
        require_judgeable(file, rules)
    tasks: list[BandTask] = []

    def task_of(file: Path, stem: Path, *, rule: Rule) -> BandTask:
        tasks.append(
            BandTask(
                file=file,
                out=out,
                stem=stem.relative_to(out).as_posix(),
                rule=rule,
                text_field=text_field,
                language=language,
            )
        )
        return tasks[-1]

    over_corpus(
        sources,
        out,
        partial(task_of, rule=any_value),
        measure_file,
        executor=executor,
        what=f"measure {column}",
    )
    rule = band(column, np.concatenate([_values(task.values, column) for task in tasks]), shares)
    counts = over_corpus(
        sources,
        out,
        partial(task_of, rule=rule),
        part_file,
        executor=executor,
        what="keep the middle",
    )
    publish_bytes(out / RULES_FILE, as_toml(rule).encode())
    banded = Banded(
        column=column,
        at_least=rule.at_least,
        at_most=rule.at_most,
        seen=counts.seen,
        kept=counts.kept,
        dropped=counts.dropped,
    )
    publish_bytes(
        out / SUMMARY_FILE, msgspec.json.format(msgspec.json.encode(banded), indent=1) + b"\n"
    )
    return banded


def measure_file(task: BandTask) -> Counts:
    """Measure the documents of one file; of stored values there is nothing to do.

    Raises:
        CorruptFile: when it is damaged; nothing of it is published.
    """
    if is_stored(task.file):
        return Counts()
    judge, column = Judge(RuleSet("band", (task.rule,)), language=task.language), task.rule.column
    n_docs = 0
    with (
        publish(task.values) as draft,
        contextlib.closing(TableWriter(draft, values_schema([column], None))) as table,
    ):
        for document in read_corpus(task.file, text_field=task.text_field):
            if not isinstance(document, Unread):
                value = judge.document(document)[1].values[column]
                table.add(
                    {
                        "id": document.id,
                        "url": document.url,
                        column: np.nan if value is None else value,
                    }
                )
                n_docs += 1
    return Counts(seen=n_docs, kept=n_docs)


def part_file(task: BandTask) -> Counts:
    """Write the documents of one file that are within the band, and the reason against each other.

    Raises:
        CorruptFile: when it is damaged; nothing of it is published.
    """
    n_kept, dropped = 0, Counter[str]()
    with contextlib.ExitStack() as stack:
        kept_out, dropped_out = (
            stack.enter_context(gzipped(stack.enter_context(publish(place))))
            for place in _places(task)
        )
        for found in _documents(task):
            if found.line is not None and task.rule.complaint(found.value) is None:
                kept_out.write(found.line)
                n_kept += 1
                continue
            reason = found.why if found.value is None else _side(task.rule, found.value)
            dropped[reason] += 1
            said = {
                "rule": reason,
                "column": task.rule.column,
                "value": found.value,
                "wanted": task.rule.wanted,
            }
            dropped_out.write(
                msgspec.json.encode({"id": found.id, "url": found.url, "reasons": [said]}) + b"\n"
            )
    return Counts(seen=n_kept + dropped.total(), kept=n_kept, dropped=dict(dropped))


def as_toml(rule: Rule) -> str:
    """A rule as a file of rules."""
    lines = [
        'name = "band"',
        "",
        "[[rule]]",
        f"name = {json.dumps(rule.name)}",
        f"signal = {json.dumps(rule.signal)}",
    ]
    lines += [f"words = {json.dumps(rule.words)}"] if rule.words else []
    lines += [
        f"{bound} = {value!r}"
        for bound in ("at_least", "at_most")
        if (value := getattr(rule, bound)) is not None
    ]
    return "\n".join([*lines, f"source = {json.dumps(rule.source)}", ""])


def _places(task: BandTask) -> tuple[Path, Path]:
    return task.place("kept", ".jsonl.gz"), task.place("dropped", ".jsonl.gz")


def _side(rule: Rule, value: float) -> str:
    return f"{rule.column} too low" if value < rule.lowest else f"{rule.column} too high"


def _documents(task: BandTask) -> Iterator[_Found]:
    column = task.rule.column
    stored = read_values(task.values, [column])
    if is_stored(task.file):
        for one in stored:
            yield _Found(
                one.id,
                one.url,
                one.values.get(column),
                msgspec.json.encode({"id": one.id, "url": one.url}) + b"\n",
            )
        return
    for document in read_corpus(task.file, text_field=task.text_field):
        if isinstance(document, Unread):
            yield _Found(document.id, "", None, None, document.why)
            continue
        known = next(stored, None)
        if known is None or known.id != document.id:
            raise Mismatch(
                f"{task.file}: {document.id} is not what was measured in its place; the file "
                "changed meanwhile: run it again"
            )
        yield _Found(document.id, document.url, known.values[column], json_line(document))


def _values(path: Path, column: str) -> NDArray[np.float64]:
    values = (one.values.get(column) for one in read_values(path, [column]))
    return np.fromiter((np.nan if value is None else value for value in values), np.float64)
