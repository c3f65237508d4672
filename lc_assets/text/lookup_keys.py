"""Keys by which documents are looked up: 64 bits for an id, an address, a domain, a digest.

============  ==========================================================================================================
kind          value
============  ==========================================================================================================
``document``  its id
``url``       its address, as `lc_assets.text.addresses.address_key` reads it: scheme, ``www.`` and fragment are nothing
``domain``    its host, or a domain that the host lies below, down to the registered one
``digest``    of the page, as the crawl states it (``sha1:…``), or of the text (``sha256:…``)
============  ==========================================================================================================

A key is BLAKE2b of kind and value: of two values that differ, keys are equal with probability 2⁻⁶⁴,
so whoever looks something up by key compares the value before it is believed. Not here: files of
keys (`lc_assets.formats.key_index`).
"""

import functools
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from lc_assets.randomness import keyed_u64
from lc_assets.text.addresses import address_key, domains_above, domains_of, host_of, located

Kind = Literal["document", "url", "domain", "digest"]
KINDS: Final[tuple[Kind, ...]] = ("document", "url", "domain", "digest")


def normal(kind: Kind, value: str) -> str:
    """A value as it is looked up by.

    >>> normal("domain", "WWW.Example.org"), normal("url", "http://example.org/a#b"), normal("digest", "sha1:ABC")
    ('example.org', 'example.org/a', 'sha1:ABC')
    """
    if kind == "url":
        return address_key(value)
    return host_of(value).removeprefix("www.") if kind == "domain" else value


def keys_of(kind: Kind, values: Iterable[str]) -> NDArray[np.uint64]:
    """Keys of `normal` values; uint64, one per value, in their order."""
    return keyed_u64(f"look up by {kind}", seed=0, keys=values)


@functools.lru_cache(maxsize=256)
def sought(kind: Kind, value: str) -> tuple[str, int]:
    """A value as it is looked up by, and its key; remembered, because it is asked of many
    snapshots.

    >>> sought("domain", "Example.org") == ("example.org", int(keys_of("domain", ["example.org"])[0]))
    True
    """
    wanted = normal(kind, value)
    return wanted, int(keys_of(kind, [wanted])[0])


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
        return domains_of(document["url"])
    return tuple(value for name in ("digest", "text_digest") if (value := document.get(name, "")))


def keys_of_documents(
    columns: Mapping[str, Sequence[str]],
) -> tuple[NDArray[np.uint64], NDArray[np.uint32]]:
    """All keys of some documents, and which document each belongs to; ascending by key, then by
    document.

    Args:
        columns: ``id``, ``url``, ``digest`` and perhaps ``text_digest``, all of one length.

    Returns:
        Keys, uint64, and places of documents, uint32; of one length, and no pair of them twice.
    """
    return keys_of_parts([columns])


def keys_of_parts(
    parts: Iterable[Mapping[str, Sequence[str]]],
) -> tuple[NDArray[np.uint64], NDArray[np.uint32]]:
    """The same of documents that come in parts, one after another: of a part that has been passed
    only its keys stay in memory.
    """
    keys, places, n_before = [np.empty(0, np.uint64)], [np.empty(0, np.uint32)], 0
    for columns in parts:
        for found, whose in itertools.starmap(_keyed, _values(columns)):
            keys.append(found)
            places.append(whose + np.uint32(n_before))
        n_before += len(columns["id"])
    return _ascending(np.concatenate(keys), np.concatenate(places))


def _ascending(
    keys: NDArray[np.uint64], places: NDArray[np.uint32]
) -> tuple[NDArray[np.uint64], NDArray[np.uint32]]:
    """Pairs of key and place by both, each once."""
    order = np.lexsort((places, keys))
    keys, places = keys[order], places[order]
    first = np.ones(len(keys), np.bool_)
    first[1:] = (keys[1:] != keys[:-1]) | (places[1:] != places[:-1])
    return keys[first], places[first]


def _values(columns: Mapping[str, Sequence[str]]) -> Iterator[tuple[Kind, Sequence[Sequence[str]]]]:
    """The normal values of each document, by kind; an address is read once for all that is taken of
    it.
    """
    yield "document", [(name,) for name in columns["id"]]
    places = [located(url) for url in columns["url"]]
    yield "url", [(key,) for key, _ in places]
    domains = {host: domains_above(host) for host in {host for _, host in places}}
    yield "domain", [domains[host] for _, host in places]
    for name in ("digest", "text_digest"):
        yield "digest", [(value,) if value else () for value in columns.get(name, ())]


def _keyed(
    kind: Kind, values: Sequence[Sequence[str]]
) -> tuple[NDArray[np.uint64], NDArray[np.uint32]]:
    counts = np.fromiter(map(len, values), np.int64, len(values))
    return keys_of(kind, itertools.chain.from_iterable(values)), np.repeat(
        np.arange(len(values), dtype=np.uint32), counts
    )
