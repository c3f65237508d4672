"""One bit flipped in a file of an input, and the stage built: the build fails and names the file, or
it publishes the same bytes as without the flip, because it does not read this file.

The plain run flips a bit of one file of each kind and stage; ``pytest -m slow -s`` of every file of
every input version, and prints a table. `LC_FLIPS` bits of each file (1).
"""

import os
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

import msgspec
import numpy as np
import pytest

from lc_assets.builds import verified_reads
from lc_assets.builds.settings.common import DecontaminationSettings, WithdrawalSettings
from lc_assets.builds.stage import BuildContext
from lc_assets.errors import CorruptFile, LcError
from lc_assets.formats.lists.withdrawal_lists import COLUMNS, Withdrawal, line_of
from lc_assets.formats.megatron.gpt_index import read_gpt_index
from lc_assets.formats.megatron.indexed import MegatronReader
from lc_assets.lake.bucket_lake import open_lake
from lc_assets.lake.partition import CURRENT, Partition
from lc_assets.lake.receipts import RECEIPT
from lc_assets.lake.versions import Published
from lc_assets.loaders.packed import PackedLoader, open_packed
from lc_assets.loaders.rows import open_rows
from lc_assets.stages.catalogue import STAGES, stage_named
from lc_assets.vocabulary import SPLITS, Shard
from lc_assets_tests.bucket_server import bucket_server
from lc_assets_tests.builders import (
    SNAPSHOTS,
    TAGS,
    build_all,
    tiny_documents,
    tiny_upstream,
)
from lc_assets_tests.named_draws import rng_for
from lc_assets_tests.two_versions import all_wanted, key_of

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
"""Google's client keeps connections open until it is collected."""

FLIPS = int(os.environ.get("LC_FLIPS", "1"))
LAKE = "gs://crawl/lake"
READERS = tuple(stage.name for stage in STAGES if stage.reads)
"""Stages with inputs in the lake."""


def kind_of(path: str) -> str:
    """The format of a published file.

    >>> kind_of("train.zarr/c/0/0"), kind_of("a.documents.parquet"), kind_of("receipt.json")
    ('Zarr chunks', '.parquet', 'receipt')
    """
    name = PurePosixPath(path)
    if name.name == RECEIPT:
        return "receipt"
    if ".zarr/" in path:
        is_metadata = name.name.startswith(".") or name.suffix == ".json"
        return "Zarr metadata" if is_metadata else "Zarr chunks"
    return "".join(name.suffixes[-2:]) if name.suffix == ".gz" else name.suffix


@dataclass
class Bench:
    """A lake of every stage.

    Attributes:
        context: builds in it.
        aside: where a partition is kept while it is built again.
        tried: flips by stage, kind of file and outcome.
        read: files that the last build of `inputs` read.
    """

    context: BuildContext
    aside: Path
    tried: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    read: set[Path] = field(default_factory=set)

    def partition(self, stage: str) -> Partition:
        """The partition of a stage that is built again and again."""
        return self.context.lake.partition(stage, key_of(stage))

    def inputs(self, stage: str, monkeypatch: pytest.MonkeyPatch) -> list[Published]:
        """Every version that a build reads, whether its fingerprint names it or not."""
        homes = {
            self.context.lake.partition(*name.split("/")).require().home
            for name in self.partition(stage).require().receipt.fingerprint.inputs
            if "/" in name
        }
        verify = verified_reads.verify_file
        self.read.clear()

        def noting(task):
            self.read.add(task[0])
            (home,) = (path for path in task[0].parents if (path / RECEIPT).is_file())
            homes.add(home)
            return verify(task)

        with monkeypatch.context() as patched:
            patched.setattr(verified_reads, "verify_file", noting)
            self.outcome(stage, Path("none"))
        return [Published.at(home) for home in sorted(homes)]

    def outcome(self, stage: str, path: Path | str) -> str:
        """Build a partition anew while ``path`` is damaged; what came of it."""
        partition = self.partition(stage)
        whole, error = partition.require(), None
        partition.folder.rename(self.aside)
        try:
            built = stage_named(stage).build(self.context, key_of(stage)).published
        except CorruptFile as found:
            error = str(found)
        finally:
            is_published = (partition.folder / CURRENT).is_file()
            shutil.rmtree(partition.folder, ignore_errors=True)
            self.aside.rename(partition.folder)
        if error is not None:
            assert str(path) in error
            assert "`lc rebuild --repair --verify --lake " in error
            assert not is_published
            return "refused"
        for name in ("fingerprint", "digest", "files", "counts", "randomness"):
            assert getattr(built.receipt, name) == getattr(whole.receipt, name), path
        return "same bytes"

    def flip(self, stage: str, home: Path, path: str, number: int = 0) -> None:
        """Flip a bit of a file, build, and flip it back."""
        file = home / path
        bit = drawn_bit(f"{stage}/{home.name}/{path}", file.stat().st_size, number)
        flip(file, bit)
        try:
            self.tried[stage, kind_of(path), self.outcome(stage, file)] += 1
        finally:
            flip(file, bit)


