"""From a row, a position or a sample back to its document upstream. The other direction is
`lc_assets.stages.lineage.whereabouts`.

Traces follow versions, not names: an order or mix made from an older grid is traced through that
grid, which its receipt names. Nothing is built or written; memory is bounded by one order and one
GPT index, both memory-mapped, and by the rows found.

A row holds one stretch of ``row_tokens`` tokens of its document, usually the first, rolled to the
right by ``shift``: column ``c`` holds token ``(c - shift) mod row_tokens`` of the stretch.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from lc_assets.errors import BadInput, CorruptFile, NotPublished
from lc_assets.foreign_errors import library_errors_as_corrupt_file
from lc_assets.formats.arrays.npy import read_npy
from lc_assets.formats.arrays.order import GlobalOrder, require_split
from lc_assets.formats.megatron.gpt_index import read_gpt_index
from lc_assets.lake.lake import GLOBAL, Lake
from lc_assets.lake.located import located
from lc_assets.lake.versions import Published
from lc_assets.stages.lineage.packed_tracing import (
    Stretch,
    length_of_document,
    stretches_of_document,
)
from lc_assets.stages.lineage.row_lineage import row_index
from lc_assets.stages.mixes.blended_mix import MIX_FILE, read_mix
from lc_assets.stages.rows.token_grid import ROWS_FILE
from lc_assets.vocabulary import SPLITS, Shard, parse_document_id


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row of a grid and the document it was cut from.

    Attributes:
        grid: folder of the grid's version.
        snapshot: of the grid.
        split: ``train`` or ``heldout``.
        row: its number within the split.
        id: of the document: snapshot, shard, file and line upstream.
        url: where the document was crawled.
        digest: of its content, as published by RedPajama-V2.
        segment: the crawl's file that contains the page.
        stretch: which stretch of the document it is, from 0.
        shift: how far it was rolled to the right, in tokens.
        row_tokens: length of the row.
        n_tokens: length of the whole document.
    """

    grid: Path
    snapshot: str
    split: str
    row: int
    id: str
    url: str
    digest: str
    shift: int
    row_tokens: int
    n_tokens: int
    stretch: int = 0
    segment: str = ""

    @property
    def shard(self) -> Shard:
        """The document's shard upstream."""
        return parse_document_id(self.id)[0]

    @property
    def line(self) -> int | str:
        """0-based line of the document in its shard's file, or the record's own id."""
        return parse_document_id(self.id)[1]

    @property
    def first_token(self) -> int:
        """Which token of the document the row's stretch begins with."""
        return self.stretch * self.row_tokens

    def token_at(self, column: int) -> int:
        """Index in the document of the token in ``column``.

        Raises:
            BadInput: if the row has no such column.
        """
        if not 0 <= column < self.row_tokens:
            raise BadInput(f"no column {column:,}: rows have columns 0 to {self.row_tokens - 1:,}")
        return self.first_token + (column - self.shift) % self.row_tokens

    def tokens_in(self, start: int, stop: int) -> tuple[tuple[int, int], ...]:
        """Ranges of the document's tokens in columns ``start`` to ``stop``; two where the row wraps
        around.
        """
        first, end = self.token_at(start), self.first_token + self.row_tokens
        n_columns = stop - start
        if first + n_columns <= end:
            return ((first, first + n_columns),)
        return (first, end), (self.first_token, self.first_token + n_columns - (end - first))


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Columns ``start`` to ``stop`` of a row: what one sample takes of it; of a packed row those of
    one stretch of it.
    """

    row: Row | Stretch
    start: int
    stop: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One sample of a mix.

    Attributes:
        mix: the mix's name.
        sample: its number in the mix.
        snapshot: the source it comes from; for packed rows, ``packed_rows/`` and the snapshot.
        source_sample: its number in that source's GPT index.
        pieces: its parts, in order; the last token of all is a target only.
    """

    mix: str
    sample: int
    snapshot: str
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
            f"no position {position:,} in sample {self.sample:,}: it has {_numbered(n_tokens)}, "
            "the last a target only"
        )


