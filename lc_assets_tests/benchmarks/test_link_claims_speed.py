"""Claims among many links: ``pytest -s -m benchmark
lc_assets_tests/benchmarks/test_link_claims_speed.py``; 12 million of them with ``-m slow``.
"""

import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from lc_assets.packing.longpack import KEPT, PART_TOKENS, Offer, Rules, TurnState, take_turns
from lc_assets_tests.benchmarks import millions_of_links as made
from lc_assets_tests.benchmarks.timing import say
from lc_assets_tests.reference.longpack_documents import part_cost

ROOT = Path(__file__).parents[2]
N_LINKS = 60_000


def plainly(consume):
    """The same claims by lists, dictionaries and one turn after another; ids of roots and
    children.
    """
    roots, pages, n_pages, n_roots = made.edges(N_LINKS)
    ranks = np.random.default_rng(1).permutation(n_pages)
    order = np.concatenate([np.argsort(ranks[:n_roots]), n_roots + np.argsort(ranks[n_roots:])])
    number = np.empty(n_pages, int)
    number[order] = np.arange(n_pages)
    tokens = made.tokens_of(np.arange(n_pages)).tolist()
    offers = [
        Offer(
            int(number[root]),
            place,
            int(number[page]),
            int(number[page]),
            part_cost(tokens[page], "words"),
            131_072 - PART_TOKENS - tokens[root],
        )
        for place, (root, page) in enumerate(zip(roots.tolist(), pages.tolist(), strict=True))
    ]
    offers = sorted(offer for offer in offers if offer.cost <= offer.room)
    outcomes = take_turns(offers, Rules(consume=consume), TurnState(n_pages))
    names = made.ids_of(order).to_pylist()
    return {(names[offer.root], names[offer.page]) for offer, why in outcomes if why == KEPT}


@pytest.mark.parametrize("mode", ["allow", "consume"])
def test_links_per_second(tmp_path, mode):
    """Tables against lists in memory: identical claims."""
    n_links = made.write(tmp_path / "in", N_LINKS)
    begun = time.process_time()
    path, counts = made.claim(tmp_path / "in", tmp_path / "work", mode, 1)
    seconds, begun = time.process_time() - begun, time.process_time()
    wanted = plainly(mode == "consume")
    plain_seconds = time.process_time() - begun
    table = pq.read_table(path, columns=["root_id", "child_id"])
    assert (
        set(zip(*(table[name].to_pylist() for name in ("root_id", "child_id")), strict=True))
        == wanted
    )
    assert counts.seen == n_links
    say(f"claims, {mode}", n_links / 1000, "thousand links", seconds, lists_in_memory=plain_seconds)
    assert n_links / seconds > 5_000


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("mode", "repetitions"), [("allow", 1), ("allow", 4), ("consume", 1)])
def test_twelve_million_links_in_less_than_two_gigabytes(tmp_path, mode, repetitions):
    """12 million links of 218,000 roots to 4.4 million pages; seconds and memory are those of a
    process that only claims.
    """
    written = in_a_process("write", tmp_path, "13.1e6")
    found = in_a_process("claim", tmp_path, mode, str(repetitions))
    print(
        f"\n{mode}, {repetitions} ×: {written['links']:,} links, {found['kept']:,} kept; "
        f"{found['seconds']:.0f} s, {found['cpu_seconds']:.0f} CPU-s, {found['peak_mb']:,.0f} MiB"
    )
    assert written["links"] >= 12_000_000
    assert found["seen"] == written["links"]
    assert found["peak_mb"] * 1.048576 < 2_000


def in_a_process(what, folder, *rest):
    """What it said; through a small process, for a child's peak may be counted from its parent's
    memory.
    """
    begin = "import subprocess, sys; sys.exit(subprocess.run(sys.argv[1:]).returncode)"
    command = [
        sys.executable,
        "-c",
        begin,
        sys.executable,
        "-m",
        "lc_assets_tests.benchmarks.millions_of_links",
        what,
        str(folder),
        *rest,
    ]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout.splitlines()[-1])
