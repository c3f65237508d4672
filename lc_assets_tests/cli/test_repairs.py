"""``lc rebuild`` with ``--repair`` and ``--verify``: whatever is missing, cut short or changed in a lake, one command brings
the same bytes back; what it cannot bring back, it names.

``LC_DAMAGES=700 pytest -m slow -s lc_assets_tests/cli/test_repairs.py``
"""

import os
import random
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from lc_assets.lake.bucket import Bucket
from lc_assets.lake.bucket_lake import open_lake
from lc_assets.lake.lake import Lake
from lc_assets.lake.partition import CURRENT
from lc_assets.lake.receipts import RECEIPT
from lc_assets.publishing import staging_path
from lc_assets.stages.releases.releasing import release_damage
from lc_assets_tests.bucket_server import bucket_server
from lc_assets_tests.cli.conftest import ONE
from lc_assets_tests.cli.test_commands_on_a_bucket import go_up
from lc_assets_tests.faults import flipped as flip_a_bit

AT_ONCE = 7
DAMAGES = int(os.environ.get("LC_DAMAGES", "140"))
MEASURED = ("measured", "checksum")
"""Fields of a receipt that differ between two builds."""


def contents(names: dict[str, Callable[[], bytes]]) -> dict[str, object]:
    """What counts of each file: of receipts and pointers, what is not measured."""
    found: dict[str, object] = {}
    for name, read in names.items():
        content = read()
        found[name] = content
        if name.rpartition("/")[2] in {RECEIPT, CURRENT}:
            fields = msgspec.json.decode(content)
            found[name] = {key: of for key, of in fields.items() if key not in MEASURED}
    return found


def in_folder(lake: Path) -> dict[str, object]:
    files = [path for path in lake.glob("*/**/*") if path.is_file() and path.name != ".lock"]
    return contents({path.relative_to(lake).as_posix(): path.read_bytes for path in files})


def damage(path: Path, rng: random.Random) -> str:
    """Damage a file in one of many ways; return which."""
    content, kind = bytearray(path.read_bytes()), rng.choice(list(KINDS))
    if not content or (kind == "without_its_folder" and path.name == CURRENT):
        kind = "removed"
    KINDS[kind](path, content, rng)
    return kind


def removed(path: Path, _: bytearray, __: random.Random) -> None:
    path.unlink()


def shortened(path: Path, content: bytearray, rng: random.Random) -> None:
    path.write_bytes(content[: rng.randrange(len(content))])


def longer(path: Path, content: bytearray, rng: random.Random) -> None:
    path.write_bytes(bytes(content) + rng.randbytes(9))


def flipped(path: Path, content: bytearray, rng: random.Random) -> None:
    content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    path.write_bytes(content)


def overwritten(path: Path, content: bytearray, rng: random.Random) -> None:
    start = rng.randrange(len(content))
    noise = rng.randbytes(min(64, len(content) - start))
    content[start : start + len(noise)] = noise
    path.write_bytes(content)


def without_its_folder(path: Path, _: bytearray, __: random.Random) -> None:
    shutil.rmtree(path.parent)


KINDS = {
    of.__name__: of for of in (removed, shortened, longer, flipped, overwritten, without_its_folder)
}


def rounds_of_damage(rebuild, n_damages: int, *words: str) -> Counter[str]:
    """Damage the lake at several places, repair it, and compare; again and again."""
    lake, rng, done = rebuild.here / "lake", random.Random(7), Counter()  # noqa: S311
    before = in_folder(lake)
    names = sorted(before)
    while done.total() < n_damages:
        for name in rng.sample(names, AT_ONCE):
            if (lake / name).is_file():
                done[damage(lake / name, rng)] += 1
        said = rebuild("--verify", *words)
        assert said.code == 0, said
        assert in_folder(lake) == before
    assert rebuild("--repair", "--verify", "--dry-run").code == 0
    return done


def test_one_command_brings_back_what_was_damaged(rebuild):
    rounds_of_damage(rebuild, AT_ONCE, "--repair")


def test_files_of_a_version_whose_pointer_is_damaged_are_compared_too(rebuild):
    """Found finished, it would be published again as it is."""
    lake = rebuild.here / "lake"
    before = in_folder(lake)
    published = Lake(lake).partition("row_lineage", ONE).require()
    flip_a_bit(published.folder / published.receipt.files[0].path)
    (lake / "row_lineage" / ONE / CURRENT).write_text("{")
    said = rebuild("--repair", "--verify")
    assert (said.code, in_folder(lake) == before) == (0, True), said


