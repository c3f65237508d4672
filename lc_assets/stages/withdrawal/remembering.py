"""What `withdrawn_documents` remembers: the contents that were ever withdrawn; in Arrow, as a
domain may have millions.
"""

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa

from lc_assets import arrow_compute as pc
from lc_assets.builds.lookups import lines_found
from lc_assets.builds.stage import CheckInput
from lc_assets.builds.tables import REMEMBERED, read_table
from lc_assets.formats.lists.withdrawal_lists import Withdrawal
from lc_assets.lake.versions import Published
from lc_assets.text.links.addresses import Kind, normal

LISTED = "listed"
SAME_DIGEST = "same digest"
NEAR_DUPLICATE = "near duplicate"
BEFORE = "withdrawn before"
HOWS = (LISTED, SAME_DIGEST, NEAR_DUPLICATE, BEFORE)
MEMORY = "remembered.parquet"

Sought = tuple[Kind, str]


def remembered_in(published: Published | CheckInput) -> pa.Table:
    """`tables.REMEMBERED` of a version; empty for one of another stage, or of code version 1, which
    had no memory.

    Raises:
        CorruptFile: if it cannot be read.
    """
    if isinstance(published, CheckInput):
        folder = published.folder
    else:
        made = published.receipt.fingerprint
        if made.stage != "withdrawn_documents" or made.code_version == "1":
            return REMEMBERED.empty_table()
        folder = published.only(MEMORY)
    return read_table(folder / MEMORY, REMEMBERED.names)


def remembered_digests(withdrawn: Published) -> set[str]:
    """Digests of what a version remembers, if it withdraws copies too."""
    if withdrawn.params.get("same_content") == "stays":
        return set()
    table = remembered_in(withdrawn)
    return {*table["digest"].to_pylist(), *table["text_digest"].to_pylist()} - {""}


def named_in(remembered: pa.Table, sought: Sequence[Sought]) -> tuple[set[int], pa.Array]:
    """Numbers of the entries that name a remembered document, or withdrew one; and which documents
    these are.
    """
    hits = lines_found(remembered, sought) if sought else []
    numbers, is_named = {number for number, _ in hits}, np.zeros(len(remembered), np.bool_)
    is_named[[place for _, place in hits]] = True
    made_by = pc.binary_join_element_wise(remembered["kind"], remembered["value"], ",")
    for words in made_by.unique().to_pylist() if sought else ():
        kind, _, value = words.partition(",")
        name = (kind, normal(kind, value))
        own = [number for number, one in enumerate(sought) if one == name]
        if own:
            numbers.update(own)
            is_named |= np.asarray(pc.equal(made_by, words))
    return numbers, pa.array(is_named)


def moved_documents(remembered: pa.Table, entries: Iterable[Withdrawal]) -> list[str]:
    """Ids that entries name and that have had more than one content."""
    named = [entry.value for entry in entries if entry.kind == "document"]
    is_named = pc.is_in(remembered["id"], value_set=pa.array(named, pa.string()))
    contents: dict[str, set[str]] = {}
    is_named = pc.and_(is_named, pc.equal(remembered["how"], LISTED))
    for line in remembered.filter(is_named).to_pylist():
        contents.setdefault(line["id"], set()).add(line["digest"] or line["text_digest"])
    return [name for name in named if len(contents.get(name, set()) - {""}) > 1]


def merged(lines: pa.Table) -> pa.Table:
    """Remembered documents by id and digests, each once, as it was matched most closely, and of
    several such the last.
    """
    key = ["id", "digest", "text_digest"]
    by = lines.select(key)
    by = by.append_column("rank", pc.index_in(lines["how"], value_set=pa.array(HOWS)))
    by = by.append_column("place", pa.array(-np.arange(len(lines))))
    order = pc.sort_indices(by, sort_keys=[(name, "ascending") for name in by.column_names])
    is_first = np.arange(len(lines)) == 0
    for name in key:
        column = by[name].take(order).combine_chunks()
        is_first[1:] |= np.asarray(pc.not_equal(column[1:], column[:-1]))
    return lines.take(order.filter(pa.array(is_first))).combine_chunks()
