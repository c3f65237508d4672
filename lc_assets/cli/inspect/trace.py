"""``lc trace``: from a row, a sample or a step of a launch to its documents upstream, and from a
document to all of them.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from typer import Option

from lc_assets.cli import options
from lc_assets.errors import BadInput
from lc_assets.records import record


@record
class RowOptions:
    """Which row, of what.

    Attributes:
        row: a row of the global order; of one grid with --snapshot.
        snapshot: with --row: the snapshot of the grid.
        packed: with --row and --snapshot: a row of its packed rows.
        column: with --row: a token of the row.
        version: with --row: a version of the order, of the grid, or of packed rows.
        release: use this release instead of what is published now.
    """

    row: int | None = None
    snapshot: str | None = None
    packed: bool = False
    split: options.Split = "train"
    column: int | None = None
    version: str | None = None
    release: str | None = None


@record
class StepOptions:
    """Which step of which launch, or of which loader.

    Attributes:
        launch: file of Megatron's or torchtitan's launch arguments; needs --step, and no LAKE.
        step: with --launch: an iteration, from 1; with --batch-rows: a step, from 0.
        seen_until: with Megatron's --launch: count what it had read up to an iteration.
        ranks: with --step: data-parallel ranks.
        batch_rows: with --step: rows of a batch of a loader of LAKE, of all ranks.
        context: with --batch-rows: tokens of each row, if not all.
    """

    launch: Path | None = None
    step: int | None = None
    seen_until: int | None = None
    ranks: Annotated[int, Option(min=1)] = 1
    batch_rows: Annotated[int | None, Option(min=1)] = None
    context: Annotated[int | None, Option(min=1)] = None


def trace(
    of_row: RowOptions,
    documents: options.DocumentOptions,
    of_step: StepOptions,
    lake: options.LakePath = "",
    mix: str | None = None,
    sample: int | None = None,
    position: int | None = None,
) -> None:
    """Follow a row or a sample to its document upstream, or documents to their rows, positions and
    samples; or list the documents that a launch trained on at a step, by microbatch and rank, or
    count what it had read of each data set.

    One of --row, --mix with --sample, --launch with --step, --batch-rows with --step, --id, --url,
    --domain, --digest.

    Args:
        mix: a mix; needs --sample.
        sample: with --mix: a sample of it.
        position: with --sample: a token of the sample.

    Example: lc trace lake --row 0 --column 1000
    """
    from lc_assets.cli.inspect import steps_shown, trace_shown
    from lc_assets.vocabulary import parse_snapshot

    row, snapshot, named = of_row.row, of_row.snapshot, documents.named()
    given = {
        "--row": row is not None,
        "--mix": mix is not None,
        "--launch": of_step.launch is not None,
        "--batch-rows": of_step.batch_rows is not None,
    } | {
        f"--{'id' if kind == 'document' else kind}": kind in named
        for kind in ("document", "url", "domain", "digest")
    }
    _require_one(given)
    if of_step.launch is not None:
        _trace_launch(of_step.launch, of_step)
        return
    if not lake:
        raise BadInput("name the lake: lc trace LAKE")
    if of_step.batch_rows is not None:
        steps_shown.trace_loader(lake, of_row.split, of_row.release, of_step)
        return
    if of_row.packed and (row is None or snapshot is None):
        raise BadInput("--packed needs --row and --snapshot: packed rows belong to one snapshot")
    found = trace_shown.lake_as_of(lake, of_row)
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


def _trace_launch(launch: Path, options: StepOptions) -> None:
    from lc_assets.cli.inspect import steps_shown

    step, until = options.step, options.seen_until
    if step is not None and until is None:
        steps_shown.trace_step(launch, step, options.ranks)
    elif until is not None and step is None:
        steps_shown.trace_seen(launch, until)
    else:
        raise BadInput("--launch needs --step or --seen-until: an iteration of Megatron's, from 1")


def _require_one(given: Mapping[str, bool]) -> None:
    if sum(given.values()) != 1:
        raise BadInput(
            f"expected one of {', '.join(given)}, got "
            f"{' and '.join(name for name in given if given[name]) or 'none'}"
        )
