"""What a published data set contains and how it was made, read from receipts and tables.

Only the lengths of the rows' documents are computed. Numbers from receipts of versions that are no
longer in the lake are None and reported as unknown.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
import numpy as np

from lc_assets import arrow_compute as pc
from lc_assets.builds.tables import read_table
from lc_assets.errors import Mismatch, NotPublished
from lc_assets.formats.arrays.order import GlobalOrder
from lc_assets.formats.tokenizers.named import vocabulary_of
from lc_assets.lake.lake import GLOBAL
from lc_assets.lake.receipts import Receipt
from lc_assets.lake.versions import Published
from lc_assets.stages.rows.token_grid import ROWS_FILE, decoded_rows

LENGTH_BINS = tuple(2**k for k in range(10, 25))
"""Lower ends of the bins of documents' lengths, in tokens."""

SHOWN_ROWS = 3


class SnapshotSheet(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of one snapshot.

    Attributes:
        snapshot: its name.
        grid: version and digest of its rows.
        documents: upstream.
        filtered: of these, passed the rules.
        removed: of these, excluded as duplicates, contaminated or withdrawn.
        tokens: of whole documents.
        train_rows: rows for training.
        heldout_rows: held-out rows.
        stored_bytes: size of the encoded rows.
        languages: rows by language.
    """

    snapshot: str
    grid: tuple[str, str]
    documents: int | None
    filtered: int | None
    removed: int | None
    tokens: int | None
    train_rows: int
    heldout_rows: int
    stored_bytes: int
    languages: dict[str, int]


class MixSheet(msgspec.Struct, frozen=True, kw_only=True):
    """One blend: its name, version and digest, samples, tokens and sources."""

    name: str
    version: str
    digest: str
    samples: int
    tokens: int
    sources: int


class Sheet(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of a data set.

    Attributes:
        version: of the global order.
        digest: of the global order.
        row_tokens: length of a row.
        vocab_size: ids are below it.
        snapshots: a sheet each, in the order's sequence.
        mixes: blends of their rows.
        reasons: why documents were dropped, by stage and first reason, over all snapshots.
        rules: of the filter.
        settings: of each stage of the newest snapshot, resolved.
        code: version of each stage's code.
        libraries: versions that determine bytes.
        randomness: what was drawn, and how.
        lengths: the rows' documents by `LENGTH_BINS`.
        samples: beginnings of some rows, with their pages.
    """

    version: str
    digest: str
    row_tokens: int
    vocab_size: int
    tokenizer: str
    snapshots: list[SnapshotSheet]
    mixes: list[MixSheet]
    reasons: dict[str, dict[str, int]]
    rules: list[dict[str, Any]]
    settings: dict[str, dict[str, Any]]
    code: dict[str, str]
    libraries: dict[str, str]
    randomness: dict[str, str]
    lengths: list[int]
    samples: list[dict[str, Any]]

    @property
    def train_rows(self) -> int:
        """Number of training rows."""
        return sum(line.train_rows for line in self.snapshots)

    @property
    def heldout_rows(self) -> int:
        """Number of held-out rows."""
        return sum(line.heldout_rows for line in self.snapshots)

    @property
    def tokens(self) -> int:
        """Tokens in all rows."""
        return (self.train_rows + self.heldout_rows) * self.row_tokens

    @property
    def stored_bytes(self) -> int:
        """Encoded size of the rows."""
        return sum(line.stored_bytes for line in self.snapshots)

    @property
    def languages(self) -> dict[str, int]:
        """Rows by language, most first."""
        counts = (Counter(line.languages) for line in self.snapshots)
        return _most_first(sum(counts, start=Counter[str]()))


def sheet_of(inputs: Mapping[str, Published], setting: str) -> Sheet:
    """Collect the figures of the global order and of the mixes.

    Args:
        inputs: by name: order, mixes, and what `MADE_FROM` names, as far as it is published.
        setting: names the tokenizer of the rows, whose receipts state no path.

    Raises:
        NotPublished: if there is no order.
        Mismatch: if the rows were tokenized by another tokenizer, or made from other inputs.
    """
    order = inputs.get(f"longcrawl/{GLOBAL}")
    if order is None:
        raise NotPublished("the card has no global order to describe: materialize `longcrawl`")
    opened = GlobalOrder.open(order.folder, "train")
    chains = [_chain(inputs, order, source.snapshot) for source in opened.sources]
    grids = [inputs[f"token_grid/{source.snapshot}"] for source in opened.sources]
    newest = chains[-1] if chains else {}
    settings = {stage: receipt.fingerprint.params for stage, receipt in newest.items()}
    vocabulary = vocabulary_of(setting).name
    tokenizer = str(settings.get("token_documents", {}).get("tokenizer", vocabulary))
    if tokenizer != vocabulary:
        raise Mismatch(
            f"{order.name}: its rows were tokenized by {tokenizer}, the recipe names {vocabulary}: "
            f"{OUT_OF_DATE}"
        )
    return Sheet(
        version=order.version,
        digest=order.digest,
        row_tokens=opened.row_tokens,
        vocab_size=opened.vocab_size,
        tokenizer=tokenizer,
        snapshots=[_snapshot(*found) for found in zip(grids, chains, strict=True)],
        mixes=[_mix(inputs[name]) for name in sorted(inputs) if name.startswith("blended_mix/")],
        reasons=_reasons(chains),
        rules=list(settings.get("filtered_documents", {}).get("rules", {}).get("rules", [])),
        settings={
            stage: {name: value for name, value in params.items() if name != "rules"}
            for stage, params in settings.items()
        },
        code={stage: receipt.fingerprint.code_version for stage, receipt in newest.items()},
        libraries=newest["token_grid"].libraries if newest else {},
        randomness={
            f"{stage}: {name}": how
            for stage, receipt in newest.items()
            for name, how in receipt.randomness.items()
        },
        lengths=_lengths(grids),
        samples=_samples(grids, setting),
    )


MADE_FROM = {
    "longcrawl": ("token_grid",),
    "token_grid": ("token_documents",),
    "token_documents": ("removed_documents", "filtered_documents"),
    "filtered_documents": ("raw_snapshot",),
}
"""Stage → the inputs that are followed."""

OUT_OF_DATE = "build what `lc plan` calls out of date first"


def _chain(inputs: Mapping[str, Published], order: Published, snapshot: str) -> dict[str, Receipt]:
    """Receipts of the versions that a snapshot's rows in the order were made from, as far as they
    are published; upstream first.

    Raises:
        Mismatch: when a published version is not the one that was read.
    """
    found = {"longcrawl": order.receipt}
    for stage, names in MADE_FROM.items():
        made_from = found[stage].fingerprint.inputs if stage in found else {}
        for name in names:
            wanted, given = made_from.get(f"{name}/{snapshot}"), inputs.get(f"{name}/{snapshot}")
            if wanted is None or (given is None and stage != "longcrawl"):
                continue
            if given is None or given.digest != wanted:
                raise Mismatch(
                    f"{name}/{snapshot} is not what {stage} was made from: {OUT_OF_DATE}"
                )
            found[name] = given.receipt
    del found["longcrawl"]
    return dict(reversed(found.items()))


def _snapshot(grid: Published, chain: Mapping[str, Receipt]) -> SnapshotSheet:
    counts = {stage: receipt.counts for stage, receipt in chain.items()}
    filtered, removed, tokens = (
        counts.get(stage)
        for stage in ("filtered_documents", "removed_documents", "token_documents")
    )
    languages = read_table(grid.only(ROWS_FILE) / ROWS_FILE, ["language"])["language"]
    return SnapshotSheet(
        snapshot=grid.key,
        grid=(grid.version, grid.digest),
        documents=None if filtered is None else filtered.seen,
        filtered=None if filtered is None else filtered.kept,
        removed=None if removed is None else removed.seen - removed.kept,
        tokens=None if tokens is None else tokens.extra.get("tokens", 0),
        train_rows=counts["token_grid"].extra["train rows"],
        heldout_rows=counts["token_grid"].extra["heldout rows"],
        stored_bytes=sum(fact.n_bytes for fact in grid.receipt.files if ".zarr/" in fact.path),
        languages={line["values"]: line["counts"] for line in languages.value_counts().to_pylist()},
    )


def _mix(mix: Published) -> MixSheet:
    counts = mix.counts
    return MixSheet(
        name=mix.key,
        version=mix.version,
        digest=mix.digest,
        samples=counts.kept,
        tokens=counts.extra["tokens"],
        sources=counts.extra["sources"],
    )


def _reasons(chains: Iterable[Mapping[str, Receipt]]) -> dict[str, dict[str, int]]:
    """Dropped documents by stage and first reason, most first."""
    found: dict[str, Counter[str]] = {}
    for chain in chains:
        for stage, receipt in chain.items():
            found.setdefault(stage, Counter()).update(receipt.counts.dropped)
    return {stage: _most_first(counts) for stage, counts in found.items() if counts}


def _most_first(counts: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _lengths(grids: Iterable[Published]) -> list[int]:
    """Documents by the bin of their length; a document of several rows counts once."""
    counted = np.zeros(len(LENGTH_BINS), np.int64)
    for grid in grids:
        table = read_table(grid.only(ROWS_FILE) / ROWS_FILE, ["n_tokens", "stretch"])
        lengths = np.asarray(table.filter(pc.equal(table["stretch"], 0))["n_tokens"])
        bins = np.searchsorted(LENGTH_BINS, np.maximum(lengths, LENGTH_BINS[0]), side="right") - 1
        counted += np.bincount(bins, minlength=len(LENGTH_BINS))
    return list(map(int, counted))


def _samples(grids: list[Published], tokenizer: str) -> list[dict[str, Any]]:
    """Beginnings of the newest grid's first training rows; its files are fetched for them."""
    with_rows = [grid for grid in grids if grid.counts.extra["train rows"]]
    return decoded_rows(with_rows[-1], tokenizer, n_rows=SHOWN_ROWS) if with_rows else []
