"""A bucket's operations and a lake in one, against an emulator on loopback: whole or not at all,
checked, counted, asked again.
"""

import os

import pytest

from lc_assets.builds.recipe import Recipe
from lc_assets.builds.stage import (
    BuildContext,
    Stage,
)
from lc_assets.counts import Counts
from lc_assets.errors import (
    BadInput,
    Busy,
    CorruptFile,
    NotPublished,
    NotWritable,
    StorageFull,
    Unreachable,
)
from lc_assets.execution.local import LocalExecutor
from lc_assets.lake import bucket as bucket_module
from lc_assets.lake.alone import alone
from lc_assets.lake.bucket import Bucket
from lc_assets.lake.bucket_lake import BucketLake, open_lake
from lc_assets.lake.lake import Lake
from lc_assets.lake.partition import CURRENT
from lc_assets.lake.receipts import RECEIPT, version_files
from lc_assets.lake.upstream import Upstream
from lc_assets.publishing import publish_bytes
from lc_assets_tests.bucket_server import bucket_server
from lc_assets_tests.builders import build

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
"""Google's client keeps connections open until it is collected, and so does every program that uses
it.
"""


@pytest.fixture
def server(monkeypatch):
    with bucket_server(monkeypatch) as running:
        yield running


@pytest.fixture
def bucket(server):
    return Bucket("gs://crawl/lake")


@pytest.fixture
def folder(tmp_path):
    return files_of_several_sizes(tmp_path / "files", 9 << 20)


def files_of_several_sizes(home, n_large):
    """Fill a folder; one of its files is larger than a part."""
    (home / "deep").mkdir(parents=True)
    (home / "empty").write_bytes(b"")
    (home / "deep" / "small.bin").write_bytes(b"small")
    (home / "large.bin").write_bytes(os.urandom(n_large))
    return home


def test_an_object_is_written_only_over_the_state_it_follows_upon(bucket):
    require_ordered_writes(bucket)


def require_ordered_writes(bucket):
    """An object is written over the state that the writer has seen, and over no other."""
    assert bucket.read("a") is None
    assert bucket.generation("a") == ""
    bucket.write("a", b"one", after="")
    first = bucket.read("a")
    assert first.content == b"one"
    assert first.generation == bucket.generation("a") != ""
    bucket.write("a", b"two", after=first.generation)
    for late in ("", first.generation):
        with pytest.raises(Busy, match="another run has published"):
            bucket.write("a", b"three", after=late)
    assert bucket.read("a").content == b"two"


def test_files_go_up_and_come_down_unchanged_in_parts(
    bucket, folder, tmp_path, server, monkeypatch
):
    monkeypatch.setattr(bucket_module, "PART_BYTES", 1 << 20)
    facts = version_files(folder)
    bucket.upload(folder, [fact.path for fact in facts], "v/1")
    assert server.requests["part"] >= 3  # the large one went in parts
    assert bucket.names("v/*/*") == ["v/1/empty", "v/1/large.bin"]
    bucket.download("v/1", tmp_path / "copies", facts)
    assert version_files(tmp_path / "copies") == facts


def test_a_flipped_bit_is_found_and_nothing_of_it_stays(bucket, folder, tmp_path, server):
    facts = [fact for fact in version_files(folder) if fact.path == "deep/small.bin"]
    bucket.upload(folder, ["deep/small.bin"], "v")
    server.spoil("lake/v/deep/small.bin")
    with pytest.raises(CorruptFile, match="its receipt, which says 5 bytes"):
        bucket.download("v", tmp_path / "copies", facts)
    assert not [path for path in (tmp_path / "copies").rglob("*") if path.is_file()]


@pytest.mark.parametrize("fault", [429, 500, 503, 0])
def test_what_passes_is_asked_again(bucket, server, fault):
    bucket.write("a", b"one")
    server.faults = {"read": [fault], "state": [fault], "write": [fault]}
    assert bucket.read("a").content == b"one"
    bucket.write("a", b"two")
    assert bucket.read("a").content == b"two"
    assert not any(server.faults.values())


@pytest.mark.parametrize(
    ("status", "error"), [(403, NotWritable), (401, Unreachable), (400, Unreachable)]
)
def test_what_does_not_pass_is_said_and_not_asked_again(bucket, server, status, error):
    server.faults = {"write": [status] * 5}
    with pytest.raises(error, match="gs://crawl/lake/a"):
        bucket.write("a", b"one")
    assert len(server.faults["write"]) == 4


