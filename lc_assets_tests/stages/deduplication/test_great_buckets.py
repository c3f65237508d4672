"""Buckets that are too great for all pairs: the work stays linear, and true pairs far from every
centre are met all the same.
"""

from itertools import combinations

import numpy as np
import pyarrow.parquet as pq
import pytest

from lc_assets.stages.deduplication import candidates
from lc_assets.stages.deduplication.candidates import LEVELS, BandsTask, pair_bands
from lc_assets.stages.deduplication.index import PLACE_BITS, PLACES, bands_path, publish_bands
from lc_assets.text.duplicates.keys import band_keys

CENTRES = 4


@pytest.fixture(autouse=True)
def few_centres(monkeypatch):
    monkeypatch.setattr(candidates, "CENTRES", CENTRES)


def met(tmp_path, signatures, *, files=1, first_new=0):
    """Pairs of the first band, of documents dealt to some files in order."""
    keys = band_keys(signatures)
    bounds = np.linspace(0, len(keys), files + 1).astype(int)
    for number in range(files):
        part = keys[bounds[number] : bounds[number + 1]]
        publish_bands(tmp_path / "index", number, part, np.ones(len(part), np.bool_))
    task = BandsTask(
        files=tuple(bands_path(tmp_path / "index", number) for number in range(files)),
        first_new=first_new,
        bands=(0,),
        out=tmp_path / "met.parquet",
    )
    pair_bands(task)
    table = pq.read_table(task.out)
    found = zip(table["a"].to_pylist(), table["b"].to_pylist(), strict=True)
    starts = {number: int(bounds[number]) for number in range(files)}
    place = lambda n: starts[n >> PLACE_BITS] + (n & PLACES)  # noqa: E731
    return [(place(a), place(b)) for a, b in found]


def boilerplate(n, n_families, rng):
    """Documents that all share band 0; those of a family are equal in everything, others agree in a
    tenth of it.
    """
    families = rng.integers(2**32, size=(n_families, 6, 3), dtype=np.uint32)
    common = rng.random(families.shape) < 0.1
    families[common] = 7
    signatures = families[rng.integers(n_families, size=n)]
    signatures[:, 0] = 1
    return signatures


def test_a_small_bucket_gives_all_pairs_once(tmp_path):
    pairs = met(tmp_path, np.zeros((CENTRES + 1, 3, 2), np.uint32))
    assert sorted(pairs) == list(combinations(range(CENTRES + 1), 2))


@pytest.mark.parametrize("seed", range(3))
def test_families_within_one_great_bucket_are_joined(tmp_path, seed):
    rng = np.random.default_rng(seed)
    signatures = boilerplate(600, 150, rng)
    pairs = met(tmp_path, signatures)
    same = {
        (a, b) for a, b in combinations(range(600), 2) if (signatures[a] == signatures[b]).all()
    }
    far = {(a, b) for a, b in same if a >= CENTRES}
    found = set(pairs)
    assert len(far & found) > 0.9 * len(far)
    assert len({b for _, b in same}) == len({b for a, b in same & found}), (
        "each has met one of its family before it"
    )
    assert len(pairs) <= CENTRES * (1 + LEVELS) * 600


def test_ten_thousand_equal_ones_cost_a_few_pairs_each(tmp_path):
    pairs = met(tmp_path, np.zeros((10_000, 6, 2), np.uint32))
    assert len(pairs) <= CENTRES * (1 + LEVELS) * 10_000
    assert {b for a, b in pairs if a == 0} == set(range(1, 10_000))


@pytest.mark.parametrize("files", [2, 3])
def test_files_make_no_difference(tmp_path, files):
    signatures = np.random.default_rng(5).integers(3, size=(200, 4, 2), dtype=np.uint32)
    expected = (
        sorted(met(tmp_path / "one", signatures)) if (tmp_path / "one").mkdir() is None else None
    )
    (tmp_path / "other").mkdir()
    assert sorted(met(tmp_path / "other", signatures, files=files)) == expected


def test_what_is_new_only_adds_pairs(tmp_path):
    signatures = np.random.default_rng(6).integers(3, size=(300, 4, 2), dtype=np.uint32)
    for name in ("all", "old", "new"):
        (tmp_path / name).mkdir()
    every = set(met(tmp_path / "all", signatures, files=3))
    old = set(met(tmp_path / "old", signatures[:200], files=2))
    new = set(met(tmp_path / "new", signatures, files=3, first_new=2))
    assert old | new == every
    assert not old & new


@pytest.mark.parametrize("at_once", [1, 7, 1 << 20])
def test_sorting_in_pieces_and_sending_a_few_make_no_difference(tmp_path, monkeypatch, at_once):
    """Of three files the last is new; pieces of one key range, or all of it."""
    signatures = np.random.default_rng(8).integers(3, size=(200, 4, 2), dtype=np.uint32)
    for name in ("whole", "pieces"):
        (tmp_path / name).mkdir()
    whole = met(tmp_path / "whole", signatures, files=3, first_new=2)
    monkeypatch.setattr(candidates, "PIECE_MEMBERS", at_once)
    monkeypatch.setattr(candidates, "PAIRS_AT_ONCE", max(at_once, CENTRES))
    assert sorted(met(tmp_path / "pieces", signatures, files=3, first_new=2)) == sorted(whole)
