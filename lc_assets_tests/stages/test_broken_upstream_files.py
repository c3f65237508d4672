"""Files that upstream holds broken, or not at all: an error or a counted gap, as the policy says,
and nothing else.

Each fault hits one shard of three. Every test ends by mending the file: the rebuilt chain has the
digests of one that never saw the fault.
"""

from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lc_assets.builds.stage import BuildContext
from lc_assets.errors import CorruptFile, Mismatch
from lc_assets_tests.builders import SNAPSHOTS, TAGS, tiny_context, tiny_upstream
from lc_assets_tests.faults import (
    PER_SNAPSHOT,
    adds_up,
    build_snapshot,
    copied,
    cut_short,
    digests,
    edit_lines,
    emptied,
    file_of,
    finding,
    flipped,
    not_gzip,
    unpublished,
    with_policies,
)

SNAPSHOT = SNAPSHOTS[0]
TAG = f"{SNAPSHOT}/0000/en_middle"
JUDGED = ("raw_snapshot", "filtered_documents")
"""The stages that read upstream. Those after them see digests only, so equal digests here make
equal digests there.
"""


def gone(path: Path) -> None:
    """Remove the file."""
    path.unlink()


def other_columns(path: Path) -> None:
    """Write a table that is sound and not a list of duplicates."""
    pq.write_table(pa.table({"doc_id": ["2023-06/0000/en_middle.json.gz/1"], "digest": [7]}), path)


def of_another_shard(path: Path) -> None:
    """Write another shard's list of duplicates."""
    path.write_bytes(path.with_name("en_head.duplicates.parquet").read_bytes())


class Sound(NamedTuple):
    """An upstream without faults, and the digests of one snapshot's stages over it."""

    root: Path
    digests: dict[str, str]


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    root = tiny_upstream(tmp_path_factory.mktemp("sound"), snapshots=[SNAPSHOT])
    return Sound(
        root,
        digests(
            build_snapshot(tiny_context(tmp_path_factory.mktemp("never"), upstream=root), SNAPSHOT)
        ),
    )


@pytest.fixture
def context(tmp_path, sound):
    """A context over a copy of the upstream that may be spoiled."""
    return tiny_context(tmp_path, upstream=copied(sound.root, tmp_path / "upstream"))


def spoil(context: BuildContext, part: str, fault) -> None:
    fault(file_of(Path(context.upstream.root), part, TAG))


def mend(context: BuildContext, sound: Sound, part: str) -> None:
    file_of(Path(context.upstream.root), part, TAG).write_bytes(
        file_of(sound.root, part, TAG).read_bytes()
    )


def assert_stops(context: BuildContext, words: str) -> None:
    """`filtered_documents` raises CorruptFile with these words and publishes nothing; what
    `raw_snapshot` published is kept.
    """
    build_snapshot(context, SNAPSHOT, ["raw_snapshot"])
    with pytest.raises(CorruptFile, match=words):
        build_snapshot(context, SNAPSHOT, ["filtered_documents"])
    assert unpublished(context.lake, "filtered_documents")
    assert context.lake.partition("raw_snapshot", SNAPSHOT).require().damage() == []


def assert_leaves_out(context: BuildContext, reason: str) -> None:
    """One shard of three is left out, counted and named; what is kept of the others adds up."""
    built = build_snapshot(context, SNAPSHOT, JUDGED)
    filtered = built["filtered_documents"].counts
    assert (filtered.seen, filtered.kept) == (24, 18)
    assert filtered.dropped == {"duplicate": 2, "long_enough": 2, "symbols": 2}
    assert filtered.extra["shards"] == 3
    assert filtered.extra[f"shards skipped: {reason}"] == 1
    warned = finding(built["filtered_documents"], "every_shard_was_filtered")
    assert (warned.passed, warned.severity) == (False, "warning")
    assert warned.message == f"2 of 3 shards filtered; shards skipped: {reason} (1), such as {TAG}"
    assert not list(built["filtered_documents"].published.folder.glob("0000-en_middle*"))
    assert adds_up(built["filtered_documents"])


def assert_whole_again(context: BuildContext, sound: Sound, stages=JUDGED) -> None:
    built = build_snapshot(context, SNAPSHOT, stages)
    assert digests(built) == {name: sound.digests[name] for name in stages}
    assert (built["filtered_documents"].counts.seen, built["filtered_documents"].counts.kept) == (
        36,
        27,
    )
    assert (
        finding(built["filtered_documents"], "every_shard_was_filtered").message
        == "3 of 3 shards filtered"
    )


