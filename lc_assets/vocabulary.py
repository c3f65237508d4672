"""Names that every package shares: snapshots, shards and document ids.

Names that come from outside are parsed once, by the function that makes them, and trusted
afterwards. A parsed snapshot or shard name is safe as part of a path.

===================================  ==========================================================
document id                          document
===================================  ==========================================================
``2023-06/0000/en_head.json.gz/17``  0-based line 17 of a RedPajama-V2 shard
``books/part-0001/moby-dick``        the record with the id ``moby-dick`` in a file of a source
``books/part-0001/line-17``          0-based line, row or record 17, which has no id of its own
``books/a-etc/b/line-17``            the same in the small file ``b``, which shares a shard
===================================  ==========================================================

Source of RedPajama-V2's grammar: its listings and signal files (``app/src/core/worker.py``).
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NewType, Self

from lc_assets.errors import BadInput

REDPAJAMA_V2 = "https://data.together.xyz/redpajama-data-v2/v1.0.0"
"""Where RedPajama-V2 is published."""

KIBI = 1024

ROW_TOKENS = 64 * KIBI
"""Tokens in one row of the token grid: 64 KiT, as in LongCrawl64."""

GPT2_VOCAB_SIZE = 50_257
"""Number of GPT-2 token ids, 0 to 50,256. (LongCrawl64's 50,304 is the padded size of an
embedding.)
"""

GPT2_EOT = 50_256
"""GPT-2's ``<|endoftext|>``."""

SnapshotId = NewType("SnapshotId", str)
"""A crawl snapshot such as ``2023-06``, or one of a user's own. Made only by `parse_snapshot`."""

DocumentId = NewType("DocumentId", str)
"""Snapshot, shard, and the document's own id or line; see the module's table."""

NO_RULES = "none"
"""Name of the rule set that keeps every document."""

LANGUAGES: Final = ("en", "de", "fr", "es", "it")
BUCKETS = ("head", "middle", "tail")
SPLITS = ("train", "heldout")

MAX_OWN_ID_CHARS = 200
"""A record's id that is longer is not used; the document is named by its line."""

_SNAPSHOT = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}", re.ASCII)
_TAG = re.compile(r"([A-Za-z0-9][A-Za-z0-9_-]{0,39})/(\d{4})/([a-z]{2})_([a-z]+)", re.ASCII)
_REDPAJAMA_NAME = re.compile(r"(\d{4})-([a-z]{2})_([a-z]+)", re.ASCII)
_REDPAJAMA_ID = re.compile(rf"({_TAG.pattern})\.json\.gz/(0|[1-9]\d{{0,9}})", re.ASCII)
_FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}", re.ASCII)
_RESERVED_NAME = re.compile(rf"\d{{4}}|{_REDPAJAMA_NAME.pattern}|longpack-.*", re.ASCII)
DOCUMENT_ID = (
    r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}/"
    r"(?:\d{4}/[a-z]{2}_[a-z]+\.json\.gz/\d+|[A-Za-z0-9][A-Za-z0-9_-]{0,99}/.{1,200})"
)
"""Pattern of document ids, for checks of whole columns; RE2 knows it too."""
_LINE = re.compile(r"line-(0|[1-9]\d{0,11})", re.ASCII)


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
            f"not a snapshot: {text!r}; expected letters, digits, '-' and '_', such as '2023-06'"
        )
    return SnapshotId(text)


@lru_cache(maxsize=1 << 10)
def _redpajama_name(name: str) -> re.Match[str] | None:
    """The parts of the name of a shard of RedPajama-V2; cached, because every document asks."""
    return _REDPAJAMA_NAME.fullmatch(name)


@lru_cache(maxsize=1 << 10)
def _tag(snapshot: str, name: str) -> str:
    """As `Shard.tag`; cached for the same reason."""
    return f"{snapshot}/{name.replace('-', '/', 1) if _redpajama_name(name) else name}"


