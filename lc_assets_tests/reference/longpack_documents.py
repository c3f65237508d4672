"""LongPack's documents from a tree of links: the choice of the pages, and the document of them.

The stages choose pages over a whole snapshot, `lc_assets.packing.longpack`; this is the same for one
root.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from lc_assets.packing.longpack import PART_TOKENS, PackedDocument, Part, Placed, written


def content_of(page: Part) -> str:
    """Identifies a page's content; no document holds the same content twice."""
    return page.cluster or page.url


@dataclass(frozen=True, slots=True, kw_only=True)
class Child:
    """A page that is linked to, the anchor texts of the links, and the pages it links to itself."""

    page: Part
    keys: str
    children: tuple["Child", ...] = ()


def pack(
    root: Part,
    children: Sequence[Child],
    *,
    max_tokens: int | None = None,
    paper_exact: bool = False,
) -> PackedDocument:
    r"""Pack a root with the pages it links to.

    Pages are admitted round by round, in the order of the links, while `part_cost` of all parts is
    within ``max_tokens``; a content that the document already holds is skipped, which ends cycles.
    Links of a page that was not admitted are not followed.

    Args:
        root: the page that comes last.
        children: pages it links to, in order of appearance.
        max_tokens: maximum length of the document; None means no limit. A longer root stays alone,
            and whole.
        paper_exact: write exactly what the paper's pseudo-code does, including repeated contents.

    >>> page = Child(page=Part(url="b", text=" Bees fly. "), keys="bees,\ninsects")
    >>> packed = pack(Part(url="a", text="See bees."), [page])
    >>> packed.text
    'bees, insects\nBees fly.\n\nroot : \nSee bees.'
    >>> [(span.role, packed.text[span.start : span.stop]) for span in packed.spans]
    [('child', 'bees, insects\nBees fly.\n\n'), ('root', 'root : \nSee bees.')]
    >>> pack(Part(url="a", text="See bees."), [page], paper_exact=True).text
    'bees,\ninsects\n Bees fly. root : \nSee bees.'
    """
    admitted = _admitted(root, children, max_tokens, guard=not paper_exact)
    return written(root, _post_order(children, admitted), paper_exact=paper_exact)


def part_cost(n_tokens: int, keys: str) -> int:
    """Upper bound of a part's tokens: every byte of the anchor line counts as one.

    >>> part_cost(100, "bees")
    112
    """
    return n_tokens + len(keys.encode("utf-8", "surrogatepass")) + PART_TOKENS


class _Visit(NamedTuple):
    """A child in the tree: its depth, its number in preorder, and its parent's (-1: the root)."""

    depth: int
    number: int
    parent: int
    child: Child


def _admitted(
    root: Part, children: Sequence[Child], max_tokens: int | None, *, guard: bool
) -> set[int]:
    """Numbers of the children that are written."""
    room = math.inf if max_tokens is None else max_tokens - part_cost(root.n_tokens, "")
    held = {content_of(root)}
    admitted = {-1}
    for visit in sorted(_visits(children), key=lambda visit: (visit.depth, visit.number)):
        page = visit.child.page
        cost = part_cost(page.n_tokens, visit.child.keys)
        if visit.parent in admitted and cost <= room and not (guard and content_of(page) in held):
            room -= cost
            held.add(content_of(page))
            admitted.add(visit.number)
    return admitted


def _post_order(children: Sequence[Child], admitted: set[int]) -> Iterator[Placed]:
    for visit in _visits(children):
        if visit.number in admitted:
            yield Placed(page=visit.child.page, keys=visit.child.keys, depth=visit.depth)


def _visits(children: Sequence[Child]) -> Iterator[_Visit]:
    """Every child, each after the pages it links to; without recursion, for trees of any depth."""
    waiting = [(1, -1, child) for child in reversed(children)]
    open_visits: list[tuple[_Visit, int]] = []
    n_seen = 0
    while waiting or open_visits:
        if open_visits and len(waiting) == open_visits[-1][1]:
            yield open_visits.pop()[0]
            continue
        depth, parent, child = waiting.pop()
        open_visits.append((_Visit(depth, n_seen, parent, child), len(waiting)))
        waiting.extend((depth + 1, n_seen, other) for other in reversed(child.children))
        n_seen += 1
