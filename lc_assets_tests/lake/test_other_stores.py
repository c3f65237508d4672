"""What is asked of S3 and Azure alone, against emulators on loopback."""

import pytest

from lc_assets.errors import CorruptFile, LcError, Unreachable
from lc_assets.lake import object_storage
from lc_assets.lake.bucket import Bucket
from lc_assets.lake.upstream import Upstream
from lc_assets_tests.lake.test_buckets import files_of_several_sizes

pytestmark = pytest.mark.parametrize("running", ["s3", "az"], indirect=True)


def test_asking_again_is_bounded(url, server, monkeypatch):
    """By a number here; of seconds there are two minutes."""
    monkeypatch.setitem(object_storage.RETRIES, "max_retries", 3)
    server.faults = {"read": [503] * 100}
    with pytest.raises(Unreachable, match="crawl/lake/a"):
        Bucket(url).read("a")
    assert server.requests["read"] == 4


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


def test_a_source_is_read_from_there(bucket, server, tmp_path):
    folder = files_of_several_sizes(tmp_path / "files", 12 << 20)
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
