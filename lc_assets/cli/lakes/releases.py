"""``lc release``, ``lc prune`` and ``lc withdraw``: name what is published, delete what no name
needs, and withdraw documents.
"""

import datetime as dt
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from lc_assets.builds.recipe import Recipe
from lc_assets.builds.recipe_files import read_recipe
from lc_assets.builds.stage import BuildContext
from lc_assets.cli import options
from lc_assets.cli.inspect.show import end_with
from lc_assets.cli.lakes.plan import LakeOptions, recipe_of_lake
from lc_assets.cli.printing import facts, heading, print_error, say, sized, table
from lc_assets.errors import BadInput
from lc_assets.execution.local import LocalExecutor
from lc_assets.formats.lists.withdrawal_lists import (
    Withdrawal,
    append_withdrawal,
    entries_of,
    line_of,
)
from lc_assets.lake.lake import Lake
from lc_assets.lake.located import existing_lake
from lc_assets.lake.releases import gone_of, read_release, release_names
from lc_assets.lake.upstream import Upstream
from lc_assets.stages.releases import pruning, releasing
from lc_assets.stages.releases.pruning import Pruning
from lc_assets.stages.withdrawal import reporting
from lc_assets.stages.withdrawal.remembering import (
    moved_documents,
    remembered_digests,
    remembered_in,
)
from lc_assets.stages.withdrawal.reporting import affected_by, partitions_to_rebuild
from lc_assets.stages.withdrawal.withdrawn_documents import (
    STAGE,
    withdrawn_by,
    withdrawn_lines,
)
from lc_assets.vocabulary import REDPAJAMA_V2

STILL_HELD = 3


def release(
    lake: options.LakePath,
    name: Annotated[str | None, Argument(metavar="[NAME]")] = None,
    verify: bool = False,
    recipe: options.Recipe = None,
    withdrawn: options.Withdrawn = "",
) -> None:
    """Pin the published global order, grids, Megatron files and mixes under a name that is never
    reused.

    Refused when something is out of date under the recipe, damaged or withdrawn, or fails `lc
    audit`. Repeating it with the same versions changes nothing; other versions under the same name
    are refused.

    Args:
        name: name of the release; without it, releases are listed.
        verify: read every byte of the release; publish nothing.

    Example: lc release lake v1
    """
    folder = existing_lake(lake)
    if name is None:
        _show_releases(folder)
        return
    if verify:
        damage = releasing.release_damage(folder, name)
        state = f"damaged in {len(damage):,} places" if damage else "whole, every byte read again"
        end_with(damage, f"release {name}: {state}")
    made = releasing.release(folder, name, _recipe(lake, recipe, withdrawn))
    say(f"release {name} pins {len(made.pins):,} versions")
    facts(list(made.counts.items()))
    say(f'open_rows("{lake}", release="{name}") reads its rows, whatever is published later')


def _recipe(lake: str, path: Path | None, withdrawn: str) -> Recipe:
    """The recipe of a file, or else the one that the lake was last built by."""
    found = recipe_of_lake(LakeOptions(lake=lake, recipe=path)).recipe
    return read_recipe(found, withdrawn=withdrawn)


def _show_releases(lake: Lake) -> None:
    """Print the releases and their missing versions."""
    lines = []
    for name in release_names(lake):
        found, gone = read_release(lake, name), gone_of(lake, name)
        counts = found.counts
        state = "; ".join(
            f"{len(note.versions):,} versions are gone: {note.reason}" for note in gone
        )
        lines.append(
            (name, len(found.pins), counts.get("documents"), counts.get("tokens"), state or "whole")
        )
    table(("release", "versions", "documents", "tokens", "state"), lines)
    say(f"{len(lines):,} releases")


def prune(
    lake: options.LakePath,
    keep: Annotated[int, Option(min=0)] = 0,
    purge: bool = False,
    give_up: list[str] | None = None,
    dry_run: bool = False,
) -> None:
    """Delete versions that are neither published nor released nor needed by such
    versions.

    With --purge: every version that contains a withdrawn document, except published ones and
    releases; exits with 3 if one that is served still contains one.

    Args:
        keep: keep this many of the newest unneeded versions of each partition.
        purge: delete only versions that contain withdrawn documents.
        give_up: with --purge: a release whose versions may be deleted.
        dry_run: show what would be deleted; delete nothing.

    Example: lc prune lake --dry-run
    """
    folder = existing_lake(lake)
    if give_up and not purge:
        raise BadInput(
            "--give-up needs --purge: releases are given up only for withdrawn documents"
        )
    ids = []
    if purge:
        withdrawn = folder.partition(STAGE.name).require()
        ids = [line["id"] for line in withdrawn_lines(withdrawn)]
        digests = remembered_digests(withdrawn)
        planned = pruning.plan_purge(folder, ids, digests=digests, give_up=give_up or ())
    else:
        planned = pruning.plan_pruning(folder, keep=keep)
    _show_pruning(planned, dry_run=dry_run)
    if not dry_run:
        pruning.carry_out(folder, planned, reason=f"held some of {len(ids):,} withdrawn documents")
    if purge:
        say(f"{len(ids):,} documents are withdrawn")
        served = any("working material" not in why for why in planned.kept.values())
        raise typer.Exit(STILL_HELD if served else 0)


