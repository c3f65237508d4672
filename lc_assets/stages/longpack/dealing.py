"""Roots take their turns over tables larger than memory: `lc_assets.packing.turns.take_turns`, some
roots at a time.

Table ``offers`` holds one round's offers, ``held`` what has been taken in all rounds. Roots come in
blocks, in their order. Joins leave out of a block what earlier ones took, which of a crawl is most:
the contents that many roots link to are taken by the first few. The rest is dealt in memory.
"""
# ruff: noqa: S608 - every name in these queries is this package's own, every value a number

from collections import Counter
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from lc_assets.packing.turns import (
    HELD,
    KEPT,
    NO_ROOM,
    ROOT_GONE,
    Offer,
    Rules,
    TurnState,
    take_turns,
)
from lc_assets.stages.deduplication.queries import Queries

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
        asked: holds ``offers``, of which a root has at most one of each content, and ``held``.
        rules: how pages are taken.
        round: counted from 1; in the first, roots may stop being roots.
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
    """Add to ``held`` what the roots take of ``offers``; returns how many offers were refused, by
    why.
    """
    asked, counts = made.asked, Counter[str]()
    blocks = asked.lines(f"""SELECT min(root) AS low, max(root) + 1 AS high FROM (
        SELECT root, (sum(count(*)) OVER (ORDER BY root) - count(*)) // {max(made.at_once, 1)} AS block
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
    """Let the roots from ``low`` to before ``high`` take their turns; returns how many offers had
    no room.
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
