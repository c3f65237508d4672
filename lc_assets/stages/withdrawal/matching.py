"""Which documents the entries of withdrawal lists withdraw, and what is remembered of them.

====================  ============================================================================
how                   the document
====================  ============================================================================
``listed``            matches an entry by id, URL, domain or digest, or contains its passage
``same digest``       has the digest of a listed one: of the page as crawled, or of the text
``near duplicate``    is a near duplicate of one of the former, at the recipe's threshold: a
                      published one, or one found by `lc_assets.stages.withdrawal.similar`
``withdrawn before``  has a digest of a document that was withdrawn in an earlier version
====================  ============================================================================

Entries match filtered documents, whose indices and near-duplicate pairs are published, and dropped
ones, of which only id, URL and digest are: these are not served, but copies of them may be.

What was withdrawn once is remembered by its digests, with the entry that did it. So it stays
withdrawn when its rule, its line number or the list changes, until a list of reinstated documents
names it.

Near duplicates of dropped documents are looked for if an entry names them, but not those of a
domain of more than `MOST_OF_DOMAIN`: their texts are read again from the source.

Dropped and remembered documents are held in Arrow, as a domain may have millions.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

import pyarrow as pa

from lc_assets import arrow_compute as pc
from lc_assets.builds.checks import DROPPED_SUFFIX, dropped_files
from lc_assets.builds.lookups import KeyedTable, ScannedTable
from lc_assets.builds.recipe import Recipe
from lc_assets.builds.settings.common import WithdrawalSettings
from lc_assets.builds.tables import REMEMBERED, Line
from lc_assets.formats.lists.withdrawal_lists import COLUMNS, Withdrawal, entries_of
from lc_assets.lake.versions import Published
from lc_assets.records import record
from lc_assets.stages.documents.document_keys import documents_of, passage_lines
from lc_assets.stages.withdrawal.remembering import (
    BEFORE,
    HOWS,
    LISTED,
    NEAR_DUPLICATE,
    SAME_DIGEST,
    Sought,
    merged,
    named_in,
    remembered_in,
)
from lc_assets.stages.withdrawal.similar import paired_copies
from lc_assets.text.links.addresses import address_key, values_of

LISTED_LINES = REMEMBERED.append(pa.field("entry", pa.int64()))
"""Rows of `tables.REMEMBERED`, with the number of the entry."""
MOST_OF_DOMAIN = 4096
"""Dropped documents that a domain's entry matches, of which near duplicates are looked for."""
DIGESTS_AT_ONCE = 1 << 14
"""Digests that are looked up at once, as Python strings."""

Tables = Sequence[KeyedTable | ScannedTable]
NearCopies = Callable[[Iterable[Line]], Mapping[str, tuple[float, str]]]
"""Filtered documents that are near duplicates of some, as `paired_copies` returns them."""


@record
class Found:
    """What some entries withdraw.

    Attributes:
        withdrawn: rows of `tables.WITHDRAWN`, sorted by id: filtered documents, each once.
        remembered: table of `tables.REMEMBERED`, sorted: these documents, dropped ones that entries
            match, and what was remembered before.
        matched: numbers of the entries that match a document, or did so before.
    """

    withdrawn: list[Line]
    remembered: pa.Table
    matched: set[int]


def named_by(settings: WithdrawalSettings) -> tuple[set[Sought], set[Sought]]:
    """What the lists of a recipe withdraw and reinstate: kinds and normal values.

    Raises:
        BadInput: if a list cannot be read; names the line.
    """
    withdrawn, reinstated = (
        {entry.sought for entry in entries_of(lists)}
        for lists in (settings.lists, settings.reinstated)
    )
    return withdrawn, reinstated


