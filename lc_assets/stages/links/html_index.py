"""`html_index`: which record of the crawl contains a filtered document's page, as it was fetched.

A page is identified by its key (`lc_assets.text.links.page_keys`). Its records are located by
reading the archives once (``html_index.index = "scan"``; or the crawl's own lists of links with
``html_index.links_from = "wat"``), or by an index of the crawl: text (``"cdxj"``) or Parquet
(``"columnar"``). With an index, a capture must also have the index's key of the document's URL.
`lc_assets.stages.links.page_captures` chooses among several captures.

Publishes a table per shard of filtered documents, the addresses that redirect to others according
to the archives or index that was read, and the crawl's files with the identities of those that were
read. Their digest is an input of the version, so it is out of date when a file of
the crawl changes.
"""
# ruff: noqa: S608 - every name in these queries is this package's own, every value a number

from pathlib import Path
from typing import Any

from lc_assets.builds.building import run_shards
from lc_assets.builds.checks import DOCUMENTS_SUFFIX, documents_files, reads_all_upstream_documents
from lc_assets.builds.recipe import Recipe
from lc_assets.builds.stage import (
    SAME_SNAPSHOT,
    BuildContext,
    CheckInput,
    CheckResult,
    Stage,
    StagingFolder,
)
from lc_assets.builds.table_checks import table_failures
from lc_assets.builds.tables import FILTERED, Line, count_lines, read_lines, write_table
from lc_assets.counts import Counts
from lc_assets.formats.archives.fetching import HtmlPage, Spot, pages_at
from lc_assets.formats.archives.paths import Kind, is_inside
from lc_assets.formats.archives.wat import WatPage, wat_pages_at
from lc_assets.formats.corpora.containers import Unread
from lc_assets.lake.digests import digest_of
from lc_assets.lake.receipts import SCRATCH
from lc_assets.lake.upstream import Upstream, with_retries
from lc_assets.publishing import finished
from lc_assets.stages import watching
from lc_assets.stages.deduplication.queries import check_by_queries, queries
from lc_assets.stages.links.crawl_files import (
    FILES_TABLE,
    crawl_of,
    crawl_table,
    kind_that_is_read,
    links_are_wanted,
    own_archives,
    paths_of,
)
from lc_assets.stages.links.link_tables import CRAWL_FILES, HTML_INDEX
from lc_assets.stages.links.page_captures import (
    CAPTURED,
    LEFT_OUT,
    NO_ADDRESS,
    NO_CAPTURE,
    NO_PAGE,
    RECORDS,
    CapturesTask,
    DocumentsTask,
    choose,
    counts_after,
    find_captures,
    note_documents,
    note_what_is_wanted,
    publish_chosen,
    publish_redirects,
    some_chosen,
)
from lc_assets.text.links.page_keys import page_key
from lc_assets.vocabulary import SnapshotId

INDEX_SUFFIX = ".html_index.parquet"
REDIRECTS_FILE = "redirects.parquet"
LOOKED_AT = "records looked at again"
OTHERS = "records of another page"
UNREAD = "records that hold no page"
LOOKED_AT_AGAIN = 20
"""Records that a check fetches to see whether they contain the page that the index names."""
REASONS = (NO_ADDRESS, NO_CAPTURE, NO_PAGE)


