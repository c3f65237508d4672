"""What lies in a lake: the lake itself, a stage, a partition, a version; each by its receipts.

The cheap check compares names and sizes with the receipt; the thorough one reads every byte again.
"""

import glob
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from lc_assets.cli.inspect.artefact import Artefact, Lines, Table
from lc_assets.cli.printing import lasted, shown, sized
from lc_assets.counts import Counts
from lc_assets.errors import LcError
from lc_assets.lake.digests import short
from lc_assets.lake.lake import Lake
from lc_assets.lake.located import Located
from lc_assets.lake.partition import Partition
from lc_assets.lake.versions import Published
from lc_assets.stages.catalogue import STAGES

RULES = "rules"
"""The setting that is better shown as a table."""


def show_located(found: Located, verify: bool) -> Artefact:
    """A lake, a stage, a partition or a version, wherever it lies."""
    if not found.stage:
        return show_lake(found.lake, verify)
    if not found.key:
        return show_stage(found.lake, found.stage, verify)
    if not found.version:
        return _published(found.partition.require(), verify, kind="partition, published version")
    return show_version(found, verify)


def show_lake(lake: Lake, verify: bool) -> Artefact:
    """A lake: a line per published partition, in the chain's order."""
    lines: Lines = []
    damage: list[str] = []
    for step in STAGES:
        for key in lake.keys(step.name):
            line, wrong = _partition_line(lake.partition(step.name, key), verify)
            lines.append(line)
            damage += wrong
    title = f"{len(lines):,} published partitions"
    return Artefact(
        kind="lake", tables=[_partitions(title, lines)], damage=damage, checked=_checked(verify)
    )


def show_stage(lake: Lake, stage: str, verify: bool) -> Artefact:
    """One stage: a line per published partition."""
    found = [_partition_line(lake.partition(stage, key), verify) for key in lake.keys(stage)]
    table = _partitions(f"{len(found):,} published partitions", [line for line, _ in found])
    return Artefact(
        kind=f"stage {stage}",
        tables=[table],
        damage=[said for _, wrong in found for said in wrong],
        checked=_checked(verify),
    )


def show_version(found: Located, verify: bool) -> Artefact:
    """One version, published now or not."""
    pointer = found.partition.pointer()
    kind = (
        "version, published now"
        if pointer is not None and pointer.version == found.version
        else "version, not published now"
    )
    return _published(found.published, verify, kind=kind)


def copy_of(found: Located, *, verify: bool) -> Path:
    """What lies within a version in a bucket, copied to this machine; of an array's chunks none
    that are not to be read.
    """
    name, prefix = (
        glob.escape(said)
        for said in (found.within, found.within.removesuffix(".bin").removesuffix(".idx"))
    )
    inside = ["*"] if verify else ["*.json", ".z*"]
    return (
        found.published.only(
            name, f"{prefix}.bin", f"{prefix}.idx", *(f"{name}/{of}" for of in inside)
        )
        / found.within
    )


def as_in_bucket(artefact: Artefact, found: Located) -> Artefact:
    """What was said of a copy without its chunks, with the size and the damage of what the bucket
    holds.
    """
    published = found.published
    n_bytes = sum(
        fact.n_bytes for fact in published.receipt.files if fact.path.startswith(found.within)
    )
    facts = [(name, sized(n_bytes) if name == "size" else value) for name, value in artefact.facts]
    damage = [said for said in published.differences() if said.startswith(found.within)]
    return replace(artefact, facts=facts, damage=damage, checked=_checked(verify=False))


def damage_of(published: Published, *, verify: bool) -> list[str]:
    """How a version's files differ from its receipt: by name and size, or by every byte."""
    return published.damage() if verify else published.differences()


def _partitions(title: str, lines: Lines) -> Table:
    return Table(
        title=title,
        columns=("partition", "version", "in", "kept", "dropped", "size", "took", "state"),
        lines=lines,
    )


def _partition_line(partition: Partition, verify: bool) -> tuple[tuple[Any, ...], list[str]]:
    try:
        published = partition.require()
    except LcError as error:
        return (partition.name, None, None, None, None, None, None, "unreadable"), [
            f"{partition.name}: {error}"
        ]
    receipt, counts = published.receipt, published.receipt.counts
    damage = [
        f"{partition.name}/{published.version}/{said}"
        for said in damage_of(published, verify=verify)
    ]
    took = lasted(receipt.measured.get("seconds", 0.0))
    numbers = (counts.seen, counts.kept, counts.seen - counts.kept)
    return (
        partition.name,
        published.version,
        *numbers,
        sized(receipt.n_bytes),
        took,
        "damaged" if damage else "whole",
    ), damage


def _published(published: Published, verify: bool, *, kind: str) -> Artefact:
    receipt, fingerprint, counts = (
        published.receipt,
        published.receipt.fingerprint,
        published.receipt.counts,
    )
    lines = [
        ("what", published.name),
        ("folder", published.where),
        ("data digest", receipt.digest),
        ("version", f"{fingerprint.version}, code version {fingerprint.code_version}"),
        ("files", f"{len(receipt.files):,}, {sized(receipt.n_bytes)}"),
        (
            "numbers",
            f"{counts.seen:,} in = {counts.kept:,} kept + {counts.seen - counts.kept:,} dropped",
        ),
        *counts.extra.items(),
        *((f"from {name}", short(digest)) for name, digest in fingerprint.inputs.items()),
        *(
            (f"setting {name}", _compact(value))
            for name, value in fingerprint.params.items()
            if name != RULES
        ),
        *((f"drawn: {name}", how) for name, how in receipt.randomness.items()),
        (
            "libraries",
            ", ".join(f"{name} {version}" for name, version in receipt.libraries.items()),
        ),
        (
            "measured",
            ", ".join(f"{name} {shown(value)}" for name, value in receipt.measured.items()),
        ),
    ]
    damage = damage_of(published, verify=verify)
    tables = [
        shown for shown in (_rules(fingerprint.params.get(RULES)), _dropped(counts)) if shown.lines
    ]
    return Artefact(kind=kind, facts=lines, tables=tables, damage=damage, checked=_checked(verify))


def _rules(rules: Any) -> Table:
    """The rules that a stage judged by, as its settings state them."""
    columns = ("name", "signal", "at_least", "at_most", "source")
    lines: Lines = (
        [tuple(rule.get(column) for column in columns) for rule in rules["rules"]]
        if isinstance(rules, dict)
        else []
    )
    return Table(title="rules", columns=columns, lines=lines)


def _dropped(counts: Counts) -> Table:
    most_first = sorted(counts.dropped.items(), key=lambda item: -item[1])
    lines: Lines = [(name, count, counts.failed_rules.get(name)) for name, count in most_first]
    return Table(title="dropped", columns=("reason", "first reason of", "found in"), lines=lines)


def _compact(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _checked(verify: bool) -> str:
    return (
        "every byte read again and compared with the receipt"
        if verify
        else "names and sizes compared with the receipt"
    )
