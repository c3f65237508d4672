"""How well `lc plan --calibrate` foresees each stage: ``pytest -s -n 0 -m "benchmark and slow"
lc_assets_tests/benchmarks/test_calibration.py``.

A source has pages and books, in partitions of four and sixteen times as many shards as calibration
builds. Each partition is then built in a lake of its own. All in one process, in CPU seconds: the
machine must be as busy throughout, for a second costs up to 1.6 times as much beside others.
"""

import json
import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from lc_assets.builds.recipe_files import read_recipe
from lc_assets.builds.stage import BuildContext
from lc_assets.lake.lake import Lake
from lc_assets.lake.upstream import Upstream
from lc_assets.stages import calibrating
from lc_assets.stages.calibrating import Calibration, calibrate
from lc_assets.stages.catalogue import STAGES
from lc_assets.stages.costing import costs_of
from lc_assets.stages.planning import keys_of, plan
from lc_assets_tests.benchmarks.crawl import prose
from lc_assets_tests.benchmarks.test_serial_part import Metered
from lc_assets_tests.named_draws import rng_for

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(3600),
    pytest.mark.usefixtures("as_in_a_command"),
]

PARTS, SHARD_CHARS = 5, 1_100_000
"""Builds by which to calibrate, of 1 to 16 shards."""
CHARS = {"pages": 4_000, "books": 200_000}
"""Of a document, on average."""
LINE_PHRASES, LINE_CHARS = 4, 90
TIMES = (4, 16)
COPIED = 5
"""Of so many documents one is a copy, with a word more."""
RAW, TOGETHER = "raw_snapshot", "together"
MOST_TIMES, MOST_TIMES_OF_STAGE = 1.5, 4.0
"""Of a partition; of a stage, some of which do not grow as bytes do."""
MOST_TIMES_OF = {"near_duplicate_pairs": 2.0, "removed_documents": 2.0}
"""Of these stages, whose checks and queries once grew with the parts that were built."""
LEAST_SECONDS, LEAST_SHARE = 0.2, 0.01
"""Of a stage, or of its partition, below which a stage may differ by more."""
RECIPE = """
[sources.corpus]
path = "{folder}"
partition = "folder"
language = "en"
[filtered_documents]
rules = "gopher-paper"
min_words = 0
[token_documents]
min_tokens = 512
[token_grid]
row_tokens = 512
"""


def texts_of(name: str, mean_chars: int, phrases: list[str]) -> Iterator[str]:
    """Texts of a shard, of these phrases in any order."""
    rng, text, n_chars = rng_for("calibration", seed=0, key=name), "", 0
    while n_chars < SHARD_CHARS:
        if text and rng.integers(COPIED) == 0:
            text += " more"
        else:
            n_lines = int(mean_chars * rng.lognormal(-0.125, 0.5) / LINE_CHARS) + 1
            drawn = rng.integers(len(phrases), size=(n_lines, LINE_PHRASES)).tolist()
            text = "\n".join(" ".join(map(phrases.__getitem__, line)) for line in drawn)
        n_chars += len(text)
        yield text


@pytest.fixture
def context(tmp_path) -> BuildContext:
    """Of a source with two partitions of each kind, of words as frequent as in books."""
    words = prose()[1].split()
    phrases = [" ".join(words[at : at + 4]) for at in range(0, len(words), 4)]
    for kind, chars in CHARS.items():
        for times in TIMES:
            folder = tmp_path / "corpus" / f"{kind}-{times}"
            folder.mkdir(parents=True)
            for number in range(times * 2 ** (PARTS - 1)):
                texts = texts_of(f"{folder.name}/{number}", chars, phrases)
                lines = (json.dumps({"text": text}) + "\n" for text in texts)
                (folder / f"{number}.jsonl").write_text("".join(lines))
    (tmp_path / "recipe.toml").write_text(RECIPE.format(folder=tmp_path / "corpus"))
    return BuildContext(
        lake=Lake(tmp_path / "lake"),
        upstream=Upstream(""),
        recipe=read_recipe(tmp_path / "recipe.toml"),
        executor=Metered(),
    )


def foreseen_and_taken(
    context: BuildContext, found: Calibration, key: str
) -> Iterator[tuple[str, float, float]]:
    """Build a partition; CPU seconds of each stage, foreseen and taken."""
    alone = replace(found, n_bytes={key: found.n_bytes[key]})
    foreseen = dict[str, float]()
    for stage in STAGES:
        for own in keys_of(stage, context.recipe, [key]):
            begun = time.process_time()
            stage.build(context, own)
            taken = time.process_time() - begun
            if stage.name == RAW:
                costs = costs_of(
                    context.lake, context.recipe, plan(context.lake, context.recipe, [key])
                )
                foreseen = {cost.name: cost.seconds or 0.0 for cost in alone.filled(costs)}
            else:
                yield stage.name, foreseen[f"{stage.name}/{own}"], taken


def test_each_stage_takes_what_was_foreseen(context, tmp_path, monkeypatch):
    """A partition half as much again, at most; a stage four times."""
    monkeypatch.setattr(calibrating, "LEAST_PARTS", PARTS)
    keys, wrong = [f"{kind}-{times}" for kind in CHARS for times in TIMES], list[str]()
    found = calibrate(context, keys, at_once=1, seconds=0.0, clock=time.process_time)
    print(f"\ncalibrated by {found.n_shards}")
    for key in keys:
        print(f"| {key} | foreseen | taken, CPU-s | ratio |\n|---|---|---|---|")
        lake = replace(context, lake=Lake(tmp_path / key))
        rows = list(foreseen_and_taken(lake, found, key))
        whole = np.array([row[1:] for row in rows]).sum(axis=0).tolist()
        least = max(LEAST_SECONDS, LEAST_SHARE * whole[1])
        for name, foreseen, taken in [*rows, (TOGETHER, *whole)]:
            print(f"| `{name}` | {foreseen:.2f} | {taken:.2f} | {foreseen / taken:.2f} |")
            most = MOST_TIMES_OF.get(name, MOST_TIMES_OF_STAGE) if name != TOGETHER else MOST_TIMES
            times = max(foreseen, taken) / max(min(foreseen, taken), 1e-9)
            if times > most and abs(foreseen - taken) > least:
                wrong.append(f"{name}/{key}: foreseen {foreseen:.2f}, taken {taken:.2f}")
    assert not wrong
