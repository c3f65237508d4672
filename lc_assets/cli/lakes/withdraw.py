"""``lc withdraw``: add an entry to a withdrawal list, show what it affects, and report
withdrawals.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lc_assets.cli import options
from lc_assets.cli.printing import facts, heading, say, sized, table
from lc_assets.errors import BadInput

if TYPE_CHECKING:
    from lc_assets.build.recipe import Recipe
    from lc_assets.formats.lists.withdrawal_lists import Withdrawal
    from lc_assets.lake.lake import Lake
    from lc_assets.lake.versions import Published

MOST_DOCUMENTS = 10


def withdraw(
    lake: options.LakePath,
    document: Annotated[
        str | None, typer.Option("--document", "--id", help="A document id.")
    ] = None,
    url: options.Url = None,
    domain: options.Domain = None,
    digest: options.Digest = None,
    reason: Annotated[
        str | None, typer.Option("--reason", help="The reason, for the list and every report.")
    ] = None,
    date: Annotated[
        str | None, typer.Option("--date", help="YYYY-MM-DD; by default today.")
    ] = None,
    listed: Annotated[
        Path | None, typer.Option("--list", help="The list to append the entry to.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be affected; append nothing.")
    ] = False,
    report: Annotated[
        bool,
        typer.Option(
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
    from lc_assets.cli.lakes.plan import recipe_of_lake
    from lc_assets.lake.bucket_lake import open_lake

    folder, settings = (
        open_lake(lake),
        read_recipe(recipe_of_lake(str(lake), recipe), withdrawn=withdrawn),
    )
    given = {"document": document, "url": url, "domain": domain, "digest": digest}
    named = {kind: value for kind, value in given.items() if value is not None}
    if report:
        if named:
            raise BadInput(
                "--report lists all withdrawals; it takes no --document, --url, "
                "--domain or --digest"
            )
        show_report(folder)
        return
    if len(named) != 1 or reason is None or (listed is None and not dry_run):
        raise BadInput(
            "expected one of --document, --url, --domain, --digest, with --reason and --list; or "
            "--report"
        )
    entry = _entry(*next(iter(named.items())), reason=reason, date=date)
    show_affected(folder, entry, settings)
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


def show_affected(lake: "Lake", entry: "Withdrawal", recipe: "Recipe") -> None:
    """Print the documents that an entry matches, and what will be rebuilt."""
    from lc_assets.stages.withdrawal import affected
    from lc_assets.stages.withdrawal.withdrawn_documents import STAGE, resolve

    inputs: dict[str, Published] = {
        published.name: published
        for stage in STAGE.upstream
        for published in lake.published(stage).values()
    }
    lines = resolve([entry], inputs, recipe)
    if not lines:
        say(
            f"no filtered document matches {entry.kind} {entry.value}; it will "
            "apply to later snapshots"
        )
        return
    found = affected.affected_by(lake, lines)
    _documents(lines)
    facts(
        [
            (name, value)
            for line in affected.by_reason(found)
            for name, value in line.items()
            if name not in {"date", "reason"}
        ]
    )
    names = affected.partitions(lake, found)
    table(("will be rebuilt",), [(name,) for name in names])
    say(
        f"{len(names):,} partitions; all others keep their bytes"
        if names
        else "none of them is served: nothing will be rebuilt"
    )


def _documents(lines: "list[dict[str, Any]]") -> None:
    shown = [
        (line["id"], line["how"], line["for_id"] or None, line["similarity"])
        for line in lines[:MOST_DOCUMENTS]
    ]
    table(("document", "how", "for", "similarity"), shown)
    if len(lines) > MOST_DOCUMENTS:
        say(f"and {len(lines) - MOST_DOCUMENTS:,} more")


def show_report(lake: "Lake") -> None:
    """Print withdrawals by date and reason, and the versions that still contain withdrawn
    documents.
    """
    from lc_assets.stages.withdrawal import report as reporting
    from lc_assets.stages.withdrawal.withdrawn_documents import withdrawn_lines

    lines = withdrawn_lines(lake.partition("withdrawn_documents").require())
    found = reporting.report(lake, lines)
    columns = (
        "date",
        "reason",
        "documents",
        "listed",
        "same digest",
        "near duplicate",
        "rows",
        "tokens",
        "still served",
    )
    heading("Withdrawn, by date and reason; rows and tokens according to the versions on disk")
    table(columns, [tuple(line[column] for column in columns) for line in found.by_reason])
    heading("Versions that contain them")
    table(
        ("version", "documents", "size", "state"),
        [(held.name, held.n_documents, sized(held.n_bytes), held.state) for held in found.held],
    )
    served = sum(line["still served"] for line in found.by_reason)
    say(
        f"{len(lines):,} documents are withdrawn, {served:,} of them are still served"
        + ("" if not served else ": see `lc plan`")
    )
    say("`lc prune --purge` deletes versions that are not published")
