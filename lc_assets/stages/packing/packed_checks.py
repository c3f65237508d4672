"""Checks of packed rows: nothing lost, nothing repeated, nothing overlapping, the same for every
reader.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import msgspec
import numpy as np
import pyarrow as pa

from lc_assets import arrow_compute as pc
from lc_assets.arrays import Array, Int64s
from lc_assets.builds.checks import by_chunk, evenly_spaced
from lc_assets.builds.settings.longpack import PackingSettings
from lc_assets.builds.stage import Check, CheckInput, CheckResult
from lc_assets.builds.tables import PACKED_SPANS, SPANS_FILE, read_schema, read_table
from lc_assets.formats.arrays.grid import GridReader
from lc_assets.formats.arrays.npy import read_npy
from lc_assets.formats.megatron.idx import idx_path
from lc_assets.formats.megatron.indexed import MegatronReader
from lc_assets.formats.packed_spans import PackedSpans
from lc_assets.packing.pieces import Pieces, aligned, covered_as_often, cut_documents
from lc_assets.packing.steps import row_costs
from lc_assets.stages.packing.packing_plans import UPSAMPLE, PackingDocuments, read_documents
from lc_assets.stages.packing.packing_writing import COST, gather_pieces
from lc_assets.stages.rows.token_grid import shared_nothing
from lc_assets.vocabulary import SPLITS

CHECKED_ROWS = 64
"""Rows of each split that are gathered again, from the grid and from Megatron's file; all of them
if there are fewer.
"""
SHOWN = 5


@dataclass
class _Rows:
    """The lines of ``spans.parquet`` of a version, the documents that they name, and what is wrong.

    Attributes:
        found: the version.
        values: what a check reports.
        wrong: what does not hold.
    """

    found: CheckInput
    values: dict[str, float] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)

    @cached_property
    def settings(self) -> PackingSettings:
        """By which they were packed."""
        return msgspec.convert(self.found.fingerprint.params | {"wanted": True}, PackingSettings)

    @cached_property
    def table(self) -> pa.Table:
        """All columns but addresses, with ``number``, the number of the document in the store; -1
        where there is no such document.
        """
        names = [name for name in PACKED_SPANS.names if name != "url"]
        table = read_table(self.found.folder / SPANS_FILE, names)
        counts = np.bincount(self.documents.shard, minlength=len(self.documents.shards))
        begins = np.append(np.cumsum(counts) - counts, -1)
        shards = pa.array(self.documents.shards, pa.string())
        shard = np.asarray(pc.fill_null(pc.index_in(table["token_shard"], shards), -1), np.int64)
        document = np.asarray(table["document"], np.int64)
        exists = (document >= 0) & (document < np.append(counts, 0)[shard])
        return table.append_column(
            "number", pa.array(np.where(exists, begins[shard] + document, -1))
        )

    @cached_property
    def documents(self) -> PackingDocuments:
        """The documents of the token store."""
        tokens, key = self.found.only_input("packing_tokens"), self.found.fingerprint.key
        return read_documents(tokens.folder, self.settings, self.found.inputs, key)

    @cached_property
    def pieces(self) -> Pieces:
        """The pieces, with the numbers of their documents."""
        names = ("number", "document_start", "document_stop")
        return Pieces(*(np.asarray(self.table[name], np.int64) for name in names))

    def of(self, split: str, *names: str) -> list[Int64s]:
        """Columns of one split."""
        lines = self.table.filter(pc.equal(self.table["split"], split))
        return [np.asarray(lines[name], np.int64) for name in names]

    def aligned(self, tokens: Int64s) -> Int64s:
        """Numbers of tokens, rounded up to where the next piece may begin."""
        return aligned(tokens, self.settings.align_tokens or 1)

    def require(self, holds: object, error: str) -> None:
        """Note an error unless something holds."""
        if not holds:
            self.wrong.append(error)

    def require_counted(self, **counted: int) -> None:
        """Compare numbers with the receipt's, and report them."""
        for name, n in counted.items():
            words = name.replace("_", " ")
            self.values[words] = n
            expected = self.found.counts.extra.get(words)
            self.require(expected == n, f"{words}: {n:,} found, the receipt has {expected}")


def _check(test: Callable[[_Rows], str]) -> Check:
    """A check, from a function that notes what is wrong and returns what it has looked at."""

    def check(check_input: CheckInput) -> CheckResult:
        rows = _Rows(check_input)
        looked_at = test(rows)
        return CheckResult(
            passed=not rows.wrong,
            message="; ".join(rows.wrong[:SHOWN]) or looked_at,
            values=rows.values,
        )

    check.__name__, check.__doc__ = test.__name__, test.__doc__
    return check


