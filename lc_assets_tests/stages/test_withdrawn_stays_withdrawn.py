"""What an entry has ever matched stays withdrawn with its copies, whatever changes later."""

import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from lc_assets.builds.building import check_input_of
from lc_assets.builds.stage import BuildContext, Built
from lc_assets.builds.tables import REMEMBERED, write_table
from lc_assets.cli.app import app
from lc_assets.errors import BadInput, DamagedInput
from lc_assets.formats.lists.withdrawal_lists import COLUMNS
from lc_assets.lake.lake import Lake
from lc_assets.stages.catalogue import STAGES, needed_by
from lc_assets.stages.planning import keys_of, plan
from lc_assets.stages.releases.auditing import Audit
from lc_assets.stages.releases.pruning import carry_out, needed_versions, plan_pruning, plan_purge
from lc_assets.stages.rows.token_grid import rows_table
from lc_assets.stages.withdrawal import matching, withdrawn_documents as withdrawing
from lc_assets.stages.withdrawal.contents import nothing_withdrawn_is_served, versions_with
from lc_assets.stages.withdrawal.matching import named_by
from lc_assets.stages.withdrawal.remembering import (
    BEFORE,
    MEMORY,
    remembered_digests,
    remembered_in,
)
from lc_assets.vocabulary import Shard
from lc_assets_tests.builders import (
    SNAPSHOTS,
    TAGS,
    deduplication,
    made_up_text,
    recipe_file,
    tiny_context,
    tiny_upstream,
    write_shard,
)
from lc_assets_tests.faults import digests
from lc_assets_tests.withdrawing import record_of

OLD, NEW = SNAPSHOTS
LENGTH = 300
STAGE = withdrawing.STAGE


def of(snapshot: str, line: int) -> str:
    return Shard.parse(f"{snapshot}/{TAGS[0]}").document_id(line)


@dataclass(frozen=True)
class History:
    """A lake of two snapshots with a shard each, whose upstream, lists and recipe change."""

    context: BuildContext
    folder: Path

    @classmethod
    def begin(cls, folder: Path, **changes: Any) -> "History":
        tiny_upstream(folder / "upstream", tags=TAGS[:1])
        context = tiny_context(
            folder,
            upstream=folder / "upstream",
            **(deduplication(signatures="computed") | changes),
        )
        history = cls(context, folder)
        for name in ("withdrawn", "reinstated"):
            history.say(name)
        return history.changed(
            "withdrawn_documents",
            lists=(str(folder / "withdrawn.csv"),),
            reinstated=(str(folder / "reinstated.csv"),),
        )

    def say(self, name: str, *entries: tuple[str, str]) -> None:
        lines = [f"{kind},{value},asked for,2026-03-01" for kind, value in entries]
        text = "\n".join([",".join(COLUMNS), *lines, ""])
        (self.folder / f"{name}.csv").write_text(text)

    def put(self, snapshot: str, texts: list[Any], *, duplicates=()) -> None:
        """Write the shard: texts with address and digest of the snapshot and line, or records."""
        shard = Shard.parse(f"{snapshot}/{TAGS[0]}")
        records = [
            record_of(shard, line, text) if isinstance(text, str) else text
            for line, text in enumerate(texts)
        ]
        write_shard(self.folder / "upstream", shard, records, duplicates=duplicates)

    def changed(self, section: str, **settings: Any) -> "History":
        recipe = self.context.recipe
        found = msgspec.structs.replace(getattr(recipe, section), **settings)
        recipe = msgspec.structs.replace(recipe, **{section: found})
        return replace(self, context=replace(self.context, recipe=recipe))

    def build(self) -> dict[str, Built]:
        recipe = msgspec.structs.replace(self.context.recipe, target="token_grid")
        context = replace(self.context, recipe=recipe)
        built = {
            f"{stage.name}/{key}": stage.build(context, key)
            for stage in STAGES
            if stage.name in needed_by(recipe)
            for key in keys_of(stage, recipe, SNAPSHOTS)
        }
        assert [
            one.name for one in plan(self.lake, recipe, SNAPSHOTS) if one.status != "current"
        ] == []
        for snapshot in SNAPSHOTS:
            grid = built[f"token_grid/{snapshot}"].published
            found = nothing_withdrawn_is_served(self.lake, recipe, grid)
            assert found.passed, found.message
        return built

    @property
    def lake(self) -> Lake:
        return self.context.lake

    @property
    def table(self):
        return self.lake.partition(STAGE.name).require()

    def withdrawn(self) -> dict[str, str]:
        """How the withdrawn documents were found, by id."""
        return {line["id"]: line["how"] for line in withdrawing.withdrawn_lines(self.table)}

    def served_now(self) -> set[str]:
        """What is served after a build."""
        self.build()
        return self.served()

    def served(self) -> set[str]:
        grids = self.lake.published("token_grid").values()
        return {row["id"] for grid in grids for row in rows_table(grid).to_pylist()}


