"""Releases: the versions that a name pins, how each of them was made, and whether all of it is
intact.

A release pins what is served: the published global order, its grids, the Megatron files and mixes
made from them, the flat copy if it has the same order, packed rows, and the indices that trace
them. Their inputs are described, not pinned: settings, code versions and libraries stay readable
when the documents are gone.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from lc_assets.errors import Mismatch, NotPublished
from lc_assets.formats.arrays.order import GlobalOrder
from lc_assets.lake.digests import digest_of, short
from lc_assets.lake.lake import GLOBAL, Lake
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
from lc_assets.stages.lineage.tracing import grid_behind, order_behind
from lc_assets.stages.releases.serving import sources_of
from lc_assets.vocabulary import SPLITS

OF_OTHERS: Final = ("packed_rows",)
"""Further stages whose published partitions are pinned; add other served stages here."""


def release(lake: Lake, name: str) -> Release:
    """Name what is published now.

    Raises:
        NotPublished: if there is no global order, or an input of a version is gone.
        Mismatch: if a mix is made of other versions than the order.
        BadInput: if a release of this name with other versions exists.
    """
    found = with_checksum(described(lake, pinned_now(lake)))
    publish_release(lake, name, found)
    return found


def pinned_now(lake: Lake, *, strict: bool = True) -> dict[str, Published]:
    """What a release would pin now, by name; unless ``strict``, also if some of it is out of date.

    Raises:
        NotPublished: if there is no global order, or an input of a version is gone.
        Mismatch: if a mix is made of other versions than the order.
    """
    order = lake.partition("longcrawl").require()
    grids = {grid.name: grid for grid in grids_of_order(lake, order)}
    found = {order.name: order, **grids}
    flat = lake.partition("longcrawl_flat").current()
    if flat is not None and order_behind(lake, flat).digest == order.digest:
        found[flat.name] = flat
    for mix in lake.published("blended_mix").values():
        found[mix.name] = mix
        found |= {source.name: source for source in _sources_of(lake, mix, grids, strict=strict)}
    for megatron in lake.published("megatron_rows").values():
        if grid_behind(lake, megatron).digest == _digest(
            grids, f"token_grid/{megatron.receipt.fingerprint.key}"
        ):
            found.setdefault(megatron.name, megatron)
    indexes = (row_index(lake, grid) for grid in grids.values())
    found |= {index.published.name: index.published for index in indexes if index is not None}
    found |= {
        published.name: published
        for stage in OF_OTHERS
        for published in lake.published(stage).values()
    }
    return dict(sorted(found.items()))


def grids_of_order(lake: Lake, order: Published) -> list[Published]:
    """The very grids that a global order is over."""
    opened = GlobalOrder.open(order.only("*.json", "train_*.npy"), "train", pass_over=False)
    return [
        lake.partition("token_grid", source.snapshot).at(source.version)
        for source in opened.sources
    ]


def _sources_of(
    lake: Lake, mix: Published, grids: Mapping[str, Published], *, strict: bool
) -> Iterator[Published]:
    for source in sources_of(lake, mix):
        key = source.receipt.fingerprint.key
        if source.name.startswith("megatron_rows/"):
            late = grid_behind(lake, source).digest != _digest(grids, f"token_grid/{key}")
        else:
            current = lake.partition(*source.name.split("/")).current()
            late = current is None or current.digest != source.digest
        if strict and late:
            raise Mismatch(
                f"{mix.name} is made of another version of {source.name} than is published, or "
                "than the global order is over: "
                "materialize what `lc plan` calls out of date, then release it"
            )
        yield source


def _digest(grids: Mapping[str, Published], name: str) -> str:
    return grids[name].digest if name in grids else ""


def described(lake: Lake, pinned: Mapping[str, Published]) -> Release:
    """A release of some versions: their pins, how each was made and from what, and counts over the
    grids.
    """
    made: dict[str, Made] = {}
    settings: dict[str, dict[str, Any]] = {}
    libraries: dict[str, dict[str, str]] = {}
    for published in _behind(lake, pinned):
        receipt = published.receipt
        of_settings, of_libraries = (
            short(digest_of(receipt.fingerprint.params)),
            short(digest_of(receipt.libraries)),
        )
        settings[of_settings], libraries[of_libraries] = (
            receipt.fingerprint.params,
            receipt.libraries,
        )
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
        for name, digest in published.receipt.fingerprint.inputs.items():
            stage, _, key = name.partition("/")
            found = (
                lake.partition(stage, key).with_digest(digest) if key and name not in seen else None
            )
            if found is not None:
                line.append(found)


def _counts(pinned: Mapping[str, Published]) -> dict[str, int]:
    grids = [
        published.receipt for name, published in pinned.items() if name.startswith("token_grid/")
    ]
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
        stage, _, key = of.partition("/")
        try:
            published = pinned.partition(stage, key or GLOBAL).require()
        except (NotPublished, Mismatch) as error:
            found.append(str(error))
            continue
        found += [f"{of}/{published.version}/{said}" for said in published.damage()]
    return found
