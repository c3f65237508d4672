"""Databases of queries: opened once, empty each time, and left behind once they have spilled."""

import os

import duckdb
import pytest

from lc_assets.errors import BadInput
from lc_assets.stages.deduplication.queries import _IDLE, queries

SORTED = "SELECT * FROM (SELECT hash(range) AS h, range FROM range(3000000)) ORDER BY h"
TABLES = "SELECT count(*) FROM duckdb_tables()"


@pytest.fixture(autouse=True)
def _no_idle_databases():
    _IDLE.clear()


def test_a_database_is_used_again_and_keeps_no_table(tmp_path):
    with queries(tmp_path / "first") as database:
        database.do("CREATE TABLE lines AS SELECT 1 AS line")
        database.do("CREATE TEMP VIEW seen AS SELECT * FROM lines")
        assert database.number(TABLES) == 1
    (idle,) = _IDLE

    with queries(tmp_path / "second") as database:
        assert not _IDLE
        assert database.number(TABLES) == 0
        with queries(tmp_path / "third") as another:
            assert another.number("SELECT 3") == 3
    assert idle in _IDLE
    assert len(_IDLE) == 2
    assert not list(tmp_path.iterdir())


def test_a_database_that_has_spilled_is_not_used_again(tmp_path):
    """Its temporary folder is removed, and DuckDB would look for its files there."""
    with queries(tmp_path / "spilling", memory=40 << 20) as database:
        batches = database.batches(SORTED)
        assert next(batches).num_rows
        assert list((tmp_path / "spilling").glob("duckdb_temp*"))
    assert not _IDLE
    assert not list(tmp_path.iterdir())


def test_a_database_that_failed_is_not_used_again(tmp_path):
    with pytest.raises(duckdb.CatalogException), queries(tmp_path / "failing") as database:
        database.do("SELECT * FROM nothing")
    with pytest.raises(BadInput, match="memory"), queries(tmp_path / "small", 1 << 20) as database:
        database.do(f"CREATE TABLE lines AS {SORTED}")
    assert not _IDLE
    assert not list(tmp_path.iterdir())


def test_a_forked_process_opens_its_own_database(tmp_path):
    """That of its parent has threads that it lacks: DuckDB waits for them, or crashes."""
    with queries(tmp_path / "parent") as database:
        assert database.number("SELECT count(*) FROM range(1000000)") == 1_000_000
    child = os.fork()
    if not child:
        is_new = not _IDLE
        with queries(tmp_path / "child") as database:
            found = database.number("SELECT sum(range)::BIGINT FROM range(1000000)")
        os._exit(0 if is_new and found == 499_999_500_000 else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert len(_IDLE) == 1
