"""The same input gives the same bytes: with any number of workers, in any folder, in any order of
listing, from anywhere.
"""

import functools
import hashlib
import http.server
import os
import re
import shutil
import subprocess
import sys
import threading
import urllib.parse
import urllib.request
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import fsspec
import pytest

from lc_assets.builds.stage import (
    BuildContext,
    Built,
)
from lc_assets.execution.local import LocalExecutor
from lc_assets.formats.arrays.order import GlobalOrder
from lc_assets.lake.lake import Lake
from lc_assets.lake.receipts import RECEIPT
from lc_assets.lake.upstream import Upstream
from lc_assets.publishing import STAGING_PREFIX
from lc_assets.stages.catalogue import stage_named
from lc_assets.stages.planning import plan
from lc_assets.stages.rows import longcrawl_flat
from lc_assets.stages.rows.token_grid import rows_table
from lc_assets_tests.builders import (
    SNAPSHOTS,
    TINY_ROW_TOKENS,
    build_all,
    recipe_file,
    tiny_context,
    tiny_upstream,
)
from lc_assets_tests.faults import build_snapshot, copied, digests
from lc_assets_tests.processes import HANG_SECONDS

PER_UPSTREAM = {f"raw_snapshot/{snapshot}" for snapshot in SNAPSHOTS}


@pytest.fixture(scope="module")
def upstream(tmp_path_factory) -> Path:
    return tiny_upstream(tmp_path_factory.mktemp("upstream"))


@pytest.fixture(scope="module")
def context(tmp_path_factory, upstream) -> BuildContext:
    return tiny_context(tmp_path_factory.mktemp("plain"), upstream=upstream)


@pytest.fixture(scope="module")
def plainly(context) -> dict[str, Built]:
    """The whole chain by one worker, from a folder."""
    return build_all(context)


def elsewhere(context: BuildContext, folder: Path, upstream: str) -> BuildContext:
    return replace(context, lake=Lake(folder / "lake"), upstream=Upstream(upstream))


def assert_same(built: dict[str, Built], plainly: dict[str, Built]) -> None:
    """Equal digests of every version, equal counts, and equal names of versions: equal paths below
    the lake.
    """
    assert digests(built) == digests(plainly)
    assert {name: found.counts for name, found in built.items()} == {
        name: found.counts for name, found in plainly.items()
    }
    assert {name: found.published.folder.name for name, found in built.items()} == {
        name: found.published.folder.name for name, found in plainly.items()
    }


def test_two_workers_give_the_bytes_of_one(context, plainly, upstream, tmp_path):
    """Whichever task ends first: the stages of one snapshot, and the copy of all rows that is made
    of two snapshots'.
    """
    here = elsewhere(context, tmp_path, str(upstream))
    there = replace(
        here, executor=LocalExecutor(workers=2, preload=("lc_assets.stages.catalogue",))
    )
    built = {found.published.name: found for found in build_snapshot(there, SNAPSHOTS[0]).values()}
    build_snapshot(here, SNAPSHOTS[1])
    built |= {
        f"{name}/all": stage_named(name).build(there, "all")
        for name in ("longcrawl", "longcrawl_flat")
    }
    assert_same(built, {name: plainly[name] for name in built})


def test_columns_as_tasks_of_their_own_give_the_bytes_of_one_task(
    context, plainly, tmp_path, monkeypatch
):
    """Of a flat array of few rows; each is counted once."""
    monkeypatch.setattr(longcrawl_flat, "CHUNK", (8, 16))
    found, n_tasks = [], Counter[int]()

    class Counting(LocalExecutor):
        def run(self, function, tasks, *, what):
            n_tasks[len(found)] += len(tasks) if what == "flatten" else 0
            return super().run(function, tasks, what=what)

    for part in (TINY_ROW_TOKENS, 32):
        monkeypatch.setattr(longcrawl_flat, "PART_TOKENS", part)
        lake = Lake(tmp_path / str(part))
        shutil.copytree(context.lake.root, lake.root)
        shutil.rmtree(lake.root / "longcrawl_flat")
        here = replace(context, lake=lake, executor=Counting())
        found.append(stage_named("longcrawl_flat").build(here, "all"))
    assert n_tasks[1] == 2 * n_tasks[0]
    at_once, apart = found
    assert at_once.counts == apart.counts == plainly["longcrawl_flat/all"].counts
    assert at_once.published.receipt.files == apart.published.receipt.files
    assert len(list(apart.published.folder.glob("train.zarr/*.crc32"))) > 1