BROKEN = [
    ("documents", cut_short, "cut short after"),
    ("documents", emptied, "the file is empty, not even a gzip header"),
    ("documents", not_gzip, "not sound gzip after 0 lines"),
    ("documents", flipped, "(not sound gzip|cut short) after"),
    ("documents", gone, "is missing upstream"),
    ("signals", cut_short, "cut short after"),
    ("signals", emptied, "the file is empty, not even a gzip header"),
    ("signals", gone, "is missing upstream"),
    ("duplicates", cut_short, "not a readable Parquet file"),
    ("duplicates", emptied, "not a readable Parquet file"),
    ("duplicates", other_columns, "columns are .* expected strings named shard_id, doc_id, digest"),
    ("duplicates", of_another_shard, "found id .* is this another shard's file"),
    ("duplicates", gone, "is missing upstream"),
]
POLICY_OF = {
    "documents": "corrupt_documents",
    "signals": "missing_signals",
    "duplicates": "missing_duplicates",
}


@pytest.mark.parametrize(
    ("part", "fault", "words"), BROKEN, ids=lambda value: getattr(value, "__name__", None)
)
def test_a_broken_file_stops_the_stage_where_the_policy_is_fail(context, sound, part, fault, words):
    """The error names shard, part and damage; nothing is published; once the file is repaired,
    nothing is left of it.
    """
    strict = with_policies(context, **{POLICY_OF[part]: "fail"})
    spoil(strict, part, fault)
    assert_stops(strict, rf"{TAG} \({part}\): {words}")
    mend(strict, sound, part)
    assert_whole_again(strict, sound)


@pytest.mark.parametrize(
    ("part", "fault", "words"), BROKEN, ids=lambda value: getattr(value, "__name__", None)
)
def test_a_broken_file_leaves_its_shard_out_where_the_policy_is_to_skip(
    context, sound, part, fault, words
):
    """The shard is counted as skipped and named in a warning, the others are kept; repaired, all is
    whole.
    """
    lenient = with_policies(context, **{POLICY_OF[part]: "skip_shard"})
    spoil(lenient, part, fault)
    assert_leaves_out(lenient, f"{part} missing or broken")
    mend(lenient, sound, part)
    assert_whole_again(lenient, sound)


@pytest.mark.parametrize("fault", [gone, cut_short, emptied, other_columns, of_another_shard])
def test_without_a_list_of_duplicates_every_document_is_unique(context, sound, fault):
    """`treat_as_unique` covers a list that is missing and one that is broken: counted, and shown as
    a warning.
    """
    trusting = with_policies(context, missing_duplicates="treat_as_unique")
    spoil(trusting, "duplicates", fault)
    built = build_snapshot(trusting, SNAPSHOT, JUDGED)
    filtered = built["filtered_documents"].counts
    assert (filtered.seen, filtered.kept) == (36, 28)
    assert filtered.dropped == {"duplicate": 2, "long_enough": 3, "symbols": 3}
    assert filtered.extra["shards treated as unique"] == 1
    warned = finding(built["filtered_documents"], "every_shard_was_filtered")
    assert (warned.passed, warned.severity, warned.values["shards treated as unique"]) == (
        False,
        "warning",
        1,
    )
    assert "3 of 3 shards filtered; 1 of them without a list of duplicates" in warned.message
    assert adds_up(built["filtered_documents"])
    mend(trusting, sound, "duplicates")
    assert_whole_again(trusting, sound)


def test_a_list_that_breaks_off_is_not_used_in_part(context):
    """What could be read of a damaged list of duplicates plays no part: the counts are those of a
    list that is missing.
    """
    trusting = with_policies(context, missing_duplicates="treat_as_unique")
    lines = [f"{TAG}.json.gz/0", f"{TAG}.json.gz/1", f"{SNAPSHOT}/0001/en_head.json.gz/2"]
    columns = {"shard_id": [f"{TAG}.json.gz"] * 3, "doc_id": lines, "digest": ["x"] * 3}
    pq.write_table(
        pa.table(columns),
        file_of(Path(trusting.upstream.root), "duplicates", TAG),
        row_group_size=1,
    )
    built = build_snapshot(trusting, SNAPSHOT, JUDGED)
    assert built["filtered_documents"].counts.kept == 28
    assert built["filtered_documents"].counts.extra["shards treated as unique"] == 1


@pytest.mark.parametrize(
    ("part", "extra", "dropped"),
    [
        ("documents", None, {"documents missing": 1}),
        ("signals", "signals missing", {}),
        ("duplicates", "duplicates missing", {}),
    ],
)
def test_the_manifest_says_what_upstream_lacks(context, sound, part, extra, dropped):
    """A file that is not there is counted by `raw_snapshot` and shown as a warning, before
    anything is filtered.
    """
    spoil(context, part, gone)
    built = build_snapshot(context, SNAPSHOT, ["raw_snapshot"])["raw_snapshot"]
    assert built.counts.dropped == dropped
    assert (built.counts.seen, built.counts.kept, built.counts.extra["files"]) == (
        3,
        3 - len(dropped),
        8,
    )
    assert extra is None or built.counts.extra[extra] == 1
    warned = finding(built, "every_listed_file_is_there")
    assert (warned.passed, warned.severity) == (False, "warning")
    assert (
        warned.message
        == f"missing: 1 {part} files of 3 shards; `filtering` applies its policies to them"
    )
    mend(context, sound, part)
    assert (
        digests(build_snapshot(context, SNAPSHOT, ["raw_snapshot"]))["raw_snapshot"]
        == sound.digests["raw_snapshot"]
    )


