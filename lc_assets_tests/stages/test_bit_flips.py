"""One bit flipped in each published file of each stage: found every time, and never read as a token
of number 0.

Of every file the first and the last byte, and bytes by several seeds; the rate of detection is
printed and is all of them.
"""

import contextlib
import os
import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from lc_assets.errors import LcError
from lc_assets.formats.arrays.grid import GridReader
from lc_assets.formats.megatron.indexed import MegatronWriter
from lc_assets.formats.tokenizers.gpt2 import gpt2_tokenizer
from lc_assets.lake.lake import Published
from lc_assets.lake.partition import CURRENT
from lc_assets.lake.receipts import RECEIPT, with_checksum
from lc_assets.lake.releases import Gone, note_damage, publish_gone, publish_release, read_release
from lc_assets.loaders.grid import GridLoader
from lc_assets.loaders.packed import PackedLoader, open_packed
from lc_assets.loaders.rows import open_rows
from lc_assets.orchestration.assets import every_file_is_as_published
from lc_assets.stages.catalogue import STAGES
from lc_assets.stages.megatron.megatron_merging import Ids, write_receipt
from lc_assets.stages.megatron.megatron_verifying import verify_data_set
from lc_assets.stages.releases.releasing import described, pinned_now, release_damage
from lc_assets.vocabulary import SPLITS
from lc_assets_tests.builders import SNAPSHOTS, build_all, tiny_upstream
from lc_assets_tests.named_draws import rng_for
from lc_assets_tests.two_versions import all_wanted

SEEDS = range(3)
BITS = int(os.environ.get("LC_BITS", "60"))
"""Of each receipt, pointer and release; a small one has all of its bits flipped."""


@pytest.fixture(scope="module")
def everything(tmp_path_factory):
    """A lake of every stage there is."""
    folder = tmp_path_factory.mktemp("everything")
    context = all_wanted(folder, tiny_upstream(folder / "upstream"))
    build_all(context)
    return context.lake


def places(published: Published, path: str, n_bytes: int) -> set[int]:
    """Bits to flip: of the first byte, of the last, and some in between."""
    drawn = {
        int(rng_for("bit flips", seed=seed, key=f"{published.name}/{path}").integers(8 * n_bytes))
        for seed in SEEDS
    }
    return {0, 8 * n_bytes - 1, *drawn}


