"""A small world that changes at random, and what must hold of the lake that is built of it.

A record is a page of a family of texts: variants of one text with some words more, less or others.
Copies have the text of another record under another digest and address. The checks know records,
entries of withdrawal lists and served rows only; they compute similarities from all 13-grams.
"""

import functools
import itertools
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from lc_assets.builds.settings.common import WithdrawalSettings
from lc_assets.builds.settings.rows import MixSettings
from lc_assets.builds.stage import BuildContext
from lc_assets.errors import LcError, Mismatch
from lc_assets.execution.local import LocalExecutor
from lc_assets.formats.lists.withdrawal_lists import COLUMNS
from lc_assets.lake.lake import Lake
from lc_assets.lake.upstream import Upstream
from lc_assets.sources import redpajama_v2
from lc_assets.stages.deduplication.removals import removals_in
from lc_assets.stages.lineage.histories import filter_values
from lc_assets.stages.lineage.tracing import row_of_order
from lc_assets.stages.planning import plan
from lc_assets.stages.releases.auditing import Audit
from lc_assets.stages.releases.pruning import carry_out, plan_pruning
from lc_assets.stages.releases.releasing import release, release_damage
from lc_assets.stages.rows.token_grid import rows_table
from lc_assets.stages.withdrawal.matching import named_by
from lc_assets.text.privacy.replacing import replace_personal
from lc_assets.vocabulary import Shard
from lc_assets_tests.builders import (
    TINY_ROW_TOKENS,
    WORDS,
    build_all,
    deduplication,
    made_up_record,
    tiny_recipe,
    write_shard,
)

BASE, *SNAPSHOTS = "2020-05", "2021-04", "2022-05", "2023-06"
"""The base has texts of its own and never changes, so that there always are rows on both sides."""
TAGS = ("0000/en_head", "0001/en_head", "0002/en_head")
N_FAMILIES, N_VARIANTS, N_COPIES = 10, 5, 2
TEMPLATES = 2
"""The last families are pages of one text each with other addresses of e-mail in every variant."""
STABLE = range(100, 110)
"""Families of the base."""
SHINGLE, FLOOR = 13, 0.5
SURE = 0.05
"""How far above a bound a similarity must be for signatures to have found it."""

BUILT = "every partition is built"
PLAN = "the plan is current after a build"
SCRATCH = "the lake is the one built from nothing"
VERSIONS = "equal versions have equal bytes"
ROWS = "rows, files, orders, mixes and counts pass the audit"
SIDES = "no document or text is on both sides of the split"
TEXTS = "no text has rows twice"
WITHDRAWN = "what was withdrawn, and its copies, is not served again"
COPIES = "one of near duplicates is served"
HELDOUT = "nothing trained on is like a held-out document"
ACROSS = "who goes across the split is like one that is served there"
RELEASED = "a release stays whole"
TRACED = "the values of a row's document are known"
INVARIANTS = frozenset(
    (
        BUILT,
        PLAN,
        SCRATCH,
        VERSIONS,
        ROWS,
        SIDES,
        TEXTS,
        WITHDRAWN,
        COPIES,
        HELDOUT,
        ACROSS,
        RELEASED,
        TRACED,
    )
)
OF_AUDIT = {"train and heldout": SIDES, "texts": TEXTS, "withdrawn": WITHDRAWN}
"""Invariants by what an audit compares; all others are `ROWS`."""


class Record(NamedTuple):
    """One page."""

    family: int
    variant: int = 0
    copy: int = 0

    @property
    def text(self) -> str:
        """Its text, that of all its copies."""
        return text_of(self.family, self.variant)

    @property
    def url(self) -> str:
        """Its address."""
        return f"https://www.site{self.family}.example.org/{self.variant}/{self.copy}"

    @property
    def digest(self) -> str:
        """Its page's digest."""
        return f"sha1:F{self.family}V{self.variant}C{self.copy}"


