"""`document_signals`: values and signals of every document of a partition; optional.

Values that rules test, stored so that other thresholds need no text (``NAME.values.parquet``, see
`VALUES_SUFFIX`); and RedPajama-V2's signals in its own lines (``NAME.signals.json.gz``).
"""

import contextlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import attrgetter
from typing import Any
from urllib.parse import urlsplit

import msgspec
import pyarrow as pa

from lc_assets.builds.building import run_shards
from lc_assets.builds.check_runs import by_workers
from lc_assets.builds.checks import shard_counts_match
from lc_assets.builds.recipe import Recipe
from lc_assets.builds.sharding import Sharding
from lc_assets.builds.stage import (
    SAME_SNAPSHOT,
    BuildContext,
    CheckInput,
    CheckResult,
    Stage,
    StagingFolder,
)
from lc_assets.builds.tables import count_lines, writing_table
from lc_assets.counts import Counts
from lc_assets.execution.containment import skipping
from lc_assets.formats.corpora.containers import CorpusDocument, Unread
from lc_assets.formats.lists.rule_files import rule_on
from lc_assets.formats.redpajama.signals import signals_lines
from lc_assets.lake.upstream import with_retries
from lc_assets.publishing import gzipped, publish
from lc_assets.sources.settings import source_of_key
from lc_assets.stages.documents.measuring import (
    Document,
    in_batches,
    lists_of,
    models_of,
    numbers_of,
    rules_of_key,
)
from lc_assets.stages.documents.shard_inputs import (
    SKIPPED,
    VALUES_SUFFIX,
    ShardTask,
    Skip,
    reads_of_shards,
    records_of,
    shard_tasks,
)
from lc_assets.text.rules.columns import require_computable
from lc_assets.text.rules.models import NO_MODELS
from lc_assets.text.signals.names import WordLists
from lc_assets.text.signals.signals import signals_of_each
from lc_assets.text.texts import Texts

LINES_SUFFIX = ".signals.json.gz"
BYTES = "bytes of text"
WITHOUT_STOP_WORDS = "documents without stop words of their language"
WITHOUT_BAD_WORDS = "documents without bad words of their language"

_PLAIN = re.compile(r"https?://([A-Za-z0-9.:-]+)(?:[/?#]|\Z)")
"""An address whose host needs no parser."""


def write_document_signals(context: BuildContext, staging: StagingFolder) -> Counts:
    """Write the computed values and signals of one partition.

    Raises:
        CorruptFile: when a file is missing or broken and the policy for that is ``fail``.
        BadInput: when there is no such column, or a list or model that it needs is not given.
    """
    key = staging.key
    settings, columns = context.recipe.document_signals, columns_of_key(context.recipe, key)
    tasks = shard_tasks(context, staging, columns=columns, lines=settings.lines)
    skips = context.recipe.filtered_documents.killed_documents == "skip"
    function = skipping(compute_shard) if skips else compute_shard
    return run_shards(context, staging, function, tasks, what=f"signals of {key}")


def columns_of_key(recipe: Recipe, key: str) -> tuple[str, ...]:
    """The columns that are stored of a partition's documents, sorted; none unless values are.

    Raises:
        BadInput: when there is no such column, or a list or model that it needs is not given.
    """
    if not recipe.document_signals.values:
        return ()
    rules, settings = rules_of_key(recipe, key)
    more = recipe.document_signals.columns
    columns = rules.columns | {rule_on(column, at_least=0).column for column in more}
    require_computable(columns, lists_of(settings.lists), models_of(settings.models, columns))
    return tuple(sorted(columns))


@with_retries
def compute_shard(task: ShardTask) -> Counts:
    """Compute and write the enabled values and signals of one shard."""
    n_kept, dropped, extra = 0, Counter[str](), Counter[str](shards=1)
    lists = lists_of(task.settings.lists)
    models = task.models() if task.columns else NO_MODELS
    identity = [("line", pa.int64()), ("id", pa.string()), ("url", pa.string())]
    schema = pa.schema([*identity, *((name, pa.float64()) for name in task.columns)])
    table = lines = None
    try:
        with contextlib.ExitStack() as stack:
            if task.columns:
                path = task.folder / f"{task.name}{VALUES_SUFFIX}"
                table = stack.enter_context(writing_table(path, schema))
            if task.lines:
                draft = stack.enter_context(publish(task.folder / f"{task.name}{LINES_SUFFIX}"))
                lines = stack.enter_context(gzipped(draft))
            for batch in in_batches(records_of(task, models)):
                dropped.update(it.why for _, _, it in batch if isinstance(it, Unread))
                records = [it for _, _, it in batch if not isinstance(it, Unread)]
                names = [(at, name) for at, name, it in batch if not isinstance(it, Unread)]
                n_kept += len(records)
                if table is not None:
                    values = numbers_of(records, task.columns, task.rules, lists, models)
                    for at, record, row in zip(names, records, values.tolist(), strict=True):
                        found = dict(zip(schema.names, (*at, record.url, *row), strict=True))
                        table.add(found, n_bytes=256 + 64 * len(found))
                if lines is not None:
                    numbered = zip(names, records, strict=True)
                    corpus = (_as_corpus_document(name, it) for (_, name), it in numbered)
                    lines.writelines(_signals_lines(corpus, lists, extra))
    except Skip as skip:
        return Counts(extra={"shards": 1, f"{SKIPPED}: {skip}": 1})
    return Counts.of(n_kept, dropped, extra)