def drawn_bit(key: str, n_bytes: int, number: int) -> int:
    """A bit of a file."""
    return int(rng_for("flips before publication", seed=number, key=key).integers(8 * n_bytes))


def flip(path: Path, bit: int) -> None:
    """Flip one bit of a file in place; twice is as before."""
    content = bytearray(path.read_bytes())
    content[bit // 8] ^= 1 << bit % 8
    path.write_bytes(content)


def files_of(published: Published) -> list[str]:
    """Paths of all files of a version that have any bytes."""
    return [RECEIPT, *(fact.path for fact in published.receipt.files if fact.n_bytes)]


@pytest.fixture(scope="module")
def bench(tmp_path_factory) -> Bench:
    """A lake on disk."""
    folder = tmp_path_factory.mktemp("flips")
    build_all(context := context_of_every_stage(folder))
    return Bench(context, folder / "aside")


def context_of_every_stage(folder: Path) -> BuildContext:
    """All stages, with evaluation items to be found and a document to be withdrawn."""
    context = all_wanted(folder, tiny_upstream(folder / "upstream"))
    shard = Shard.parse(f"{SNAPSHOTS[0]}/{TAGS[0]}")
    documents = tiny_documents(shard)
    items, withdrawals = folder / "items.jsonl", folder / "withdrawals.csv"
    item = " ".join(documents[1].raw_content.split()[10:30])
    items.write_bytes(msgspec.json.encode({"id": "q1", "question": item}) + b"\n")
    asked = Withdrawal(
        kind="document", value=shard.document_id(2), reason="asked for", date="2026-01-02"
    )
    withdrawals.write_text("\n".join([",".join(COLUMNS), line_of(asked), ""]))
    recipe = msgspec.structs.replace(
        context.recipe,
        contaminated_documents=DecontaminationSettings(against=(str(items),)),
        withdrawn_documents=WithdrawalSettings(lists=(str(withdrawals),)),
    )
    return replace(context, recipe=recipe)


def a_file_of_each_kind(versions: list[Published], seed: str) -> Iterator[tuple[Path, str]]:
    """One file of each kind among some versions."""
    files = [(version.home, path) for version in versions for path in files_of(version)]
    order = rng_for("files to flip", seed=0, key=seed).permutation(len(files))
    yield from {kind_of(files[number][1]): files[number] for number in order}.values()


@pytest.mark.parametrize("stage", READERS)
def test_a_flipped_bit_of_an_input_is_never_published(bench, monkeypatch, stage):
    """A file of each kind among a stage's inputs."""
    versions = bench.inputs(stage, monkeypatch)
    bench.tried.clear()
    for home, path in a_file_of_each_kind(versions, stage):
        bench.flip(stage, home, path)
    # Of a receipt it may be a bit of when it was written, which no build reads.
    assert "refused" in {outcome for _, _, outcome in bench.tried}
    assert bench.tried.total() == len({kind for _, kind, _ in bench.tried})


@pytest.mark.slow
def test_no_flipped_bit_of_any_input_is_published(bench, monkeypatch):
    """Every file of every input of every stage."""
    bench.tried.clear()
    for stage in READERS:
        for version in bench.inputs(stage, monkeypatch):
            for path in files_of(version):
                for number in range(FLIPS):
                    bench.flip(stage, version.home, path, number)
    show(bench.tried)
    assert bench.tried.total() >= 300


def show(tried: Mapping[tuple[str, str, str], int]) -> None:
    """Print flips by stage and by kind."""
    for column, what in ((0, "stage"), (1, "file")):
        print(f"\n| {what} | flips | refused | same bytes |\n|---|---|---|---|")
        for name in dict.fromkeys(key[column] for key in tried):
            n = Counter[str]()
            for key, count in tried.items():
                n[key[2]] += count if key[column] == name else 0
            print(f"| `{name}` | {n.total():,} | {n['refused']:,} | {n['same bytes']:,} |")
    print(f"| all | {sum(tried.values()):,} |")


@pytest.fixture(scope="module")
def in_bucket(bench, tmp_path_factory):
    """The same lake in a bucket, and a machine with copies of it."""
    cache = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patched, bucket_server(patched) as server:
        lake = open_lake(LAKE, environment={"LC_CACHE": str(cache)})
        shutil.copytree(bench.context.lake.root, lake.root)
        for stage in STAGES:
            for key in bench.context.lake.keys(stage.name):
                version = bench.context.lake.partition(stage.name, key).require().version
                partition = lake.partition(stage.name, key)
                partition.point_at(partition.at(version))
        yield server, replace(bench.context, lake=lake)


BUILT_IN_A_BUCKET = {"filtered_documents", "token_grid", "longcrawl", "blended_mix"}


@pytest.mark.parametrize(
    "stage",
    [
        pytest.param(stage, marks=() if stage in BUILT_IN_A_BUCKET else pytest.mark.slow)
        for stage in READERS
    ],
)
@pytest.mark.parametrize("damaged", ["object", "copy"])
def test_a_flipped_bit_in_a_bucket_is_never_published(
    bench, in_bucket, stage, damaged, monkeypatch
):
    """An object without a copy: the build fails and names its URL. A copy: it is fetched again."""
    server, context = in_bucket
    partition, outcomes = context.lake.partition(stage, key_of(stage)), Counter[str]()
    whole, home = partition.require(), f"lake/{partition.name}/"
    for version in bench.inputs(stage, monkeypatch):
        paths = [path for path in files_of(version) if version.home / path in bench.read]
        if not paths:
            continue
        path = paths[int(rng_for("objects", seed=0, key=stage).integers(len(paths)))]
        copy = context.lake.root / version.home.relative_to(bench.context.lake.root) / path
        name = f"lake/{copy.relative_to(context.lake.root)}"
        content = server.storage.get_file("crawl", name)
        partition.bucket.remove(
            [held.removeprefix("lake/") for held in server.names() if held.startswith(home)]
        )
        shutil.rmtree(partition.folder)
        if damaged == "object":
            copy.unlink()
            server.spoil(name)
        else:
            flip(copy, drawn_bit(name, len(content), 0))
        built, error = None, ""
        try:
            built = stage_named(stage).build(context, key_of(stage)).published
        except CorruptFile as found:
            error = str(found)
        finally:
            is_left = [held for held in server.names() if held.startswith(home)]
            server.put(name, content)
            copy.write_bytes(content)
            stage_named(stage).build(context, key_of(stage))
        if built is None:
            assert f"gs://crawl/{name}: " in error
            assert error.endswith(f"`lc rebuild --repair --verify --lake {LAKE}`")
            assert not is_left
        else:
            assert (built.digest, built.receipt.files) == (whole.digest, whole.receipt.files)
        outcomes["refused" if built is None else "same bytes"] += 1
    assert set(outcomes) == {"same bytes" if damaged == "copy" else "refused"}
    print(f"\n{stage}, {damaged}: {dict(outcomes)}")


def values_read(stage: str, home: Path) -> list[np.ndarray]:
    """Everything that training reads of a version."""
    if stage == "packed_rows":
        loaders = [PackedLoader(open_packed(home, split), batch_rows=1) for split in SPLITS]
        batches = [batch for loader in loaders for batch in loader]
        return [np.asarray(part) for batch in batches for part in batch]
    if stage in ("token_documents", "packing_tokens"):
        readers = [MegatronReader(path.with_suffix("")) for path in sorted(home.glob("*.idx"))]
        return [np.array(ids) for reader in readers for ids in reader]
    if stage == "megatron_rows":
        index = read_gpt_index(home / "train")
        rows = [np.array(ids) for ids in MegatronReader(home / "train")]
        return [*rows, index.document_index, index.sample_index, index.shuffle_index]
    return [np.asarray(open_rows(home, split).read()) for split in SPLITS]


UNCHECKED = {"megatron_rows": {".npy"}}
"""Files that are compared with nothing, by stage: a flipped bit may be read as another value."""

TRAINED_ON = (
    "token_grid",
    "longcrawl",
    "longcrawl_flat",
    "packed_rows",
    "token_documents",
    "packing_tokens",
    "megatron_rows",
)
"""Stages whose versions are read while training."""


@pytest.mark.parametrize("stage", TRAINED_ON)
def test_what_training_reads_of_a_flipped_bit(bench, stage):
    """An error or the same values, where the format has checksums; `lc verify` finds every bit."""
    found = Counter[tuple[str, str]]()
    version = bench.partition(stage).require()
    whole = values_read(stage, version.home)
    for path in files_of(version):
        file = version.home / path
        for number in range(max(FLIPS, 3)):
            bit = drawn_bit(f"training/{stage}/{path}", file.stat().st_size, number)
            flip(file, bit)
            try:
                values = values_read(stage, version.home)
                is_same = len(values) == len(whole) and all(map(np.array_equal, values, whole))
                outcome = "same values" if is_same else "other values"
            except LcError:
                outcome = "refused"
            assert path == RECEIPT or len(version.damage()) == 1
            flip(file, bit)
            found[kind_of(path), outcome] += 1
    for kind in dict.fromkeys(kind for kind, _ in found):
        words = (
            f"{found[kind, how]:,} {how}" for how in ("refused", "same values", "other values")
        )
        print(f"\n{stage}, {kind}: {', '.join(words)}")
    assert {kind for kind, how in found if how == "other values"} <= UNCHECKED.get(stage, set())
