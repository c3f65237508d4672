"""Releases: the versions that a name pins, how each of them was made, and whether all of it is
intact.

Only a lake is released that is current under its recipe, undamaged, and passes the audit
(`lc_assets.stages.releases.auditing`). A release pins what is served: the published global order,
its grids, the Megatron files and mixes made from them, the flat copy if it has the same order,
packed rows, and the indices that trace them. Their inputs are described, not pinned: settings, code
versions and libraries stay readable when the documents are gone.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from lc_assets.builds.recipe import Recipe
from lc_assets.errors import Busy, CorruptFile, Mismatch, NotPublished
from lc_assets.lake.alone import alone
from lc_assets.lake.digests import digest_of, short
from lc_assets.lake.lake import Lake
from lc_assets.lake.receipts import with_checksum
from lc_assets.lake.releases import (
    Made,
    Pin,
    Release,
    lake_of_release,
    note_damage,
    publish_release,
    read_release,
)
from lc_assets.lake.versions import Published
from lc_assets.stages.lineage.row_lineage import row_index
from lc_assets.stages.lineage.tracing import rows_behind, sources_of
from lc_assets.stages.planning import plan
from lc_assets.stages.releases.auditing import Audit
from lc_assets.stages.withdrawal.contents import SERVED, nothing_withdrawn_is_served
from lc_assets.stages.withdrawal.matching import named_by
from lc_assets.vocabulary import SPLITS


def release(lake: Lake, name: str, recipe: Recipe) -> Release:
    """Name the current published versions, after `require_releasable`.

    Raises:
        NotPublished: if there is no global order, or an input of a version is gone.
        Mismatch: if something is out of date or wrong.
        BadInput: if a release of this name with other versions exists.
        Busy: if builds or a prune are running, or have changed what is published.
    """
    pinned = pinned_now(lake)
    require_releasable(lake, recipe, pinned)
    with alone(lake):
        found = with_checksum(described(lake, pinned))
        if described(lake, pinned_now(lake)).pins != found.pins:
            raise Busy(f"{lake.url}: was built in the meantime; run this again")
        publish_release(lake, name, found)
        return found


def require_releasable(lake: Lake, recipe: Recipe, pinned: Mapping[str, Published]) -> None:
    """Refuse a lake that is out of date under its recipe, serves something withdrawn, is damaged,
    or fails the audit.

    Raises:
        Mismatch: says what is wrong, and what to do.
    """
    plans = plan(lake, recipe, lake.keys("raw_snapshot"))
    behind = [made for made in plans if made.status != "current"]
    if behind:
        raise Mismatch(
            f"{lake.url} is out of date under its recipe in {len(behind):,} partitions, such as "
            f"{behind[0].name} ({'; '.join(behind[0].reasons)}): run `lc rebuild`, then release it"
        )
    served = [published for published in pinned.values() if published.stage in SERVED]
    checks = [nothing_withdrawn_is_served(lake, recipe, published) for published in served]
    faults = [
        *(f"{check.check}: {check.message}" for check in checks if not check.passed),
        *(f"{of}: {words}" for of, one in pinned.items() for words in one.damage()),
    ]
    if not faults:
        named = named_by(recipe.withdrawn_documents)
        faults = [one.sentence for one in Audit(lake, *named).run() if one.wrong]
    if faults:
        raise Mismatch(
            f"{lake.url} is not released: {len(faults):,} faults, such as {faults[0]}: run `lc "
            "audit` to see all, `lc rebuild --verify` to build damaged versions again"
        )


def pinned_now(lake: Lake) -> dict[str, Published]:
    """What a release would pin now, by name.

    Raises:
        NotPublished: if there is no global order, or an input of a version is gone.
    """
    order = lake.partition("longcrawl").require()
    grids = sources_of(lake, order)
    found = [order, *grids]
    flat = lake.partition("longcrawl_flat").current()
    if flat is not None and lake.require_input(flat, "longcrawl").digest == order.digest:
        found.append(flat)
    digests = {grid.name: grid.digest for grid in grids}
    for megatron in lake.published("megatron_rows").values():
        rows = rows_behind(lake, megatron)
        if digests.get(rows.name) == rows.digest:
            found.append(megatron)
    for mix in lake.published("blended_mix").values():
        found += [mix, *sources_of(lake, mix)]
    found += filter(None, (row_index(lake, grid) for grid in grids))
    found += lake.published("packed_rows").values()
    # Of several versions of a partition, the last one: a mix's own Megatron files come first.
    by_name = {published.name: published for published in found}
    return dict(sorted(by_name.items()))


def described(lake: Lake, pinned: Mapping[str, Published]) -> Release:
    """A release of some versions: their pins, how each was made and from what, and counts over the
    grids.
    """
    made: dict[str, Made] = {}
    settings: dict[str, dict[str, Any]] = {}
    libraries: dict[str, dict[str, str]] = {}
    for published in _behind(lake, pinned):
        receipt = published.receipt
        of_settings = short(digest_of(receipt.fingerprint.params))
        of_libraries = short(digest_of(receipt.libraries))
        settings[of_settings] = receipt.fingerprint.params
        libraries[of_libraries] = receipt.libraries
        made[published.name] = Made(
            version=published.version,
            digest=published.digest,
            code_version=receipt.fingerprint.code_version,
            settings=of_settings,
            libraries=of_libraries,
        )
    pins = {
        name: Pin(version=published.version, digest=published.digest)
        for name, published in pinned.items()
    }
    return Release(
        pins=pins, made=made, settings=settings, libraries=libraries, counts=_counts(pinned)
    )


def _behind(lake: Lake, pinned: Mapping[str, Published]) -> Iterator[Published]:
    """The pinned versions, then their inputs as far as they still exist; of several versions of a
    partition, the nearest.
    """
    seen: set[str] = set()
    line = list(pinned.values())
    for published in line:
        if published.name in seen:
            continue
        seen.add(published.name)
        yield published
        line += lake.inputs_of(published, known=seen)


def _counts(pinned: Mapping[str, Published]) -> dict[str, int]:
    receipts = (published.receipt for published in pinned.values())
    grids = [found for found in receipts if found.fingerprint.stage == "token_grid"]
    names = (*(f"{split} rows" for split in SPLITS), "tokens")
    return {
        "snapshots": len(grids),
        "documents": sum(grid.counts.seen for grid in grids),
        **{name: sum(grid.counts.extra[name] for grid in grids) for name in names},
    }


def release_damage(lake: Lake, name: str) -> list[str]:
    """Read every byte of a release; return one sentence for each thing that is missing or changed.

    Raises:
        NotPublished: if there is no such release.
    """
    pinned, found = lake_of_release(lake, name), note_damage(lake, name)
    for of in read_release(lake, name).pins:
        try:
            published = pinned.partition(*of.split("/")).require()
        except (NotPublished, CorruptFile, Mismatch) as error:
            found.append(str(error))
            continue
        found += [f"{of}/{published.version}/{sentence}" for sentence in published.damage()]
    return found
