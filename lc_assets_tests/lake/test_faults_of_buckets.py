"""A bucket that refuses, dawdles, breaks off and lists late, and machines that die while they
publish into it.
"""

import os
import signal
import types
from collections import Counter

import pytest
from google.api_core.retry import retry_base, retry_unary
from google.cloud.storage import retry

from lc_assets.errors import Busy, CorruptFile, LcError, NotPublished, Unreachable
from lc_assets.lake.bucket import Bucket
from lc_assets.lake.bucket_lake import open_lake
from lc_assets.lake.partition import CURRENT
from lc_assets_tests.bucket_server import CLOSED, CUT, LOST, SLOW, bucket_server
from lc_assets_tests.builders import build
from lc_assets_tests.lake.test_buckets import _two_files, lines_stage, workshop_at
from lc_assets_tests.named_draws import rng_for

pytestmark = [
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings(
        "ignore:This process .* is multi-threaded"
    ),  # the server's threads stay in the parent
]
KINDS = ("read", "state", "list", "write")
FAULTS = (429, 500, 503, 504, CLOSED, LOST, CUT, SLOW)
PASSING = (None, None, None)


@pytest.fixture
def server(monkeypatch):
    with bucket_server(monkeypatch) as running:
        yield running


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    """Google's client waits a second before it asks again, and then longer; a test a hundredth."""
    monkeypatch.setattr(retry.DEFAULT_RETRY, "_initial", 0.01)
    monkeypatch.setattr(retry.DEFAULT_RETRY, "_maximum", 0.05)


def lake_at(folder):
    return open_lake("gs://crawl/lake", environment={"LC_CACHE": str(folder)})


def test_faults_of_every_kind_change_nothing(tmp_path, server):
    """Published on one machine, read on another, with faults among all requests: equal bytes, or an
    error of ours and then equal bytes.
    """
    rng, said = rng_for("faults of buckets", seed=64, key="lines"), Counter()
    for number in range(6):
        stage = lines_stage(code_version=str(number))
        server.faults = {
            kind: [*rng.choice([*FAULTS, *PASSING], size=6).tolist()] for kind in KINDS
        }
        workshop = workshop_at(lake_at(tmp_path / "one"))
        for _ in range(20):
            try:
                published = build(workshop, stage, "2023-06", _two_files).published
                there = lake_at(tmp_path / f"two{number}").partition("lines", "2023-06").require()
                assert (there.digest, there.version, there.damage()) == (
                    published.digest,
                    published.version,
                    [],
                )
                break
            except LcError as error:
                said[type(error).__name__] += 1
        else:
            raise AssertionError("it never got there")
    print(f"\nfaults injected: {dict(server.injected)}; errors that ended an attempt: {dict(said)}")
    assert len(server.injected) >= 6


def test_asking_again_is_bounded(server, monkeypatch):
    """A bucket that never answers is given up after the client's budget, here half a second of a
    clock on which only pauses take time; docs/object-stores.md has two minutes.
    """
    monkeypatch.setattr(retry.DEFAULT_RETRY, "_timeout", 0.5)
    clock = types.SimpleNamespace(now=0.0)
    clock.monotonic = lambda: clock.now
    clock.sleep = lambda seconds: setattr(clock, "now", clock.now + seconds)
    for module in (retry_base, retry_unary):
        monkeypatch.setattr(module, "time", clock)
    server.faults = {"state": [503] * 10_000}
    with pytest.raises(Unreachable, match="gs://crawl/lake/a"):
        Bucket("gs://crawl/lake").read("a")
    assert 2 <= server.requests["state"] < 200


def test_half_a_body_is_never_a_whole_one(tmp_path, server):
    """A download that breaks off is asked for again or refused, whatever the file; what stays is
    whole.
    """
    built = build(
        workshop_at(lake_at(tmp_path / "one")), lines_stage(), "2023-06", _two_files
    ).published
    for number in range(4):
        server.faults = {"read": [CUT] * (number + 1)}
        for _ in range(8):
            try:
                found = lake_at(tmp_path / f"two{number}").partition("lines", "2023-06").require()
                assert [(found.folder / name).read_text() for name in ("a.txt", "b.txt")] == [
                    "a",
                    "b",
                ]
                assert found.digest == built.digest
                break
            except (CorruptFile, Unreachable):
                continue
        else:
            raise AssertionError("it never got there")


