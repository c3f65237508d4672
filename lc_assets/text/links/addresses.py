"""Addresses of pages: hosts, registered domains, blocklists, and keys to look documents up by.

An address is read as browsers read it (WHATWG): case, ports, credentials, dots and international
names make no difference. A **registered domain** is what can be registered below a public suffix:
``example.co.uk`` of ``www.example.co.uk``, ``me.github.io`` of ``me.github.io``; an IP address is
its own.

A **domain** on a blocklist blocks itself and all below it. A **url** on it (``example.org/page``)
blocks the pages whose address begins with it, folder by folder. A leading ``www.`` is ignored.
``domain_blocked`` is 1 when the page's domain is on the list, ``url_blocked`` when the page or its
domain is. `lc_assets.formats.lists.models` reads lists.

Documents are looked up by keys of 64 bits, BLAKE2b of kind and value:

============  ==================================================================================
``document``  its id
``url``       its address, as `address_key` reads it
``domain``    its host, or a domain above the host, up to the registered one
``digest``    of the page, as the crawl states it (``sha1:…``), or of the text (``sha256:…``)
============  ==================================================================================

Different values share a key with probability 2⁻⁶⁴, so a value that was found must be compared.
`lc_assets.formats.key_index` stores keys.
"""

import functools
import itertools
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Literal

import can_ada
import numpy as np
from publicsuffixlist import PublicSuffixList

from lc_assets.arrays import UInt32s, UInt64s
from lc_assets.randomness import keyed_u64
from lc_assets.records import distinct

_PLAIN_HOST = re.compile(
    r"https?://((?:(?!xn--)[a-z0-9-]{1,63}\.){1,9}(?!xn--)[a-z]{1,63})(?:[/?#]|\Z)"
)
"""The beginning of an address whose host is written as browsers write it."""
_IP = re.compile(r"\d+\.\d+\.\d+\.\d+|\[.*\]", re.ASCII)
MAX_ADDRESS_CHARS = 8192
"""A longer address is truncated: no browser accepts it."""


@distinct
class Blocklist:
    """Blocked domains and addresses.

    Attributes:
        domains: normal as `host_of` gives them, without ``www.``.
        urls: ``host/path``, without ``www.`` and without a slash at the end.
        digest: SHA-256 of all files read; for receipts.
    """

    domains: Collection[str]
    urls: Collection[str]
    digest: str = ""

    def blocks_domain(self, url: str) -> bool:
        """Whether the page's domain is on the list.

        >>> Blocklist({"example.org"}, ()).blocks_domain("https://a.EXAMPLE.org:80/x")
        True
        """
        return any(name in self.domains for name in domains_above(host_of(url)))

    def blocks_page(self, url: str) -> bool:
        """Whether the page, or its domain, is on the list.

        >>> blocklist = Blocklist((), {"example.org/bad"})
        >>> pages = (f"http://www.example.org/{page}" for page in ("bad/x?y", "badly", ""))
        >>> list(map(blocklist.blocks_page, pages))
        [True, False, False]
        """
        found = self.urls and any(beginning in self.urls for beginning in _beginnings(url))
        return bool(found) or self.blocks_domain(url)

    def measures(self, url: str) -> dict[str, float]:
        """Both measures of a page.

        >>> Blocklist({"example.org"}, ()).measures("http://b.org")
        {'domain_blocked': 0.0, 'url_blocked': 0.0}
        """
        return {
            "domain_blocked": float(self.blocks_domain(url)),
            "url_blocked": float(self.blocks_page(url)),
        }


def host_of(url: str) -> str:
    """The host of an address, in lower case and ASCII; empty when it has none.

    >>> (
    ...     host_of("HTTP://User@WWW.Bücher.example:80/x"),
    ...     host_of("example.org/x"),
    ...     host_of("//"),
    ...     host_of("http://1.2.3.4."),
    ... )
    ('www.xn--bcher-kva.example', 'example.org', '', '1.2.3.4')
    """
    plain = _PLAIN_HOST.match(url)  # parsing takes four times as long
    return plain[1] if plain else _host(_parsed(url))


def _host(url: "can_ada.URL | None") -> str:
    return url.hostname.rstrip(".") if url else ""


def registered_domain(host: str) -> str:
    """The registered domain of a host; itself when it is an IP address or has no public suffix.

    >>> [
    ...     registered_domain(host)
    ...     for host in ("www.example.co.uk", "co.uk", "a.me.github.io", "1.2.3.4", "")
    ... ]
    ['example.co.uk', 'co.uk', 'me.github.io', '1.2.3.4', '']
    """
    if not host or _IP.fullmatch(host):
        return host
    return _suffixes().privatesuffix(host) or host


@functools.lru_cache(maxsize=1 << 14)
def domains_above(host: str) -> tuple[str, ...]:
    """A host without ``www.`` and its parent domains, up to the registered one; empty for no host.

    >>> domains_above("www.example.org"), domains_above("")
    (('example.org',), ())
    """
    if not host:
        return ()
    host = host.removeprefix("www.")
    last, found = registered_domain(host), [host]
    while host != last and "." in host:
        host = host.split(".", 1)[1]
        found.append(host)
    return tuple(found)


def address_key(url: str) -> str:
    """Host, path and query of an address as browsers read it: without scheme, ``www.``, fragment
    and a slash at the end.

    A value that is not an address is its own key.

    >>> (
    ...     address_key("HTTP://www.Example.org:80/a/../b/?q=1#top"),
    ...     address_key("https://example.org/b?q=1"),
    ...     address_key("//"),
    ... )
    ('example.org/b?q=1', 'example.org/b?q=1', '//')
    """
    return _key(url, _parsed(url))


