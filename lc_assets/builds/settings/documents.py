"""Settings of the stages of documents: which files are read, which documents are kept, what counts
as a duplicate.
"""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from lc_assets.builds.settings.common import (
    NO_MODEL_SETTINGS,
    ModelSettings,
    Natural,
    Positive,
    Settings,
    Share,
)
from lc_assets.errors import BadInput, known_names
from lc_assets.vocabulary import LANGUAGES

Words = Annotated[int, Meta(ge=0, le=2**53)]
LineBytes = Annotated[int, Meta(gt=0, le=2**30)]
"""A column of Arrow's strings holds 2 GiB."""
Bound = Annotated[float, Meta(ge=-1e18, le=1e18)]

Missing = Literal["fail", "skip_shard"]
"""What to do with a shard that lacks a file: stop, or leave the shard out and count it."""


class RawSettings(Settings):
    """Which shards of a snapshot are taken, as listed upstream.

    Attributes:
        languages: by default all five of RedPajama-V2: LongCrawl64's article mentions no language
            filter.
        buckets: perplexity buckets; LongCrawl64 used head and middle. (Tail has neither signals nor
            duplicates.)
        shards: shard numbers, such as ``[0, 1, 2]``; all 5,000 if empty.
        minhash: whether the manifest includes the MinHash files.
        trust_file_times: whether a local file with the same size and modification time is assumed
            unchanged, instead of reading its content twice (for the manifest, and before
            filtering). A copy of the folder elsewhere then counts as changed.
    """

    languages: Annotated[tuple[Literal["en", "de", "fr", "es", "it"], ...], Meta(min_length=1)] = (
        LANGUAGES
    )
    buckets: Annotated[tuple[Literal["head", "middle"], ...], Meta(min_length=1)] = (
        "head",
        "middle",
    )
    shards: tuple[Natural, ...] = ()
    minhash: bool = False
    trust_file_times: bool = False


class Bounds(Settings):
    """Bounds of one rule; omitted bounds keep their values."""

    at_least: Bound | None = None
    at_most: Bound | None = None

    def given(self) -> dict[str, float | None]:
        """Those that are given, by name."""
        found = {"at_least": self.at_least, "at_most": self.at_most}
        return {name: bound for name, bound in found.items() if bound is not None}


class ListSettings(Settings):
    """Files or folders of lists that some signals need, see `lc_assets.formats.lists.word_lists`;
    empty for none.

    Attributes:
        stop_words: JSON by language, or a folder of ``en.txt`` and so on.
        bad_words: LDNOOBW's folder, or JSON by language.
        domains: categories of domains: ``ut1_domain_categories.json``, or UT1's folder.
    """

    stop_words: str = ""
    bad_words: str = ""
    domains: str = ""


NO_LIST_SETTINGS = ListSettings()


class DocumentSignalSettings(Settings):
    """Which values are computed for every document, including dropped ones.

    Attributes:
        values: whether all values that the rules test are computed and stored. Documents are then
            filtered by the stored values, and every rule is applied to every document: with another
            threshold, only the texts of kept documents are read.
        columns: further values to store, as `filtered_documents.bounds` names them.
        lines: whether RedPajama-V2's signals are written, in its own lines.
    """

    values: bool = False
    columns: tuple[str, ...] = ()
    lines: bool = False


class FilteringSettings(Settings):
    """Which documents are kept.

    Attributes:
        rules: name of a preset, or path of a rule file. Lucie's is the best public set for
            RedPajama-V2's signals; LongCrawl64's authors state "the same criteria as Gopher" but
            published neither thresholds nor code.
        thresholds: bounds that differ from the rule file's, by rule.
        bounds: further rules, by column: ``signal``, or ``signal:words`` where it depends on words.
        min_words: LongCrawl64's "16k words or more"; it is unknown whether this means 16,000 or
            16,384.
        missing_signals: policy for a shard whose quality signals are missing or broken (about 80
            files upstream); ``compute`` computes the tested values from the documents' text, and
            counts the shard.
        missing_duplicates: policy for a shard whose duplicates file is missing or broken (about 350
            files upstream); ``treat_as_unique`` keeps the shard as if it had no duplicates, and
            counts it. A list that cannot be read to the end is not used at all.
        corrupt_documents: policy for a shard whose documents are missing or broken ("a few hundred"
            upstream). This concerns whole files: a single unreadable line is one dropped document.
        killed_documents: policy for a document at which two workers in turn were killed, most
            likely for memory; ``skip`` drops it and counts it, so that what is kept depends on the
            machine.
        max_line_bytes: longer lines are not read but counted as ``line too long``.
        compression: of the kept documents; with ``none`` they take 2.3 times the space, and writing
            and reading them a fifth of the time.
        lists: word lists for computed signals that need one; receipts record their content, not
            their paths.
        models: models for rules on languages, addresses, perplexity and quality.
    """

    rules: str = "redpajama-lucie"
    thresholds: dict[str, Bounds] = msgspec.field(default_factory=dict)
    bounds: dict[str, Bounds] = msgspec.field(default_factory=dict)
    min_words: Words = 16_000
    missing_signals: Literal["fail", "skip_shard", "compute"] = "skip_shard"
    missing_duplicates: Literal["fail", "skip_shard", "treat_as_unique"] = "skip_shard"
    corrupt_documents: Missing = "skip_shard"
    killed_documents: Literal["fail", "skip"] = "fail"
    max_line_bytes: LineBytes = 256 << 20
    compression: Literal["zstd", "none"] = "zstd"
    lists: ListSettings = NO_LIST_SETTINGS
    models: ModelSettings = NO_MODEL_SETTINGS


