"""`packing_tokens`: token ids of the documents that are to be packed into rows, of any length, in the files that `tokens` writes.

===============  =================================================================================================
``documents``    what is read
===============  =================================================================================================
``natural``      filtered documents, but those that `removals` takes out
``longpack``     LongPack's documents
``both``         LongPack's, and the natural ones of which nothing is in one of these: neither a root nor a child
===============  =================================================================================================

Shards of LongPack's documents are called as those of natural ones, so their files' names begin with ``longpack-``. Here: which
documents, and why the others are not. Not here: text to ids (`lc_assets.stages.tokenizing`), rows (`lc_assets.stages.packed`).
"""

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from lc_assets.stages.building import Built, Draft, Stage, Workshop, build, run_shards
from lc_assets.stages.claims import all_that_was_kept_came_in, counts_add_up, documents_files, every_document_is_named_once, tables_fit
from lc_assets.stages.recipe import Recipe
from lc_assets.stages.removals import removed_by_shard
from lc_assets.stages.row_settings import TokenizingSettings
from lc_assets.stages.tables import TOKENIZED, read_lines
from lc_assets.stages.tokenizing import params_of, tasks_of, the_fast_tokenizer_agreed, the_ids_are_where_the_table_says, tokenize_shard
from lc_assets.storage.lake import Published
from lc_assets.tally import Tally
from lc_assets.vocabulary import SnapshotId, parse_document_id

FILTERED: Final = "filtered"
REMOVALS: Final = "removals"
CLAIMS: Final = "link_claims"
LONGPACK: Final = "longpack"
LABEL: Final = "longpack-"
"""Begins the names of LongPack's shards."""

IN_LONGPACK: Final = "in a document of LongPack"
"""Why a natural document is left out."""

READ: Final = {"natural": (FILTERED, REMOVALS), "longpack": (LONGPACK,), "both": (FILTERED, REMOVALS, CLAIMS, LONGPACK)}
"""Stages that are read, by `PackingSettings.documents`."""


def tokenize_for_packing(workshop: Workshop, snapshot: SnapshotId) -> Built:
    """Publish the token ids of one snapshot's documents that are to be packed.

    Raises:
        NotPublished: when documents that the recipe names are not there.
    """
    settings, privacy = settings_of(workshop.recipe), workshop.recipe.privacy

    def fill(draft: Draft) -> Tally:
        natural, packed = (draft.inputs.get(f"{stage}/{snapshot}") for stage in (FILTERED, LONGPACK))
        tasks = []
        if natural is not None:
            left_out = _left_out(draft, snapshot, packed)
            tasks += tasks_of(natural.folder, draft.folder, settings, privacy=privacy, removed=left_out)
        if packed is not None:
            tasks += tasks_of(packed.folder, draft.folder, settings, privacy=privacy, removed={}, label=LABEL)
        return run_shards(workshop, draft, tokenize_shard, tasks, what=f"tokenize {snapshot} for packing")

    return build(workshop, STAGE, snapshot, fill)


def settings_of(recipe: Recipe) -> TokenizingSettings:
    """How text becomes ids here: as in `tokens`, but whole documents of any length."""
    return msgspec.structs.replace(recipe.tokenizing, min_tokens=recipe.packing.min_tokens, first_tokens=None)


def _left_out(draft: Draft, snapshot: str, packed: Published | None) -> dict[str, dict[str, str]]:
    """Natural documents that are left out: reasons by shard and id. What is removed is so whether or not it is in a packed one."""
    found = removed_by_shard(draft.inputs[f"{REMOVALS}/{snapshot}"].folder)
    if packed is not None:
        for name in _ids_in(packed, draft.inputs[f"{CLAIMS}/{snapshot}"]):
            found.setdefault(parse_document_id(name)[0].name, {}).setdefault(name, IN_LONGPACK)
    return found


def _ids_in(packed: Published, claims: Published) -> Iterable[str]:
    """Ids of all documents that LongPack's documents hold: their roots, whose ids they bear, and the children of these."""
    roots = {line["id"] for path in documents_files(packed.folder) for line in read_lines(path, ["id"])}
    yield from sorted(roots)
    for path in sorted(claims.folder.glob("*.parquet")):
        for line in read_lines(path, ["root_id", "child_id"]):
            if line["root_id"] in roots:
                yield line["child_id"]


def _params(recipe: Recipe, _: str) -> dict[str, Any]:
    return params_of(settings_of(recipe), recipe.privacy) | {"documents": recipe.packing.documents}


STAGE = Stage(
    name="packing_tokens",
    code_version="1",
    upstream=(FILTERED, REMOVALS, CLAIMS, LONGPACK),
    params=_params,
    claims=(
        counts_add_up,
        all_that_was_kept_came_in(FILTERED, LONGPACK),
        tables_fit(TOKENIZED),
        every_document_is_named_once,
        the_ids_are_where_the_table_says,
        the_fast_tokenizer_agreed,
    ),
    needs=lambda recipe, stage: stage in READ[recipe.packing.documents],
    wanted=lambda recipe: recipe.packing.wanted,
)
"""Token ids of documents of any length, to be packed into rows."""
