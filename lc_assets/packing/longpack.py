r"""LongPack's documents: the pages that a page links to, each below its anchor texts, then the page
itself.

::

    generation, text generation          the anchor texts of the links to a page, on one line
    Generative artificial intelligence   the page's cleaned text, stripped,
    is a subfield of ...                 and a blank line

    root :                               the root's line, and the root's text, never cut
    A large language model is ...

Children are in the order in which the root first links to them. What a child links to comes before
the child, so a document of several rounds reads ``[children of c] c`` for every ``c``. Every part
has a `Span`; spans are adjacent and cover the whole text.

Choices where the paper is silent: parts end with a blank line (with ``paper_exact`` with nothing,
byte for byte the paper's pseudo-code); whitespace within anchor texts is one space; a child is
taken whole or not at all, and the root is never cut, because it is last, where a limit would cut it
first.

Which root gets which page: `lc_assets.packing.turns`.
Source: LongPack (ICLR 2025), section 4 and appendix D, algorithm 1.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

ROOT_LINE: Final = "root : \n"
PART_END: Final = "\n\n"

Role = Literal["child", "root"]

PART_TOKENS: Final = 8
"""Tokens reserved per part for line ends, the root's line, and text that is tokenized differently
where parts meet; GPT-2's vocabulary needs at most four."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A page, cleaned.

    Attributes:
        url: address.
        text: cleaned text.
        cluster: name of the content; pages of one cluster have the same words. If empty, the
            address identifies the content.
        n_tokens: tokens of the text.
    """

    url: str
    text: str
    cluster: str = ""
    n_tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A child that will be written, ``depth`` links away from the root."""

    page: Part
    keys: str
    depth: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A part of a packed document: ``text[start:stop]``, in characters, with its anchor line and
    the blank line after it.

    Attributes:
        role: ``child`` or ``root``.
        url: address of the page.
        keys: the anchor texts as written; empty for the root.
        cluster: cluster of the page.
        depth: links between root and page; 0 for the root.
        start: first character.
        stop: one after the last character.
        n_tokens: tokens of the page's text alone.
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
    """A text, and the spans of its parts."""

    text: str
    spans: tuple[Span, ...]


def written(root: Part, children: Iterable[Placed], *, paper_exact: bool = False) -> PackedDocument:
    """Write a document of these children, in order, and the root."""
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


def one_line(keys: str) -> str:
    r"""Anchor texts on one line.

    >>> one_line(" bees \n and\u2028 wasps")
    'bees and wasps'
    """
    return " ".join(keys.split())
