"""Plain files of documents, in a folder, on a server or in a bucket.

This module assigns files to partitions and iterates over the documents of a file, which
`lc_assets.formats.corpora` decodes.
"""

import contextlib
import functools
import gzip
import itertools
import os
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from lc_assets.errors import BadInput, CorruptFile
from lc_assets.formats.corpora.batches import Batch, one_by_one
from lc_assets.formats.corpora.containers import (
    JSON_LINES,
    PLAIN_JSON_LINES,
    ReadingOptions,
    plain_bytes,
)
from lc_assets.formats.corpora.reading import read_batches
from lc_assets.formats.redpajama.lines import bounded_lines
from lc_assets.lake.digests import digest_of, short
from lc_assets.lake.upstream import Upstream
from lc_assets.line_ranges import parsed, ranges_of
from lc_assets.plugins import plugin
from lc_assets.records import record
from lc_assets.sources.file_shards import KNOWN, require_unique, shard_names, shared_shards
from lc_assets.sources.settings import SourceSettings
from lc_assets.vocabulary import (
    Shard,
    SnapshotId,
    is_line_id,
    parse_snapshot,
    usable_own_id,
)

LISTING_BYTES = 256 << 20
RECORDS_LOOKED_AT = 20
"""Number of records whose fields are named in an error about a missing text."""

_FIELDS = msgspec.json.Decoder(dict[str, msgspec.Raw])


