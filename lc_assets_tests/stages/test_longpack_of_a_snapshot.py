"""`link_claims` and `longpack`: packed documents of a snapshot, from published links; what moves
them, and claims that can fail.
"""

import shutil
from dataclasses import replace
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lc_assets.builds.building import check_input_of
from lc_assets.builds.settings.longpack import LongPackSettings, PackingSettings
from lc_assets.errors import NotPublished
from lc_assets.execution.local import LocalExecutor
from lc_assets.packing.longpack import ROOT_LINE
from lc_assets.stages.catalogue import stage_named
from lc_assets.stages.longpack import link_claims, longpack_documents as longpack
from lc_assets.stages.longpack.page_index import PAGES_FILE, page_index
from lc_assets.stages.longpack.pages import n_tokens_of
from lc_assets.stages.planning import plan
from lc_assets.text.links.addresses import values_of
from lc_assets_tests.builders import tiny_context, tiny_upstream
from lc_assets_tests.faults import BEFORE_TOKENS, build_snapshot
from lc_assets_tests.link_builders import OLD, documents_of, publish_links
from lc_assets_tests.reference.link_claims import World, slow_claims

SETTINGS = LongPackSettings(wanted=True, max_tokens=600, depth=2, hub_share=1.0)


@pytest.fixture(scope="module")
def upstream(tmp_path_factory) -> Path:
    return tiny_upstream(tmp_path_factory.mktemp("upstream"), snapshots=[OLD])


BRANCH = (
    "html_index",
    "page_links",
    "link_claims",
    "longpack_documents",
    "packing_tokens",
    "packed_rows",
)


def a_lake(folder, upstream, *, workers=1, **settings):
    context = tiny_context(
        folder,
        upstream=upstream,
        workers=workers,
        longpack_documents=msgspec.structs.replace(SETTINGS, **settings),
    )
    build_snapshot(context, OLD, BEFORE_TOKENS)
    return context, publish_links(context.lake)


def built(context):
    return stage_named("link_claims").build(context, OLD), stage_named("longpack_documents").build(
        context, OLD
    )


@pytest.fixture(scope="module")
def made(tmp_path_factory, upstream):
    context, links = a_lake(tmp_path_factory.mktemp("made"), upstream)
    return context, links, *built(context)


def test_receipts_name_the_draw_of_roots(made):
    """Of who claims what; longpack takes what was drawn there."""
    context = made[0]
    drawn = {
        stage: context.lake.partition(stage, OLD).require().receipt.randomness
        for stage in BRANCH[2:4]
    }
    said = {
        "roots": (
            f"blake2b-64-le, seed {context.recipe.longpack_documents.seed}, purpose 'longpack "
            "root', "
            "key page key"
        )
    }
    assert drawn == {"link_claims": said, "longpack_documents": {}}


def test_claims_are_those_of_loops_over_what_was_filtered(made):
    context, links, claims, _ = made
    decided = context.lake.partition("removed_documents", OLD).require().folder
    decisions = pq.read_table(decided / "decisions.parquet").to_pylist()
    removed = frozenset(line["id"] for line in decisions if line["reason"])
    world = World(documents=documents_of(context.lake), links=links, removed=removed)
    wanted, refused = slow_claims(
        world,
        context.recipe.longpack_documents,
        sides={line["id"]: line["side"] for line in decisions},
        count=lambda text: n_tokens_of(text, "gpt2", "plain"),
    )
    found = pq.read_table(claims.published.folder / link_claims.TABLE).to_pylist()
    assert [
        {name: value for name, value in line.items() if name != "cluster"} for line in found
    ] == wanted
    assert claims.counts.dropped == dict(sorted(refused.items()))
    assert max(line["depth"] for line in found) == 2
    assert all(finding.passed for finding in claims.findings)


def test_consumed_pages_occur_once_and_their_tokens_are_conserved(made):
    """Each document is a root or a part of one, or natural still; together they are the filtered
    documents, token for token.
    """
    context, _, claims, packed = made
    documents = {line["id"]: line for line in documents_of(context.lake)}
    spans = [
        line
        for path in longpack.spans_files(packed.published.folder)
        for line in pq.read_table(path).to_pylist()
    ]
    names = [span["child_id"] for span in spans]
    assert len(names) == len(set(names)) > 0
    tokens = {
        name: n_tokens_of(line["raw_content"], "gpt2", "plain") for name, line in documents.items()
    }
    natural = sum(count for name, count in tokens.items() if name not in set(names))
    assert natural + sum(span["n_tokens"] for span in spans) == sum(tokens.values())
    assert (
        packed.counts.extra["tokens of parts"]
        == claims.counts.extra["tokens of children"] + claims.counts.extra["tokens of their roots"]
    )


