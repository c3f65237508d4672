"""Judging a plain corpus, or stored values, by a set of rules: what is kept, what is dropped and
why, and every value.

::

    OUT/kept/{stem}.jsonl.gz       the documents, their other fields as they came; of stored values, ids and addresses
    OUT/dropped/{stem}.jsonl.gz    id, url, and each reason with the value that was judged and what was wanted
    OUT/signals/{stem}.parquet     every computed column of every document (`stored_values`): thresholds can be changed later
    OUT/sweeps/{stem}.parquet      how many documents each threshold would keep, when asked for

Columns are computed by their cost, cheapest first, and rules are asked in that order. A document
that a cheap rule speaks against is asked nothing more, unless all signals are wanted; what was not
computed is null in the table.

Here: one file, and how many rules were asked of how many. Not here: the rules and what they cost
    (`lc_assets.text`).
"""

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from math import nan
from pathlib import Path
from typing import Any, BinaryIO, Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lc_assets.build.settings.common import NO_MODEL_SETTINGS, ModelSettings
from lc_assets.build.settings.documents import NO_LIST_SETTINGS, ListSettings
from lc_assets.build.tables import COMPRESSION, write_table
from lc_assets.counts import Counts
from lc_assets.formats.corpora.containers import json_line
from lc_assets.formats.corpora.reading import read_corpus
from lc_assets.formats.corpora.records import Unread
from lc_assets.formats.gzipping import gzipped
from lc_assets.publishing import publish
from lc_assets.stages.documents.judges import Judge, Judged, Values
from lc_assets.stages.documents.measuring import lists_of, models_of
from lc_assets.stages.documents.stored_values import (
    is_stored,
    read_values,
    require_stored,
    values_schema,
)
from lc_assets.stages.documents.sweeping import table_of
from lc_assets.text.rules.columns import require_computable
from lc_assets.text.rules.models import NO_MODELS, Models
from lc_assets.text.rules.rules import Complaint, RuleSet
from lc_assets.text.rules.sweeps import Sweep, sweep
from lc_assets.text.signals.names import NO_LISTS, WordLists

