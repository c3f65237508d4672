"""Checks of the referral report: the sample, identities of the counts, the means, and some
documents recounted.

Also the computation of means, which a check repeats. Not here: measuring
(`lc_assets.stages.reports.referral_report`).
"""

import dataclasses
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from lc_assets.build.checks import DOCUMENTS_SUFFIX, evenly_spaced
from lc_assets.build.stage import (
    CheckInput,
    CheckResult,
)
from lc_assets.build.tables import read_lines, read_table
from lc_assets.formats.arrays.grid import GridReader
from lc_assets.formats.lists.word_lists import digest_of_words, read_special_words
from lc_assets.publishing import finished
from lc_assets.stages.reports.document_sets import (
    LONGPACK,
    NATURAL,
    PACKED,
    SETS,
    STAGE_OF_SET,
    SetDocument,
    SetShard,
    texts_of,
)
from lc_assets.stages.reports.report_tables import DENSITIES, REFERRALS
from lc_assets.text.referrals.concepts import LexicalConcepts
from lc_assets.text.referrals.referrals import ReferralCounts, bucket_names, count_referrals
from lc_assets.text.referrals.tables import (
    KINDS,
    LENGTHS,
    Sums,
    group_names,
    group_of,
    paper_figures,
)

SUFFIX: Final = ".referrals.parquet"
DENSITIES_FILE: Final = "densities.parquet"
COMMON_FILE: Final = "common_words.parquet"
COUNTED_AGAIN: Final = 3
"""Documents of each set that the audit measures again."""
MOST_CHARACTERS: Final = 200_000
"""Of those: the plain way reads a megabyte a second."""

PAPER_SET: Final = {NATURAL: "RefinedWeb", LONGPACK: "Packed"}
"""Which of the paper's sets one of ours is held against."""


def referral_files(folder: Path, document_set: str) -> list[Path]:
    """The tables of referrals of a set, sorted by shard."""
    return finished(folder.glob(f"{document_set}-*{SUFFIX}"))


def referral_lines(folder: Path, document_set: str) -> Iterator[dict[str, Any]]:
    """Lines of a set, shard by shard."""
    for path in referral_files(folder, document_set):
        yield from read_lines(path, REFERRALS.names)


def sums_of(folder: Path, document_set: str) -> list[Sums]:
    """Sums over a set's measured documents, by group of lengths."""
    groups = [Sums() for _ in LENGTHS]
    for line in referral_lines(folder, document_set):
        kinds = (tuple(line[kind]) for kind in KINDS)
        groups[group_of(line["n_tokens"])].add(
            ReferralCounts(line["n_sentences"], line["n_concepts"], line["n_mentions"], *kinds),
            line["n_tokens"],
        )
    return groups


def densities_of(folder: Path, edges: Sequence[int]) -> list[dict[str, Any]]:
    """Lines of the table of means: set, group, kind, bucket."""
    lines: list[dict[str, Any]] = []
    for document_set in SETS:
        for name, sums in zip(group_names(), sums_of(folder, document_set), strict=True):
            for kind, means in sums.means().items():
                printed = (
                    paper_figures(kind, PAPER_SET[document_set], name, edges=edges)
                    if document_set in PAPER_SET
                    else None
                )
                for bucket, figure, paper in zip(
                    bucket_names(edges),
                    means,
                    (None, *(printed or (None,) * (len(edges) + 1))),
                    strict=True,
                ):
                    who = {
                        "document_set": document_set,
                        "length_group": name,
                        "documents": sums.n_documents,
                        "tokens": sums.n_tokens,
                    }
                    lines.append(
                        who
                        | {
                            "counted": kind,
                            "distance": bucket,
                            "figure": figure,
                            "paper": None if paper is None else float(paper),
                        }
                    )
    return lines


def every_sample_is_as_asked(check_input: CheckInput) -> CheckResult:
    """Each group of natural and packed documents has the requested sample size, or all documents;
    each document once, in the group of its length.
    """
    most, lengths = (
        check_input.fingerprint.params["sample"],
        check_input.only_input("length_report").folder,
    )
    wrong, n_measured = [], 0
    for document_set in SETS:
        lines = [
            (line["id"], line["n_tokens"], line["length_group"])
            for line in referral_lines(check_input.folder, document_set)
        ]
        n_measured += len(lines)
        if len({name for name, _, _ in lines}) != len(lines):
            wrong.append(f"{document_set}: a document stands twice")
        if document_set != PACKED:
            wrong += [
                f"{document_set}: {words}"
                for words in _unlike_the_lengths(lines, lengths, document_set, most)
            ]
    if n_measured != check_input.counts.kept:
        wrong.append(f"{n_measured:,} documents, counted were {check_input.counts.kept:,}")
    return CheckResult(
        check="every_sample_is_as_asked",
        passed=not wrong,
        message="; ".join(wrong[:5])
        or f"{n_measured:,} documents measured, at most {most:,} of a group",
        values={"measured": n_measured, "wrong": len(wrong)},
    )


def _unlike_the_lengths(
    lines: Sequence[tuple[str, int, str]], lengths: Path, document_set: str, most: int
) -> list[str]:
    known: dict[str, tuple[int, str]] = {}
    for path in finished(lengths.glob(f"{document_set}-*.lengths.parquet")):
        known |= {
            line["id"]: (line["n_tokens"], line["length_group"])
            for line in read_lines(path, ["id", "n_tokens", "length_group"])
        }
    there, found = (
        Counter(group for _, group in known.values()),
        Counter(group for _, _, group in lines),
    )
    wrong = [
        f"{found[group]:,} of {n:,} documents of {group}"
        for group, n in there.items()
        if found[group] != min(n, most)
    ]
    return wrong + [
        f"{name} has another length"
        for name, n_tokens, group in lines
        if known.get(name) != (n_tokens, group)
    ]


