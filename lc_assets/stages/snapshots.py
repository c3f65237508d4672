"""Which partitions there are: RedPajama-V2's 84 snapshots, those of a recipe's sources of files,
and those that a user lists.

RedPajama-V2 is a closed list (``configs/rp_v2.0.conf``, agreed by its loader). Files on disk are
listed; what is elsewhere is named in the recipe (`SourceSettings.partitions`) or in a text file,
one name a line, ``#`` for comments.
"""

from importlib import resources
from pathlib import Path
from types import MappingProxyType

from lc_assets.errors import BadInput
from lc_assets.sources.opening import file_partitions, has_redpajama
from lc_assets.sources.settings import SourcesSettings
from lc_assets.vocabulary import SnapshotId, parse_snapshot

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
        own: a text file of the user's.
        sources: of the recipe; none means RedPajama-V2.

    Raises:
        BadInput: when the user's file is missing, a line is not a name, a name is there twice, or
            there are too many.
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
