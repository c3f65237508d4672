"""Which files belong to which partition, what shards are called, and what is refused."""

import gzip
import socket

import fsspec
import pytest
from hypothesis import given, strategies as st

from lc_assets.errors import BadInput, LcError
from lc_assets.lake.upstream import Upstream, with_retries
from lc_assets.sources.files import FileSource, usable_id
from lc_assets.sources.opening import file_partitions, file_source, upstream_of
from lc_assets.sources.settings import SourceSettings, require_sources, source_name
from lc_assets.vocabulary import Shard, parse_document_id, parse_snapshot, usable_own_id


def source(folder, *, prefixed=False, **settings):
    return FileSource(
        name="web", settings=SourceSettings(path=str(folder), **settings), prefixed=prefixed
    )


@pytest.fixture
def crawls(tmp_path):
    """Two crawls' folders, as FineWeb publishes them, and files of other kinds."""
    for path in (
        "CC-MAIN-2024-10/000.parquet",
        "CC-MAIN-2024-10/a/001.jsonl.gz",
        "CC-MAIN-2024-18/000.parquet",
        "CC-MAIN-2024-18/.hidden.jsonl",
        "CC-MAIN-2024-18/README.md",
    ):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()
    return tmp_path


def test_partitions_by_folder(crawls):
    web = source(crawls, partition="folder")
    assert web.partitions() == ("CC-MAIN-2024-10", "CC-MAIN-2024-18")
    shards = web.shards(parse_snapshot("CC-MAIN-2024-10"))
    assert [(shard.name, paths["documents"]) for shard, paths in shards.items()] == [
        ("CC-MAIN-2024-10-000", "CC-MAIN-2024-10/000.parquet"),
        ("CC-MAIN-2024-10-a-001", "CC-MAIN-2024-10/a/001.jsonl.gz"),
    ]


def test_partitions_by_pattern(crawls):
    web = source(crawls, partition="pattern", pattern=r"CC-MAIN-(?P<snapshot>\d{4})")
    assert web.partitions() == ("2024",)
    assert len(web.shards(parse_snapshot("2024"))) == 3


def test_one_partition_is_called_like_the_source(crawls):
    assert source(crawls).partitions() == ("web",)
    assert source(crawls, prefixed=True).partitions() == ("web",)
    assert len(source(crawls).shards(parse_snapshot("web"))) == 3


def test_partitions_of_several_sources_begin_with_their_names(crawls):
    both = {
        "web": SourceSettings(path=str(crawls), partition="folder"),
        "more": SourceSettings(path=str(crawls), partition="folder"),
    }
    assert file_partitions(both) == (
        "more-CC-MAIN-2024-10",
        "more-CC-MAIN-2024-18",
        "web-CC-MAIN-2024-10",
        "web-CC-MAIN-2024-18",
    )
    assert source_name(both, "web-CC-MAIN-2024-10") == "web"
    with pytest.raises(BadInput, match="no source has a partition '2023-06'"):
        source_name(both, "2023-06")


def test_redpajama_beside_files_keeps_its_keys(crawls):
    both = {
        "rpv2": SourceSettings(kind="redpajama_v2", path="gs://bucket/rpv2"),
        "web": SourceSettings(path=str(crawls)),
    }
    assert source_name(both, "2023-06") == "rpv2"
    assert file_source(both, "2023-06") is None
    assert upstream_of(both, "2023-06", Upstream("x")) == Upstream("gs://bucket/rpv2")
    assert upstream_of({}, "2023-06", Upstream("x")) == Upstream("x")
    assert file_partitions(both) == ("web",)


def test_a_listing_names_the_files(tmp_path):
    (tmp_path / "wet.paths.gz").write_bytes(
        gzip.compress(b"a/0.wet.gz\na/1.wet.gz\nrobots.txt.tmp\n")
    )
    web = source(tmp_path, listing="wet.paths.gz")
    paths = [found["documents"] for found in web.shards(parse_snapshot("web")).values()]
    assert paths == ["a/0.wet.gz", "a/1.wet.gz"]
    (tmp_path / "bad.txt").write_text("../../etc/passwd.txt\n")
    with pytest.raises(BadInput, match=r"'\.\./\.\./etc/passwd.txt' is not a path below"):
        source(tmp_path, listing="bad.txt").shards(parse_snapshot("web"))


def test_a_single_file_is_a_source(tmp_path):
    (tmp_path / "book.txt").write_text("A long time ago.")
    (tmp_path / "other.txt").write_text("Another.")
    book = source(tmp_path / "book.txt")
    (shard,) = book.shards(parse_snapshot("web"))
    assert shard == Shard(parse_snapshot("web"), "book")
    (batch,) = book.batches("book.txt", tmp_path / "scratch")
    assert batch.columns["text"] == ["A long time ago."]


