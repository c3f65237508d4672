"""From documents and links to the table of claims: which root contains which page's text, at which
place, under which anchor words.

Every examined link is counted: in the first round each link of a document, in further rounds each
link of a page claimed in the round before. Links and pages are numbers; ids, addresses and words
are joined when the table is written.
"""
# ruff: noqa: S608 - every name in these queries is this package's own, every path and value is quoted

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from lc_assets.builds.settings.longpack import LongPackSettings
from lc_assets.builds.tables import write_table
from lc_assets.counts import Counts
from lc_assets.lake.receipts import SCRATCH
from lc_assets.packing.longpack import NO_ROOM, PART_TOKENS, Rules, TurnState
from lc_assets.records import record
from lc_assets.stages.deduplication.queries import Queries, parquet, queries, quoted
from lc_assets.stages.links.link_tables import LINK_CLAIMS
from lc_assets.stages.longpack.dealing import (
    HELD_TABLE,
    anchor_words,
    deal,
    follow_aliases,
    number_pages,
    resolve,
)
from lc_assets.stages.longpack.pages import (
    NEEDED,
    UNTOKENIZABLE,
    FactsTask,
    PagesTask,
    Run,
    know_texts,
    list_pages,
    numbered_rows,
)
from lc_assets.tokens.tokenizers import TextEncoding

OTHER_SIDE = "on the other side of the held-out split"
OTHER_LANGUAGE = "in another language"
IN_DOCUMENT = "its text is in the document"


LAST = 2**63 - 1
"""Greater than every place of appearance: a page comes after the pages it links to."""


@record
class Claims:
    """A computation of claims.

    Attributes:
        documents: tables of documents with the columns of `lc_assets.builds.tables.FILTERED`.
        older: the same of older snapshots, whose documents are not roots.
        links: tables of `lc_assets.stages.links.link_tables.PAGE_LINKS`.
        decisions: tables that decide which documents stay, and on which side
            (`lc_assets.stages.deduplication.removals.DECISIONS`).
        aliases: tables of `lc_assets.stages.links.link_tables.ALIASES`.
        folder: intermediate files go to its ``.scratch``.
        out: the table of `LINK_CLAIMS` to publish.
        settings: how pages are packed.
        tokenizer: counts tokens.
        text_encoding: encoding of a text before tokenizing.
        run: runs the tasks per file.
    """

    documents: Sequence[Path]
    older: Sequence[Path]
    links: Sequence[Path]
    decisions: Sequence[Path]
    aliases: Sequence[Path]
    folder: Path
    out: Path
    settings: LongPackSettings
    tokenizer: str
    text_encoding: TextEncoding
    run: Run


def claim_links(claims: Claims) -> Counts:
    """Publish the claims; a link is kept if its target is claimed through it."""
    pages = [
        PagesTask(
            documents=path,
            folder=claims.folder,
            file=n,
            settings=claims.settings,
            is_older=n >= len(claims.documents),
        )
        for n, path in enumerate([*claims.documents, *claims.older])
    ]
    listed = claims.run(list_pages, pages, what="list pages")
    if not claims.documents or not claims.links:
        write_table(claims.out, LINK_CLAIMS.empty_table())
        return listed
    settings = claims.settings
    rules = Rules(repetitions=settings.repetitions, consume=settings.mode == "consume")
    with queries(claims.folder / SCRATCH / "duckdb") as database:
        n_roots = number_pages(database, [task.path for task in pages], claims.decisions)
        follow_aliases(database, claims.aliases)
        counts = Counter(resolve(database, claims.links, settings, n_roots=n_roots))
        known = _know(claims, database, n_roots)
        n_seen = counts.total()
        state = TurnState(database.number("SELECT count(*) FROM pages"))
        for number in range(1, settings.depth + 1):
            n_seen += _candidates(database, number)
            counts.update(_offers(settings, database))
            counts.update(deal(database, rules, state, number))
            _grow(database, number)
            if not database.number(f"SELECT count(*) FROM tree WHERE depth = {number}"):
                break
        database.do("DELETE FROM tree WHERE depth = 0")
        words = anchor_words(settings, "child")
        n_kept = publish_claims(database, claims.links, claims.out, words)
        extra = _sums(database, n_roots, consume=rules.consume)
    dropped = {why: count for why, count in sorted(counts.items()) if count}
    return (
        listed
        + known
        + Counts(seen=n_seen, kept=n_kept, dropped=dropped, failed_rules=dropped, extra=extra)
    )