def test_missing_objects_buckets_and_nonsense_are_said(bucket, folder, tmp_path):
    with pytest.raises(CorruptFile, match="is missing"):
        bucket.download("nowhere", tmp_path, version_files(folder))
    with pytest.raises(CorruptFile, match="is missing, or the bucket is"):
        Bucket("gs://no-such-bucket").write("a", b"")
    with pytest.raises(BadInput, match="not a bucket"):
        Bucket("gs://").read("a")


def test_a_full_disk_is_said_and_leaves_no_draft(bucket, folder, tmp_path, monkeypatch):
    facts = version_files(folder)
    bucket.upload(folder, [fact.path for fact in facts], "v")

    def full(_path):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(bucket_module, "flush", full)
    with pytest.raises(StorageFull):
        bucket.download("v", tmp_path / "copies", facts)
    assert not [path for path in (tmp_path / "copies").rglob("*") if path.is_file()]


def test_a_lake_is_opened_by_its_root(tmp_path):
    assert open_lake(str(tmp_path)) == Lake(tmp_path)
    lake = open_lake("gs://crawl/some/lake", environment={"LC_CACHE": str(tmp_path)})
    assert isinstance(lake, BucketLake)
    assert lake.root == tmp_path / "crawl" / "some" / "lake"
    assert lake.url == "gs://crawl/some/lake"


def lake_at(folder):
    return open_lake("gs://crawl/lake", environment={"LC_CACHE": str(folder)})


def test_what_one_machine_publishes_another_reads(tmp_path, server):
    """Files come when they are read, only those that are asked for, and a second reading asks for
    nothing.
    """
    built = build(workshop_at(lake_at(tmp_path / "one")), lines_stage(), "2023-06", _two_files)
    other = lake_at(tmp_path / "two")
    found = other.partition("lines", "2023-06").require()
    assert (found.digest, found.receipt) == (built.published.digest, built.published.receipt)
    assert other.keys("lines") == ["2023-06"]
    assert sorted(path.name for path in found.home.iterdir()) == [RECEIPT]
    assert (found.only("a.*") / "a.txt").read_text() == "a"
    assert not (found.home / "b.txt").exists()
    assert (found.folder / "b.txt").read_text() == "b"
    before = server.requests.copy()
    assert found.folder == found.home
    assert server.requests == before
    assert found.damage() == []
    assert server.requests - before == {"list": 1}


def test_a_rebuild_elsewhere_finds_what_stands(tmp_path, server):
    build(workshop_at(lake_at(tmp_path / "one")), lines_stage(), "2023-06", _two_files)
    before = server.requests.copy()
    again = build(workshop_at(lake_at(tmp_path / "two")), lines_stage(), "2023-06", _must_not_run)
    assert again.reused
    assert (server.requests - before)["write"] == 0


def test_two_machines_cannot_undo_each_others_work(tmp_path, server):
    """Who began before the other published is refused, publishes nothing, and succeeds when it
    begins anew.
    """
    one, two = (workshop_at(lake_at(tmp_path / name)) for name in ("one", "two"))
    stage, newer = lines_stage(), lines_stage(code_version="2")

    def slow(draft):
        build(two, newer, "2023-06", _two_files)
        return _two_files(draft)

    with pytest.raises(Busy, match="another run has published"):
        build(one, stage, "2023-06", slow)
    assert (
        lake_at(tmp_path / "three")
        .partition("lines", "2023-06")
        .require()
        .receipt.fingerprint.code_version
        == "2"
    )
    assert (
        build(one, stage, "2023-06", _must_not_run).published.receipt.fingerprint.code_version
        == "1"
    )


def test_a_build_that_was_cut_off_while_it_went_up_goes_on(tmp_path, server):
    """Readers see nothing of it; the rerun computes nothing and sends what is missing."""
    context = workshop_at(lake_at(tmp_path / "one"))
    server.faults = {"write": [None, 403]}  # the first file goes up, the second does not
    with pytest.raises(NotWritable):
        build(context, lines_stage(), "2023-06", _two_files)
    assert not [name for name in server.names() if name.endswith((CURRENT, RECEIPT))]
    with pytest.raises(NotPublished):
        lake_at(tmp_path / "two").partition("lines", "2023-06").require()
    assert build(context, lines_stage(), "2023-06", _must_not_run).reused
    assert lake_at(tmp_path / "two").partition("lines", "2023-06").require().damage() == []


def test_an_answer_that_got_lost_is_no_other_run(tmp_path, server):
    """The pointer was written, the connection broke, the client asks again and finds a newer
    generation: its own.
    """
    context = workshop_at(lake_at(tmp_path / "one"))
    server.faults = {
        "write": [None, None, None, -1]
    }  # two files, the receipt; the pointer's answer is lost
    assert not build(context, lines_stage(), "2023-06", _two_files).reused
    assert lake_at(tmp_path / "two").partition("lines", "2023-06").current() is not None


