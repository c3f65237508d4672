"""An upstream's state: it differs when a file does, costs no request per shard, and ticks share the
work.
"""

import functools
import http.server
import os
import threading
from pathlib import Path

import fsspec
import pytest

from lc_assets.builds.settings.documents import RawSettings
from lc_assets.errors import Unreachable
from lc_assets.lake.upstream import Upstream
from lc_assets.stages import watching
from lc_assets.stages.watching import state_of, survey
from lc_assets.vocabulary import Shard, parse_snapshot
from lc_assets_tests.builders import SNAPSHOTS, tiny_documents, tiny_upstream, write_shard
from lc_assets_tests.faults import file_of

OLD, NEW = SNAPSHOTS
ENGLISH = RawSettings(languages=("en",))


@pytest.fixture
def folder(tmp_path) -> Path:
    return tiny_upstream(tmp_path / "upstream", tags=("0000/en_head", "0001/en_head"))


def states(upstream: Upstream, **more) -> dict[str, str]:
    return survey(upstream, ENGLISH, known=SNAPSHOTS, begun=SNAPSHOTS, **more).states


def rewritten(folder: Path) -> None:
    shard = Shard.parse(f"{NEW}/0001/en_head")
    write_shard(folder, shard, tiny_documents(shard, seed=4))


def touched_only(folder: Path) -> None:
    os.utime(file_of(folder, "signals", f"{NEW}/0000/en_head"), ns=(1, 1))


def lost(folder: Path) -> None:
    file_of(folder, "duplicates", f"{NEW}/0001/en_head").unlink()


def listed_otherwise(folder: Path) -> None:
    (folder / f"listings/en-{NEW}-head_middle.txt").write_text(f"{NEW}/0000/en_head\n")


def signed(folder: Path) -> None:
    path = file_of(folder, "minhash", f"{NEW}/0001/en_head")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x")


@pytest.mark.parametrize(
    "change",
    [rewritten, touched_only, lost, listed_otherwise, signed],
    ids=lambda change: change.__name__,
)
def test_a_folders_state_differs_when_any_of_a_snapshots_files_does(folder, change):
    """Of that snapshot and of no other; looked at again it is the same."""
    before = states(Upstream(str(folder)))
    assert states(Upstream(str(folder))) == before
    change(folder)
    after = states(Upstream(str(folder)))
    assert after[OLD] == before[OLD]
    assert after[NEW] != before[NEW]


def test_files_that_are_no_snapshots_change_nothing(folder):
    before = states(Upstream(str(folder)))
    (folder / "README.md").write_text("hello")
    (folder / "listings" / "notes.txt").write_text("hello")
    assert states(Upstream(str(folder))) == before


def test_a_folder_is_read_by_names_alone(folder, monkeypatch):
    """No file is opened, whatever its size."""

    def refused(*_, **__):
        raise AssertionError("a file was opened")

    monkeypatch.setattr(Upstream, "open", refused)
    monkeypatch.setattr(Upstream, "look", refused)
    assert len(states(Upstream(str(folder)))) == len(SNAPSHOTS)


def counted(monkeypatch, kind, names) -> list[str]:
    """Note each call of some methods of a file system."""
    asked: list[str] = []

    def counting(name):
        really = getattr(kind, name)
        return lambda self, *words, **more: asked.append(name) or really(self, *words, **more)

    for name in names:
        monkeypatch.setattr(kind, name, counting(name))
    return asked


def test_a_bucket_is_listed_once_per_kind_of_file_whatever_the_shards(tmp_path, monkeypatch):
    """As many listings for twelve shards as for two; no file is asked for by itself."""
    files = fsspec.filesystem("memory")
    counts = []
    for n_shards in (2, 12):
        root = f"/{tmp_path.name}-{n_shards}"
        here = tiny_upstream(
            tmp_path / str(n_shards),
            snapshots=[OLD],
            tags=[f"{number:04d}/en_head" for number in range(n_shards)],
        )
        files.put(str(here), root, recursive=True)
        asked = counted(monkeypatch, type(files), ["find", "_open"])
        assert len(states(Upstream(f"memory:/{root}"))) == 1
        monkeypatch.undo()
        counts.append([asked.count(name) for name in ("find", "_open")])
        files.rm(root, recursive=True)
    assert counts == [[5, 0], [5, 0]]


