"""A new version takes over the shards that did not change: the bytes are those of a build from
nothing, and nothing else moves.
"""

import errno
import importlib
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from lc_assets.builds.settings.common import DecontaminationSettings
from lc_assets.builds.shard_runs import log_shards_to
from lc_assets.builds.sharding import SHARDS_FILE, fingerprints, records_of, shards_of
from lc_assets.builds.stage import (
    BuildContext,
    Built,
)
from lc_assets.lake.versions import Published
from lc_assets.publishing import publish_linked
from lc_assets.sources import redpajama_v2
from lc_assets.stages.catalogue import STAGES, stage_named
from lc_assets.stages.decontamination.contaminated_documents import COMMON_FILE, INDEX, ITEMS_FILE
from lc_assets.stages.deduplication import removal_lines
from lc_assets.vocabulary import Shard, parse_snapshot
from lc_assets_tests.builders import (
    N_LONG,
    SNAPSHOTS,
    deduplication,
    tiny_context,
    tiny_documents,
    tiny_upstream,
    write_shard,
)
from lc_assets_tests.faults import (
    BEFORE_TOKENS,
    at_upstream,
    build_snapshot,
    copied,
    file_of,
    flipped,
    with_policies,
)
from lc_assets_tests.killing import Killer

KEY = SNAPSHOTS[0]
TAGS = tuple(f"{number:04d}/en_{bucket}" for number in range(2) for bucket in ("head", "middle"))
IN_SHARDS = (
    "filtered_documents",
    "document_signatures",
    "contaminated_documents",
    "token_documents",
)
TO_TOKENS = (*BEFORE_TOKENS, "token_documents")


@pytest.fixture(scope="module")
def upstream(tmp_path_factory) -> Path:
    return tiny_upstream(tmp_path_factory.mktemp("upstream"), snapshots=[KEY], tags=TAGS)


@pytest.fixture(scope="module")
def context(tmp_path_factory, upstream) -> BuildContext:
    """A context that looks for an evaluation item, so that every stage that falls into shards does
    something.
    """
    folder = tmp_path_factory.mktemp("context")
    evals = folder / "evals.txt"
    evals.write_text(
        "who ever saw seven zebras juggle nine violins on a quiet frozen harbour before the "
        "morning came\n"
    )
    plain = tiny_context(
        folder,
        upstream=upstream,
        contaminated_documents=DecontaminationSettings(against=(str(evals),)),
    )
    return with_policies(plain, missing_duplicates="treat_as_unique")


@pytest.fixture(scope="module")
def standing(context) -> dict[str, Built]:
    """The snapshot up to its tokens, built once; a test that changes it copies the lake."""
    return build_snapshot(context, KEY, TO_TOKENS)


@dataclass(frozen=True, slots=True)
class ChangedLake:
    """A copy of the standing lake over a copy of its upstream, to be changed."""

    context: BuildContext
    upstream: Path

    def change(self, tag: str, seed: int = 7) -> None:
        """Give a shard other documents."""
        shard = Shard.parse(f"{KEY}/{tag}")
        write_shard(self.upstream, shard, tiny_documents(shard, seed=seed), duplicates=[N_LONG + 3])

    def list_shards(self, tags: Sequence[str]) -> None:
        redpajama_v2.write_listing(
            self.upstream / redpajama_v2.listing_path(parse_snapshot(KEY), "en"),
            [Shard.parse(f"{KEY}/{tag}") for tag in tags],
        )

    def build(self, stages: Sequence[str] = TO_TOKENS) -> dict[str, Built]:
        return build_snapshot(self.context, KEY, stages)

    def from_nothing(self, folder: Path, stages: Sequence[str] = TO_TOKENS) -> dict[str, Built]:
        return build_snapshot(
            at_upstream(self.context, self.upstream, folder / "nothing"), KEY, stages
        )

    def version(self, stage: str) -> Published:
        return self.context.lake.partition(stage, KEY).require()


@pytest.fixture
def changed(tmp_path, context, standing, upstream) -> ChangedLake:
    return a_place(tmp_path, context, upstream)


def a_place(folder: Path, context: BuildContext, upstream: Path) -> ChangedLake:
    there = copied(upstream, folder / "upstream")
    shutil.copytree(context.lake.root, folder / "lake")
    return ChangedLake(at_upstream(context, there, folder / "lake"), there)


