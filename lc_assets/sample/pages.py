"""Pages of a sample: an address, a title, lines of text; folders of texts; and the plan of shards.

As in CCNet, the first line of a page is its title and not part of its content (cc_net,
``process_wet_file``).
"""

import base64
import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from itertools import product
from pathlib import Path
from typing import Self
from urllib.parse import quote

import msgspec

from lc_assets.errors import BadInput
from lc_assets.formats.corpora.containers import ReadingOptions, Unread
from lc_assets.formats.corpora.reading import corpus_files, read_plain_text
from lc_assets.randomness import keyed_u64
from lc_assets.records import frozen
from lc_assets.vocabulary import Shard, SnapshotId

MIN_CHARS = 300
"""CCNet drops pages with fewer characters, so no crawl in RedPajama-V2's layout has any."""

SUFFIXES = (".txt", ".md", ".rst")
MAX_TEXT_BYTES = 64 << 20

HOST = "folder.invalid"
"""Host of the pages of a folder; ``.invalid`` is reserved (RFC 2606)."""


SHARDS_PER_BUCKET = 2

PERPLEXITIES = {"head": (160.0, 340.0), "middle": (340.0, 520.0)}
"""Percentiles 1, 30 and 60 of English in cc_net's ``cutoff.csv``: head ends at the 30th, middle at
the 60th. RedPajama-V2 has no signals for the tail.
"""

