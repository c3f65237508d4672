"""Packed documents hold the very texts that the claims name, in buckets of any size."""

import shutil
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lc_assets.builds.checks import SPANS_SUFFIX
from lc_assets.builds.settings.longpack import LongPackSettings
from lc_assets.builds.tables import FILTERED
from lc_assets.counts import Counts
from lc_assets.errors import Mismatch
from lc_assets.execution.local import LocalExecutor
from lc_assets.lake.receipts import SCRATCH
from lc_assets.packing.longpack import Part, Placed, written
from lc_assets.stages.longpack.gathering import pack_documents
from lc_assets.stages.longpack.placing import Packing
from lc_assets_tests.stages.longpacking.worlds import claimed, made_up_world, write

WIDE = LongPackSettings(portals="keep", same_language=False, mode="allow", repetitions=3, depth=2)


def runner(workers=1):
    executor = LocalExecutor(workers=workers, preload=("lc_assets.stages.longpack.gathering",))
    return lambda function, tasks, *, what: Counts.total(
        counts for _, counts in executor.run(function, tasks, what=what)
    )


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("gathering")
    world = made_up_world(seed=21)
    tables = write(world, folder / "in", n_files=3)
    claims, counts = claimed(folder, tables, WIDE)
    return (
        world,
        Packing(
            claims=claims,
            documents=tables[0],
            folder=folder / "out",
            paper_exact=False,
        ),
        counts,
    )


def packed(packing, workers=1, **changes):
    """Documents and spans by file name, in a folder of their own."""
    packing = replace(packing, **changes)
    shutil.rmtree(packing.folder, ignore_errors=True)
    packing.folder.mkdir()
    counts = pack_documents(packing, runner(workers))
    shutil.rmtree(packing.folder / SCRATCH)
    return counts, {path.name: path.read_bytes() for path in sorted(packing.folder.iterdir())}


def lines_of(folder, suffix):
    return [
        line
        for path in sorted(folder.glob(f"*{suffix}"))
        for line in pq.read_table(path).to_pylist()
    ]


def test_documents_are_what_dictionaries_put_together(made):
    world, packing, claimed_counts = made
    counts, _ = packed(packing)
    documents = {line["id"]: line for line in world.documents}
    wanted = {}
    for line in pq.read_table(packing.claims).to_pylist():
        wanted.setdefault(line["root_id"], []).append(line)
    found = lines_of(packing.folder, ".documents.parquet")
    spans = lines_of(packing.folder, SPANS_SUFFIX)
    assert {line["id"] for line in found} == set(wanted)
    assert counts.kept == len(wanted) == claimed_counts.extra["packed documents"]
    for line in found:
        root = documents[line["id"]]
        children = [
            Placed(
                page=Part(
                    url=documents[one["child_id"]]["url"],
                    text=documents[one["child_id"]]["raw_content"],
                ),
                keys=one["keys"],
                depth=one["depth"],
            )
            for one in sorted(wanted[line["id"]], key=lambda one: one["place"])
        ]
        plain = written(Part(url=root["url"], text=root["raw_content"]), children)
        own = [span for span in spans if span["id"] == line["id"]]
        assert line == root | {"raw_content": plain.text}
        assert [(span["url"], span["start"], span["stop"], span["depth"]) for span in own] == [
            (span.url, span.start, span.stop, span.depth) for span in plain.spans
        ]
        assert [span["child_id"] for span in own] == [
            *(one["child_id"] for one in wanted[line["id"]]),
            line["id"],
        ]
        assert own[-1]["role"] == "root"
    assert sum(span["n_tokens"] for span in spans) == counts.extra["tokens of parts"]
    assert (
        counts.extra["tokens of parts"]
        == claimed_counts.extra["tokens of children"]
        + claimed_counts.extra["tokens of their roots"]
    )


@pytest.mark.parametrize(
    ("bucket_tokens", "workers"), [(1, 1), (60, 1), (500, 1), (10**9, 1), (50, 3)]
)
def test_buckets_and_workers_change_nothing(made, bucket_tokens, workers):
    _, packing, _ = made
    plain = packed(packing)
    assert packed(packing, bucket_tokens=bucket_tokens, workers=workers) == plain
    assert len(plain[1]) == 2 * len(packing.documents)


def test_files_keep_the_order_of_their_documents(made):
    _, packing, _ = made
    packed(packing)
    for path in packing.documents:
        ids = pq.read_table(path, columns=["id"])["id"].to_pylist()
        ours = pq.read_table(packing.folder / path.name)
        assert ours.schema.equals(FILTERED)
        assert ours["id"].to_pylist() == [
            name for name in ids if name in set(ours["id"].to_pylist())
        ]


def test_claims_of_documents_that_are_not_there_are_refused(made, tmp_path):
    _, packing, _ = made
    table = pq.read_table(packing.claims)
    ids = ["2023-06/0000/en_head.json.gz/999", *table["child_id"].to_pylist()[1:]]
    spoilt = table.set_column(table.schema.get_field_index("child_id"), "child_id", pa.array(ids))
    pq.write_table(spoilt, tmp_path / "claims.parquet")
    with pytest.raises(Mismatch, match="make the claims again"):
        pack_documents(
            replace(packing, claims=tmp_path / "claims.parquet", folder=tmp_path / "out"), runner()
        )


def test_no_claims_are_empty_files(made, tmp_path):
    _, packing, _ = made
    pq.write_table(pq.read_table(packing.claims).slice(0, 0), tmp_path / "claims.parquet")
    counts = pack_documents(
        replace(packing, claims=tmp_path / "claims.parquet", folder=tmp_path / "out"), runner()
    )
    assert counts.seen == 0
    assert all(pq.read_table(path).num_rows == 0 for path in (tmp_path / "out").glob("*.parquet"))
    assert pack_documents(replace(packing, documents=[]), runner()) == Counts()
