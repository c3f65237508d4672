"""Many small files share shards: ids name file and line, order is kept, one broken file is skipped."""

import json

import pyarrow.parquet as pq
import pytest
from hypothesis import given, strategies as st

import lc_assets as lc
from lc_assets.builds.checks import documents_files
from lc_assets.errors import LcError
from lc_assets.lake.lake import Lake
from lc_assets.sources import file_shards
from lc_assets.sources.file_shards import SHARD_BYTES, SHARD_FILES, shared_shards
from lc_assets.sources.files import FileSource
from lc_assets.sources.settings import SourceSettings
from lc_assets.stages.documents.explaining import explain_in_lake
from lc_assets.stages.documents.raw_snapshot import place_in_source
from lc_assets.vocabulary import parse_snapshot

N_FILES = 150
TEXTS = [text for it in range(N_FILES) for text in (f"Page {it}.", f"Its end, {it}.")]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Files of two documents, the second with an id of its own."""
    folder = tmp_path_factory.mktemp("small") / "pages"
    folder.mkdir()
    for number in range(N_FILES):
        page, end = TEXTS[2 * number : 2 * number + 2]
        lines = [{"text": page}, {"text": end, "id": "end"}]
        content = "".join(json.dumps(line) + "\n" for line in lines)
        (folder / f"page-{number:03d}.jsonl").write_text(content)
    return folder


def kept(out, corpus, **how):
    """Ids and texts after deduplication, which reads the files twice, and the output."""
    output = lc.deduplicate(corpus, out, by=["url"], workers=how.pop("workers", 1), **how)
    ids = [
        name
        for path in documents_files(output.versions[0])
        for name in pq.read_table(path)["id"].to_pylist()
    ]
    return list(zip(ids, (it.text for it in output.documents()), strict=True)), output


def test_documents_keep_order_and_are_named_by_file_and_line(corpus, tmp_path):
    found, output = kept(tmp_path / "out", corpus)
    assert [text for _, text in found] == TEXTS
    assert [name.split("/")[2:] for name, _ in found] == [
        [f"page-{number:03d}", own] for number in range(N_FILES) for own in ("line-0", "end")
    ]
    assert output.skipped_files == (0, N_FILES)
    shards = {name.split("/")[1] for name, _ in found}
    assert len(shards) < N_FILES / 20
    lake = Lake(tmp_path / "out")
    for number, end in ((0, "line 0 (from 0)"), (1, "id end")):
        assert place_in_source(lake, found[62 + number][0]) == f"page-031.jsonl, {end}"
    assert explain_in_lake(lake, found[62][0]).text == "Page 31."


def test_or_each_file_is_a_shard(corpus):
    source = FileSource(name="pages", settings=SourceSettings(path=str(corpus), small_bytes=0))
    shards = source.shards(parse_snapshot("pages"))
    assert [shard.name for shard in shards] == [path.stem for path in sorted(corpus.iterdir())]
    assert {tuple(parts) for parts in shards.values()} == {("documents",)}


def test_bytes_do_not_depend_on_the_workers(corpus, tmp_path):
    one, two = (
        kept(tmp_path / str(workers), corpus, workers=workers)[1].versions for workers in (1, 2)
    )
    assert [path.name for path in one] == [path.name for path in two]
    for path in one[0].rglob("*.*"):
        if path.name != "receipt.json":
            assert path.read_bytes() == (two[0] / path.name).read_bytes(), path


def test_tokens_are_those_of_one_file(corpus, tmp_path):
    one = tmp_path / "pages.jsonl"
    one.write_bytes(b"".join(path.read_bytes() for path in sorted(corpus.iterdir())))
    shared, alone = (
        [path.read_bytes() for path in sorted(lc.tokenize(given, out).versions[0].glob("*.bin"))]
        for given, out in ((corpus, tmp_path / "shared"), (one, tmp_path / "one"))
    )
    assert b"".join(shared) == b"".join(alone) != b""


def test_of_a_shared_shard_only_the_broken_file_is_skipped(corpus, tmp_path):
    broken = tmp_path / "pages"
    broken.mkdir()
    for path in corpus.iterdir():
        (broken / path.name).write_bytes(path.read_bytes())
    (broken / "page-041.jsonl").rename(broken / "page-041.jsonl.gz")
    found, output = kept(tmp_path / "out", broken)
    assert len(found) == 2 * (N_FILES - 1)
    assert output.skipped_files == (1, N_FILES)
    assert output.counts.dropped == {"documents missing or broken": 1}
    (filtered,) = output["filtered_documents"]
    assert any("broken of 1 files" in found.message for found in filtered.findings)
    with pytest.raises(LcError, match=r"page-041.jsonl.gz: cut short"):
        kept(tmp_path / "failing", broken, broken="fail")


@given(st.lists(st.integers(0, 99), max_size=300), st.integers(0, 100), st.integers(0, 300))
def test_shards_hold_small_files_once_and_in_order(sizes, small, at):
    files = {f"{number:03d}": size * SHARD_BYTES // 256 for number, size in enumerate(sizes)}
    shards = shared_shards(files, small * SHARD_BYTES // 256)
    together = [path for shard in shards for path in shard]
    assert together == sorted(set(together))
    assert all(files[path] < small * SHARD_BYTES // 256 for path in together)
    assert all(sum(files[path] for path in shard) <= SHARD_BYTES for shard in shards)
    assert all(len(shard) > 1 for shard in shards)


def test_a_new_file_changes_few_shards():
    files = {f"{number:06d}": 100 for number in range(50 * SHARD_FILES)}
    before = shared_shards(files, 1000)
    after = shared_shards(files | {"003000x": 100}, 1000)
    assert 25 < len(before) < 100
    assert sum(shard not in after for shard in before) == 1


def test_few_files_have_a_shard_each():
    files = {str(number): 1 for number in range(file_shards.FEW - 1)}
    assert shared_shards(files, 1000) == []
    assert shared_shards(files | {"more": 1}, 1000) != []
