"""What a path or a bucket's URL is of a lake: the lake, a stage, a partition, a version, or part of
a version.

::

    lake                                         its root
    lake/token_grid                              a stage
    lake/token_grid/2023-06                      a partition
    lake/token_grid/2023-06/{version}            a version
    lake/token_grid/2023-06/{version}/train.zarr within a version

Receipts and pointers tell which, by a few requests in a bucket.
"""

from dataclasses import dataclass
from pathlib import Path

from lc_assets.lake.bucket import SCHEME, Bucket
from lc_assets.lake.bucket_lake import open_lake
from lc_assets.lake.lake import Lake
from lc_assets.lake.partition import CURRENT, Partition
from lc_assets.lake.receipts import RECEIPT
from lc_assets.lake.versions import Published

DEEPEST = 6
"""Folders below a version's that are searched for it: an array's shards are three deep."""


@dataclass(frozen=True, slots=True)
class Located:
    """A part of a lake; fields are "" from the first on that does not apply.

    Attributes:
        lake: the lake.
        stage: name of the stage.
        key: of the partition.
        version: name of the version.
        within: path of a file or folder of the version, or a prefix of files' paths.
    """

    lake: Lake
    stage: str = ""
    key: str = ""
    version: str = ""
    within: str = ""

    @property
    def partition(self) -> Partition:
        """The partition."""
        return self.lake.partition(self.stage, self.key)

    @property
    def published(self) -> Published:
        """The version.

        Raises:
            NotPublished: when it is not finished.
            CorruptFile: when its receipt cannot be read.
        """
        return self.partition.at(self.version)


def is_in_bucket(where: str) -> bool:
    """Whether this is a bucket's URL, not a path."""
    return where.startswith(SCHEME)


def located(where: str) -> Located | None:
    """What a path or URL is of a lake; None when it is not of one. Parts of a version are found in
    buckets only.

    Raises:
        Unreachable: when a bucket does not answer.
    """
    return (
        _in_bucket(where.rstrip("/")) if is_in_bucket(where) else _in_folder(Path(where).absolute())
    )


def _in_folder(path: Path) -> Located | None:
    if (path / RECEIPT).is_file():
        return Located(Lake(path.parents[2]), path.parents[1].name, path.parent.name, path.name)
    if (path / CURRENT).is_file():
        return Located(Lake(path.parents[1]), path.parent.name, path.name)
    if any(path.glob(f"[!.]*/{CURRENT}")):
        return Located(Lake(path.parent), path.name)
    return Located(Lake(path)) if any(path.glob(f"[!.]*/[!.]*/{CURRENT}")) else None


def _in_bucket(url: str) -> Located | None:
    bucket = Bucket(url)
    if bucket.generation(CURRENT):
        return _located(url, 2)
    if bucket.generation(RECEIPT):
        return _located(url, 3)
    if bucket.names(f"*/{CURRENT}"):
        return _located(url, 1)
    if bucket.names(f"*/*/{CURRENT}"):
        return Located(open_lake(url))
    return _within(url)


def _within(url: str) -> Located | None:
    version, n_names = url, url.removeprefix(SCHEME).count("/")
    for _ in range(min(n_names - 3, DEEPEST)):
        version = version.rpartition("/")[0]
        if Bucket(version).generation(RECEIPT):
            found = _located(version, 3)
            return Located(
                found.lake, found.stage, found.key, found.version, url.removeprefix(f"{version}/")
            )
    return None


def _located(url: str, n_names: int) -> Located:
    root, *names = url.rsplit("/", n_names)
    return Located(open_lake(root), *names)
