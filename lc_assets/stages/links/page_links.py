"""`page_links`: which pages the pages of one snapshot link to, and with which words.

Read from the records that `html_index` located: HTML, or the crawl's own lists of links. Only
LongPack's roots are read, or all pages: if packing continues from the roots' targets, or if portals
are dropped, which are recognised by the links of all pages of their host. Which links are packed is
decided in `link_claims`, not here; targets need not have been crawled.
"""
# ruff: noqa: S608 - every name in these queries is this package's own, every path is quoted

from pathlib import Path
from typing import Any

from lc_assets.builds.building import run_shards
from lc_assets.builds.checks import DOCUMENTS_SUFFIX, evenly_spaced, reads_all_upstream_documents
from lc_assets.builds.recipe import Recipe
from lc_assets.builds.stage import (
    SAME_SNAPSHOT,
    BuildContext,
    CheckInput,
    CheckResult,
    Stage,
    StagingFolder,
)
from lc_assets.builds.tables import Line, read_table
from lc_assets.counts import Counts
from lc_assets.lake.versions import Published
from lc_assets.packing.longpack import roots_drawn_by
from lc_assets.publishing import finished
from lc_assets.stages.deduplication.queries import (
    Tables,
    check_by_queries,
    queries_over,
)
from lc_assets.stages.links.crawl_files import crawl_of, kind_that_is_read, links_are_wanted
from lc_assets.stages.links.html_index import INDEX_SUFFIX, index_files
from lc_assets.stages.links.link_tables import ALIASES, HTML_INDEX as PAGES, PAGE_LINKS
from lc_assets.stages.links.page_captures import counts_after
from lc_assets.stages.links.page_linking import (
    CANONICAL_SUFFIX,
    LEFT_OUT,
    LINKS,
    LINKS_SUFFIX,
    TARGETS,
    LinksTask,
    find_links,
)
from lc_assets.text.links.page_keys import page_key
from lc_assets.text.links.targets import REASONS

CHECKED_LINES = 1000


def write_page_links(context: BuildContext, staging: StagingFolder) -> Counts:
    """Write the links of one snapshot's pages.

    Raises:
        BadInput: if no crawl is set.
        Unreachable: if the crawl cannot be reached, after retries.
    """
    snapshot = staging.key
    recipe = context.recipe
    settings = recipe.longpack_documents
    crawl = crawl_of(context, snapshot)
    documents = staging.own("filtered_documents").folder
    tasks = [
        LinksTask(
            crawl=crawl,
            index=index,
            documents=documents / index.name.replace(INDEX_SUFFIX, DOCUMENTS_SUFFIX),
            folder=staging.folder,
            source="wat" if kind_that_is_read(recipe.html_index) == "wat" else "warc",
            settings=recipe.page_links,
            seed=settings.seed,
            share=1.0 if _reads_all_pages(recipe) else settings.roots,
        )
        for index in index_files(staging.own("html_index").folder)
    ]
    return run_shards(context, staging, find_links, tasks, what=f"links of {snapshot}")


def page_links_files(folder: Path) -> list[Path]:
    """The tables of a version, sorted by shard."""
    return finished(folder.glob(f"*{LINKS_SUFFIX}"))


def canonical_files(folder: Path) -> list[Path]:
    """The tables of other addresses of a version's pages, sorted by shard."""
    return finished(folder.glob(f"*{CANONICAL_SUFFIX}"))


def links_by_outcome(counts: Counts) -> dict[str, int]:
    """Number of links that lead to a page, and reasons for the others."""
    others = counts_after(counts, LEFT_OUT)
    return {"lead to a page": counts.extra.get(LINKS, 0) - sum(others.values()), **others}


def most_pointed_at(links: Published, index: Published, n_lines: int) -> list[Line]:
    """The pages that most pages of their own host link to, with their share of the host's pages in
    the index; out of core.
    """
    tables = _tables(links.folder, index.folder)
    host = "split_part(split_part({}, '?', 1), '/', 1)"
    with queries_over(tables) as database:
        return database.lines(f"""
            SELECT target_key AS page, pages, pages / of_host AS share, keys FROM (
                SELECT {host.format("page_key")} AS host, target_key, count(*) AS pages,
                    any_value(keys ORDER BY keys) AS keys
                FROM links WHERE host = {host.format("target_key")} GROUP BY ALL)
            JOIN (SELECT {host.format("page_key")} AS host, count(DISTINCT page_key) AS of_host
                FROM pages GROUP BY host) USING (host)
            ORDER BY pages DESC, page LIMIT {int(n_lines)}""")


