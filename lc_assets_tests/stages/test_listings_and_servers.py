"""Listings that cannot be meant, snapshots without documents, and a server that goes away in the
middle.
"""

import functools
import http.server
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from lc_assets.errors import BadInput, CorruptFile, NotPublished, Unreachable
from lc_assets.formats.arrays.grid import GridReader
from lc_assets.lake.upstream import Upstream
from lc_assets.loaders.rows import open_rows
from lc_assets.stages.catalogue import stage_named
from lc_assets.stages.mixes.blended_mix import read_mix
from lc_assets.stages.planning import plan
from lc_assets.vocabulary import SPLITS, parse_snapshot
from lc_assets_tests.builders import SNAPSHOTS, build_all, tiny_context, tiny_upstream
from lc_assets_tests.faults import (
    BEFORE_TOKENS,
    PER_SNAPSHOT,
    build_snapshot,
    copied,
    digests,
    finding,
    unpublished,
    with_policies,
)

OLD, NEW = SNAPSHOTS
BEFORE_MIXES = (
    *BEFORE_TOKENS,
    "token_documents",
    "token_grid",
    "longcrawl",
    "longcrawl_flat",
    "megatron_rows",
)


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    return tiny_upstream(tmp_path_factory.mktemp("sound"))


@pytest.fixture(scope="module")
def never_spoilt(tmp_path_factory, sound):
    """Digests of the whole chain over the upstream without faults."""
    return digests(build_all(tiny_context(tmp_path_factory.mktemp("never"), upstream=sound)))


@pytest.fixture
def context(tmp_path, sound):
    """A context over a copy of the upstream that may be spoiled."""
    return tiny_context(tmp_path, upstream=copied(sound, tmp_path / "upstream"))


def listing(context, snapshot=OLD) -> Path:
    return Path(context.upstream.root) / f"listings/en-{snapshot}-head_middle.txt"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (
            b"2023-06/0000/en_head\n../../x\n",
            r"en-2023-06-head_middle.txt, line 2: not a shard tag: '../../x'; expected snapshot/0000/",
        ),
        (b"2023-06/0000/../en_head\n", "line 1: not a shard tag"),
        (b"2023-06/0000/en_head\xff\n", "line 1: not a shard tag: .*is not ASCII"),
        ("2023-06/0000/en_head\n".encode("utf-16"), "line 1: not a shard tag: .*is not ASCII"),
        (
            b"2023-06/0000/en_head\n2023-14/0000/en_head\n",
            "line 2: 2023-14/0000/en_head is of snapshot 2023-14, expected shards of 2023-06",
        ),
        (
            b"2023-06/0000/en_head\n\n2023-06/0000/en_head\n",
            "line 3: .*is listed a second time, first on line 1",
        ),
        (b"2023-06/0000/tlh_head\n", "line 1: not a shard tag"),
        (b"<html>not found</html>", "line 1: not a shard tag: '<html>not found</html>'"),
    ],
    ids=[
        "leaves the root",
        "dots within",
        "not UTF-8",
        "UTF-16",
        "another snapshot",
        "twice",
        "a language of three letters",
        "a web page",
    ],
)
def test_a_listing_that_cannot_be_meant_stops_at_its_line(context, never_spoilt, content, words):
    """No path is made of it and no other line of it is used; the listing repaired, the chain is as
    if nothing had been.
    """
    sound = listing(context).read_bytes()
    listing(context).write_bytes(content)
    with pytest.raises(BadInput, match=words):
        build_snapshot(context, OLD, ["raw_snapshot"])
    assert not context.lake.root.exists()
    with pytest.raises(
        NotPublished, match="raw_snapshot/2023-06 is not published .*materialize it"
    ):
        build_snapshot(context, OLD, ["filtered_documents"])
    assert unpublished(context.lake, *PER_SNAPSHOT)
    listing(context).write_bytes(sound)
    assert (
        digests(build_snapshot(context, OLD, ["raw_snapshot"]))["raw_snapshot"]
        == never_spoilt["raw_snapshot/2023-06"]
    )


