"""Duplicates as values: clusters out of pairs, how alike two sets are, and who of a cluster stays,
and why.

Here: joining pairs (`Clusters`), pairing the members of a bucket (`star_pairs`), comparing sets
    (`similarities`), and the
order of preference (`Preference`). Loops are compiled where numba is; their plain twins are below
and give the same. Not here: what makes two documents equal (`lc_assets.text.duplicate_keys`), and
everything with files.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from lc_assets.compiling import COMPILED
from lc_assets.errors import BadInput

Numbers = NDArray[np.int64]
Hashes = NDArray[np.uint64]
Similarities = NDArray[np.float64]

ORDERS: Final = ("newest", "oldest", "longest", "best_perplexity")
ASCENDING: Final = ("oldest", "best_perplexity")
SOURCE: Final = "source="


class Clusters:
    """Joins pairs of documents into clusters, a batch of pairs at a time.

    Memory is eight bytes a document that is in any pair, twice; however many pairs there are. Time
    is a little more than linear (union by least member with halved paths).

    Args:
        nodes: ``(n,)`` int64, ascending, without repeats: every document that a pair will name.
    """

    def __init__(self, nodes: Numbers) -> None:
        self.nodes = nodes
        self._parents: Numbers = np.arange(len(nodes), dtype=np.int64)

    def add(self, left: Numbers, right: Numbers) -> None:
        """Say that ``left[i]`` and ``right[i]`` belong together.

        Raises:
            BadInput: when a document is none of the nodes.
        """
        ones, others = self._places(left), self._places(right)
        if COMPILED:
            # Numba takes half a second to import.
            from lc_assets.text.kernels.clusters import join  # noqa: PLC0415

            join(self._parents, ones, others)
        else:
            plain_join(self._parents, ones, others)

    def labels(self) -> Numbers:
        """The least member of each node's cluster; ``(n,)`` int64."""
        if COMPILED:
            from lc_assets.text.kernels.clusters import flatten  # noqa: PLC0415 - as above

            flatten(self._parents)
        else:
            plain_flatten(self._parents)
        return self.nodes[self._parents]

    def _places(self, documents: Numbers) -> Numbers:
        places = np.searchsorted(self.nodes, documents).astype(np.int64)
        if len(places) and (
            places.max() >= len(self.nodes) or not np.array_equal(self.nodes[places], documents)
        ):
            raise BadInput("a pair names a document that is none of the clusters' nodes")
        return places


def clusters_of(left: Numbers, right: Numbers) -> tuple[Numbers, Numbers]:
    """Documents of some pairs, ascending, and the least member of the cluster of each.

    >>> nodes, labels = clusters_of(np.array([4, 7, 1]), np.array([2, 9, 2]))
    >>> nodes.tolist(), labels.tolist()
    ([1, 2, 4, 7, 9], [1, 1, 1, 7, 7])
    """
    clusters = Clusters(np.unique(np.concatenate([left, right]).astype(np.int64)))
    clusters.add(left, right)
    return clusters.nodes, clusters.labels()


