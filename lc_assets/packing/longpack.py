r"""LongPack's documents: the pages that a page points at, each below its anchor texts, and the page
itself at the end.

::

    generation, text generation          the anchor texts that point at a page, on one line
    Generative artificial intelligence   the page's cleaned text, without white space at its ends,
    is a subfield of ...                 and a blank line

    root :                               the root's line, and the root's text, never cut
    A large language model is ...

Children stand in the order in which the root first points at them. What a child points at stands
before the child, so a document of several rounds reads ``[children of c] c`` for every ``c``. Every
part has a `Span`; spans touch, and together are the whole text.

Choices where the paper is silent: parts end with a blank line (with ``paper_exact`` with nothing,
byte for byte the paper's pseudo-code); white space within anchor texts is one space; a child is
taken whole or not at all, and the root is never cut, because it stands last, where a limit would
cut it first.

Here: one document. Not here: which root gets which page (`lc_assets.packing.turns`), links
    (`lc_assets.text`), files.
Source: LongPack (ICLR 2025), section 4 and appendix D, algorithm 1.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

ROOT_LINE: Final = "root : \n"
PART_END: Final = "\n\n"

Role = Literal["child", "root"]

PART_TOKENS: Final = 8
"""Tokens set aside per part for line ends, the root's line, and tokens that fall otherwise where
parts meet; four are the most that GPT-2's vocabulary needs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A page, cleaned.

    Attributes:
        url: its address.
        text: its cleaned text.
        cluster: names its content; pages of one cluster hold the same words. Empty: the address
            stands for the content.
        n_tokens: of the text.
    """

    url: str
    text: str
    cluster: str = ""
    n_tokens: int = 0

    @property
    def content(self) -> str:
        """What no document holds twice."""
        return self.cluster or self.url


@dataclass(frozen=True, slots=True, kw_only=True)
class Child:
    """A page that is pointed at, by which anchor texts, and what it points at itself."""

    page: Part
    keys: str
    children: tuple["Child", ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A child as it is to be written, ``depth`` links away from the root."""

    page: Part
    keys: str
    depth: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A part of a packed document: ``text[start:stop]``, in characters, with its anchor line and
    the blank line after it.

    Attributes:
        role: ``child`` or ``root``.
        url: of the page.
        keys: the anchor texts as written; empty for the root.
        cluster: the page's.
        depth: links between root and page; 0 for the root.
        start: first character.
        stop: one after the last.
        n_tokens: of the page's text alone.
    """

    role: Role
    url: str
    keys: str
    cluster: str
    depth: int
    start: int
    stop: int
    n_tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedDocument:
    """A text, and what each stretch of it is."""

    text: str
    spans: tuple[Span, ...]


def pack(
    root: Part,
    children: Sequence[Child],
    *,
    max_tokens: int | None = None,
    paper_exact: bool = False,
) -> PackedDocument:
    r"""Pack a root with what it points at.

    Pages are admitted round by round, in the order in which they are pointed at: whole while
    `part_cost` of all parts is within ``max_tokens``, none whose content the document holds already
    (which ends cycles). What a page that was not admitted points at is not looked at.

    Args:
        root: the page that stands last.
        children: what it points at, in order of appearance.
        max_tokens: of the document; None means any number. A root that is longer stands alone, and
            whole.
        paper_exact: write exactly what is given as the paper's pseudo-code does, contents that
            repeat included.

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


def written(root: Part, children: Iterable[Placed], *, paper_exact: bool = False) -> PackedDocument:
    """Write a document whose children are decided, in the order in which they come."""
    texts: list[str] = []
    spans: list[Span] = []

    def add(role: Role, page: Part, text: str, *, keys: str = "", depth: int = 0) -> None:
        start = spans[-1].stop if spans else 0
        place = {"start": start, "stop": start + len(text)}
        spans.append(
            Span(
                role=role,
                url=page.url,
                keys=keys,
                cluster=page.cluster,
                depth=depth,
                n_tokens=page.n_tokens,
                **place,
            )
        )
        texts.append(text)

    for child in children:
        keys = child.keys if paper_exact else one_line(child.keys)
        add(
            "child",
            child.page,
            part_text(keys, child.page.text, paper_exact=paper_exact),
            keys=keys,
            depth=child.depth,
        )
    add("root", root, ROOT_LINE + root.text)
    return PackedDocument(text="".join(texts), spans=tuple(spans))


def part_text(keys: str, text: str, *, paper_exact: bool = False) -> str:
    r"""A child as it is written.

    >>> part_text("bees", " Bees fly.\n")
    'bees\nBees fly.\n\n'
    """
    return f"{keys}\n{text}" if paper_exact else f"{keys}\n{text.strip()}{PART_END}"


def part_content(part: str, span: Span) -> str:
    r"""The page's text within a part, without white space at its ends.

    >>> part_content("bees\nBees fly.\n\n", Span(role="child", url="", keys="bees", cluster="", depth=1, start=0, stop=16))
    'Bees fly.'
    """
    line = ROOT_LINE if span.role == "root" else f"{span.keys}\n"
    return part[len(line) :].strip()


def part_cost(n_tokens: int, keys: str) -> int:
    """The most tokens that a part can take: a byte of the anchor line is a token at most.

    >>> part_cost(100, "bees")
    112
    """
    return n_tokens + len(keys.encode("utf-8", "surrogatepass")) + PART_TOKENS


def one_line(keys: str) -> str:
    r"""Anchor texts on one line.

    >>> one_line(" bees \n and\u2028 wasps")
    'bees and wasps'
    """
    return " ".join(keys.split())


class _Visit(NamedTuple):
    """A child in the tree: how deep, the how manieth from above, and its parent's number (-1: the
    root).
    """

    depth: int
    number: int
    parent: int
    child: Child


def _admitted(
    root: Part, children: Sequence[Child], max_tokens: int | None, *, guard: bool
) -> set[int]:
    """Numbers of the children that are written."""
    room = math.inf if max_tokens is None else max_tokens - part_cost(root.n_tokens, "")
    held = {root.content}
    admitted = {-1}
    for visit in sorted(_visits(children), key=lambda visit: (visit.depth, visit.number)):
        page = visit.child.page
        cost = part_cost(page.n_tokens, visit.child.keys)
        if visit.parent in admitted and cost <= room and not (guard and page.content in held):
            room -= cost
            held.add(page.content)
            admitted.add(visit.number)
    return admitted


def _post_order(children: Sequence[Child], admitted: set[int]) -> Iterator[Placed]:
    for visit in _visits(children):
        if visit.number in admitted:
            yield Placed(page=visit.child.page, keys=visit.child.keys, depth=visit.depth)


def _visits(children: Sequence[Child]) -> Iterator[_Visit]:
    """Every child, each after what it points at; however deep the tree is."""
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
