"""S3 and Azure on loopback: moto and Azurite behind a proxy that counts requests and makes faults, as
`lc_assets_tests.bucket_server` does for Google's.

Azurite comes from npm; ``AZURITE`` names its command (``node_modules/.bin/azurite-blob``). Without it
its tests skip.
"""

import base64
import contextlib
import email.utils
import hashlib
import hmac
import http.client
import http.server
import os
import socket
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlparse

import fsspec
import pytest

from lc_assets_tests.bucket_server import (
    CLOSED,
    CUT,
    LOST,
    NAMES,
    SLOW,
    SLOW_SECONDS,
    BucketServer,
    _Listening,
)

ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""Azurite's, in its documentation."""


class StoreServer:
    """An emulator behind a proxy; see `lc_assets_tests.bucket_server.BucketServer`.

    Attributes:
        scheme: ``s3`` or ``az``.
        url: of the proxy.
        requests: how many of each kind came: read, state, list, write, part, remove.
        faults: what to answer instead, by kind.
        injected: how many faults there were, by kind.
        watch: told the kind of each request before it is answered.
    """

    def __init__(self, scheme: str, port: int) -> None:
        self.scheme, self.port = scheme, port
        self.requests: Counter[str] = Counter()
        self.faults: dict[str, list[int]] = {}
        self.injected: Counter[str] = Counter()
        self.watch: Callable[[str], None] = lambda _kind: None
        self.lock = threading.Lock()
        self._http = _Listening(("127.0.0.1", 0), partial(_Proxy, self))
        self.url = f"http://127.0.0.1:{self._http.server_port}"
        self._thread = threading.Thread(
            target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Stop the proxy."""
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    @property
    def environment(self) -> dict[str, str]:
        """By which obstore finds it."""
        if self.scheme == "s3":
            return {
                "AWS_ENDPOINT_URL": self.url,
                "AWS_ALLOW_HTTP": "true",
                "AWS_REGION": "us-east-1",
                "AWS_ACCESS_KEY_ID": "test",
                "AWS_SECRET_ACCESS_KEY": "test",
            }
        return {
            "AZURE_STORAGE_ACCOUNT_NAME": ACCOUNT,
            "AZURE_STORAGE_ACCOUNT_KEY": KEY,
            "AZURE_STORAGE_ENDPOINT": f"{self.url}/{ACCOUNT}",
            "AZURE_ALLOW_HTTP": "true",
        }

    def store(self) -> Any:
        """The bucket ``crawl``, as obstore has it."""
        from obstore import store

        kind = store.S3Store if self.scheme == "s3" else store.AzureStore
        return kind("crawl", client_options={"allow_http": True})

    def names(self) -> list[str]:
        """Every object of the bucket."""
        with self._unwatched():
            return sorted(one["path"] for page in self.store().list() for one in page)

    def empty(self) -> None:
        """Remove every object of the bucket."""
        with self._unwatched():
            self.store().delete(self.names())

    def spoil(self, name: str) -> None:
        """Flip a bit in the middle of an object."""
        with self._unwatched():
            content = bytearray(bytes(self.store().get(name).bytes()))
            content[len(content) // 2] ^= 1
            self.store().put(name, bytes(content))

    @contextlib.contextmanager
    def _unwatched(self) -> Iterator[None]:
        """Requests of the test itself count for nothing."""
        kept = self.requests.copy(), self.faults, self.watch
        self.faults, self.watch = {}, lambda _kind: None
        yield
        self.requests, self.faults, self.watch = kept

    def make_bucket(self) -> None:
        """Make the bucket ``crawl``."""
        headers, path = {}, "/crawl"
        if self.scheme == "az":
            date = email.utils.formatdate(usegmt=True)
            said = (
                f"PUT{chr(10) * 12}x-ms-date:{date}\nx-ms-version:2021-08-06\n"
                f"/{ACCOUNT}/{ACCOUNT}/crawl\nrestype:container"
            )
            signed = hmac.new(base64.b64decode(KEY), said.encode(), hashlib.sha256).digest()
            signature = base64.b64encode(signed).decode()
            path = f"/{ACCOUNT}/crawl?restype=container"
            headers = {
                "x-ms-date": date,
                "x-ms-version": "2021-08-06",
                "Authorization": f"SharedKey {ACCOUNT}:{signature}",
            }
        asked = http.client.HTTPConnection("127.0.0.1", self.port)
        asked.request("PUT", path, headers=headers)
        assert asked.getresponse().status in {200, 201}
        asked.close()


Server = BucketServer | StoreServer


class _Proxy(http.server.BaseHTTPRequestHandler):
    """Sends each request on, one at a time, with the faults that a test wants."""

    protocol_version = "HTTP/1.1"

    def __init__(self, owner: StoreServer, *args: Any) -> None:
        self.owner = owner
        super().__init__(*args)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def _answer(self) -> None:
        n_bytes = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(n_bytes)
        if len(body) < n_bytes:  # who asked is dead: nothing was asked
            self.close_connection = True
            return
        with self.owner.lock:
            kind = self._kind()
            self.owner.requests[kind] += 1
            self.owner.watch(kind)
            fault = (self.owner.faults.get(kind) or [None]).pop(0)
            if fault is not None:
                self.owner.injected[NAMES.get(fault, str(fault))] += 1
            if fault == SLOW:
                time.sleep(SLOW_SECONDS)
            if fault in (None, SLOW, LOST, CUT):
                status, headers, content = self._sent_on(body)
            elif fault != CLOSED:
                status, headers, content = int(fault), [], b"as the test wants it"
        if fault in (CLOSED, LOST):
            self._hang_up()
            return
        self.send_response_only(status)
        for name, value in headers:
            if name.lower() not in {
                "connection",
                "transfer-encoding",
                "content-length",
                "keep-alive",
            }:
                self.send_header(name, value)
        told = dict(headers).get("Content-Length", dict(headers).get("content-length"))
        self.send_header("Content-Length", told if self.command == "HEAD" else str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content[: len(content) // 2] if fault == CUT else content)
        if fault == CUT:
            self._hang_up()

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _answer  # noqa: N815 - the base class names it so

    def _hang_up(self) -> None:
        self.wfile.flush()
        self.close_connection = True
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def _sent_on(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        there = http.client.HTTPConnection("127.0.0.1", self.owner.port)
        there.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
        for name, value in self.headers.items():
            there.putheader(name, value)
        there.endheaders(body)
        answer = there.getresponse()
        found = answer.status, answer.getheaders(), answer.read()
        there.close()
        return found

    def _kind(self) -> str:
        query = parse_qs(urlparse(self.path).query, keep_blank_values=True)
        if self.command == "GET":
            return "list" if "list-type" in query or query.get("comp") == ["list"] else "read"
        if self.command == "HEAD":
            return "state"
        if self.command == "DELETE" or "delete" in query or query.get("comp") == ["batch"]:
            return "remove"
        parts = {"uploads", "uploadId"} & set(query) or query.get("comp", [""])[0].startswith(
            "block"
        )
        return "part" if parts else "write"


@contextlib.contextmanager
def store_server(scheme: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[StoreServer]:
    """Run an emulator with the bucket ``crawl``, and let clients of this process find it."""
    pytest.importorskip("obstore", reason="obstore is not installed")
    with moto() if scheme == "s3" else azurite() as port:
        running = StoreServer(scheme, port)
        running.make_bucket()
        for name, value in running.environment.items():
            monkeypatch.setenv(name, value)
        try:
            yield running
        finally:
            running.close()
            if used := fsspec.registry.get(scheme):  # the next server has another port
                used.clear_instance_cache()


@contextlib.contextmanager
def moto() -> Iterator[int]:
    """S3's emulator; its port."""
    server = pytest.importorskip("moto.server", reason="moto[server] is not installed")
    running = server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    running.start()
    asked = http.client.HTTPConnection("127.0.0.1", running.get_host_and_port()[1])
    asked.request("POST", "/moto-api/reset")
    assert asked.getresponse().status == 200  # else the bucket made next may be reset
    asked.close()
    try:
        yield running.get_host_and_port()[1]
    finally:
        running.stop()


@contextlib.contextmanager
def azurite() -> Iterator[int]:
    """Azure's emulator; its port."""
    command = Path(os.environ.get("AZURITE", "azurite-blob"))
    if not command.is_file():
        pytest.skip("AZURITE does not name azurite-blob")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = ("--inMemoryPersistence", "--skipApiVersionCheck", "--silent", "--disableTelemetry")
    with subprocess.Popen(
        [command, *options, "--blobPort", str(port)], stdout=subprocess.DEVNULL
    ) as running:
        try:
            while running.poll() is None:
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                    break
                time.sleep(0.05)
            yield port
        finally:
            running.terminate()
