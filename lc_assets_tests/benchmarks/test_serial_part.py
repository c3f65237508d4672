"""What of a chain is serial, and how much faster more workers make it: ``LC_MB=250 pytest -s -m
"benchmark and slow" lc_assets_tests/benchmarks/test_serial_part.py``.

One snapshot in RedPajama-V2's layout, half of its bytes in documents of a book's length, half in
pages, is built stage by stage with one worker. Every task of the executor is metered; what a stage
takes beside its tasks is serial. Gunzip of the same files is the ruler, and so is what no chain can
do without (`lc_assets_tests.benchmarks.chain_parts`). The speed-up for more workers than there are
processors is simulated: the measured tasks of each run go to the first free worker, the serial parts
of all stages to one. The same with as many shards as a real snapshot has: tasks of shards are
repeated, blocks of rows become more, samples that checks take stay as they are, and serial parts
grow as from half the shards to all.
"""

import heapq
import math
import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import chain, product
from pathlib import Path

import pytest

from lc_assets.builds import verified_reads
from lc_assets.builds.building import WORKERS_IMPORT
from lc_assets.builds.recipe import Recipe
from lc_assets.builds.settings.documents import RawSettings
from lc_assets.builds.stage import BuildContext
from lc_assets.execution.local import LocalExecutor
from lc_assets.formats.redpajama.documents import write_documents, write_duplicates
from lc_assets.formats.redpajama.signals import write_signals
from lc_assets.lake.lake import Lake
from lc_assets.lake.upstream import Upstream
from lc_assets.sources import redpajama_v2
from lc_assets.stages.catalogue import STAGES
from lc_assets.stages.deduplication.signature_index import FILE_DOCUMENTS
from lc_assets.stages.planning import keys_of
from lc_assets.text.signals.signals import signals_of
from lc_assets.vocabulary import Shard, parse_snapshot
from lc_assets_tests.benchmarks.chain_parts import (
    GUNZIP,
    PREFIXES,
    bare_parts,
    print_bounds,
    unpacked,
)
from lc_assets_tests.benchmarks.crawl import prose
from lc_assets_tests.builders import made_up_record
from lc_assets_tests.named_draws import rng_for

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(3600),
    pytest.mark.usefixtures("as_in_a_command"),
]

MEGABYTES = float(os.environ.get("LC_MB", "250"))
"""Of text; half as much for comparison."""
SHARDS = 8
SNAPSHOT = parse_snapshot("2023-06")
BOOK_CHARS, PAGE_CHARS = 380_000, 3_300
WORKERS = (2, 16, 256, 4096)
REAL_SHARDS = 10_000
"""Of an English snapshot of RedPajama-V2."""
MOST_SERIAL = 0.07
"""Of 250 MB, without the card."""
REPEATED = 5
MOST_SERIAL_OF_REAL = 0.02
"""Of a snapshot of `REAL_SHARDS`."""
CARD = "data_set_card"
"""Its plots are drawn once, whatever the number of shards."""
LEAST_OF_PARTS = dict(zip(PREFIXES, (0.4, 0.5, 0.4, 0.5, 0.33, 0.44, 0.5), strict=True))
"""The rate of the chain, or its beginning, of that of its bare parts."""
LEAST_OF_BOUND = 0.75
"""Two workers' speed-up of the chain, of that of gunzip alone."""
BLOCKS = {"token_grid": 2_048, "longcrawl_flat": 512, "signature_index": FILE_DOCUMENTS}
"""Rows or documents of a task."""
SAMPLED = (*BLOCKS, "megatron_rows")
"""Stages whose checks by workers take samples of a fixed size."""


@dataclass(slots=True)
class Metered:
    """An executor of one worker that notes the CPU seconds of each task, by run, with its name."""

    runs: list[tuple[str, list[float]]] = field(default_factory=list)

    def run(self, function, tasks, *, what):
        took: list[float] = []
        self.runs.append((what, took))
        for task in tasks:
            begun = time.process_time()
            ((_, result),) = LocalExecutor().run(function, [task], what="")
            took.append(time.process_time() - begun)
            yield task, result