ASKED: Final = "asked: "
AT_ONCE: Final = 4096
"""Documents whose values are written at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeTask:
    """One file to be judged.

    Attributes:
        file: of texts, or of stored values.
        out: the folder of all results.
        stem: path of the results below ``kept``, ``dropped`` and so on, without the ends of names.
        rules: what to judge by.
        text_field: where a record's text is; None for the usual places.
        language: of documents that do not say theirs.
        all_signals: whether a document that one rule speaks against is asked all others too.
        sweep: whether to count what each threshold would keep; wants ``all_signals``.
        lists: where the lists are that some signals need.
        models: where the models are that some columns need.
    """

    file: Path
    out: Path
    stem: str
    rules: RuleSet
    text_field: str | None = None
    language: str = ""
    all_signals: bool = False
    sweep: bool = False
    lists: ListSettings = NO_LIST_SETTINGS
    models: ModelSettings = NO_MODEL_SETTINGS

    def place(self, what: str, suffix: str) -> Path:
        """Where a result goes."""
        return self.out / what / f"{self.stem}{suffix}"

    def __str__(self) -> str:
        return str(self.file)


def require_judgeable(
    path: Path, rules: RuleSet, lists: WordLists = NO_LISTS, models: Models = NO_MODELS
) -> None:
    """Refuse rules that a file cannot be judged by, before any work is done.

    Raises:
        BadInput: names what is missing.
    """
    if is_stored(path):
        require_stored(path, rules)
    else:
        require_computable(rules.columns, lists, models)


def judge_file(task: JudgeTask) -> Counts:
    """Judge one file and publish its results.

    Raises:
        BadInput: when its values were stored without what the rules judge.
        CorruptFile: when it is damaged; nothing of it is published.
    """
    lists, models = (
        lists_of(task.lists),
        NO_MODELS if is_stored(task.file) else models_of(task.models, task.rules.columns),
    )
    require_judgeable(task.file, task.rules, lists, models)
    judge = Judge(
        task.rules, all_signals=task.all_signals, language=task.language, lists=lists, models=models
    )
    with contextlib.ExitStack() as stack:
        results = _Results(task, stack)
        if is_stored(task.file):
            for stored in read_values(task.file, task.rules.columns):
                judged = judge.stored(stored)
                results.take(
                    stored.id,
                    stored.url,
                    judged,
                    partial(_line, {"id": stored.id, "url": stored.url}),
                )
        else:
            _judge_texts(task, judge, results)
        results.finish()
    return results.counts()


def _judge_texts(task: JudgeTask, judge: Judge, results: "_Results") -> None:
    for document in read_corpus(task.file, text_field=task.text_field):
        if isinstance(document, Unread):
            results.take(
                document.id,
                "",
                Judged({}, (Complaint(document.why, None, document.where),), ()),
                None,
            )
            continue
        offered, judged = judge.document(document)
        kept = (
            document
            if offered.whole is None
            else msgspec.structs.replace(document, text=offered.text)
        )
        results.take(document.id, document.url, judged, partial(json_line, kept))


class _Results:
    """The files that judging one file writes, and the counts."""

    def __init__(self, task: JudgeTask, stack: contextlib.ExitStack) -> None:
        self._task = task
        self._kept = stack.enter_context(_gzipped(task.place("kept", ".jsonl.gz")))
        self._dropped = stack.enter_context(_gzipped(task.place("dropped", ".jsonl.gz")))
        self._stored = is_stored(task.file)
        self._schema = values_schema(task.rules.columns, task.rules.edit)
        self._values = (
            None
            if self._stored
            else stack.enter_context(_parquet(task.place("signals", ".parquet"), self._schema))
        )
        self._columns = sorted(task.rules.columns)
        self._rules = {rule.name: rule for rule in task.rules.rules}
        self._rows: list[tuple[str, str, Values]] = []
        self._sweep = Sweep.none_of(task.rules)
        self._incomplete: set[str] = set()
        self._seen = self._n_kept = 0
        self._first, self._any, self._asked = (
            Counter[str](),
            Counter[str](),
            Counter[tuple[tuple[str, ...], ...]](),
        )

    def take(
        self, identity: str, url: str, judged: Judged, line: Callable[[], bytes] | None
    ) -> None:
        """Write down what was found of one document; ``line`` makes the one that is kept."""
        self._seen += 1
        self._asked[judged.asked] += 1
        if judged.complaints:
            self._first[judged.complaints[0].rule] += 1
            self._any.update(complaint.rule for complaint in judged.complaints)
            reasons = [self._reason(complaint) for complaint in judged.complaints]
            self._dropped.write(_line({"id": identity, "url": url, "reasons": reasons}))
        elif line is not None:
            self._n_kept += 1
            self._kept.write(line())
        if line is not None:  # what could not be read has no values
            self._rows.append((identity, url, judged.values))
            if len(self._rows) >= AT_ONCE:
                self._flush()

    def finish(self) -> None:
        """Write what is still held."""
        self._flush()
        if self._task.sweep:
            unmeasured = {
                rule.name for rule in self._task.rules.rules if rule.column in self._incomplete
            }
            write_table(
                self._task.place("sweeps", ".parquet"), table_of(self._sweep, unmeasured=unmeasured)
            )

    def _flush(self) -> None:
        columns = {name: [row[2].get(name, ...) for row in self._rows] for name in self._columns}
        if self._values is not None:
            identities = [pa.array([row[at] for row in self._rows], pa.string()) for at in range(2)]
            self._values.write_table(
                pa.table([*identities, *map(_column, columns.values())], schema=self._schema)
            )
        if self._task.sweep:
            numbers = {
                name: np.array([nan if value in {None, ...} else value for value in found])
                for name, found in columns.items()
            }
            self._sweep += sweep(numbers, self._task.rules)
            self._incomplete.update(name for name, found in columns.items() if ... in found)
        self._rows = []

    def counts(self) -> Counts:
        """What was counted."""
        asked = Counter[str]()
        for groups, count in self._asked.items():
            asked.update({f"{ASKED}{name}": count for names in groups for name in names})
        return Counts(
            seen=self._seen,
            kept=self._n_kept,
            dropped=dict(self._first),
            failed_rules=dict(self._any),
            extra=dict(asked),
        )

    def _reason(self, complaint: Complaint) -> dict[str, Any]:
        rule = self._rules.get(complaint.rule)
        if rule is None:
            return {"rule": complaint.rule, "says": complaint.words}
        return {
            "rule": rule.name,
            "column": rule.column,
            "value": complaint.value,
            "wanted": rule.wanted,
        }


def _column(values: list[Any]) -> pa.Array:
    """Null where nothing was computed, NaN where there is no value."""
    return pa.array(
        [None if value is ... else nan if value is None else value for value in values],
        pa.float64(),
        from_pandas=False,
    )


def _line(fields: Mapping[str, Any]) -> bytes:
    return msgspec.json.encode(fields) + b"\n"


@contextlib.contextmanager
def _gzipped(path: Path) -> Iterator[BinaryIO]:
    with publish(path) as draft, gzipped(draft) as out:
        yield out


@contextlib.contextmanager
def _parquet(path: Path, schema: pa.Schema) -> Iterator[pq.ParquetWriter]:
    with (
        publish(path) as draft,
        pq.ParquetWriter(draft, schema, compression=COMPRESSION, write_statistics=False) as writer,
    ):
        yield writer
