"""A bucket that refuses, dawdles, breaks off and lists late."""

import types
from collections import Counter

import pytest
from google.api_core.retry import retry_base, retry_unary
from google.cloud.storage import retry

from lc_assets.errors import CorruptFile, LcError, NotPublished, Unreachable
from lc_assets.lake.bucket import Bucket
from lc_assets.lake.partition import CURRENT
from lc_assets_tests.bucket_server import CLOSED, CUT, LOST, SLOW
from lc_assets_tests.builders import build
from lc_assets_tests.lake.test_buckets import _two_files, context_at, lines_stage
from lc_assets_tests.named_draws import rng_for

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
KINDS = ("read", "state", "list", "write")
FAULTS = (429, 500, 503, 504, CLOSED, LOST, CUT, SLOW)
PASSING = (None, None, None)


def test_faults_of_every_kind_change_nothing(machine, server):
    """Published on one machine, read on another, with faults among all requests: equal bytes, or an
    error of ours and then equal bytes.
    """
    rng, said = rng_for("faults of buckets", seed=64, key="lines"), Counter()
    for number in range(6):
        stage = lines_stage(code_version=str(number))
        server.faults = {
            kind: [*rng.choice([*FAULTS, *PASSING], size=6).tolist()] for kind in KINDS
        }
        context = context_at(machine("one"))
        for _ in range(20):
            try:
                published = build(context, stage, "2023-06", _two_files).published
                there = machine(f"two{number}").partition("lines", "2023-06").require()
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
    print(
        f"\n{server.scheme}, faults: {dict(server.injected)}; errors that ended an attempt: {dict(said)}"
    )
    assert len(server.injected) >= 6


@pytest.mark.parametrize("running", ["gs"], indirect=True)
def test_asking_again_is_bounded(bucket, server, monkeypatch):
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
        bucket.read("a")
    assert 2 <= server.requests["state"] < 200


def test_half_a_body_is_never_a_whole_one(machine, server):
    """A download that breaks off is asked for again or refused, whatever the file; what stays is
    whole.
    """
    built = build(context_at(machine("one")), lines_stage(), "2023-06", _two_files).published
    for number in range(4):
        server.faults = {"read": [CUT] * (number + 1)}
        for _ in range(8):
            try:
                found = machine(f"two{number}").partition("lines", "2023-06").require()
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


def test_a_listing_that_comes_late_hides_and_does_not_mislead(machine, server, monkeypatch):
    """What a stale listing lacks is not planned with, or not pruned; what it has too much is
    refused by name.
    """
    build(context_at(machine("one")), lines_stage(), "2023-06", _two_files)
    stale = machine("two")
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
        assert build(context_at(stale), lines_stage(), "2023-06", _two_files).reused
    with monkeypatch.context() as ahead:
        ahead.setattr(Bucket, "names", lambda *_: [f"lines/1999-01/{CURRENT}"])
        with pytest.raises(NotPublished, match="lines/1999-01"):
            stale.published("lines")
