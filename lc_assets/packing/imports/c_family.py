"""C, C++, Objective-C and CUDA: ``#include "a/b.h"``, ``#include <a/b.h>``, ``#import``.

A file is looked for beside the one that includes it, then in the folders around it and in their
``include`` and ``src``, then wherever a path ends so.
"""

import re
from collections.abc import Iterator
from typing import Final

from lc_assets.packing.imports.scanned import MOST_IMPORTS, Import, Scanned
from lc_assets.packing.imports.tree import Tree, below, joined, normalised

COMMENT: Final = re.compile(
    r"//(?:[^\n\\]++|\\[\s\S])*+"
    r"|/\*(?:[^*]++|\*(?!/))*+(?:\*/|\Z)"
    r'|(?P<kept>"(?:[^"\\\n]++|\\[\s\S])*+"?'
    r"|'(?:[^'\\\n]++|\\[\s\S])*+'?)"
)
"""A comment, or a string that may look like one."""
_INCLUDE: Final = re.compile(
    r'^[ \t]*+#[ \t]*+(?:include|include_next|import)\b[ \t]*+(?:"(?P<quoted>[^"\n]++)"|<(?P<angled>[^>\n]++)>)',
    re.MULTILINE,
)
_WITHIN: Final = ("", "include/", "src/")


def without_comments(text: str) -> str:
    """C's comments made one space each; strings stay.

    >>> without_comments('a /* b */ c // d')
    'a   c  '
    """
    return COMMENT.sub(lambda found: found["kept"] or " ", text)


def scan(text: str) -> Scanned:
    r"""What a file includes.

    >>> [found.module for found in scan('# include "a.h"\n/*\n#include <b.h>\n*/\n#include <sys/c.h>').imports]
    ['a.h', 'sys/c.h']
    """
    found = (
        Import(one["quoted"] or one["angled"], kind="quoted" if one["quoted"] else "angled")
        for one in _includes(text)
    )
    return Scanned(tuple(one for one, _ in zip(found, range(MOST_IMPORTS), strict=False)))


def _includes(text: str) -> Iterator[re.Match[str]]:
    return (
        _INCLUDE.finditer(without_comments(text))
        if "include" in text or "import" in text
        else iter(())
    )


def resolve(tree: Tree, path: str, statement: Import) -> Iterator[str]:
    """The file that a statement of ``path`` means."""
    name = normalised(statement.module)
    place = joined if ".." in statement.module else below
    written = statement.module if ".." in statement.module else name
    around = (
        place(folder, f"{within}{written}") for folder in tree.above(path) for within in _WITHIN
    )
    target = tree.first(around) or tree.ending_with(name)
    if target:
        yield target