def write_html_index(context: BuildContext, staging: StagingFolder) -> Counts:
    """Write the locations of the pages of one snapshot's filtered documents.

    Raises:
        BadInput: if no crawl is set, or it has no files of the requested kind.
        CorruptFile: if a file of the crawl is missing, damaged or truncated.
        Unreachable: if the crawl cannot be reached, after retries.
    """
    snapshot = staging.key
    write_table(staging.folder / FILES_TABLE, staging.outside["crawl"])
    kind = kind_that_is_read(context.recipe.html_index)
    documents = documents_files(staging.own("filtered_documents").folder)
    if not documents:
        return Counts(seen=0, kept=0)
    notes = [
        DocumentsTask(documents=path, file=number, folder=staging.folder)
        for number, path in enumerate(documents)
    ]
    noted = run_shards(context, staging, note_documents, notes, what=f"keys of pages of {snapshot}")
    crawl = crawl_of(context, snapshot)
    with queries(staging.folder / SCRATCH / "duckdb") as database:
        note_what_is_wanted(database, staging.folder, kind)
        tasks = [
            CapturesTask(crawl=crawl, path=path, kind=kind, number=number, folder=staging.folder)
            for number, path in enumerate(paths_of(staging.folder, kind))
        ]
        what = f"pages in the crawl of {snapshot}"
        found = run_shards(context, staging, find_captures, tasks, what=what)
        missing = choose(database, staging.folder)
        paths = [
            staging.folder / path.name.replace(DOCUMENTS_SUFFIX, INDEX_SUFFIX) for path in documents
        ]
        publish_chosen(database, paths)
        publish_redirects(database, staging.folder, staging.folder / REDIRECTS_FILE)
        sample = some_chosen(database, LOOKED_AT_AGAIN)
    kept = noted.kept - sum(missing.values())
    extra = found.extra | _look_again(crawl, sample, kind)
    return Counts.of(kept, noted.dropped | missing, extra)


def look_at_crawl(context: BuildContext, snapshot: SnapshotId) -> str:
    """Digest of a snapshot's archives as they are now: the input of a version built now.

    Raises:
        BadInput: if no crawl is set, or it has no files of the requested kind.
        CorruptFile: if a listed file is missing.
        Unreachable: if the crawl cannot be reached, after retries.
    """
    return digest_of(crawl_table(context, snapshot).to_pylist())


def index_files(folder: Path) -> list[Path]:
    """The tables of a version, sorted by shard; each is named as the filtered documents' is."""
    return finished(folder.glob(f"*{INDEX_SUFFIX}"))


def records_by_kind(counts: Counts) -> dict[str, int]:
    """What was read of the crawl: captures, and other records by what they were."""
    return {CAPTURED: counts.extra.get(CAPTURED, 0), **counts_after(counts, LEFT_OUT)}


def _look_again(crawl: Upstream, lines: list[Line], kind: Kind) -> dict[str, int]:
    """Fetch some records; count those that contain another page than indexed."""
    spots = [Spot(line["filename"], line["offset"], line["length"]) for line in lines]
    pages = with_retries(_fetched)((crawl, kind, spots))
    keys = [page_key(page.url) if isinstance(page, HtmlPage | WatPage) else None for page in pages]
    return {
        LOOKED_AT: len(lines),
        OTHERS: sum(
            key is not None and key != line["page_key"]
            for key, line in zip(keys, lines, strict=True)
        ),
        UNREAD: keys.count(None),
    }


def _fetched(task: tuple[Upstream, Kind, list[Spot]]) -> list[HtmlPage | WatPage | Unread]:
    crawl, kind, spots = task
    return list(wat_pages_at(crawl, spots) if kind == "wat" else pages_at(crawl, spots))


def the_index_adds_up(check_input: CheckInput) -> CheckResult:
    """The tables have as many documents as counted; the others are missing for known reasons; every
    record read is counted.
    """
    n_lines, counts = (
        sum(count_lines(path) for path in index_files(check_input.folder)),
        check_input.counts,
    )
    left_out = sum(counts_after(counts, LEFT_OUT).values())
    records, captures = counts.extra.get(RECORDS, 0), counts.extra.get(CAPTURED, 0)
    strange = sorted(set(counts.dropped) - set(REASONS))
    return CheckResult(
        passed=n_lines == counts.kept and records == captures + left_out and not strange,
        message=f"{n_lines:,} documents in the tables, {counts.kept:,} counted; {records:,} "
        "records "
        f"read: {captures:,} captures "
        f"and {left_out:,} others"
        + (f"; unknown reasons: {', '.join(strange)}" if strange else ""),
        values={"indexed": n_lines, "records read": records, "captures": captures},
    )


