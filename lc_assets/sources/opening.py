"""A recipe's sources, opened, and the partitions that they have."""

from importlib import resources
from pathlib import Path
from types import MappingProxyType

from lc_assets.errors import BadInput
from lc_assets.lake.upstream import Upstream
from lc_assets.sources.files import FileSource
from lc_assets.sources.settings import SourcesSettings, source_name, source_of_key
from lc_assets.vocabulary import SnapshotId, parse_snapshot


def file_source(settings: SourcesSettings, key: str) -> FileSource | None:
    """The source of files that a partition belongs to; None when that is RedPajama-V2."""
    found = source_of_key(settings, key)
    if found.kind == "redpajama_v2":
        return None
    return FileSource(name=source_name(settings, key), settings=found, prefixed=len(settings) > 1)


def upstream_of(settings: SourcesSettings, key: str, default: Upstream) -> Upstream:
    """The location of a partition's files; ``default`` is RedPajama-V2's location if the recipe
    does not set one.
    """
    files = file_source(settings, key)
    if files is not None:
        return files.upstream
    path = source_of_key(settings, key).path
    return Upstream(path) if path else default


def has_redpajama(settings: SourcesSettings) -> bool:
    """Whether RedPajama-V2 is one of the sources."""
    return not settings or any(found.kind == "redpajama_v2" for found in settings.values())


def file_partitions(sources: SourcesSettings) -> tuple[SnapshotId, ...]:
    """Partition keys of all sources of files, as far as they are known without network; sorted.

    Raises:
        BadInput: when two sources have a partition of the same name.
    """
    return tuple(sorted(key for keys in partitions_by_source(sources).values() for key in keys))


def partitions_by_source(sources: SourcesSettings) -> dict[str, tuple[SnapshotId, ...]]:
    """The same, by the name of the source; nothing for one whose are not known without network."""
    found: dict[str, tuple[SnapshotId, ...]] = {}
    owners: dict[SnapshotId, str] = {}
    for name, source in sources.items():
        if source.kind != "files":
            continue
        opened = FileSource(name=name, settings=source, prefixed=len(sources) > 1)
        found[name] = opened.partitions()
        for key in found[name]:
            if owners.setdefault(key, name) != name:
                raise BadInput(f"sources {owners[key]} and {name} both have a partition {key}")
    return found


NO_SOURCES: SourcesSettings = MappingProxyType({})

MOST = 99
"""Dagster stops tracking staleness on an edge from 100 upstream partitions on
(`SKIP_PARTITION_DATA_VERSION_DEPENDENCY_THRESHOLD`).
"""


def known_snapshots(
    own: Path | None = None, sources: SourcesSettings = NO_SOURCES
) -> tuple[SnapshotId, ...]:
    """RedPajama-V2's snapshots, then those of sources of files, then the user's own; no network is
    used.

    Args:
        own: path of the user's list of snapshots.
        sources: of the recipe; if empty, RedPajama-V2.

    Raises:
        BadInput: when the user's file is missing, a line is not a valid name, a name is repeated,
            or there are too many.
    """
    published = resources.files("lc_assets").joinpath("presets/snapshots.txt").read_text("utf-8")
    listed = file_partitions(sources)
    names = [
        *(parse_snapshots(published, where="snapshots.txt") if has_redpajama(sources) else []),
        *listed,
        *(name for name in (_read(own) if own else []) if name not in listed),
    ]
    if len(set(names)) < len(names):
        raise BadInput(f"{own}: names a snapshot twice, or one of RedPajama-V2's")
    if len(names) > MOST:
        raise BadInput(
            f"{own or 'sources'}: {len(names)} snapshots in all; Dagster follows at most {MOST} "
            "partitions "
            "into the global order"
        )
    return tuple(names)


def parse_snapshots(text: str, *, where: str) -> list[SnapshotId]:
    r"""Names of a list, in its order.

    >>> parse_snapshots("# mine\n\nbooks-1\n", where="mine.txt")
    ['books-1']
    """
    names = (line.partition("#")[0].strip() for line in text.splitlines())
    try:
        return [parse_snapshot(name) for name in names if name]
    except BadInput as error:
        raise BadInput(f"{where}: {error}") from error


def _read(own: Path) -> list[SnapshotId]:
    if not own.is_file():
        raise BadInput(f"{own}: no such file of snapshots")
    try:
        text = own.read_text("utf-8")
    except UnicodeDecodeError as error:
        raise BadInput(f"{own}: not UTF-8 text: {error}") from error
    return parse_snapshots(text, where=str(own))
