"""Tables are checked against their schemas with Arrow; pandera describes what fails.

docs/decisions.md, 0017, says why.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from lc_assets.builds.tables import TOKENIZED, opened_table, require_columns, whole_table
from lc_assets.vocabulary import DOCUMENT_ID, SPLITS

UNSIGNED = frozenset(
    [
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
    ]
)
"""Columns of counts and positions: never negative."""
NULLABLE = frozenset(("identity", "value", "kept_alone", "kept_with_the_others"))
NOT_CHECKED = frozenset(("raw_content", "title", "reasons", "values"))
"""Columns of text and lists, which are excluded to save memory."""


def table_failures(path: Path, schema: pa.Schema, *, unique: str | None = None) -> list[str]:
    """Check a table against its schema; returns one sentence per failure.

    pandera defines the schema and describes failures. Valid tables are recognised with Arrow alone,
    because importing pandera takes half a CPU-second and a validation 16 ms; a property test checks
    that the two agree.

    Args:
        path: the table.
        schema: the declared columns.
        unique: a column whose values must not repeat.
    """
    table, found = checked_columns(path, ())
    return misfits(path.name, found, schema) or complaints_about(path.name, table, unique)


def checked_columns(path: Path, wanted: Sequence[str]) -> tuple[pa.Table, pa.Schema]:
    """The columns of a table in which a value can be wrong, and its schema.

    Raises:
        CorruptFile: when it is not Parquet or lacks a ``wanted`` column; names the file.
    """
    with opened_table(path) as file:
        found = file.schema_arrow
        require_columns(found, wanted, path)
        return whole_table(file, [field.name for field in found if _is_checked(field)]), found


def _is_checked(field: pa.Field) -> bool:
    """Not a column of measures, of which there are many, and of which nothing is known."""
    limited = field.name in UNSIGNED or field.name in {"id", "split"}
    return field.name not in NOT_CHECKED and (limited or not _may_be_null(field))


def misfits(name: str, found: pa.Schema, declared: pa.Schema) -> list[str]:
    """A sentence about a table whose columns are not those declared."""
    if found.equals(declared):
        return []
    return [f"{name}: columns are {found.names}, declared are {declared.names}"]


def complaints_about(name: str, table: pa.Table, unique: str | None) -> list[str]:
    """One sentence per failure of a table's values; none if a column has another type than any
    table declares, so that `misfits` finds it.
    """
    if not all(_has_its_type(field) for field in table.schema) or fits(table, unique):
        return []
    failures = failures_of(table, unique) or ["the table does not fit its schema"]
    return [f"{name}: {words}" for words in failures]


def _has_its_type(field: pa.Field) -> bool:
    if field.name in UNSIGNED:
        return bool(pa.types.is_integer(field.type))
    return field.name not in {"id", "split"} or bool(pa.types.is_string(field.type))


def fits(table: pa.Table, unique: str | None) -> bool:
    """Whether pandera would find no failure in a table."""
    import pyarrow.compute as pc

    for field, column in zip(table.schema, table.columns, strict=True):
        valid = column.drop_null()
        if len(valid) < len(column) and not _may_be_null(field):
            return False
        if field.name == unique and pc.count_distinct(column, mode="all").as_py() < len(column):
            return False
        if field.name in UNSIGNED:
            agrees = pc.greater_equal(valid, 0)
        elif field.name == "id":
            agrees = pc.match_substring_regex(valid, f"^(?:{DOCUMENT_ID})")
        elif field.name == "split":
            agrees = pc.is_in(valid, pa.array(SPLITS))
        else:
            continue
        if not pc.all(agrees, min_count=0).as_py():
            return False
    return True


def failures_of(table: pa.Table, unique: str | None) -> list[str]:
    """What pandera finds wrong with a table: at most five sentences."""
    import pandera.errors
    import pandera.pyarrow as pandera

    columns = {
        field.name: pandera.Column(
            field.type,
            _checks(pandera, field.name),
            nullable=_may_be_null(field),
            unique=field.name == unique,
        )
        for field in table.schema
    }
    try:
        pandera.DataFrameSchema(columns, strict=True, ordered=True).validate(table, lazy=True)
    except pandera.errors.SchemaErrors as error:
        cases = error.failure_cases.to_pylist()
        return [
            f"column {case['column']}: {case['check']} failed, for instance by "
            f"{case['failure_case']}"
            for case in cases[:5]
        ]
    return []


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
