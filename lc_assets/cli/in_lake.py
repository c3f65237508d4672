"""What lies in a lake: the lake itself, a stage, a partition, a version; each by its receipts.

The cheap check compares names and sizes with the receipt; the thorough one reads every byte again.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from lc_assets.cli.artefact import Artefact, Lines, Table
from lc_assets.cli.printing import lasted, shown, sized
from lc_assets.errors import LcError
from lc_assets.stages.catalogue import CHAIN
from lc_assets.storage.digests import short
from lc_assets.storage.lake import CURRENT, NOT_COUNTED, RECEIPT, LakeFolder, Place, Published
from lc_assets.tally import Tally

RULES = "rules"
"""The setting that is better shown as a table."""


def is_lake(path: Path) -> bool:
    """Whether a stage of the chain has a published partition below ``path``."""
    return any(_keys(path / step.name) for step in CHAIN)


def is_stage(path: Path) -> bool:
    """Whether a published partition lies below ``path``."""
    return bool(_keys(path))


def is_place(path: Path) -> bool:
    """Whether ``path`` is a partition's folder."""
    return (path / CURRENT).is_file()


def is_version(path: Path) -> bool:
    """Whether ``path`` is the folder of a finished version."""
    return (path / RECEIPT).is_file()


def damage_of(published: Published, *, verify: bool) -> list[str]:
    """How a version's files differ from its receipt: by name and size, or by every byte."""
    if verify:
        return published.damage()
    promised = {fact.path: fact.n_bytes for fact in published.receipt.files}
    found = {path.relative_to(published.folder).as_posix(): path.stat().st_size for path in _files(published.folder)}
    missing = [f"{path}: missing" for path in sorted(promised.keys() - found.keys())]
    extra = [f"{path}: not in the receipt" for path in sorted(found.keys() - promised.keys())]
    both = sorted(promised.keys() & found.keys())
    wrong = [f"{path}: {found[path]:,} bytes, receipt says {promised[path]:,}" for path in both if promised[path] != found[path]]
    return missing + extra + wrong


def _files(folder: Path) -> Iterator[Path]:
    for path in folder.rglob("*"):
        if path.is_file() and set(NOT_COUNTED).isdisjoint(path.relative_to(folder).parts):
            yield path


def show_lake(path: Path, verify: bool) -> Artefact:
    """A lake: a line per published partition, in the chain's order."""
    lake = LakeFolder(path)
    lines: Lines = []
    damage: list[str] = []
    for step in CHAIN:
        for key in _keys(path / step.name):
            line, wrong = _partition_line(lake.place(step.name, key), verify)
            lines.append(line)
            damage += wrong
    title = f"{len(lines):,} published partitions"
    return Artefact(kind="lake", tables=[_partitions(title, lines)], damage=damage, checked=_checked(verify))


def show_stage(path: Path, verify: bool) -> Artefact:
    """One stage: a line per published partition."""
    found = [_partition_line(Place(path / key), verify) for key in _keys(path)]
    table = _partitions(f"{len(found):,} published partitions", [line for line, _ in found])
    return Artefact(
        kind=f"stage {path.name}", tables=[table], damage=[said for _, wrong in found for said in wrong], checked=_checked(verify)
    )


def _keys(folder: Path) -> list[str]:
    return sorted(path.parent.name for path in folder.glob(f"*/{CURRENT}"))


def _partitions(title: str, lines: Lines) -> Table:
    return Table(title=title, columns=("partition", "version", "in", "kept", "dropped", "size", "took", "state"), lines=lines)


def _partition_line(place: Place, verify: bool) -> tuple[tuple[Any, ...], list[str]]:
    try:
        published = place.require()
    except LcError as error:
        return (place.name, None, None, None, None, None, None, "unreadable"), [f"{place.name}: {error}"]
    receipt, tally = published.receipt, published.receipt.tally
    damage = [f"{place.name}/{published.version}/{said}" for said in damage_of(published, verify=verify)]
    took = lasted(receipt.measured.get("seconds", 0.0))
    counts = (tally.seen, tally.kept, tally.seen - tally.kept)
    return (place.name, published.version, *counts, sized(receipt.n_bytes), took, "damaged" if damage else "whole"), damage


def show_place(path: Path, verify: bool) -> Artefact:
    """One partition: the version that is published."""
    return _published(Place(path).require(), verify, kind="partition, published version")


def show_version(path: Path, verify: bool) -> Artefact:
    """One version, published now or not."""
    published = Published.at(path)
    current = Place(path.parent).current() if (path.parent / CURRENT).is_file() else None
    kind = "version, published now" if current is not None and current.home == path else "version, not published now"
    return _published(published, verify, kind=kind)


def _published(published: Published, verify: bool, *, kind: str) -> Artefact:
    receipt, fingerprint, tally = published.receipt, published.receipt.fingerprint, published.receipt.tally
    lines = [
        ("what", published.name),
        ("folder", published.folder),
        ("data digest", receipt.digest),
        ("version", f"{fingerprint.version}, code version {fingerprint.code_version}"),
        ("files", f"{len(receipt.files):,}, {sized(receipt.n_bytes)}"),
        ("counts", f"{tally.seen:,} in = {tally.kept:,} kept + {tally.seen - tally.kept:,} dropped"),
        *tally.also.items(),
        *((f"from {name}", short(digest)) for name, digest in fingerprint.inputs.items()),
        *((f"setting {name}", _compact(value)) for name, value in fingerprint.params.items() if name != RULES),
        *((f"drawn: {name}", how) for name, how in receipt.randomness.items()),
        ("libraries", ", ".join(f"{name} {version}" for name, version in receipt.libraries.items())),
        ("measured", ", ".join(f"{name} {shown(value)}" for name, value in receipt.measured.items())),
    ]
    damage = damage_of(published, verify=verify)
    tables = [shown for shown in (_rules(fingerprint.params.get(RULES)), _dropped(tally)) if shown.lines]
    return Artefact(kind=kind, facts=lines, tables=tables, damage=damage, checked=_checked(verify))


def _rules(rules: Any) -> Table:
    """The rules that a stage judged by, as its settings state them."""
    columns = ("name", "signal", "at_least", "at_most", "source")
    lines: Lines = [tuple(rule.get(column) for column in columns) for rule in rules["rules"]] if isinstance(rules, dict) else []
    return Table(title="rules", columns=columns, lines=lines)


def _dropped(tally: Tally) -> Table:
    most_first = sorted(tally.dropped.items(), key=lambda item: -item[1])
    lines: Lines = [(name, count, tally.complaints.get(name)) for name, count in most_first]
    return Table(title="dropped", columns=("reason", "first reason of", "found in"), lines=lines)


def _compact(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _checked(verify: bool) -> str:
    return "every byte read again and compared with the receipt" if verify else "names and sizes compared with the receipt"
