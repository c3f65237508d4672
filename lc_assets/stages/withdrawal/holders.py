"""Which finished versions contain given documents, published or not; used before old versions are
deleted.

=================================  ==============================================================
stage                              contains a document
=================================  ==============================================================
filtered_documents, document_keys, if it is of the document's snapshot; all are working material
document_signals
clean_documents, token_documents,  if a document table lists it
packing_tokens
longpack_documents, packed_rows    if its spans list it, or their table is gone
token_grid                         if its row table lists it
row_lineage                        if the grid that it indexes contains it
megatron_rows, longcrawl_flat      if a source grid contains it, or is gone
longcrawl, blended_mix             no text, only row numbers: if a source contains it, or is gone
=================================  ==============================================================
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from lc_assets.build.checks import DOCUMENTS_SUFFIX, documents_files
from lc_assets.build.tables import read_table
from lc_assets.errors import LcError
from lc_assets.lake.lake import Lake
from lc_assets.lake.versions import Published
from lc_assets.stages.releases.serving import GRIDS_OF, ROSTERS_OF, behind
from lc_assets.stages.rows.token_grid import ROWS_FILE
from lc_assets.text.links.addresses import Kind
from lc_assets.vocabulary import parse_document_id

WORKING_MATERIAL: Final = ("filtered_documents", "document_keys", "document_signals")
"""Inputs of the stages that find withdrawn documents; never served."""
HOLDERS: Final = (
    *WORKING_MATERIAL,
    "clean_documents",
    "longpack_documents",
    "token_documents",
    "token_grid",
    "row_lineage",
    "megatron_rows",
    "longcrawl",
    "longcrawl_flat",
    "packing_tokens",
    "packed_rows",
    "blended_mix",
)


@dataclass(frozen=True, slots=True)
class Held:
    """A version that contains some of the documents; ``n_documents`` is None if that can no longer
    be determined.
    """

    published: Published
    n_documents: int | None
    is_current: bool

    @property
    def name(self) -> str:
        """Stage, partition and version."""
        return f"{self.published.name}/{self.published.version}"


def versions_with(lake: Lake, ids: Collection[str]) -> Iterator[Held]:
    """Yield every finished version that contains any of the documents, in the order of the
    stages.
    """
    asked = _Asked(lake, frozenset(ids))
    keys = keys_by_stage(lake)
    for stage in HOLDERS:
        for key in keys.get(stage, []):
            current = _current_version(lake, stage, key)
            for published in lake.partition(stage, key).versions():
                n_documents = asked.count(published)
                if n_documents != 0:
                    yield Held(published, n_documents, published.version == current)


def keys_by_stage(lake: Lake) -> dict[str, list[str]]:
    """Keys of all partitions by stage, sorted; includes partitions without a published version."""
    found: dict[str, list[str]] = {}
    for partition in lake.partitions():
        stage, key = partition.name.split("/")
        found.setdefault(stage, []).append(key)
    return found


def _current_version(lake: Lake, stage: str, key: str) -> str:
    pointer = lake.partition(stage, key).pointer()
    return pointer.version if pointer else ""


@dataclass(frozen=True, slots=True)
class _Asked:
    lake: Lake
    ids: frozenset[str]
    known: dict[str, int] = field(default_factory=dict)

    def count(self, published: Published) -> int | None:
        """Number of the documents in a version; None if a version that would tell is gone."""
        return _COUNTS[published.receipt.fingerprint.stage](self, published)

    def of_snapshot(self, published: Published) -> int:
        return sum(
            parse_document_id(name)[0].snapshot == published.receipt.fingerprint.key
            for name in self.ids
        )

    def in_documents(self, published: Published) -> int:
        folder = published.only(f"*{DOCUMENTS_SUFFIX}")
        return (
            sum(self._in(read_table(path, ["id"])) for path in documents_files(folder))
            if self.of_snapshot(published)
            else 0
        )

    def in_rows(self, grid: Published) -> int:
        name = f"{grid.name}/{grid.version}"
        if name not in self.known:
            self.known[name] = (
                self._in(read_table(grid.only(ROWS_FILE) / ROWS_FILE, ["id"]))
                if self.of_snapshot(grid)
                else 0
            )
        return self.known[name]

    def in_grids(self, published: Published) -> int | None:
        try:
            return sum(
                self.in_rows(grid)
                for grid in GRIDS_OF[published.receipt.fingerprint.stage](self.lake, published)
            )
        except LcError:
            return None  # a source grid is gone

    def in_rosters(self, published: Published) -> int | None:
        wanted: list[tuple[Kind, str]] = [("document", name) for name in sorted(self.ids)]
        try:
            rosters = list(ROSTERS_OF[published.receipt.fingerprint.stage](self.lake, published))
        except LcError:
            return None  # a source is gone
        return len({name for roster in rosters for name in roster.found_by(wanted)})

    def in_store(self, store: Published) -> int | None:
        """Of packed documents' tokens: by id, and by the pages of LongPack documents."""
        key = store.receipt.fingerprint.key
        if f"longpack_documents/{key}" not in store.receipt.fingerprint.inputs:
            return self.in_documents(store)
        try:
            within = self.in_rosters(behind(self.lake, store, f"longpack_documents/{key}"))
        except LcError:
            return None
        return None if within is None else max(within, self.in_documents(store))

    def in_indexed(self, lineage: Published) -> int | None:
        key = lineage.receipt.fingerprint.key
        grid = self.lake.partition("token_grid", key).with_digest(
            lineage.receipt.fingerprint.inputs.get(f"token_grid/{key}", "")
        )
        return None if grid is None else self.in_rows(grid)

    def _in(self, table: pa.Table) -> int:
        found = table.filter(
            pc.is_in(table["id"], value_set=pa.array(sorted(self.ids), pa.string()))
        )
        return int(pc.count_distinct(found["id"]).as_py())


_COUNTS: Mapping[str, Callable[[_Asked, Published], int | None]] = {
    "filtered_documents": _Asked.of_snapshot,
    "document_keys": _Asked.of_snapshot,
    "document_signals": _Asked.of_snapshot,
    "clean_documents": _Asked.in_documents,
    "token_documents": _Asked.in_documents,
    "token_grid": _Asked.in_rows,
    "row_lineage": _Asked.in_indexed,
    "megatron_rows": _Asked.in_grids,
    "longcrawl": _Asked.in_grids,
    "longcrawl_flat": _Asked.in_grids,
    "longpack_documents": _Asked.in_rosters,
    "packing_tokens": _Asked.in_store,
    "packed_rows": _Asked.in_rosters,
    "blended_mix": _Asked.in_rosters,
}
