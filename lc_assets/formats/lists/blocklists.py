"""Lists of unwanted domains and addresses.

==============================  ====================================================================
source                          is
==============================  ====================================================================
a folder with folders           UT1's layout: ``{category}/domains`` and ``{category}/urls``, an
                                entry per line
a text file                     an entry per line; one with a path (``example.org/page``) is an
                                address, any other a domain; the category is the file's name without
                                its end
==============================  ====================================================================

UTF-8, or ``.gz`` of it. Blank lines and ``#`` comments are skipped. An entry in two categories
counts for the first by name. A million domains take less than 200 MB.
Source: dsi.ut-capitole.fr/blacklists.
"""

import hashlib
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Final

from lc_assets.errors import BadInput
from lc_assets.formats.corpora.containers import plain_bytes
from lc_assets.text.links.addresses import Blocklist, host_of

MAX_ENTRY_BYTES: Final = 8192
PARTS: Final = ("domains", "urls")


def read_blocklist(source: Path, categories: Collection[str] | None = None) -> Blocklist:
    """Read a list.

    Args:
        source: as above.
        categories: of a folder, which to read; all of them by default.

    Raises:
        BadInput: when the source does not exist, has no such category or no entry, or is not UTF-8;
            names file and line.
        CorruptFile: when a compressed file is damaged.
    """
    files = _files(source, categories)
    domains: dict[str, str] = {}
    urls: dict[str, str] = {}
    digest = hashlib.sha256()
    for category, path in files:
        for entry in _entries(path, digest):
            address = entry.partition("://")[2] or entry
            host, _, rest = address.partition("/")
            name = _normal(host)
            if not name:
                continue
            if rest.strip("/"):
                urls.setdefault(f"{name}/{rest.rstrip('/')}", category)
            else:
                domains.setdefault(name, category)
    if not domains and not urls:
        raise BadInput(
            f"{source}: holds no domain and no address; give a text file of them, or a folder of "
            "category/domains"
        )
    return Blocklist(domains, urls, digest.hexdigest())


def _files(source: Path, categories: Collection[str] | None) -> list[tuple[str, Path]]:
    if source.is_file():
        return [(source.name.split(".")[0], source)]
    if not source.is_dir():
        raise BadInput(
            f"{source}: does not exist; give a text file of domains, or a folder of "
            "category/domains"
        )
    found = sorted(
        (path.parent.name, path)
        for path in source.glob("*/*")
        if path.name.removesuffix(".gz") in PARTS and path.is_file()
    )
    missing = sorted(set(categories or ()) - {category for category, _ in found})
    if missing:
        raise BadInput(
            f"{source}: has no category {', '.join(missing)}; it has "
            f"{', '.join(sorted({name for name, _ in found}))[:200]}"
        )
    return [
        (category, path) for category, path in found if categories is None or category in categories
    ]


def _entries(path: Path, digest: "hashlib._Hash") -> Iterator[str]:
    with plain_bytes(path) as lines:
        number = 0
        while line := lines.readline(MAX_ENTRY_BYTES + 1):
            number += 1
            digest.update(line)
            if len(line) > MAX_ENTRY_BYTES:
                raise BadInput(
                    f"{path}, line {number}: is longer than {MAX_ENTRY_BYTES:,} bytes; is this a "
                    "list of domains?"
                )
            try:
                entry = line.decode("utf-8-sig" if number == 1 else "utf-8").strip()
            except UnicodeDecodeError as error:
                raise BadInput(
                    f"{path}, line {number}: is not UTF-8 ({error}); convert it (iconv -f LATIN1 "
                    "-t UTF-8)"
                ) from error
            if "\0" in entry:
                raise BadInput(
                    f"{path}, line {number}: holds a NUL; is it UTF-16? convert it to UTF-8"
                )
            if entry and not entry.startswith("#"):
                yield entry


def _normal(host: str) -> str:
    """A host as `host_of` returns it; the common case needs no parser."""
    plain = (
        host.isascii()
        and host.replace(".", "").replace("-", "").isalnum()
        and host[-1] != "."
        and not host[-1].isdigit()
    )
    return (host.lower() if plain else host_of(host)).removeprefix("www.")