def resolve(
    entries: Sequence[Withdrawal],
    inputs: Mapping[str, Published],
    recipe: Recipe,
    near: NearCopies = lambda _: {},
) -> Found:
    """Find the documents that some entries withdraw.

    Args:
        entries: the listed entries.
        inputs: by names such as ``document_keys/2023-06``: indices, near-duplicate pairs, filtered
            documents for those that were dropped, and the version that remembers.
        recipe: what counts as the same content, whether that is withdrawn too, and what is
            reinstated.
        near: finds near copies that are in no published pair; by default none.
    """
    settings = recipe.withdrawn_documents
    read = [inputs[name] for name in sorted(inputs)]
    indexes = [documents_of(part) for part in read if part.stage == "document_keys"]
    dropped = [table for part in read for table in _dropped_tables(part)]
    memory = pa.concat_tables([REMEMBERED.empty_table(), *map(remembered_in, read)])
    pairs = [part for part in read if part.stage == "near_duplicate_pairs"]
    reinstated = [entry.sought for entry in entries_of(settings.reinstated)]
    search = _Search(
        indexes=indexes,
        pairs=pairs,
        threshold=recipe.removed_documents.threshold,
        spared={line["id"] for _, line in _all_found([*indexes, *dropped], reinstated)},
        near_copies=near,
        are_paired=recipe.near_duplicate_pairs.near,
    )
    sought = [entry.sought for entry in entries]
    cells = [dict(zip(COLUMNS, entry.cells, strict=True)) for entry in entries]
    matched, listed = set[int](), list[Line]()
    for number, document in (*_all_found(indexes, sought), *_with_passages(read, indexes, sought)):
        matched.add(number)
        listed.append(document | cells[number] | {"how": LISTED, "entry": number})
    gone = []
    for table in dropped:
        hits = table.find_all(sought)
        matched |= {number for number, _ in hits}
        known = {"how": LISTED, "text_digest": ""}
        gone.append(search.first_of(line | cells[n] | known | {"entry": n} for n, line in hits))
    rest = [number for number in range(len(sought)) if number not in matched]
    matched |= {rest[n] for n in named_in(memory, [sought[number] for number in rest])[0]}
    kept = memory.filter(pc.invert(named_in(memory, reinstated)[1]))
    search.withdraw(listed, gone, kept, copies=settings.same_content == "goes")
    lines = [search.lines[name] for name in sorted(search.lines)]
    contents = pa.Table.from_pylist(search.contents, schema=REMEMBERED)
    tables = [kept, *(table.select(REMEMBERED.names) for table in gone), contents]
    return Found(withdrawn=lines, remembered=merged(pa.concat_tables(tables)), matched=matched)


@record
class _Search:
    """Collects withdrawn documents.

    Attributes:
        indexes: of the filtered documents.
        pairs: versions of near-duplicate pairs.
        threshold: least similarity of the same content.
        spared: reinstated documents, by id.
        near_copies: finds near copies that are in no pair.
        are_paired: whether near duplicates are looked for among all filtered documents.
        lines: rows of `tables.WITHDRAWN`, by id.
        contents: of each withdrawn document its values, its entry, and how it was matched.
    """

    indexes: Tables
    pairs: Sequence[Published]
    threshold: float
    spared: Collection[str]
    near_copies: NearCopies
    are_paired: bool
    lines: dict[str, Line] = field(default_factory=dict)
    contents: list[Line] = field(default_factory=list)

    def first_of(self, listed: Iterable[Line]) -> pa.Table:
        """`LISTED_LINES` of documents that are not reinstated, each by the first entry, by id."""
        first: dict[str, Line] = {}
        for line in sorted(listed, key=lambda line: (line["id"], line["entry"])):
            if line["id"] not in self.spared:
                first.setdefault(line["id"], line)
        return pa.Table.from_pylist(list(first.values()), schema=LISTED_LINES)

    def withdraw(
        self, listed: Iterable[Line], gone: Sequence[pa.Table], memory: pa.Table, *, copies: bool
    ) -> None:
        """Withdraw listed documents, copies of these and of dropped ones, and what is remembered
        with its copies.
        """
        documents = {line["id"]: line for line in listed}
        served = self.first_of(listed)
        for line in served.to_pylist():
            self._add(documents[line["id"]] | line, line, how=LISTED)
        first = pa.concat_tables([served, *gone])
        if copies:
            for document, source in self._of_digests(first, lambda line: line["id"]):
                self._add(document, source, how=SAME_DIGEST)
            self._add_near(set(self.lines))
        found = list(self._of_digests(memory, lambda line: HOWS.index(line["how"])))
        again, copied = set[str](), [document for document, _ in found]
        places = set() if copies else _listed_places(memory, copied)
        for document, source in found:
            if copies or not places.isdisjoint(_places_of(document)):
                self._add(document, source, how=BEFORE)
                again |= {document["id"]} if source["how"] != NEAR_DUPLICATE else set()
        if copies:
            known = self.lines.items()
            self._add_near({name for name, of in known if of["how"] == BEFORE and name in again})
            self._add_unpaired(pa.concat_tables([first.select(REMEMBERED.names), memory]))

    def _add(self, document: Line, source: Line, *, how: str, similarity: float = 1.0) -> None:
        name = document["id"]
        if name in self.lines or name in self.spared:
            return
        entry = {column: source[column] for column in COLUMNS}
        self.lines[name] = entry | {
            "id": name,
            "how": how,
            "for_id": "" if how == LISTED else source["id"],
            "similarity": similarity,
            "entry": source.get("entry"),
        }
        self.contents.append(document | entry | {"how": source["how"] if how == BEFORE else how})

    def _of_digests(
        self, sources: pa.Table, turn: Callable[[Line], Any]
    ) -> Iterator[tuple[Line, Line]]:
        """Filtered documents with a digest of some documents, each with the first of these by a
        key.
        """
        documents, first = dict[str, Line](), dict[str, tuple[tuple[Any, int], Line]]()
        digests = sources.select(["digest", "text_digest"]).combine_chunks()
        for part in digests.to_batches(max_chunksize=DIGESTS_AT_ONCE):
            some = {digest for column in part.columns for digest in column.to_pylist()} - {""}
            found = _all_found(self.indexes, [("digest", digest) for digest in some])
            documents |= {line["id"]: line for _, line in found}
        for place, line in enumerate(_with_digests(sources, documents.values()).to_pylist()):
            ranked = (turn(line), place), line
            for digest in values_of("digest", line):
                first[digest] = min(first.get(digest, ranked), ranked)
        for document in documents.values():
            yield document, min(first[it] for it in values_of("digest", document) if it in first)[1]

    def _add_near(self, sources: Collection[str]) -> None:
        """Withdraw the near duplicates of withdrawn documents, each for the most similar one."""
        nearest = paired_copies(sources, self.pairs, self.threshold) if sources else {}
        known = {source: self.lines[source] | {"id": source} for _, source in nearest.values()}
        self._add_nearest(nearest, known)

    def _add_unpaired(self, listed: pa.Table) -> None:
        """Withdraw the near duplicates of listed documents whose pairs are not published."""
        listed = listed.filter(pc.equal(listed["how"], LISTED))
        domains = listed.filter(pc.equal(listed["kind"], "domain"))["value"].value_counts()
        large = [one["values"] for one in domains.to_pylist() if one["counts"] > MOST_OF_DOMAIN]
        is_large = pc.is_in(listed["value"], value_set=pa.array(large, pa.string()))
        some = listed.filter(pc.invert(pc.and_(pc.equal(listed["kind"], "domain"), is_large)))
        unpaired = [
            line for line in some.to_pylist() if not (self.are_paired and line["id"] in self.lines)
        ]
        sources, nearest = {line["id"]: line for line in unpaired}, self.near_copies(unpaired)
        self._add_nearest(nearest, sources)

    def _add_nearest(
        self, nearest: Mapping[str, tuple[float, str]], sources: Mapping[str, Line]
    ) -> None:
        """Withdraw documents, by id, for those that they are nearest to."""
        found = _first_found(self.indexes, [("document", name) for name in nearest])
        for name, (_, document) in found.items():
            distance, source = nearest[name]
            self._add(document, sources[source], how=NEAR_DUPLICATE, similarity=-distance)


