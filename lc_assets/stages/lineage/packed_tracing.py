"""From a packed row and a column, or from a Megatron document made of packed rows, to the documents
in it.

A packed row is a sequence of spans of documents, then padding. Megatron documents made of packed
rows are either whole rows or single spans (docs/packing.md), so their columns are columns of a row.

Not here: rows of grids (`lc_assets.stages.lineage.tracing`), the other direction
(`lc_assets.stages.lineage.packed_whereabouts`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lc_assets.build.lookups import read_some
from lc_assets.errors import BadInput
from lc_assets.formats.packed_spans import FILES, PackedSpans
from lc_assets.lake.versions import Published
from lc_assets.stages.packing.packing_tables import PACKED_SPANS, SPANS_FILE
from lc_assets.vocabulary import SPLITS

COLUMNS = tuple(name for name in PACKED_SPANS.names if name not in {"split", "row"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Columns ``row_start`` to ``row_stop`` of a packed row and the tokens of one document in them;
    or padding.

    Attributes:
        packed: folder of the version.
        snapshot: of the version.
        split: ``train`` or ``heldout``.
        row: number of the row within the split.
        line: number of the span among the split's, without padding; -1 for padding.
        id: of the document; for LongPack, of its root; empty for padding.
        url: where it was crawled.
        digest: of its content.
        document_start: the span's first token in the document.
        row_start: first column.
        row_stop: column after the last.
        n_tokens: of the whole document, without the end-of-text token that may follow as token
            ``n_tokens``.
        token_shard: its shard of token ids; LongPack's start with ``longpack-``.
    """

    packed: Path
    snapshot: str
    split: str
    row: int
    line: int
    id: str
    url: str
    digest: str
    document_start: int
    row_start: int
    row_stop: int
    n_tokens: int
    token_shard: str

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
                f"column {column:,} of {self.split} row {self.row:,} is padding: no document "
                "stands there"
            )
        return self.document_start + column - self.row_start

    def tokens_in(self, start: int, stop: int) -> tuple[tuple[int, int], ...]:
        """The range of the document's tokens in columns ``start`` to ``stop``; none for padding."""
        first = self.document_start - self.row_start
        return ((first + start, first + stop),) if self.id else ()


def row_tokens_of(packed: Published) -> int:
    """Length of its rows."""
    return int(packed.receipt.fingerprint.params["row_tokens"])


def holds_whole_rows(packed: Published) -> bool:
    """Whether Megatron documents are whole rows, including padding, instead of single spans."""
    return bool(packed.receipt.fingerprint.params["megatron"] == "rows")


def spans_of(packed: Published, split: str) -> PackedSpans:
    """Where in each row which stretch ends.

    Raises:
        BadInput: when there is no such split.
    """
    if split not in SPLITS:
        raise BadInput(f"no split is called {split!r}: there are {' and '.join(SPLITS)}")
    return PackedSpans.map(packed.only(*(f"{split}_{name}.npy" for name in FILES)), split)


def stretches_of_row(packed: Published, split: str, row: int) -> list[Stretch]:
    """The spans of a row, from its first column to its last.

    Raises:
        BadInput: if there is no such split or row.
    """
    spans = spans_of(packed, split)
    if not 0 <= row < spans.n_rows:
        numbered = f"0 to {spans.n_rows - 1:,}" if spans.n_rows else "none"
        raise BadInput(f"no {split} row {row:,} in {packed.name}: it has {numbered}")
    found = stretches(packed, split, range(int(spans.first[row]), int(spans.first[row + 1])), spans)
    end, length = found[-1].row_stop, row_tokens_of(packed)
    return found if end == length else [*found, _padding(packed, split, row, end, length)]


def stretches(
    packed: Published, split: str, lines: Sequence[int], spans: PackedSpans | None = None
) -> list[Stretch]:
    """Some stretches of a split, by their numbers."""
    spans = spans_of(packed, split) if spans is None else spans
    before = sum(len(spans_of(packed, other).stop) for other in SPLITS[: SPLITS.index(split)])
    said = read_some(
        packed.only(SPANS_FILE) / SPANS_FILE, [before + line for line in lines], COLUMNS
    )
    rows = (np.searchsorted(spans.first, np.asarray(lines), "right") - 1).tolist()
    names = (
        "id",
        "url",
        "digest",
        "document_start",
        "row_start",
        "row_stop",
        "n_tokens",
        "token_shard",
    )
    return [
        Stretch(
            packed=packed.home,
            snapshot=packed.receipt.fingerprint.key,
            split=split,
            row=row,
            line=line,
            **{name: found[name] for name in names},
        )
        for line, row, found in zip(lines, rows, said, strict=True)
    ]


def stretches_of_document(
    packed: Published, document: int, start: int, stop: int
) -> list[tuple[Stretch, int, int]]:
    """The spans in columns ``start`` to ``stop`` of a Megatron document, with their columns in the
    row.
    """
    if not holds_whole_rows(packed):
        (found,) = stretches(packed, "train", [document])
        return [(found, found.row_start + start, found.row_start + stop)]
    row = stretches_of_row(packed, "train", document)
    return [
        (one, max(one.row_start, start), min(one.row_stop, stop))
        for one in row
        if max(one.row_start, start) < min(one.row_stop, stop)
    ]


def length_of_document(packed: Published, document: int) -> int:
    """Tokens of one of Megatron's documents."""
    if holds_whole_rows(packed):
        return row_tokens_of(packed)
    spans = spans_of(packed, "train")
    begins_row = bool(spans.first[np.searchsorted(spans.first, document)] == document)
    return int(spans.stop[document]) - (0 if begins_row else int(spans.stop[document - 1]))


def _padding(packed: Published, split: str, row: int, start: int, stop: int) -> Stretch:
    return Stretch(
        packed=packed.home,
        snapshot=packed.receipt.fingerprint.key,
        split=split,
        row=row,
        line=-1,
        id="",
        url="",
        digest="",
        document_start=0,
        row_start=start,
        row_stop=stop,
        n_tokens=0,
        token_shard="",
    )