def what_was_done(built: Mapping[str, Built]) -> dict[str, tuple[int, int]]:
    """Shards computed and taken over, of the stages that fall into shards; a version that was found
    finished did neither.
    """
    measured = {
        name: built[name].published.receipt.measured
        for name in IN_SHARDS
        if name in built and not built[name].reused
    }
    return {
        name: (int(found["shards_computed"]), int(found["shards_reused"]))
        for name, found in measured.items()
    }


def assert_as_from_nothing(built: Mapping[str, Built], scratch: Mapping[str, Built]) -> None:
    """Every file of every version is the same, the notes on shards too, and so are counts and names
    of versions.
    """
    for name, found in built.items():
        ours, theirs = found.published.receipt, scratch[name].published.receipt
        assert ours.files == theirs.files, name
        assert (ours.digest, ours.counts, ours.fingerprint) == (
            theirs.digest,
            theirs.counts,
            theirs.fingerprint,
        ), name
        assert found.published.damage() == []


def test_one_changed_shard_is_done_and_the_others_are_taken_over(changed, tmp_path):
    """Four shards, one changed upstream: each stage does one and takes three, and the files are
    those of a build from nothing.
    """
    changed.change(TAGS[1])
    built = changed.build()
    assert what_was_done(built) == dict.fromkeys(IN_SHARDS, (1, 3))
    assert_as_from_nothing(built, changed.from_nothing(tmp_path))


def test_two_workers_take_over_and_compute_the_same(changed, tmp_path):
    """Links and work in two processes: the same versions."""
    changed.change(TAGS[0])
    there = replace(
        changed.context,
        executor=replace(
            changed.context.executor, workers=2, preload=("lc_assets.stages.catalogue",)
        ),
    )
    built = build_snapshot(there, KEY, ["raw_snapshot", "filtered_documents"])
    assert what_was_done(built) == {"filtered_documents": (1, 3)}
    assert_as_from_nothing(
        built, changed.from_nothing(tmp_path, ["raw_snapshot", "filtered_documents"])
    )


def test_files_are_shared_and_the_older_version_is_as_it_was(changed):
    """What was taken over is one file with two names; bytes, sizes and times of the older version
    have not moved.
    """
    before = {stage: changed.version(stage) for stage in IN_SHARDS}
    looked = {
        path: (path.stat().st_mtime_ns, path.stat().st_size)
        for old in before.values()
        for path in old.folder.rglob("*")
    }
    changed.change(TAGS[1])
    changed.build()
    for stage, old in before.items():
        new = changed.version(stage)
        assert new.folder != old.folder
        assert old.damage() == []
        shared = [
            path.name
            for path in new.folder.iterdir()
            if (old.folder / path.name).exists() and path.samefile(old.folder / path.name)
        ]
        assert {name.partition(".")[0] for name in shared} >= {
            tag.replace("/", "-") for tag in TAGS if tag != TAGS[1]
        }
        assert not any(name.startswith("0000-en_middle") for name in shared)
    assert looked == {
        path: (path.stat().st_mtime_ns, path.stat().st_size)
        for old in before.values()
        for path in old.folder.rglob("*")
    }


def test_a_shard_added_and_one_left_out_cost_only_themselves(changed, tmp_path):
    """Upstream lists another shard, and one no longer: one is done, three are taken, the fourth is
    nowhere.
    """
    shard = Shard.parse(f"{KEY}/0009/en_head")
    write_shard(changed.upstream, shard, tiny_documents(shard, seed=3))
    changed.list_shards([*TAGS[1:], "0009/en_head"])
    built = changed.build()
    assert what_was_done(built) == dict.fromkeys(IN_SHARDS, (1, 3))
    assert_as_from_nothing(built, changed.from_nothing(tmp_path))


def test_documents_that_no_longer_go_on_cost_their_own_shard(changed, tmp_path, monkeypatch):
    """A removal of one document: its shard is tokenized again, the others are taken over."""
    victim = f"{KEY}/{TAGS[2]}.json.gz/1"
    monkeypatch.setattr(removal_lines, "contaminated_ids", lambda _: {victim: ("an item", 1.0)})
    recipe = msgspec.structs.replace(
        changed.context.recipe,
        **deduplication(changed.context.recipe, threshold=0.9),
    )
    there = replace(changed.context, recipe=recipe)
    built = build_snapshot(there, KEY, ["removed_documents", "token_documents"])
    assert built["removed_documents"].counts.dropped == {"contaminated": 1}
    assert what_was_done(built) == {"token_documents": (1, 3)}
    scratch = at_upstream(there, changed.upstream, tmp_path / "nothing")
    assert_as_from_nothing(built, build_snapshot(scratch, KEY))


