"""Open whatever the chain published to be read while training: `lc_assets.open`."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from lc_assets.errors import BadInput
from lc_assets.formats.packed_spans import PackedSpans, span_files
from lc_assets.loaders.arrays import RowSource, ZarrRows
from lc_assets.loaders.grid import GridLoader, WalkOptions
from lc_assets.loaders.packed import PackedLoader, PackedRows, open_packed
from lc_assets.loaders.rows import holds, location, open_rows, version_at
from lc_assets.records import distinct

if TYPE_CHECKING:
    from lc_assets.loaders.provenance import PackedPiece, RowDocument


@distinct
class DataSet:
    """Published rows.

    Attributes:
        rows: the rows: ``n_rows``, ``row_tokens``, ``vocab_size``, and ``read(rows, tokens)``,
            which takes slices and returns ids (row, token).
        spans: for packed rows, the documents' spans in them; else None.
    """

    rows: RowSource
    spans: PackedSpans | None = None

    def __len__(self) -> int:
        return self.rows.n_rows

    @property
    def path(self) -> str:
        """Path or URL of the array, for programs that read Zarr. It is of one version: its bytes
        never change.

        Raises:
            BadInput: of the global order, whose rows are in one array per snapshot.
        """
        if isinstance(self.rows, ZarrRows):
            return self.rows.where
        raise BadInput(
            "the global order is no array: open longcrawl_flat, or a token_grid's partition"
        )

    def loader(
        self, *, batch_rows: int, context_tokens: int | None = None, **options: Unpack[WalkOptions]
    ) -> GridLoader | PackedLoader:
        """A loader: ``loader[step]`` is a batch; iterating, saving and resuming as in
        `lc_assets.loaders.stepping.SteppedLoader`.

        Args:
            batch_rows: rows of a batch, of all ranks together.
            context_tokens: tokens of a batch's rows, which divide those of the data set; by default
                whole rows.
            options: ``rank``, ``n_ranks``, ``prefetch`` and others of `WalkOptions`.

        Raises:
            BadInput: if an argument does not fit the data set.
        """
        context = context_tokens or self.rows.row_tokens
        if self.spans is not None:
            packed = PackedRows(self.rows, self.spans)
            return PackedLoader(packed, batch_rows=batch_rows, context_tokens=context, **options)
        return GridLoader(self.rows, batch_rows=batch_rows, context_tokens=context, **options)

    def documents(self, rows: Sequence[int]) -> "list[RowDocument] | list[PackedPiece]":
        """The document of each of some rows; of packed rows all pieces, in the order of the rows.
        Needs pyarrow, and a data set in a local folder.

        Raises:
            BadInput: if there is no such row, or the data set has no table of documents.
            NotPublished: if the table is missing.
            Mismatch: if it is of other rows.
        """
        from lc_assets.loaders.provenance import documents_of, pieces_of

        return (documents_of if self.spans is None else pieces_of)(self.rows, rows)

    def trace(self, row: int, column: int) -> tuple[str, int] | None:
        """The document of one token of a row, and the token's number in it, from 0; None for
        padding. `lc trace` also gives the page upstream. Raises as `documents`.
        """
        if not 0 <= column < self.rows.row_tokens:
            raise BadInput(f"no column {column:,}: rows have {self.rows.row_tokens:,} tokens")
        from lc_assets.loaders.provenance import documents_of, pieces_of

        if self.spans is None:
            (found,) = documents_of(self.rows, [row])
            n_tokens = self.rows.row_tokens
            return found.id, found.stretch * n_tokens + (column - found.shift) % n_tokens
        for piece in pieces_of(self.rows, [row]):
            if piece.row_start <= column < piece.row_stop:
                return piece.id, piece.document_start + column - piece.row_start
        return None


def open(  # noqa: A001 - read as `lc_assets.open`
    path: Path | str,
    split: str = "train",
    *,
    release: str | None = None,
    cache_bytes: int | None = None,
) -> DataSet:
    """Open published rows of any layout.

    Args:
        path: a path, or a URL (``https://…``, ``gs://…``), of a lake, for its global order; of a
            version or partition of ``longcrawl``, ``longcrawl_flat``, ``token_grid`` or
            ``packed_rows``; or of a ``.zarr`` array.
        split: ``train`` or ``heldout``.
        release: a release of the lake; its global order never changes.
        cache_bytes: bound of the cache of decoded chunks; None: what a walk over the rows needs.

    Raises:
        BadInput: if there is nothing to open.
        NotPublished: if something is missing that was to be published.
        Mismatch: if files are of different versions.
        CorruptFile: if a file does not have its format.
        Unreachable: if a server does not answer, also when retried.
    """
    spans = span_files(Path(), split)[0].name
    if release is None and holds(version_at(location(path)), spans):
        packed = open_packed(path, split, cache_bytes=cache_bytes)
        return DataSet(packed.rows, packed.spans)
    return DataSet(open_rows(path, split, cache_bytes=cache_bytes, release=release))
