"""Which documents a version contains, published or not.

=================================  ==============================================================
stage                              contains a document
=================================  ==============================================================
filtered_documents, document_keys, if it is of the document's snapshot; all are working material
document_signals
clean_documents, token_documents   if a document table lists it
packing_tokens                     if a document table lists it, or the LongPack documents it was
                                   made from contain it
longpack_documents                 if the index of its pages lists it
token_grid                         if its row table lists it
packed_rows                        if its spans list it, or the LongPack documents in them
others                             if a version that they are read through contains it
                                   (`lc_assets.stages.lineage.tracing.sources_of`)
=================================  ==============================================================

If such a version is gone, the answer is unknown. A stage's checks depend only on a version and its
inputs; `nothing_withdrawn_is_served` uses the current lists: an artefact that passed when it was
built fails once a list names one of its documents, until it is rebuilt.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

from lc_assets.builds.checks import DOCUMENTS_SUFFIX, documents_files
from lc_assets.builds.lookups import ScannedTable
from lc_assets.builds.recipe import Recipe
from lc_assets.builds.stage import CheckResult
from lc_assets.builds.tables import SPANS_FILE
from lc_assets.errors import LcError
from lc_assets.lake.lake import GLOBAL, Lake
from lc_assets.lake.versions import Published
from lc_assets.records import frozen
from lc_assets.stages.catalogue import STAGES
from lc_assets.stages.lineage import row_lineage
from lc_assets.stages.lineage.tracing import sources_of
from lc_assets.stages.longpack.page_index import page_index
from lc_assets.stages.withdrawal import withdrawn_documents
from lc_assets.stages.withdrawal.matching import named_by
from lc_assets.stages.withdrawal.remembering import remembered_digests, remembered_in
from lc_assets.text.links.addresses import Kind
from lc_assets.vocabulary import parse_document_id

CHECK = "nothing_withdrawn_is_served"
SERVED = frozenset(
    (
        "longpack_documents",
        "token_grid",
        "longcrawl",
        "longcrawl_flat",
        "megatron_rows",
        "packed_rows",
        "blended_mix",
    )
)
"""Stages that serve rows or texts."""
WORKING_MATERIAL = ("filtered_documents", "document_keys", "document_signals")
"""Inputs of the stages that find withdrawn documents; never served."""
Sought = Sequence[tuple[Kind, str]]
"""Kinds and normal values, as `lc_assets.text.links.addresses` has them."""


@frozen
class Search:
    """A search for documents in versions of a lake.

    Attributes:
        lake: the lake.
        sought: matches the documents.
        known: what was found in tables, by version.
    """

    lake: Lake
    sought: Sought
    known: dict[Path, set[str]] = field(default_factory=dict)

    def found_in(self, published: Published) -> dict[str, set[str]]:
        """Ids of the documents in a version, by snapshot.

        Raises:
            NotPublished: if a version that it is read through is gone.
        """
        found: dict[str, set[str]] = {}
        for part in self._listing(published):
            if part.home not in self.known:
                search = _TABLES[part.stage]
                self.known[part.home] = search(self.lake, part, self.sought)
            found.setdefault(part.key, set()).update(self.known[part.home])
        return found

    def _listing(self, published: Published) -> Iterator[Published]:
        """The versions whose own tables list the documents of a version."""
        if published.stage in _TABLES:
            yield published
        sources = sources_of(self.lake, published)
        if published.stage == "packed_rows":
            # Not all documents of `packing_tokens` are packed; the spans list those that are.
            sources = [part for store in sources for part in sources_of(self.lake, store)]
        for source in sources:
            yield from self._listing(source)


def _in_snapshot(_: Lake, published: Published, sought: Sought) -> set[str]:
    key = published.key
    return {
        value
        for kind, value in sought
        if kind == "document" and parse_document_id(value)[0].snapshot == key
    }


def _in_document_tables(lake: Lake, published: Published, sought: Sought) -> set[str]:
    names = _in_snapshot(lake, published, sought)
    ours: list[tuple[Kind, str]] = [("document", name) for name in sorted(names)]
    ours += [(kind, value) for kind, value in sought if kind == "digest"]
    folder = published.only(f"*{DOCUMENTS_SUFFIX}") if ours else None
    return {
        name
        for path in (documents_files(folder) if folder else ())
        for name in _ids(ScannedTable(path).find_all(ours))
    }


def _ids(found: Iterable[tuple[int, Mapping[str, Any]]]) -> set[str]:
    return {line["id"] for _, line in found}


_TABLES: Mapping[str, Callable[[Lake, Published, Sought], set[str]]] = {
    **dict.fromkeys(WORKING_MATERIAL, _in_snapshot),
    "clean_documents": _in_document_tables,
    "token_documents": _in_document_tables,
    "packing_tokens": _in_document_tables,
    "token_grid": lambda lake, grid, sought: _ids(row_lineage.rows_of(lake, grid).find_all(sought)),
    "longpack_documents": lambda _, longpack, sought: _ids(page_index(longpack).find_all(sought)),
    "packed_rows": lambda _, packed, sought: _ids(
        ScannedTable(packed.only(SPANS_FILE) / SPANS_FILE).find_all(sought)
    ),
}
"""Stage → ids of the documents that a version's own tables list."""