def row_of_grid(grid: Published, split: str, row: int) -> Row:
    """One row of a grid, by a search in its row table.

    Raises:
        BadInput: when there is no such split or row.
    """
    require_split(split)
    found = rows_where(grid, (pc.field("split") == split) & (pc.field("row") == row))
    if not found:
        raise _no_row(grid, split, row)
    return found[0]


def find_row(lake: Lake, grid: Published, split: str, row: int) -> Row:
    """One row of a grid, by its index where it has one: a millisecond instead of fifty.

    Raises:
        BadInput: when there is no such split or row.
    """
    index = row_index(lake, grid)
    if index is None:
        return row_of_grid(grid, split, row)
    line = index.row(require_split(split), row)
    if line is None:
        raise _no_row(grid, split, row)
    return row_from(grid, line)


def _no_row(grid: Published, split: str, row: int) -> BadInput:
    n_rows = grid.receipt.counts.extra.get(f"{split} rows", 0)
    return BadInput(f"no {split} row {row:,} in {grid.name}: it has {_numbered(n_rows)}")


def row_of_order(lake: Lake, split: str, position: int) -> Row:
    """The row at a position of the global order.

    Raises:
        NotPublished: if there is no global order, or its grid is no longer in the lake.
        BadInput: if there is no such split or position.
    """
    return _row_in_order(lake, lake.partition("longcrawl").require(), split, position)


def row_of_array(array: str, position: int) -> Row | None:
    """The row of a published ``train.zarr`` or ``heldout.zarr`` of a grid or of the flat copy, by
    the array's path or URL; None for any other array.

    Raises:
        NotPublished: if the array's sources are no longer in its lake.
        BadInput: if there is no such row.
    """
    folder, _, name = array.rpartition("/")
    split, found = name.removesuffix(".zarr"), located(folder)
    if split not in SPLITS or found is None or not found.version:
        return None
    if found.stage == "token_grid":
        return find_row(found.lake, found.published, split, position)
    return _row_in_order(found.lake, order_behind(found.lake, found.published), split, position)


def _row_in_order(lake: Lake, published: Published, split: str, position: int) -> Row:
    order = GlobalOrder.open(
        published.only("sources.json", f"{require_split(split)}_*.npy"), split, pass_over=False
    )
    if not 0 <= position < len(order):
        raise BadInput(
            f"no {split} row {position:,} in the global order: it has {_numbered(len(order))}"
        )
    number = int(order.source[position])
    if number >= len(order.sources):
        raise CorruptFile(
            f"{published.home}: position {position:,} names source {number:,} of "
            f"{len(order.sources):,}"
        )
    source = order.sources[number]
    return find_row(
        lake,
        lake.partition("token_grid", source.snapshot).at(source.version),
        split,
        int(order.row[position]),
    )


def sample_of_mix(lake: Lake, mix: str, sample: int) -> Sample:
    """The pieces of one sample of a mix.

    Raises:
        NotPublished: if there is no such mix, or its sources are no longer in the lake.
        BadInput: if there is no such sample.
    """
    published = lake.partition("blended_mix", mix).require()
    described = read_mix(published.only(MIX_FILE))
    if not 0 <= sample < described.n_samples:
        raise BadInput(
            f"no sample {sample:,} in {published.name}: it has {_numbered(described.n_samples)}"
        )
    arrays = published.only("dataset_*.npy")
    source = described.sources[int(read_npy(arrays / "dataset_index.npy")[sample])]
    number = int(read_npy(arrays / "dataset_sample_index.npy")[sample])
    cut_from = lake.version_of(source.prefix)
    cuts = spans_of_sample(published.only(f"{source.name}_*.npy") / source.name, number)
    pieces = (
        _of_packed(cut_from, cuts)
        if source.name != source.snapshot
        else _of_grid(lake, grid_behind(lake, cut_from), cuts)
    )
    return Sample(
        mix=mix, sample=sample, snapshot=source.name, source_sample=number, pieces=tuple(pieces)
    )