@pytest.mark.slow
def test_one_two_and_eight_workers_give_the_same_bytes(context, plainly, upstream, tmp_path):
    """Of more processes than processors, too; prints the digests, so that those of two machines can
    be compared.
    """
    found = {
        1: {
            name: built.published.digest
            for name, built in plainly.items()
            if name.endswith(SNAPSHOTS[0])
        }
    }
    for workers in (2, 8):
        here = elsewhere(context, tmp_path / str(workers), str(upstream))
        executor = LocalExecutor(workers=workers, preload=("lc_assets.stages.catalogue",))
        built = build_snapshot(replace(here, executor=executor), SNAPSHOTS[0])
        found[workers] = {made.published.name: made.published.digest for made in built.values()}
    for name in found[8]:
        print(name, *(f"{workers}: {of[name][:12]}" for workers, of in found.items() if name in of))
    both = found[1].keys() & found[8].keys()  # the rest reads all snapshots, and saw one here
    assert found[2] == found[8]
    assert {name: found[1][name] for name in both} == {name: found[8][name] for name in both}


def test_tasks_done_backwards_give_the_same_bytes(context, plainly, upstream, tmp_path):
    """An executor that does the last task first."""

    class Backwards(LocalExecutor):
        def run(self, function, tasks, *, what):
            return super().run(function, tasks[::-1], what=what)

    assert_same(
        build_all(replace(elsewhere(context, tmp_path, str(upstream)), executor=Backwards())),
        plainly,
    )


def test_drafts_of_workers_that_died_are_no_files(context, plainly, upstream, tmp_path):
    """Each task leaves drafts of all that lies where tasks write, as if a worker had died of it and
    another one done it again.
    """

    class Littering(LocalExecutor):
        def run(self, function, tasks, *, what):
            for task, result in super().run(function, tasks, what=what):
                if what:  # checks write nothing, and are not shown
                    litter(here.lake.root)
                yield task, result

    here = elsewhere(context, tmp_path, str(upstream))
    assert_same(build_all(replace(here, executor=Littering())), plainly)
    assert not list(here.lake.root.rglob(f"{STAGING_PREFIX}*"))


def litter(root: Path) -> None:
    """A torn draft beside every file of the versions that are not published yet."""
    for path in [
        path for path in root.rglob("*") if path.is_file() and not path.name.startswith(".")
    ]:
        version = path.relative_to(root).parts[:3]
        if (
            len(version) == 3
            and (root / Path(*version)).is_dir()
            and not (root / Path(*version, RECEIPT)).exists()
        ):
            path.with_name(f"{STAGING_PREFIX}0badcafe-{path.name}").write_bytes(b"torn")


def test_the_order_of_a_listing_does_not_matter(context, plainly, upstream, tmp_path):
    """Shards listed backwards, with blank lines and another system's ends of lines."""
    root = copied(upstream, tmp_path / "upstream")
    for listing in (root / "listings").iterdir():
        listing.write_bytes(b"\r\n\r\n".join(listing.read_bytes().split()[::-1]))
    assert_same(build_all(elsewhere(context, tmp_path, str(root))), plainly)


def test_the_order_of_languages_does_not_matter(context, upstream, tmp_path):
    """Two languages, listed in two files: named in either order, or twice, they give the same
    documents and rows.
    """
    tags = ("0000/en_head", "0000/de_head", "0000/de_middle")
    root = tiny_upstream(tmp_path / "upstream", snapshots=SNAPSHOTS[:1], tags=tags)
    made = []
    for number, languages in enumerate((("en", "de"), ("de", "en", "en"))):
        recipe = tiny_context(tmp_path, upstream=root).recipe
        raw = type(recipe.raw_snapshot)(languages=languages)
        one = tiny_context(
            tmp_path / str(number),
            upstream=root,
            raw_snapshot=raw,
            blended_mix={"by-tokens": recipe.blended_mix["by-tokens"]},
        )
        made.append(digests(build_all(one, SNAPSHOTS[:1])))
    assert made[0] == made[1]


def test_another_folder_at_another_time_gives_the_same_bytes(plainly, tmp_path):
    """Upstream, rules and lake elsewhere, files written anew and with other times: nothing of that
    is in any byte.
    """
    root = tiny_upstream(tmp_path / "deep" / "er" / "upstream")
    for path in root.rglob("*"):
        os.utime(path, (1, 1))
    assert_same(build_all(tiny_context(tmp_path / "deep", upstream=root)), plainly)


