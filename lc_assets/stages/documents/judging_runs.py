"""Judging a whole corpus: a task per file, and the summary, which must balance.

Here: which files, which order of rules, adding up, ``OUT/summary.json``. Not here: judging one file
    (`judging`), printing.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from lc_assets.build.settings.common import NO_MODEL_SETTINGS, ModelSettings
from lc_assets.build.settings.documents import NO_LIST_SETTINGS, ListSettings
from lc_assets.counts import Counts
from lc_assets.errors import BadInput
from lc_assets.execution.executor import Executor
from lc_assets.formats.corpora.reading import corpus_files
from lc_assets.publishing import publish_bytes
from lc_assets.stages.corpus_runs import over_corpus
from lc_assets.stages.documents.judges import in_order_of_cost
from lc_assets.stages.documents.judging import ASKED, JudgeTask, judge_file
from lc_assets.stages.documents.measuring import lists_of, models_of
from lc_assets.stages.documents.stored_values import is_stored, require_stored
from lc_assets.stages.documents.sweeping import total_sweep
from lc_assets.text.rules.columns import require_computable
from lc_assets.text.rules.models import NO_MODELS
from lc_assets.text.rules.rules import RuleSet

SUMMARY_FILE: Final = "summary.json"


class RuleCount(msgspec.Struct, frozen=True, kw_only=True):
    """What one rule did.

    Attributes:
        rule: its name, or a reason that is no rule.
        column: what it judged; empty for what is no rule.
        wanted: its bounds in words.
        asked: documents that it was asked of.
        first: documents that it was the first to speak against: these add up to all that were
            dropped.
        any: documents that it spoke against.
    """

    rule: str
    column: str
    wanted: str
    asked: int
    first: int
    any: int


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """What a run found; ``seen`` is ``kept`` and every ``first`` together.

    Attributes:
        rules: name of the set.
        edit: how lines were edited first; None: not at all.
        stored: whether stored values were judged, and no text was read.
        all_signals: whether every rule was asked of every document.
        seen: documents met.
        kept: documents that nothing speaks against.
        by_rule: the rules in the order in which they were asked, then other reasons.
        lists: digests of the lists that signals were computed by.
        models: digests of the models that columns were computed by.
        sweep: lines of the summed-up sweep, when one was asked for.
    """

    rules: str
    edit: Any
    stored: bool
    all_signals: bool
    seen: int
    kept: int
    by_rule: tuple[RuleCount, ...]
    lists: Mapping[str, str] = {}
    models: Mapping[str, str] = {}
    sweep: tuple[Mapping[str, Any], ...] = ()

    @property
    def dropped(self) -> int:
        """Documents that something speaks against."""
        return self.seen - self.kept


def judge_corpus(
    sources: Sequence[Path],
    out: Path,
    rules: RuleSet,
    *,
    executor: Executor,
    text_field: str | None = None,
    language: str = "",
    all_signals: bool = False,
    sweep: bool = False,
    lists: ListSettings = NO_LIST_SETTINGS,
    models: ModelSettings = NO_MODEL_SETTINGS,
) -> Summary:
    """Judge every file of a corpus, or of stored values, and write the results below ``out``; see
    `judging`.

    Args:
        sources: files and folders: of texts, or of stored values, not of both.
        out: folder of the results.
        rules: to judge by.
        executor: runs a task per file.
        text_field: where a record's text is.
        language: of documents that do not say theirs.
        all_signals: ask every rule of every document; a sweep wants that, so ``sweep`` includes it.
        sweep: count what each threshold would keep.
        lists: where the lists are that some signals need.
        models: where the models are that some columns need; only what the rules need is opened.

    Raises:
        BadInput: when the sources cannot be judged by these rules, or texts and stored values are
            mixed.
    """
    ordered = in_order_of_cost(rules)
    stored = _require_one_kind(sources, ordered)
    opened = NO_MODELS if stored else models_of(models, ordered.columns)
    if not stored:
        require_computable(ordered.columns, lists_of(lists), opened)
    tasks: list[JudgeTask] = []

    def task_of(file: Path, stem: Path) -> JudgeTask:
        task = JudgeTask(
            file=file,
            out=out,
            stem=stem.relative_to(out).as_posix(),
            rules=ordered,
            text_field=text_field,
            language=language,
            all_signals=all_signals or sweep,
            sweep=sweep,
            lists=lists,
            models=models,
        )
        tasks.append(task)
        return task

    counts = over_corpus(
        sources, out, task_of, judge_file, executor=executor, what=f"judge by {rules.name}"
    )
    swept = (
        total_sweep(task.place("sweeps", ".parquet") for task in tasks).to_pylist() if sweep else ()
    )
    summary = _summary(
        ordered, counts, stored=stored, all_signals=all_signals or sweep, swept=swept
    )
    summary = msgspec.structs.replace(summary, lists=lists_of(lists).digests, models=opened.digests)
    publish_bytes(
        out / SUMMARY_FILE, msgspec.json.format(msgspec.json.encode(summary), indent=1) + b"\n"
    )
    return summary


def _require_one_kind(sources: Sequence[Path], rules: RuleSet) -> bool:
    """Whether all files hold stored values, which must be those that the rules judge; none may
    where others do not.
    """
    files = corpus_files(sources)
    stored = [file for file in files if is_stored(file)]
    if stored and len(stored) != len(files):
        other = next(file for file in files if file not in stored)
        raise BadInput(f"{stored[0]} holds stored values and {other} texts; judge them apart")
    for file in stored:
        require_stored(file, rules)
    return bool(stored)


def _summary(
    rules: RuleSet,
    counts: Counts,
    *,
    stored: bool,
    all_signals: bool,
    swept: Sequence[Mapping[str, Any]],
) -> Summary:
    asked = {
        name.removeprefix(ASKED): count
        for name, count in counts.extra.items()
        if name.startswith(ASKED)
    }
    known = {rule.name: (rule.column, rule.wanted) for rule in rules.rules}
    names = [*known, *(name for name in counts.dropped if name not in known)]
    by_rule = tuple(
        RuleCount(
            rule=name,
            column=known.get(name, ("", ""))[0],
            wanted=known.get(name, ("", ""))[1],
            asked=asked.get(name, 0 if name in known else counts.seen),
            first=counts.dropped.get(name, 0),
            any=counts.failed_rules.get(name, 0),
        )
        for name in names
    )
    return Summary(
        rules=rules.name,
        edit=msgspec.to_builtins(rules.edit),
        stored=stored,
        all_signals=all_signals,
        seen=counts.seen,
        kept=counts.kept,
        by_rule=by_rule,
        sweep=tuple(swept),
    )
