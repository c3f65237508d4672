"""What must hold of packed rows: nothing lost, nothing twice, nothing overlapping, the same for
every reader.

Here: tests of what was written. Not here: writing it (`lc_assets.stages.packing.packing_writing`).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Self

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lc_assets.build.checks import by_chunk, evenly_spaced
from lc_assets.build.settings.longpack import PackingSettings
from lc_assets.build.stage import (
    CheckInput,
    CheckResult,
)
from lc_assets.build.tables import read_schema, read_table
from lc_assets.formats.arrays.grid import GridReader
from lc_assets.formats.megatron.idx import idx_path
from lc_assets.formats.megatron.indexed import MegatronReader
from lc_assets.formats.packed_spans import PackedSpans
from lc_assets.packing.pieces import Pieces, covered_as_often, cut_documents
from lc_assets.stages.packing.packing_documents import PackingDocuments, read_documents
from lc_assets.stages.packing.packing_gathering import gather_pieces
from lc_assets.stages.packing.packing_plans import (
    UPSAMPLE,
    ended_lengths,
    held_out,
    source_of,
    taken,
)
from lc_assets.stages.packing.packing_tables import PACKED_SPANS, SPANS_FILE
from lc_assets.vocabulary import SPLITS

CHECKED_ROWS: Final = 64
"""Rows of each split that the audit gathers anew, from the grid and from Megatron's file: all of
them when there are fewer.
"""


@dataclass(frozen=True)
class Spans:
    """The lines of ``spans.parquet``, and the documents that they are said to be of.

    Attributes:
        folder: of the packed rows.
        store: of the token ids that they were made from.
        settings: by which they were packed.
    """

    folder: Path
    store: Path
    settings: PackingSettings

    @classmethod
    def of_evidence(cls, check_input: CheckInput) -> Self:
        """The lines of the version that is looked at."""
        settings = msgspec.convert(check_input.fingerprint.params, PackingSettings)
        return cls(
            folder=check_input.folder,
            store=check_input.only_input("packing_tokens").folder,
            settings=settings,
        )

    @cached_property
    def table(self) -> pa.Table:
        """All but addresses, which no claim looks at."""
        return read_table(
            self.folder / SPANS_FILE, [name for name in PACKED_SPANS.names if name != "url"]
        )

    @cached_property
    def documents(self) -> PackingDocuments:
        """The documents of the store."""
        return read_documents(self.store, source=source_of(self.settings))

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        """Tokens of each document, ended."""
        return ended_lengths(self.documents, self.settings)

    @cached_property
    def pieces(self) -> Pieces:
        """The pieces, their documents numbered as in the store; -1 where there is no such
        document.
        """
        counts = np.bincount(self.documents.shard, minlength=len(self.documents.shards))
        shards = pa.array(self.documents.shards, pa.string())
        shard = np.asarray(
            pc.fill_null(pc.index_in(self.table["token_shard"], shards), -1), np.int64
        )
        document, start, stop = (
            np.asarray(self.table[name], np.int64)
            for name in ("document", "document_start", "document_stop")
        )
        if not len(counts):
            return Pieces(np.full(len(document), -1), start, stop)
        there = (shard >= 0) & (document >= 0) & (document < counts[shard])
        return Pieces(
            np.where(there, (np.cumsum(counts) - counts)[shard] + document, -1), start, stop
        )

    def misnamed(self) -> int:
        """Pieces whose document is another one's, or has another length, by the store."""
        number = self.pieces.document
        known = (
            self.documents.table.take(pa.array(np.maximum(number, 0)))
            if len(self.lengths)
            else self.documents.table
        )
        if known.num_rows != len(number):
            return len(number)
        same = [
            np.asarray(pc.equal(known[name], self.table[name]), np.bool_)
            for name in ("id", "digest", "n_tokens")
        ]
        return int((~np.logical_and.reduce(same) | (number < 0)).sum())

    def of(self, split: str) -> pa.Table:
        """The lines of one split, with the numbers of their documents."""
        table = self.table.append_column("number", pa.array(self.pieces.document))
        return table.filter(pc.equal(table["split"], split))


