"""The files of a crawl: the paths of a snapshot's archives and indexes, and what identifies their
content.

They are searched in two folders below the crawl's root (``LC_CRAWL``)::

    crawl-data/CC-MAIN-{snapshot}/           Common Crawl's layout
    {snapshot}/                              a folder of your own

In each, Common Crawl's lists (``warc.paths.gz``, ``wat.paths.gz``, ``cc-index.paths.gz``,
``cc-index-table.paths.gz``) name the files by paths below the root; without a list, a folder or a
bucket is listed. Web servers need lists.

Here: names, sizes, identities. Not here: the content of the files (`lc_assets.formats.archives`),
which of them contains a document's page (`lc_assets.stages.links.html_index`).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa

from lc_assets.build.settings.longpack import HtmlIndexSettings
from lc_assets.build.stage import BuildContext
from lc_assets.build.tables import read_lines
from lc_assets.errors import BadInput, CorruptFile
from lc_assets.formats.archives.paths import LISTS, MAX_LIST_BYTES, Kind, kind_of, listed_paths
from lc_assets.lake.upstream import Upstream, UpstreamFile, with_retries
from lc_assets.stages.links.link_tables import CRAWL_FILES

FILES_TABLE: Final = "crawl_files.parquet"


@dataclass(frozen=True, slots=True)
class CrawlTask:
    """Look up one file of a crawl."""

    crawl: Upstream
    path: str
    trust_times: bool

    def __str__(self) -> str:
        return self.path


def crawl_of(context: BuildContext) -> Upstream:
    """The crawl's archives.

    Raises:
        BadInput: if no crawl is set.
    """
    if context.crawl is None:
        raise BadInput(
            "pages of the crawl are wanted, but nobody has said where its archives lie: set "
            "LC_CRAWL to a folder or a URL"
        )
    return context.crawl


def crawl_files(crawl: Upstream, snapshot: str) -> dict[Kind, list[str]]:
    """Paths of a snapshot's files by kind, below the crawl's root, sorted; a kind of which there is
    none has an empty list.

    Raises:
        BadInput: when there is none of any kind; names where they were looked for.
        CorruptFile: when a list of paths is none.
        Unreachable: when the crawl cannot be reached.
    """
    places = places_of(snapshot)
    found: dict[Kind, list[str]] = {kind: _listed(crawl, places, kind) for kind in LISTS}
    if not all(found.values()):
        seen = [path for place in places for path in crawl.below(place) or []]
        found = {
            kind: listed or [path for path in seen if kind_of(path) == kind]
            for kind, listed in found.items()
        }
    if not any(found.values()):
        lists = ", ".join(LISTS.values())
        raise BadInput(
            f"{crawl.root}: no files of crawl {snapshot}: neither a list ({lists}) nor files in "
            f"{' or '.join(places)}"
        )
    return {kind: sorted(set(paths)) for kind, paths in found.items()}


def places_of(snapshot: str) -> tuple[str, str]:
    """Folders below the crawl's root where a snapshot's files, and the lists of them, are looked
    for.
    """
    return f"crawl-data/CC-MAIN-{snapshot}", snapshot


def kind_that_is_read(settings: HtmlIndexSettings) -> Kind:
    """The kind of files that locates pages."""
    if settings.index == "scan":
        return settings.links_from
    return settings.index


def looked_at(
    context: BuildContext, files: dict[Kind, list[str]], kinds: Iterable[Kind], *, what: str
) -> pa.Table:
    """A `CRAWL_FILES` table: all files, with size and identity of those of some kinds, which may
    require reading them.

    Raises:
        CorruptFile: if one of them is missing.
        Unreachable: if the crawl cannot be reached, after retries.
    """
    crawl, trust_times = crawl_of(context), context.recipe.raw_snapshot.trust_file_times
    tasks = [CrawlTask(crawl, path, trust_times) for kind in kinds for path in files[kind]]
    facts = {task.path: file for task, file in context.executor.run(look, tasks, what=what)}
    lines = [
        {
            "path": path,
            "kind": kind,
            **(
                {"n_bytes": fact.n_bytes, "identity": fact.identity}
                if (fact := facts.get(path))
                else {}
            ),
        }
        for kind, paths in files.items()
        for path in paths
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
    for paths in _lists(crawl, places, kind):
        return [path for path in paths if kind_of(path) == kind]
    return []


def _lists(crawl: Upstream, places: Iterable[str], kind: Kind) -> Iterator[list[str]]:
    for place in places:
        path = f"{place}/{LISTS[kind]}"
        content = crawl.read(path, most_bytes=MAX_LIST_BYTES)
        if content is not None:
            yield listed_paths(content, where=f"{crawl.root}/{path}")