Cut = tuple[int, int, int | None]
"""A Megatron document, the first column that a sample takes of it, and the column after the last;
None means the document's end.
"""


def _of_grid(lake: Lake, grid: Published, cuts: Sequence[Cut]) -> Iterator[Piece]:
    for row, start, stop in cuts:
        yield Piece(
            row=find_row(lake, grid, "train", row),
            start=start,
            stop=_row_tokens(grid) if stop is None else stop,
        )


def _of_packed(packed: Published, cuts: Sequence[Cut]) -> Iterator[Piece]:
    for document, start, stop in cuts:
        end = length_of_document(packed, document) if stop is None else stop
        found = stretches_of_document(packed, document, start, end)
        yield from (Piece(row=stretch, start=first, stop=last) for stretch, first, last in found)


def spans_of_sample(prefix: Path, number: int) -> list[Cut]:
    """What one sample of a GPT index takes of which documents, its extra target token included."""
    index = read_gpt_index(prefix)
    built = int(index.shuffle_index[number])
    (first, offset), (last, end) = (
        index.sample_index[built].tolist(),
        index.sample_index[built + 1].tolist(),
    )
    places = range(first, last + 1)
    return [
        (
            int(index.document_index[place]),
            offset if place == first else 0,
            end + 1 if place == last else None,
        )
        for place in places
    ]


def grid_behind(lake: Lake, megatron: Published) -> Published:
    """The grid that Megatron rows were copied from.

    Raises:
        NotPublished: if that version is gone.
    """
    name = f"token_grid/{megatron.receipt.fingerprint.key}"
    grid = lake.partition(*name.split("/")).with_digest(megatron.receipt.fingerprint.inputs[name])
    if grid is None:
        raise NotPublished(f"{megatron.home}: the grid it was made from is gone from the lake")
    return grid


def order_behind(lake: Lake, flat: Published) -> Published:
    """The order that flat arrays were copied by.

    Raises:
        NotPublished: if that version is gone.
    """
    order = lake.partition("longcrawl").with_digest(
        flat.receipt.fingerprint.inputs.get(f"longcrawl/{GLOBAL}", "")
    )
    if order is None:
        raise NotPublished(f"{flat.home}: the global order it was copied by is gone from the lake")
    return order


def _row_tokens(grid: Published) -> int:
    return int(grid.receipt.fingerprint.params["row_tokens"])


def rows_where(grid: Published, condition: Any) -> list[Row]:
    """Rows of a grid that fulfil an Arrow expression over the columns of its row table."""
    return [
        row_from(grid, line) for line in lines_where(grid.only(ROWS_FILE) / ROWS_FILE, condition)
    ]


def row_from(grid: Published, line: Mapping[str, Any]) -> Row:
    """A row from its line of the grid's row table."""
    names = ("split", "row", "id", "url", "digest", "stretch", "shift", "n_tokens")
    return Row(
        grid=grid.home,
        snapshot=grid.receipt.fingerprint.key,
        row_tokens=_row_tokens(grid),
        segment=line["cc_segment"],
        **{name: line[name] for name in names},
    )


def lines_where(path: Path, condition: Any) -> list[dict[str, Any]]:
    """Lines of a table that fulfil an Arrow expression.

    Raises:
        CorruptFile: when it is not readable; names the file.
    """
    # Brings pandas along, a second that the code location need not pay.
    import pyarrow.dataset

    with library_errors_as_corrupt_file(path, system_errors_too=True):
        lines: list[dict[str, Any]] = (
            pyarrow.dataset.dataset(path, format="parquet").to_table(filter=condition).to_pylist()
        )
    return lines


def _numbered(count: int) -> str:
    return f"0 to {count - 1:,}" if count else "none"
