"""What lies in a RedPajama-V2 upstream: the whole folder, or one of its files."""

import re
from collections.abc import Iterator
from pathlib import Path

from lc_assets.build.settings.documents import FilteringSettings
from lc_assets.cli.inspect.artefact import Artefact, Lines, Table
from lc_assets.cli.printing import shortened, sized, visible
from lc_assets.errors import CorruptFile, LcError
from lc_assets.formats.redpajama import listings
from lc_assets.formats.redpajama.documents import decode_document
from lc_assets.formats.redpajama.lines import read_lines
from lc_assets.sources.redpajama_v2 import PARTS
from lc_assets.vocabulary import Shard, SnapshotId, parse_snapshot

LISTINGS = "listings"
DOCUMENTS_SUFFIX = ".json.gz"
SIGNALS_SUFFIX = ".signals.json.gz"

_LISTING = re.compile(r"([a-z]{2})-(.+)-(head_middle|tail)\.txt", re.ASCII)
_EXPECTED = ("documents", "signals", "duplicates")


def is_upstream(path: Path) -> bool:
    """Whether ``path`` contains listings."""
    return (path / LISTINGS).is_dir()


def is_documents(path: Path) -> bool:
    """Whether ``path`` is called a documents file."""
    return (
        path.is_file()
        and path.name.endswith(DOCUMENTS_SUFFIX)
        and not path.name.endswith(SIGNALS_SUFFIX)
    )


def is_json_lines(path: Path) -> bool:
    """Whether ``path`` is called a signals file."""
    return path.is_file() and path.name.endswith(SIGNALS_SUFFIX)


def is_listing(path: Path) -> bool:
    """Whether ``path`` is called a listing."""
    return path.is_file() and _LISTING.fullmatch(path.name) is not None


def listed_snapshots(root: Path) -> set[str]:
    """Snapshots that the listings of an upstream folder are about; none when it has no listings."""
    found = (_LISTING.fullmatch(path.name) for path in (root / LISTINGS).glob("*.txt"))
    return {name.group(2) for name in found if name is not None}


def show_upstream(path: Path, verify: bool) -> Artefact:
    """The listings, and which of the listed files are there."""
    lines: Lines = []
    damage: list[str] = []
    for listing in sorted((path / LISTINGS).glob("*-head_middle.txt")):
        shards = _listed(listing)
        found = {part: [path / PARTS[part](shard) for shard in shards] for part in _EXPECTED}
        missing = {part: sum(not file.is_file() for file in files) for part, files in found.items()}
        size = sum(
            file.stat().st_size for files in found.values() for file in files if file.is_file()
        )
        lines.append(
            (
                listing.name,
                len(shards),
                *(len(shards) - missing[part] for part in _EXPECTED),
                sized(size),
            )
        )
        damage += [
            f"{listing.name}: {n:,} {part} files are missing" for part, n in missing.items() if n
        ]
        damage += _undecodable(found["documents"]) if verify else []
    table = Table(title="listings", columns=("listing", "shards", *_EXPECTED, "size"), lines=lines)
    checked = "every listed documents file read to its end" if verify else "listed files looked for"
    return Artefact(kind="RedPajama-V2 upstream", tables=[table], damage=damage, checked=checked)


def show_listing(path: Path, _: bool) -> Artefact:
    """One listing."""
    shards = _listed(path)
    return Artefact(
        kind="RedPajama-V2 listing",
        facts=[("shards", len(shards)), ("first", shards[0].tag if shards else None)],
    )


def show_documents(path: Path, verify: bool) -> Artefact:
    """One shard's documents: its first record; with ``verify`` all of them."""
    number, line = next(_lines(path), (0, b""))
    first = decode_document(line or b"", where=f"{path} line {number}")
    facts = [
        ("size", sized(path.stat().st_size)),
        ("first document", first.url),
        ("crawled", f"{first.date_download}, {first.cc_segment}"),
        ("language, bucket", f"{first.language}, {first.bucket}, perplexity {first.perplexity:g}"),
        ("characters", len(first.raw_content)),
        ("begins", visible(shortened(first.raw_content, 120))),
    ]
    damage = _undecodable([path]) if verify else []
    n_lines = [("documents", sum(1 for _ in _lines(path)))] if verify and not damage else []
    checked = "every line decoded" if verify else "the first line decoded"
    return Artefact(
        kind="RedPajama-V2 documents of one shard",
        facts=n_lines + facts,
        damage=damage,
        checked=checked,
    )


def show_json_lines(path: Path, verify: bool) -> Artefact:
    """One shard's signals."""
    facts = [
        ("size", sized(path.stat().st_size)),
        ("first line", visible(shortened((next(_lines(path), (0, b""))[1] or b"").decode(), 240))),
    ]
    n_lines = [("documents", sum(1 for _ in _lines(path)))] if verify else []
    checked = "read to its end" if verify else "the first line read"
    return Artefact(
        kind="RedPajama-V2 quality signals of one shard", facts=n_lines + facts, checked=checked
    )


def _listed(path: Path) -> list[Shard]:
    named = _LISTING.fullmatch(path.name)
    snapshot: SnapshotId = parse_snapshot(named.group(2) if named else path.name)
    return listings.parse_listing(path.read_bytes(), snapshot=snapshot, where=str(path))


def _lines(path: Path) -> Iterator[tuple[int, bytes | None]]:
    with path.open("rb") as stream:
        yield from read_lines(
            stream, where=str(path), max_line_bytes=FilteringSettings().max_line_bytes
        )


def _undecodable(paths: list[Path]) -> list[str]:
    said = []
    for path in paths:
        try:
            said += [
                words for number, line in _lines(path) if (words := _complaint(path, number, line))
            ]
        except CorruptFile as error:
            said.append(str(error))
    return said


def _complaint(path: Path, number: int, line: bytes | None) -> str:
    if line is None:
        return f"{path} line {number}: longer than any document should be"
    try:
        decode_document(line, where=f"{path} line {number}")
    except LcError as error:
        return str(error)
    return ""
