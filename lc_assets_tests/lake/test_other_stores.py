"""Lakes and sources on S3 and Azure, against emulators on loopback: what `test_buckets` and
`test_faults_of_buckets` ask of Google's.
"""

import os
import signal
import subprocess
import sys
from collections import Counter
from datetime import timedelta

import pytest

from lc_assets.errors import BadInput, Busy, CorruptFile, LcError, NotWritable, Unreachable
from lc_assets.lake import bucket as bucket_module, object_storage
from lc_assets.lake.alone import alone
from lc_assets.lake.bucket import Bucket
from lc_assets.lake.bucket_lake import open_lake
from lc_assets.lake.located import located
from lc_assets.lake.receipts import version_files
from lc_assets.lake.upstream import Upstream
from lc_assets_tests.bucket_server import CLOSED, CUT, LOST, SLOW
from lc_assets_tests.builders import build
from lc_assets_tests.lake.test_buckets import (
    _must_not_run,
    _two_files,
    files_of_several_sizes,
    lines_stage,
    require_ordered_writes,
    workshop_at,
)
from lc_assets_tests.named_draws import rng_for
from lc_assets_tests.other_stores import StoreServer, store_server

KINDS = ("read", "state", "list", "write")
FAULTS = (429, 500, 503, CLOSED, LOST, CUT, SLOW, None, None, None)


@pytest.fixture(scope="module", params=["s3", "az"])
def running(request):
    with pytest.MonkeyPatch.context() as patch, store_server(request.param, patch) as server:
        yield server


@pytest.fixture
def server(running, monkeypatch):
    """With nothing in it, and a client that waits a hundredth of a second before it asks again."""
    running.store().delete(running.names())
    running.requests.clear()
    running.injected.clear()
    running.faults, running.watch = {}, lambda _kind: None
    pause = {"init_backoff": timedelta(milliseconds=10), "max_backoff": timedelta(milliseconds=50)}
    monkeypatch.setitem(object_storage.RETRIES, "backoff", pause | {"base": 2})
    return running


@pytest.fixture
def url(server):
    return f"{server.scheme}://crawl/lake"


@pytest.fixture
def bucket(url):
    return Bucket(url)


@pytest.fixture
def machine(url, tmp_path):
    """Opens the lake with copies of its own."""
    return lambda name: open_lake(url, environment={"LC_CACHE": str(tmp_path / name)})


@pytest.fixture
def folder(tmp_path):
    return files_of_several_sizes(tmp_path / "files", 12 << 20)


def test_an_object_is_written_only_over_the_state_it_follows_upon(bucket):
    require_ordered_writes(bucket)


def test_files_go_up_in_parts_and_come_down_unchanged(
    bucket, folder, tmp_path, server, monkeypatch
):
    monkeypatch.setattr(bucket_module, "PART_BYTES", 5 << 20)
    facts = version_files(folder)
    bucket.upload(folder, [fact.path for fact in facts], "v/1")
    assert server.requests["part"] >= 4
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
    ("status", "error"), [(403, NotWritable), (401, NotWritable), (400, Unreachable)]
)
def test_what_does_not_pass_is_said_and_not_asked_again(bucket, server, status, error):
    server.faults = {"write": [status] * 5}
    with pytest.raises(error, match="://crawl/lake/a"):
        bucket.write("a", b"one")
    assert len(server.faults["write"]) == 4


def test_asking_again_is_bounded(url, server, monkeypatch):
    """By a number here; of seconds there are two minutes."""
    monkeypatch.setitem(object_storage.RETRIES, "max_retries", 3)
    server.faults = {"read": [503] * 100}
    with pytest.raises(Unreachable, match="crawl/lake/a"):
        Bucket(url).read("a")
    assert server.requests["read"] == 4