@dataclass(frozen=True, slots=True, order=True)
class Shard:
    """One file of documents of one snapshot: the unit of work.

    >>> Shard.parse("2023-06/0000/en_head").tag
    '2023-06/0000/en_head'

    Attributes:
        snapshot: the partition that the file belongs to.
        name: the shard's file name inside its snapshot's folder: ``0000-en_head`` of RedPajama-V2,
            otherwise letters, digits, ``-`` and ``_``.
    """

    snapshot: SnapshotId
    name: str

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
                f"not a shard tag: {tag!r}; expected snapshot/0000/language_bucket, such as "
                "'2023-06/0000/en_head'"
            )
        snapshot, number, language, bucket = found.groups()
        if language not in LANGUAGES or bucket not in BUCKETS:
            raise BadInput(
                f"not a shard tag: {tag!r}; languages are {_words(LANGUAGES)}, buckets are "
                f"{_words(BUCKETS)}"
            )
        return cls(parse_snapshot(snapshot), f"{number}-{language}_{bucket}")

    @classmethod
    def of_tag(cls, tag: str) -> Self:
        """Read what `tag` returns, of a shard of any source.

        >>> Shard.of_tag("books/part-0001").name
        'part-0001'

        Raises:
            BadInput: when it is not a shard's tag.
        """
        snapshot, _, name = tag.partition("/")
        if "/" in name:
            return cls.parse(tag)
        if not is_free_shard_name(name):
            raise BadInput(f"not a shard tag: {tag!r}; expected such as 'books/part-0001'")
        return cls(parse_snapshot(snapshot), name)

    @property
    def tag(self) -> str:
        """``2023-06/0000/en_head`` as in RedPajama-V2's listings, or ``books/part-0001``."""
        return _tag(self.snapshot, self.name)

    @property
    def number(self) -> int:
        """Number of a RedPajama-V2 shard; -1 of any other."""
        found = _redpajama_name(self.name)
        return int(found[1]) if found else -1

    @property
    def language(self) -> str:
        """Language of a RedPajama-V2 shard; empty of any other."""
        found = _redpajama_name(self.name)
        return found[2] if found else ""

    @property
    def bucket(self) -> str:
        """Perplexity bucket of a RedPajama-V2 shard; empty of any other."""
        found = _redpajama_name(self.name)
        return found[3] if found else ""

    def document_id(self, line: int | str) -> DocumentId:
        """Id of the document on 0-based ``line``, or with an id of its own, see `usable_own_id`.

        >>> Shard.parse("2023-06/0000/en_head").document_id(17)
        '2023-06/0000/en_head.json.gz/17'
        >>> books = Shard.of_tag("books/part-0001")
        >>> books.document_id(17), books.document_id("17")
        ('books/part-0001/line-17', 'books/part-0001/17')
        """
        if _redpajama_name(self.name):
            return DocumentId(f"{self.tag}.json.gz/{line}")
        return DocumentId(f"{self.tag}/{f'line-{line}' if isinstance(line, int) else line}")


def is_free_shard_name(name: str) -> bool:
    """Whether a file of a source can have this shard name: it is a safe file name, and neither
    RedPajama-V2's nor one that a stage gives.

    >>> [is_free_shard_name(name) for name in ("part-0001", "0000-en_head", "longpack-1", "a.b")]
    [True, False, False, False]
    """
    return bool(_FILE_NAME.fullmatch(name)) and not _RESERVED_NAME.fullmatch(name)


def usable_own_id(value: str) -> bool:
    r"""Whether a record's own id can be part of a document id: printable, not too long, and not
    like the id of a line.

    >>> usable_own_id("0"), usable_own_id("line-3"), usable_own_id("a\nb")
    (True, False, False)
    """
    return 0 < len(value) <= MAX_OWN_ID_CHARS and value.isprintable() and not _LINE.fullmatch(value)


def is_line_id(value: str) -> bool:
    """Whether this is how a document id names a line: ``line-17``."""
    return bool(_LINE.fullmatch(value))


def parse_document_id(text: str) -> tuple[Shard, int | str]:
    """Split a document id into its shard and 0-based line, or the record's own id.

    >>> shard, line = parse_document_id("2023-06/0000/en_head.json.gz/17")
    >>> shard.name, line
    ('0000-en_head', 17)
    >>> parse_document_id("books/part-0001/line-17")[1], parse_document_id("books/part-0001/17")[1]
    (17, '17')

    Raises:
        BadInput: when it is not a document id.
    """
    published = _REDPAJAMA_ID.fullmatch(text)
    if published is not None:
        return Shard.parse(published[1]), int(published[published.lastindex or 0])
    snapshot, _, rest = text.partition("/")
    name, _, own = rest.partition("/")
    line = _LINE.fullmatch(own)
    if not is_free_shard_name(name) or not (line or usable_own_id(own)):
        raise BadInput(
            f"not a document id: {text!r}; expected such as '2023-06/0000/en_head.json.gz/17' or "
            "'books/part-0001/line-17'"
        )
    return Shard(parse_snapshot(snapshot), name), int(line[1]) if line else own


def _words(values: Iterable[str]) -> str:
    return ", ".join(values)
