"""Java: ``import a.b.C;``, ``import static a.b.C.d;``, ``import a.b.*;``. A file's package is what
it declares.
"""

import re
from collections.abc import Iterator
from typing import Final

from lc_assets.packing.imports.scanned import MOST_IMPORTS, Import, Scanned
from lc_assets.packing.imports.tree import Tree, folder_of

_COMMENT_OR_STRING: Final = re.compile(
    r'//[^\n]*+|/\*(?:[^*]++|\*(?!/))*+(?:\*/|\Z)|"""(?:[^"\\]++|\\[\s\S]|"(?!""))*+(?:"""|\Z)'
    r'|"(?:[^"\\\n]++|\\[^\n])*+"?+'
    r"|'(?:[^'\\\n]++|\\[^\n])*+'?+"
)
_NAME: Final = r"[\w$]++(?:\s*+\.\s*+[\w$]++){0,64}+"
_STATEMENT: Final = re.compile(
    rf"\bpackage\s++(?P<package>{_NAME})\s*+;|\bimport\s++(?P<static>static\s++)?+(?P<name>{_NAME})(?P<all>\s*+\.\s*+\*)?+\s*+;"
)


def scan(text: str) -> Scanned:
    """What a file imports, and its package.

    >>> said = scan("package a.b; import c.D; import static c.E.f; import g.*;")
    >>> said.package, [(found.module, found.names, found.kind) for found in said.imports]
    ('a.b', [('c.D', (), ''), ('c.E.f', (), 'static'), ('g', ('*',), '')])
    """
    package, found = "", list[Import]()
    for statement in _STATEMENT.finditer(_COMMENT_OR_STRING.sub(" ", text)):
        if statement["package"]:
            package = package or _squeezed(statement["package"])
        elif len(found) < MOST_IMPORTS:
            names = ("*",) if statement["all"] else ()
            found.append(
                Import(_squeezed(statement["name"]), names, "static" if statement["static"] else "")
            )
    return Scanned(tuple(found), package)


def _squeezed(name: str) -> str:
    return "".join(name.split())


def resolve(tree: Tree, path: str, statement: Import) -> Iterator[str]:
    """The file, or the folder with a slash behind it, that a statement of ``path`` means."""
    parts = statement.module.split(".")
    if statement.names and not statement.kind:
        root = _root(tree, path)
        folder = "/".join((root, *parts)) if root else "/".join(parts)
        if tree.files_in(folder):
            yield f"{folder}/"
            return
    target = next(
        (found for end in range(len(parts), 1, -1) if (found := _class(tree, path, parts[:end]))),
        None,
    )
    if target:
        yield target


def _class(tree: Tree, path: str, parts: list[str]) -> str | None:
    name = f"{'/'.join(parts)}.java"
    root = _root(tree, path)
    own = f"{root}/{name}" if root else name
    return own if tree.has(own) else tree.ending_with(name)


def _root(tree: Tree, path: str) -> str:
    """The folder of a file's sources: its own, without its package."""
    folder, below = folder_of(path), tree.files[path].package.replace(".", "/")
    return folder.removesuffix(below).rstrip("/") if below else folder
