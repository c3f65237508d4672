"""Releases: the versions that a name pins, how each of them was made, and whether all of it is
intact.

A release pins what is served: the published global order, its grids, the Megatron files and mixes
made from them, the flat copy if it has the same order, packed rows, and the indices that trace
them. Their inputs are described, not pinned: settings, code versions and libraries stay readable
when the documents are gone.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from lc_assets.errors import CorruptFile, Mismatch, NotPublished
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
from lc_assets.lake.staging import lake_locked
from lc_assets.lake.versions import Published
from lc_assets.stages.lineage.row_lineage import row_index
from lc_assets.stages.lineage.tracing import rows_behind, sources_of
from lc_assets.vocabulary import SPLITS


def release(lake: Lake, name: str) -> Release:
    """Name the current published versions.

    Raises:
        NotPublished: if there is no global order, or an input of a version is gone.
        Mismatch: if a mix is made of other versions than the order.
        BadInput: if a release of this name with other versions exists.
        CorruptFile: if a version lost a file.
        Busy: if builds or a prune are running.
    """
    with lake_locked(lake.root, shared=False):
        pinned = pinned_now(lake)
        for published in pinned.values():
            if lost := published.lost_files():
                raise CorruptFile(
                    f"{published.where}: {len(lost):,} files are missing or truncated, such as "
                    f"{lost[0]}: build it again with `lc rebuild --repair`"
                )
        found = with_checksum(described(lake, pinned))
        publish_release(lake, name, found)
        return found


def pinned_now(lake: Lake, *, strict: bool = True) -> dict[str, Published]:
    """What a release would pin now, by name; unless ``strict``, also if some of it is out of date.

    Raises:
        NotPublished: if there is no global order, or an input of a version is gone.
        Mismatch: if a mix is made of other versions than the order.
    """
    order = lake.partition("longcrawl").require()
    grids = {grid.name: grid for grid in sources_of(lake, order)}
    found = {order.name: order, **grids}
    flat = lake.partition("longcrawl_flat").current()
    if flat is not None and lake.require_input(flat, "longcrawl").digest == order.digest:
        found[flat.name] = flat
    packed = lake.published("packed_rows").values()
    served = grids | {rows.name: rows for rows in packed}
    for mix in lake.published("blended_mix").values():
        found[mix.name] = mix
        for source in sources_of(lake, mix):
            found[source.name] = source
            if strict and not _is_among(served, rows_behind(lake, source)):
                raise Mismatch(
                    f"{mix.name} is made of another version of {source.name} than is published, or "
                    "than the global order is over: "
                    "materialize what `lc plan` calls out of date, then release it"
                )
    for megatron in lake.published("megatron_rows").values():
        if _is_among(grids, rows_behind(lake, megatron)):
            found.setdefault(megatron.name, megatron)
    indexes = (row_index(lake, grid) for grid in grids.values())
    found |= {index.name: index for index in indexes if index is not None}
    return dict(sorted((found | {rows.name: rows for rows in packed}).items()))


def _is_among(served: Mapping[str, Published], rows: Published) -> bool:
    return rows.name in served and served[rows.name].digest == rows.digest


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
    counts = {
        f"{split} rows": sum(grid.counts.extra[f"{split} rows"] for grid in grids)
        for split in SPLITS
    }
    tokens = sum(
        grid.fingerprint.params["row_tokens"] * grid.counts.extra[f"{split} rows"]
        for grid in grids
        for split in SPLITS
    )
    return {
        "snapshots": len(grids),
        "documents": sum(grid.counts.seen for grid in grids),
        **counts,
        "tokens": tokens,
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
        except (NotPublished, Mismatch) as error:
            found.append(str(error))
            continue
        found += [f"{of}/{published.version}/{sentence}" for sentence in published.damage()]
    return found
