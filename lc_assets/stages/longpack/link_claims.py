"""`link_claims`: which page's text precedes which root, along the links of one snapshot, and under
which anchor words.

Roots are drawn by a keyed hash of their page keys; a page that several roots link to is claimed by
the first in hash order (docs/longpack.md). Excluded documents (`removed_documents`) are ignored,
and no claim crosses the train/held-out split: a root and its children are on one side. Only the
tokens of needed pages are counted, with the recipe's tokenizer.
"""
# ruff: noqa: S608 - every name in these queries is this package's own, every value a number

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lc_assets.builds.building import run_shards
from lc_assets.builds.checks import documents_files
from lc_assets.builds.recipe import Recipe, plain
from lc_assets.builds.settings.longpack import LongPackSettings
from lc_assets.builds.stage import (
    SAME_SNAPSHOT,
    THIS_AND_OLDER,
    BuildContext,
    CheckInput,
    CheckResult,
    Stage,
    StagingFolder,
)
from lc_assets.builds.tables import FILTERED, count_lines
from lc_assets.counts import Counts
from lc_assets.formats.tokenizers.named import vocabulary_of
from lc_assets.lake.versions import Published
from lc_assets.packing.longpack import PART_TOKENS, roots_drawn_by
from lc_assets.stages.deduplication.queries import (
    Tables,
    check_by_queries,
)
from lc_assets.stages.deduplication.removals import DECISIONS, TABLE as DECISIONS_TABLE
from lc_assets.stages.links.html_index import REDIRECTS_FILE
from lc_assets.stages.links.link_tables import LINK_CLAIMS
from lc_assets.stages.links.page_links import canonical_files, page_links_files
from lc_assets.stages.longpack.claiming import Claims, claim_links

TABLE = "claims.parquet"


def write_link_claims(context: BuildContext, staging: StagingFolder) -> Counts:
    """Write the claims among one snapshot's documents."""
    recipe = context.recipe
    decided = inputs_from(staging.inputs, "removed_documents")
    return claim_links(
        Claims(
            documents=documents_files(staging.own("filtered_documents").folder),
            older=older_documents(staging),
            links=page_links_files(staging.own("page_links").folder),
            decisions=[published.folder / DECISIONS_TABLE for published in decided],
            aliases=_aliases(recipe.longpack_documents, staging),
            folder=staging.folder,
            out=staging.folder / TABLE,
            settings=recipe.longpack_documents,
            tokenizer=recipe.token_documents.tokenizer,
            text_encoding=recipe.token_documents.text_encoding,
            run=functools.partial(run_shards, context, staging),
        )
    )


def _aliases(settings: LongPackSettings, staging: StagingFolder) -> list[Path]:
    """Tables of other addresses that the settings follow."""
    index, links = (staging.own(stage).folder for stage in ("html_index", "page_links"))
    found = [index / REDIRECTS_FILE] if settings.redirects else []
    found += canonical_files(links) if settings.canonical else []
    return [path for path in found if path.is_file()]


def inputs_from(inputs: Mapping[str, Published], stage: str) -> list[Published]:
    """The versions of one stage, of all snapshots."""
    return [published for published in inputs.values() if published.stage == stage]


def older_documents(staging: StagingFolder) -> list[Path]:
    """Tables of filtered documents of the older snapshots that are read."""
    found = inputs_from(staging.inputs, "filtered_documents")
    older = [published.folder for published in found if published.key != staging.key]
    return [path for folder in older for path in documents_files(folder)]


def _tables(check_input: CheckInput) -> Tables:
    filtered, decided = (
        [published.folder for published in inputs_from(check_input.inputs, stage)]
        for stage in ("filtered_documents", "removed_documents")
    )
    return {
        "claims": ([check_input.folder / TABLE], LINK_CLAIMS),
        "documents": ([path for folder in filtered for path in documents_files(folder)], FILTERED),
        "decided": ([folder / DECISIONS_TABLE for folder in decided], DECISIONS),
    }


def the_claims_add_up(check_input: CheckInput) -> CheckResult:
    """The table has as many lines as counted; every link of `page_links` was examined; a root's
    places are 0, 1, 2, …
    """
    files = page_links_files(check_input.only_input("page_links").folder)
    n_missed = sum(map(count_lines, files)) - check_input.counts.seen
    errors = {
        "claims more or fewer than counted": "SELECT unnest(range(abs(count(*) - "
        f"{check_input.counts.kept}))) FROM claims",
        "links that were not looked at": f"SELECT * FROM range({max(n_missed, 0)})",
        "roots with places that are not 0, 1, 2, …": "SELECT root_id FROM claims GROUP BY root_id "
        "HAVING min(place) != 0 OR max(place) != count(*) - 1 OR count(DISTINCT place) != count(*)",
    }
    message = f"{{:,}} claims of {check_input.counts.seen:,} links"
    return check_by_queries(_tables(check_input), errors, message, "SELECT count(*) FROM claims")


def claimed_documents_go_on(check_input: CheckInput) -> CheckResult:
    """Roots, children and what links to these are filtered documents of the snapshots read, and
    none is removed.
    """
    named = (
        "(SELECT root_id AS id FROM claims UNION SELECT child_id FROM claims UNION SELECT "
        "parent_id FROM claims)"
    )
    errors = {
        "documents that were not filtered": f"SELECT * FROM {named} ANTI JOIN documents USING (id)",
        "documents that were removed": f"SELECT * FROM {named} JOIN decided USING (id) "
        "WHERE decided.reason <> ''",
    }
    count = f"SELECT count(*) FROM {named}"
    return check_by_queries(_tables(check_input), errors, "{:,} documents take part", count)


