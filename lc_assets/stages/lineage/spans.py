"""Spans of rows: columns of a row that hold the tokens of one document, in grids and packed rows.

A row of a grid is one span: ``row_tokens`` tokens of one document, rolled to the right by
``shift``. A packed row is a sequence of spans, then padding. Megatron documents made of packed rows
are either whole rows or single spans (docs/packing.md).
"""

import itertools
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from lc_assets.builds.lookups import read_some
from lc_assets.builds.tables import SPANS_FILE
from lc_assets.errors import BadInput
from lc_assets.formats.arrays.order import require_split
from lc_assets.formats.packed_spans import FILES, PackedSpans
from lc_assets.lake.versions import Published
from lc_assets.records import record
from lc_assets.vocabulary import SPLITS


@record
class Span:
    """Columns ``row_start`` to ``row_stop`` of a row and the tokens of one document in them; or
    padding.

    Attributes:
        published: the version of the grid or of packed rows.
        split: ``train`` or ``heldout``.
        row: number of the row within the split.
        number: of the span among the split's, without padding; -1 for padding.
        row_start: first column.
        row_stop: column after the last.
        id: of the document; for LongPack, of its root; empty for padding.
        url: where it was crawled.
        digest: of its content.
        n_tokens: of the whole document, without the end-of-text token that may follow as token
            ``n_tokens`` in packed rows.
        document_start: the span's first token in the document.
        shift: how far the span was rolled to the right, in tokens.
        segment: of a grid, the crawl's file that contains the page.
        token_shard: of packed rows, the shard of token ids; LongPack's start with ``longpack-``.
    """

    published: Published
    split: str
    row: int
    number: int
    row_start: int
    row_stop: int
    id: str = ""
    url: str = ""
    digest: str = ""
    n_tokens: int = 0
    document_start: int = 0
    shift: int = 0
    segment: str = ""
    token_shard: str = ""

    @property
    def snapshot(self) -> str:
        """Of the version."""
        return self.published.key

    @property
    def is_packed(self) -> bool:
        """Whether it belongs to a packed row."""
        return self.published.stage == "packed_rows"

    @property
    def document(self) -> int:
        """Number of the Megatron document with its tokens."""
        return self.row if holds_whole_rows(self.published) else self.number

    @property
    def document_stop(self) -> int:
        """The token after the span's last in the document."""
        return self.document_start + self.row_stop - self.row_start

    def token_at(self, column: int) -> int:
        """Index in the document of the token in a column of the row.

        Raises:
            BadInput: if the column belongs to another document or to padding.
        """
        if not self.row_start <= column < self.row_stop:
            raise BadInput(
                f"no column {column:,} here: of row {self.row:,} these are columns "
                f"{self.row_start:,} to {self.row_stop - 1:,}"
            )
        if not self.id:
            raise BadInput(
                f"column {column:,} of {self.split} row {self.row:,} is padding, which no document "
                "has"
            )
        width = self.row_stop - self.row_start
        return self.document_start + (column - self.row_start - self.shift) % width

    def tokens_in(self, start: int, stop: int) -> tuple[tuple[int, int], ...]:
        """Ranges of the document's tokens in columns ``start`` to ``stop``: two where the span
        wraps around, none for padding.
        """
        if not self.id:
            return ()
        first = self.token_at(start)
        beyond = first + stop - start - self.document_stop
        if beyond <= 0:
            return ((first, first + stop - start),)
        return (first, self.document_stop), (self.document_start, self.document_start + beyond)


def holds_whole_rows(published: Published) -> bool:
    """Whether Megatron documents are whole rows, including padding, instead of single spans."""
    return bool(published.params.get("megatron", "rows") == "rows")


def row_tokens_of(rows: Published) -> int:
    """Length of the rows of a grid or of packed rows."""
    return int(rows.params["row_tokens"])


def span_of_row(grid: Published, line: Mapping[str, Any]) -> Span:
    """A row from its line of the grid's row table."""
    row_tokens = row_tokens_of(grid)
    return Span(
        published=grid,
        number=line["row"],
        row_start=0,
        row_stop=row_tokens,
        document_start=line["stretch"] * row_tokens,
        segment=line["cc_segment"],
        **{name: line[name] for name in ("split", "row", "id", "url", "digest", "shift")},
        n_tokens=line["n_tokens"],
    )


def packed_spans_of(packed: Published, split: str) -> PackedSpans:
    """Where in each row which span ends.

    Raises:
        BadInput: when there is no such split.
    """
    names = (f"{require_split(split)}_{name}.npy" for name in FILES)
    align = packed.params.get("align_tokens", 1)
    return PackedSpans.map(packed.only(*names), split, align)


def spans_of_packed_row(packed: Published, split: str, row: int) -> list[Span]:
    """The spans of a packed row; see `spans_of_packed_rows`."""
    return spans_of_packed_rows(packed, split, [row])[0]


def spans_of_packed_rows(packed: Published, split: str, rows: Sequence[int]) -> list[list[Span]]:
    """The spans of some packed rows, each row's from its first column to its last, and the padding
    behind them.

    Raises:
        BadInput: if there is no such split or row.
    """
    spans = packed_spans_of(packed, split)
    if strange := [row for row in rows if not 0 <= row < spans.n_rows]:
        raise no_row(packed, split, strange[0], spans.n_rows)
    before = _lines_before(packed, split)
    lines = [range(before + spans.first[row], before + spans.first[row + 1]) for row in rows]
    found = iter(packed_spans(packed, [line for own in lines for line in own]))
    return [_padded(list(itertools.islice(found, len(own)))) for own in lines]


def _padded(found: list[Span]) -> list[Span]:
    """All spans of a row, and the padding between and behind them."""
    packed, split, row = found[0].published, found[0].split, found[0].row
    nexts = [*(span.row_start for span in found[1:]), row_tokens_of(packed)]
    padding = partial(Span, published=packed, split=split, row=row, number=-1)
    padded = (
        (span, padding(row_start=span.row_stop, row_stop=begin))
        for span, begin in zip(found, nexts, strict=True)
    )
    return [span for both in padded for span in both if span.row_start < span.row_stop]


def packed_spans(packed: Published, lines: Sequence[int]) -> list[Span]:
    """Some spans of packed rows, by their lines in the table of spans."""
    columns = ("split", "row", "id", "url", "digest", "document_start", "row_start", "row_stop")
    found = read_some(
        packed.only(SPANS_FILE) / SPANS_FILE, lines, [*columns, "n_tokens", "token_shard"]
    )
    before = {split: _lines_before(packed, split) for split in SPLITS}
    return [
        Span(published=packed, number=number - before[line["split"]], **line)
        for number, line in zip(lines, found, strict=True)
    ]


def _lines_before(packed: Published, split: str) -> int:
    """Number of the lines of the splits before one, in the table of spans."""
    earlier = SPLITS[: SPLITS.index(split)]
    return sum(len(packed_spans_of(packed, other).stop) for other in earlier)


def no_row(rows: Published, split: str, row: int, n_rows: int) -> BadInput:
    """The error of a row that does not exist."""
    return BadInput(f"no {split} row {row:,} in {rows.name}: it has {numbered(n_rows)}")


def numbered(count: int) -> str:
    """Which numbers there are."""
    return f"0 to {count - 1:,}" if count else "none"
