"""The lake: one folder per stage, one place per partition, one immutable folder per version of it.

::

    {root}/{stage}/{key}/current.json             which version is published: the commit point
    {root}/{stage}/{key}/{version}/...            the files of one version
    {root}/{stage}/{key}/{version}/receipt.json   written when everything else is: the version is whole

A version's name is the digest of everything that determines its bytes: stage, key, code version, parameters
and the digests of its inputs. So a rerun of the same work finds its own half-finished folder and goes on
there, two runs of the same work write the same bytes to the same files, a reader that has a version open
keeps it while a newer one is published, and a path that names a version means the same bytes for ever
(docs/decisions/0001).

A receipt's ``digest`` covers the published files only: it is the asset's Dagster data version, and a rebuild
that gives the same bytes makes nothing downstream stale.
"""

import contextlib
import functools
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol, Self, TypeVar

import filelock
import msgspec

from lc_assets.errors import BadInput, Busy, CorruptFile, LcError, NotPublished
from lc_assets.publishing import disk_said_plainly, publish_bytes
from lc_assets.storage.digests import FileFact, changed_keys, digest_of, digest_of_facts, file_facts, short
from lc_assets.tally import Tally

T = TypeVar("T")

CURRENT = "current.json"
RECEIPT = "receipt.json"
WORKINGS = ".workings"
"""A folder beside a version's files that belongs to no digest (`lc_assets.storage.workings`)."""
NOT_COUNTED = (RECEIPT, WORKINGS)
SHOWN_CHARS = 80
"""Of a setting's value where a difference is said in words."""
GLOBAL = "all"
"""The key of stages that have no partitions."""


