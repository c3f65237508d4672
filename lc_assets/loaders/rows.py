"""Open the rows of a data set by a path or URL: an array, a published version, a lake.

Remote arrays are read by range requests of the chunks that are needed. A band of 65,536 tokens is in
one shard, its chunks adjacent: one request. Where it is in several (32 in grids of the first
version), all ranges are requested at once. A failed request is repeated after pauses of 1, 10 and 60
seconds, and then raises `Unreachable`: a batch is complete or an error, never shorter. Transport:
`lc_assets.lake.upstream`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import numpy as np

from lc_assets.errors import BadInput, Mismatch, NotPublished
from lc_assets.formats.files import Piece
from lc_assets.formats.order import SOURCES, GlobalOrder, OrderSource, require_split
from lc_assets.lake.lake import GLOBAL, Lake
from lc_assets.lake.partition import CURRENT, Current, Partition
from lc_assets.lake.receipts import RECEIPT, decode_json
from lc_assets.lake.releases import decode_release, lake_of_release, note_of
from lc_assets.lake.upstream import Upstream, with_retries
from lc_assets.lake.versions import Published
from lc_assets.loaders.arrays import METADATA_FILES, InterleavedRows, ZarrRows, array_reader
from lc_assets.loaders.cache import ChunkCache
from lc_assets.vocabulary import parse_snapshot

NEAR_BYTES: Final = 64 * 2**10
"""Pieces of one file no further apart than this are one request, which costs about as much."""
ORDER_STAGE: Final = "longcrawl"
GRID_STAGE: Final = "token_grid"


def open_rows(
    path: Path | str,
    split: str = "train",
    *,
    cache_bytes: int | None = None,
    release: str | None = None,
) -> ZarrRows | InterleavedRows:
    """Open the rows of one split by a path.

    Args:
        path: a path, or a URL that fsspec supports (``https://…``, ``gs://…``), of a ``.zarr``
            folder (a token grid or LongCrawl64's layout; ``split`` is ignored), of a folder with
            ``{split}.zarr``, of a version of the global order, or of a lake, for its published
            global order.
        split: ``train`` or ``heldout``.
        cache_bytes: bound of the cache of decoded chunks, which all arrays share. None: what the
            loader's walk over the rows needs.
        release: a release of the lake; its global order never changes.

    Raises:
        BadInput: if there is nothing to open at ``path``, or the cache cannot hold one chunk.
        NotPublished: if the lake lacks the order, one of its grids, or the release.
        Mismatch: if a grid is not the one that the order was made for.
        CorruptFile: if a file does not have its format.
        Unreachable: if a server does not answer, also when retried.
    """
    require_split(split)
    if release is not None:
        path = _pinned_order(path, release)
    if isinstance(path, str) and "://" in path:
        return _open_url(path.rstrip("/"), split, cache_bytes)
    path, cache = Path(path), ChunkCache(cache_bytes)
    if any((path / name).is_file() for name in METADATA_FILES):
        return ZarrRows(array_reader(path), cache)
    if (path / f"{split}.zarr").is_dir():
        return ZarrRows(array_reader(path / f"{split}.zarr"), cache)
    if (path / SOURCES).is_file():
        return _interleaved(path, split, cache)
    if (path / CURRENT).is_file():
        return open_rows(Partition(path).require().folder, split, cache_bytes=cache_bytes)
    if (path / ORDER_STAGE).is_dir() or (path / GRID_STAGE).is_dir():
        return _interleaved(Lake(path).partition(ORDER_STAGE).require().folder, split, cache)
    raise _nothing_at(path, split)


def _pinned_order(lake: Path | str, release: str) -> Path | str:
    """Folder or URL of a release's global order.

    Raises:
        NotPublished: if there is no such release, or its order is gone.
        Mismatch: if the order there is not the released one.
    """
    if not (isinstance(lake, str) and "://" in lake):
        return lake_of_release(Lake(Path(lake)), release).partition(ORDER_STAGE).require().home
    note, files = note_of(release), RemoteFiles(lake.rstrip("/"))
    if not files.holds(note):
        raise NotPublished(f"{files.where(note)}: there is no such release")
    with TemporaryDirectory() as copies:
        fetch(files, Path(copies), note)
        pin = decode_release((Path(copies) / note).read_bytes(), where=files.where(note)).pins[
            f"{ORDER_STAGE}/{GLOBAL}"
        ]
        receipt = f"{ORDER_STAGE}/{GLOBAL}/{pin.version}/{RECEIPT}"
        fetch(files, Path(copies), receipt)
        if Published.at((Path(copies) / receipt).parent).digest != pin.digest:
            raise Mismatch(f"{files.where(receipt)}: not the version that release {release} pins")
    return files.where(f"{ORDER_STAGE}/{GLOBAL}/{pin.version}")


def _open_url(url: str, split: str, cache_bytes: int | None) -> ZarrRows | InterleavedRows:
    files, cache = RemoteFiles(url), ChunkCache(cache_bytes)
    for folder in ("", f"{split}.zarr/"):
        for metadata in METADATA_FILES:
            if files.holds(f"{folder}{metadata}"):
                return _open_remote_array(f"{url}/{folder}".rstrip("/"), metadata, cache)
    if files.holds(SOURCES):
        return _open_remote_order(url, split, cache)
    if files.holds(CURRENT):
        return _open_url(published_at(url), split, cache_bytes)
    if files.holds(f"{ORDER_STAGE}/{GLOBAL}/{CURRENT}"):
        return _open_url(f"{url}/{ORDER_STAGE}/{GLOBAL}", split, cache_bytes)
    raise _nothing_at(url, split)


def published_at(url: str) -> str:
    """URL of the published version of the partition at ``url``; ``url`` itself if it is none.

    Raises:
        CorruptFile: if the pointer is not readable.
        Unreachable: if the server does not answer.
    """
    files = RemoteFiles(url)
    if not files.holds(CURRENT):
        return url
    with TemporaryDirectory() as copies:
        fetch(files, Path(copies), CURRENT)
        return f"{url}/{decode_json(Path(copies) / CURRENT, Current).version}"


def _open_remote_array(url: str, metadata: str, cache: ChunkCache) -> ZarrRows:
    return ZarrRows(array_reader(Path(url), metadata, RemoteFiles(url)), cache)


def _open_remote_order(url: str, split: str, cache: ChunkCache) -> InterleavedRows:
    """Copy the order and the grids' receipts, which are small, and check them like local ones."""
    lake, *place = url.rsplit("/", 3)
    files = RemoteFiles(lake)
    with TemporaryDirectory() as copies:
        folder = Path(copies, *place)
        fetch(
            files,
            Path(copies),
            *(
                "/".join([*place, name])
                for name in (SOURCES, f"{split}_source.npy", f"{split}_row.npy")
            ),
        )
        mapped = GlobalOrder.open(folder, split)
        order = replace(mapped, source=np.array(mapped.source), row=np.array(mapped.row))
        grids = [f"{GRID_STAGE}/{source.snapshot}/{source.version}" for source in order.sources]
        for source, grid in zip(order.sources, grids, strict=True):
            fetch(files, Path(copies), f"{grid}/{RECEIPT}")
            _grid_folder(Lake(Path(copies)), source)
    return InterleavedRows(
        order,
        [
            _open_remote_array(f"{lake}/{grid}/{split}.zarr", METADATA_FILES[0], cache)
            for grid in grids
        ],
    )


def _nothing_at(place: Path | str, split: str) -> BadInput:
    return BadInput(
        f"{place}: found none of {split}.zarr, {SOURCES}, {', '.join(METADATA_FILES)}: expected an "
        "array, a published version or the root of a lake"
    )


def _interleaved(folder: Path, split: str, cache: ChunkCache) -> InterleavedRows:
    order = GlobalOrder.open(folder, split)
    lake = Lake(folder.absolute().parent.parent.parent)
    return InterleavedRows(
        order,
        [
            ZarrRows(array_reader(_grid_folder(lake, source) / f"{split}.zarr"), cache)
            for source in order.sources
        ],
    )


def _grid_folder(lake: Lake, source: OrderSource) -> Path:
    folder = lake.partition(GRID_STAGE, parse_snapshot(source.snapshot)).folder / source.version
    found = Published.at(folder).digest
    if found != source.digest:
        raise Mismatch(
            f"{folder / RECEIPT}: digest {found}, but the global order was made for "
            f"{source.digest}: build the order again"
        )
    return folder


@dataclass(frozen=True)
class RemoteFiles:
    """Files below a URL that fsspec supports: ``https://…``, ``gs://…``, ``memory://…``."""

    root: str

    @cached_property
    def _upstream(self) -> Upstream:
        return Upstream(self.root.rstrip("/"))

    def where(self, path: str) -> str:
        """Full URL of a file."""
        return f"{self.root.rstrip('/')}/{path}"

    def n_bytes(self, path: str) -> int:
        """Size of a file.

        Raises:
            FileNotFoundError: if there is none.
            Unreachable: if the server does not answer, also when retried.
        """
        return with_retries(self._upstream.n_bytes)(path)

    def read(self, pieces: Sequence[Piece]) -> list[bytes]:
        """Read pieces; a piece that extends beyond the end of its file is cut off there.

        Raises:
            FileNotFoundError: if one of the files is missing.
            Unreachable: if the server does not answer, also when retried.
            BadInput: if the server cannot send ranges.
        """
        requests = coalesced(pieces)
        answers = dict(zip(requests, with_retries(self._upstream.ranges)(requests), strict=True))
        return [_cut(piece, answers) for piece in pieces]

    def holds(self, path: str) -> bool:
        """Whether there is such a file."""
        try:
            self.n_bytes(path)
        except FileNotFoundError:
            return False
        return True


def fetch(files: RemoteFiles, folder: Path, *paths: str) -> None:
    """Copy small files to the same relative paths below ``folder``.

    Raises:
        NotPublished: if one is missing.
    """
    for path in paths:
        try:
            (content,) = files.read([Piece(path, 0, files.n_bytes(path))])
        except FileNotFoundError as error:
            raise NotPublished(f"{files.where(path)}: is missing") from error
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)


def coalesced(pieces: Sequence[Piece]) -> list[Piece]:
    """Join pieces of one file that overlap, touch or are near each other.

    >>> coalesced([Piece("a", 200, 300), Piece("b", 0, 9), Piece("a", 0, 100)])
    [Piece(path='a', start=0, stop=300), Piece(path='b', start=0, stop=9)]
    """
    joined: list[Piece] = []
    for piece in sorted(pieces):
        last = joined[-1] if joined else None
        if last is not None and last.path == piece.path and piece.start <= last.stop + NEAR_BYTES:
            joined[-1] = last._replace(stop=max(last.stop, piece.stop))
        else:
            joined.append(piece)
    return joined


def _cut(piece: Piece, answers: dict[Piece, bytes]) -> bytes:
    for request, answer in answers.items():
        if (
            request.path == piece.path
            and request.start <= piece.start
            and piece.stop <= request.stop
        ):
            return answer[piece.start - request.start : piece.stop - request.start]
    raise KeyError(piece)
