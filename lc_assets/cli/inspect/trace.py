"""``lc trace``: from a row or a sample to its document upstream, and from a document to all of
them.
"""

from typing import TYPE_CHECKING, Annotated

import typer

from lc_assets.cli import options
from lc_assets.cli.printing import say
from lc_assets.errors import BadInput, NotPublished

if TYPE_CHECKING:
    from lc_assets.lake.lake import Lake
    from lc_assets.text.links.addresses import Kind

Release = Annotated[
    str | None,
    typer.Option("--release", help="Use this release instead of what is published now."),
]


def trace(
    lake: options.LakePath,
    row: Annotated[
        int | None,
        typer.Option("--row", help="A row of the global order; of one grid with --snapshot."),
    ] = None,
    snapshot: Annotated[
        str | None, typer.Option("--snapshot", help="With --row: the snapshot of the grid.")
    ] = None,
    packed: Annotated[
        bool, typer.Option("--packed", help="With --row and --snapshot: a row of its packed rows.")
    ] = False,
    split: options.Split = "train",
    column: Annotated[
        int | None, typer.Option("--column", help="With --row: a token of the row.")
    ] = None,
    version: Annotated[
        str | None,
        typer.Option(
            "--version", help="With --row: a version of the order, of the grid, or of packed rows."
        ),
    ] = None,
    release: Release = None,
    mix: Annotated[str | None, typer.Option("--mix", help="A mix; needs --sample.")] = None,
    sample: Annotated[
        int | None, typer.Option("--sample", help="With --mix: a sample of it.")
    ] = None,
    position: Annotated[
        int | None, typer.Option("--position", help="With --sample: a token of the sample.")
    ] = None,
    identity: Annotated[
        str | None,
        typer.Option(
            "--id",
            help="A document id, such as 2023-06/0000/en_head.json.gz/17 or books/part-0/line-17.",
        ),
    ] = None,
    url: options.Url = None,
    domain: options.Domain = None,
    digest: options.Digest = None,
) -> None:
    """Follow a row or a sample to its document upstream, or documents to their rows, positions and
    samples.

    One of --row, --mix with --sample, --id, --url, --domain, --digest.

    Example: lc trace lake --row 0 --column 1000
    """
    _require_one(row=row, mix=mix, id=identity, url=url, domain=domain, digest=digest)
    if packed and (row is None or snapshot is None):
        raise BadInput("--packed needs --row and --snapshot: packed rows belong to one snapshot")
    folder = lake_as_of(lake, release, version=version, snapshot=snapshot, packed=packed)
    if row is not None and packed:
        trace_packed_row(folder, row, split=split, snapshot=str(snapshot), column=column)
    elif row is not None:
        trace_row(folder, row, split=split, snapshot=snapshot, column=column)
    elif mix is not None:
        trace_sample(folder, mix, sample, position)
    elif identity is not None:
        trace_id(folder, identity)
    else:
        given: tuple[tuple[Kind, str | None], ...] = (
            ("url", url),
            ("domain", domain),
            ("digest", digest),
        )
        (kind, value), *_ = ((kind, value) for kind, value in given if value is not None)
        trace_documents(folder, kind, value)


def _require_one(**asked: object) -> None:
    given = [f"--{name}" for name, value in asked.items() if value is not None]
    if len(given) != 1:
        raise BadInput(
            f"expected one of {', '.join(f'--{name}' for name in asked)}, got "
            f"{' and '.join(given) or 'none'}"
        )


def lake_as_of(
    lake: str,
    release: str | None,
    *,
    version: str | None = None,
    snapshot: str | None = None,
    packed: bool = False,
) -> "Lake":
    """The lake as pinned by a release, or with one given version of the order, a grid or packed
    rows.
    """
    from lc_assets.lake.bucket_lake import open_lake
    from lc_assets.lake.lake import GLOBAL
    from lc_assets.lake.releases import Pin, lake_of_release, pinned_lake
    from lc_assets.vocabulary import parse_snapshot

    folder = open_lake(lake)
    if release is not None and version is not None:
        raise BadInput("a release pins its versions: --release or --version, not both")
    if release is not None:
        return lake_of_release(folder, release)
    if version is None:
        return folder
    rows = "packed_rows" if packed else "token_grid"
    stage, key = ("longcrawl", GLOBAL) if snapshot is None else (rows, parse_snapshot(snapshot))
    pin = Pin(version=version, digest=folder.partition(stage, key).at(version).digest)
    return pinned_lake(folder, {f"{stage}/{key}": pin}, f"--version {version}")


