"""What an asset tells the Dagster UI about what it built: counts, place, summary, columns, a plot."""

from collections.abc import Mapping, Sequence
from typing import Any

import dagster as dg
import pyarrow as pa

from lc_assets.stages.building import Built
from lc_assets.stages.tables import meaning
from lc_assets.storage.lake import Receipt

MOST_REASONS = 25


def report(built: Built, *, rows: int | None = None, columns: pa.Schema | None = None, **more: Any) -> dg.MaterializeResult:
    """Make the materialization's result: its data version is the receipt's digest.

    Args:
        built: what stands published.
        rows: the number to plot over time; by default what was kept.
        columns: of the published table, when it is one.
        more: further metadata, such as plots.
    """
    receipt = built.published.receipt
    metadata: dict[str, Any] = {
        "summary": dg.MetadataValue.md(summary(built)),
        "dagster/row_count": receipt.tally.kept if rows is None else rows,
        "dagster/uri": built.published.folder.absolute().as_uri(),
        "place": dg.MetadataValue.path(built.published.folder.absolute()),
        "bytes": receipt.n_bytes,
        "built": "found finished, nothing was computed" if built.reused else "computed",
        **{name.replace(" ", "_"): count for name, count in receipt.tally.also.items()},
        **more,
    }
    if not built.reused:
        metadata |= {name: dg.MetadataValue.float(value) for name, value in receipt.measured.items()}
    if columns is not None:
        metadata["dagster/column_schema"] = table_schema(columns)
    return dg.MaterializeResult(metadata=metadata, data_version=dg.DataVersion(receipt.digest))


def summary(built: Built) -> str:
    """A paragraph and a table that balance: seen, kept, dropped by reason."""
    receipt = built.published.receipt
    tally = receipt.tally
    lines = [f"**{tally.seen:,} in, {tally.kept:,} kept, {tally.seen - tally.kept:,} dropped.**", ""]
    if tally.dropped:
        lines += _table(
            ("reason", "first reason of", "found in"), [(reason, n, tally.complaints.get(reason, n)) for reason, n in _most(tally.dropped)]
        )
    lines += ["", *(f"- {'✓' if finding.passed else '✗'} {finding.claim.replace('_', ' ')}: {finding.words}" for finding in built.findings)]
    return "\n".join([*lines, "", _made_of(receipt)])


def _most(dropped: Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(dropped.items(), key=lambda item: -item[1])[:MOST_REASONS]


def _table(head: Sequence[str], lines: Sequence[tuple[str, int, int]]) -> list[str]:
    return [f"| {' | '.join(head)} |", "|---|---:|---:|", *(f"| {name} | {first:,} | {every:,} |" for name, first, every in lines)]


def _made_of(receipt: Receipt) -> str:
    inputs = ", ".join(f"`{name}` {digest[:12]}" for name, digest in receipt.fingerprint.inputs.items())
    made = receipt.fingerprint
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
