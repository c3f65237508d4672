"""Listings: strict, because their lines become paths."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from lc_assets.errors import BadInput
from lc_assets.sources import redpajama_v2
from lc_assets.sources.redpajama_v2 import listing_path, parse_listing, write_listing
from lc_assets.vocabulary import Shard, parse_snapshot
from lc_assets_tests.strategies import shards

SNAPSHOT = parse_snapshot("2023-06")


@given(
    st.lists(shards().filter(lambda shard: shard.snapshot == SNAPSHOT), unique=True, max_size=20)
)
def test_shards_survive_writing_and_reading_in_their_order(listed):
    with tempfile.TemporaryDirectory() as folder:
        write_listing(Path(folder) / "x.txt", listed)
        assert (
            parse_listing((Path(folder) / "x.txt").read_bytes(), snapshot=SNAPSHOT, where="x")
            == listed
        )


def test_blank_lines_and_carriage_returns_do_not_count():
    content = b"\r\n2023-06/0000/en_head\r\n\n  \n2023-06/0001/de_middle"
    found = [shard.tag for shard in parse_listing(content, snapshot=SNAPSHOT, where="x")]
    assert found == ["2023-06/0000/en_head", "2023-06/0001/de_middle"]
    assert parse_listing(b"", snapshot=SNAPSHOT, where="x") == []


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"../../x", "not a shard tag"),
        (b"2023-06/0000/../en_head", "not a shard tag"),
        (b"/2023-06/0000/en_head", "not a shard tag"),
        (b"2023-06/0000/en_head.json.gz", "not a shard tag"),
        (b"2023-06/0000/xx_head", "languages are"),
        (b"2023-14/0000/en_head", "of snapshot 2023-14, expected shards of 2023-06"),
        (b"2023-06/0000/en_head", "a second time, first on line 1"),
        (b"2023-06/0000/\xffen_head", "not ASCII"),
        ("2023-06/٠٠٠٠/en_head".encode(), "not ASCII"),
        (b"2023-06/0000/en_head\x00", "not a shard tag"),
    ],
)
def test_a_bad_line_is_refused_by_listing_and_number(line, message):
    with pytest.raises(BadInput, match=f"^en-2023-06.txt, line 3: .*{message}"):
        parse_listing(
            b"2023-06/0000/en_head\n\n" + line + b"\n", snapshot=SNAPSHOT, where="en-2023-06.txt"
        )


def test_paths_are_the_published_ones():
    """Head and middle share a listing; the tail has its own."""
    shard = Shard.parse("2018-43/0042/fr_middle")
    found = [
        redpajama_v2.part_path(kind, shard)
        for kind in ("documents", "signals", "duplicates", "minhash")
    ]
    assert found == [
        "documents/2018-43/0042/fr_middle.json.gz",
        "quality_signals/2018-43/0042/fr_middle.signals.json.gz",
        "duplicates/2018-43/0042/fr_middle.duplicates.parquet",
        "minhash/2018-43/0042/fr_middle.minhash.parquet",
    ]
    assert listing_path(SNAPSHOT, "de") == "listings/de-2023-06-head_middle.txt"
