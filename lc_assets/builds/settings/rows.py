"""Settings of the stages that make rows and of those that read rows: tokens, grids, Megatron files,
mixes.
"""

from typing import Annotated, Literal, get_args

import msgspec
from msgspec import Meta

from lc_assets.builds.settings.common import Fraction, PrivacySettings, Seed, Settings, Tokens
from lc_assets.errors import BadInput
from lc_assets.formats.arrays.grid_layout import (
    INNER_ROWS,
    INNER_TOKENS,
    SHARD_ROWS,
    SHARD_TOKENS,
    SHARDS,
    ZSTD_LEVEL,
    Configuration,
    GridLayout,
    shard_rows_of,
)
from lc_assets.vocabulary import ROW_TOKENS

Samples = Annotated[int, Meta(gt=0, le=10**9)]
"""A thousand million samples of 8,192 tokens are 19 times LongCrawl64's; a mix's two arrays then
are 10 GB.
"""
Weight = Annotated[float, Meta(gt=0, le=1e18)]
Part = Literal["megatron_rows", "packed_rows"]
"""Kinds of rows that a mix takes from: one document each, or packed with several; sorted."""
PLAIN: Part = "megatron_rows"
"""The kind of rows whose sources are named by snapshot only; others are ``packed_rows/2023-06``."""


class TokenizingSettings(Settings):
    """How text becomes ids.

    Attributes:
        tokenizer: ``gpt2``, another of tiktoken's vocabularies, or the path of a Hugging Face
            ``tokenizer.json``: see `lc_assets.formats.tokenizers.named`. With more than 65,535 ids,
            rows take four bytes a token.
        text_encoding: ``plain``; or JSON-escaped, as LongCrawl64's text was according to its users.
        min_tokens: shorter documents are dropped.
        first_tokens: maximum number of tokens kept of a document; little more of it is tokenized.
            Unset keeps whole documents. LongCrawl64's rows need 65,536.
        privacy: which personal data are replaced before a text is tokenized.
        append_eod: whether every document ends with the tokenizer's end of text, as
            ``preprocess_data.py --append-eod`` writes it.
        dtype: of the stored ids: ``auto`` (uint16 below 65,500 ids, as Megatron), ``uint16`` or
            ``int32``.
        split_sentences: language by whose model NLTK splits texts into sentences, such as
            ``english``: each is a sequence, as ``preprocess_data.py --split-sentences`` writes
            them. Unset, a document is one.
        keep_newlines: whether sentences keep the white space behind them.
    """

    tokenizer: Annotated[str, Meta(min_length=1)] = "gpt2"
    text_encoding: Literal["plain", "json_ascii", "json_utf8"] = "plain"
    min_tokens: Tokens = ROW_TOKENS
    first_tokens: Tokens | None = None
    privacy: PrivacySettings = PrivacySettings()
    append_eod: bool = False
    dtype: Literal["auto", "uint16", "int32"] = "auto"
    split_sentences: str = ""
    keep_newlines: bool = False

    def __post_init__(self) -> None:
        if self.split_sentences and self.first_tokens is not None:
            raise BadInput("token_documents: name first_tokens or split_sentences, not both")
        if self.keep_newlines and not self.split_sentences:
            raise BadInput("token_documents.keep_newlines is for split_sentences: name a language")
        if self.first_tokens is not None and self.first_tokens < self.min_tokens:
            raise BadInput(
                f"token_documents.first_tokens ({self.first_tokens:,}) is below min_tokens "
                f"({self.min_tokens:,}): "
                "what is kept could not show that a document is long enough"
            )


