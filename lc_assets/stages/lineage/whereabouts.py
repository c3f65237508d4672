"""From a document's id, URL, domain or digest to its rows, their positions in the global order and
their samples in mixes.

The other direction of `lc_assets.stages.lineage.tracing`. Nothing is built or written; memory is
bounded by one memory-mapped GPT index and by the rows found. Orders and mixes made from another
version of a grid than the published one are ignored. Not here: why a document has no row
(`lc_assets.stages.lineage.histories`).
"""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike, NDArray

from lc_assets.build.tables import ROWS, read_table
from lc_assets.formats.arrays.npy import read_npy
from lc_assets.formats.arrays.order import GlobalOrder
from lc_assets.formats.megatron.gpt_index import read_gpt_index
from lc_assets.lake.lake import Lake
from lc_assets.lake.versions import Published
from lc_assets.mixing.gpt_index import GptIndex
from lc_assets.stages.lineage.row_lineage import current_index
from lc_assets.stages.lineage.tracing import Row, grid_behind, row_from
from lc_assets.stages.mixes.blended_mix import Mix, MixSource, read_mix
from lc_assets.stages.rows.token_grid import ROWS_FILE
from lc_assets.text.links.addresses import Kind, normal, values_of
from lc_assets.tokens.orders import place_of, places_of
from lc_assets.vocabulary import parse_document_id

SOUGHT_ONE_BY_ONE = 64
"""Up to this number, items of an interleaving are searched one at a time (60 µs each); beyond it,
one pass over all entries is cheaper.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Where a document ended up.

    Attributes:
        row: its row.
        position: of the row in the global order's split; None if the order was made from another
            grid.
        samples: numbers of the samples that contain tokens of it, by mix.
    """

    row: Row
    position: int | None
    samples: Mapping[str, tuple[int, ...]]


def find_id(lake: Lake, identity: str) -> list[Found]:
    """Where one document ended up; empty if no published grid contains it.

    Raises:
        BadInput: if it is not a document id.
    """
    parse_document_id(identity)
    return find(lake, "document", identity)


def find_url(lake: Lake, url: str) -> list[Found]:
    """Where all documents with a URL ended up, in every published snapshot."""
    return find(lake, "url", url)


def find(lake: Lake, kind: Kind, value: str) -> list[Found]:
    """Where all documents that match a value (`lc_assets.text.links.addresses`) ended up, in every
    published snapshot.
    """
    return whereabouts_of(lake, rows_by(lake, kind, value))


def whereabouts_of(lake: Lake, rows: Sequence[tuple[Published, Row]]) -> list[Found]:
    """Positions of some rows, and the samples that contain tokens of each."""
    if not rows:
        return []
    mixes, order = mixes_of(lake), lake.partition("longcrawl").current()
    orders = (
        {
            split: GlobalOrder.open(order.folder, split, pass_over=False)
            for split in {row.split for _, row in rows}
        }
        if order
        else {}
    )
    return [
        Found(
            row=row,
            position=position_of(orders[row.split], row) if row.split in orders else None,
            samples=samples_of_rows(mixes, lake, grid, [row]),
        )
        for grid, row in rows
    ]


def rows_by(lake: Lake, kind: Kind, value: str) -> list[tuple[Published, Row]]:
    """All rows of the documents that match a value, each with its grid; sorted by snapshot, split
    and row.
    """
    keys = [parse_document_id(value)[0].snapshot] if kind == "document" else lake.keys("token_grid")
    found = []
    for key in keys:
        index = current_index(lake, key)
        lines = index.rows.find(kind, value) if index else None
        if lines == []:
            continue
        grid = lake.partition("token_grid", key).current()
        if grid is not None:
            found += [
                (grid, row_from(grid, line))
                for line in (lines_of_table(grid, kind, value) if lines is None else lines)
            ]
    return found


def lines_of_table(grid: Published, kind: Kind, value: str) -> list[dict[str, Any]]:
    """The same by a search through the whole row table."""
    table = read_table(grid.only(ROWS_FILE) / ROWS_FILE, ROWS.names)
    if kind == "document":
        found: list[dict[str, Any]] = table.filter(pc.equal(table["id"], value)).to_pylist()
        return found
    wanted = normal(kind, value)
    columns = table.select(["id", "url", "digest"]).to_pylist()
    ours = [place for place, line in enumerate(columns) if wanted in values_of(kind, line)]
    lines: list[dict[str, Any]] = table.take(pa.array(ours, pa.int64())).to_pylist()
    return lines


