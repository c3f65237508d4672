"""From a document's id, URL, domain or digest, or that of a page within a LongPack document, to
spans of rows, their positions in the global order and the samples of mixes that contain them.

The other direction of `lc_assets.stages.lineage.tracing`. Nothing is built or written; memory is
bounded by one memory-mapped GPT index and by the rows found. Orders and mixes made from another
version of a grid than the published one are ignored.

Rows of grids and pages within LongPack documents are found by their own indices. Packed rows are
found by scanning the ids of their span tables, about 50 ms for each snapshot that contains one; the
indices of filtered documents determine these snapshots.
"""

import contextlib
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike

from lc_assets import arrow_compute as pc
from lc_assets.arrays import Int64s
from lc_assets.builds.checks import SPANS_SUFFIX
from lc_assets.builds.tables import SPANS_FILE, Line, mapped_table, read_table
from lc_assets.errors import LcError
from lc_assets.formats.arrays.npy import read_npy
from lc_assets.formats.arrays.order import GlobalOrder
from lc_assets.formats.megatron.gpt_index import read_gpt_index
from lc_assets.lake.lake import Lake
from lc_assets.lake.versions import Published
from lc_assets.stages.lineage.histories import documents_by, keys_with
from lc_assets.stages.lineage.row_lineage import rows_of
from lc_assets.stages.lineage.spans import (
    Span,
    holds_whole_rows,
    packed_spans,
    span_of_row,
)
from lc_assets.stages.lineage.tracing import cuts_of_sample, rows_behind, sources_of
from lc_assets.stages.longpack.page_index import page_index
from lc_assets.stages.mixes import blended_mix
from lc_assets.stages.tokens.packing_tokens import LABEL
from lc_assets.text.links.addresses import Kind
from lc_assets.tokens.orders import place_of, places_of
from lc_assets.vocabulary import parse_document_id

SOUGHT_ONE_BY_ONE = 64
"""Up to this number, items of an interleaving are searched one at a time (60 µs each); beyond it,
one pass over all entries is cheaper.
"""

Mixes = Mapping[str, tuple[Published, blended_mix.Mix]]


class Found(NamedTuple):
    """Where a document ended up.

    Attributes:
        span: in a row of a grid, or in a packed row.
        position: of the row in the global order's split; None for packed rows, and if the order was
            made from another grid.
        samples: numbers of the samples that contain tokens of the span, by mix.
    """

    span: Span
    position: int | None
    samples: Mapping[str, tuple[int, ...]]


def find(lake: Lake, kind: Kind, value: str) -> list[Found]:
    """Where all documents that match a value (`lc_assets.text.links.addresses`) ended up in the
    rows of grids, in every published snapshot.

    Raises:
        BadInput: for a document, if it is not a document id.
    """
    return whereabouts_of(lake, rows_by(lake, kind, value))


def whereabouts_of(lake: Lake, spans: Sequence[Span]) -> list[Found]:
    """Positions of some spans, and the samples that contain tokens of each."""
    mixes, order = mixes_of(lake), lake.partition("longcrawl").current()
    splits = {span.split for span in spans if not span.is_packed} if order else ()
    orders = {
        split: GlobalOrder.open(order.folder, split, pass_over=False) for split in splits if order
    }
    return [
        Found(
            span,
            position_of(orders[span.split], span) if span.split in orders else None,
            samples_of(lake, mixes, [span]),
        )
        for span in spans
    ]


def rows_by(lake: Lake, kind: Kind, value: str) -> list[Span]:
    """All rows of grids of the documents that match a value; sorted by snapshot, split and row."""
    found = []
    for key in keys_with(lake, "token_grid", kind, value):
        grid = lake.partition("token_grid", key).current()
        if grid is not None:
            found += [span_of_row(grid, line) for line in rows_of(lake, grid).find(kind, value)]
    return found


def packed_by(lake: Lake, kind: Kind, value: str) -> list[Span]:
    """All spans in packed rows of the documents that match a value, or that contain a page that
    does; sorted by snapshot, split and row.
    """
    named = [value] if kind == "document" else [of["id"] for of in documents_by(lake, kind, value)]
    found = []
    for key, packed in lake.published("packed_rows").items():
        ids = {name for name in named if parse_document_id(name)[0].snapshot == key}
        longpack = _longpack(lake, packed)
        if longpack is not None:
            ids |= {line["packed_id"] for line in page_index(longpack).find(kind, value)}
        found += packed_spans_with(packed, ids) if ids else []
    return found


def packed_spans_with(packed: Published, ids: Collection[str]) -> list[Span]:
    """All spans of some documents in packed rows of one version, by split and row; reads one column
    of the table of spans.
    """
    with mapped_table(packed.only(SPANS_FILE) / SPANS_FILE) as file:
        names = file.read(columns=["id"])["id"]
    wanted = pa.array(sorted(ids), pa.string())
    lines = np.flatnonzero(np.asarray(pc.is_in(names, value_set=wanted))).tolist()
    return packed_spans(packed, lines) if lines else []


