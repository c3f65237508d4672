"""The difference of two data sets: documents, rows and tokens added, removed and moved, and the
settings, code and libraries that changed.

A data set is a release, the current published state, or one version's folder (a grid, a global
order, the flat copy, a mix). Only snapshots whose grids differ are read. A document is identified
by its content: the digest of its page, in the row tables; where the source states none, the tokens
of its row, which are read. So a document on another line of its file is the same, and another one
on the same line is not: it has **changed** in place. A row has **moved** if it is the same stretch
of the same content on the other side of the split, with another shift or another priority. Row
numbers are not compared: they change with every row added or removed before them.
"""

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec
import numpy as np

from lc_assets.builds.tables import read_table
from lc_assets.errors import NotPublished, known_names
from lc_assets.formats.arrays.grid import GridReader
from lc_assets.lake.digests import changed_keys
from lc_assets.lake.lake import Lake
from lc_assets.lake.located import located
from lc_assets.lake.receipts import flat_settings, shown_setting
from lc_assets.lake.releases import Made, Release, read_release, release_names
from lc_assets.lake.versions import Published
from lc_assets.records import frozen
from lc_assets.stages.lineage.spans import row_tokens_of
from lc_assets.stages.lineage.tracing import sources_of
from lc_assets.stages.releases.audited_files import hash_of, rows_of
from lc_assets.stages.releases.releasing import described, pinned_now
from lc_assets.stages.rows import token_grid
from lc_assets.vocabulary import SPLITS

NOW = "now"
"""Names the current published state, instead of a release: also grids that are in no order yet."""
COLUMNS = ("id", "digest", "stretch", "split", "shift", "priority")


@frozen
class DataSet:
    """One side of a comparison: its name as given, its lake, and its versions as in a release."""

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
    def grids(self) -> dict[str, str]:
        """Digests of the grids in it, by snapshot."""
        stem = "token_grid/"
        return {
            name.removeprefix(stem): pin.digest
            for name, pin in self.release.pins.items()
            if name.startswith(stem)
        }


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """What differs in one snapshot.

    Attributes:
        snapshot: its name.
        documents_added: in the second data set only; ``documents_removed``: in the first only.
        documents_changed: in both by id, with other contents: each is one added and one removed.
        rows_added: likewise; ``rows_removed``; ``rows_moved``: in both, elsewhere.
        tokens_added: of the added rows; ``tokens_removed``.
    """

    snapshot: str
    documents_added: int = 0
    documents_removed: int = 0
    documents_changed: int = 0
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
        versions = [*_grids_behind(named.lake, named.published), named.published]
        release = described(named.lake, {of.name: of for of in versions})
        return DataSet(words, named.lake, release)
    if words == NOW:
        grids = {grid.name: grid for grid in lake.published("token_grid").values()}
        return DataSet(words, lake, described(lake, pinned_now(lake) | grids))
    if words not in release_names(lake):
        raise NotPublished(
            f"{words}: neither a release of {lake.url} nor the folder of a version; of releases "
            f"there are {known_names([NOW, *release_names(lake)], words)}"
        )
    return DataSet(words, lake, read_release(lake, words))


def _grids_behind(lake: Lake, published: Published) -> list[Published]:
    """The grids whose rows a version contains."""
    if published.stage == "token_grid":
        return [published]
    return [grid for source in sources_of(lake, published) for grid in _grids_behind(lake, source)]


def compare(before: DataSet, after: DataSet) -> Difference:
    """Compare two data sets.

    Raises:
        NotPublished: if a version that must be read is gone.
    """
    old, new = before.grids, after.grids
    snapshots = sorted({*old, *new})
    differ = [name for name in snapshots if old.get(name) != new.get(name)]
    changes = [_change(name, before.grid(name), after.grid(name)) for name in differ]
    return Difference(
        before=before.name,
        after=after.name,
        counts=(before.release.counts, after.release.counts),
        changes=[change for change in changes if change != Change(snapshot=change.snapshot)],
        settings=_of_made(before, after, "setting", lambda of, made: of.settings[made.settings]),
        code=_of_made(before, after, "", lambda _, made: {"code version": made.code_version}),
        libraries=_of_made(before, after, "library", lambda of, made: of.libraries[made.libraries]),
        mixes=_mixes(before.release, after.release),
        same_snapshots=len(snapshots) - len(differ),
    )


def _change(snapshot: str, old: Published | None, new: Published | None) -> Change:
    before, after = ([] if grid is None else list(_rows(grid)) for grid in (old, new))
    rows, was = Counter(row[:2] for row in after), Counter(row[:2] for row in before)
    documents = Counter(row.content for row in after if not row.stretch)
    were = Counter(row.content for row in before if not row.stretch)
    names = {row.id: row.content for row in before if row.content not in documents}
    changed = {row.id for row in after if row.id in names and row.content not in were}
    # A row with what places it, without the name of its document.
    was_at, now_at = (Counter(row[:5] for row in side) for side in (before, after))
    removed = (was - rows).total()
    return Change(
        snapshot=snapshot,
        documents_added=(documents - were).total(),
        documents_removed=(were - documents).total(),
        documents_changed=len(changed),
        rows_added=(rows - was).total(),
        rows_removed=removed,
        rows_moved=(was_at - now_at).total() - removed,
        tokens_added=(rows - was).total() * row_tokens_of(new) if new else 0,
        tokens_removed=removed * row_tokens_of(old) if old else 0,
    )


class _Row(NamedTuple):
    """A row; its document's content is a digest of the page, or of the row's tokens."""

    content: str
    stretch: int
    split: str
    shift: int
    priority: int
    id: str


def _rows(grid: Published) -> Iterator[_Row]:
    table = read_table(grid.only(token_grid.ROWS_FILE) / token_grid.ROWS_FILE, COLUMNS)
    for split in SPLITS:
        lines = [line for line in table.to_pylist() if line["split"] == split]
        tokens: Iterator[Any] = iter(())
        if not all(line["digest"] for line in lines):
            tokens = rows_of(GridReader(grid.only(f"{split}.zarr/*") / f"{split}.zarr"))
        for line, row in itertools.zip_longest(lines, tokens):
            content = line.pop("digest") or str(hash_of(np.roll(row, -line["shift"])))
            yield _Row(content, **line)


def _of_made(
    before: DataSet,
    after: DataSet,
    what: str,
    values_of: Callable[[Release, Made], Mapping[str, Any]],
) -> list[dict[str, Any]]:
    """Differences in settings, code and libraries of the partitions in both; equal ones of a stage
    are merged into one line.
    """
    found: dict[tuple[str, str, str, str], list[str]] = {}
    for name in sorted(before.release.made.keys() & after.release.made.keys()):
        stage, _, key = name.partition("/")
        old, new = (
            flat_settings(values_of(of.release, of.release.made[name])) for of in (before, after)
        )
        for value in changed_keys(old, new):
            pair = shown_setting(old, value), shown_setting(new, value)
            found.setdefault((stage, value, *pair), []).append(key)
    return [
        {"stage": stage, **({what: value} if what else {})}
        | {"partitions": keys, "before": old, "after": new}
        for (stage, value, old, new), keys in found.items()
    ]


def _mixes(before: Release, after: Release) -> dict[str, str]:
    found = {}
    for name in sorted(
        name for name in {*before.pins, *after.pins} if name.startswith("blended_mix/")
    ):
        old, new = before.pins.get(name), after.pins.get(name)
        if old is None or new is None:
            found[name] = "is new" if old is None else "is gone"
        else:
            found[name] = "is the same" if old.digest == new.digest else "changed"
    return found