def test_a_file_elsewhere_is_copied_while_it_is_read(tmp_path):
    with fsspec.open("memory://corpus/a.jsonl", "wb") as out:
        out.write(b'{"text": "one", "key": 0}\n')
    web = source("memory://corpus", id_field="key")
    (found,) = web.shards(parse_snapshot("web")).values()
    (batch,) = web.batches(found["documents"], tmp_path / "scratch")
    assert (batch.columns["text"], batch.columns["own_id"]) == (["one"], ["0"])
    assert list((tmp_path / "scratch").iterdir()) == []


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "needs a path"),
        ({"path": "x", "partition": "pattern"}, "belong together"),
        ({"path": "x", "pattern": "a(?P<snapshot>b)"}, "belong together"),
        ({"path": "x", "partition": "pattern", "pattern": "a"}, "no group named snapshot"),
        ({"path": "x", "partition": "pattern", "pattern": "("}, "no regular expression"),
        ({"path": "x", "files": ("a",), "listing": "b"}, "not both"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(settings, words):
    with pytest.raises(BadInput, match=words):
        SourceSettings(**settings)


def test_names_that_could_not_begin_a_key_are_refused():
    with pytest.raises(BadInput, match="not a source's name"):
        require_sources({"my-web": SourceSettings(path="x")})
    twice = {name: SourceSettings(kind="redpajama_v2") for name in ("a", "b")}
    with pytest.raises(BadInput, match="only one can be of kind redpajama_v2"):
        require_sources(twice)


def test_what_is_not_there_is_named(tmp_path):
    with pytest.raises(BadInput, match="no such folder or file"):
        source(tmp_path / "none").shards(parse_snapshot("web"))
    with pytest.raises(BadInput, match="holds no file that ends in"):
        source(tmp_path).shards(parse_snapshot("web"))
    (tmp_path / "a.jsonl").touch()
    with pytest.raises(BadInput, match="lies in no folder"):
        source(tmp_path, partition="folder").shards(parse_snapshot("web"))
    with pytest.raises(BadInput, match="has no partition mine; its partitions are web"):
        source(tmp_path).shards(parse_snapshot("mine"))


def test_a_missing_folder_has_no_partitions_and_no_error():
    """Dagster's definitions load on a machine without the data."""
    missing = SourceSettings(path="/no/such/folder", partition="folder")
    assert file_partitions({"web": missing}) == ()


FILE_NAMES = st.text(st.sampled_from("aA0-_. /é\u202e\\"), min_size=1, max_size=12).map(
    lambda name: f"{name}.jsonl"
)


@given(st.lists(FILE_NAMES, unique=True, max_size=8))
def test_shard_names_are_safe_and_each_once(paths):
    from lc_assets.sources.file_shards import shard_names

    names = shard_names(paths)
    assert set(names) == set(paths)
    assert len({name.lower() for name in names.values()}) == len(paths)
    for name in names.values():
        shard = Shard(parse_snapshot("web"), name)
        assert Shard.of_tag(shard.tag) == shard


@given(st.one_of(st.integers(0, 10**9), st.text(max_size=30)))
def test_document_ids_lead_back_to_shard_and_own_id(own):
    shard = Shard.of_tag("books/part-0001")
    if isinstance(own, str) and not usable_own_id(own):
        with pytest.raises(LcError):
            parse_document_id(f"{shard.tag}/{own}" if not own.startswith("line-") else "")
        return
    assert parse_document_id(shard.document_id(own)) == (shard, own)


def test_an_id_that_was_there_before_is_not_used_again():
    seen = set[str]()
    assert [usable_id("0", seen, "books/part-0001/") for _ in range(2)] == ["0", ""]


def test_a_document_id_of_the_same_shard_stays():
    """Documents of a lake keep their ids when they are read again."""
    shard = Shard.of_tag("books/part-0001")
    ids = [
        shard.document_id("moby-dick"),
        shard.document_id(17),
        "books/part-0002/line-17",
        "line-3",
    ]
    found = [usable_id(name, set(), f"{shard.tag}/") for name in ids]
    assert found == ["moby-dick", "line-17", "books/part-0002/line-17", ""]
    assert [shard.document_id(name) for name in found[:2]] == ids[:2]


def test_a_host_that_does_not_exist_is_an_error_at_once(monkeypatch):
    """No retry: a name server that answers "no such host" is not asked again."""
    calls = []

    def no_such_host(*_args, **_more):
        calls.append(1)
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(fsspec.get_filesystem_class("memory"), "info", no_such_host)
    with pytest.raises(BadInput, match="no such host; correct the address"):
        with_retries(Upstream("memory://nowhere").look)("a.jsonl")
    assert len(calls) == 1
