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

Near duplicates of dropped documents are looked for if an entry names them, but not those of a whole
domain, which may be millions.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

from lc_assets.builds.checks import DROPPED_SUFFIX, dropped_files
from lc_assets.builds.lookups import KeyedTable, ScannedTable
from lc_assets.builds.recipe import Recipe
from lc_assets.builds.settings.common import WithdrawalSettings
from lc_assets.builds.stage import CheckInput
from lc_assets.builds.tables import REMEMBERED, read_table
from lc_assets.formats.lists.withdrawal_lists import COLUMNS, Withdrawal, entries_of
from lc_assets.lake.versions import Published
from lc_assets.records import record
from lc_assets.stages.documents.document_keys import documents_of, passage_lines
from lc_assets.stages.withdrawal.similar import paired_copies
from lc_assets.text.links.addresses import KINDS, Kind, address_key, normal, values_of

LISTED = "listed"
SAME_DIGEST = "same digest"
NEAR_DUPLICATE = "near duplicate"
BEFORE = "withdrawn before"
HOWS = (LISTED, SAME_DIGEST, NEAR_DUPLICATE, BEFORE)
MEMORY = "remembered.parquet"

Line = dict[str, Any]
Sought = tuple[Kind, str]
Tables = Sequence[KeyedTable | ScannedTable]
NearCopies = Callable[[Iterable[Line]], Mapping[str, tuple[float, str]]]
"""Filtered documents that are near duplicates of some, as `paired_copies` returns them."""


@record
class Found:
    """What some entries withdraw.

    Attributes:
        withdrawn: rows of `tables.WITHDRAWN`, sorted by id: filtered documents, each once.
        remembered: rows of `tables.REMEMBERED`, sorted: these documents, dropped ones that entries
            match, and what was remembered before.
        matched: numbers of the entries that match a document, or did so before.
    """

    withdrawn: list[Line]
    remembered: list[Line]
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
    memory = [line for part in read for line in remembered_lines(part)]
    pairs = [part for part in read if part.stage == "near_duplicate_pairs"]
    reinstated = [entry.sought for entry in entries_of(settings.reinstated)]
    search = _Search(
        indexes=indexes,
        pairs=pairs,
        threshold=recipe.removed_documents.threshold,
        spared=_first_found([*indexes, *dropped], reinstated),
        near_copies=near,
        are_paired=recipe.near_duplicate_pairs.near,
    )
    sought = [entry.sought for entry in entries]
    matched = _named_by_memory(sought, memory)
    listed: list[Line] = []
    named = _all_found([*indexes, *dropped], sought)
    for number, document in (*named, *_with_passages(read, indexes, sought)):
        matched.add(number)
        cells = dict(zip(COLUMNS, entries[number].cells, strict=True))
        listed.append(document | cells | {"how": LISTED, "entry": number})
    kept = [line for line in memory if not is_reinstated(line, reinstated)]
    search.withdraw(listed, kept, copies=settings.same_content == "goes")
    lines = [search.lines[name] for name in sorted(search.lines)]
    return Found(withdrawn=lines, remembered=_merged(kept, search.contents), matched=matched)


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

    def withdraw(self, listed: Iterable[Line], memory: Sequence[Line], *, copies: bool) -> None:
        """Withdraw listed documents, their copies, and what is remembered with its copies."""
        listed = [line for line in listed if line["id"] not in self.spared]
        first: dict[str, Line] = {}
        for line in sorted(listed, key=lambda line: (line["id"], line["entry"])):
            first.setdefault(line["id"], line)
        for line in first.values():
            if "text_digest" in line:  # of an index
                self._add(line, line, how=LISTED)
            else:
                self.contents.append(line)
        if copies:
            for document, source in self._of_digests(list(first.values())):
                self._add(document, source, how=SAME_DIGEST)
            self._add_near(set(self.lines))
        again, closest = set[str](), sorted(memory, key=lambda line: HOWS.index(line["how"]))
        places = {place for line in memory if line["how"] == LISTED for place in _places_of(line)}
        for document, source in self._of_digests(closest):
            if copies or not places.isdisjoint(_places_of(document)):
                self._add(document, source, how=BEFORE)
                again |= {document["id"]} if source["how"] != NEAR_DUPLICATE else set()
        if copies:
            lines = self.lines.items()
            self._add_near({name for name, of in lines if of["how"] == BEFORE and name in again})
            self._add_unpaired([*first.values(), *memory])

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

    def _of_digests(self, sources: Iterable[Line]) -> Iterator[tuple[Line, Line]]:
        """Filtered documents with a digest of some documents, each with the first of these."""
        of_digest: dict[str, Line] = {}
        for source in sources:
            for digest in values_of("digest", source):
                of_digest.setdefault(digest, source)
        found = _first_found(self.indexes, [("digest", digest) for digest in of_digest])
        firsts = list(of_digest.values())
        for number, document in found.values():
            yield document, firsts[number]

    def _add_near(self, sources: Collection[str]) -> None:
        """Withdraw the near duplicates of withdrawn documents, each for the most similar one."""
        nearest = paired_copies(sources, self.pairs, self.threshold) if sources else {}
        found = _first_found(self.indexes, [("document", name) for name in nearest])
        for name, (_, document) in found.items():
            distance, source = nearest[name]
            known = self.lines[source] | {"id": source}
            self._add(document, known, how=NEAR_DUPLICATE, similarity=-distance)

    def _add_unpaired(self, listed: Iterable[Line]) -> None:
        """Withdraw the near duplicates of listed documents whose pairs are not published."""
        unpaired = [
            line
            for line in listed
            if line["how"] == LISTED
            and line["kind"] != "domain"
            and not (self.are_paired and line["id"] in self.lines)
        ]
        sources, nearest = {line["id"]: line for line in unpaired}, self.near_copies(unpaired)
        found = _first_found(self.indexes, [("document", name) for name in nearest])
        for name, (_, document) in found.items():
            distance, source = nearest[name]
            self._add(document, sources[source], how=NEAR_DUPLICATE, similarity=-distance)


