"""Signals files: joined by id, decoded only as far as wanted, and written as the reference writes
them.
"""

import gzip
import io
import json
import math
import re
import tempfile
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given, strategies as st

from lc_assets.errors import CorruptFile
from lc_assets.formats.redpajama.documents import DocumentRecord, line_reader
from lc_assets.formats.redpajama.signal_lines import (
    BULLET_NEEDS,
    NOT_READ,
    LineScanner,
    _read_lines,
)
from lc_assets.formats.redpajama.signals import (
    SignalsTable,
    _record_type,
    _scores,
    read_signals,
    write_signals,
)
from lc_assets.text import texts
from lc_assets.text.signals.names import CCNET_SIGNALS, SCALARS
from lc_assets.text.signals.signals import signals_of
from lc_assets.vocabulary import Shard
from lc_assets_tests.reference.signals import scalar_values
from lc_assets_tests.strategies import documents, shards

SHARD = Shard.parse("2023-06/0000/en_head")


def table_of(
    content: bytes, wanted=SCALARS, shard: Shard = SHARD, max_line_bytes: int = 1 << 20
) -> SignalsTable:
    return read_signals(
        io.BytesIO(content),
        shard=shard,
        where="en_head.signals",
        names=wanted,
        max_line_bytes=max_line_bytes,
    )


def line_for(number: int, *, shard: Shard = SHARD, **signals) -> bytes:
    record = {
        "id": shard.document_id(number),
        "metadata": {"url": f"u{number}"},
        "quality_signals": signals,
    }
    return json.dumps(record).encode() + b"\n"


def words(count: float | None) -> dict:
    return {"rps_doc_word_count": [[0, 9, count]]}


@given(
    shards(),
    st.dictionaries(st.integers(0, 9_999_999_999), documents(), max_size=3),
    st.sets(st.sampled_from(SCALARS)),
)
def test_values_survive_writing_and_reading(shard, records, wanted):
    """The table holds for each line what `scalar_values` takes from the signals, whatever is wanted
    and in any order.
    """
    rows = [(line, record, signals_of(record.raw_content)) for line, record in records.items()]
    with tempfile.TemporaryDirectory() as folder:
        write_signals(Path(folder) / "x.gz", shard, rows)
        content = (Path(folder) / "x.gz").read_bytes()
    table = table_of(content, wanted, shard)
    assert table.lines.tolist() == sorted(records)
    assert table.columns.keys() == wanted
    for line, record, signals in rows:
        row = table.row_of(line)
        assert table.urls[row] == record.url
        values = scalar_values(ccnet_by_hand(record) | signals)
        assert table.values_at(row) == {name: values.get(name) for name in wanted}


def ccnet_by_hand(record: DocumentRecord) -> dict:
    scores = (
        record.length,
        record.original_length,
        record.nlines,
        record.original_nlines,
        record.language_score,
        record.perplexity,
        {"head": 0, "middle": 1, "tail": 2}[record.bucket],
    )
    return {name: [(0, 0, score)] for name, score in zip(CCNET_SIGNALS, scores, strict=True)}


def test_a_skipped_line_does_not_shift_the_join():
    """The reference left out line 1, so the file's second record is of line 2."""
    table = table_of(
        gzip.compress(
            line_for(0, **words(10)) + line_for(2, **words(30)) + line_for(3, **words(40))
        )
    )
    assert [table.row_of(line) for line in (0, 1, 2, 3, 4)] == [0, None, 1, 2, None]
    assert table.values_at(table.row_of(2))["rps_doc_word_count"] == 30
    assert table.urls == ["u0", "u2", "u3"]


def test_missing_null_and_empty_scores_are_nan():
    """A signal that is not in the file, a null score, no span at all."""
    lines = [
        line_for(0),
        line_for(1, **words(None)),
        line_for(2, rps_doc_word_count=[]),
        line_for(3, rps_doc_word_count=None),
    ]
    column = table_of(gzip.compress(b"".join(lines)), ["rps_doc_word_count"]).columns[
        "rps_doc_word_count"
    ]
    assert column.dtype == np.float64
    assert [math.isnan(value) for value in column] == [True] * 4


def test_undecodable_and_oversize_lines_are_counted_and_passed_over():
    """Each for itself: a number too large, half a record, a blank line; and a line longer than
    allowed.
    """
    long_line = line_for(5, padding=[[0, 1, 2]] * 400)
    broken = [
        line_for(4, rps_doc_word_count=[[0, 1, 10**400]]),
        b'{"id": "\n',
        b"\n",
        b'{"id": 5}\n',
    ]
    table = table_of(
        gzip.compress(b"".join([line_for(0), *broken, long_line, line_for(6)])), max_line_bytes=1000
    )
    assert (table.lines.tolist(), table.n_undecodable, table.n_oversize) == ([0, 6], 4, 1)


