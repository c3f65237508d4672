"""Ids of documents: ``{snapshot}/{shard}/{language}_{bucket}.json.gz/{line}``, and the number that
goes with each.
"""

import hashlib
import re
from collections.abc import Callable

from lc_assets.errors import CorruptFile
from lc_assets.vocabulary import Shard

_LINE = re.compile(r"0|[1-9]\d{0,9}", re.ASCII)


def line_reader(shard: Shard) -> Callable[[str, str], int]:
    """Make the function that takes ``(id, where)`` to the 0-based line within ``shard``.

    The function raises `CorruptFile` at an id of another shard, or none at all: the file is not
    this shard's.

    >>> line_reader(Shard.parse("2023-06/0000/en_head"))("2023-06/0000/en_head.json.gz/17", "here")
    17
    """
    prefix = f"{shard.tag}.json.gz/"

    def line_of(document_id: str, where: str) -> int:
        number = document_id.removeprefix(prefix)
        if number == document_id or not _LINE.fullmatch(number):
            raise CorruptFile(
                f"{where}: found id {document_id[:80]!r}, wanted ids such as {prefix}17; is this "
                "another shard's file?"
            )
        return int(number)

    return line_of


def id_int(document_id: str) -> int:
    """The first 8 bytes of the id's SHA-1, little-endian, unsigned.

    >>> id_int("2018-43/0000/en_head.json.gz/0")
    7972430436813205988
    """
    return int.from_bytes(
        hashlib.sha1(document_id.encode(), usedforsecurity=False).digest()[:8], "little"
    )
