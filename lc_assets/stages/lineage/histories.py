"""The history of a document: the values it was filtered by, why it has no row, and which documents
were excluded as its duplicates.

Nothing is built or written. Values are read from the version of the filtered documents that the
row's grid was made from, as recorded in receipts.
"""

from collections.abc import Mapping
from typing import Any

from lc_assets import arrow_compute as pc
from lc_assets.builds.checks import DROPPED_SUFFIX
from lc_assets.builds.lookups import lines_where, read_some
from lc_assets.builds.tables import KEYED, Line
from lc_assets.lake.lake import Lake
from lc_assets.records import record
from lc_assets.stages.deduplication import removals
from lc_assets.stages.documents import document_keys
from lc_assets.stages.lineage import row_lineage
from lc_assets.stages.lineage.spans import Span
from lc_assets.text.links.addresses import Kind
from lc_assets.vocabulary import parse_document_id


@record
class Dropped:
    """Why a document was dropped.

    Attributes:
        stage: the stage that dropped it.
        id: of the document.
        url: its URL.
        reasons: each with the compared value; None if there is none.
    """

    stage: str
    id: str
    url: str
    reasons: tuple[tuple[str, float | None], ...]


def filter_values(lake: Lake, row: Span) -> dict[str, float]:
    """Every value that a row's document was filtered by, by column; NaN if upstream has none; empty
    if the documents are no longer in the lake.
    """
    name = f"filtered_documents/{row.snapshot}"
    for tokens in lake.inputs_of(row.published, "token_documents"):
        wanted = tokens.receipt.fingerprint.inputs.get(name)
        for keys in lake.partition("document_keys", row.snapshot).versions():
            if keys.receipt.fingerprint.inputs.get(name) == wanted:
                for line in document_keys.documents_of(keys).find("document", row.id):
                    if line["digest"] == row.digest:
                        return {of: line[of] for of in line if of not in KEYED.names}
    return {}


def removed_for(lake: Lake, identity: str) -> list[Line]:
    """Lines of the tables of excluded documents of every snapshot whose kept document is this one;
    by id.
    """
    found = []
    for key in lake.keys("row_lineage"):
        index = lake.partition("row_lineage", key).current_summary()
        lines = row_lineage.removal_lines(index, identity) if index else []
        if index and lines:
            published = lake.require_input(index, "removed_documents")
            table = read_some(published.only(removals.TABLE) / removals.TABLE, lines)
            found += [line for line in table if line["kept_id"] == identity]
    return sorted(found, key=lambda line: line["id"])


def why_dropped(lake: Lake, identity: str) -> Dropped | None:
    """Why a document did not become a row, according to the published stages.

    Raises:
        BadInput: if it is not a document id.
    """
    table = f"{parse_document_id(identity)[0].name}{DROPPED_SUFFIX}"
    for stage in ("filtered_documents", "token_documents"):
        if line := _line_in(lake, stage, table, identity):
            reasons = tuple(zip(line["reasons"], line["values"], strict=True))
            return Dropped(stage=stage, id=line["id"], url=line["url"], reasons=reasons)
    return None


def decision_on(lake: Lake, identity: str) -> Line:
    """The line of `removals.DECISIONS` of a document; empty if it did not pass the filter.

    Raises:
        BadInput: if it is not a document id.
    """
    return _line_in(lake, "removed_documents", removals.TABLE, identity)


def _line_in(lake: Lake, stage: str, table: str, identity: str) -> Line:
    """A document's line in a table of its snapshot; empty if there is none, or no such table."""
    shard, _ = parse_document_id(identity)
    published = lake.partition(stage, shard.snapshot).current()
    path = published.only(table) / table if published else None
    if path is None or not path.is_file():  # of a version that wrote another table
        return {}
    return next(iter(lines_where(path, pc.field("id") == identity)), {})


def documents_by(lake: Lake, kind: Kind, value: str) -> list[Mapping[str, Any]]:
    """The filtered documents of all snapshots that match a value: rows of `tables.KEYED`, with the
    values of the rules.
    """
    keys = keys_with(lake, "document_keys", kind, value)
    indexes = (document_keys.keyed_documents(lake, key) for key in keys)
    return [line for index in indexes if index is not None for line in index.find(kind, value)]


def keys_with(lake: Lake, stage: str, kind: Kind, value: str) -> list[str]:
    """Partitions of a stage that may hold documents that match a value.

    Raises:
        BadInput: for a document, if it is not a document id.
    """
    return [parse_document_id(value)[0].snapshot] if kind == "document" else lake.keys(stage)
