"""Whereabouts: from a document's id or address to its row, its position in the global order and its samples in mixes.

The way back of `lc_assets.stages.tracing`. Nothing is built or written; memory is bounded by one order and one
GPT index, both mapped, and by the rows that are found. Versions are followed: what was made from another grid than
the published one does not hold the document's row, and says nothing.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from lc_assets.formats.gpt_index import read_gpt_index
from lc_assets.formats.npy import read_npy
from lc_assets.formats.order import GlobalOrder
from lc_assets.stages.blending import Mix, read_mix
from lc_assets.stages.claims import DROPPED_SUFFIX
from lc_assets.stages.removals import TABLE as REMOVALS_TABLE
from lc_assets.stages.tracing import Row, grid_behind, lines_where, rows_where
from lc_assets.storage.lake import LakeFolder, Published
from lc_assets.vocabulary import parse_document_id

STAGES_THAT_DROP = ("filtered", "tokens")


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Where a document went.

    Attributes:
        row: its row.
        position: of the row in the global order's split; None when the order was made from another grid.
        samples: numbers of the samples that take tokens of it, by mix.
    """

    row: Row
    position: int | None
    samples: Mapping[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped:
    """Why a document did not go on.

    Attributes:
        stage: that dropped it.
        id: of the document.
        url: its address.
        reasons: each with the value that was judged; None where there is none.
        instead: of a document that was removed for another: which document or item that is, how alike they are, and why
            it goes and the other stays.
    """

    stage: str
    id: str
    url: str
    reasons: tuple[tuple[str, float | None], ...]
    instead: tuple[str, float, str] | None = None


def find_id(lake: LakeFolder, identity: str) -> list[Found]:
    """Where one document went; empty when no published grid has it.

    Raises:
        BadInput: when it is not a document id.
    """
    shard, _ = parse_document_id(identity)
    grid = lake.place("grid", shard.snapshot).current()
    return [] if grid is None else _found(lake, grid, rows_where(grid, pc.field("id") == identity))


def find_url(lake: LakeFolder, url: str) -> list[Found]:
    """Where all documents of one address went, in every published snapshot."""
    grids = lake.published("grid").values()
    return [found for grid in grids for found in _found(lake, grid, rows_where(grid, pc.field("url") == url))]


def why_dropped(lake: LakeFolder, identity: str) -> Dropped | None:
    """Why a document did not become a row, when a published stage says so.

    Raises:
        BadInput: when it is not a document id.
    """
    shard, _ = parse_document_id(identity)
    for stage in STAGES_THAT_DROP:
        published = lake.place(stage, shard.snapshot).current()
        path = None if published is None else published.folder / f"{shard.name}{DROPPED_SUFFIX}"
        for line in lines_where(path, pc.field("id") == identity) if path is not None and path.is_file() else ():
            reasons = tuple(zip(line["reasons"], line["values"], strict=True))
            return Dropped(
                stage=stage, id=line["id"], url=line["url"], reasons=reasons, instead=_removed_for(lake, shard.snapshot, identity)
            )
    return None


def _removed_for(lake: LakeFolder, snapshot: str, identity: str) -> tuple[str, float, str] | None:
    published = lake.place("removals", snapshot).current()
    lines = [] if published is None else lines_where(published.folder / REMOVALS_TABLE, pc.field("id") == identity)
    return next(((line["kept_id"] or line["for_id"], line["similarity"], line["why"]) for line in lines), None)


def position_of(order: GlobalOrder, row: Row) -> int | None:
    """Position of a grid's row in the order, or None when the order is not over that grid."""
    for number, source in enumerate(order.sources):
        if source.snapshot == row.snapshot and source.version == row.grid.name:
            places = np.flatnonzero((np.asarray(order.source) == number) & (np.asarray(order.row) == row.row))
            return int(places[0]) if len(places) else None
    return None


def samples_with(prefix: Path, document: int) -> NDArray[np.int64]:
    """Numbers of the samples of a GPT index that take at least one token of a document, ascending; int64.

    Sample ``j`` in the order of construction reaches from ``sample_index[j]`` to ``sample_index[j + 1]``
    inclusively, each a place in ``document_index`` and an offset; ``shuffle_index`` says which ``j`` a number means.
    """
    index = read_gpt_index(prefix)
    begins = np.asarray(index.sample_index[:, 0])
    taken = np.zeros(index.n_samples, dtype=bool)
    for place in np.flatnonzero(np.asarray(index.document_index) == document):
        first = max(int(np.searchsorted(begins, place, "left")) - 1, 0)
        last = min(int(np.searchsorted(begins, place, "right")), index.n_samples)
        taken[first:last] = True
    return np.flatnonzero(taken[np.asarray(index.shuffle_index)]).astype(np.int64)


def _found(lake: LakeFolder, grid: Published, rows: Iterable[Row]) -> list[Found]:
    return [Found(row=row, position=_position(lake, row), samples=_samples(lake, grid, row)) for row in rows]


def _position(lake: LakeFolder, row: Row) -> int | None:
    published = lake.place("longcrawl").current()
    return None if published is None else position_of(GlobalOrder.open(published.folder, row.split), row)


def _samples(lake: LakeFolder, grid: Published, row: Row) -> dict[str, tuple[int, ...]]:
    if row.split != "train":
        return {}
    return {mix: _samples_of_mix(lake, published, grid, row) for mix, published in lake.published("mixes").items()}


def _samples_of_mix(lake: LakeFolder, published: Published, grid: Published, row: Row) -> tuple[int, ...]:
    number, source = _source_number(read_mix(published.folder), row.snapshot)
    if source is None or not source.used or grid_behind(lake, lake.version_of(source.prefix)).home != grid.home:
        return ()
    wanted = samples_with(published.folder / source.snapshot, row.row)
    ours = np.asarray(read_npy(published.folder / "dataset_index.npy")) == number
    numbers = np.asarray(read_npy(published.folder / "dataset_sample_index.npy"))
    return tuple(np.flatnonzero(ours & np.isin(numbers, wanted)).tolist())


def _source_number(mix: Mix, snapshot: str) -> tuple[int, Any]:
    return next(((number, source) for number, source in enumerate(mix.sources) if source.name == snapshot), (-1, None))
