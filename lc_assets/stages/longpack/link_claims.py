"""`link_claims`: which page's text goes before which root, along the links of one snapshot, and by
which words.

Roots are drawn by a keyed hash of their page keys; the first by that hash keeps a page that several
point at (docs/longpack.md). What is removed (`removed_documents`) takes no part, and nothing
crosses from what is trained on to what is held out, of the grid's split or of packed rows': a root
and its children are on one side of both. Tokens are counted of the pages that are needed, by the
recipe's tokenizer. Not here: finding the links (`page_links`), putting texts together
(`longpack_documents`).
"""
# ruff: noqa: S608 - every name in these queries is this package's own, every value a number

import functools
import itertools
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final

from lc_assets.build.building import (
    build,
    run_shards,
)
from lc_assets.build.checks import documents_files
from lc_assets.build.recipe import Recipe, plain
from lc_assets.build.stage import (
    SAME_SNAPSHOT,
    WORKERS,
    BuildContext,
    Built,
    CheckInput,
    CheckResult,
    Stage,
    StagingFolder,
    later,
)
from lc_assets.build.tables import count_lines, read_lines
from lc_assets.counts import Counts
from lc_assets.formats.tokenizers.named import vocabulary_of
from lc_assets.packing.longpack import PART_TOKENS
from lc_assets.packing.turns import roots_drawn_by
from lc_assets.stages.deduplication.queries import Queries
from lc_assets.stages.deduplication.removed_documents import STAGE as REMOVED_DOCUMENTS
from lc_assets.stages.deduplication.removed_documents import TABLE as REMOVALS_TABLE
from lc_assets.stages.documents.filtered_documents import STAGE as FILTERED_DOCUMENTS
from lc_assets.stages.links.page_links import STAGE as PAGE_LINKS
from lc_assets.stages.links.page_links import page_links_files
from lc_assets.stages.longpack.auditing import asking, how_many, on_two_sides
from lc_assets.stages.longpack.claiming import Claims, claim_links
from lc_assets.stages.longpack.pages import Draws
from lc_assets.vocabulary import SnapshotId

TABLE: Final = "claims.parquet"


def write_link_claims(context: BuildContext, snapshot: SnapshotId) -> Built:
    """Publish who holds what among one snapshot's documents.

    Raises:
        NotPublished: when documents, removals or links are not there.
    """

    def fill(staging: StagingFolder) -> Counts:
        recipe = context.recipe
        return claim_links(
            Claims(
                documents=documents_files(staging.inputs[f"filtered_documents/{snapshot}"].folder),
                links=page_links_files(staging.inputs[f"page_links/{snapshot}"].folder),
                removed=[staging.inputs[f"removed_documents/{snapshot}"].folder / REMOVALS_TABLE],
                folder=staging.folder,
                out=staging.folder / TABLE,
                settings=recipe.longpack_documents,
                draws=Draws(
                    seed=recipe.longpack_documents.seed,
                    share=recipe.longpack_documents.roots,
                    splits=splits_of(recipe),
                    first_lines=recipe.longpack_documents.untitled == "first_line",
                ),
                tokenizer=recipe.token_documents.tokenizer,
                text_encoding=recipe.token_documents.text_encoding,
                run=functools.partial(run_shards, context, staging),
            )
        )

    return build(
        context,
        STAGE,
        snapshot,
        fill,
        randomness=roots_drawn_by(context.recipe.longpack_documents.seed),
    )


def first_lines(folder: Path, most: int) -> list[dict[str, Any]]:
    """The first claims of a version, for people."""
    return list(itertools.islice(read_lines(folder / TABLE), most))


def splits_of(recipe: Recipe) -> tuple[tuple[int, float], ...]:
    """Seed and fraction of every split into trained on and held out that a recipe makes; one that
    is made twice counts once.
    """
    both = (
        (recipe.token_grid.seed, recipe.token_grid.heldout_fraction),
        (recipe.packed_rows.seed, recipe.packed_rows.heldout_fraction),
    )
    return tuple(dict.fromkeys(both))