@pytest.fixture
def texts() -> list[str]:
    """Three unlike texts, and the first one with a word more."""
    words = made_up_text(np.random.default_rng(3), n_words=3 * LENGTH).split()
    parts = [" ".join(words[start : start + LENGTH]) for start in range(0, 3 * LENGTH, LENGTH)]
    return [*parts, f"{parts[0]} more"]


@pytest.fixture
def history(tmp_path, texts):
    """The old snapshot has the first two texts, the new one the longer first and the third."""
    found = History.begin(tmp_path)
    found.put(OLD, texts[:2])
    found.put(NEW, [texts[3], texts[2]])
    return found


def test_a_copy_stays_away_when_the_listed_document_is_dropped(history):
    """The listed text of 300 words falls below the least number, its copy of 301 does not."""
    history.say("withdrawn", ("document", of(OLD, 0)))
    history.build()
    assert history.withdrawn() == {of(OLD, 0): "listed", of(NEW, 0): "near duplicate"}
    history = history.changed("filtered_documents", min_words=LENGTH + 1)
    history.build()
    assert history.withdrawn() == {of(NEW, 0): BEFORE}
    assert history.served() == set()
    history.changed("filtered_documents", min_words=LENGTH).build()
    assert history.withdrawn() == {of(OLD, 0): "listed", of(NEW, 0): "near duplicate"}


def test_a_dropped_document_is_listed_for_its_copies(history, texts):
    """The source calls the listed one a duplicate; the other snapshot serves the same page."""
    record = record_of(Shard.parse(f"{OLD}/{TAGS[0]}"), 0, texts[0])
    history.put(OLD, [record, texts[1]], duplicates=[0])
    history.put(NEW, [texts[2], record])
    for entry in (("document", of(OLD, 0)), ("digest", record.digest), ("url", record.url)):
        history.say("withdrawn", entry)
        history.build()
        assert history.withdrawn().keys() == {of(NEW, 1)}, entry
        assert history.served() == {of(OLD, 1), of(NEW, 0)}
        assert history.table.receipt.counts.extra["entries that find nothing"] == 0
        shutil.rmtree(history.lake.root / STAGE.name)


def test_a_document_that_moves_to_another_line_stays_withdrawn(history, texts):
    """What stands at its id now goes too, and the check names it, until the entry names a digest."""
    shard = Shard.parse(f"{OLD}/{TAGS[0]}")
    first, second = (record_of(shard, line, text) for line, text in enumerate(texts[:2]))
    history.put(NEW, [texts[2]])
    history.say("withdrawn", ("document", of(OLD, 0)))
    history.build()
    assert history.served() == {of(OLD, 1), of(NEW, 0)}
    history.put(OLD, [second, first])
    built = history.build()[f"{STAGE.name}/all"]
    assert history.withdrawn() == {of(OLD, 0): "listed", of(OLD, 1): BEFORE}
    assert history.served() == {of(NEW, 0)}
    warnings = [one.check for one in built.findings if not one.passed]
    assert warnings == ["every_listed_document_is_where_it_was"]
    assert built.counts.extra[withdrawing.MOVED] == 1
    history.say("withdrawn", ("digest", first.digest))
    history.say("reinstated", ("digest", second.digest))
    built = history.build()[f"{STAGE.name}/all"]
    assert history.served() == {of(OLD, 0), of(NEW, 0)}
    assert all(one.passed for one in built.findings)


