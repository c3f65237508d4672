"""Open the rows of a data set by a path or URL: an array, a published version, a lake.

Remote arrays are read by range requests of the chunks that are needed. A band of 65,536 tokens is
in one shard, its chunks adjacent: one request. Where it is in several (32 in grids of the first
version), all ranges are requested at once. A failed request is repeated after pauses of 1, 10 and
60 seconds, and then raises `Unreachable`: a batch is complete or an error, never shorter. An order
and its grids' receipts are small: from a URL they are copied and checked like local ones.
Transport: `lc_assets.lake.upstream`.

Arrays need nothing of a lake, so its modules are imported when a lake is opened.
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from lc_assets.errors import BadInput, CorruptFile, Mismatch, NotPublished
from lc_assets.formats.arrays.files import Files, LocalFiles, Piece, coalesced, cut_out
from lc_assets.formats.arrays.flat import FlatReader
from lc_assets.formats.arrays.grid import GridReader
from lc_assets.formats.arrays.order import SOURCES, GlobalOrder, order_files, require_split
from lc_assets.loaders.arrays import InterleavedRows, ZarrRows
from lc_assets.loaders.cache import ChunkCache

if TYPE_CHECKING:
    from lc_assets.lake.upstream import Upstream

At = Path | str
"""A folder, or a URL without a slash at its end."""

METADATA_FILES = (GridReader.METADATA, FlatReader.METADATA)
"""Names of the metadata file of a token grid and of the flat layout."""
ORDER = "longcrawl/all"
"""Stage and partition of the global order in a lake."""
GRIDS = "token_grid"
"""Stage of the grids."""

Request = TypeVar("Request")
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
        CorruptFile: if a file does not have its format, or the order's differ from its receipt.
        Unreachable: if a server does not answer, also when retried.
    """
    require_split(split)
    at = location(path)
    if release is not None:
        at = _order_of_release(at, release)
    return _open(at, split, ChunkCache(cache_bytes))


def location(path: Path | str) -> At:
    """A path as a `Path`, a URL as a `str`."""
    return path.rstrip("/") if isinstance(path, str) and "://" in path else Path(path)


def version_at(at: At) -> At:
    """The published version of the partition at a path or URL; ``at`` itself if it is none.

    Raises:
        NotPublished: if the partition has no published version.
        CorruptFile: if its pointer is not readable.
        Unreachable: if the server does not answer.
    """
    from lc_assets.lake.partition import CURRENT, Current, Partition
    from lc_assets.lake.receipts import decode_json

    if not holds(at, CURRENT):
        return at
    if isinstance(at, Path):
        return Partition(at).require().folder
    with local_copy(at, CURRENT) as folder:
        return below(at, decode_json(folder / CURRENT, Current).version)