@_check
def every_token_is_packed_as_planned(rows: _Rows) -> str:
    """Every token, including end of text, is in as many pieces as its document is repeated: one,
    unless long documents are upsampled. The receipt's counts are the table's, and pieces name the
    documents that they are of.
    """
    pieces, lengths, number = rows.pieces, rows.documents.lengths, rows.pieces.document
    misnamed = number < 0
    if len(lengths):
        known = rows.documents.table.take(pa.array(np.maximum(number, 0)))
        for name in ("id", "digest", "tokenized_digest", "n_tokens"):
            misnamed |= ~np.asarray(pc.equal(known[name], rows.table[name]), np.bool_)
    n_misnamed = int(misnamed.sum())
    rows.require(not n_misnamed, f"{n_misnamed:,} pieces are not of the documents that they name")
    times = rows.documents.times
    rows.require(
        covered_as_often(pieces, lengths, times),
        "some tokens are in more or fewer pieces than their documents are taken",
    )
    rows.require_counted(
        tokens_in_rows=pieces.n_tokens,
        pieces=len(pieces),
        tokens_of_documents=int(lengths.sum()),
        tokens_left_over=int(lengths[times == 0].sum()),
    )
    n_taken, kept = int(((times > 0) | (lengths == 0)).sum()), rows.found.counts.kept
    rows.values["documents"] = n_taken
    rows.require(kept == n_taken, f"{n_taken:,} documents are taken, the receipt has {kept:,}")
    return (
        f"{pieces.n_tokens:,} tokens in {len(pieces):,} pieces of {n_taken:,} documents of "
        f"{len(lengths):,}"
    )


@_check
def rows_are_filled_from_the_left(rows: _Rows) -> str:
    """In each row pieces follow each other from token 0 on, no further than its end: padding is at
    its end only, or behind pieces as far as ``align_tokens`` states. Rows are counted from 0
    without a gap, pieces within a row too; arrays, spans and table agree.
    """
    row_tokens, folder, padding = rows.settings.row_tokens, rows.found.folder, 0
    schema = read_schema(folder / SPANS_FILE)
    rows.require(
        schema.equals(PACKED_SPANS),
        f"columns are {schema.names}, expected are {PACKED_SPANS.names}",
    )
    names = ("row", "piece", "number", "row_start", "row_stop", "document_start", "document_stop")
    for split in SPLITS:
        row, piece, number, begin, stop, start_of, stop_of = rows.of(split, *names)
        n_rows = GridReader(folder / f"{split}.zarr").n_rows
        steps = np.diff(row, prepend=-1)
        due = np.where(steps > 0, 0, np.concatenate([[0], rows.aligned(stop[:-1])]))
        arrays = PackedSpans.open(folder, split, row_tokens=row_tokens)
        for holds, error in (
            (
                set(np.unique(steps)) <= {0, 1} and row[-1:].sum() + len(row[:1]) == n_rows,
                f"rows of the table are not the array's {n_rows:,}",
            ),
            (
                (begin == due).all() and (stop > begin).all() and (stop <= row_tokens).all(),
                f"pieces overlap, leave gaps or reach beyond token {row_tokens:,}",
            ),
            (
                (stop - begin == stop_of - start_of).all(),
                "pieces are longer or shorter in their rows than in their documents",
            ),
            (
                np.array_equal(piece, np.arange(len(row)) - np.searchsorted(row, row)),
                "pieces are not counted from 0 in each row",
            ),
            (
                arrays.n_rows == n_rows
                and np.array_equal(arrays.stop, stop)
                and np.array_equal(arrays.document, number),
                "the spans for training are not the table's",
            ),
        ):
            rows.require(holds, f"{split}: {error}")
        rows.require_counted(**{f"{split}_rows": n_rows})
        padding += n_rows * row_tokens - int((stop - begin).sum())
    rows.require_counted(pieces=rows.table.num_rows, padding=padding)
    return f"{rows.table.num_rows:,} pieces, {padding:,} tokens of padding"


@_check
def spans_are_megatrons_documents(rows: _Rows) -> str:
    """Each split's ``.idx`` has a document per piece (or per row, depending on the settings), in
    the table's order and of the same length.
    """
    n_documents, kind = 0, rows.settings.megatron
    for split in SPLITS:
        row, begin, stop = rows.of(split, "row", "row_start", "row_stop")
        prefix, lengths = rows.found.folder / split, stop - begin
        if not len(lengths):
            rows.require(not idx_path(prefix).is_file(), f"{split}: files without pieces")
            continue
        if kind == "rows":
            lengths = np.full(len(np.unique(row)), rows.settings.row_tokens)
        data = MegatronReader(prefix)
        n_documents += len(data)
        rows.require(
            np.array_equal(data.lengths, lengths)
            and np.array_equal(data.document_indices, np.arange(len(lengths) + 1)),
            f"{split}: {len(data):,} documents of Megatron's, {len(lengths):,} {kind}, or of other "
            "lengths",
        )
    rows.values["documents"] = n_documents
    return f"{n_documents:,} documents, as long as the {kind}, in their order"


