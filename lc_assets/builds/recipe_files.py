"""Recipes as TOML files, and the one that a lake records."""

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import msgspec

from lc_assets.builds.recipe import Recipe
from lc_assets.errors import BadInput, known_names
from lc_assets.lake.bucket_lake import open_lake
from lc_assets.publishing import make_folder, publish_bytes

RECIPE_FILE = "recipe.toml"
"""File in a lake with the recipe of its last build."""
SECTIONS = b"# The sections below are of Dagster components: their defs.yaml has them.\n"
"""In a recorded recipe: the line before `sections`."""
FOLDER = "folder"
"""In a recorded recipe: the folder that relative paths are resolved against; by default its own."""
_PATHS = (
    ".reuses",
    ".sources.*.path",
    ".filtered_documents.lists.*",
    ".filtered_documents.models.*",
    ".contaminated_documents.against",
    ".withdrawn_documents.lists",
    ".withdrawn_documents.required_lists",
    ".withdrawn_documents.reinstated",
    ".referral_report.words",
)
_NAMES_OR_PATHS = (
    ".sources.*.rules",
    ".filtered_documents.rules",
    ".token_documents.tokenizer",
)
"""Settings that are either a file below the recipe's folder or a known name."""


def parse_recipe(content: str | bytes, *, where: str, folder: Path | None = None) -> Recipe:
    r"""Read a recipe from TOML; ``where`` names it in errors, and relative paths in it are below
    ``folder``.

    >>> recipe = parse_recipe("[filtered_documents]\nmin_words = 12000", where="mine.toml")
    >>> recipe.filtered_documents.min_words
    12000

    Raises:
        BadInput: if the text is not a valid recipe; names the setting or value and its position.
    """
    try:
        settings = msgspec.toml.decode(content)
        if isinstance(settings.get(FOLDER), str):
            folder = Path(settings.pop(FOLDER))
        if folder is not None:
            settings = _resolved(settings, folder)
        return msgspec.convert(settings, Recipe, str_keys=True)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise BadInput(f"{where}: not a recipe: {error}{hint(str(error))}") from error


def _resolved(value: Any, folder: Path, name: str = "") -> Any:
    """Settings whose relative paths are made absolute."""
    if isinstance(value, dict):
        return {key: _resolved(of, folder, f"{name}.{key}") for key, of in value.items()}
    if isinstance(value, list):
        return [_resolved(of, folder, name) for of in value]
    if not isinstance(value, str) or not value or "://" in value or Path(value).is_absolute():
        return value
    path = (folder / value).absolute()
    is_path = any(fnmatchcase(name, pattern) for pattern in _PATHS) or (
        any(fnmatchcase(name, pattern) for pattern in _NAMES_OR_PATHS) and path.is_file()
    )
    return str(path) if is_path else value


def hint(message: str, kind: Any = Recipe) -> str:
    """Valid names or values where msgspec found an unknown one; empty for other errors.

    >>> hint("Invalid enum value 'heat' - at `$.raw_snapshot.buckets[0]`")
    '; there are head, middle; did you mean head?'
    """
    if not message.startswith(("Object contains unknown field", "Invalid enum value")):
        return ""
    *_, place = message.rpartition("at `$")
    steps = re.findall(r"\.(\w+)|\[", place) if "at `$" in message else []
    unknown = re.findall(r"['`]([^'`$]+)['`]", message)[:1]
    return f"; there are {known_names(_possible(msgspec.inspect.type_info(kind), steps), *unknown)}"


def _possible(kind: msgspec.inspect.Type, steps: list[str]) -> Iterator[str]:
    """Names of the settings, or values, that a type allows ``steps`` further down; an empty step is
    an item or an entry.
    """
    if isinstance(kind, msgspec.inspect.UnionType):
        for choice in kind.types:
            yield from _possible(choice, steps)
    elif isinstance(kind, msgspec.inspect.LiteralType) and not steps:
        yield from map(str, kind.values)
    elif isinstance(kind, msgspec.inspect.StructType):
        if not steps:
            yield from (field.name for field in kind.fields)
        for field in kind.fields:
            if steps and field.name == steps[0]:
                yield from _possible(field.type, steps[1:])
    elif isinstance(kind, msgspec.inspect.VarTupleType) and steps:
        yield from _possible(kind.item_type, steps[1:])
    elif isinstance(kind, msgspec.inspect.DictType) and steps:
        yield from _possible(kind.value_type, steps[1:])


def with_sections(content: bytes, sections: str | None) -> bytes:
    """A recipe's TOML with further sections instead of those that were recorded with it; as it is
    if ``sections`` is None.

    >>> recorded = with_sections(b"[token_grid]", "[packed_rows]")
    >>> [line for line in recorded.splitlines() if not line.startswith(b"#")]
    [b'[token_grid]', b'[packed_rows]']
    >>> with_sections(recorded, "").splitlines()
    [b'[token_grid]']
    """
    if sections is None:
        return content
    own = content.partition(SECTIONS)[0]
    line_end = b"" if own.endswith(b"\n") or not own else b"\n"
    return own + line_end + SECTIONS + sections.encode() if sections else own


