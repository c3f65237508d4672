"""A bucket of each provider on loopback, which is empty when a test begins, and machines that use it."""

from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest
from google.cloud.storage import retry

from lc_assets.lake import object_storage
from lc_assets.lake.bucket import Bucket
from lc_assets.lake.bucket_lake import open_lake
from lc_assets.lake.lake import Lake
from lc_assets_tests.bucket_server import bucket_server
from lc_assets_tests.other_stores import Server, store_server


@pytest.fixture(scope="module", params=["gs", "s3", "az"])
def running(request) -> Iterator[Server]:
    """A provider's emulator."""
    scheme = request.param
    with (
        pytest.MonkeyPatch.context() as patch,
        bucket_server(patch) if scheme == "gs" else store_server(scheme, patch) as server,
    ):
        yield server


@pytest.fixture
def server(running, monkeypatch) -> Server:
    """With nothing in it, and clients that wait a hundredth of a second before they ask again."""
    running.empty()
    running.requests.clear()
    running.injected.clear()
    running.faults, running.watch = {}, lambda _kind: None
    monkeypatch.setattr(retry.DEFAULT_RETRY, "_initial", 0.01)
    monkeypatch.setattr(retry.DEFAULT_RETRY, "_maximum", 0.05)
    pause = {"init_backoff": timedelta(milliseconds=10), "max_backoff": timedelta(milliseconds=50)}
    monkeypatch.setitem(object_storage.RETRIES, "backoff", pause | {"base": 2})
    return running


@pytest.fixture
def url(server) -> str:
    """A lake's."""
    return f"{server.scheme}://crawl/lake"


@pytest.fixture
def bucket(url) -> Bucket:
    """The lake's."""
    return Bucket(url)


@pytest.fixture
def machine(url, tmp_path) -> Callable[[str], Lake]:
    """Opens the lake with copies of its own."""
    return lambda name: open_lake(url, environment={"LC_CACHE": str(tmp_path / name)})
