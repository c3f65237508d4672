"""Rust: ``mod a;``, ``use crate::a::{b, c::d};``, ``use super::a;``.

A module is declared by the file above it, and what it uses of that file is no reason to come behind
it: of ``use`` only modules count that do not lie around the file.
"""

import re
from collections.abc import Iterator
from typing import Final

from lc_assets.packing.imports.scanned import MOST_IMPORTS, Import, Scanned
from lc_assets.packing.imports.tree import DEEPEST, Tree, below, folder_of

_COMMENT_OR_STRING: Final = re.compile(
    r"//[^\n]*+|/\*(?:[^*]++|\*(?!/))*+(?:\*/|\Z)"
    r'|\br(?P<hashes>\#{0,16}+)"(?:[^"]++|"(?!(?P=hashes)))*+(?:"(?P=hashes)|\Z)'
    r'|"(?:[^"\\]++|\\[\s\S])*+"?+'
    r"|'(?:[^'\\\n]|\\[^\n]{1,10}?)'"
)
_STATEMENT: Final = re.compile(
    r"\bmod\s++(?P<mod>(?:r#)?+\w++)\s*+;|\buse\s++(?P<use>[^;]*+)(?:;|\Z)"
)
_PIECE: Final = re.compile(r"[{},]|(?:r#)?+\w++|::|\*")
_DEEPEST_GROUP: Final = 32
_ROOTS: Final = ("lib.rs", "main.rs")
_AROUND: Final = (*_ROOTS, "mod.rs", "build.rs")


def scan(text: str) -> Scanned:
    """What a file declares and uses.

    >>> [(found.kind, found.module) for found in scan("mod a; use crate::b::{c, d::{e as f, self}}; // mod g;").imports]
    [('mod', 'a'), ('use', 'crate::b::c'), ('use', 'crate::b::d::e'), ('use', 'crate::b::d::self')]
    """
    bare = _COMMENT_OR_STRING.sub(" ", text)
    found: list[Import] = []
    for statement in _STATEMENT.finditer(bare):
        if len(found) >= MOST_IMPORTS:
            break
        if statement["mod"]:
            found.append(Import(statement["mod"].removeprefix("r#"), kind="mod"))
        else:
            used = zip(_used(statement["use"]), range(MOST_IMPORTS), strict=False)
            found += [
                Import("::".join(parts), kind="use")
                for parts, _ in used
                if parts[0] in {"crate", "self", "super"}
            ]
    return Scanned(tuple(found[:MOST_IMPORTS]))


def _used(tree: str) -> Iterator[list[str]]:
    """The paths in a tree of ``use``; deeper groups than `_DEEPEST_GROUP` are passed over."""
    stack: list[int] = []
    parts: list[str] = []
    before, fresh, renamed = 0, False, False
    for piece in _PIECE.findall(tree):
        if piece == "{":
            if len(stack) >= _DEEPEST_GROUP:
                return
            stack.append(before)
            before = len(parts)
            fresh = False
        elif piece in {",", "}"}:
            if fresh:
                yield list(parts)
            del parts[before:]
            fresh = renamed = False
            if piece == "}" and stack:
                before = stack.pop()
                del parts[before:]
        elif piece == "as":
            renamed = True
        elif piece != "::" and not renamed and len(parts) < DEEPEST:
            parts.append(piece.removeprefix("r#"))
            fresh = True
    if fresh:
        yield parts


def resolve(tree: Tree, path: str, statement: Import) -> Iterator[str]:
    """The file that a statement of ``path`` means."""
    if statement.kind == "mod":
        target = _module(tree, _inside(path), [statement.module])
    else:
        folder, names = _used_from(tree, path, statement.module.split("::"))
        target = None if folder is None else _longest(tree, folder, names)
    if target and target != path and (statement.kind == "mod" or not _is_around(target, path)):
        yield target


def _inside(path: str) -> str:
    """The folder of a file's own modules."""
    folder, _, name = path.rpartition("/")
    return folder if name in _AROUND else below(folder, name.removesuffix(".rs"))


def _used_from(tree: Tree, path: str, names: list[str]) -> tuple[str | None, list[str]]:
    """Where a path of ``use`` begins, and what is left of it."""
    first = names[0]
    if first == "crate":
        return next(
            (
                folder
                for folder in tree.above(path)
                if any(tree.has(below(folder, root)) for root in _ROOTS)
            ),
            None,
        ), names[1:]
    folder = _inside(path)
    rest = names[1:]
    if first == "super":
        folder = folder_of(folder)
    while rest and rest[0] == "super":
        folder, rest = folder_of(folder), rest[1:]
    return folder, rest


def _longest(tree: Tree, folder: str, names: list[str]) -> str | None:
    return next(
        (
            target
            for end in range(len(names), 0, -1)
            if (target := _module(tree, folder, names[:end]))
        ),
        None,
    )


def _module(tree: Tree, folder: str, names: list[str]) -> str | None:
    stem = below(folder, "/".join(names))
    return tree.first((f"{stem}.rs", f"{stem}/mod.rs"))


def _is_around(target: str, path: str) -> bool:
    """Whether a module is one that ``path`` is part of."""
    return f"{_inside(path)}/".startswith(f"{_inside(target)}/")
