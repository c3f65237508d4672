"""The record of which texts are held out, by their digests as tokenized: so one text is on one side
of the split, under whatever addresses it was found and whatever was replaced in it.

`heldout_pairs` draws and writes it. All other stages read it; `removed_documents` repeats it in its
decisions. It changes with the texts of a snapshot and the seed alone, so rows are not made again
when other decisions change.
"""

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

from lc_assets import arrow_compute as pc
from lc_assets.builds.tables import read_table
from lc_assets.errors import Mismatch
from lc_assets.lake.versions import Published

SIDES = pa.schema({"tokenized_digest": "string", "side": "string"})
"""A line for each filtered document of a snapshot, in the order of its keys: ``train`` or
``heldout``.
"""
SIDES_FILE = "sides.parquet"


def sides_in(inputs: Mapping[str, Published]) -> list[Path]:
    """The records among a stage's inputs."""
    read = (one for one in inputs.values() if one.stage == "heldout_pairs")
    return [one.only(SIDES_FILE) / SIDES_FILE for one in read]


def held_out_in(
    inputs: Mapping[str, Published], key: str, digests: pa.ChunkedArray
) -> pa.ChunkedArray:
    """Which texts of a partition, by their digests, are held out, out of a stage's inputs; none
    where the recipe holds nothing out, so that there is no record.

    Raises:
        Mismatch: when the record lacks a text.
    """
    if (published := inputs.get(f"heldout_pairs/{key}")) is None:
        return pa.chunked_array([pa.repeat(False, len(digests))])
    known = read_table(published.only(SIDES_FILE) / SIDES_FILE, SIDES.names)
    place = pc.index_in(digests, value_set=known["tokenized_digest"])
    if place.null_count:
        raise Mismatch(
            f"{published.name} lacks {place.null_count:,} texts that were tokenized: materialize "
            "it, then tokenize again"
        )
    return pc.equal(known["side"].take(place), "heldout")
