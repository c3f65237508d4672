"""What ``lc trace`` prints: rows, samples, what is known of a document, and where it went."""

from collections import Counter
from typing import TYPE_CHECKING

from lc_assets.cli.printing import facts, heading, say, shortened, table
from lc_assets.formats.redpajama.listings import documents_path
from lc_assets.stages import histories, whereabouts

if TYPE_CHECKING:
    from lc_assets.stages.tracing import Piece, Row, Sample
    from lc_assets.storage.lake import LakeFolder, Published

MOST_SAMPLES = 12
MOST_ROWS = 10
"""Rows and documents that are told one by one; of more, the numbers."""


def show_row(row: "Row") -> None:
    """Print a row's document and where it stands upstream."""
    first, end = row.first_token, row.first_token + row.row_tokens
    facts(
        [
            ("document", row.id),
            ("url", row.url),
            ("crawl segment", row.segment),
            ("upstream", f"{documents_path(row.shard)}, line {row.line:,} (from 0)"),
            ("digest", row.digest),
            ("tokens", f"{first:,} to {end:,} of {row.n_tokens:,}"),
            ("shift", f"{row.shift:,}: the stretch begins in column {row.shift:,}"),
            ("grid", row.grid),
        ]
    )


def show_column(row: "Row", column: int) -> None:
    """Print which token stands in a column."""
    behind = f" + {row.first_token:,}" if row.first_token else ""
    token = row.token_at(column)
    say(f"column {column:,} is token {token:,} of the document: ({column:,} - {row.shift:,}) mod {row.row_tokens:,}{behind}")


def show_history(lake: "LakeFolder", row: "Row") -> None:
    """Print what a row's document was judged by, and who went in its stead."""
    values = histories.values_judged(lake, row)
    if values:
        table(("judged by", "value"), sorted(values.items()))
    else:
        say("the documents that this grid was made of are gone, so what they were judged by is not known")
    removed = histories.went_instead(lake, row.id)
    say(f"{len(removed):,} documents were removed in its stead" + (":" if removed else ""))
    if removed:
        table(("document", "similarity", "why"), [(one.id, one.similarity, one.why) for one in removed[:MOST_ROWS]])


def show_sample(sample: "Sample") -> None:
    """Print what a sample of a mix is made of."""
    say(f"sample {sample.sample:,} of mixes/{sample.mix} is sample {sample.source_sample:,} of {sample.snapshot}")
    say("its last token is only a target")
    lines = [(piece.row.row, f"{piece.start:,}:{piece.stop:,}", _ranges(piece), piece.row.id, piece.row.url) for piece in sample.pieces]
    table(("train row", "columns", "tokens of the document", "document", "url"), lines)


def _ranges(piece: "Piece") -> str:
    return ", then ".join(f"{start:,}:{stop:,}" for start, stop in piece.row.tokens_in(piece.start, piece.stop))


def show_found(found: whereabouts.Found) -> None:
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


def show_rows(lake: "LakeFolder", rows: "list[tuple[Published, Row]]") -> None:
    """Print where some rows stand: one by one when they are few, else their numbers by snapshot and mix, and the first."""
    for found in whereabouts.whereabouts_of(lake, rows[:MOST_ROWS]):
        show_found(found)
    if len(rows) <= MOST_ROWS:
        return
    heading(f"{len(rows):,} rows in all, of {len({row.id for _, row in rows}):,} documents; above stand the first {MOST_ROWS}")
    counts = Counter((row.snapshot, row.split) for _, row in rows)
    samples = samples_by_mix(lake, rows)
    table(("snapshot", "split", "rows"), [(*key, count) for key, count in sorted(counts.items())])
    table(("mix", "samples"), list(samples.items()))


def samples_by_mix(lake: "LakeFolder", rows: "list[tuple[Published, Row]]") -> dict[str, int]:
    """How many samples of each mix take tokens of some rows."""
    mixes, counts = whereabouts.mixes_of(lake), Counter[str]()
    grids = {grid.home: grid for grid, _ in rows}
    for home, grid in grids.items():
        ours = [row for of, row in rows if of.home == home]
        counts.update({mix: len(found) for mix, found in whereabouts.samples_of_rows(mixes, lake, grid, ours).items()})
    return {mix: counts[mix] for mix in mixes}


def show_others(lake: "LakeFolder", ids: list[str]) -> None:
    """Print what became of documents that passed the filter and have no row."""
    if not ids:
        return
    heading(f"{len(ids):,} documents passed the filter and have no row")
    lines = []
    for name in ids[:MOST_ROWS]:
        dropped = histories.why_dropped(lake, name)
        lines.append((name, dropped.stage if dropped else None, ", ".join(reason for reason, _ in dropped.reasons) if dropped else None))
    table(("document", "dropped by", "why"), lines)


def show_dropped(dropped: histories.Dropped) -> None:
    """Print why a document has no row."""
    say(f"{dropped.id} did not become a row: dropped by {dropped.stage}")
    facts([("url", shortened(dropped.url, 200))])
    table(("reason", "value"), dropped.reasons)
    if dropped.instead is not None:
        other, alike, why = dropped.instead
        facts([("in its stead", other), ("similarity", alike), ("why", why)])
