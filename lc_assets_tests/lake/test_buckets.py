"""A bucket's operations and a lake in one, against emulators of Google, S3 and Azure on loopback:
whole or not at all, checked, counted, asked again.
"""

import os
import signal

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
from lc_assets.lake.bucket import GOOGLE, Bucket
from lc_assets.lake.bucket_lake import BucketLake, open_lake
from lc_assets.lake.lake import Lake
from lc_assets.lake.located import located
from lc_assets.lake.partition import CURRENT
from lc_assets.lake.receipts import RECEIPT, version_files
from lc_assets.lake.upstream import Upstream
from lc_assets.publishing import publish_bytes
from lc_assets_tests.bucket_server import CLOSED, LOST
from lc_assets_tests.builders import build

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
"""Google's client keeps connections open until it is collected, and so does every program that uses
it.
"""


@pytest.fixture
def folder(tmp_path):
    return files_of_several_sizes(tmp_path / "files", 12 << 20)


def files_of_several_sizes(home, n_large):
    """Fill a folder; one of its files is larger than a part."""
    (home / "deep").mkdir(parents=True)
    (home / "empty").write_bytes(b"")
    (home / "deep" / "small.bin").write_bytes(b"small")
    (home / "large.bin").write_bytes(os.urandom(n_large))
    return home


def test_an_object_is_written_only_over_the_state_it_follows_upon(bucket):
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
    monkeypatch.setattr(bucket_module, "PART_BYTES", 5 << 20)
    facts = version_files(folder)
    bucket.upload(folder, [fact.path for fact in facts], "v/1")
    assert server.requests["part"] >= 3  # the large one went in parts
    assert bucket.names("v/*/*") == ["v/1/empty", "v/1/large.bin"]
    assert bucket.names("v/*/empty") == ["v/1/empty"]
    assert bucket.folders("") == ["v"]
    assert {path: found.n_bytes for path, found in bucket.listed("v/1/").items()} == {
        fact.path: fact.n_bytes for fact in facts
    }
    assert [bucket.sha256(f"v/1/{fact.path}") for fact in facts] == [fact.sha256 for fact in facts]
    bucket.download("v/1", tmp_path / "copies", facts)
    assert version_files(tmp_path / "copies") == facts
    bucket.remove(["v/1/none", *(f"v/1/{fact.path}" for fact in facts)])
    assert bucket.listed("v/1/") == {}


def test_a_flipped_bit_is_found_and_nothing_of_it_stays(bucket, folder, tmp_path, server):
    facts = [fact for fact in version_files(folder) if fact.path == "deep/small.bin"]
    bucket.upload(folder, ["deep/small.bin"], "v")
    server.spoil("lake/v/deep/small.bin")
    with pytest.raises(CorruptFile, match="its receipt, which says 5 bytes"):
        bucket.download("v", tmp_path / "copies", facts)
    assert not [path for path in (tmp_path / "copies").rglob("*") if path.is_file()]


@pytest.mark.parametrize("fault", [429, 500, 503, CLOSED])
def test_what_passes_is_asked_again(bucket, server, fault):
    bucket.write("a", b"one")
    server.faults = {"read": [fault], "state": [fault], "write": [fault]}
    assert bucket.read("a").content == b"one"
    assert bucket.generation("a")
    bucket.write("a", b"two")
    assert bucket.read("a").content == b"two"
    assert not any(server.faults.values())


@pytest.mark.parametrize(
    ("status", "errors"),
    [(403, NotWritable), (401, (NotWritable, Unreachable)), (400, Unreachable)],
)
def test_what_does_not_pass_is_said_and_not_asked_again(bucket, server, status, errors):
    server.faults = {"write": [status] * 5}
    with pytest.raises(errors, match="://crawl/lake/a"):
        bucket.write("a", b"one")
    assert len(server.faults["write"]) == 4


def test_missing_objects_buckets_and_nonsense_are_said(bucket, folder, server, tmp_path):
    with pytest.raises(CorruptFile, match="is missing"):
        bucket.download("nowhere", tmp_path, version_files(folder))
    with pytest.raises(CorruptFile, match="is missing, or the bucket is"):
        Bucket(f"{server.scheme}://no-such-bucket").write("a", b"")
    with pytest.raises(BadInput, match="not a bucket"):
        Bucket(f"{server.scheme}://").read("a")


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


