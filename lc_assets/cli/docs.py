"""Pages of the documentation that are made from the stages' declarations.

``python -m lc_assets.cli.docs`` in the repository's root writes the table of assets in README.md,
docs/settings.md and docs/graph.md anew; a test fails when they are out of date.
"""

import inspect
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from lc_assets.build.recipe import Recipe
from lc_assets.build.stage import (
    SAME_SNAPSHOT,
    Stage,
)
from lc_assets.errors import BadInput
from lc_assets.stages.catalogue import STAGES

BEGIN: Final = "<!-- made by lc_assets.cli.docs: stages -->"
END: Final = "<!-- end -->"
PER: Final = {"snapshot": "snapshot", "mix": "mix", "nothing": "–"}
_ATTRIBUTE = re.compile(r"^    (\w+): (.*)$")


def pages(root: Path) -> dict[Path, str]:
    """What each page should hold, by its path."""
    readme = root / "README.md"
    return {
        readme: with_table(readme.read_text("utf-8"), stage_table(STAGES)),
        root / "docs/settings.md": settings_page(),
        root / "docs/graph.md": graph_page(STAGES),
    }


def stage_table(stages: Sequence[Stage]) -> str:
    """One line per stage: its name, its partitions, what it is."""
    lines = [
        f"| `{stage.name}` | {PER[stage.partitioned_by]} | {stage.description} |"
        for stage in stages
    ]
    return "\n".join(["| asset | per | what it is |", "|---|---|---|", *lines])


def with_table(page: str, table: str) -> str:
    """A page with a new table between the marks.

    Raises:
        BadInput: when the page has no marks.
    """
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise BadInput(f"the page has no lines {BEGIN!r} and {END!r}, between which the table goes")
    return f"{before}{BEGIN}\n{table}\n{END}{after}"


def graph_page(stages: Sequence[Stage]) -> str:
    """The graph of stages as Mermaid, by groups; edges between partitions are labelled."""
    groups: dict[str, list[str]] = {}
    for stage in stages:
        groups.setdefault(stage.group, []).append(stage.name)
    lines = ["flowchart LR"]
    for group, names in groups.items():
        lines += [
            f"  subgraph {group}_assets [{group}]",
            *(f"    {name}" for name in names),
            "  end",
        ]
    for stage in stages:
        for upstream, partitions in stage.reads.items():
            label = "" if partitions.words == SAME_SNAPSHOT.words else f"|{partitions.words}|"
            lines.append(f"  {upstream.name} -->{label} {stage.name}")
    return "\n".join(
        [
            "# The graph of stages",
            "",
            (
                "Made from the stages' declarations by `python -m lc_assets.cli.docs`. An edge "
                "without a "
                "label reads the partition of the same snapshot."
            ),
            "",
            "```mermaid",
            *lines,
            "```",
            "",
        ]
    )


def settings_page() -> str:
    """Every setting of a recipe: section by section, with its default and its meaning."""
    parts = [
        "# Settings",
        "",
        (
            "A recipe is a TOML file with a section per stage, named like the stage; it needs "
            "only what "
            "differs from these defaults. Made by `python -m lc_assets.cli.docs`."
        ),
    ]
    for field in msgspec.structs.fields(Recipe):
        default = _default(field)
        named = isinstance(default, Mapping)
        kind = _struct_in(field.type) if named else type(default)
        if kind is None:
            continue
        section = f"[{field.name}.NAME]" if named else f"[{field.name}]"
        parts += ["", f"## `{section}`", "", _sentence(kind), "", "| setting | default | meaning |"]
        parts += ["|---|---|---|", *_lines(kind, "")]
    return "\n".join([*parts, ""])


def _lines(kind: type[msgspec.Struct], prefix: str) -> Iterator[str]:
    meanings = attributes_of(kind)
    for field in msgspec.structs.fields(kind):
        default, name = _default(field), f"{prefix}{field.name}"
        if isinstance(default, msgspec.Struct):
            yield from _lines(type(default), f"{name}.")
        else:
            yield f"| `{name}` | {_shown(default)} | {_cell(meanings.get(field.name, ''))} |"


def attributes_of(kind: type) -> dict[str, str]:
    """Meanings of a class's attributes, as its docstring has them.

    >>> attributes_of(type(Recipe().longcrawl_flat))["codec"][:11]
    '``blosc-lz4'
    """
    _, _, attributes = (inspect.getdoc(kind) or "").partition("Attributes:\n")
    found: dict[str, str] = {}
    name = ""
    for line in attributes.splitlines():
        if match := _ATTRIBUTE.match(line):
            name = match.group(1)
            found[name] = match.group(2)
        elif name and line.strip():
            found[name] += f" {line.strip()}"
    return found


def _sentence(kind: type) -> str:
    first, *_ = (inspect.getdoc(kind) or "").partition("\n\n")
    return _cell(first)


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


def _struct_in(kind: Any) -> type[msgspec.Struct] | None:
    found = [one for one in getattr(kind, "__args__", ()) if isinstance(one, type)]
    structs = [one for one in found if issubclass(one, msgspec.Struct)]
    return structs[0] if structs else None


def main() -> None:
    """Write the pages."""
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path()
    for path, content in pages(root).items():
        path.write_text(content, "utf-8")


if __name__ == "__main__":
    main()