def every_token_is_packed_as_often_as_asked(check_input: CheckInput) -> CheckResult:
    """Every token is in exactly as many pieces as its document was to be taken: one, but where long
    ones are upsampled; end of text too.

    The receipt's counts are the table's, and pieces name the documents that they are of.
    """
    spans, extra, wrong = Spans.of_evidence(check_input), check_input.counts.extra, list[str]()
    pieces, lengths = spans.pieces, spans.lengths
    if misnamed := spans.misnamed():
        wrong.append(f"{misnamed:,} pieces are not of the documents that they name")
    times = taken(spans.documents, spans.settings, held_out(spans.documents, spans.settings))
    if not covered_as_often(pieces, lengths, times):
        wrong.append(
            "some tokens are in more or fewer pieces than their documents were to be taken"
        )
    left = int(lengths[times == 0].sum())
    said = {
        "tokens in rows": pieces.n_tokens,
        "pieces": len(pieces),
        "tokens of documents": int(lengths.sum()),
        "tokens left over": left,
    }
    wrong += [
        f"{name}: {found:,} found, the receipt says {extra.get(name, -1):,}"
        for name, found in said.items()
        if extra.get(name) != found
    ]
    n_taken = int(((times > 0) | (lengths == 0)).sum())
    if check_input.counts.kept != n_taken:
        wrong.append(
            f"{n_taken:,} of {len(lengths):,} documents are taken, the receipt says "
            f"{check_input.counts.kept:,}"
        )
    return CheckResult(
        check="every_token_is_packed_as_often_as_asked",
        passed=not wrong,
        message="; ".join(wrong)
        or (
            f"{pieces.n_tokens:,} tokens in {len(pieces):,} pieces of {n_taken:,} documents of "
            f"{len(lengths):,}"
        ),
        values={"tokens in rows": pieces.n_tokens, "documents": n_taken},
    )


def rows_are_filled_from_the_left(check_input: CheckInput) -> CheckResult:
    """In each row pieces stand one behind the other from token 0 on, no further than its end:
    padding is at its end only.

    Rows are counted from 0 without a gap, pieces within a row too; arrays, spans and table say the
    same.
    """
    spans, row_tokens, wrong = (
        Spans.of_evidence(check_input),
        int(check_input.fingerprint.params["row_tokens"]),
        list[str](),
    )
    if not (schema := read_schema(check_input.folder / SPANS_FILE)).equals(PACKED_SPANS):
        wrong.append(f"columns are {schema.names}, promised are {PACKED_SPANS.names}")
    used = 0
    for split in SPLITS:
        lines = spans.of(split)
        row, piece, begin, stop = (
            np.asarray(lines[name], np.int64) for name in ("row", "piece", "row_start", "row_stop")
        )
        n_rows = GridReader(check_input.folder / f"{split}.zarr").n_rows
        arrays = PackedSpans.open(check_input.folder, split, row_tokens=row_tokens)
        new = np.diff(row, prepend=-1) == 1
        previous = np.concatenate([[0], stop[:-1]])
        if not np.array_equal(np.unique(row), np.arange(n_rows)) or (np.diff(row) < 0).any():
            wrong.append(f"{split}: rows of the table are not the array's {n_rows:,}")
        if (
            (begin != np.where(new, 0, previous)).any()
            or (stop <= begin).any()
            or (len(stop) and int(stop.max()) > row_tokens)
        ):
            wrong.append(
                f"{split}: pieces overlap, leave gaps or reach behind token {row_tokens:,}"
            )
        if (
            stop - begin != np.asarray(lines["document_stop"]) - np.asarray(lines["document_start"])
        ).any():
            wrong.append(
                f"{split}: pieces are longer or shorter in their rows than in their documents"
            )
        if not np.array_equal(piece, np.arange(len(row)) - np.searchsorted(row, row)):
            wrong.append(f"{split}: pieces are not counted from 0 in each row")
        same = np.array_equal(arrays.stop, stop) and np.array_equal(
            arrays.document, np.asarray(lines["number"])
        )
        if arrays.n_rows != n_rows or not same:
            wrong.append(f"{split}: the spans for training are not the table's")
        if check_input.counts.extra.get(f"{split} rows") != n_rows:
            wrong.append(
                f"{split}: {n_rows:,} rows, the receipt says "
                f"{check_input.counts.extra.get(f'{split} rows')}"
            )
        used += n_rows * row_tokens - int((stop - begin).sum())
    if check_input.counts.extra.get("padding") != used:
        wrong.append(
            f"{used:,} tokens of padding, the receipt says "
            f"{check_input.counts.extra.get('padding')}"
        )
    return CheckResult(
        check="rows_are_filled_from_the_left",
        passed=not wrong,
        message="; ".join(wrong[:5])
        or f"{spans.table.num_rows:,} pieces, {used:,} tokens of padding, all behind them",
        values={"pieces": spans.table.num_rows, "padding": used},
    )


