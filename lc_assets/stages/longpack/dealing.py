"""Roots take their turns, for tables larger than memory: `lc_assets.packing.turns` by joins, with
the same result.

Table ``offers`` holds one round's offers, ``held`` what has been taken in all rounds. Roots come in
blocks by their number, the first one small: most contents that many roots point at are taken by the
first few, and what is taken is left out of the next block by one join. Within a block:

==============  ============  ===========================================================================================
step            keyed by      what
==============  ============  ===========================================================================================
who is certain  cluster       an offer is certain when the roots before it are too few to take all that is free of its content;
                              where pages are consumed, also the page must be nobody's else, and
                              neither the root nor the page may still become the other's child
who takes       root          a root of whose offers all are certain takes its turn: in order of appearance, what fits
what is closed  cluster       offers of contents that are all taken go; where pages are consumed (keyed by page), those of
                              pages that are taken, those to roots that took, and those of roots
                              that were taken
==============  ============  ===========================================================================================

Every step is a join or a window over one key, so an engine that partitions offers by the hash of
that key, and sends the few lines of ``held`` to where they are needed, does the same; a root or a
cluster is never looked at in two places. The first root of a block is always certain, so every pass
ends some; random ranks make it some 20 passes. A block of few open offers, or one in which a pass
decides little, is done by `take_turns` itself, some `TAIL_OFFERS` at a time.
"""
# ruff: noqa: S608 - every name in these queries is this package's own, every value a number

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lc_assets.packing.turns import (
    HELD,
    KEPT,
    NO_ROOM,
    ROOT_GONE,
    Offer,
    Rules,
    TurnState,
    first_fit,
    take_turns,
)
from lc_assets.stages.deduplication.queries import Queries, parquet

TAIL_OFFERS: Final = 100_000
"""Open offers that are dealt one after another, in memory: about 0.2 s and 50 MB."""
GROWTH: Final = 4
"""How many times as many roots the next block has."""
SLOW_SHARE: Final = 64
"""A pass that decides less than one in so many offers is not worth another."""

