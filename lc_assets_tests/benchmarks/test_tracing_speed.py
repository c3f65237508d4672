"""Tracing by index, against a loop over the tables; at LongCrawl64's size when asked. Run with
``-s`` to see the figures.
"""

import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lc_assets.builds.checks import SPANS_SUFFIX
from lc_assets.builds.lookups import KeyedTable
from lc_assets.builds.tables import DROPPED, write_table
from lc_assets.formats.key_index import KeyIndex
from lc_assets.stages.lineage import histories, spans as spans_of_rows, tracing, whereabouts
from lc_assets.stages.links.link_tables import SPANS
from lc_assets.stages.longpack.page_index import INDEX, PAGES_FILE, write_page_index
from lc_assets.text.links.addresses import host_of
from lc_assets_tests.benchmarks.timing import cpu_seconds, say
from lc_assets_tests.benchmarks.traced_lake import MIX, publish, traced_lake, write_packed

N_DROPPED = 30_000
PIECES = 4
FULL_SNAPSHOTS, FULL_ROWS = 84, 79_300
"""6.66 million rows, LongCrawl64's, over RedPajama-V2's snapshots."""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Two snapshots of 20,000 rows, and 30,000 dropped documents of one shard."""
    found = traced_lake(tmp_path_factory.mktemp("traced"), n_snapshots=2, n_rows=20_000)
    line = {
        "url": "",
        "reason": "long_enough",
        "value": 1.0,
        "reasons": ["long_enough"],
        "values": [1.0],
    }
    lines = [
        line | {"id": f"{found.snapshots[0]}/0007/en_head.json.gz/{number}"}
        for number in range(N_DROPPED)
    ]
    table = pa.Table.from_pylist(lines, DROPPED)
    publish(
        found.lake,
        "token_documents",
        found.snapshots[0],
        lambda home: write_table(home / "0007-en_head.dropped.parquet", table),
        params={"n": 1},
    )
    return found


def by_loop(lake, stage, key, file, wanted):
    """Every line of a table as a dictionary, and a look at each."""
    folder = lake.partition(stage, key).require().home
    return next(line for line in pq.read_table(folder / file).to_pylist() if wanted(line))


def rows_file(made, wanted):
    return by_loop(made.lake, "token_grid", made.snapshots[0], "rows.parquet", wanted)


@pytest.fixture(scope="module")
def row(made):
    """A row of the first snapshot, to be sought."""
    grid = made.lake.partition("token_grid", made.snapshots[0]).require()
    return tracing.find_row(made.lake, grid, "train", 12_345)


QUESTIONS = {
    "row of a number": (
        lambda lake, row: (
            tracing.find_row(
                lake, lake.partition("token_grid", row.snapshot).require(), "train", row.row
            ).id
        ),
        lambda made, row: rows_file(
            made, lambda line: (line["split"], line["row"]) == ("train", row.row)
        )["id"],
    ),
    "row of an id": (
        lambda lake, row: whereabouts.rows_by(lake, "document", row.id)[0].row,
        lambda made, row: rows_file(made, lambda line: line["id"] == row.id)["row"],
    ),
    "rows of an address": (
        lambda lake, row: whereabouts.rows_by(lake, "url", row.url)[0].row,
        lambda made, row: rows_file(made, lambda line: line["url"] == row.url)["row"],
    ),
    "what was removed for it": (
        lambda lake, row: histories.removed_for(lake, row.id)[0]["id"],
        lambda made, row: by_loop(
            made.lake,
            "removed_documents",
            row.snapshot,
            "decisions.parquet",
            lambda line: line["kept_id"] == row.id,
        )["id"],
    ),
    "why dropped": (
        lambda lake, row: (
            histories.why_dropped(lake, f"{row.snapshot}/0007/en_head.json.gz/29000").id
        ),
        lambda made, row: by_loop(
            made.lake,
            "token_documents",
            row.snapshot,
            "0007-en_head.dropped.parquet",
            lambda line: line["id"].endswith("/29000"),
        )["id"],
    ),
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_look_up_finds_what_a_loop_finds_and_sooner(made, row, question):
    """Look-ups per CPU-second, every file opened anew for each."""
    ask, loop = QUESTIONS[question]
    fast, found = cpu_seconds(lambda _: ask(made.lake, row))
    slow, wanted = cpu_seconds(lambda _: loop(made, row), rounds=1)
    assert found == wanted
    say(f"{question}, {made.n_rows:,} rows", 1, "look-ups", fast, loop=slow)
    assert fast < slow


def test_positions_and_samples_are_found_without_a_pass(made, row):
    """Against a pass over the order and over the mix."""
    order = tracing.GlobalOrder.open(made.lake.partition("longcrawl").require().home, "train")
    number = [source.snapshot for source in order.sources].index(row.snapshot)
    fast, found = cpu_seconds(lambda _: whereabouts.position_of(order, row))
    slow, wanted = cpu_seconds(
        lambda _: int(
            np.flatnonzero(
                (np.asarray(order.source) == number) & (np.asarray(order.row) == row.row)
            )[0]
        )
    )
    assert found == wanted
    say(f"position, {len(order):,} rows", 1, "look-ups", fast, pass_over_all=slow)
    (everything,) = whereabouts.find(made.lake, "document", row.id)
    assert everything.position == found
    (position, *_), samples = [found], everything.samples[MIX]
    assert all(
        row.id in {piece.span.id for piece in tracing.sample_of_mix(made.lake, MIX, sample).pieces}
        for sample in samples
    )
    assert len(samples) in {8, 9}
    assert tracing.row_of_order(made.lake, "train", position) == row


def test_packed_rows_are_traced_both_ways(made, row):
    """A column of a packed row to its document, and a document to its stretches, among as many rows
    of four pieces; against a loop.
    """
    packed = write_packed(made.lake, made.snapshots[0], made.n_rows, PIECES)
    path, number = packed.home / "spans.parquet", made.n_rows * 2 // 3
    down, stretch = cpu_seconds(
        lambda _: spans_of_rows.spans_of_packed_row(packed, "train", number)[PIECES - 1]
    )
    loop, line = cpu_seconds(
        lambda _: next(
            line
            for line in pq.read_table(path).to_pylist()
            if (line["row"], line["piece"]) == (number, PIECES - 1)
        ),
        rounds=1,
    )
    assert (line["id"], line["row_start"]) == (stretch.id, stretch.row_start)
    up, (found,) = cpu_seconds(lambda _: whereabouts.packed_spans_with(packed, [stretch.id]))
    assert found == stretch
    assert whereabouts.packed_by(made.lake, "document", stretch.id) == [stretch]
    say(
        f"packed row → stretches, {made.n_rows * PIECES:,} stretches",
        1,
        "look-ups",
        down,
        loop=loop,
    )
    say(
        f"id → stretches of packed rows, {made.n_rows * PIECES:,} stretches",
        1,
        "look-ups",
        up,
        loop=loop,
    )
    assert max(down, up) < loop


def test_pages_within_packed_documents_are_found_without_a_pass(tmp_path):
    """A page to the documents that hold it, among 40,000 parts of two shards; against a loop over
    all spans.
    """
    spans = [tmp_path / f"{shard}{SPANS_SUFFIX}" for shard in ("0000-en_head", "0001-en_head")]
    for shard, path in enumerate(spans):
        of_shard = [_part(20_000 * shard + number) for number in range(20_000)]
        write_table(path, pa.Table.from_pylist(of_shard, SPANS))
    write_page_index(tmp_path, spans)
    index = KeyedTable(tmp_path / PAGES_FILE, KeyIndex(tmp_path / INDEX))
    wanted = _part(27_182)
    fast, found = cpu_seconds(
        lambda _: [line["packed_id"] for line in index.find("url", wanted["url"])]
    )
    slow, looped = cpu_seconds(
        lambda _: [
            line["id"]
            for path in spans
            for line in pq.read_table(path).to_pylist()
            if line["url"] == wanted["url"]
        ],
        rounds=1,
    )
    assert found == looped
    say("page → LongPack's documents, 40,000 parts", 1, "look-ups", fast, loop=slow)
    assert fast < slow / 5


def _part(number: int) -> dict[str, object]:
    """Nine children and a root for each document."""
    none = {
        "part": number % 10,
        "role": "child",
        "depth": 1,
        "keys": "",
        "cluster": "",
        "start": 0,
        "stop": 1,
        "n_tokens": 1,
    }
    return none | {
        "id": f"{number // 10 * 10}",
        "child_id": f"{number}",
        "url": f"https://site{number % 700}.example/{number}",
    }


@pytest.mark.slow
@pytest.mark.timeout(1000)
def test_a_look_up_takes_milliseconds_at_full_size(tmp_path):
    """6.66 million rows of 84 snapshots, 53 million samples; every file opened anew for each
    look-up, but in the page cache.
    """
    lake = traced_lake(tmp_path, n_snapshots=FULL_SNAPSHOTS, n_rows=FULL_ROWS).lake
    rng = np.random.default_rng(1)
    n_rows = len(tracing.GlobalOrder.open(lake.partition("longcrawl").require().home, "train"))
    n_samples = whereabouts.mixes_of(lake)[MIX][1].n_samples
    positions, samples = (
        [int(one) for one in rng.integers(0, most, 40)] for most in (n_rows, n_samples)
    )
    rows = [tracing.row_of_order(lake, "train", position) for position in positions]
    asked = {
        "position → document": (lambda n: tracing.row_of_order(lake, "train", positions[n]), 10),
        "sample → documents": (lambda n: tracing.sample_of_mix(lake, MIX, samples[n]), 20),
        "id → row, position, samples": (
            lambda n: whereabouts.find(lake, "document", rows[n].id),
            40,
        ),
        "address → rows": (lambda n: whereabouts.rows_by(lake, "url", rows[n].url), 60),
        "domain → rows": (lambda n: whereabouts.rows_by(lake, "domain", host_of(rows[n].url)), 60),
        "row → values judged": (lambda n: histories.filter_values(lake, rows[n]), 20),
        "row → what was removed for it": (lambda n: histories.removed_for(lake, rows[n].id), 60),
    }
    packed = write_packed(lake, rows[0].snapshot, FULL_ROWS, PIECES)
    stretches = spans_of_rows.packed_spans(
        packed, [int(one) for one in rng.integers(0, FULL_ROWS * PIECES, 40)]
    )
    asked |= {
        "packed row, column → document": (
            lambda n: spans_of_rows.spans_of_packed_row(packed, "train", stretches[n].row),
            60,
        ),
        "id → packed rows": (
            lambda n: whereabouts.packed_by(lake, "document", stretches[n].id),
            200,
        ),
    }
    print(f"\n{n_rows:,} train rows, {n_samples:,} samples")
    for what, (ask, most) in asked.items():
        seconds, cpu = [], time.process_time()
        for number in range(40):
            begun = time.perf_counter()
            assert ask(number)
            seconds.append(time.perf_counter() - begun)
        per_look_up = (time.process_time() - cpu) / 40 * 1e3
        print(
            f"{what}: {np.median(seconds) * 1e3:.1f} ms by the clock, worst "
            f"{max(seconds) * 1e3:.1f}; {per_look_up:.1f} CPU-ms"
        )
        assert per_look_up < most