def read_recipe(path: Path | None, *, withdrawn: str = "", sections: str | None = None) -> Recipe:
    """The recipe of a file, or the default recipe when there is none.

    Args:
        path: the file.
        withdrawn: further lists of withdrawals, as `lists_named` has them.
        sections: further sections, see `with_sections`.
    """
    if path is not None and not path.is_file():
        raise BadInput(f"{path}: no such recipe file")
    recipe = parse_recipe(
        with_sections(b"" if path is None else path.read_bytes(), sections),
        where=f"{path or 'the default recipe'}{' and components' if sections else ''}",
        folder=path.parent if path else None,
    )
    named = recipe.withdrawn_documents.lists + tuple(
        name for name in lists_named(withdrawn) if name not in recipe.withdrawn_documents.lists
    )
    return msgspec.structs.replace(
        recipe, withdrawn_documents=msgspec.structs.replace(recipe.withdrawn_documents, lists=named)
    )


def recorded_recipe(lake: Path | str) -> Path | None:
    """The recipe of a lake's last build, from a local copy if the lake is in a bucket; None if none
    is recorded.
    """
    opened = open_lake(str(lake))
    content, path = opened.note(RECIPE_FILE), opened.root / RECIPE_FILE
    if content is None:
        return None
    if not path.is_file() or path.read_bytes() != content:
        make_folder(path.parent)
        publish_bytes(path, content)
    return path


def record_recipe(lake: Path | str, recipe: Path | None, sections: str | None = None) -> None:
    """Record the recipe that a lake is built with, if one is given, and further sections. Its
    relative paths still refer to its own folder.

    Raises:
        BadInput: when there is no such file.
        Busy: while commands build by another recipe.
    """
    opened, content = open_lake(str(lake)), recorded_content(lake, recipe, sections)
    if content is not None and opened.note(RECIPE_FILE) != content:
        opened.replace_note(RECIPE_FILE, content)


def recorded_content(
    lake: Path | str, recipe: Path | None, sections: str | None = None
) -> bytes | None:
    """What a lake that is built with a recipe has as its record; without a recipe, or with the
    record itself, the present one; with ``sections``, see `with_sections`. None if there is none.

    Raises:
        BadInput: when there is no such file; when ``sections`` join the default recipe in a lake
            with another, such as one in a bucket, whose recipe is not read in loading.
    """
    if recipe is None or recipe.resolve() == (Path(lake) / RECIPE_FILE).resolve():
        content = open_lake(str(lake)).note(RECIPE_FILE)
        if recipe is None and sections is not None and with_sections(content or b"", "").strip():
            raise BadInput(f"{lake}: was built by a recipe of its own: name a recipe file")
        return with_sections(content or b"", sections) if content or sections else content
    if not recipe.is_file():
        raise BadInput(f"{recipe}: no such recipe file")
    content = recipe.read_bytes()
    if parse_recipe(content, where=str(recipe), folder=recipe.parent) != parse_recipe(
        content, where=str(recipe)
    ):
        folder = json.dumps(str(recipe.parent.absolute()), ensure_ascii=False)
        content = f"{FOLDER} = {folder}  # of relative paths\n".encode() + content
    return with_sections(content, sections)


def toml_of(recipe: Recipe, folder: Path) -> str:
    r"""A recipe as TOML, without the settings whose values are the default ones; its relative paths
    are below ``folder``.

    >>> recipe = parse_recipe("[token_grid]\nrow_tokens = 1024", where="mine.toml")
    >>> print(toml_of(recipe, Path("/data")), end="")
    "folder" = "/data"
    "token_grid" = {"row_tokens" = 1024}
    """
    changed = {FOLDER: str(folder)} | _changed(
        msgspec.to_builtins(recipe), msgspec.to_builtins(Recipe())
    )
    return _lines(changed)


def section_of(names: Sequence[str], values: Mapping[str, Any]) -> str:
    r"""A section of a recipe as TOML; values of None are left out.

    >>> section_of(("blended_mix", "half"), {"parts": {"packed_rows": 0.5}, "samples": None})
    '["blended_mix"."half"]\n"parts" = {"packed_rows" = 0.5}\n'
    """
    return f"[{'.'.join(map(json.dumps, names))}]\n{_lines(values)}"


def _lines(values: Mapping[str, Any]) -> str:
    given = {name: value for name, value in values.items() if value is not None}
    return "".join(f"{json.dumps(name)} = {_toml(value)}\n" for name, value in given.items())


def _changed(values: dict[str, Any], defaults: Any) -> dict[str, Any]:
    if not isinstance(defaults, dict):
        return values
    return {
        name: _changed(value, defaults.get(name)) if isinstance(value, dict) else value
        for name, value in values.items()
        if value is not None and value != defaults.get(name)
    }


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        pairs = (f"{json.dumps(key)} = {_toml(of)}" for key, of in value.items() if of is not None)
        return f"{{{', '.join(pairs)}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    return json.dumps(value, ensure_ascii=False)


def lists_named(words: str) -> tuple[str, ...]:
    """The paths in ``LC_WITHDRAWN``, separated as in ``PATH``.

    >>> lists_named("a.csv:b.csv"), lists_named("")
    (('a.csv', 'b.csv'), ())
    """
    return tuple(name for name in words.split(os.pathsep) if name)