def test_what_one_machine_publishes_another_reads(machine, server, url):
    """Files come when they are read, only those that are asked for, and a second reading asks for
    nothing.
    """
    built = build(context_at(machine("one")), lines_stage(), "2023-06", _two_files)
    other = machine("two")
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
    assert server.requests - before == {"gs": {"list": 1}}.get(
        server.scheme, {"list": 1, "read": 2}
    )
    assert located(url).lake.url == located(f"{url}/lines/2023-06").lake.url == url
    assert located(f"{url}/lines/2023-06/{found.version}/a.txt").within == "a.txt"
    assert [one.name for one in other.partitions()] == ["lines/2023-06"]
    partition = other.partition("lines", "2023-06")
    assert partition.version_names() == [found.version] == list(partition.folders())
    server.spoil(f"lake/lines/2023-06/{found.version}/a.txt")
    assert found.damage() == ["a.txt: missing in the bucket, or other bytes"]
    with pytest.raises(CorruptFile, match="differ from its receipt"):
        assert machine("four").partition("lines", "2023-06").require().folder


def test_a_rebuild_elsewhere_finds_what_stands(machine, server):
    build(context_at(machine("one")), lines_stage(), "2023-06", _two_files)
    before = server.requests.copy()
    again = build(context_at(machine("two")), lines_stage(), "2023-06", _must_not_run)
    assert again.reused
    assert (server.requests - before)["write"] == 0


def test_two_machines_cannot_undo_each_others_work(machine):
    """Who began before the other published is refused, publishes nothing, and succeeds when it
    begins anew.
    """
    one, two = (context_at(machine(name)) for name in ("one", "two"))
    stage, newer = lines_stage(), lines_stage(code_version="2")

    def slow(draft):
        build(two, newer, "2023-06", _two_files)
        return _two_files(draft)

    with pytest.raises(Busy, match="another run has published"):
        build(one, stage, "2023-06", slow)
    assert (
        machine("three").partition("lines", "2023-06").require().receipt.fingerprint.code_version
        == "2"
    )
    assert (
        build(one, stage, "2023-06", _must_not_run).published.receipt.fingerprint.code_version
        == "1"
    )


def test_a_build_that_was_cut_off_while_it_went_up_goes_on(machine, server):
    """Readers see nothing of it; the rerun computes nothing and sends what is missing."""
    context = context_at(machine("one"))
    server.faults = {"write": [None, 403]}  # the first file goes up, the second does not
    with pytest.raises(NotWritable):
        build(context, lines_stage(), "2023-06", _two_files)
    assert not [name for name in server.names() if name.endswith((CURRENT, RECEIPT))]
    with pytest.raises(NotPublished):
        machine("two").partition("lines", "2023-06").require()
    assert build(context, lines_stage(), "2023-06", _must_not_run).reused
    assert machine("two").partition("lines", "2023-06").require().damage() == []


def test_an_answer_that_got_lost_is_no_other_run(machine, server):
    """The pointer was written, the connection broke, the client asks again and finds a newer
    generation: its own.
    """
    context = context_at(machine("one"))
    server.faults = {
        "write": [None, None, None, LOST]
    }  # two files, the receipt; the pointer's answer is lost
    assert not build(context, lines_stage(), "2023-06", _two_files).reused
    assert machine("two").partition("lines", "2023-06").current() is not None


def test_a_copy_of_other_bytes_is_replaced(machine, server):
    """A machine whose copy of a version is not what stands published takes what stands."""
    built = build(context_at(machine("one")), lines_stage(), "2023-06", _two_files).published
    other = machine("two")
    home = other.partition("lines", "2023-06").require().folder
    (home / RECEIPT).write_text((home / RECEIPT).read_text().replace(built.digest, "0" * 64))
    found = other.partition("lines", "2023-06").require()
    assert found.digest == built.digest
    assert found.damage() == []


