"""The key by which indexes of crawls are sorted: a page's address with its host turned round
(SURT).

``https://www.Example.org:8080/A//b/?y=2&x=1#part`` becomes ``org,example:8080)/a/b?x=1&y=2``. An
address is read as browsers read it (WHATWG), and then, as the Internet Archive's and Common Crawl's
indexes show it:

==========  ==============================================================================================
scheme      dropped, as are user, password, fragment and the port that goes without saying
host        without ``www.``, ``www2.``, …; its parts backwards, joined by commas, and ``)`` behind all
path        in lower case, escapes undone as long as there are any, ``//`` made ``/``, no ``/`` at its end
query       the same; parameters sorted; left out when it is empty
sessions    ids of sessions are taken out of path and query: ``;jsessionid=``, ``phpsessid=``, ``sid=``, …
escapes     of what is not printable ASCII, ``#`` and ``%``; in lower case
==========  ==============================================================================================

Different pages may have one key (``/A`` and ``/a``): whether two addresses are one page is for
`lc_assets.text.page_keys` to say. It is written from what such keys look like, and equals those of
1,252 real pages; of sessions and odd escapes other programs know more.
"""

import re
from typing import Final
from urllib.parse import unquote_to_bytes

import can_ada

from lc_assets.text.page_keys import MAX_ADDRESS_CHARS

_NUMBERED: Final = re.compile(r"www\d*\.", re.ASCII)
_SLASHES: Final = re.compile(rb"/{2,}")
_TO_ESCAPE: Final = re.compile(rb"[^!\"$&-~]")
_PATH_SESSIONS: Final = re.compile(
    r";jsessionid=[0-9a-z]{32}|/\((?:[a-z]\([0-9a-z]{24}\))+\)(?=/.*\.aspx)|/\([0-9a-z]{24}\)(?=/.*\.aspx)"
)
_QUERY_SESSIONS: Final = re.compile(
    r"(?:(?:jsessionid|phpsessid|sid)=[0-9a-z]{32}|aspsessionid[a-z]{8}=[a-z]{24}|cfid=[^&]+&cftoken=[^&]+)(?:&|$)"
)


def surt(url: str) -> str | None:
    """The key of an address in a crawl's index; None when it is no address of the web, or a very
    long one.

    >>> surt("https://www.Example.org:8080/A//b/?y=2&x=1#part"), surt("http://example.org")
    ('org,example:8080)/a/b?x=1&y=2', 'org,example)/')
    >>> surt("http://148.146.124.0/Caf%25C3%25A9/"), surt("mailto:a@example.org")
    ('0,124,146,148)/caf%c3%a9', None)
    """
    if len(url) > MAX_ADDRESS_CHARS:
        return None
    try:
        url.encode("utf-8")
        parsed = can_ada.parse(url)
    except ValueError:  # no address, or a lone surrogate in it, which no address can hold
        return None
    host = parsed.hostname.rstrip(".")
    if parsed.protocol not in ("http:", "https:") or not host:
        return None
    path = _PATH_SESSIONS.sub("", _plain(parsed.pathname, slashes=True)).rstrip("/")
    query = _sorted(_QUERY_SESSIONS.sub("", _plain(parsed.search[1:])))
    port = f":{parsed.port}" if parsed.port else ""
    return f"{_backwards(host)}{port}){path or '/'}" + (f"?{query}" if query else "")


def _backwards(host: str) -> str:
    bare = _NUMBERED.sub("", host, count=1) if _NUMBERED.match(host) else host
    return bare if bare.startswith("[") else ",".join(reversed(bare.split(".")))


def _plain(text: str, *, slashes: bool = False) -> str:
    """A part of an address in lower case, escaped only where it must be."""
    found, before = text.encode(), b""
    while found != before:
        found, before = unquote_to_bytes(found), found
    if slashes:
        found = _without_dots(_SLASHES.sub(b"/", found))
    return _TO_ESCAPE.sub(lambda match: b"%%%02X" % match[0][0], found).decode("ascii").lower()


def _without_dots(path: bytes) -> bytes:
    """Without ``.`` and ``..`` that were escaped."""
    if b"/." not in path:
        return path
    kept: list[bytes] = []
    for part in path.split(b"/"):
        if part == b"..":
            del kept[max(len(kept) - 1, 1) :]
        elif part != b".":
            kept.append(part)
    return b"/".join(kept)


def _sorted(query: str) -> str:
    return "&".join(
        "".join(one) for one in sorted(parameter.partition("=") for parameter in query.split("&"))
    )
