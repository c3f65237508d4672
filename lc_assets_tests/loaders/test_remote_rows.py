"""Rows from a web server: the same tokens, only the bytes that are needed, and an error instead of
a shorter batch.
"""

import shutil

import numpy as np
import pytest

from lc_assets.errors import BadInput, CorruptFile, NotPublished, Unreachable
from lc_assets.formats.arrays.files import Piece, coalesced
from lc_assets.loaders.contracts import assert_resume_gives_the_rest, assert_step_is_enough
from lc_assets.loaders.grid import GridLoader
from lc_assets.loaders.rows import RemoteFiles, open_rows
from lc_assets_tests.grid_builders import ids, write_flat, write_grid, write_lake
from lc_assets_tests.loaders.range_server import served

TRAIN = {"2022-49": ids(70, 48, seed=1), "2023-06": ids(5, 48, seed=2), "mine": ids(0, 48)}
HELDOUT = {"2022-49": ids(2, 48, seed=3), "2023-06": ids(0, 48), "mine": ids(3, 48, seed=4)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A lake, a token grid of four shards and a flat array."""
    root = tmp_path_factory.mktemp("served")
    write_lake(root / "lake", TRAIN, HELDOUT)
    write_grid(root / "grid/train.zarr", ids(256, 40), shard_rows=64)
    write_flat(root / "flat/train.zarr", ids(10, 40))
    return root


@pytest.fixture
def server(folder):
    with served(folder) as (url, handler, running):
        yield url, handler, running


@pytest.fixture(autouse=True)
def without_pauses(monkeypatch):
    monkeypatch.setattr("lc_assets.lake.upstream.PAUSES_SECONDS", (0.0, 0.0))


@pytest.mark.parametrize(
    "path",
    [
        "lake",
        "lake/longcrawl/all",
        "lake/longcrawl/all/v7",
        "lake/token_grid/2022-49",
        "grid",
        "grid/train.zarr",
        "flat",
    ],
)
def test_a_url_is_read_as_the_folder_behind_it(folder, server, path):
    """Lake, order, published version, array in either layout: same rows, same name of the data,
    same batches.
    """
    near, far = open_rows(folder / path), open_rows(f"{server[0]}/{path}/")
    assert (far.n_rows, far.row_tokens, far.identity) == (
        near.n_rows,
        near.row_tokens,
        near.identity,
    )
    np.testing.assert_array_equal(far.read(), near.read())


def test_a_remote_loader_keeps_the_contracts(server):
    def make(*_):
        return GridLoader(
            open_rows(f"{server[0]}/lake"), batch_rows=7, context_tokens=16, prefetch=2
        )

    assert_step_is_enough(make(), steps=range(0, len(make()), 5))
    assert_resume_gives_the_rest(make, stop_after=11)


def test_only_the_wanted_bytes_are_sent_and_none_twice(folder, server):
    """A walk over one shard of four fetches its index and its frames once, and nothing of the
    others.
    """
    url, handler, _ = server
    rows = open_rows(f"{url}/grid/train.zarr")
    handler.served.clear()
    for top in range(64, 128, 8):
        rows.read(slice(top, top + 8))
    assert {path for path, _, _ in handler.served} == {"/grid/train.zarr/c/1/0"}
    n_bytes = (folder / "grid/train.zarr/c/1/0").stat().st_size
    spans = sorted((first, last) for _, first, last in handler.served)
    assert sum(last - first + 1 for first, last in spans) == n_bytes
    assert len(spans) == 2


def test_a_connection_that_breaks_once_is_made_again(folder, server):
    """In the middle of a batch: the batch is whole all the same."""
    url, handler, _ = server
    loader = GridLoader(open_rows(f"{url}/grid"), batch_rows=64, context_tokens=40)
    handler.breaks_off = 1
    np.testing.assert_array_equal(
        loader[1].targets, open_rows(folder / "grid").read(slice(64, 128))
    )


def test_a_lost_network_is_unreachable_at_its_step(folder, server):
    """Batches before it are given, the position stays at the batch that failed, and the stream goes
    on from there.
    """
    url, handler, _ = server
    loader = GridLoader(
        open_rows(f"{url}/grid", cache_bytes=64 * 40 * 2),
        batch_rows=32,
        context_tokens=40,
        prefetch=1,
    )
    batches = iter(loader)
    next(batches)
    next(batches)
    handler.breaks_off = 10**6
    with pytest.raises(
        Unreachable, match=r"cannot reach http://127.0.0.1:\d+/grid/train.zarr/c/\d/0"
    ):
        for _ in batches:
            pass
    assert 2 <= loader.step < len(loader)
    handler.breaks_off = 0
    left = np.concatenate([batch.targets for batch in loader])
    np.testing.assert_array_equal(left, open_rows(folder / "grid").read()[-len(left) :])


def test_a_server_that_is_gone_is_unreachable(server):
    url, _, running = server
    rows = open_rows(f"{url}/grid")
    running.shutdown()
    running.server_close()
    with pytest.raises(Unreachable, match="cannot reach"):
        rows.read()
    with pytest.raises(Unreachable):
        open_rows(f"{url}/grid")


def test_a_server_without_ranges_is_refused(server):
    """It would send a whole shard for every chunk."""
    url, handler, _ = server
    handler.whole_only = True
    with pytest.raises(BadInput, match="sends whole files only"):
        open_rows(f"{url}/grid").read()


def test_missing_files_on_a_server_are_errors(folder, tmp_path):
    """Nothing there, an order without its grids, a grid that is another, a version that is
    withdrawn while it is read.
    """
    shutil.copytree(folder, tmp_path / "own")
    with served(tmp_path / "own") as (url, _, _):
        with pytest.raises(BadInput, match=r"nowhere: found none of train\.zarr"):
            open_rows(f"{url}/nowhere")
        rows = open_rows(f"{url}/grid")
        shutil.rmtree(tmp_path / "own/grid")
        with pytest.raises(NotPublished, match="withdrawn while it was read"):
            rows.read()
        receipt = tmp_path / "own/lake/token_grid/2023-06/v1/receipt.json"
        receipt.write_text(receipt.read_text().replace('"digest": "', '"digest": "0', 1))
        with pytest.raises(
            CorruptFile, match=f"^{url}/lake/token_grid/2023-06/v1/receipt.json: its "
        ):
            open_rows(f"{url}/lake")
        shutil.rmtree(tmp_path / "own/lake/token_grid/2023-06")
        with pytest.raises(NotPublished, match="2023-06/v1/receipt.json: is missing"):
            open_rows(f"{url}/lake")


def test_pieces_that_lie_near_are_one_request():
    far = 10**6
    assert coalesced([Piece("a", far, far + 1), Piece("a", 5, 9), Piece("a", 0, 5)]) == [
        Piece("a", 0, 9),
        Piece("a", far, far + 1),
    ]


def test_pieces_are_cut_out_of_what_was_sent(server, folder):
    content = (folder / "grid/train.zarr/c/0/0").read_bytes()
    pieces = [Piece("c/0/0", 100, 110), Piece("c/0/0", 0, 7), Piece("c/0/0", 105, 10**9)]
    found = RemoteFiles(f"{server[0]}/grid/train.zarr").read(pieces)
    assert found == [content[100:110], content[:7], content[105:]]


def test_a_bucket_in_memory_is_a_url(folder):
    """Any file system of fsspec: here the one in memory."""
    import fsspec

    files = fsspec.filesystem("memory")
    files.put(str(folder / "grid"), "/loaders/grid", recursive=True)
    np.testing.assert_array_equal(
        open_rows("memory://loaders/grid").read(), open_rows(folder / "grid").read()
    )
    files.rm("/loaders", recursive=True)