def test_with_stays_the_moved_document_is_found_by_its_address(history, texts):
    shard = Shard.parse(f"{OLD}/{TAGS[0]}")
    first, second = (record_of(shard, line, text) for line, text in enumerate(texts[:2]))
    elsewhere = msgspec.structs.replace(first, url="https://www.elsewhere.example.org/")
    history = history.changed("withdrawn_documents", same_content="stays")
    history.put(NEW, [texts[2], elsewhere])
    history.say("withdrawn", ("document", of(OLD, 0)))
    history.build()
    assert history.served() == {of(OLD, 1), of(NEW, 0), of(NEW, 1)}
    history.put(OLD, [second, first])
    history.build()
    assert history.withdrawn() == {of(OLD, 0): "listed", of(OLD, 1): BEFORE}
    history.say("withdrawn", ("document", of(OLD, 0)), ("url", elsewhere.url))
    history.build()
    history.say("withdrawn")
    history.build()  # of one page at two addresses both are remembered
    assert history.withdrawn() == dict.fromkeys([of(OLD, 0), of(OLD, 1), of(NEW, 1)], BEFORE)


def test_versions_that_served_a_dropped_document_are_purged(history):
    """It is found in their tables by its digest; what is published now holds none. Old working
    material goes too: it still holds the text.
    """
    old = {name: built.published for name, built in history.build().items()}
    history = history.changed("filtered_documents", min_words=LENGTH + 1)
    history.say("withdrawn", ("document", of(OLD, 0)))
    history.build()
    assert history.withdrawn() == {of(NEW, 0): "near duplicate"}
    digests = remembered_digests(history.table)
    held = {one.name for one in versions_with(history.lake, [], digests) if not one.is_current}
    wanted = {f"{stage}/{OLD}" for stage in ("token_documents", "token_grid")}
    for snapshot in SNAPSHOTS:
        wanted |= {f"filtered_documents/{snapshot}", f"document_keys/{snapshot}"}
    assert wanted == {name.rpartition("/")[0] for name in held}
    carry_out(history.lake, plan_purge(history.lake, [], digests=digests))
    assert not any(old[name].home.is_dir() for name in wanted)
    assert list(versions_with(history.lake, [], digests)) == []


@pytest.mark.parametrize("change", ["entry", "shard", "threshold", "near"])
def test_copies_stay_withdrawn(history, texts, change):
    """When the entry or the listed document is gone, or nothing finds the copy any more."""
    history.say("withdrawn", ("document", of(OLD, 0)))
    history.build()
    if change == "entry":
        history.say("withdrawn")
    elif change == "shard":
        history.put(OLD, [texts[1]])
    elif change == "threshold":
        history = history.changed("removed_documents", threshold=1.0)
    else:
        history = history.changed("near_duplicate_pairs", near=False)
    history.build()
    assert of(NEW, 0) not in history.served()
    assert of(NEW, 1) in history.served()


def test_near_duplicates_of_what_is_remembered_go_too(history, texts):
    """The entry is gone; a copy arrives later of the document that it named."""
    history.put(NEW, [texts[2]])
    history.say("withdrawn", ("document", of(OLD, 0)))
    history.build()
    history.say("withdrawn")
    history.put(NEW, [texts[2], texts[3]])
    history.build()
    assert history.withdrawn() == {of(OLD, 0): BEFORE, of(NEW, 1): "near duplicate"}


def test_what_is_reinstated_is_served_again(history):
    """By the entry that withdrew it, with its copies; or by itself, alone, beside the entry."""
    history.build()
    before = history.served()
    history.say("withdrawn", ("document", of(OLD, 0)), ("domain", "site1.example.org"))
    history.build()
    assert history.served() == set()
    history.say("withdrawn", ("domain", "site1.example.org"))
    history.say("reinstated", ("document", of(OLD, 0)))
    history.build()
    gone = {of(OLD, 1), of(NEW, 1)}
    assert history.served() == before - gone
    history.say("reinstated", ("document", of(OLD, 0)), ("document", of(NEW, 1)))
    history.build()
    assert history.served() == before - {of(OLD, 1)}
    assert [
        one.sentence
        for one in Audit(history.lake, *named_by(history.context.recipe.withdrawn_documents)).run()
        if one.wrong and one.what == "withdrawn"
    ] == []


def test_a_recipe_without_lists_does_not_forget(history):
    history.say("withdrawn", ("document", of(OLD, 0)))
    history.build()
    bare = history.changed("withdrawn_documents", lists=(), reinstated=())
    with pytest.raises(BadInput, match="2 withdrawn contents are remembered, but the recipe names"):
        STAGE.build(bare.context, "all")
    history.say("reinstated", ("document", of(OLD, 0)))
    history.changed("withdrawn_documents", lists=()).build()
    bare.build()
    assert of(OLD, 0) in history.served()


