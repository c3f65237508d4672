"""What ``lc trace`` prints: rows, samples, what is known of a document, and where it ended up."""

from collections import Counter
from typing import TYPE_CHECKING

from lc_assets.cli.printing import facts, heading, say, shortened, table
from lc_assets.stages.documents.raw_snapshot import place_in_source
from lc_assets.stages.lineage import histories, packed_whereabouts, whereabouts
from lc_assets.stages.lineage.packed_tracing import Stretch

if TYPE_CHECKING:
    from lc_assets.lake.lake import Lake
    from lc_assets.lake.versions import Published
    from lc_assets.stages.lineage.tracing import Piece, Row, Sample

MOST_SAMPLES = 12
MOST_ROWS = 10
"""Rows and documents that are listed; of more, only counts."""


def show_row(lake: "Lake", row: "Row") -> None:
    """Print a row's document and where it is in its source."""
    first, end = row.first_token, row.first_token + row.row_tokens
    facts(
        [
            ("document", row.id),
            ("url", row.url),
            ("crawl segment", row.segment),
            ("upstream", place_in_source(lake, row.id)),
            ("digest", row.digest),
            ("tokens", f"{first:,} to {end:,} of {row.n_tokens:,}"),
            ("shift", f"{row.shift:,}: the stretch begins in column {row.shift:,}"),
            ("grid", row.grid),
        ]
    )


def show_column(row: "Row", column: int) -> None:
    """Print which token is in a column."""
    behind = f" + {row.first_token:,}" if row.first_token else ""
    token = row.token_at(column)
    say(
        f"column {column:,} is token {token:,} of the document: ({column:,} - {row.shift:,}) mod "
        f"{row.row_tokens:,}{behind}"
    )


def show_token(lake: "Lake", row: "Row | Stretch", column: int) -> None:
    """Print the document of the token in a column of a row or packed row, and what is known of
    it.
    """
    if isinstance(row, Stretch):
        show_token_of_stretch(lake, row, column)
        return
    show_row(lake, row)
    show_column(row, column)
    show_history(lake, row)


def show_token_of_stretch(lake: "Lake", stretch: Stretch, column: int) -> None:
    """Print the document of the token in a column of a packed row, and the document's pages."""
    token = stretch.token_at(column)
    show_stretch(lake, stretch)
    ended = ": end of text" if token == stretch.n_tokens else ""
    say(
        f"column {column:,} is token {token:,} of the document{ended}: {stretch.document_start:,} "
        f"+ {column:,} - {stretch.row_start:,}"
    )
    show_pages(lake, stretch)


def show_stretch(lake: "Lake", stretch: Stretch) -> None:
    """Print a stretch of a packed row and where its document is in its source."""
    facts(
        [
            ("document", stretch.id),
            ("url", stretch.url),
            ("upstream", place_in_source(lake, stretch.id)),
            ("digest", stretch.digest),
            ("tokens", f"{_range(stretch)} of {stretch.n_tokens:,}"),
            (
                "columns",
                (
                    f"{stretch.row_start:,} to {stretch.row_stop:,} of {stretch.split} row "
                    f"{stretch.row:,} of packed_rows/{stretch.snapshot}"
                ),
            ),
            ("version", stretch.packed),
        ]
    )


def show_stretches(found: "list[Stretch]") -> None:
    """Print the spans of a packed row."""
    lines = [
        (
            f"{one.row_start:,}:{one.row_stop:,}",
            _range(one) if one.id else "padding",
            one.id,
            one.url,
        )
        for one in found
    ]
    table(("columns", "tokens of the document", "document", "url"), lines)


def show_pages(lake: "Lake", stretch: Stretch) -> None:
    """Print the pages of a LongPack document."""
    pages = packed_whereabouts.pages_within(lake, stretch)
    if pages:
        say(f"a document of LongPack's, of {len(pages):,} pages:")
        lines = [
            (page.role, f"{page.start:,}:{page.stop:,}", page.id, page.url)
            for page in pages[:MOST_ROWS]
        ]
        table(("page", "characters", "document", "url"), lines)


def show_packed(lake: "Lake", found: "list[tuple[Published, Stretch]]") -> None:
    """Print the spans of documents in packed rows: all if they are few, else the first and the
    count.
    """
    mixes = whereabouts.mixes_of(lake) if found else {}
    for packed, stretch in found[:MOST_ROWS]:
        heading(f"{stretch.split} row {stretch.row:,} of packed_rows/{stretch.snapshot}")
        show_stretch(lake, stretch)
        show_pages(lake, stretch)
        for mix, samples in packed_whereabouts.samples_of_stretch(
            lake, mixes, packed, stretch
        ).items():
            facts([(f"blended_mix/{mix}", _samples(samples))])
    if len(found) > MOST_ROWS:
        documents = {stretch.id for _, stretch in found}
        heading(
            f"{len(found):,} stretches of packed rows in all, of {len(documents):,} documents; "
            f"above stand the first {MOST_ROWS}"
        )