@frozen
class Held:
    """A version that contains some documents; ``n_documents`` is None if that can no longer be
    determined.
    """

    published: Published
    n_documents: int | None
    is_current: bool

    @property
    def name(self) -> str:
        """Stage, partition and version."""
        return f"{self.published.name}/{self.published.version}"

    @property
    def is_working_material(self) -> bool:
        """Whether it is never served."""
        return self.published.stage in WORKING_MATERIAL


def versions_with(
    lake: Lake, ids: Collection[str], digests: Collection[str] = ()
) -> Iterator[Held]:
    """Yield every finished version that contains any of the documents, or, if it is served, one of
    the digests, in the order of the stages. With digests also working material that is no longer
    published, of snapshots that something was ever withdrawn from: it has no digests to look up.
    """
    sought: list[tuple[Kind, str]] = [("document", name) for name in sorted(ids)]
    search = Search(lake, [*sought, *(("digest", digest) for digest in sorted(digests))])
    chain = [stage.name for stage in STAGES]
    holders = SERVED | _TABLES.keys() | {"row_lineage", "length_buckets"}
    partitions = [partition for partition in lake.partitions() if partition.stage in holders]
    suspected = _snapshots_withdrawn_from(lake) if digests else set()
    for partition in sorted(partitions, key=lambda found: (chain.index(found.stage), found.name)):
        pointer = partition.pointer()
        for published in partition.versions():
            try:
                count = sum(map(len, search.found_in(published).values()))
            except LcError:
                count = None
            is_current = pointer is not None and pointer.version == published.version
            if not is_current and published.stage in WORKING_MATERIAL:
                count = count or (None if published.key in suspected else 0)
            if count != 0:
                yield Held(published, count, is_current)


def _snapshots_withdrawn_from(lake: Lake) -> set[str]:
    """Snapshots of everything that is remembered as withdrawn."""
    withdrawn = lake.partition(withdrawn_documents.STAGE.name).current()
    names = [] if withdrawn is None else remembered_in(withdrawn)["id"].to_pylist()
    return {parse_document_id(name)[0].snapshot for name in names}


def nothing_withdrawn_is_served(lake: Lake, recipe: Recipe, published: Published) -> CheckResult:
    """No document on the current lists is served, nor one of the same content, nor what was
    withdrawn before; `withdrawn_documents` is up to date with the lists.
    """
    settings = recipe.withdrawn_documents
    entries, reinstated = named_by(settings)
    withdrawn = lake.partition("withdrawn_documents").current()
    n_remembered = 0 if withdrawn is None else remembered_in(withdrawn).num_rows
    served: list[str] = []
    if not entries and not n_remembered:
        wrong, right = [], "no list names anything"
    elif withdrawn is None:
        wrong, right = ["`withdrawn_documents` was never materialized"], ""
    else:
        names = {line["id"] for line in withdrawn_documents.withdrawn_lines(withdrawn)}
        sought: set[tuple[Kind, str]] = {*entries, *(("document", name) for name in names)}
        sought.update(("digest", digest) for digest in remembered_digests(withdrawn))
        found = Search(lake, sorted(sought)).found_in(published)
        spared = Search(lake, sorted(reinstated)).found_in(published) if reinstated else {}
        served = sorted(set().union(*found.values()).difference(*spared.values()))
        wrong = _reasons_to_search_again(lake, recipe, withdrawn, found)
        if served:
            wrong += [f"{len(served):,} withdrawn documents are served, such as {served[0]}"]
        right = (
            f"{len(entries):,} entries, {len(names):,} documents and {n_remembered:,} "
            "remembered contents sought, none is served"
        )
    return CheckResult(
        check=CHECK,
        passed=not wrong,
        message="; ".join(wrong) or right,
        values={"documents": len(served)},
    )


def _reasons_to_search_again(
    lake: Lake, recipe: Recipe, withdrawn: Published, snapshots: Iterable[str]
) -> list[str]:
    """Why the withdrawn documents may not be all: the lists have changed, or current versions of
    some snapshots were not searched.
    """
    found, made_of = list[str](), withdrawn.receipt.fingerprint
    if made_of.params != withdrawn_documents.STAGE.resolved(recipe, GLOBAL):
        found.append("`withdrawn_documents` is older than the lists: materialize it")
    for snapshot in snapshots:
        for stage in withdrawn_documents.STAGE.upstream:
            current = lake.partition(stage, snapshot).current()
            if current is not None and made_of.inputs.get(current.name) != current.digest:
                found.append(
                    f"`withdrawn_documents` was made before {current.name}: materialize it"
                )
                break
    return found
