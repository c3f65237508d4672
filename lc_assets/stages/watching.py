"""Cheap detection of changed and new snapshots upstream and in the crawl.

`raw_snapshot` reads every file's identity, which takes a run. The *state* computed here changes
whenever such a run could find a change: for a folder or bucket it covers the names, sizes and ETags
of all files of a snapshot; for a web server, the identities of its listing files.

===========  ============================================  ==================================
upstream     cost of a tick                                not noticed
===========  ============================================  ==================================
folder       one walk: 15,000 files in 0.1 s               same size and modification time
bucket       one request per 1,000 to 5,000 files          nothing
web server   one request per language and snapshot         changed files, unchanged listing
===========  ============================================  ==================================
"""

import bisect
import re
import time
from collections.abc import Callable, Collection, Iterable, Sequence

import msgspec

from lc_assets.builds.settings.documents import RawSettings
from lc_assets.formats.archives.paths import LISTS
from lc_assets.lake.digests import digest_of, digest_of_set, short
from lc_assets.lake.upstream import Upstream
from lc_assets.sources import redpajama_v2
from lc_assets.sources.opening import NO_SOURCES, file_source, has_redpajama
from lc_assets.sources.settings import SourcesSettings
from lc_assets.stages.links.crawl_files import places_of
from lc_assets.vocabulary import SnapshotId, parse_snapshot

LISTINGS = "listings"
FOLDERS = ("documents", "quality_signals", "duplicates", "minhash")
_LISTING = re.compile(r"listings/([a-z]{2})-(.+)-head_middle\.txt", re.ASCII)

TICK_SECONDS = 20.0
"""After this time a tick leaves the other snapshots to the next one; Dagster's limit is 60 s."""


class Survey(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a tick.

    Attributes:
        states: by snapshot.
        unknown: snapshots that are listed upstream but are not partitions.
        next: the snapshot that the next tick starts with; None when all were surveyed.
    """

    states: dict[str, str]
    unknown: tuple[str, ...] = ()
    next: str | None = None


def survey(
    upstream: Upstream,
    settings: RawSettings,
    *,
    known: Collection[str],
    begun: Collection[str],
    sources: SourcesSettings = NO_SOURCES,
    first: str | None = None,
) -> Survey:
    """Survey the sources' partitions, as many as a tick has time for, and at least one.

    Args:
        upstream: where RedPajama-V2 is.
        settings: which languages are included.
        known: snapshots that are partitions.
        begun: those with a published manifest; only these are watched where nothing can be listed.
        sources: of the recipe; if empty, RedPajama-V2 at ``upstream``.
        first: the snapshot to start with.

    Raises:
        Unreachable: when upstream does not answer.
    """
    listed: dict[str, str] | None = {}
    if has_redpajama(sources):
        listed = upstream.marks(LISTINGS)
    there = None if listed is None else snapshots_of(listed)
    watched = set(begun) & set(known) if there is None else there & set(known)
    files = {name for name in known if sources and file_source(sources, name) is not None}
    found = _surveyed(
        sorted(watched | files),
        lambda snapshot: state_of(
            upstream, parse_snapshot(snapshot), settings, sources=sources, listed=listed
        ),
        first,
    )
    unknown = sorted((there or set()) - set(known))
    return msgspec.structs.replace(found, unknown=tuple(unknown))


def _surveyed(watched: Sequence[str], state: Callable[[str], str], first: str | None) -> Survey:
    """Survey some partitions, sorted by name, beginning with the first that is not before
    ``first``.
    """
    start = bisect.bisect_left(watched, first or "")
    started, states = time.monotonic(), dict[str, str]()
    for snapshot in [*watched[start:], *watched[:start]]:
        if states and time.monotonic() - started > TICK_SECONDS:
            return Survey(states=states, next=snapshot)
        states[snapshot] = state(snapshot)
    return Survey(states=states)


def state_of(
    upstream: Upstream,
    snapshot: SnapshotId,
    settings: RawSettings,
    *,
    sources: SourcesSettings = NO_SOURCES,
    listed: dict[str, str] | None = None,
) -> str:
    """A snapshot's state, which changes when the snapshot changes, as far as this is visible
    without reading its files.

    Args:
        upstream: root of the files.
        snapshot: its name.
        settings: which languages are included.
        sources: of the recipe; if empty, RedPajama-V2 at ``upstream``.
        listed: identities of the listing files, if already read.

    Raises:
        Unreachable: when upstream does not answer.
    """
    own = file_source(sources, snapshot)
    if own is not None:
        return own.state(snapshot)
    paths = [redpajama_v2.listing_path(snapshot, language) for language in settings.languages]
    marks = upstream.marks(LISTINGS) if listed is None else listed
    if marks is None:
        return _looked_at(upstream, paths)
    files = [
        digest_of_set((upstream.marks(f"{folder}/{snapshot}") or {}).items()) for folder in FOLDERS
    ]
    return short(digest_of([{path: marks.get(path) for path in paths}, files]))


def _looked_at(upstream: Upstream, paths: Iterable[str]) -> str:
    """A digest of the identities of some files."""
    looked = {path: upstream.look(path) for path in paths}
    identities = {path: file.identity if file else None for path, file in looked.items()}
    return short(digest_of(identities))


def survey_crawl(crawl: Upstream, indexed: Collection[str], *, first: str | None = None) -> Survey:
    """Survey the crawl's archives of indexed snapshots, as many as a tick has time for.

    Args:
        crawl: where.
        indexed: the snapshots.
        first: the snapshot to start with.

    Raises:
        Unreachable: when the crawl does not answer.
    """
    return _surveyed(sorted(indexed), lambda snapshot: state_of_crawl(crawl, snapshot), first)


def state_of_crawl(crawl: Upstream, snapshot: str) -> str:
    """The state of a snapshot's archives; on a web server, of their lists.

    Raises:
        Unreachable: when the crawl does not answer.
    """
    marks = [crawl.marks(place) for place in places_of(snapshot)]
    if all(found is not None for found in marks):
        return short(digest_of(marks))
    lists = (f"{place}/{name}" for place in places_of(snapshot) for name in LISTS.values())
    return _looked_at(crawl, lists)


def snapshots_of(paths: Collection[str]) -> set[str]:
    """Snapshots that listing files belong to.

    >>> listed = ["listings/en-2023-06-head_middle.txt", "listings/de-mine-head_middle.txt"]
    >>> sorted(snapshots_of([*listed, "listings/x.txt"]))
    ['2023-06', 'mine']
    """
    return {found.group(2) for found in map(_LISTING.fullmatch, paths) if found is not None}
