"""What must hold of every table, as pandera schemas over pyarrow.

pandera is imported when a schema is first asked for: it takes a second, which a reader of tables need not pay.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from lc_assets.stages.tables import TOKENIZED, read_schema, read_table
from lc_assets.vocabulary import SPLITS

UNSIGNED = {"n_tokens", "n_chars", "n_bytes", "document", "row", "shift"}
"""Columns that count something, so that none may be negative."""
NULLABLE = {"identity", "value"}
NOT_CHECKED = {"raw_content", "title", "reasons", "values"}
"""Text, and lists: not materialised for a check."""
DOCUMENT_ID = r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}/\d{4}/[a-z]{2}_[a-z]+\.json\.gz/\d+"


def complaints_about(paths: Sequence[Path], schema: pa.Schema, *, unique: str | None = None) -> list[str]:
    """Hold tables against their schema; one sentence per failure, none when all is well.

    Args:
        paths: the tables, one per shard; each is read and judged by itself, so memory is bounded by a shard.
        schema: the promised columns.
        unique: a column whose values must not repeat within a table.
    """
    wanted = [field.name for field in schema if field.name not in NOT_CHECKED]
    judge = _pandera(pa.schema([schema.field(name) for name in wanted]), unique)
    return [
        f"{path.name}: {words}" for path in paths for words in (_wrong_columns(path, schema) or _failures(judge, read_table(path, wanted)))
    ]


def _wrong_columns(path: Path, schema: pa.Schema) -> list[str]:
    found = read_schema(path)
    return [] if found.equals(schema) else [f"columns are {found.names}, promised are {schema.names}"]


def _pandera(schema: pa.Schema, unique: str | None) -> Any:
    import pandera.pyarrow as pandera  # noqa: PLC0415 - see the module's docstring

    columns = {
        field.name: pandera.Column(field.type, _checks(pandera, field.name), nullable=_may_be_null(field), unique=field.name == unique)
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
    return field.name in NULLABLE or (field.name not in TOKENIZED.names and field.type == pa.float64()) or field.name == "n_bytes"


def _failures(judge: Any, table: pa.Table) -> list[str]:
    import pandera.errors  # noqa: PLC0415 - see the module's docstring

    try:
        judge.validate(table, lazy=True)
    except pandera.errors.SchemaErrors as error:
        cases = error.failure_cases.to_pylist()
        return [f"column {case['column']}: {case['check']} failed, for instance by {case['failure_case']}" for case in cases[:5]]
    return []
