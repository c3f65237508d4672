"""The index of the pages within LongPack's documents: which documents hold a page, by its id,
address or domain.

===================  =======================================================================================
file                 what
===================  =======================================================================================
``pages.parquet``    a line per part of every document, `PAGES`, in the order of the tables of spans
``page_key.npy``     keys of the pages (`lc_assets.text.links.addresses`), see `lc_assets.formats.key_index`
``page_place.npy``   which line of ``pages.parquet`` each key is of
===================  =======================================================================================

A column ``id`` of this table is the page's, as in all tables that are asked
(`lc_assets.build.lookups`); ``packed_id`` is of the document that holds it. Tables of spans
are read one at a time, so memory is the keys': twelve bytes each.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lc_assets.build.lookups import KeyedTable, write_parts_in_groups
from lc_assets.build.tables import opened_table, read_table
from lc_assets.formats.key_index import KeyIndex, write_key_index
from lc_assets.lake.versions import Published
from lc_assets.text.links.addresses import keys_of_parts

PAGES_FILE: Final = "pages.parquet"
INDEX: Final = "page"
PAGES: Final = pa.schema(
    {
        "packed_id": "string",
        "id": "string",
        "url": "string",
    }
)
COLUMNS: Final = ("id", "child_id", "url")
"""Of a table of spans: what `PAGES` calls by its own names."""
LINES_AT_ONCE: Final = 1 << 16


def write_page_index(folder: Path, spans: Iterable[Path]) -> int:
    """Write the index of some tables of spans; return how many keys there are."""
    path = folder / PAGES_FILE
    write_parts_in_groups(path, map(pages_of, spans), PAGES)
    keys, places = keys_of_pages(path)
    write_key_index(folder / INDEX, keys, places)
    return len(keys)


def pages_of(spans: Path) -> pa.Table:
    """Lines of `PAGES` of one table of spans."""
    return read_table(spans, COLUMNS).select(COLUMNS).rename_columns(PAGES.names).cast(PAGES)


def keys_of_pages(path: Path) -> tuple[NDArray[np.uint64], NDArray[np.uint32]]:
    """All keys of a table of pages, uint64, and the line each is of, uint32; ascending by key, then
    by line.
    """
    with opened_table(path) as file:
        batches = file.iter_batches(LINES_AT_ONCE, columns=["id", "url"])
        return keys_of_parts(
            {"id": batch["id"].to_pylist(), "url": batch["url"].to_pylist()} for batch in batches
        )


def page_index(longpack: Published) -> KeyedTable:
    """The index of a version's pages, for asking."""
    return KeyedTable(
        longpack.only(PAGES_FILE) / PAGES_FILE, KeyIndex(longpack.only(f"{INDEX}_*.npy") / INDEX)
    )
