"""``lc build``: rows and Megatron files from a folder of your own documents."""

from dataclasses import replace

import msgspec
import typer

from lc_assets.builds.new_recipes import ROW_TOKENS, RULES, Preset, record_new_recipe, source_at
from lc_assets.builds.settings.documents import FilteringSettings
from lc_assets.builds.settings.longpack import HtmlIndexSettings
from lc_assets.builds.settings.rows import GriddingSettings
from lc_assets.cli import options
from lc_assets.cli.lakes.plan import ExecutionOptions, LakeOptions, context_of
from lc_assets.cli.lakes.rebuild import run
from lc_assets.cli.printing import facts, heading, say
from lc_assets.cli.setting_options import settings_options
from lc_assets.lake.lake import Lake
from lc_assets.records import record
from lc_assets.sources.settings import SourceSettings
from lc_assets.stages.snapshots import planner_of


@record
class LinkingOptions:
    """Whether pages are packed along their links, and where they are.

    Attributes:
        preset: ``longpack``: pack pages along their links too; paper: with every value that the
            LongPack paper states.
    """

    preset: Preset = "none"
    crawl: options.Crawl = ""


def build(
    source: str,
    lake: options.Lake,
    linking: LinkingOptions,
    reading: SourceSettings = settings_options(
        SourceSettings(path="."),
        "partition",
        "listing",
        "text_field",
        "id_field",
        "language",
        "reader",
    ),
    filtering: FilteringSettings = settings_options(
        FilteringSettings(rules=RULES, min_words=0), "rules", "min_words"
    ),
    grid: GriddingSettings = settings_options(
        GriddingSettings(row_tokens=ROW_TOKENS), "row_tokens"
    ),
    pages: HtmlIndexSettings = settings_options(
        HtmlIndexSettings(), "archives", "index", "links_from"
    ),
    to: str = "",
    workers: options.Workers = None,
    home: options.DagsterHome = None,
) -> None:
    """Filter, deduplicate and tokenize your own documents; write rows and Megatron files.

    With --preset, pages are packed along their links, which are read from the source's WARC files,
    --archives, or the crawl (--crawl).

    Documents are read as they are. The settings are written to recipe.toml in the lake; edit it and
    run `lc rebuild` to change them. Run again, only what is out of date is built.

    Args:
        source: folder, file, https://…, gs://…, s3://… or az://… of JSON lines, Parquet, text, WET
            or WARC.
        to: build this stage and what it reads, and nothing else.

    Example: lc build --source corpus --lake lake --rules gopher-paper --row-tokens 2048
    """
    recorded = record_new_recipe(
        lake,
        source_at(source, reading),
        rules=filtering.rules,
        min_words=filtering.min_words,
        row_tokens=grid.row_tokens,
        preset=linking.preset,
        pages=pages,
    )
    where = LakeOptions(lake=lake, upstream=source, crawl=linking.crawl, recipe=recorded)
    execution = ExecutionOptions(workers=workers)
    context = context_of(where, execution)
    up_to = replace(context, recipe=msgspec.structs.replace(context.recipe, target=to))
    plan = planner_of(up_to, look=True)
    status = run(where, execution, context, plan, home=home)
    if status == 0 and not to:
        _show_outputs(context.lake)
    raise typer.Exit(status)


def _show_outputs(lake: Lake) -> None:
    """Print where rows and Megatron files are, and how to look at them."""
    heading("Written")
    files = {
        "longcrawl_flat": "train.zarr: rows of one document, in training order",
        "packed_rows": "rows of whole documents",
        "megatron_rows": ".bin and .idx of the rows",
    }
    facts(
        (found.name, f"{found.where}: {files[stage]}")
        for stage in files
        for found in lake.published(stage).values()
    )
    say(f"Where a row came from: lc trace {lake.url} --row 0")