def _asking(check_input: CheckInput) -> AbstractContextManager[Queries]:
    """Questions to a version, and to the documents that it was made of."""
    filtered, removals = (
        check_input.only_input(stage).folder
        for stage in ("filtered_documents", "removed_documents")
    )
    return asking(
        check_input.folder / TABLE, documents_files(filtered), [removals / REMOVALS_TABLE]
    )


def _all_hold(name: str, wrong: dict[str, int], said: str) -> CheckResult:
    """A finding: every count of what is wrong is zero."""
    found = "; ".join(f"{count:,} {words}" for words, count in wrong.items() if count)
    return CheckResult(check=name, passed=not found, message=found or said, values=dict(wrong))


def the_claims_add_up(check_input: CheckInput) -> CheckResult:
    """The table holds as many lines as were counted; every link of `page_links` was looked at; a
    root's places are 0, 1, 2, …
    """
    links = sum(
        count_lines(path) for path in page_links_files(check_input.only_input("page_links").folder)
    )
    with _asking(check_input) as asked:
        n_claims = how_many(asked, "SELECT * FROM claims")
        wrong = {
            "claims more or fewer than counted": abs(n_claims - check_input.counts.kept),
            "links that were not looked at": max(0, links - check_input.counts.seen),
            "roots with places that are not 0, 1, 2, …": how_many(
                asked,
                "SELECT root_id FROM claims GROUP BY root_id HAVING min(place) != 0 OR max(place) "
                "!= count(*) - 1 "
                "OR count(DISTINCT place) != count(*)",
            ),
        }
    return _all_hold(
        "the_claims_add_up", wrong, f"{n_claims:,} claims of {check_input.counts.seen:,} links"
    )


def claimed_documents_go_on(check_input: CheckInput) -> CheckResult:
    """Roots, children and what points at these are filtered documents of the snapshot, and none is
    removed.
    """
    with _asking(check_input) as asked:
        named = (
            "SELECT root_id AS id FROM claims UNION SELECT child_id FROM claims UNION SELECT "
            "parent_id FROM claims"
        )
        n_named = how_many(asked, named)
        wrong = {
            "documents that were not filtered": how_many(
                asked, f"SELECT * FROM ({named}) ANTI JOIN documents USING (id)"
            ),
            "documents that were removed": how_many(
                asked, f"SELECT * FROM ({named}) SEMI JOIN removed USING (id)"
            ),
        }
    return _all_hold("claimed_documents_go_on", wrong, f"{n_named:,} documents take part")


def no_text_is_held_too_often(check_input: CheckInput) -> CheckResult:
    """A content is held by as many roots as allowed, once each; where pages are consumed, a page
    once, and never one that is a root.
    """
    settings = check_input.fingerprint.params["longpack"]
    with _asking(check_input) as asked:
        most = asked.number(
            "SELECT max(n) FROM (SELECT count(*) AS n FROM claims GROUP BY cluster)"
        )
        wrong = {
            "contents held more often": how_many(
                asked,
                "SELECT cluster FROM claims GROUP BY cluster HAVING count(*) > "
                f"{settings['repetitions']}",
            ),
            "contents twice in a document": how_many(
                asked, "SELECT root_id FROM claims GROUP BY root_id, cluster HAVING count(*) > 1"
            ),
            "roots in their own documents": how_many(
                asked, "SELECT * FROM claims WHERE root_id = child_id"
            ),
        }
        if settings["mode"] == "consume":
            wrong["pages held twice"] = how_many(
                asked, "SELECT child_id FROM claims GROUP BY child_id HAVING count(*) > 1"
            )
            wrong["pages held that are roots"] = how_many(
                asked,
                "SELECT child_id FROM claims SEMI JOIN (SELECT root_id AS child_id FROM claims) "
                "USING (child_id)",
            )
    return _all_hold(
        "no_text_is_held_too_often",
        wrong,
        f"a text is held {most:,} times at most, {settings['repetitions']:,} are allowed",
    )


