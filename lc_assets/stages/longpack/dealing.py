"""Resolve links to pages, and assign pages to roots in turns, over tables larger than memory.

*Resolving*: find the document of every target, or the reason why there is none, by rules on link
and target alone. Rules that depend on the root (its split side, language, content and remaining
length) are applied in its turn (`lc_assets.stages.longpack.claiming`). Pages are numbered over the
documents that are not excluded: roots first, by rank and id, then the others by rank and id. So
numbers do not depend on the distribution of documents over files. If several documents share an
address, the first by id is used; those of older snapshots come after, the newest first.

*Dealing*: `lc_assets.packing.longpack.take_turns` over table ``offers``, one round's offers, which
are read in order; table ``held`` has the pages taken in all rounds. Three bytes per page are in
memory.
"""
# ruff: noqa: S608 - every name in these queries is this package's own, every value a number

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from lc_assets.builds.settings.longpack import LongPackSettings
from lc_assets.builds.tables import writing_table
from lc_assets.packing.longpack import KEPT, Offer, Rules, TurnState, take_turns
from lc_assets.stages.deduplication.queries import Queries, parquet, quoted
from lc_assets.stages.longpack.pages import PAGES, numbered_rows

SOURCE_REMOVED = "its page was removed"
NO_ROOT = "its page is no root"
NOFOLLOW = "nofollow"
NAVIGATION = "in menus only"
NOT_IN_TEXT = "anchor text not in the text"
ITSELF = "to the page itself"
MISSING = "no such page"
REMOVED = "the page was removed"
HOME = "a home page"
NO_WORDS = "no words for it"
HUB = "what its whole host points at"

MOST_HOPS = 5
"""Maximum redirects that are followed one after another."""

LEAST_HUB = 10
"""A page linked to by at most this many pages of its host is not a hub, for hosts of any size."""


def number_pages(database: Queries, pages: Sequence[Path], decisions: Sequence[Path]) -> int:
    """Table ``pages``: a line per document that is not excluded, with its number; returns the
    number of roots.

    Args:
        database: the database.
        pages: tables of `pages.PAGES`.
        decisions: tables with columns ``id``, ``reason``, empty for a document that stays, and
            ``side``; a document that is in none stays.
    """
    columns = ", ".join(name for name in PAGES.names if name not in ("rank",))
    database.do(f"CREATE OR REPLACE VIEW everyone AS SELECT * FROM {parquet(list(pages))}")
    decided = (
        parquet(list(decisions)) if decisions else "(SELECT '' AS id, '' AS reason, '' AS side)"
    )
    database.do(f"CREATE OR REPLACE TABLE decided AS SELECT id, reason, side FROM {decided}")
    database.do("CREATE OR REPLACE VIEW removed AS SELECT id FROM decided WHERE reason <> ''")
    database.do(f"""CREATE OR REPLACE TABLE pages AS
        SELECT (row_number() OVER () - 1)::INTEGER AS number, {columns}, side
        FROM (SELECT * FROM everyone LEFT JOIN decided USING (id) WHERE coalesce(reason, '') = ''
            ORDER BY NOT is_root, rank, id)""")
    database.do("""CREATE OR REPLACE TABLE addressed AS
        SELECT page_key, arg_min(number, id)::INTEGER AS number FROM pages
        WHERE page_key IS NOT NULL AND NOT is_older GROUP BY page_key""")
    database.do("""INSERT INTO addressed
        SELECT page_key, first(number ORDER BY split_part(id, '/', 1) DESC, id) FROM pages
        ANTI JOIN addressed USING (page_key)
        WHERE page_key IS NOT NULL AND is_older GROUP BY page_key""")
    database.do("""CREATE OR REPLACE TABLE removed_keys AS SELECT DISTINCT page_key FROM everyone
        SEMI JOIN removed USING (id)
        WHERE page_key IS NOT NULL""")
    return database.number("SELECT count(*) FROM pages WHERE is_root")


def follow_aliases(database: Queries, aliases: Sequence[Path]) -> None:
    """Add to table ``addressed`` the other addresses of its pages, `MOST_HOPS` redirects away; an
    address of a document, removed or not, is that document's alone.
    """
    if not aliases:
        return
    database.do(f"""CREATE OR REPLACE TABLE aliases AS
        SELECT page_key, target_key FROM {parquet(list(aliases))}
        ANTI JOIN removed_keys USING (page_key)""")
    for _ in range(MOST_HOPS):
        database.do("""INSERT INTO addressed
            SELECT aliases.page_key, min(number) FROM aliases
            JOIN addressed AS target ON target.page_key = target_key
            ANTI JOIN addressed AS known ON known.page_key = aliases.page_key
            GROUP BY aliases.page_key""")