def test_a_setting_that_changes_nothing_behind_stops_there(changed):
    """Another threshold that keeps the same documents: the filter is done again as a whole, what
    reads it is found finished.
    """
    filtering = msgspec.structs.replace(changed.context.recipe.filtered_documents, min_words=41)
    there = replace(
        changed.context,
        recipe=msgspec.structs.replace(changed.context.recipe, filtered_documents=filtering),
    )
    built = build_snapshot(there, KEY, TO_TOKENS)
    assert what_was_done(built) == {"filtered_documents": (4, 0)}


def test_an_older_version_than_the_current_one_gives_its_shards_too(changed):
    """Changed, changed again, and one of both changes taken back: each shard comes from the version
    that has it.
    """
    changed.change(TAGS[0], seed=5)
    changed.build(["raw_snapshot", "filtered_documents"])
    changed.change(TAGS[1], seed=6)
    changed.change(TAGS[0], seed=8)
    assert what_was_done(changed.build(["raw_snapshot", "filtered_documents"])) == {
        "filtered_documents": (2, 2)
    }
    changed.change(TAGS[0], seed=5)
    assert what_was_done(changed.build(["raw_snapshot", "filtered_documents"])) == {
        "filtered_documents": (0, 4)
    }


@pytest.mark.parametrize(
    "module",
    [
        "documents.filtered_documents",
        "deduplication.document_signatures",
        "decontamination.contaminated_documents",
        "tokens.token_documents",
    ],
)
def test_nothing_is_taken_over_by_another_code_version(changed, module, monkeypatch):
    """Raised by hand because the output changes: every shard is done."""
    home = importlib.import_module(f"lc_assets.stages.{module}")
    monkeypatch.setattr(home, "STAGE", replace(home.STAGE, code_version="next"))
    assert what_was_done(build_snapshot(changed.context, KEY, [home.STAGE.name])) == {
        home.STAGE.name: (4, 0)
    }


def test_damage_does_not_spread(changed, tmp_path):
    """A file of the older version has rotted: its shard is done again, the new version is whole,
    and the check still names the old.
    """
    old = changed.version("filtered_documents")
    (victim,) = old.folder.glob("0001-en_head.documents.parquet")
    flipped(victim)
    changed.change(TAGS[1])
    built = changed.build(["raw_snapshot", "filtered_documents"])
    assert what_was_done(built) == {"filtered_documents": (2, 2)}
    assert_as_from_nothing(
        built, changed.from_nothing(tmp_path, ["raw_snapshot", "filtered_documents"])
    )
    assert [said.partition(":")[0] for said in old.damage()] == [victim.name]


@pytest.mark.parametrize(
    "spoil",
    [Path.unlink, flipped, lambda path: path.write_bytes(b"{}\n")],
    ids=["gone", "flipped", "no records"],
)
def test_notes_that_are_not_as_published_are_not_believed(changed, spoil):
    """The notes on shards decide what is taken over, so they count only as the receipt has them."""
    spoil(changed.version("filtered_documents").folder / SHARDS_FILE)
    changed.change(TAGS[1])
    assert what_was_done(changed.build(["raw_snapshot", "filtered_documents"])) == {
        "filtered_documents": (4, 0)
    }


def test_where_no_link_can_be_made_files_are_copied(changed, tmp_path, monkeypatch):
    """Another file system, or one without links: the same bytes, in files of their own."""

    def refuse(self, target):
        raise OSError(errno.EXDEV, "Invalid cross-device link")

    monkeypatch.setattr(Path, "hardlink_to", refuse)
    old = changed.version("filtered_documents")
    changed.change(TAGS[1])
    built = changed.build(["raw_snapshot", "filtered_documents"])
    assert what_was_done(built) == {"filtered_documents": (1, 3)}
    assert_as_from_nothing(
        built, changed.from_nothing(tmp_path, ["raw_snapshot", "filtered_documents"])
    )
    name = "0001-en_head.documents.parquet"
    assert not (built["filtered_documents"].published.folder / name).samefile(old.folder / name)