def documents_keep_their_limit(check_input: CheckInput) -> CheckResult:
    """Root and children are no more tokens than a document may have, line ends and anchor lines
    counted at their most.
    """
    limit = check_input.fingerprint.params["longpack"]["max_tokens"]
    size = f"any_value(root_tokens) + {PART_TOKENS} + sum(n_tokens + strlen(keys) + {PART_TOKENS})"
    with _asking(check_input) as asked:
        longest = asked.number(
            f"SELECT max(n) FROM (SELECT {size} AS n FROM claims GROUP BY root_id)"
        )
        n_longer = how_many(
            asked, f"SELECT root_id FROM claims GROUP BY root_id HAVING {size} > {limit}"
        )
    return _all_hold(
        "documents_keep_their_limit",
        {"documents too long": n_longer},
        f"the longest has {longest:,} tokens of {limit:,}",
    )


def children_stand_before_what_points_at_them(check_input: CheckInput) -> CheckResult:
    """A child is pointed at by its root, or by a page of the round before that stands behind it;
    rounds are as many as asked for.
    """
    depth = check_input.fingerprint.params["longpack"]["depth"]
    with _asking(check_input) as asked:
        wrong = {
            "children of the first round that their root does not point at": how_many(
                asked, "SELECT * FROM claims WHERE depth = 1 AND parent_id != root_id"
            ),
            "children of a further round behind what points at them, or pointed at by nothing": how_many(
                asked,
                """SELECT * FROM claims AS child WHERE depth > 1 AND NOT EXISTS (SELECT * FROM claims AS above
                    WHERE above.root_id = child.root_id AND above.child_id = child.parent_id
                    AND above.depth = child.depth - 1 AND above.place > child.place)""",
            ),
            "children of no round that was asked for": how_many(
                asked, f"SELECT * FROM claims WHERE depth NOT BETWEEN 1 AND {depth}"
            ),
        }
        rounds = asked.number("SELECT max(depth) FROM claims")
    return _all_hold(
        "children_stand_before_what_points_at_them", wrong, f"{rounds} of {depth} rounds"
    )


def nothing_crosses_the_held_out_split(check_input: CheckInput) -> CheckResult:
    """A root and its children are on one side of every split, so no held-out text is trained on."""
    splits = [
        (int(seed), float(fraction)) for seed, fraction in check_input.fingerprint.params["splits"]
    ]
    with _asking(check_input) as asked:
        n_pairs, n_wrong = on_two_sides(asked, splits)
    return _all_hold(
        "nothing_crosses_the_held_out_split",
        {"children on the other side": n_wrong},
        f"{n_pairs:,} pairs, each on one side of {len(splits)} splits",
    )


def _params(recipe: Recipe, _: str) -> dict[str, Any]:
    """The settings that shape the table; of the tokenizer what it is, wherever its file lies."""
    vocabulary = vocabulary_of(recipe.token_documents.tokenizer)
    longpack = {
        name: value
        for name, value in plain(recipe.longpack_documents).items()
        if name not in {"wanted", "rest"} and (name, value) != ("untitled", "drop")
    }
    return {
        "longpack": longpack,
        "splits": splits_of(recipe),
        "tokenizer": vocabulary.name,
        "tokenizer_sha256": vocabulary.sha256,
        "text_encoding": recipe.token_documents.text_encoding,
    }


STAGE = Stage(
    name="link_claims",
    description=(
        "Which root of one snapshot gets which page's text; the first root by a keyed hash gets it."
    ),
    code_version="1",
    reads={
        PAGE_LINKS: SAME_SNAPSHOT,
        FILTERED_DOCUMENTS: SAME_SNAPSHOT,
        REMOVED_DOCUMENTS: SAME_SNAPSHOT,
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
    wanted=lambda recipe: recipe.longpack_documents.wanted,
    group="links",
    job="snapshot_longpack",
    pool=WORKERS,
    kinds=("parquet", "duckdb"),
    counted="links",
    write=write_link_claims,
    show=later("lc_assets.stages.shown.reports:link_claims"),
)
"""Which page's text goes before which root."""