def _know(claims: Claims, database: Queries, n_roots: int) -> Counts:
    """Read the needed texts; table ``known`` has the content key and tokens of each; begin tables
    ``held`` and ``tree``.
    """
    tasks = [
        FactsTask(
            documents=path,
            folder=claims.folder,
            file=n,
            needed=claims.folder / SCRATCH / "needed" / f"{n:06d}.parquet",
            tokenizer=claims.tokenizer,
            text_encoding=claims.text_encoding,
        )
        for n, path in enumerate([*claims.documents, *claims.older])
    ]
    database.publish_parts(
        """SELECT file, line, number FROM pages SEMI JOIN (
        SELECT source AS number FROM resolved UNION SELECT page FROM resolved) USING (number)
        ORDER BY file, line""",
        [task.needed for task in tasks],
        NEEDED,
    )
    counted = claims.run(know_texts, tasks, what="count tokens")
    database.do(
        f"CREATE OR REPLACE VIEW facts AS SELECT * FROM {parquet([task.path for task in tasks])}"
    )
    database.do("""CREATE OR REPLACE TABLE known AS
        SELECT facts.number, cluster, n_tokens, side, language FROM facts
        JOIN (SELECT content, min(number)::INTEGER AS cluster FROM facts GROUP BY content)
        USING (content)
        JOIN pages USING (number)""")
    # Each root is its own page of round 0.
    database.do(f"CREATE OR REPLACE TABLE held {HELD_TABLE}")
    database.do(f"""INSERT INTO held SELECT number, 0, number, cluster, n_tokens + {PART_TOKENS}, 0
        FROM known WHERE number < {n_roots}""")
    database.do("""CREATE OR REPLACE TABLE tree AS SELECT root, round AS depth, page,
        page AS parent, 0::BIGINT AS row_of_all, []::BIGINT[] AS path FROM held""")
    return counted


def _candidates(database: Queries, number: int) -> int:
    """Table ``candidates``: the links of this round, whose page ``parent`` was claimed in the round
    before; returns their number.
    """
    database.do(f"""CREATE OR REPLACE TABLE candidates AS
        SELECT held.root, held.page AS parent, resolved.page, key_bytes, row_of_all,
            row_number() OVER (PARTITION BY held.root
            ORDER BY held.place, position, resolved.page) AS place
        FROM held JOIN resolved ON resolved.source = held.page WHERE round = {number - 1}""")
    return database.number("SELECT count(*) FROM candidates")