def test_linking_over_a_file_leaves_one_whole_file_and_no_draft(tmp_path):
    """The same file twice, another file's place, and a place in use: always the source's bytes."""
    (tmp_path / "source").write_bytes(b"new")
    for before in (None, b"old"):
        path = tmp_path / "path"
        path.unlink(missing_ok=True)
        if before is not None:
            path.write_bytes(before)
        for _ in range(2):
            publish_linked(tmp_path / "source", path)
            assert path.read_bytes() == b"new"
    assert sorted(found.name for found in tmp_path.iterdir()) == ["path", "source"]


def kill_while_taking_over(
    changed: ChangedLake, folder: Path, stage: str, moments: Callable[[int], Iterable[int]]
) -> None:
    """Kill the stage's build at each of these flushes; look, run it again, look."""
    changed.change(TAGS[1])
    before_it = TO_TOKENS[: TO_TOKENS.index(stage)]
    changed.build(before_it)
    scratch = changed.from_nothing(folder, (*before_it, stage))
    old = changed.version(stage)
    with Killer(changed.context) as killer:
        last = killer.count(stage, KEY)
        new = changed.version(stage)
        for kill_at in moments(last):
            shutil.rmtree(new.folder)
            changed.context.lake.partition(stage, KEY).point_at(old)
            assert killer.kill(stage, KEY, kill_at)
            assert changed.version(stage).damage() == []
            assert changed.version(stage).folder in (old.folder, new.folder)
            assert_as_from_nothing(changed.build([stage]), scratch)
            assert old.damage() == []
            assert not list(new.folder.parent.rglob(".staging-*"))