class SignatureSettings(Settings):
    """How documents are signed.

    Attributes:
        signatures: ``fast`` computes this package's own; ``published_or_computed`` reads
            RedPajama-V2's MinHash files where the manifest has them, and computes the same bit for
            bit, at half the speed, for every document that they lack; ``computed`` reads
            none. ``auto`` is ``published_or_computed`` with ``raw_snapshot.minhash``, otherwise
            ``fast``.
        shingle_size: words or characters of a shingle; other than 13 words need ``fast``.
        shingle_of: which of the two.
    """

    signatures: Literal["auto", "published_or_computed", "computed", "fast"] = "auto"
    shingle_size: Annotated[int, Meta(ge=3, le=13)] = 13
    shingle_of: Literal["words", "characters"] = "words"


class NearDuplicateSettings(Settings):
    """How pairs of near duplicates are found.

    Attributes:
        near: whether to search for near duplicates among the filtered documents of a snapshot and
            older ones.
        measure: how similar two documents are: ``jaccard``, the share of all their shingles that
            both have; ``containment``, the share of the shorter one's that the longer one has, so
            that a document is a duplicate of one that continues it. Then
            `removed_documents.prefer` begins with ``longest``.
        evidence_floor: less similar pairs are not published.
    """

    near: bool = True
    measure: Literal["jaccard", "containment"] = "jaccard"
    evidence_floor: Share = 0.5


PREFERENCES = ("newest", "oldest", "longest", "best_perplexity")
SOURCE = "source="


class RemovalSettings(Settings):
    """Which of several near duplicates are removed.

    Attributes:
        threshold: least similarity at which two documents are near duplicates; RedPajama-V2's
            ablations used a Jaccard index of 0.8.
        heldout_floor: if a held-out and a training document are at least this similar, one is
            removed; LongCrawl64 did not do this.
        prefer: which duplicate is kept: ``newest``, ``oldest``, ``longest``, ``best_perplexity`` or
            ``source=NAME``, where a source is a snapshot; ``best_perplexity``, of
            the published ones, needs ``exact``; the first criterion in which two documents differ
            decides. With ``oldest`` first, a newer snapshot does not affect older
            ones; otherwise it may, and they are decided again.
        exact: what else makes two documents duplicates: the same published ``digest``, the same
            words in their ``text``, or the same ``url``. All partitions are then read, and dates
            decide which is newest.
    """

    threshold: Share = 0.8
    heldout_floor: Share = 0.5
    prefer: tuple[str, ...] = ("oldest",)
    exact: tuple[Literal["digest", "text", "url"], ...] = ()

    def __post_init__(self) -> None:
        for key in self.prefer:
            if key not in PREFERENCES and not (key.startswith(SOURCE) and key != SOURCE):
                raise BadInput(
                    f"no preference {key!r}; in any order, separated by commas, there are "
                    f"{SOURCE}NAME, {known_names(PREFERENCES, key)}"
                )


class CleanDocumentsSettings(Settings):
    """The documents that no stage excluded, as a corpus.

    Attributes:
        wanted: whether to write them; they are as large as the filtered documents.
        file_format: ``jsonl``, compressed by gzip, or ``parquet``.
        paragraphs: lines of at least this many characters that several documents of the partition
            share are removed from all but the one that `removed_documents.prefer` prefers; unset
            keeps texts unchanged.
    """

    wanted: bool = False
    paragraphs: Positive | None = None
    file_format: Literal["jsonl", "parquet"] = "jsonl"
