"""Lines out of gzip: the same as the standard library's, bounded, and damage is told."""

import gzip
import io
import tracemalloc
from unittest import mock

import msgspec
import pytest
from hypothesis import example, given, strategies as st

from lc_assets.errors import CorruptFile
from lc_assets.formats.redpajama import lines
from lc_assets.formats.redpajama.lines import (
    decode_json,
    read_lines,
    write_json_lines,
)

CHUNKS = st.lists(
    st.sampled_from([b"\n", b"\n\n", b"a", b"\r\n", b"{}", b"0123456789" * 3]), max_size=12
).map(b"".join)


def slow_lines(content: bytes, max_line_bytes: int) -> list[tuple[int, bytes | None]]:
    """All at once: decompress, split at newlines, forget the empty end."""
    whole = gzip.decompress(content).split(b"\n")
    if whole[-1] == b"":
        whole.pop()
    return [
        (number, line if len(line) <= max_line_bytes else None) for number, line in enumerate(whole)
    ]


def lines_of(content: bytes, max_line_bytes: int = 1 << 20) -> list[tuple[int, bytes | None]]:
    return list(
        read_lines(io.BytesIO(content), where="en_head.json.gz", max_line_bytes=max_line_bytes)
    )


@given(
    st.lists(CHUNKS, min_size=1, max_size=4),
    st.integers(0, 40),
    st.integers(0, 9),
    st.integers(1, 40),
)
@example([b"", b"a\nb", b"c\n", b""], 1, 0, 2)
@example([b"0123456789\n"], 10, 0, 10)
@example([b"0123456789"], 9, 0, 4)
def test_lines_are_those_of_the_whole_text(members, max_line_bytes, n_zeros, block_bytes):
    """Members join without a seam, empty ones too, and so do blocks; zeros at the end are padding;
    the limit is exact.
    """
    content = b"".join(map(gzip.compress, members)) + bytes(n_zeros)
    with mock.patch.object(lines, "BLOCK_BYTES", block_bytes):
        found = lines_of(content, max_line_bytes)
    assert found == slow_lines(content, max_line_bytes)


def test_an_oversize_line_costs_no_memory():
    """Thirty megabytes in one line, in a file of under fifty kilobytes, read within a few
    megabytes.
    """
    bomb = gzip.compress(b"first\n" + bytes(30_000_000) + b"\nlast\n")
    assert len(bomb) < 50_000
    tracemalloc.start()
    try:
        found = lines_of(bomb, max_line_bytes=100_000)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found == [(0, b"first"), (1, None), (2, b"last")]
    assert peak_bytes < 5_000_000


def test_a_file_cut_short_gives_its_lines_first_and_then_says_how_far_it_got():
    """Nothing but the last block before the cut is lost."""
    text = b"".join(b"%d\n" % (number**3) for number in range(200_000))
    content = gzip.compress(text)
    found = []
    with pytest.raises(CorruptFile) as refusal:
        found.extend(
            read_lines(
                io.BytesIO(content[: len(content) // 2]),
                where="en_head.json.gz",
                max_line_bytes=1 << 20,
            )
        )
    assert (
        str(refusal.value)
        == f"en_head.json.gz: cut short after {len(found):,} lines; fetch it again"
    )
    assert [line for _, line in found] == text.splitlines()[: len(found)]
    assert len(b"\n".join(line for _, line in found)) > len(text) // 2 - lines.BLOCK_BYTES


@pytest.mark.parametrize("n_missing", [1, 4, 8, 9])
def test_a_missing_trailer_is_a_cut(n_missing):
    """All text is there and only the checksum is not: the next member may be missing as well."""
    with pytest.raises(CorruptFile, match="cut short"):
        lines_of(gzip.compress(b"one\n")[:-n_missing])


def test_an_empty_file_is_no_gzip_but_an_empty_member_is():
    """A download that failed leaves no bytes; a shard without documents leaves twenty."""
    with pytest.raises(CorruptFile, match=r"en_head.json.gz: the file is empty"):
        lines_of(b"")
    assert lines_of(gzip.compress(b"")) == []


@pytest.mark.parametrize(
    "content",
    [
        b'{"url": "x"}\n',
        b"\0" * 30,
        gzip.compress(b"a\n", mtime=0) + b"rubbish",
        b"\x1f\x8b\x09" + bytes(20),
    ],
)
def test_what_is_not_gzip_is_corrupt(content):
    with pytest.raises(CorruptFile, match=r"^en_head.json.gz: "):
        lines_of(content)


@given(st.data())
def test_a_damaged_byte_never_changes_a_line_unseen(data):
    """Either the file is refused, or the damage was in a part of the header that means nothing."""
    text = b"".join(b"%d %d\n" % (number, number**3) for number in range(200))
    content = bytearray(gzip.compress(text, mtime=0))
    place = data.draw(st.integers(0, len(content) - 1))
    content[place] ^= data.draw(st.integers(1, 255))
    try:
        found = lines_of(bytes(content))
    except CorruptFile:
        return
    assert b"".join(line + b"\n" for _, line in found) == text
    assert place < 10


def test_a_reading_error_is_not_called_corruption():
    """A lost connection is no reason to call the file bad."""

    class Lost(io.BytesIO):
        def readinto(self, *_):
            raise ConnectionResetError

        read = readinto

    with pytest.raises(ConnectionResetError):
        list(read_lines(Lost(b"x"), where="here", max_line_bytes=10))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"", "en_head.json.gz, line 7"),
        (b"\xff", "line 7"),
        (b'["\xff"]', "line 7: 'utf-8' codec can't decode byte 0xff"),
        (b'["\xed\xa0\x80"]', "line 7: 'utf-8' codec can't decode"),
        (b'"\\ud83d', "line 7"),
        (b'["\\ud83d", ' + b"[" * 100_000, "Expected `str`, got `array`"),
        (b"NaN", "line 7"),
        (b'["\\ud83d", NaN]', "JSON is malformed"),
        (b'["\\ud83d", 1]', "Expected `str`"),
        ('["é"]'.encode("utf-16"), "line 7"),
        (b"[1]", "Expected `str`"),
    ],
)
def test_an_undecodable_line_is_named(line, message):
    with pytest.raises(CorruptFile, match=message):
        decode_json(line, msgspec.json.Decoder(list[str]), where="en_head.json.gz, line 7")


def test_lone_surrogates_become_replacement_characters_and_pairs_stay():
    """In values and keys; a byte order mark in the text is no encoding mark."""
    line = rb'{"a\ud83d": "\udc00x\ud83d\ude00", "b": "\ufeff\ud800"}'
    assert decode_json(line, msgspec.json.Decoder(dict[str, str]), where="here") == {
        "a\ufffd": "\ufffdx\U0001f600",
        "b": "\ufeff\ufffd",
    }


def test_the_same_records_are_the_same_bytes_whatever_the_name_and_clock(tmp_path, monkeypatch):
    """No file name and no time in the header."""
    write_json_lines(tmp_path / "a.gz", [{"text": "é"}])
    monkeypatch.setattr("time.time", lambda: 2e9)
    write_json_lines(tmp_path / "other name.gz", iter([{"text": "é"}]))
    content = (tmp_path / "a.gz").read_bytes()
    assert content == (tmp_path / "other name.gz").read_bytes()
    assert content[4:8] == bytes(4)
    assert gzip.decompress(content) == '{"text":"é"}\n'.encode()