def pages_within(lake: Lake, span: Span) -> list[Line]:
    """The pages of a LongPack document, in order: ``id``, ``url``, ``role`` (root or child), and
    ``start`` and ``stop``, their characters in the document's text. Empty for other documents, or
    if it is no longer in the lake.
    """
    longpack = _longpack(lake, span.published) if span.token_shard.startswith(LABEL) else None
    if longpack is None:
        return []
    name = f"{span.token_shard.removeprefix(LABEL)}{SPANS_SUFFIX}"
    columns = ["child_id", "url", "role", "start", "stop"]
    table = read_table(longpack.only(name) / name, ["id", *columns])
    ours = table.filter(pc.equal(table["id"], span.id)).select(columns)
    pages: list[Line] = ours.rename_columns(["id", *columns[1:]]).to_pylist()
    return pages


def _longpack(lake: Lake, packed: Published) -> Published | None:
    """The LongPack documents that were packed; None if there are none or they are gone."""
    with contextlib.suppress(LcError):
        for store in sources_of(lake, packed):
            for longpack in sources_of(lake, store):
                return longpack
    return None


def position_of(order: GlobalOrder, row: Span) -> int | None:
    """Position of a row in the order, or None when the order is not over its grid."""
    for number, source in enumerate(order.sources):
        if (source.snapshot, source.version) == (row.snapshot, row.published.version):
            sources, rows = np.asarray(order.source), np.asarray(order.row)
            return place_of(sources, rows, number, row.row)
    return None


def mixes_of(lake: Lake) -> Mixes:
    """The published mixes by name, with their descriptions."""
    return {
        name: (published, blended_mix.read_mix(published.only(blended_mix.MIX_FILE)))
        for name, published in lake.published("blended_mix").items()
    }


def samples_of(lake: Lake, mixes: Mixes, spans: Collection[Span]) -> dict[str, tuple[int, ...]]:
    """Numbers of the samples that take tokens of any of some spans, by mix, ascending; held-out
    rows are in none.
    """
    train = [span for span in spans if span.split == "train"]
    return {name: _samples_of_mix(lake, *mixes[name], train) for name in mixes} if train else {}


def _samples_of_mix(
    lake: Lake, published: Published, mix: blended_mix.Mix, spans: Sequence[Span]
) -> tuple[int, ...]:
    snapshots = {span.snapshot for span in spans}
    found: list[int] = []
    for number, source in enumerate(mix.sources):
        if not source.used or source.snapshot not in snapshots:
            continue
        rows = rows_behind(lake, lake.version_of(source.prefix))
        ours = [span for span in spans if span.published.home == rows.home]
        if not ours:
            continue
        prefix = published.only(f"{source.name}_*.npy") / source.name
        samples = samples_with(prefix, sorted({span.document for span in ours}))
        wanted = _with_tokens_of(prefix, samples[samples < source.used], ours)
        arrays = published.only("dataset_*.npy")
        datasets, numbers = (
            np.asarray(read_npy(arrays / f"{name}.npy"))
            for name in ("dataset_index", "dataset_sample_index")
        )
        if len(wanted) > SOUGHT_ONE_BY_ONE:
            found += places_of(datasets, numbers, number, wanted).tolist()
            continue
        places = (place_of(datasets, numbers, number, sample) for sample in wanted.tolist())
        found += [place for place in places if place is not None]
    return tuple(sorted(found))


def _with_tokens_of(prefix: Path, samples: Int64s, spans: Sequence[Span]) -> Int64s:
    """Those of the samples that take a token of a span, not only of another one in its row."""
    if not (spans[0].is_packed and holds_whole_rows(spans[0].published)):
        return samples  # each document is one span
    columns: dict[int, list[Span]] = {}
    index = read_gpt_index(prefix)
    for span in spans:
        columns.setdefault(span.document, []).append(span)
    return np.array(
        [
            sample
            for sample in samples.tolist()
            if any(
                start < span.row_stop and (stop is None or stop > span.row_start)
                for document, start, stop in cuts_of_sample(index, sample)
                for span in columns.get(document, ())
            )
        ],
        np.int64,
    )


def samples_with(prefix: Path, documents: ArrayLike) -> Int64s:
    """Numbers of the samples of a GPT index that contain at least one token of some documents,
    ascending; int64.

    Sample ``j`` in construction order covers ``sample_index[j]`` to ``sample_index[j + 1]``
    inclusive, each an index into ``document_index`` and an offset; ``shuffle_index`` maps numbers
    to ``j``.
    """
    index = read_gpt_index(prefix)
    places = np.flatnonzero(np.isin(index.document_index, documents))
    begins = np.ascontiguousarray(index.sample_index[:, 0])
    firsts = np.maximum(np.searchsorted(begins, places, "left") - 1, 0)
    lasts = np.minimum(np.searchsorted(begins, places, "right"), index.n_samples)
    # Add one where a document's samples begin and subtract one behind their last: samples above
    # zero contain a document.
    n_open = np.cumsum(
        np.bincount(firsts, minlength=index.n_samples + 1)
        - np.bincount(lasts, minlength=index.n_samples + 1)
    )
    return np.flatnonzero(n_open[np.asarray(index.shuffle_index)] > 0).astype(np.int64)
