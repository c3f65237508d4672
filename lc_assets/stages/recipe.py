"""The recipe: every setting of every stage, in one value, from one TOML file.

Assets, planner, command line and tests read the same recipe, so what the planner calls current is what an
asset would build. A file needs only what differs from the defaults below::

    [filtering]
    min_words = 12000
    [filtering.thresholds]
    no_alphabetic_words = { at_most = 0.4 }

Unknown names, wrong types and impossible sizes are refused, with the place in the file and what could stand there.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from lc_assets.errors import BadInput
from lc_assets.formats.grid_layout import INNER_ROWS, INNER_TOKENS, SHARD_ROWS, SHARD_TOKENS, ZSTD_LEVEL, GridLayout
from lc_assets.stages.settings import NO_MODEL_SETTINGS, DecontaminationSettings, ModelSettings, PrivacySettings, Seed, Settings
from lc_assets.text.duplicates import Preference
from lc_assets.vocabulary import LANGUAGES, ROW_TOKENS, parse_snapshot

Tokens = Annotated[int, msgspec.Meta(gt=0, le=2**31 - 1)]
"""Megatron states a document's length as an int32."""
Samples = Annotated[int, msgspec.Meta(gt=0, le=10**9)]
"""A thousand million samples of 8,192 tokens are 19 times LongCrawl64's; a mix's two arrays then are 10 GB."""
Words = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
LineBytes = Annotated[int, msgspec.Meta(gt=0, le=2**30)]
"""A column of Arrow's strings holds 2 GiB."""
Weight = Annotated[float, msgspec.Meta(gt=0, le=1e18)]
Fraction = Annotated[float, msgspec.Meta(ge=0, le=1)]
Bound = Annotated[float, msgspec.Meta(ge=-1e18, le=1e18)]

Missing = Literal["fail", "skip_shard"]
"""What to do with a shard that lacks a file: stop, or leave the shard out and count it."""


class RawSettings(Settings, frozen=True, kw_only=True):
    """Which shards of a snapshot are taken, as listed upstream.

    Attributes:
        languages: RedPajama-V2's five by default: LongCrawl64's article names no language filter.
        buckets: of perplexity; LongCrawl64 used head and middle. (Tail has neither signals nor duplicates.)
        shards: numbers of the shards to take, such as ``[0, 1, 2]``; none means all 5,000.
        minhash: whether the manifest states the MinHash files too.
        trust_file_times: whether a local file of the same size and modification time is taken to be the same,
            instead of reading its content twice (for the manifest, and before it is filtered). A copy of the folder
            elsewhere then counts as changed.
    """

    languages: Annotated[tuple[Literal["en", "de", "fr", "es", "it"], ...], msgspec.Meta(min_length=1)] = LANGUAGES
    buckets: Annotated[tuple[Literal["head", "middle"], ...], msgspec.Meta(min_length=1)] = ("head", "middle")
    shards: tuple[Annotated[int, msgspec.Meta(ge=0)], ...] = ()
    minhash: bool = False
    trust_file_times: bool = False


class Bounds(Settings, frozen=True, kw_only=True):
    """New bounds for one rule; a bound that is left out stays as it is."""

    at_least: Bound | None = None
    at_most: Bound | None = None


class ListSettings(Settings, frozen=True, kw_only=True):
    """Files or folders of the lists that some signals need, see `lc_assets.formats.word_lists`; nothing: there is none."""

    stop_words: str = ""
    bad_words: str = ""
    domains: str = ""


NO_LIST_SETTINGS = ListSettings()


class FilteringSettings(Settings, frozen=True, kw_only=True):
    """Which documents are kept.

    Attributes:
        rules: name of a preset, or path of a rule file. Lucie's is the best public set for RedPajama-V2's signals;
            LongCrawl64 says "the same criteria as Gopher" and published neither thresholds nor code.
        thresholds: bounds that differ from the rule file's, by rule.
        min_words: LongCrawl64's "16k words or more"; whether it meant 16,000 or 16,384 is not known.
        missing_signals: policy for a shard whose quality signals are missing or broken (about 80 files upstream);
            ``compute`` computes from the documents' text what the rules judge, and counts the shard.
        missing_duplicates: policy for a shard whose duplicates file is missing or broken (about 350 files upstream);
            ``treat_as_unique`` keeps the shard as if no document in it were a duplicate, and counts the shard. A list
            that cannot be read to its end is no list: what could be read of it is not used.
        corrupt_documents: policy for a shard whose documents are missing or broken ("a few hundred" upstream).
            Broken means the file: a single line that cannot be read is one dropped document.
        max_line_bytes: a longer line is not read but counted as ``line too long``.
        lists: for signals that are computed and need one; the receipt holds what they are, not where.
        models: for rules on languages, addresses, perplexity and quality; as well, of those that the rules need.
    """

    rules: str = "redpajama-lucie"
    thresholds: dict[str, Bounds] = msgspec.field(default_factory=dict)
    min_words: Words = 16_000
    missing_signals: Literal["fail", "skip_shard", "compute"] = "skip_shard"
    missing_duplicates: Literal["fail", "skip_shard", "treat_as_unique"] = "skip_shard"
    corrupt_documents: Missing = "skip_shard"
    max_line_bytes: LineBytes = 256 << 20
    lists: ListSettings = NO_LIST_SETTINGS
    models: ModelSettings = NO_MODEL_SETTINGS