@functools.cache
def text_of(family: int, variant: int) -> str:
    """A variant of a family's text: as it is, with a word more, with one other word, with a fifth
    of its words more, or with a fifth of them others.
    """
    n_words = (66, 80, 100, 130, 72, 50, 90, 110)[family % 8]
    words, others = (
        [WORDS[number] for number in np.random.default_rng(seed).integers(len(WORDS), size=n_words)]
        for seed in ([family], [family, variant])
    )
    if N_FAMILIES - TEMPLATES <= family < N_FAMILIES:
        return " ".join(
            word if number % 9 else f"ann{variant}x{number}@mail{family}.org"
            for number, word in enumerate(words)
        )
    if variant in {1, 3}:
        words += others[: 1 if variant == 1 else n_words // 5]
    elif variant == 2:
        words[n_words // 2] = "other"
    elif variant == 4:
        words[: n_words // 5] = others[: n_words // 5]
    return " ".join(words)


@functools.cache
def shingles(text: str) -> frozenset[tuple[str, ...]]:
    """All runs of 13 words of a text."""
    words = re.findall(r"\w+", text.lower())
    return frozenset(tuple(words[at : at + SHINGLE]) for at in range(len(words) - SHINGLE + 1))


@functools.cache
def replaced(text: str, kinds: tuple[str, ...]) -> str:
    """A text without personal data of some kinds."""
    return replace_personal(text, kinds, language="en").text if kinds else text


@functools.cache
def similarity(one: str, other: str) -> float:
    """Jaccard index of the shingles of two texts."""
    both = shingles(one) | shingles(other)
    return len(shingles(one) & shingles(other)) / len(both) if both else 0.0


class Violation(NamedTuple):
    """What does not hold, and where."""

    invariant: str
    words: str


@dataclass
class World:
    """Upstream, list of withdrawals, recipe, and the lake.

    Attributes:
        folder: of all of them.
        shards: records by snapshot and tag.
        recipe: of the next build.
        entries: kind and value.
        listed: digests of records that an entry matched at a build.
        withdrawn: records that passed the filter at a build and had one of these digests, or the
            text of such a record.
        copies: records that passed it and were like one that an entry named then, or, where near
            duplicates are looked for, like one of the former that passed it too.
        releases: names.
        history: what was done, in words.
    """

    folder: Path
    shards: dict[str, dict[str, list[Record]]] = field(default_factory=dict)
    recipe: Any = None
    entries: list[tuple[str, str]] = field(default_factory=list)
    listed: set[str] = field(default_factory=set)
    withdrawn: set[Record] = field(default_factory=set)
    copies: set[Record] = field(default_factory=set)
    releases: list[str] = field(default_factory=list)
    history: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True)
        self.recipe = tiny_recipe(
            self.folder,
            blended_mix={"all": MixSettings()},
            withdrawn_documents=WithdrawalSettings(lists=(str(self.folder / "withdrawn.csv"),)),
            **deduplication(signatures="computed"),
        )
        self.change("packed_rows", row_tokens=2 * TINY_ROW_TOKENS)
        self.change("filtered_documents", min_words=30)
        self._write_list()
        self.put(BASE, TAGS[0], [Record(family) for family in STABLE])

    def context(self, lake: str = "lake") -> BuildContext:
        """Of a build into a lake."""
        return BuildContext(
            lake=Lake(self.folder / lake),
            upstream=Upstream(str(self.folder / "upstream")),
            recipe=self.recipe,
            executor=LocalExecutor(workers=1),
        )

    @property
    def lake(self) -> Lake:
        """The lake."""
        return Lake(self.folder / "lake")

    def change(self, section: str, **settings: Any) -> None:
        """Change settings."""
        changed = msgspec.structs.replace(getattr(self.recipe, section), **settings)
        self.recipe = msgspec.structs.replace(self.recipe, **{section: changed})

    def put(self, snapshot: str, tag: str, records: list[Record]) -> None:
        """Write a shard, or remove it if it has no records, and the listing."""
        shard, root = Shard.parse(f"{snapshot}/{tag}"), self.folder / "upstream"
        tags = self.shards.setdefault(snapshot, {})
        tags.pop(tag, None)
        if records:
            tags[tag] = records
            lines = [
                msgspec.structs.replace(
                    made_up_record(shard, line, record.text),
                    url=record.url,
                    digest=record.digest,
                    source_domain=f"www.site{record.family}.example.org",
                )
                for line, record in enumerate(records)
            ]
            write_shard(root, shard, lines)
        listing = root / redpajama_v2.listing_path(shard.snapshot, "en")
        listing.parent.mkdir(parents=True, exist_ok=True)
        found = sorted(Shard.parse(f"{snapshot}/{name}") for name in tags)
        redpajama_v2.write_listing(listing, found)

    def documents(self) -> dict[str, Record]:
        """Records by id."""
        return {
            Shard.parse(f"{snapshot}/{tag}").document_id(line): record
            for snapshot, tags in self.shards.items()
            for tag, records in tags.items()
            for line, record in enumerate(records)
        }

    def withdraw(self, kind: str, name: str) -> None:
        """Add an entry for a document, by one of its values."""
        value = self._values(name, self.documents()[name])[kind]
        if (kind, value) not in self.entries:
            self.entries.append((kind, value))
            self._write_list()

    def take_out(self, number: int) -> None:
        """Remove an entry from the list: what it withdrew stays withdrawn."""
        del self.entries[number]
        self._write_list()

    def _write_list(self) -> None:
        lines = [f"{kind},{value},asked for,2026-03-01" for kind, value in self.entries]
        path = Path(self.recipe.withdrawn_documents.lists[0])
        path.write_text("\n".join([",".join(COLUMNS), *lines, ""]))

    def _values(self, name: str, record: Record) -> dict[str, str]:
        """What entries can name a document by."""
        return {
            "document": name,
            "url": record.url,
            "domain": f"site{record.family}.example.org",
            "digest": record.digest,
        }

    def _note_withdrawn(self) -> None:
        """Add what a build withdraws now to what was withdrawn before."""
        documents, least = self.documents(), self.recipe.filtered_documents.min_words
        filtered = {of for of in documents.values() if len(of.text.split()) >= least}
        listed = {
            record
            for name, record in documents.items()
            if not set(self._values(name, record).items()).isdisjoint(self.entries)
        }
        self.listed |= {record.digest for record in listed}
        self.withdrawn |= {record for record in filtered if record.digest in self.listed}
        texts = {record.text for record in self.withdrawn}
        self.withdrawn |= {record for record in filtered if record.text in texts}
        self.listed |= {record.digest for record in self.withdrawn}
        if self.recipe.near_duplicate_pairs.near:
            listed |= self.withdrawn & filtered
        bound = self.recipe.removed_documents.threshold + SURE
        self.copies |= {
            record
            for record, of in itertools.product(filtered, listed)
            if similarity(record.text, of.text) >= bound
        }

    def prune(self) -> None:
        """Delete what nothing needs."""
        carry_out(self.lake, plan_pruning(self.lake))

    def release(self) -> None:
        """Name what is published, unless the gate refuses it: what it finds, the checks find."""
        name = f"v{len(self.releases)}"
        try:
            release(self.lake, name, self.recipe)
        except Mismatch:
            return
        self.releases.append(name)

    def settle(self, *, compare: bool) -> list[Violation]:
        """Build, and return what does not hold; with ``compare``, also beside a build from
        nothing.
        """
        self._note_withdrawn()
        snapshots = sorted(self.shards)
        try:
            build_all(self.context(), snapshots)
        except LcError as error:
            return [Violation(BUILT, str(error))]
        found = [
            Violation(PLAN, f"{made.name}: {'; '.join(made.reasons)}")
            for made in plan(self.lake, self.recipe, snapshots)
            if made.status != "current"
        ]
        found += [
            Violation(OF_AUDIT.get(one.what, ROWS), one.sentence)
            for one in Audit(self.lake, *named_by(self.recipe.withdrawn_documents)).run()
            if one.wrong
        ]
        found += itertools.chain(self._served_wrongly(), self._lost(), self._untraced())
        found += [
            Violation(RELEASED, f"{name}: {words}")
            for name in self.releases
            for words in release_damage(self.lake, name)
        ]
        return found + (list(self._unlike_scratch(snapshots)) if compare else [])

    def _tokenized(self, records: dict[str, Record]) -> dict[str, str]:
        """Texts of some records as they are tokenized, by id."""
        kinds = self.recipe.token_documents.privacy.replace
        return {name: replaced(record.text, kinds) for name, record in records.items()}

    def _rows(self) -> dict[str, dict[str, Any]]:
        """Rows of grids, by the ids of their documents."""
        tables = map(rows_table, self.lake.published("token_grid").values())
        return {row["id"]: row for table in tables for row in table.to_pylist()}

    def _served_wrongly(self) -> Iterator[Violation]:
        """Served documents that are withdrawn, or copies of such; and trained-on ones like held-out
        ones.
        """
        records, rows = self.documents(), self._rows()
        gone = self.withdrawn | self.copies
        digests, texts = {of.digest for of in gone} | self.listed, {of.text for of in gone}
        for name in rows:
            if records[name].digest in digests or records[name].text in texts:
                yield Violation(WITHDRAWN, f"{name}, {records[name]}")
        heldout = [name for name, row in rows.items() if row["split"] == "heldout"]
        texts = self._tokenized(records)
        for name, other in itertools.product(rows.keys() - heldout, heldout):
            alike = similarity(texts[name], texts[other])
            if alike >= FLOOR:
                yield Violation(HELDOUT, f"{name} is trained on, {other} held out: {alike:.3f}")

    def _lost(self) -> Iterator[Violation]:
        """Documents that were removed as near duplicates, or as similar to one across the split,
        although no such document is served.
        """
        records, rows = self.documents(), self._rows()
        removals = self.lake.published("removed_documents").values()
        lines = {line["id"]: line for of in removals for line in removals_in(of.folder)}
        reasons = {name: line["reason"] for name, line in lines.items()}
        threshold, texts = self.recipe.removed_documents.threshold, self._tokenized(records)
        short = {
            name for name, record in records.items() if len(record.text.split()) < TINY_ROW_TOKENS
        }
        for name, line in lines.items():
            if line["reason"] == "near heldout":
                side = "heldout" if line["side"] == "train" else "train"
                if not any(
                    row["split"] == side and similarity(texts[of], texts[name]) >= FLOOR
                    for of, row in rows.items()
                ):
                    yield Violation(ACROSS, f"{name}, {records[name]}: for {line['kept_id']!r}")
        for name, reason in reasons.items():
            if reason != "near duplicate" or name in short:
                continue
            kin = {of for of in records if similarity(texts[of], texts[name]) >= threshold}
            if rows.keys().isdisjoint(kin) and all(
                reasons.get(of, "near duplicate") == "near duplicate" for of in kin
            ):
                yield Violation(COPIES, f"{name}, {records[name]}: none of {sorted(kin)}")

    def _untraced(self) -> Iterator[Violation]:
        if not filter_values(self.lake, row_of_order(self.lake, "train", 0)):
            yield Violation(TRACED, "the first row of the order")

    def _unlike_scratch(self, snapshots: list[str]) -> Iterator[Violation]:
        """How the lake differs from one that is built from nothing but what was withdrawn."""
        shutil.rmtree(self.folder / "scratch", ignore_errors=True)
        memory = "withdrawn_documents"
        shutil.copytree(self.folder / "lake" / memory, self.folder / "scratch" / memory)
        context = self.context("scratch")
        for name, built in build_all(context, snapshots).items():
            ours, other = self.lake.partition(*name.split("/")), built.published
            same = ours.finished(other.version)
            if same is not None and same.digest != other.digest:
                yield Violation(VERSIONS, f"{name}/{other.version}")
            if ours.require().digest != other.digest:
                yield Violation(SCRATCH, name)
