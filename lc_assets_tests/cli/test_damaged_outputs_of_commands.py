"""A command over the output of another: a bit flipped in what the first one published ends the
second with a sentence, and nothing is published; the repair that it names restores the bytes.
"""

import json
import re

import numpy as np
import pytest

from lc_assets.formats.archives.writing import FetchedPage, write_pages
from lc_assets_tests.builders import WORDS
from lc_assets_tests.faults import flipped
from lc_assets_tests.file_runs import version_in

VERBS = {
    "filter": ("filter", "--rules", "none"),
    "dedup": ("dedup",),
    "decontaminate": ("decontaminate", "--against", "{corpus}/items.jsonl"),
    "tokenize": ("tokenize",),
    "pack": ("pack", "--length", 64),
    "longpack": ("longpack", "--warc", "{corpus}/crawl.warc.gz", "--any-language"),
    "buckets": ("buckets", "--edges", "10,4096"),
}
"""Commands with an output folder."""


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Two small files of pages, the archive that they come from, and a question that none of them
    holds.
    """
    folder = tmp_path_factory.mktemp("corpus")
    rng, pages = np.random.default_rng(7), []
    for number in range(2):
        lines = [
            {"url": f"http://a.org/{at}/{number}", "text": " ".join(WORDS[n] for n in drawn)}
            for at, drawn in enumerate(rng.integers(99, size=(4, 120)))
        ]
        pages += [
            FetchedPage(
                line["url"], "2023-02-02T00:00:00Z", f"<p>{line['text']}<a href='/1/1'>on</a>"
            )
            for line in lines
        ]
        path = folder / "texts" / f"part{number}.jsonl"
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    write_pages(folder / "crawl.warc.gz", pages, filename="crawl.warc.gz")
    question = "who ever saw seven zebras juggle nine violins on a quiet frozen harbour"
    (folder / "items.jsonl").write_text(json.dumps({"question": question}) + "\n")
    return folder


def run(lc, verb, corpus, source, out):
    """Run a verb over a source."""
    name, *options = VERBS[verb]
    options = [str(option).format(corpus=corpus) for option in options]
    return lc(name, source, out, *options, "--workers", 1)


@pytest.fixture(scope="module")
def published(corpus):
    """Outputs of first verbs, made once; tests repair what they damage."""
    return {}


def output_of(lc, verb, corpus, published):
    """Folder of a verb's output over the corpus."""
    if verb not in published:
        published[verb] = corpus / f"out-{verb}"
        assert run(lc, verb, corpus, corpus / "texts", published[verb]).code == 0
    return published[verb]


@pytest.mark.parametrize(
    ("first", "stage", "pattern"),
    [
        ("filter", "filtered_documents", "*.documents.parquet"),
        ("dedup", "clean_documents", "*.jsonl.gz"),
        ("longpack", "longpack_documents", "*.documents.parquet"),
    ],
)
@pytest.mark.parametrize("second", VERBS)
def test_a_verb_refuses_a_damaged_output_of_another(
    lc, corpus, published, tmp_path, first, stage, pattern, second
):
    """The last file of the first verb's documents, a bit in its middle; then the file is missing."""
    folder = output_of(lc, first, corpus, published)
    version = version_in(folder, stage)
    path = max(version.glob(pattern))
    whole = path.read_bytes()
    try:
        flipped(path)
        said = run(lc, second, corpus, folder, tmp_path / "out")
        assert said.code == 1
        repair = f"`lc rebuild --repair --verify --lake {folder}`"
        assert re.sub(r"\s+", " ", said.err).strip().endswith(f"build it again with {repair}")
        assert f"{path}: differs from its receipt" in said.err
        path.unlink()
        said = run(lc, second, corpus, folder, tmp_path / "out")
        assert said.code == 1
        assert f"{path}: is missing" in said.err
        assert not list((tmp_path / "out").rglob("current.json"))
    finally:
        path.write_bytes(whole)
    assert run(lc, second, corpus, folder, tmp_path / "out").code == 0


def test_the_repair_that_is_named_restores_the_bytes(lc, corpus, published):
    """As the message says it."""
    folder = output_of(lc, "filter", corpus, published)
    path = max(version_in(folder, "filtered_documents").glob("*.documents.parquet"))
    whole = path.read_bytes()
    flipped(path)
    said = lc("rebuild", "--repair", "--verify", "--lake", folder)
    assert said.code == 0
    assert path.read_bytes() == whole


@pytest.mark.parametrize("what", ["merge", "export"])
@pytest.mark.parametrize("suffix", [".bin", ".idx"])
def test_token_files_of_a_lake_are_compared_before_they_are_copied(
    lc, corpus, published, tmp_path, what, suffix
):
    """By the checksums beside a ``.bin``; an ``.idx`` says everything twice."""
    folder = output_of(lc, "tokenize", corpus, published)
    path = min(version_in(folder, "token_documents").glob(f"*{suffix}"))
    whole = path.read_bytes()
    words = {
        "merge": ("merge", folder, "--output", tmp_path / "out"),
        "export": ("export", path.with_suffix(""), "--to", "nanogpt", "--output", tmp_path / "out"),
    }[what]
    try:
        flipped(path)
        said = lc("megatron", *words)
        assert said.code == 1
        assert str(path) in said.err
        assert not list(tmp_path.glob("out*"))
    finally:
        path.write_bytes(whole)
    assert lc("megatron", *words).code == 0
