"""What every materialization must tell, whatever its asset: asserted wherever assets are
materialized.
"""

import re

import dagster as dg
import pytest

from lc_assets.build.showing import Plot
from lc_assets.lake.versions import Published
from lc_assets.orchestration.metadata import AT_ONCE, NARROW, named
from lc_assets.stages.meanings import JUDGED

MOST_BYTES = 80_000
"""Of a plot as the event log keeps it: there is one per materialization and plot, for ever."""

PLOT = "data:image/png;base64,"


def leave_plots_out(patched: pytest.MonkeyPatch) -> None:
    """Draw no plots in the runs of a test that does not look at them: they take a third of a
    materialization's time.
    """
    patched.setattr(Plot, "png", lambda _plot: b"")


def assert_told(told: dg.AssetMaterialization, published: Published) -> None:
    """A balance in words first and whole, a plot, counts as numbers, where it lies; and nothing
    that pushes the rest out of the page.
    """
    metadata, counts = told.metadata, published.receipt.counts
    assert next(iter(metadata)) == "summary"
    summary = metadata["summary"].value
    assert re.match(
        rf"\*\*{counts.seen:,} [a-z]+ in: {counts.kept:,} kept, {counts.seen - counts.kept:,} dropped\.\*\*",
        summary,
    ), summary
    assert len(summary) < AT_ONCE
    plots = [
        value.value
        for value in metadata.values()
        if isinstance(value, dg.MarkdownMetadataValue) and PLOT in value.value
    ]
    assert plots or (told.asset_key.path == ["removed_documents"] and not counts.dropped)
    assert ("kept_and_dropped" in metadata) is bool(counts.dropped)
    assert all(len(picture) < MOST_BYTES for plot in plots for picture in plot.split(PLOT)[1:])
    assert {name: metadata[named(name)].value for name in counts.extra} == counts.extra
    assert metadata["dagster/uri"].value == published.home.absolute().as_uri()
    assert metadata["place"].value == str(published.home.absolute())
    for value in metadata.values():
        if isinstance(value, dg.TableMetadataValue):
            lines = [record.data for record in value.records]
            assert sum(max(len(str(line[name])) for line in lines) for name in lines[0]) < NARROW
    assert told.tags["dagster/data_version"] == published.digest


def assert_columns_told(told: dict[str, dg.AssetMaterialization], *, judged: set[str]) -> None:
    """Each column says what it holds, and comes from columns that exist.

    Args:
        told: by asset.
        judged: assets whose tables have columns of rules.
    """
    columns = {
        asset: {
            column.name: column.description
            for column in found.metadata["dagster/column_schema"].value.columns
        }
        for asset, found in told.items()
        if "dagster/column_schema" in found.metadata
    }
    for asset, found in columns.items():
        assert asset in judged or JUDGED not in found.values(), (asset, found)
        lineage = told[asset].metadata.get("dagster/column_lineage")
        assert (lineage is None) is (asset == "raw_snapshot"), asset
        for column, origins in lineage.value.deps_by_column.items() if lineage else ():
            assert column in found, (asset, column)
            for origin in origins:
                upstream = origin.asset_key.to_user_string()
                assert f"{upstream}.{origin.column_name}" in found[column]
                assert upstream not in columns or origin.column_name in columns[upstream], (
                    asset,
                    column,
                    origin,
                )
