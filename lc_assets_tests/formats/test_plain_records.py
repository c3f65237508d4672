"""Records of JSON that are decoded at once, against the path that reads any record."""

import json
from unittest import mock

import msgspec
import pytest
from hypothesis import example, given, strategies as st

from lc_assets.formats.corpora import json_lines
from lc_assets.formats.corpora.containers import Unread
from lc_assets.formats.corpora.json_lines import KNOWN, MAX_NESTED, PLAIN_NESTED, TEXT_FIELDS
from lc_assets.formats.corpora.reading import read_corpus

FIELDS = frozenset({"title", "bucket"})
"""Of a caller that reads no others."""

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=4)
    | st.sampled_from([2**70, "7.5", "", "\ud83d", "x\udc00", "\x00", "é" * 300])
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner)
)
NAMES = st.sampled_from((*TEXT_FIELDS, *KNOWN, *FIELDS, "other")) | st.text(max_size=2)
RECORDS = st.dictionaries(NAMES, VALUES, max_size=6)
USUAL = st.fixed_dictionaries(
    {"text": st.text(max_size=9)}, optional={name: st.text(max_size=3) for name in ("id", "url")}
)


def written(record, *, is_ascii, is_wide):
    """A line of JSON, or what is written where a character has no UTF-8."""
    text = json.dumps(
        record, ensure_ascii=is_ascii, indent=None, separators=None if is_wide else (",", ":")
    )
    return text.encode("utf-8", "surrogatepass")


def nested(depth):
    return b'{"text": "a", "title": %s7%s}' % (b"[" * depth, b"]" * depth)


ODD = (
    *(
        b"",
        b" \r",
        b"[]",
        b"7",
        b'{"text": "cut',
        b"{}",
        b'{"text": "a"} {"text": "b"}',
        b'{"text": "a"},',
    ),
    *(
        b'\xef\xbb\xbf{"text": "mark"}',
        b'{"text": "a", "title": "\xff"}',
        b'{"\xff": 1, "text": "a"}',
    ),
    *(
        b'{"text": "a", "other": %s}' % it
        for it in (b"1e999", b"-1E+400", b"9" * 400, b"NaN", b"-0", b"1e-999")
    ),
    *(
        b'{"text": "a", "title": %s}' % it
        for it in (b"1e999", b"12345678901234567890.5", b'"\\ud800"')
    ),
    *(b'{"text": "a", "text": 1e999, "text": "b"}', b'{"te\\u0078t": "a", "id": 1, "id": "b"}'),
    *(b'{"text": 5, "content": "c", "raw_content": null}', b'{"text": "a", "perplexity": 1e400}'),
    *(
        nested(depth)
        for depth in (PLAIN_NESTED - 1, PLAIN_NESTED, MAX_NESTED, MAX_NESTED + 1, 2000)
    ),
)
LINES = st.sampled_from(ODD) | st.builds(
    written, RECORDS | USUAL, is_ascii=st.booleans(), is_wide=st.booleans()
)


def compared(document):
    """Everything that a caller may read of a document that it read for `FIELDS`."""
    if isinstance(document, Unread):
        return document
    rest = msgspec.json.decode(document.rest)
    kept = {name: value for name, value in rest.items() if name in FIELDS}
    return (
        msgspec.structs.replace(document, rest=msgspec.Raw()),
        repr(sorted(kept.items())),
        type(document.perplexity),
    )


@given(
    st.lists(LINES, max_size=6),
    st.sampled_from([None, "text", "url", "id"]),
    st.sampled_from([None, "url", "title", "text", "other"]),
    st.sampled_from([json_lines.PLAIN_BYTES, 40]),
)
@example(list(ODD), None, None, json_lines.PLAIN_BYTES)
@example([b'{"text": "a", "id": 0, "url": ["u"], "perplexity": true, "date": 7}'], None, None, 100)
def test_the_same_documents_are_read_at_once(tmp_path_factory, lines, text_field, id_field, limit):
    """Also none of what cannot be read, for the same reasons; the order of fields does not matter."""
    path = tmp_path_factory.mktemp("plain") / "x.jsonl"
    path.write_bytes(b"\n".join(lines))
    how = {"text_field": text_field, "id_field": id_field, "max_document_bytes": 3000}
    wanted = list(map(compared, read_corpus(path, **how)))
    with mock.patch.object(json_lines, "PLAIN_BYTES", limit):
        assert list(map(compared, read_corpus(path, **how, fields=FIELDS))) == wanted


@pytest.mark.parametrize(
    "record",
    [
        {"id": "a", "url": "https://a.org", "text": "b", "meta": {"spans": [[0, 1, 0.5]]}},
        {"doc_id": 7, "raw_content": "é", "perplexity": "7.5", "title": None},
        {"text": "x" * 500_000, "raw_content": None},
    ],
)
def test_usual_records_are_decoded_at_once(tmp_path, record):
    path = tmp_path / "x.jsonl"
    path.write_text(json.dumps(record))
    with mock.patch.object(json_lines, "_fields", side_effect=AssertionError):
        (found,) = read_corpus(path, fields=FIELDS)
        with pytest.raises(AssertionError):
            list(read_corpus(path))
    assert found.text == record.get("raw_content") or record["text"]


def test_a_long_line_is_read_as_any_other(tmp_path):
    """Its lists could take many times its bytes."""
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'{"text": "a", "other": [' + b"[]," * 400_000 + b"[]]}")
    with mock.patch.object(json_lines, "_plain", side_effect=AssertionError):
        (found,) = read_corpus(path, fields=FIELDS)
    assert found.text == "a"
