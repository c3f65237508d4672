"""Page keys, one name for a page however it is linked to; and the keys that sort indexes of crawls.

Documents, records of a crawl and targets of links are matched by page key. It is the address as
browsers read it (WHATWG), and then:

=========  =====================================================================================
scheme     dropped; a page of another scheme than http and https has no key
user       dropped, as is the password
host       lower case, international names in ASCII; without trailing dots, and without a leading
           ``www.`` where at least two names are left
port       dropped when it is 80 or 443
path       without ``.`` and ``..``; without ``/``, ``/index.html`` or ``/index.htm`` at its end
query      kept in its order, without empty parameters and without `TRACKING_PARAMETERS`
fragment   dropped
escapes    of letters, digits, ``-``, ``.``, ``_`` and ``~`` are undone (RFC 3986, 6.2.2.2), others
           are in upper case; a percent sign that begins none is written ``%25``
=========  =====================================================================================

Case of paths and the order of parameters make a difference. A key is an address without its
scheme, and its own key: ``page_key("http://" + key) == key``.

A SURT is a page's address with its host reversed:
``https://www.Example.org:8080/A//b/?y=2&x=1#part`` becomes ``org,example:8080)/a/b?x=1&y=2``, as in
the indexes of the Internet Archive and Common Crawl:

=========  =====================================================================================
scheme     dropped, as are user, password, fragment and the default port
host       without ``www.``, ``www2.``, …; its parts reversed, joined by commas, then ``)``
path       in lower case, escapes undone repeatedly, ``//`` made ``/``, no ``/`` at its end
query      the same; parameters sorted; left out when it is empty
sessions   ids are removed from path and query: ``;jsessionid=``, ``phpsessid=``, ``sid=``, …
escapes    of what is not printable ASCII, ``#`` and ``%``; in lower case
=========  =====================================================================================

Different pages may share a SURT (``/A`` and ``/a``). It was written from published keys, and equals
those of 1,252 real pages; other programs know more session ids and odd escapes.
"""

import re
from urllib.parse import unquote_to_bytes

import can_ada

MAX_ADDRESS_CHARS = 8192
"""A longer address has no key: RFC 9110 asks servers for 8,000 octets, and longer ones hold
data rather than a name.
"""

TRACKING_PARAMETERS = frozenset(
    (
        "dclid",
        "fbclid",
        "gbraid",
        "gclid",
        "gclsrc",
        "igshid",
        "mc_cid",
        "mc_eid",
        "mkt_tok",
        "msclkid",
        "srsltid",
        "ttclid",
        "twclid",
        "wbraid",
        "yclid",
        "_ga",
        "_gl",
        "_hsenc",
        "_hsmi",
    )
)
"""Parameters that track visitors and do not change the page, as do those that begin with
``utm_``.
"""

_PORTS = (":80", ":443")
_ENDS = ("/index.html", "/index.htm")
_ESCAPE = re.compile("%([0-9A-Fa-f]{2})?")
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


def page_key(url: str) -> str | None:
    """Key of the page at an address; None when it is not a web address, or longer than
    `MAX_ADDRESS_CHARS`, as given or as a key.

    >>> page_key("HTTPS://user@www.Example.org:443/a/../b%7e/index.html?utm_source=x&q=1#part")
    'example.org/b~?q=1'
    >>> (
    ...     page_key("http://example.org"),
    ...     page_key("https://www.example.org/index.htm#top"),
    ...     page_key("http://bücher.example/ü"),
    ... )
    ('example.org', 'example.org', 'xn--bcher-kva.example/%C3%BC')
    >>> page_key("mailto:a@example.org"), page_key("/b.html"), page_key("")
    (None, None, None)
    """
    parsed = _parsed(url)
    host = _host(parsed.host) if parsed else ""
    if parsed is None or not host:
        return None
    parameters = _unescaped(parsed.search[1:]).split("&")
    query = "&".join(one for one in parameters if one and not _is_tracking(one))
    key = host + _path(_unescaped(parsed.pathname)) + (f"?{query}" if query else "")
    return (
        key if len(key) <= MAX_ADDRESS_CHARS - len("http://") else None
    )  # escapes are longer than the characters they encode


