"""The difference of two data sets: documents, rows and tokens added, removed and moved, and the
settings, code and libraries that changed.

A data set is a release, what is published now, or one version's folder (a grid, a global order, the
flat copy, a mix). Rows are compared by row tables alone, only for snapshots whose grids differ:
50 ms each. A row has **moved** if it is the same stretch of the same document on the other side of
the split, with another shift or another priority. Row numbers are not compared: they change with
every row added or removed before them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lc_assets.build.tables import read_table
from lc_assets.errors import NotPublished
from lc_assets.lake.lake import Lake
from lc_assets.lake.located import Located, located
from lc_assets.lake.releases import Release, read_release, release_names
from lc_assets.lake.versions import Published
from lc_assets.stages.releases.releasing import described, pinned_now
from lc_assets.stages.releases.serving import GRIDS_OF
from lc_assets.stages.rows.token_grid import ROWS_FILE

NOW = "now"
"""Names what is published now, in place of a release."""
COLUMNS = ("id", "stretch", "split", "shift", "priority")


@dataclass(frozen=True, slots=True)
class DataSet:
    """One side of a comparison: how a person called it, its lake, and its versions as a release has
    them.
    """

    name: str
    lake: Lake
    release: Release

    def grid(self, snapshot: str) -> Published | None:
        """The grid of a snapshot; None if it is not in the data set.

        Raises:
            NotPublished: if that version is gone.
        """
        pin = self.release.pins.get(f"token_grid/{snapshot}")
        return None if pin is None else self.lake.partition("token_grid", snapshot).at(pin.version)

    @property
    def snapshots(self) -> set[str]:
        """The snapshots whose grids are in it."""
        return {
            name.removeprefix("token_grid/")
            for name in self.release.pins
            if name.startswith("token_grid/")
        }


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """What differs in one snapshot.

    Attributes:
        snapshot: its name.
        documents_added: in the second data set only; ``documents_removed``: in the first only.
        rows_added: likewise; ``rows_removed``; ``rows_moved``: in both, elsewhere.
        tokens_added: of the added rows; ``tokens_removed``.
    """

    snapshot: str
    documents_added: int = 0
    documents_removed: int = 0
    rows_added: int = 0
    rows_removed: int = 0
    rows_moved: int = 0
    tokens_added: int = 0
    tokens_removed: int = 0


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """What differs between two data sets.

    Attributes:
        before: the first one's name.
        after: the second one's name.
        counts: documents, rows, tokens of both.
        changes: a line per snapshot whose rows differ.
        settings: stage, setting, partitions, value before and after.
        code: stage, partitions, code version before and after.
        libraries: stage, library, partitions, version before and after.
        mixes: by name, what changed.
        same_snapshots: number of snapshots with the same grid, byte for byte.
    """

    before: str
    after: str
    counts: tuple[dict[str, int], dict[str, int]]
    changes: list[Change]
    settings: list[dict[str, Any]]
    code: list[dict[str, Any]]
    libraries: list[dict[str, Any]]
    mixes: dict[str, str]
    same_snapshots: int


def data_set(lake: Lake, words: str) -> DataSet:
    """A data set by name: a release of the lake, ``now``, or the folder of one version in any lake.

    Raises:
        NotPublished: if there is none; lists those there are.
        CorruptFile: if it cannot be read.
    """
    named = located(words)
    if named is not None and named.version:
        return _of_version(words, named)
    if words == NOW:
        return DataSet(words, lake, described(lake, pinned_now(lake, strict=False)))
    if words not in release_names(lake):
        there = ", ".join([NOW, *release_names(lake)])
        raise NotPublished(
            f"{words}: neither a release of {lake.url} nor the folder of a version; of releases "
            f"there are {there}"
        )
    return DataSet(words, lake, read_release(lake, words))


def _of_version(words: str, named: Located) -> DataSet:
    published, lake = named.published, named.lake
    stage = published.receipt.fingerprint.stage
    grids = list(GRIDS_OF[stage](lake, published)) if stage in GRIDS_OF else []
    return DataSet(words, lake, described(lake, {of.name: of for of in (*grids, published)}))


def compare(before: DataSet, after: DataSet) -> Difference:
    """Compare two data sets.

    Raises:
        NotPublished: if a version that must be read is gone.
    """
    both = [
        (
            name,
            before.release.pins.get(f"token_grid/{name}"),
            after.release.pins.get(f"token_grid/{name}"),
        )
        for name in _sorted(before, after)
    ]
    differ = [
        name for name, old, new in both if old is None or new is None or old.digest != new.digest
    ]
    changes = [_change(name, before.grid(name), after.grid(name)) for name in differ]
    return Difference(
        before=before.name,
        after=after.name,
        counts=(before.release.counts, after.release.counts),
        changes=[change for change in changes if change != Change(snapshot=change.snapshot)],
        settings=_of_made(before, after, _settings, "setting"),
        code=_of_made(before, after, _code, ""),
        libraries=_of_made(before, after, _libraries, "library"),
        mixes=_mixes(before.release, after.release),
        same_snapshots=len(both) - len(differ),
    )


def _sorted(before: DataSet, after: DataSet) -> list[str]:
    return sorted(before.snapshots | after.snapshots)


def _change(snapshot: str, old: Published | None, new: Published | None) -> Change:
    tables = [_rows(grid) for grid in (old, new)]
    keys = [_row_keys(table) for table in tables]
    documents = [table["id"].unique() for table in tables]
    gone, come = _places_not_in(keys[0], keys[1]), _places_not_in(keys[1], keys[0])
    n_moved = _moved(tables, keys)
    return Change(
        snapshot=snapshot,
        documents_added=len(_places_not_in(documents[1], documents[0])),
        documents_removed=len(_places_not_in(documents[0], documents[1])),
        rows_added=len(come),
        rows_removed=len(gone),
        rows_moved=n_moved,
        tokens_added=len(come) * _row_tokens(new),
        tokens_removed=len(gone) * _row_tokens(old),
    )


def _rows(grid: Published | None) -> pa.Table:
    if grid is None:
        return pa.table(
            {
                name: pa.array([], pa.string() if name in {"id", "split"} else pa.int64())
                for name in COLUMNS
            }
        )
    return read_table(grid.only(ROWS_FILE) / ROWS_FILE, COLUMNS)


def _row_tokens(grid: Published | None) -> int:
    return 0 if grid is None else int(grid.receipt.fingerprint.params["row_tokens"])


def _row_keys(table: pa.Table) -> pa.ChunkedArray:
    return pc.binary_join_element_wise(table["id"], table["stretch"].cast(pa.string()), "#")


def _places_not_in(values: Any, others: Any) -> NDArray[np.int64]:
    return np.flatnonzero(~np.asarray(pc.is_in(values, value_set=_one(others))))


def _one(values: Any) -> pa.Array:
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


def _moved(tables: list[pa.Table], keys: list[pa.ChunkedArray]) -> int:
    """How many rows are in both, with another split, shift or priority."""
    there = pc.index_in(keys[0], value_set=_one(keys[1]))
    here = np.flatnonzero(np.asarray(pc.is_valid(there)))
    old = tables[0].take(pa.array(here))
    new = tables[1].take(pc.drop_null(there))
    differs = np.zeros(len(here), np.bool_)
    for name in ("split", "shift", "priority"):
        differs |= np.asarray(pc.not_equal(old[name], new[name]))
    return int(differs.sum())


def _of_made(before: DataSet, after: DataSet, values_of: Any, what: str) -> list[dict[str, Any]]:
    """Differences in settings, code and libraries of the partitions in both; equal ones of a stage
    are merged into one line.
    """
    found: dict[tuple[str, str, str, str], list[str]] = {}
    for name in sorted(before.release.made.keys() & after.release.made.keys()):
        stage, _, key = name.partition("/")
        old, new = (values_of(of.release, name) for of in (before, after))
        for value in sorted(old.keys() | new.keys()):
            pair = (_said(old, value), _said(new, value))
            if pair[0] != pair[1]:
                found.setdefault((stage, value, *pair), []).append(key)
    named = {what: 0} if what else {}
    return [
        {
            "stage": stage,
            **dict.fromkeys(named, value),
            "partitions": keys,
            "before": old,
            "after": new,
        }
        for (stage, value, old, new), keys in found.items()
    ]


def _said(values: Mapping[str, Any], name: str) -> str:
    return repr(values[name]) if name in values else "(not set)"


def _settings(release: Release, name: str) -> dict[str, Any]:
    return dict(_flat(release.settings.get(release.made[name].settings, {}), ""))


def _code(release: Release, name: str) -> dict[str, Any]:
    return {"code version": release.made[name].code_version}


def _libraries(release: Release, name: str) -> dict[str, Any]:
    return dict(release.libraries.get(release.made[name].libraries, {}))


def _flat(value: Any, stem: str) -> Iterator[tuple[str, Any]]:
    """Settings as names and plain values; rules by their names, so that a changed threshold is one
    line.
    """
    if isinstance(value, Mapping):
        for name, item in value.items():
            yield from _flat(item, f"{stem}.{name}" if stem else str(name))
    elif (
        isinstance(value, list)
        and value
        and all(isinstance(item, Mapping) and "name" in item for item in value)
    ):
        for item in value:
            yield from _flat(
                {name: of for name, of in item.items() if name != "name"}, f"{stem}.{item['name']}"
            )
    else:
        yield stem, value


def _mixes(before: Release, after: Release) -> dict[str, str]:
    found = {}
    for name in sorted(
        of for of in before.pins.keys() | after.pins.keys() if of.startswith("blended_mix/")
    ):
        old, new = before.pins.get(name), after.pins.get(name)
        if old is None or new is None:
            found[name] = "is new" if old is None else "is gone"
        else:
            found[name] = "is the same" if old.digest == new.digest else "changed"
    return found