def test_an_entry_of_a_required_list_must_match(history, texts):
    path = str(history.folder / "withdrawn.csv")
    history = history.changed("withdrawn_documents", required_lists=(path,))
    history.say("withdrawn", ("document", of(OLD, 0)), ("url", "https://nobody.invalid/page"))
    with pytest.raises(BadInput, match=r"withdrawn.csv, line 3: url https://nobody.invalid/page"):
        history.build()
    history.say("withdrawn", ("document", of(OLD, 1)))
    history.build()
    history.put(OLD, [texts[0]])
    history.build()  # it matched once
    with pytest.raises(BadInput, match="not one of the lists"):
        history.changed("withdrawn_documents", required_lists=("other.csv",)).build()


def test_a_build_from_nothing_with_the_memory_gives_the_same_bytes(history, tmp_path):
    """After the listed document was dropped; the memory is the version's folder."""
    history.say("withdrawn", ("document", of(OLD, 0)))
    history.build()
    history = history.changed("filtered_documents", min_words=LENGTH + 1)
    built = history.build()
    fresh = replace(history, context=replace(history.context, lake=Lake(tmp_path / "fresh")))
    shutil.copytree(history.lake.root / STAGE.name, fresh.lake.root / STAGE.name)
    assert digests(fresh.build()) == digests(built)


def test_the_memory_survives_damage_and_prunes(history, tmp_path):
    """The version is built again from the one that it continued, which a prune keeps; a damaged
    memory is never continued.
    """
    history.say("withdrawn", ("document", of(OLD, 0)))
    history.build()
    first = history.table
    history = history.changed("filtered_documents", min_words=LENGTH + 1)
    history.build()
    last = history.table
    carry_out(history.lake, plan_pruning(history.lake))
    assert f"{first.name}/{first.version}" in needed_versions(history.lake)
    inputs = first.receipt.fingerprint.inputs.items()
    assert len(list(history.lake.with_digests(inputs))) < len(inputs)
    (last.home / MEMORY).unlink()
    history.build()
    assert history.table.version == last.version
    (last.home / "receipt.json").write_text("{}")
    history.build()
    assert (history.table.version, history.table.digest) == (last.version, last.digest)
    content = (last.home / MEMORY).read_bytes()
    (last.home / MEMORY).write_bytes(content[:-9] + b"\0" * 9)
    history.say("withdrawn")
    with pytest.raises(DamagedInput):
        STAGE.build(history.context, "all")


def test_the_check_finds_what_was_forgotten(history, tmp_path):
    history.say("withdrawn", ("document", of(OLD, 0)))
    history.build()
    history.say("withdrawn", ("document", of(OLD, 1)))
    history.build()
    folder = shutil.copytree(history.table.folder, tmp_path / "copy")
    lines = remembered_in(history.table).to_pylist()
    assert len(lines) == 3
    for kept in (lines, lines[1:]):
        write_table(folder / MEMORY, pa.Table.from_pylist(kept, schema=REMEMBERED))
        found = replace(check_input_of(history.lake, history.table), folder=folder)
        check = withdrawing.what_was_withdrawn_is_remembered(found)
        assert check.passed == (kept == lines)


@pytest.mark.parametrize("n_words", [8, 200])
def test_documents_that_contain_a_passage_are_withdrawn(history, texts, n_words):
    """Whatever its case, punctuation and white space; a text with a word of it changed stays. Its
    documents stay withdrawn when the passage is taken out of the list.
    """
    words = texts[2].split()
    passage = " ".join(words[50 : 50 + n_words])
    wrapped = "\n".join([*words[:51], words[51].upper(), *words[52:]])
    changed = " ".join([*words[: 50 + n_words - 1], "otherwise", *words[50 + n_words :]])
    history.put(OLD, [texts[0], f"Somebody wrote: «{wrapped}!»"])
    history.put(NEW, [texts[1], changed])
    history = history.changed("withdrawn_documents", same_content="stays")
    keys = history.build()[f"document_keys/{NEW}"].published
    history.say("withdrawn", ("passage", passage.replace(",", "")))
    built = history.build()
    assert history.withdrawn() == {of(OLD, 1): "listed"}
    assert history.served() == {of(OLD, 0), of(NEW, 0), of(NEW, 1)}
    history.say("withdrawn")
    assert history.build()[f"document_keys/{NEW}"].published.version == keys.version
    assert built[f"document_keys/{NEW}"].published.version != keys.version
    assert history.withdrawn() == {of(OLD, 1): BEFORE}


