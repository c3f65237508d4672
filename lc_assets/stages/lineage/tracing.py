"""From a row, a position or a sample back to its documents upstream. The other direction is
`lc_assets.stages.lineage.whereabouts`.

Traces follow versions, not names: an order or mix made from an older grid is traced through that
grid, which its receipt names. Nothing is built or written; memory is bounded by one order and one
GPT index, both memory-mapped, and by the rows found.
"""

from collections.abc import Iterator, Sequence

from lc_assets.builds.lookups import read_some
from lc_assets.errors import BadInput, CorruptFile
from lc_assets.formats.arrays.npy import read_npy
from lc_assets.formats.arrays.order import GlobalOrder, require_split
from lc_assets.formats.megatron.gpt_index import read_gpt_index
from lc_assets.lake.lake import Lake
from lc_assets.lake.located import located
from lc_assets.lake.versions import Published
from lc_assets.mixing.gpt_index import GptIndex
from lc_assets.records import record
from lc_assets.stages.lineage import row_lineage
from lc_assets.stages.lineage.spans import (
    Span,
    holds_whole_rows,
    no_row,
    numbered,
    packed_spans,
    span_of_row,
    spans_of_packed_rows,
)
from lc_assets.stages.mixes import blended_mix
from lc_assets.vocabulary import SPLITS

READ_THROUGH = {
    "longcrawl_flat": "longcrawl",
    "megatron_rows": "token_grid",
    "row_lineage": "token_grid",
    "packed_rows": "packing_tokens",
    "length_buckets": "clean_documents",
}
"""Stage → the input that records the origin of its rows or documents."""


@record
class Piece:
    """Columns ``start`` to ``stop`` of a row, within one span: what a sample takes of it."""

    span: Span
    start: int
    stop: int


@record
class Sample:
    """One sample of a mix.

    Attributes:
        mix: the mix's name.
        sample: its number in the mix.
        source: its source's name: a snapshot; for packed rows, ``packed_rows/`` and the snapshot.
        source_sample: its number in that source's GPT index.
        pieces: its parts, in order; the last token of all is a target only.
    """

    mix: str
    sample: int
    source: str
    source_sample: int
    pieces: tuple[Piece, ...]

    def column_of(self, position: int) -> tuple[Piece, int]:
        """The piece that contains a position of the sample, and the column of its row.

        Raises:
            BadInput: if the sample has no such position.
        """
        left = position
        for piece in self.pieces if position >= 0 else ():
            if left < piece.stop - piece.start:
                return piece, piece.start + left
            left -= piece.stop - piece.start
        n_tokens = sum(piece.stop - piece.start for piece in self.pieces)
        raise BadInput(
            f"no position {position:,} in sample {self.sample:,}: it has {numbered(n_tokens)}, "
            "the last a target only"
        )


def sources_of(lake: Lake, published: Published) -> list[Published]:
    """The versions through which a version is read or traced: an order's grids, a mix's Megatron
    files, the grid that these were copied from.

    Raises:
        NotPublished: if one of them is gone.
    """
    stage = published.stage
    if stage == "longcrawl":
        order = GlobalOrder.open(published.only("*.json", "train_*.npy"), "train", pass_over=False)
        return [
            lake.partition("token_grid", source.snapshot).at(source.version)
            for source in order.sources
        ]
    if stage == "blended_mix":
        sources = blended_mix.read_mix(published.only(blended_mix.MIX_FILE)).sources
        return [lake.version_of(source.prefix) for source in sources if source.used]
    if stage == "packing_tokens":
        packed = f"longpack_documents/{published.key}"
        wanted = "longpack_documents" if packed in published.receipt.fingerprint.inputs else None
    else:
        wanted = READ_THROUGH.get(stage)
    return [lake.require_input(published, wanted)] if wanted else []


def rows_behind(lake: Lake, megatron: Published) -> Published:
    """The grid that Megatron rows were copied from; packed rows have Megatron files of their own.

    Raises:
        NotPublished: if that version is gone.
    """
    is_copy = megatron.stage == "megatron_rows"
    return lake.require_input(megatron, "token_grid") if is_copy else megatron


def find_row(lake: Lake, grid: Published, split: str, row: int) -> Span:
    """One row of a grid; see `find_rows`."""
    return find_rows(lake, grid, split, [row])[0]


def find_rows(lake: Lake, grid: Published, split: str, rows: Sequence[int]) -> list[Span]:
    """Some rows of a grid, by its index where it has one: a millisecond instead of fifty.

    Raises:
        BadInput: when there is no such split or row.
    """
    require_split(split)
    counts = grid.counts.extra
    n_rows = {name: counts.get(f"{name} rows", 0) for name in SPLITS}
    if strange := [row for row in rows if not 0 <= row < n_rows[split]]:
        raise no_row(grid, split, strange[0], n_rows[split])
    before = sum(n_rows[name] for name in SPLITS[: SPLITS.index(split)])
    table = row_lineage.rows_of(lake, grid).path
    lines = read_some(table, [before + row for row in rows], row_lineage.RECORDS)
    return [span_of_row(grid, line) for line in lines]