def test_a_kill_while_taking_over_leaves_the_old_or_the_new(changed, tmp_path):
    """SIGKILL here and there: the old version stands until the new one does, a rerun ends with the
    bytes of a build from nothing.
    """
    kill_while_taking_over(
        changed, tmp_path, "token_documents", lambda last: sorted({1, 2, last // 2, last - 2, last})
    )


@pytest.mark.slow
@pytest.mark.parametrize("stage", IN_SHARDS)
def test_a_kill_anywhere_while_taking_over_leaves_the_old_or_the_new(changed, tmp_path, stage):
    """At every flush."""
    kill_while_taking_over(changed, tmp_path, stage, lambda last: range(1, last + 1))


changes = st.fixed_dictionaries(
    {
        "changed": st.sets(st.sampled_from(TAGS)),
        "listed": st.sets(st.sampled_from(TAGS), min_size=1),
        "without": st.sets(st.sampled_from(TAGS[:2])),
    }
)


@given(change=changes)
@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_change_upstream_gives_the_bytes_of_a_build_from_nothing(
    tmp_path_factory, context, standing, upstream, change
):
    """Shards changed, left out, robbed of their lists of duplicates, in any combination: as many
    are done as were touched.
    """
    folder = tmp_path_factory.mktemp("any")
    changed = a_place(folder, context, upstream)
    for tag in change["changed"]:
        changed.change(tag)
    for tag in change["without"]:
        file_of(changed.upstream, "duplicates", f"{KEY}/{tag}").unlink()
    changed.list_shards(sorted(change["listed"]))
    stages = ("raw_snapshot", "filtered_documents", "document_signatures")
    built = changed.build(stages)
    assert_as_from_nothing(built, changed.from_nothing(folder, stages))
    touched = (change["changed"] | change["without"]) & change["listed"]
    if not built["filtered_documents"].reused:
        assert what_was_done(built)["filtered_documents"] == (
            len(touched),
            len(change["listed"] - touched),
        )
    shutil.rmtree(folder)


def test_what_a_shard_is_made_of_is_what_it_reads(changed):
    """Each part's identity and size, the settings, the code version, the shard's name: whatever
    changes gives another fingerprint.
    """
    stage, published = stage_named("filtered_documents"), changed.version("filtered_documents")
    made, inputs = (
        published.receipt.fingerprint,
        {f"raw_snapshot/{KEY}": changed.version("raw_snapshot")},
    )
    assert stage.sharding is not None
    reads = stage.sharding.reads(inputs, KEY)
    assert sorted(reads) == sorted(tag.replace("/", "-") for tag in TAGS)
    assert [read.what for read in reads["0000-en_head"]] == ["documents", "signals", "duplicates"]
    plain = fingerprints(made, reads)
    assert len(set(plain.values())) == len(TAGS)
    first = reads["0000-en_head"]
    variants = [
        fingerprints(msgspec.structs.replace(made, code_version="x"), reads),
        fingerprints(msgspec.structs.replace(made, params={"a": 1}), reads),
        fingerprints(msgspec.structs.replace(made, key="other"), reads),
        *(
            fingerprints(
                made,
                {
                    "0000-en_head": (
                        *first[:n],
                        msgspec.structs.replace(first[n], identity="x"),
                        *first[n + 1 :],
                    )
                },
            )
            for n in range(3)
        ),
        fingerprints(
            made, {"0000-en_head": (msgspec.structs.replace(first[0], n_bytes=1), *first[1:])}
        ),
    ]
    assert len({found["0000-en_head"] for found in [plain, *variants]}) == len(variants) + 1
    assert (
        fingerprints(msgspec.structs.replace(made, inputs={"raw_snapshot/x": "y"}), reads) == plain
    )


@pytest.mark.parametrize("stage", IN_SHARDS)
def test_each_version_notes_exactly_its_shards_and_their_files(changed, stage):
    """A line per shard with its files; every file of the version belongs to one shard, but for the
    notes, and the index and tables of all evaluation items.
    """
    published = changed.version(stage)
    records = records_of(published)
    assert sorted(records) == sorted(tag.replace("/", "-") for tag in TAGS)
    noted = [fact for record in records.values() for fact in record.files]
    assert len(noted) == len(set(noted))
    others = {fact.path.partition("/")[0] for fact in set(published.receipt.files) - set(noted)}
    of_all_shards = {INDEX, ITEMS_FILE, COMMON_FILE} if stage == "contaminated_documents" else set()
    assert others == {SHARDS_FILE} | of_all_shards
    inputs = {
        name: changed.version(name.partition("/")[0])
        for name in published.receipt.fingerprint.inputs
    }
    found = shards_of(
        stage_named(stage).sharding,
        published.receipt.fingerprint,
        inputs,
        changed.context.lake.partition(stage, KEY),
    )
    assert found.to_do == []
    assert {older.version.folder for older in found.older.values()} == {published.folder}
    assert found.n_bytes(found.made_of) > 0


def test_stages_that_read_by_shards_say_how():
    """Those whose tasks are shards of documents; the others are made of rows of all of them."""
    assert {found.name for found in STAGES if found.sharding} == {
        *IN_SHARDS,
        "clean_documents",
        "document_signals",
        "packing_tokens",
    }


def test_fates_are_told_one_line_a_shard(changed, tmp_path):
    """Computed and taken over, with counts, sizes, seconds and rates; nothing is written when
    nobody asked.
    """
    changed.change(TAGS[1])
    with log_shards_to(tmp_path / "log" / "shards.jsonl"):
        changed.build(["raw_snapshot", "filtered_documents"])
    changed.build(["document_signatures"])
    lines = [
        msgspec.json.decode(line)
        for line in (tmp_path / "log" / "shards.jsonl").read_bytes().splitlines()
    ]
    assert {
        line["shard"]: line["outcome"] for line in lines if line["stage"] == "filtered_documents"
    } == {
        "0000-en_head": "reused",
        "0000-en_middle": "computed",
        "0001-en_head": "reused",
        "0001-en_middle": "reused",
    }
    (computed,) = [
        line
        for line in lines
        if line["stage"] == "filtered_documents" and line["outcome"] == "computed"
    ]
    assert computed["seen"] == computed["kept"] + sum(computed["dropped"].values()) == 12
    assert computed["bytes_read"] > 0
    assert computed["mb_per_second"] > 0
    assert {line["stage"] for line in lines} == {"filtered_documents"}


def test_a_stage_says_in_a_sentence_what_it_took_over(changed):
    """One sentence per stage, none when everything had to be done."""
    said: list[str] = []
    changed.change(TAGS[1])
    build_snapshot(
        replace(changed.context, say=said.append), KEY, ["raw_snapshot", "filtered_documents"]
    )
    assert said == [f"filtered_documents/{KEY}: 1 of 4 shards computed, 3 reused unchanged"]
