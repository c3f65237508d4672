"""Near duplicates among millions of made-up documents, in a process of its own; prints one line of
JSON.

Of every 80 documents six are versions of one text, more and more of it replaced (alike by 1, 0.95,
0.90, 0.86, 0.82 and 0.78 with the first), four share a third, and the others nothing with anybody.
Members of a family lie far apart. A document is 40 shingles, made from its number when they are
asked for, and so are its bands, by a true MinHash of 14 bands of 9 rows. As a program: ``python -m
… FOLDER N_DOCUMENTS MEMORY_BYTES``; what is written in the folder stays there.
"""

# ruff: noqa: S608 - every name in these queries is this package's own, every path is quoted

import json
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lc_assets.builds.settings.common import PrivacySettings
from lc_assets.counts import Counts
from lc_assets.execution.local import LocalExecutor
from lc_assets.formats.arrays.npy import write_npy
from lc_assets.publishing import publish_bytes
from lc_assets.stages.deduplication import verification
from lc_assets.stages.deduplication.deciding import NEAR, NO_SIDE, Standing, decide_all, involved
from lc_assets.stages.deduplication.facts import FACTS
from lc_assets.stages.deduplication.index import (
    PLACE_BITS,
    PLACES,
    bands_path,
    facts_path,
    publish_bands,
)
from lc_assets.stages.deduplication.queries import parquet, queries
from lc_assets.stages.deduplication.verification import (
    ShinglesTask,
    shingles_paths,
    wanted_places,
)
from lc_assets.text.duplicates.keys import band_keys
from lc_assets_tests.memory import peak_mb

BLOCK, VERSIONS, STRANGERS = 80, 6, 4
SHINGLES, BANDS, ROWS = 40, 14, 9
FILE_DOCUMENTS = 500_000
ALIKE = [(0, 1), (0, 2), (0, 3), (0, 4), (1, 2), (1, 3)]
"""Versions whose Jaccard index is at least 0.8."""
STRIDE = 982_451_653
"""A prime: document at place p is number p × STRIDE modulo their count, so families are spread."""
_DRAW = np.random.default_rng(9)
FACTORS, TERMS = (
    _DRAW.integers(2**64, size=BANDS * ROWS, dtype=np.uint64) | np.uint64(1) for _ in range(2)
)


def mixed(values):
    """SplitMix64."""
    values = values + np.uint64(0x9E3779B97F4A7C15)
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def numbers_at(places, n):
    """Logical numbers of the documents at some places."""
    return np.array([place * STRIDE % n for place in places.tolist()], dtype=np.int64)


