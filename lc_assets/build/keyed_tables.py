"""Tables of documents that are asked for a few lines: by id, address, domain or digest.

A look-up is a search in a mapped array (`lc_assets.formats.key_index`) and one small row group of
the table (`lc_assets.build.line_reading`) per line found, whatever the table's length. Not here:
what keys are of (`lc_assets.text.links.addresses`), who writes which table.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lc_assets.build.line_reading import read_some
from lc_assets.formats.key_index import KeyIndex
from lc_assets.text.links.addresses import Kind, keys_of, sought, values_of


@dataclass(frozen=True, slots=True)
class KeyedTable:
    """A table and its index.

    Attributes:
        path: of the table: its lines have ``id``, ``url`` and perhaps digests.
        index: of its lines' keys.
    """

    path: Path
    index: KeyIndex

    def find(self, kind: Kind, value: str) -> list[dict[str, Any]]:
        """Lines of the documents that are found by a value, in their order; each has been compared
        with it.

        Raises:
            CorruptFile: when the index or its table is damaged.
        """
        wanted, key = sought(kind, value)
        places = self.index.places(key)
        return (
            [line for line in self.lines(places) if wanted in values_of(kind, line)]
            if places
            else []
        )

    def find_all(self, wanted: Sequence[tuple[Kind, str]]) -> Iterator[tuple[int, dict[str, Any]]]:
        """Lines that are found by any of some normal values, each with the number of the value; by
        value, then in their order.

        Raises:
            CorruptFile: when the index or its table is damaged.
        """
        keys = np.array([keys_of(kind, [value])[0] for kind, value in wanted], np.uint64)
        which, places = self.index.places_of_all(keys)
        for number, line in zip(which.tolist(), self.lines(places.tolist()), strict=True):
            kind, value = wanted[number]
            if value in values_of(kind, line):
                yield number, line

    def lines(self, places: Sequence[int]) -> list[dict[str, Any]]:
        """Lines by their numbers."""
        return read_some(self.path, places)
