"""Google Cloud Storage on loopback: gcp-storage-emulator, extended by conditional writes, and by
counts and faults for tests.

``ifGenerationMatch`` behaves as in the service. A fault replaces the response to the next requests
of a kind.
"""

import contextlib
import gc
import http.server
import io
import json
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qs, unquote, urlparse

import pytest

server = pytest.importorskip(
    "gcp_storage_emulator.server", reason="gcp-storage-emulator is not installed"
)


CLOSED, LOST, CUT, SLOW = 0, -1, -2, -3
SLOW_SECONDS = 0.3
"""How long a slow answer takes; a client's patience is what a test says."""


class BucketServer:
    """A running emulator.

    Attributes:
        scheme: ``gs``, of its buckets' URLs.
        url: ``http://127.0.0.1:port``.
        requests: how many of each kind came: read, state, list, write, part, remove, bucket.
        faults: what to answer instead, by kind: a list of HTTP statuses, used up one by one; 0
            closes the connection before an answer, -1 does what was asked and then closes it, -2
            promises a whole answer and sends half of it, -3 takes its time, None answers as usual.
        injected: how many faults there were, by kind.
        watch: told the kind of each request before it is answered; for a test that kills who asks.
    """

    scheme = "gs"

    def __init__(self, bucket: str = "crawl", host: str = "127.0.0.1") -> None:
        self.requests: Counter[str] = Counter()
        self.faults: dict[str, list[int]] = {}
        self.injected: Counter[str] = Counter()
        self.watch: Callable[[str], None] = lambda _kind: None
        self.storage = server.Storage(use_memory_fs=True)
        server.buckets.create_bucket(bucket, self.storage)
        self._lock = threading.Lock()
        self._http = _Listening((host, 0), partial(_Handler, self))
        self.url = f"http://{host}:{self._http.server_port}"
        self._thread = threading.Thread(
            target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        )

    def __enter__(self) -> "BucketServer":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def names(self, bucket: str = "crawl") -> list[str]:
        """Every object of a bucket."""
        with contextlib.suppress(server.objects.NotFound):
            return sorted(found["name"] for found in self.storage.get_file_list(bucket)[0])
        return []

    def empty(self, bucket: str = "crawl") -> None:
        """Remove every object of a bucket."""
        for name in self.names(bucket):
            self.storage.delete_file(bucket, name)

    def spoil(self, name: str, bucket: str = "crawl") -> None:
        """Flip a bit in the middle of an object without updating its checksum."""
        content = bytearray(self.storage.get_file(bucket, name))
        content[len(content) // 2] ^= 1
        self.put(name, bytes(content), bucket)

    def put(self, name: str, content: bytes, bucket: str = "crawl") -> None:
        """Replace the content of an object."""
        described = self.storage.get_file_obj(bucket, name) | {"crc32c": None, "md5Hash": None}
        self.storage.create_file(
            bucket, name, content, server.objects._checksums(content, described)
        )


class _Listening(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that close the connection early."""
        if not isinstance(sys.exception(), BrokenPipeError | ConnectionResetError):
            super().handle_error(request, client_address)


class _Handler(server.RequestHandler):  # type: ignore[misc, name-defined]
    def __init__(self, owner: BucketServer, *args: Any) -> None:
        self.owner = owner
        super().__init__(owner.storage, *args)

    def do_GET(self) -> None:  # noqa: N802 - the base class names it so
        self._answer(super().do_GET)

    def do_POST(self) -> None:  # noqa: N802 - the base class names it so
        self._answer(super().do_POST)

    def do_PUT(self) -> None:  # noqa: N802 - the base class names it so
        self._answer(super().do_PUT)

    def do_DELETE(self) -> None:  # noqa: N802 - the base class names it so
        self._answer(super().do_DELETE)

    def _answer(self, answer: Any) -> None:
        if n_bytes := int(self.headers.get("Content-Length") or 0):
            body = self.rfile.read(n_bytes)  # before the lock is held: who sends it may stand still
            if len(body) < n_bytes:  # or be dead: then nothing was asked
                self.close_connection = True
                return
            self.rfile = _Again(body)
        with self.owner._lock:  # the emulator's storage is made for one thread
            kind = self._kind()
            self.owner.requests[kind] += 1
            self.owner.watch(kind)
            fault = self.owner.faults.get(kind) or [None]
            status = fault.pop(0)
            if status is not None:
                self.owner.injected[NAMES.get(status, str(status))] += 1
            if status == SLOW:
                time.sleep(SLOW_SECONDS)
                status = None
            if status is None and self._is_late():
                status = HTTPStatus.PRECONDITION_FAILED
            if status is None or status in (LOST, CUT):
                sent = self.wfile
                if status in (LOST, CUT):
                    self.wfile = io.BytesIO()
                answer()
                if status == CUT:
                    sent.write(_half(self.wfile.getvalue()))
                    sent.flush()
            if status in (CLOSED, LOST, CUT):
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
            elif status is not None:
                self._refuse(status)

    def _kind(self) -> str:
        path, query = urlparse(self.path).path, parse_qs(urlparse(self.path).query)
        if self.command == "GET":
            if "/o" not in path:
                return "bucket"
            return (
                "list"
                if path.endswith("/o")
                else "read"
                if query.get("alt") == ["media"]
                else "state"
            )
        if path.startswith("/batch/") or self.command == "DELETE":
            return "remove"
        return (
            "part" if self.command == "PUT" or query.get("uploadType") == ["resumable"] else "write"
        )

    def _is_late(self) -> bool:
        """Whether the current generation differs from the one that a write requires."""
        query = parse_qs(urlparse(self.path).query)
        if self.command != "POST" or "ifGenerationMatch" not in query:
            return False
        body = self.rfile.read()
        self.rfile = _Again(body)
        name = json.loads(body.split(b"\r\n\r\n", 2)[1].split(b"\r\n")[0])["name"]
        return int(query["ifGenerationMatch"][0]) != self._generation(
            urlparse(self.path).path.split("/")[-2], unquote(name)
        )

    def _generation(self, bucket: str, name: str) -> int:
        with contextlib.suppress(server.objects.NotFound):
            return int(self.storage.get_file_obj(bucket, name)["generation"])
        return 0

    def _refuse(self, status: int) -> None:
        content = json.dumps(
            {"error": {"code": int(status), "message": "as the test wants it"}}
        ).encode()
        self.send_response(int(status))
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


NAMES = {CLOSED: "connection closed", LOST: "answer lost", CUT: "body cut", SLOW: "slow"}


def _half(answer: bytes) -> bytes:
    """The head of an answer and half of its body."""
    head, parted, body = answer.partition(b"\r\n\r\n")
    return head + parted + body[: len(body) // 2]


class _Again:
    """What was read of a request, to be read again."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def read(self, n_bytes: int = -1) -> bytes:
        taken, self._content = (
            (self._content, b"")
            if n_bytes < 0
            else (self._content[:n_bytes], self._content[n_bytes:])
        )
        return taken

    def close(self) -> None:
        """Nothing is open."""


@contextlib.contextmanager
def bucket_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[BucketServer]:
    """Run the emulator, and let clients of this process find it."""
    with BucketServer() as running:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", running.url)
        monkeypatch.setenv(
            "GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT", "false"
        )  # else gcsfs probes by gRPC, a minute each
        monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "test")
        yield running
    gc.collect()  # clients keep connections open until they are collected: not in another test
