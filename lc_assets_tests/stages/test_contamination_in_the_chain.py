"""Evaluation items in a snapshot's documents: found, written down, and not tokenized; and every
claim about it can fail.
"""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lc_assets.builds.building import check_input_of
from lc_assets.builds.checks import documents_files, dropped_files
from lc_assets.builds.recipe import Recipe
from lc_assets.builds.settings.common import DecontaminationSettings
from lc_assets.builds.tables import read_table
from lc_assets.errors import BadInput
from lc_assets.lake.digests import sha256_of_file
from lc_assets.stages.decontamination import contaminated_documents as contamination
from lc_assets.stages.deduplication import removals
from lc_assets.stages.lineage.histories import decision_on, why_dropped
from lc_assets.stages.planning import plan
from lc_assets_tests.builders import SNAPSHOTS, tiny_context, tiny_upstream
from lc_assets_tests.faults import BEFORE_TOKENS, build_snapshot

OLD, NEW = SNAPSHOTS


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A snapshot, decontaminated against twenty words of one of its documents and a question that
    nobody asks.
    """
    folder = tmp_path_factory.mktemp("chain")
    upstream = tiny_upstream(folder / "upstream")
    plain = tiny_context(folder / "plain", upstream=upstream)
    filtered = build_snapshot(plain, OLD, ["raw_snapshot", "filtered_documents"])[
        "filtered_documents"
    ].published.folder
    victim = read_table(documents_files(filtered)[0], ["id", "raw_content"]).to_pylist()[1]
    item = " ".join(victim["raw_content"].split()[10:30])
    evals = folder / "evals.jsonl"
    lines = [
        {"id": "q1", "question": item},
        {
            "id": "q2",
            "question": "who ever saw seven zebras juggle nine violins on a quiet frozen harbour",
        },
    ]
    evals.write_text("".join(json.dumps(line) + "\n" for line in lines))
    context = tiny_context(
        folder / "clean",
        upstream=upstream,
        contaminated_documents=DecontaminationSettings(against=(str(evals),)),
    )
    return (
        context,
        victim["id"],
        build_snapshot(context, OLD, [*BEFORE_TOKENS, "token_documents"]),
        evals,
    )


def test_the_document_does_not_go_on_and_says_for_which_item(made):
    _, victim, built, _ = made
    assert built["contaminated_documents"].counts.dropped == {"contaminated": 1}
    (line,) = [
        line
        for line in removals.removals_in(built["removed_documents"].published.folder)
        if line["reason"] == "contaminated"
    ]
    assert (line["id"], line["similarity"], line["why"]) == (
        victim,
        1.0,
        f"holds 100% of {line['for_id']}",
    )
    assert "q1" in line["for_id"]
    folder = built["token_documents"].published.folder
    assert victim not in [
        name
        for path in documents_files(folder)
        for name in read_table(path, ["id"])["id"].to_pylist()
    ]
    (gone,) = [
        line
        for path in dropped_files(folder)
        for line in pq.read_table(path).to_pylist()
        if line["id"] == victim
    ]
    assert gone["reasons"] == ["contaminated"]
    assert built["token_documents"].counts.dropped["contaminated"] == 1
    said = why_dropped(made[0].lake, victim)
    assert said.stage == "token_documents"
    assert "contaminated" in [reason for reason, _ in said.reasons]
    assert decision_on(made[0].lake, victim) == line


def test_a_changed_evaluation_set_is_out_of_date(made):
    context, _, _, evals = made
    before = evals.read_bytes()
    try:
        evals.write_bytes(
            before
            + b'{"id": "q3", "question": "one more question of more than eight words for the model"}\n'
        )
        (found,) = [
            one
            for one in plan(context.lake, context.recipe, [OLD])
            if one.name == f"contaminated_documents/{OLD}"
        ]
        assert found.status == "stale"
        assert "evaluations" in " ".join(found.reasons)
    finally:
        evals.write_bytes(before)


def test_evaluation_sets_are_read_once_for_all_snapshots(made, monkeypatch):
    """A plan of 84 snapshots must not read them 84 times."""
    context, _, _, evals = made
    build_snapshot(context, NEW, ["raw_snapshot", "filtered_documents", "contaminated_documents"])
    seen = []
    monkeypatch.setattr(
        contamination, "sha256_of_file", lambda path: seen.append(path) or sha256_of_file(path)
    )
    plans = {one.name: one.status for one in plan(context.lake, context.recipe, SNAPSHOTS)}
    assert (
        plans[f"contaminated_documents/{OLD}"]
        == plans[f"contaminated_documents/{NEW}"]
        == "current"
    )
    assert seen == [evals]


def test_cutting_needs_a_stage_that_publishes_texts():
    with pytest.raises(BadInput, match="clean_documents.wanted = true"):
        Recipe(contaminated_documents=DecontaminationSettings(action="cut"))


def test_items_and_common_n_grams_are_reported(made):
    _, victim, built, _ = made
    folder = built["contaminated_documents"].published.folder
    items = {line["item_id"]: line for line in read_table(folder / "items.parquet").to_pylist()}
    found = next(line for name, line in items.items() if "q1" in name)
    assert (found["verdict"], found["best_document"], found["best_coverage"]) == (
        "contaminated",
        victim,
        1.0,
    )
    assert sorted(line["verdict"] for line in items.values()) == ["clean", "contaminated"]
    assert not read_table(folder / "common.parquet")["ignored"].to_pylist().count(True)


def test_n_grams_of_many_documents_are_ignored(made, tmp_path):
    """With a limit of 0 documents every n-gram found is too common, so nothing is condemned."""
    context, *_, evals = made
    settings = DecontaminationSettings(against=(str(evals),), ignore_common=0)
    recipe = msgspec.structs.replace(context.recipe, contaminated_documents=settings)
    built = build_snapshot(replace(context, recipe=recipe), OLD, ["contaminated_documents"])[
        "contaminated_documents"
    ]
    assert (built.counts.seen, built.counts.dropped) == (27, {})
    common = read_table(built.published.folder / "common.parquet").to_pylist()
    assert common
    assert all(line["ignored"] for line in common)


def spoilt(found, **change):
    return [found[0] | change, *found[1:]]


@pytest.mark.parametrize(
    ("claim", "spoil"),
    [
        ("evidence_is_as_it_says", lambda found: []),
        ("evidence_is_as_it_says", lambda found: spoilt(found, id="nobody/0")),
        ("evidence_is_as_it_says", lambda found: spoilt(found, coverage=1.5)),
        ("evidence_is_as_it_says", lambda found: spoilt(found, condemned=False)),
        ("the_text_holds_what_the_evidence_says", lambda found: spoilt(found, start=0)),
        ("the_text_holds_what_the_evidence_says", lambda found: spoilt(found, grams=1)),
    ],
)
def test_a_claim_says_when_it_does_not_hold(made, tmp_path, claim, spoil):
    context, victim, built, _ = made
    published = built["contaminated_documents"].published
    folder = Path(shutil.copytree(published.folder, tmp_path / "copy"))
    evidence = replace(check_input_of(context.lake, published), folder=folder)
    test = {found.__name__: found for found in contamination.STAGE.checks}[claim]
    assert test(evidence).passed
    (path,) = [
        path
        for path in sorted(folder.glob(f"*{contamination.EVIDENCE_SUFFIX}"))
        if pq.read_metadata(path).num_rows
    ]
    table = pq.read_table(path)
    pq.write_table(pa.Table.from_pylist(spoil(table.to_pylist()), schema=table.schema), path)
    found = test(evidence)
    assert not found.passed
    assert found.message
    assert victim


def test_without_evaluation_sets_nothing_is_looked_for(tmp_path, made):
    context, *_ = made
    recipe = msgspec.structs.replace(
        context.recipe, contaminated_documents=DecontaminationSettings()
    )
    idle = build_snapshot(replace(context, recipe=recipe), OLD, ["contaminated_documents"])[
        "contaminated_documents"
    ]
    assert (idle.counts.seen, idle.counts.dropped) == (27, {})
    assert idle.published.receipt.files == []