def _offers(settings: LongPackSettings, database: Queries) -> dict[str, int]:
    """Table ``offers``: candidates that their root may claim; and the counts of the others by
    reason.
    """
    language = f"WHEN child.language != top.language THEN {quoted(OTHER_LANGUAGE)}"
    language = language if settings.same_language else ""
    used = "SELECT root, sum(cost) AS used FROM held GROUP BY root"
    database.do(f"""CREATE OR REPLACE TABLE weighed AS
        SELECT candidates.*, child.cluster, child.n_tokens + key_bytes + {PART_TOKENS} AS cost,
            {settings.max_tokens} - used AS room,
            CASE WHEN child.n_tokens IS NULL OR used IS NULL THEN {quoted(UNTOKENIZABLE)}
                WHEN child.side != top.side THEN {quoted(OTHER_SIDE)}
                {language}
                WHEN here.cluster IS NOT NULL THEN {quoted(IN_DOCUMENT)}
                WHEN cost > room THEN {quoted(NO_ROOM)}
                ELSE '' END AS why
        FROM candidates JOIN known AS child ON child.number = candidates.page JOIN known AS top
        ON top.number = candidates.root
        JOIN ({used}) USING (root)
        LEFT JOIN (SELECT root, cluster FROM held) AS here
            ON here.root = candidates.root AND here.cluster = child.cluster""")
    database.do("""CREATE OR REPLACE TABLE offers AS
        SELECT root, min(place) AS place, arg_min(page, place) AS page, cluster,
            arg_min(cost, place)::BIGINT AS cost,
            any_value(room)::BIGINT AS room
        FROM weighed WHERE why = '' GROUP BY root, cluster ORDER BY root, place""")
    counts = {
        line["why"]: line["n"]
        for line in database.lines("SELECT why, count(*) AS n FROM weighed GROUP BY why")
    }
    database.do("DROP TABLE weighed")
    again = counts.pop("", 0) - database.number("SELECT count(*) FROM offers")
    counts[IN_DOCUMENT] = counts.get(IN_DOCUMENT, 0) + again
    return counts


def _grow(database: Queries, number: int) -> None:
    """Table ``tree``: the position of every claimed page, as the places on the path to it."""
    database.do(f"""INSERT INTO tree SELECT held.root, held.round, held.page, candidates.parent,
        candidates.row_of_all, list_append(above.path, held.place) FROM held
        JOIN candidates ON candidates.root = held.root AND candidates.place = held.place
        JOIN tree AS above ON above.root = held.root AND above.page = candidates.parent
        WHERE held.round = {number}""")


def _sums(database: Queries, n_roots: int, *, consume: bool) -> dict[str, int]:
    packed = "known SEMI JOIN (SELECT DISTINCT root AS number FROM tree) USING (number)"
    held = (
        database.number(f"SELECT count(DISTINCT page) FROM tree WHERE page < {n_roots}")
        if consume
        else 0
    )
    return {
        "roots": n_roots,
        "roots that another one holds": held,
        "packed documents": database.number("SELECT count(DISTINCT root) FROM tree"),
        "tokens of their roots": database.number(f"SELECT sum(n_tokens) FROM {packed}"),
        "tokens of children": database.number(
            "SELECT sum(n_tokens) FROM tree JOIN known ON known.number = page"
        ),
    }


def publish_claims(database: Queries, links: Sequence[Path], out: Path, words: str) -> int:
    """Publish the table of claims, sorted by the roots' turns and by place; returns their number.

    Args:
        database: database with ``tree``, ``pages`` and ``facts``.
        links: the tables of links that the tree's ``row_of_all`` indexes.
        out: the table.
        words: SQL of the words above a page, `anchor_words`.
    """
    database.do(f"""CREATE OR REPLACE TABLE placed AS SELECT root, depth, page, parent, row_of_all,
        (row_number() OVER (PARTITION BY root
            ORDER BY list_append(path, {LAST})) - 1)::INTEGER AS place FROM tree""")
    database.do("""CREATE OR REPLACE TABLE names AS SELECT number, id, title, content, n_tokens
        FROM pages JOIN facts USING (number)
        SEMI JOIN (SELECT unnest([root, page, parent]) AS number FROM placed) USING (number)""")
    query = f"""SELECT top.id AS root_id, place, depth, above.id AS parent_id, child.id AS child_id,
            {words} AS keys, target_url, child.content AS cluster, child.n_tokens,
            top.n_tokens AS root_tokens
        FROM placed JOIN names AS top ON top.number = root
        JOIN names AS above ON above.number = parent
        JOIN names AS child ON child.number = page
        JOIN {numbered_rows(database, links)} AS link USING (row_of_all)
        ORDER BY root, place"""
    return database.publish(query, out, LINK_CLAIMS)
