"""Looking entries up among dropped documents, which have no index: a million lines, against reading
every address. Run with ``-s`` to see the figures.
"""

import pyarrow as pa

from lc_assets.build.lookups import ScannedTable
from lc_assets.build.tables import DROPPED, write_table
from lc_assets.text.links.addresses import values_of
from lc_assets_tests.benchmarks.timing import cpu_seconds, say

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