def trace_row(
    lake: "Lake", row: int, *, split: str, snapshot: str | None, column: int | None
) -> None:
    """From a row of the global order, or of one snapshot's grid, to its document."""
    from lc_assets.cli.inspect import trace_shown
    from lc_assets.stages.lineage import tracing
    from lc_assets.vocabulary import parse_snapshot

    if snapshot is None:
        found = tracing.row_of_order(lake, split, row)
        say(
            f"{split} row {row:,} of the global order is {split} row {found.row:,} of "
            f"token_grid/{found.snapshot}"
        )
    else:
        found = tracing.find_row(
            lake, lake.partition("token_grid", parse_snapshot(snapshot)).require(), split, row
        )
        say(f"{split} row {row:,} of token_grid/{found.snapshot}")
    trace_shown.show_row(lake, found)
    if column is not None:
        trace_shown.show_column(found, column)
    trace_shown.show_history(lake, found)


def trace_packed_row(
    lake: "Lake", row: int, *, split: str, snapshot: str, column: int | None
) -> None:
    """From a row of one snapshot's packed rows, or one token of it, to the documents in it."""
    from lc_assets.cli.inspect import trace_shown
    from lc_assets.stages.lineage.packed_tracing import stretches_of_row
    from lc_assets.vocabulary import parse_snapshot

    packed = lake.partition("packed_rows", parse_snapshot(snapshot)).require()
    found = stretches_of_row(packed, split, row)
    say(f"{split} row {row:,} of {packed.name}, version {packed.version}")
    trace_shown.show_stretches(found)
    if column is not None:
        of_column = next(
            (stretch for stretch in found if stretch.row_start <= column < stretch.row_stop),
            found[-1],
        )
        trace_shown.show_token(lake, of_column, column)


def trace_sample(lake: "Lake", mix: str, sample: int | None, position: int | None) -> None:
    """From a sample of a mix, or one token of it, to the documents it takes tokens of."""
    from lc_assets.cli.inspect import trace_shown
    from lc_assets.stages.lineage import tracing

    if sample is None:
        raise BadInput("--mix needs --sample: the number of a sample, from 0")
    found = tracing.sample_of_mix(lake, mix, sample)
    trace_shown.show_sample(found)
    if position is not None:
        piece, column = found.column_of(position)
        say(f"position {position:,} is column {column:,} of train row {piece.row.row:,}")
        trace_shown.show_token(lake, piece.row, column)


def trace_id(lake: "Lake", identity: str) -> None:
    """From a document id to its rows, or to the reason why there is none."""
    from lc_assets.cli.inspect import trace_shown
    from lc_assets.stages.lineage import histories, packed_whereabouts, whereabouts

    found, packed = (
        whereabouts.find_id(lake, identity),
        packed_whereabouts.packed_by(lake, "document", identity),
    )
    for one in found:
        trace_shown.show_found(lake, one)
    if found:
        trace_shown.show_history(lake, found[0].row)
    trace_shown.show_packed(lake, packed)
    if found:
        return
    dropped = histories.why_dropped(lake, identity)
    if dropped is None and not packed:
        raise NotPublished(
            f"{identity}: neither a row nor among the dropped documents of what is published in "
            f"{lake.url}"
        )
    if dropped is not None:
        trace_shown.show_dropped(dropped)


def trace_documents(lake: "Lake", kind: "Kind", value: str) -> None:
    """From an address, a domain or a digest to all rows of its documents, and to what became of the
    others.
    """
    from lc_assets.cli.inspect import trace_shown
    from lc_assets.stages.lineage import histories, packed_whereabouts, whereabouts

    rows, packed = (
        whereabouts.rows_by(lake, kind, value),
        packed_whereabouts.packed_by(lake, kind, value),
    )
    filtered = {line["id"] for line in histories.documents_by(lake, kind, value)}
    if not rows and not filtered and not packed:
        raise NotPublished(
            f"{value}: no filtered document has this {kind}; for one that was not, give its --id"
        )
    trace_shown.show_rows(lake, rows)
    trace_shown.show_packed(lake, packed)
    trace_shown.show_others(lake, sorted(filtered - {row.id for _, row in rows}))
