"""Resolve links to pages, and assign pages to roots in turns, over tables larger than memory.

*Resolving*: find the document of every target, or the reason why there is none, by rules on link
and target alone. Rules that depend on the root (its split side, language, content and remaining
length) are applied in its turn (`lc_assets.stages.longpack.claiming`). Pages are numbered over the
documents that are not excluded: roots first, by rank and id, then the others by rank and id. So
numbers do not depend on the distribution of documents over files. If several documents share an
address, the first by id is used.

*Dealing*: `lc_assets.packing.longpack.take_turns`, one block of roots at a time, in order. Table
``offers`` holds one round's offers, ``held`` the pages taken in all rounds. Joins drop offers whose
content earlier blocks have taken, in a crawl most of them: contents that many roots link to are
taken by the first few. The rest is dealt in memory.
"""
# ruff: noqa: S608 - every name in these queries is this package's own, every value a number

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa

from lc_assets.build.settings.longpack import LongPackSettings
from lc_assets.packing.longpack import (
    HELD,
    KEPT,
    NO_ROOM,
    ROOT_GONE,
    Offer,
    Rules,
    TurnState,
    take_turns,
)
from lc_assets.stages.deduplication.queries import Queries, parquet, quoted
from lc_assets.stages.longpack.pages import PAGES, numbered_rows, publish_by_file

SOURCE_REMOVED: Final = "its page was removed"
NO_ROOT: Final = "its page is no root"
NOFOLLOW: Final = "nofollow"
NAVIGATION: Final = "in menus only"
NOT_IN_TEXT: Final = "anchor text not in the text"
ITSELF: Final = "to the page itself"
MISSING: Final = "no such page"
REMOVED: Final = "the page was removed"
HOME: Final = "a home page"
NO_WORDS: Final = "no words for it"
HUB: Final = "what its whole host points at"

LEAST_HUB: Final = 10
"""A page linked to by at most this many pages of its host is not a hub, for hosts of any size."""


def number_pages(asked: Queries, pages: Sequence[Path], removed: Sequence[Path]) -> int:
    """Table ``pages``: a line per document that is not excluded, with its number; returns the
    number of roots.

    Args:
        asked: the database.
        pages: tables of `pages.PAGES`.
        removed: tables with a column ``id`` of excluded documents.
    """
    columns = ", ".join(name for name in PAGES.names if name not in ("rank",))
    asked.do(f"CREATE OR REPLACE VIEW everyone AS SELECT * FROM {parquet(list(pages))}")
    gone = f"SELECT id FROM {parquet(list(removed))}" if removed else "SELECT '' AS id WHERE false"
    asked.do(f"CREATE OR REPLACE TABLE removed AS SELECT DISTINCT id FROM ({gone})")
    asked.do(f"""CREATE OR REPLACE TABLE pages AS
        SELECT (row_number() OVER () - 1)::INTEGER AS number, {columns}
        FROM (SELECT * FROM everyone ANTI JOIN removed USING (id)
            ORDER BY NOT is_root, rank, id)""")
    asked.do("""CREATE OR REPLACE TABLE addressed AS
        SELECT page_key, arg_min(number, id)::INTEGER AS number FROM pages
        WHERE page_key IS NOT NULL GROUP BY page_key""")
    asked.do("""CREATE OR REPLACE TABLE removed_keys AS SELECT DISTINCT page_key FROM everyone
        SEMI JOIN removed USING (id)
        WHERE page_key IS NOT NULL""")
    return asked.number("SELECT count(*) FROM pages WHERE is_root")