def star_pairs(members: Numbers, starts: Numbers, centres: int) -> tuple[Numbers, Numbers]:
    """Pair each member of a bucket with the first ``centres`` members before it.

    A bucket of at most ``centres + 1`` members so gives all its pairs, a greater one ``centres`` a
    member: the work is linear in the members.

    Args:
        members: ``(n,)`` int64, documents, bucket after bucket, ascending within a bucket.
        starts: ``(k + 1,)`` int64: where each bucket begins; the last is n.
        centres: how many of a bucket's members all others are paired with.

    Returns:
        Two arrays ``(m,)`` int64; the left of each pair is the lesser.

    >>> [pairs.tolist() for pairs in star_pairs(np.array([1, 5, 7, 9]), np.array([0, 4]), 2)]
    [[1, 1, 5, 1, 5], [5, 7, 7, 9, 9]]
    """
    sizes = np.diff(starts)
    least = np.minimum(sizes, centres)
    n_pairs = int((least * (least - 1) // 2 + (sizes - least) * centres).sum())
    left, right = np.empty(n_pairs, dtype=np.int64), np.empty(n_pairs, dtype=np.int64)
    if COMPILED:
        from lc_assets.text.kernels.clusters import stars  # noqa: PLC0415 - as above

        stars(members, starts, centres, left, right)
    else:
        plain_stars(members, starts, centres, left, right)
    return left, right


@dataclass(frozen=True, slots=True, eq=False)
class Sets:
    """Many sorted sets in one array.

    Attributes:
        values: uint64, set after set, ascending within each, without repeats.
        starts: ``(n + 1,)`` int64: where each set begins; the last is the length of ``values``.
    """

    values: Hashes
    starts: Numbers

    @classmethod
    def of(cls, sets: Sequence[Hashes]) -> Self:
        """Put sets one after the other."""
        starts = np.cumsum([0, *map(len, sets)], dtype=np.int64)
        return cls(np.concatenate([np.empty(0, np.uint64), *sets]), starts)


def similarities(
    left: Sets, ones: Numbers, right: Sets, others: Numbers, *, floor: float = 0.0
) -> Similarities:
    """Jaccard index of ``left``'s set ``ones[i]`` and ``right``'s set ``others[i]``, for every i.

    A pair that is below ``floor`` is given as 0, mostly without reading its sets to the end. Two
    empty sets have nothing in common.

    >>> sets = Sets.of([np.array([1, 2, 3], np.uint64), np.array([2, 3, 4], np.uint64)])
    >>> similarities(sets, np.array([0, 0]), sets, np.array([1, 0])).tolist()
    [0.5, 1.0]
    """
    out = np.zeros(len(ones), dtype=np.float64)
    where = (
        left.values,
        left.starts[ones],
        left.starts[ones + 1],
        right.values,
        right.starts[others],
        right.starts[others + 1],
    )
    if COMPILED:
        from lc_assets.text.kernels import clusters  # noqa: PLC0415 - as above

        clusters.similarities(*where, floor, out)
    else:
        plain_similarities(left, ones, right, others, floor=floor, out=out)
    return out


def plain_join(parents: Numbers, left: Numbers, right: Numbers) -> None:
    """The plain twin of the compiled loop: join two trees per pair, the lesser root on top."""
    for one, other in zip(left.tolist(), right.tolist(), strict=True):
        roots = sorted((_root(parents, one), _root(parents, other)))
        parents[roots[1]] = roots[0]


def plain_flatten(parents: Numbers) -> None:
    """The plain twin: make every node's root its parent."""
    for node in range(len(parents)):
        parents[node] = parents[parents[node]]


def _root(parents: Numbers, node: int) -> int:
    while parents[node] != node:
        parents[node] = parents[parents[node]]
        node = int(parents[node])
    return node


def plain_stars(
    members: Numbers, starts: Numbers, centres: int, left: Numbers, right: Numbers
) -> int:
    """The plain twin: see `star_pairs`."""
    pairs = [
        (bucket[centre], bucket[at])
        for bucket in (members[begin:end].tolist() for begin, end in pairwise(starts.tolist()))
        for at in range(1, len(bucket))
        for centre in range(min(at, centres))
    ]
    left[:], right[:] = [one for one, _ in pairs], [other for _, other in pairs]
    return len(pairs)


def plain_similarities(
    left: Sets, ones: Numbers, right: Sets, others: Numbers, *, floor: float, out: Similarities
) -> None:
    """The plain twin: see `similarities`."""
    for pair, (one, other) in enumerate(zip(ones.tolist(), others.tolist(), strict=True)):
        a = set(left.values[left.starts[one] : left.starts[one + 1]].tolist())
        b = set(right.values[right.starts[other] : right.starts[other + 1]].tolist())
        found = len(a & b) / len(a | b) if a | b else 0.0
        out[pair] = found if found >= floor else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """What preference may look at.

    Attributes:
        id: the document's.
        number: its place among all files, for documents that share an id.
        source: name of the folder or file it was given in.
        date: ISO 8601; empty when not known.
        n_chars: length of the text.
        perplexity: None when not known.
    """

    id: str
    number: int
    source: str = ""
    date: str = ""
    n_chars: int = 0
    perplexity: float | None = None


@dataclass(frozen=True, slots=True)
class Preference:
    """Who of several documents stays: the first key that tells them apart decides, the id decides
    last.

    Attributes:
        keys: of `ORDERS`, or ``source=NAME`` (what comes from there stays). A document whose date
            or perplexity is not known comes after those of which it is.
    """

    keys: tuple[str, ...] = ("newest",)

    def __post_init__(self) -> None:
        for key in self.keys:
            if key not in ORDERS and not (key.startswith(SOURCE) and key != SOURCE):
                raise BadInput(
                    f"no preference {key!r}; there are {', '.join(ORDERS)} and {SOURCE}NAME, in "
                    "any sequence with commas"
                )

    @classmethod
    def parse(cls, words: str) -> Self:
        """Read ``newest,longest``.

        >>> Preference.parse("source=books, newest").keys
        ('source=books', 'newest')

        Raises:
            BadInput: when a key is not known.
        """
        return cls(tuple(word.strip() for word in words.split(",") if word.strip()))

    def best(self, candidates: Iterable[Candidate]) -> Candidate:
        """The one that stays.

        >>> old, new = Candidate(id="b", number=0, date="2014"), Candidate(id="a", number=1, date="2023")
        >>> Preference(("oldest",)).best([new, old]).id
        'b'
        """
        order = sorted(candidates, key=lambda candidate: (candidate.id, candidate.number))
        for key in reversed(self.keys):
            order.sort(key=partial(_value, key), reverse=key not in ASCENDING)
        return order[0]

    def why(self, kept: Candidate, other: Candidate) -> str:
        """Why ``kept`` stays rather than ``other``, in words.

        >>> Preference(("newest",)).why(Candidate(id="a", number=0, date="2023"), Candidate(id="b", number=1, date="2014"))
        'newer: 2023 rather than 2014'
        """
        for key in self.keys:
            if _value(key, kept) != _value(key, other):
                return _words(key, kept, other)
        return "first by id"


def _value(key: str, candidate: Candidate) -> Any:
    """What a key compares; the greatest stays, of a key in `ASCENDING` the least."""
    if key == "newest":
        return candidate.date
    if key == "oldest":
        return (candidate.date == "", candidate.date)
    if key == "longest":
        return candidate.n_chars
    if key == "best_perplexity":
        return (candidate.perplexity is None, candidate.perplexity or 0.0)
    return candidate.source == key.removeprefix(SOURCE)


def _words(key: str, kept: Candidate, other: Candidate) -> str:
    if key in {"newest", "oldest"}:
        return (
            f"{'newer' if key == 'newest' else 'older'}: {kept.date} rather than "
            f"{other.date or 'no date'}"
        )
    if key == "longest":
        return f"longer: {kept.n_chars} rather than {other.n_chars} characters"
    if key == "best_perplexity":
        return (
            f"better perplexity: {kept.perplexity} rather than "
            f"{'none' if other.perplexity is None else other.perplexity}"
        )
    return f"from {key.removeprefix(SOURCE)}"
