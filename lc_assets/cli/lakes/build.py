"""``lc build``: rows and Megatron files out of a folder of one's own documents."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from typer import Option

from lc_assets.cli import options
from lc_assets.cli.lakes.plan import ExecutionOptions, LakeOptions, context_of, look_at_all
from lc_assets.cli.lakes.rebuild import run
from lc_assets.cli.printing import facts, heading, say
from lc_assets.errors import BadInput

if TYPE_CHECKING:
    from lc_assets.lake.lake import Lake
    from lc_assets.stages.planning import Plan

ROW_TOKENS = 2048
HELDOUT_FRACTION = 1 / 128


@dataclass(frozen=True, kw_only=True)
class CorpusOptions:
    """The location of your own documents, and what is built from them."""

    source: Annotated[
        str,
        Option(
            "--source",
            help="Folder, file, https://… or gs://… of JSON lines, Parquet, text, WET or WARC.",
        ),
    ]
    rules: Annotated[
        str, Option("--rules", help="Preset or rule file that documents must pass.")
    ] = "gopher-paper"
    min_words: Annotated[
        int, Option("--min-words", min=0, help="Drop documents of fewer words.")
    ] = 0
    row_tokens: Annotated[int, Option("--row-tokens", min=8, help="Tokens in a row.")] = ROW_TOKENS
    partition: Annotated[
        Literal["one", "folder"],
        Option("--partition", help="One partition, or one per top folder."),
    ] = "one"
    listing: Annotated[
        str,
        Option("--listing", help="Of a web server: a text file of paths below --source."),
    ] = ""
    text_field: Annotated[
        str, Option("--text-field", help="Field of a record that holds its text.")
    ] = ""
    id_field: Annotated[str, Option("--id-field", help="Field of a record that holds its id.")] = ""
    language: Annotated[
        str,
        Option("--language", help="Two letters, for documents that name no language."),
    ] = ""


@options.with_options
def build(
    corpus: CorpusOptions,
    lake: options.Lake,
    to: Annotated[
        str, Option("--to", help="Build this stage and what it reads, and nothing else.")
    ] = "",
    workers: options.Workers = None,
    home: Annotated[
        Path | None,
        Option(
            "--dagster-home",
            envvar="DAGSTER_HOME",
            help="Go through Dagster, whose history is kept there.",
        ),
    ] = None,
) -> None:
    """Filter, deduplicate and tokenize documents of one's own; write rows and Megatron files.

    Documents are read as they are. The settings are written to recipe.toml in the lake; edit it and
    run `lc rebuild` to change them. Run again, only what is out of date is built.

    Example: lc build --source corpus --lake lake --rules gopher-paper --row-tokens 2048
    """
    from lc_assets.errors import NotPublished
    from lc_assets.sources.opening import known_snapshots
    from lc_assets.stages import planning
    from lc_assets.stages.catalogue import STAGES, stage_named
    from lc_assets.stages.file_lakes import read_by

    stages = [stage_named(to)] if to else STAGES
    recipe = _recorded(lake, recipe_text(corpus))
    where = LakeOptions(lake=lake, upstream=corpus.source, recipe=recipe)
    execution = ExecutionOptions(workers=workers)
    context = context_of(where, execution)
    names: list[str] = list(known_snapshots(sources=context.recipe.sources))
    if not names:
        raise NotPublished(f"{corpus.source}: has no partition; --partition is {corpus.partition}")
    looked = look_at_all(context, names)
    wanted = {of for stage in stages for of in (stage.name, *read_by(stage, context.recipe))}

    def plan() -> "list[Plan]":
        plans = planning.plan(context.lake, context.recipe, names, **looked)
        return [made for made in plans if made.stage in wanted]

    status = run(where, execution, context, plan, home=home)
    if status == 0 and not to:
        _show_outputs(context.lake)
    raise typer.Exit(status)


def recipe_text(
    corpus: CorpusOptions, *, heldout_fraction: float = HELDOUT_FRACTION, packed: bool = True
) -> str:
    """A recipe for documents of one's own, as TOML.

    >>> "[sources.corpus]" in recipe_text(CorpusOptions(source="/data/corpus"))
    True
    """
    source, rules = corpus.source, corpus.rules
    settings = {
        "path": source if "://" in source else str(Path(source).absolute()),
        **{
            name: getattr(corpus, name)
            for name in ("listing", "partition", "text_field", "id_field", "language")
        },
    }
    lines = [f"{name} = {_toml(value)}" for name, value in settings.items() if value]
    found = f"""\
# Settings that differ from the default recipe; see docs/sources.md.
[sources.{source_name(source)}]
{chr(10).join(lines)}

[raw_snapshot]
trust_file_times = true  # a file of the same size and modification time is the same file

[filtered_documents]
rules = {_toml(str(Path(rules).absolute()) if Path(rules).is_file() else rules)}
min_words = {corpus.min_words}

[token_documents]
min_tokens = {corpus.row_tokens}

[token_grid]  # rows of one document each; shorter documents have none
row_tokens = {corpus.row_tokens}
heldout_fraction = {heldout_fraction}

[megatron_rows]
sequence_length = {min(8192, corpus.row_tokens)}
"""
    if packed:
        found += f"""\

[packed_rows]  # rows of whole documents of any length
wanted = true
row_tokens = {corpus.row_tokens}
heldout_fraction = {heldout_fraction}
"""
    return found


def source_name(source: str) -> str:
    """A source's name, derived from the last part of its path.

    >>> source_name("/data/my corpus/"), source_name("gs://bucket/2024-10")
    ('my_corpus', 's2024_10')
    """
    last = source.rstrip("/").rpartition("/")[2].partition(".")[0]
    safe = re.sub(r"[^A-Za-z0-9]+", "_", last).strip("_")[:19] or "corpus"
    return safe if safe[0].isalpha() else f"s{safe}"


def _recorded(lake: str, content: str) -> Path | None:
    """The recipe, recorded in a lake that has none or the same.

    Raises:
        BadInput: when the lake has another.
    """
    from lc_assets.build.recipe import RECIPE_FILE, recorded_recipe
    from lc_assets.lake.bucket_lake import open_lake

    found = recorded_recipe(lake)
    if found is None:
        open_lake(lake).replace_note(RECIPE_FILE, content.encode())
        return recorded_recipe(lake)
    if found.read_text("utf-8") != content:
        raise BadInput(
            f"{found}: holds other settings than these options; edit it and run `lc rebuild --lake "
            f"{lake} --recipe {found}`, or choose another --lake"
        )
    return found


def _show_outputs(lake: "Lake") -> None:
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


def _toml(value: str) -> str:
    import json

    return json.dumps(value, ensure_ascii=False)