def position_of(order: GlobalOrder, row: Row) -> int | None:
    """Position of a grid's row in the order, or None when the order is not over that grid."""
    for number, source in enumerate(order.sources):
        if source.snapshot == row.snapshot and source.version == row.grid.name:
            sources, rows = np.asarray(order.source), np.asarray(order.row)
            found = place_of(sources, rows, number, row.row, n_items=source.rows(order.split))
            if found is None:  # an order that does not ascend within its sources is read, too
                found = next(
                    iter(places_of(sources, rows, number, np.array([row.row])).tolist()), None
                )
            return found
    return None


def mixes_of(lake: Lake) -> dict[str, tuple[Published, Mix]]:
    """The published mixes by name, with their descriptions."""
    return {
        name: (published, read_mix(published.only("mix.json")))
        for name, published in lake.published("blended_mix").items()
    }


def samples_of_rows(
    mixes: Mapping[str, tuple[Published, Mix]],
    lake: Lake,
    grid: Published,
    rows: Collection[Row],
) -> dict[str, tuple[int, ...]]:
    """Numbers of the samples that take tokens of any of some rows of one grid, by mix, ascending;
    held-out rows are in none.
    """
    documents = [row.row for row in rows if row.split == "train"]
    return (
        {name: _samples_of_mix(lake, *mixes[name], grid, documents) for name in mixes}
        if documents
        else {}
    )


def _samples_of_mix(
    lake: Lake, published: Published, mix: Mix, grid: Published, documents: ArrayLike
) -> tuple[int, ...]:
    number, source = _source_of(mix, grid.receipt.fingerprint.key)
    if (
        source is None
        or not source.used
        or grid_behind(lake, lake.version_of(source.prefix)).home != grid.home
    ):
        return ()
    wanted = samples_with(published.folder / source.snapshot, documents)
    wanted = wanted[wanted < source.used]
    datasets, numbers = (
        np.asarray(read_npy(published.folder / f"{name}.npy"))
        for name in ("dataset_index", "dataset_sample_index")
    )
    if len(wanted) > SOUGHT_ONE_BY_ONE:
        return tuple(places_of(datasets, numbers, number, wanted).tolist())
    found = (
        place_of(datasets, numbers, number, sample, n_items=source.used)
        for sample in wanted.tolist()
    )
    return tuple(sorted(place for place in found if place is not None))


def _source_of(mix: Mix, snapshot: str) -> tuple[int, MixSource | None]:
    return next(
        ((number, source) for number, source in enumerate(mix.sources) if source.name == snapshot),
        (-1, None),
    )


def samples_with(prefix: Path, documents: ArrayLike) -> NDArray[np.int64]:
    """Numbers of the samples of a GPT index that contain at least one token of some documents,
    ascending; int64.

    Sample ``j`` in construction order covers ``sample_index[j]`` to ``sample_index[j + 1]``
    inclusive, each an index into ``document_index`` and an offset; ``shuffle_index`` maps numbers
    to ``j``.
    """
    index, wanted = read_gpt_index(prefix), np.atleast_1d(documents)
    order = np.asarray(index.document_index)
    places = np.flatnonzero(order == wanted[0] if len(wanted) == 1 else np.isin(order, wanted))
    shuffled = np.asarray(index.shuffle_index)
    if len(places) > SOUGHT_ONE_BY_ONE:
        return np.flatnonzero(_taken(index, places)[shuffled]).astype(np.int64)
    begins = index.sample_index[:, 0]
    spans = [
        (bisect_left(begins, place) - 1, bisect_right(begins, place)) for place in places.tolist()
    ]
    found = [
        np.flatnonzero((shuffled >= max(first, 0)) & (shuffled < last)) for first, last in spans
    ]
    return np.unique(np.concatenate([np.empty(0, np.int64), *found]))


def _taken(index: GptIndex, places: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which samples, in the order of construction, take a token of a document at any of some
    places.
    """
    begins = np.ascontiguousarray(index.sample_index[:, 0])
    firsts = np.maximum(np.searchsorted(begins, places, "left") - 1, 0)
    lasts = np.minimum(np.searchsorted(begins, places, "right"), index.n_samples)
    # One is added where a document's samples begin and taken off behind their last: above zero is
    # what any document is in.
    turns = np.bincount(firsts, minlength=index.n_samples + 1) - np.bincount(
        lasts, minlength=index.n_samples + 1
    )
    taken: NDArray[np.bool_] = np.cumsum(turns)[:-1] > 0
    return taken
