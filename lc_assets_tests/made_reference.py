"""Reference pages that are made from the code: commands, environment variables and checks."""

import inspect
import re
from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any

import typer

import lc_assets.definitions
from lc_assets.builds.stage import Stage
from lc_assets.cli.app import COMMAND_GROUPS, MEGATRON_COMMANDS, LazyCommand, lazy_commands

CHECKS_HEAD = """\
What must hold before a version is published; the same are asset checks in Dagster. A failed check
blocks publication and everything downstream."""
EVERYWHERE = ("`--json`", "`--quiet`")
SHARED_BY = 3
"""An option of so many commands is described once."""
MADE = "Made by `python -m lc_assets_tests.made_pages`."


def commands_page() -> str:
    """Every command with its arguments, options, defaults and an example."""
    groups = {**COMMAND_GROUPS, "Megatron": MEGATRON_COMMANDS}
    commands = {heading: lazy_commands(lines).values() for heading, lines in groups.items()}
    counted = Counter(row for group in commands.values() for one in group for row in _rows(one))
    shared = [row for row, n_commands in counted.items() if n_commands >= SHARED_BY]
    parts = [
        f"# Commands\n\nWhat `lc COMMAND --help` says. {MADE}\n",
        f"\n## Options of several commands\n\nEvery command has {' and '.join(EVERYWHERE)}.\n\n",
        _table(sorted(shared)),
    ]
    for heading, group in commands.items():
        parts.append(f"\n## {heading}\n")
        prefix = "lc megatron" if heading == "Megatron" else "lc"
        parts += [_command(prefix, command, shared) for command in group]
    return "".join(parts)


def _command(prefix: str, lazy: LazyCommand, shared: Collection[tuple[str, str]]) -> str:
    """A command's section; of the ``shared`` options only the names."""
    command, rows = lazy.loaded(), _rows(lazy)
    example = (command.epilog or "").partition("Example: ")[2]
    own = [row for row in rows if row not in shared]
    others = ", ".join(
        name for name, words in rows if (name, words) in shared and name not in EVERYWHERE
    )
    return (
        f"\n### `{prefix} {lazy.name}`\n\n{command.help}\n\n```bash\n{example}\n```\n"
        + (f"\n{_table(own)}" if own else "")
        + (f"\nAnd {others}.\n" if others else "")
    )


def _table(rows: Sequence[tuple[str, str]]) -> str:
    lines = "\n".join(f"| {name} | {words} |" for name, words in rows)
    return f"| option | what |\n|---|---|\n{lines}\n"


def _rows(lazy: LazyCommand) -> list[tuple[str, str]]:
    """Name and description of each argument and option of a command."""
    command = lazy.loaded()
    with typer.Context(command, info_name=lazy.name) as context:
        cells = [_cells(parameter, context) for parameter in command.params]
    return [(name, words) for name, words in cells if name]


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
