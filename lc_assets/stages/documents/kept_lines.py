"""The lines of the table of kept documents, and its columns."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import groupby
from math import isfinite, nan
from operator import itemgetter
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from lc_assets.builds.checks import DOCUMENTS_SUFFIX, SPANS_SUFFIX
from lc_assets.builds.columns import PERPLEXITY, PLACES
from lc_assets.builds.tables import FILTERED, read_table
from lc_assets.errors import BadInput
from lc_assets.formats.corpora.containers import CorpusDocument, as_float, release_text
from lc_assets.stages.documents.dropping import Part
from lc_assets.stages.documents.measuring import Document, described
from lc_assets.stages.documents.shard_inputs import ShardTask
from lc_assets.text.rules.rules import RuleSet

SPANS_FIELD = "spans"
"""Of a record: which parts of its text are of which document."""


def kept_columns(
    task: ShardTask, part: Part, documents: Sequence[tuple[int, Document]]
) -> tuple[dict[str, list[Any]], list[int]]:
    """The columns of some documents, given with their lines, and the characters of each text.

    Texts beyond ASCII are in UTF-8, in which they take less memory; those of the documents are
    released. Columns that are measured late are not among them.
    """
    rows = [part.row_of[line] for line, _ in documents]
    found = [document for _, document in documents]
    fields = [_fields_of(task, document) for document in found if task.fields]
    kept: dict[str, list[Any]] = {
        "id": [part.id_of(line) for line, _ in documents],
        "url": [document.url for document in found],
        **described(found, task.files.shard.language, task.files.shard.bucket, task.rules),
        **{name: [its[name] for its in fields] for name in task.fields},
        **{name: column[rows].tolist() for name, column in part.table.columns.items()},
    }
    for document in found:
        release_text(document)
    if task.perplexity:
        kept.setdefault(PERPLEXITY, nan_for_none(document.perplexity for document in found))
    return kept, in_utf8(kept["raw_content"])


def nan_for_none(values: Iterable[float | None]) -> list[float]:
    """Values of a column of float64."""
    return [nan if value is None else value for value in values]


def in_utf8(texts: list[Any]) -> list[int]:
    """The characters of each text; those beyond ASCII are replaced by their UTF-8."""
    n_chars = list(map(len, texts))
    for at, text in enumerate(texts):
        if not text.isascii():
            texts[at] = text.encode()
        del text
    return n_chars


def schema_of(
    rules: RuleSet, *, perplexity: bool = False, fields: tuple[str, ...] = ()
) -> pa.Schema:
    """Columns of `filtered_documents`: `FILTERED`, and a float64 column per tested value; also the
    record's ``perplexity``, where documents are preferred by it and no rule tests it, of files the
    ``fields`` that packing reads, as text, and `PLACES` where rules edit lines.
    """
    values = sorted(rules.columns | ({PERPLEXITY} if perplexity else set()))
    read = [(name, pa.string()) for name in fields if name not in values]
    edited = [] if rules.edit is None else [PLACES]
    return pa.schema([*FILTERED, *((name, pa.float64()) for name in values), *read, *edited])


def _fields_of(task: ShardTask, record: Document) -> dict[str, str]:
    """The fields of a record that packing reads, as text; empty where it has none.

    Raises:
        BadInput: when documents are ordered by a field that holds no number.
    """
    known: dict[str, Any] = (
        msgspec.json.decode(record.rest) if isinstance(record, CorpusDocument) else {}
    )
    if SPANS_FIELD in task.fields and isinstance(record, CorpusDocument):
        known.setdefault(SPANS_FIELD, _spans_beside(task).get(record.own_id))
    order = as_float(known.get(task.order_by))
    if task.order_by in task.fields and (order is None or not isfinite(order)):
        name = record.id if isinstance(record, CorpusDocument) else record.url
        raise BadInput(
            f"{task}: document {name}: field {task.order_by!r} holds no number; "
            "packed_rows.order_by needs one in every record; fields: "
            f"{', '.join(sorted(known)) or 'none'}"
        )
    found = {name: "" if known.get(name) is None else known[name] for name in task.fields}
    return {
        name: value if isinstance(value, str) else msgspec.json.encode(value).decode()
        for name, value in found.items()
    }


def _spans_beside(task: ShardTask) -> dict[str, list[dict[str, Any]]]:
    """Spans by document id, where the file is a table of LongPack documents; see `SPANS_FIELD`."""
    file = task.files.parts.get("documents")
    if task.source is None or file is None:
        return {}
    path = task.source.upstream.local_path(file.path)
    return {} if path is None else _spans_of(path)


@lru_cache(maxsize=1)
def _spans_of(documents: Path) -> dict[str, list[dict[str, Any]]]:
    spans = documents.with_name(documents.name.replace(DOCUMENTS_SUFFIX, SPANS_SUFFIX))
    if spans == documents or not spans.is_file():
        return {}
    lines = read_table(spans, ["id", "child_id", "start", "stop"]).to_pylist()
    return {name: list(own) for name, own in groupby(lines, key=itemgetter("id"))}
