"""What an asset tells the Dagster UI about what it built: counts, place, summary, columns, a plot."""

from collections.abc import Mapping, Sequence
from typing import Any

import dagster as dg
import pyarrow as pa

from lc_assets.assets.columns import Origins, lineage
from lc_assets.stages.building import Built, Finding
from lc_assets.stages.tables import meaning
from lc_assets.storage.lake import Receipt
from lc_assets.tally import Tally

MOST_REASONS = 8
BAR = 16
"""Length of the longest bar of the summary, in characters."""


SHOWN_INPUTS = 4
"""Of up to 252; the receipt has all."""


def report(
    built: Built, *, rows: int | None = None, columns: pa.Schema | None = None, origins: Origins | None = None, **more: Any
) -> dg.MaterializeResult:
    """Make the materialization's result: its data version is the receipt's digest.

    Args:
        built: what stands published.
        rows: the number to plot over time; by default what was kept.
        columns: of the published table, when it is one.
        origins: where these come from.
        more: further metadata, such as plots.
    """
    receipt = built.published.receipt
    metadata: dict[str, Any] = {
        "summary": dg.MetadataValue.md(summary(built)),
        "dagster/row_count": receipt.tally.kept if rows is None else rows,
        "dagster/uri": built.published.home.absolute().as_uri(),
        "place": dg.MetadataValue.path(built.published.home.absolute()),
        "bytes": receipt.n_bytes,
        "built": "found finished, nothing was computed" if built.reused else "computed",
        **{name.replace(" ", "_"): count for name, count in receipt.tally.also.items()},
        **more,
    }
    if not built.reused:
        metadata |= {"audit": dg.MetadataValue.md(audited(built.findings))}
        metadata |= {name: dg.MetadataValue.float(value) for name, value in receipt.measured.items()}
    if columns is not None:
        metadata["dagster/column_schema"] = table_schema(columns)
    if origins is not None:
        metadata["dagster/column_lineage"] = lineage(origins)
    return dg.MaterializeResult(metadata=metadata, data_version=dg.DataVersion(receipt.digest))


def summary(built: Built) -> str:
    """A sentence and a table that balance: seen, kept, dropped by reason, with a bar for the eye.

    Dagster's UI shows Markdown of less than 1,000 characters at once and the rest behind a click, so it is kept short.
    """
    tally = built.tally
    lines = [f"**{tally.seen:,} in, {tally.kept:,} kept, {tally.seen - tally.kept:,} dropped.**", ""]
    return "\n".join([*lines, *_reasons(tally), "", _made_of(built.published.receipt)])


def audited(findings: Sequence[Finding]) -> str:
    """What the audit before publishing found, a line per claim."""
    return "\n".join(f"- {'✓' if finding.passed else '✗'} {finding.claim.replace('_', ' ')}: {finding.words}" for finding in findings)


def _reasons(tally: Tally) -> list[str]:
    if not tally.dropped:
        return []
    first = sorted(tally.dropped.items(), key=lambda item: -item[1])
    shown, rest = first[:MOST_REASONS], sum(count for _, count in first[MOST_REASONS:])
    most = first[0][1]
    lines = [f"| {name} | {count:,} | {tally.complaints.get(name, count):,} | {'█' * -(-BAR * count // most)} |" for name, count in shown]
    others = [f"| {len(first) - MOST_REASONS} others | {rest:,} | | |"] if rest else []
    return ["| dropped for | first | any | |", "|---|---:|---:|---|", *lines, *others]


def _made_of(receipt: Receipt) -> str:
    made = receipt.fingerprint
    named = [f"`{name}` {digest[:12]}" for name, digest in made.inputs.items()]
    inputs = ", ".join(named[:SHOWN_INPUTS]) + (f" and {len(named) - SHOWN_INPUTS:,} more" if len(named) > SHOWN_INPUTS else "")
    return f"Version `{made.version}`, data `{receipt.digest[:12]}`, code version {made.code_version}, from {inputs or 'nothing'}."


def table_schema(columns: pa.Schema) -> dg.TableSchema:
    """Columns for the UI's table view."""
    return dg.TableSchema(
        columns=[dg.TableColumn(name=field.name, type=str(field.type), description=meaning(field.name)) for field in columns]
    )


def table(lines: Sequence[Mapping[str, Any]]) -> dg.MetadataValue:
    """A small table of plain values; long text is cut."""
    records = [dg.TableRecord({name: _short(value) for name, value in line.items()}) for line in lines]
    return dg.MetadataValue.table(records, schema=None if records else dg.TableSchema(columns=[]))


def _short(value: Any) -> Any:
    return f"{value[:200]}…" if isinstance(value, str) and len(value) > 200 else value