def the_links_add_up(check_input: CheckInput) -> CheckResult:
    """The tables have as many rows as counted, one per page and target; every link is in one
    count.
    """
    counts, outcomes = check_input.counts, links_by_outcome(check_input.counts)
    n_unknown = sum(
        count for name, count in outcomes.items() if name not in (*REASONS, "lead to a page")
    )
    errors = {
        "lines more or fewer than counted": "SELECT unnest(range(abs(count(*) - "
        f"{counts.extra.get(TARGETS, 0)}))) FROM links",
        "sums of links that are not the counted one": (
            "SELECT sum(n_links) AS n FROM links "
            f"HAVING coalesce(n, 0) != {outcomes['lead to a page']}"
        ),
        "pages that link to themselves": "SELECT * FROM links WHERE page_key = target_key",
        "pages with two targets at one position": "SELECT id FROM links GROUP BY id, position "
        "HAVING count(*) > 1",
        "links left out for no known reason": f"SELECT * FROM range({n_unknown})",
    }
    message = f"{{:,}} targets of {counts.extra.get(LINKS, 0):,} links on {counts.kept:,} pages"
    tables = _checked_tables(check_input)
    return check_by_queries(tables, errors, message, "SELECT count(*) FROM links")


def pages_and_targets_have_their_keys(check_input: CheckInput) -> CheckResult:
    """Every page is one of the index, by its key; an even choice of targets has the key of its
    address.
    """
    n_targets = n_wrong = 0
    for path in page_links_files(check_input.folder):
        table = read_table(path, ["target_key", "target_url"])
        places = evenly_spaced(table.num_rows, CHECKED_LINES)
        chosen = [line for place in places for line in table.slice(place, 1).to_pylist()]
        n_targets += len(chosen)
        n_wrong += sum(page_key(line["target_url"]) != line["target_key"] for line in chosen)
    errors = {
        "pages that are not in the index": "SELECT DISTINCT id, page_key FROM links "
        "ANTI JOIN pages USING (id, page_key)",
        "canonical addresses of pages that are not in the index": "SELECT * FROM canonical "
        "ANTI JOIN pages ON target_key = pages.page_key",
        "targets by another key": f"SELECT * FROM range({n_wrong})",
    }
    message = f"{n_targets:,} targets looked at, all by their keys"
    return check_by_queries(_checked_tables(check_input), errors, message)


def _tables(links: Path, index: Path) -> Tables:
    return {
        "links": (page_links_files(links), PAGE_LINKS),
        "canonical": (canonical_files(links), ALIASES),
        "pages": (index_files(index), PAGES),
    }


def _checked_tables(check_input: CheckInput) -> Tables:
    return _tables(check_input.folder, check_input.only_input("html_index").folder)


def _reads_all_pages(recipe: Recipe) -> bool:
    return recipe.longpack_documents.depth > 1 or recipe.longpack_documents.portals == "drop"


def _params(recipe: Recipe, _: str) -> dict[str, Any]:
    settings = recipe.longpack_documents
    which = (
        {"all_pages": True}
        if _reads_all_pages(recipe)
        else {"roots": settings.roots, "seed": settings.seed}
    )
    return {
        "read": kind_that_is_read(recipe.html_index),
        "extractor": recipe.page_links.extractor,
        **which,
        **({"lists": recipe.page_links.lists} if recipe.page_links.lists else {}),
    }


STAGE = Stage(
    name="page_links",
    description=(
        "The pages that one snapshot's pages link to, with anchor texts; and why other "
        "links have no target."
    ),
    code_version="3",
    reads={"html_index": SAME_SNAPSHOT, "filtered_documents": SAME_SNAPSHOT},
    params=_params,
    checks=(
        reads_all_upstream_documents("html_index"),
        the_links_add_up,
        pages_and_targets_have_their_keys,
    ),
    columns=PAGE_LINKS,
    wanted=links_are_wanted,
    group="links",
    job="snapshot_longpack",
    counted="pages",
    randomness=lambda recipe, _: roots_drawn_by(recipe.longpack_documents.seed),
    write=write_page_links,
)
"""The link targets of a snapshot's pages."""