def _show_pruning(planned: Pruning, *, dry_run: bool) -> None:
    """Print what is deleted, what stays although it contains withdrawn documents, and which
    releases are given up.
    """
    if planned.deletions:
        table(
            ("version", "size", "why"),
            [(one.name, sized(one.n_bytes), one.why) for one in planned.deletions],
        )
    for name, versions in planned.broken.items():
        print_error(f"release {name} is given up: {', '.join(versions)}")
    if planned.kept:
        table(("holds withdrawn documents and stays", "why"), list(planned.kept.items()))
    size = sized(sum(one.n_bytes for one in planned.deletions))
    done = "would be removed" if dry_run else "removed"
    say(f"{len(planned.deletions):,} folders, {size}: {done}")


MOST_DOCUMENTS = 10


def withdraw(
    lake: options.LakePath,
    documents: options.DocumentOptions,
    reason: str | None = None,
    date: str | None = None,
    listed: Annotated[Path | None, Option("--list")] = None,
    dry_run: bool = False,
    report: bool = False,
    recipe: options.Recipe = None,
    withdrawn: options.Withdrawn = "",
    upstream: options.Upstream = REDPAJAMA_V2,
) -> None:
    """Add an entry to a withdrawal list and show what it affects, near copies included, before
    anything is built.

    Takes one of --document, --url, --domain, --digest, with --reason and --list; or --report. See
    docs/withdrawal.md.

    Args:
        reason: the reason, for the list and every report.
        date: YYYY-MM-DD; by default today.
        listed: the list to append the entry to.
        dry_run: show what would be affected; append nothing.
        report: instead, list what is withdrawn and which versions still contain it.

    Example: lc withdraw lake --url https://example.org/page --reason request --list withdrawn.csv
    """
    folder = existing_lake(lake)
    settings = _recipe(lake, recipe, withdrawn)
    named = documents.named()
    if report:
        if named:
            raise BadInput(
                "--report lists all withdrawals; it takes no --document, --url, "
                "--domain or --digest"
            )
        _show_report(folder, settings)
        return
    if len(named) != 1 or reason is None or (listed is None and not dry_run):
        raise BadInput(
            "expected one of --document, --url, --domain, --digest, with --reason and --list; or "
            "--report"
        )
    ((kind, value),) = named.items()
    today = dt.datetime.now(dt.UTC).date().isoformat()
    entry = Withdrawal.of((kind, value, reason, date or today))
    if listed is not None:
        _require_named(listed, settings)
    _show_affected(folder, entry, settings, upstream)
    if listed is not None and not dry_run:
        append_withdrawal(listed, entry)
        say(f"{listed}: appended {line_of(entry)}")
        say(
            "Next: commit the list; materialize withdrawn_documents, all snapshot_withdrawals, "
            "then what `lc plan` calls out of date"
        )


def _require_named(path: Path, recipe: Recipe) -> None:
    """Refuse a list that no build would read."""
    lists = recipe.withdrawn_documents.lists
    if not any(Path(name).resolve() == path.resolve() for name in lists):
        raise BadInput(
            f"{path}: the recipe does not name this list, so nothing would be withdrawn: add it to "
            f"withdrawn_documents.lists, or set --withdrawn or LC_WITHDRAWN to {path}"
        )


def _show_affected(lake: Lake, entry: Withdrawal, recipe: Recipe, upstream: str) -> None:
    """Print the documents that an entry withdraws, and what will be rebuilt."""
    executor = LocalExecutor(workers=1)
    context = BuildContext(lake=lake, upstream=Upstream(upstream), recipe=recipe, executor=executor)
    found, unseen = withdrawn_by(context, entry)
    if unseen:
        say(f"near copies of documents that the filter dropped are not shown: {unseen}")
    lines = found.withdrawn
    if not lines:
        n_dropped = found.remembered.num_rows
        say(
            f"no filtered document matches {entry.kind} {entry.value}, {n_dropped:,} dropped ones "
            "do; it will apply to later snapshots"
        )
        return
    shown = [
        (line["id"], line["how"], line["for_id"] or None, line["similarity"])
        for line in lines[:MOST_DOCUMENTS]
    ]
    table(("document", "how", "for", "similarity"), shown)
    if len(lines) > MOST_DOCUMENTS:
        say(f"and {len(lines) - MOST_DOCUMENTS:,} more")
    facts(affected_by(lake, lines).items())
    partitions = partitions_to_rebuild(lake, lines)
    table(("will be rebuilt",), [(name,) for name in partitions])
    say(
        f"{len(partitions):,} partitions; all others keep their bytes"
        if partitions
        else "none of them is served: nothing will be rebuilt"
    )


def _show_report(lake: Lake, recipe: Recipe) -> None:
    """Print withdrawals by date and reason, what is remembered, and the versions that still contain
    withdrawn documents.
    """
    published = lake.partition(STAGE.name).require()
    lines, remembered = withdrawn_lines(published), remembered_in(published)
    by_reason = reporting.withdrawn_by_reason(lake, lines)
    heading("Withdrawn, by date and reason")
    table(reporting.COLUMNS, [tuple(line.values()) for line in by_reason])
    heading("Versions that contain them")
    table(
        ("version", "documents", "size", "state"),
        [
            (held.name, held.n_documents, sized(held.published.receipt.n_bytes), state)
            for held, state in reporting.versions_holding(
                lake, lines, remembered_digests(published)
            )
        ],
    )
    served = sum(line["still served"] for line in by_reason)
    say(
        f"{len(lines):,} documents are withdrawn, {served:,} of them are still served"
        + ("" if not served else ": see `lc plan`")
    )
    say(f"{remembered.num_rows:,} contents are remembered")
    for name in moved_documents(remembered, entries_of(recipe.withdrawn_documents.lists)):
        say(f"{name} is listed, and another content has stood there before: name the digest")
    say("`lc prune --purge` deletes versions that are not published")
