"""Documents: what is written is read again, and what CCNet wrote is read at all."""

import json
import tempfile
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from lc_assets.errors import CorruptFile
from lc_assets.formats.redpajama.documents import DocumentRecord, decode_document, write_documents
from lc_assets.formats.redpajama.lines import read_lines
from lc_assets_tests.strategies import documents

CCNET_LINE = (
    '{"url": "http://a.org/", "date_download": "2023-02-08T00:00:00Z", "digest": '
    '"sha1:46OPKWZ7MAG5624VYYA3U3YH2MJ727B6", "length": 9, '
    '"nlines": 2, "source_domain": "a.org", "title": "T", "raw_content": "Été\\nUn deux", '
    '"cc_segment": "crawl-data/CC-MAIN-2023-06/x", '
    '"original_nlines": 3, "original_length": 17, "line_ids": [1, 2], "language": "fr", '
    '"language_score": 1, "perplexity": 217.2, '
    '"bucket": "head", "added_later": {"nested": [1]}}'
)


@given(st.lists(documents(), max_size=4))
def test_documents_survive_writing_and_reading(records):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "en_head.json.gz"
        write_documents(path, records)
        with path.open("rb") as stream:
            lines = list(read_lines(stream, where="en_head", max_line_bytes=1 << 20))
    assert [decode_document(line, where="here") for _, line in lines] == records
    assert [number for number, _ in lines] == list(range(len(records)))


def test_a_record_of_ccnet_is_read_as_the_standard_library_reads_it():
    """Spaces after colons, an integer for a float, a field we do not know."""
    record = decode_document(CCNET_LINE.encode(), where="here")
    wanted = json.loads(CCNET_LINE)
    assert {name: getattr(record, name) for name in record.__struct_fields__} == {
        name: wanted[name] for name in record.__struct_fields__
    }
    assert isinstance(record.language_score, float)


def test_text_is_written_as_utf8_and_in_the_order_of_ccnet(tmp_path):
    """Escaped text would be another file than the reference's, half as long again in French."""
    write_documents(tmp_path / "x.gz", [decode_document(CCNET_LINE.encode(), where="here")])
    with (tmp_path / "x.gz").open("rb") as stream:
        ((_, line),) = read_lines(stream, where="x", max_line_bytes=1 << 20)
    assert "Été\\nUn deux".encode() in line
    assert list(json.loads(line)) == [
        name for name in json.loads(CCNET_LINE) if name != "added_later"
    ]


def test_only_the_text_must_be_there():
    assert decode_document(b'{"raw_content": ""}', where="here") == DocumentRecord(raw_content="")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'{"url": "x"}', "raw_content"),
        (b'{"raw_content": null}', "field raw_content: Expected `str`, got `null`"),
        (b'{"raw_content": 7, "text": "x"}', "field raw_content: Expected `str`, got `int`"),
        (b'{"raw_content": "x"', "en_head, line 3"),
        (b'{"raw_content": "x", "more": ' + b"[" * 100_000, "nested too deeply"),
        (b'["raw_content"]', "Expected `object`"),
    ],
)
def test_what_is_no_document_is_refused_with_its_place(line, message):
    """The field is named too."""
    with pytest.raises(CorruptFile, match=r"^en_head, line 3[:,] ") as refusal:
        decode_document(line, where="en_head, line 3")
    assert message in str(refusal.value)


def test_a_lone_surrogate_does_not_lose_the_document():
    record = decode_document(rb'{"title": "\ud83d", "raw_content": "a\udfffb"}', where="here")
    assert (record.title, record.raw_content) == ("�", "a�b")


@pytest.mark.parametrize(
    ("name", "value", "read"),
    [
        ("perplexity", b"null", None),
        ("perplexity", b'"217.5"', 217.5),
        ("perplexity", b'"unknown"', None),
        ("original_length", b'"12"', 12),
        ("nlines", b"-1", None),
        ("length", b"1" + b"0" * 400, None),
        ("line_ids", b"null", []),
        ("line_ids", b'["3", 4]', [3, 4]),
        ("url", b"5", ""),
        ("digest", b"null", ""),
        ("title", b'["T"]', ""),
        ("language_score", b"{}", None),
    ],
)
def test_an_odd_field_loses_itself_at_most_and_is_counted(name, value, read):
    """Only the text is needed; what follows the field is read as well."""
    odd = Counter[str]()
    line = b'{"cc_segment": "s", "%s": %s, "raw_content": "a\\ud800 null"}' % (name.encode(), value)
    record = decode_document(line, where="here", odd=odd)
    assert (record.cc_segment, record.raw_content) == ("s", "a\ufffd null")
    assert getattr(record, name) == read
    assert odd == {name: 1}


def test_the_word_null_in_a_text_is_not_odd():
    odd = Counter[str]()
    line = CCNET_LINE.replace("Un deux", "null").encode()
    record = decode_document(line, where="here", odd=odd)
    assert (record.raw_content, record.perplexity, odd) == ("Été\nnull", 217.2, {})