def _as_corpus_document(name: str, document: Document) -> CorpusDocument:
    """A document of RedPajama-V2 as one of any corpus."""
    if isinstance(document, CorpusDocument):
        return document
    return CorpusDocument(
        id=name,
        text=document.raw_content,
        url=document.url,
        language=document.language,
        source_domain=document.source_domain,
        rest=msgspec.Raw(msgspec.json.encode(document)),
    )


def _signals_lines(
    documents: Iterable[CorpusDocument], lists: WordLists, extra: Counter[str]
) -> Iterator[bytes]:
    """Lines of signals; counts bytes, and the lists that the languages lack."""
    for language, group in groupby(documents, key=attrgetter("language")):
        some = list(group)
        domains = [it.source_domain or netloc_of(it.url) for it in some]
        texts = Texts(document.text for document in some)
        measured = signals_of_each(texts, domains, lists, language=language)
        extra[BYTES] += texts.utf8[1].item(-1)
        extra[WITHOUT_STOP_WORDS] += len(some) * (language not in lists.stop_words)
        extra[WITHOUT_BAD_WORDS] += len(some) * (language not in lists.bad_words)
        yield signals_lines(some, measured, domains, language=language)


def netloc_of(url: str) -> str:
    """The host of an address as CCNet takes it for ``source_domain``: with its port, without
    stripping anything.

    >>> netloc_of("https://www.example.org:8080/page"), netloc_of("not an address")
    ('www.example.org:8080', '')
    """
    if found := _PLAIN.match(url):  # what `urlsplit` takes ten times as long for
        return found[1]
    try:
        return urlsplit(url).netloc
    except ValueError:
        return ""


def every_document_has_its_values(check_input: CheckInput) -> CheckResult:
    """Tables of values have a line for every document that could be read."""
    paths = sorted(check_input.folder.glob(f"*{VALUES_SUFFIX}"))
    n_lines = sum(by_workers(check_input, count_lines, paths))
    n_documents = check_input.counts.kept
    stored = bool(check_input.params["columns"])
    return CheckResult(
        passed=not stored or n_lines == n_documents,
        message=f"{n_lines:,} lines of values, {n_documents:,} documents"
        if stored
        else "no values are stored",
        values={"lines": n_lines, "documents": n_documents},
    )


def _params(recipe: Recipe, key: str) -> dict[str, Any]:
    source, columns = source_of_key(recipe.sources, key), columns_of_key(recipe, key)
    rules, settings = rules_of_key(recipe, key)
    models = {*columns} | ({"language_is"} if columns and source.identifies else set())
    return {
        "columns": list(columns),
        "lines": recipe.document_signals.lines,
        "edit": msgspec.to_builtins(rules.edit),
        "lists": dict(lists_of(settings.lists).digests),
        "models": dict(models_of(settings.models, models).digests),
        "source": [source.kind, source.text_field, source.id_field, source.language],
        "policy": [settings.corrupt_documents, settings.max_line_bytes]
        + (["skip killed"] if settings.killed_documents == "skip" else []),
    }


STAGE = Stage(
    name="document_signals",
    description="Values of all documents of one snapshot, and their signals as lines; on request.",
    code_version="2",
    reads={"raw_snapshot": SAME_SNAPSHOT},
    params=_params,
    checks=(every_document_has_its_values, shard_counts_match),
    wanted=lambda recipe: recipe.document_signals.values or recipe.document_signals.lines,
    sharding=Sharding(reads=reads_of_shards, suffixes=(VALUES_SUFFIX, LINES_SUFFIX)),
    kinds=("parquet", "json"),
    write=write_document_signals,
)
"""Values and signals of every document, including dropped ones."""
