"""Signals of any corpus in RedPajama-V2's own lines, whatever the state of the records."""

import gzip
import io
import json
from urllib.parse import urlsplit

import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, strategies as st

from lc_assets.builds.building import check_input_of
from lc_assets.formats.redpajama.documents import write_documents
from lc_assets.formats.redpajama.signals import read_signals, write_signals
from lc_assets.sources import redpajama_v2
from lc_assets.stages.documents.document_signals import (
    BYTES,
    WITHOUT_STOP_WORDS,
    every_document_has_its_values,
    netloc_of,
)
from lc_assets.stages.documents.shard_inputs import VALUES_SUFFIX
from lc_assets.text.signals.names import CCNET_SIGNALS
from lc_assets.text.signals.signals import signals_of
from lc_assets.vocabulary import Shard
from lc_assets_tests.builders import made_up_record
from lc_assets_tests.filtering import filter_files, read_lines

SHARD = Shard.parse("2023-06/0000/en_head")
TEXTS = ["One line.\nAnd “two”…", "", "naïve \x00 text", "x" * 5000, "• a\n• b\n" * 30]


@pytest.fixture
def documents(tmp_path):
    """A shard's documents where RedPajama-V2 has them."""
    path = tmp_path / "documents" / redpajama_v2.part_path("documents", SHARD)
    path.parent.mkdir(parents=True)
    write_documents(path, [made_up_record(SHARD, line, text) for line, text in enumerate(TEXTS)])
    return path


def signals(source, out, **how):
    """The built stage, and the files of lines."""
    how = {"language": ""} | how
    found = filter_files(source, out, "none", target="document_signals", lines=True, **how)
    (built,) = found.built["document_signals"].values()
    return built.counts, sorted(built.published.folder.glob("*.signals.json.gz"))


def test_a_shard_has_the_lines_that_are_written_for_its_records(documents, tmp_path):
    """Ids, metadata, CCNet's scores and all: what `write_signals` writes of the same records; and
    they are read back.
    """
    counts, (written,) = signals(documents, tmp_path / "out")
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
        names={"rps_doc_word_count"},
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
    lists = {"stop_words": str(tmp_path / "stop.json"), "domains": str(tmp_path / "domains.json")}
    counts, (written,) = signals(source, tmp_path / "out", lists=lists)
    first, second, third = read_lines(written)
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


def test_a_missing_line_of_values_is_found(documents, tmp_path):
    """The check counts lines; what adds up to the shards is checked as for every stage."""
    how = {"target": "document_signals", "all_signals": True, "min_words": 1}
    found = filter_files(documents, tmp_path / "out", "none", **how)
    (built,) = found.built["document_signals"].values()
    check_input = check_input_of(found.context.lake, built.published)
    assert every_document_has_its_values(check_input).passed
    path = built.published.folder / f"en_head{VALUES_SUFFIX}"
    pq.write_table(pq.read_table(path)[:-1], path)
    assert not every_document_has_its_values(check_input).passed


@given(
    st.sampled_from(["http://", "https://", "HTTP://", "//", " http://", ""]),
    st.text("a.:-/?#@[]\n\t 1é"),
)
@example("http://", "[::1]:80/a")
@example("http://", "a:b@c.org:8080")
@example("https://", "a.org\n")
def test_a_host_is_what_the_standard_library_finds(scheme, rest):
    try:
        expected = urlsplit(scheme + rest).netloc
    except ValueError:
        expected = ""
    assert netloc_of(scheme + rest) == expected