class Fingerprint(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that determines a version's bytes.

    Attributes:
        stage: the stage's folder in the lake, such as ``filtered``.
        key: the partition, such as ``2023-06``, or ``all``.
        code_version: the stage's own, raised by hand when its output changes.
        params: the stage's settings, as JSON-like values.
        inputs: digest of each input by name, such as ``raw/2023-06``.
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
        """Say in words what changed from this fingerprint to ``newer``; empty when nothing did."""
        words = []
        if self.code_version != newer.code_version:
            words.append(f"code version {self.code_version} → {newer.code_version}")
        old, new = _flat(self.params), _flat(newer.params)
        words += [f"{name} {_shown(old, name)} → {_shown(new, name)}" for name in changed_keys(old, new)]
        words += ["settings stand in another order"] if old == new and self.params != newer.params else []
        words += [f"input {name} {_verb(self.inputs, newer.inputs, name)}" for name in changed_keys(self.inputs, newer.inputs)]
        return words


class Receipt(msgspec.Struct, frozen=True, kw_only=True):
    """What a published version is, and how it came to be.

    Attributes:
        fingerprint: what determined the bytes.
        digest: of ``files``; the asset's data version.
        files: every file of the version but this receipt.
        tally: what was seen, kept and dropped.
        randomness: what was drawn, by which algorithm and seed.
        libraries: versions of the libraries that shaped the bytes.
        measured: seconds, CPU seconds, peak memory; not part of any digest.
    """

    fingerprint: Fingerprint
    digest: str
    files: list[FileFact]
    tally: Tally
    randomness: dict[str, str] = {}
    libraries: dict[str, str] = {}
    measured: dict[str, float] = {}

    @property
    def n_bytes(self) -> int:
        """Size of the version's files together."""
        return sum(fact.n_bytes for fact in self.files)


class Current(msgspec.Struct, frozen=True, kw_only=True):
    """Content of ``current.json``."""

    version: str
    digest: str


class Keeper(Protocol):
    """Who keeps the files of versions, where they lie somewhere else than in the version's folder."""

    def bring(self, home: Path, receipt: Receipt, patterns: Sequence[str]) -> None:
        """See to it that those files lie in ``home`` whose paths match one of the patterns."""
        ...

    def where(self, home: Path) -> str:
        """Where that is, for people."""
        ...

    def sizes(self, home: Path) -> dict[str, int]:
        """Size of every file that is kept, by its path."""
        ...

    def damage(self, home: Path, receipt: Receipt) -> list[str]:
        """How what is kept differs from the receipt, one sentence each, as far as copies in ``home`` cannot show."""
        ...


@dataclass(frozen=True, slots=True)
class _Folder:
    """A lake that is a folder has its files at hand."""

    def bring(self, home: Path, receipt: Receipt, patterns: Sequence[str]) -> None:
        """Nothing is to be done."""

    def where(self, home: Path) -> str:
        """The folder."""
        return str(home)

    def sizes(self, home: Path) -> dict[str, int]:
        """Size of every file there."""
        return {path.relative_to(home).as_posix(): path.stat().st_size for path in home.rglob("*") if path.is_file()}

    def damage(self, home: Path, receipt: Receipt) -> list[str]:  # noqa: ARG002 - there is nothing beside the folder
        """There is nothing else to look at."""
        return []


@dataclass(frozen=True, slots=True)
class Published:
    """One published version.

    Attributes:
        home: its folder; of a lake in a bucket it holds what has been fetched so far.
        receipt: what it is.
        keeper: of the files of a version that lies elsewhere.
    """

    home: Path
    receipt: Receipt
    keeper: Keeper = field(default=_Folder(), compare=False, repr=False)

    @property
    def folder(self) -> Path:
        """The version's folder with all of its files in it; those that lie in a bucket only are fetched first."""
        return self.only("*")

    def only(self, *patterns: str) -> Path:
        """The version's folder with those files in it whose relative paths match a pattern, as `fnmatch` has it."""
        self.keeper.bring(self.home, self.receipt, patterns)
        return self.home

    @property
    def where(self) -> str:
        """Where it lies, for people: its folder's path, or a bucket's URL."""
        return self.keeper.where(self.home)

    @property
    def version(self) -> str:
        """Name of the version."""
        return self.home.name

    @property
    def name(self) -> str:
        """``filtered/2023-06``: how the version is named as an input of others."""
        return f"{self.receipt.fingerprint.stage}/{self.receipt.fingerprint.key}"

    @property
    def digest(self) -> str:
        """The data version."""
        return self.receipt.digest

    @classmethod
    def at(cls, folder: Path) -> Self:
        """Open a version's folder.

        Raises:
            NotPublished: when it holds no receipt, so was never finished.
            CorruptFile: when the receipt cannot be read.
        """
        path = folder / RECEIPT
        _require_finished(path)
        return cls(folder, decode_json(path, Receipt))

    def differences(self) -> list[str]:
        """Say, one sentence each, by which names and sizes its files differ from the receipt; reads none of them."""
        promised = {fact.path: fact.n_bytes for fact in self.receipt.files}
        found = {path: n_bytes for path, n_bytes in self.keeper.sizes(self.home).items() if path.split("/")[0] not in NOT_COUNTED}
        both = sorted(promised.keys() & found.keys())
        wrong = [f"{path}: {found[path]:,} bytes, receipt says {promised[path]:,}" for path in both if promised[path] != found[path]]
        return [*_missing_and_foreign(promised, found), *wrong]

    def damage(self) -> list[str]:
        """Re-read every file and say, one sentence each, how it differs from the receipt, and the receipt from itself; empty when whole."""
        if lost := self.keeper.damage(self.home, self.receipt):
            return self._contradictions() + lost
        promised = {fact.path: fact for fact in self.receipt.files}
        found = {fact.path: fact for fact in file_facts(self.folder, leave_out=NOT_COUNTED)}
        both = sorted(promised.keys() & found.keys())
        wrong = [f"{path}: {_difference(promised[path], found[path])}" for path in both if promised[path] != found[path]]
        return [*self._contradictions(), *_missing_and_foreign(promised, found), *wrong]

    def _contradictions(self) -> list[str]:
        """What the receipt says of itself and cannot be: its digest is that of its files, its fingerprint names its folder."""
        pairs = {
            "the digest of its files": (digest_of_facts(self.receipt.files), self.digest),
            "the version of its fingerprint": (self.receipt.fingerprint.version, self.version),
        }
        return [f"{RECEIPT}: {what} is {short(ours)}, not {short(said)}" for what, (ours, said) in pairs.items() if ours != said]


class Kept(NamedTuple):
    """A folder of a place: a version, or what a build left: its size, and when its receipt was written, None without one."""

    n_bytes: int
    finished: float | None


@dataclass(frozen=True, slots=True)
class Place:
    """Where the versions of one partition of one stage live."""

    folder: Path

    @property
    def name(self) -> str:
        """``filtered/2023-06``."""
        return f"{self.folder.parent.name}/{self.folder.name}"

    def current(self) -> Published | None:
        """The published version, or None when nothing is published here.

        Raises:
            NotPublished: when the version that is named is not there, or not whole.
            CorruptFile: when pointer or receipt cannot be read, or contradict each other.
        """
        return self._pointed_at(self.at)

    def glance(self) -> Published | None:
        """The same by the head of its receipt, without counts and files, whose list may be long; heads are kept in memory.

        Raises:
            NotPublished: see `current`.
            CorruptFile: see `current`.
        """
        return self._pointed_at(lambda version: Published(self.folder / version, _head(self.folder / version / RECEIPT)))

    def _pointed_at(self, opened: Callable[[str], Published]) -> Published | None:
        path, said = self.folder / CURRENT, self.pointer()
        if said is None:
            return None
        published = opened(version_named(said.version, path))
        if published.digest != said.digest:
            raise CorruptFile(f"{path}: names digest {short(said.digest)}, version {said.version} has {short(published.digest)}")
        return published

    def pointer(self) -> Current | None:
        """What is named as published, without a look at it; None when nothing is.

        Raises:
            CorruptFile: when it cannot be read.
        """
        path = self.folder / CURRENT
        return decode_json(path, Current) if path.is_file() else None

    def require(self) -> Published:
        """The published version.

        Raises:
            NotPublished: when there is none; says which place was looked at.
        """
        published = self.current()
        if published is None:
            raise NotPublished(f"{self.name} is not published (no {self.folder / CURRENT}): materialize it; `lc plan` says what is missing")
        return published

    def at(self, version: str) -> Published:
        """The finished version of this name, published now or not.

        Raises:
            NotPublished: when there is none.
            CorruptFile: when its receipt cannot be read.
        """
        return Published.at(self.folder / version)

    def finished(self, version: str) -> Published | None:
        """The version of this name when it was finished earlier, published now or not; one whose receipt is damaged was not."""
        return _finished(self.folder / version)

    def with_digest(self, digest: str) -> Published | None:
        """The finished version that holds these very bytes: the current one, or an older one."""
        return next((published for published in self.versions() if published.digest == digest), None)

    def versions(self) -> Iterator[Published]:
        """Every finished version, the current one first; those whose receipt is damaged are passed over."""
        current = None
        with contextlib.suppress(LcError):
            current = self.current()
        if current is not None:
            yield current
        found = (self.finished(name) for name in self.version_names() if current is None or name != current.version)
        yield from (published for published in found if published is not None)

    def version_names(self) -> list[str]:
        """Names of the finished versions, sorted."""
        return sorted(path.parent.name for path in self.folder.glob(f"*/{RECEIPT}"))

    def folders(self) -> dict[str, Kept]:
        """Every folder that lies here by its name, sorted: finished versions, and what builds left."""
        folders = sorted(path for path in self.folder.glob("[!.]*") if path.is_dir())
        return {path.name: Kept(sum(_Folder().sizes(path).values()), _written(path / RECEIPT)) for path in folders}

    def remove(self, name: str, *, patience: float) -> None:
        """Remove a folder, which stops being a version before its files go.

        Args:
            name: of the folder.
            patience: seconds to wait for a build of this partition.

        Raises:
            Busy: when it is published, or a run is building this partition.
            NotWritable: when it cannot be removed.
        """
        with disk_said_plainly(self.folder):
            try:
                with filelock.FileLock(self.folder / ".lock", timeout=patience):
                    self._require_unpublished(name)
                    (self.folder / name / RECEIPT).unlink(missing_ok=True)
                    shutil.rmtree(self.folder / name)
            except filelock.Timeout as error:
                raise Busy(f"a run is building {self.name}; wait for it and run this again") from error

    def _require_unpublished(self, name: str) -> None:
        said = self.pointer()
        if said is not None and said.version == name:
            raise Busy(f"{self.name}/{name} has been published meanwhile; run this again")

    def state(self) -> int:
        """What stands here now, to be handed to `point_at`; in a folder the lock of a build says enough."""
        return 0

    def point_at(self, published: Published, *, after: int = 0) -> None:  # noqa: ARG002 - for places that no lock reaches
        """Make ``published`` the current version: the one step that readers notice.

        Args:
            published: a finished version.
            after: the `state` that it follows upon.

        Raises:
            Busy: when something else has been published since, which a folder's lock does not let happen.
        """
        publish_bytes(self.folder / CURRENT, encode_json(Current(version=published.version, digest=published.digest)))


@dataclass(frozen=True, slots=True)
class LakeFolder:
    """The root folder of everything that is published."""

    root: Path

    @property
    def url(self) -> str:
        """Where it lies, for people and for loaders: a folder's path, or a bucket's URL."""
        return str(self.root)

    def place(self, stage: str, key: str = GLOBAL) -> Place:
        """Where the versions of ``stage/key`` live; nothing is created."""
        return Place(self.root / stage / key)

    def published(self, stage: str) -> dict[str, Published]:
        """Every published partition of a stage by key, sorted by key."""
        return {key: self.place(stage, key).require() for key in self.keys(stage)}

    def version_of(self, path: str) -> Published:
        """The version that a file is of.

        Args:
            path: relative to the root, such as ``megatron/2023-06/{version}/train``.

        Raises:
            NotPublished: when there is no such version.
        """
        stage, key, version, *_ = path.split("/")
        return self.place(stage, key).at(version_named(version, path))

    def keys(self, stage: str) -> list[str]:
        """Keys of a stage's published partitions, sorted."""
        return sorted(path.parent.name for path in (self.root / stage).glob(f"*/{CURRENT}"))

    def partitions(self) -> Iterator[Place]:
        """Every partition in which something lies, published or not, whichever stage it is of."""
        folders = sorted(path for path in self.root.glob("[!.]*/[!.]*") if path.is_dir())
        yield from (self.place(path.parent.name, path.name) for path in folders)

    def note(self, path: str) -> bytes | None:
        """A small file of the lake's own, such as a release; None when there is none."""
        place = self.root / path
        return place.read_bytes() if place.is_file() else None

    def notes(self, folder: str) -> list[str]:
        """Names of the small files below a folder, sorted."""
        return sorted(path.name for path in (self.root / folder).glob("[!.]*") if path.is_file())

    def publish_note(self, path: str, content: bytes) -> None:
        """Publish a small file that none may ever write over.

        Raises:
            BadInput: when it is there, with another content.
        """
        place = self.root / path
        with disk_said_plainly(place):
            place.parent.mkdir(parents=True, exist_ok=True)
            with filelock.FileLock(place.parent / ".lock"):
                found = self.note(path)
                if found is None:
                    publish_bytes(place, content)
                elif found != content:
                    raise written_over(place)


def written_over(place: Path | str) -> BadInput:
    """What is said when a note would take the place of another one."""
    return BadInput(f"{place}: is there already, with another content, and is never written over; choose another name")


def write_receipt(folder: Path, receipt: Receipt) -> Published:
    """Write the receipt that makes ``folder`` a finished version."""
    publish_bytes(folder / RECEIPT, encode_json(receipt))
    return Published(folder, receipt)


def receipt_of(folder: Path, fingerprint: Fingerprint, tally: Tally, *, files: list[FileFact] | None = None, **more: Any) -> Receipt:
    """Make the receipt of the files now in ``folder``, or of ``files``, which somebody has just looked at."""
    files = version_files(folder) if files is None else files
    return Receipt(fingerprint=fingerprint, digest=digest_of_facts(files), files=files, tally=tally, **more)


def version_files(folder: Path, known: Mapping[str, FileFact] | None = None) -> list[FileFact]:
    """Facts of every file of a version that counts; those that are ``known``, and as large, are not read again."""
    return file_facts(folder, leave_out=NOT_COUNTED, known=known)


def encode_json(value: Any) -> bytes:
    """JSON for people and machines: indented, sorted, with a last newline."""
    return msgspec.json.format(msgspec.json.encode(value, order="deterministic"), indent=2) + b"\n"


def decode_json(path: Path, kind: type[T], *, called: str = "") -> T:
    """Read a JSON file as a value of type ``kind``, which is ``called`` otherwise in errors.

    Raises:
        CorruptFile: when it is missing, is not JSON or does not have the promised fields; names both.
    """
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except FileNotFoundError as error:
        raise CorruptFile(f"{path}: is missing") from error
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise CorruptFile(f"{path}: not a readable {called or kind.__name__.lower()}: {error}") from error


class _Head(msgspec.Struct, frozen=True, kw_only=True):
    """What a planner asks of a receipt: it skips 15,000 files five times as fast as `Receipt` reads them."""

    fingerprint: Fingerprint
    digest: str
    measured: dict[str, float] = {}


def _head(path: Path) -> Receipt:
    _require_finished(path)
    stat = path.stat()
    return _decoded_head(path, stat.st_mtime_ns, stat.st_size)


@functools.lru_cache(maxsize=1 << 14)
def _decoded_head(path: Path, _mtime_ns: int, _n_bytes: int) -> Receipt:
    """A receipt without counts and files; 14 kB in memory where a snapshot is one of 84."""
    head = decode_json(path, _Head, called="receipt")
    return Receipt(fingerprint=head.fingerprint, digest=head.digest, files=[], tally=Tally(), measured=head.measured)


def _require_finished(path: Path) -> None:
    if not path.is_file():
        raise NotPublished(f"{path.parent}: no {RECEIPT}, so this is not a finished version")


def _finished(folder: Path) -> Published | None:
    with contextlib.suppress(NotPublished, CorruptFile):
        return Published.at(folder)
    return None


def version_named(name: str, path: Path | str) -> str:
    """A version's name as it stands in a pointer.

    Raises:
        BadInput: when it is none, such as one that leads elsewhere.
    """
    if not name.isalnum():
        raise BadInput(f"{path}: {name!r} is not a version's name")
    return name


def _written(path: Path) -> float | None:
    return path.stat().st_mtime if path.is_file() else None


def _missing_and_foreign(promised: Mapping[str, Any], found: Mapping[str, Any]) -> Iterator[str]:
    yield from (f"{path}: missing" for path in sorted(promised.keys() - found.keys()))
    yield from (f"{path}: not in the receipt" for path in sorted(found.keys() - promised.keys()))


def _difference(promised: FileFact, found: FileFact) -> str:
    if promised.n_bytes != found.n_bytes:
        return f"{found.n_bytes:,} bytes, receipt says {promised.n_bytes:,}"
    return f"digest {short(found.sha256)}, receipt says {short(promised.sha256)}"


def _flat(value: Mapping[str, Any], stem: str = "") -> dict[str, Any]:
    """One level: items of a list that have names, such as rules, stand by them."""
    flat: dict[str, Any] = {}
    for name, item in value.items():
        inner = _by_name(item)
        flat |= {f"{stem}{name}": item} if inner is None else _flat(inner, f"{stem}{name}.")
    return flat


def _by_name(item: Any) -> Mapping[str, Any] | None:
    if isinstance(item, Mapping):
        return item
    if not isinstance(item, list) or not item or not all(isinstance(part, Mapping) and "name" in part for part in item):
        return None
    named = {str(part["name"]): part for part in item}
    return named if len(named) == len(item) else None


def _shown(flat: Mapping[str, Any], name: str) -> str:
    if name not in flat:
        return "(not set)"
    words = repr(flat[name])
    return words if len(words) <= SHOWN_CHARS else f"{words[:SHOWN_CHARS]}…"


def _verb(old: Mapping[str, str], new: Mapping[str, str], name: str) -> str:
    if name not in old:
        return "is new"
    return "is gone" if name not in new else f"changed {short(old[name])} → {short(new[name])}"
