"""Tables are checked against their schemas with Arrow; pandera describes what fails.

docs/decisions/0017 says why.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from lc_assets.build.tables import TOKENIZED, opened_table, whole_table
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
LINES_AT_ONCE = 1 << 17
"""Number of lines checked at once; shards keep few documents."""


def table_failures(
    paths: Iterable[Path], schema: pa.Schema, *, unique: str | None = None
) -> list[str]:
    """Check tables against their schema; returns one sentence per failure.

    pandera defines the schema and describes failures. Valid tables are recognised with Arrow alone,
    because importing pandera takes half a CPU-second and a validation 16 ms; a property test checks
    that the two agree.

    Args:
        paths: the tables, one per shard; read in batches of at least `LINES_AT_ONCE` lines.
        schema: the declared columns.
        unique: a column whose values must not repeat within a batch.
    """
    checked = [field.name for field in schema if field.name not in NOT_CHECKED]
    messages, batch, n_lines = list[str](), dict[Path, pa.Table](), 0
    for path in paths:
        with opened_table(path) as file:
            if not file.schema_arrow.equals(schema):
                found = file.schema_arrow.names
                messages.append(f"{path.name}: columns are {found}, declared are {schema.names}")
                continue
            batch[path] = whole_table(file, checked)
        n_lines += batch[path].num_rows
        if n_lines >= LINES_AT_ONCE:
            messages += _failures_by_table(batch, unique)
            batch, n_lines = {}, 0
    return messages + _failures_by_table(batch, unique)


def _failures_by_table(batch: Mapping[Path, pa.Table], unique: str | None) -> list[str]:
    if not batch or fits(together := pa.concat_tables(batch.values()), unique):
        return []
    alone = [
        f"{path.name}: {words}"
        for path, table in batch.items()
        for words in failures_of(table, unique)
    ]
    failures = failures_of(together, unique) or ["the tables do not fit their schema"]
    first, *_, last = [*batch, *batch]
    return alone or [f"{first.name} to {last.name}: {words}" for words in failures]


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
