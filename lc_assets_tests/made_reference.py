"""Reference pages that are made from the code: commands, environment variables and checks."""

import inspect
import re
from collections.abc import Sequence
from typing import Any

import typer

import lc_assets.definitions
from lc_assets.builds.stage import Stage
from lc_assets.cli.app import COMMAND_GROUPS, MEGATRON_COMMANDS, LazyCommand, lazy_commands

CHECKS_HEAD = """\
What must hold before a version is published; the same are asset checks in Dagster. A failed check
blocks publication and everything downstream."""
MADE = "Made by `python -m lc_assets_tests.made_pages`."


def commands_page() -> str:
    """Every command with its arguments, options, defaults and an example."""
    groups = {**COMMAND_GROUPS, "Megatron": MEGATRON_COMMANDS}
    parts = [f"# Commands\n\nWhat `lc COMMAND --help` says. {MADE}\n"]
    for heading, lines in groups.items():
        parts.append(f"\n## {heading}\n")
        prefix = "lc megatron" if heading == "Megatron" else "lc"
        parts += [_command(prefix, command) for command in lazy_commands(lines).values()]
    return "".join(parts)


def _command(prefix: str, lazy: LazyCommand) -> str:
    command = lazy.loaded()
    with typer.Context(command, info_name=lazy.name) as context:
        rows = [_cells(parameter, context) for parameter in command.params]
    example = (command.epilog or "").partition("Example: ")[2]
    table = "\n".join(f"| {name} | {words} |" for name, words in rows if name)
    return f"\n### `{prefix} {lazy.name}`\n\n{command.help}\n\n```bash\n{example}\n```\n" + (
        f"\n| option | what |\n|---|---|\n{table}\n" if table else ""
    )


def _cells(parameter: Any, context: Any) -> tuple[str, str]:
    record = parameter.get_help_record(context)
    if record is None:
        return "", ""
    name, words = (part.replace("|", "\\|").replace("<", "&lt;") for part in record)
    return f"`{name}`".replace("&lt;", "<"), " ".join(words.split())


def environment_page() -> str:
    """Every environment variable that is read, with its meaning and default."""
    rows = "\n".join(f"| {' | '.join(row)} |" for row in variables())
    return f"""\
# Environment variables

What Dagster's code location, and the options of `lc` with the same meaning, read. {MADE}

| variable | meaning | default |
|---|---|---|
{rows}
"""


def variables() -> list[list[str]]:
    """The rows of the table in the docstring of `lc_assets.definitions`: name, meaning, default."""
    lines = (inspect.getdoc(lc_assets.definitions) or "").splitlines()
    rulers = [place for place, line in enumerate(lines) if line.startswith("====")]
    starts = [found.start() for found in re.finditer("=+", lines[rulers[0]])]
    rows: list[list[str]] = []
    for line in lines[rulers[1] + 1 : rulers[2]]:
        cells = [line[a:b].strip() for a, b in zip(starts, [*starts[1:], None], strict=True)]
        if cells[0]:
            rows.append(cells)
        else:  # a row goes on
            rows[-1] = [f"{old} {new}".strip() for old, new in zip(rows[-1], cells, strict=True)]
    return [[cell.replace("``", "`") for cell in row] for row in rows]


def checks_page(stages: Sequence[Stage]) -> str:
    """What is checked before a version of each stage is published."""
    parts = [f"# Checks\n\n{CHECKS_HEAD} {MADE}\n"]
    for stage in stages:
        lines = "\n".join(f"| `{check.__name__}` | {_sentence(check)} |" for check in stage.checks)
        parts.append(f"\n## `{stage.name}`\n\n| check | what holds |\n|---|---|\n{lines}\n")
    return "".join(parts)


def _sentence(check: Any) -> str:
    first = (inspect.getdoc(check) or "").partition("\n\n")[0]
    return " ".join(first.split()).replace("``", "`").replace("|", "\\|")
