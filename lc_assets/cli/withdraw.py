"""``lc withdraw``: say that something must no longer be served, see what that touches, and what was
taken out.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lc_assets.cli import options
from lc_assets.cli.printing import facts, heading, say, sized, table
from lc_assets.errors import BadInput

if TYPE_CHECKING:
    from lc_assets.formats.withdrawal_lists import Withdrawal
    from lc_assets.lake.lake import Lake
    from lc_assets.lake.versions import Published
    from lc_assets.stages.recipe import Recipe

MOST_DOCUMENTS = 10


def withdraw(
    lake: options.LakePath,
    document: Annotated[
        str | None, typer.Option("--document", "--id", help="A document id.")
    ] = None,
    url: Annotated[str | None, typer.Option("--url", help="A page's address.")] = None,
    domain: Annotated[
        str | None,
        typer.Option("--domain", help="A domain: its pages, and those of all hosts below it."),
    ] = None,
    digest: Annotated[
        str | None,
        typer.Option("--digest", help="Of a page (sha1:...), or of a text (sha256:...)."),
    ] = None,
    reason: Annotated[
        str | None, typer.Option("--reason", help="Why; goes into the list and every report.")
    ] = None,
    date: Annotated[
        str | None, typer.Option("--date", help="YYYY-MM-DD; by default today.")
    ] = None,
    listed: Annotated[
        Path | None, typer.Option("--list", help="The list that the entry is appended to.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what it would touch, and append nothing.")
    ] = False,
    report: Annotated[
        bool,
        typer.Option(
            "--report",
            help="Instead: what is withdrawn, and which versions on the disk hold it still.",
        ),
    ] = False,
    recipe: options.Recipe = None,
    withdrawn: options.Withdrawn = "",
) -> None:
    """Append an entry to a list of withdrawals, and say what it will take out, before anything is
    built.

    One of --document, --url, --domain, --digest, with --reason and --list; or --report. See
    docs/withdrawal.md.

    Example: lc withdraw lake --url https://example.org/page --reason "asked for" --list
        withdrawn.csv
    """
    from lc_assets.lake.bucket_lake import open_lake
    from lc_assets.stages.recipe import read_recipe

    folder, settings = open_lake(lake), read_recipe(recipe, withdrawn=withdrawn)
    given = {"document": document, "url": url, "domain": domain, "digest": digest}
    named = {kind: value for kind, value in given.items() if value is not None}
    if report:
        if named:
            raise BadInput("--report is of all that is withdrawn; leave out what to withdraw")
        show_report(folder)
        return
    if len(named) != 1 or reason is None or (listed is None and not dry_run):
        raise BadInput(
            "wanted one of --document, --url, --domain, --digest, with --reason and --list; or "
            "--report"
        )
    entry = _entry(*next(iter(named.items())), reason=reason, date=date)
    show_touched(folder, entry, settings)
    if listed is not None and not dry_run:
        _append(listed, entry, settings)


def _entry(kind: str, value: str, *, reason: str, date: str | None) -> "Withdrawal":
    import datetime as dt

    from lc_assets.formats.withdrawal_lists import Withdrawal

    return Withdrawal.of((kind, value, reason, date or dt.datetime.now(dt.UTC).date().isoformat()))


def _append(path: Path, entry: "Withdrawal", recipe: "Recipe") -> None:
    from lc_assets.formats.withdrawal_lists import append_withdrawal, line_of

    append_withdrawal(path, entry)
    say(f"{path}: appended {line_of(entry)}")
    if not any(Path(name).resolve() == path.resolve() for name in recipe.withdrawn_documents.lists):
        say(
            "no recipe that was looked at names this list: put it into withdrawn_documents.lists, or "
            f"LC_WITHDRAWN={path}"
        )
    say(
        "Next: commit the list; materialize withdrawn_documents, all snapshot_withdrawals, then "
        "what `lc plan` calls out of date"
    )


def show_touched(lake: "Lake", entry: "Withdrawal", recipe: "Recipe") -> None:
    """Print what an entry finds, and what is made again for it."""
    from lc_assets.stages.withdrawal import touching
    from lc_assets.stages.withdrawal.withdrawn_documents import STAGE, resolve

    inputs: dict[str, Published] = {
        published.name: published
        for stage in STAGE.upstream
        for published in lake.published(stage).values()
    }
    lines = resolve([entry], inputs, recipe)
    if not lines:
        say(
            f"no document that passed the filter is of {entry.kind} {entry.value}; the entry will "
            "find those that come later"
        )
        return
    touched = touching.touch(lake, lines)
    _documents(lines)
    facts(
        [
            (name, value)
            for line in touching.by_reason(touched)
            for name, value in line.items()
            if name not in {"date", "reason"}
        ]
    )
    names = touching.partitions(lake, touched)
    table(("made again",), [(name,) for name in names])
    say(
        f"{len(names):,} partitions; of all others every byte stays"
        if names
        else "none of them is served: nothing will be made again"
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
    """Print what is withdrawn, by date and reason, what was taken out for it, and which versions on
    the disk hold it still.
    """
    from lc_assets.stages.withdrawal import reporting_withdrawals as reporting
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
        "served still",
    )
    heading(
        "Withdrawn, by date and reason; rows and tokens as the versions on the disk still know them"
    )
    table(columns, [tuple(line[column] for column in columns) for line in found.by_reason])
    heading("Versions on the disk that hold them")
    table(
        ("version", "documents", "size", "state"),
        [(held.name, held.n_documents, sized(held.n_bytes), held.state) for held in found.held],
    )
    served = sum(line["served still"] for line in found.by_reason)
    say(
        f"{len(lines):,} documents are withdrawn, {served:,} of them are served still"
        + ("" if not served else ": see `lc plan`")
    )
    say("versions that are not published go with `lc prune --purge`")
