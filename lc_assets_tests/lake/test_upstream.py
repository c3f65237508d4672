"""Reading upstream: the same answers from a folder, from memory and over HTTP."""

import functools
import http.server
import os
import threading

import fsspec
import pytest

from lc_assets.errors import BadInput, CorruptFile, Unreachable
from lc_assets.lake import upstream as module
from lc_assets.lake.upstream import Upstream, with_retries

CONTENT = b"some bytes" * 1000


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


class EtagHandler(QuietHandler):
    """Names a version of each file, as object stores do."""

    def end_headers(self):
        self.send_header("ETag", '"v1"')
        super().end_headers()


class BrokenHandler(QuietHandler):
    """Answers everything with a server error."""

    def do_HEAD(self):
        self.send_error(500)

    do_GET = do_HEAD  # noqa: N815 - the base class's name


class CutHandler(QuietHandler):
    """Promises more bytes than it sends."""

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", str(len(CONTENT) * 2))
        self.end_headers()
        self.wfile.write(CONTENT)


@pytest.fixture
def served(tmp_path):
    """Serve a folder on loopback; hand out a function from handler to URL."""
    servers = []

    def serve(handler):
        server = http.server.ThreadingHTTPServer(
            ("127.0.0.1", 0), functools.partial(handler, directory=str(tmp_path))
        )
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_port}"

    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "a.bin").write_bytes(CONTENT)
    yield serve
    for server in servers:
        server.shutdown()
        server.server_close()


def test_a_folder_and_a_web_server_say_the_same(served, tmp_path):
    """Without an ETag the identity is the content's digest, wherever it lies."""
    local, remote = Upstream(str(tmp_path)), Upstream(served(QuietHandler))
    assert local.look("deep/a.bin") == remote.look("deep/a.bin")
    assert local.look("deep/a.bin").identity.startswith("sha256:")
    assert remote.read("deep/a.bin", most_bytes=1 << 20) == CONTENT
    assert local.look("deep/none") is None
    assert remote.look("deep/none") is None
    assert remote.read("deep/none", most_bytes=10) is None


def test_a_server_that_names_versions_is_believed(served):
    """With an ETag nothing is downloaded to tell what a file holds."""
    assert Upstream(served(EtagHandler)).look("deep/a.bin").identity == 'etag:"v1"'


def test_a_body_that_stops_half_way_says_nothing_about_the_file(served):
    """A connection that ends early is an error with the file's name: neither a shorter file nor a
    broken one.
    """
    with (
        pytest.raises(Unreachable, match="deep/a.bin: could not be read to its end"),
        Upstream(served(CutHandler)).open("deep/a.bin") as stream,
    ):
        while stream.read(1 << 16):
            pass


def test_times_are_trusted_only_when_asked_for(tmp_path):
    """By content, a touched file is the same; by time, it is another."""
    place, upstream = tmp_path / "a.bin", Upstream(str(tmp_path))
    place.write_bytes(CONTENT)
    by_content, by_time = upstream.look("a.bin"), upstream.look("a.bin", trust_times=True)
    os.utime(place, (1, 1))
    assert upstream.look("a.bin") == by_content
    assert upstream.look("a.bin", trust_times=True) != by_time
    assert by_time.identity.startswith("mtime:")


def test_a_file_that_was_read_before_is_known_by_its_crc32(tmp_path, monkeypatch):
    """Its SHA-256 is computed again only where that differs, or where it is not known."""
    path, place, digested = tmp_path / "a.bin", Upstream(str(tmp_path)), []
    path.write_bytes(CONTENT)
    before = place.look("a.bin")
    sha256 = module.hashlib.sha256
    monkeypatch.setattr(module.hashlib, "sha256", lambda: digested.append(1) or sha256())
    assert place.look("a.bin", expected=before.identity) == before
    assert not digested
    path.write_bytes(CONTENT[:-1] + b"?")
    changed = place.look("a.bin", expected=before.identity)
    assert changed.n_bytes == before.n_bytes
    assert changed.identity != before.identity
    assert changed == place.look("a.bin", expected="sha256:of another process")
    assert len(digested) == 2


