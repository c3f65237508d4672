"""Which snapshots a command is about, and their plans."""

from collections.abc import Callable, Sequence
from pathlib import Path

from lc_assets.builds.stage import BuildContext
from lc_assets.errors import BadInput, NotPublished
from lc_assets.lake.digests import digest_of
from lc_assets.sources.opening import has_redpajama, partitions_by_source
from lc_assets.sources.redpajama_v2 import listed_snapshots
from lc_assets.stages import planning
from lc_assets.stages.catalogue import read_by, stage_named
from lc_assets.stages.documents import raw_snapshot as raw
from lc_assets.stages.links import html_index
from lc_assets.stages.links.crawl_files import own_archives
from lc_assets.vocabulary import parse_snapshot

SHOWN = 5
"""Names of known snapshots in an error."""


def chosen_snapshots(context: BuildContext, named: Sequence[str] | None) -> list[str]:
    """The partitions that are named, or those that the lake or the sources know; sorted.

    Raises:
        BadInput: when a name is not a snapshot, or neither the lake nor a source has it.
        NotPublished: when neither has one.
    """
    lists = _partitions_of_sources(context)
    known: set[str] = set(context.lake.keys("raw_snapshot")).union(*lists)
    chosen: list[str] = sorted({parse_snapshot(name) for name in named or known})
    unknown = [name for name in chosen if name not in known]
    if unknown and all(lists):
        raise BadInput(
            f"{', '.join(unknown)}: no snapshot of the lake or of its sources, which have "
            f"{', '.join(sorted(known)[-SHOWN:])}"
        )
    if not chosen:
        raise NotPublished(
            f"no snapshot is known: nothing is published in {context.lake.url}, no listing is in "
            f"{context.upstream.root}, and no source of files on disk is set; name --snapshot"
        )
    return chosen


def _partitions_of_sources(context: BuildContext) -> list[set[str]]:
    """The partitions of each source; none of one whose are not known without network."""
    sources = context.recipe.sources
    found: list[set[str]] = [set(keys) for keys in partitions_by_source(sources).values()]
    if has_redpajama(sources):
        found.append(listed_snapshots(Path(context.upstream.root)))
    return found


def planner_of(
    context: BuildContext,
    named: Sequence[str] | None = None,
    *,
    look: bool,
    until: Sequence[str] | None = None,
) -> Callable[[], list[planning.Plan]]:
    """A function that plans `chosen_snapshots`; with ``look``, compared with what is upstream now;
    only the stages ``until`` and what they read, or all.
    """
    snapshots = chosen_snapshots(context, named)
    looked = look_at_all(context, snapshots) if look else {}
    within = {
        name for last in until or () for name in (last, *read_by(stage_named(last), context.recipe))
    }
    return lambda: [
        made
        for made in planning.plan(context.lake, context.recipe, snapshots, **looked)
        if not until or made.stage in within
    ]


def look_at_all(context: BuildContext, snapshots: list[str]) -> dict[str, dict[str, str]]:
    """Digests of each snapshot's files as they are upstream now, and in the crawl if pages were
    looked up there before.

    Returns:
        Arguments of `lc_assets.stages.planning.plan`.
    """
    found = {name: raw.look_at_snapshot(context, parse_snapshot(name)) for name in snapshots}
    wanted = html_index.STAGE.wanted(context.recipe)
    indexed = context.lake.keys(html_index.STAGE.name) if wanted else ()
    return {
        "upstream_digests": {
            name: digest_of(raw.manifest_of(files).to_pylist()) for name, files in found.items()
        },
        "crawl_digests": {
            name: html_index.look_at_crawl(context, parse_snapshot(name))
            for name in snapshots
            if name in indexed
            and (context.crawl is not None or own_archives(context.recipe, parse_snapshot(name)))
        },
    }
