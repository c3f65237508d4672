"""``lc build``: rows and Megatron files out of a folder of one's own documents."""

import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from lc_assets.cli import options
from lc_assets.cli.lakes.plan import look_at_all
from lc_assets.cli.lakes.rebuild import by_stages, conclude, context_of, through_dagster
from lc_assets.cli.printing import facts, heading, say
from lc_assets.errors import BadInput

if TYPE_CHECKING:
    from lc_assets.lake.lake import Lake
    from lc_assets.stages.planning import Plan

ROW_TOKENS = 2048
HELDOUT_FRACTION = 1 / 128
RULES = "gopher-paper"


def build(
    source: Annotated[
        str,
        typer.Option(
            "--source",
            help="Folder, file, https://… or gs://… of JSON lines, Parquet, text, WET or WARC.",
        ),
    ],
    lake: Annotated[
        Path, typer.Option("--lake", envvar="LC_ROOT", help="Folder to publish everything in.")
    ],
    rules: Annotated[
        str, typer.Option("--rules", help="Preset or rule file that documents must pass.")
    ] = RULES,
    min_words: Annotated[
        int, typer.Option("--min-words", min=0, help="Drop documents of fewer words.")
    ] = 0,
    row_tokens: Annotated[
        int, typer.Option("--row-tokens", min=8, help="Tokens in a row.")
    ] = ROW_TOKENS,
    partition: Annotated[
        Literal["one", "folder"],
        typer.Option("--partition", help="One partition, or one per top folder."),
    ] = "one",
    listing: Annotated[
        str,
        typer.Option("--listing", help="Of a web server: a text file of paths below --source."),
    ] = "",
    text_field: Annotated[
        str, typer.Option("--text-field", help="Field of a record that holds its text.")
    ] = "",
    id_field: Annotated[
        str, typer.Option("--id-field", help="Field of a record that holds its id.")
    ] = "",
    language: Annotated[
        str,
        typer.Option("--language", help="Two letters, for documents that name no language."),
    ] = "",
    to: Annotated[
        str, typer.Option("--to", help="Build this stage and what it reads, and nothing else.")
    ] = "",
    workers: options.Workers = None,
    home: Annotated[
        Path | None,
        typer.Option(
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
    from lc_assets.lake.lake import Lake
    from lc_assets.sources.opening import known_snapshots
    from lc_assets.stages import planning
    from lc_assets.stages.rebuilding import rebuild

    recipe = recipe_text(
        source,
        listing=listing,
        partition=partition,
        text_field=text_field,
        id_field=id_field,
        language=language,
        rules=rules,
        min_words=min_words,
        row_tokens=row_tokens,
    )
    path = write_recipe(Lake(lake), recipe)
    context = context_of(str(lake), source, "", path, "", workers, "", 0.0)
    names: list[str] = list(known_snapshots(sources=context.recipe.sources))
    if not names:
        raise NotPublished(f"{source}: has no partition; --partition is {partition}")
    stages = stages_up_to(to)
    looked = look_at_all(context, names)

    def ask() -> "list[Plan]":
        plans = planning.plan(context.lake, context.recipe, names, **looked)
        return [made for made in plans if made.stage in stages]

    started = time.monotonic()
    how = by_stages(context)
    if home is not None:
        home.mkdir(parents=True, exist_ok=True)
        (home / "dagster.yaml").touch()
        how = through_dagster(
            context, home, path, None, crawl="", withdrawn="", executor="", task_seconds=0.0
        )
    with how as build_run:
        status = conclude(rebuild(ask, build_run), time.monotonic() - started)
    if status == 0 and not to:
        show_outputs(Lake(lake))
    raise typer.Exit(status)


def recipe_text(
    source: str,
    *,
    listing: str = "",
    partition: str = "one",
    text_field: str = "",
    id_field: str = "",
    language: str = "",
    rules: str = RULES,
    min_words: int = 0,
    row_tokens: int = ROW_TOKENS,
    heldout_fraction: float = HELDOUT_FRACTION,
    packed: bool = True,
) -> str:
    """A recipe for documents of one's own, as TOML.

    >>> "[sources.corpus]" in recipe_text("/data/corpus") and "row_tokens = 2048" in recipe_text("x")
    True
    """
    import msgspec

    is_rule_file = Path(rules).is_file()
    settings = {
        "path": source if "://" in source else str(Path(source).absolute()),
        "listing": listing,
        "partition": partition,
        "text_field": text_field,
        "id_field": id_field,
        "language": language,
    }
    lines = [f"{name} = {_toml(value)}" for name, value in settings.items() if value]
    found = f"""\
# Settings that differ from the default recipe; see docs/sources.md.
[sources.{source_name(source)}]
{chr(10).join(lines)}

[raw_snapshot]
trust_file_times = true  # a file of the same size and modification time is the same file

[filtered_documents]
rules = {_toml(str(Path(rules).absolute()) if is_rule_file else rules)}
min_words = {min_words}

[token_documents]
min_tokens = {row_tokens}

[token_grid]  # rows of one document each; shorter documents have none
row_tokens = {row_tokens}
heldout_fraction = {heldout_fraction}

[megatron_rows]
sequence_length = {min(8192, row_tokens)}
"""
    if packed:
        found += f"""\

[packed_rows]  # rows of whole documents of any length
wanted = true
row_tokens = {row_tokens}
heldout_fraction = {heldout_fraction}
"""
    msgspec.toml.decode(found)
    return found


def source_name(source: str) -> str:
    """A source's name, made of the last part of its path.

    >>> source_name("/data/my corpus/"), source_name("gs://bucket/2024-10")
    ('my_corpus', 's2024_10')
    """
    last = source.rstrip("/").rpartition("/")[2].partition(".")[0]
    safe = re.sub(r"[^A-Za-z0-9]+", "_", last).strip("_")[:19] or "corpus"
    return safe if safe[0].isalpha() else f"s{safe}"


def write_recipe(lake: "Lake", content: str) -> Path:
    """Write the recipe into a lake, or find it there.

    Raises:
        BadInput: when the lake has another.
    """
    from lc_assets.build.recipe import RECIPE_FILE

    path = lake.root / RECIPE_FILE
    try:
        lake.publish_note(RECIPE_FILE, content.encode())
    except BadInput as error:
        raise BadInput(
            f"{path}: holds other settings than these options; edit it and run `lc rebuild --lake "
            f"{lake.root} --recipe {path}`, or choose another --lake"
        ) from error
    return path


def stages_up_to(name: str) -> set[str]:
    """A stage and all that it reads, directly or not; every stage when none is named.

    Raises:
        BadInput: when there is no such stage.
    """
    from lc_assets.stages.catalogue import STAGES, stage_named

    if not name:
        return {found.name for found in STAGES}
    wanted, left = set[str](), [name]
    while left:
        found = stage_named(left.pop())
        if found.name not in wanted:
            wanted.add(found.name)
            left += found.upstream
    return wanted


def show_outputs(lake: "Lake") -> None:
    """Print where rows and Megatron files are, and how to look at them."""
    heading("Written")
    lines = []
    for stage, files in (
        ("longcrawl_flat", "train.zarr: rows of one document, in training order"),
        ("packed_rows", "rows of whole documents"),
        ("megatron_rows", ".bin and .idx of the rows"),
    ):
        lines += [
            (found.name, f"{found.folder}: {files}") for found in lake.published(stage).values()
        ]
    facts(lines)
    say(f"Where a row came from: lc trace {lake.root} --row 0")


def _toml(value: str) -> str:
    import msgspec

    return msgspec.json.encode(value).decode()
