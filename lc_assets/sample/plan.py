"""The plan of a sample: which document is in which shard, and which documents are added.

Pure: a value that can be printed and tested; `lc_assets.sample.writing` carries it out. All
    draws are keyed by the
address of a page (`lc_assets.randomness.keyed_u64`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import product

from lc_assets.errors import BadInput
from lc_assets.randomness import keyed_u64
from lc_assets.vocabulary import Shard, SnapshotId

BUCKETS = ("head", "middle")
"""Buckets of a sample: RedPajama-V2 has no signals for the tail."""

MAX_SHARDS_PER_BUCKET = 5000
"""As many as RedPajama-V2 has."""

LONG_CHARS = 20_000
"""Excerpts are taken from pages that have at least so many characters."""

EXCERPT_CHARS = (400, 12_000)
"""An excerpt ends with the line in which it reaches a length drawn from this interval."""


class Kind(StrEnum):
    """What a document of a sample is."""

    PAGE = "page"
    DUPLICATE = "duplicate"
    EXCERPT = "excerpt"


@dataclass(frozen=True, slots=True)
class PageFact:
    """What the plan needs to know of a page."""

    url: str
    language: str
    n_chars: int


@dataclass(frozen=True, slots=True)
class Document:
    """One document to be written.

    Attributes:
        page: number of the page it is made of.
        kind: the page itself, its exact copy at another address, or a passage of it.
        url: the document's own address.
        start: for an excerpt, where in the first half of the page it begins, as a share of that
            half.
        excerpt_chars: for an excerpt, its length.
    """

    page: int
    kind: Kind
    url: str
    start: float = 0.0
    excerpt_chars: int = 0


def plan_sample(
    pages: Sequence[PageFact],
    *,
    snapshots: Sequence[SnapshotId],
    seed: int,
    shards_per_bucket: int,
    n_duplicates: int,
    n_excerpts: int,
) -> dict[Shard, list[Document]]:
    """Deal pages, copies and excerpts out to shards.

    Documents of one language, in an order drawn by their addresses, are dealt one by one to its
    shards, with the snapshot changing fastest: no snapshot stays empty as long as there are
    documents enough.

    Args:
        pages: what there is.
        snapshots: names of the crawls, each once.
        seed: of all draws.
        shards_per_bucket: shards of one snapshot, language and bucket.
        n_duplicates: exact copies to plant; when there are fewer pages, some are copied more than
            once.
        n_excerpts: passages to plant; none when no page has `LONG_CHARS` characters.

    Returns:
        Documents by shard, in the order of their lines; shards without documents are left out.

    Raises:
        BadInput: at a negative number, no snapshots or one named twice, or more shards than
            RedPajama-V2 has.
    """
    _check(snapshots, shards_per_bucket, n_duplicates, n_excerpts)
    documents = [Document(number, Kind.PAGE, page.url) for number, page in enumerate(pages)]
    documents += _duplicates(pages, seed, n_duplicates)
    documents += _excerpts(pages, seed, n_excerpts)
    plan: dict[Shard, list[Document]] = {}
    for language in sorted({page.language for page in pages}):
        spoken = [document for document in documents if pages[document.page].language == language]
        cells = product(range(shards_per_bucket), BUCKETS, snapshots)
        shards = [
            Shard(snapshot, f"{number:04d}-{language}_{bucket}")
            for number, bucket, snapshot in cells
        ]
        for turn, number in enumerate(
            drawn_order("place", seed, [document.url for document in spoken])
        ):
            plan.setdefault(shards[turn % len(shards)], []).append(spoken[number])
    return plan


def newest_first(shards: Sequence[Shard]) -> list[Shard]:
    """The order in which documents count as first occurrences: snapshots from newest to oldest,
    then shards by tag.
    """
    return sorted(sorted(shards), key=lambda shard: shard.snapshot, reverse=True)


def fraction(purpose: str, *, seed: int, key: str) -> float:
    """Draw a number from 0 to 1 (exclusive) for one key.

    >>> 0.0 <= fraction("perplexity", seed=7, key="https://a.example/") < 1.0
    True
    """
    return int(keyed_u64(purpose, seed=seed, keys=[key])[0] >> 11) / 2**53


def _duplicates(pages: Sequence[PageFact], seed: int, n_duplicates: int) -> list[Document]:
    order = drawn_order("duplicate", seed, [page.url for page in pages])
    chosen = [order[number % len(order)] for number in range(n_duplicates)] if order else []
    return [
        Document(page, Kind.DUPLICATE, f"https://mirror.invalid/{number}/{page}")
        for number, page in enumerate(chosen)
    ]


def _excerpts(pages: Sequence[PageFact], seed: int, n_excerpts: int) -> list[Document]:
    long = [number for number, page in enumerate(pages) if page.n_chars >= LONG_CHARS]
    order = drawn_order("excerpt", seed, [pages[number].url for number in long])
    chosen = [long[order[number % len(order)]] for number in range(n_excerpts)] if order else []
    return [_excerpt(number, page, seed) for number, page in enumerate(chosen)]


def _excerpt(number: int, page: int, seed: int) -> Document:
    url = f"https://excerpt.invalid/{number}/{page}"
    shortest, longest = EXCERPT_CHARS
    n_chars = shortest + int((longest - shortest) * fraction("excerpt length", seed=seed, key=url))
    return Document(page, Kind.EXCERPT, url, fraction("excerpt start", seed=seed, key=url), n_chars)


def drawn_order(purpose: str, seed: int, keys: Sequence[str]) -> list[int]:
    """Numbers of keys in an order that each key draws for itself."""
    draws = keyed_u64(purpose, seed=seed, keys=keys).tolist()
    return sorted(range(len(keys)), key=lambda number: (draws[number], number))


def _check(
    snapshots: Sequence[SnapshotId], shards_per_bucket: int, n_duplicates: int, n_excerpts: int
) -> None:
    if not snapshots or len(set(snapshots)) != len(snapshots):
        raise BadInput(
            f"wanted at least one snapshot and each once, got {', '.join(snapshots) or 'none'}"
        )
    if not 1 <= shards_per_bucket <= MAX_SHARDS_PER_BUCKET:
        raise BadInput(
            f"shards_per_bucket must be 1 to {MAX_SHARDS_PER_BUCKET:,}, got {shards_per_bucket:,}"
        )
    if n_duplicates < 0 or n_excerpts < 0:
        raise BadInput(
            f"n_duplicates and n_excerpts must not be negative, got {n_duplicates:,} and "
            f"{n_excerpts:,}"
        )
