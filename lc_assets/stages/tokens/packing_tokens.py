"""`packing_tokens`: token ids of the documents that are to be packed into rows, of any length, in
the files that `token_documents` writes.

===============  =================================================================================================
``documents``    what is read
===============  =================================================================================================
``natural``      filtered documents, but those that `removed_documents` takes out
``longpack``     LongPack's documents
``both``         LongPack's, and the natural ones of which nothing is in one of these: neither a root nor a child
===============  =================================================================================================

Shards of LongPack's documents are called as those of natural ones, so their files' names begin with
``longpack-``. Here: which documents, and why the others are not. Not here: text to ids
(`lc_assets.stages.tokens.token_documents`), rows (`lc_assets.stages.packing.packed_rows`).
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from lc_assets.build.building import (
    build,
    run_shards,
)
from lc_assets.build.checks import (
    DOCUMENTS_SUFFIX,
    DROPPED_SUFFIX,
    counts_add_up,
    documents_files,
    every_document_is_named_once,
    reads_all_upstream_documents,
    shard_counts_match,
    tables_fit,
)
from lc_assets.build.recipe import Recipe
from lc_assets.build.settings.rows import TokenizingSettings
from lc_assets.build.sharding import Read, Reads, Sharding, documents_read
from lc_assets.build.stage import (
    SAME_SNAPSHOT,
    WORKERS,
    BuildContext,
    Built,
    Stage,
    StagingFolder,
    later,
)
from lc_assets.build.tables import TOKENIZED, read_lines
from lc_assets.counts import Counts
from lc_assets.lake.digests import digest_of
from lc_assets.lake.versions import Published
from lc_assets.stages.deduplication.removed_documents import STAGE as REMOVED_DOCUMENTS
from lc_assets.stages.deduplication.removed_documents import TABLE as REMOVALS_TABLE
from lc_assets.stages.deduplication.removed_documents import removed_by_shard
from lc_assets.stages.documents.filtered_documents import STAGE as FILTERED_DOCUMENTS
from lc_assets.stages.longpack.link_claims import STAGE as LINK_CLAIMS
from lc_assets.stages.longpack.link_claims import TABLE as CLAIMS_TABLE
from lc_assets.stages.longpack.longpack_documents import STAGE as LONGPACK_DOCUMENTS
from lc_assets.stages.tokens.token_documents import (
    params_of,
    tasks_of,
    the_fast_tokenizer_agreed,
    the_ids_are_where_the_table_says,
    tokenize_shard,
)
from lc_assets.vocabulary import SnapshotId, parse_document_id

FILTERED: Final = "filtered_documents"
REMOVALS: Final = "removed_documents"
CLAIMS: Final = "link_claims"
LONGPACK: Final = "longpack_documents"
LABEL: Final = "longpack-"
"""Begins the names of LongPack's shards."""

IN_LONGPACK: Final = "in a document of LongPack"
"""Why a natural document is left out."""

"""Stages that are read, by `PackingSettings.documents`."""


def write_packing_tokens(context: BuildContext, snapshot: SnapshotId) -> Built:
    """Publish the token ids of one snapshot's documents that are to be packed.

    Raises:
        NotPublished: when documents that the recipe names are not there.
    """
    settings, privacy = settings_of(context.recipe), context.recipe.token_documents.privacy

    context.recipe.require_uncut_texts()

    def fill(staging: StagingFolder) -> Counts:
        natural, packed = (
            staging.inputs.get(f"{stage}/{snapshot}") for stage in (FILTERED, LONGPACK)
        )
        tasks = []
        if natural is not None:
            left_out = _left_out(staging.inputs, snapshot)
            tasks += tasks_of(
                natural.folder, staging.folder, settings, privacy=privacy, removed=left_out
            )
        if packed is not None:
            tasks += tasks_of(
                packed.folder, staging.folder, settings, privacy=privacy, removed={}, label=LABEL
            )
        return run_shards(
            context, staging, tokenize_shard, tasks, what=f"tokenize {snapshot} for packing"
        )

    return build(context, STAGE, snapshot, fill)


