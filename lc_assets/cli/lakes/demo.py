"""``lc demo``: the whole chain over a sample or your own documents, through Dagster, and a report;
``lc sample``: write a small upstream in RedPajama-V2's layout.
"""

import shlex
import sys
import time
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from lc_assets.builds.new_recipes import recipe_text as own_recipe_text, source_at
from lc_assets.cli import options
from lc_assets.cli.inspect.batch import batch
from lc_assets.cli.inspect.trace_shown import show_span
from lc_assets.cli.lakes.init import instance_settings
from lc_assets.cli.lakes.plan import ExecutionOptions, LakeOptions, context_of
from lc_assets.cli.lakes.rebuild import run
from lc_assets.cli.printing import heading, lasted, say, table
from lc_assets.errors import BadInput
from lc_assets.execution.local import executor_of
from lc_assets.lake.bucket_lake import open_lake
from lc_assets.lake.receipts import decode_json
from lc_assets.loaders.rows import open_rows
from lc_assets.sample.pages import texts_of_folder
from lc_assets.sample.prose import novels
from lc_assets.sample.writing import (
    DEFAULT_SEED,
    DEFAULT_SNAPSHOTS,
    REPORT,
    SampleReport,
    write_sample,
)
from lc_assets.sources.settings import SourceSettings
from lc_assets.stages.lineage.tracing import row_of_order
from lc_assets.stages.snapshots import planner_of
from lc_assets.vocabulary import ROW_TOKENS

HELDOUT_FRACTION = 0.1
"""One row in ten; LongCrawl64's one in 128 would be none of a sample's few rows."""

MIN_WORDS = 16_000
SEQUENCE_LENGTH = 8192
SAMPLE_WORKERS = 1
"""Processes for the small sample: others would import the libraries and compile the kernels again.
"""


class Workplace:
    """The demo's folders: everything is below ``root``, except a lake elsewhere.

    Attributes:
        sample: the upstream.
        lake: what is published: a folder, or a bucket's URL.
        dagster_home: Dagster's history.
        recipe: the settings.
    """

    def __init__(self, root: Path, lake: str | None = None) -> None:
        self.sample = root / "sample"
        self.lake = lake or str((root / "lake").absolute())
        self.dagster_home = root / "dagster_home"
        self.recipe = root / "recipe.toml"

    def set_up(self, recipe: str) -> None:
        """Write the instance's settings and the recipe; say which files with other content are
        replaced.
        """
        self.dagster_home.mkdir(parents=True, exist_ok=True)
        files = {self.dagster_home / "dagster.yaml": instance_settings(), self.recipe: recipe}
        for path, content in files.items():
            if path.is_file() and path.read_text("utf-8") != content:
                say(f"{path}: had other content, and is replaced")
            path.write_text(content, "utf-8")

    @property
    def ui_command(self) -> str:
        """The command that opens Dagster's UI on these folders."""
        folders = {
            "DAGSTER_HOME": self.dagster_home,
            "LC_UPSTREAM": self.sample,
            "LC_CRAWL": self.sample / "crawl",
            "LC_RECIPE": self.recipe,
        }
        variables = {name: str(path.absolute()) for name, path in folders.items()}
        variables["LC_ROOT"] = self.lake
        settings = " ".join(f"{name}={shlex.quote(value)}" for name, value in variables.items())
        dagster = shlex.quote(str(Path(sys.executable).with_name("dagster")))
        return f"{settings} {dagster} dev -m lc_assets.definitions"