class DeduplicationSettings(Settings, frozen=True, kw_only=True):
    """How duplicates are looked for.

    Attributes:
        signatures: ``published_or_computed`` reads RedPajama-V2's MinHash files where the manifest has them (it does
            with ``raw.minhash``), and computes the same bit for bit for every document that they lack; ``computed``
            reads none; ``fast`` computes this package's own, eight times as fast.
        near: whether near duplicates are looked for among filtered documents, of a snapshot and of older ones.
        threshold: Jaccard index of 13-grams from which on two documents are near duplicates; 0.8 is what RedPajama-V2's
            ablations used.
        evidence_floor: pairs that are less alike are not written down.
        heldout_floor: of two documents so much alike, one held out and the other to be trained on, one does not go on;
            LongCrawl64 never asked.
        prefer: who of several stays, as in `lc_assets.text.duplicates.Preference`; a source is a snapshot. With the oldest
            a newer snapshot changes nothing of the older ones; with any other order it may, and they are decided again.
    """

    signatures: Literal["published_or_computed", "computed", "fast"] = "published_or_computed"
    near: bool = True
    threshold: Annotated[float, msgspec.Meta(gt=0, le=1)] = 0.8
    evidence_floor: Annotated[float, msgspec.Meta(gt=0, le=1)] = 0.5
    heldout_floor: Annotated[float, msgspec.Meta(gt=0, le=1)] = 0.5
    prefer: tuple[str, ...] = ("oldest",)

    def __post_init__(self) -> None:
        for name in ("threshold", "heldout_floor"):
            if getattr(self, name) < self.evidence_floor:
                raise BadInput(
                    f"deduplication.{name} ({getattr(self, name)}) is below evidence_floor ({self.evidence_floor}): "
                    "such pairs would not be written down"
                )
        Preference(self.prefer)


class TokenizingSettings(Settings, frozen=True, kw_only=True):
    """How text becomes ids.

    Attributes:
        tokenizer: ``gpt2``, another of tiktoken's vocabularies, or the path of a Hugging Face ``tokenizer.json``:
            see `lc_assets.formats.named_tokenizers`. Of more than 65,535 ids, rows take four bytes a token.
        text_encoding: ``plain``; or JSON-escaped, as LongCrawl64's text was by its users' report.
        min_tokens: shorter documents are dropped.
        first_tokens: only so many tokens of a document are kept, and little more of it is tokenized; none keeps whole
            documents. LongCrawl64's rows need 65,536.
    """

    tokenizer: Annotated[str, msgspec.Meta(min_length=1)] = "gpt2"
    text_encoding: Literal["plain", "json_ascii", "json_utf8"] = "plain"
    min_tokens: Tokens = ROW_TOKENS
    first_tokens: Tokens | None = None

    def __post_init__(self) -> None:
        if self.first_tokens is not None and self.first_tokens < self.min_tokens:
            raise BadInput(
                f"tokenizing.first_tokens ({self.first_tokens:,}) is below min_tokens ({self.min_tokens:,}): "
                "what is kept could not show that a document is long enough"
            )