@dataclass(slots=True)
class Step:
    """A built partition: CPU seconds of its tasks by run, those beside them, wall seconds, and how
    many documents or rows it has.
    """

    name: str
    runs: list[tuple[str, list[float]]]
    serial: float
    wall: float
    kept: int

    @property
    def in_tasks(self) -> float:
        """CPU seconds of all tasks."""
        return sum(sum(took) for _, took in self.runs)

    @property
    def seconds(self) -> float:
        """CPU seconds, together."""
        return self.serial + self.in_tasks


def texts_of(shard: Shard, n_bytes: int) -> Iterator[str]:
    """Texts of a shard: books of paragraphs in any order, and as many bytes of pages."""
    rng, lines, n_made = rng_for("serial part", seed=0, key=shard.tag), prose()[1].split("\n"), 0
    while n_made < n_bytes:
        chosen, length = list[str](), 0
        wanted = BOOK_CHARS if n_made < n_bytes // 2 else int(PAGE_CHARS * 2 ** rng.normal())
        while length < wanted:
            chosen.append(lines[int(rng.integers(len(lines)))])
            length += len(chosen[-1]) + 1
        n_made += length
        yield "\n".join(chosen)


def write_shard(folder: Path, shard: Shard, n_bytes: int) -> None:
    """Write a shard with its signals, and no duplicates."""
    paths = {
        part: folder / redpajama_v2.part_path(part, shard)
        for part in ("documents", "signals", "duplicates")
    }
    for path in paths.values():
        path.parent.mkdir(parents=True, exist_ok=True)
    records = [
        made_up_record(shard, line, text) for line, text in enumerate(texts_of(shard, n_bytes))
    ]
    write_documents(paths["documents"], records)
    signals = (
        (line, record, signals_of(record.raw_content)) for line, record in enumerate(records)
    )
    write_signals(paths["signals"], shard, signals)
    write_duplicates(paths["duplicates"], shard, [])


@pytest.fixture(autouse=True)
def as_with_many_shards(monkeypatch):
    """Workers verify the inputs; only those of fewer than 64 MiB, as of eight shards, the main
    process would.
    """
    monkeypatch.setattr(verified_reads, "FEW_BYTES", 0)


@pytest.fixture(scope="module")
def upstream(tmp_path_factory) -> Path:
    """A snapshot and its listing."""
    folder = Path(os.environ.get("LC_UPSTREAM_FOLDER") or tmp_path_factory.mktemp("upstream"))
    shards = shards_of(SHARDS)
    listing = folder / redpajama_v2.listing_path(SNAPSHOT, "en")
    if not listing.exists():
        for shard in shards:
            write_shard(folder, shard, int(MEGABYTES * 1e6 / SHARDS))
        listing.parent.mkdir(parents=True, exist_ok=True)
        redpajama_v2.write_listing(listing, shards)
    return folder


def shards_of(n_shards: int) -> list[Shard]:
    """Shards of the snapshot, of both buckets."""
    names = [f"{number // 2:04d}/en_{('head', 'middle')[number % 2]}" for number in range(n_shards)]
    return [Shard.parse(f"{SNAPSHOT}/{name}") for name in names]