def resolve(
    asked: Queries, links: Sequence[Path], settings: LongPackSettings, *, n_roots: int
) -> dict[str, int]:
    """Table ``resolved``: the links that lead to a page, as numbers; returns the counts of other
    links by reason.

    Links of pages that are not roots are kept only if further rounds need them; they still count as
    `NO_ROOT`.

    Args:
        asked: the database, after `number_pages`.
        links: tables of `lc_assets.stages.links.link_tables.PAGE_LINKS`.
        settings: which links are skipped.
        n_roots: pages of smaller number are roots.
    """
    reasons = _reasons(settings)
    cases = "\n".join(f"WHEN {test} THEN {quoted(why)}" for why, test in reasons)
    asked.do(f"""CREATE OR REPLACE TABLE links AS
        SELECT pages.number AS source, position, target.number AS page,
            {_key_bytes(settings)}::INTEGER AS key_bytes, row_of_all,
            CASE {cases} ELSE '' END AS why
        FROM {numbered_rows(asked, links)} AS link
        LEFT JOIN pages USING (id)
        LEFT JOIN addressed ON addressed.page_key = link.target_key
        LEFT JOIN pages AS target ON target.number = addressed.number
        LEFT JOIN removed_keys ON removed_keys.page_key = link.target_key""")
    _mark_hubs(asked, settings)
    used = "" if settings.depth > 1 else f"AND source < {n_roots}"
    asked.do(f"""CREATE OR REPLACE TABLE resolved AS
        SELECT source, position, page, key_bytes, row_of_all FROM links
        ANTI JOIN hubs USING (page) WHERE why = '' {used}""")
    reason = f"""CASE WHEN why = {quoted(SOURCE_REMOVED)} THEN why
        WHEN source >= {n_roots} THEN {quoted(NO_ROOT)}
        WHEN why = '' AND hubs.page IS NOT NULL THEN {quoted(HUB)} ELSE why END"""
    counts = asked.lines(
        f"SELECT {reason} AS reason, count(*) AS n FROM links LEFT JOIN hubs USING (page) GROUP BY "
        "reason ORDER BY reason"
    )
    asked.do("DROP TABLE links")
    return {line["reason"]: line["n"] for line in counts if line["reason"]}


def _reasons(settings: LongPackSettings) -> list[tuple[str, str]]:
    """Reasons why a link leads to no page, in order of precedence, each with its test."""
    portals, words = settings.portals == "drop", not settings.paper_exact
    return [
        (SOURCE_REMOVED, "pages.number IS NULL"),
        *([(NOFOLLOW, "nofollow")] if settings.nofollow == "drop" else []),
        *([(NAVIGATION, "navigation")] if portals else []),
        *([(NOT_IN_TEXT, "NOT in_text")] if settings.anchors == "in_text" else []),
        (ITSELF, "link.target_key = pages.page_key"),
        (REMOVED, "target.number IS NULL AND removed_keys.page_key IS NOT NULL"),
        (MISSING, "target.number IS NULL"),
        *([(HOME, "target.is_home")] if portals else []),
        *([(NO_WORDS, "(generic OR keys = '') AND target.title = ''")] if words else []),
    ]


def _key_bytes(settings: LongPackSettings) -> str:
    """Upper bound of the UTF-8 length of a page's anchor words, before white space is collapsed."""
    return (
        "strlen(keys)"
        if settings.paper_exact
        else "strlen(CASE WHEN generic OR keys = '' THEN target.title ELSE keys END)"
    )


def _mark_hubs(asked: Queries, settings: LongPackSettings) -> None:
    """Table ``hubs``: pages that more than a share of their host's pages link to, among pages with
    known links.
    """
    if settings.portals == "keep":
        asked.do("CREATE OR REPLACE TABLE hubs AS SELECT 0::INTEGER AS page WHERE false")
        return
    asked.do(f"""CREATE OR REPLACE TABLE hubs AS
        WITH pointed AS (
            SELECT links.page, any_value(target.host) AS host, count(*) AS n FROM links
            JOIN pages AS source ON source.number = links.source JOIN pages AS target
            ON target.number = links.page
            WHERE source.host = target.host GROUP BY links.page HAVING count(*) > {LEAST_HUB}),
        hosts AS (SELECT host, count(*) AS n_pages FROM pages SEMI JOIN links
        ON links.source = pages.number GROUP BY host)
        SELECT page FROM pointed JOIN hosts USING (host)
            WHERE n > {settings.hub_share!r} * n_pages""")


def publish_needed(asked: Queries, folder: Path, n_files: int) -> list[Path]:
    """Write which texts are needed, those of the links' sources and targets: per file an array of
    lines and page numbers. Returns the paths.

    Args:
        asked: the database, after `resolve`.
        folder: of the arrays.
        n_files: number of files of documents.
    """
    paths = [folder / f"{number:06d}.npy" for number in range(n_files)]
    query = """SELECT file, line, number FROM pages SEMI JOIN (
        SELECT source AS number FROM resolved UNION SELECT page FROM resolved) USING (number)
        ORDER BY file, line"""
    publish_by_file(asked, query, ("line", "number"), paths)
    return paths


