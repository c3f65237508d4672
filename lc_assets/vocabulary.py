"""The shared words: each is defined once, here.

Names that come from outside (a snapshot, a shard tag, a document id) are parsed at the door by the
one function that makes them and trusted inside. None of them can hold ``/``-tricks: a parsed name
is safe as part of a path.

Source of the tag and id grammar: RedPajama-V2's listings and signal files
(``app/src/core/worker.py``).
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NewType, Self

from lc_assets.errors import BadInput

KIBI: Final = 1024

ROW_TOKENS: Final = 64 * KIBI
"""Tokens in one row of the token grid: 64 KiT, as in LongCrawl64."""

GPT2_VOCAB_SIZE: Final = 50_257
"""Number of GPT-2 token ids, 0 to 50,256. (LongCrawl64's 50,304 is the padded size of an
embedding.)
"""

GPT2_EOT: Final = 50_256
"""GPT-2's ``<|endoftext|>``."""

SnapshotId = NewType("SnapshotId", str)
"""A crawl snapshot such as ``2023-06``, or one of a user's own. Made only by `parse_snapshot`."""

DocumentId = NewType("DocumentId", str)
"""``2023-06/0000/en_head.json.gz/17``: snapshot, shard, file and 0-based line, as in RedPajama-V2.
"""

LANGUAGES: Final = ("en", "de", "fr", "es", "it")
BUCKETS: Final = ("head", "middle", "tail")
SPLITS: Final = ("train", "heldout")

_SNAPSHOT = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}", re.ASCII)
_TAG = re.compile(r"([A-Za-z0-9][A-Za-z0-9_-]{0,39})/(\d{4})/([a-z]{2})_([a-z]+)", re.ASCII)
_DOCUMENT = re.compile(r"(.+)\.json\.gz/(0|[1-9]\d{0,9})", re.ASCII)


def parse_snapshot(text: str) -> SnapshotId:
    """Return ``text`` as a snapshot's name.

    >>> parse_snapshot("2023-06")
    '2023-06'

    Raises:
        BadInput: when the name could not be a folder's name (letters, digits, ``-`` and ``_`` are
            allowed).
    """
    if not _SNAPSHOT.fullmatch(text):
        raise BadInput(
            f"not a snapshot: {text!r}; wanted letters, digits, '-' and '_', such as '2023-06'"
        )
    return SnapshotId(text)


@dataclass(frozen=True, slots=True, order=True)
class Shard:
    """One file of documents of one snapshot: the unit of work.

    >>> Shard.parse("2023-06/0000/en_head").tag
    '2023-06/0000/en_head'
    """

    snapshot: SnapshotId
    number: int
    language: str
    bucket: str

    @classmethod
    def parse(cls, tag: str) -> Self:
        """Read a tag as listed by RedPajama-V2.

        Raises:
            BadInput: when it is not ``snapshot/shard/language_bucket`` with a known language and
                bucket.
        """
        found = _TAG.fullmatch(tag)
        if found is None:
            raise BadInput(
                f"not a shard tag: {tag!r}; wanted snapshot/0000/language_bucket, such as "
                "'2023-06/0000/en_head'"
            )
        snapshot, number, language, bucket = found.groups()
        if language not in LANGUAGES or bucket not in BUCKETS:
            raise BadInput(
                f"not a shard tag: {tag!r}; languages are {_words(LANGUAGES)}, buckets are "
                f"{_words(BUCKETS)}"
            )
        return cls(parse_snapshot(snapshot), int(number), language, bucket)

    @property
    def tag(self) -> str:
        """``2023-06/0000/en_head``, as in the listings."""
        return f"{self.snapshot}/{self.number:04d}/{self.language}_{self.bucket}"

    @property
    def name(self) -> str:
        """``0000-en_head``: the shard's file name inside its snapshot's folder."""
        return f"{self.number:04d}-{self.language}_{self.bucket}"

    def document_id(self, line: int) -> DocumentId:
        """Id of the document on 0-based ``line`` of this shard's documents file.

        >>> Shard.parse("2023-06/0000/en_head").document_id(17)
        '2023-06/0000/en_head.json.gz/17'
        """
        return DocumentId(f"{self.tag}.json.gz/{line}")


def parse_document_id(text: str) -> tuple[Shard, int]:
    """Split a document id into its shard and 0-based line.

    >>> shard, line = parse_document_id("2023-06/0000/en_head.json.gz/17")
    >>> shard.name, line
    ('0000-en_head', 17)

    Raises:
        BadInput: when it is not a RedPajama-V2 document id.
    """
    found = _DOCUMENT.fullmatch(text)
    if found is None:
        raise BadInput(
            f"not a document id: {text!r}; wanted such as '2023-06/0000/en_head.json.gz/17'"
        )
    return Shard.parse(found.group(1)), int(found.group(2))


def _words(values: Iterable[str]) -> str:
    return ", ".join(values)
