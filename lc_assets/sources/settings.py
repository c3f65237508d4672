"""A source as a recipe names it: ``[sources.NAME]``; and which source a partition belongs to."""

import re
from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from lc_assets.errors import BadInput

REDPAJAMA = "redpajama"
"""Name of the one source of a recipe that names none."""

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,19}", re.ASCII)


class SourceSettings(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """One source of documents.

    Attributes:
        kind: ``redpajama_v2`` is RedPajama-V2 as published, or data in its layout; ``files`` are
            JSON lines, Parquet, plain text, WET or WARC files, optionally compressed as ``.gz`` or
            ``.zst``.
        path: a folder, a file, ``https://…``, ``gs://…``, ``s3://…`` or ``az://…``. For
            ``redpajama_v2`` it defaults to ``LC_UPSTREAM``.
        files: paths below ``path``, to read only these.
        listing: a text file of paths below ``path``, one per line, optionally ``.gz``, as crawls
            publish it; needed for a web server, which cannot be listed. It is itself a path below
            ``path``.
        partition: ``one`` partition for all files; one per top ``folder``, as FineWeb, DCLM and
            Dolma publish; or by ``pattern``.
        pattern: a regular expression with a group named ``snapshot``, searched for in each path.
        partitions: partition names for a source that is not a folder on disk, and so is not listed
            when Dagster loads: keys as in `lc_assets.sources`, without the source's name.
        text_field: record field with the text; by default ``raw_content``, ``text`` or ``content``.
        id_field: record field with the id; by default ``id`` or ``doc_id``. Records without one are
            identified by line.
        language: two-letter code for documents without a language of their own. By default, their
            language is identified by `[filtered_documents.models]` or the packaged model.
        identify_language: whether that is done; it takes more time than to deduplicate a page.
        reader: a reader that another package adds, see docs/plugins.md: it reads files that end in
            ``.READER``; by default the kinds above.
        quality: of text extraction from WARC files: ``fast``, or ``high`` with trafilatura.
        shard_bytes: larger files of JSON lines on this disk, if not compressed, are several shards,
            each the lines that begin in so many bytes; 0: each file is one. Workers share a file
            then. Lines are counted, and ids are unique, per shard.
        small_bytes: smaller files on this disk share shards if a partition has 64 or more, and a
            document's id then names its file after the shard; 0: each file is one.
        rules: preset or path of a rule file; overrides `[filtered_documents]`.
        min_words: overrides that of `[filtered_documents]`.
    """

    kind: Literal["files", "redpajama_v2"] = "files"
    path: str = ""
    files: tuple[str, ...] = ()
    listing: str = ""
    partition: Literal["one", "folder", "pattern"] = "one"
    pattern: str = ""
    partitions: tuple[str, ...] = ()
    text_field: str = ""
    id_field: str = ""
    language: Annotated[str, Meta(pattern="^([a-z]{2,3})?$")] = ""
    identify_language: bool = True
    reader: Annotated[str, Meta(pattern="^([a-z0-9][a-z0-9.]*)?$")] = ""
    quality: Literal["fast", "high"] = "fast"
    shard_bytes: Annotated[int, Meta(ge=0, le=2**53)] = 0
    small_bytes: Annotated[int, Meta(ge=0, le=2**53)] = 1 << 20
    rules: str = ""
    min_words: Annotated[int, Meta(ge=0, le=2**53)] | None = None

    def __post_init__(self) -> None:
        if self.kind == "files" and not self.path:
            raise BadInput("a source of files needs a path: a folder, https://… or gs://…")
        if (self.partition == "pattern") != bool(self.pattern):
            raise BadInput('partition = "pattern" and a pattern belong together')
        if self.pattern and "snapshot" not in _compiled(self.pattern).groupindex:
            raise BadInput(
                f"pattern {self.pattern!r} has no group named snapshot; expected such as "
                "'crawl=(?P<snapshot>[^/]+)/'"
            )
        if self.listing and self.files:
            raise BadInput("a source names its files or a listing of them, not both")

    @property
    def identifies(self) -> bool:
        """Whether the language of a document that states none is identified."""
        return self.identify_language and not self.language


SourcesSettings = Mapping[str, SourceSettings]
"""Sources by name, as a recipe has them; none means RedPajama-V2 at ``LC_UPSTREAM``."""


def require_sources(settings: SourcesSettings) -> None:
    """Refuse names that cannot begin a partition's key, and two sources of RedPajama-V2's layout.

    Raises:
        BadInput: names the source.
    """
    for name in settings:
        if not _NAME.fullmatch(name):
            raise BadInput(
                f"sources.{name}: not a source's name; expected a letter, then at most 19 "
                "letters, digits and '_'"
            )
    published = [name for name, source in settings.items() if source.kind == "redpajama_v2"]
    if len(published) > 1:
        raise BadInput(
            f"sources {', '.join(published)}: only one can be of kind redpajama_v2, because its "
            "documents' ids do not name a source"
        )


def source_name(settings: SourcesSettings, key: str) -> str:
    """Which source a partition belongs to.

    >>> both = {"web": SourceSettings(path="a"), "rpv2": SourceSettings(kind="redpajama_v2")}
    >>> [source_name(both, key) for key in ("web-2024-10", "2023-06")]
    ['web', 'rpv2']

    Raises:
        BadInput: when no source can have it.
    """
    if not settings:
        return REDPAJAMA
    if len(settings) == 1:
        return next(iter(settings))
    name = key.partition("-")[0]
    if name in settings and settings[name].kind == "files":
        return name
    for other, source in settings.items():
        if source.kind == "redpajama_v2":
            return other
    raise BadInput(
        f"no source has a partition {key!r}; keys begin with one of "
        f"{', '.join(f'{known}-' for known in settings)}"
    )


def source_of_key(settings: SourcesSettings, key: str) -> SourceSettings:
    """Settings of the source that a partition belongs to."""
    return settings.get(source_name(settings, key), SourceSettings(kind="redpajama_v2"))


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise BadInput(f"pattern {pattern!r} is no regular expression: {error}") from error