def test_missing_objects_buckets_and_nonsense_are_said(bucket, server, folder, tmp_path):
    with pytest.raises(CorruptFile, match="is missing"):
        bucket.download("nowhere", tmp_path, version_files(folder))
    with pytest.raises(CorruptFile, match="is missing, or the bucket is"):
        Bucket(f"{server.scheme}://no-such-bucket").write("a", b"")
    with pytest.raises(BadInput, match="not a bucket"):
        Bucket(f"{server.scheme}://").read("a")


def test_no_key_is_said(server, url, monkeypatch):
    """Neither the key of S3 nor that of Azure, nor a signature, is in an error or its causes."""
    keys = {
        value for name, value in server.environment.items() if "KEY" in name and value != "test"
    }
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "planted-secret")
    asked = Bucket(url)
    asks = {
        "write": lambda: asked.write("a", b""),
        "list": lambda: asked.listed("a/"),
        "read": lambda: asked.read("a"),
    }
    for kind, status in (("write", 403), ("write", 400), ("list", 400), ("read", 403)):
        server.faults = {kind: [status]}
        with pytest.raises(LcError) as raised:
            asks[kind]()
        shown = f"{raised.value!r}{raised.value.__cause__!r}{raised.value.__context__!r}"
        assert not [key for key in keys | {"planted-secret", "Signature="} if key in shown]


def test_what_one_machine_publishes_another_reads(machine, url, server):
    built = build(workshop_at(machine("one")), lines_stage(), "2023-06", _two_files)
    other = machine("two")
    found = other.partition("lines", "2023-06").require()
    assert (found.digest, found.receipt) == (built.published.digest, built.published.receipt)
    assert other.keys("lines") == ["2023-06"]
    assert (found.folder / "a.txt").read_text() == "a"
    assert found.damage() == []
    assert located(url).lake.url == located(f"{url}/lines/2023-06").lake.url == url
    assert located(f"{url}/lines/2023-06/{found.version}/a.txt").within == "a.txt"
    assert build(workshop_at(machine("three")), lines_stage(), "2023-06", _must_not_run).reused
    assert [one.name for one in other.partitions()] == ["lines/2023-06"]
    partition = other.partition("lines", "2023-06")
    assert partition.version_names() == [found.version] == list(partition.folders())
    server.spoil(f"lake/lines/2023-06/{found.version}/a.txt")
    assert found.damage() == ["a.txt: missing in the bucket, or other bytes"]
    with pytest.raises(CorruptFile, match="differ from its receipt"):
        assert machine("four").partition("lines", "2023-06").require().folder


def test_requests_of_a_build_are_few(machine, server):
    build(workshop_at(machine("one")), lines_stage(), "2023-06", _two_files)
    assert dict(server.requests) == {"state": 1, "read": 2, "write": 4}


def test_two_machines_cannot_undo_each_others_work(machine):
    one, two = (workshop_at(machine(name)) for name in ("one", "two"))

    def meanwhile(draft):
        build(two, lines_stage("2"), "2023-06", _two_files)
        return _two_files(draft)

    with pytest.raises(Busy, match="another run has published"):
        build(one, lines_stage("1"), "2023-06", meanwhile)
    found = machine("three").partition("lines", "2023-06").require()
    assert found.receipt.fingerprint.code_version == "2"
    assert found.damage() == []
    assert build(one, lines_stage("1"), "2023-06", _must_not_run).reused


def test_one_machine_at_a_time_is_alone(machine, bucket):
    with alone(machine("one")):
        with pytest.raises(Busy, match="another machine releases or prunes"):
            alone(machine("two")).__enter__()
        assert bucket.read("alone.json") is not None
    assert bucket.read("alone.json") is None


def test_faults_of_every_kind_change_nothing(machine, server):
    """Published on one machine, read on another, with faults among all requests: equal bytes, or an
    error of ours and then equal bytes.
    """
    rng, said = rng_for("faults of other stores", seed=64, key="lines"), Counter()
    for number in range(6):
        stage = lines_stage(code_version=str(number))
        server.faults = {
            kind: [FAULTS[at] for at in rng.integers(len(FAULTS), size=6)] for kind in KINDS
        }
        for _ in range(20):
            try:
                workshop = workshop_at(machine("one"))
                published = build(workshop, stage, "2023-06", _two_files).published
                there = machine(f"two{number}").partition("lines", "2023-06").require()
                assert (there.digest, there.damage()) == (published.digest, [])
                break
            except LcError as error:
                said[type(error).__name__] += 1
        else:
            raise AssertionError("it never got there")
    print(f"\n{server.scheme}: {dict(server.injected)}; ended an attempt: {dict(said)}")
    assert len(server.injected) >= 6


