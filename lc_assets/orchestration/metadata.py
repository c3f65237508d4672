"""What an asset tells the Dagster UI about what it built: counts, place, summary, columns, a
plot.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import dagster as dg
import pyarrow as pa

from lc_assets.build.showing import (
    Markdown,
    Origins,
    Passages,
    Plot,
    Shown,
    Table,
    Value,
    bars,
    inline,
)
from lc_assets.build.stage import (
    Built,
    CheckResult,
    Stage,
)
from lc_assets.counts import Counts
from lc_assets.lake.receipts import Receipt
from lc_assets.stages.meanings import meaning
from lc_assets.stages.reports import markdown

STATE = "upstream_state"
"""Metadata of a stage that reads from outside the lake: the state that was found there."""

MOST_REASONS = 8
BAR = 10
"""Length of the longest bar of the summary, in characters."""

SHOWN_INPUTS = 4
"""Of up to 252; the receipt has all."""

AT_ONCE = 1_000
"""Dagster's UI shows Markdown of fewer characters at once, and the rest behind a click, in a window
of its own.
"""

NARROW = 44
"""Characters of a line that fits beside the names of the metadata; a wider one would push the
summary out of the page.
"""


def result_of(
    stage: Stage, built: Built, shown: Shown, *, state: str | None = None
) -> dg.MaterializeResult:
    """Make the materialization's result: its data version is the receipt's digest.

    The UI keeps the order: what is read first comes first, numbers that plot over time after it,
    what it took last.

    Args:
        stage: what was built.
        built: the published version.
        shown: its plots, tables and numbers.
        state: of what it read from outside the lake.
    """
    receipt = built.published.receipt
    metadata: dict[str, Any] = {
        "summary": dg.MetadataValue.md(summary(built, stage.counted)),
        **_outcomes(receipt.counts, stage.counted),
        **{name: metadata_value(value) for name, value in shown.values.items()},
        **({} if state is None else {STATE: state}),
        "place": dg.MetadataValue.path(built.published.home.absolute()),
        "dagster/uri": built.published.home.absolute().as_uri(),
        "dagster/row_count": receipt.counts.kept if shown.rows is None else shown.rows,
        "bytes": receipt.n_bytes,
        **{named(name): count for name, count in receipt.counts.extra.items()},
        "built": "found finished, nothing was computed" if built.reused else "computed",
    }
    if not built.reused:
        metadata |= {"audit": dg.MetadataValue.md(audited(built.findings))}
        metadata |= {
            name: dg.MetadataValue.float(value) for name, value in receipt.measured.items()
        }
    if shown.columns is not None:
        metadata["dagster/column_schema"] = table_schema(shown.columns, shown.origins or {})
    if shown.origins is not None:
        metadata["dagster/column_lineage"] = column_lineage(shown.origins)
    return dg.MaterializeResult(metadata=metadata, data_version=dg.DataVersion(receipt.digest))


def metadata_value(value: Value) -> Any:
    """A stage's value as Dagster's metadata."""
    if isinstance(value, Plot):
        return dg.MetadataValue.md(f"![{value.title}]({inline(value.png())})")
    if isinstance(value, Table):
        return table(value.lines)
    if isinstance(value, Passages):
        return passages(value.lines)
    if isinstance(value, Markdown):
        return dg.MetadataValue.md(value.text)
    if isinstance(value, Path):
        return dg.MetadataValue.path(value.absolute())
    return dg.MetadataValue.float(value) if isinstance(value, float) else value


def column_lineage(origins: Origins) -> dg.TableColumnLineage:
    """Origins of columns as Dagster shows them."""
    return dg.TableColumnLineage(
        {
            column: [
                dg.TableColumnDep(asset_key=dg.AssetKey(stage), column_name=name)
                for stage, name in found
            ]
            for column, found in origins.items()
        }
    )


def named(count: str) -> str:
    """A count's name as metadata are named.

    >>> named("personal data replaced: email")
    'personal_data_replaced_email'
    """
    return re.sub(r"\W+", "_", count)


def summary(built: Built, counted: str) -> str:
    """A sentence and a table that balance: seen, kept, dropped by reason, with a bar for the eye.

    Kept below `AT_ONCE` characters.
    """
    counts = built.counts
    lines = [
        (
            f"**{counts.seen:,} {counted} in: {counts.kept:,} kept, {counts.seen - counts.kept:,} "
            "dropped.**"
        ),
        "",
    ]
    return "\n".join([*lines, *_reasons(counts), "", _made_of(built.published.receipt)])


def _outcomes(counts: Counts, counted: str) -> dict[str, dg.MetadataValue]:
    """A bar for what was kept and one per reason, where anything was dropped."""
    if not counts.dropped:
        return {}
    reasons = dict(sorted(counts.dropped.items(), key=lambda item: -item[1]))
    return {
        "kept_and_dropped": metadata_value(
            bars(
                "Kept, and dropped by the first reason",
                {"kept": counts.kept} | reasons,
                unit=counted,
            )
        )
    }


def audited(findings: Sequence[CheckResult]) -> str:
    """What the audit before publishing found, a line per claim."""
    return "\n".join(
        f"- {'✓' if finding.passed else '✗'} {finding.check.replace('_', ' ')}: {finding.message}"
        for finding in findings
    )


def _reasons(counts: Counts) -> list[str]:
    if not counts.dropped:
        return []
    first = sorted(counts.dropped.items(), key=lambda item: -item[1])
    shown, rest = first[:MOST_REASONS], sum(count for _, count in first[MOST_REASONS:])
    most = first[0][1]
    lines = [
        f"| {name} | {count:,} | {counts.failed_rules.get(name, count):,} | "
        f"{'█' * -(-BAR * count // most)} |"
        for name, count in shown
    ]
    others = [f"| {len(first) - MOST_REASONS} others | {rest:,} | | |"] if rest else []
    return ["| dropped for | first | any | |", "|---|---:|---:|---|", *lines, *others]


def _made_of(receipt: Receipt) -> str:
    made = receipt.fingerprint
    named = [f"`{name}` {digest[:12]}" for name, digest in made.inputs.items()]
    inputs = ", ".join(named[:SHOWN_INPUTS]) + (
        f" and {len(named) - SHOWN_INPUTS:,} more" if len(named) > SHOWN_INPUTS else ""
    )
    return (
        f"Version `{made.version}`, data `{receipt.digest[:12]}`, code version "
        f"{made.code_version}, from {inputs or 'nothing'}."
    )


def table_schema(columns: pa.Schema, origins: Origins) -> dg.TableSchema:
    """Columns for the UI's table view: what each holds and where it comes from, for the open-source
    UI does not draw their lineage.
    """

    def described(name: str) -> str:
        sources = ", ".join(f"{asset}.{column}" for asset, column in origins.get(name, ()))
        return f"{meaning(name)} ← {sources}" if sources else meaning(name)

    return dg.TableSchema(
        columns=[
            dg.TableColumn(name=field.name, type=str(field.type), description=described(field.name))
            for field in columns
        ]
    )


def table(lines: Sequence[Mapping[str, Any]]) -> dg.MetadataValue:
    """A small table of plain values: beside the names where it is narrow, otherwise behind a click,
    as Markdown; long text is cut.
    """
    columns = {
        name: [name, *(markdown.shown(line.get(name)) for line in lines)]
        for line in lines[:1]
        for name in line
    }
    wide = sum(3 + max(map(len, cells)) for cells in columns.values())
    if lines and wide <= NARROW and len(lines) <= MOST_REASONS:
        return dg.MetadataValue.table(
            [
                dg.TableRecord({name: _plain(value) for name, value in line.items()})
                for line in lines
            ]
        )
    return dg.MetadataValue.md(markdown.table(lines).ljust(AT_ONCE if lines else 0))


def passages(lines: Sequence[Mapping[str, Any]]) -> dg.MetadataValue:
    """How texts begin and end, behind a click."""
    return dg.MetadataValue.md(markdown.passages(lines).ljust(AT_ONCE if lines else 0))


def _plain(value: Any) -> Any:
    return value if isinstance(value, int) else markdown.shown(value)