class GriddingSettings(Settings, frozen=True, kw_only=True):
    """How documents become rows.

    Attributes:
        row_tokens: the first so many tokens of a document are its row.
        rows_per_document: at most so many rows are cut out of a document, one behind the other; what is left behind
            the last is counted. LongCrawl64 took one.
        heldout_fraction: share of documents held out, by a keyed hash; LongCrawl64's was one shard of 128.
        seed: of order, shifts and split.
        chunk_rows: rows of what a reader decodes at once; divides 2,048. docs/chunking.md measures what it changes.
        chunk_tokens: tokens of its rows; divides 65,536.
        zstd_level: at which it is packed.
    """

    row_tokens: Tokens = ROW_TOKENS
    rows_per_document: Annotated[int, msgspec.Meta(ge=1, le=2**20)] = 1
    heldout_fraction: Fraction = 1 / 128
    seed: Seed = 64
    chunk_rows: Annotated[int, msgspec.Meta(ge=1, le=SHARD_ROWS)] = INNER_ROWS
    chunk_tokens: Annotated[int, msgspec.Meta(ge=1, le=SHARD_TOKENS)] = INNER_TOKENS
    zstd_level: Annotated[int, msgspec.Meta(ge=1, le=22)] = ZSTD_LEVEL

    def __post_init__(self) -> None:
        self.layout(SHARD_ROWS, vocab_size=2)

    def layout(self, n_rows: int, vocab_size: int) -> GridLayout:
        """Of a grid of so many rows, with ids below ``vocab_size``.

        Raises:
            BadInput: when the chunks cannot be meant.
        """
        return GridLayout(
            n_rows, self.row_tokens, vocab_size, inner_rows=self.chunk_rows, inner_tokens=self.chunk_tokens, zstd_level=self.zstd_level
        )


class FlatteningSettings(Settings, frozen=True, kw_only=True):
    """The flat layout.

    Attributes:
        codec: ``blosc-lz4`` with byte shuffle, as LongCrawl64 was published; or ``zstd``, which takes 0.6 of the room and
            which readers of Zarr v2 know as well.
    """

    codec: Literal["blosc-lz4", "zstd"] = "blosc-lz4"


class MegatronSettings(Settings, frozen=True, kw_only=True):
    """Megatron's GPT index of one snapshot's rows.

    Attributes:
        sequence_length: tokens of a sample, without the one that makes the last target.
        seed: Megatron's ``--seed``.
        samples: how many samples the index serves, over as many epochs as that takes; none means one epoch.
    """

    sequence_length: Tokens = 8192
    seed: Annotated[int, msgspec.Meta(ge=0, lt=2**32)] = 1234
    samples: Samples | None = None


class ContinuationSettings(Settings, frozen=True, kw_only=True):
    """What a mix goes on from.

    Attributes:
        mix: another mix of the recipe, which names its sources.
        after: its samples that were consumed, and stay as they were.
    """

    mix: str
    after: Annotated[int, msgspec.Meta(ge=0, le=10**9)]


class MixSettings(Settings, frozen=True, kw_only=True):
    """One blend of snapshots: by weights, or by the tokens or epochs that are wanted of each.

    Attributes:
        weights: by snapshot; or ``tokens``: every published snapshot by its size; or ``equal``.
        temperature: with ``tokens``: size to the power of its inverse; above 1 small snapshots get more than their part.
        tokens: instead of weights: tokens wanted of each snapshot, to the nearest sample.
        epochs: instead of weights: how often each snapshot is to be gone through, to the nearest sample.
        samples: size of the blend; none means the most that repeats no sample of any source.
        seed: of the indices; none means ``megatron.seed``.
        continues: the mix whose first samples this one keeps.
    """

    weights: dict[str, Weight] | Literal["tokens", "equal"] = "tokens"
    temperature: Annotated[float, msgspec.Meta(gt=0, le=1e6)] = 1.0
    tokens: dict[str, Annotated[int, msgspec.Meta(gt=0, le=2**53)]] = msgspec.field(default_factory=dict)
    epochs: dict[str, Annotated[float, msgspec.Meta(gt=0, le=1000)]] = msgspec.field(default_factory=dict)
    samples: Samples | None = None
    seed: Annotated[int, msgspec.Meta(ge=0, lt=2**32)] | None = None
    continues: ContinuationSettings | None = None

    def __post_init__(self) -> None:
        if self.temperature != 1 and (self.weights != "tokens" or self.tokens or self.epochs):
            raise BadInput('a temperature belongs to weights = "tokens", and to nothing else')
        if (self.tokens or self.epochs) and (self.weights != "tokens" or self.samples is not None or (self.tokens and self.epochs)):
            raise BadInput("a mix is by weights and samples, or by tokens, or by epochs: only one of them")

    @property
    def named(self) -> frozenset[str] | None:
        """The snapshots it names; none means every published one."""
        if self.tokens or self.epochs:
            return frozenset(self.tokens or self.epochs)
        return frozenset(self.weights) if isinstance(self.weights, dict) else None


