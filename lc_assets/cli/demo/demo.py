"""``lc demo``: the whole chain over a sample or your own documents, through Dagster, and a
report.
"""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lc_assets.cli import options
from lc_assets.cli.demo.workplace import Workplace
from lc_assets.cli.printing import lasted, say
from lc_assets.vocabulary import ROW_TOKENS

if TYPE_CHECKING:
    from lc_assets.sample.writing import SampleReport
    from lc_assets.stages.planning import Plan


def demo(
    folder: Annotated[
        Path,
        typer.Option(
            "--dir", help="Everything is written below it; remove it and nothing is left."
        ),
    ] = Path("demo"),
    source: Annotated[
        Path | None,
        typer.Option("--from", help="Folder of your own documents, read as they are."),
    ] = None,
    lake: Annotated[
        str | None,
        typer.Option(
            "--lake", help="Publish there instead of below --dir, such as into gs://bucket/folder."
        ),
    ] = None,
    workers: options.Workers = None,
    row_tokens: Annotated[
        int,
        typer.Option(
            "--row-tokens", min=8, help="Tokens of a row; fewer make more rows of the same texts."
        ),
    ] = ROW_TOKENS,
) -> None:
    """Build the whole chain over a sample of real prose, or over your own documents, through
    Dagster, and report what came of it.

    The sample is two small crawl snapshots with duplicates. Documents of a folder (JSON lines,
    Parquet, text, WET, WARC) are read as they are, and nothing is added. Every asset is
    materialized, a batch is read back, and a row is traced to its page. Run again, it reuses what
    is there.

    Example: lc demo --dir demo --from ~/texts
    """
    import os

    from lc_assets.build.recipe import read_recipe
    from lc_assets.cli.demo.demo_report import report
    from lc_assets.cli.demo.workplace import HELDOUT_FRACTION, recipe_text
    from lc_assets.cli.lakes.build import recipe_text as own_recipe_text
    from lc_assets.sources.opening import known_snapshots

    started = time.monotonic()
    place = Workplace(folder, lake)
    if source is None:
        place.set_up(recipe_text(row_tokens))
        sampled = write_or_find_sample(place, workers)
        snapshots, n_documents = sampled.settings.snapshots, sampled.n_documents
    else:
        place.set_up(
            own_recipe_text(
                str(source),
                row_tokens=row_tokens,
                heldout_fraction=HELDOUT_FRACTION,
                packed=False,
            )
        )
        snapshots = list(known_snapshots(sources=read_recipe(place.recipe).sources))
        n_documents = None
    build(place, snapshots, workers or os.cpu_count() or 1)
    report(place, n_documents)
    say(
        f"All in {lasted(time.monotonic() - started)}. Open the graph, the history and the checks "
        "with:"
    )
    say(place.ui_command)


def write_or_find_sample(place: Workplace, workers: int | None) -> "SampleReport":
    """Write the sample, or find that a finished one is there."""
    from lc_assets.cli.demo.sample import show_sample, texts_of
    from lc_assets.execution.local import executor_of
    from lc_assets.lake.receipts import decode_json
    from lc_assets.sample.writing import REPORT, SampleReport, write_sample

    path = place.sample / REPORT
    if path.is_file() and (found := decode_json(path, SampleReport)).finished:
        say(f"{place.sample}: the sample is there, {found.n_documents:,} documents")
        return found
    started = time.monotonic()
    say(f"Writing a sample into {place.sample} …")
    executor = executor_of(workers)
    written = write_sample(place.sample, texts=texts_of(None, executor), executor=executor)
    show_sample(place.sample, written)
    say(f"sample written in {lasted(time.monotonic() - started)}")
    return written


def build(place: Workplace, snapshots: list[str], workers: int) -> None:
    """Run the jobs of what is out of date, as the planner says; none when all is current.

    Raises:
        LcError: when a run fails.
        Mismatch: when something is still out of date after its job.
    """
    behind = plans_behind(place, snapshots)
    if not behind:
        say(f"{place.lake}: everything is current, nothing is built")
        return
    from lc_assets.cli.demo.demo_runs import run_jobs

    say(
        f"Building through Dagster with {workers} workers: {len(behind):,} partitions are missing "
        "or out of date …"
    )
    run_jobs(place, behind, workers, still_behind=lambda: plans_behind(place, snapshots))


def plans_behind(place: Workplace, snapshots: list[str]) -> "list[Plan]":
    """What is out of date, the upstream looked at as it is now."""
    from lc_assets.build.recipe import read_recipe
    from lc_assets.build.stage import BuildContext
    from lc_assets.cli.lakes.plan import look_at_all
    from lc_assets.execution.local import LocalExecutor
    from lc_assets.execution.progress import on_terminal
    from lc_assets.lake.bucket_lake import open_lake
    from lc_assets.lake.upstream import Upstream
    from lc_assets.stages.planning import plan

    lake, recipe, executor = (
        open_lake(place.lake),
        read_recipe(place.recipe),
        LocalExecutor(watch=on_terminal),
    )
    looked = look_at_all(
        BuildContext(
            lake=lake, upstream=Upstream(str(place.sample)), recipe=recipe, executor=executor
        ),
        snapshots,
    )
    return [made for made in plan(lake, recipe, snapshots, **looked) if made.status != "current"]
