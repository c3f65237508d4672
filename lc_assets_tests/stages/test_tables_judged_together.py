"""Tables that are judged at once get the complaints that each would get alone."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lc_assets.build.checks import complaints_about
from lc_assets.build.tables import TOKENIZED

WORDS = {
    "url": "u",
    "digest": "d",
    "source_domain": "s",
    "cc_segment": "c",
    "language": "en",
    "bucket": "head",
}
COUNTS = {"n_tokens": 3, "n_chars": 9, "n_bytes": 9}


def lines(shard: int, n_lines: int, **changes) -> list[dict]:
    return [
        WORDS
        | COUNTS
        | {"id": f"2023-06/{shard:04d}/en_head.json.gz/{line}", "document": line}
        | changes
        for line in range(n_lines)
    ]


TABLES = {
    "0000.parquet": lines(0, 3),
    "0001.parquet": [],
    "0002.parquet": lines(2, 2, n_tokens=-1),
    "0003.parquet": lines(3, 4, id="not/an/id"),
    "0004.parquet": lines(4, 1, url=None),
    "0005.parquet": lines(5, 2),
}


def written(folder, tables) -> list:
    for name, rows in tables.items():
        pq.write_table(pa.Table.from_pylist(rows, schema=TOKENIZED), folder / name)
    return sorted(folder.iterdir())


@pytest.mark.parametrize("at_once", [2, 4, 1 << 17])
def test_tables_judged_at_once_get_the_complaints_of_each(tmp_path, monkeypatch, at_once):
    """Judging in batches of any size is judging one by one: the same sentences, each with its
    table.
    """
    paths = written(tmp_path, TABLES)
    monkeypatch.setattr(schemas, "LINES_AT_ONCE", 1)
    alone = complaints_about(paths, TOKENIZED, unique="id")
    monkeypatch.setattr(schemas, "LINES_AT_ONCE", at_once)
    assert complaints_about(paths, TOKENIZED, unique="id") == alone
    assert {words.partition(":")[0] for words in alone} == {
        "0002.parquet",
        "0003.parquet",
        "0004.parquet",
    }


def test_sound_tables_and_none_at_all_get_no_complaint(tmp_path):
    """Empty tables among them."""
    sound = {name: TABLES[name] for name in ("0000.parquet", "0001.parquet", "0005.parquet")}
    assert complaints_about(written(tmp_path, sound), TOKENIZED, unique="id") == []
    assert complaints_about([], TOKENIZED, unique="id") == []


def test_an_id_in_two_tables_is_found_when_they_are_judged_at_once(tmp_path):
    """Each table alone is sound; the complaint names both ends of the batch."""
    (said,) = complaints_about(
        written(tmp_path, {"a.parquet": lines(0, 1), "b.parquet": lines(0, 1)}),
        TOKENIZED,
        unique="id",
    )
    assert said.startswith("a.parquet to b.parquet: column id: ")


def test_other_columns_are_said_of_their_table_alone(tmp_path):
    """A table with other columns is not judged further and hinders no other."""
    paths = written(tmp_path, {name: TABLES[name] for name in ("0000.parquet", "0002.parquet")})
    pq.write_table(pa.table({"x": [1]}), paths[0])
    first, *others = complaints_about(paths, TOKENIZED, unique="id")
    assert first.startswith("0000.parquet: columns are ['x'], promised are ['id', ")
    assert len(others) == 2
    assert all(words.startswith("0002.parquet: column n_tokens: ") for words in others)
