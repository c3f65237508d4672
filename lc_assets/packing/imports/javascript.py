"""JavaScript and TypeScript: ``import … from "./a"``, ``export … from``, ``import("./a")``,
``require("./a")``.

Relative names alone: the others are of packages. A name may leave its ending out, mean a folder's
``index``, or say ``.js`` where the file is TypeScript.
"""

import re
from collections.abc import Iterator
from typing import Final

from lc_assets.packing.imports.scanned import LANGUAGES, MOST_IMPORTS, Import, Scanned
from lc_assets.packing.imports.tree import Tree, folder_of, joined

_TOKEN: Final = re.compile(
    r"""//[^\n]*+|/\*(?:[^*]++|\*(?!/))*+(?:\*/|\Z)|`(?:[^`\\]++|\\[\s\S])*+`?+"""
    r"""|\b(?:from|import)\s*+(?:"(?P<a>[^"\n]*+)"|'(?P<b>[^'\n]*+)')"""
    r"""|\b(?:require|import)\s*+\(\s*+(?:"(?P<c>[^"\n]*+)"|'(?P<d>[^'\n]*+)')\s*+[,)]"""
    r"""|"(?:[^"\\\n]++|\\[\s\S])*+"?+|'(?:[^'\\\n]++|\\[\s\S])*+'?+"""
)
_ENDINGS: Final = (
    ".ts",
    ".tsx",
    ".mts",
    ".cts",
    ".d.ts",
    ".js",
    ".jsx",
    ".mjs",
    ".cjs",
    ".json",
    ".vue",
    ".svelte",
)


def scan(text: str) -> Scanned:
    r"""What a file imports.

    >>> [found.module for found in scan('import a, {b} from "./b";\n// from "./c"\nconst d = require(\'../d\')').imports]
    ['./b', '../d']
    """
    named = (found[found.lastgroup] for found in _TOKEN.finditer(text) if found.lastgroup)
    relative = (Import(name) for name in named if name.startswith("."))
    return Scanned(tuple(one for one, _ in zip(relative, range(MOST_IMPORTS), strict=False)))


def resolve(tree: Tree, path: str, statement: Import) -> Iterator[str]:
    """The file that a statement of ``path`` means."""
    name = joined(folder_of(path), statement.module)
    target = tree.first(_candidates(name))
    if target:
        yield target


def _candidates(name: str) -> Iterator[str]:
    yield name
    stem, dot, ending = name.rpartition(".")
    if dot and f".{ending}" in LANGUAGES["javascript"]:
        yield from (f"{stem}{other}" for other in _ENDINGS)
    yield from (f"{name}{other}" for other in _ENDINGS)
    yield from (joined(name, f"index{other}") for other in _ENDINGS)