def flip(path: Path, bit: int) -> None:
    """Flip one bit of a file in place; twice is as before."""
    with path.open("r+b") as stream:
        stream.seek(bit // 8)
        (byte,) = stream.read(1)
        stream.seek(bit // 8)
        stream.write(bytes([byte ^ 1 << bit % 8]))


def test_every_flipped_bit_is_found(everything):
    """By `damage`, which `lc verify` prints, for each bit; by the check of the asset, once per
    file.
    """
    flipped: Counter[str] = Counter()
    found: Counter[str] = Counter()
    for stage in (step.name for step in STAGES):
        for published in everything.published(stage).values():
            for fact in published.receipt.files:
                for number, bit in enumerate(
                    sorted(places(published, fact.path, fact.n_bytes)) if fact.n_bytes else []
                ):
                    flip(published.home / fact.path, bit)
                    said = (
                        [every_file_is_as_published(published).message]
                        if number == 0
                        else published.damage()
                    )
                    found[stage] += len(said) == 1 and said[0].startswith(f"{fact.path}: digest ")
                    flipped[stage] += 1
                    flip(published.home / fact.path, bit)
            assert published.damage() == []
    for stage, n_bits in flipped.items():
        print(f"{stage}: {found[stage]} of {n_bits} flipped bits found")
    assert found == flipped
    assert set(flipped) >= {step.name for step in STAGES} - {
        "contaminated_documents"
    }  # it has no file where no evaluation set is named


def every_bit(content: bytes, rng: np.random.Generator) -> list[int]:
    """All bits of a small file, some of a larger one."""
    n_bits = 8 * len(content)
    return (
        list(range(n_bits))
        if n_bits <= BITS
        else sorted({0, n_bits - 1, *rng.integers(n_bits, size=BITS).tolist()})
    )


def n_found(path: Path, complaints: Callable[[], Sequence[str]]) -> tuple[int, int]:
    """How many bits of a file were flipped, and how many of the flips were said, or refused by an
    error of ours.
    """
    rng, bits, found = rng_for("bit flips", seed=64, key=path.name), [], 0
    assert not complaints()
    for bit in (bits := every_bit(path.read_bytes(), rng)):
        flip(path, bit)
        try:
            found += bool(complaints())
        except LcError:
            found += 1
        flip(path, bit)
    assert not complaints()
    return len(bits), found


def test_every_flipped_bit_of_receipts_and_pointers_is_found(everything):
    """What says what a version is: by what `lc verify` and the check of the asset ask, also where
    it is no digest that changed.
    """
    total = Counter[str]()
    for stage in (step.name for step in STAGES):
        partition = everything.partition(stage, next(iter(everything.keys(stage))))
        for path in (partition.require().home / RECEIPT, partition.folder / CURRENT):
            n_bits, found = n_found(
                path,
                lambda partition=partition: every_file_is_as_published(
                    partition.require()
                ).message.split("; ")[:-1],
            )
            total.update({"bits": n_bits, "found": found})
    print(f"\nreceipts and pointers: {total['found']} of {total['bits']} flipped bits found")
    assert total["found"] == total["bits"]


def test_every_flipped_bit_of_a_release_is_found(everything):
    """Of its file, of the note of what is gone of it, and of one file of each version that it
    pins.
    """
    publish_release(everything, "v1", with_checksum(described(everything, pinned_now(everything))))
    publish_gone(
        everything,
        "v1",
        Gone(versions=["token_documents/2023-06/0123456789ab"], reason="asked for"),
    )
    notes = sorted((everything.root / "releases").glob("v1*.json"))
    pins = [
        everything.partition(*name.split("/")).require()
        for name in read_release(everything, "v1").pins
    ]
    files = [
        published.home / next(fact.path for fact in published.receipt.files if fact.n_bytes)
        for published in pins
    ]
    n_bits = n_said = 0
    for path in notes:
        here, found = n_found(path, lambda: note_damage(everything, "v1"))
        n_bits, n_said = n_bits + here, n_said + found
    for path in files:
        flip(path, 8 * path.stat().st_size // 2)
        n_bits, n_said = n_bits + 1, n_said + (len(release_damage(everything, "v1")) == 1)
        flip(path, 8 * path.stat().st_size // 2)
    print(f"\na release: {n_said} of {n_bits} flipped bits found")
    assert len(notes) == 2
    assert n_said == n_bits


def test_every_flipped_bit_of_a_data_set_is_found(tmp_path):
    """What `lc megatron merge` publishes, by what `lc verify` reads: both files and the receipt."""
    prefix = tmp_path / "out" / "mine"
    with MegatronWriter.publishing(prefix, np.dtype(np.uint16)) as writer:
        for number in range(5):
            writer.add(gpt2_tokenizer().encode(f"line {number} of a text"))
    ids = Ids(tokenizer="gpt2", tokenizer_sha256="0" * 64, n_ids=50_257, eod=None, dtype="uint16")
    write_receipt(prefix, made_by="merge", ids=ids)
    n_bits = n_said = 0
    for path in sorted(prefix.parent.iterdir()):
        here, found = n_found(path, lambda: verify_data_set(prefix).damage)
        n_bits, n_said = n_bits + here, n_said + found
    print(f"\na data set: {n_said} of {n_bits} flipped bits found")
    assert n_said == n_bits


def shards_of(folder: Path) -> list[Path]:
    """The shards of every Zarr below a folder, and the chunks of the older format."""
    return sorted(
        [
            *(path for path in folder.rglob("c/*/*") if path.is_file()),
            *folder.rglob("*.zarr/[0-9]*.[0-9]*"),
        ]
    )


def loaders_of(folder: Path, rows: Path | str, split: str):
    """Every way to the tokens of a grid."""
    yield lambda: GridReader(folder / f"{split}.zarr").read()
    yield lambda: open_rows(folder, split).read()
    yield lambda: list(GridLoader(open_rows(rows, split), batch_rows=1, context_tokens=32))
    yield lambda: list(
        GridLoader(open_rows(rows, split), batch_rows=1, context_tokens=32, prefetch=2)
    )


@pytest.mark.parametrize("fault", ["gone", "empty"])
def test_a_missing_shard_is_an_error_in_every_loader(everything, fault, tmp_path):
    """Of the grid, through the global order too; of the flat layout; of packed rows. None of them
    makes up a token.
    """
    shutil.copytree(everything.root, tmp_path / "lake")
    lake, n_asked = type(everything)(tmp_path / "lake"), 0
    asked = []
    for split in SPLITS:
        asked += [
            *loaders_of(lake.partition("token_grid", SNAPSHOTS[0]).require().home, lake.root, split)
        ]
        asked += [
            lambda split=split: open_rows(
                lake.partition("longcrawl_flat").require().home, split
            ).read()
        ]
        packed = lake.partition("packed_rows", SNAPSHOTS[0]).require().home
        asked += [
            lambda split=split, packed=packed: list(
                PackedLoader(open_packed(packed, split), batch_rows=1)
            )
        ]
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


def test_a_flipped_bit_in_a_shard_is_an_error_or_its_tokens_are_told_by_the_check(
    everything, tmp_path
):
    """Shards carry a checksum of each chunk: no bit of one gives other tokens silently, to whoever
    reads all of them.
    """
    grid = everything.partition("token_grid", SNAPSHOTS[0]).require().home
    shutil.copytree(grid, tmp_path / "token_grid")
    (shard,) = shards_of(tmp_path / "token_grid" / "train.zarr")
    whole = GridReader(tmp_path / "token_grid" / "train.zarr").read()
    n_bits, wrong, rng = 60, 0, rng_for("bits of a shard", seed=64, key="grid")
    for bit in rng.integers(8 * shard.stat().st_size, size=n_bits):
        flip(shard, int(bit))
        with contextlib.suppress(LcError):
            wrong += not np.array_equal(
                GridReader(tmp_path / "token_grid" / "train.zarr").read(), whole
            )
        flip(shard, int(bit))
    print(f"{n_bits} bits of a shard: {wrong} read as other tokens")
    assert wrong == 0