PAGES_PER_PLANT = 10
"""One exact copy and one excerpt are added for every ten pages, rounded up."""
MIRROR = "mirror.invalid"
EXCERPTS = "excerpt.invalid"
LONG_CHARS = 20_000
"""Excerpts are taken from pages of at least so many characters."""
EXCERPT_CHARS = (400, 12_000)
"""Bounds of the drawn length at which an excerpt ends."""


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """A page.

    Attributes:
        url: its address; no two pages of a sample share one.
        title: its first line.
        lines: its other lines, without line ends.
    """

    url: str
    title: str
    lines: tuple[str, ...]

    @property
    def content(self) -> str:
        """The lines: a record's ``raw_content``."""
        return "\n".join(self.lines)

    @property
    def record(self) -> bytes:
        """The whole page, title first, as in a WET record."""
        return "\n".join((self.title, *self.lines)).encode()

    @property
    def digest(self) -> str:
        """SHA-1 of `record`, written as web archives do.

        >>> Page(url="https://a.example/x", title="Tea", lines=("Green", "Black")).digest
        'sha1:A4K572CES3TWB722OOM2EYLZNE66NQE4'
        """
        digest = hashlib.sha1(self.record, usedforsecurity=False).digest()
        return f"sha1:{base64.b32encode(digest).decode('ascii')}"

    def excerpt(self, url: str, *, start: float, n_chars: int) -> Self:
        """A passage as a page of its own; its first line becomes the title.

        Args:
            url: the passage's own address.
            start: where it begins, as a share of the first half of the lines; blank lines there are
                skipped.
            n_chars: it ends with the line in which it reaches this length.
        """
        passage: list[str] = []
        length = 0
        for line in self.lines[int(start * (len(self.lines) // 2)) :]:
            length += len(line) + 1 if passage else 0
            if passage or line:
                passage.append(line)
            if length > n_chars:
                break
        title, *lines = passage or [""]
        return msgspec.structs.replace(self, url=url, title=title, lines=tuple(lines))


@frozen
class Texts:
    """Pages and their sources.

    Attributes:
        pages: in their order.
        sources: digests of the pages, by file or address.
        skipped: names of unused files, by reason.
    """

    pages: Sequence[Page]
    sources: Mapping[str, str]
    skipped: Mapping[str, Sequence[str]] = field(default_factory=dict)


def texts_of_folder(folder: Path) -> Texts:
    r"""The ``.txt``, ``.md`` and ``.rst`` files in a folder and below, each a page.

    A byte order mark is removed, line ends become ``\n``, and lines lose the white space at their
    ends, as CCNet's do. The first line that is not blank is the title.

    Raises:
        BadInput: when it is not a folder, or has no such file.
    """
    if not folder.is_dir():
        raise BadInput(f"{folder}: not a folder; name one with {', '.join(SUFFIXES)} files")
    pages, sources, skipped = list[Page](), dict[str, str](), dict[str, list[str]]()
    for path in corpus_files([folder], suffixes=SUFFIXES):
        name = path.relative_to(folder)
        shown = name.as_posix().encode("utf-8", "backslashreplace").decode()
        (found,) = read_plain_text(path, ReadingOptions(max_document_bytes=MAX_TEXT_BYTES))
        if isinstance(found, Unread):
            skipped.setdefault(found.why, []).append(shown)
            continue
        text = found.text.replace("\r\n", "\n").replace("\r", "\n").strip()
        title, *lines = [line.strip() for line in text.split("\n")]
        url = f"https://{HOST}/{quote(os.fsencode(name))}"
        page = Page(url=url, title=title, lines=tuple(lines))
        if len(page.content) < MIN_CHARS:
            skipped.setdefault(f"shorter than {MIN_CHARS} characters", []).append(shown)
            continue
        pages.append(page)
        sources[shown] = page.digest
    return Texts(pages, sources, skipped)


def fraction(purpose: str, *, seed: int, key: str) -> float:
    """Draw a number from 0 to 1 (exclusive) for one key.

    >>> 0.0 <= fraction("perplexity", seed=7, key="https://a.example/") < 1.0
    True
    """
    return int(keyed_u64(purpose, seed=seed, keys=[key])[0] >> 11) / 2**53


def drawn_order(purpose: str, seed: int, keys: Sequence[str]) -> list[int]:
    """Numbers of the keys in an order in which each key draws its own rank."""
    draws = keyed_u64(purpose, seed=seed, keys=keys).tolist()
    return sorted(range(len(keys)), key=lambda number: (draws[number], number))


def plan_sample(
    pages: Sequence[Page], *, snapshots: Sequence[SnapshotId], seed: int
) -> dict[Shard, list[Page]]:
    """Assign pages, copies and excerpts to shards.

    Documents, in an order drawn by their addresses, are dealt to the shards in turn, with the
    snapshot varying fastest, so that no snapshot is empty if there are enough documents.

    Returns:
        Documents by shard, in the order of their lines; shards without documents are omitted.

    Raises:
        BadInput: without a snapshot, or with one named twice.
    """
    if not snapshots or len(set(snapshots)) != len(snapshots):
        raise BadInput(
            f"snapshots {', '.join(snapshots) or 'none'}: expected at least one, and each once"
        )
    documents = [*pages, *_planted(pages, MIRROR, seed), *_planted(pages, EXCERPTS, seed)]
    shards = [
        Shard(snapshot, f"{number:04d}-en_{bucket}")
        for number, bucket, snapshot in product(range(SHARDS_PER_BUCKET), PERPLEXITIES, snapshots)
    ]
    plan: dict[Shard, list[Page]] = {}
    order = drawn_order("place", seed, [page.url for page in documents])
    for turn, number in enumerate(order):
        plan.setdefault(shards[turn % len(shards)], []).append(documents[number])
    return plan


def _planted(pages: Sequence[Page], host: str, seed: int) -> Iterator[Page]:
    """Copies of drawn pages, or excerpts of drawn long ones, at addresses of a host."""
    chosen = [
        n for n, page in enumerate(pages) if host == MIRROR or len(page.content) >= LONG_CHARS
    ]
    order = drawn_order(host, seed, [pages[n].url for n in chosen])
    for number in range(-(-len(pages) // PAGES_PER_PLANT) if chosen else 0):
        place = chosen[order[number % len(order)]]
        url = f"https://{host}/{number}/{place}"
        if host == MIRROR:
            yield msgspec.structs.replace(pages[place], url=url)
            continue
        least, most = EXCERPT_CHARS
        n_chars = least + int((most - least) * fraction("excerpt length", seed=seed, key=url))
        start = fraction("excerpt start", seed=seed, key=url)
        yield pages[place].excerpt(url, start=start, n_chars=n_chars)