def recipe_text(row_tokens: int) -> str:
    """The demo's recipe: rows of ``row_tokens``, and what must be smaller with them.

    >>> "min_words = 256" in recipe_text(1024)
    True
    """
    min_words = MIN_WORDS if row_tokens >= ROW_TOKENS else min(MIN_WORDS, row_tokens // 4)
    return f"""\
# Settings of `lc demo` that differ from the default recipe, or might.
[filtered_documents]
min_words = {min_words}

[token_documents]
min_tokens = {row_tokens}

[token_grid]
row_tokens = {row_tokens}
heldout_fraction = {HELDOUT_FRACTION}  # the default is 1/128; a sample has few rows

[megatron_rows]
sequence_length = {min(SEQUENCE_LENGTH, row_tokens)}
"""


def demo(
    folder: Annotated[Path, Option("--dir")] = Path("demo"),
    source: Annotated[Path | None, Option("--from")] = None,
    lake: str | None = None,
    workers: options.Workers = None,
    row_tokens: Annotated[int, Option(min=8)] = ROW_TOKENS,
) -> None:
    """Build the whole chain over a sample of novels, or over your own documents, through
    Dagster, and print a report.

    The sample is two small crawl snapshots with duplicates. Documents of a folder (JSON lines,
    Parquet, text, WET, WARC) are read as they are, and nothing is added. Every asset is
    materialized, a batch is read back, and a row is traced to its page. A second run reuses what
    exists.

    Args:
        folder: folder for everything that is written.
        source: folder of your own documents, read as they are.
        lake: publish there instead of below --dir, such as into gs://bucket/folder.
        row_tokens: tokens of a row; fewer make more rows of the same texts.

    Example: lc demo --dir demo --from ~/texts
    """
    started = time.monotonic()
    place = Workplace(folder, lake)
    if source is None:
        workers = workers or SAMPLE_WORKERS
        place.set_up(recipe_text(row_tokens))
        path = place.sample / REPORT
        if path.is_file() and (found := decode_json(path, SampleReport)).finished:
            say(f"{place.sample}: the sample exists, {found.n_documents:,} documents")
        else:
            say(f"Writing a sample into {place.sample} …")
            write_and_show_sample(place.sample, workers)
    else:
        recipe = own_recipe_text(
            source_at(str(source), SourceSettings(path=".")),
            row_tokens=row_tokens,
            heldout_fraction=HELDOUT_FRACTION,
            packed=False,
        )
        place.set_up(recipe)
    build(place, ExecutionOptions(workers=workers))
    show_report(place.lake)
    say(f"All in {lasted(time.monotonic() - started)}.")
    show_next_steps(place)


def build(place: Workplace, execution: ExecutionOptions) -> None:
    """Build what is out of date; nothing, without Dagster, when all is current.

    Raises:
        PartitionFailed: when a run fails.
    """
    upstream = str(place.sample.absolute())
    where = LakeOptions(lake=place.lake, upstream=upstream, recipe=place.recipe)
    context = context_of(where, execution)
    plan = planner_of(context, look=True)
    n_behind = sum(made.status != "current" for made in plan())
    if not n_behind:
        say(f"{place.lake}: everything is current, nothing is built")
        return
    say(
        f"Building through Dagster with {execution.n_workers} workers: {n_behind:,} partitions are "
        "missing or out of date …"
    )
    if status := run(where, execution, context, plan, home=place.dagster_home, stop_at_once=True):
        raise typer.Exit(status)


def sample(
    out: Annotated[Path, Argument()],
    source: options.Source = None,
    snapshot: options.Snapshots = None,
    seed: int | None = None,
    workers: options.Workers = None,
) -> None:
    """Write crawl snapshots of real prose in RedPajama-V2's layout, with added duplicates and short
    documents.

    Args:
        out: a new folder, or that of the same sample.
        seed: seed of everything random.

    Example: lc sample sample --from ~/texts --snapshot 2023-06
    """
    report = write_and_show_sample(out, workers, source=source, snapshots=snapshot, seed=seed)
    root = out.absolute()
    say(
        f"Next:\nLC_UPSTREAM={shlex.quote(str(root))} "
        f"LC_ROOT={shlex.quote(str(root.with_name('lake')))} lc rebuild "
        f"--snapshot {report.snapshots[-1]}"
    )


def write_and_show_sample(
    out: Path,
    workers: int | None,
    *,
    source: Path | None = None,
    snapshots: list[str] | None = None,
    seed: int | None = None,
) -> SampleReport:
    """Write a sample, and print what it contains."""
    executor = executor_of(workers)
    report = write_sample(
        out,
        texts=novels() if source is None else texts_of_folder(source),
        executor=executor,
        snapshots=snapshots or DEFAULT_SNAPSHOTS,
        seed=DEFAULT_SEED if seed is None else seed,
    )
    say(
        f"{report.n_documents:,} documents in {out}: "
        + ", ".join(f"{n:,} {kind}s" for kind, n in report.documents.items())
        + f"; {report.listed_duplicates:,} are listed as duplicates"
    )
    skipped = ", ".join(f"{len(names):,} {reason}" for reason, names in report.skipped.items())
    say(f"Read {len(report.sources):,} texts; not used: {skipped or 'nothing'}")
    return report


BATCH_ROWS = 4
COUNTED = ("filtered_documents", "removed_documents", "token_documents", "token_grid")
"""Stages whose documents the report counts."""


def show_report(url: str) -> None:
    """Print how many documents the stages of a lake kept, its first batch, and where its first row
    came from.

    Raises:
        BadInput: when there is no row.
    """
    lake = open_lake(url)
    heading("Documents")
    lines = []
    for stage in COUNTED:
        counts = [found.counts for found in lake.published(stage).values()]
        lines.append((stage, sum(one.seen for one in counts), sum(one.kept for one in counts)))
    table(("stage", "in", "kept"), lines)
    heading("First batch")
    rows = open_rows(url, "train")
    if not rows.n_rows:
        raise BadInput(
            "no document was long enough to fill a row: choose fewer --row-tokens, or longer texts"
        )
    batch(url, rows=min(BATCH_ROWS, rows.n_rows), context=rows.row_tokens)
    heading("Where train row 0 came from")
    show_span(lake, row_of_order(lake, "train", 0))


def show_next_steps(place: Workplace) -> None:
    """Print commands to run next, the line for Dagster's UI last."""
    lake, recipe, sample = map(shlex.quote, (place.lake, str(place.recipe), str(place.sample)))
    settings = f"--recipe {recipe} --upstream {sample}"
    heading("Next steps")
    say(f"lc show {lake}    every published version, and whether it is whole")
    say(f"lc trace {lake} --row 1    the document of another row")
    say(f"lc rebuild --lake {lake} {settings}    what depends on settings that you change there")
    say("lc demo --dir my-demo --from FOLDER    the same over your own documents")
    say("The graph, the history and the checks in Dagster's UI:")
    say(place.ui_command)
