"""Checks of the length report: every document has a length, the shares match, some are recounted.

Also the computation of shares, which a check repeats. Not here: counting
(`lc_assets.stages.reports.length_report`).
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lc_assets.build.checks import DOCUMENTS_SUFFIX, documents_files, evenly_spaced
from lc_assets.build.stage import (
    CheckInput,
    CheckResult,
)
from lc_assets.build.tables import read_lines, read_table
from lc_assets.formats.tokenizers.named import GPT2_NAMES, TIKTOKEN, tokenizer_of
from lc_assets.packing.lengths import bucket_counts
from lc_assets.publishing import finished
from lc_assets.stages.reports.document_sets import LONGPACK, NATURAL, PACKED, SETS, STAGE_OF_SET
from lc_assets.stages.reports.report_tables import LENGTH_SHARES
from lc_assets.text.referrals.tables import LENGTHS as LOWER
from lc_assets.text.referrals.tables import group_names
from lc_assets.tokens.tokenizers import escape

SUFFIX: Final = ".lengths.parquet"
SHARES_FILE: Final = "lengths.parquet"
COUNTED_AGAIN: Final = 6
"""Documents of each set that the check tokenizes again with the reference tokenizer."""


def lengths_files(folder: Path, document_set: str) -> list[Path]:
    """The tables of lengths of a set, sorted by shard."""
    return finished(folder.glob(f"{document_set}-*{SUFFIX}"))


def lengths_of(folder: Path, document_set: str) -> NDArray[np.int64]:
    """Tokens of each document of a set, shard by shard."""
    parts = [
        np.asarray(read_table(path, ["n_tokens"])["n_tokens"], np.int64)
        for path in lengths_files(folder, document_set)
    ]
    return np.concatenate([np.empty(0, np.int64), *parts])


def sets_of(folder: Path) -> list[str]:
    """The sets that a version reports."""
    return [document_set for document_set in SETS if lengths_files(folder, document_set)]


def shares_of(folder: Path) -> list[dict[str, Any]]:
    """Lines of the table of all sets, out of the tables of their documents."""
    lines = []
    for document_set in sets_of(folder):
        groups = [
            (found.n_docs, found.n_tokens)
            for found in bucket_counts(lengths_of(folder, document_set), LOWER[1:])
        ]
        n_docs, n_tokens = (max(sum(counts), 1) for counts in zip(*groups, strict=True))
        for number, (name, lower) in enumerate(zip(group_names(), LOWER, strict=True)):
            longer_docs, longer_tokens = (
                sum(counts) for counts in zip(*groups[number:], strict=True)
            )
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


def every_document_has_a_length(check_input: CheckInput) -> CheckResult:
    """The tables have as many rows and tokens as counted, and the sets' stages kept as many
    documents.
    """
    wrong, came_in, counts = [], 0, check_input.counts
    for document_set in SETS:
        lengths = lengths_of(check_input.folder, document_set)
        found = {"documents": len(lengths), "tokens": int(lengths.sum())}
        wrong += [
            f"{document_set}: {count:,} {what}, counted were "
            f"{counts.extra.get(f'{document_set} {what}', 0):,}"
            for what, count in found.items()
            if count != counts.extra.get(f"{document_set} {what}", 0)
        ]
        name = f"{STAGE_OF_SET[document_set]}/{check_input.fingerprint.key}"
        if (published := check_input.inputs.get(name)) is not None:
            came_in += (
                published.receipt.counts.extra["pieces"]
                if document_set == PACKED
                else published.receipt.counts.kept
            )
    wrong += (
        [f"{came_in:,} documents stand, {counts.seen:,} came in"] if came_in != counts.seen else []
    )
    return CheckResult(
        check="every_document_has_a_length",
        passed=not wrong,
        message="; ".join(wrong)
        or f"{counts.kept:,} lengths of {came_in:,} documents, the others are accounted for",
        values={"lengths": counts.kept, "documents": came_in},
    )


def the_shares_are_those_of_the_lengths(check_input: CheckInput) -> CheckResult:
    """The table of groups is what the tables of documents give, each document is in the group of
    its length, and shares sum to one.
    """
    lines = read_table(check_input.folder / SHARES_FILE, LENGTH_SHARES.names).to_pylist()
    wrong = [
        f"{line['document_set']} {line['length_group']}"
        for line in lines
        if line not in shares_of(check_input.folder)
    ]
    wrong += (
        []
        if len(lines) == len(LOWER) * len(sets_of(check_input.folder))
        else [f"{len(lines):,} lines"]
    )
    names, n_strange = group_names(), 0
    for document_set in SETS:
        for path in lengths_files(check_input.folder, document_set):
            table = read_table(path, ["length_group", "n_tokens"])
            groups = np.searchsorted(LOWER, np.asarray(table["n_tokens"]), side="right") - 1
            n_strange += sum(
                names[group] != name
                for group, name in zip(
                    groups.tolist(), table["length_group"].to_pylist(), strict=True
                )
            )
    return CheckResult(
        check="the_shares_are_those_of_the_lengths",
        passed=not wrong and not n_strange,
        message=f"{len(lines):,} groups, {len(wrong):,} wrong"
        + (f", such as {wrong[0]}" if wrong else "")
        + f"; {n_strange:,} documents misplaced",
        values={"groups": len(lines), "wrong": len(wrong), "misplaced": n_strange},
    )


def lengths_are_counted_anew(check_input: CheckInput) -> CheckResult:
    """An even sample of natural and packed documents has the stated characters and, by the
    reference tokenizer, the stated tokens.
    """
    n_counted, wrong = 0, []
    for document_set in (NATURAL, LONGPACK):
        for line, text in _chosen(check_input, document_set):
            n_counted += 1
            if (
                text is None
                or len(text) != line["n_chars"]
                or not _has_tokens(check_input, text, line["n_tokens"])
            ):
                wrong.append(line["id"])
    return CheckResult(
        check="lengths_are_counted_anew",
        passed=not wrong,
        message=f"{n_counted:,} documents counted anew, {len(wrong):,} differ"
        + (f", such as {wrong[0]}" if wrong else ""),
        values={"counted anew": n_counted, "differ": len(wrong)},
    )


def _has_tokens(check_input: CheckInput, text: str, n_tokens: int) -> bool:
    params = check_input.fingerprint.params
    if params["tokenizer"] not in (*GPT2_NAMES, *TIKTOKEN):
        return True  # where the file of another one lay is in no receipt
    return (
        len(
            tokenizer_of(params["tokenizer"], fast=False).encode(
                escape(text, params["text_encoding"])
            )
        )
        == n_tokens
    )


def _chosen(
    check_input: CheckInput, document_set: str
) -> Iterator[tuple[dict[str, Any], str | None]]:
    """Some lines of a set with the texts of their documents; None where there is none."""
    lines = [
        (path, line)
        for path in lengths_files(check_input.folder, document_set)
        for line in read_lines(path)
    ]
    if not lines:
        return
    folder = check_input.only_input(STAGE_OF_SET[document_set]).folder
    known = {path.name.removesuffix(DOCUMENTS_SUFFIX): path for path in documents_files(folder)}
    for place in evenly_spaced(len(lines), COUNTED_AGAIN):
        path, line = lines[place]
        shard = path.name.removeprefix(f"{document_set}-").removesuffix(SUFFIX)
        documents = (
            read_lines(known[shard], ["id", "raw_content"], batch_lines=16)
            if shard in known
            else iter(())
        )
        yield (
            line,
            next((found["raw_content"] for found in documents if found["id"] == line["id"]), None),
        )
