"""`lengths`: how long the documents of a snapshot's sets are, in tokens: natural ones, LongPack's, pieces of packed rows.

Published are a table per set and shard, one of all sets by groups of lengths, and how roots grew by packing. Here: the report.
Not here: which sets there are (`stages.document_sets`), groups and growth (`lc_assets.packing.growth`).
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lc_assets.errors import BadInput
from lc_assets.formats.named_tokenizers import GPT2_NAMES, TIKTOKEN, tokenizer_of
from lc_assets.packing.growth import growth
from lc_assets.packing.length_buckets import bucket_counts
from lc_assets.publishing import publish
from lc_assets.stages.building import Built, Draft, Evidence, Finding, Stage, Workshop, build, run_shards
from lc_assets.stages.claims import DOCUMENTS_SUFFIX, documents_files, evenly_spaced
from lc_assets.stages.document_sets import (
    LONGPACK,
    NATURAL,
    PACKED,
    SETS,
    STAGE_OF_SET,
    SetShard,
    needs,
    piece_lengths,
    shards_of_sets,
    texts_of,
)
from lc_assets.stages.longpacking.gathering import SPANS_SUFFIX
from lc_assets.stages.longpacking.growing import roots_tried
from lc_assets.stages.recipe import Recipe
from lc_assets.stages.removals import removed_by_shard
from lc_assets.stages.report_tables import GROWTH, LENGTH_SHARES, LENGTHS
from lc_assets.stages.tables import TableWriter, read_lines, read_table, write_table
from lc_assets.stages.tokenizing import params_of
from lc_assets.storage.workings import once
from lc_assets.tally import Tally
from lc_assets.text.referral_tables import LENGTHS as LOWER
from lc_assets.text.referral_tables import group_names, group_of
from lc_assets.tokens.tokenizers import TextEncoding, escape
from lc_assets.vocabulary import SnapshotId

SUFFIX: Final = ".lengths.parquet"
SHARES_FILE: Final = "lengths.parquet"
GROWTH_FILE: Final = "growth.parquet"
GAVE_UP: Final = "the tokenizer gave up"
NO_TOKENS: Final = "no tokens"
COUNTED_AGAIN: Final = 6
"""Documents of each set whose tokens the audit counts again, by the tokenizer's twin."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LengthTask:
    """One shard of a set to be counted into ``folder``; ``removed`` has reasons by id."""

    shard: SetShard
    folder: Path
    tokenizer: str
    text_encoding: TextEncoding
    removed: Mapping[str, str]

    @property
    def name(self) -> str:
        """The shard's name among those of all sets."""
        return self.shard.name

    def __str__(self) -> str:
        return self.name


def report_lengths(workshop: Workshop, snapshot: SnapshotId) -> Built:
    """Publish the lengths of one snapshot's document sets.

    Raises:
        NotPublished: when a set that the recipe wants is not there.
    """
    settings = workshop.recipe.tokenizing

    def fill(draft: Draft) -> Tally:
        removed = removed_by_shard(draft.inputs[f"removals/{snapshot}"].folder)
        tasks = [
            LengthTask(
                shard=shard,
                folder=draft.folder,
                tokenizer=settings.tokenizer,
                text_encoding=settings.text_encoding,
                removed=removed.get(shard.shard, {}) if shard.document_set == NATURAL else {},
            )
            for shard in shards_of_sets(draft.inputs, snapshot, workshop.recipe)
        ]
        tally = run_shards(workshop, draft, count_shard, tasks, what=f"lengths of {snapshot}")
        write_table(draft.folder / SHARES_FILE, pa.Table.from_pylist(shares_of(draft.folder), schema=LENGTH_SHARES))
        write_table(draft.folder / GROWTH_FILE, pa.Table.from_pylist(_growth(draft, snapshot), schema=GROWTH))
        return tally

    return build(workshop, STAGE, snapshot, fill)


@once
def count_shard(task: LengthTask) -> Tally:
    """Count the tokens of one shard's documents."""
    counts, dropped, names = Counter[str](), Counter[str](), group_names()
    path = task.folder / f"{task.name}{SUFFIX}"
    with publish(path) as draft:
        writer = TableWriter(draft, LENGTHS)
        for name, n_tokens, n_chars in _lengths(task, dropped):
            writer.add({"id": name, "length_group": names[group_of(n_tokens)], "n_tokens": n_tokens, "n_chars": n_chars})
            counts["documents"] += 1
            counts["tokens"] += n_tokens
        writer.close()
    kept = counts["documents"]
    also = {f"{task.shard.document_set} {what}": counts[what] for what in ("documents", "tokens")}
    return Tally(seen=kept + dropped.total(), kept=kept, dropped=dict(dropped), complaints=dict(dropped), also=also)