IN_ANOTHER_PROCESS = """
import sys
from pathlib import Path
from lc_assets.execution.local import LocalExecutor
from lc_assets.formats.arrays.order import GlobalOrder
from lc_assets.builds.stage import BuildContext
from lc_assets.builds.recipe_files import read_recipe
from lc_assets.lake.lake import Lake
from lc_assets.lake.upstream import Upstream
from lc_assets_tests.builders import build_all

lake, upstream, recipe = sys.argv[1:]
context = BuildContext(lake=Lake(Path(lake)), upstream=Upstream(upstream), recipe=read_recipe(Path(recipe)), executor=LocalExecutor())
for name, built in build_all(context).items():
    print(name, built.published.digest)
"""


def digests_of_another_process(
    context: BuildContext, folder: Path, upstream: str, **environment: str
) -> dict[str, str]:
    """Build the whole chain in a new process, by a recipe read from a file; return the digests."""
    recipe = recipe_file(folder / "recipe.toml", context.recipe)
    command = [
        sys.executable,
        "-c",
        IN_ANOTHER_PROCESS,
        str(folder / "lake"),
        upstream,
        str(recipe),
    ]
    ended = subprocess.run(
        command,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | environment,
        cwd=Path(__file__).parents[2],
        timeout=HANG_SECONDS,
    )
    return dict(line.split() for line in ended.stdout.splitlines())


def test_another_process_gives_the_same_bytes(context, plainly, upstream, tmp_path):
    """Another seed of Python's hashes, another time zone and locale, settings read from a file."""
    other = {
        "PYTHONHASHSEED": "12345",
        "TZ": "Pacific/Chatham",
        "LC_ALL": "C",
        "OMP_NUM_THREADS": "1",
    }
    assert digests_of_another_process(context, tmp_path, str(upstream), **other) == digests(plainly)


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Names no versions: a file's identity is its content."""

    def log_message(self, *_):
        pass


class Naming(Quiet):
    """Names a version of each file, as object stores do, and does without reading it."""

    def end_headers(self):
        self.send_header("ETag", f'"{self.path.rpartition("/")[2]}-v1"')
        super().end_headers()


DRAWING = {
    "token_grid": {"shuffle", "shift", "heldout"},
    "longcrawl": {"riffle"},
    "megatron_rows": {"gpt index"},
    "packed_rows": {"documents", "rows", "heldout"},
    "blended_mix": {"gpt index"},
}
"""What is drawn in the stages of the tiny recipe, by what receipts call it."""


def test_every_receipt_names_what_was_drawn_and_by_which_algorithm(plainly):
    """And no other stage claims to draw; the algorithm is named exactly, with its seed or whose
    priorities it goes by.
    """
    drawn = {name: found.published.receipt.randomness for name, found in plainly.items()}
    for name, found in drawn.items():
        assert set(found) == DRAWING.get(name.partition("/")[0], set()), name
        for how in found.values():
            assert re.match(
                r"(blake2b-64-le|numpy RandomState \(MT19937\))(, seed \d+|: the grids' own priorities)",
                how,
            ), how
    assert {name.partition("/")[0] for name, found in drawn.items() if found} == set(DRAWING)


def by_hand(purpose: str, seed: int, key: str) -> int:
    """blake2b-64-le as docs say it, without our code: a keyed hash of 8 bytes, read as a
    little-endian number.
    """
    stream = hashlib.blake2b(f"{purpose}\0{seed}".encode(), digest_size=32).digest()
    return int.from_bytes(
        hashlib.blake2b(key.encode(), digest_size=8, key=stream).digest(), "little"
    )


def test_a_grid_lies_in_the_order_that_its_receipt_names(plainly):
    """Drawn again from nothing but the receipt's words and the documents' ids: places in the
    shuffle, shifts, and the global order.
    """
    priorities = {}
    for snapshot in SNAPSHOTS:
        grid = plainly[f"token_grid/{snapshot}"].published
        algorithm, seed, key = re.fullmatch(
            r"(\S+), seed (\d+), key (\S+)", grid.receipt.randomness["shuffle"]
        ).groups()
        assert (algorithm, key) == ("blake2b-64-le", "id#stretch")
        rows = rows_table(grid).to_pylist()
        keys = [f"{row['id']}#{row['stretch']}" if row["stretch"] else row["id"] for row in rows]
        assert [row["priority"] for row in rows] == [
            by_hand("shuffle", int(seed), key) for key in keys
        ]
        assert [row["shift"] for row in rows] == [
            by_hand("shift", int(seed), key) % 64 for key in keys
        ]
        priorities[snapshot] = [row["priority"] for row in rows if row["split"] == "train"]
        assert priorities[snapshot] == sorted(priorities[snapshot])
    order = GlobalOrder.open(plainly["longcrawl/all"].published.folder, "train")
    placed = [
        priorities[order.sources[source].snapshot][row]
        for source, row in zip(order.source, order.row, strict=True)
    ]
    assert placed == sorted(placed)


