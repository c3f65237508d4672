"""A recipe's sources, opened, and the partitions that they have."""

from typing import Protocol

from lc_assets.errors import BadInput
from lc_assets.lake.upstream import Upstream
from lc_assets.sources.files import FileSource
from lc_assets.sources.settings import SourcesSettings, source_name, source_of_key
from lc_assets.vocabulary import Shard, SnapshotId


class Source(Protocol):
    """What a stage asks of a source."""

    @property
    def upstream(self) -> Upstream:
        """Where its files are."""
        ...

    def shards(self, snapshot: SnapshotId) -> dict[Shard, dict[str, str]]:
        """Paths of the files of each shard of a partition, by part, below the upstream's root."""
        ...


def file_source(settings: SourcesSettings, key: str) -> FileSource | None:
    """The source of files that a partition belongs to; None when that is RedPajama-V2."""
    found = source_of_key(settings, key)
    if found.kind == "redpajama_v2":
        return None
    return FileSource(name=source_name(settings, key), settings=found, prefixed=len(settings) > 1)


def upstream_of(settings: SourcesSettings, key: str, default: Upstream) -> Upstream:
    """Where the files of a partition are; ``default`` is where RedPajama-V2 is when the recipe does
    not say.
    """
    files = file_source(settings, key)
    if files is not None:
        return files.upstream
    path = source_of_key(settings, key).path
    return Upstream(path) if path else default


def has_redpajama(settings: SourcesSettings) -> bool:
    """Whether RedPajama-V2 is one of the sources."""
    return not settings or any(found.kind == "redpajama_v2" for found in settings.values())


def file_partitions(settings: SourcesSettings) -> tuple[SnapshotId, ...]:
    """Partition keys of all sources of files, as far as they are known without network; sorted.

    Raises:
        BadInput: when two sources have a partition of one name.
    """
    found: dict[SnapshotId, str] = {}
    for name, source in settings.items():
        if source.kind != "files":
            continue
        opened = FileSource(name=name, settings=source, prefixed=len(settings) > 1)
        for key in opened.partitions():
            if found.setdefault(key, name) != name:
                raise BadInput(f"sources {found[key]} and {name} both have a partition {key}")
    return tuple(sorted(found))
