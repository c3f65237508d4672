"""The page key: one name for a page, however it is linked to.

Documents, records of a crawl and targets of links meet by it. It is the address as browsers
understand it (WHATWG), and then:

===============  ================================================================================================
scheme           dropped; a page of another scheme than http and https has no key
user, password   dropped
host             lower case, international names in ASCII; without trailing dots, and without a leading ``www.`` where
                 two names or more are left
port             dropped when it is 80 or 443
path             without ``.`` and ``..``; without ``/``, ``/index.html`` or ``/index.htm`` at its end
query            kept in its order, without empty parameters and without those that only follow visitors (`FOLLOWS_VISITORS`)
fragment         dropped
escapes          of letters, digits, ``-``, ``.``, ``_`` and ``~`` are undone (RFC 3986, 6.2.2.2), the others written in upper
                 case; a percent sign that begins none is written ``%25``
===============  ================================================================================================

Upper and lower case of paths, and the order of parameters, make a difference. A key is itself an
address without its scheme, and its own key: ``page_key("http://" + key) == key``. Not here: keys
for duplicates, which keep the scheme (`lc_assets.text.duplicate_keys`), and the keys by which a
crawl's index is sorted.
"""

import re
from typing import Final

import can_ada

MAX_ADDRESS_CHARS: Final = 8192
"""A longer address has no key: RFC 9110 asks servers for 8,000 octets, and what is longer holds
data rather than a name.
"""

FOLLOWS_VISITORS: Final = frozenset(
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
"""Parameters that tell who came from where and change no page; so do those that begin with
``utm_``.
"""

_PORTS: Final = (":80", ":443")
_ENDS: Final = ("/index.html", "/index.htm")
_ESCAPE: Final = re.compile("%([0-9A-Fa-f]{2})?")
_UNRESERVED: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


def page_key(url: str) -> str | None:
    """Key of the page at an address; None when it is no address of the web, or longer than
    `MAX_ADDRESS_CHARS`, as given or as a key.

    >>> page_key("HTTPS://user@www.Example.org:443/a/../b%7e/index.html?utm_source=x&q=1#part")
    'example.org/b~?q=1'
    >>> page_key("http://example.org"), page_key("https://www.example.org/index.htm#top"), page_key("http://bücher.example/ü")
    ('example.org', 'example.org', 'xn--bcher-kva.example/%C3%BC')
    >>> page_key("mailto:a@example.org"), page_key("/b.html"), page_key("")
    (None, None, None)
    """
    if len(url) > MAX_ADDRESS_CHARS:
        return None
    try:
        url.encode("utf-8")
        parsed = can_ada.parse(url)
    except ValueError:  # no address, or a lone surrogate in it, which no address can hold
        return None
    if parsed.protocol not in ("http:", "https:"):
        return None
    host = _host(parsed.host)
    if not host:
        return None
    query = _query(_unescaped(parsed.search[1:]))
    key = host + _path(_unescaped(parsed.pathname)) + (f"?{query}" if query else "")
    return (
        key if len(key) <= MAX_ADDRESS_CHARS - len("http://") else None
    )  # escapes are longer than what they stand for


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


def _query(query: str) -> str:
    return (
        "&".join(one for one in query.split("&") if one and not _follows_visitors(one))
        if query
        else ""
    )


def _follows_visitors(parameter: str) -> bool:
    name = parameter.partition("=")[0].lower()
    return name in FOLLOWS_VISITORS or name.startswith("utm_")


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(_escape, text) if "%" in text else text


def _escape(found: re.Match[str]) -> str:
    digits = found[1]
    if digits is None:
        return "%25"
    char = chr(int(digits, 16))
    return char if char in _UNRESERVED else f"%{digits.upper()}"
