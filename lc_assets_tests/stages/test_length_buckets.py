"""Documents by their length in tokens: each in its bucket, with all of its fields."""

import gzip
import json

import pytest

from lc_assets.builds.building import check_input_of
from lc_assets.builds.settings.longpack import LengthBucketSettings
from lc_assets.errors import BadInput
from lc_assets.execution.local import LocalExecutor
from lc_assets.formats.tokenizers.gpt2 import gpt2_tokenizer
from lc_assets.lake.lake import Lake
from lc_assets.packing.lengths import bucket_names
from lc_assets.stages.packing.length_buckets import DOCUMENTS, TOKENS, buckets_hold_the_documents
from lc_assets_tests.file_runs import ONE, run

WORD_COUNTS = (3, 10, 40, 41, 90, 500)


@pytest.fixture
def corpus(tmp_path):
    """Documents of so many words, in two files, and a line that is none."""
    records = [
        {"id": f"d{n}", "text": " ".join(["word"] * n), "kept": {"as": n}} for n in WORD_COUNTS
    ]
    (tmp_path / "in/deep").mkdir(parents=True)
    (tmp_path / "in/a.jsonl").write_text(
        "".join(f"{json.dumps(record)}\n" for record in records[:3]) + "no json\n"
    )
    (tmp_path / "in/deep/b.jsonl.gz").write_bytes(
        gzip.compress("".join(f"{json.dumps(record)}\n" for record in records[3:]).encode())
    )
    return tmp_path / "in", records


def buckets(folder, out, edges, executor=ONE):
    settings = LengthBucketSettings(wanted=True, edges=edges)
    return run("length_buckets", [folder], out, executor=executor, length_buckets=settings)


def test_documents_are_in_the_folder_of_their_length(corpus, tmp_path):
    folder, records = corpus
    edges = (10, 41, 400)
    found, counts = buckets(folder, tmp_path / "out", edges)
    assert (counts.seen, counts.kept, counts.dropped) == (7, 6, {"not JSON": 1})
    tokens = {record["id"]: len(gpt2_tokenizer(True).encode(record["text"])) for record in records}
    expected = {"0-10": ["d3"], "10-41": ["d10", "d40"], "41-400": ["d41", "d90"], "400-": ["d500"]}
    for name in bucket_names(edges):
        lines = [
            json.loads(line)
            for path in (found / name).rglob("*.gz")
            for line in gzip.decompress(path.read_bytes()).splitlines()
        ]
        assert sorted(line["id"] for line in lines) == sorted(expected[name])
        assert counts.extra[f"{DOCUMENTS}{name}"] == len(lines)
        assert counts.extra[f"{TOKENS}{name}"] == sum(tokens[line["id"]] for line in lines)
        assert all(line in records for line in lines)
    assert len(list((found / "400-").iterdir())) == 1


def test_two_workers_write_the_same_bytes(corpus, tmp_path):
    one, two = (
        {
            path.relative_to(folder): path.read_bytes()
            for folder, _ in [
                buckets(corpus[0], tmp_path / str(n), (10, 41), LocalExecutor(workers=n))
            ]
            for path in folder.rglob("*.gz")
        }
        for n in (1, 2)
    )
    assert one == two


@pytest.mark.parametrize("edges", [(5, 5), (9, 4)])
def test_edges_rise(edges):
    with pytest.raises(BadInput, match="must be ascending numbers of tokens"):
        LengthBucketSettings(edges=edges)


def test_a_lost_line_is_found(corpus, tmp_path):
    """The check counts the documents of every bucket again."""
    folder, _ = buckets(corpus[0], tmp_path / "out", (10, 41))
    (path,) = (folder / "0-10").iterdir()
    path.write_bytes(gzip.compress(b""))
    lake = Lake(tmp_path / "out")
    published = lake.partition("length_buckets", "in").require()
    found = buckets_hold_the_documents(check_input_of(lake, published))
    assert (found.passed, found.message) == (False, "0-10: 0 lines, 1 documents counted")
