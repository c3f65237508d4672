"""Signals of plain corpora: RedPajama-V2's own lines, whatever the container, the workers and the
state of the records.
"""

import gzip
import io
import json

import pytest

from lc_assets.counts import Counts
from lc_assets.errors import BadInput
from lc_assets.execution.local import LocalExecutor
from lc_assets.formats.redpajama import listings
from lc_assets.formats.redpajama.documents import write_documents
from lc_assets.formats.redpajama.signals import read_signals, write_signals
from lc_assets.stages.documents.signalling import (
    BYTES,
    WITHOUT_STOP_WORDS,
    Signalling,
    signal_corpus,
    signal_stream,
)
from lc_assets.text.signals.names import CCNET_SIGNALS
from lc_assets.text.signals.signals import signals_of
from lc_assets.vocabulary import Shard
from lc_assets_tests.builders import made_up_record

SHARD = Shard.parse("2023-06/0000/en_head")
TEXTS = ["One line.\nAnd “two”…", "", "naïve \x00 text", "x" * 5000, "• a\n• b\n" * 30]
EXECUTOR = LocalExecutor()


@pytest.fixture
def documents(tmp_path):
    """A shard's documents where RedPajama-V2 has them."""
    path = tmp_path / "documents" / listings.documents_path(SHARD)
    path.parent.mkdir(parents=True)
    write_documents(path, [made_up_record(SHARD, line, text) for line, text in enumerate(TEXTS)])
    return path


def lines_of(path):
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


def test_a_shard_has_the_lines_that_are_written_for_its_records(documents, tmp_path):
    """Ids, metadata, CCNet's scores and all: what `write_signals` writes of the same records; and
    they are read back.
    """
    counts = signal_corpus(documents, tmp_path / "out", Signalling(), executor=EXECUTOR)
    written = tmp_path / "out" / "en_head.signals.json.gz"
    wanted = tmp_path / "wanted.gz"
    records = [made_up_record(SHARD, line, text) for line, text in enumerate(TEXTS)]
    write_signals(
        wanted,
        SHARD,
        [(line, record, signals_of(record.raw_content)) for line, record in enumerate(records)],
    )
    assert gzip.decompress(written.read_bytes()) == gzip.decompress(wanted.read_bytes())
    table = read_signals(
        io.BytesIO(written.read_bytes()),
        shard=SHARD,
        where="here",
        wanted={"rps_doc_word_count"},
        max_line_bytes=1 << 20,
    )
    assert table.columns["rps_doc_word_count"].tolist() == [len(text.split()) for text in TEXTS]
    assert (counts.seen, counts.kept, counts.extra[BYTES]) == (
        5,
        5,
        sum(len(text.encode()) for text in TEXTS),
    )


def test_a_strangers_records_have_what_can_be_known(tmp_path):
    """No field of CCNet's: none of its signals. Fields of other types: as if they were not there.
    Unread: counted by reason.
    """
    source = tmp_path / "own.jsonl"
    records = [
        {"text": "The end.", "id": "a", "url": "https://www.example.org:80/x"},
        {
            "text": "Ende.",
            "language": "de",
            "length": "long",
            "nlines": None,
            "bucket": ["head"],
            "perplexity": 3,
        },
        {"text": 7},
        {"body": "nothing"},
    ]
    lines = [*map(json.dumps, records), "not JSON", '{"text": "and a third"}']
    source.write_text("\n".join(lines), "utf-8")
    (tmp_path / "stop.json").write_text('{"en": ["The"]}', "utf-8")
    (tmp_path / "domains.json").write_text('{"www.example.org:80": 3}', "utf-8")
    settings = Signalling(stop_words=tmp_path / "stop.json", domains=tmp_path / "domains.json")
    counts = signal_corpus(source, tmp_path / "out", settings, executor=EXECUTOR)
    first, second, third = lines_of(tmp_path / "out" / "own.signals.json.gz")
    assert first["id"] == "a"
    assert first["metadata"] == dict.fromkeys(
        ("cc_segment", "cc_net_source", "url", "source_domain", "language", "snapshot_id"), ""
    ) | {
        "url": "https://www.example.org:80/x",
        "source_domain": "www.example.org:80",
    }
    assert first["quality_signals"]["rps_doc_ut1_blacklist"] == [[0, 8, 3]]
    assert not set(CCNET_SIGNALS) & set(first["quality_signals"])
    assert second["id"] == "own.jsonl/1"
    assert second["quality_signals"]["ccnet_perplexity"] == [[0, 5, 3.0]]
    assert set(CCNET_SIGNALS) & set(second["quality_signals"]) == {"ccnet_perplexity"}
    assert third["quality_signals"]["rps_doc_word_count"] == [[0, 11, 3]]
    assert (counts.seen, counts.kept, sum(counts.dropped.values())) == (6, 3, 3)
    assert counts.dropped == {"no text": 2, "not JSON": 1}
    assert counts.extra[WITHOUT_STOP_WORDS] == 3


def test_the_language_given_is_that_of_all(tmp_path):
    (tmp_path / "own.jsonl").write_text('{"text": "The end.", "language": "de"}', "utf-8")
    (tmp_path / "stop.json").write_text('{"en": ["The"]}', "utf-8")
    line, counts = signal_stream(
        tmp_path / "own.jsonl", Signalling(language="en", stop_words=tmp_path / "stop.json")
    )
    assert json.loads(line)["quality_signals"]["rps_doc_stop_word_fraction"] == [[0, 8, 0.33333333]]
    assert isinstance(counts, Counts)
    assert counts.extra[WITHOUT_STOP_WORDS] == 0


def test_any_number_of_workers_writes_the_same_bytes(documents, tmp_path):
    corpus = tmp_path / "corpus"
    for name in ("a", "b", "c"):
        (corpus / name).mkdir(parents=True)
        (corpus / name / "part.json.gz").write_bytes(documents.read_bytes())
    for workers in (1, 2):
        signal_corpus(
            corpus,
            tmp_path / f"out{workers}",
            Signalling(),
            executor=LocalExecutor(workers=workers),
        )
    found = [
        {path.relative_to(out).as_posix(): path.read_bytes() for path in sorted(out.rglob("*.gz"))}
        for out in (tmp_path / "out1", tmp_path / "out2")
    ]
    assert found[0] == found[1]
    assert list(found[0]) == [f"{name}/part.signals.json.gz" for name in "abc"]


def test_a_bad_list_is_said_before_anything_is_written(documents, tmp_path):
    (tmp_path / "stop.json").write_bytes(b"\xff")
    with pytest.raises(BadInput, match=r"stop\.json"):
        signal_corpus(
            documents,
            tmp_path / "out",
            Signalling(stop_words=tmp_path / "stop.json"),
            executor=EXECUTOR,
        )
    assert not (tmp_path / "out").exists()