@record
class FileSource:
    """A source of files.

    Attributes:
        name: the source's, as the recipe has it.
        settings: where the files are, how they are partitioned, and where a record's text is.
        prefixed: whether partition keys begin with the source's name.
    """

    name: str
    settings: SourceSettings
    prefixed: bool = False

    @property
    def upstream(self) -> Upstream:
        """The root of the files; for a single file, its folder."""
        path = Path(self.settings.path)
        root = str(path.parent if path.is_file() else self.settings.path)
        return _upstream(root, Path(root).absolute())

    def partitions(self) -> tuple[SnapshotId, ...]:
        """Sorted partition keys, from a folder on disk or the recipe; no network is used, and a
        missing folder has none.
        """
        if self.settings.partitions:
            return tuple(sorted(self._key(name) for name in self.settings.partitions))
        if self.settings.partition == "one":
            return (self._key(""),)
        folder = Path(self.settings.path)
        if not folder.is_dir() or self.settings.listing:
            return ()
        if self.settings.partition == "folder" and not self.settings.files:
            names = [path.name for path in folder.iterdir() if path.is_dir()]
            return tuple(sorted({self._key(name) for name in names if not name.startswith(".")}))
        return tuple(sorted(self._by_partition()))

    def shards(self, snapshot: SnapshotId) -> dict[Shard, dict[str, str]]:
        """Paths of each shard's files in a partition, by part: ``documents``; ``documents/NAME/``
        where small files share it.

        Raises:
            BadInput: when the partition has no file of a known kind.
            Unreachable: when the place does not answer.
        """
        found = self._by_partition()
        if snapshot not in found:
            raise BadInput(
                f"{self.settings.path}: source {self.name} has no partition {snapshot}; "
                f"its partitions are {', '.join(sorted(found)[:10]) or 'none'}, of files ending in "
                f"{', '.join(self._suffixes)}"
            )
        names = shard_names(found[snapshot])
        groups = shared_shards(self._sizes(names), self.settings.small_bytes)
        shared = {path for group in groups for path in group}
        alone = [
            (part, {"documents": own})
            for path, name in names.items()
            if path not in shared
            for own, part in self._parts(path, name)
        ]
        together = [
            (f"{names[paths[0]]}-etc", {f"documents/{names[path]}/": path for path in paths})
            for paths in groups
        ]
        require_unique([name for name, _ in alone + together])
        return {Shard(snapshot, name): parts for name, parts in alone + together}

    def _sizes(self, paths: Iterable[str]) -> dict[str, int]:
        """Bytes of files on this disk, but of those that are named: a lake's have a shard each."""
        upstream = self.upstream
        named = () if self.settings.files else paths
        local = ((path, upstream.local_path(path)) for path in named)
        return {path: file.stat().st_size for path, file in local if file and file.is_file()}

    def _parts(self, path: str, name: str) -> list[tuple[str, str]]:
        """Paths and names of the shards of a file."""
        size, file = self.settings.shard_bytes, self.upstream.local_path(path)
        whole = not size or self.settings.reader or not path.endswith(PLAIN_JSON_LINES)
        if whole or file is None or not file.is_file():
            return [(path, name)]
        ranges = ranges_of(path, file.stat().st_size, size)
        if len(ranges) == 1:
            return [(path, name)]
        return [(part, f"{name}-{number:05d}") for number, part in enumerate(ranges)]

    def state(self, snapshot: SnapshotId) -> str:
        """A partition's state, which changes when one of its files changes according to the
        listing; no file is opened. For a web server it is the state of its listing file.

        Raises:
            Unreachable: when the place does not answer.
        """
        sizes = {"shard_bytes": self.settings.shard_bytes, "small_bytes": self.settings.small_bytes}
        size = [it for name, it in sizes.items() if it != getattr(SourceSettings(path="."), name)]
        if self.settings.files:
            looked = (self.upstream.look(path, trust_times=True) for path in self.settings.files)
            return short(
                digest_of([*size, *(file and [file.path, file.identity] for file in looked)])
            )
        marks = self.upstream.marks("")
        if marks is None:
            listing = self.upstream.look(self.settings.listing)
            return short(digest_of(listing.identity if listing else None))
        paths = self._by_partition().get(snapshot, [])
        found = {path: marks.get(f"/{path}") for path in paths}
        return short(digest_of([*size, found] if size else found))

    def batches(
        self, path: str, scratch: Path, fields: frozenset[str] | None = None
    ) -> Iterator[Batch]:
        """Documents of one file in order, and those that cannot be read.

        Args:
            path: relative to the source's root; may name a range of lines.
            scratch: folder for a local copy of a remote file.
            fields: of the records, as `ReadingOptions` has them.

        Raises:
            CorruptFile: when the file is missing or its container is damaged.
            Unreachable: when it cannot be downloaded.
            BadInput: when a Parquet file has no column for the text.
        """
        path, lines = parsed(path)
        options = ReadingOptions(
            lines=lines,
            text_field=self.settings.text_field or None,
            id_field=self.settings.id_field or None,
            quality=self.settings.quality,
            fields=fields,
        )
        with self.local_copy(path, scratch) as file:
            if self.settings.reader:
                reader = plugin("readers", self.settings.reader).load()
                yield from one_by_one(reader(file, options))
            else:
                yield from read_batches(file, options)

    @contextlib.contextmanager
    def local_copy(self, path: str, scratch: Path) -> Iterator[Path]:
        """A file of the source on disk: itself, or a temporary copy."""
        upstream = self.upstream
        local = upstream.local_path(path)
        if local is not None:
            if not local.is_file():
                raise CorruptFile(f"{local}: is missing")
            yield local
            return
        scratch.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=scratch) as folder:
            copy = Path(folder) / path.rpartition("/")[2]
            with upstream.open(path) as stream, copy.open("wb") as out:
                shutil.copyfileobj(stream, out, 1 << 20)
            yield copy

    def fields_seen(self, path: str, scratch: Path) -> list[str]:
        """Names of the fields of a file's first records, most frequent first; for messages."""
        counts: Counter[str] = Counter()
        with self.local_copy(parsed(path)[0], scratch) as file:
            if not file.name.endswith(JSON_LINES):
                return []
            with plain_bytes(file) as stream:
                for line in itertools.islice(bounded_lines(stream, 1 << 24), RECORDS_LOOKED_AT):
                    with contextlib.suppress(msgspec.MsgspecError, UnicodeDecodeError):
                        counts.update(list(_FIELDS.decode(line or b"")))
        return [name for name, _ in counts.most_common()]

    @property
    def _suffixes(self) -> tuple[str, ...]:
        """Ends of the names of files that are read."""
        return (f".{self.settings.reader}",) if self.settings.reader else KNOWN

    def _by_partition(self) -> dict[SnapshotId, list[str]]:
        """Paths of all files, by partition, sorted."""
        found: dict[SnapshotId, list[str]] = {}
        names: dict[SnapshotId, str] = {}
        for path in sorted(set(self._paths())):
            name = self._partition_name(path)
            key = self._key(name)
            if names.setdefault(key, name) != name:
                raise BadInput(
                    f"{self.settings.path}: partitions {names[key]!r} and {name!r} would both be "
                    f"called {key}; rename one, or partition by a pattern"
                )
            found.setdefault(key, []).append(path)
        return found

    def _paths(self) -> Iterable[str]:
        path = Path(self.settings.path)
        if path.is_file():
            return [path.name]
        if self.settings.files:
            return self.settings.files
        if self.settings.listing:
            return self._listed()
        below = self.upstream.below("")
        if below is None:
            raise BadInput(
                f"{self.settings.path}: a web server's files cannot be listed; set "
                f"sources.{self.name}.listing to a text file of paths, one a line"
            )
        found = [path for path in below if path.endswith(self._suffixes)]
        if not found:
            raise BadInput(
                f"{self.settings.path}: holds no file that ends in {', '.join(self._suffixes)}"
                if below or path.is_dir()
                else f"{self.settings.path}: no such folder or file"
            )
        return found

    def _listed(self) -> list[str]:
        content = self.upstream.read(self.settings.listing, most_bytes=LISTING_BYTES)
        where = f"{self.upstream.root}/{self.settings.listing}"
        if content is None:
            raise BadInput(f"{where}: no such listing")
        try:
            plain = gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content
            lines = [line.strip() for line in plain.decode("utf-8").splitlines()]
        except (OSError, EOFError, UnicodeDecodeError) as error:
            raise BadInput(f"{where}: not a text file of paths: {error}") from error
        root = f"{self.upstream.root.rstrip('/')}/"
        paths = [line.removeprefix(root) for line in lines if line]
        for path in paths:
            if path.startswith("/") or ".." in path.split("/") or "://" in path:
                raise BadInput(f"{where}: {path!r} is not a path below {root}")
        return [path for path in paths if path.endswith(self._suffixes)]

    def _partition_name(self, path: str) -> str:
        """The partition that a file belongs to, as its folder or pattern names it."""
        if self.settings.partition == "one":
            return ""
        if self.settings.partition == "folder":
            folder, found, _ = path.partition("/")
            if found:
                return folder
            wanted = 'lies in no folder, and partition is "folder"'
        else:
            match = re.search(self.settings.pattern, path)
            if match is not None and match["snapshot"]:
                return match["snapshot"]
            wanted = f"does not match the pattern {self.settings.pattern!r}"
        raise BadInput(
            f"{self.settings.path}/{path}: {wanted}; partition source {self.name} otherwise, or "
            "move the file"
        )

    def _key(self, partition: str) -> SnapshotId:
        safe = re.sub(r"[^A-Za-z0-9_-]+", "-", partition).strip("-")
        if not safe:
            return parse_snapshot(self.name)
        return parse_snapshot(f"{self.name}-{safe}" if self.prefixed else safe)


@functools.lru_cache(maxsize=16)
def _upstream(root: str, _path: Path) -> Upstream:
    """The place of a source, which every file asks for; a relative root is another in each working
    directory.
    """
    return Upstream(root)


def source_of_files(files: Iterable[Path]) -> SourceSettings:
    """Local files, in any folders, as one partition."""
    found = [file.resolve() for file in files]
    root = os.path.commonpath([file.parent for file in found])
    return SourceSettings(
        path=root, files=tuple(file.relative_to(root).as_posix() for file in found)
    )


def usable_id(own: str, seen: set[str], tag: str, before: str = "") -> str:
    """A record's own id, if it is valid after ``before`` and unique so far in the file; ``seen`` is
    updated. A document id that begins with the shard's ``tag/``, as in a lake, loses it.
    """
    if not own or own in seen:
        return ""
    bare = own.removeprefix(tag)
    is_usable = usable_own_id(bare) and (not before or usable_own_id(f"{before}{bare}"))
    if not (is_usable or (bare != own and is_line_id(bare))):
        return ""
    seen.add(own)
    return bare