def _lengths(task: LengthTask, dropped: Counter[str]) -> Iterator[tuple[str, int, int | None]]:
    if task.shard.document_set == PACKED:
        ids, lengths = piece_lengths(task.shard.path, task.shard.shard)
        yield from ((name, n_tokens, None) for name, n_tokens in zip(ids, lengths, strict=True))
        return
    tokenizer = tokenizer_of(task.tokenizer)
    for document in texts_of(task.shard):
        if document.id in task.removed:
            dropped[task.removed[document.id]] += 1
            continue
        try:
            n_tokens = len(tokenizer.encode(escape(document.text, task.text_encoding)))
        except BadInput:
            dropped[GAVE_UP] += 1
            continue
        if n_tokens:
            yield document.id, n_tokens, len(document.text)
        else:
            dropped[NO_TOKENS] += 1


def lengths_files(folder: Path, document_set: str) -> list[Path]:
    """The tables of lengths of a set, sorted by shard."""
    return sorted(folder.glob(f"{document_set}-*{SUFFIX}"))


def lengths_of(folder: Path, document_set: str) -> NDArray[np.int64]:
    """Tokens of each document of a set, shard by shard."""
    parts = [np.asarray(read_table(path, ["n_tokens"])["n_tokens"], np.int64) for path in lengths_files(folder, document_set)]
    return np.concatenate([np.empty(0, np.int64), *parts])


def sets_of(folder: Path) -> list[str]:
    """The sets that a version reports."""
    return [document_set for document_set in SETS if lengths_files(folder, document_set)]


def shares_of(folder: Path) -> list[dict[str, Any]]:
    """Lines of the table of all sets, out of the tables of their documents."""
    lines = []
    for document_set in sets_of(folder):
        groups = [(found.n_docs, found.n_tokens) for found in bucket_counts(lengths_of(folder, document_set), LOWER[1:])]
        n_docs, n_tokens = (max(sum(counts), 1) for counts in zip(*groups, strict=True))
        for number, (name, lower) in enumerate(zip(group_names(), LOWER, strict=True)):
            longer_docs, longer_tokens = (sum(counts) for counts in zip(*groups[number:], strict=True))
            lines.append(
                {
                    "document_set": document_set,
                    "length_group": name,
                    "lower": lower,
                    "documents": groups[number][0],
                    "tokens": groups[number][1],
                    "document_share": groups[number][0] / n_docs,
                    "token_share": groups[number][1] / n_tokens,
                    "documents_from": longer_docs,
                    "document_share_from": longer_docs / n_docs,
                    "token_share_from": longer_tokens / n_tokens,
                }
            )
    return lines


def _growth(draft: Draft, snapshot: str) -> list[dict[str, Any]]:
    """How roots grew: one line, or none when nothing was packed along links."""
    packed, claims = draft.inputs.get(f"longpack/{snapshot}"), draft.inputs.get(f"link_claims/{snapshot}")
    if packed is None or claims is None:
        return []
    found = growth(*_before_and_after(draft.folder, packed.folder), n_roots=roots_tried(claims.receipt.tally))
    return [{name: getattr(found, name) for name in GROWTH.names}]


def _before_and_after(lengths: Path, packed: Path) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Tokens of the roots of packed documents, as their spans have them, and of the documents."""
    before, after = list[int](), list[int]()
    for path in lengths_files(lengths, LONGPACK):
        shard = path.name.removeprefix(f"{LONGPACK}-").removesuffix(SUFFIX)
        spans = read_lines(packed / f"{shard}{SPANS_SUFFIX}", ["id", "role", "n_tokens"])
        roots = {span["id"]: span["n_tokens"] for span in spans if span["role"] == "root"}
        for line in read_lines(path, ["id", "n_tokens"]):
            if line["id"] in roots:
                before.append(roots[line["id"]])
                after.append(line["n_tokens"])
    return np.array(before, np.int64), np.array(after, np.int64)


def every_document_has_a_length(evidence: Evidence) -> Finding:
    """The tables have as many lines and tokens as were counted; what came in is what the sets' stages kept."""
    wrong, came_in, tally = [], 0, evidence.tally
    for document_set in SETS:
        lengths = lengths_of(evidence.folder, document_set)
        found = {"documents": len(lengths), "tokens": int(lengths.sum())}
        wrong += [
            f"{document_set}: {count:,} {what}, counted were {tally.also.get(f'{document_set} {what}', 0):,}"
            for what, count in found.items()
            if count != tally.also.get(f"{document_set} {what}", 0)
        ]
        name = f"{STAGE_OF_SET[document_set]}/{evidence.fingerprint.key}"
        if (published := evidence.inputs.get(name)) is not None:
            came_in += published.receipt.tally.also["pieces"] if document_set == PACKED else published.receipt.tally.kept
    wrong += [f"{came_in:,} documents stand, {tally.seen:,} came in"] if came_in != tally.seen else []
    return Finding(
        claim="every_document_has_a_length",
        passed=not wrong,
        words="; ".join(wrong) or f"{tally.kept:,} lengths of {came_in:,} documents, the others are accounted for",
        numbers={"lengths": tally.kept, "documents": came_in},
    )


