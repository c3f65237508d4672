"""A local web server that answers range requests as nginx and buckets do, and can be told to
misbehave.
"""

import contextlib
import functools
import http.server
import re
import threading
from collections.abc import Iterator
from pathlib import Path

RANGE = re.compile(r"bytes=(\d+)-(\d+)$")


class RangeHandler(http.server.SimpleHTTPRequestHandler):
    """Serves files and parts of files, and notes what it sent.

    Attributes:
        served: (path, first byte, last byte) of each part that was sent.
        breaks_off: how many of the next parts are cut in their middle; the connection is closed
            then.
        whole_only: ignore ranges, as Python's own server does.
    """

    served: list[tuple[str, int, int]]
    breaks_off = 0
    whole_only = False
    protocol_version = "HTTP/1.0"  # one request per connection: a server that is gone is gone

    def log_message(self, *_):
        pass

    def part_of(self, path, first, last):
        """Bytes of a file, the last one included."""
        return path.read_bytes()[first : last + 1]

    def do_GET(self):
        asked = RANGE.match(self.headers.get("Range", ""))
        path = Path(self.translate_path(self.path))
        if not path.is_file():
            self.send_error(404)
            return
        n_bytes = path.stat().st_size
        first, last = (
            (0, n_bytes - 1)
            if not asked or self.whole_only
            else (int(asked[1]), min(int(asked[2]), n_bytes - 1))
        )
        part = self.part_of(path, first, last)
        self.served.append((self.path, first, last))
        self.send_response(206 if asked and not self.whole_only else 200)
        self.send_header("Content-Length", str(len(part)))
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Range", f"bytes {first}-{last}/{n_bytes}")
        self.end_headers()
        if type(self).breaks_off > 0:
            type(self).breaks_off -= 1
            self.wfile.write(part[: len(part) // 2])
            self.close_connection = True
        else:
            self.wfile.write(part)


class Server(http.server.ThreadingHTTPServer):
    """Takes all connections that are made at once: 32 at a context of 65,536, where Python's own
    server lets five wait.
    """

    request_queue_size = 128


@contextlib.contextmanager
def served(
    folder: Path, kind: type[RangeHandler] = RangeHandler
) -> Iterator[tuple[str, type[RangeHandler], http.server.ThreadingHTTPServer]]:
    """Serve a folder on this machine: its URL, the handler to misbehave through, and the server."""
    handler = type("RangeHandlerOnce", (kind,), {"served": []})
    server = Server(("127.0.0.1", 0), functools.partial(handler, directory=str(folder)))
    thread = threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
    )
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", handler, server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
