"""`token_documents`: token ids of one snapshot's documents, for rows and for Megatron.

Per shard, Megatron's ``.bin`` and ``.idx`` (docs/formats/tokens.md), one sequence per document;
optionally with end of text after each, as ``tools/preprocess_data.py`` writes them. `lc tokenize`
is this stage over files. Of several vocabularies, each is built in a lake of its own; one reading
of a shard's texts feeds all.
"""

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from lc_assets.builds.building import run_shards, staged
from lc_assets.builds.checks import (
    counts_add_up,
    every_document_is_named_once,
    reads_all_upstream_documents,
    shard_counts_match,
    tables_fit,
)
from lc_assets.builds.sharding import Sharding
from lc_assets.builds.stage import (
    SAME_SNAPSHOT,
    BuildContext,
    Stage,
    StagingFolder,
)
from lc_assets.builds.tables import TOKENIZED
from lc_assets.counts import Counts
from lc_assets.formats.tokenizers.golden import golden_page
from lc_assets.stages.deduplication.removals import remaining_read, removed_in
from lc_assets.stages.deduplication.removed_documents import removes_documents
from lc_assets.stages.tokens.token_checks import (
    the_fast_tokenizer_agreed,
    the_golden_page_has_the_same_ids,
    the_ids_are_where_the_table_says,
)
from lc_assets.stages.tokens.tokenizing import tokenize_shard
from lc_assets.stages.tokens.tokenizing_tasks import SUFFIXES, TokenizeTask, params_of, tasks_of


def write_token_documents(context: BuildContext, staging: StagingFolder) -> Counts:
    """Write the token ids of one snapshot's documents that are long enough."""
    context.recipe.require_uncut_texts()
    tasks = tasks_of(
        staging.inputs[f"filtered_documents/{staging.key}"].folder,
        staging.folder,
        removed_in(staging.inputs, staging.key),
        settings=context.recipe.token_documents,
    )
    with contextlib.ExitStack() as stack:
        for other in context.also:
            tasks = stack.enter_context(_with_those_of(other, context, staging, tasks))
        what = f"tokenize {staging.key}"
        return run_shards(context, staging, tokenize_shard, tasks, what=what)


@contextlib.contextmanager
def _with_those_of(
    other: BuildContext, context: BuildContext, staging: StagingFolder, tasks: list[TokenizeTask]
) -> Iterator[list[TokenizeTask]]:
    """The tasks with those of another lake, in which this makes other ids of the same texts; its
    partition is locked while the block runs.
    """
    own, settings = context.recipe.token_documents, other.recipe.token_documents
    with staged(other, STAGE, staging.key) as (publishing, also):
        if (
            also.shards is None
            or also.fingerprint.inputs != staging.fingerprint.inputs
            or (settings.privacy, settings.text_encoding) != (own.privacy, own.text_encoding)
        ):
            yield tasks
            return
        page, to_do = golden_page(settings.tokenizer), set(also.shards.to_do)
        how: dict[str, Any] = {"folder": also.folder, "settings": settings, "page": page}
        with publishing.writing():
            yield [
                replace(task, also=(*task.also, replace(task, also=(), **how)))
                if task.name in to_do
                else task
                for task in tasks
            ]


STAGE = Stage(
    name="token_documents",
    description=(
        "Token ids of one snapshot's documents that fill a row, in Megatron's .bin/.idx, "
        "with a table of ids."
    ),
    code_version="5",
    reads={
        "filtered_documents": SAME_SNAPSHOT,
        "removed_documents": SAME_SNAPSHOT.only_if(removes_documents),
    },
    params=lambda recipe, _: params_of(recipe.token_documents),
    checks=(
        counts_add_up,
        reads_all_upstream_documents("filtered_documents"),
        tables_fit(TOKENIZED),
        every_document_is_named_once,
        the_ids_are_where_the_table_says,
        the_fast_tokenizer_agreed,
        the_golden_page_has_the_same_ids,
        shard_counts_match,
    ),
    columns=TOKENIZED,
    sharding=Sharding(reads=remaining_read, suffixes=SUFFIXES),
    group="tokens",
    job="snapshot_rows",
    write=write_token_documents,
)
"""Token ids of the documents that fill a row."""
