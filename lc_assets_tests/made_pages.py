"""Pages of the documentation that are made from the stages' declarations.

``python -m lc_assets_tests.made_pages`` in the repository's root rewrites the pages that are made from code; a test fails when they are out of date.
"""

import inspect
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, get_args

import msgspec

from lc_assets.builds.recipe import Recipe
from lc_assets.builds.settings.common import attributes_of
from lc_assets.builds.stage import SAME_SNAPSHOT, Stage
from lc_assets.stages.catalogue import STAGES
from lc_assets_tests.made_reference import checks_page, commands_page, environment_page

SETTINGS_HEAD: Final = """\
# Settings

A recipe is a TOML file with a section per stage, named like the stage; it needs only what differs \
from these defaults. `target = "STAGE"` above the sections limits plans and builds to that stage and \
those that it reads. With `reuses = ["LAKE", …]` a version that one of these lakes has, by the same \
inputs, settings and code, is not made again, but published here too: so the recipes of several \
vocabularies, a lake each, read, filter and deduplicate the texts once. Made by `python -m lc_assets_tests.made_pages`.
"""
PER: Final = {"snapshot": "snapshot", "mix": "mix", "nothing": "–"}


def pages(root: Path) -> dict[Path, str]:
    """The content of each page, by its path."""
    return {
        root / "docs/settings.md": settings_page(),
        root / "docs/graph.md": graph_page(STAGES),
        root / "docs/commands.md": commands_page(),
        root / "docs/environment.md": environment_page(),
        root / "docs/checks.md": checks_page(STAGES),
    }


def stage_table(stages: Sequence[Stage]) -> str:
    """One line per stage: its name, its partitions, its description."""
    lines = [
        f"| `{stage.name}` | {PER[stage.partitioned_by]} | {stage.description} |"
        for stage in stages
    ]
    return "\n".join(["| asset | per | what it is |", "|---|---|---|", *lines])


def graph_page(stages: Sequence[Stage]) -> str:
    """The graph of stages as Mermaid, by groups; edges between partitions are labelled."""
    groups: dict[str, list[str]] = {}
    for stage in stages:
        groups.setdefault(stage.group, []).append(f"    {stage.name}")
    lines = ["flowchart LR"]
    for group, names in groups.items():
        lines += [f"  subgraph {group}_assets [{group}]", *names, "  end"]
    for stage in stages:
        for upstream, partitions in stage.reads.items():
            label = "" if partitions.words == SAME_SNAPSHOT.words else f"|{partitions.words}|"
            lines.append(f"  {upstream} -->{label} {stage.name}")
    graph = "\n".join(lines)
    return f"""\
# Stages

Each stage publishes one asset. Made from their declarations by `python -m lc_assets_tests.made_pages`.

{stage_table(stages)}

## The graph

An edge without a label reads the partition of the same snapshot.

```mermaid
{graph}
```
"""


def settings_page() -> str:
    """Every setting of a recipe: section by section, with its default and its meaning."""
    parts = [SETTINGS_HEAD]
    for field in msgspec.structs.fields(Recipe):
        default = _default(field)
        named = isinstance(default, Mapping)
        kinds = [one for one in get_args(field.type) if isinstance(one, type)]
        kind = next((one for one in kinds if issubclass(one, msgspec.Struct)), None)
        if not named:
            kind = type(default)
        if kind in (None, str, tuple):
            continue
        first, *_ = (inspect.getdoc(kind) or "").partition("\n\n")
        lines = "\n".join(_lines(kind, ""))
        parts.append(
            f"\n## `[{field.name}{'.NAME' if named else ''}]`\n\n{_cell(first)}\n\n"
            f"| setting | default | meaning |\n|---|---|---|\n{lines}\n"
        )
    return "".join(parts)


def _lines(kind: type[msgspec.Struct], prefix: str) -> Iterator[str]:
    meanings = attributes_of(kind)
    for field in msgspec.structs.fields(kind):
        default, name = _default(field), f"{prefix}{field.name}"
        if isinstance(default, msgspec.Struct):
            yield from _lines(type(default), f"{name}.")
        else:
            yield f"| `{name}` | {_shown(default)} | {_cell(meanings.get(field.name, ''))} |"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("``", "`").replace("|", "\\|")


def _shown(default: Any) -> str:
    if default is msgspec.NODEFAULT:
        return "required"
    if default is None or (isinstance(default, str | tuple | dict) and not default):
        return "none"
    return f"`{_cell(msgspec.json.encode(default).decode())}`"


def _default(field: msgspec.structs.FieldInfo) -> Any:
    if field.default_factory is not msgspec.NODEFAULT:
        return field.default_factory()
    return field.default


def main() -> None:
    """Write the pages."""
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path()
    for path, content in pages(root).items():
        path.write_text(content, "utf-8")


if __name__ == "__main__":
    main()
