"""A long text is in memory once when it has been read from a table, and not often before."""

import os
from pathlib import Path

import pyarrow as pa

from lc_assets.builds.tables import read_lines, writing_table
from lc_assets_tests.memory import added

N_BYTES = 48 << 20
TEXTS = pa.schema({"id": "string", "raw_content": "string"})


def resident() -> int:
    """Memory that this process holds, in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_the_reader_of_a_long_text_lets_go_of_its_pages(tmp_path):
    """They, and what Arrow makes of them, are three times the text."""
    path, text = tmp_path / "a.parquet", os.urandom(N_BYTES // 2).hex()
    with writing_table(path, TEXTS) as table:
        for number in range(3):
            table.add({"id": str(number), "raw_content": "short"})
        table.add({"id": "long", "raw_content": text}, n_bytes=N_BYTES)
        table.add({"id": "last", "raw_content": "short"})
    pa.default_memory_pool().release_unused()
    before, held = resident(), {}
    with added() as more:
        for line in read_lines(path, batch_lines=2, utf8="raw_content"):
            held[line["id"]] = resident() - before
            assert (line["id"] == "long") == (line["raw_content"] == text.encode())
        assert more() < 4.3 * N_BYTES
    assert list(held) == ["0", "1", "2", "long", "last"]
    assert held["long"] < 2 * N_BYTES
