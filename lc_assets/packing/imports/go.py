"""Go: ``import "example.com/repo/pkg"``, alone or in brackets. A package is all the files of a
folder, its tests left out.

Which folder, a ``go.mod`` around the file says; where there is none, the longest end of the name
that is a folder with Go files.
"""

import re
from collections.abc import Iterator
from typing import Final

from lc_assets.packing.imports.c_family import without_comments
from lc_assets.packing.imports.scanned import MOST_IMPORTS, Import, Scanned
from lc_assets.packing.imports.tree import DEEPEST, Tree, below, folder_of, joined

_TOKEN: Final = re.compile(
    r'\bimport\b\s*+(?:\((?P<many>[^)]*+)\)?+|(?P<one>[\w.]*+[ \t]*+"[^"\n]*+"))|"(?:[^"\\\n]++|\\[\s\S])*+"?+|`[^`]*+`?+'
)
_QUOTED: Final = re.compile(r'"([^"\n]*+)"')
_MODULE: Final = re.compile(r"^[ \t]*+module[ \t]++(\S++)", re.MULTILINE)
_PACKAGE: Final = re.compile(r"^[ \t]*+package[ \t]++\w", re.MULTILINE)


def scan(text: str) -> Scanned:
    r"""What a file imports; of a ``go.mod``, its module.

    >>> scan('package a\nimport (\n\t"fmt" // (!)\n\tx "example.com/m/b"\n)').imports[1].module, scan("module example.com/m\n").package
    ('example.com/m/b', 'example.com/m')
    """
    bare = without_comments(text)
    if "import" not in bare:
        module = None if _PACKAGE.search(bare) else _MODULE.search(bare)
        return Scanned(package=module[1].strip('"') if module else "")
    listed = (found["many"] or found["one"] for found in _TOKEN.finditer(bare) if found.lastgroup)
    named = (Import(name) for names in listed for name in _QUOTED.findall(names) if name)
    return Scanned(tuple(one for one, _ in zip(named, range(MOST_IMPORTS), strict=False)))


def resolve(tree: Tree, path: str, statement: Import) -> Iterator[str]:
    """The folder, with a slash behind it, that a statement of ``path`` means."""
    folder = _folder(tree, path, statement.module.strip("/"))
    if (
        folder is not None
        and any(file.endswith(".go") for file in tree.files_in(folder))
        and folder != folder_of(path)
    ):
        yield f"{folder}/"


def _folder(tree: Tree, path: str, name: str) -> str | None:
    for around in tree.above(path):
        described = tree.files.get(below(around, "go.mod"))
        if described is not None and described.package:
            rest = name.removeprefix(described.package)
            is_ours = name == described.package or (rest != name and rest.startswith("/"))
            return joined(around, rest) if is_ours else None
    parts = name.split("/")
    if "." not in parts[0]:
        return None  # of the standard library
    ends = ("/".join(parts[start:]) for start in range(1, min(len(parts), DEEPEST)))
    return next(
        (folder for folder in ends if any(file.endswith(".go") for file in tree.files_in(folder))),
        None,
    )
