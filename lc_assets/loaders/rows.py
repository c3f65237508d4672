"""Open the rows of a data set by a path or URL: an array, a published version, a lake.

Remote arrays are read by range requests of the chunks that are needed. A band of 65,536 tokens is
in one shard, its chunks adjacent: one request. Where it is in several (32 in grids of the first
version), all ranges are requested at once. A failed request is repeated after pauses of 1, 10 and
60 seconds, and then raises `Unreachable`: a batch is complete or an error, never shorter.
Transport: `lc_assets.lake.upstream`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from lc_assets.errors import NotPublished
from lc_assets.formats.arrays.files import Piece, coalesced, cut_out
from lc_assets.formats.arrays.order import require_split
from lc_assets.loaders.arrays import METADATA_FILES, InterleavedRows, ZarrRows, array_reader
from lc_assets.loaders.cache import ChunkCache

if TYPE_CHECKING:
    from lc_assets.lake.upstream import Upstream

Asked = TypeVar("Asked")
Answer = TypeVar("Answer")


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
    at = path.rstrip("/") if isinstance(path, str) and "://" in path else Path(path)
    if release is not None:
        # Arrays need nothing of a lake.
        from lc_assets.loaders.published import order_of_release

        at = order_of_release(at, release)
    return open_at(at, split, ChunkCache(cache_bytes))


def open_at(at: Path | str, split: str, cache: ChunkCache) -> ZarrRows | InterleavedRows:
    """Open rows in a folder (a `Path`) or at a URL (a `str`); see `open_rows`."""
    for place in (at, at / f"{split}.zarr" if isinstance(at, Path) else f"{at}/{split}.zarr"):
        if (kind := _array_kind(place)) is not None:
            return open_array(place, kind, cache)
    from lc_assets.loaders.published import open_published

    return open_published(at, split, cache)


def open_array(at: Path | str, kind: str | None, cache: ChunkCache) -> ZarrRows:
    """Open an array in a folder or at a URL; ``kind`` is the name of its metadata file, if
    known.
    """
    files = None if isinstance(at, Path) else RemoteFiles(at)
    return ZarrRows(array_reader(Path(at), kind, files), cache)


def _array_kind(at: Path | str) -> str | None:
    """Name of the metadata file of the array in a folder or at a URL; None if there is no array."""
    if isinstance(at, Path):
        # An array without metadata was withdrawn, which its reader reports.
        default = METADATA_FILES[0] if at.suffix == ".zarr" and at.is_dir() else None
        return next((name for name in METADATA_FILES if (at / name).is_file()), default)
    return next((name for name in METADATA_FILES if RemoteFiles(at).holds(name)), None)


@dataclass(frozen=True)
class RemoteFiles:
    """Files below a URL that fsspec supports: ``https://…``, ``gs://…``, ``memory://…``."""

    root: str

    @cached_property
    def _upstream(self) -> "Upstream":
        # Local rows do not need fsspec.
        from lc_assets.lake.upstream import Upstream

        return Upstream(self.root.rstrip("/"))

    def _retried(self, request: Callable[[Asked], Answer], asked: Asked) -> Answer:
        from lc_assets.lake.upstream import with_retries

        return with_retries(request)(asked)

    def where(self, path: str) -> str:
        """Full URL of a file."""
        return f"{self.root.rstrip('/')}/{path}"

    def n_bytes(self, path: str) -> int:
        """Size of a file.

        Raises:
            FileNotFoundError: if there is none.
            Unreachable: if the server does not answer, also when retried.
        """
        return self._retried(self._upstream.n_bytes, path)

    def read(self, pieces: Sequence[Piece]) -> list[bytes]:
        """Read pieces; a piece that extends beyond the end of its file is cut off there.

        Raises:
            FileNotFoundError: if one of the files is missing.
            Unreachable: if the server does not answer, also when retried.
            BadInput: if the server cannot send ranges.
        """
        requests = coalesced(pieces)
        answers = self._retried(self._upstream.ranges, requests)
        return [cut_out(piece, requests, answers) for piece in pieces]

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
