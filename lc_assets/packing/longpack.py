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

**Roots.** Which pages are roots, and which root gets which page if several link to it: a page's
*rank* is the keyed hash of its page key. It depends on the page and the seed alone, so roots are
the same in any order and on any number of machines, and adding or removing a page changes
no other rank.

Roots take turns in the order of their rank. Each takes from its links, in order of appearance, the
pages that are free and fit whole. So the first root that links to a page keeps it, as in the paper;
a page that did not fit stays free for the next root.

* A content (the pages of one cluster) is held by at most ``repetitions`` roots; in the paper by
  one.
* ``consume``: a page occurs once. A root that another root took has no turn, and a root that took
  something is never a child. Without it, as in the paper, a root may be a child of another.

With several rounds, each is a pass over all roots: the links of the pages of the round before, in
the same order of roots, within what is left of each root's room.

Roots, pages and clusters are numbers; a root's number is its position among the roots by (rank,
id), and its number as a page. This module is the definition: `lc_assets.stages.longpack.dealing`
applies it to tables larger than memory.
Source: LongPack (ICLR 2025), section 4 and appendix D, algorithm 1. It samples roots without saying
    how, and "we only keep the hyper-link and its content in the first one".
"""

import itertools
from array import array
from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

from lc_assets.arrays import UInt64s
from lc_assets.randomness import KEYED_ALGORITHM, keyed_u64
from lc_assets.records import record

ROOT_LINE = "root : \n"
PART_END = "\n\n"

Role = Literal["child", "root"]

PART_TOKENS = 8
"""Tokens reserved per part for line ends, the root's line, and text that is tokenized differently
where parts meet; GPT-2's vocabulary needs at most four."""


@record
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


@record
class Placed:
    """A child that will be written, ``depth`` links away from the root."""

    page: Part
    keys: str
    depth: int = 1


@record
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


@record
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


KEPT = ""
HELD = "held already"
NO_ROOM = "no room"
ROOT_GONE = "its root is held by another"

_PURPOSE = "longpack root"


def roots_drawn_by(seed: int) -> dict[str, str]:
    """Algorithm of `root_ranks`, for receipts."""
    return {"roots": f"{KEYED_ALGORITHM}, seed {seed}, purpose {_PURPOSE!r}, key page key"}


def root_ranks(page_keys: Iterable[str], seed: int) -> UInt64s:
    """Rank of every page, uniform on 64 bits; the smallest rank comes first.

    >>> root_ranks(["example.org/a", "example.org/b"], seed=64)
    array([2915196421650632722,  614795327093774056], dtype=uint64)
    """
    return keyed_u64(_PURPOSE, seed=seed, keys=page_keys)


class Offer(NamedTuple):
    """A page that a root links to, directly or through a page of the round before.

    Attributes:
        root: number of the root.
        place: position among the root's offers of this round.
        page: number of the page.
        cluster: number of its content.
        cost: tokens of the page in the document, with its anchor line.
        room: maximum tokens of the root's children of this round.
    """

    root: int
    place: int
    page: int
    cluster: int
    cost: int
    room: int


@record
class Rules:
    """How pages are taken; see the module."""

    repetitions: int = 1
    consume: bool = False


class TurnState:
    """What has been taken so far; `take_turns` continues from it and updates it.

    Attributes:
        taken: number of roots that hold a content, by cluster.
        gone: by page, whether it is no longer available: in a document, or a root with children.
            Used only with ``consume``.
    """

    def __init__(self, n_pages: int) -> None:
        self.taken = array("H", bytes(2 * n_pages))
        self.gone = bytearray(n_pages)


def take_turns(
    offers: Iterable[Offer], rules: Rules, state: TurnState, *, first_round: bool = True
) -> Iterator[tuple[Offer, str]]:
    """Let every root take its turn.

    Args:
        offers: of one round, by (root, place); a root has at most one of each content.
        rules: how pages are taken.
        state: what has been taken before; updated.
        first_round: whether another root may still take a root.

    Yields:
        Every offer, with `KEPT` or the reason why it was not kept.

    >>> both = [(0, 0, 7, 7, 5, 9), (1, 0, 7, 7, 5, 8), (1, 1, 8, 8, 9, 8), (2, 0, 8, 8, 9, 9)]
    >>> both = [Offer(*offer) for offer in both]
    >>> [why or "kept" for _, why in take_turns(both, Rules(), TurnState(9))]
    ['kept', 'held already', 'no room', 'kept']
    """
    for root, turn in itertools.groupby(offers, key=lambda offer: offer.root):
        is_gone = first_round and state.gone[root]
        used = 0
        for offer in turn:
            if is_gone:
                why = ROOT_GONE
            elif state.gone[offer.page] or state.taken[offer.cluster] >= rules.repetitions:
                why = HELD
            elif offer.cost > offer.room - used:
                why = NO_ROOM
            else:
                why = KEPT
                used += offer.cost
                state.taken[offer.cluster] += 1
                state.gone[offer.page] = rules.consume
            yield offer, why
        if rules.consume and used:
            state.gone[root] = True
