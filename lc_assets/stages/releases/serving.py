"""Whether a published artefact serves withdrawn documents, according to the current lists.

A stage's checks are about a version and its inputs; this check is about the present: an artefact
that was right when it was made fails here once a list names one of its documents, until it is
rebuilt.

Every artefact that serves text has **rosters**: tables of the documents in it. A grid has one;
artefacts made from grids have those of the grids. The documents of LongPack are those that their
spans name; packed rows have their own and those of their documents. A new kind of artefact adds an
entry to `ROSTERS_OF`, with a `TableRoster` over its ids, URLs and digests.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import pyarrow as pa

from lc_assets.build.lookups import KeyedTable
from lc_assets.build.recipe import Recipe
from lc_assets.build.stage import CheckResult
from lc_assets.build.tables import read_table
from lc_assets.errors import NotPublished
from lc_assets.formats.arrays.order import GlobalOrder
from lc_assets.lake.lake import GLOBAL, Lake
from lc_assets.lake.versions import Published
from lc_assets.stages.lineage.row_lineage import row_index
from lc_assets.stages.lineage.tracing import grid_behind, order_behind
from lc_assets.stages.longpack.page_index import page_index
from lc_assets.stages.mixes.blended_mix import MIX_FILE, read_mix
from lc_assets.stages.packing.packing_tables import SPANS_FILE
from lc_assets.stages.rows.token_grid import ROWS_FILE
from lc_assets.stages.withdrawal.withdrawn_documents import STAGE as WITHDRAWN_STAGE
from lc_assets.stages.withdrawal.withdrawn_documents import entries_of, withdrawn_lines
from lc_assets.text.links.addresses import Kind, values_of

CLAIM: Final = "nothing_withdrawn_is_served"
Sought = Sequence[tuple[Kind, str]]
"""Kinds and normal values, as `lc_assets.text.links.addresses` has them."""


class Roster(Protocol):
    """The documents of one table whose text is served."""

    @property
    def name(self) -> str:
        """What serves them, for people."""
        ...

    @property
    def snapshot(self) -> str:
        """The snapshot they are of."""
        ...

    def found_by(self, sought: Sought) -> set[str]:
        """Ids of the documents that match any of some values."""
        ...


@dataclass(frozen=True, slots=True)
class TableRoster:
    """Documents of a table with ``id`` and ``url``, and optionally ``digest``; searched by a
    scan.
    """

    name: str
    snapshot: str
    table: pa.Table

    def found_by(self, sought: Sought) -> set[str]:
        """See `Roster.found_by`."""
        by_kind: dict[Kind, set[str]] = {}
        for kind, value in sought:
            by_kind.setdefault(kind, set()).add(value)
        names = [name for name in ("id", "url", "digest") if name in self.table.column_names]
        lines = zip(*(self.table[name].to_pylist() for name in names), strict=True)
        documents = (dict(zip(names, line, strict=True)) for line in lines)
        return {
            line["id"]
            for line in documents
            if any(not values.isdisjoint(values_of(kind, line)) for kind, values in by_kind.items())
        }


@dataclass(frozen=True, slots=True)
class KeyedRoster:
    """Documents of a table that has an index."""

    name: str
    snapshot: str
    table: KeyedTable

    def found_by(self, sought: Sought) -> set[str]:
        """See `Roster.found_by`."""
        return {line["id"] for _, line in self.table.find_all(sought)}


@dataclass(frozen=True, slots=True)
class GridRoster:
    """Documents of a grid's rows, by its index where it has one."""

    lake: Lake
    grid: Published

    @property
    def name(self) -> str:
        """The grid's version."""
        return f"{self.grid.name}/{self.grid.version}"

    @property
    def snapshot(self) -> str:
        """The grid's."""
        return self.grid.receipt.fingerprint.key

    def found_by(self, sought: Sought) -> set[str]:
        """See `Roster.found_by`."""
        index = row_index(self.lake, self.grid)
        if index is None:
            return TableRoster(self.name, self.snapshot, self._table()).found_by(sought)
        return KeyedRoster(self.name, self.snapshot, index.rows).found_by(sought)

    def _table(self) -> pa.Table:
        return read_table(self.grid.only(ROWS_FILE) / ROWS_FILE, ["id", "url", "digest"])


def _of_order(lake: Lake, order: Published) -> Iterator[Published]:
    opened = GlobalOrder.open(order.folder, "train")
    yield from (
        lake.partition("token_grid", source.snapshot).at(source.version)
        for source in opened.sources
    )


def _of_mix(lake: Lake, mix: Published) -> Iterator[Published]:
    yield from (
        grid_behind(lake, source)
        for source in sources_of(lake, mix)
        if source.name.startswith("megatron_rows/")
    )


def sources_of(lake: Lake, mix: Published) -> list[Published]:
    """The versions that a mix takes samples from.

    Raises:
        NotPublished: if one of them is gone.
    """
    return [
        lake.version_of(source.prefix)
        for source in read_mix(mix.only(MIX_FILE)).sources
        if source.used
    ]


