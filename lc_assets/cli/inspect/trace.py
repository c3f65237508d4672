"""``lc trace``: from a row or a sample to its document upstream, and from a document to all of
them.
"""

from typing import Annotated

from typer import Option

from lc_assets.cli import options
from lc_assets.errors import BadInput
from lc_assets.records import record


@record
class RowOptions:
    """Which row, of what."""

    row: Annotated[
        int | None,
        Option("--row", help="A row of the global order; of one grid with --snapshot."),
    ] = None
    snapshot: Annotated[
        str | None, Option("--snapshot", help="With --row: the snapshot of the grid.")
    ] = None
    packed: Annotated[
        bool, Option("--packed", help="With --row and --snapshot: a row of its packed rows.")
    ] = False
    split: options.Split = "train"
    column: Annotated[int | None, Option("--column", help="With --row: a token of the row.")] = None
    version: Annotated[
        str | None,
        Option(
            "--version", help="With --row: a version of the order, of the grid, or of packed rows."
        ),
    ] = None
    release: Annotated[
        str | None,
        Option("--release", help="Use this release instead of what is published now."),
    ] = None


def trace(
    lake: options.LakePath,
    of_row: RowOptions,
    documents: options.DocumentOptions,
    mix: Annotated[str | None, Option(help="A mix; needs --sample.")] = None,
    sample: Annotated[int | None, Option(help="With --mix: a sample of it.")] = None,
    position: Annotated[int | None, Option(help="With --sample: a token of the sample.")] = None,
) -> None:
    """Follow a row or a sample to its document upstream, or documents to their rows, positions and
    samples.

    One of --row, --mix with --sample, --id, --url, --domain, --digest.

    Example: lc trace lake --row 0 --column 1000
    """
    from lc_assets.cli.inspect import trace_shown
    from lc_assets.vocabulary import parse_snapshot

    row, snapshot = of_row.row, of_row.snapshot
    named = documents.named()
    given = {"--row": row is not None, "--mix": mix is not None} | {
        f"--{'id' if kind == 'document' else kind}": kind in named
        for kind in ("document", "url", "domain", "digest")
    }
    if sum(given.values()) != 1:
        raise BadInput(
            f"expected one of {', '.join(given)}, got "
            f"{' and '.join(name for name in given if given[name]) or 'none'}"
        )
    if of_row.packed and (row is None or snapshot is None):
        raise BadInput("--packed needs --row and --snapshot: packed rows belong to one snapshot")
    found = trace_shown.lake_as_of(
        lake,
        release=of_row.release,
        version=of_row.version,
        snapshot=snapshot,
        packed=of_row.packed,
    )
    if row is not None and of_row.packed:
        key = parse_snapshot(str(snapshot))
        trace_shown.trace_packed_row(found, row, of_row.split, key, of_row.column)
    elif row is not None:
        one = None if snapshot is None else parse_snapshot(snapshot)
        trace_shown.trace_row(found, row, of_row.split, one, of_row.column)
    elif mix is not None:
        if sample is None:
            raise BadInput("--mix needs --sample: the number of a sample, from 0")
        trace_shown.trace_sample(found, mix, sample, position)
    else:
        trace_shown.trace_documents(found, *next(iter(named.items())))
