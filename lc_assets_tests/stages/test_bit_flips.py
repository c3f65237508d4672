"""One bit flipped in each published file of each stage: found every time, and never read as a token of number 0.

Of every file the first and the last byte, and bytes by several seeds; the rate of detection is printed and is all of them.
"""

import contextlib
import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from lc_assets.checks.published import every_file_is_as_published
from lc_assets.errors import LcError
from lc_assets.formats.grid import GridReader
from lc_assets.loaders.grid import GridLoader
from lc_assets.loaders.packed import PackedLoader, open_packed
from lc_assets.loaders.rows import open_rows
from lc_assets.randomness import rng_for
from lc_assets.stages.catalogue import CHAIN
from lc_assets.storage.lake import Published
from lc_assets.vocabulary import SPLITS
from lc_assets_tests.builders import SNAPSHOTS, build_all, tiny_upstream
from lc_assets_tests.twice import all_wanted

SEEDS = range(3)


@pytest.fixture(scope="module")
def everything(tmp_path_factory):
    """A lake of every stage there is."""
    folder = tmp_path_factory.mktemp("everything")
    workshop = all_wanted(folder, tiny_upstream(folder / "upstream"))
    build_all(workshop)
    return workshop.lake


def places(published: Published, path: str, n_bytes: int) -> set[int]:
    """Bits to flip: of the first byte, of the last, and some in between."""
    drawn = {int(rng_for("bit flips", seed=seed, key=f"{published.name}/{path}").integers(8 * n_bytes)) for seed in SEEDS}
    return {0, 8 * n_bytes - 1, *drawn}


def flip(path: Path, bit: int) -> None:
    """Flip one bit of a file in place; twice is as before."""
    with path.open("r+b") as stream:
        stream.seek(bit // 8)
        (byte,) = stream.read(1)
        stream.seek(bit // 8)
        stream.write(bytes([byte ^ 1 << bit % 8]))


def test_every_flipped_bit_is_found(everything):
    """By `damage`, which `lc verify` prints, for each bit; by the check of the asset, once per file."""
    flipped: Counter[str] = Counter()
    found: Counter[str] = Counter()
    for stage in (step.name for step in CHAIN):
        for published in everything.published(stage).values():
            for fact in published.receipt.files:
                for number, bit in enumerate(sorted(places(published, fact.path, fact.n_bytes)) if fact.n_bytes else []):
                    flip(published.home / fact.path, bit)
                    said = [every_file_is_as_published(published).words] if number == 0 else published.damage()
                    found[stage] += len(said) == 1 and said[0].startswith(f"{fact.path}: digest ")
                    flipped[stage] += 1
                    flip(published.home / fact.path, bit)
            assert published.damage() == []
    for stage, n_bits in flipped.items():
        print(f"{stage}: {found[stage]} of {n_bits} flipped bits found")
    assert found == flipped
    assert set(flipped) >= {step.name for step in CHAIN} - {"contamination"}  # it has no file where no evaluation set is named


def shards_of(folder: Path) -> list[Path]:
    """The shards of every Zarr below a folder, and the chunks of the older format."""
    return sorted([*(path for path in folder.rglob("c/*/*") if path.is_file()), *folder.rglob("*.zarr/[0-9]*.[0-9]*")])


def loaders_of(folder: Path, rows: Path | str, split: str):
    """Every way to the tokens of a grid."""
    yield lambda: GridReader(folder / f"{split}.zarr").read()
    yield lambda: open_rows(folder, split).read()
    yield lambda: list(GridLoader(open_rows(rows, split), batch_rows=1, context_tokens=32))
    yield lambda: list(GridLoader(open_rows(rows, split), batch_rows=1, context_tokens=32, prefetch=2))


@pytest.mark.parametrize("fault", ["gone", "empty"])
def test_a_missing_shard_is_an_error_in_every_loader(everything, fault, tmp_path):
    """Of the grid, through the global order too; of the flat layout; of packed rows. None of them makes up a token."""
    shutil.copytree(everything.root, tmp_path / "lake")
    lake, n_asked = type(everything)(tmp_path / "lake"), 0
    asked = []
    for split in SPLITS:
        asked += [*loaders_of(lake.place("grid", SNAPSHOTS[0]).require().home, lake.root, split)]
        asked += [lambda split=split: open_rows(lake.place("flat").require().home, split).read()]
        packed = lake.place("packed", SNAPSHOTS[0]).require().home
        asked += [lambda split=split, packed=packed: list(PackedLoader(open_packed(packed, split), batch_rows=1))]
    for ask in asked:
        ask()
    for path in shards_of(lake.root):
        if fault == "gone":
            path.unlink()
        else:
            path.write_bytes(b"")
    for ask in asked:
        with pytest.raises(LcError):
            ask()
        n_asked += 1
    assert n_asked == len(asked) == 12


def test_a_flipped_bit_in_a_shard_is_an_error_or_its_tokens_are_told_by_the_check(everything, tmp_path):
    """Shards carry a checksum of each chunk: no bit of one gives other tokens silently, to whoever reads all of them."""
    grid = everything.place("grid", SNAPSHOTS[0]).require().home
    shutil.copytree(grid, tmp_path / "grid")
    (shard,) = shards_of(tmp_path / "grid" / "train.zarr")
    whole = GridReader(tmp_path / "grid" / "train.zarr").read()
    n_bits, wrong, rng = 60, 0, rng_for("bits of a shard", seed=64, key="grid")
    for bit in rng.integers(8 * shard.stat().st_size, size=n_bits):
        flip(shard, int(bit))
        with contextlib.suppress(LcError):
            wrong += not np.array_equal(GridReader(tmp_path / "grid" / "train.zarr").read(), whole)
        flip(shard, int(bit))
    print(f"{n_bits} bits of a shard: {wrong} read as other tokens")
    assert wrong == 0
