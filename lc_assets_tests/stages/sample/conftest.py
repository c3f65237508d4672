"""A tiny folder of books, and reading a sample back."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lc_assets.formats.redpajama.documents import DocumentRecord, decode_document
from lc_assets.formats.redpajama.lines import read_lines
from lc_assets.sources.redpajama_v2 import parse_listing, part_path
from lc_assets.vocabulary import DocumentId, Shard, parse_snapshot

MB = 1_000_000


def sentence(number: int) -> str:
    """A sentence like no other."""
    woods = ("alder", "birch", "cedar", "elm", "hazel", "maple", "oak", "willow")
    scattered = number * 2_654_435_761 % 8**7
    first, *rest = (woods[scattered // 8**place % 8] for place in range(7))
    return (
        f"The {first} by the {rest[0]} {rest[1]} had {rest[2]} {rest[3]} and a {rest[4]} "
        f"{rest[5]} door."
    )


@pytest.fixture
def books(tmp_path: Path) -> Path:
    """A folder of eleven texts, one of them long, some in a folder below."""
    folder = tmp_path / "books"
    for number in range(11):
        path = folder / ("below" if number % 3 else "") / f"book{number}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        n_lines = 320 if number == 0 else 5 + number
        lines = [
            f"Book {number}",
            "",
            *map(sentence, range(1000 * number, 1000 * number + n_lines)),
        ]
        path.write_text("\n".join(lines), encoding="utf-8")
    return folder


ReadBack = Callable[[Path], dict[DocumentId, DocumentRecord]]


@pytest.fixture
def read_back() -> ReadBack:
    """Reads every document that the listings of a sample lead to."""
    return lambda target: dict(_documents(target))


def _documents(target: Path) -> Iterator[tuple[DocumentId, DocumentRecord]]:
    for shard in listed_shards(target):
        with (target / part_path("documents", shard)).open("rb") as stream:
            for line, text in read_lines(stream, where=shard.tag, max_line_bytes=64 * MB):
                assert text is not None
                yield (
                    shard.document_id(line),
                    decode_document(text, where=f"{shard.tag}, line {line}"),
                )


def listed_shards(target: Path) -> list[Shard]:
    """Shards by the listings, from the newest snapshot to the oldest."""
    listings = sorted((target / "listings").iterdir(), key=lambda path: path.name[3:], reverse=True)
    snapshots = [
        parse_snapshot(path.name[3:].removesuffix("-head_middle.txt")) for path in listings
    ]
    found = [
        parse_listing(path.read_bytes(), snapshot=name, where=path.name)
        for path, name in zip(listings, snapshots, strict=True)
    ]
    return [shard for shards in found for shard in shards]
