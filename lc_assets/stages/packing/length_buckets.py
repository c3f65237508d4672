"""`length_buckets`: the clean documents of a partition by their length in tokens; optional.

::

    4K-8K/{shard}.jsonl.gz …    the documents of one bucket, with the fields that they came with
"""

import bisect
import contextlib
import gzip
from collections import Counter
from pathlib import Path
from typing import Any, BinaryIO

from lc_assets.builds.building import run_shards
from lc_assets.builds.checks import JSON_SUFFIX, TABLE_SUFFIX
from lc_assets.builds.recipe import Recipe
from lc_assets.builds.stage import (
    SAME_SNAPSHOT,
    BuildContext,
    CheckInput,
    CheckResult,
    Stage,
    StagingFolder,
)
from lc_assets.counts import Counts
from lc_assets.errors import BadInput
from lc_assets.formats.corpora.containers import Unread, json_line
from lc_assets.formats.corpora.reading import read_corpus
from lc_assets.formats.tokenizers.named import tokenizer_of, vocabulary_of
from lc_assets.packing.lengths import bucket_names
from lc_assets.publishing import gzipped, publish
from lc_assets.records import record
from lc_assets.stages.tokens.tokenizing import GAVE_UP, available_tokenizer

DOCUMENTS = "documents: "
TOKENS = "tokens: "


@record
class BucketTask:
    """One file of clean documents, to be written by length below ``folder``."""

    file: Path
    folder: Path
    edges: tuple[int, ...]
    tokenizer: str
    text_field: str | None

    @property
    def name(self) -> str:
        """The shard's name."""
        return self.file.name.removesuffix(JSON_SUFFIX).removesuffix(TABLE_SUFFIX)

    def __str__(self) -> str:
        return str(self.file)


def write_length_buckets(context: BuildContext, staging: StagingFolder) -> Counts:
    """Write the clean documents of one partition by length."""
    snapshot = staging.key
    recipe = context.recipe
    clean = staging.inputs[f"clean_documents/{snapshot}"]
    tables = sorted(clean.folder.glob(f"*{TABLE_SUFFIX}"))
    tasks = [
        BucketTask(
            file=file,
            folder=staging.folder,
            edges=recipe.length_buckets.edges,
            tokenizer=recipe.token_documents.tokenizer,
            text_field=clean.params["text_field"] or None,
        )
        for file in tables or sorted(clean.folder.glob(f"*{JSON_SUFFIX}"))
    ]
    return run_shards(context, staging, write_buckets, tasks, what=f"sort {snapshot} by length")


def write_buckets(task: BucketTask) -> Counts:
    """Write the documents of one file, each into its bucket; an empty bucket has no file."""
    names, dropped, extra = bucket_names(task.edges), Counter[str](), Counter[str]()
    fast = available_tokenizer(task.tokenizer, fast=True)
    tokenizer = fast or tokenizer_of(task.tokenizer, fast=False)
    with contextlib.ExitStack() as stack:
        opened = dict[str, BinaryIO]()
        for document in read_corpus(task.file, text_field=task.text_field):
            if isinstance(document, Unread):
                dropped[document.why] += 1
                continue
            try:
                n_tokens = len(tokenizer.encode(document.text))
            except BadInput:
                dropped[GAVE_UP] += 1
                continue
            name = names[bisect.bisect_right(task.edges, n_tokens)]
            if name not in opened:
                path = task.folder / name / f"{task.name}{JSON_SUFFIX}"
                opened[name] = stack.enter_context(gzipped(stack.enter_context(publish(path))))
            opened[name].write(json_line(document))
            extra.update({f"{DOCUMENTS}{name}": 1, f"{TOKENS}{name}": n_tokens})
    n_kept = sum(n for name, n in extra.items() if name.startswith(DOCUMENTS))
    return Counts.of(n_kept, dropped, extra)


def buckets_hold_the_documents(check_input: CheckInput) -> CheckResult:
    """Each bucket's files have as many lines as documents were counted."""
    wrong = []
    for name in bucket_names(check_input.params["edges"]):
        n_lines = 0
        for path in (check_input.folder / name).glob(f"*{JSON_SUFFIX}"):
            with gzip.open(path) as lines:
                n_lines += sum(1 for _ in lines)
        counted = check_input.counts.extra.get(f"{DOCUMENTS}{name}", 0)
        if n_lines != counted:
            wrong.append(f"{name}: {n_lines:,} lines, {counted:,} documents counted")
    return CheckResult(
        passed=not wrong,
        message="; ".join(wrong) or f"{check_input.counts.kept:,} documents",
        values={"documents": check_input.counts.kept},
    )


def _params(recipe: Recipe, _: str) -> dict[str, Any]:
    tokenizer = vocabulary_of(recipe.token_documents.tokenizer).sha256
    return {"edges": list(recipe.length_buckets.edges), "tokenizer_sha256": tokenizer}


STAGE = Stage(
    name="length_buckets",
    description="Clean documents of one snapshot by their length in tokens; on request.",
    code_version="1",
    reads={"clean_documents": SAME_SNAPSHOT},
    params=_params,
    checks=(buckets_hold_the_documents,),
    wanted=lambda recipe: recipe.length_buckets.wanted,
    kinds=("json",),
    write=write_length_buckets,
)
"""Clean documents by their length in tokens."""
