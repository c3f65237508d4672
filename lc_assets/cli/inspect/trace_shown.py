"""What ``lc trace`` prints: rows, samples, what is known of a document, and where it ended up."""

from collections import Counter
from typing import TYPE_CHECKING

from lc_assets.cli.printing import facts, heading, say, shortened, table
from lc_assets.errors import BadInput, Mismatch, NotPublished, Unreachable
from lc_assets.lake.bucket_lake import open_lake
from lc_assets.lake.lake import Lake
from lc_assets.lake.releases import Pin, lake_of_release, pinned_lake
from lc_assets.stages.documents.raw_snapshot import place_in_source
from lc_assets.stages.lineage.characters import characters_of
from lc_assets.stages.lineage.histories import (
    decision_on,
    documents_by,
    filter_values,
    removed_for,
    why_dropped,
)
from lc_assets.stages.lineage.spans import Span, spans_of_packed_row
from lc_assets.stages.lineage.tracing import find_row, row_of_order, sample_of_mix
from lc_assets.stages.lineage.whereabouts import (
    mixes_of,
    packed_by,
    pages_within,
    rows_by,
    samples_of,
    whereabouts_of,
)
from lc_assets.text.links.addresses import Kind
from lc_assets.vocabulary import parse_snapshot

if TYPE_CHECKING:
    from lc_assets.cli.inspect.trace import RowOptions

MOST_SAMPLES = 12
SHOWN_TOKENS = 40
MOST_ROWS = 10
"""Rows and documents that are listed; of further ones, only counts."""


def lake_as_of(url: str, asked: "RowOptions") -> Lake:
    """The lake as pinned by a release, or with one given version of the order, a grid or packed
    rows.
    """
    lake, release, version, snapshot = open_lake(url), asked.release, asked.version, asked.snapshot
    if release is not None and version is not None:
        raise BadInput("a release pins its versions: --release or --version, not both")
    if release is not None:
        return lake_of_release(lake, release)
    if version is None:
        return lake
    if snapshot is None:
        partition = lake.partition("longcrawl")
    else:
        stage = "packed_rows" if asked.packed else "token_grid"
        partition = lake.partition(stage, parse_snapshot(snapshot))
    pin = Pin(version=version, digest=partition.at(version).digest)
    return pinned_lake(lake, {partition.name: pin}, f"--version {version}")


def trace_row(lake: Lake, row: int, split: str, snapshot: str | None, column: int | None) -> None:
    """From a row of the global order, or of one snapshot's grid, to its document."""
    if snapshot is None:
        span = row_of_order(lake, split, row)
        say(
            f"{split} row {row:,} of the global order is {split} row {span.row:,} of "
            f"{span.published.name}"
        )
    else:
        grid = lake.partition("token_grid", snapshot).require()
        span = find_row(lake, grid, split, row)
        say(f"{split} row {row:,} of {grid.name}")
    show_span(lake, span)
    if column is not None:
        _show_column(lake, span, column)
    _show_history(lake, span)


def trace_packed_row(lake: Lake, row: int, split: str, snapshot: str, column: int | None) -> None:
    """From a row of one snapshot's packed rows, or one token of it, to the documents in it."""
    packed = lake.partition("packed_rows", snapshot).require()
    spans = spans_of_packed_row(packed, split, row)
    say(f"{split} row {row:,} of {packed.name}, version {packed.version}")
    lines = [
        (f"{span.row_start:,}:{span.row_stop:,}", token_ranges(span), span.id, span.url)
        for span in spans
    ]
    table(("columns", "tokens of the document", "document", "url"), lines)
    if column is not None:
        ours = (span for span in spans if span.row_start <= column < span.row_stop)
        _show_token(lake, next(ours, spans[-1]), column)


