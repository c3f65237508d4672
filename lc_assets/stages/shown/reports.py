"""What the UI shows of assets of reports: how long the documents of a snapshot's sets are, and how
densely they refer to what they said before.
"""

from collections.abc import Sequence
from typing import Any

from lc_assets.build import showing
from lc_assets.build.showing import Plot, Shown, Table
from lc_assets.build.stage import (
    BuildContext,
    Built,
)
from lc_assets.build.tables import read_table
from lc_assets.stages.reports import length_report as lengths
from lc_assets.stages.reports.length_claims import SHARES_FILE
from lc_assets.stages.reports.referral_claims import DENSITIES_FILE
from lc_assets.stages.reports.report_tables import DENSITIES, GROWTH, LENGTH_SHARES
from lc_assets.stages.shown import origins


def length_report(_context: BuildContext, built: Built) -> Shown:
    """Of `length_report`."""
    lines = read_table(built.published.folder / SHARES_FILE, LENGTH_SHARES.names).to_pylist()
    grown = read_table(built.published.folder / lengths.GROWTH_FILE, GROWTH.names).to_pylist()
    return Shown(
        columns=LENGTH_SHARES,
        origins=origins.LENGTHS,
        values={
            "shares": Table(lines),
            "growth": Table(grown),
            "where_tokens_are": _by_set(
                "Where the tokens are, by length of documents",
                lines,
                "token_share",
                "share of the set's tokens",
            ),
            "at_least_as_long": _by_set(
                "Documents at least as long",
                lines,
                "document_share_from",
                "share of documents",
                logarithmic=True,
            ),
        },
    )


def referral_report(_context: BuildContext, built: Built) -> Shown:
    """Of `referral_report`."""
    lines = read_table(built.published.folder / DENSITIES_FILE, DENSITIES.names).to_pylist()
    farthest = lines[-1]["distance"] if lines else ""
    by_set = {
        name: [line for line in lines if line["document_set"] == name]
        for name in dict.fromkeys(line["document_set"] for line in lines)
    }
    drawn: dict[str, Any] = {
        f"pairs_{name}": _by_distance(f"Pairs of mentions, {name}", own)
        for name, own in by_set.items()
    }
    return Shown(
        columns=DENSITIES,
        origins=origins.DENSITIES,
        values={
            "densities": Table([line for line in lines if line["counted"] == "pairs"]),
            "farthest": _beside_the_paper(
                f"Pairs of mentions, {farthest} sentences apart",
                [line for line in lines if line["distance"] == farthest],
            ),
            **drawn,
        },
    )


def _by_set(
    title: str,
    lines: Sequence[dict[str, Any]],
    column: str,
    unit: str,
    *,
    logarithmic: bool = False,
) -> Plot:
    groups = list(dict.fromkeys(line["length_group"] for line in lines))
    sets = dict.fromkeys(line["document_set"] for line in lines)
    heights = {
        name: [line[column] for line in lines if line["document_set"] == name] for name in sets
    }
    return showing.columns(title, groups, heights, unit=unit, logarithmic=logarithmic)


def _by_distance(title: str, lines: Sequence[dict[str, Any]]) -> Plot:
    pairs = [line for line in lines if line["counted"] == "pairs"]
    groups = list(dict.fromkeys(line["length_group"] for line in pairs))
    distances = list(dict.fromkeys(line["distance"] for line in pairs))
    heights = {
        distance: [line["figure"] for line in pairs if line["distance"] == distance]
        for distance in distances
    }
    return showing.columns(title, groups, heights, unit="per token", logarithmic=True)


def _beside_the_paper(title: str, lines: Sequence[dict[str, Any]]) -> Plot:
    pairs = [line for line in lines if line["counted"] == "pairs"]
    groups = list(dict.fromkeys(line["length_group"] for line in pairs))
    heights: dict[str, list[float | None]] = {}
    for name in dict.fromkeys(line["document_set"] for line in pairs):
        own = {line["length_group"]: line for line in pairs if line["document_set"] == name}
        heights[name] = [own[group]["figure"] if group in own else None for group in groups]
        if any(line["paper"] is not None for line in own.values()):
            heights[f"{name}, paper"] = [
                own[group]["paper"] if group in own else None for group in groups
            ]
    return showing.columns(title, groups, heights, unit="per token", logarithmic=True)