def the_shares_are_those_of_the_lengths(evidence: Evidence) -> Finding:
    """The table of groups is what the tables of documents give, each document is in the group of its length, and shares sum to one."""
    lines = read_table(evidence.folder / SHARES_FILE, LENGTH_SHARES.names).to_pylist()
    wrong = [f"{line['document_set']} {line['length_group']}" for line in lines if line not in shares_of(evidence.folder)]
    wrong += [] if len(lines) == len(LOWER) * len(sets_of(evidence.folder)) else [f"{len(lines):,} lines"]
    names, n_strange = group_names(), 0
    for document_set in SETS:
        for path in lengths_files(evidence.folder, document_set):
            table = read_table(path, ["length_group", "n_tokens"])
            groups = np.searchsorted(LOWER, np.asarray(table["n_tokens"]), side="right") - 1
            n_strange += sum(names[group] != name for group, name in zip(groups.tolist(), table["length_group"].to_pylist(), strict=True))
    return Finding(
        claim="the_shares_are_those_of_the_lengths",
        passed=not wrong and not n_strange,
        words=f"{len(lines):,} groups, {len(wrong):,} wrong"
        + (f", such as {wrong[0]}" if wrong else "")
        + f"; {n_strange:,} documents misplaced",
        numbers={"groups": len(lines), "wrong": len(wrong), "misplaced": n_strange},
    )


def lengths_are_counted_anew(evidence: Evidence) -> Finding:
    """Of an even choice of natural and packed documents, the text has so many characters, and by the tokenizer's twin so many tokens."""
    n_counted, wrong = 0, []
    for document_set in (NATURAL, LONGPACK):
        for line, text in _chosen(evidence, document_set):
            n_counted += 1
            if text is None or len(text) != line["n_chars"] or not _has_tokens(evidence, text, line["n_tokens"]):
                wrong.append(line["id"])
    return Finding(
        claim="lengths_are_counted_anew",
        passed=not wrong,
        words=f"{n_counted:,} documents counted anew, {len(wrong):,} differ" + (f", such as {wrong[0]}" if wrong else ""),
        numbers={"counted anew": n_counted, "differ": len(wrong)},
    )


def _has_tokens(evidence: Evidence, text: str, n_tokens: int) -> bool:
    params = evidence.fingerprint.params
    if params["tokenizer"] not in (*GPT2_NAMES, *TIKTOKEN):
        return True  # where the file of another one lay is in no receipt
    return len(tokenizer_of(params["tokenizer"], fast=False).encode(escape(text, params["text_encoding"]))) == n_tokens


def _chosen(evidence: Evidence, document_set: str) -> Iterator[tuple[dict[str, Any], str | None]]:
    """Some lines of a set with the texts of their documents; None where there is none."""
    lines = [(path, line) for path in lengths_files(evidence.folder, document_set) for line in read_lines(path)]
    if not lines:
        return
    folder = evidence.only_input(STAGE_OF_SET[document_set]).folder
    known = {path.name.removesuffix(DOCUMENTS_SUFFIX): path for path in documents_files(folder)}
    for place in evenly_spaced(len(lines), COUNTED_AGAIN):
        path, line = lines[place]
        shard = path.name.removeprefix(f"{document_set}-").removesuffix(SUFFIX)
        documents = read_lines(known[shard], ["id", "raw_content"], batch_lines=16) if shard in known else iter(())
        yield line, next((found["raw_content"] for found in documents if found["id"] == line["id"]), None)


def _params(recipe: Recipe, _: str) -> dict[str, Any]:
    found = params_of(recipe.tokenizing, recipe.privacy)
    return {name: found[name] for name in ("tokenizer", "n_ids", "tokenizer_sha256", "text_encoding")} | {"lengths": list(LOWER)}


STAGE = Stage(
    name="lengths",
    code_version="1",
    upstream=("filtered", "removals", "longpack", "link_claims", "packed"),
    params=_params,
    claims=(every_document_has_a_length, the_shares_are_those_of_the_lengths, lengths_are_counted_anew),
    needs=needs,
    wanted=lambda recipe: recipe.reports.wanted,
)
"""Lengths of a snapshot's document sets."""
