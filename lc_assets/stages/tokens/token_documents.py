"""`token_documents`: token ids of one snapshot's documents, for rows and for Megatron.

Per shard, Megatron's ``.bin`` and ``.idx`` (docs/formats/tokens.md), one sequence per document;
optionally with end of text after each, as ``tools/preprocess_data.py`` writes them. `lc tokenize`
is this stage over files.
"""

from lc_assets.builds.building import run_shards
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
from lc_assets.stages.deduplication.removals import remaining_read, removed_in
from lc_assets.stages.deduplication.removed_documents import removes_documents
from lc_assets.stages.tokens.tokenizing import (
    SUFFIXES,
    params_of,
    tasks_of,
    the_fast_tokenizer_agreed,
    the_ids_are_where_the_table_says,
    tokenize_shard,
)


def write_token_documents(context: BuildContext, staging: StagingFolder) -> Counts:
    """Write the token ids of one snapshot's documents that are long enough."""
    snapshot = staging.key
    context.recipe.require_uncut_texts()
    tasks = tasks_of(
        staging.inputs[f"filtered_documents/{snapshot}"].folder,
        staging.folder,
        removed_in(staging.inputs, snapshot),
        settings=context.recipe.token_documents,
    )
    return run_shards(context, staging, tokenize_shard, tasks, what=f"tokenize {snapshot}")


STAGE = Stage(
    name="token_documents",
    description=(
        "Token ids of one snapshot's documents that fill a row, in Megatron's .bin/.idx, "
        "with a table of ids."
    ),
    code_version="4",
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
        shard_counts_match,
    ),
    columns=TOKENIZED,
    sharding=Sharding(reads=remaining_read, suffixes=SUFFIXES),
    group="tokens",
    job="snapshot_rows",
    write=write_token_documents,
)
"""Token ids of the documents that fill a row."""