def test_a_listing_larger_than_any_is_not_read_whole(context, monkeypatch):
    """What is no listing is not taken into memory."""
    monkeypatch.setattr("lc_assets.sources.redpajama_v2.LISTING_BYTES", 20)
    with pytest.raises(
        CorruptFile,
        match="en-2023-06-head_middle.txt: larger than 20 bytes, so it is not what it should be",
    ):
        build_snapshot(context, OLD, ["raw_snapshot"])
    assert not context.lake.root.exists()


def test_a_snapshot_that_is_not_listed_is_said(context):
    """The message says where it was looked for; nothing is published."""
    with pytest.raises(
        BadInput,
        match="nothing is listed for snapshot 2014-15: none of "
        "listings/en-2014-15-head_middle.txt exists",
    ):
        build_snapshot(context, "2014-15", ["raw_snapshot"])
    assert not context.lake.root.exists()


def test_empty_snapshots_go_through_the_whole_chain(context, never_spoilt):
    """Zero rows from end to end, readable as such, warned of at the top; only a mix that names
    snapshots says that they have nothing to mix.
    """
    sound = {snapshot: listing(context, snapshot).read_bytes() for snapshot in SNAPSHOTS}
    for snapshot in SNAPSHOTS:
        listing(context, snapshot).write_bytes(b"")
    built = {
        name: build_snapshot(context, name, (*PER_SNAPSHOT, "packing_tokens", "packed_rows"))
        for name in SNAPSHOTS
    }
    for name in ("longcrawl", "longcrawl_flat"):
        built[name] = {name: stage_named(name).build(context, "all")}
    assert {found.counts.seen for group in built.values() for found in group.values()} == {0}
    warned = finding(built[OLD]["raw_snapshot"], "every_listed_file_is_there")
    assert (warned.passed, warned.severity) == (False, "warning")
    assert warned.message == "no shard is listed for these languages, buckets and shard numbers"
    for split in SPLITS:
        assert GridReader(
            built[OLD]["token_grid"].published.folder / f"{split}.zarr"
        ).read().shape == (
            0,
            64,
        )
        assert open_rows(context.lake.root, split).n_rows == 0
        assert (
            open_rows(built["longcrawl_flat"]["longcrawl_flat"].published.folder, split).n_rows == 0
        )
    assert [path.name for path in built[OLD]["megatron_rows"].published.folder.iterdir()] == [
        "receipt.json"
    ]
    mix = stage_named("blended_mix").build(context, "by-tokens").published
    assert (read_mix(mix.folder).sources, read_mix(mix.folder).n_samples) == ([], 0)
    with pytest.raises(BadInput, match="the mix names 2023-06, 2023-14,.* without training"):
        stage_named("blended_mix").build(context, "one-sided")
    assert {
        made.name
        for made in plan(context.lake, context.recipe, SNAPSHOTS)
        if made.status != "current"
    } == {"blended_mix/one-sided", "data_set_card/all"}
    for snapshot, content in sound.items():
        listing(context, snapshot).write_bytes(content)
    assert digests(build_all(context)) == never_spoilt


def test_one_empty_snapshot_does_not_hinder_the_other(context):
    """The order, the flat copy and a mix of everything are over the rows there are; a mix that
    names the empty one says so.
    """
    listing(context, NEW).write_bytes(b"")
    for snapshot in SNAPSHOTS:
        build_snapshot(context, snapshot)
    assert stage_named("longcrawl").build(context, "all").counts.kept == 24
    assert stage_named("longcrawl_flat").build(context, "all").counts.kept == 24
    mixed = stage_named("blended_mix").build(context, "by-tokens")
    assert mixed.counts.extra["sources"] == 1
    assert mixed.counts.kept > 0
    with pytest.raises(
        BadInput,
        match="the mix names 2023-14, without training samples .*; take it out of the weights",
    ):
        stage_named("blended_mix").build(context, "one-sided")