def test_a_pointer_that_is_damaged_or_leads_elsewhere_is_refused(machine, bucket):
    build(context_at(machine("one")), lines_stage(), "2023-06", _two_files)
    partition = machine("two").partition("lines", "2023-06")
    for content, error in (
        (b"{", CorruptFile),
        (b'{"version": "../../etc", "digest": "x"}', BadInput),
    ):
        bucket.write(f"lines/2023-06/{CURRENT}", content)
        with pytest.raises(error, match="lines/2023-06"):
            partition.current()


def test_requests_of_a_build_are_few(machine, server):
    """One per file, and for the partition: state and receipt looked for, then receipt and pointer
    written; no listing.
    """
    build(context_at(machine("one")), lines_stage(), "2023-06", _two_files)
    google = server.scheme == "gs"
    looks = {"bucket": 1, "state": 3} if google else {"state": 1, "read": 2}
    assert dict(server.requests) == looks | {"write": 4}
    server.requests.clear()
    machine("two").partition("lines", "2023-06").require()
    assert dict(server.requests) == ({"bucket": 1, "state": 2} if google else {}) | {"read": 2}


def lines_stage(code_version="1"):
    return Stage(
        name="lines",
        code_version=code_version,
        reads={},
        write=None,
        params=lambda _recipe, _key: {},
        checks=(),
    )


def context_at(lake):
    return BuildContext(
        lake=lake, upstream=Upstream("memory://none"), recipe=Recipe(), executor=LocalExecutor()
    )


def _two_files(draft):
    for name in "ab":
        publish_bytes(draft.folder / f"{name}.txt", name.encode())
    return Counts(seen=2, kept=2)


def _must_not_run(_draft):
    raise AssertionError("nothing was to be computed")


def test_one_machine_at_a_time_is_alone(machine, bucket):
    one, other = machine("one"), machine("other")
    with alone(one):
        with pytest.raises(Busy, match=r"another machine releases or prunes .*://crawl/lake/alone"):
            alone(other).__enter__()
        assert bucket.read("alone.json") is not None
    with alone(other):
        pass
    assert bucket.read("alone.json") is None


def test_what_an_error_ends_is_free_again(machine, bucket):
    with pytest.raises(KeyboardInterrupt), alone(machine("one")):
        raise KeyboardInterrupt
    assert bucket.read("alone.json") is None


def test_a_killed_machine_takes_its_place_again_and_no_other_does(machine, bucket):
    one, other = machine("one"), machine("other")
    with alone(one):
        left = bucket.read("alone.json")
    bucket.write("alone.json", left.content)
    with pytest.raises(Busy, match="if it was killed, run its command there again, or delete"):
        alone(other).__enter__()
    with alone(one):
        pass
    with alone(other):
        pass


def test_of_two_that_find_nobody_one_is_alone(machine, bucket, monkeypatch):
    """The other writes between the look and the write."""
    one, other = machine("one"), machine("other")
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


def test_a_write_whose_answer_was_lost_is_one_s_own(machine, server, bucket):
    server.faults["write"] = [LOST]
    with alone(machine("one")):
        assert bucket.read("alone.json") is not None
    assert bucket.read("alone.json") is None
    assert server.faults["write"] == []


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")
def test_a_forked_process_reads_anew_or_says_why_it_cannot(bucket, url):
    """Obstore's threads stay in the parent; before it was said, a child waited for them for ever."""
    bucket.write("a", b"one")
    upstream = Upstream(url)
    reads = (
        lambda: bucket.read("a").content,
        lambda: Bucket(url).read("a").content,
        lambda: upstream.ranges([("a", 0, 9)])[0],
        lambda: Upstream(url).read("a", most_bytes=9),
    )
    assert [read() for read in reads] == [b"one"] * 4
    wanted = b"one" if url.startswith(GOOGLE) else b"BadInput"
    assert [in_a_fork(read) for read in reads] == [wanted] * 4


def in_a_fork(read):
    """What a forked process reads, or the name of its error."""
    answers, answer = os.pipe()
    child = os.fork()
    if not child:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)  # not pytest's: it ends what waits for ever
        signal.alarm(60)
        try:
            os.write(answer, read())
        except Exception as error:  # noqa: BLE001 - whatever it is
            os.write(answer, type(error).__name__.encode())
        finally:
            os._exit(0)
    os.close(answer)
    os.waitpid(child, 0)
    with os.fdopen(answers, "rb") as found:
        return found.read()
