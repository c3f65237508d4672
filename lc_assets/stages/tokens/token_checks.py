"""Checks of token ids: of `token_documents` and `packing_tokens`."""

from pathlib import Path

import numpy as np

from lc_assets.builds.check_runs import by_workers
from lc_assets.builds.checks import DOCUMENTS_SUFFIX, documents_files
from lc_assets.builds.stage import CheckInput, CheckResult
from lc_assets.builds.tables import read_table
from lc_assets.counts import Counts
from lc_assets.errors import CorruptFile, NotPublished
from lc_assets.formats.megatron.indexed import MegatronReader
from lc_assets.stages.tokens.tokenizing import BY_REFERENCE, PAGE

IDS_AT_ONCE = 1 << 20
"""Ids that a check reads at a time."""


def the_ids_are_where_the_table_says(check_input: CheckInput) -> CheckResult:
    """Each shard's ``.idx`` is sound, its lengths are the table's token counts, and no id is
    outside the vocabulary.
    """
    found = by_workers(check_input, _ids_of, documents_files(check_input.folder))
    wrong = [words for complaints, _, _ in found for words in complaints]
    n_tokens = sum(n_ids for _, n_ids, _ in found)
    highest = max((most for _, _, most in found), default=-1)
    vocab_size = int(check_input.params["n_ids"])
    if highest >= vocab_size:
        wrong.append(f"id {highest:,} is outside the vocabulary of {vocab_size:,}")
    return CheckResult(
        passed=not wrong,
        message="; ".join(wrong)
        or f"{n_tokens:,} tokens, highest id {highest:,} of {vocab_size:,}",
        values={"tokens": n_tokens, "highest id": highest},
    )


def _ids_of(documents: Path) -> tuple[list[str], int, int]:
    """Of a shard: what is wrong with its lengths, the number of ids, and the highest."""
    lengths = np.asarray(read_table(documents, ["n_tokens"])["n_tokens"])
    if not len(lengths):
        return [], 0, -1
    reader = MegatronReader(documents.with_name(documents.name.removesuffix(DOCUMENTS_SUFFIX)))
    parts = range(0, reader.n_tokens, IDS_AT_ONCE)
    highest = max(
        int(reader.between(first, min(first + IDS_AT_ONCE, reader.n_tokens)).max())
        for first in parts
    )
    found = np.add.reduceat(reader.lengths, reader.document_indices[:-1])
    same = np.array_equal(found, lengths)
    wrong = [] if same else [f"{documents.name}: the .idx has other lengths than the table"]
    return wrong, int(lengths.sum()), highest


def the_fast_tokenizer_agreed(check_input: CheckInput) -> CheckResult:
    """The fast tokenizer gave the reference's ids in every shard's spot check."""
    extra = check_input.counts.extra
    n_by_reference = extra.get(BY_REFERENCE, 0)
    return CheckResult(
        passed=n_by_reference == 0,
        message=f"{n_by_reference:,} of {extra.get('shards', 0):,} shards were tokenized by the "
        "reference tokenizer because the fast one differed",
        values={BY_REFERENCE: n_by_reference},
        severity="warning",
    )


def the_golden_page_has_the_same_ids(check_input: CheckInput) -> CheckResult:
    """Every shard was made by a program that gives the ids of the golden page that were given where
    the build began, and that other data sets of this vocabulary in the lake were made with: with
    the same end of text, and nothing before or after a text.
    """
    pages = _pages(check_input.counts)
    n_shards, wrong = check_input.counts.extra.get("shards", 0), ""
    if len(pages) != min(n_shards, 1) or sum(pages.values()) != n_shards:
        said = ", ".join(f"{name}: {n:,}" for name, n in pages.items()) or "none"
        wrong = f"of {n_shards:,} shards, by the ids of their golden page: {said}"
    elif pages and (other := _of_another_page(check_input, next(iter(pages)))):
        wrong = other
    return CheckResult(
        passed=not wrong,
        message=wrong or f"{n_shards:,} shards by the golden page {', '.join(pages) or '(none)'}",
        values={"shards": n_shards},
    )


def _pages(counts: Counts) -> dict[str, int]:
    """Shards by the digest of their golden page's ids."""
    found = counts.extra.items()
    return {name.removeprefix(PAGE): n for name, n in found if name.startswith(PAGE)}


def _of_another_page(check_input: CheckInput, page: str) -> str:
    """How the version before, or that of the first other partition, differs in its golden page, if
    it has the same vocabulary.
    """
    lake, own = check_input.lake, check_input.fingerprint
    others = [key for key in lake.keys(own.stage) if key != own.key][:1]
    for key in (own.key, *others):
        try:
            published = lake.partition(own.stage, key).current()
        except (NotPublished, CorruptFile):  # it is damaged, and perhaps being built again
            continue
        if published is None:
            continue
        params, pages = published.params, _pages(published.counts)
        is_same = params.get("tokenizer_sha256") == own.params["tokenizer_sha256"]
        if is_same and pages and page not in pages:
            return (
                f"{own.params['tokenizer']} gives other ids of the golden page ({page}, with end "
                f"of text {own.params['eot']}) than when {published.name} was made "
                f"({', '.join(pages)}, with end of text {params['eot']}): the "
                "library or what names the end of text has changed; undo that, or tokenize into "
                "another lake"
            )
    return ""
