"""A document at which workers are killed: the command names it, or skips it, and goes on living."""

import contextlib
import gzip
import json
import os
import shutil
import signal
import threading

import pytest

from lc_assets.builds import tables
from lc_assets.builds.tables import read_table
from lc_assets.execution import local
from lc_assets.execution.processes import ALIVE

WORDS = "The quick brown fox jumps over the lazy dog, and nobody looks at it twice.\n"
HUGE = 1
"""Number of the document that is too large for the machine."""


def lines_of(n_repeats: int) -> bytes:
    """Three documents, of which one takes a second or more."""
    lines = [{"id": name, "text": WORDS * n} for name, n in (("a", 3), ("b", n_repeats), ("c", 3))]
    return "".join(json.dumps(line) + "\n" for line in lines).encode()


@pytest.fixture
def corpus(tmp_path, monkeypatch):
    """A file above the size from which workers read it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(local, "LARGE_BYTES", 1 << 10)
    (tmp_path / "docs.jsonl").write_bytes(lines_of(200_000))
    return tmp_path / "docs.jsonl"


@pytest.fixture
def packed(tmp_path, monkeypatch):
    """A file below that size, with a document above it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tables, "GROUP_BYTES", 0)
    content = lines_of(300_000)
    assert len(content) > local.LARGE_BYTES
    (tmp_path / "docs.jsonl.gz").write_bytes(gzip.compress(content, 1))
    return tmp_path / "docs.jsonl.gz"


@contextlib.contextmanager
def killed_at(document: int):
    """Within the block two workers are killed at this document, as the system does for memory."""
    is_over = threading.Event()

    def watch() -> None:
        killed = set()
        while len(killed) < 2 and not is_over.wait(0.001):
            for worker in list(ALIVE):
                process = worker.cell[1]
                if process and process not in killed and worker.cell[0] == document:
                    os.kill(process, signal.SIGKILL)
                    killed.add(process)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield
    finally:
        is_over.set()
        watcher.join()


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("verb", ["filter", "signals"])
def test_the_document_is_named(lc, corpus, verb, workers):
    more = ["--rules", "gopher-paper"] if verb == "filter" else []
    with killed_at(HUGE):
        said = lc(verb, corpus, "out", "--workers", workers, *more)
    assert said.code == 1
    assert "docs/docs cost 2 workers at document 1: the last was killed, most likely" in said.err


@pytest.mark.parametrize("stage", ["filtered_documents", "token_documents"])
def test_a_document_that_is_large_when_unpacked_is_not_read_by_this_process(lc, packed, stage):
    said = lc("tokenize", packed, "out", "--workers", "1")
    assert said.code == 0, said.err
    shutil.rmtree(packed.parent / "out" / stage)
    with killed_at(HUGE):
        said = lc("tokenize", packed, "out", "--workers", "1")
    assert said.code == 1
    assert "cost 2 workers at document 1: the last was killed, most likely" in said.err


def test_or_skipped(lc, corpus):
    """It is read, but nothing is computed of it."""
    with killed_at(HUGE):
        said = lc(
            *("filter", corpus, "out", "--rules", "gopher-paper"),
            *("--workers", "1", "--killed", "skip"),
        )
    assert said.code == 0, said.err
    (dropped,) = corpus.parent.glob("out/filtered_documents/*/*/*.dropped.parquet")
    reasons = read_table(dropped, ["id", "reason"]).to_pylist()
    assert {"id": "docs/docs/b", "reason": "skipped: killed its worker"} in reasons


@pytest.mark.parametrize("verb", ["minhash", "tokenize"])
def test_a_stage_over_the_filtered_documents_names_its_place_there(lc, corpus, verb):
    stage = {"minhash": "document_signatures", "tokenize": "token_documents"}[verb]
    assert lc(verb, corpus, "out", "--workers", "1").code == 0
    shutil.rmtree(corpus.parent / "out" / stage)
    with killed_at(HUGE):
        said = lc(verb, corpus, "out", "--workers", "1")
    assert said.code == 1
    assert "cost 2 workers at document 1" in said.err