def test_a_short_passage_is_refused(history):
    history.say("withdrawn", ("passage", "of seven words that stand in many"))
    with pytest.raises(BadInput, match=r"withdrawn.csv, line 2: a passage of fewer than 8 words"):
        history.build()
    history.say("withdrawn", ("passage", "- - - - - of few words"))
    with pytest.raises(BadInput, match="a passage to withdraw has fewer than 8 words"):
        history.build()


@pytest.mark.parametrize(
    ("near", "kind"),
    [(True, "document"), (True, "digest"), (False, "document"), (False, "url")],
)
def test_a_near_copy_of_a_dropped_document_goes(history, texts, near, kind):
    """Also where near duplicates are not looked for: the text is read from the source again."""
    history = history.changed("near_duplicate_pairs", near=near)
    history.put(OLD, texts[:2], duplicates=[0])
    record = record_of(Shard.parse(f"{OLD}/{TAGS[0]}"), 0, texts[0])
    value = {"document": of(OLD, 0), "digest": record.digest, "url": record.url}[kind]
    history.say("withdrawn", (kind, value))
    history.build()
    assert history.withdrawn() == {of(NEW, 0): "near duplicate"}
    assert history.served() == {of(OLD, 1), of(NEW, 1)}
    history.put(OLD, texts[1:2])
    history.build()
    assert history.withdrawn()[of(NEW, 0)] == BEFORE


def test_near_copies_are_found_where_near_duplicates_are_not_looked_for(history):
    """Of a document that passes the filter; not with ``same_content = "stays"``."""
    history = history.changed("near_duplicate_pairs", near=False)
    history.say("withdrawn", ("document", of(OLD, 0)))
    assert of(NEW, 0) in history.changed("withdrawn_documents", same_content="stays").served_now()
    assert of(NEW, 0) not in history.served_now()


@pytest.mark.parametrize("near", [True, False])
@pytest.mark.parametrize("measure", ["jaccard", "containment"])
def test_near_copies_are_compared_by_the_measure_of_the_chain(history, texts, near, measure):
    """A page that holds a dropped one and as many words again: half of all shingles, all of the
    shorter one's.
    """
    history = history.changed("removed_documents", prefer=("longest",))
    history = history.changed("near_duplicate_pairs", near=near, measure=measure)
    history.put(OLD, texts[:2], duplicates=[0])
    history.put(NEW, [f"{texts[0]} {texts[2]}"])
    history.say("withdrawn", ("document", of(OLD, 0)))
    history.build()
    assert history.withdrawn() == ({} if measure == "jaccard" else {of(NEW, 0): "near duplicate"})


@pytest.mark.parametrize(("most", "near"), [(2, True), (2, False), (1, False)])
def test_near_copies_of_the_dropped_pages_of_a_domain_go(history, texts, monkeypatch, most, near):
    """Unless it has more of them than texts are read again for."""
    monkeypatch.setattr(matching, "MOST_OF_DOMAIN", most)
    history = history.changed("near_duplicate_pairs", near=near)
    history.put(OLD, texts[:2], duplicates=[0])
    history.put(NEW, [texts[2], texts[3]])
    history.say("withdrawn", ("domain", "site0.example.org"))
    history.build()
    assert history.withdrawn() == {of(NEW, 0): "listed"} | (
        {of(NEW, 1): "near duplicate"} if most == 2 else {}
    )
    assert history.served() == {of(OLD, 1)} | ({of(NEW, 1)} if most == 1 else set())


def test_a_dry_run_names_near_copies_of_a_dropped_document(history, texts):
    """If the source is there; otherwise it says that they are not known."""
    history.put(OLD, texts[:2], duplicates=[0])
    history.build()
    recipe = recipe_file(history.folder / "recipe.toml", history.context.recipe)
    words = ["withdraw", str(history.lake.root), "--document", of(OLD, 0), "--reason", "asked for"]
    words += ["--dry-run", "--recipe", str(recipe), "--upstream"]
    said = CliRunner().invoke(app, [*words, str(history.folder / "upstream")]).stdout
    assert of(NEW, 0) in said
    assert "near duplicate" in said
    nowhere = CliRunner().invoke(app, [*words, str(history.folder / "nowhere")])
    assert "no filtered document matches" in nowhere.stdout, nowhere
