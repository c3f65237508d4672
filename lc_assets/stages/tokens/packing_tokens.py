"""`packing_tokens`: token ids of the documents to be packed into rows, of any length, in the format
of `token_documents`.

=============  ====================================================================================
``documents``  what is read
=============  ====================================================================================
``natural``    filtered documents without those that `removed_documents` removes
``longpack``   LongPack's documents
``both``       LongPack's, and the natural ones that are in none of these, neither as a root nor as
               a child
=============  ====================================================================================

Files of LongPack's shards have names that begin with ``longpack-``. LongPack's documents are on the
side of the split that their roots' texts are on.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from lc_assets.builds.building import run_shards
from lc_assets.builds.checks import (
    DOCUMENTS_SUFFIX,
    counts_add_up,
    documents_files,
    every_document_is_named_once,
    reads_all_upstream_documents,
    shard_counts_match,
    tables_fit,
)
from lc_assets.builds.recipe import Recipe
from lc_assets.builds.settings.rows import TokenizingSettings
from lc_assets.builds.sharding import Reads, Sharding, documents_read
from lc_assets.builds.stage import (
    SAME_SNAPSHOT,
    BuildContext,
    CheckInput,
    CheckResult,
    Stage,
    StagingFolder,
)
from lc_assets.builds.tables import TOKENIZED, read_lines
from lc_assets.counts import Counts
from lc_assets.errors import BadInput
from lc_assets.lake.versions import Published
from lc_assets.stages.deduplication.removals import digests_in, remaining_read, removed_in
from lc_assets.stages.deduplication.removed_documents import removes_documents
from lc_assets.stages.documents.filtered_documents import fields_for_packing
from lc_assets.stages.longpack.link_claims import TABLE as CLAIMS_TABLE
from lc_assets.stages.tokens.token_checks import (
    the_fast_tokenizer_agreed,
    the_golden_page_has_the_same_ids,
    the_ids_are_where_the_table_says,
)
from lc_assets.stages.tokens.tokenizing import tokenize_shard
from lc_assets.stages.tokens.tokenizing_tasks import SUFFIXES, params_of, table_of, tasks_of
from lc_assets.vocabulary import parse_document_id

FILTERED = "filtered_documents"
LONGPACK = "longpack_documents"
LABEL = "longpack-"
"""Prefix of the names of LongPack's shards."""

IN_LONGPACK = "in a document of LongPack"
"""The reason why a natural document is skipped."""


def write_packing_tokens(context: BuildContext, staging: StagingFolder) -> Counts:
    """Write the token ids of one snapshot's documents that are to be packed.

    Raises:
        NotPublished: when documents that the recipe names are not published.
    """
    snapshot = staging.key
    recipe = context.recipe
    recipe.require_uncut_texts()
    how: dict[str, Any] = {
        "settings": settings_of(recipe),
        "terms": recipe.packed_rows.similar is not None,
    }
    tasks = []
    if (natural := staging.inputs.get(f"{FILTERED}/{snapshot}")) is not None:
        left_out = _left_out(staging.inputs, snapshot)
        fields = fields_for_packing(recipe)
        tasks += tasks_of(natural.folder, staging.folder, left_out, fields=fields, **how)
    if (packed := staging.inputs.get(f"{LONGPACK}/{snapshot}")) is not None:
        digests = digests_in(staging.inputs, snapshot)
        tasks += tasks_of(packed.folder, staging.folder, {}, digests, label=LABEL, **how)
    return run_shards(
        context, staging, tokenize_shard, tasks, what=f"tokenize {snapshot} for packing"
    )


def settings_of(recipe: Recipe) -> TokenizingSettings:
    """Tokenization settings: those of `token_documents`, but for whole documents of any length."""
    return msgspec.structs.replace(
        recipe.token_documents,
        min_tokens=recipe.packed_rows.min_tokens,
        first_tokens=None,
        append_eod=False,
        dtype="auto",
    )


def _left_out(inputs: Mapping[str, Published], key: str) -> dict[str, dict[str, str]]:
    """Reasons of the skipped natural documents, by shard and id; an excluded document keeps the
    reason of its exclusion.
    """
    found = removed_in(inputs, key)
    if (packed := inputs.get(f"{LONGPACK}/{key}")) is not None:
        for name in _ids_in(packed, inputs[f"link_claims/{key}"]):
            found.setdefault(parse_document_id(name)[0].name, {}).setdefault(name, IN_LONGPACK)
    return found


def _ids_in(packed: Published, claims: Published) -> Iterable[str]:
    """Ids of all documents in LongPack's documents: their roots, which have the same ids, and the
    children of these.
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
    """A shard's documents; for natural ones also the skipped ids."""
    found: dict[str, Reads] = {}
    if f"{FILTERED}/{key}" in inputs:
        found |= remaining_read(inputs, key, _left_out(inputs, key))
    if (packed := inputs.get(f"{LONGPACK}/{key}")) is not None:
        found |= {
            f"{LABEL}{name}": (read,)
            for name, read in documents_read(packed, DOCUMENTS_SUFFIX).items()
        }
    return found


def _params(recipe: Recipe, _: str) -> dict[str, Any]:
    more: dict[str, Any] = {"documents": recipe.packed_rows.documents}
    if recipe.packed_rows.similar is not None:
        more["terms"] = True
    if fields := fields_for_packing(recipe):
        more["fields"] = list(fields)
        if recipe.packed_rows.documents != "natural":
            raise BadInput(
                f"packed_rows reads the fields {', '.join(fields)} of records, and LongPack's "
                "documents have none: set packed_rows.documents = natural"
            )
    return params_of(settings_of(recipe)) | more


def the_tables_fit_their_schemas(check_input: CheckInput) -> CheckResult:
    """Every table fits its schema: columns, types, ids' form, no nulls where none may be, ids
    unique per shard.
    """
    params = check_input.params
    schema = table_of(tuple(params.get("fields", ())), terms="terms" in params)
    return tables_fit(schema)(check_input)


def _is_natural(recipe: Recipe) -> bool:
    return recipe.packed_rows.documents != "longpack"


STAGE = Stage(
    name="packing_tokens",
    description=(
        "Token ids of one snapshot's documents to be packed into rows, natural or "
        "LongPack's, of any length."
    ),
    code_version="4",
    reads={
        "filtered_documents": SAME_SNAPSHOT.only_if(_is_natural),
        "removed_documents": SAME_SNAPSHOT.only_if(
            lambda recipe: recipe.packed_rows.documents != "natural" or removes_documents(recipe)
        ),
        "link_claims": SAME_SNAPSHOT.only_if(lambda recipe: recipe.packed_rows.documents == "both"),
        "longpack_documents": SAME_SNAPSHOT.only_if(
            lambda recipe: recipe.packed_rows.documents != "natural"
        ),
    },
    params=_params,
    checks=(
        counts_add_up,
        reads_all_upstream_documents(FILTERED, LONGPACK),
        the_tables_fit_their_schemas,
        every_document_is_named_once,
        the_ids_are_where_the_table_says,
        the_fast_tokenizer_agreed,
        the_golden_page_has_the_same_ids,
        shard_counts_match,
    ),
    columns=TOKENIZED,
    wanted=lambda recipe: recipe.packed_rows.wanted,
    sharding=Sharding(reads=_reads, suffixes=SUFFIXES),
    group="packing",
    job="snapshot_packing",
    write=write_packing_tokens,
)
"""Token ids of documents of any length, to be packed into rows."""
