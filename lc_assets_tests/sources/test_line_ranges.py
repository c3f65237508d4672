"""A large file of JSON lines cut into shards: every line once, the same data set for any size and
number of workers, and a changed line changes its own shard only.
"""

import gzip
import io
import json

import pytest
from hypothesis import given, settings, strategies as st

from lc_assets.api import corpora
from lc_assets.builds.settings.rows import TokenizingSettings
from lc_assets.errors import BadInput
from lc_assets.execution.local import LocalExecutor
from lc_assets.formats.corpora.containers import CorpusDocument, Unread
from lc_assets.lake.lake import Lake
from lc_assets.line_ranges import LinesOfRange, parsed, ranges_of
from lc_assets.sources.files import FileSource
from lc_assets.sources.settings import SourceSettings
from lc_assets.stages.documents.raw_snapshot import place_in_source
from lc_assets.stages.file_lakes import build_for, context_over_files
from lc_assets.stages.megatron import megatron_merging
from lc_assets.vocabulary import parse_snapshot

KEEP = TokenizingSettings(min_tokens=1, append_eod=True)


def source(folder, **more):
    return FileSource(name="web", settings=SourceSettings(path=str(folder), **more))


def shards_in(folder, **more):
    found = source(folder, **more).shards(parse_snapshot("web"))
    return {shard.name: paths["documents"] for shard, paths in found.items()}


def corpus(path, texts):
    path.write_text("".join(json.dumps({"id": f"d{text}", "text": text}) + "\n" for text in texts))
    return path


@given(
    content=st.lists(st.sampled_from([b"\n", b"a", b"\r", b"word", b"a line\n"])).map(b"".join),
    size=st.integers(1, 40),
)
def test_every_line_is_in_one_range(content, size):
    """In order, whole, also those longer than a range, and the last one without a newline."""
    ranges = [parsed(path)[1] or (0, size) for path in ranges_of("a", len(content), size)]
    parts = [LinesOfRange(io.BytesIO(content), lines) for lines in ranges]
    found = [io.BufferedReader(part, 7).read() for part in parts]
    assert b"".join(found) == content
    assert [len(part) for part in found] == [part.n_bytes for part in parts]
    held = [part for part in found if part]
    assert all(part.endswith(b"\n") for part in held[:-1])


@settings(max_examples=5, deadline=None)
@given(
    texts=st.lists(st.text("ab \n", min_size=1, max_size=99), min_size=2, max_size=20, unique=True),
    size=st.integers(20, 500),
)
def test_the_data_set_is_that_of_the_whole_file(tmp_path_factory, texts, size):
    """Byte for byte, once merged."""
    folder = tmp_path_factory.mktemp("cut")
    path = corpus(folder / "a.jsonl", texts)
    merged = []
    for name, shard_bytes in (("whole", 0), ("cut", size)):
        corpora.tokenize(path, folder / name, KEEP, workers=1, shard_bytes=shard_bytes)
        data_sets = megatron_merging.data_sets_of([folder / name])
        megatron_merging.merge(data_sets, folder / f"{name}-merged")
        merged.append([(folder / f"{name}-merged.{end}").read_bytes() for end in ("bin", "idx")])
    assert merged[0] == merged[1]


def test_workers_share_a_file_and_progress_moves_within_it(tmp_path):
    """The published files do not depend on the number of workers."""
    path, steps, found = corpus(tmp_path / "a.jsonl", map(str, range(100))), [], []

    def watch(items, *, total, what):
        for item in items:
            steps.append((what, total))
            yield item

    sections = {"token_documents": KEEP, "token_grid": corpora.NONE_HELD_OUT}
    for workers in (1, 2):
        out = tmp_path / f"out{workers}"
        executor = LocalExecutor(workers=workers, watch=watch)
        context = context_over_files(
            [path], out, executor=executor, settings=sections, shard_bytes=1000
        )
        (built,) = build_for(context, "token_documents")["token_documents"].values()
        found.append([(fact.path, fact.sha256) for fact in built.published.receipt.files])
    assert found[0] == found[1]
    n_shards = len(ranges_of("a", path.stat().st_size, 1000))
    assert n_shards > 2
    assert (
        steps.count(("tokenize a", n_shards)) == steps.count(("filter a", n_shards)) == 2 * n_shards
    )


def test_what_is_cut(tmp_path):
    """Larger files of plain JSON lines; sorted as they follow each other."""
    line = b'{"text": "a"}\n'
    (tmp_path / "big.jsonl").write_bytes(line * 20)
    (tmp_path / "small.jsonl").write_bytes(line)
    (tmp_path / "packed.jsonl.gz").write_bytes(gzip.compress(bytes(range(256))))
    found = shards_in(tmp_path, shard_bytes=100)
    assert list(found) == ["big-00000", "big-00001", "big-00002", "packed", "small"]
    assert found["big-00001"] == "big.jsonl#bytes=100-200"
    assert list(shards_in(tmp_path)) == ["big", "packed", "small"]
    (tmp_path / "big-00001.jsonl").write_bytes(line)
    with pytest.raises(BadInput, match="one shard's name: big-00001"):
        shards_in(tmp_path, shard_bytes=100)


def test_too_many_shards_are_refused():
    with pytest.raises(BadInput, match="more than 100,000 shards"):
        ranges_of("a.jsonl", 10**9, 10)


def test_another_size_is_another_state(tmp_path):
    """So that a plan sees it, although no file has changed."""
    corpus(tmp_path / "a.jsonl", "ab")
    states = {
        source(tmp_path, shard_bytes=size, files=files).state(parse_snapshot("web"))
        for size in (0, 10, 20)
        for files in ((), ("a.jsonl",))
    }
    assert len(states) == 6


def test_documents_of_a_range(tmp_path):
    """With the numbers of their lines in the range; a broken line is named by file and range."""
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "a"}\n{"text": "b"}\nnope\n{"text": "d"}\n')
    (batch,) = source(tmp_path).batches("a.jsonl#bytes=14-33", tmp_path / "scratch")
    first, second = batch.documents()
    assert isinstance(first, CorpusDocument)
    assert first.text == "b"
    assert isinstance(second, Unread)
    assert second.where == f"{path}#bytes=14-33, line 1"


def test_a_changed_line_changes_its_shard(tmp_path):
    """The others are reused; what was appended is a shard more."""
    path, out = corpus(tmp_path / "a.jsonl", map(str, range(100))), tmp_path / "out"
    first = corpora.tokenize(path, out, KEEP, workers=1, shard_bytes=1000)
    with path.open("a") as file:
        file.write('{"text": "one more"}\n')
    again = corpora.tokenize(path, out, KEEP, workers=1, shard_bytes=1000)
    (built,) = again["token_documents"]
    measured = built.published.receipt.measured
    assert again.counts.kept == first.counts.kept + 1
    assert (measured["shards_computed"], measured["shards_reused"]) == (1, 2)


def test_a_document_is_traced_to_its_range(tmp_path):
    path, out = corpus(tmp_path / "a.jsonl", map(str, range(100))), tmp_path / "out"
    corpora.tokenize(path, out, KEEP, workers=1, shard_bytes=1000)
    found = place_in_source(Lake(out), "a/a-00001/line-3")
    assert found == "a.jsonl#bytes=1000-2000, line 3 (from 0)"
