"""One page as a crawler would have it: an address, a title, lines of text.

Here: the value that sources of text yield and `lc_assets.sample.writing` writes. Not here:
    records and files.
The words are CCNet's: the first line of a page is its title and no part of its content; of the
other lines, those that repeat are left out, and the numbers of the lines that stay are kept
(cc_net, ``process_wet_file`` and ``dedup``).
"""

import base64
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol, Self
from urllib.parse import urlsplit

import msgspec

MIN_CHARS = 300
"""CCNet drops pages with fewer characters, so no crawl in RedPajama-V2's layout holds any."""


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """A page and which of its lines stay.

    Attributes:
        url: its address; no two pages of a source share one.
        title: its first line.
        lines: its other lines, without line ends.
        kept: numbers of the lines that stay, ascending, counted from 0.
        language: two letters.
    """

    url: str
    title: str
    lines: tuple[str, ...]
    kept: tuple[int, ...]
    language: str = "en"

    @classmethod
    def whole(cls, url: str, title: str, lines: Iterable[str], *, language: str = "en") -> Self:
        r"""A page of which every line stays.

        >>> Page.whole("https://a.example/x", "Tea", ["Green", "Black"]).content
        'Green\nBlack'
        """
        lines = tuple(lines)
        return cls(
            url=url, title=title, lines=lines, kept=tuple(range(len(lines))), language=language
        )

    @property
    def content(self) -> str:
        """The lines that stay: what a record calls ``raw_content``."""
        return "\n".join(self.lines[number] for number in self.kept)

    @property
    def n_chars(self) -> int:
        """Length of `content` in characters."""
        return sum(len(self.lines[number]) for number in self.kept) + max(0, len(self.kept) - 1)

    @property
    def record(self) -> bytes:
        """The whole page, title first, as a WET record would have it."""
        return "\n".join((self.title, *self.lines)).encode()

    @property
    def digest(self) -> str:
        """SHA-1 of `record`, written as web archives do.

        >>> Page.whole("https://a.example/x", "Tea", ["Green", "Black"]).digest
        'sha1:A4K572CES3TWB722OOM2EYLZNE66NQE4'
        """
        return "sha1:" + base64.b32encode(
            hashlib.sha1(self.record, usedforsecurity=False).digest()
        ).decode("ascii")

    @property
    def domain(self) -> str:
        """The host in `url`."""
        return urlsplit(self.url).hostname or ""

    def copy_at(self, url: str) -> Self:
        """The very same page at another address."""
        return msgspec.structs.replace(self, url=url)

    def excerpt(self, url: str, *, start: float, n_chars: int) -> Self:
        """A passage as a page of its own; its first line becomes the title.

        Args:
            url: the passage's own address.
            start: where it begins, as a share of the first half of the lines that stay; blank lines
                there are passed over.
            n_chars: it ends with the line in which its content reaches this length.
        """
        passage: list[str] = []
        length = 0
        for number in self.kept[int(start * (len(self.kept) // 2)) :]:
            line = self.lines[number]
            length += len(line) + 1 if passage else 0
            if passage or line:
                passage.append(line)
            if length > n_chars:
                break
        title, *lines = passage or [""]
        return self.whole(url, title, lines, language=self.language)


class Texts(Protocol):
    """A source of pages that can say what it is made of."""

    @property
    def sources(self) -> Mapping[str, str]:
        """What determines the pages, by name: versions of packages, digests of files."""
        ...

    @property
    def skipped(self) -> Mapping[str, Sequence[str]]:
        """What was not used, by reason; complete once the pages have been iterated."""
        ...

    def __iter__(self) -> Iterator[Page]:
        """Yield the pages, always in the same order."""
        ...