def test_folders_and_buckets_are_looked_through_but_no_server(served, tmp_path):
    """Files below a folder, sorted, without hidden ones; a folder that is not there holds none; a
    web server has no folders.
    """
    for name in ("b.bin", "c/d.bin", ".hidden", "c/.staging-1"):
        path = tmp_path / "deep" / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(CONTENT)
        with fsspec.open(f"memory://below/deep/{name}", "wb") as stream:
            stream.write(CONTENT)
    assert Upstream(str(tmp_path)).below("deep") == ["deep/a.bin", "deep/b.bin", "deep/c/d.bin"]
    assert Upstream("memory://below").below("deep") == ["deep/b.bin", "deep/c/d.bin"]
    assert Upstream(str(tmp_path)).below("none") == Upstream("memory://below").below("none") == []
    assert Upstream(served(QuietHandler)).below("deep") is None


def test_memory_is_a_place_too():
    """Any file system of fsspec will do."""
    with fsspec.open("memory://rpv2/deep/a.bin", "wb") as stream:
        stream.write(CONTENT)
    upstream = Upstream("memory://rpv2")
    assert upstream.look("deep/a.bin").n_bytes == len(CONTENT)
    assert upstream.read("deep/a.bin", most_bytes=1 << 20) == CONTENT


def test_a_file_that_should_be_small_is_not_read_whole(tmp_path):
    """A listing of a gigabyte is refused after its limit."""
    (tmp_path / "big").write_bytes(b"x" * 100)
    with pytest.raises(CorruptFile, match="larger than 99 bytes"):
        Upstream(str(tmp_path)).read("big", most_bytes=99)


def test_nobody_listening_is_said_plainly():
    """A refused connection names the address."""
    with pytest.raises(Unreachable, match="cannot reach http://127.0.0.1:1/x"):
        Upstream("http://127.0.0.1:1").look("x")


def test_a_server_in_trouble_is_not_a_missing_file(served):
    """A 500 must not look like a file that upstream does not have: that would be counted and
    skipped.
    """
    broken = Upstream(served(BrokenHandler))
    with pytest.raises(Unreachable, match="cannot reach .*500"):
        broken.look("deep/a.bin")
    with pytest.raises(Unreachable, match="cannot reach .*500"), broken.open("deep/a.bin"):
        pass


def test_a_file_that_goes_missing_is_missing(tmp_path, served):
    """Only "not found" in so many words makes a file missing: a policy may then pass over it."""
    for upstream in (Upstream(str(tmp_path)), Upstream(served(QuietHandler))):
        with pytest.raises(CorruptFile, match="deep/none: is missing"), upstream.open("deep/none"):
            pass


def test_a_server_without_ranges_is_named(served, tmp_path, monkeypatch):
    """Python's own server cannot send the second part of a large file; the message says which
    servers can.
    """
    monkeypatch.setattr("lc_assets.lake.upstream.BLOCK_BYTES", 1000)
    with (
        pytest.raises(BadInput, match="deep/a.bin: the server sends whole files only.*nginx"),
        Upstream(served(QuietHandler)).open("deep/a.bin") as stream,
    ):
        while stream.read(1000):
            pass


def test_upstream_is_asked_again_and_then_given_up(monkeypatch):
    """Two failures and an answer are an answer; a failure more than there are pauses is a failure;
    a missing file is not asked twice.
    """
    waited, answers = [], [Unreachable("no"), Unreachable("no"), None]
    monkeypatch.setattr("lc_assets.lake.upstream.PAUSES_SECONDS", (1, 2))
    monkeypatch.setattr("tenacity.nap.time.sleep", waited.append)

    @with_retries
    def ask(answers):
        if (answer := answers.pop(0)) is not None:
            raise answer
        return "answer"

    assert ask(answers) == "answer"
    assert waited == [1, 2]
    with pytest.raises(Unreachable, match="third"):
        ask([Unreachable("first"), Unreachable("second"), Unreachable("third"), None])
    with pytest.raises(CorruptFile):
        ask([CorruptFile("is missing"), None])
    assert waited == [1, 2, 1, 2]


def test_an_unknown_kind_of_place_is_refused():
    """A misspelt protocol names itself."""
    with pytest.raises(BadInput, match="cannot read from 'gss://x'"):
        Upstream("gss://x").look("y")
