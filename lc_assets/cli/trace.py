"""``lc trace``: from a row or a sample to its document upstream, and from a document to all of them."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lc_assets.cli import options
from lc_assets.cli.printing import facts, heading, say, shortened, table
from lc_assets.errors import BadInput, NotPublished

if TYPE_CHECKING:
    from lc_assets.stages.tracing import Piece, Row, Sample
    from lc_assets.stages.whereabouts import Dropped, Found
    from lc_assets.storage.lake import LakeFolder

MOST_SAMPLES = 12


def trace(
    lake: Annotated[Path, typer.Argument(envvar="LC_ROOT", help="The lake.")],
    row: Annotated[int | None, typer.Option("--row", help="A row of the global order; of one grid with --snapshot.")] = None,
    snapshot: Annotated[str | None, typer.Option("--snapshot", help="With --row: the snapshot whose grid is meant.")] = None,
    split: options.Split = "train",
    column: Annotated[int | None, typer.Option("--column", help="With --row: a token of the row.")] = None,
    mix: Annotated[str | None, typer.Option("--mix", help="A mix; wants --sample.")] = None,
    sample: Annotated[int | None, typer.Option("--sample", help="With --mix: a sample of it.")] = None,
    identity: Annotated[str | None, typer.Option("--id", help="A document id, such as 2023-06/0000/en_head.json.gz/17.")] = None,
    url: Annotated[str | None, typer.Option("--url", help="A page's address.")] = None,
) -> None:
    """Follow a row or a sample to its document upstream, or a document to its rows, positions and samples.

    One of --row, --mix with --sample, --id, --url.

    Example: lc trace lake --row 0 --column 1000
    """
    from lc_assets.storage.lake import LakeFolder

    _require_one(row=row, mix=mix, id=identity, url=url)
    folder = LakeFolder(lake)
    if row is not None:
        trace_row(folder, row, split=split, snapshot=snapshot, column=column)
    elif mix is not None:
        trace_sample(folder, mix, sample)
    elif identity is not None:
        trace_id(folder, identity)
    elif url is not None:
        trace_url(folder, url)


def _require_one(**asked: object) -> None:
    given = [f"--{name}" for name, value in asked.items() if value is not None]
    if len(given) != 1:
        raise BadInput(f"wanted one of {', '.join(f'--{name}' for name in asked)}, got {' and '.join(given) or 'none'}")


def trace_row(lake: "LakeFolder", row: int, *, split: str, snapshot: str | None, column: int | None) -> None:
    """From a row of the global order, or of one snapshot's grid, to its document."""
    from lc_assets.stages import tracing
    from lc_assets.vocabulary import parse_snapshot

    if snapshot is None:
        found = tracing.row_of_order(lake, split, row)
        say(f"{split} row {row:,} of the global order is {split} row {found.row:,} of grid/{found.snapshot}")
    else:
        found = tracing.row_of_grid(lake.place("grid", parse_snapshot(snapshot)).require(), split, row)
        say(f"{split} row {row:,} of grid/{found.snapshot}")
    show_row(found)
    if column is not None:
        token = found.token_at(column)
        say(f"column {column:,} is token {token:,} of the document: ({column:,} - {found.shift:,}) mod {found.row_tokens:,}")


def trace_sample(lake: "LakeFolder", mix: str, sample: int | None) -> None:
    """From a sample of a mix to the documents it takes tokens of."""
    from lc_assets.stages import tracing

    if sample is None:
        raise BadInput("--mix wants --sample too: the number of a sample, from 0")
    show_sample(tracing.sample_of_mix(lake, mix, sample))


def trace_id(lake: "LakeFolder", identity: str) -> None:
    """From a document id to its row, or to the reason why there is none."""
    from lc_assets.stages import whereabouts

    found = whereabouts.find_id(lake, identity)
    for one in found:
        show_found(one)
    if not found:
        dropped = whereabouts.why_dropped(lake, identity)
        if dropped is None:
            raise NotPublished(f"{identity}: neither a row nor among the dropped documents of what is published in {lake.root}")
        show_dropped(dropped)


def trace_url(lake: "LakeFolder", url: str) -> None:
    """From an address to all its rows."""
    from lc_assets.stages import whereabouts

    found = whereabouts.find_url(lake, url)
    if not found:
        raise NotPublished(f"{url}: no row of a published grid is of this address; for a dropped document give its --id")
    for one in found:
        show_found(one)


def show_row(row: "Row") -> None:
    """Print a row's document and where it stands upstream."""
    from lc_assets.formats.redpajama.listings import documents_path

    facts(
        [
            ("document", row.id),
            ("url", row.url),
            ("upstream", f"{documents_path(row.shard)}, line {row.line:,} (from 0)"),
            ("digest", row.digest),
            ("tokens", f"0 to {row.row_tokens:,} of {row.n_tokens:,}"),
            ("shift", f"{row.shift:,}: the document begins in column {row.shift:,}"),
            ("grid", row.grid),
        ]
    )


def show_sample(sample: "Sample") -> None:
    """Print what a sample of a mix is made of."""
    say(f"sample {sample.sample:,} of mixes/{sample.mix} is sample {sample.source_sample:,} of {sample.snapshot}")
    say("its last token is only a target")
    lines = [(piece.row.row, f"{piece.start:,}:{piece.stop:,}", _ranges(piece), piece.row.id, piece.row.url) for piece in sample.pieces]
    table(("train row", "columns", "tokens of the document", "document", "url"), lines)


def _ranges(piece: "Piece") -> str:
    return ", then ".join(f"{start:,}:{stop:,}" for start, stop in piece.row.tokens_in(piece.start, piece.stop))


def show_found(found: "Found") -> None:
    """Print where a document went."""
    row = found.row
    heading(f"{row.split} row {row.row:,} of grid/{row.snapshot}")
    show_row(row)
    position = (
        "none: the order was made from another version of this grid, or there is no order"
        if found.position is None
        else f"{found.position:,}"
    )
    facts([("position", f"{position} (in the global order, {row.split})" if found.position is not None else position)])
    for mix, samples in found.samples.items():
        facts([(f"mixes/{mix}", _samples(samples))])


def _samples(samples: tuple[int, ...]) -> str:
    head = ", ".join(f"{number:,}" for number in samples[:MOST_SAMPLES])
    return f"{len(samples):,} samples" + (f": {head}{', …' if len(samples) > MOST_SAMPLES else ''}" if samples else "")


def show_dropped(dropped: "Dropped") -> None:
    """Print why a document has no row."""
    say(f"{dropped.id} did not become a row: dropped by {dropped.stage}")
    facts([("url", shortened(dropped.url, 200))])
    table(("reason", "value"), dropped.reasons)
    if dropped.instead is not None:
        other, alike, why = dropped.instead
        facts([("in its stead", other), ("similarity", alike), ("why", why)])
