"""`withdrawn_documents`: the withdrawn documents of all snapshots.

====================  ============================================================================
how                   the document
====================  ============================================================================
``listed``            matches an entry by id, URL, domain or digest
``same digest``       has the digest of a listed one: of the page as crawled, or of the text
``near duplicate``    is a published near duplicate of one of the former, at the recipe's threshold
====================  ============================================================================

Uses the indices of filtered documents and the tables of near-duplicate pairs; reads no text. Later
stages read only their snapshot's part (`lc_assets.stages.withdrawal.snapshot_withdrawals`), so a
changed list changes no digest of a snapshot without a match.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from lc_assets import arrow_compute as pc
from lc_assets.build.checks import evenly_spaced
from lc_assets.build.lookups import KeyedTable, lines_where
from lc_assets.build.recipe import Recipe
from lc_assets.build.settings.common import WithdrawalSettings
from lc_assets.build.stage import (
    ALL_SNAPSHOTS,
    BuildContext,
    CheckInput,
    CheckResult,
    Stage,
    StagingFolder,
)
from lc_assets.build.tables import WITHDRAWN, read_table, write_table
from lc_assets.counts import Counts
from lc_assets.errors import Mismatch
from lc_assets.formats.lists.withdrawal_lists import COLUMNS, Withdrawal, read_withdrawals
from lc_assets.lake.digests import digest_of
from lc_assets.lake.versions import Published
from lc_assets.stages.deduplication.near_duplicate_pairs import TABLE as PAIRS_TABLE
from lc_assets.stages.documents.document_keys import documents_of
from lc_assets.text.links.addresses import Kind, values_of

TABLE = "withdrawn.parquet"
LISTED = "listed"
SAME_DIGEST = "same digest"
NEAR_DUPLICATE = "near duplicate"
LOOKED_UP_AGAIN = 64
"""Entries that the check looks up again, one by one."""

Line = dict[str, Any]


def write_withdrawn_documents(context: BuildContext, staging: StagingFolder) -> Counts:
    """Write which documents must no longer be served.

    Raises:
        BadInput: if a list cannot be read; names the line.
        Mismatch: if a list changed while it was read.
    """
    settings = context.recipe.withdrawn_documents
    entries = entries_of(settings)
    if digest_of_entries(entries) != staging.fingerprint.params["entries"]:
        raise Mismatch(
            f"a list of withdrawals changed while it was read ({', '.join(settings.lists)}): "
            "run the stage again"
        )
    found = resolve(entries, staging.inputs, context.recipe)
    write_table(staging.folder / TABLE, pa.Table.from_pylist(found, schema=WITHDRAWN))
    extra = _counted(found) | {
        "entries": len(entries),
        "entries that find nothing": len(entries) - len({line["entry"] for line in found}),
    }
    return Counts(seen=len(found), kept=len(found), extra=extra)


def _counted(lines: Sequence[Line]) -> dict[str, int]:
    return {
        how: sum(line["how"] == how for line in lines)
        for how in (LISTED, SAME_DIGEST, NEAR_DUPLICATE)
    }


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
    read = [inputs[name] for name in sorted(inputs)]
    indexes = [documents_of(part) for part in read if part.stage == "document_keys"]
    listed = _first_found(indexes, [entry.sought for entry in entries])
    found = {name: _line(name, LISTED, number, entries) for name, (number, _) in listed.items()}
    if recipe.withdrawn_documents.same_content != "goes" or not found:
        return [found[name] for name in sorted(found)]
    of_digest: dict[str, str] = {}
    for name in sorted(listed):
        for digest in values_of("digest", listed[name][1]):
            of_digest.setdefault(digest, name)
    same = _first_found(indexes, [("digest", digest) for digest in of_digest])
    sources = list(of_digest.values())
    for name, (number, _) in same.items():
        source = sources[number]
        entry = found[source]["entry"]
        found.setdefault(name, _line(name, SAME_DIGEST, entry, entries, source=source))
    pairs = [part for part in read if part.stage == "near_duplicate_pairs"]
    nearest = _near(set(found), pairs, recipe.removed_documents.threshold)
    for name, (distance, source) in nearest.items():
        line = _line(name, NEAR_DUPLICATE, found[source]["entry"], entries, source=source)
        found[name] = line | {"similarity": -distance}
    return [found[name] for name in sorted(found)]


def _line(
    name: str, how: str, number: int, entries: Sequence[Withdrawal], *, source: str = ""
) -> Line:
    line = {"id": name, "how": how, "for_id": source, "similarity": 1.0, "entry": number}
    return line | dict(zip(COLUMNS, entries[number].cells, strict=True))


def _first_found(
    indexes: Iterable[KeyedTable], sought: Sequence[tuple[Kind, str]]
) -> dict[str, tuple[int, Line]]:
    """Documents that match any of some values, by id, each with the number of the first value that
    it matches.
    """
    found: dict[str, tuple[int, Line]] = {}
    for index in indexes:
        for number, line in index.find_all(sought):
            if number <= found.get(line["id"], (number, line))[0]:
                found[line["id"]] = number, line
    return found


def _near(
    withdrawn: Collection[str], pairs: Iterable[Published], threshold: float
) -> dict[str, tuple[float, str]]:
    """Near duplicates of withdrawn documents that are not withdrawn yet: the negative similarity
    to their most similar withdrawn document, and its id.
    """
    found: dict[str, tuple[float, str]] = {}
    ids = list(withdrawn)
    matches = (pc.field("a").isin(ids) | pc.field("b").isin(ids)) & (
        pc.field("similarity") >= threshold
    )
    for published in pairs:
        for pair in lines_where(published.only(PAIRS_TABLE) / PAIRS_TABLE, matches):
            for name, source in ((pair["a"], pair["b"]), (pair["b"], pair["a"])):
                if source in withdrawn and name not in withdrawn:
                    nearest = -pair["similarity"], source
                    found[name] = min(found.get(name, nearest), nearest)
    return found


def withdrawn_lines(published: Published | CheckInput) -> list[Line]:
    """All rows of the table."""
    lines: list[Line] = read_table(published.folder / TABLE, WITHDRAWN.names).to_pylist()
    return lines


def the_withdrawn_add_up(check_input: CheckInput) -> CheckResult:
    """No document occurs twice, the counts match the receipt, and every document of the same
    content refers to a withdrawn one.
    """
    lines = withdrawn_lines(check_input)
    by_id = {line["id"]: line for line in lines}
    extra = check_input.counts.extra
    counted = _counted(lines)
    wrong = [line["id"] for line in lines if not _has_its_reason(line, by_id)]
    right = (
        len(by_id) == len(lines) == check_input.counts.kept
        and all(extra.get(how) == n for how, n in counted.items())
        and not wrong
    )
    return CheckResult(
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
    lines = withdrawn_lines(check_input)
    withdrawn = {line["id"] for line in lines}
    indexes = [
        documents_of(published)
        for published in check_input.inputs.values()
        if published.stage == "document_keys"
    ]
    listed = [line for line in lines if line["how"] == LISTED]
    entries = sorted({(line["kind"], line["value"]) for line in listed})
    missing, found = [], set[str]()
    for entry in (entries[place] for place in evenly_spaced(len(entries), LOOKED_UP_AGAIN)):
        ids = {line["id"] for index in indexes for line in index.find(*entry)}
        ours = {line["id"] for line in listed if (line["kind"], line["value"]) == entry}
        missing += sorted(ids - withdrawn) + sorted(ours - ids)
        found |= ids
    return CheckResult(
        passed=not missing,
        message=f"{min(len(entries), LOOKED_UP_AGAIN):,} of {len(entries):,} entries looked up "
        f"again, {len(found):,} documents" + (f"; wrong: {missing[0]}" if missing else ""),
        values={"found again": len(found), "wrong": len(missing)},
    )


def _params(recipe: Recipe, _: str) -> dict[str, Any]:
    """The entries, and the other settings only if there are entries."""
    settings = recipe.withdrawn_documents
    entries = entries_of(settings)
    rest = {
        "same_content": settings.same_content,
        "threshold": recipe.removed_documents.threshold,
        "n_entries": len(entries),
    }
    return {"entries": digest_of_entries(entries)} | (rest if entries else {})


def are_lists_named(recipe: Recipe) -> bool:
    """Without lists nothing is looked up, so the keys need not be published."""
    return bool(recipe.withdrawn_documents.lists)


STAGE = Stage(
    name="withdrawn_documents",
    description=(
        "Documents of all snapshots that must no longer be served: those that the "
        "recipe's lists name, and the same content."
    ),
    code_version="1",
    reads={
        "document_keys": ALL_SNAPSHOTS.only_if(are_lists_named),
        "near_duplicate_pairs": ALL_SNAPSHOTS.only_if(are_lists_named),
    },
    params=_params,
    checks=(the_withdrawn_add_up, every_entry_finds_its_documents),
    partitioned_by="nothing",
    job="withdrawn",
    write=write_withdrawn_documents,
    pool=None,
)
"""Documents that must no longer be served, of all snapshots."""
