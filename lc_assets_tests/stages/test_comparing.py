"""Comparing data sets: what it counts is what a comparison of sets of rows counts, and every cause
is named.
"""

import json
import shutil
from dataclasses import replace

import msgspec
import pytest

from lc_assets.builds.settings.documents import Bounds
from lc_assets.builds.settings.rows import GriddingSettings, TokenizingSettings
from lc_assets.errors import NotPublished
from lc_assets.execution.local import LocalExecutor
from lc_assets.lake.lake import Lake
from lc_assets.lake.upstream import Upstream
from lc_assets.stages.catalogue import stage_named
from lc_assets.stages.file_lakes import build_for, context_over_files
from lc_assets.stages.releases.comparing import NOW, compare, data_set
from lc_assets.stages.releases.releasing import release
from lc_assets.stages.rows.token_grid import rows_table
from lc_assets.vocabulary import Shard
from lc_assets_tests.builders import SNAPSHOTS, TAGS, TINY_ROW_TOKENS, made_up_text, write_shard
from lc_assets_tests.named_draws import rng_for
from lc_assets_tests.withdrawing import ALONE_NEW, ALONE_OLD, NEW, OLD, id_of, record_of


@pytest.fixture
def lake(lake_with_copies, tmp_path):
    found = lake_with_copies.copy(tmp_path)
    release(found.lake, "v1", found.context.recipe)
    return found


def diff(lake, before="v1", after=NOW):
    return compare(data_set(lake.lake, before), data_set(lake.lake, after))


def cooked(lake, **changes):
    context = replace(lake.context, recipe=msgspec.structs.replace(lake.context.recipe, **changes))
    return replace(lake, context=context)


def rows_of(lake):
    """Each row of each snapshot, by document and stretch: where it stands but for its number."""
    return {
        (snapshot, row["id"], row["stretch"]): (row["split"], row["shift"], row["priority"])
        for snapshot in SNAPSHOTS
        for row in rows_table(lake.published(f"token_grid/{snapshot}")).to_pylist()
    }


def test_nothing_changed(lake):
    found = diff(lake)
    assert (found.changes, found.settings, found.code, found.libraries) == ([], [], [], [])
    assert found.same_snapshots == len(SNAPSHOTS)
    assert set(found.mixes.values()) == {"is the same"}
    assert found.counts[0] == found.counts[1]


def test_a_withdrawn_document_went_and_nothing_moved(lake):
    lake.say(("document", id_of(OLD, ALONE_OLD)))
    lake.build()
    (change,) = diff(lake).changes
    assert msgspec.structs.asdict(change) == {
        "snapshot": OLD,
        "documents_added": 0,
        "documents_removed": 1,
        "documents_changed": 0,
        "rows_added": 0,
        "rows_removed": 1,
        "rows_moved": 0,
        "tokens_added": 0,
        "tokens_removed": TINY_ROW_TOKENS,
    }
    (backwards,) = diff(lake, NOW, "v1").changes
    assert (backwards.rows_added, backwards.rows_removed) == (1, 0)
    assert set(diff(lake).mixes.values()) == {"changed"}
    assert diff(lake).same_snapshots == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"seed": 5},
        {"heldout_fraction": 0.5},
        {"row_tokens": 32, "rows_per_document": 3},
        {"rows_per_document": 2, "row_tokens": 40},
    ],
)
def test_counts_are_those_of_sets_of_rows(lake, changes):
    """Another seed, split, length, more rows of a document: counted by dictionaries, one row at a
    time.
    """
    before = rows_of(lake)
    lake = cooked(
        lake, token_grid=msgspec.structs.replace(lake.context.recipe.token_grid, **changes)
    )
    lake.build()
    after = rows_of(lake)
    found = diff(lake)
    moved = {key for key in before.keys() & after.keys() if before[key] != after[key]}
    assert sum(change.rows_added for change in found.changes) == len(after.keys() - before.keys())
    assert sum(change.rows_removed for change in found.changes) == len(before.keys() - after.keys())
    assert sum(change.rows_moved for change in found.changes) == len(moved)
    names = [{identity for _, identity, _ in keys} for keys in (before, after)]
    assert sum(change.documents_added for change in found.changes) == len(names[1] - names[0])
    lines = {line["setting"]: line for line in found.settings if line["stage"] == "token_grid"}
    assert lines.keys() == changes.keys()
    for name, value in changes.items():
        assert lines[name]["after"] == repr(value)
        assert lines[name]["partitions"] == list(SNAPSHOTS)


def test_a_changed_threshold_is_named_by_its_rule(lake):
    filtering = msgspec.structs.replace(
        lake.context.recipe.filtered_documents, thresholds={"symbols": Bounds(at_most=0.4)}
    )
    lake = cooked(lake, filtered_documents=filtering)
    lake.build()
    lines = {
        line["setting"]: (line["stage"], line["before"], line["after"])
        for line in diff(lake).settings
    }
    assert lines["rules.rules.symbols.at_most"] == ("filtered_documents", "0.5", "0.4")
    assert lines["thresholds.symbols.at_most"] == ("filtered_documents", "(not set)", "0.4")


def test_another_code_version_and_library_are_named(lake, monkeypatch):
    """As the releases say, whatever stands published."""
    path = lake.lake.root / "releases" / "v1.json"
    content = path.read_text().replace('"numpy": "', '"numpy": "0.')
    made = msgspec.json.decode(content.encode())
    made["made"][f"token_grid/{OLD}"]["code_version"] = "2"
    (lake.lake.root / "releases" / "v0.json").write_bytes(msgspec.json.encode(made))
    found = diff(lake, "v0", "v1")
    (line,) = found.code
    assert (line["stage"], line["partitions"], line["before"]) == ("token_grid", [OLD], "'2'")
    assert {line["library"] for line in found.libraries} == {"numpy"}
    assert found.changes == []