class GriddingSettings(Settings):
    """How documents become rows.

    Attributes:
        row_tokens: length of a row, in tokens.
        rows_per_document: maximum number of consecutive rows cut from a document; tokens after the
            last are counted. LongCrawl64 used one.
        heldout_fraction: share of documents held out, by a keyed hash of their texts; LongCrawl64's
            was one shard of 128.
        seed: of order, shifts and split.
        chunk_rows: rows of a chunk, the unit of decoding; divides 2,048. docs/chunking.md measures
            the effect.
        chunk_tokens: tokens of a chunk's rows; divides 65,536.
        zstd_level: compression level.
        codec: ``zstd``; or ``ranked``, which is smaller and decoded faster, but other
            programs than zarr-python with this package installed do not read it:
            docs/formats/ranked.md.
    """

    row_tokens: Tokens = ROW_TOKENS
    rows_per_document: Annotated[int, Meta(ge=1, le=2**20)] = 1
    heldout_fraction: Fraction = 1 / 128
    seed: Seed = 64
    chunk_rows: Annotated[int, Meta(ge=1, le=SHARD_ROWS)] = INNER_ROWS
    chunk_tokens: Annotated[int, Meta(ge=1, le=SHARD_TOKENS)] = INNER_TOKENS
    zstd_level: Annotated[int, Meta(ge=1, le=22)] = ZSTD_LEVEL
    codec: Literal["zstd", "ranked"] = "zstd"

    def __post_init__(self) -> None:
        self.layout(SHARD_ROWS * SHARDS, vocab_size=2)

    def layout(
        self, n_rows: int, vocab_size: int, coder: Configuration | None = None
    ) -> GridLayout:
        """Of a grid of so many rows, with ids below ``vocab_size``, coded by ``coder``.

        Raises:
            BadInput: when the chunks do not divide the shards, or the codec does not know so many
                ids.
        """
        return GridLayout(
            n_rows,
            self.row_tokens,
            vocab_size,
            shard_rows=shard_rows_of(n_rows, self.chunk_rows),
            inner_rows=self.chunk_rows,
            inner_tokens=self.chunk_tokens,
            zstd_level=self.zstd_level,
            coder=coder,
        )


class FlatteningSettings(Settings):
    """The flat layout, which is left out for a vocabulary of more than 65,536 ids.

    Attributes:
        codec: ``blosc-lz4`` with byte shuffle, as LongCrawl64 was published; or ``zstd``, which
            takes 0.6 of the space and is also supported by readers of Zarr v2.
    """

    codec: Literal["blosc-lz4", "zstd"] = "blosc-lz4"


class MegatronSettings(Settings):
    """Megatron's GPT index of one snapshot's rows.

    Attributes:
        sequence_length: tokens of a sample, without the one that is the last target.
        seed: Megatron's ``--seed``.
        samples: number of samples in the index, over as many epochs as needed; by default one
            epoch.
    """

    sequence_length: Tokens = 8192
    seed: Annotated[int, Meta(ge=0, lt=2**32)] = 1234
    samples: Samples | None = None


class ContinuationSettings(Settings):
    """The mix that a mix continues.

    Attributes:
        mix: another mix of the recipe, which names its sources.
        after: number of its samples that were consumed and stay unchanged.
    """

    mix: str
    after: Annotated[int, Meta(ge=0, le=10**9)]


def source_name(part: str, snapshot: str) -> str:
    """Name of a source of a mix: a kind of rows of one snapshot.

    >>> source_name("megatron_rows", "2023-06"), source_name("packed_rows", "2023-06")
    ('2023-06', 'packed_rows/2023-06')
    """
    return snapshot if part == PLAIN else f"{part}/{snapshot}"


def part_and_snapshot(source: str) -> tuple[str, str]:
    """The inverse of `source_name`; a snapshot's name contains no ``/``.

    >>> part_and_snapshot("2023-06"), part_and_snapshot("packed_rows/2023-06")
    (('megatron_rows', '2023-06'), ('packed_rows', '2023-06'))
    """
    part, _, snapshot = source.rpartition("/")
    return part or PLAIN, snapshot