@pytest.mark.parametrize("before", [True, False], ids=["an old version", "none"])
def test_a_machine_that_dies_at_any_request_leaves_the_old_or_the_new(
    machine, server, tmp_path, url, before
):
    """SIGKILL at each request of a build in turn, while another machine reads and then builds."""
    wanted = build(workshop_at(machine("sure")), lines_stage("9"), "sure", _two_files)
    last = dies_at(server, url, tmp_path / "counting", "counted", 0)
    for at in range(1, last + 1):
        key = f"{'old' if before else 'none'}-{at}"
        if before:
            build(workshop_at(machine("one")), lines_stage("1"), key, _two_files)
        assert dies_at(server, url, tmp_path / f"dying{at}", key, at) == at
        now = machine(f"reader{at}").partition("lines", key).current()
        assert (now is None) == (not before) or now.receipt.fingerprint.code_version == "9"
        assert now is None or (now.folder and now.damage() == [])
        again = build(workshop_at(machine(f"other{at}")), lines_stage("9"), key, _two_files)
        assert again.published.digest == wanted.published.digest
        assert machine(f"last{at}").partition("lines", key).require().damage() == []
    print(f"\n{server.scheme}: {last} kills at requests, all survived")
    assert last >= 7


DYING = """
import sys
from lc_assets.lake.bucket_lake import open_lake
from lc_assets_tests.builders import build
from lc_assets_tests.lake.test_buckets import _two_files, lines_stage, workshop_at
url, folder, key = sys.argv[1:]
lake = open_lake(url, environment={"LC_CACHE": folder})
build(workshop_at(lake), lines_stage("9"), key, _two_files)
"""


def dies_at(server: StoreServer, url, folder, key, at) -> int:
    """Build in a process of its own that the server kills at its ``at``-th request, 0 for none; how
    many requests came.
    """
    seen, children = 0, []

    def kill(_kind):
        nonlocal seen
        seen += 1
        if seen == at:
            os.kill(children[0].pid, signal.SIGKILL)

    server.watch = kill
    with subprocess.Popen([sys.executable, "-c", DYING, url, str(folder), key]) as child:
        children.append(child)
    server.watch = lambda _kind: None
    assert child.returncode == (-signal.SIGKILL if at else 0)
    return min(seen, at or seen)


def test_a_source_is_read_from_there(bucket, server, folder):
    bucket.upload(folder, ["empty", "deep/small.bin", "large.bin"], "source")
    source = Upstream(f"{server.scheme}://crawl/lake/source")
    assert source.below("") == ["deep/small.bin", "empty", "large.bin"]
    found = source.look("deep/small.bin")
    assert (found.n_bytes, source.look("none")) == (5, None)
    assert source.read("deep/small.bin", most_bytes=9) == b"small"
    large = (folder / "large.bin").read_bytes()
    with source.open("large.bin") as stream:
        assert stream.read() == large
    pieces = [("large.bin", 5, 9), ("deep/small.bin", 3, 99), ("deep/small.bin", 50, 60)]
    assert source.ranges(pieces) == [large[5:9], b"ll", b""]
    before = source.marks("deep")
    bucket.write("source/deep/small.bin", b"other")
    assert source.marks("deep").keys() == before.keys() == {"deep/small.bin"}
    assert source.marks("deep") != before
    assert source.look("deep/small.bin").identity != found.identity
    with pytest.raises(FileNotFoundError):
        source.ranges([("none", 0, 5)])
    with pytest.raises(CorruptFile, match="is missing"), source.open("none"):
        pass