def trace_sample(lake: Lake, mix: str, number: int, position: int | None) -> None:
    """From a sample of a mix, or one token of it, to the documents it takes tokens of."""
    sample = sample_of_mix(lake, mix, number)
    say(
        f"sample {number:,} of blended_mix/{mix} is sample {sample.source_sample:,} of "
        f"{sample.source}"
    )
    say("its last token is only a target")
    lines = [
        (
            piece.span.row,
            f"{piece.start:,}:{piece.stop:,}",
            token_ranges(piece.span, piece.start, piece.stop),
            piece.span.id,
            piece.span.url,
        )
        for piece in sample.pieces
    ]
    table(("train row", "columns", "tokens of the document", "document", "url"), lines)
    if position is not None:
        piece, column = sample.column_of(position)
        say(f"position {position:,} is column {column:,} of train row {piece.span.row:,}")
        _show_token(lake, piece.span, column)


def trace_documents(lake: Lake, kind: Kind, value: str) -> None:
    """From an id, an address, a domain or a digest to all rows of its documents, and to the outcome
    of the others.

    Raises:
        NotPublished: when nothing published knows such a document.
    """
    rows, packed = rows_by(lake, kind, value), packed_by(lake, kind, value)
    _show_spans(lake, rows)
    if kind == "document" and rows:
        _show_history(lake, rows[0])
    _show_spans(lake, packed)
    if kind == "document":
        if not rows:
            _show_dropped(lake, value, must_be_known=not packed)
        _show_decision(lake, value)
        return
    filtered = {line["id"] for line in documents_by(lake, kind, value)}
    if not rows and not filtered and not packed:
        raise NotPublished(
            f"{value}: no filtered document has this {kind}; for one that was not, give its --id"
        )
    _show_others(lake, sorted(filtered - {row.id for row in rows}))


def show_span(lake: Lake, span: Span) -> None:
    """Print a span's document and where it is in its source."""
    of_grid = [
        ("crawl segment", span.segment),
        ("shift", f"{span.shift:,}: the stretch begins in column {span.shift:,}"),
    ]
    columns = f"{span.row_start:,} to {span.row_stop:,} of {span.split} row {span.row:,}"
    facts(
        [
            ("document", span.id),
            ("url", span.url),
            ("upstream", place_in_source(lake, span.id)),
            ("digest", span.digest),
            ("tokens", f"{span.document_start:,} to {span.document_stop:,} of {span.n_tokens:,}"),
            *([("columns", columns)] if span.is_packed else of_grid),
            ("version", span.published.home),
        ]
    )


def _show_column(lake: Lake, span: Span, column: int) -> None:
    token = span.token_at(column)
    ended = ": end of text" if token == span.n_tokens else ""
    place = f"{column:,} - {span.row_start + span.shift:,}"
    if span.shift:
        place = f"({place}) mod {span.row_stop - span.row_start:,}"
    say(
        f"column {column:,} is token {token:,} of the document{ended}: {span.document_start:,} + "
        f"{place}"
    )
    try:
        found = None if ended else characters_of(lake, span, column)
    except (BadInput, NotPublished, Mismatch, Unreachable) as error:
        say(f"its characters are not known: {error}")
        return
    if found is not None:
        parts = " and ".join(f"{start:,} to {stop:,}" for start, stop in found.parts)
        say(f"characters {parts} of {found.id}: {found.text!a}")


def _show_token(lake: Lake, span: Span, column: int) -> None:
    if not span.id and span.row_start <= column < span.row_stop:
        say(f"column {column:,} is padding")
        return
    span.token_at(column)
    show_span(lake, span)
    _show_column(lake, span, column)
    if span.is_packed:
        _show_pages(lake, span)
    else:
        _show_history(lake, span)


def _show_pages(lake: Lake, span: Span) -> None:
    pages = pages_within(lake, span)
    if pages:
        say(f"a LongPack document of {len(pages):,} pages:")
        lines = [
            (page["role"], f"{page['start']:,}:{page['stop']:,}", page["id"], page["url"])
            for page in pages[:MOST_ROWS]
        ]
        table(("page", "characters", "document", "url"), lines)