def test_every_root_is_in_its_document_and_every_child_is_its_cleaned_page(made):
    context, _, _, packed = made
    texts = {line["id"]: line["raw_content"] for line in documents_of(context.lake)}
    n_docs = 0
    for document, spans in longpack.packed_documents(packed.published.folder):
        n_docs += 1
        assert document["raw_content"].endswith(ROOT_LINE + texts[document["id"]])
        for span in spans[:-1]:
            part = document["raw_content"][span["start"] : span["stop"]]
            assert part == f"{span['keys']}\n{texts[span['child_id']].strip()}\n\n"
    assert n_docs == packed.counts.kept > 3
    assert all(finding.passed for finding in packed.findings)


def test_two_workers_give_the_bytes_of_one(made, upstream, tmp_path):
    context, _ = a_lake(tmp_path, upstream)
    there = replace(
        context, executor=LocalExecutor(workers=2, preload=("lc_assets.stages.catalogue",))
    )
    assert [one.published.digest for one in built(there)] == [
        one.published.digest for one in made[2:]
    ]


def test_the_planner_knows_what_moves_them(upstream, tmp_path):
    context = tiny_context(tmp_path, upstream=upstream, longpack_documents=SETTINGS)
    build_snapshot(context, OLD, (*BEFORE_TOKENS, "html_index", "page_links"))

    def status(recipe):
        found = {made_now.stage: made_now.status for made_now in plan(context.lake, recipe, [OLD])}
        return found["link_claims"], found["longpack_documents"]

    before = built(context)
    assert status(context.recipe) == ("current", "current")
    recipe = context.recipe
    other = msgspec.structs.replace(
        recipe, longpack_documents=msgspec.structs.replace(recipe.longpack_documents, repetitions=2)
    )
    assert status(other) == ("stale", "waiting")
    switched_off = msgspec.structs.replace(
        recipe, longpack_documents=msgspec.structs.replace(recipe.longpack_documents, wanted=False)
    )
    assert "longpack_documents" not in {
        made_now.stage for made_now in plan(context.lake, switched_off, [OLD])
    }
    publish_links(context.lake, seed=1)
    after = built(context)
    assert not any(one.reused for one in after)
    assert all(
        one.published.digest != other.published.digest
        for one, other in zip(before, after, strict=True)
    )


def test_without_links_nothing_is_claimed(upstream, tmp_path):
    context = tiny_context(tmp_path, upstream=upstream, longpack_documents=SETTINGS)
    build_snapshot(context, OLD, BEFORE_TOKENS)
    with pytest.raises(NotPublished, match=f"page_links/{OLD} is not published"):
        stage_named("link_claims").build(context, OLD)


def test_the_paper_is_a_setting(upstream, tmp_path):
    """Parts without separators; a root may be a child elsewhere."""
    context, _ = a_lake(
        tmp_path,
        upstream,
        mode="allow",
        paper_exact=True,
        portals="keep",
        depth=1,
        max_tokens=10**6,
    )
    claims, packed = built(context)
    texts = {line["id"]: line["raw_content"] for line in documents_of(context.lake)}
    lines = pq.read_table(claims.published.folder / link_claims.TABLE).to_pylist()
    for document, _ in longpack.packed_documents(packed.published.folder):
        own = [line for line in lines if line["root_id"] == document["id"]]
        plain = "".join(f"{line['keys']}\n{texts[line['child_id']]}" for line in own)
        assert document["raw_content"] == f"{plain}{ROOT_LINE}{texts[document['id']]}"
    assert {line["child_id"] for line in lines} & {line["root_id"] for line in lines}
    assert all(finding.passed for finding in packed.findings)


