"""What meets in several bands is one pair, in whatever files its documents are."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given, strategies as st

from lc_assets.builds.settings.common import PrivacySettings
from lc_assets.execution.exchange import BucketWriter
from lc_assets.formats.arrays.npy import read_npy
from lc_assets.stages.deduplication.candidates import (
    CANDIDATES,
    PairsTask,
    merge_pairs,
)
from lc_assets.stages.deduplication.index import PLACE_BITS
from lc_assets.stages.deduplication.verification import (
    ShinglesTask,
    gather_shingles,
    shingles_paths,
    wanted_places,
)
from lc_assets.text.duplicates.keys import Shingles, shingle_hashes

FILES = (5, 0, 7)


def numbers():
    return [
        file << PLACE_BITS | place
        for file, n_documents in enumerate(FILES)
        for place in range(n_documents)
    ]


def test_pairs_are_those_of_one_table(tmp_path):
    """Three files of pairs, met in some bands: joined and in order over all files as a dictionary
    has them.
    """
    rng = np.random.default_rng(7)
    named = np.array(numbers())
    wanted, met = {}, []
    for file in range(3):
        sides = np.sort(rng.choice(len(named), (40, 2)), axis=1)
        left, right = named[sides[:, 0]], named[sides[:, 1]]
        bands = rng.integers(0, 18, 40).astype(np.uint8)
        for pair in zip(left.tolist(), right.tolist(), bands.tolist(), strict=True):
            wanted[pair[:2]] = wanted.get(pair[:2], 0) | 1 << pair[2]
        met.append(tmp_path / "made" / f"{file}.parquet")
        met[-1].parent.mkdir(exist_ok=True)
        with BucketWriter(met[-1], CANDIDATES) as writer:
            writer.send(
                pa.table([left, right, bands], schema=CANDIDATES),
                (left >> PLACE_BITS).astype(np.int32),
            )
    tasks = [PairsTask(work=tmp_path, number=n, floor=0.5) for n in range(len(FILES))]
    for task in tasks:
        merge_pairs(task)
    found = [
        tuple(line.values())
        for task in tasks
        for line in pq.read_table(task.path("candidates")).to_pylist()
    ]
    assert found == [(*pair, bands) for pair, bands in sorted(wanted.items())]
    for task in tasks:
        table = pq.read_table(task.path("candidates"))
        assert read_npy(task.path("candidates", ".npy")).tolist() == sorted(
            {*table["a"].to_pylist(), *table["b"].to_pylist()}
        )


@given(
    st.lists(st.text("ab é.", max_size=40), min_size=1, max_size=8),
    st.integers(1, 7),
    st.sampled_from([Shingles(1), Shingles(3), Shingles(4, "characters")]),
    st.data(),
)
def test_shingles_of_candidates_are_those_of_each_text(
    tmp_path_factory, texts, cut, shingles, data
):
    """Of any documents of several tables, also of texts that are shorter than a shingle or have no
    words.
    """
    work = tmp_path_factory.mktemp("work")
    chosen = sorted(data.draw(st.sets(st.integers(0, len(texts) - 1), min_size=1)))
    (work / "candidates").mkdir()
    np.save(work / "candidates" / "00000.npy", np.array(chosen, np.int64))
    tables = []
    for first in range(0, len(texts), cut):
        some = texts[first : first + cut]
        tables.append((work / f"{first}.parquet", range(first, first + len(some))))
        pq.write_table(pa.table({"raw_content": pa.array(some, pa.string())}), tables[-1][0])
    task = ShinglesTask(
        parts=tuple(tables), number=0, work=work, privacy=PrivacySettings(), shingles=shingles
    )
    gather_shingles(task)
    values, starts, n_chars = shingles_paths(work, 0)
    hashes, starts, n_chars = np.fromfile(values, np.uint64), read_npy(starts), read_npy(n_chars)
    assert wanted_places(work, 0).tolist() == chosen
    for place, text in enumerate(texts):
        own = hashes[slice(*starts[place : place + 2])] if place < len(n_chars) - 1 else []
        wanted = shingle_hashes(text, shingles.size, shingles.of) if place in chosen else []
        assert list(own) == list(wanted)
        assert place >= len(n_chars) or n_chars[place] == (len(text) if place in chosen else 0)
