"""What a grid costs as it grows: time and memory at 1, 4 and 16 GB of ids, and the shuffle against
a plain copy.

``pytest -s -m "benchmark and slow" lc_assets_tests/benchmarks/test_grid_growth.py``; 16 GB needs 30
GB of disk and some minutes.
"""

import shutil
import time

import numpy as np
import pyarrow as pa
import pytest

from lc_assets.builds.settings.rows import GriddingSettings
from lc_assets.builds.tables import TOKENIZED, read_table, write_table
from lc_assets.lake.lake import Lake
from lc_assets.stages.rows.row_plans import gather_rows, plan_rows
from lc_assets.stages.rows.token_grid import rows_of
from lc_assets.vocabulary import GPT2_VOCAB_SIZE, ROW_TOKENS
from lc_assets_tests.benchmarks.test_memory_by_stage import KEY, RECIPE, measured
from lc_assets_tests.benchmarks.token_store import write_tokens

ROW_BYTES = 2 * ROW_TOKENS
SHARD_DOCUMENTS = 512
PUBLISHED_ROWS = 6_660_000
"""Of LongCrawl64."""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3000)]


@pytest.mark.parametrize("gigabytes", [1, 4, 16])
def test_a_grids_cost_is_linear_and_its_memory_is_not(gigabytes, tmp_path):
    """In a process of its own, tokens on disk to rows on disk, audit and digests aside as the
    receipt measures it.
    """
    n_shards = round(gigabytes * 1e9 / ROW_BYTES / SHARD_DOCUMENTS)
    write_tokens(Lake(tmp_path / "lake"), KEY, n_shards=n_shards, shard_documents=SHARD_DOCUMENTS)
    (tmp_path / "recipe.toml").write_text(RECIPE)
    (tmp_path / "upstream").mkdir()
    found = measured(tmp_path, "token_grid")
    n_rows = n_shards * SHARD_DOCUMENTS
    hours = found["cpu_seconds"] / n_rows * PUBLISHED_ROWS / 3600
    print(
        f"\ngrid of {n_rows * ROW_BYTES / 1e9:.1f} GB: {found['seconds']:.1f} s, "
        f"{found['cpu_seconds']:.1f} CPU-s, "
        f"{n_rows * ROW_BYTES / 1e6 / found['cpu_seconds']:.0f} MB per CPU-second, "
        f"{found['peak_rss_mb']:.0f} MiB; "
        f"at this rate 6.66 million rows take {hours:.1f} CPU-hours"
    )
    assert found["peak_rss_mb"] < 600


def test_the_shuffle_costs_little_more_than_a_copy(tmp_path):
    """Rows gathered and rolled into a plain file, against a copy of the token store; wall and CPU
    seconds, neither flushed.
    """
    lake = Lake(tmp_path / "lake")
    write_tokens(lake, KEY, n_shards=16, shard_documents=SHARD_DOCUMENTS)
    tokens = lake.partition("token_documents", KEY).require().folder
    paths = sorted(tokens.glob("*.documents.parquet"))
    names = [path.name.removesuffix(".documents.parquet") for path in paths]
    documents = [read_table(path, TOKENIZED.names) for path in paths]
    named = [
        table.append_column("token_shard", pa.repeat(name, len(table)))
        for table, name in zip(documents, names, strict=True)
    ]
    write_table(
        tmp_path / "rows.parquet",
        plan_rows(pa.concat_tables(named), GriddingSettings(heldout_fraction=0)),
    )

    def shuffled() -> None:
        plan = rows_of(tmp_path, "train")
        with (tmp_path / "shuffled.bin").open("wb") as out:
            for first in range(0, plan.num_rows, 2048):
                band = plan.slice(first, 2048)
                gather_rows(
                    band,
                    tokens,
                    row_tokens=ROW_TOKENS,
                    n_ids=GPT2_VOCAB_SIZE,
                    shifts=band["shift"].to_pylist(),
                ).tofile(out)

    def copied() -> None:
        with (tmp_path / "copied.bin").open("wb") as out:
            for name in names:
                with (tokens / f"{name}.bin").open("rb") as stream:
                    shutil.copyfileobj(stream, out, 1 << 20)

    rounds = [(took(shuffled), took(copied)) for _ in range(3)]
    ours, plain = (np.median([pair[side] for pair in rounds], axis=0) for side in (0, 1))
    megabytes = 16 * SHARD_DOCUMENTS * ROW_BYTES / 1e6
    print(
        f"\nshuffle and roll of {megabytes:,.0f} MB: {megabytes / ours[0]:.0f} MB per second, "
        f"{megabytes / ours[1]:.0f} per CPU-second;"
    )
    print(
        f"  a copy {megabytes / plain[0]:.0f} and {megabytes / plain[1]:.0f}: "
        f"{plain[0] / ours[0]:.2f} and {plain[1] / ours[1]:.2f} of it"
    )
    assert plain[0] / ours[0] > 0.5
    assert (tmp_path / "shuffled.bin").stat().st_size == (tmp_path / "copied.bin").stat().st_size


def took(work) -> tuple[float, float]:
    """Wall and CPU seconds of one call."""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - cpu