GRIDS_OF: Mapping[str, Callable[[Lake, Published], Iterator[Published]]] = {
    "token_grid": lambda _, grid: iter([grid]),
    "megatron_rows": lambda lake, megatron: iter([grid_behind(lake, megatron)]),
    "longcrawl": _of_order,
    "longcrawl_flat": lambda lake, flat: _of_order(lake, order_behind(lake, flat)),
    "blended_mix": _of_mix,
}
"""Stage → the grids whose rows one of its versions serves."""


def _rosters_of_grids(lake: Lake, published: Published) -> Iterator[Roster]:
    grids = GRIDS_OF[published.receipt.fingerprint.stage](lake, published)
    yield from (GridRoster(lake, grid) for grid in grids)


def _rosters_of_longpack(_: Lake, longpack: Published) -> Iterator[Roster]:
    """The documents within LongPack's: roots and children."""
    yield KeyedRoster(
        f"{longpack.name}/{longpack.version}",
        longpack.receipt.fingerprint.key,
        page_index(longpack),
    )


def _rosters_of_packed(lake: Lake, packed: Published) -> Iterator[Roster]:
    """The documents of packed rows, and of those that are LongPack's the documents within."""
    key = packed.receipt.fingerprint.key
    table = read_table(packed.only(SPANS_FILE) / SPANS_FILE, ["id", "url", "digest"])
    yield TableRoster(f"{packed.name}/{packed.version}", key, table)
    store = behind(lake, packed, f"packing_tokens/{key}")
    if f"longpack_documents/{key}" in store.receipt.fingerprint.inputs:
        yield from _rosters_of_longpack(lake, behind(lake, store, f"longpack_documents/{key}"))


def behind(lake: Lake, published: Published, name: str) -> Published:
    """The version of an input that a version was made from.

    Raises:
        NotPublished: if it is gone.
    """
    stage, _, key = name.partition("/")
    found = lake.partition(stage, key).with_digest(
        published.receipt.fingerprint.inputs.get(name, "")
    )
    if found is None:
        raise NotPublished(f"{published.home}: the {name} it was made from is gone from the lake")
    return found


def _rosters_of_mix(lake: Lake, mix: Published) -> Iterator[Roster]:
    for source in sources_of(lake, mix):
        yield from (
            _rosters_of_grids if source.name.startswith("megatron_rows/") else _rosters_of_packed
        )(lake, source)


ROSTERS_OF: Mapping[str, Callable[[Lake, Published], Iterator[Roster]]] = {
    **dict.fromkeys(GRIDS_OF, _rosters_of_grids),
    "longpack_documents": _rosters_of_longpack,
    "packed_rows": _rosters_of_packed,
    "blended_mix": _rosters_of_mix,
}
"""Stage → the rosters of one of its versions."""


def nothing_withdrawn_is_served(lake: Lake, recipe: Recipe, published: Published) -> CheckResult:
    """No document that the lists name now is served, nor one of the same content;
    `withdrawn_documents` is as new as the lists.
    """
    entries = entries_of(recipe.withdrawn_documents)
    if not entries:
        return _finding([], "no list names anything", n_documents=0)
    withdrawn = lake.partition("withdrawn_documents").current()
    if withdrawn is None:
        return _finding(["`withdrawn_documents` was never materialized"], "")
    said = withdrawn.receipt.fingerprint.params
    late = (
        []
        if said == WITHDRAWN_STAGE.resolved(recipe, GLOBAL)
        else ["`withdrawn_documents` is older than the lists: materialize it"]
    )
    names = [line["id"] for line in withdrawn_lines(withdrawn)]
    sought: list[tuple[Kind, str]] = [
        *(entry.sought for entry in entries),
        *(("document", name) for name in names),
    ]
    served: set[str] = set()
    for roster in ROSTERS_OF[published.receipt.fingerprint.stage](lake, published):
        served |= roster.found_by(sought)
        late += _not_considered(lake, withdrawn, roster.snapshot)
    wrong = [
        *late,
        *(
            f"{len(served):,} withdrawn documents are served, such as {name}"
            for name in sorted(served)[:1]
        ),
    ]
    return _finding(
        wrong,
        f"{len(entries):,} entries and {len(names):,} documents sought, none is served",
        n_documents=len(served),
    )


def _not_considered(lake: Lake, withdrawn: Published, snapshot: str) -> list[str]:
    """Whether the snapshot's current version was not searched when the withdrawn documents were
    found.
    """
    made_of = withdrawn.receipt.fingerprint.inputs
    for stage in WITHDRAWN_STAGE.upstream:
        standing = lake.partition(stage, snapshot).current()
        if standing is not None and made_of.get(standing.name) != standing.digest:
            return [f"`withdrawn_documents` was made before {standing.name}: materialize it"]
    return []


def _finding(wrong: Sequence[str], right: str, **numbers: Any) -> CheckResult:
    said = "; ".join(dict.fromkeys(wrong)) or right
    return CheckResult(
        check=CLAIM,
        passed=not wrong,
        message=said,
        values={name.replace("_", " "): float(n) for name, n in numbers.items()},
    )
