"""What must hold of every table, as pandera schemas over pyarrow.

pandera is imported when a schema is first asked for: it takes a second, which a reader of tables
need not pay.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from lc_assets.build.tables import TOKENIZED, count_lines, read_schema, read_table
from lc_assets.vocabulary import DOCUMENT_ID, SPLITS

UNSIGNED = {
    "n_tokens",
    "n_chars",
    "n_bytes",
    "document",
    "row",
    "stretch",
    "shift",
    "kept_alone",
    "kept_with_the_others",
    "offset",
    "length",
}
"""Columns that count something, so that none may be negative."""
NULLABLE = {"identity", "value", "kept_alone", "kept_with_the_others"}
NOT_CHECKED = {"raw_content", "title", "reasons", "values"}
"""Text, and lists: not materialised for a check."""
LINES_AT_ONCE = 1 << 17
"""Lines that are judged together: pandera takes some 16 ms for a table, however small, and a shard
keeps few documents.
"""


def complaints_about(
    paths: Sequence[Path], schema: pa.Schema, *, unique: str | None = None
) -> list[str]:
    """Hold tables against their schema; one sentence per failure, none when all is well.

    Args:
        paths: the tables, one per shard; some are judged at once, `LINES_AT_ONCE` or a shard, so
            memory is bounded.
        schema: the promised columns.
        unique: a column whose values must not repeat within a table, nor within the tables that are
            judged at once.
    """
    wanted = [field.name for field in schema if field.name not in NOT_CHECKED]
    judge = _pandera(pa.schema([schema.field(name) for name in wanted]), unique)
    columns = {path: words for path in paths if (words := _wrong_columns(path, schema))}
    fitting = _batches([path for path in paths if path not in columns])
    return [f"{path.name}: {words}" for path, words in columns.items()] + [
        words for batch in fitting for words in _failures_of(batch, judge, wanted)
    ]


def _batches(paths: Sequence[Path]) -> Iterator[list[Path]]:
    batch: list[Path] = []
    n_lines = 0
    for path in paths:
        batch.append(path)
        n_lines += count_lines(path)
        if n_lines >= LINES_AT_ONCE:
            yield batch
            batch, n_lines = [], 0
    if batch:
        yield batch


def _failures_of(batch: Sequence[Path], judge: Any, columns: Sequence[str]) -> list[str]:
    """Failures of some tables as if they were one, each with its table's name; a table is judged
    alone only when there are any.
    """
    together = _failures(judge, pa.concat_tables([read_table(path, columns) for path in batch]))
    if not together:
        return []
    alone = [
        f"{path.name}: {words}"
        for path in batch
        for words in _failures(judge, read_table(path, columns))
    ]
    return alone or [f"{batch[0].name} to {batch[-1].name}: {words}" for words in together]


def _wrong_columns(path: Path, schema: pa.Schema) -> str:
    found = read_schema(path)
    return "" if found.equals(schema) else f"columns are {found.names}, promised are {schema.names}"


def _pandera(schema: pa.Schema, unique: str | None) -> Any:
    import pandera.pyarrow as pandera  # noqa: PLC0415 - see the module's docstring

    columns = {
        field.name: pandera.Column(
            field.type,
            _checks(pandera, field.name),
            nullable=_may_be_null(field),
            unique=field.name == unique,
        )
        for field in schema
    }
    return pandera.DataFrameSchema(columns, strict=True, ordered=True)


def _checks(pandera: Any, name: str) -> list[Any]:
    if name in UNSIGNED:
        return [pandera.Check.ge(0)]
    if name == "id":
        return [pandera.Check.str_matches(DOCUMENT_ID)]
    return [pandera.Check.isin(SPLITS)] if name == "split" else []


def _may_be_null(field: pa.Field) -> bool:
    return (
        field.name in NULLABLE
        or (field.name not in TOKENIZED.names and field.type == pa.float64())
        or field.name == "n_bytes"
    )


def _failures(judge: Any, table: pa.Table) -> list[str]:
    import pandera.errors  # noqa: PLC0415 - see the module's docstring

    try:
        judge.validate(table, lazy=True)
    except pandera.errors.SchemaErrors as error:
        cases = error.failure_cases.to_pylist()
        return [
            f"column {case['column']}: {case['check']} failed, for instance by "
            f"{case['failure_case']}"
            for case in cases[:5]
        ]
    return []
