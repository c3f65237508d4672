"""From files to packs: which file needs which, an order in which what is needed comes first, and
packs of whole files.

The order is that in which a reader would read who opens the files by name and, at each import,
reads that file first. A file that is being read is not opened again: so a circle is cut at the
import that closes it, the same one every time. Within the limits of such circles every imported
file stands before the one that imports it.

A pack is a stretch of that order: whole files up to a number of tokens. A longer file is a pack of
its own.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from lc_assets.errors import BadInput
from lc_assets.packing.imports import c_family, go, java, javascript, python, rust
from lc_assets.packing.imports.scanned import Import, Scanned, language_of
from lc_assets.packing.imports.tree import Tree

_SCAN: Final[Mapping[str, Callable[[str], Scanned]]] = {
    "python": python.scan,
    "c_family": c_family.scan,
    "javascript": javascript.scan,
    "go": go.scan,
    "rust": rust.scan,
    "java": java.scan,
}
_RESOLVE: Final[Mapping[str, Callable[[Tree, str, Import], Iterator[str]]]] = {
    "python": python.resolve,
    "c_family": c_family.resolve,
    "javascript": javascript.resolve,
    "go": go.resolve,
    "rust": rust.resolve,
    "java": java.resolve,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportOrder:
    """Files of a repository in order.

    Attributes:
        paths: every file once.
        depths: of each, how far it is from a file that was opened by name: 0 for that one.
        n_edges: pairs of files, one of which imports the other.
        n_cut: of these, how many stand the wrong way round, because they close a circle.
    """

    paths: tuple[str, ...]
    depths: tuple[int, ...]
    n_edges: int
    n_cut: int


def scan_file(path: str, text: str) -> Scanned:
    """What a file says of others; nothing when it is of no known language."""
    language = language_of(path)
    return Scanned() if language is None else _SCAN[language](text)


def targets(tree: Tree, path: str) -> list[str]:
    """What a file imports: paths, and folders with a slash behind them; each once, by first
    appearance, never itself.
    """
    language = language_of(path)
    if language is None:
        return []
    found = (
        target
        for statement in tree.files[path].imports
        for target in _RESOLVE[language](tree, path, statement)
    )
    return [target for target in dict.fromkeys(found) if target != path]


def in_import_order(files: Mapping[str, Scanned]) -> ImportOrder:
    """Put files in order.

    Args:
        files: what each says, by its path as `lc_assets.packing.imports.tree.normalised` gives it.

    >>> from lc_assets.packing.imports.python import scan
    >>> in_import_order({"a.py": scan("import b, c"), "b.py": scan("import c"), "c.py": scan("import a")}).paths
    ('c.py', 'b.py', 'a.py')
    """
    tree = Tree(files)
    edges = {path: targets(tree, path) for path in files}
    folders = {target for found in edges.values() for target in found if target.endswith("/")}
    edges |= {folder: _package(tree, folder) for folder in folders}
    paths, depths = _read(edges, sorted(files))
    place = {path: at for at, path in enumerate(paths)}
    pairs = [(path, target) for path in files for target in _files(edges, path)]
    return ImportOrder(
        paths=tuple(paths),
        depths=tuple(depths),
        n_edges=len(pairs),
        n_cut=sum(place[target] > place[path] for path, target in pairs),
    )


def _package(tree: Tree, folder: str) -> list[str]:
    return [
        path
        for path in tree.files_in(folder.rstrip("/"))
        if language_of(path) and not path.endswith("_test.go")
    ]


def _files(edges: Mapping[str, Sequence[str]], path: str) -> Iterator[str]:
    """Files that a file imports; of a folder its first stands for all, so that counting stays
    linear.
    """
    for target in edges[path]:
        if not target.endswith("/"):
            yield target
        elif edges[target] and edges[target][0] != path:
            yield edges[target][0]


def _read(edges: Mapping[str, Sequence[str]], names: Sequence[str]) -> tuple[list[str], list[int]]:
    """Depth first, what is imported before what imports it; without recursion, for chains of any
    length.
    """
    paths, depths = list[str](), list[int]()
    opened: set[str] = set()
    for name in names:
        if name in opened:
            continue
        opened.add(name)
        stack = [(name, 0, iter(edges[name]))]
        while stack:
            path, depth, rest = stack[-1]
            target = next((one for one in rest if one not in opened), None)
            if target is not None:
                opened.add(target)
                stack.append((target, depth + (not path.endswith("/")), iter(edges[target])))
                continue
            stack.pop()
            if not path.endswith("/"):
                paths.append(path)
                depths.append(depth)
    return paths, depths


def cut_into_packs(lengths: Sequence[int], max_tokens: int) -> list[range]:
    """Stretches of files, each as long as whole files allow.

    >>> cut_into_packs([3, 3, 9, 2], 6)
    [range(0, 2), range(2, 3), range(3, 4)]

    Raises:
        BadInput: when the limit is no number of tokens.
    """
    if max_tokens < 1:
        raise BadInput(f"a pack has at most so many tokens: at least 1, got {max_tokens:,}")
    packs, begin, n_tokens = list[range](), 0, 0
    for place, length in enumerate(lengths):
        if place > begin and n_tokens + length > max_tokens:
            packs.append(range(begin, place))
            begin, n_tokens = place, 0
        n_tokens += length
    return [*packs, range(begin, len(lengths))] if lengths else []