AT_ONCE: Final = 100_000
"""Offers of a block, or one root that has more: about 0.2 s and 50 MB."""

HELD_COLUMNS: Final = "root, place, page, cluster, cost"
OFFERS_TABLE: Final = (
    "(root INTEGER, place BIGINT, page INTEGER, cluster INTEGER, cost BIGINT, room BIGINT)"
)
HELD_TABLE: Final = (
    "(root INTEGER, place BIGINT, page INTEGER, cluster INTEGER, cost BIGINT, round INTEGER)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Deal:
    """One round to be dealt.

    Attributes:
        asked: database with ``offers``, at most one per root and content, and ``held``.
        rules: how pages are assigned.
        round: counted from 1; in the first, children may lose their own root status.
        at_once: offers of a block.
    """

    asked: Queries
    rules: Rules
    round: int = 1
    at_once: int = AT_ONCE

    @property
    def may_consume_roots(self) -> bool:
        """Whether a root may be taken before its turn."""
        return self.rules.consume and self.round == 1


def deal(made: Deal) -> dict[str, int]:
    """Add to ``held`` the offers that roots take; returns counts of refused offers by reason."""
    asked, counts = made.asked, Counter[str]()
    blocks = asked.lines(f"""SELECT min(root) AS low, max(root) + 1 AS high FROM (
        SELECT root, (sum(count(*)) OVER (ORDER BY root) - count(*)) // {max(made.at_once, 1)} AS
        block
        FROM offers GROUP BY root) GROUP BY block ORDER BY low""")
    for block in blocks:
        counts[NO_ROOM] += _deal_block(made, block["low"], block["high"])
    n_offers = asked.number("SELECT count(*) FROM offers")
    n_kept = asked.number(f"SELECT count(*) FROM held WHERE round = {made.round}")
    if made.may_consume_roots:
        # A root that took nothing in its turn may be taken after it; only one that was taken before
        # had none.
        gone = (
            "SELECT count(*) FROM offers SEMI JOIN held ON held.page = offers.root AND "
            "held.root < offers.root"
        )
        counts[ROOT_GONE] = asked.number(gone)
    counts[HELD] = n_offers - n_kept - counts[NO_ROOM] - counts[ROOT_GONE]
    return {why: count for why, count in sorted(counts.items()) if count}


def _deal_block(made: Deal, low: int, high: int) -> int:
    """Run the turns of roots ``low`` up to ``high`` (exclusive); returns the number of offers that
    did not fit.
    """
    asked, rules = made.asked, made.rules
    free = f"SELECT * FROM offers WHERE root >= {low} AND root < {high}"
    if rules.consume:
        gone = "SELECT page FROM held UNION ALL SELECT root FROM held"
        free = f"SELECT * FROM ({free}) ANTI JOIN ({gone}) USING (page)"
    if made.may_consume_roots:
        free = f"SELECT * FROM ({free}) ANTI JOIN (SELECT page AS root FROM held) USING (root)"
    asked.do(f"CREATE OR REPLACE TEMP TABLE block AS {free}")
    lines = asked.lines(f"""SELECT block.*, coalesce(n, 0) AS n FROM block
        LEFT JOIN (SELECT cluster, count(*) AS n FROM held SEMI JOIN block USING (cluster)
            GROUP BY cluster) USING (cluster)
        WHERE coalesce(n, 0) < {rules.repetitions}""")
    outcomes = take_turns(
        (Offer(*(line[name] for name in Offer._fields)) for line in lines),
        {line["root"]: line["room"] for line in lines},
        rules,
        TurnState(taken=Counter({line["cluster"]: line["n"] for line in lines})),
        first_round=made.may_consume_roots,
    )
    kept = [offer for offer, why in outcomes if why == KEPT]
    if kept:
        columns = [pa.array(column, pa.int64()) for column in zip(*kept, strict=True)]
        asked.connection.register("kept", pa.table(columns, names=list(Offer._fields)))
        asked.do(f"INSERT INTO held SELECT {HELD_COLUMNS}, {made.round} FROM kept")
        asked.connection.unregister("kept")
    return sum(why == NO_ROOM for _, why in outcomes)
