"""Assertions about the metadata that every materialization must carry, whatever its asset."""

import re

import dagster as dg
import pytest

from lc_assets.builds.columns import UNKNOWN
from lc_assets.builds.showing import Plot
from lc_assets.lake.versions import Published
from lc_assets.orchestration.metadata import AT_ONCE, NARROW, named

MOST_BYTES = 80_000
"""Limit of a plot in the event log, which keeps one per materialization and plot for ever."""

PLOT = "data:image/png;base64,"


def skip_plots(patched: pytest.MonkeyPatch) -> None:
    """Draw no plots in a test that does not check them: a third of a materialization's time."""
    patched.setattr(Plot, "png", lambda _plot: b"")


def assert_metadata(materialized: dg.AssetMaterialization, published: Published) -> None:
    """Assert that a summary comes first and complete, then a plot, counts as numbers and the path,
    and that no value is wide enough to hide the others.
    """
    metadata, counts = materialized.metadata, published.receipt.counts
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
    assert plots or (materialized.asset_key.path == ["removed_documents"] and not counts.dropped)
    assert ("kept_and_dropped" in metadata) is bool(counts.dropped)
    assert all(len(picture) < MOST_BYTES for plot in plots for picture in plot.split(PLOT)[1:])
    assert {name: metadata[named(name)].value for name in counts.extra} == counts.extra
    assert metadata["dagster/uri"].value == published.home.absolute().as_uri()
    assert metadata["place"].value == str(published.home.absolute())
    for value in metadata.values():
        if isinstance(value, dg.TableMetadataValue):
            lines = [record.data for record in value.records]
            assert sum(max(len(str(line[name])) for line in lines) for name in lines[0]) < NARROW
    assert materialized.tags["dagster/data_version"] == published.digest


def assert_columns_described(
    materialized: dict[str, dg.AssetMaterialization], *, judged: set[str]
) -> None:
    """Assert that each column has a description, and a lineage of columns that exist.

    Args:
        materialized: materializations by asset.
        judged: assets whose tables have columns of rules.
    """
    columns = {
        asset: {
            column.name: column.description
            for column in found.metadata["dagster/column_schema"].value.columns
        }
        for asset, found in materialized.items()
        if "dagster/column_schema" in found.metadata
    }
    for asset, found in columns.items():
        assert asset in judged or UNKNOWN not in found.values(), (asset, found)
        lineage = materialized[asset].metadata.get("dagster/column_lineage")
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