def shingles(numbers):
    """``(k, 40)`` uint64 of some documents of families, by number."""
    block, slot = numbers // BLOCK, numbers % BLOCK
    column = np.arange(SHINGLES)
    # Version s has s shingles of its own, at places of its own; strangers have 20 of 40 in common
    # with each other.
    first = slot * (slot - 1) // 2
    version = (column >= first[:, None]) & (column < (first + slot)[:, None])
    own = np.where((slot < VERSIONS)[:, None], version, column >= SHINGLES // 2)
    family = block * 2 + (slot >= VERSIONS)
    of_family = mixed((family[:, None] * 64 + column).astype(np.uint64))
    return np.where(
        own,
        mixed((numbers[:, None] * 64 + column).astype(np.uint64) | np.uint64(1 << 62)),
        of_family,
    )


def keys_of(places, n):
    """Keys of the bands of the documents at some places."""
    numbers = numbers_at(places, n)
    keys = mixed(
        numbers[:, None].astype(np.uint64) * np.uint64(BANDS) + np.arange(BANDS, dtype=np.uint64)
    )
    inside = np.flatnonzero(numbers % BLOCK < VERSIONS + STRANGERS)
    for part in np.array_split(inside, max(1, len(inside) // 4096)):
        hashes = shingles(numbers[part])
        minima = [
            ((hashes * factor + term) >> np.uint64(32)).min(axis=1)
            for factor, term in zip(FACTORS, TERMS, strict=True)
        ]
        keys[part] = band_keys(np.array(minima).T.reshape(-1, BANDS, ROWS).astype(np.uint32))
    return keys


def write_index(folder, n):
    """Write facts and bands of ``n`` documents; their paths."""
    paths, counts = [], []
    for number, start in enumerate(range(0, n, FILE_DOCUMENTS)):
        places = np.arange(start, min(n, start + FILE_DOCUMENTS))
        publish_bands(folder, number, keys_of(places, n), np.ones(len(places), np.bool_))
        documents = number << PLACE_BITS | (places - start)
        nothing = {name: pa.nulls(len(places), FACTS.field(name).type) for name in FACTS.names}
        given = {
            "number": documents,
            "id": [f"{place:09d}" for place in places],
            "source": pa.array([""] * len(places)),
            "date": pa.array([""] * len(places)),
            "n_chars": np.zeros(len(places), np.int64),
            "text_high": mixed(places.astype(np.uint64)),
            "text_low": np.zeros(len(places), np.uint64),
        }
        path = facts_path(folder, number)
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table(nothing | given, schema=FACTS), path, compression="zstd")
        paths.append(path)
        counts.append(len(places))
    return paths, {bands_path(folder, number): n for number, n in enumerate(counts)}


N_OF_RUN = [0]
NOWHERE = (Path("made up"), 0)


def made_up_shingles(task: ShinglesTask) -> Counts:
    """In place of reading texts: shingles of the wanted documents of one file."""
    number = task.number
    places = wanted_places(task.work, number)
    sets = np.sort(shingles(numbers_at(places + number * FILE_DOCUMENTS, N_OF_RUN[0])), axis=1)
    starts = np.zeros(places[-1] + 2, np.int64)
    starts[places + 1] = SHINGLES
    values, begins, lengths = shingles_paths(task.work, number)
    publish_bytes(values, sets.tobytes())
    write_npy(begins, np.cumsum(starts))
    write_npy(lengths, starts)
    return Counts(extra={"documents compared": len(places)})


def compared(ones, others):
    """In place of reading texts: the Jaccard index of documents, pair by pair, by number."""
    both = np.sort(np.concatenate([shingles(ones), shingles(others)], axis=1), axis=1)
    shared = (both[:, 1:] == both[:, :-1]).sum(axis=1)
    return shared / (2 * SHINGLES - shared)


def judged(pairs, removed, n):
    """Recall and precision of the pairs and of the removals, against what was planted."""
    alike = np.asarray(pairs["similarity"]) >= 0.8
    ends = [numbers_at(place_of(np.asarray(pairs[name])[alike]), n) for name in ("a", "b")]
    true = (ends[0] // BLOCK == ends[1] // BLOCK) & (np.minimum(*(end % BLOCK for end in ends)) < 3)
    removed, planted = numbers_at(removed, n), planted_removals(n)
    return {
        "pair_recall": int(alike.sum()) / (len(ALIKE) * (n // BLOCK)),
        "pair_precision": float(true.mean()),
        "removal_recall": float(np.isin(planted, removed).mean()),
        "removal_precision": float((removed % BLOCK < VERSIONS - 1).mean()),
    }


def planted_removals(n):
    """Numbers of the versions that are alike with one that comes before them and stays."""
    numbers = np.arange(n // BLOCK)[:, None] * BLOCK + np.arange(VERSIONS)
    inverse = pow(STRIDE, -1, n)
    places = np.array([[number * inverse % n for number in row] for row in numbers.tolist()])
    goes = np.zeros(numbers.shape, np.bool_)
    families = np.arange(len(numbers))
    for version in np.argsort(places, axis=1).T:
        for one, other in [*ALIKE, *(pair[::-1] for pair in ALIKE)]:
            before = places[:, other] < places[:, one]
            goes[families, version] |= (version == one) & before & ~goes[:, other]
    return numbers[goes]


def place_of(numbers):
    """Place of a document among all, by its number in the index."""
    return (numbers >> PLACE_BITS) * FILE_DOCUMENTS + (numbers & PLACES)


def main(folder: str, n_documents: str, memory: str) -> None:
    """Make, search, judge."""
    out, n = Path(folder), int(n_documents)
    N_OF_RUN[0] = n
    begun = time.process_time()
    facts, files = write_index(out / "index", n)
    made = time.process_time()
    verification.gather_shingles, verification.BANDS = made_up_shingles, BANDS
    wall = time.perf_counter()
    verified, counted = verification.compared_pairs(
        out / "work",
        LocalExecutor(),
        files,
        lambda *_: (NOWHERE,),
        first_new=0,
        floor=0.5,
        privacy=PrivacySettings(),
    )
    paired = time.process_time()
    with queries(out / "work" / "duckdb", int(memory) // 2) as asked:
        asked.do(f"CREATE VIEW facts AS SELECT *, '' AS snapshot FROM {parquet(facts)}")
        a, b = (
            f"printf('%09d', ({side} >> {PLACE_BITS}) * {FILE_DOCUMENTS} + ({side} & {PLACES}))"
            for side in ("a", "b")
        )
        asked.do(f"""CREATE VIEW pairs AS
            SELECT {a} AS a, {b} AS b, similarity FROM {parquet(verified)}""")
        known = involved(asked, (NEAR,), ("newest",), 0.8)
    flags = np.zeros((2, len(known.facts)), np.bool_)
    places = known.facts["id"].cast(pa.int64()).to_numpy()
    _, decided, again = decide_all(
        known,
        Standing(*flags, np.uint8(NO_SIDE) + flags[0]),
        (NEAR,),
        flags[0],
        bounds=(0.8, 1.0),
        is_metric=True,
        compare=lambda pairs: compared(*(numbers_at(places[side], n) for side in pairs.T)),
    )
    removed = places[decided.kept >= 0]
    found = {
        "cpu_making": round(made - begun, 1),
        "cpu_pairs": round(paired - made, 1),
        "cpu_deciding": round(time.process_time() - paired, 1),
        "wall": round(time.perf_counter() - wall, 1),
        "peak_rss_mb": peak_mb(),
        "refuted": counted.extra["candidates"] - counted.extra["verified"],
        **counted.extra,
        **again,
        **judged(pa.concat_tables(map(pq.read_table, verified)), removed, n),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
