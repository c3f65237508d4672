"""`withdrawn_documents`: the documents of all snapshots that must no longer be served.

====================  ============================================================================
how                   the document
====================  ============================================================================
``listed``            matches an entry by id, URL, domain or digest
``same digest``       has the digest of a listed one: of the page as crawled, or of the text
=======
``near duplicate``    is a published near duplicate of one of the former, at the recipe's threshold
====================  ============================================================================

Uses the indices of filtered documents and the tables of near-duplicate pairs; reads no text. Later
stages read only their snapshot's part (`lc_assets.stages.withdrawal.snapshot_withdrawals`), so a
changed list changes no digest of a snapshot without a match.
"""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from lc_assets.build.building import build
from lc_assets.build.checks import evenly_spaced
from lc_assets.build.lookups import KeyedTable
from lc_assets.build.recipe import Recipe
from lc_assets.build.settings.common import WithdrawalSettings
from lc_assets.build.stage import (
    ALL_SNAPSHOTS,
    BuildContext,
    Built,
    CheckInput,
    CheckResult,
    Stage,
    StagingFolder,
    later,
)
from lc_assets.build.tables import WITHDRAWN, opened_table, read_table, write_table
from lc_assets.counts import Counts
from lc_assets.errors import Mismatch
from lc_assets.formats.lists.withdrawal_lists import Withdrawal, read_withdrawals
from lc_assets.lake.digests import digest_of
from lc_assets.lake.lake import GLOBAL
from lc_assets.lake.versions import Published
from lc_assets.stages.deduplication.near_duplicate_pairs import STAGE as NEAR_DUPLICATE_PAIRS
from lc_assets.stages.deduplication.near_duplicate_pairs import TABLE as PAIRS_TABLE
from lc_assets.stages.documents.document_keys import STAGE as DOCUMENT_KEYS
from lc_assets.stages.documents.document_keys import documents_of
from lc_assets.text.links.addresses import Kind, values_of

TABLE: Final = "withdrawn.parquet"
LISTED: Final = "listed"
SAME_DIGEST: Final = "same digest"
NEAR_DUPLICATE: Final = "near duplicate"
LOOKED_UP_AGAIN: Final = 64
"""Entries that the check looks up again, one by one."""

Line = dict[str, Any]


def write_withdrawn_documents(context: BuildContext, _key: str = GLOBAL) -> Built:
    """Publish which documents must no longer be served.

    Raises:
        BadInput: if a list cannot be read; names the line.
        Mismatch: if a list changed while it was read.
    """
    settings = context.recipe.withdrawn_documents

    def fill(staging: StagingFolder) -> Counts:
        entries = entries_of(settings)
        if digest_of_entries(entries) != staging.fingerprint.params["entries"]:
            raise Mismatch(
                f"a list of withdrawals changed while it was read ({', '.join(settings.lists)}): "
                "run the stage again"
            )
        found = resolve(entries, staging.inputs, context.recipe)
        write_table(staging.folder / TABLE, pa.Table.from_pylist(found, schema=WITHDRAWN))
        hows = (LISTED, SAME_DIGEST, NEAR_DUPLICATE)
        extra = {how: sum(line["how"] == how for line in found) for how in hows}
        extra |= {
            "entries": len(entries),
            "entries that find nothing": len(entries) - len({line["entry"] for line in found}),
        }
        return Counts(seen=len(found), kept=len(found), extra=extra)

    return build(context, STAGE, GLOBAL, fill)


def entries_of(settings: WithdrawalSettings) -> list[Withdrawal]:
    """Entries of all lists, in order; of several with the same kind and value, the first.

    Raises:
        BadInput: if a list cannot be read; names the line.
    """
    found: dict[tuple[Kind, str], Withdrawal] = {}
    for name in settings.lists:
        for entry in read_withdrawals(Path(name)):
            found.setdefault(entry.sought, entry)
    return list(found.values())


def digest_of_entries(entries: Sequence[Withdrawal]) -> str:
    """Digest of the entries alone; comments, blank lines and file names do not count."""
    return digest_of([list(entry.cells) for entry in entries])


