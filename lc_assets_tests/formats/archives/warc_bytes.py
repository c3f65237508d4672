"""Records of archives, byte by byte, as crawlers write them and as they should not."""

import gzip


def record(
    kind: bytes,
    block: bytes,
    *,
    length: int | None = None,
    url: bytes = b"https://a.org/x",
    more: bytes = b"",
) -> bytes:
    """A record, not compressed; ``length`` is what it says of its block."""
    return (
        b"WARC/1.0\r\nWARC-Type: %s\r\nWARC-Target-URI: %s\r\nWARC-Date: 2024-01-01T00:00:00Z\r\n"
        b"WARC-Record-ID: <urn:uuid:12>\r\n%sContent-Length: %d\r\n\r\n%s\r\n\r\n"
        % (kind, url, more, len(block) if length is None else length, block)
    )


def http(
    body: bytes,
    headers: bytes = b"Content-Type: text/html; charset=utf-8",
    *,
    status: bytes = b"200 OK",
) -> bytes:
    """What a server sent."""
    return b"HTTP/1.1 %s\r\n%s\r\n\r\n%s" % (status, headers, body)


def page(
    body: bytes,
    headers: bytes = b"Content-Type: text/html; charset=utf-8",
    *,
    status: bytes = b"200 OK",
    **how,
) -> bytes:
    """A response record."""
    return record(b"response", http(body, headers, status=status), **how)


def gzipped(*records: bytes) -> bytes:
    """An archive of a gzip member per record."""
    return b"".join(gzip.compress(one, mtime=0) for one in records)