def test_the_whole_branch_from_a_crawl_to_rows(upstream, tmp_path):
    """Archives to links to claims to documents to tokens to rows: every filtered document is in the
    rows once, packed or alone.
    """
    packing = PackingSettings(wanted=True, documents="both", row_tokens=1000)
    settings = LongPackSettings(wanted=True, max_tokens=600, portals="keep", same_language=False)
    context = tiny_context(
        tmp_path, upstream=upstream, longpack_documents=settings, packed_rows=packing
    )
    build_snapshot(context, OLD, (*BEFORE_TOKENS, *BRANCH))
    assert all(
        made.status == "current"
        for made in plan(context.lake, context.recipe, [OLD])
        if made.stage in BRANCH
    )
    long = context.lake.partition("longpack_documents", OLD).require()
    spans = [
        line
        for path in longpack.spans_files(long.folder)
        for line in pq.read_table(path).to_pylist()
    ]
    rows = pq.read_table(
        context.lake.partition("packed_rows", OLD).require().folder / "spans.parquet"
    ).to_pylist()
    packed = {span["id"] for span in spans}
    inside = {span["child_id"] for span in spans}
    alone = {line["id"] for line in documents_of(context.lake)} - inside
    assert packed
    assert {line["id"] for line in rows} == packed | alone
    assert len({(line["id"], line["document_start"]) for line in rows}) == len(rows)


def edited(path, change):
    pq.write_table(
        pa.Table.from_pylist(change(pq.read_table(path).to_pylist()), schema=pq.read_schema(path)),
        path,
    )


def first_filled(folder, pattern):
    return next(path for path in sorted(folder.glob(pattern)) if pq.read_metadata(path).num_rows)


def first(change):
    """Edit a table's first line."""
    return lambda lines: [lines[0] | change(lines[0]), *lines[1:]]


CLAIMS, DOCUMENTS, SPANS = "claims.parquet", "*.documents.parquet", "*.spans.parquet"
OTHER = f"{OLD}/0000/en_head.json.gz/999"
SPOILS = [
    (link_claims, "the_claims_add_up", CLAIMS, lambda lines: lines[1:]),
    (link_claims, "the_claims_add_up", CLAIMS, first(lambda line: {"place": line["place"] + 100})),
    (link_claims, "claimed_documents_go_on", CLAIMS, first(lambda line: {"child_id": OTHER})),
    (link_claims, "claimed_documents_go_on", CLAIMS, first(lambda line: {"parent_id": OTHER})),
    (
        link_claims,
        "no_text_is_held_too_often",
        CLAIMS,
        lambda lines: [lines[0], lines[1] | {"cluster": lines[0]["cluster"]}, *lines[2:]],
    ),
    (
        link_claims,
        "no_text_is_held_too_often",
        CLAIMS,
        first(lambda line: {"child_id": line["root_id"]}),
    ),
    (
        link_claims,
        "no_text_is_held_too_often",
        CLAIMS,
        lambda lines: [lines[0] | {"child_id": lines[-1]["root_id"]}, *lines[1:]],
    ),
    (link_claims, "documents_keep_their_limit", CLAIMS, first(lambda line: {"n_tokens": 600})),
    (link_claims, "documents_keep_their_limit", CLAIMS, first(lambda line: {"keys": "x" * 600})),
    (
        link_claims,
        "children_stand_before_what_points_at_them",
        CLAIMS,
        lambda lines: [line | {"depth": 3} for line in lines],
    ),
    (
        link_claims,
        "children_stand_before_what_points_at_them",
        CLAIMS,
        lambda lines: [line | {"parent_id": OTHER} for line in lines],
    ),
    (
        link_claims,
        "children_stand_before_what_points_at_them",
        CLAIMS,
        lambda lines: [line | {"place": 100} if line["depth"] == 2 else line for line in lines],
    ),
    (longpack, "the_tables_fit_their_schemas", DOCUMENTS, first(lambda line: {"id": "nobody"})),
    (longpack, "documents_are_made_of_their_spans", DOCUMENTS, lambda lines: lines[1:]),
    (
        longpack,
        "documents_are_made_of_their_spans",
        DOCUMENTS,
        first(lambda line: {"raw_content": line["raw_content"] + "x"}),
    ),
    (
        longpack,
        "documents_are_made_of_their_spans",
        SPANS,
        first(lambda line: {"stop": line["stop"] - 1}),
    ),
    (longpack, "documents_are_made_of_their_spans", SPANS, first(lambda line: {"role": "root"})),
    (longpack, "every_claim_is_packed", SPANS, lambda lines: lines[1:]),
    (longpack, "every_claim_is_packed", SPANS, first(lambda line: {"child_id": OTHER})),
    (
        longpack,
        "every_claim_is_packed",
        SPANS,
        first(lambda line: {"n_tokens": line["n_tokens"] + 1}),
    ),
    (
        longpack,
        "parts_are_the_cleaned_pages",
        DOCUMENTS,
        lambda lines: [one | {"raw_content": one["raw_content"].upper()} for one in lines],
    ),
    (
        longpack,
        "parts_are_the_cleaned_pages",
        SPANS,
        lambda lines: [line | {"child_id": OTHER} for line in lines],
    ),
    (longpack, "packed_documents_keep_the_limit", SPANS, first(lambda line: {"n_tokens": 600})),
    (
        longpack,
        "packed_documents_keep_the_limit",
        DOCUMENTS,
        first(lambda line: {"raw_content": "word " * 700}),
    ),
    (longpack, "every_page_is_found_in_its_documents", PAGES_FILE, lambda lines: lines[1:]),
    (
        longpack,
        "every_page_is_found_in_its_documents",
        PAGES_FILE,
        lambda lines: [lines[1], lines[0], *lines[2:]],
    ),
    (
        longpack,
        "every_page_is_found_in_its_documents",
        PAGES_FILE,
        first(lambda line: {"packed_id": OTHER}),
    ),
    (
        longpack,
        "every_page_is_found_in_its_documents",
        SPANS,
        first(lambda line: {"url": "https://elsewhere.example/"}),
    ),
]


