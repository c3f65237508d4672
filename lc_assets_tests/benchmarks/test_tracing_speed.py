"""Tracing in a snapshot of LongCrawl64's size, against a loop over its row table. Run with ``-s`` to see the figures."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lc_assets.stages.gridding import ROWS_FILE
from lc_assets.stages.histories import why_dropped
from lc_assets.stages.tables import DROPPED, ROWS, write_table
from lc_assets.stages.tracing import row_of_grid
from lc_assets.stages.whereabouts import find_id, find_url
from lc_assets.storage.lake import Fingerprint, LakeFolder, receipt_of, write_receipt
from lc_assets.tally import Tally
from lc_assets_tests.benchmarks.timing import cpu_seconds, say

N_ROWS = 79_000
"""LongCrawl64's 6.66 million rows over RedPajama-V2's 84 snapshots."""
N_DROPPED = 30_000
SOUGHT = "2023-06/0000/en_head.json.gz/54321"
GONE = "2023-06/0000/en_head.json.gz/9999999"
ADDRESS = "https://example.org/54321"


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    """A lake with one grid's row table and one shard's dropped documents, and nothing else."""
    found = LakeFolder(tmp_path_factory.mktemp("lake"))
    publish(found, "grid", ROWS_FILE, rows_table())
    publish(found, "filtered", "0000-en_head.dropped.parquet", dropped_table())
    return found


def grid_of(lake):
    return lake.place("grid", "2023-06").folder / "v1"


def publish(lake, stage, file, table):
    place = lake.place(stage, "2023-06")
    write_table(place.folder / "v1" / file, table)
    fingerprint = Fingerprint(stage=stage, key="2023-06", code_version="1", params={"row_tokens": 65_536}, inputs={})
    place.point_at(write_receipt(place.folder / "v1", receipt_of(place.folder / "v1", fingerprint, Tally())))


def rows_table():
    numbers = np.arange(N_ROWS)
    same = pa.repeat("", N_ROWS)
    columns = dict.fromkeys(ROWS.names, same) | dict.fromkeys(("row", "n_tokens", "document", "stretch", "shift"), numbers)
    columns |= {"split": pa.repeat("train", N_ROWS), "priority": numbers.astype(np.uint64)}
    columns |= {"id": [f"2023-06/0000/en_head.json.gz/{n}" for n in numbers], "url": [f"https://example.org/{n}" for n in numbers]}
    return pa.table(columns).select(ROWS.names).cast(ROWS)


def dropped_table():
    line = {"url": "", "reason": "long_enough", "value": 1.0, "reasons": ["long_enough"], "values": [1.0]}
    lines = [line | {"id": f"2023-06/0000/en_head.json.gz/{9_999_999 - number}"} for number in range(N_DROPPED)]
    return pa.Table.from_pylist(lines, DROPPED)


def by_loop(lake, stage, file, column, value):
    """Every line as a dictionary, and a look at each."""
    return next(line for line in pq.read_table(lake.place(stage, "2023-06").folder / "v1" / file).to_pylist() if line[column] == value)


@pytest.mark.parametrize(
    ("what", "look_up", "stage", "file", "column", "value"),
    [
        (
            "row of a position",
            lambda lake: row_of_grid(lake.place("grid", "2023-06").require(), "train", 54_321),
            "grid",
            ROWS_FILE,
            "row",
            54_321,
        ),
        ("row of an id", lambda lake: find_id(lake, SOUGHT)[0].row, "grid", ROWS_FILE, "id", SOUGHT),
        ("row of an address", lambda lake: find_url(lake, ADDRESS)[0].row, "grid", ROWS_FILE, "url", ADDRESS),
        ("why dropped", lambda lake: why_dropped(lake, GONE), "filtered", "0000-en_head.dropped.parquet", "id", GONE),
    ],
)
def test_a_look_up_finds_what_a_loop_finds_and_sooner(lake, what, look_up, stage, file, column, value):
    """Look-ups per CPU-second, the file opened anew for each."""
    fast, found = cpu_seconds(lambda _: look_up(lake))
    slow, wanted = cpu_seconds(lambda _: by_loop(lake, stage, file, column, value), rounds=1)
    assert (found.id, found.url) == (wanted["id"], wanted["url"])
    say(what, 1, "look-ups", fast, loop=slow)
    assert fast < slow
