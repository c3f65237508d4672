"""The part of a lake that a path or a bucket's URL names: the lake, a stage, a partition, a
version, or part of a version.

::

    lake                                         its root
    lake/token_grid                              a stage
    lake/token_grid/2023-06                      a partition
    lake/token_grid/2023-06/{version}            a version
    lake/token_grid/2023-06/{version}/train.zarr within a version

It is determined from receipts and pointers, by a few requests in a bucket.
"""

from dataclasses import replace
from pathlib import Path

from lc_assets.errors import BadInput
from lc_assets.lake.bucket import Bucket, is_in_bucket
from lc_assets.lake.bucket_lake import open_lake
from lc_assets.lake.lake import Lake
from lc_assets.lake.partition import CURRENT, Partition
from lc_assets.lake.receipts import RECEIPT
from lc_assets.lake.versions import Published
from lc_assets.records import frozen

DEEPEST = 6
"""Folders below a version's that are searched for it: an array's shards are three deep."""


@frozen
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


def existing_lake(root: str) -> Lake:
    """Open a lake that has a partition.

    Raises:
        BadInput: when there is none, as where the root is misspelled.
        PermissionError: when its folder may not be read, which then seems to be empty.
    """
    lake = open_lake(root)
    if next(lake.partitions(), None) is None:
        if lake.root.is_dir():
            next(lake.root.iterdir(), None)
        raise BadInput(f"{root}: no lake is there; expected a folder that `lc build` or such wrote")
    return lake


def located(where: str) -> Located | None:
    """The part of a lake that a path or URL names; None when it is outside of lakes. Parts of a
    version are found in buckets only.

    Raises:
        Unreachable: when a bucket does not answer.
    """
    in_bucket = is_in_bucket(where)
    where = where.rstrip("/") if in_bucket else str(Path(where).absolute())
    for n_names, holds in _SIGNS:
        if (_bucket_has if in_bucket else _folder_has)(where, holds):
            return _located(where, n_names)
    return _within(where) if in_bucket else None


_SIGNS = ((2, CURRENT), (3, RECEIPT), (1, f"[!.]*/{CURRENT}"), (0, f"[!.]*/[!.]*/{CURRENT}"))
"""Depth below the lake's root of a folder that has such files."""


def _folder_has(path: str, pattern: str) -> bool:
    return any(Path(path).glob(pattern))


def _bucket_has(url: str, pattern: str) -> bool:
    bucket, simple = Bucket(url), pattern.replace("[!.]", "")
    return bool(bucket.names(simple) if "*" in simple else bucket.generation(simple))


def _within(url: str) -> Located | None:
    version, n_names = url, url.partition("://")[2].count("/")
    for _ in range(min(n_names - 3, DEEPEST)):
        version = version.rpartition("/")[0]
        if _bucket_has(version, RECEIPT):
            return replace(_located(version, 3), within=url.removeprefix(f"{version}/"))
    return None


def _located(where: str, n_names: int) -> Located:
    root, *names = where.rsplit("/", n_names)
    return Located(open_lake(root), *names)