def test_a_tick_leaves_what_it_has_no_time_for_to_the_next(folder, monkeypatch):
    """One snapshot at least per tick, beginning where the last one stopped; all come by."""
    upstream = Upstream(str(folder))
    everything = states(upstream)
    monkeypatch.setattr(watching, "TICK_SECONDS", -1.0)
    seen: dict[str, str] = {}
    first = None
    for _ in range(2):
        found = survey(upstream, ENGLISH, known=SNAPSHOTS, begun=(), first=first)
        assert len(found.states) == 1
        seen |= found.states
        first = found.next
    assert seen == everything


def test_snapshots_that_stand_in_no_list_are_named_and_not_looked_at(folder):
    found = survey(Upstream(str(folder)), ENGLISH, known=[OLD], begun=[OLD, NEW])
    assert (list(found.states), found.unknown) == ([OLD], (NEW,))


def test_an_empty_place_has_no_snapshots(tmp_path):
    found = survey(Upstream(str(tmp_path / "nowhere")), ENGLISH, known=SNAPSHOTS, begun=())
    assert (found.states, found.unknown, found.next) == ({}, (), None)


class Counting(http.server.SimpleHTTPRequestHandler):
    """Names versions of files, and counts what is asked."""

    def __init__(self, *words, asked, **more):
        self.asked = asked
        super().__init__(*words, **more)

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.asked.append(("GET", self.path))
        super().do_GET()

    def do_HEAD(self):
        self.asked.append(("HEAD", self.path))
        super().do_HEAD()

    def end_headers(self):
        path = Path(self.translate_path(self.path))
        self.send_header("ETag", f'"{path.stat().st_mtime_ns if path.exists() else 0}"')
        super().end_headers()


@pytest.fixture
def served(folder):
    asked: list[tuple[str, str]] = []
    handler = functools.partial(Counting, directory=str(folder), asked=asked)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
    ).start()
    yield f"http://127.0.0.1:{server.server_port}", asked
    server.shutdown()
    server.server_close()


def test_a_web_server_is_asked_for_listings_only(served, folder):
    """One request per language and snapshot that was begun, by its ETag; nobody lists a web server,
    so nothing is unknown.
    """
    address, asked = served
    upstream = Upstream(address)
    found = survey(upstream, ENGLISH, known=SNAPSHOTS, begun=[NEW])
    assert (list(found.states), found.unknown) == ([NEW], ())
    assert asked == [("HEAD", f"/listings/en-{NEW}-head_middle.txt")]
    assert state_of(upstream, parse_snapshot(NEW), ENGLISH) == found.states[NEW]
    rewritten(folder)
    assert state_of(upstream, parse_snapshot(NEW), ENGLISH) == found.states[NEW]
    listed_otherwise(folder)
    assert state_of(upstream, parse_snapshot(NEW), ENGLISH) != found.states[NEW]


def test_a_place_that_does_not_answer_is_unreachable():
    with pytest.raises(Unreachable, match="127.0.0.1:9"):
        survey(Upstream("http://127.0.0.1:9"), ENGLISH, known=SNAPSHOTS, begun=[OLD])


def test_a_change_behind_a_same_listing_of_a_bucket_is_seen_again_in_one_process(tmp_path):
    """Listings that a file system keeps in memory are not believed."""
    files = fsspec.filesystem("memory")
    root = f"/{tmp_path.name}-again"
    files.put(
        str(tiny_upstream(tmp_path / "upstream", snapshots=[OLD], tags=["0000/en_head"])),
        root,
        recursive=True,
    )
    upstream = Upstream(f"memory:/{root}")
    before = states(upstream)
    files.pipe_file(f"{root}/documents/{OLD}/0000/en_head.json.gz", b"other")
    assert states(upstream) != before
    files.rm(root, recursive=True)