def _places_of(line: Line) -> set[tuple[str, str]]:
    """Digests of a document, each with its address: the document itself, not a copy."""
    return {(digest, address_key(line["url"])) for digest in values_of("digest", line)}


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


def remembered_lines(published: Published | CheckInput) -> list[Line]:
    """Rows of `tables.REMEMBERED` of a version; none of one of another stage, or of code version 1,
    which had no memory.

    Raises:
        CorruptFile: if it cannot be read.
    """
    if isinstance(published, CheckInput):
        folder = published.folder
    else:
        made = published.receipt.fingerprint
        if made.stage != "withdrawn_documents" or made.code_version == "1":
            return []
        folder = published.only(MEMORY)
    lines: list[Line] = read_table(folder / MEMORY, REMEMBERED.names).to_pylist()
    return lines


def remembered_digests(withdrawn: Published) -> set[str]:
    """Digests of what a version remembers, if it withdraws copies too."""
    if withdrawn.receipt.fingerprint.params.get("same_content") == "stays":
        return set()
    lines = remembered_lines(withdrawn)
    return {digest for line in lines for digest in values_of("digest", line)}


def is_reinstated(line: Mapping[str, Any], reinstated: Collection[Sought]) -> bool:
    """Whether entries of reinstated documents name a remembered one, or the entry that withdrew
    it.
    """
    return bool(reinstated) and not _names_of(line).isdisjoint(reinstated)


def _names_of(line: Mapping[str, Any]) -> set[Sought]:
    """The entries that would match a remembered document, and the one that did."""
    names = {(kind, value) for kind in KINDS for value in values_of(kind, line)}
    return names | {(line["kind"], normal(line["kind"], line["value"]))}


def _named_by_memory(sought: Sequence[Sought], memory: Iterable[Line]) -> set[int]:
    names, wanted = set[Sought](), set(sought)
    for line in memory if wanted else ():
        names |= wanted & _names_of(line)
    return {number for number, name in enumerate(sought) if name in names}


def moved_documents(remembered: Iterable[Line], entries: Iterable[Withdrawal]) -> list[str]:
    """Ids that entries name and at which more than one content has stood."""
    contents: dict[str, set[str]] = {}
    for line in remembered:
        if line["how"] == LISTED:
            content = line["digest"] or line["text_digest"]
            contents.setdefault(line["id"], set()).add(content)
    named = [entry.value for entry in entries if entry.kind == "document"]
    return [name for name in named if len(contents.get(name, set()) - {""}) > 1]


def _merged(memory: Iterable[Line], contents: Iterable[Line]) -> list[Line]:
    """Remembered documents by id and digests, each once, as it was matched most closely."""
    found: dict[tuple[str, ...], Line] = {}
    for line in (*memory, *contents):
        known = {name: line.get(name, "") for name in REMEMBERED.names}
        key = (known["id"], known["digest"], known["text_digest"])
        if key not in found or HOWS.index(known["how"]) <= HOWS.index(found[key]["how"]):
            found[key] = known
    return [found[key] for key in sorted(found)]


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