def test_what_is_read_does_not_depend_on_what_the_process_has_read(tmp_path, monkeypatch):
    """A line that is no JSON where its scores are not needed, with the kernel loaded and without."""
    record = DocumentRecord(url="u", raw_content="Some words.", nlines=1)
    write_signals(tmp_path / "x.gz", SHARD, [(7, record, signals_of(record.raw_content))])
    content = gzip.decompress((tmp_path / "x.gz").read_bytes())
    broken = gzip.compress(
        content.replace(b'"rps_lines_num_words":[[0', b'"rps_lines_num_words":[[,0')
    )
    for dispatcher in (_read_lines.compile(), None):
        monkeypatch.setattr(_read_lines, "dispatcher", dispatcher)
        assert table_of(broken, ["rps_doc_word_count"]).n_undecodable == 1


def test_lines_that_are_scanned_give_what_those_that_are_decoded_give(tmp_path, monkeypatch):
    """The first lines of a file are decoded, all others scanned; here, the first is."""
    records = [
        (line, DocumentRecord(url=f"u{line}", raw_content="- A\n- b\nc " * line, nlines=3))
        for line in (9, 1, 4)
    ]
    write_signals(
        tmp_path / "x.gz",
        SHARD,
        [(line, record, signals_of(record.raw_content)) for line, record in records],
    )
    decoded = table_of((tmp_path / "x.gz").read_bytes())
    monkeypatch.setattr(texts, "CHARS_TOGETHER", 1)
    scanned = table_of((tmp_path / "x.gz").read_bytes())
    assert (scanned.lines.tolist(), scanned.urls) == ([1, 4, 9], ["u1", "u4", "u9"])
    assert (decoded.lines.tolist(), decoded.urls) == ([1, 4, 9], ["u1", "u4", "u9"])
    for name, column in decoded.columns.items():
        np.testing.assert_array_equal(scanned.columns[name], column)


def test_a_lone_surrogate_in_the_url_does_not_lose_the_signals():
    table = table_of(gzip.compress(line_for(0, **words(3)).replace(b'"u0"', rb'"u\ud83d"')))
    assert (table.urls, table.columns["rps_doc_word_count"].tolist()) == (["u\ufffd"], [3])


@pytest.mark.parametrize(
    "document_id",
    [
        "2023-06/0001/en_head.json.gz/0",
        *(f"2023-06/0000/en_head.json.gz/{number}" for number in ("", "01", "-1", "١", "1/2")),
        "0",
    ],
)
def test_ids_of_other_shards_and_malformed_ids_are_refused(document_id):
    """Another shard's file under this shard's name would join every document with a stranger's
    signals.
    """
    record = {"id": document_id, "metadata": {"url": ""}, "quality_signals": {}}
    with pytest.raises(
        CorruptFile,
        match=r"en_head.signals, line 0: .*expected ids such as 2023-06/0000/en_head.json.gz/17",
    ):
        table_of(gzip.compress(json.dumps(record).encode()))


def test_an_id_twice_is_refused():
    with pytest.raises(
        CorruptFile, match=r"line 1: the signals of 2023-06/0000/en_head.json.gz/4 a second time"
    ):
        table_of(gzip.compress(line_for(4) + line_for(4)))


def test_a_file_cut_short_is_refused():
    """Half a table would call the other half's documents unmeasured."""
    content = gzip.compress(b"".join(line_for(number, **words(number)) for number in range(300)))
    with pytest.raises(CorruptFile, match=r"en_head.signals: cut short"):
        table_of(content[:-30])


def test_an_empty_file_of_signals_is_an_empty_table():
    table = table_of(gzip.compress(b""))
    assert (table.lines.tolist(), table.row_of(0)) == ([], None)
    assert {column.shape for column in table.columns.values()} == {(0,)}


def test_records_are_written_as_the_reference_writes_them(tmp_path):
    """Field for field: id, its number (little-endian SHA-1), metadata, ccnet first and as floats,
    text not escaped.
    """
    record = DocumentRecord(
        url="http://é.org/",
        source_domain="é.org",
        cc_segment="crawl-data/x",
        language="en",
        raw_content="Hi",
        length=2,
        nlines=1,
        original_length=5,
        original_nlines=3,
        language_score=0.5,
        perplexity=300.25,
        bucket="middle",
    )
    write_signals(
        tmp_path / "x.gz",
        SHARD,
        [
            (
                17,
                record,
                {"rps_doc_word_count": [(0, 2, 1)], "rps_doc_ut1_blacklist": [(0, 2, None)]},
            )
        ],
    )
    with gzip.open(tmp_path / "x.gz") as file:
        assert file.read().decode() == (
            '{"id":"2023-06/0000/en_head.json.gz/17","id_int":13194104781672931121,"metadata":{"cc_segment":"crawl-data/x",'
            '"cc_net_source":"2023-06/0000/en_head.json.gz","url":"http://é.org/","source_domain":"é.org","language":"en",'
            '"snapshot_id":"2023-06"},"quality_signals":{"ccnet_length":[[0,2,2.0]],"ccnet_original_length":[[0,2,5.0]],'
            '"ccnet_nlines":[[0,2,1.0]],"ccnet_original_nlines":[[0,2,3.0]],"ccnet_language_score":[[0,2,0.5]],'
            '"ccnet_perplexity":[[0,2,300.25]],"ccnet_bucket":[[0,2,1.0]],"rps_doc_word_count":[[0,2,1]],'
            '"rps_doc_ut1_blacklist":[[0,2,null]]}}\n'
        )


