"""What ``lc show`` prints about a lake, a stage, a partition or a version, from receipts; and about
any other path.

The cheap check compares names and sizes with the receipt; the thorough one reads every byte again.
"""

import glob
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from lc_assets.cli.inspect.files import Artefact, Lines, recognized
from lc_assets.cli.printing import lasted, shown, sized
from lc_assets.errors import BadInput, LcError
from lc_assets.lake.bucket import is_in_bucket
from lc_assets.lake.digests import short
from lc_assets.lake.lake import Lake
from lc_assets.lake.located import Located, located
from lc_assets.lake.partition import Partition
from lc_assets.lake.versions import Published
from lc_assets.stages.catalogue import STAGES
from lc_assets.stages.mixes.launching import shown_launch

RULES = "rules"
"""The setting that is shown as a table."""
CHECKED = {
    True: "every byte read again and compared with the receipt",
    False: "names and sizes compared with the receipt",
}


def recognize(where: str, *, verify: bool = False) -> Artefact:
    """Describe what is at a path, or at a URL in a bucket that contains a lake.

    Args:
        where: a lake, a stage, a partition, a version, an array, a table, a Megatron data set
            (``.bin``, ``.idx`` or their prefix), or an upstream.
        verify: whether to read every byte.

    Raises:
        BadInput: if nothing is there, or nothing known.
        CorruptFile: if it cannot be read; says where.
    """
    found = located(where)
    if found is None and is_in_bucket(where):
        raise BadInput(f"{where}: nothing of a lake is there, published or finished")
    if found is None:
        return _recognize_files(Path(where), verify)
    if found.within:
        artefact = _recognize_files(copy_of(found, verify=verify), verify)
        return artefact if verify else _as_in_bucket(artefact, found)
    if not found.key:
        stages = [found.stage] if found.stage else [stage.name for stage in STAGES]
        partitions = [
            found.lake.partition(name, key) for name in stages for key in found.lake.keys(name)
        ]
        return _partitions(f"stage {found.stage}" if found.stage else "lake", partitions, verify)
    if not found.version:
        current = found.partition.require()
        return _version("partition, published version", found.lake, current, verify)
    pointer = found.partition.pointer()
    is_current = pointer is not None and pointer.version == found.version
    kind = f"version, {'published now' if is_current else 'not published now'}"
    return _version(kind, found.lake, found.published, verify)


def _recognize_files(path: Path, verify: bool) -> Artefact:
    found = recognized(path, verify)
    if found is not None:
        return found
    if not path.exists():
        raise BadInput(f"{path}: nothing is there")
    raise BadInput(
        f"{path}: no artefact that is known; expected a lake or a folder in it, a .zarr, .bin, "
        ".idx, .npy or .parquet, or an upstream"
    )


def copy_of(found: Located, *, verify: bool) -> Path:
    """What is within a version in a bucket, copied to this machine; the chunks of an array only to
    verify them.
    """
    name, prefix = map(
        glob.escape, (found.within, found.within.removesuffix(".bin").removesuffix(".idx"))
    )
    inside = ["*"] if verify else ["*.json", ".z*"]
    patterns = [name, f"{prefix}.bin*", f"{prefix}.idx", *(f"{name}/{of}" for of in inside)]
    return found.published.only(*patterns) / found.within


def _as_in_bucket(artefact: Artefact, found: Located) -> Artefact:
    """An artefact with the size and the damage of the bucket's files, not of the partial copy."""
    published, ends = found.published, ("/", ".", ":")  # not a file whose name only begins so
    own = tuple(f"{found.within}{end}" for end in ends)
    files = published.receipt.files
    n_bytes = sum(fact.n_bytes for fact in files if f"{fact.path}:".startswith(own))
    return replace(
        artefact,
        facts=[(name, sized(n_bytes) if name == "size" else of) for name, of in artefact.facts],
        damage=[line for line in published.differences() if line.startswith(own)],
        checked=CHECKED[False],
    )


def _damage_of(published: Published, verify: bool) -> list[str]:
    return published.damage() if verify else published.differences()


def _partitions(kind: str, partitions: list[Partition], verify: bool) -> Artefact:
    """A line per published partition."""
    lines: Lines = []
    damage: list[str] = []
    for partition in partitions:
        try:
            published = partition.require()
        except LcError as error:
            lines.append((partition.name, *[None] * 6, "unreadable"))
            damage.append(f"{partition.name}: {error}")
            continue
        receipt, counts = published.receipt, published.counts
        name = f"{partition.name}/{published.version}"
        wrong = [f"{name}/{sentence}" for sentence in _damage_of(published, verify)]
        damage += wrong
        lines.append(
            (
                partition.name,
                published.version,
                *(counts.seen, counts.kept, counts.seen - counts.kept),
                sized(receipt.n_bytes),
                lasted(receipt.measured.get("seconds", 0.0)),
                "damaged" if wrong else "whole",
            )
        )
    columns = ("partition", "version", "in", "kept", "dropped", "size", "took", "state")
    title = f"{len(lines):,} published partitions"
    return Artefact(
        kind=kind, tables=[(title, columns, lines)], damage=damage, checked=CHECKED[verify]
    )


def _version(kind: str, lake: Lake, published: Published, verify: bool) -> Artefact:
    receipt, fingerprint = published.receipt, published.receipt.fingerprint
    counts = receipt.counts
    dropped = counts.seen - counts.kept
    settings = {name: of for name, of in fingerprint.params.items() if name != RULES}
    facts = [
        ("what", published.name),
        ("folder", published.where),
        ("data digest", receipt.digest),
        ("version", f"{fingerprint.version}, code version {fingerprint.code_version}"),
        ("files", f"{len(receipt.files):,}, {sized(receipt.n_bytes)}"),
        ("numbers", f"{counts.seen:,} in = {counts.kept:,} kept + {dropped:,} dropped"),
        *counts.extra.items(),
        *((f"from {name}", short(digest)) for name, digest in fingerprint.inputs.items()),
        *((f"setting {name}", _compact(of)) for name, of in settings.items()),
        *((f"drawn: {name}", how) for name, how in receipt.randomness.items()),
        ("libraries", ", ".join(map(" ".join, receipt.libraries.items()))),
        ("measured", ", ".join(f"{name} {shown(of)}" for name, of in receipt.measured.items())),
        *zip(("train on it", "or without a cache"), shown_launch(lake, published), strict=False),
    ]
    return Artefact(
        kind=kind,
        facts=facts,
        tables=list(_tables_of(published)),
        damage=_damage_of(published, verify),
        checked=CHECKED[verify],
    )


def _tables_of(published: Published) -> Iterator[tuple[str, tuple[str, ...], Lines]]:
    """The rules of a filtering stage, from its settings, and the numbers of documents dropped."""
    rules, counts = published.params.get(RULES), published.counts
    if isinstance(rules, dict) and rules["rules"]:
        columns = ("name", "signal", "at_least", "at_most", "source")
        yield RULES, columns, [tuple(rule.get(of) for of in columns) for rule in rules["rules"]]
    if counts.dropped:
        most_first = sorted(counts.dropped.items(), key=lambda item: -item[1])
        lines: Lines = [(name, n, counts.failed_rules.get(name)) for name, n in most_first]
        yield "dropped", ("reason", "first reason of", "found in"), lines


def _compact(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