def _places_of(line: Line) -> set[tuple[str, str]]:
    """Digests of a document, each with its address: the document itself, not a copy."""
    return {(digest, address_key(line["url"])) for digest in values_of("digest", line)}


def _listed_places(memory: pa.Table, documents: Iterable[Line]) -> set[tuple[str, str]]:
    """Places of remembered documents that were listed and have a digest of some documents."""
    lines = _with_digests(memory, documents).to_pylist()
    return {place for line in lines if line["how"] == LISTED for place in _places_of(line)}


def _with_digests(lines: pa.Table, documents: Iterable[Line]) -> pa.Table:
    """Those of some lines that have a digest of some documents."""
    digests = {digest for line in documents for digest in values_of("digest", line)}
    wanted = pa.array(digests, pa.string())
    has_one = (pc.is_in(lines[name], value_set=wanted) for name in ("digest", "text_digest"))
    return lines.filter(pc.or_(*has_one))


def _with_passages(
    read: Iterable[Published], indexes: Tables, sought: Sequence[Sought]
) -> Iterator[tuple[int, Line]]:
    """Documents with a passage that is sought, each with the number of the passage."""
    numbers = {value: number for number, (kind, value) in enumerate(sought) if kind == "passage"}
    keys = [part for part in read if numbers and part.stage == "document_keys"]
    lines = [line for part in keys for line in passage_lines(part) if line["passage"] in numbers]
    found = _first_found(indexes, [("document", line["id"]) for line in lines])
    for line in lines:
        yield numbers[line["passage"]], found[line["id"]][1]


def _dropped_tables(part: Published) -> list[ScannedTable]:
    if part.stage != "filtered_documents":
        return []
    return list(map(ScannedTable, dropped_files(part.only(f"*{DROPPED_SUFFIX}"))))


def _all_found(tables: Tables, sought: Sequence[Sought]) -> Iterator[tuple[int, Line]]:
    for table in tables if sought else ():
        yield from table.find_all(sought)


def _first_found(tables: Tables, sought: Sequence[Sought]) -> dict[str, tuple[int, Line]]:
    """Documents that match any of some values, by id, each with the number of the first value that
    it matches.
    """
    found: dict[str, tuple[int, Line]] = {}
    for number, line in _all_found(tables, sought):
        if number <= found.get(line["id"], (number, line))[0]:
            found[line["id"]] = number, line
    return found