def test_numbers_that_a_record_lacks_are_left_out(tmp_path):
    """A zero would be a value: a perplexity of 0 is the best there is."""
    record = DocumentRecord(raw_content="Hi", nlines=0, bucket="middle")
    write_signals(tmp_path / "x.gz", SHARD, [(0, record, {})])
    with gzip.open(tmp_path / "x.gz") as file:
        found = json.loads(file.read())["quality_signals"]
    assert found == {"ccnet_nlines": [[0, 2, 0.0]], "ccnet_bucket": [[0, 2, 1.0]]}


PREFIX = SHARD.document_id(0).removesuffix("0")
SCORES = st.none() | st.integers(-3, 10**16) | st.floats(-1e6, 1e6).map(lambda it: round(it, 8))


@given(st.data(), st.sets(st.sampled_from(SCALARS), min_size=1), st.randoms())
def test_a_scanned_line_is_as_it_is_decoded(data, wanted, random):
    """What `LineScanner` reads of a line, whole or with a byte changed, is what decoding gives; a
    line that is not JSON is scanned only where the damage is in numbers that are not wanted.
    """
    names = data.draw(st.permutations((*SCALARS, *BULLET_NEEDS)))[: data.draw(st.integers(1, 30))]
    spans = st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99), SCORES), max_size=3)
    record = {
        "id": SHARD.document_id(data.draw(st.integers(0, 99) | st.integers(10**9, 10**11))),
        "id_int": 5,
        "metadata": {"cc_segment": "x", "url": data.draw(st.text(max_size=9)), "language": "en"},
        "quality_signals": {name: data.draw(spans) for name in names},
    }
    line = msgspec.json.encode(record)
    if data.draw(st.booleans()):
        at = random.randrange(len(line))
        line = line[:at] + bytes([random.choice(b'[]{}",.-019e \\n')]) + line[at + 1 :]
    known = [name for name in SCALARS if name in wanted]
    found = LineScanner(known, PREFIX).scan([b"{}", line, b""])
    assert found.lines[0] == found.lines[2] == NOT_READ
    if found.lines[1] == NOT_READ:
        return
    try:
        decoded = msgspec.json.decode(line, type=_record_type(known))
    except msgspec.DecodeError:
        decoded = msgspec.json.decode(_without_unwanted(line, wanted), type=_record_type(known))
    assert line_reader(SHARD)(decoded.id, "") == found.lines[1]
    assert found.urls[1] == decoded.metadata.url
    np.testing.assert_array_equal(found.scores[1], list(_scores(decoded.quality_signals, known)))


def _without_unwanted(line: bytes, wanted: set[str]) -> bytes:
    """A line whose signals that are not wanted are empty."""

    def emptied(found: re.Match[bytes]) -> bytes:
        is_kept = found[1].decode() in wanted or found[1].decode() in BULLET_NEEDS
        return found[0] if is_kept else b'"%b":[]' % found[1]

    return re.sub(rb'"((?:rps|ccnet)_\w+)":\[[^"}]*\]', emptied, line)


def test_lines_as_published_are_scanned(tmp_path):
    """Else the scanner would never be used, and nothing would show it."""
    record = DocumentRecord(
        raw_content="• One line.\n• And another one.", nlines=2, perplexity=3.25
    )
    write_signals(tmp_path / "x.gz", SHARD, [(7, record, signals_of(record.raw_content))])
    line = gzip.decompress((tmp_path / "x.gz").read_bytes()).removesuffix(b"\n")
    others = [
        line.replace(b'":', b'": '),
        line.replace(b'_signals":{', b'_signals":{"rps_doc_word_count":[],'),  # and once more
        line.replace(b'"url":"', b'"url":"\xff'),
    ]
    found = LineScanner(SCALARS, PREFIX).scan([line, *others, line])
    assert (found.lines.tolist(), found.urls[::4]) == ([7, *[NOT_READ] * 3, 7], ["", ""])
    assert found.scores[0, SCALARS.index("frac_lines_start_with_bulletpoint")] == 1