def test_a_listing_that_comes_late_hides_and_does_not_mislead(tmp_path, server, monkeypatch):
    """What a stale listing lacks is not planned with, or not pruned; what it has too much is
    refused by name.
    """
    build(workshop_at(lake_at(tmp_path / "one")), lines_stage(), "2023-06", _two_files)
    stale = lake_at(tmp_path / "two")
    with monkeypatch.context() as late:
        late.setattr(Bucket, "names", lambda *_: [])
        late.setattr(Bucket, "listed", lambda *_: {})
        assert stale.keys("lines") == []
        found = stale.partition("lines", "2023-06").require()  # by name, without a listing
        assert (found.only("*") / "a.txt").read_text() == "a"
        assert found.damage() == [
            f"{path}: missing in the bucket, or other bytes"
            for path in ("receipt.json", "a.txt", "b.txt")
        ]  # said, not passed over
        assert build(workshop_at(stale), lines_stage(), "2023-06", _two_files).reused
    with monkeypatch.context() as ahead:
        ahead.setattr(Bucket, "names", lambda *_: [f"lines/1999-01/{CURRENT}"])
        with pytest.raises(NotPublished, match="lines/1999-01"):
            stale.published("lines")


@pytest.mark.parametrize("before", [True, False], ids=["an old version", "none"])
def test_a_machine_that_dies_at_any_request_leaves_the_old_or_the_new(tmp_path, server, before):
    """SIGKILL at each request of a build in turn, while another machine reads and then builds: the
    same bytes.
    """
    wanted = build(
        workshop_at(lake_at(tmp_path / "sure")), lines_stage("9"), "sure", _two_files
    ).published.digest
    n_killed, at = 0, 1
    while True:
        key = f"{'old' if before else 'none'}-{at}"
        if before:
            build(workshop_at(lake_at(tmp_path / "one")), lines_stage("1"), key, _two_files)
        killed = dies_at(server, tmp_path / f"dying{at}-{before}", key, at)
        reader = lake_at(tmp_path / f"reader{at}").partition("lines", key)
        now = reader.current()
        assert (now is None) == (not before) or now.receipt.fingerprint.code_version == "9"
        assert now is None or (now.folder and now.damage() == [])
        again = build(
            workshop_at(lake_at(tmp_path / f"other{at}")), lines_stage("9"), key, _two_files
        ).published
        assert again.digest == wanted
        assert lake_at(tmp_path / f"last{at}").partition("lines", key).require().damage() == []
        if not killed:
            break
        n_killed, at = n_killed + 1, at + 1
    print(f"\n{n_killed} kills at requests, all survived")
    assert n_killed >= 7


def dies_at(server, folder, key, at):
    """Build in a process of its own that the server kills at its ``at``-th request; whether it came
    to that.
    """
    seen = 0
    child = os.fork()
    if not child:
        signal.alarm(60)
        try:
            build(workshop_at(lake_at(folder)), lines_stage("9"), key, _two_files)
        finally:
            os._exit(0)

    def kill(_kind):
        nonlocal seen
        seen += 1
        if seen == at:
            os.kill(child, signal.SIGKILL)

    server.watch = kill
    _, status = os.waitpid(child, 0)
    server.watch = lambda _kind: None
    return os.waitstatus_to_exitcode(status) == -signal.SIGKILL


def test_two_machines_at_once_end_with_one_whole_version(tmp_path, server):
    """The second finds what the first one published, or is told Busy and is done when asked again;
    never halves of both.
    """
    one, two = (workshop_at(lake_at(tmp_path / name)) for name in ("one", "two"))

    def meanwhile(draft):
        build(two, lines_stage("2"), "2023-06", _two_files)
        return _two_files(draft)

    with pytest.raises(Busy):
        build(one, lines_stage("1"), "2023-06", meanwhile)
    assert lake_at(tmp_path / "three").partition("lines", "2023-06").require().damage() == []
    assert build(one, lines_stage("1"), "2023-06", _two_files).reused