@_check
def rows_hold_their_pieces(rows: _Rows) -> str:
    """Rows read back from the arrays, and the same pieces from Megatron's files, are the documents'
    tokens: all rows, or an even 64.
    """
    store, whole = rows.found.only_input("packing_tokens"), rows.settings.megatron == "rows"
    eot, n_checked = store.params["eot"], 0
    tokens = store.folder
    for split in SPLITS:
        reader = GridReader(rows.found.folder / f"{split}.zarr")
        chosen = evenly_spaced(reader.n_rows, CHECKED_ROWS)
        lines = rows.table.filter(pc.equal(rows.table["split"], split))
        first = np.searchsorted(np.asarray(lines["row"]), np.arange(reader.n_rows + 1))
        for close in by_chunk(chosen, reader.chunk_shape[0]):
            data = MegatronReader(rows.found.folder / split)
            block = reader.read(slice(close[0], close[-1] + 1))
            for row in close:
                plan = lines.slice(int(first[row]), int(first[row + 1] - first[row]))
                right = np.full(reader.row_tokens, int(reader.attributes["pad"]), block.dtype)
                places = np.asarray(plan["row_start"], np.int64)
                gather_pieces(plan, tokens, right, places, eot=eot)
                parts = [data[row]] if whole else data[int(first[row]) : int(first[row + 1])]
                own: Array = np.concatenate(parts)
                rows.require(
                    len(own) >= int(plan["row_stop"][-1].as_py())
                    and np.array_equal(own, right[: len(own)])
                    and np.array_equal(block[row - close[0]], right),
                    f"{split} row {row} holds other tokens than its documents",
                )
        n_checked += len(chosen)
    rows.values["rows checked"] = n_checked
    return f"{n_checked:,} rows gathered again, token by token"


@_check
def rows_are_as_the_method_makes_them(rows: _Rows) -> str:
    """Best fit cuts no document or group that fits into a row; concatenated rows are full but for
    the last; segments have at most their maximum length; with ``segment``, those of one document
    are in different rows. Costs of rows are those of their pieces.
    """
    settings, pieces, lengths = rows.settings, rows.pieces, rows.documents.lengths
    method, row_tokens, longest = settings.method, settings.row_tokens, settings.segment_tokens
    grouped = settings.order_by or settings.similar is not None
    if (pieces.document < 0).any():
        rows.wrong.append("some pieces are of no document")
    elif method == "bestfit" and not grouped:
        cut = cut_documents(pieces, lengths) & (lengths <= row_tokens)
        rows.require(not cut.any(), "a document is cut that a row holds")
    if method in ("segment", "reorder"):
        most = int(pieces.lengths.max(initial=0))
        rows.require(
            most <= longest, f"a segment has {most:,} tokens, expected {longest:,} at most"
        )
    for split in SPLITS:
        row, stop, number = rows.of(split, "row", "row_stop", "number")
        ends = rows.aligned(stop[np.diff(row, append=row[-1:] + 1) > 0])
        n_short = int((ends < row_tokens).sum())
        if method in ("concat", "reorder", UPSAMPLE):
            rows.require(n_short <= 1, f"{split}: {n_short:,} rows are not full")
        if settings.equal_steps:
            costs = read_npy(rows.found.folder / f"{split}_{COST}.npy", row_of=np.dtype("<i8"))
            lengths, n_rows = stop - rows.of(split, "row_start")[0], len(np.unique(row))
            right = row_costs(row, rows.aligned(lengths), n_rows=n_rows, row_tokens=row_tokens)
            rows.require(np.array_equal(costs, right), f"{split}: the rows' costs are others")
        if method == "segment":
            pairs = np.unique(np.stack([row, number]), axis=1)
            rows.require(
                pairs.shape[1] == len(row), f"{split}: a row holds two segments of one document"
            )
    rows.values["pieces"] = len(pieces)
    return f"{method}: {len(pieces):,} pieces are as it promises"


def packed_train_and_heldout_share_nothing(check_input: CheckInput) -> CheckResult:
    """No document and no text, by its digest, has pieces in rows of both splits."""
    table = check_input.folder / SPANS_FILE
    return shared_nothing([table])