def test_a_pointers_draft_that_a_killed_repair_left_is_removed(rebuild):
    """All that is published is whole by then, so nothing is built again."""
    lake = rebuild.here / "lake"
    before = in_folder(lake)
    staging_path(lake / "row_lineage" / ONE / CURRENT).write_text("{")
    assert rebuild("--repair").code == 0
    assert in_folder(lake) == before


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_one_command_brings_back_whatever_was_damaged(rebuild):
    """Without ``--repair``: where a pointer and all receipts of a partition are lost together,
    nothing tells that it was ever built.
    """
    done = rounds_of_damage(rebuild, DAMAGES)
    print(f"\n{done.total():,} damages repaired: {dict(done)}")


def test_what_only_a_release_pins_is_named_and_can_be_built_again(lc, rebuild):
    """The newer version stays published while the older one is built again."""
    lake, wider = Lake(rebuild.here / "lake"), ("sequence_length = ", "sequence_length = 1")
    said = lc("release", lake.root, "v1", "--recipe", rebuild.here / "recipe.toml")
    assert said.code == 0, said
    pinned = lake.partition("megatron_rows", ONE).require()
    assert rebuild(change=wider).code == 0
    newer = lake.partition("megatron_rows", ONE).require()
    (pinned.folder / pinned.receipt.files[0].path).unlink()
    said = rebuild("--repair", change=wider)
    assert said.code == 1
    assert f"megatron_rows/{ONE}/{pinned.version}: is not built again" in said.err
    assert release_damage(lake, "v1")
    assert rebuild("--repair", "--dry-run", change=wider).code == 3
    assert (rebuild().code, rebuild(change=wider).code) == (0, 0)
    assert release_damage(lake, "v1") == []
    assert lake.partition("megatron_rows", ONE).require().version == newer.version
    assert rebuild("--repair", "--verify", change=wider).code == 0


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_lake_in_a_bucket_is_repaired_too(lc, rebuild, tmp_path, monkeypatch):
    """Missing and shortened objects are found by their names and sizes, changed ones by reading
    all of them; nothing else is uploaded.
    """
    pytest.importorskip("gcsfs")
    monkeypatch.setenv("LC_CACHE", str(tmp_path / "copies"))
    with bucket_server(monkeypatch) as server:
        url = "gs://crawl/lake"
        go_up(Lake(rebuild.here / "lake"), url)
        bucket = Bucket(url)
        assert rebuild(lake=url).code == 0

        def state() -> dict[str, object]:
            names = [name.removeprefix("lake/") for name in server.names()]
            return contents(
                {
                    name: lambda name=name: bucket.read(name).content
                    for name in names
                    if name != "recipe.toml"
                }
            )

        before = state()
        grid = f"token_grid/{ONE}/{open_lake(url).partition('token_grid', ONE).require().version}"
        flat = next(
            name
            for name in sorted(before)
            if name.startswith("longcrawl_flat/all/") and "zarr/" in name
        )
        bits = sorted(name for name in before if name.startswith(f"token_documents/{ONE}/"))
        wrong = next(name for name in bits if name.endswith(".bin"))
        for again in range(2):
            bucket.remove([f"{grid}/train.zarr/zarr.json"])
            bucket.write(flat, before[flat][:-1])
            said = rebuild("--repair", "--dry-run", lake=url)
            assert said.code == 3
            assert f"{url}/{grid}/train.zarr/zarr.json: missing or damaged" in said.out
            assert f"{url}/{flat}: missing or damaged" in said.out
            if again:
                shutil.rmtree(tmp_path / "copies")  # another machine
            said = rebuild("--repair", lake=url)
            assert (said.code, "2 partitions built in" in said.out) == (0, True), said
            assert state() == before
        bucket.write(wrong, bytes(byte ^ 1 for byte in before[wrong]))
        assert rebuild("--repair", "--dry-run", lake=url).code == 0
        assert lc("verify", f"{url}/token_documents").code == 1
        said = rebuild("--repair", "--verify", lake=url)
        assert (said.code, f"{url}/{wrong}: missing or damaged" in said.out) == (0, True), said
        assert state() == before
