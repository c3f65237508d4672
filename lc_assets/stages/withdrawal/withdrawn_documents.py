"""`withdrawn_documents`: the withdrawn documents of all snapshots, and a memory of what was ever
withdrawn.

========================  ========================================================================
file                      what
========================  ========================================================================
``withdrawn.parquet``     the filtered documents that must not be served (`tables.WITHDRAWN`)
``remembered.parquet``    the contents that were withdrawn in this or an earlier version
                          (`tables.REMEMBERED`)
========================  ========================================================================

How documents are found is in `lc_assets.stages.withdrawal.matching`. The stage uses the indices of
filtered documents, the tables of near-duplicate pairs and of dropped documents, and its own version
before, if that remembers anything. It reads no text but those of listed documents that are in no
pairs (`lc_assets.stages.withdrawal.similar`). Later stages read only their snapshot's part
(`lc_assets.stages.withdrawal.snapshot_withdrawals`), so a changed list changes no digest of a
snapshot without a match.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa

from lc_assets import arrow_compute as pc
from lc_assets.builds.checks import evenly_spaced
from lc_assets.builds.recipe import Recipe
from lc_assets.builds.settings.common import WithdrawalSettings
from lc_assets.builds.stage import (
    ALL_SNAPSHOTS,
    BuildContext,
    CheckInput,
    CheckResult,
    Stage,
    StagingFolder,
)
from lc_assets.builds.tables import WITHDRAWN, Line, read_table, write_table
from lc_assets.counts import Counts
from lc_assets.errors import BadInput, Mismatch, NotPublished, Unreachable
from lc_assets.formats.lists.withdrawal_lists import Withdrawal, entries_of
from lc_assets.lake.digests import digest_of
from lc_assets.lake.lake import GLOBAL
from lc_assets.lake.versions import Published
from lc_assets.stages.documents.document_keys import documents_of
from lc_assets.stages.withdrawal.matching import Found, resolve
from lc_assets.stages.withdrawal.remembering import (
    HOWS,
    LISTED,
    MEMORY,
    NEAR_DUPLICATE,
    moved_documents,
    named_in,
    remembered_in,
)
from lc_assets.stages.withdrawal.similar import near_copies

TABLE = "withdrawn.parquet"
CONTENTS, MOVED = "contents remembered", "entries whose document has moved"
LOOKED_UP_AGAIN = 64
"""Entries that the check looks up again, one by one."""


def write_withdrawn_documents(context: BuildContext, staging: StagingFolder) -> Counts:
    """Write which documents must no longer be served, and what is remembered of them.

    Raises:
        BadInput: if a list cannot be read, or an entry of a required list matches nothing; names
            the line. If no list is named any more.
        Mismatch: if a list changed while it was read.
    """
    settings = context.recipe.withdrawn_documents
    entries = entries_of(settings.lists)
    if digest_of_entries(entries) != staging.fingerprint.params["entries"]:
        raise Mismatch(
            f"a list of withdrawals changed while it was read ({', '.join(settings.lists)}): "
            "run the stage again"
        )
    near = partial(near_copies, context, staging)
    found = resolve(entries, staging.inputs, context.recipe, near)
    if found.remembered.num_rows and not are_lists_named(context.recipe):
        raise BadInput(
            f"{len(found.remembered):,} withdrawn contents are remembered, but the recipe names no "
            "list of withdrawals any more: name one, or name their entries in a list of "
            "withdrawn_documents.reinstated"
        )
    _require_matches(settings, {entries[number].sought for number in found.matched})
    return _written(staging, entries, found)


def withdrawn_by(context: BuildContext, entry: Withdrawal) -> tuple[Found, str]:
    """What an entry would withdraw from what is published, and why near copies of dropped documents
    were not sought ("" if they were): the source may not be there.
    """
    published = (
        found for stage in STAGE.upstream for found in context.lake.published(stage).values()
    )
    inputs = {found.name: found for found in published}
    why: list[str] = []

    def near(sources: Iterable[Line]) -> dict[str, tuple[float, str]]:
        made_of = STAGE.fingerprint({}, GLOBAL, {})
        try:
            with TemporaryDirectory() as folder:
                staging = StagingFolder(
                    folder=Path(folder), fingerprint=made_of, inputs=inputs, outside={}
                )
                return near_copies(context, staging, sources)
        except (Unreachable, NotPublished) as error:
            why.append(str(error))
            return {}

    return resolve([entry], inputs, context.recipe, near), "; ".join(why)


def _require_matches(settings: WithdrawalSettings, matched: Collection[tuple[str, str]]) -> None:
    """Refuse entries of required lists that match nothing.

    Raises:
        BadInput: names list, line and entry.
    """
    for entry in entries_of(settings.required_lists):
        if entry.sought not in matched:
            raise BadInput(
                f"{entry.where}: {entry.kind} {entry.value} matches no document, and never did; "
                "correct it, or do not require its list"
            )


def _written(staging: StagingFolder, entries: Sequence[Withdrawal], found: Found) -> Counts:
    table = pa.Table.from_pylist(found.withdrawn, schema=WITHDRAWN)
    write_table(staging.folder / TABLE, table)
    write_table(staging.folder / MEMORY, found.remembered)
    n_withdrawn = len(found.withdrawn)
    extra = _counted(found.withdrawn) | {
        "entries": len(entries),
        "entries that find nothing": len(entries) - len(found.matched),
        CONTENTS: len(found.remembered),
        MOVED: len(moved_documents(found.remembered, entries)),
    }
    return Counts(seen=n_withdrawn, kept=n_withdrawn, extra=extra)


def _counted(lines: Iterable[Line]) -> dict[str, int]:
    return {how: sum(line["how"] == how for line in lines) for how in HOWS}


def digest_of_entries(entries: Sequence[Withdrawal]) -> str:
    """Digest of the entries alone; comments, blank lines and file names do not count."""
    return digest_of([list(entry.cells) for entry in entries])


def withdrawn_lines(published: Published | CheckInput) -> list[Line]:
    """All rows of the table."""
    lines: list[Line] = read_table(published.folder / TABLE, WITHDRAWN.names).to_pylist()
    return lines


def the_withdrawn_add_up(check_input: CheckInput) -> CheckResult:
    """No document occurs twice, the counts match the receipt, and every document of the same
    content refers to a remembered one of the same entry.
    """
    lines, remembered = withdrawn_lines(check_input), remembered_in(check_input)
    by_id = {line["id"]: line for line in lines}
    sources = pa.array({line["for_id"] for line in lines}, pa.string())
    named = remembered.filter(pc.is_in(remembered["id"], value_set=sources))
    columns = (named[name].to_pylist() for name in ("id", "kind", "value"))
    entries = set(zip(*columns, strict=True))
    extra = check_input.counts.extra
    counted = _counted(lines)
    wrong = [line["id"] for line in lines if not _has_its_reason(line, by_id, entries)]
    right = (
        len(by_id) == len(lines) == check_input.counts.kept
        and extra.get(CONTENTS) == len(remembered)
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


def _has_its_reason(
    line: Line, by_id: Mapping[str, Line], entries: Collection[tuple[str, str, str]]
) -> bool:
    if not (line["reason"] and line["date"]):
        return False
    if line["how"] == LISTED:
        return not line["for_id"]
    source = by_id.get(line["for_id"])
    return (line["for_id"], line["kind"], line["value"]) in entries and not (
        line["how"] == NEAR_DUPLICATE and source is not None and source["how"] == NEAR_DUPLICATE
    )


def every_entry_finds_its_documents(check_input: CheckInput) -> CheckResult:
    """Looking up an even sample of entries again finds only withdrawn or reinstated documents, and
    each listed document matches its entry.
    """
    lines = withdrawn_lines(check_input)
    withdrawn = {line["id"] for line in lines}
    indexes = [
        documents_of(published)
        for published in check_input.inputs.values()
        if published.stage == "document_keys"
    ]
    listed = [line for line in lines if line["how"] == LISTED and line["kind"] != "passage"]
    entries = sorted({(line["kind"], line["value"]) for line in listed})
    spared = {line["id"] for index in indexes for _, line in index.find_all(_spared(check_input))}
    missing, found = [], set[str]()
    for entry in (entries[place] for place in evenly_spaced(len(entries), LOOKED_UP_AGAIN)):
        ids = {line["id"] for index in indexes for line in index.find(*entry)}
        ours = {line["id"] for line in listed if (line["kind"], line["value"]) == entry}
        missing += sorted(ids - withdrawn - spared) + sorted(ours - ids)
        found |= ids
    return CheckResult(
        passed=not missing,
        message=f"{min(len(entries), LOOKED_UP_AGAIN):,} of {len(entries):,} entries looked up "
        f"again, {len(found):,} documents" + (f"; wrong: {missing[0]}" if missing else ""),
        values={"found again": len(found), "wrong": len(missing)},
    )


def what_was_withdrawn_is_remembered(check_input: CheckInput) -> CheckResult:
    """All that the version before remembered is remembered, unless it is reinstated; and so is
    every withdrawn document.
    """
    ours, reinstated, forgotten = remembered_in(check_input), _spared(check_input), list[str]()
    known = _contents(ours)
    for published in check_input.inputs.values():
        before = remembered_in(published)
        stays = pc.or_(pc.is_in(_contents(before), known), named_in(before, reinstated)[1])
        forgotten += before["id"].filter(pc.invert(stays)).to_pylist()
    ids = pa.array([line["id"] for line in withdrawn_lines(check_input)], pa.string())
    forgotten += ids.filter(pc.invert(pc.is_in(ids, ours["id"]))).to_pylist()
    return CheckResult(
        passed=not forgotten,
        message=f"{len(known):,} contents remembered, {len(forgotten):,} forgotten"
        + (f", such as {forgotten[0]}" if forgotten else ""),
        values={"remembered": len(known), "forgotten": len(forgotten)},
    )


def _contents(remembered: pa.Table) -> pa.ChunkedArray:
    """Ids and digests of remembered documents, as one string each."""
    columns = (remembered[name] for name in ("id", "digest", "text_digest"))
    return pc.binary_join_element_wise(*columns, "\n")


def _spared(check_input: CheckInput) -> list[Any]:
    """Kinds and values of the entries of reinstated documents."""
    return [tuple(name) for name in check_input.params.get("reinstated", ())]


def every_listed_document_is_where_it_was(check_input: CheckInput) -> CheckResult:
    """No entry names an id whose content has changed: the old and the new content are then
    withdrawn; name the digest instead.
    """
    n_moved = check_input.counts.extra.get(MOVED, 0)
    return CheckResult(
        passed=not n_moved,
        message=f"{n_moved:,} entries name an id that had other content before",
        values={"moved": n_moved},
        severity="warning",
    )


def _params(recipe: Recipe, _: str) -> dict[str, Any]:
    """The entries, and the other settings only if there are lists.

    Raises:
        BadInput: if a list cannot be read, or a required one is not one of the lists.
    """
    settings = recipe.withdrawn_documents
    for name in settings.required_lists:
        if name not in settings.lists:
            raise BadInput(f"withdrawn_documents.required_lists: {name} is not one of the lists")
    entries = entries_of(settings.lists)
    rest = {
        "same_content": settings.same_content,
        "threshold": recipe.removed_documents.threshold,
        "near": recipe.near_duplicate_pairs.near,
        "n_entries": len(entries),
        "required": digest_of_entries(entries_of(settings.required_lists)),
        "reinstated": [entry.sought for entry in entries_of(settings.reinstated)],
    }
    if (measure := recipe.near_duplicate_pairs.measure) != "jaccard":
        rest["measure"] = measure
    named = are_lists_named(recipe)
    return {"entries": digest_of_entries(entries)} | (rest if named else {})


def are_lists_named(recipe: Recipe) -> bool:
    """Without lists nothing is looked up, so the keys need not be published."""
    settings = recipe.withdrawn_documents
    return bool(settings.lists or settings.reinstated)


_ALL = ALL_SNAPSHOTS.only_if(are_lists_named)

STAGE = Stage(
    name="withdrawn_documents",
    description=(
        "Documents of all snapshots that must no longer be served: those that the "
        "recipe's lists name or named, and the same content."
    ),
    code_version="3",
    reads={
        "raw_snapshot": _ALL,
        "document_keys": _ALL,
        "near_duplicate_pairs": _ALL,
        "filtered_documents": _ALL.summarized(),
    },
    remembers=lambda published: remembered_in(published).num_rows > 0,
    params=_params,
    checks=(
        the_withdrawn_add_up,
        every_entry_finds_its_documents,
        what_was_withdrawn_is_remembered,
        every_listed_document_is_where_it_was,
    ),
    columns=WITHDRAWN,
    partitioned_by="nothing",
    job="withdrawn",
    write=write_withdrawn_documents,
    pool=None,
)
"""Documents that must no longer be served, of all snapshots."""