def test_a_copy_of_other_bytes_is_replaced(tmp_path, server):
    """A machine whose copy of a version is not what stands published takes what stands."""
    built = build(
        workshop_at(lake_at(tmp_path / "one")), lines_stage(), "2023-06", _two_files
    ).published
    other = lake_at(tmp_path / "two")
    home = other.partition("lines", "2023-06").require().folder
    (home / RECEIPT).write_text((home / RECEIPT).read_text().replace(built.digest, "0" * 64))
    found = other.partition("lines", "2023-06").require()
    assert found.digest == built.digest
    assert found.damage() == []


def test_a_pointer_that_is_damaged_or_leads_elsewhere_is_refused(tmp_path, server):
    build(workshop_at(lake_at(tmp_path / "one")), lines_stage(), "2023-06", _two_files)
    partition = lake_at(tmp_path / "two").partition("lines", "2023-06")
    for content, error in (
        (b"{", CorruptFile),
        (b'{"version": "../../etc", "digest": "x"}', BadInput),
    ):
        Bucket("gs://crawl/lake").write(f"lines/2023-06/{CURRENT}", content)
        with pytest.raises(error, match="lines/2023-06"):
            partition.current()


def test_requests_of_a_build_are_few(tmp_path, server):
    """One per file, and for the partition: state and receipt looked for, then receipt and pointer
    written; no listing.
    """
    build(workshop_at(lake_at(tmp_path / "one")), lines_stage(), "2023-06", _two_files)
    assert dict(server.requests) == {"bucket": 1, "state": 3, "write": 4}
    server.requests.clear()
    lake_at(tmp_path / "two").partition("lines", "2023-06").require()
    assert dict(server.requests) == {"bucket": 1, "state": 2, "read": 2}


def lines_stage(code_version="1"):
    return Stage(
        name="lines",
        code_version=code_version,
        reads={},
        write=None,
        params=lambda _recipe, _key: {},
        checks=(),
    )


def workshop_at(lake):
    return BuildContext(
        lake=lake, upstream=Upstream("memory://none"), recipe=Recipe(), executor=LocalExecutor()
    )


def _two_files(draft):
    for name in "ab":
        publish_bytes(draft.folder / f"{name}.txt", name.encode())
    return Counts(seen=2, kept=2)


def _must_not_run(_draft):
    raise AssertionError("nothing was to be computed")


@pytest.fixture
def machines(server, tmp_path):
    """A lake in a bucket, as three machines see it: their copies lie in folders of their own."""
    return [
        open_lake("gs://crawl/lake", environment={"LC_CACHE": str(tmp_path / name)})
        for name in "abc"
    ]


def test_one_machine_at_a_time_is_alone(machines, bucket):
    one, other, _ = machines
    with alone(one):
        with pytest.raises(
            Busy, match=r"another machine releases or prunes .*gs://crawl/lake/alone"
        ):
            alone(other).__enter__()
        assert bucket.read("alone.json") is not None
    with alone(other):
        pass
    assert bucket.read("alone.json") is None


def test_what_an_error_ends_is_free_again(machines, bucket):
    with pytest.raises(KeyboardInterrupt), alone(machines[0]):
        raise KeyboardInterrupt
    assert bucket.read("alone.json") is None


def test_a_killed_machine_takes_its_place_again_and_no_other_does(machines, bucket):
    one, other, _ = machines
    with alone(one):
        left = bucket.read("alone.json")
    bucket.write("alone.json", left.content)
    with pytest.raises(Busy, match="if it was killed, run its command there again, or delete"):
        alone(other).__enter__()
    with alone(one):
        pass
    with alone(other):
        pass


def test_of_two_that_find_nobody_one_is_alone(machines, bucket, monkeypatch):
    """The other writes between the look and the write."""
    one, other, _ = machines
    with alone(other):
        theirs = bucket.read("alone.json").content
    read, looks = Bucket.read, []

    def read_and_be_overtaken(self, path):
        found = read(self, path)
        looks.append(path)
        if len(looks) == 1:
            self.write(path, theirs)
        return found

    monkeypatch.setattr(Bucket, "read", read_and_be_overtaken)
    with pytest.raises(Busy, match="another machine"):
        alone(one).__enter__()
    assert read(bucket, "alone.json").content == theirs


def test_a_write_whose_answer_was_lost_is_one_s_own(machines, server, bucket):
    server.faults["write"] = [-1]
    with alone(machines[0]):
        assert bucket.read("alone.json") is not None
    assert bucket.read("alone.json") is None
    assert server.faults["write"] == []