@contextlib.contextmanager
def local_copy(at: At, *names: str) -> Iterator[Path]:
    """The folder at a path, or a temporary folder with copies of a URL's small files.

    Raises:
        NotPublished: if one of a URL's files is missing.
    """
    if isinstance(at, Path):
        yield at
        return
    files = RemoteFiles(at)
    with TemporaryDirectory() as copies:
        for name in names:
            try:
                (content,) = files.read([Piece(name, 0, files.n_bytes(name))])
            except FileNotFoundError as error:
                raise NotPublished(f"{files.where(name)}: is missing") from error
            path = Path(copies, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        yield Path(copies)


@contextlib.contextmanager
def compared_copy(at: At, *names: str) -> Iterator[Path]:
    """The folder of a version, or copies of its small files, as `local_copy`, after comparing them
    with the version's receipt if there is one.

    Raises:
        NotPublished: if one of a URL's files is missing.
        CorruptFile: if one differs from the receipt; names it.
    """
    from lc_assets.lake.digests import is_unchanged, matching
    from lc_assets.lake.receipts import RECEIPT
    from lc_assets.lake.versions import Published, how_to_repair

    receipt = [RECEIPT] if holds(at, RECEIPT) else []
    with local_copy(at, *names, *receipt) as folder:
        for fact in matching(Published.at(folder, str(at)).receipt.files, names) if receipt else ():
            path = folder / fact.path
            if path.exists() and not is_unchanged(path, fact):
                raise CorruptFile(
                    f"{below(at, fact.path)}: differs from its receipt: {how_to_repair(str(at))}"
                )
        yield folder


def _open(at: At, split: str, cache: ChunkCache) -> ZarrRows | InterleavedRows:
    for array in (below(at, f"{split}.zarr"), at):  # beside several arrays, metadata of their group
        if (kind := array_kind(array)) is not None:
            return _open_array(array, kind, cache)
    if holds(at, SOURCES):
        return _open_order(at, split, cache)
    if (version := version_at(at)) != at:
        return _open(version, split, cache)
    order = below(at, ORDER)
    if isinstance(at, Path) and any((at / stage).is_dir() for stage in (ORDER, GRIDS)):
        from lc_assets.lake.partition import Partition

        return _open(Partition(at / ORDER).require().folder, split, cache)
    if not isinstance(at, Path) and (version := version_at(order)) != order:
        return _open(version, split, cache)
    raise BadInput(
        f"{at}: found none of {split}.zarr, {SOURCES}, {', '.join(METADATA_FILES)}: expected an "
        "array, a published version or the root of a lake"
    )


def _open_array(at: At, kind: str, cache: ChunkCache) -> ZarrRows:
    reader = FlatReader if kind == FlatReader.METADATA else GridReader
    return ZarrRows(reader(Path(at), files=_files(at)), cache)


def _open_order(at: At, split: str, cache: ChunkCache) -> InterleavedRows:
    """Open a version of the global order, after comparing its grids' digests."""
    from lc_assets.lake.receipts import RECEIPT
    from lc_assets.lake.versions import Published

    lake = at.absolute().parents[2] if isinstance(at, Path) else at.rsplit("/", 3)[0]
    with compared_copy(at, SOURCES, *(path.name for path in order_files(Path(), split))) as folder:
        order = GlobalOrder.open(folder, split)
        if not isinstance(at, Path):
            order = replace(order, source=np.array(order.source), row=np.array(order.row))
    rows = []
    for source in order.sources:
        grid = f"{GRIDS}/{source.snapshot}/{source.version}"
        with local_copy(lake, f"{grid}/{RECEIPT}") as folder:
            found = Published.at(folder / grid, str(below(lake, grid))).digest
        if found != source.digest:
            raise Mismatch(
                f"{below(lake, grid)}: digest {found}, but the global order was made for "
                f"{source.digest}: build the order again"
            )
        rows.append(_open_array(below(lake, f"{grid}/{split}.zarr"), METADATA_FILES[0], cache))
    return InterleavedRows(order, rows)


def _order_of_release(lake: At, release: str) -> At:
    """Folder or URL of a release's global order."""
    from lc_assets.lake.lake import Lake
    from lc_assets.lake.receipts import RECEIPT, decode_json
    from lc_assets.lake.releases import Release, lake_of_release, note_of
    from lc_assets.lake.versions import Published

    if isinstance(lake, Path):
        return lake_of_release(Lake(lake), release).partition(*ORDER.split("/")).require().home
    note = note_of(release)
    if not holds(lake, note):
        raise NotPublished(f"{lake}/{note}: there is no such release")
    with local_copy(lake, note) as folder:
        pin = decode_json(folder / note, Release).pins[ORDER]
    order = f"{ORDER}/{pin.version}"
    with local_copy(lake, f"{order}/{RECEIPT}") as folder:
        if Published.at(folder / order, f"{lake}/{order}").digest != pin.digest:
            raise Mismatch(f"{lake}/{order}: not the version of release {release}")
    return f"{lake}/{order}"


def array_kind(at: At) -> str | None:
    """Name of the metadata file of the array in a folder or at a URL; None if there is no array."""
    # An array without metadata was withdrawn, which its reader reports.
    withdrawn = isinstance(at, Path) and at.suffix == ".zarr" and at.is_dir()
    default = METADATA_FILES[0] if withdrawn else None
    return next((name for name in METADATA_FILES if holds(at, name)), default)


def below(at: At, path: str) -> At:
    """A path or URL below another."""
    return at / path if isinstance(at, Path) else f"{at}/{path}"


def _files(at: At) -> Files:
    return LocalFiles(at) if isinstance(at, Path) else RemoteFiles(at)


def holds(at: At, path: str) -> bool:
    """Whether there is a file at a path below a path or URL."""
    try:
        _files(at).n_bytes(path)
    except FileNotFoundError:
        return False
    return True


@dataclass(frozen=True)
class RemoteFiles:
    """Files below a URL that fsspec supports: ``https://…``, ``gs://…``, ``memory://…``."""

    root: str

    @cached_property
    def _upstream(self) -> "Upstream":
        # Local rows need neither of these packages.
        missing = [name for name in ("fsspec", "tenacity") if find_spec(name) is None]
        if missing:
            raise BadInput(
                f"{self.root}: rows behind a URL need {' and '.join(missing)}: "
                "pip install 'lc-assets[http]'"
            )
        from lc_assets.lake.upstream import Upstream

        return Upstream(self.root.rstrip("/"))

    def _retried(self, send: Callable[[Request], Answer], request: Request) -> Answer:
        from lc_assets.lake.upstream import with_retries

        return with_retries(send)(request)

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