def context_of(folder: Path, upstream: Path, n_shards: int, executor) -> BuildContext:
    """A lake over the first shards of the snapshot."""
    raw = RawSettings(languages=("en",), shards=tuple(range(n_shards // 2)))
    return BuildContext(
        lake=Lake(folder),
        upstream=Upstream(str(upstream)),
        recipe=Recipe(raw_snapshot=raw),
        executor=executor,
    )


def built(context: BuildContext) -> list[Step]:
    """Build the chain; every partition with what it took."""
    steps = []
    for stage in STAGES:
        for key in keys_of(stage, context.recipe, [SNAPSHOT]):
            executor = Metered()
            begun, cpu = time.perf_counter(), time.process_time()
            counts = stage.build(replace(context, executor=executor), key).counts
            spent, wall = time.process_time() - cpu, time.perf_counter() - begun
            step = Step(stage.name, executor.runs, 0.0, wall, counts.kept)
            step.serial = spent - step.in_tasks
            steps.append(step)
    return steps


def least(runs: Iterable[list[Step]]) -> list[Step]:
    """The steps of some equal runs, each with its least tasks and serial part: what 10,000 shards
    take is computed from differences of a few milliseconds.
    """
    return [
        replace(
            min(steps, key=lambda step: step.in_tasks), serial=min(step.serial for step in steps)
        )
        for steps in zip(*runs, strict=True)
    ]


def gzipped_files(upstream: Path) -> dict[str, list[Path]]:
    """The snapshot's documents and signals."""
    return {
        part: [upstream / redpajama_v2.part_path(part, shard) for shard in shards_of(SHARDS)]
        for part in ("documents", "signals")
    }


def makespan(tasks: list[float], workers: int) -> float:
    """Seconds until the last task ends, each started by the first worker that is free."""
    free = [0.0] * min(workers, len(tasks))
    for seconds in tasks:
        heapq.heapreplace(free, free[0] + seconds)
    return max(free, default=0.0)


def speed_up(steps: list[Step], workers: int) -> float:
    """How many times as fast as with one worker, stage after stage."""
    alone = sum(step.seconds for step in steps)
    together = sum(
        step.serial + sum(makespan(took, workers) for _, took in step.runs) for step in steps
    )
    return alone / together


def grown(small: list[Step], large: list[Step], n_shards: int) -> list[Step]:
    """The steps of a snapshot with so many shards."""
    factor, steps = n_shards / SHARDS, []
    for less, more in zip(small, large, strict=True):
        slope = max(more.serial - less.serial, 0.0) / (SHARDS // 2) if more.name != CARD else 0.0
        serial = more.serial + slope * (n_shards - SHARDS)
        kept = int(more.kept * factor)
        runs = [(what, _tasks(more.name, what, took, factor, kept)) for what, took in more.runs]
        steps.append(Step(more.name, runs, serial, 0.0, kept))
    return steps


def _tasks(stage: str, what: str, took: list[float], factor: float, kept: int) -> list[float]:
    if not what and stage in SAMPLED:
        return took
    if len(took) >= SHARDS:
        return took * int(factor)
    n_tasks = math.ceil(kept / BLOCKS[stage]) if stage in BLOCKS else len(took)
    return [sum(took) * factor / n_tasks] * n_tasks if took else []


def share(steps: list[Step]) -> float:
    """Which part of all seconds is serial."""
    return sum(step.serial for step in steps) / sum(step.seconds for step in steps)


def print_table(small: list[Step], large: list[Step]) -> None:
    """What each stage took."""
    print("| stage | CPU-s in tasks | serial | serial, half the shards | wall, s |")
    print("|---|---|---|---|---|")
    for less, more in zip(small, large, strict=True):
        figures = f"{more.in_tasks:.2f} | {more.serial:.3f} | {less.serial:.3f} | {more.wall:.2f}"
        print(f"| `{more.name}` | {figures} |")


def compare_with_parts(chains: dict[int, list[Step]], bare: dict[str, float]) -> None:
    """Print the rates of chains, by their shards, and of their beginnings against those of their
    bare parts, given of `SHARDS`, and hold them.
    """
    print("bare parts, CPU-s: " + ", ".join(f"{name} {bare[name]:.2f}" for name in bare))
    print("| | shards | CPU-s | bare | of its rate | of gunzip's rate | bare, of gunzip's |")
    print("|---|---|---|---|---|---|---|")
    for (name, (stages, own)), (n_shards, steps) in product(PREFIXES.items(), chains.items()):
        took = sum(it.seconds for it in steps if not stages or it.name in stages)
        bound, gunzip = (n_shards / SHARDS * sum(map(bare.get, of)) for of in (own, [GUNZIP]))
        rates = " | ".join(f"{it:.2f}" for it in (bound / took, gunzip / took, gunzip / bound))
        print(f"| {name} | {n_shards:,} | {took:,.2f} | {bound:,.2f} | {rates} |")
        assert bound / took > LEAST_OF_PARTS[name]


def test_little_of_the_chain_is_serial(upstream, tmp_path):
    """Two sizes, the first of which warms all kernels; a table of the second, and what its bare
    parts take, by turns.
    """
    warm, gz = context_of(tmp_path / "warm", upstream, SHARDS, None), gzipped_files(upstream)
    all_gz = list(chain(*gz.values()))
    built(warm)
    runs, measured = {SHARDS // 2: list[list[Step]](), SHARDS: list[list[Step]]()}, []
    for again, (size, found) in product(range(REPEATED), runs.items()):
        found.append(built(context_of(tmp_path / f"{size}-{again}", upstream, size, None)))
        measured.append(bare_parts(warm.lake, warm.recipe, SNAPSHOT, all_gz))
    small, large = map(least, runs.values())
    bare = {name: min(found[name] for found in measured) for name in measured[0]}
    real, n_bytes = grown(small, large, REAL_SHARDS), sum(map(unpacked, gz["documents"]))
    total = sum(step.seconds for step in large)
    print(
        f"\n{n_bytes / 1e6:,.0f} MB of JSON in {SHARDS} shards: {total:.1f} CPU-s, "
        f"{n_bytes / 1e6 / total:.1f} MB per CPU-s; serial {share(large):.1%}"
    )
    print_bounds({step.name: step.seconds for step in large}, bare)
    print_table(small, large)
    compare_with_parts({SHARDS: large, REAL_SHARDS: real}, bare)
    print(f"of {REAL_SHARDS:,} such shards {share(real):.2%} would be serial")
    print(f"| workers | speed-up, {SHARDS} shards | {REAL_SHARDS:,} shards |")
    print("|---|---|---|")
    for workers in WORKERS:
        print(f"| {workers:,} | {speed_up(large, workers):.2f} | {speed_up(real, workers):,.1f} |")
    assert share([step for step in large if step.name != CARD]) < MOST_SERIAL
    assert share(real) < MOST_SERIAL_OF_REAL


def test_two_workers_by_the_clock(upstream, tmp_path):
    """The chain by one worker process and by two, warm, and gunzip alone: wall seconds, which need
    an idle machine.
    """
    seconds, alone = {}, {}
    for workers in (1, 2):
        executor = LocalExecutor(workers=workers, preload=WORKERS_IMPORT)
        files = gzipped_files(upstream)["documents"]
        for _ in range(2):  # the first starts the workers
            begun = time.perf_counter()
            list(executor.run(unpacked, files, what="unpack"))
            alone[workers] = time.perf_counter() - begun
        for n_shards in (2, SHARDS):
            folder = tmp_path / f"{workers}-{n_shards}"
            context = context_of(folder, upstream, n_shards, executor)
            begun = time.perf_counter()
            for stage in STAGES:
                for key in keys_of(stage, context.recipe, [SNAPSHOT]):
                    stage.build(context, key)
            seconds[workers] = time.perf_counter() - begun
    times, bound = seconds[1] / seconds[2], alone[1] / alone[2]
    print(f"\n1 worker {seconds[1]:.1f} s, 2 workers {seconds[2]:.1f} s: × {times:.2f}")
    print(f"gunzip alone × {bound:.2f}")
    assert times > LEAST_OF_BOUND * bound
