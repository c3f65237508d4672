"""From a document, or a page within a LongPack document, to spans of packed rows and samples of
mixes.

Documents are found by scanning the ids of the span tables, about 50 ms for each snapshot that
contains one; the indices of filtered documents tell which snapshots these are. Pages within
LongPack documents are found by their own index. Nothing is built or written.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lc_assets.build.tables import mapped_table, read_table
from lc_assets.errors import LcError
from lc_assets.formats.arrays.npy import read_npy
from lc_assets.lake.lake import Lake
from lc_assets.lake.versions import Published
from lc_assets.stages.lineage.histories import documents_by
from lc_assets.stages.lineage.packed_tracing import Stretch, holds_whole_rows, spans_of, stretches
from lc_assets.stages.lineage.tracing import spans_of_sample
from lc_assets.stages.lineage.whereabouts import samples_with
from lc_assets.stages.longpack.gathering import SPANS_SUFFIX
from lc_assets.stages.longpack.page_index import page_index
from lc_assets.stages.mixes.blended_mix import Mix, MixSource
from lc_assets.stages.packing.packing_tables import SPANS_FILE
from lc_assets.stages.releases.serving import behind
from lc_assets.stages.tokens.packing_tokens import LABEL
from lc_assets.text.links.addresses import Kind
from lc_assets.tokens.orders import places_of
from lc_assets.vocabulary import SPLITS, parse_document_id


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page within a LongPack document.

    Attributes:
        id: of the page.
        url: its URL.
        role: ``root`` or ``child``.
        start: its first character in the document's text.
        stop: the character after its last.
    """

    id: str
    url: str
    role: str
    start: int
    stop: int


def packed_by(lake: Lake, kind: Kind, value: str) -> list[tuple[Published, Stretch]]:
    """All spans of the documents that match a value, or that contain a page that does; sorted by
    snapshot, split and row.
    """
    ids: dict[str, set[str]] = {}
    for name in (
        [value] if kind == "document" else [line["id"] for line in documents_by(lake, kind, value)]
    ):
        ids.setdefault(parse_document_id(name)[0].snapshot, set()).add(name)
    found = []
    for key in lake.keys("packed_rows"):
        packed = lake.partition("packed_rows", key).require()
        wanted = ids.get(key, set()) | _holding(lake, packed, kind, value)
        found += [(packed, stretch) for stretch in stretches_of(packed, wanted)] if wanted else []
    return found


def stretches_of(packed: Published, ids: Collection[str]) -> list[Stretch]:
    """All stretches of some documents of one version, by split and row."""
    lines, found, before = _lines_of(packed, ids), list[Stretch](), 0
    for split in SPLITS:
        n_lines = len(spans_of(packed, split).stop)
        ours = lines[(lines >= before) & (lines < before + n_lines)] - before
        found += stretches(packed, split, ours.tolist()) if len(ours) else []
        before += n_lines
    return found


def _lines_of(packed: Published, ids: Collection[str]) -> Any:
    """Numbers of the lines of the table of spans that name any of some documents; reads one
    column.
    """
    path = packed.only(SPANS_FILE) / SPANS_FILE
    with mapped_table(path) as file:
        named = file.read(columns=["id"])["id"]
    return np.flatnonzero(np.asarray(pc.is_in(named, value_set=pa.array(sorted(ids), pa.string()))))


def pages_within(lake: Lake, stretch: Stretch) -> list[Page]:
    """The pages of a LongPack document, in order; empty for other documents, or if it is no longer
    in the lake.
    """
    if not stretch.token_shard.startswith(LABEL):
        return []
    longpack = _longpack(
        lake, lake.partition("packed_rows", stretch.snapshot).at(stretch.packed.name)
    )
    if longpack is None:
        return []
    name = f"{stretch.token_shard.removeprefix(LABEL)}{SPANS_SUFFIX}"
    table = read_table(
        longpack.only(name) / name, ["id", "child_id", "url", "role", "start", "stop"]
    )
    lines = (
        table.filter(pc.equal(table["id"], stretch.id))
        .drop_columns(["id"])
        .rename_columns(["id", "url", "role", "start", "stop"])
    )
    return [Page(**line) for line in lines.to_pylist()]


def _longpack(lake: Lake, packed: Published) -> Published | None:
    """The LongPack documents that were packed; None if there are none or they are gone."""
    key = packed.receipt.fingerprint.key
    try:
        store = behind(lake, packed, f"packing_tokens/{key}")
        return (
            behind(lake, store, f"longpack_documents/{key}")
            if f"longpack_documents/{key}" in store.receipt.fingerprint.inputs
            else None
        )
    except LcError:
        return None


def _holding(lake: Lake, packed: Published, kind: Kind, value: str) -> set[str]:
    """Ids of the LongPack documents that contain a page matching a value."""
    longpack = _longpack(lake, packed)
    if longpack is None:
        return set()
    return {line["packed_id"] for line in page_index(longpack).find(kind, value)}


def samples_of_stretch(
    lake: Lake,
    mixes: Mapping[str, tuple[Published, Mix]],
    packed: Published,
    stretch: Stretch,
) -> dict[str, tuple[int, ...]]:
    """Numbers of the samples that take tokens of a stretch, by mix, ascending; held-out ones are in
    none.
    """
    if stretch.split != "train":
        return {}
    return {
        name: tuple(_samples(lake, published, mix, packed, stretch))
        for name, (published, mix) in mixes.items()
    }


def _samples(
    lake: Lake, published: Published, mix: Mix, packed: Published, stretch: Stretch
) -> Iterator[int]:
    for number, source in enumerate(mix.sources):
        if (
            source.name != source.snapshot
            and source.used
            and lake.version_of(source.prefix).home == packed.home
        ):
            wanted = _of_source(published, source, packed, stretch)
            arrays = published.only("dataset_*.npy")
            datasets, samples = (
                np.asarray(read_npy(arrays / f"{name}.npy"))
                for name in ("dataset_index", "dataset_sample_index")
            )
            yield from places_of(datasets, samples, number, np.array(wanted, np.int64)).tolist()


def _of_source(
    published: Published, source: MixSource, packed: Published, stretch: Stretch
) -> Sequence[int]:
    """Samples of one source that contain a token of the span, among those that contain its
    document.
    """
    prefix = published.only(f"{source.name}_*.npy") / source.name
    document, begin = (
        (stretch.row, stretch.row_start) if holds_whole_rows(packed) else (stretch.line, 0)
    )
    end = begin + stretch.row_stop - stretch.row_start
    found = [number for number in samples_with(prefix, [document]).tolist() if number < source.used]
    return [
        number
        for number in found
        if any(_meets(cut, document, begin, end) for cut in spans_of_sample(prefix, number))
    ]


def _meets(cut: tuple[int, int, int | None], document: int, begin: int, end: int) -> bool:
    of, start, stop = cut
    return of == document and start < end and (stop is None or stop > begin)
