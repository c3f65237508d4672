r"""Python: ``import a.b``, ``from ..a import b``.

A name is looked for as Python would: relative to the file's package, or below a folder that could
be on the path: one around the file that is no package, the nearest first; or one that holds
packages anywhere in the repository.
"""

import re
from collections.abc import Iterator
from functools import partial
from typing import Final

from lc_assets.packing.imports.scanned import MOST_IMPORTS, Import, Scanned
from lc_assets.packing.imports.tree import Tree, below, folder_of

_COMMENT_OR_STRING: Final = re.compile(
    r"#[^\n]*+"
    r'|"""(?:[^"\\]++|\\[\s\S]|"(?!""))*+(?:"""|\Z)'
    r"|'''(?:[^'\\]++|\\[\s\S]|'(?!''))*+(?:'''|\Z)"
    r'|"(?:[^"\\\n]++|\\[\s\S])*+"?'
    r"|'(?:[^'\\\n]++|\\[\s\S])*+'?"
)
_CONTINUED: Final = re.compile(r"\\\r?\n")
_STATEMENT: Final = re.compile(
    # Bounded repeats: "from.from.from..." must not be read to its end from each of its words.
    r"\bfrom[ \t]*+(?P<dots>(?:\.[ \t]*+){0,64}+)(?P<module>(?!import\b)\w++(?:[ \t]*+\.[ \t]*+\w++){0,64}+)?+[ \t]*+"
    r"\bimport\b[ \t]*+(?P<names>\([^)]*+\)?+|[^\n;]*+)"
    r"|\bimport\b[ \t]++(?P<modules>[^\n;]*+)"
)
_ENDS: Final = (".py", ".pyi", "/__init__.py", "/__init__.pyi", ".pyw")
_PACKAGE: Final = ("__init__.py", "__init__.pyi")


def scan(text: str) -> Scanned:
    r"""What a file imports.

    >>> scan("from ..a import (b as c, # why\n  d)\nimport e.f as g, h").imports
    (Import(module='..a', names=('b', 'd'), kind=''), Import(module='e.f', names=(), kind=''), Import(module='h', names=(), kind=''))
    """
    if "import" not in text:
        return Scanned()
    bare = _CONTINUED.sub(" ", _COMMENT_OR_STRING.sub(_emptied, text))
    found: list[Import] = []
    for statement in _STATEMENT.finditer(bare):
        if len(found) >= MOST_IMPORTS:
            break
        if (modules := statement["modules"]) is not None:
            found += [Import(name) for name in _first_words(modules)]
        else:
            module = "." * statement["dots"].count(".") + "".join(
                (statement["module"] or "").split()
            )
            found.append(Import(module, tuple(_first_words(statement["names"].strip("()")))))
    return Scanned(tuple(found[:MOST_IMPORTS]))


def _emptied(found: re.Match[str]) -> str:
    return "" if found[0].startswith("#") else '""'


def _first_words(listed: str) -> Iterator[str]:
    """Of each entry the name, without what it is called here."""
    for entry in listed.split(",")[:MOST_IMPORTS]:
        word = re.match(r"\s*+([\w.*]++(?:[ \t]*+\.[ \t]*+\w++)*+)", entry)
        if word:
            yield "".join(word[1].split())


def resolve(tree: Tree, path: str, statement: Import) -> Iterator[str]:
    """The files that a statement of ``path`` means."""
    found = (
        partial(_relative, tree, path)
        if statement.module.startswith(".")
        else partial(_absolute, tree, path)
    )
    if not statement.names:
        target = _longest(found, statement.module)
        if target:
            yield target
        return
    separator = "" if statement.module.endswith(".") else "."
    missed = False
    for name in statement.names:
        target = None if name == "*" else found(f"{statement.module}{separator}{name}")
        missed = missed or target is None
        if target:
            yield target
    if missed and (target := found(statement.module)):
        yield target


def _longest(found: partial[str | None], module: str) -> str | None:
    """``import a.b.c`` needs a.b.c; where only a.b is ours, that."""
    parts = module.split(".")
    return next(
        (target for end in range(len(parts), 0, -1) if (target := found(".".join(parts[:end])))),
        None,
    )


def _relative(tree: Tree, path: str, module: str) -> str | None:
    name = module.lstrip(".")
    folder = folder_of(path)
    for _ in range(len(module) - len(name) - 1):
        folder = folder_of(folder)
    if not name:
        return tree.first(below(folder, ending) for ending in _PACKAGE)
    return _at(tree, folder, name.replace(".", "/"))


def _absolute(tree: Tree, path: str, module: str) -> str | None:
    first, name = module.partition(".")[0], module.replace(".", "/")
    for folder in tree.above(path):
        if (
            tree.begins(below(folder, first))
            and not _is_package(tree, folder)
            and (target := _at(tree, folder, name))
        ):
            return target
    # Elsewhere: a folder below which the first part of the name is a package, such as src/ for
    # tests/.
    package = next(
        (found for ending in _PACKAGE if (found := tree.ending_with(f"{first}/{ending}"))), None
    )
    return None if package is None else _at(tree, folder_of(folder_of(package)), name)


def _at(tree: Tree, folder: str, name: str) -> str | None:
    return tree.first(below(folder, f"{name}{ending}") for ending in _ENDS)


def _is_package(tree: Tree, folder: str) -> bool:
    return any(tree.has(below(folder, ending)) for ending in _PACKAGE)