def every_place_is_in_the_crawl(check_input: CheckInput) -> CheckResult:
    """The tables fit their schema; every document is a filtered one and occurs once; every archive
    belongs to the crawl; positions and page keys are valid.
    """
    paths = index_files(check_input.folder)
    columns = ["url", "captured_url", "page_key", "filename"]
    lines = (line for path in paths for line in read_lines(path, columns))
    n_wrong = sum(
        not is_inside(line["filename"])
        or {page_key(line["url"]), page_key(line["captured_url"])} != {line["page_key"]}
        for line in lines
    )
    archives = "(SELECT path FROM files WHERE kind IN ('warc', 'wat'))"
    errors = {
        "documents that are not filtered, or have another address": (
            "SELECT * FROM pages ANTI JOIN documents USING (id, url)"
        ),
        "records in no file of the crawl": (
            f"SELECT * FROM pages ANTI JOIN {archives} ON path = filename "
            f"WHERE EXISTS (FROM {archives})"
        ),
        "impossible locations or times": (
            'SELECT * FROM pages WHERE "offset" < 0 OR length <= 0 '
            "OR length(timestamp) NOT IN (0, 14)"
        ),
        "keys of other addresses, or paths outside": f"SELECT * FROM range({n_wrong})",
    }
    failures = [words for path in paths for words in table_failures(path, HTML_INDEX, unique="id")]
    errors |= dict.fromkeys(failures, "SELECT 1")
    tables = {
        "pages": (paths, HTML_INDEX),
        "documents": (
            documents_files(check_input.only_input("filtered_documents").folder),
            FILTERED,
        ),
        "files": ([check_input.folder / FILES_TABLE], CRAWL_FILES),
    }
    message = f"{len(paths):,} tables fit, {{:,}} archives"
    return check_by_queries(tables, errors, message, f"SELECT count(*) FROM {archives}")


def records_hold_the_pages_they_should(check_input: CheckInput) -> CheckResult:
    """An even sample of records, fetched again from the crawl, contains the pages that the index
    names.
    """
    n_looked_at, n_others, n_unread = (
        check_input.counts.extra.get(name, 0) for name in (LOOKED_AT, OTHERS, UNREAD)
    )
    enough = n_looked_at >= min(check_input.counts.kept, LOOKED_AT_AGAIN)
    return CheckResult(
        passed=not n_others and n_unread <= n_looked_at // 2 and enough,
        message=f"{n_looked_at:,} records fetched again: {n_others:,} hold another page, "
        f"{n_unread:,} none that can be read",
        values={LOOKED_AT: n_looked_at, OTHERS: n_others, UNREAD: n_unread},
    )


def _params(recipe: Recipe, _: str) -> dict[str, Any]:
    return {"index": recipe.html_index.index, "links_from": recipe.html_index.links_from}


def _state(context: BuildContext, snapshot: SnapshotId) -> str:
    own = own_archives(context.recipe, snapshot)
    if own is not None:
        return own.state(snapshot)
    return watching.state_of_crawl(crawl_of(context, snapshot), snapshot)


STAGE = Stage(
    name="html_index",
    description=(
        "The record in the crawl's archives of each filtered document's page, for one snapshot."
    ),
    code_version="3",
    reads={"filtered_documents": SAME_SNAPSHOT},
    params=_params,
    checks=(
        reads_all_upstream_documents("filtered_documents"),
        the_index_adds_up,
        every_place_is_in_the_crawl,
        records_hold_the_pages_they_should,
    ),
    columns=HTML_INDEX,
    wanted=links_are_wanted,
    group="links",
    job="snapshot_longpack",
    kinds=("parquet", "duckdb"),
    outside={"crawl": crawl_table},
    write=write_html_index,
    state=_state,
)
"""Where the pages of a snapshot's filtered documents are in the crawl's archives."""
