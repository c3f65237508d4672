"""An asset's metadata in the Dagster UI: summary, plots, tables, columns, counts, location."""

import inspect
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import dagster as dg
import msgspec
import pyarrow as pa

from lc_assets.builds.columns import meaning, origins_of
from lc_assets.builds.recipe import Recipe
from lc_assets.builds.showing import (
    Markdown,
    Passages,
    Plot,
    Shown,
    Table,
    Value,
    as_passages,
    as_table,
    as_text,
    inline,
    plot_of,
)
from lc_assets.builds.stage import Built, Stage
from lc_assets.errors import BadInput
from lc_assets.orchestration.resources import without_notices

STATE = "upstream_state"
"""Metadata of a stage that reads from outside the lake: the state that was found there."""

MOST_REASONS = 8
BAR = 10
"""Length of the summary's longest bar, in characters."""

SHOWN_INPUTS = 4
"""Inputs listed in the UI, of up to 252; the receipt lists all."""

AT_ONCE = 1_000
"""Dagster's UI shows shorter Markdown inline, and longer Markdown behind a click in a dialog."""

NARROW = 44
"""Characters of a line that fits beside the names of the metadata; a wider one would push the
summary out of the page.
"""


def result_of(
    stage: Stage, built: Built, shown: Shown, *, state: str | None = None
) -> dg.MaterializeResult:
    """Make the materialization's result; its data version is the receipt's digest.

    The UI keeps the order: the summary, then numbers to plot over time, then costs.

    Args:
        stage: what was built.
        built: the published version.
        shown: its plots, tables and numbers.
        state: of what it read from outside the lake.
    """
    receipt, counts, home = built.published.receipt, built.counts, built.published.home.absolute()
    metadata: dict[str, Any] = {"summary": dg.MetadataValue.md(summary(built, stage.counted))}
    if counts.dropped:
        reasons = dict(sorted(counts.dropped.items(), key=lambda item: -item[1]))
        metadata["kept_and_dropped"] = metadata_value(
            plot_of(
                "bars",
                "Kept, and dropped by the first reason",
                {"kept": counts.kept} | reasons,
                unit=stage.counted,
            )
        )
    metadata |= {name: metadata_value(value) for name, value in shown.values.items()}
    if state is not None:
        metadata[STATE] = state
    metadata |= {
        "place": dg.MetadataValue.path(home),
        "dagster/uri": home.as_uri(),
        "dagster/row_count": counts.kept if shown.rows is None else shown.rows,
        "bytes": receipt.n_bytes,
        **{named(name): count for name, count in counts.extra.items()},
        "built": "found finished, nothing was computed" if built.reused else "computed",
    }
    if not built.reused:
        checks = [
            f"- {'✓' if found.passed else '✗'} {found.check.replace('_', ' ')}: {found.message}"
            for found in built.findings
        ]
        metadata["audit"] = dg.MetadataValue.md("\n".join(checks))
        metadata |= {
            name: dg.MetadataValue.float(value) for name, value in receipt.measured.items()
        }
    metadata |= columns_of(stage, shown.columns)
    return dg.MaterializeResult(metadata=metadata, data_version=dg.DataVersion(receipt.digest))


def metadata_value(value: Value) -> Any:
    """A stage's value as Dagster's metadata."""
    found: Any
    match value:
        case Plot():
            found = dg.MetadataValue.md(f"![{value.title}]({inline(value.png())})")
        case Table():
            found = table(value.lines)
        case Passages():
            found = _clicked(as_passages(value.lines), value.lines)
        case Markdown():
            found = dg.MetadataValue.md(value.text)
        case Path():
            found = dg.MetadataValue.path(value.absolute())
        case float():
            found = dg.MetadataValue.float(value)
        case _:
            return value
    return found


def named(count: str) -> str:
    """The metadata key of a count.

    >>> named("personal data replaced: email")
    'personal_data_replaced_email'
    """
    return re.sub(r"\W+", "_", count)


def summary(built: Built, counted: str) -> str:
    """A sentence and a table of the counts: seen, kept, dropped by reason, with bars.

    Shorter than `AT_ONCE` characters.
    """
    counts, made = built.counts, built.published.receipt.fingerprint
    n_dropped = counts.seen - counts.kept
    lines = [f"**{counts.seen:,} {counted} in: {counts.kept:,} kept, {n_dropped:,} dropped.**", ""]
    if counts.dropped:
        first = sorted(counts.dropped.items(), key=lambda item: -item[1])
        lines += ["| dropped for | first | any | |", "|---|---:|---:|---|"]
        lines += [
            f"| {name} | {count:,} | {counts.failed_rules.get(name, count):,} | "
            f"{'█' * -(-BAR * count // first[0][1])} |"
            for name, count in first[:MOST_REASONS]
        ]
        if rest := sum(count for _, count in first[MOST_REASONS:]):
            lines.append(f"| {len(first) - MOST_REASONS} others | {rest:,} | | |")
    names = [f"`{name}` {digest[:12]}" for name, digest in made.inputs.items()]
    more = f" and {len(names) - SHOWN_INPUTS:,} more" if len(names) > SHOWN_INPUTS else ""
    made_from = (
        f"Version `{made.version}`, data `{built.published.digest[:12]}`, code version "
        f"{made.code_version}, from {', '.join(names[:SHOWN_INPUTS]) or 'nothing'}{more}."
    )
    return "\n".join([*lines, "", made_from])