@pytest.fixture
def served(upstream) -> Iterator:
    servers = []

    def serve(handler) -> str:
        server = http.server.ThreadingHTTPServer(
            ("127.0.0.1", 0), functools.partial(handler, directory=str(upstream))
        )
        threading.Thread(
            target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        ).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_port}"

    yield serve
    for server in servers:
        server.shutdown()
        server.server_close()


def test_a_web_server_without_versions_gives_the_very_same_chain(
    context, plainly, served, tmp_path
):
    """Files are told apart by content, so even the manifests are those of the folder."""
    assert_same(build_all(elsewhere(context, tmp_path, served(Quiet))), plainly)


def test_a_web_server_that_names_versions_gives_the_same_chain_but_for_its_manifests(
    context, plainly, served, tmp_path
):
    """The manifest states what the server says, an ETag; every digest behind it is that of the
    folder's chain.
    """
    built = build_all(elsewhere(context, tmp_path, served(Naming)))
    differ = {
        name
        for name, found in built.items()
        if found.published.digest != plainly[name].published.digest
    }
    assert differ == PER_UPSTREAM


def test_a_lake_does_not_care_where_it_read_from(context, plainly, served, upstream, tmp_path):
    """Built from the server that names versions, then from the folder: what reads upstream is made
    again, and the card, which states all of that; nothing else.
    """
    build_all(elsewhere(context, tmp_path, served(Naming)))
    moved = elsewhere(context, tmp_path, str(upstream))
    again = build_all(moved)
    assert {name.partition("/")[0] for name, found in again.items() if not found.reused} == {
        "raw_snapshot",
        "filtered_documents",
        "document_signatures",
        "data_set_card",
    }
    assert digests(again) == digests(plainly)
    assert all(made.status == "current" for made in plan(moved.lake, moved.recipe, SNAPSHOTS))


def test_memory_gives_the_very_same_chain(context, plainly, upstream, tmp_path):
    """Any file system of fsspec will do; one without identities is read for them."""
    root = f"memory://{tmp_path.name}"
    files, _ = fsspec.core.url_to_fs(root)
    files.put(str(upstream), f"/{tmp_path.name}", recursive=True)
    try:
        assert_same(build_all(elsewhere(context, tmp_path, root)), plainly)
    finally:
        files.rm(f"/{tmp_path.name}", recursive=True)


@pytest.fixture
def bucket(upstream) -> Iterator[dict[str, str]]:
    """The upstream in a bucket ``lc`` of an emulated object store; hands out the environment in
    which gcsfs finds it.
    """
    server = pytest.importorskip("gcp_storage_emulator.server").create_server(
        "127.0.0.1", 0, in_memory=True, default_bucket="lc"
    )
    server.start()
    host = f"http://127.0.0.1:{server._api._httpd.server_port}"
    for path in upstream.rglob("*"):
        if path.is_file():
            name = urllib.parse.quote(f"rpv2/{path.relative_to(upstream).as_posix()}", safe="")
            request = urllib.request.Request(  # noqa: S310
                f"{host}/upload/storage/v1/b/lc/o?uploadType=media&name={name}", path.read_bytes()
            )
            urllib.request.urlopen(request).close()  # noqa: S310
    # Without the second, gcsfs asks over gRPC what kind of bucket it is, and waits a minute each
    # time.
    yield {"STORAGE_EMULATOR_HOST": host, "GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT": "false"}
    server.stop()


@pytest.mark.network
def test_a_bucket_gives_the_same_chain_but_for_its_manifests(context, plainly, bucket, tmp_path):
    """The manifest states the bucket's own MD5 of each file; every digest behind it is that of the
    folder's chain.
    """
    found = digests_of_another_process(context, tmp_path, "gs://lc/rpv2", **bucket)
    assert {
        name for name, digest in found.items() if digest != plainly[name].published.digest
    } == PER_UPSTREAM