@pytest.mark.parametrize(("module", "claim", "pattern", "spoil"), SPOILS)
def test_a_claim_says_when_it_does_not_hold(made, tmp_path, module, claim, pattern, spoil):
    context = made[0]
    published = context.lake.partition(module.STAGE.name, OLD).require()
    folder = Path(shutil.copytree(published.folder, tmp_path / "copy"))
    evidence = replace(check_input_of(context.lake, published), folder=folder)
    test = {found.__name__: found for found in module.STAGE.checks}[claim]
    assert test(evidence).passed
    edited(first_filled(folder, pattern), spoil)
    found = test(replace(evidence))  # what the checks of one version read is shared
    assert not found.passed
    assert found.message


def test_a_child_from_the_other_side_is_seen(made, tmp_path):
    """Documents of the two sides, one claimed for the other."""
    context = made[0]
    published = context.lake.partition("link_claims", OLD).require()
    folder = Path(shutil.copytree(published.folder, tmp_path / "copy"))
    evidence = replace(check_input_of(context.lake, published), folder=folder)
    found = link_claims.nothing_crosses_the_held_out_split(evidence)
    assert found.passed
    child = pq.read_table(folder / link_claims.TABLE)["child_id"][0].as_py()
    decided = evidence.only_input("removed_documents")
    other = replace(decided, home=Path(shutil.copytree(decided.folder, tmp_path / "decided")))
    edited(
        other.home / "decisions.parquet",
        lambda lines: [
            line
            | (
                {"side": "heldout" if line["side"] == "train" else "train"}
                if line["id"] == child
                else {}
            )
            for line in lines
        ],
    )
    inputs = evidence.inputs | {decided.name: other}
    found = link_claims.nothing_crosses_the_held_out_split(replace(evidence, inputs=inputs))
    assert not found.passed


@pytest.mark.parametrize("kind", ["document", "url", "domain"])
def test_the_index_finds_what_a_pass_over_all_spans_finds(made, kind):
    published = made[3].published
    spans = [
        line
        for path in longpack.spans_files(published.folder)
        for line in pq.read_table(path).to_pylist()
    ]
    index = page_index(published)
    values = {
        value
        for span in spans
        for value in values_of(kind, {"id": span["child_id"], "url": span["url"]})
    }
    assert values
    for value in sorted(values):
        wanted = [
            span["id"]
            for span in spans
            if value in values_of(kind, {"id": span["child_id"], "url": span["url"]})
        ]
        assert [line["packed_id"] for line in index.find(kind, value)] == wanted
    assert index.find(kind, "nobody.example") == []


def test_every_claim_is_put_to_these_tests():
    spoilt = {(module.STAGE.name, claim) for module, claim, *_ in SPOILS} | {
        ("link_claims", "nothing_crosses_the_held_out_split")
    }
    assert spoilt == {
        (module.STAGE.name, claim.__name__)
        for module in (link_claims, longpack)
        for claim in module.STAGE.checks
    }
