"""The files of a crawl: the paths of a snapshot's archives and indexes, and what identifies their
content.

The archives of a partition's pages are the WARC files that `html_index.archives` names, else those
of the partition's own source of files, else a crawl's (``LC_CRAWL``), in two folders below its
root::

    crawl-data/CC-MAIN-{snapshot}/           Common Crawl's layout
    {snapshot}/                              a folder of your own

In each, Common Crawl's lists (``warc.paths.gz``, ``wat.paths.gz``, ``cc-index.paths.gz``,
``cc-index-table.paths.gz``) name the files by paths below the root; without a list, a folder or a
bucket is listed. Web servers need lists.

`lc_assets.formats.archives` reads the files.
"""

from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa

from lc_assets.builds.recipe import Recipe
from lc_assets.builds.settings.longpack import HtmlIndexSettings
from lc_assets.builds.stage import BuildContext
from lc_assets.builds.tables import read_lines
from lc_assets.errors import BadInput, CorruptFile
from lc_assets.formats.archives.paths import (
    ENDS,
    LISTS,
    MAX_LIST_BYTES,
    Kind,
    kind_of,
    listed_paths,
)
from lc_assets.formats.corpora.reading import corpus_files
from lc_assets.lake.upstream import Upstream, UpstreamFile, with_retries
from lc_assets.records import frozen
from lc_assets.sources.files import FileSource, source_of_files
from lc_assets.sources.opening import file_source
from lc_assets.stages.links.link_tables import CRAWL_FILES
from lc_assets.vocabulary import SnapshotId

FILES_TABLE = "crawl_files.parquet"


@frozen
class CrawlTask:
    """Look up one file of a crawl."""

    crawl: Upstream
    path: str
    trust_times: bool

    def __str__(self) -> str:
        return self.path


def own_archives(recipe: Recipe, snapshot: SnapshotId) -> FileSource | None:
    """The archives that the recipe names, or the WARC files of the partition's own source; None
    when there are neither.

    Raises:
        BadInput: when one that is named does not exist.
    """
    named = recipe.html_index.archives
    if named:
        files = corpus_files(map(Path, named), suffixes=ENDS[recipe.html_index.links_from])
        return FileSource(name=snapshot, settings=source_of_files(files))
    source = file_source(recipe.sources, snapshot)
    if source is None or kind_that_is_read(recipe.html_index) != "warc":
        return None
    return source if _paths(source, snapshot) else None


def _paths(source: FileSource, snapshot: SnapshotId) -> list[str]:
    """Paths of a source's archives."""
    found = (path for files in source.shards(snapshot).values() for path in files.values())
    return [path for path in found if kind_of(path) in {"warc", "wat"}]


def crawl_of(context: BuildContext, snapshot: SnapshotId) -> Upstream:
    """Where the archives of a partition's pages are.

    Raises:
        BadInput: if they are not known.
    """
    own = own_archives(context.recipe, snapshot)
    if own is not None:
        return own.upstream
    if context.crawl is None:
        raise BadInput(
            f"the archives with the pages of {snapshot} are not known: name WARC files "
            "(html_index.archives, --warc), or set LC_CRAWL to a folder or a URL"
        )
    return context.crawl


def crawl_files(context: BuildContext, snapshot: SnapshotId) -> dict[Kind, list[str]]:
    """Paths of the archives and indexes of a partition's pages by kind, below `crawl_of`, sorted; a
    kind of which there is none has an empty list.

    Raises:
        BadInput: when there is none of any kind; names the searched locations.
        CorruptFile: when a list of paths is malformed.
        Unreachable: when the crawl cannot be reached.
    """
    own = own_archives(context.recipe, snapshot)
    if own is not None:
        found = _paths(own, snapshot)
    else:
        crawl, places = crawl_of(context, snapshot), places_of(snapshot)
        found = [path for kind in LISTS for path in _listed(crawl, places, kind)]
        kinds = {kind_of(path) for path in found}
        if len(kinds) < len(LISTS):
            seen = [path for place in places for path in crawl.below(place) or []]
            found += [path for path in seen if kind_of(path) not in kinds]
        if not any(map(kind_of, found)):
            raise BadInput(
                f"{crawl.root}: no files of crawl {snapshot}: neither a list "
                f"({', '.join(LISTS.values())}) nor files in {' or '.join(places)}; "
                "a partition has its crawl's name, such as the folder's with --partition folder"
            )
    return {kind: sorted({path for path in found if kind_of(path) == kind}) for kind in LISTS}