def _parsed(url: str) -> "can_ada.URL | None":
    """An address of the web; None for others, and for a very long one."""
    try:
        url.encode("utf-8")
        parsed = can_ada.parse(url[: MAX_ADDRESS_CHARS + 1])
    except ValueError:  # no address, or a lone surrogate in it, which no address can hold
        return None
    is_web = len(url) <= MAX_ADDRESS_CHARS and parsed.protocol in ("http:", "https:")
    return parsed if is_web else None


def key_host(key: str) -> str:
    """The host of a page, with its port if it is in the key.

    >>> key_host("example.org/a?b=c/d"), key_host("example.org?q=1"), key_host("[::1]:8080")
    ('example.org', 'example.org', '[::1]:8080')
    """
    return key.partition("?")[0].partition("/")[0]


def is_home(key: str) -> bool:
    """Whether a page is its host's first one.

    >>> is_home("example.org"), is_home("example.org/a"), is_home("example.org?page=2")
    (True, False, False)
    """
    return "/" not in key and "?" not in key


def _host(host: str) -> str:
    for port in _PORTS:
        host = host.removesuffix(port)
    name, colon, port = host.rpartition(":") if not host.endswith("]") else ("", "", host)
    name, port = (name, colon + port) if name else (port, "")
    name = name.rstrip(".")
    while name.startswith("www.") and "." in name[4:]:
        name = name[4:]
    return name + port if name else ""


def _path(path: str) -> str:
    stop = len(path)
    while True:
        if path.endswith("/", 0, stop):
            stop -= 1
        elif path[max(stop - 11, 0) : stop].lower().endswith(_ENDS):
            stop = path.rindex("/", 0, stop)
        else:
            return path[:stop]


def _is_tracking(parameter: str) -> bool:
    name = parameter.partition("=")[0].lower()
    return name in TRACKING_PARAMETERS or name.startswith("utm_")


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(_escape, text) if "%" in text else text


def _escape(found: re.Match[str]) -> str:
    digits = found[1]
    if digits is None:
        return "%25"
    char = chr(int(digits, 16))
    return char if char in _UNRESERVED else f"%{digits.upper()}"


_NUMBERED = re.compile(r"www\d*\.", re.ASCII)
_SLASHES = re.compile(rb"/{2,}")
_TO_ESCAPE = re.compile(rb"[^!\"$&-~]")
_PATH_SESSIONS = re.compile(
    r";jsessionid=[0-9a-z]{32}|/\((?:[a-z]\([0-9a-z]{24}\))+\)(?=/.*\.aspx)|/\([0-9a-z]{24}\)(?=/.*\.aspx)"
)
_QUERY_SESSIONS = re.compile(
    r"(?:(?:jsessionid|phpsessid|sid)=[0-9a-z]{32}|aspsessionid[a-z]{8}=[a-z]{24}|cfid=[^&]+&cftoken=[^&]+)(?:&|$)"
)


def surt(url: str) -> str | None:
    """The key of an address in a crawl's index; None when it is not a web address, or a very
    long one.

    >>> surt("https://www.Example.org:8080/A//b/?y=2&x=1#part"), surt("http://example.org")
    ('org,example:8080)/a/b?x=1&y=2', 'org,example)/')
    >>> surt("http://148.146.124.0/Caf%25C3%25A9/"), surt("mailto:a@example.org")
    ('0,124,146,148)/caf%c3%a9', None)
    """
    parsed = _parsed(url)
    host = parsed.hostname.rstrip(".") if parsed else ""
    if parsed is None or not host:
        return None
    path = _PATH_SESSIONS.sub("", _plain(parsed.pathname, slashes=True)).rstrip("/")
    parameters = _QUERY_SESSIONS.sub("", _plain(parsed.search[1:])).split("&")
    query = "&".join(map("".join, sorted(one.partition("=") for one in parameters)))
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