def _range(stretch: Stretch) -> str:
    return (
        f"{stretch.document_start:,} to "
        f"{stretch.document_start + stretch.row_stop - stretch.row_start:,}"
    )


def show_history(lake: "Lake", row: "Row") -> None:
    """Print the values that a row's document was filtered by, and the documents removed as its
    duplicates.
    """
    values = histories.values_judged(lake, row)
    if values:
        table(("judged by", "value"), sorted(values.items()))
    else:
        say(
            "the documents that this grid was made of are gone, so what they were judged by is "
            "not known"
        )
    removed = histories.went_instead(lake, row.id)
    say(f"{len(removed):,} documents were removed as its duplicates" + (":" if removed else ""))
    if removed:
        table(
            ("document", "similarity", "why"),
            [(one.id, one.similarity, one.why) for one in removed[:MOST_ROWS]],
        )


def show_sample(sample: "Sample") -> None:
    """Print the pieces of a sample of a mix."""
    say(
        f"sample {sample.sample:,} of blended_mix/{sample.mix} is sample {sample.source_sample:,} "
        "of "
        f"{sample.snapshot}"
    )
    say("its last token is only a target")
    lines = [
        (
            piece.row.row,
            f"{piece.start:,}:{piece.stop:,}",
            _ranges(piece),
            piece.row.id,
            piece.row.url,
        )
        for piece in sample.pieces
    ]
    table(("train row", "columns", "tokens of the document", "document", "url"), lines)


def _ranges(piece: "Piece") -> str:
    return (
        ", then ".join(
            f"{start:,}:{stop:,}" for start, stop in piece.row.tokens_in(piece.start, piece.stop)
        )
        or "padding"
    )


def show_found(lake: "Lake", found: whereabouts.Found) -> None:
    """Print where a document ended up."""
    row = found.row
    heading(f"{row.split} row {row.row:,} of token_grid/{row.snapshot}")
    show_row(lake, row)
    position = (
        "none: the order was made from another version of this grid, or there is no order"
        if found.position is None
        else f"{found.position:,}"
    )
    facts(
        [
            (
                "position",
                f"{position} (in the global order, {row.split})"
                if found.position is not None
                else position,
            )
        ]
    )
    for mix, samples in found.samples.items():
        facts([(f"blended_mix/{mix}", _samples(samples))])


def _samples(samples: tuple[int, ...]) -> str:
    head = ", ".join(f"{number:,}" for number in samples[:MOST_SAMPLES])
    return f"{len(samples):,} samples" + (
        f": {head}{', …' if len(samples) > MOST_SAMPLES else ''}" if samples else ""
    )


def show_rows(lake: "Lake", rows: "list[tuple[Published, Row]]") -> None:
    """Print the positions of rows: all if they are few, else counts by snapshot and mix, and the
    first.
    """
    for found in whereabouts.whereabouts_of(lake, rows[:MOST_ROWS]):
        show_found(lake, found)
    if len(rows) <= MOST_ROWS:
        return
    heading(
        f"{len(rows):,} rows in all, of {len({row.id for _, row in rows}):,} documents; above "
        f"stand the first {MOST_ROWS}"
    )
    counts = Counter((row.snapshot, row.split) for _, row in rows)
    samples = samples_by_mix(lake, rows)
    table(("snapshot", "split", "rows"), [(*key, count) for key, count in sorted(counts.items())])
    table(("mix", "samples"), list(samples.items()))


def samples_by_mix(lake: "Lake", rows: "list[tuple[Published, Row]]") -> dict[str, int]:
    """How many samples of each mix take tokens of some rows."""
    mixes, counts = whereabouts.mixes_of(lake), Counter[str]()
    grids = {grid.home: grid for grid, _ in rows}
    for home, grid in grids.items():
        ours = [row for of, row in rows if of.home == home]
        counts.update(
            {
                mix: len(found)
                for mix, found in whereabouts.samples_of_rows(mixes, lake, grid, ours).items()
            }
        )
    return {mix: counts[mix] for mix in mixes}


def show_others(lake: "Lake", ids: list[str]) -> None:
    """Print what became of documents that passed the filter and have no row."""
    if not ids:
        return
    heading(f"{len(ids):,} documents passed the filter and have no row")
    lines = []
    for name in ids[:MOST_ROWS]:
        dropped = histories.why_dropped(lake, name)
        lines.append(
            (
                name,
                dropped.stage if dropped else None,
                ", ".join(reason for reason, _ in dropped.reasons) if dropped else None,
            )
        )
    table(("document", "dropped by", "why"), lines)


def show_dropped(dropped: histories.Dropped) -> None:
    """Print why a document has no row."""
    say(f"{dropped.id} did not become a row: dropped by {dropped.stage}")
    facts([("url", shortened(dropped.url, 200))])
    table(("reason", "value"), dropped.reasons)
    if dropped.instead is not None:
        other, alike, why = dropped.instead
        facts([("removed for", other), ("similarity", alike), ("why", why)])