class Moody(http.server.SimpleHTTPRequestHandler):
    """Serves files until it is told to break off: connections are closed in the middle of every
    answer longer than this.
    """

    breaks_off_after: int | None = None
    served: list[str]

    def log_message(self, *_):
        pass

    def do_GET(self):
        type(self).served.append(self.path)
        super().do_GET()

    def copyfile(self, source, outputfile):
        if self.breaks_off_after is None:
            super().copyfile(source, outputfile)
        else:
            outputfile.write(source.read(self.breaks_off_after))
            self.close_connection = True


@pytest.fixture
def moody(context):
    """A server over the context's upstream, its handler, and a context that reads from it."""
    handler = type("MoodyOnce", (Moody,), {"served": []})
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(handler, directory=context.upstream.root)
    )
    threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
    ).start()
    yield (
        server,
        handler,
        replace(context, upstream=Upstream(f"http://127.0.0.1:{server.server_port}")),
    )
    server.shutdown()
    server.server_close()


LENIENT = {
    "corrupt_documents": "skip_shard",
    "missing_signals": "skip_shard",
    "missing_duplicates": "treat_as_unique",
}


def test_a_connection_that_breaks_is_no_broken_file(moody, never_spoilt, monkeypatch):
    """Even the most lenient policies leave no shard out for it: upstream is asked again, and then
    the stage stops.
    """
    _, handler, context = moody
    context = with_policies(context, **LENIENT)
    monkeypatch.setattr("lc_assets.lake.upstream.PAUSES_SECONDS", (0.0, 0.0))
    build_snapshot(context, OLD, ["raw_snapshot"])
    handler.breaks_off_after = 300
    handler.served.clear()
    with pytest.raises(
        Unreachable, match=r"en_\w+\.duplicates.*: could not be read to its end|cannot reach"
    ):
        build_snapshot(context, OLD, ["filtered_documents"])
    assert len([path for path in handler.served if ".duplicates" in path]) >= 3
    assert unpublished(context.lake, "filtered_documents")
    handler.breaks_off_after = None
    built = build_snapshot(context, OLD, ["raw_snapshot", "filtered_documents"])
    assert (
        built["filtered_documents"].published.digest == never_spoilt["filtered_documents/2023-06"]
    )
    assert built["filtered_documents"].counts.extra["shards treated as unique"] == 0


def test_a_connection_that_breaks_once_is_made_again(moody, never_spoilt, monkeypatch):
    """The shard is read again from its beginning; the build does not fail and its bytes are the
    same.
    """
    _, handler, context = moody
    monkeypatch.setattr("lc_assets.lake.upstream.PAUSES_SECONDS", (0.0,))
    monkeypatch.setattr(
        "tenacity.nap.time.sleep", lambda _: setattr(handler, "breaks_off_after", None)
    )
    build_snapshot(context, OLD, ["raw_snapshot"])
    handler.breaks_off_after = 300
    assert (
        build_snapshot(context, OLD, ["filtered_documents"])["filtered_documents"].published.digest
        == never_spoilt["filtered_documents/2023-06"]
    )


def test_a_server_that_goes_away_stops_the_stage(moody, context, never_spoilt, monkeypatch):
    """Between manifest and filter, with every policy lenient: an error that names the address,
    nothing published; a rerun completes.
    """
    server, _, reading = moody
    reading = with_policies(reading, **LENIENT)
    monkeypatch.setattr("lc_assets.lake.upstream.PAUSES_SECONDS", (0.0,))
    build_snapshot(reading, OLD, ["raw_snapshot"])
    server.shutdown()
    server.server_close()
    with pytest.raises(
        Unreachable,
        match=rf"cannot reach {reading.upstream.root}/.*look whether the address is right",
    ):
        build_snapshot(reading, OLD, ["filtered_documents"])
    with pytest.raises(Unreachable, match="cannot reach"):
        build_snapshot(reading, parse_snapshot(NEW), ["raw_snapshot"])
    assert unpublished(reading.lake, "filtered_documents")
    assert not reading.lake.partition("raw_snapshot", NEW).folder.exists()
    back = replace(reading, upstream=context.upstream)
    assert (
        build_snapshot(back, OLD, ["filtered_documents"])["filtered_documents"].published.digest
        == never_spoilt["filtered_documents/2023-06"]
    )