class Recipe(Settings, frozen=True, kw_only=True):
    """All settings of the chain.

    Attributes:
        mixes: by name, which is the name of a folder too.
    """

    raw: RawSettings = RawSettings()
    filtering: FilteringSettings = FilteringSettings()
    privacy: PrivacySettings = PrivacySettings()
    deduplication: DeduplicationSettings = DeduplicationSettings()
    decontamination: DecontaminationSettings = DecontaminationSettings()
    tokenizing: TokenizingSettings = TokenizingSettings()
    gridding: GriddingSettings = GriddingSettings()
    flattening: FlatteningSettings = FlatteningSettings()
    megatron: MegatronSettings = MegatronSettings()
    mixes: dict[str, MixSettings] = msgspec.field(
        default_factory=lambda: {"by-tokens": MixSettings(), "equal": MixSettings(weights="equal")}
    )

    def __post_init__(self) -> None:
        self.decontamination.require_document_by_document()
        if self.tokenizing.min_tokens < self.gridding.row_tokens:
            raise BadInput(
                f"tokenizing.min_tokens ({self.tokenizing.min_tokens:,}) is below gridding.row_tokens "
                f"({self.gridding.row_tokens:,}): shorter documents would not fill a row"
            )
        kept, wanted = self.tokenizing.first_tokens, self.gridding.row_tokens * self.gridding.rows_per_document
        if kept is not None and kept < wanted:
            raise BadInput(
                f"tokenizing.first_tokens ({kept:,}) is below what gridding may take of a document: "
                f"{self.gridding.rows_per_document:,} rows of {self.gridding.row_tokens:,} tokens"
            )
        for name in self.mixes:
            _require_name(name)


def _require_name(mix: str) -> None:
    try:
        parse_snapshot(mix)
    except BadInput as error:
        raise BadInput(f"a mix cannot be called {mix!r}: wanted at most 40 letters, digits, '-' and '_', such as 'by-tokens'") from error


def parse_recipe(content: str | bytes, *, where: str) -> Recipe:
    r"""Read a recipe from TOML; ``where`` names it in errors.

    >>> parse_recipe("[filtering]\nmin_words = 12000", where="mine.toml").filtering.min_words
    12000

    Raises:
        BadInput: for anything that is not a recipe: says which name or value, and where.
    """
    try:
        return msgspec.toml.decode(content, type=Recipe)
    except (msgspec.MsgspecError, ValueError) as error:
        raise BadInput(f"{where}: not a recipe: {error}{_hint(str(error))}") from error


def _hint(complaint: str) -> str:
    """What could stand at the place where msgspec found an unknown name or value; empty for other complaints.

    >>> _hint("Invalid enum value 'xx' - at `$.raw.buckets[0]`")
    '; there are head, middle'
    """
    if not complaint.startswith(("Object contains unknown field", "Invalid enum value")):
        return ""
    *_, place = complaint.rpartition("at `$")
    steps = re.findall(r"\.(\w+)|\[", place) if "at `$" in complaint else []
    return f"; there are {', '.join(_possible(msgspec.inspect.type_info(Recipe), steps))}"


def _possible(kind: msgspec.inspect.Type, steps: list[str]) -> Iterator[str]:
    """Names of the settings, or values, that a type allows ``steps`` further down; an empty step is an item or an entry."""
    if isinstance(kind, msgspec.inspect.UnionType):
        for choice in kind.types:
            yield from _possible(choice, steps)
    elif isinstance(kind, msgspec.inspect.LiteralType) and not steps:
        yield from map(str, kind.values)
    elif isinstance(kind, msgspec.inspect.StructType):
        if not steps:
            yield from (field.name for field in kind.fields)
        for field in kind.fields:
            if steps and field.name == steps[0]:
                yield from _possible(field.type, steps[1:])
    elif isinstance(kind, msgspec.inspect.VarTupleType) and steps:
        yield from _possible(kind.item_type, steps[1:])
    elif isinstance(kind, msgspec.inspect.DictType) and steps:
        yield from _possible(kind.value_type, steps[1:])


def read_recipe(path: Path | None) -> Recipe:
    """The recipe of a file, or the default recipe when there is none."""
    if path is None:
        return Recipe()
    if not path.is_file():
        raise BadInput(f"{path}: no such recipe file")
    return parse_recipe(path.read_bytes(), where=str(path))


def plain(settings: Settings) -> dict[str, Any]:
    """Settings as JSON-like values, for a fingerprint."""
    values: dict[str, Any] = msgspec.to_builtins(settings)
    return values
