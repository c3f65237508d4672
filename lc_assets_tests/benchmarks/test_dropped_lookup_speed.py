"""Looking entries up among dropped documents, which have no index: a million lines, against reading
every address. Run with ``-s`` to see the figures.
"""

from types import SimpleNamespace

import pyarrow as pa
import pytest

from lc_assets.builds.lookups import ScannedTable
from lc_assets.builds.recipe import Recipe
from lc_assets.builds.tables import DROPPED, REMEMBERED, write_table
from lc_assets.formats.lists.withdrawal_lists import Withdrawal
from lc_assets.stages.withdrawal import matching
from lc_assets.text.links.addresses import values_of
from lc_assets_tests.benchmarks.timing import cpu_seconds, say
from lc_assets_tests.memory import added

N_DOCUMENTS, N_HOSTS = 1_000_000, 50_000
SOUGHT = [
    ("domain", "site7.example.org"),
    ("url", "site8.example.org/page/8"),
    ("digest", "sha1:9"),
    ("document", "2023-06/0000/en_head.json.gz/10"),
]


def test_looking_up_in_a_million_dropped_documents(tmp_path):
    numbers = range(N_DOCUMENTS)
    columns = {
        "id": [f"2023-06/0000/en_head.json.gz/{number}" for number in numbers],
        "url": [
            f"https://www.site{number % N_HOSTS}.example.org/page/{number}" for number in numbers
        ],
        "digest": [f"sha1:{number}" for number in numbers],
        "reason": ["too short"] * N_DOCUMENTS,
        "value": [1.0] * N_DOCUMENTS,
        "reasons": [["too short"]] * N_DOCUMENTS,
        "values": [[1.0]] * N_DOCUMENTS,
    }
    path = tmp_path / "shard.dropped.parquet"
    write_table(path, pa.table(columns, schema=DROPPED))
    table = ScannedTable(path)
    seconds, found = cpu_seconds(lambda _: table.find_all(SOUGHT), rounds=3)
    assert sorted(int(line["id"].rpartition("/")[2]) for _, line in found) == [
        *(number for number in (7, 8, 9, 10)),
        *range(N_HOSTS + 7, N_DOCUMENTS, N_HOSTS),
    ]
    some = [{"url": url} for url in columns["url"][: N_DOCUMENTS // 20]]
    every, _ = cpu_seconds(lambda _: [values_of("domain", line) for line in some], rounds=1)
    say("look up in dropped documents", N_DOCUMENTS, "documents", seconds, every_address=20 * every)
    assert seconds < 20 * every


@pytest.mark.parametrize("n_shards", [20, 100])
def test_withdrawing_a_domain_of_dropped_documents(tmp_path, monkeypatch, n_shards):
    """10,000 pages a shard, first and when they are remembered: linear in time and memory."""
    tables = []
    for shard in range(n_shards):
        names = [f"{shard}/{number}" for number in range(10_000)]
        columns = {
            "id": [f"2023-06/{shard:04d}/en_head.json.gz/{line}" for line in range(10_000)],
            "url": [f"https://www.site7.example.org/page/{name}" for name in names],
            "digest": [f"sha1:{name:0>32}" for name in names],
            "reason": ["too short"] * 10_000,
            "value": [1.0] * 10_000,
            "reasons": [["too short"]] * 10_000,
            "values": [[1.0]] * 10_000,
        }
        tables.append(ScannedTable(tmp_path / f"{shard}.dropped.parquet"))
        write_table(tables[-1].path, pa.table(columns, schema=DROPPED))
    memory = REMEMBERED.empty_table()
    monkeypatch.setattr(matching, "_dropped_tables", lambda _: tables)
    monkeypatch.setattr(matching, "remembered_in", lambda _: memory)
    entry = Withdrawal.of(("domain", "site7.example.org", "asked for", "2026-03-01"))
    read = {"filtered_documents/2023-06": SimpleNamespace(stage="filtered_documents")}
    for what in ("a dropped domain", "a remembered domain"):
        with added() as n_bytes:
            seconds, found = cpu_seconds(
                lambda _: matching.resolve([entry], read, Recipe()), rounds=1
            )
            peak = n_bytes()
        memory, n = found.remembered, 10_000 * n_shards
        assert memory.num_rows == n
        print(f"\n{what} of {n:,}: {seconds:.1f} CPU-seconds, {peak / n:,.0f} bytes a document")