def _show_history(lake: Lake, row: Span) -> None:
    """Print the values used to filter a row's document, and the documents removed as its
    duplicates.
    """
    values = filter_values(lake, row)
    if values:
        table(("filtered by", "value"), sorted(values.items()))
    else:
        say(
            "the documents that this grid was made of are gone, so the values that they were "
            "filtered by are not known"
        )
    removed = removed_for(lake, row.id)
    say(f"{len(removed):,} documents were removed as its duplicates" + (":" if removed else ""))
    if removed:
        columns = ("id", "similarity", "why")
        lines = [tuple(line[name] for name in columns) for line in removed[:MOST_ROWS]]
        table(("document", *columns[1:]), lines)


def token_ranges(span: Span, start: int | None = None, stop: int | None = None) -> str:
    """The tokens of its document that a span, or columns of it, are; ``padding`` if none."""
    ranges = span.tokens_in(
        span.row_start if start is None else start, span.row_stop if stop is None else stop
    )
    return ", then ".join(f"{first:,}:{last:,}" for first, last in ranges) or "padding"


def _show_spans(lake: Lake, spans: list[Span]) -> None:
    """Print where spans ended up: all if they are few, else the first, and counts by snapshot and
    mix.
    """
    for found in whereabouts_of(lake, spans[:MOST_ROWS]) if spans else ():
        span, position = found.span, found.position
        heading(f"{span.split} row {span.row:,} of {span.published.name}")
        show_span(lake, span)
        if span.is_packed:
            _show_pages(lake, span)
        elif position is None:
            unknown = "the order was made from another version of this grid, or there is no order"
            facts([("position", f"none: {unknown}")])
        else:
            facts([("position", f"{position:,} (in the global order, {span.split})")])
        facts((f"blended_mix/{mix}", _samples(of)) for mix, of in found.samples.items())
    if len(spans) > MOST_ROWS:
        what = "spans of packed rows" if spans[0].is_packed else "rows"
        heading(
            f"{len(spans):,} {what} in all, of {len({span.id for span in spans}):,} documents; the "
            f"first {MOST_ROWS} are above"
        )
        counts = sorted(Counter((span.snapshot, span.split) for span in spans).items())
        table(("snapshot", "split", what), [(*key, count) for key, count in counts])
        samples = samples_of(lake, mixes_of(lake), spans)
        table(("mix", "samples"), [(mix, len(of)) for mix, of in samples.items()])


def _samples(samples: tuple[int, ...]) -> str:
    head = ", ".join(f"{number:,}" for number in samples[:MOST_SAMPLES])
    more = ", …" if len(samples) > MOST_SAMPLES else ""
    return f"{len(samples):,} samples" + (f": {head}{more}" if samples else "")


def _show_others(lake: Lake, ids: list[str]) -> None:
    """Print the outcome of documents that passed the filter and have no row."""
    if ids:
        heading(f"{len(ids):,} documents passed the filter and have no row")
        found = [(name, why_dropped(lake, name)) for name in ids[:MOST_ROWS]]
        lines = [
            (name, dropped.stage, ", ".join(reason for reason, _ in dropped.reasons))
            if dropped
            else (name, None, None)
            for name, dropped in found
        ]
        table(("document", "dropped by", "why"), lines)


def _show_dropped(lake: Lake, identity: str, *, must_be_known: bool) -> None:
    """Print why a document has no row."""
    dropped = why_dropped(lake, identity)
    if dropped is None:
        if must_be_known:
            raise NotPublished(
                f"{identity}: neither a row nor among the dropped documents of what is published "
                f"in {lake.url}"
            )
        return
    say(f"{dropped.id} did not become a row: dropped by {dropped.stage}")
    facts([("url", shortened(dropped.url, 200))])
    table(("reason", "value"), dropped.reasons)


def _show_decision(lake: Lake, identity: str) -> None:
    """Print what was decided on a document that passed the filter."""
    if found := decision_on(lake, identity):
        names = ("side", "text_digest", "tokenized_digest", "first_seen", "last_seen")
        facts((name.replace("_", " "), found[name]) for name in names)
        reasons = ", ".join(found["reasons"])
        facts([("decision", f"removed: {reasons}" if reasons else "stays")])
    if found.get("reason"):
        instead = found["kept_id"] or found["for_id"]
        facts([("removed for", instead), *((name, found[name]) for name in ("similarity", "why"))])