def definition_of(stage: Stage, recipe: Recipe) -> dict[str, Any]:
    """Metadata of an asset that is not built yet: its section of the recipe, as a run will use it;
    its table's columns, and where its code is.
    """
    code = inspect.unwrap(stage.write)
    file, line = inspect.getsourcefile(code) or "", code.__code__.co_firstlineno
    with without_notices():
        where = dg.LocalFileCodeReference(file_path=file, line_number=line, label=stage.name)
        references = dg.CodeReferencesMetadataValue(code_references=[where])
    settings = settings_of(stage, recipe)
    shown = {"settings": dg.MetadataValue.json(settings)} if settings else {}
    return {"dagster/code_references": references, **shown, **columns_of(stage, None)}


def settings_of(stage: Stage, recipe: Recipe) -> dict[str, Any]:
    """A stage's section of the recipe, as JSON has it; empty if it has none."""
    settings = msgspec.json.encode(getattr(recipe, stage.name, None))
    return msgspec.json.decode(settings) or {}


def config_of(stage: Stage, recipe: Recipe) -> dict[str, dg.Field] | None:
    """What the launchpad shows of a stage's settings: each with its value in the recipe; None if
    there are none.
    """
    said = "The recipe's value. A run with another one fails: change the recipe instead."
    fields = {
        name: dg.Field(dg.Any, default_value=value, description=said)
        for name, value in settings_of(stage, recipe).items()
    }
    return fields or None


def refuse_other_settings(stage: Stage, recipe: Recipe, config: Mapping[str, Any] | None) -> None:
    """Compare a run's configuration with the recipe, from which the planner knows what is out of
    date.

    Raises:
        BadInput: at the first setting that is not the recipe's.
    """
    settings = settings_of(stage, recipe)
    for name, value in (config or {}).items():
        if value != settings[name]:
            raise BadInput(
                f"{stage.name}.{name} is {value!r} in this run's configuration, {settings[name]!r} "
                "in the recipe: change the recipe, reload the code location and launch again"
            )


def columns_of(stage: Stage, shown: pa.Schema | None) -> dict[str, Any]:
    """Descriptions and lineage of the columns of a stage's table, or of those that are shown of it.
    Descriptions name the origins too, because the open-source UI does not draw column lineage.
    """
    columns, origins = shown or stage.columns, origins_of(stage.name)
    if columns is None:
        return {}
    found: dict[str, Any] = {}
    described = [
        dg.TableColumn(
            name=field.name,
            type=str(field.type),
            description=meaning(field.name)
            + (f" ← {', '.join(origins[field.name].split())}" if field.name in origins else ""),
        )
        for field in columns
    ]
    found["dagster/column_schema"] = dg.TableSchema(columns=described)
    if origins:
        lineage = {
            name: [
                dg.TableColumnDep(asset_key=dg.AssetKey(stage), column_name=column)
                for stage, _, column in (origin.partition(".") for origin in names.split())
            ]
            for name, names in origins.items()
        }
        found["dagster/column_lineage"] = dg.TableColumnLineage(lineage)
    return found


def table(lines: Sequence[Mapping[str, Any]]) -> dg.MetadataValue:
    """A small table of plain values: inline if it is narrow, otherwise as Markdown behind a click;
    long text is shortened.
    """
    columns = {
        name: [name, *(as_text(line.get(name)) for line in lines)]
        for line in lines[:1]
        for name in line
    }
    wide = sum(3 + max(map(len, cells)) for cells in columns.values())
    if not lines or wide > NARROW or len(lines) > MOST_REASONS:
        return _clicked(as_table(lines), lines)
    records = [
        {name: value if isinstance(value, int) else as_text(value) for name, value in line.items()}
        for line in lines
    ]
    return dg.MetadataValue.table([dg.TableRecord(record) for record in records])


def _clicked(text: str, lines: Sequence[object]) -> dg.MetadataValue:
    """Markdown behind a click, unless there are no lines."""
    return dg.MetadataValue.md(text.ljust(AT_ONCE if lines else 0))