def resolve(
    entries: Sequence[Withdrawal], inputs: Mapping[str, Published], recipe: Recipe
) -> list[Line]:
    """Find the documents that some entries withdraw.

    Args:
        entries: the listed entries.
        inputs: indices and near-duplicate pairs, by names such as ``document_keys/2023-06`` and
            ``near_duplicate_pairs/2023-06``.
        recipe: what counts as the same content, and whether that is withdrawn too.

    Returns:
        Rows of `tables.WITHDRAWN`, sorted by id, each id once.
    """
    indexes = (
        [documents_of(inputs[name]) for name in sorted(inputs) if name.startswith("document_keys/")]
        if entries
        else []
    )
    listed = _listed(entries, indexes)
    found = {line["id"]: _line(line["id"], LISTED, number, entries) for number, line in listed}
    if recipe.withdrawn_documents.same_content == "goes" and found:
        for source, line in _same_digest([line for _, line in listed], indexes):
            found.setdefault(
                line["id"],
                _line(line["id"], SAME_DIGEST, found[source]["entry"], entries, source=source),
            )
        pairs = [
            inputs[name] for name in sorted(inputs) if name.startswith("near_duplicate_pairs/")
        ]
        nearest = _near(set(found), pairs, recipe.removed_documents.threshold)
        for name, (similarity, source) in sorted(nearest.items()):
            found[name] = _line(
                name,
                NEAR_DUPLICATE,
                found[source]["entry"],
                entries,
                source=source,
                similarity=similarity,
            )
    return [found[name] for name in sorted(found)]


def _line(
    name: str,
    how: str,
    number: int,
    entries: Sequence[Withdrawal],
    *,
    source: str = "",
    similarity: float = 1.0,
) -> Line:
    kind, value, reason, date = entries[number].cells
    source_entry = {"entry": number, "kind": kind, "value": value, "reason": reason, "date": date}
    return {"id": name, "how": how, "for_id": source, "similarity": similarity} | source_entry


def _listed(entries: Sequence[Withdrawal], indexes: Iterable[KeyedTable]) -> list[tuple[int, Line]]:
    """Documents that match an entry, each with the first entry that matches."""
    sought = [entry.sought for entry in entries]
    found: dict[str, tuple[int, Line]] = {}
    for number, line in itertools.chain.from_iterable(index.find_all(sought) for index in indexes):
        if number <= found.get(line["id"], (number, line))[0]:
            found[line["id"]] = number, line
    return [found[name] for name in sorted(found)]


def _same_digest(
    listed: Sequence[Line], indexes: Iterable[KeyedTable]
) -> Iterator[tuple[str, Line]]:
    """Documents that share a digest with a listed one, with that one's id; of several, the smallest
    id.
    """
    of_digest: dict[str, str] = {}
    for line in listed:
        for digest in values_of("digest", line):
            of_digest.setdefault(digest, line["id"])
    digests: list[tuple[Kind, str]] = [("digest", digest) for digest in of_digest]
    found: dict[str, tuple[str, Line]] = {}
    for number, line in itertools.chain.from_iterable(index.find_all(digests) for index in indexes):
        source = of_digest[digests[number][1]]
        if source <= found.get(line["id"], (source, line))[0]:
            found[line["id"]] = source, line
    yield from (found[name] for name in sorted(found))


def _near(
    withdrawn: set[str], pairs: Iterable[Published], threshold: float
) -> dict[str, tuple[float, str]]:
    """Near duplicates of withdrawn documents that are not withdrawn yet, with their most similar
    withdrawn document.
    """
    found: dict[str, tuple[float, str]] = {}
    wanted = pa.array(sorted(withdrawn))
    for published in pairs:
        for a, b, similarity in _pairs_with(
            published.only(PAIRS_TABLE) / PAIRS_TABLE, wanted, threshold
        ):
            for name, source in ((a, b), (b, a)):
                best = found.get(name)
                if (
                    source in withdrawn
                    and name not in withdrawn
                    and (best is None or (-similarity, source) < (-best[0], best[1]))
                ):
                    found[name] = similarity, source
    return found


def _pairs_with(path: Path, wanted: pa.Array, threshold: float) -> Iterator[tuple[str, str, float]]:
    with opened_table(path) as file:
        for batch in file.iter_batches(1 << 16, columns=["a", "b", "similarity"]):
            ours = pc.or_(
                pc.is_in(batch.column("a"), value_set=wanted),
                pc.is_in(batch.column("b"), value_set=wanted),
            )
            near = batch.filter(
                pc.and_(ours, pc.greater_equal(batch.column("similarity"), threshold))
            )
            yield from zip(
                *(near.column(name).to_pylist() for name in ("a", "b", "similarity")), strict=True
            )


def withdrawn_lines(published: Published) -> list[Line]:
    """All rows of the published table."""
    lines: list[Line] = read_table(published.only(TABLE) / TABLE, WITHDRAWN.names).to_pylist()
    return lines