def spans_are_megatrons_documents(check_input: CheckInput) -> CheckResult:
    """Each split's ``.idx`` has a document per piece, in the table's order, exactly as long; or per
    row, where that was asked.
    """
    spans, wrong, n_documents = Spans.of_evidence(check_input), list[str](), 0
    asked = check_input.fingerprint.params
    for split in SPLITS:
        lines = spans.of(split)
        lengths = np.asarray(lines["row_stop"], np.int64) - np.asarray(lines["row_start"], np.int64)
        if not len(lengths):
            wrong += (
                [f"{split}: there are no pieces, but files"]
                if idx_path(check_input.folder / split).is_file()
                else []
            )
            continue
        if asked["megatron"] == "rows":
            lengths = np.full(len(np.unique(np.asarray(lines["row"]))), int(asked["row_tokens"]))
        data = MegatronReader(check_input.folder / split)
        n_documents += len(data)
        if not np.array_equal(data.lengths, lengths) or not np.array_equal(
            data.document_indices, np.arange(len(lengths) + 1)
        ):
            wrong.append(
                f"{split}: {len(data):,} documents of Megatron's, {len(lengths):,} "
                f"{asked['megatron']}, or of other lengths"
            )
    return CheckResult(
        check="spans_are_megatrons_documents",
        passed=not wrong,
        message="; ".join(wrong)
        or f"{n_documents:,} documents, as long as the {asked['megatron']}, in their order",
        values={"documents": n_documents},
    )


def rows_hold_their_pieces(check_input: CheckInput) -> CheckResult:
    """Rows read back from the arrays, and the same pieces from Megatron's files, are the documents'
    tokens: all rows, or an even 64.
    """
    spans, wrong, n_checked = Spans.of_evidence(check_input), list[str](), 0
    eot = check_input.only_input("packing_tokens").receipt.fingerprint.params["eot"]
    for split in SPLITS:
        reader = GridReader(check_input.folder / f"{split}.zarr")
        chosen, lines = evenly_spaced(reader.n_rows, CHECKED_ROWS), spans.of(split)
        first = np.searchsorted(np.asarray(lines["row"]), np.arange(reader.n_rows + 1))
        data = MegatronReader(check_input.folder / split) if chosen else None
        for row, found in _rows(reader, chosen):
            plan = lines.slice(int(first[row]), int(first[row + 1] - first[row]))
            right = np.full(reader.row_tokens, int(reader.attributes["pad"]), found.dtype)
            gather_pieces(
                plan, spans.store, right, np.asarray(plan["row_start"], np.int64), eot=eot
            )
            own = _megatrons(
                data, first, row, whole=check_input.fingerprint.params["megatron"] == "rows"
            )
            short = len(own) < int(plan["row_stop"][-1].as_py())
            if (
                short
                or not np.array_equal(found, right)
                or not np.array_equal(own, right[: len(own)])
            ):
                wrong.append(f"{split} row {row}")
        n_checked += len(chosen)
    return CheckResult(
        check="rows_hold_their_pieces",
        passed=not wrong,
        message=f"not the documents' tokens: {', '.join(wrong[:5])}"
        if wrong
        else f"{n_checked:,} rows gathered anew, token by token",
        values={"rows checked": n_checked},
    )


