"""Receipts: what a version contains, what determined its bytes, and how two of them differ.

A receipt is JSON. Its digests detect changes of the version's files, and its *checksum*, the digest
of its own content, changes of the receipt.
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from lc_assets.counts import Counts
from lc_assets.errors import UNDECODABLE, CorruptFile, Mismatch
from lc_assets.lake.digests import (
    FileFact,
    changed_keys,
    digest_of,
    digest_of_facts,
    fact_of,
    short,
)

T = TypeVar("T")
Checked = TypeVar("Checked", bound=Struct)

RECEIPT = "receipt.json"
SCRATCH = ".scratch"
"""Folder in a version while it is built; part of no digest (`lc_assets.lake.staging`)."""
AHEAD = "ahead"
"""Folder in a partition with shards of a version to come (`lc_assets.builds.ahead`)."""
NOT_COUNTED = (RECEIPT, SCRATCH)
SHA256_DIGITS = 64
SHOWN_CHARS = 80
"""Maximum length of a setting's value in the description of a difference."""


class Fingerprint(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that determines a version's bytes.

    Attributes:
        stage: the stage's folder in the lake, such as ``filtered``.
        key: the partition, such as ``2023-06``, or ``all``.
        code_version: the stage's; increased by hand when its output changes.
        params: the stage's settings, as JSON-like values.
        inputs: digest of each input by name, such as ``raw_snapshot/2023-06``.
    """

    stage: str
    key: str
    code_version: str
    params: dict[str, Any]
    inputs: dict[str, str]

    @property
    def version(self) -> str:
        """Name of the version's folder."""
        return short(digest_of(self))

    def differences(self, newer: "Fingerprint") -> list[str]:
        """Describe the changes from this fingerprint to ``newer``; empty when there are none."""
        words = []
        if self.code_version != newer.code_version:
            words.append(f"code version {self.code_version} → {newer.code_version}")
        old, new = flat_settings(self.params), flat_settings(newer.params)
        words += [
            f"{name} {shown_setting(old, name)} → {shown_setting(new, name)}"
            for name in changed_keys(old, new)
        ]
        words += (
            ["the settings are in another order"]
            if old == new and self.params != newer.params
            else []
        )
        words += [
            f"input {name} {_verb(self.inputs, newer.inputs, name)}"
            for name in changed_keys(self.inputs, newer.inputs)
        ]
        return words


class Receipt(msgspec.Struct, frozen=True, kw_only=True):
    """What a published version contains, and how it was made.

    Attributes:
        fingerprint: what determined the bytes.
        digest: of ``files``; the asset's data version.
        files: every file of the version except this receipt.
        counts: numbers of items read, kept and dropped.
        randomness: what was drawn, by which algorithm and seed.
        libraries: versions of the libraries that shaped the bytes.
        measured: seconds, CPU seconds, peak memory; part of no digest but the checksum.
        checksum: of the file, see `with_checksum`.
    """

    fingerprint: Fingerprint
    digest: str
    files: list[FileFact]
    counts: Counts
    randomness: dict[str, str] = {}
    libraries: dict[str, str] = {}
    measured: dict[str, float] = {}
    checksum: str = ""

    @property
    def n_bytes(self) -> int:
        """Size of the version's files together."""
        return sum(fact.n_bytes for fact in self.files)


def receipt_of(
    folder: Path,
    fingerprint: Fingerprint,
    counts: Counts,
    *,
    files: list[FileFact] | None = None,
    **more: Any,
) -> Receipt:
    """Make the receipt of the files in ``folder``, or of ``files`` when they are known."""
    files = version_files(folder) if files is None else files
    return with_checksum(
        Receipt(
            fingerprint=fingerprint,
            digest=digest_of_facts(files),
            files=files,
            counts=counts,
            **more,
        )
    )


def version_files(folder: Path, known: Mapping[str, FileFact] | None = None) -> list[FileFact]:
    """Facts of every file of a version, sorted by path; those that are ``known`` by path with the
    same size are not read again.
    """
    paths = [path.relative_to(folder) for path in folder.rglob("*") if path.is_file()]
    names = [path.as_posix() for path in paths if path.parts[0] not in NOT_COUNTED]
    return sorted(fact_of(folder, name, (known or {}).get(name)) for name in names)


def encode_json(value: Any) -> bytes:
    """JSON, indented, sorted, with a final newline."""
    return msgspec.json.format(msgspec.json.encode(value, order="deterministic"), indent=2) + b"\n"


def with_checksum(value: Checked) -> Checked:
    """The same value with the SHA-256 of its file, in which the ``checksum`` is empty, as
    ``checksum``, its last field.
    """
    bare = msgspec.structs.replace(value, checksum="")
    found = hashlib.sha256(encode_json(bare)).hexdigest()
    return msgspec.structs.replace(bare, checksum=found)


def has_valid_checksum(content: bytes) -> bool:
    """Whether a file's bytes are exactly those that were written, according to the checksum in
    them; files of older releases have the digest of their other fields instead.
    """
    head, name, rest = content.rpartition(b'"checksum": "')
    found = hashlib.sha256(head + name + rest[SHA256_DIGITS:]).hexdigest()
    if found.encode() == rest[:SHA256_DIGITS]:
        return True
    fields = decode_bytes(content, dict[str, Any], "")
    as_written = msgspec.json.format(msgspec.json.encode(fields), indent=2) + b"\n"
    return content == as_written and fields.get("checksum") == digest_of(fields | {"checksum": ""})


def decode_json(path: Path, kind: type[T]) -> T:
    """Read a JSON file as a value of type ``kind``.

    Raises:
        CorruptFile: when it is missing, is not JSON or lacks a field.
    """
    try:
        return decode_bytes(path.read_bytes(), kind, path)
    except FileNotFoundError as error:
        raise CorruptFile(f"{path}: is missing") from error


def decode_bytes(content: bytes, kind: type[T], where: Path | str, *, called: str = "") -> T:
    """Read JSON as a value of type ``kind``, which messages call ``called``.

    Raises:
        CorruptFile: when it is not JSON, lacks a field or has counts that do not add up; names
            ``where``.
    """
    try:
        return msgspec.json.decode(content, type=kind)
    except (*UNDECODABLE, Mismatch) as error:
        raise CorruptFile(
            f"{where}: not a readable {called or kind.__name__.lower()}: {error}"
        ) from error


def flat_settings(value: Mapping[str, Any], stem: str = "") -> dict[str, Any]:
    """Settings on one level; items of a list that have names, such as rules, by their names."""
    flat: dict[str, Any] = {}
    for name, item in value.items():
        inner = _by_name(item)
        flat |= {f"{stem}{name}": item} if inner is None else flat_settings(inner, f"{stem}{name}.")
    return flat


def _by_name(item: Any) -> Mapping[str, Any] | None:
    if isinstance(item, Mapping):
        return item
    if (
        not isinstance(item, list)
        or not item
        or not all(isinstance(part, Mapping) and "name" in part for part in item)
    ):
        return None
    named = {str(part["name"]): part for part in item}
    return named if len(named) == len(item) else None


def shown_setting(flat: Mapping[str, Any], name: str) -> str:
    """A setting's value in the description of a difference, shortened."""
    if name not in flat:
        return "(not set)"
    words = repr(flat[name])
    return words if len(words) <= SHOWN_CHARS else f"{words[:SHOWN_CHARS]}…"


def _verb(old: Mapping[str, str], new: Mapping[str, str], name: str) -> str:
    if name not in old:
        return "is new"
    return "is gone" if name not in new else f"changed {short(old[name])} → {short(new[name])}"