def settings_of(recipe: Recipe) -> TokenizingSettings:
    """How text becomes ids here: as in `token_documents`, but whole documents of any length."""
    return msgspec.structs.replace(
        recipe.token_documents, min_tokens=recipe.packed_rows.min_tokens, first_tokens=None
    )


def _left_out(inputs: Mapping[str, Published], key: str) -> dict[str, dict[str, str]]:
    """Natural documents that are left out: reasons by shard and id. What is removed is so whether
    or not it is in a packed one.
    """
    found = removed_by_shard(inputs[f"{REMOVALS}/{key}"].only(REMOVALS_TABLE))
    if (packed := inputs.get(f"{LONGPACK}/{key}")) is not None:
        for name in _ids_in(packed, inputs[f"{CLAIMS}/{key}"]):
            found.setdefault(parse_document_id(name)[0].name, {}).setdefault(name, IN_LONGPACK)
    return found


def _ids_in(packed: Published, claims: Published) -> Iterable[str]:
    """Ids of all documents that LongPack's documents hold: their roots, whose ids they bear, and
    the children of these.
    """
    roots = {
        line["id"]
        for path in documents_files(packed.only(f"*{DOCUMENTS_SUFFIX}"))
        for line in read_lines(path, ["id"])
    }
    yield from sorted(roots)
    for line in read_lines(claims.only(CLAIMS_TABLE) / CLAIMS_TABLE, ["root_id", "child_id"]):
        if line["root_id"] in roots:
            yield line["child_id"]


def _reads(inputs: Mapping[str, Published], key: str) -> dict[str, Reads]:
    """A shard's documents; of natural ones also which of them are left out."""
    found: dict[str, Reads] = {}
    if (natural := inputs.get(f"{FILTERED}/{key}")) is not None:
        left_out = _left_out(inputs, key)
        documents = documents_read(natural, DOCUMENTS_SUFFIX)
        found = {
            name: (read, Read("removed", digest_of(left_out.get(name, {}))))
            for name, read in documents.items()
        }
    if (packed := inputs.get(f"{LONGPACK}/{key}")) is not None:
        found |= {
            f"{LABEL}{name}": (read,)
            for name, read in documents_read(packed, DOCUMENTS_SUFFIX).items()
        }
    return found


def _params(recipe: Recipe, _: str) -> dict[str, Any]:
    return params_of(settings_of(recipe)) | {"documents": recipe.packed_rows.documents}


STAGE = Stage(
    name="packing_tokens",
    description=(
        "Token ids of one snapshot's documents to be packed into rows, natural or "
        "LongPack's, of any length."
    ),
    code_version="1",
    reads={
        FILTERED_DOCUMENTS: SAME_SNAPSHOT.only_if(
            lambda recipe: recipe.packed_rows.documents != "longpack"
        ),
        REMOVED_DOCUMENTS: SAME_SNAPSHOT.only_if(
            lambda recipe: recipe.packed_rows.documents != "longpack"
        ),
        LINK_CLAIMS: SAME_SNAPSHOT.only_if(lambda recipe: recipe.packed_rows.documents == "both"),
        LONGPACK_DOCUMENTS: SAME_SNAPSHOT.only_if(
            lambda recipe: recipe.packed_rows.documents != "natural"
        ),
    },
    params=_params,
    checks=(
        counts_add_up,
        reads_all_upstream_documents(FILTERED, LONGPACK),
        tables_fit(TOKENIZED),
        every_document_is_named_once,
        the_ids_are_where_the_table_says,
        the_fast_tokenizer_agreed,
        shard_counts_match,
    ),
    wanted=lambda recipe: recipe.packed_rows.wanted,
    sharding=Sharding(reads=_reads, suffixes=(".bin", ".idx", DOCUMENTS_SUFFIX, DROPPED_SUFFIX)),
    group="packing",
    job="snapshot_packing",
    pool=WORKERS,
    kinds=("parquet",),
    write=write_packing_tokens,
    show=later("lc_assets.stages.shown.rows:packing_tokens"),
)
"""Token ids of documents of any length, to be packed into rows."""