def _megatrons(
    data: MegatronReader | None, first: NDArray[np.int64], row: int, *, whole: bool
) -> NDArray[Any]:
    """The tokens of one row as Megatron's file has them: its pieces, or all of it."""
    own = (
        []
        if data is None
        else [data[row]]
        if whole
        else data[int(first[row]) : int(first[row + 1])]
    )
    return np.concatenate([np.empty(0, np.int64), *own])


def _rows(reader: GridReader, chosen: list[int]) -> Iterator[tuple[int, NDArray[Any]]]:
    for rows in by_chunk(chosen, reader.chunk_shape[0]):
        band = reader.read(slice(rows[0], rows[-1] + 1), slice(0, reader.row_tokens))
        yield from ((row, band[row - rows[0]]) for row in rows)


def the_method_kept_its_word(check_input: CheckInput) -> CheckResult:
    """Best fit cuts no document that a row holds; joined ones pad only their last row; segments are
    short, dealt ones apart.
    """
    asked, spans, wrong = (
        check_input.fingerprint.params,
        Spans.of_evidence(check_input),
        list[str](),
    )
    method, row_tokens, most = (
        asked["method"],
        int(asked["row_tokens"]),
        int(asked["segment_tokens"]),
    )
    pieces, lengths = spans.pieces, spans.lengths
    if (pieces.document < 0).any():
        wrong.append("some pieces are of no document")
    elif method == "bestfit" and (cut_documents(pieces, lengths) & (lengths <= row_tokens)).any():
        wrong.append("a document is cut that a row holds")
    if method in ("segment", "reorder") and len(pieces) and int(pieces.lengths.max()) > most:
        wrong.append(f"a segment has {int(pieces.lengths.max()):,} tokens, asked were {most:,}")
    for split in SPLITS:
        lines = spans.of(split)
        row, stop = np.asarray(lines["row"], np.int64), np.asarray(lines["row_stop"], np.int64)
        used = stop[np.flatnonzero(np.diff(row, append=row[-1:] + 1))] if len(row) else stop
        if method in ("concat", "reorder", UPSAMPLE) and (used < row_tokens).sum() > 1:
            wrong.append(f"{split}: {int((used < row_tokens).sum()):,} rows are not full")
        if method == "segment" and lines.num_rows != len(
            np.unique(np.stack([row, np.asarray(lines["number"])]), axis=1).T
        ):
            wrong.append(f"{split}: a row holds two segments of one document")
    return CheckResult(
        check="the_method_kept_its_word",
        passed=not wrong,
        message="; ".join(wrong) or f"{method}: {len(pieces):,} pieces are as it promises",
        values={"pieces": len(pieces)},
    )


def packed_train_and_heldout_share_nothing(check_input: CheckInput) -> CheckResult:
    """No document and no content digest has pieces in rows of both splits."""
    spans = Spans.of_evidence(check_input)
    sides = [
        {
            key
            for column in ("id", "digest")
            for key in pc.unique(spans.of(split)[column]).to_pylist()
            if key
        }
        for split in reversed(SPLITS)
    ]
    shared = sorted(sides[0] & sides[1])
    return CheckResult(
        check="packed_train_and_heldout_share_nothing",
        passed=not shared,
        message=f"{len(shared):,} ids and digests are on both sides, such as {shared[0]}"
        if shared
        else "nothing is on both sides",
        values={"shared": len(shared)},
    )