@pytest.mark.parametrize("part", ["documents", "signals", "duplicates"])
@pytest.mark.parametrize("change", [gone, cut_short])
def test_a_file_that_changed_since_the_manifest_stops_the_stage(context, sound, part, change):
    """Whatever the policies: the manifest must be made again first, and then they apply."""
    build_snapshot(context, SNAPSHOT, ["raw_snapshot"])
    spoil(context, part, change)
    with pytest.raises(
        Mismatch,
        match="has changed since the manifest was made: "
        "materialize `raw_snapshot` of this snapshot again",
    ):
        build_snapshot(context, SNAPSHOT, ["filtered_documents"])
    assert unpublished(context.lake, "filtered_documents")
    assert_leaves_out(context, f"{part} missing or broken")
    mend(context, sound, part)
    assert_whole_again(context, sound)


def test_a_shard_without_documents_is_a_shard(context, sound):
    """An empty gzip is sound: nothing comes in, nothing is skipped, empty tables stand for it
    through the chain.
    """
    for part in ("documents", "signals"):
        edit_lines(file_of(Path(context.upstream.root), part, TAG), lambda _: [])
    built = build_snapshot(context, SNAPSHOT)
    assert (built["filtered_documents"].counts.seen, built["filtered_documents"].counts.kept) == (
        24,
        18,
    )
    assert (
        finding(built["filtered_documents"], "every_shard_was_filtered").message
        == "3 of 3 shards filtered"
    )
    assert sorted(
        path.name for path in built["token_documents"].published.folder.glob("0000-en_middle*")
    ) == [
        "0000-en_middle.documents.parquet",
        "0000-en_middle.dropped.parquet",
    ]
    assert built["token_grid"].counts.kept == built["megatron_rows"].counts.kept == 16
    for part in ("documents", "signals"):
        mend(context, sound, part)
    assert_whole_again(context, sound, PER_SNAPSHOT)


def test_the_chain_goes_on_without_a_skipped_shard(context, sound):
    """What the other shards keep becomes rows; every stage adds up; repaired, every stage has the
    bytes it would have had.
    """
    spoil(context, "documents", cut_short)
    built = build_snapshot(context, SNAPSHOT)
    assert (built["token_documents"].counts.seen, built["token_documents"].counts.kept) == (18, 16)
    assert built["token_grid"].counts.kept == built["megatron_rows"].counts.kept == 16
    assert all(map(adds_up, built.values()))
    mend(context, sound, "documents")
    assert_whole_again(context, sound, PER_SNAPSHOT)


def test_all_shards_may_be_broken(context, sound):
    """With every documents file cut short nothing is kept, all of it is counted, and the snapshot's
    chain stands empty.
    """
    root, tags = Path(context.upstream.root), [f"{SNAPSHOT}/{tag}" for tag in TAGS]
    for tag in tags:
        cut_short(file_of(root, "documents", tag))
    built = build_snapshot(context, SNAPSHOT)
    assert {name: found.counts.seen for name, found in built.items()} == dict.fromkeys(built, 0) | {
        "raw_snapshot": 3
    }
    assert (
        built["filtered_documents"].counts.extra["shards skipped: documents missing or broken"] == 3
    )
    for tag in tags:
        file_of(root, "documents", tag).write_bytes(
            file_of(sound.root, "documents", tag).read_bytes()
        )
    assert_whole_again(context, sound, PER_SNAPSHOT)


def test_a_rerun_does_only_what_is_missing(context, sound):
    """After a stop at the last shard, the tables of those that were finished are found and not
    written again.
    """
    build_snapshot(context, SNAPSHOT, ["raw_snapshot"])
    manifest = (
        context.lake.partition("raw_snapshot", SNAPSHOT).require().folder / "manifest.parquet"
    )
    sizes = Counter[str]()
    for line in pq.read_table(manifest).to_pylist():
        sizes[line["shard"]] += line["n_bytes"]
    last = min(sizes, key=sizes.__getitem__)  # the largest are begun first
    broken = file_of(Path(context.upstream.root), "documents", last)
    cut_short(broken)
    with pytest.raises(Mismatch):
        build_snapshot(context, SNAPSHOT, ["filtered_documents"])
    first = {
        path: path.stat().st_mtime_ns
        for path in context.lake.root.glob("filtered_documents/*/*/*.parquet")
    }
    assert len(first) == 3 * (len(sizes) - 1)
    broken.write_bytes(file_of(sound.root, "documents", last).read_bytes())
    assert_whole_again(context, sound)
    assert {path: path.stat().st_mtime_ns for path in first} == first