def test_versions_are_compared_by_their_folders(lake):
    """A grid with its successor, an order with a release, a mix with itself."""
    grid, order, mix = (
        lake.published(name).home
        for name in (f"token_grid/{NEW}", "longcrawl/all", "blended_mix/by-tokens")
    )
    lake.say(("document", id_of(NEW, ALONE_NEW)))
    lake.build()
    (change,) = diff(lake, str(grid), str(lake.published(f"token_grid/{NEW}").home)).changes
    assert (change.snapshot, change.rows_removed) == (NEW, 1)
    assert diff(lake, str(order), "v1").changes == []
    (change,) = diff(lake, str(order), str(lake.published("longcrawl/all").home)).changes
    assert change.rows_removed == 1
    assert diff(lake, str(mix), str(mix)).mixes == {"blended_mix/by-tokens": "is the same"}
    other = lake.published("blended_mix/by-tokens").home
    assert diff(lake, str(mix), str(other)).mixes == {"blended_mix/by-tokens": "changed"}


def test_a_snapshot_more_is_all_added(lake):
    """One grid against an order over it and another."""
    found = diff(lake, str(lake.published(f"token_grid/{OLD}").home), "v1")
    (change,) = found.changes
    assert (change.snapshot, change.rows_removed, change.rows_moved) == (NEW, 0, 0)
    assert change.rows_added == sum(name.startswith(NEW) for name in lake.served())


def test_grids_that_are_published_and_not_ordered_are_compared(lake):
    other = cooked(lake, token_grid=GriddingSettings(row_tokens=TINY_ROW_TOKENS // 2))
    stage_named("token_grid").build(other.context, OLD)
    found = diff(other)
    assert [change.snapshot for change in found.changes] == [OLD]
    assert found.same_snapshots == len(SNAPSHOTS) - 1
    assert ("row_tokens", [OLD]) in [
        (line["setting"], line["partitions"]) for line in found.settings
    ]


def rewritten(lake, folder, texts):
    """The lake with other records in the older snapshot's first shard, built."""
    shutil.copytree(lake.context.upstream.root, folder / "other")
    shard = Shard.parse(f"{OLD}/{TAGS[0]}")
    records = [
        msgspec.structs.replace(record_of(shard, line, text), digest=f"sha1:{digest}")
        for line, (digest, text) in enumerate(texts)
    ]
    write_shard(folder / "other", shard, records)
    upstream = Upstream(str(folder / "other"))
    found = replace(lake, context=replace(lake.context, upstream=upstream))
    found.build()
    return found


def made_up(name, n):
    """Digests and texts."""
    rng = rng_for(name, seed=0, key="")
    return [(f"{name}{number}", made_up_text(rng, n_words=120)) for number in range(n)]


def test_documents_that_changed_in_place_are_reported(lake, tmp_path):
    """Each line of a shard has another text: their ids are the same, and nothing else is."""
    before = made_up("A", 6)
    lake = rewritten(lake, tmp_path / "first", before)
    release(lake.lake, "v2", lake.context.recipe)
    lake = rewritten(lake, tmp_path / "second", made_up("B", 6))
    (change,) = diff(lake, "v2").changes
    assert (change.documents_added, change.documents_removed, change.documents_changed) == (6, 6, 6)
    assert (change.rows_added, change.rows_removed, change.rows_moved) == (6, 6, 0)
    assert change.tokens_added == change.tokens_removed == 6 * TINY_ROW_TOKENS


def test_documents_on_other_lines_are_the_same_documents(lake, tmp_path):
    """One more before all others: their rows move, as ids determine priorities and shifts."""
    before = made_up("A", 6)
    lake = rewritten(lake, tmp_path / "first", before)
    release(lake.lake, "v2", lake.context.recipe)
    lake = rewritten(lake, tmp_path / "second", [*made_up("B", 1), *before])
    (change,) = diff(lake, "v2").changes
    assert (change.documents_added, change.documents_removed, change.documents_changed) == (1, 0, 0)
    assert (change.rows_added, change.rows_removed, change.rows_moved) == (1, 0, 6)


def test_documents_without_digests_are_known_by_their_tokens(tmp_path):
    """JSON lines state no digest of a page."""
    rng, file = rng_for("lines", seed=0, key=""), tmp_path / "in" / "texts.jsonl"
    texts = [made_up_text(rng, n_words=120) for _ in range(5)]
    file.parent.mkdir()
    versions = []
    for lines in (
        texts,
        [*texts[1:], texts[0] + " more"],
        [*texts[:4], made_up_text(rng, n_words=99)],
    ):
        file.write_text("".join(json.dumps({"text": text}) + "\n" for text in lines))
        found = build_for(
            context_over_files(
                [file],
                tmp_path / "lake",
                executor=LocalExecutor(),
                settings={
                    "token_documents": TokenizingSettings(min_tokens=TINY_ROW_TOKENS),
                    "token_grid": GriddingSettings(row_tokens=TINY_ROW_TOKENS),
                },
            ),
            "token_grid",
        )
        ((_, built),) = found["token_grid"].items()
        versions.append(str(built.published.home))
    made = Lake(tmp_path / "lake")
    compared = [
        compare(data_set(made, versions[0]), data_set(made, other)).changes[0]
        for other in versions[1:]
    ]
    assert [change.documents_added for change in compared] == [0, 1]
    assert [change.documents_changed for change in compared] == [0, 1]
    assert compared[0].rows_moved == 5


def test_what_is_neither_is_told(lake):
    with pytest.raises(NotPublished, match="of releases there are now, v1"):
        data_set(lake.lake, "v9")