def the_identities_of_referrals_hold(check_input: CheckInput) -> CheckResult:
    """In every row, neighbours equal mentions minus concepts, no bucket has more neighbours than
    pairs, and none lies beyond the last sentence.
    """
    edges = check_input.fingerprint.params["buckets"]
    n_lines, wrong = 0, []
    for document_set in SETS:
        for line in referral_lines(check_input.folder, document_set):
            n_lines += 1
            if not _identities_hold(line, edges):
                wrong.append(line["id"])
    return CheckResult(
        check="the_identities_of_referrals_hold",
        passed=not wrong,
        message=f"{n_lines:,} documents, {len(wrong):,} are impossible"
        + (f", such as {wrong[0]}" if wrong else ""),
        values={"documents": n_lines, "impossible": len(wrong)},
    )


def _identities_hold(line: dict[str, Any], edges: Sequence[int]) -> bool:
    pairs, neighbours, concepts = (line[kind] for kind in KINDS)
    n_mentions, n_concepts = line["n_mentions"], line["n_concepts"]
    lower = [0, 1, *edges]
    return (
        len(pairs) == len(neighbours) == len(concepts) == len(lower)
        and sum(neighbours) == n_mentions - n_concepts
        and sum(pairs)
        <= math.comb(max(n_mentions - n_concepts + 1, 0), 2)  # as if all were of one concept
        and all(0 <= few <= many for few, many in zip(neighbours, pairs, strict=True))
        and all(
            (count > 0) == (many > 0) and count <= min(many, n_concepts)
            for count, many in zip(concepts, pairs, strict=True)
        )
        and all(
            many == 0
            for edge, many in zip(lower, pairs, strict=True)
            if edge >= max(line["n_sentences"], 1)
        )
    )


def the_densities_are_the_documents_means(check_input: CheckInput) -> CheckResult:
    """The table of means follows from the tables of documents, with the paper's figures where it
    has any.
    """
    lines = read_table(check_input.folder / DENSITIES_FILE, DENSITIES.names).to_pylist()
    wanted = densities_of(check_input.folder, check_input.fingerprint.params["buckets"])
    wrong = sum(one != other for one, other in zip(lines, wanted, strict=False)) + abs(
        len(lines) - len(wanted)
    )
    return CheckResult(
        check="the_densities_are_the_documents_means",
        passed=not wrong,
        message=f"{len(lines):,} means, {wrong:,} are not those of their documents",
        values={"means": len(lines), "wrong": wrong},
    )


def referrals_are_counted_anew(check_input: CheckInput) -> CheckResult:
    """An even sample of documents gives the same numbers with the reference implementation."""
    params = check_input.fingerprint.params
    n_counted, wrong = 0, []
    if (
        params["words_sha256"] == digest_of_words()
    ):  # where a file of other words lay is in no receipt
        common = frozenset(
            read_table(check_input.folder / COMMON_FILE, ["word"])["word"].to_pylist()
        )
        finder = LexicalConcepts(dataclasses.replace(read_special_words(), common=common))
        for line, document in _chosen(check_input):
            n_counted += 1
            if document is None or not _is_counted_so(line, document, finder, params):
                wrong.append(line["id"])
    return CheckResult(
        check="referrals_are_counted_anew",
        passed=not wrong,
        message=f"{n_counted:,} documents counted anew, {len(wrong):,} differ"
        + (f", such as {wrong[0]}" if wrong else ""),
        values={"counted anew": n_counted, "differ": len(wrong)},
    )


def _is_counted_so(
    line: dict[str, Any], document: SetDocument, finder: LexicalConcepts, params: Mapping[str, Any]
) -> bool:
    parts = document.parts if params["scope"] == "document" else ()
    found = finder.mentions(document.text, parts)
    counted = count_referrals(found, params["buckets"])
    counts = [list(getattr(counted, kind)) for kind in KINDS]
    known = (
        line["n_chars"],
        line["n_parts"],
        line["n_sentences"],
        line["n_concepts"],
        line["n_mentions"],
    )
    anew = (
        len(document.text),
        len(parts),
        found.n_sentences,
        found.n_concepts,
        len(found.sentences),
    )
    return counts == [line[kind] for kind in KINDS] and known == anew


def _chosen(check_input: CheckInput) -> Iterator[tuple[dict[str, Any], SetDocument | None]]:
    """Some lines of each set, short ones, with their documents; None where there is none."""
    for document_set in SETS:
        files = referral_files(check_input.folder, document_set)
        lines = [
            (path, line)
            for path in files
            for line in read_lines(path, REFERRALS.names)
            if line["n_chars"] <= MOST_CHARACTERS
        ]
        if not lines:
            continue
        folder = check_input.only_input(STAGE_OF_SET[document_set]).folder
        for place in evenly_spaced(len(lines), COUNTED_AGAIN):
            path, line = lines[place]
            shard = path.name.removeprefix(f"{document_set}-").removesuffix(SUFFIX)
            yield line, _document(folder, document_set, shard, line["id"])


def _document(folder: Path, document_set: str, shard: str, name: str) -> SetDocument | None:
    if document_set == PACKED:
        tokenizer = GridReader(folder / f"{shard}.zarr").tokenizer
        found = SetShard(document_set=document_set, path=folder, shard=shard, tokenizer=tokenizer)
    else:
        found = SetShard(
            document_set=document_set, path=folder / f"{shard}{DOCUMENTS_SUFFIX}", shard=shard
        )
    return next(texts_of(found, {name}), None)