def row_of_order(lake: Lake, split: str, position: int) -> Span:
    """The row at a position of the global order.

    Raises:
        NotPublished: if there is no global order, or its grid is no longer in the lake.
        BadInput: if there is no such split or position.
    """
    return _row_in_order(lake, lake.partition("longcrawl").require(), split, position)


def rows_of_array(array: str, rows: Sequence[int]) -> tuple[Lake, list[list[Span]]] | None:
    """The spans of some rows of a published ``train.zarr`` or ``heldout.zarr`` of a grid, of packed
    rows or of the flat copy, by the array's path or URL, and the lake; None for any other array.

    Raises:
        NotPublished: if the array's sources are no longer in its lake.
        BadInput: if there is no such row.
    """
    folder, _, name = array.rpartition("/")
    split, found = name.removesuffix(".zarr"), located(folder)
    if split not in SPLITS or found is None or not found.version:
        return None
    lake, published = found.lake, found.published
    if found.stage == "packed_rows":
        return lake, spans_of_packed_rows(published, split, rows)
    if found.stage == "token_grid":
        return lake, [[span] for span in find_rows(lake, published, split, rows)]
    order = lake.require_input(published, "longcrawl")
    return lake, [[_row_in_order(lake, order, split, row)] for row in rows]


def _row_in_order(lake: Lake, published: Published, split: str, position: int) -> Span:
    order = GlobalOrder.open(
        published.only("sources.json", f"{require_split(split)}_*.npy"), split, pass_over=False
    )
    if not 0 <= position < len(order):
        raise BadInput(
            f"no {split} row {position:,} in the global order: it has {numbered(len(order))}"
        )
    number = int(order.source[position])
    if number >= len(order.sources):
        raise CorruptFile(
            f"{published.home}: position {position:,} names source {number:,} of "
            f"{len(order.sources):,}"
        )
    source = order.sources[number]
    grid = lake.partition("token_grid", source.snapshot).at(source.version)
    return find_row(lake, grid, split, int(order.row[position]))


def sample_of_mix(lake: Lake, mix: str, sample: int) -> Sample:
    """The pieces of one sample of a mix.

    Raises:
        NotPublished: if there is no such mix, or its sources are no longer in the lake.
        BadInput: if there is no such sample.
    """
    published = lake.partition("blended_mix", mix).require()
    described = blended_mix.read_mix(published.only(blended_mix.MIX_FILE))
    if not 0 <= sample < described.n_samples:
        raise BadInput(
            f"no sample {sample:,} in {published.name}: it has {numbered(described.n_samples)}"
        )
    arrays = published.only("dataset_*.npy")
    source = described.sources[int(read_npy(arrays / "dataset_index.npy")[sample])]
    number = int(read_npy(arrays / "dataset_sample_index.npy")[sample])
    rows = rows_behind(lake, lake.version_of(source.prefix))
    index = read_gpt_index(published.only(f"{source.name}_*.npy") / source.name)
    cuts = cuts_of_sample(index, number)
    spans = spans_of_documents(lake, rows, [document for document, *_ in cuts])
    pieces = tuple(
        piece
        for document, start, stop in cuts
        for piece in pieces_between(spans[document], start, stop)
    )
    return Sample(mix=mix, sample=sample, source=source.name, source_sample=number, pieces=pieces)


def spans_of_documents(
    lake: Lake, rows: Published, documents: Sequence[int]
) -> dict[int, list[Span]]:
    """The spans of some Megatron documents of training rows, by document.

    Raises:
        BadInput: when there is no such row.
    """
    if rows.stage == "token_grid":
        found = [[span] for span in find_rows(lake, rows, "train", documents)]
    elif holds_whole_rows(rows):
        found = spans_of_packed_rows(rows, "train", documents)
    else:
        found = [[span] for span in packed_spans(rows, documents)]
    return dict(zip(documents, found, strict=True))


def pieces_between(spans: Sequence[Span], start: int, stop: int | None) -> Iterator[Piece]:
    """The spans in columns ``start`` to ``stop`` of a Megatron document; None means its end."""
    first = spans[0].row_start
    end = spans[-1].row_stop if stop is None else first + stop
    for span in spans:
        begins, ends = max(span.row_start, first + start), min(span.row_stop, end)
        if begins < ends:
            yield Piece(span=span, start=begins, stop=ends)


def cuts_of_sample(index: GptIndex, number: int) -> list[tuple[int, int, int | None]]:
    """What one sample of a GPT index takes, its extra target token included: Megatron documents,
    of each the first column and the column after the last; None means the document's end.
    """
    built = int(index.shuffle_index[number])
    (first, offset), (last, end) = index.sample_index[built : built + 2].tolist()
    return [
        (
            int(index.document_index[place]),
            offset if place == first else 0,
            end + 1 if place == last else None,
        )
        for place in range(first, last + 1)
    ]
