"""Products of span tables: the index of the pages within LongPack documents, and statistics of
their growth.

===================  ===============================================================================
file                 content
===================  ===============================================================================
``pages.parquet``    a line per part of every document, `PAGES`, in the order of the tables of spans
``page_key.npy``     keys of the pages, see `lc_assets.formats.key_index`
``page_place.npy``   which line of ``pages.parquet`` each key is of
===================  ===============================================================================

Column ``id`` is the page's, as in all tables that are searched by keys; ``packed_id`` is the id of
the document that contains it. Span tables are read one at a time, so memory is twelve bytes per
key. Lengths are those of the texts, without anchor lines and line ends.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from lc_assets import arrow_compute as pc
from lc_assets.arrays import Int64s
from lc_assets.builds.lookups import KeyedTable, write_keyed
from lc_assets.builds.tables import read_all, read_table
from lc_assets.counts import Counts
from lc_assets.lake.versions import Published
from lc_assets.packing.lengths import PAPER, Growth, bucket_counts, growth
from lc_assets.stages.links.link_tables import SPANS

MEASURES = (
    "hit rate",
    "hit rate of turns",
    "mean of ratios",
    "ratio of sums",
    "median ratio",
)


class Lengths(NamedTuple):
    """Tokens of the documents of a packing.

    Attributes:
        growth: how roots grew.
        packed: of each packed document, in no particular order.
        shares: share of all tokens by group of lengths, of the pages alone and of the packed
            documents.
    """

    growth: Growth
    packed: Int64s
    shares: dict[str, tuple[float, float]]


def lengths_of(spans: Sequence[Path], *, n_roots: int) -> Lengths:
    """The lengths recorded in span tables, of which ``n_roots`` roots were tried."""
    table = read_all(spans, SPANS, ["id", "role", "child_id", "n_tokens"])
    roots = table.filter(pc.equal(table["role"], "root")).select(["id", "n_tokens"])
    both = roots.join(table.group_by("id").aggregate([("n_tokens", "sum")]), "id")
    pages = table.group_by("child_id").aggregate([("n_tokens", "max")])
    numbers = (both["n_tokens"], both["n_tokens_sum"], pages["n_tokens_max"])
    before, after, alone = (np.asarray(column, np.int64) for column in numbers)
    pairs = zip(bucket_counts(alone), bucket_counts(after), strict=True)
    return Lengths(
        growth=growth(before, after, n_roots=n_roots),
        packed=after,
        shares={one.name: (one.share, other.share) for one, other in pairs},
    )


def roots_tried(counts: Counts) -> int:
    """Number of roots that had a turn, from the counts of
    `lc_assets.stages.longpack.claiming.claim_links`: those that no other root claims.
    """
    return counts.extra.get("roots", 0) - counts.extra.get("roots that another one holds", 0)


def beside_the_paper(found: Growth, counts: Counts) -> list[tuple[str, float, float | None]]:
    """Each measure with our value and the paper's, which gives no median. The hit rate is of all
    roots, and of those that had a turn: in the paper all. ``counts``: as of `roots_tried`.
    """
    of_all = found.n_packed / max(counts.extra.get("roots", 0), 1)
    ours = (of_all, found.hit_rate, found.mean_of_ratios, found.ratio_of_sums, found.median_ratio)
    theirs = (PAPER.hit_rate, PAPER.hit_rate, PAPER.mean_of_ratios, PAPER.ratio_of_sums, None)
    return list(zip(MEASURES, ours, theirs, strict=True))


PAGES_FILE = "pages.parquet"
INDEX = "page"
PAGES = pa.schema(
    {
        "packed_id": "string",
        "id": "string",
        "url": "string",
    }
)
COLUMNS = ("id", "child_id", "url")
"""Of a table of spans: what `PAGES` calls by its own names."""
KEY_COLUMNS = ("id", "url")


def write_page_index(folder: Path, spans: Iterable[Path]) -> int:
    """Write the index of some tables of spans; return how many keys there are."""
    pages = map(pages_of, spans)
    return write_keyed(folder / PAGES_FILE, folder / INDEX, pages, PAGES, KEY_COLUMNS)


def pages_of(spans: Path) -> pa.Table:
    """Lines of `PAGES` of one table of spans."""
    return read_table(spans, COLUMNS).select(COLUMNS).rename_columns(PAGES.names).cast(PAGES)


def page_index(longpack: Published) -> KeyedTable:
    """The index of a version's pages, for look-ups."""
    return KeyedTable.of(longpack, PAGES_FILE, INDEX)
