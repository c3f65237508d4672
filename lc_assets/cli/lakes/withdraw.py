"""``lc withdraw``: add an entry to a withdrawal list, show what it affects, and report
withdrawals.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from lc_assets.cli import options
from lc_assets.cli.printing import facts, heading, say, sized, table
from lc_assets.errors import BadInput

if TYPE_CHECKING:
    from lc_assets.build.recipe import Recipe
    from lc_assets.formats.lists.withdrawal_lists import Withdrawal
    from lc_assets.lake.lake import Lake

MOST_DOCUMENTS = 10


@options.with_options
def withdraw(
    lake: options.LakePath,
    documents: options.DocumentOptions,
    reason: Annotated[
        str | None, Option("--reason", help="The reason, for the list and every report.")
    ] = None,
    date: Annotated[str | None, Option("--date", help="YYYY-MM-DD; by default today.")] = None,
    listed: Annotated[
        Path | None, Option("--list", help="The list to append the entry to.")
    ] = None,
    dry_run: Annotated[
        bool, Option("--dry-run", help="Show what would be affected; append nothing.")
    ] = False,
    report: Annotated[
        bool,
        Option(
            "--report",
            help="Instead, list what is withdrawn and which versions still contain it.",
        ),
    ] = False,
    recipe: options.Recipe = None,
    withdrawn: options.Withdrawn = "",
) -> None:
    """Add an entry to a withdrawal list and show what it affects, before anything is built.

    Takes one of --document, --url, --domain, --digest, with --reason and --list; or --report. See
    docs/withdrawal.md.

    Example: lc withdraw lake --url https://example.org/page --reason request --list withdrawn.csv
    """
    from lc_assets.build.recipe import read_recipe
    from lc_assets.cli.lakes.plan import LakeOptions, recipe_of_lake
    from lc_assets.lake.bucket_lake import open_lake

    folder = open_lake(lake)
    recipe = recipe_of_lake(LakeOptions(lake=lake, recipe=recipe)).recipe
    settings = read_recipe(recipe, withdrawn=withdrawn)
    named = documents.named()
    if report:
        if named:
            raise BadInput(
                "--report lists all withdrawals; it takes no --document, --url, "
                "--domain or --digest"
            )
        _show_report(folder)
        return
    if len(named) != 1 or reason is None or (listed is None and not dry_run):
        raise BadInput(
            "expected one of --document, --url, --domain, --digest, with --reason and --list; or "
            "--report"
        )
    entry = _entry(*next(iter(named.items())), reason=reason, date=date)
    _show_affected(folder, entry, settings)
    if listed is not None and not dry_run:
        _append(listed, entry, settings)


def _entry(kind: str, value: str, *, reason: str, date: str | None) -> "Withdrawal":
    import datetime as dt

    from lc_assets.formats.lists.withdrawal_lists import Withdrawal

    return Withdrawal.of((kind, value, reason, date or dt.datetime.now(dt.UTC).date().isoformat()))


def _append(path: Path, entry: "Withdrawal", recipe: "Recipe") -> None:
    from lc_assets.formats.lists.withdrawal_lists import append_withdrawal, line_of

    append_withdrawal(path, entry)
    say(f"{path}: appended {line_of(entry)}")
    if not any(Path(name).resolve() == path.resolve() for name in recipe.withdrawn_documents.lists):
        say(
            "the recipe does not name this list: add it to withdrawn_documents.lists or set "
            f"LC_WITHDRAWN={path}"
        )
    say(
        "Next: commit the list; materialize withdrawn_documents, all snapshot_withdrawals, then "
        "what `lc plan` calls out of date"
    )


def _show_affected(lake: "Lake", entry: "Withdrawal", recipe: "Recipe") -> None:
    """Print the documents that an entry matches, and what will be rebuilt."""
    from lc_assets.stages.withdrawal.reporting import affected_by, partitions_to_rebuild
    from lc_assets.stages.withdrawal.withdrawn_documents import STAGE, resolve

    published = (found for stage in STAGE.upstream for found in lake.published(stage).values())
    lines = resolve([entry], {found.name: found for found in published}, recipe)
    if not lines:
        say(
            f"no filtered document matches {entry.kind} {entry.value}; it will "
            "apply to later snapshots"
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


def _show_report(lake: "Lake") -> None:
    """Print withdrawals by date and reason, and the versions that still contain withdrawn
    documents.
    """
    from lc_assets.stages.withdrawal import reporting
    from lc_assets.stages.withdrawal.withdrawn_documents import STAGE, withdrawn_lines

    lines = withdrawn_lines(lake.partition(STAGE.name).require())
    by_reason = reporting.withdrawn_by_reason(lake, lines)
    heading("Withdrawn, by date and reason")
    table(reporting.COLUMNS, [tuple(line.values()) for line in by_reason])
    heading("Versions that contain them")
    table(
        ("version", "documents", "size", "state"),
        [
            (held.name, held.n_documents, sized(held.published.receipt.n_bytes), state)
            for held, state in reporting.versions_holding(lake, lines)
        ],
    )
    served = sum(line["still served"] for line in by_reason)
    say(
        f"{len(lines):,} documents are withdrawn, {served:,} of them are still served"
        + ("" if not served else ": see `lc plan`")
    )
    say("`lc prune --purge` deletes versions that are not published")
