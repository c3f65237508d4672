"""Raw to filtered: a shard with its signals and duplicates, against gzip and json line by line. Run
with ``-s`` to see the figures.
"""

import gzip
import json
from math import nan

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from isal import igzip

from lc_assets.builds.settings.documents import FilteringSettings
from lc_assets.builds.table_writer import COMPRESSION
from lc_assets.builds.tables import DROPPED, FILTERED
from lc_assets.lake.upstream import Upstream
from lc_assets.sources.redpajama_v2 import part_path
from lc_assets.stages.documents.kept_lines import schema_of
from lc_assets.stages.documents.measuring import rules_of
from lc_assets.stages.documents.raw_snapshot import ShardFiles
from lc_assets.stages.documents.shard_filtering import filter_shard
from lc_assets.stages.documents.shard_inputs import ShardTask
from lc_assets.vocabulary import Shard
from lc_assets_tests.benchmarks.crawl import crawl_texts, write_crawl
from lc_assets_tests.benchmarks.timing import cpu_seconds, say
from lc_assets_tests.reference.signals import scalar_values

SHARD = Shard.parse("2023-06/0000/en_head")
SETTINGS = FilteringSettings(min_words=12_000)
RULES = rules_of(SETTINGS)
N_CHARS, REPEATS = 1_200_000, 10


@pytest.fixture(scope="module")
def crawl(tmp_path_factory):
    """A shard of about 13 MB of JSON."""
    return write_crawl(
        tmp_path_factory.mktemp("crawl"), SHARD, list(crawl_texts(N_CHARS)), repeats=REPEATS
    )


def looked_at(crawl):
    """What the manifest says of the shard: another stage's work."""
    upstream = Upstream(str(crawl))
    return upstream, ShardFiles(
        SHARD,
        {
            part: upstream.look(part_path(part, SHARD))
            for part in ("documents", "signals", "duplicates")
        },
    )


def ours(looked, folder):
    """Filter the shard as the stage does, into a folder of its own."""
    upstream, files = looked
    return filter_shard(
        ShardTask(upstream=upstream, files=files, folder=folder, rules=RULES, settings=SETTINGS)
    )


def plain(crawl, folder):
    """What one would write first: both files side by side, everything decoded, a dictionary per
    document.
    """
    duplicates = set(pq.read_table(crawl / part_path("duplicates", SHARD))["doc_id"].to_pylist())
    kept, dropped = [], []
    with (
        gzip.open(crawl / part_path("documents", SHARD)) as documents,
        gzip.open(crawl / part_path("signals", SHARD)) as signals,
    ):
        for line, (document, signal) in enumerate(zip(documents, signals, strict=True)):
            record, values = (
                json.loads(document),
                scalar_values(json.loads(signal)["quality_signals"]),
            )
            identity = SHARD.document_id(line)
            reasons = [("duplicate", 1.0)] * (identity in duplicates)
            for rule in RULES.rules:
                value = values[rule.signal]
                if value is None or not rule.lowest <= value <= rule.highest:
                    reasons.append((rule.name, nan if value is None else float(value)))
            if reasons:
                names, judged = zip(*reasons, strict=True)
                described = {
                    "reason": names[0],
                    "value": judged[0],
                    "reasons": names,
                    "values": judged,
                }
                known = {"id": identity, "url": record["url"], "digest": record["digest"]}
                dropped.append(known | described)
            else:
                kept.append(
                    {
                        "id": identity,
                        **{name: record[name] for name in FILTERED.names[1:]},
                        **values,
                    }
                )
    folder.mkdir()
    for name, lines, schema in (
        ("documents", kept, schema_of(RULES)),
        ("dropped", dropped, DROPPED),
    ):
        pq.write_table(
            pa.Table.from_pylist(lines, schema),
            folder / f"{SHARD.name}.{name}.parquet",
            compression=COMPRESSION,
        )


def test_filtering_is_the_plain_loop_and_faster(crawl, tmp_path):
    """MB of the documents' JSON per CPU-second; signals and duplicates are read and joined, but not
    counted.
    """
    looked = looked_at(crawl)
    fast, counts = cpu_seconds(lambda number: ours(looked, tmp_path / f"ours{number}"), rounds=5)
    slow, _ = cpu_seconds(lambda number: plain(crawl, tmp_path / f"plain{number}"), rounds=1)
    bare, n_bytes = cpu_seconds(lambda _: bare_bytes(crawl), rounds=5)
    for name in ("documents", "dropped"):
        found, wanted = (
            pq.read_table(tmp_path / folder / f"{SHARD.name}.{name}.parquet")
            for folder in ("ours0", "plain0")
        )
        assert str(found.to_pylist()) == str(wanted.to_pylist())  # str: NaN is not itself
    assert counts.seen == counts.kept + sum(counts.dropped.values())
    assert min(counts.kept, counts.dropped["duplicate"], counts.dropped["long_enough"]) > 0
    say("filter_shard", n_bytes / 1e6, "MB of JSON", fast, gzip_and_json=slow, isal_alone=bare)
    assert fast < slow


def bare_bytes(crawl):
    """Decompress the documents and nothing else."""
    with igzip.open(crawl / part_path("documents", SHARD)) as stream:
        return sum(map(len, iter(lambda: stream.read(1 << 18), b"")))