def no_text_is_held_too_often(check_input: CheckInput) -> CheckResult:
    """A content is claimed by at most the allowed number of roots, once each; in mode ``consume``,
    each page is claimed once, and roots never.
    """
    settings = check_input.params["longpack"]
    most = settings["repetitions"]
    errors = {
        "contents held more often": "SELECT cluster FROM claims GROUP BY cluster HAVING count(*) > "
        f"{most}",
        "contents twice in a document": "SELECT root_id FROM claims GROUP BY root_id, cluster "
        "HAVING count(*) > 1",
        "roots in their own documents": "SELECT * FROM claims WHERE root_id = child_id",
    }
    if settings["mode"] == "consume":
        errors |= {
            "pages held twice": "SELECT child_id FROM claims GROUP BY child_id HAVING count(*) > 1",
            "pages held that are roots": "SELECT child_id FROM claims SEMI JOIN (SELECT root_id AS "
            "child_id FROM claims) USING (child_id)",
        }
    message = f"a text is held {{:,}} times at most, {most:,} are allowed"
    often = "SELECT max(n) FROM (SELECT count(*) AS n FROM claims GROUP BY cluster)"
    return check_by_queries(_tables(check_input), errors, message, often)


def documents_keep_their_limit(check_input: CheckInput) -> CheckResult:
    """Root and children are no more tokens than a document may have, line ends and anchor lines
    counted at their most.
    """
    limit = check_input.params["longpack"]["max_tokens"]
    size = f"any_value(root_tokens) + {PART_TOKENS} + sum(n_tokens + strlen(keys) + {PART_TOKENS})"
    sizes = f"(SELECT {size} AS n FROM claims GROUP BY root_id)"
    errors = {"documents too long": f"SELECT * FROM {sizes} WHERE n > {limit}"}
    message = f"the longest has {{:,}} tokens of {limit:,}"
    longest = f"SELECT max(n) FROM {sizes}"
    return check_by_queries(_tables(check_input), errors, message, longest)


def children_stand_before_what_points_at_them(check_input: CheckInput) -> CheckResult:
    """A child is linked to by its root, or by a page of the round before that comes after it; there
    are at most as many rounds as the settings allow.
    """
    depth = check_input.params["longpack"]["depth"]
    errors = {
        "children of the first round that their root does not point at": "SELECT * FROM claims "
        "WHERE depth = 1 AND parent_id != root_id",
        "children of a further round behind what points at them, or pointed at by nothing": (
            "SELECT * FROM claims AS child WHERE depth > 1 AND NOT EXISTS (SELECT * FROM claims AS "
            "above WHERE above.root_id = child.root_id AND above.child_id = child.parent_id "
            "AND above.depth = child.depth - 1 AND above.place > child.place)"
        ),
        "children of no round of the settings": "SELECT * FROM claims WHERE depth NOT BETWEEN 1 "
        f"AND {depth}",
    }
    rounds = "SELECT max(depth) FROM claims"
    return check_by_queries(_tables(check_input), errors, f"{{}} of {depth} rounds", rounds)


def nothing_crosses_the_held_out_split(check_input: CheckInput) -> CheckResult:
    """A root and its children are on one side of the split, so no held-out text is trained on."""
    errors = {
        "children on the other side": """SELECT * FROM claims
            JOIN decided AS root ON root.id = root_id
            JOIN decided AS child ON child.id = child_id WHERE root.side <> child.side"""
    }
    count = "SELECT count(*) FROM claims"
    return check_by_queries(_tables(check_input), errors, "{:,} pairs on one side", count)


def _params(recipe: Recipe, _: str) -> dict[str, Any]:
    """The settings that affect the table; the tokenizer is identified by content, not by path."""
    vocabulary = vocabulary_of(recipe.token_documents.tokenizer)
    longpack = {
        name: value
        for name, value in plain(recipe.longpack_documents).items()
        if name not in {"wanted", "rest"}
        and (name, value) not in {("untitled", "drop"), ("older_snapshots", False)}
    }
    return {
        "longpack": longpack,
        "tokenizer": vocabulary.name,
        "tokenizer_sha256": vocabulary.sha256,
        "text_encoding": recipe.token_documents.text_encoding,
    }


WITH_TARGETS = THIS_AND_OLDER.where(
    lambda recipe, key, other: other == key or recipe.longpack_documents.older_snapshots
)
"""The snapshots in which the targets of links are searched."""

STAGE = Stage(
    name="link_claims",
    description=(
        "Which root of one snapshot gets which page's text; the first root by a keyed hash gets it."
    ),
    code_version="2",
    reads={
        "page_links": SAME_SNAPSHOT,
        "html_index": SAME_SNAPSHOT,
        "filtered_documents": WITH_TARGETS,
        "removed_documents": WITH_TARGETS,
    },
    params=_params,
    checks=(
        the_claims_add_up,
        claimed_documents_go_on,
        no_text_is_held_too_often,
        documents_keep_their_limit,
        children_stand_before_what_points_at_them,
        nothing_crosses_the_held_out_split,
    ),
    columns=LINK_CLAIMS,
    wanted=lambda recipe: recipe.longpack_documents.wanted,
    group="links",
    job="snapshot_longpack",
    kinds=("parquet", "duckdb"),
    counted="links",
    randomness=lambda recipe, _: roots_drawn_by(recipe.longpack_documents.seed),
    write=write_link_claims,
)
"""Which page's text precedes which root."""