def _key(url: str, found: "can_ada.URL | None") -> str:
    if found is None:
        return url
    port = f":{found.port}" if found.port else ""
    return f"{_bare_host(found)}{port}{found.pathname.rstrip('/')}{found.search}"


def is_public_suffix(host: str) -> bool:
    """Whether a host is one that others register names below.

    >>> [is_public_suffix(host) for host in ("co.uk", "example.co.uk", "1.2.3.4")]
    [True, False, False]
    """
    return not _IP.fullmatch(host) and _suffixes().privatesuffix(host) is None


def _parsed(url: str) -> "can_ada.URL | None":
    address = url[:MAX_ADDRESS_CHARS].strip()
    if not address.isascii():
        address = address.encode("utf-8", "replace").decode("utf-8")
    for tried in (
        address,
        *([] if "://" in address else [f"http://{address}"]),
    ):  # else http is the host of http://http://
        try:
            found = can_ada.parse(tried)
        except ValueError:
            continue
        return found if found.hostname else None
    return None


def _bare_host(url: "can_ada.URL") -> str:
    return str(url.hostname).rstrip(".").removeprefix("www.")


def _beginnings(url: str) -> Iterator[str]:
    """``host/a/b``, ``host/a``, ``host``."""
    found = _parsed(url)
    if found is None:
        return
    address = _bare_host(found) + found.pathname.rstrip("/")
    while True:
        yield address
        if "/" not in address:
            return
        address = address.rpartition("/")[0].rstrip("/")


@functools.cache
def _suffixes() -> PublicSuffixList:
    return PublicSuffixList()


Kind = Literal["document", "url", "domain", "digest", "passage"]
KINDS: tuple[Kind, ...] = ("document", "url", "domain", "digest")
"""Those that documents are found by; a passage is sought in texts."""


def normal(kind: Kind, value: str) -> str:
    """The normal form of a value, by which it is looked up.

    >>> (
    ...     normal("domain", "WWW.Example.org"),
    ...     normal("url", "http://example.org/a#b"),
    ...     normal("digest", "sha1:ABC"),
    ... )
    ('example.org', 'example.org/a', 'sha1:ABC')
    """
    if kind == "url":
        return address_key(value)
    if kind == "passage":
        return " ".join(value.split())
    return host_of(value).removeprefix("www.") if kind == "domain" else value


def keys_of(kind: Kind, values: Iterable[str]) -> UInt64s:
    """Keys of `normal` values; uint64, one per value, in their order."""
    return keyed_u64(f"look up by {kind}", seed=0, keys=values)


def values_of(kind: Kind, document: Mapping[str, str]) -> tuple[str, ...]:
    """The normal values by which a document is found; ``document`` has ``id``, ``url``, ``digest``
    and perhaps ``text_digest``.

    >>> values_of("domain", {"url": "https://a.example.org/x"})
    ('a.example.org', 'example.org')
    >>> values_of("digest", {"digest": "sha1:ABC", "text_digest": "sha256:00"})
    ('sha1:ABC', 'sha256:00')
    """
    if kind == "document":
        return (document["id"],)
    if kind == "url":
        return (address_key(document["url"]),)
    if kind == "domain":
        return domains_above(host_of(document["url"]))
    if kind == "passage":
        return ()
    return tuple(value for name in ("digest", "text_digest") if (value := document.get(name, "")))


KeysOfPart = tuple[UInt64s, UInt32s, int]
"""Keys of a part of some documents, the place in the part of each one's document, and how many
documents the part has.
"""


def keys_of_columns(columns: Mapping[str, Sequence[str]]) -> KeysOfPart:
    """The keys of a part of some documents, for `merged_keys`; each address is parsed once, and
    keys are of the `values_of` each document.
    """
    numbers = np.arange(len(columns["id"]), dtype=np.uint32)
    parsed = list(map(_parsed, columns["url"]))
    domains = [domains_above(_host(found)) for found in parsed]
    keys = [
        keys_of("document", columns["id"]),
        keys_of("url", map(_key, columns["url"], parsed)),
        keys_of("domain", itertools.chain.from_iterable(domains)),
    ]
    places = [numbers, numbers, np.repeat(numbers, np.fromiter(map(len, domains), np.int64))]
    for digests in (columns[name] for name in ("digest", "text_digest") if name in columns):
        keys.append(keys_of("digest", filter(None, digests)))
        places.append(numbers[np.fromiter(map(bool, digests), np.bool_, len(digests))])
    return np.concatenate(keys), np.concatenate(places), len(numbers)


def merged_keys(parts: Iterable[KeysOfPart]) -> tuple[UInt64s, UInt32s]:
    """The keys of all documents of some parts.

    Returns:
        Keys, uint64, and places of documents, uint32; of one length, ascending by key, then by
        document, and no pair of them twice.
    """
    keys, places, n_before = [np.empty(0, np.uint64)], [np.empty(0, np.uint32)], 0
    for of_part, places_in_part, n_documents in parts:
        keys.append(of_part)
        places.append(places_in_part + np.uint32(n_before))
        n_before += n_documents
    return _ascending(np.concatenate(keys), np.concatenate(places))


def _ascending(keys: UInt64s, places: UInt32s) -> tuple[UInt64s, UInt32s]:
    """Pairs of key and place by both, each once."""
    order = np.lexsort((places, keys))
    keys, places = keys[order], places[order]
    first = np.ones(len(keys), np.bool_)
    first[1:] = (keys[1:] != keys[:-1]) | (places[1:] != places[:-1])
    return keys[first], places[first]