HELD_COLUMNS: Final = "root, place, page, cluster, cost"
OFFERS_TABLE: Final = (
    "(root INTEGER, place BIGINT, page INTEGER, cluster INTEGER, cost BIGINT, room BIGINT)"
)
HELD_TABLE: Final = (
    "(root INTEGER, place BIGINT, page INTEGER, cluster INTEGER, cost BIGINT, round INTEGER)"
)
_HELD: Final = pa.schema(
    [
        ("root", pa.int32()),
        ("place", pa.int64()),
        ("page", pa.int32()),
        ("cluster", pa.int32()),
        ("cost", pa.int64()),
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Deal:
    """One round to be dealt.

    Attributes:
        asked: holds ``offers``, of which a root has at most one of each content, and ``held``.
        rules: how pages are taken.
        round: counted from 1; in the first, roots may stop being roots.
        tail: offers that are dealt in memory.
    """

    asked: Queries
    rules: Rules
    round: int = 1
    tail: int = TAIL_OFFERS

    @property
    def may_consume_roots(self) -> bool:
        """Whether a root may be taken before its turn."""
        return self.rules.consume and self.round == 1


def deal(made: Deal) -> dict[str, int]:
    """Add to ``held`` what the roots take of ``offers``; returns how many offers were refused, by
    why.
    """
    asked, counts = made.asked, Counter[str]()
    n_offers = asked.number("SELECT count(*) FROM offers")
    for low, high in _blocks(made, n_offers):
        _open_block(made, low, high)
        while n_open := asked.number("SELECT count(*) FROM open"):
            if n_open <= made.tail:
                counts += _one_after_another(made)
                continue
            counts += _all_that_are_certain(made)
            if (n_open - asked.number("SELECT count(*) FROM open")) * SLOW_SHARE < n_open:
                counts += _one_after_another(made)
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


def _blocks(made: Deal, n_offers: int) -> list[tuple[int, int]]:
    """Ranges of roots; the first has about `Deal.tail` offers."""
    first, last = (
        made.asked.number(f"SELECT {which}(root) FROM offers") for which in ("min", "max")
    )
    stops, width = [first], max(1, (last - first + 1) * made.tail // max(n_offers, 1))
    while stops[-1] <= last and n_offers:
        stops.append(stops[-1] + width)
        width *= GROWTH
    return list(itertools.pairwise(stops))


def _open_block(made: Deal, low: int, high: int) -> None:
    """Table ``open``: the block's offers that nobody has taken yet; ``n`` is how often their
    content is held.
    """
    asked, rules = made.asked, made.rules
    asked.do(
        f"CREATE OR REPLACE TEMP TABLE block AS SELECT * FROM offers WHERE root >= {low} AND root "
        f"< {high}"
    )
    if rules.consume:
        asked.do(f"""CREATE OR REPLACE TEMP TABLE block AS SELECT * FROM block
            ANTI JOIN (SELECT page FROM held UNION ALL SELECT root AS page FROM held) USING (page)
            {"ANTI JOIN (SELECT page AS root FROM held) USING (root)" if made.may_consume_roots else ""}""")
    asked.do(f"""CREATE OR REPLACE TABLE open AS
        SELECT block.*, coalesce(taken.n, 0)::INTEGER AS n FROM block
        LEFT JOIN (SELECT cluster, count(*) AS n FROM held SEMI JOIN block USING (cluster) GROUP BY cluster) taken USING (cluster)
        WHERE coalesce(taken.n, 0) < {rules.repetitions}""")
    asked.do("DROP TABLE block")


def _all_that_are_certain(made: Deal) -> Counter[str]:
    """Let the roots take their turn of whose offers all are certain."""
    asked, rules = made.asked, made.rules
    asked.do(f"""CREATE OR REPLACE TEMP TABLE waiting AS SELECT DISTINCT root FROM
        (SELECT root, n, row_number() OVER (PARTITION BY cluster ORDER BY root) AS nth FROM open) WHERE nth + n > {rules.repetitions}""")
    if rules.consume and rules.repetitions > 1:
        asked.do("""INSERT INTO waiting SELECT DISTINCT root FROM
            (SELECT root, row_number() OVER (PARTITION BY page ORDER BY root) AS nth FROM open) WHERE nth > 1""")
    if made.may_consume_roots:
        asked.do("CREATE OR REPLACE TEMP TABLE undecided AS SELECT DISTINCT root FROM open")
        asked.do(
            "INSERT INTO waiting SELECT root FROM open SEMI JOIN undecided ON open.page = "
            "undecided.root WHERE page < root"
        )
        asked.do(
            "INSERT INTO waiting SELECT page FROM open SEMI JOIN undecided ON open.page = "
            "undecided.root WHERE page > root"
        )
    counts: Counter[str] = Counter()

    def fitting() -> Iterator[pa.RecordBatch]:
        for batch in _whole_roots(
            asked.batches("SELECT * FROM open ANTI JOIN waiting USING (root) ORDER BY root, place")
        ):
            roots, costs, rooms = (
                np.asarray(batch[name]).astype(np.int64) for name in ("root", "cost", "room")
            )
            fits = first_fit(roots, costs, rooms)
            counts[NO_ROOM] += int((~fits).sum())
            yield batch.filter(pa.array(fits)).select(_HELD.names)

    _keep(made, fitting())
    asked.do("CREATE OR REPLACE TABLE open AS SELECT * FROM open SEMI JOIN waiting USING (root)")
    _close(made)
    return counts


def _one_after_another(made: Deal) -> Counter[str]:
    """Let the first roots take their turns, about `Deal.tail` offers of them, or one root that has
    more.
    """
    asked = made.asked
    found = asked.lines(f"SELECT root FROM open ORDER BY root, place LIMIT 1 OFFSET {made.tail}")
    first = asked.number("SELECT min(root) FROM open")
    these = f"root < {max(found[0]['root'], first + 1)}" if found else "true"
    lines = [
        line
        for batch in asked.batches(f"SELECT * FROM open WHERE {these}")
        for line in batch.to_pylist()
    ]
    told = take_turns(
        (Offer(*(line[name] for name in Offer._fields)) for line in lines),
        {line["root"]: line["room"] for line in lines},
        made.rules,
        TurnState(taken=Counter({line["cluster"]: line["n"] for line in lines})),
        first_round=made.may_consume_roots,
    )
    kept = [offer._asdict() for offer, why in told if why == KEPT]
    _keep(made, pa.Table.from_pylist(kept, schema=_HELD).to_batches())
    asked.do(f"CREATE OR REPLACE TABLE open AS SELECT * FROM open WHERE NOT ({these})")
    _close(made)
    return Counter({NO_ROOM: sum(why == NO_ROOM for _, why in told)})


def _whole_roots(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same lines, in batches that part no root from its own."""
    waiting: list[pa.Table] = []
    for batch in batches:
        table = pa.concat_tables([*waiting, pa.Table.from_batches([batch])])
        roots = table["root"].to_numpy()
        last = int(np.searchsorted(roots, roots[-1])) if len(roots) else 0
        yield from table.slice(0, last).combine_chunks().to_batches()
        waiting = [table.slice(last)]
    for table in waiting:
        yield from table.combine_chunks().to_batches()


def _keep(made: Deal, batches: Iterable[pa.RecordBatch]) -> None:
    """Add to ``held``; what is new alone is table ``fresh``. Through a file: a connection cannot be
    read and written at once.
    """
    path = made.asked.scratch / "fresh.parquet"
    with pq.ParquetWriter(path, _HELD, compression="none") as writer:
        for batch in batches:
            writer.write_batch(batch.cast(_HELD))
    made.asked.do(f"CREATE OR REPLACE TABLE fresh AS SELECT * FROM {parquet([path])}")
    made.asked.do(f"INSERT INTO held SELECT *, {made.round} FROM fresh")
    path.unlink()


def _close(made: Deal) -> None:
    """Take out of ``open`` what can no longer be taken now that ``fresh`` is."""
    asked, rules = made.asked, made.rules
    asked.do(f"""CREATE OR REPLACE TABLE open AS
        SELECT open.* REPLACE ((open.n + coalesce(more.n, 0))::INTEGER AS n) FROM open
        LEFT JOIN (SELECT cluster, count(*) AS n FROM fresh GROUP BY cluster) more USING (cluster)
        WHERE open.n + coalesce(more.n, 0) < {rules.repetitions}""")
    if rules.consume:
        asked.do(f"""CREATE OR REPLACE TABLE open AS SELECT * FROM open
            ANTI JOIN (SELECT page FROM fresh UNION ALL SELECT root AS page FROM fresh) USING (page)
            {"ANTI JOIN (SELECT page AS root FROM fresh) USING (root)" if made.may_consume_roots else ""}""")