def places_of(snapshot: str) -> tuple[str, str]:
    """Folders below the crawl's root where a snapshot's files, and the lists of them, are looked
    for.
    """
    return f"crawl-data/CC-MAIN-{snapshot}", snapshot


def links_are_wanted(recipe: Recipe) -> bool:
    """Whether a recipe needs the links of pages."""
    return recipe.longpack_documents.wanted or bool(recipe.page_links.lists)


def kind_that_is_read(settings: HtmlIndexSettings) -> Kind:
    """The kind of files that locates pages."""
    if settings.index == "scan":
        return settings.links_from
    return settings.index


def crawl_table(context: BuildContext, snapshot: SnapshotId) -> pa.Table:
    """A `CRAWL_FILES` table of a partition's archives: all files, with size and identity of those
    that locate pages, which may require reading them.

    Raises:
        BadInput: if the archives are not known, or none are of the requested kind.
        CorruptFile: if one of them is missing.
        Unreachable: if the crawl cannot be reached, after retries.
    """
    crawl, kind = crawl_of(context, snapshot), kind_that_is_read(context.recipe.html_index)
    files = crawl_files(context, snapshot)
    if not files[kind]:
        found = ", ".join(f"{len(paths):,} {name}" for name, paths in files.items() if paths)
        raise BadInput(
            f"{crawl.root}: crawl {snapshot} has no {kind} files ({found}), which "
            "html_index.index and html_index.links_from ask for"
        )
    # An index names its pages' archives and digests, so that of these the names are enough.
    kinds = [kind] if kind in {"warc", "wat"} else ["warc", kind]
    trust_times = context.recipe.raw_snapshot.trust_file_times
    tasks = [CrawlTask(crawl, path, trust_times) for path in files[kind]]
    run = context.executor.run(look, tasks, what=f"look at the crawl of {snapshot}")
    facts = {task.path: [file.n_bytes, file.identity] for task, file in run}
    lines = [
        dict(zip(CRAWL_FILES.names, [path, kind, *facts.get(path, [])], strict=False))
        for kind in LISTS
        if kind in kinds
        for path in files[kind]
    ]
    return pa.Table.from_pylist(lines, schema=CRAWL_FILES)


@with_retries
def look(task: CrawlTask) -> UpstreamFile:
    """State one file."""
    file = task.crawl.look(task.path, trust_times=task.trust_times)
    if file is None:
        raise CorruptFile(
            f"{task.crawl.root}/{task.path}: is missing, but the crawl lists it; fetch it, or "
            "take it off the list"
        )
    return file


def paths_of(folder: Path, kind: Kind) -> list[str]:
    """Paths of the files of one kind, of a version that states them."""
    return [
        line["path"]
        for line in read_lines(folder / FILES_TABLE, ["path", "kind"], batch_lines=4096)
        if line["kind"] == kind
    ]


def _listed(crawl: Upstream, places: Iterable[str], kind: Kind) -> list[str]:
    for place in places:
        path = f"{place}/{LISTS[kind]}"
        content = crawl.read(path, most_bytes=MAX_LIST_BYTES)
        if content is not None:
            paths = listed_paths(content, where=f"{crawl.root}/{path}")
            return [path for path in paths if kind_of(path) == kind]
    return []
