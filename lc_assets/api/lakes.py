"""`build` a lake of your own documents, and `plan` what is out of date in a lake."""

import functools
import os
from collections.abc import Sequence
from pathlib import Path

from lc_assets.builds.building import context_for
from lc_assets.builds.new_recipes import ROW_TOKENS, RULES, Preset, record_new_recipe, source_at
from lc_assets.builds.recipe_files import (
    RECIPE_FILE,
    read_recipe,
    recorded_content,
    recorded_recipe,
)
from lc_assets.builds.settings.longpack import HtmlIndexSettings
from lc_assets.builds.stage import BuildContext
from lc_assets.errors import LcError
from lc_assets.execution.progress import on_terminal
from lc_assets.lake.bucket_lake import open_lake
from lc_assets.sources.settings import SourceSettings
from lc_assets.stages.planning import Plan
from lc_assets.stages.rebuilding import build_run, rebuild
from lc_assets.stages.snapshots import planner_of
from lc_assets.vocabulary import REDPAJAMA_V2


def build(
    source: str | Path,
    lake: str | Path,
    *,
    rules: str = RULES,
    min_words: int = 0,
    row_tokens: int = ROW_TOKENS,
    preset: Preset = "none",
    pages: HtmlIndexSettings | None = None,
    crawl: str = "",
    workers: int | None = None,
) -> list[str]:
    """Filter, deduplicate and tokenize your own documents; write rows and Megatron files.

    Called again, it builds only what is out of date. The settings are written to ``recipe.toml`` in
    the lake, where there are more.

    Args:
        source: folder, file or URL of JSON lines, Parquet, text, WET or WARC.
        lake: a folder, or ``gs://bucket/folder``.
        rules: a preset's name, or a file of rules.
        min_words: documents with fewer words are dropped.
        row_tokens: tokens of a row.
        preset: ``longpack`` packs pages along their links too; ``paper`` with every value that the
            LongPack paper states.
        pages: where the pages' links are, with a preset.
        crawl: the crawl's own archives, with a preset.
        workers: processes; by default one per processor.

    Returns:
        Names of the partitions that were built or found finished, in order.

    Raises:
        BadInput: when the lake was built by other settings, or an argument is not acceptable.
        LcError: when a partition cannot be built; the others are.
    """
    recorded = record_new_recipe(
        str(lake),
        source_at(str(source), SourceSettings(path=".")),
        rules=rules,
        min_words=min_words,
        row_tokens=row_tokens,
        preset=preset,
        pages=pages or HtmlIndexSettings(),
    )
    context = _context(lake, recorded, str(source), crawl, workers)
    plans = planner_of(context, look=True)
    with context.lake.holding_note(RECIPE_FILE, recorded_content(str(lake), recorded)):
        made = rebuild(plans, functools.partial(build_run, context, lambda _plan, _built: None))
    if made.failed or made.left:
        reasons = [reason for plan in made.left for reason in plan.reasons]
        raise LcError("; ".join([*made.failed.values(), *reasons]))
    return made.done


def plan(
    lake: str | Path,
    *,
    recipe: str | Path | None = None,
    upstream: str = REDPAJAMA_V2,
    snapshots: Sequence[str] | None = None,
    look_upstream: bool = False,
) -> list[Plan]:
    """What is out of date in a lake, and why; builds nothing.

    Args:
        lake: a folder, or ``gs://bucket/folder``.
        recipe: a file; by default the recipe that the lake was last built by.
        upstream: RedPajama-V2, or its layout elsewhere: a folder or URL.
        snapshots: by default those that the lake or the sources know.
        look_upstream: whether to compare with the upstream as it is now.

    Returns:
        A plan per partition, in the order that they are built in.

    Raises:
        BadInput: when the recipe or a snapshot's name is not acceptable.
        NotPublished: when no snapshot is known.
    """
    path = recorded_recipe(str(lake)) if recipe is None else Path(recipe)
    return planner_of(_context(lake, path, upstream, "", None), snapshots, look=look_upstream)()


def _context(
    lake: str | Path, recipe: Path | None, upstream: str, crawl: str, workers: int | None
) -> BuildContext:
    return context_for(
        open_lake(str(lake)),
        read_recipe(recipe),
        upstream=upstream,
        crawl=crawl,
        workers=workers or os.cpu_count() or 1,
        watch=on_terminal,
        say=print,
    )