def resolve(
    database: Queries, links: Sequence[Path], settings: LongPackSettings, *, n_roots: int
) -> dict[str, int]:
    """Table ``resolved``: the links that lead to a page, as numbers; returns the counts of other
    links by reason.

    Links of pages that are not roots are kept only if further rounds need them; they still count as
    `NO_ROOT`.

    Args:
        database: the database, after `number_pages`.
        links: tables of `lc_assets.stages.links.link_tables.PAGE_LINKS`.
        settings: which links are skipped.
        n_roots: pages of smaller number are roots.
    """
    reasons = _reasons(settings)
    cases = "\n".join(f"WHEN {test} THEN {quoted(why)}" for why, test in reasons)
    database.do(f"""CREATE OR REPLACE TABLE links AS
        SELECT pages.number AS source, position, target.number AS page,
            strlen({anchor_words(settings, "target")})::INTEGER AS key_bytes, row_of_all,
            CASE {cases} ELSE '' END AS why
        FROM {numbered_rows(database, links)} AS link
        LEFT JOIN pages USING (id)
        LEFT JOIN addressed ON addressed.page_key = link.target_key
        LEFT JOIN pages AS target ON target.number = addressed.number
        LEFT JOIN removed_keys ON removed_keys.page_key = link.target_key""")
    _mark_hubs(database, settings)
    used = "" if settings.depth > 1 else f"AND source < {n_roots}"
    database.do(f"""CREATE OR REPLACE TABLE resolved AS
        SELECT source, position, page, key_bytes, row_of_all FROM links
        ANTI JOIN hubs USING (page) WHERE why = '' {used}""")
    reason = f"""CASE WHEN why = {quoted(SOURCE_REMOVED)} THEN why
        WHEN source >= {n_roots} THEN {quoted(NO_ROOT)}
        WHEN why = '' AND hubs.page IS NOT NULL THEN {quoted(HUB)} ELSE why END"""
    counts = database.lines(
        f"SELECT {reason} AS reason, count(*) AS n FROM links LEFT JOIN hubs USING (page) GROUP BY "
        "reason ORDER BY reason"
    )
    database.do("DROP TABLE links")
    return {line["reason"]: line["n"] for line in counts if line["reason"]}


def _reasons(settings: LongPackSettings) -> list[tuple[str, str]]:
    """Reasons why a link leads to no page, in order of precedence, each with its test."""
    portals, words = settings.portals == "drop", not settings.paper_exact
    return [
        (SOURCE_REMOVED, "pages.number IS NULL"),
        *([(NOFOLLOW, "nofollow")] if settings.nofollow == "drop" else []),
        *([(NAVIGATION, "navigation")] if portals else []),
        *([(NOT_IN_TEXT, "NOT in_text")] if settings.anchors == "in_text" else []),
        (ITSELF, "link.target_key = pages.page_key OR target.number = pages.number"),
        (REMOVED, "target.number IS NULL AND removed_keys.page_key IS NOT NULL"),
        (MISSING, "target.number IS NULL"),
        *([(HOME, "target.is_home")] if portals else []),
        *([(NO_WORDS, "(generic OR keys = '') AND target.title = ''")] if words else []),
    ]


def anchor_words(settings: LongPackSettings, page: str) -> str:
    """SQL of the words above a page: the link's own, or the page's title where these are
    uninformative.
    """
    if settings.paper_exact:
        return "keys"
    return f"CASE WHEN generic OR keys = '' THEN {page}.title ELSE keys END"


def _mark_hubs(database: Queries, settings: LongPackSettings) -> None:
    """Table ``hubs``: pages that more than a share of their host's pages link to, among pages with
    known links.
    """
    if settings.portals == "keep":
        database.do("CREATE OR REPLACE TABLE hubs AS SELECT 0::INTEGER AS page WHERE false")
        return
    database.do(f"""CREATE OR REPLACE TABLE hubs AS
        WITH pointed AS (
            SELECT links.page, any_value(target.host) AS host, count(*) AS n FROM links
            JOIN pages AS source ON source.number = links.source JOIN pages AS target
            ON target.number = links.page
            WHERE source.host = target.host GROUP BY links.page HAVING count(*) > {LEAST_HUB}),
        hosts AS (SELECT host, count(*) AS n_pages FROM pages SEMI JOIN links
        ON links.source = pages.number GROUP BY host)
        SELECT page FROM pointed JOIN hosts USING (host)
            WHERE n > {settings.hub_share!r} * n_pages""")


HELD_TABLE = (
    "(root INTEGER, place BIGINT, page INTEGER, cluster INTEGER, cost BIGINT, round INTEGER)"
)
_KEPT_OFFERS = pa.schema([(name, pa.int64()) for name in Offer._fields[:-1]])


def deal(database: Queries, rules: Rules, state: TurnState, number: int) -> dict[str, int]:
    """Add to table ``held`` the offers that roots take in a round; returns counts of refused offers
    by reason.

    Args:
        database: database with ``offers``, at most one per root and content, and ``held``.
        rules: how pages are assigned.
        state: what was taken in earlier rounds; updated.
        number: of the round, from 1; in the first, a root may be taken before its turn.
    """
    counts: Counter[str] = Counter()
    query = f"SELECT {', '.join(Offer._fields)} FROM offers ORDER BY root, place"
    batches = database.batches(query)
    columns = ([column.to_pylist() for column in batch.columns] for batch in batches)
    offers = (Offer._make(line) for batch in columns for line in zip(*batch, strict=True))
    kept = database.scratch / "kept.parquet"
    with writing_table(kept, _KEPT_OFFERS) as table:
        for offer, why in take_turns(offers, rules, state, first_round=number == 1):
            counts[why] += 1
            if why == KEPT:
                table.add(offer._asdict())
    database.do(f"INSERT INTO held SELECT *, {number} FROM {parquet([kept])}")
    del counts[KEPT]
    return dict(sorted(counts.items()))
