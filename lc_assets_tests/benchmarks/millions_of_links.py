"""Claims among millions of made-up links, in a process of its own; prints one line of JSON.

Pages are pointed at as on the Web: the n-th most often with a share of 1/n. A sixtieth as many
pages as links are roots, a third as many are pointed at; texts are not there, only their lengths
(lognormal, half of them below 665 tokens, at most 100,000). As a program: ``python -m … write
FOLDER N_LINKS``, then ``python -m … claim FOLDER MODE REPETITIONS``; so what writing takes is not
counted. What is written in the folder stays there.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lc_assets.builds.settings.longpack import LongPackSettings
from lc_assets.counts import Counts
from lc_assets.stages.links.link_tables import PAGE_LINKS
from lc_assets.stages.longpack.claiming import Claims, claim_links
from lc_assets.stages.longpack.pages import FACTS, PAGES, FactsTask, PagesTask
from lc_assets_tests.memory import peak_mb

N_FILES = 8
N_HOSTS = 50_000
LINKS_PER_ROOT, LINKS_PER_TARGET = 60, 3
SPREAD = 982_451_653
"""A prime: the n-th most pointed at is page n × SPREAD modulo their count, so roots and targets are
spread over all pages.
"""


def ids_of(numbers: np.ndarray) -> pa.Array:
    """Ids of pages by number."""
    return pc.binary_join_element_wise(
        "2023-06/0000/en_head.json.gz", pc.cast(pa.array(numbers), pa.string()), "/"
    )


def keys_of(numbers: np.ndarray) -> pa.Array:
    """Page keys of pages by number."""
    hosts, pages = (
        pc.cast(pa.array(values), pa.string()) for values in (numbers % N_HOSTS, numbers)
    )
    return pc.binary_join_element_wise(
        pc.binary_join_element_wise("host", hosts, ""), "page", pages, "/"
    )


def tokens_of(numbers: np.ndarray) -> np.ndarray:
    """Lengths of pages by number; the same in every process."""
    spread = (numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(40)
    drawn = np.random.default_rng(3).lognormal(6.5, 1.0, 1 << 16)
    return np.minimum(drawn[spread % np.uint64(1 << 16)], 100_000).astype(np.int64)


def edges(n_links: int) -> tuple[np.ndarray, np.ndarray, int, int]:
    """Roots (0 … n_roots - 1) and pages of the links, by root and place of appearance; how many
    pages and roots there are.
    """
    n_roots, n_pages = n_links // LINKS_PER_ROOT, n_links // LINKS_PER_TARGET
    rng = np.random.default_rng(0)
    rank = (n_pages ** rng.random(n_links)).astype(np.int64) - 1
    pages = rank * (SPREAD % n_pages) % n_pages
    roots = rng.integers(0, n_roots, n_links)
    pages[pages == roots] = (pages[pages == roots] + 1) % n_pages
    pairs = np.unique(roots * n_pages + pages)
    pairs = pairs[rng.permutation(len(pairs))]
    pairs = pairs[np.argsort(pairs // n_pages, kind="stable")]
    return pairs // n_pages, pairs % n_pages, n_pages, n_roots


def write(folder: Path, n_links: int) -> int:
    """Write tables of pages and of links; returns how many links, each target of a root once."""
    roots, pages, n_pages, n_roots = edges(n_links)
    ranks = np.random.default_rng(1).permutation(n_pages).astype(np.uint64)
    folder.mkdir(parents=True, exist_ok=True)
    for number, part in enumerate(np.array_split(np.arange(n_pages), N_FILES)):
        columns: dict[str, Any] = {
            "file": np.full(len(part), number),
            "line": np.arange(len(part)),
            "id": ids_of(part),
            "page_key": keys_of(part),
            "host": pc.binary_join_element_wise(
                "host", pc.cast(pa.array(part % N_HOSTS), pa.string()), ""
            ),
            "is_home": np.zeros(len(part), np.bool_),
            "rank": ranks[part],
            "is_root": part < n_roots,
            "is_older": np.zeros(len(part), np.bool_),
            "language": pa.repeat("en", len(part)),
            "title": pa.repeat("title", len(part)),
        }
        pq.write_table(
            pa.table([pa.array(column) for column in columns.values()], names=list(columns)).cast(
                PAGES
            ),
            folder / f"pages{number}",
        )
    places = np.arange(len(roots)) - np.searchsorted(roots, roots)
    for number, part in enumerate(np.array_split(np.arange(len(roots)), N_FILES)):
        no, words = pa.repeat(pa.scalar(False), len(part)), pa.repeat("words", len(part))
        columns = {
            "page_key": keys_of(roots[part]),
            "id": ids_of(roots[part]),
            "position": places[part],
            "target_key": keys_of(pages[part]),
            "target_url": words,
            "keys": words,
            "n_links": np.ones(len(part), np.int32),
            **dict.fromkeys(("nofollow", "navigation", "generic", "in_text"), no),
        }
        pq.write_table(
            pa.table([pa.array(column) for column in columns.values()], names=list(columns)).cast(
                PAGE_LINKS
            ),
            folder / f"links{number}",
        )
    return len(roots)


def claim(folder: Path, work: Path, mode: str, repetitions: int) -> tuple[Path, Counts]:
    """Claim pages; who they are is written already, and their texts' lengths are made from their
    numbers.
    """

    def run(function: Any, tasks: Any, *, what: str) -> Counts:
        for task in tasks:
            (list_them if isinstance(task, PagesTask) else know_them)(folder, task)
        return Counts()

    documents = [folder / f"{number}.documents.parquet" for number in range(N_FILES)]
    made = Claims(
        documents=documents,
        older=[],
        links=[folder / f"links{number}" for number in range(N_FILES)],
        decisions=[],
        aliases=[],
        folder=work,
        out=work / "claims.parquet",
        settings=LongPackSettings(mode=mode, repetitions=repetitions, max_tokens=131_072),
        tokenizer="gpt2",
        text_encoding="plain",
        run=run,
    )
    return made.out, claim_links(made)


def list_them(folder: Path, task: PagesTask) -> None:
    """Put a table of pages where it is looked for."""
    task.path.parent.mkdir(parents=True, exist_ok=True)
    task.path.unlink(missing_ok=True)
    task.path.hardlink_to(folder / f"pages{task.file}")


def know_them(folder: Path, task: FactsTask) -> None:
    """Write what is known of the texts that are needed: a content of their own, and their
    length.
    """
    lines, numbers = pq.read_table(task.needed).columns
    ids = pq.read_table(folder / f"pages{task.file}", columns=["id"])["id"].take(lines)
    pages = np.array([int(name.rpartition("/")[2]) for name in ids.to_pylist()], np.int64)
    table = pa.table([numbers, ids, pa.chunked_array([tokens_of(pages)])], names=FACTS.names).cast(
        FACTS
    )
    task.path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, task.path)


def main(what: str, folder: str, *rest: str) -> None:
    """Write, or claim; print one line."""
    begun, cpu = time.perf_counter(), time.process_time()
    if what == "write":
        said: dict[str, Any] = {"links": write(Path(folder), int(float(rest[0])))}
    else:
        start_mb = peak_mb()
        _, counts = claim(Path(folder), Path(folder) / "work", rest[0], int(rest[1]))
        said = {
            "start_mb": start_mb,
            "seen": counts.seen,
            "kept": counts.kept,
            "dropped": counts.dropped,
            **counts.extra,
        }
    said |= {"seconds": time.perf_counter() - begun, "cpu_seconds": time.process_time() - cpu}
    print(json.dumps(said | {"peak_mb": peak_mb()}))


if __name__ == "__main__":
    main(*sys.argv[1:])