class PieceSettings(Settings):
    """A piece of a schedule of weights, constant or linear.

    Attributes:
        samples: its length.
        weights: by source: a snapshot, or ``packed_rows/`` and a snapshot; others have none.
        to: weights at its end, which those at its beginning move to; by default they stay.
    """

    samples: Samples
    weights: dict[str, Weight]
    to: dict[str, Weight] = msgspec.field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.weights:
            raise BadInput("a piece of a schedule needs a weight")
        for source in (*self.weights, *self.to):
            part, snapshot = part_and_snapshot(source)
            if not snapshot or part not in get_args(Part):
                raise BadInput(f"{source!r} is no source: name a snapshot, or packed_rows/SNAPSHOT")


class MixSettings(Settings):
    """One blend of snapshots: by weights, a schedule of weights, tokens or epochs.

    Attributes:
        weights: by snapshot; or ``tokens``: every published snapshot by its size; or ``equal``.
        temperature: with ``tokens``: sizes are raised to the power 1/temperature; above 1, small
            snapshots get more than their share.
        tokens: instead of weights: tokens of each snapshot, to the nearest sample.
        epochs: instead of weights: epochs of each snapshot, to the nearest sample.
        schedule: instead of weights: pieces one after the other, each with weights of its own.
        samples: size of the blend; by default the largest that repeats no sample of any source.
        parts: shares of samples by kind of rows, such as ``{megatron_rows = 0.34, packed_rows =
            0.66}``; within each part the weights apply. By default only `megatron_rows`.
        seed: of the indices; by default ``megatron_rows.seed``.
        continues: the mix whose first samples this one keeps.
    """

    weights: dict[str, Weight] | Literal["tokens", "equal"] = "tokens"
    temperature: Annotated[float, Meta(gt=0, le=1e6)] = 1.0
    tokens: dict[str, Annotated[int, Meta(gt=0, le=2**53)]] = msgspec.field(default_factory=dict)
    epochs: dict[str, Annotated[float, Meta(gt=0, le=1000)]] = msgspec.field(default_factory=dict)
    schedule: tuple[PieceSettings, ...] = ()
    samples: Samples | None = None
    parts: dict[Part, Weight] = msgspec.field(default_factory=dict)
    seed: Annotated[int, Meta(ge=0, lt=2**32)] | None = None
    continues: ContinuationSettings | None = None

    def __post_init__(self) -> None:
        if self.temperature != 1 and (
            self.weights != "tokens" or self.tokens or self.epochs or self.schedule
        ):
            raise BadInput('a temperature belongs to weights = "tokens", and to nothing else')
        ways = (self.tokens, self.epochs, self.schedule)
        if any(ways) and (
            self.weights != "tokens" or self.samples is not None or sum(map(bool, ways)) > 1
        ):
            raise BadInput(
                "a mix is by weights and samples, by tokens, by epochs, or by a schedule: only one "
                "of them"
            )
        if self.parts and any(ways):
            raise BadInput(
                "shares of parts go with weights; leave tokens, epochs and schedule out, or parts"
            )

    @property
    def scheduled(self) -> frozenset[str]:
        """The sources that its schedule names."""
        return frozenset(name for piece in self.schedule for name in (*piece.weights, *piece.to))

    @property
    def kinds(self) -> tuple[Part, ...]:
        """The kinds of rows it takes from, sorted."""
        named = {part_and_snapshot(name)[0] for name in self.scheduled} or self.parts or {PLAIN}
        return tuple(part for part in get_args(Part) if part in named)

    def named(self, part: Part) -> frozenset[str] | None:
        """The snapshots of which it names rows of this kind; None means every published one."""
        if self.scheduled:
            own = (part_and_snapshot(name) for name in self.scheduled)
            return frozenset(snapshot for kind, snapshot in own if kind == part)
        if self.tokens or self.epochs:
            return frozenset(self.tokens or self.epochs)
        return frozenset(self.weights) if isinstance(self.weights, dict) else None