def the_withdrawn_add_up(check_input: CheckInput) -> CheckResult:
    """No document occurs twice, the counts match the receipt, and every document of the same
    content refers to a withdrawn one.
    """
    lines: list[Line] = read_table(check_input.folder / TABLE, WITHDRAWN.names).to_pylist()
    by_id = {line["id"]: line for line in lines}
    extra = check_input.counts.extra
    counted = {
        how: sum(line["how"] == how for line in lines)
        for how in (LISTED, SAME_DIGEST, NEAR_DUPLICATE)
    }
    wrong = [line["id"] for line in lines if not _has_its_reason(line, by_id)]
    right = (
        len(by_id) == len(lines) == check_input.counts.kept
        and all(extra.get(how) == n for how, n in counted.items())
        and not wrong
    )
    return CheckResult(
        check="the_withdrawn_add_up",
        passed=right,
        message=f"{len(lines):,} documents, {len(lines) - len(by_id):,} twice, "
        f"{', '.join(f'{n:,} {how}' for how, n in counted.items())}"
        + (f"; without a reason: {wrong[0]}" if wrong else ""),
        values={"documents": len(lines), "without a reason": len(wrong)},
    )


def _has_its_reason(line: Line, by_id: Mapping[str, Line]) -> bool:
    if not (line["reason"] and line["date"]):
        return False
    if line["how"] == LISTED:
        return not line["for_id"]
    source = by_id.get(line["for_id"])
    return (
        source is not None and source["how"] != NEAR_DUPLICATE and source["entry"] == line["entry"]
    )


def every_entry_finds_its_documents(check_input: CheckInput) -> CheckResult:
    """Looking up an even sample of entries again finds only withdrawn documents, and each listed
    document matches its entry.
    """
    lines: list[Line] = read_table(check_input.folder / TABLE, WITHDRAWN.names).to_pylist()
    withdrawn = {line["id"] for line in lines}
    indexes = [
        documents_of(published)
        for name, published in check_input.inputs.items()
        if name.startswith("document_keys/")
    ]
    listed = [line for line in lines if line["how"] == LISTED]
    entries = sorted({(line["kind"], line["value"]) for line in listed})
    missing, found = [], set[str]()
    for kind, value in (entries[place] for place in evenly_spaced(len(entries), LOOKED_UP_AGAIN)):
        ids = {line["id"] for index in indexes for line in index.find(kind, value)}
        missing += sorted(ids - withdrawn)
        found |= ids
        missing += [
            line["id"]
            for line in listed
            if (line["kind"], line["value"]) == (kind, value) and line["id"] not in ids
        ]
    return CheckResult(
        check="every_entry_finds_its_documents",
        passed=not missing,
        message=f"{min(len(entries), LOOKED_UP_AGAIN):,} of {len(entries):,} entries looked up "
        f"again, {len(found):,} documents" + (f"; wrong: {missing[0]}" if missing else ""),
        values={"found again": len(found), "wrong": len(missing)},
    )


def _params(recipe: Recipe, _: str) -> dict[str, Any]:
    """The entries, and the other settings only if there are entries."""
    settings = recipe.withdrawn_documents
    entries = entries_of(settings)
    if not entries:
        return {"entries": digest_of_entries([])}
    rest = {
        "same_content": settings.same_content,
        "threshold": recipe.removed_documents.threshold,
        "n_entries": len(entries),
    }
    return {"entries": digest_of_entries(entries)} | rest


def _are_lists_named(recipe: Recipe) -> bool:
    return bool(recipe.withdrawn_documents.lists)


STAGE = Stage(
    name="withdrawn_documents",
    description=(
        "Documents of all snapshots that must no longer be served: those that the "
        "recipe's lists name, and the same content."
    ),
    code_version="1",
    reads={
        DOCUMENT_KEYS: ALL_SNAPSHOTS.only_if(_are_lists_named),
        NEAR_DUPLICATE_PAIRS: ALL_SNAPSHOTS.only_if(_are_lists_named),
    },
    params=_params,
    checks=(the_withdrawn_add_up, every_entry_finds_its_documents),
    partitioned_by="nothing",
    group="documents",
    job="withdrawn",
    kinds=("parquet",),
    write=write_withdrawn_documents,
    show=later("lc_assets.stages.shown.documents:withdrawn_documents"),
)
"""Documents that must no longer be served, of all snapshots."""
