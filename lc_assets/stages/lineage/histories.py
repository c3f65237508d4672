"""What is known of a document besides its rows: the values it was filtered by, why it has no row,
and which documents were removed as its duplicates.

Nothing is built or written. Values are read from the very filtered documents that the row's grid
was made from, as named by the receipts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow.compute as pc

from lc_assets.build.checks import DROPPED_SUFFIX
from lc_assets.build.lookups import KeyedTable, read_some
from lc_assets.build.tables import KEYED
from lc_assets.lake.lake import Lake
from lc_assets.lake.versions import Published
from lc_assets.stages.deduplication.removed_documents import TABLE as REMOVALS_TABLE
from lc_assets.stages.documents.document_keys import documents_of, keyed_documents
from lc_assets.stages.lineage.row_lineage import RowIndex
from lc_assets.stages.lineage.tracing import Row, lines_where
from lc_assets.text.links.addresses import Kind
from lc_assets.vocabulary import parse_document_id

STAGES_THAT_DROP = ("filtered_documents", "token_documents")


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped:
    """Why a document was dropped.

    Attributes:
        stage: the stage that dropped it.
        id: of the document.
        url: its URL.
        reasons: each with the value that was compared; None if there is none.
        instead: for a removed document, the document or item it was removed for, their similarity,
            and why the other was kept.
    """

    stage: str
    id: str
    url: str
    reasons: tuple[tuple[str, float | None], ...]
    instead: tuple[str, float, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Removed:
    """A document removed as a duplicate: its id, the similarity (None if not measured), and the
    reason.
    """

    id: str
    similarity: float | None
    why: str


def values_judged(lake: Lake, row: Row) -> dict[str, float]:
    """Every value that a row's document was filtered by, by column; NaN if upstream has none; empty
    if the documents are no longer in the lake.
    """
    keyed = _keyed_behind(lake, row)
    lines = (
        []
        if keyed is None
        else [line for line in keyed.find("document", row.id) if line["digest"] == row.digest]
    )
    return {
        name: value for line in lines[:1] for name, value in line.items() if name not in KEYED.names
    }


def _keyed_behind(lake: Lake, row: Row) -> KeyedTable | None:
    """The index of the filtered documents that the row's grid was made from."""
    grid = lake.partition("token_grid", row.snapshot).at(row.grid.name)
    tokens = _input(lake, grid, f"token_documents/{row.snapshot}")
    wanted = (
        tokens.receipt.fingerprint.inputs.get(f"filtered_documents/{row.snapshot}")
        if tokens
        else None
    )
    for published in lake.partition("document_keys", row.snapshot).versions():
        if published.receipt.fingerprint.inputs.get(f"filtered_documents/{row.snapshot}") == wanted:
            return documents_of(published)
    return None


def _input(lake: Lake, published: Published, name: str) -> Published | None:
    stage, _, key = name.partition("/")
    return lake.partition(stage, key).with_digest(
        published.receipt.fingerprint.inputs.get(name, "")
    )


def went_instead(lake: Lake, identity: str) -> list[Removed]:
    """The documents of every snapshot that were removed because this one stays, by id."""
    found = []
    for key in lake.keys("row_lineage"):
        published = lake.partition("row_lineage", key).current_summary()
        index = RowIndex(published) if published else None
        lines = index.removal_lines("kept_id", identity) if index else []
        if index and lines:
            found += [line for line in _removals(lake, index, lines) if line["kept_id"] == identity]
    return [
        Removed(id=line["id"], similarity=line["similarity"], why=line["why"])
        for line in sorted(found, key=lambda line: line["id"])
    ]


def _removals(lake: Lake, index: RowIndex, lines: Sequence[int]) -> list[dict[str, Any]]:
    key = index.published.receipt.fingerprint.key
    removals = _input(lake, index.published, f"removed_documents/{key}")
    return (
        [] if removals is None else read_some(removals.only(REMOVALS_TABLE) / REMOVALS_TABLE, lines)
    )


def why_dropped(lake: Lake, identity: str) -> Dropped | None:
    """Why a document did not become a row, according to the published stages.

    Raises:
        BadInput: if it is not a document id.
    """
    shard, _ = parse_document_id(identity)
    for stage in STAGES_THAT_DROP:
        published = lake.partition(stage, shard.snapshot).current()
        table = f"{shard.name}{DROPPED_SUFFIX}"
        path = None if published is None else published.only(table) / table
        for line in (
            lines_where(path, pc.field("id") == identity)
            if path is not None and path.is_file()
            else ()
        ):
            reasons = tuple(zip(line["reasons"], line["values"], strict=True))
            return Dropped(
                stage=stage,
                id=line["id"],
                url=line["url"],
                reasons=reasons,
                instead=removed_for(lake, shard.snapshot, identity),
            )
    return None


def removed_for(lake: Lake, snapshot: str, identity: str) -> tuple[str, float, str] | None:
    """The document or item that a document was removed for, their similarity, and the reason; None
    if it was not removed.
    """
    published = lake.partition("removed_documents", snapshot).current()
    if published is None:
        return None
    lines = lines_where(published.only(REMOVALS_TABLE) / REMOVALS_TABLE, pc.field("id") == identity)
    return next(
        ((line["kept_id"] or line["for_id"], line["similarity"], line["why"]) for line in lines),
        None,
    )


def documents_by(lake: Lake, kind: Kind, value: str) -> list[Mapping[str, Any]]:
    """The filtered documents of all snapshots that match a value: rows of `tables.KEYED`, with the
    values of the rules.
    """
    keys = (
        [parse_document_id(value)[0].snapshot] if kind == "document" else lake.keys("document_keys")
    )
    indexes = (keyed_documents(lake, key) for key in keys)
    return [line for index in indexes if index is not None for line in index.find(kind, value)]
