"""``lc buckets``, ``lc pack --similar`` and ``lc megatron decompose``: what they
print.
"""

import gzip
import json
import re

import numpy as np
import pyarrow.parquet as pq
import pytest

from lc_assets.formats.megatron.indexed import MegatronWriter
from lc_assets_tests.builders import WORDS
from lc_assets_tests.file_runs import version_in


@pytest.fixture
def pages(tmp_path):
    """Twenty pages about two things, and a line that is none."""
    drawn = np.random.default_rng(4)
    texts = [
        " ".join(drawn.choice([f"{word}{n % 2}" for word in WORDS[:40]], 60)) for n in range(20)
    ]
    lines = [
        json.dumps({"id": f"p{n}", "text": text, "url": "https://a.org/\x1b[2J"})
        for n, text in enumerate(texts)
    ]
    path = tmp_path / "pages.jsonl.gz"
    path.write_bytes(gzip.compress("\n".join([*lines, "none"]).encode()))
    return path


def test_buckets_print_a_table(lc, pages, tmp_path):
    said = lc("buckets", pages, tmp_path / "out", "--edges", "10,4096", "--workers", 1)
    assert "21 documents = 20 in buckets + 1 left out" in said.out
    assert re.search(r"10-4K +20 +[\d,]+ +100.0 %", said.out)


def test_similar_pages_share_rows(lc, pages, tmp_path):
    """Pages of each of the two kinds fill a row of their own."""
    for more in (["--neighbours", 2], ["--path"]):
        out = tmp_path / more[0].strip("-")
        options = ["--similar", *more, "--length", 1500, "--max-similarity", 1, "--workers", 1]
        said = lc("pack", pages, out, *options)
        assert said.code == 0, said.err
        assert re.search(r"documents +21\n.*not JSON +1\n.*packed +20\n", said.out, re.DOTALL)
        assert "\x1b" not in said.out
        spans = pq.read_table(version_in(out, "packed_rows") / "spans.parquet").to_pylist()
        rows = {}
        for line in spans:
            rows.setdefault(line["row"], set()).add(int(line["id"].rpartition("p")[2]) % 2)
        assert all(len(kinds) == 1 for kinds in rows.values())


def test_pieces_print_a_table_by_length(lc, tmp_path):
    with MegatronWriter.publishing(tmp_path / "data", np.dtype(np.uint16)) as writer:
        writer.add(np.arange(21, dtype=np.uint16))
    said = lc(
        "megatron",
        "decompose",
        tmp_path / "data.bin",
        "--output",
        tmp_path / "out",
        "--shortest",
        4,
        "--longest",
        8,
    )
    assert "21 tokens = 20 in pieces + 1 left over" in said.out
    assert re.search(r"8 +2 +16 +80.0 %", said.out)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["buckets", "IN", "out", "--edges", "8,x"], "expected whole numbers"),
        (["buckets", "IN", "out", "--edges", "8,4"], "must be ascending"),
        (["pack", "IN", "--similar"], "name what to read and where to write"),
        (["pack", "IN", "out", "--similar", "--min-similarity", 0.99], "is above max_similarity"),
        (["pack", "IN", "out", "--similar", "--method", "segment"], "take bestfit or concat"),
        (["megatron", "decompose", "IN", "--output", "out", "--shortest", 3], "a power of two"),
    ],
)
def test_what_cannot_be_meant_ends_with_2_and_a_sentence(
    lc, pages, tmp_path, monkeypatch, words, complaint
):
    monkeypatch.chdir(tmp_path)
    said = lc(
        *(pages if word == "IN" else word for word in words),
        *([] if words[0] == "megatron" else ["--workers", 1]),
    )
    assert (said.code, said.out) == (2, "")
    assert complaint in said.err
    assert [path.name for path in tmp_path.iterdir()] == ["pages.jsonl.gz"]
