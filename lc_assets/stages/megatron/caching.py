"""Pre-building Megatron's cache, so that a launch finds every index it looks for; and looking
whether it would.

Here: reading the data sets, building, comparing. Not here: the names
    (`lc_assets.mixing.cache_names`), the files
(`lc_assets.formats.megatron.gpt_index`), launch arguments (`lc_assets.formats.megatron.launch_arguments`).
"""

import errno
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from lc_assets.errors import BadInput, CorruptFile
from lc_assets.execution.executor import Executor
from lc_assets.foreign_errors import os_errors_as_lc_errors
from lc_assets.formats.megatron.gpt_index import (
    PrefixFacts,
    entry_shapes,
    missing_files,
    read_manifest,
    write_entry,
    write_manifest,
)
from lc_assets.formats.megatron.idx import bin_path, idx_path
from lc_assets.formats.megatron.indexed import MegatronReader
from lc_assets.mixing.blending import Blend, blend, blend_all, counts
from lc_assets.mixing.cache_names import (
    WHOLE,
    BlendRequest,
    GptRequest,
    Identity,
    Request,
    description,
    requested,
    stem,
)
from lc_assets.mixing.gpt_index import Cut, build_gpt_index, plan_epochs
from lc_assets.mixing.launch import SPLITS, Bounds, Launch, Sources, documents_of
from lc_assets.publishing import publish_bytes

_NO_HARD_LINKS = (errno.EXDEV, errno.EPERM, errno.ENOTSUP, errno.EMLINK)

Status = Literal["found", "missing", "damaged", "stale"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One index under one name.

    Attributes:
        request: what is asked for.
        version: whose name it is: a version of megatron-core, or whatever the identity was called.
        stem: what its files' names begin with.
        status: ``stale`` when a data set is not what it was when the index was built.
        words: what is wrong.
    """

    request: Request
    version: str
    stem: str
    status: Status
    words: str = ""


@dataclass(frozen=True, slots=True)
class _DataSets:
    """What the cache needs to know of every prefix: facts, and tokens of each split."""

    launch: Launch
    facts: Mapping[str, PrefixFacts]
    tokens: Mapping[tuple[str, Bounds], int]

    def n_samples(self, request: GptRequest) -> int:
        tokens = self.tokens[request.prefix, request.bounds]
        cut = Cut(sequence_length=self.launch.sequence_length)
        try:
            epochs = plan_epochs(tokens, cut, request.n_samples)
        except BadInput as error:
            begin, end = (f"{bound:.6g}" for bound in request.bounds or WHOLE)
            raise BadInput(
                f"{request.prefix}: the {request.split} split ({begin} to {end} of its "
                f"sequences): {error}"
            ) from error
        return cut.n_samples(epochs.n_epochs * tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Work:
    request: Request
    launch: Launch
    stems: dict[str, str]
    cache: Path
    available: tuple[int, ...]

    def __str__(self) -> str:
        return next(iter(self.stems))


def look_at_cache(launch: Launch, identities: Mapping[str, Identity], cache: Path) -> list[Entry]:
    """Say of every index that a launch looks for whether it is there and sound; nothing is written.

    Args:
        launch: the launch.
        identities: of the tokenizer, by the version that uses it.
        cache: Megatron's ``--data-cache-path``.

    Raises:
        BadInput: when the launch cannot be meant: a split without tokens, a blend that asks for too
            much.
        CorruptFile: when a data set is missing or damaged.
    """
    data_sets = _read(launch)
    return _looked_at(launch, identities, cache, data_sets)


def build_cache(
    launch: Launch, identities: Mapping[str, Identity], cache: Path, *, executor: Executor
) -> list[Entry]:
    """Build what a launch would not find; return every index with what was wrong before (``found``:
    it was kept).

    Raises:
        BadInput: as `look_at_cache`; nothing is written then.
        CorruptFile: when a data set is missing or damaged.
    """
    data_sets = _read(launch)
    before = _looked_at(launch, identities, cache, data_sets)
    wanting = {entry.request for entry in before if entry.status != "found"}
    work = [
        _Work(
            request=request,
            launch=launch,
            stems={
                stem(request, launch, tokenizer): description(request, launch, tokenizer)
                for tokenizer in identities.values()
            },
            cache=cache,
            available=()
            if isinstance(request, GptRequest)
            else tuple(map(data_sets.n_samples, request.sources)),
        )
        for request in dict.fromkeys(entry.request for entry in before)
        if request in wanting
    ]
    for _ in executor.run(_build, work, what="indices"):
        pass
    write_manifest(cache, read_manifest(cache) | dict(data_sets.facts))
    return before


def with_versions(launch: Launch, folder: Path) -> Launch:
    """The same launch over prefixes that name their content: links in ``folder``, so that a data
    set that changes is another.

    Raises:
        CorruptFile: when a data set is missing or damaged.
    """
    facts = _read(launch).facts
    renamed = {
        prefix: _linked(Path(prefix), folder / f"{Path(prefix).name}-{one.digest[:12]}", one.digest)
        for prefix, one in facts.items()
    }

    def moved(sources: Sources | None) -> Sources | None:
        return sources and replace(
            sources, prefixes=tuple(renamed[prefix] for prefix in sources.prefixes)
        )

    if launch.per_split is None:
        return replace(launch, blend=moved(launch.blend))
    train, valid, test = map(moved, launch.per_split)
    return replace(launch, per_split=(train, valid, test))


def write_data_arguments(launch: Launch, folder: Path) -> str:
    """Write the data of a launch into a file; return the arguments that name it.

    Raises:
        BadInput: when a path has a space, at which Megatron would cut it.
    """
    if launch.per_split is None:
        path, option, content = (
            folder / "data_args.txt",
            "--data-args-path",
            " ".join(_words(launch.blend)),
        )
    else:
        each = {
            split: sources and _words(sources)
            for split, sources in zip(SPLITS, launch.per_split, strict=True)
        }
        path, option, content = (
            folder / "per_split_data_args.json",
            "--per-split-data-args-path",
            json.dumps(each, indent=1),
        )
    publish_bytes(path, f"{content}\n".encode())
    return f"{option} {path}"


def _words(sources: Sources | None) -> list[str]:
    if sources is None:
        return []
    if spaced := [prefix for prefix in sources.prefixes if len(prefix.split()) != 1]:
        raise BadInput(
            f"{spaced[0]!r} holds a space, at which Megatron would cut it: choose another folder"
        )
    if sources.weights is None:
        return list(sources.prefixes)
    return [
        word
        for weight, prefix in zip(sources.weights, sources.prefixes, strict=True)
        for word in (repr(weight), prefix)
    ]


def _linked(prefix: Path, place: Path, digest: str) -> str:
    with os_errors_as_lc_errors(place):
        place.parent.mkdir(parents=True, exist_ok=True)
        if not (bin_path(place).exists() and idx_path(place).exists() and _digest(place) == digest):
            for path in (bin_path, idx_path):
                path(place).unlink(missing_ok=True)
                _link(path(prefix).resolve(), path(place))
    return str(place)


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError as error:
        if error.errno not in _NO_HARD_LINKS:
            raise
        target.symlink_to(source)


def _read(launch: Launch) -> _DataSets:
    named = [launch.blend] if launch.per_split is None else launch.per_split
    all_bounds: Sequence[Bounds] = (
        (WHOLE,) if launch.bounds is None else [bounds for bounds in launch.bounds if bounds]
    )
    facts, tokens = {}, {}
    for prefix in dict.fromkeys(
        prefix for sources in named if sources for prefix in sources.prefixes
    ):
        reader = MegatronReader(Path(prefix))
        facts[prefix] = PrefixFacts(
            digest=_digest(Path(prefix)),
            sequences=len(reader),
            boundaries=len(reader.index.document_boundaries),
        )
        for bounds in all_bounds:
            chosen = documents_of(bounds, len(reader))
            tokens[prefix, bounds] = int(
                reader.lengths[chosen.start : chosen.stop].sum(dtype=np.int64)
            )
    return _DataSets(launch, facts, tokens)


def _digest(prefix: Path) -> str:
    hasher = hashlib.sha256(str(bin_path(prefix).stat().st_size).encode())
    with idx_path(prefix).open("rb") as stream:
        while block := stream.read(2**20):
            hasher.update(block)
    return hasher.hexdigest()


def _looked_at(
    launch: Launch, identities: Mapping[str, Identity], cache: Path, data_sets: _DataSets
) -> list[Entry]:
    manifest = read_manifest(cache)
    changed = {
        prefix for prefix, facts in data_sets.facts.items() if manifest.get(prefix, facts) != facts
    }
    found = []
    for request in requested(launch, data_sets.n_samples):
        expected = _expected(request, data_sets)
        for version, tokenizer in identities.items():
            name = stem(request, launch, tokenizer)
            status, words = _status(request, cache, name, expected)
            if status != "missing" and (
                stale := [prefix for prefix in _prefixes(request) if prefix in changed]
            ):
                status, words = "stale", f"{stale[0]} is not what it was when the cache was built"
            found.append(
                Entry(request=request, version=version, stem=name, status=status, words=words)
            )
    return found


def _prefixes(request: Request) -> list[str]:
    return (
        [request.prefix]
        if isinstance(request, GptRequest)
        else [source.prefix for source in request.sources]
    )


def _expected(request: Request, data_sets: _DataSets) -> int:
    if isinstance(request, GptRequest):
        return data_sets.n_samples(request)
    for source in request.sources:
        data_sets.n_samples(source)
    return sum(int(weight) for weight in request.weights) if request.size is None else request.size


def _status(request: Request, cache: Path, name: str, expected: int) -> tuple[Status, str]:
    if missing := missing_files(cache, name, request.files):
        return "missing", ", ".join(missing)
    try:
        *_, last = entry_shapes(cache, name, request.files)
    except CorruptFile as error:
        return "damaged", str(error)
    if last != (expected,):
        return "damaged", f"{name}-{request.files[-1]}.npy: shape {last}, expected {(expected,)}"
    return "found", ""


def _build(work: _Work) -> None:
    request, launch = work.request, work.launch
    if isinstance(request, BlendRequest):
        arrays = dict(zip(request.files, _blended(request, work.available), strict=True))
    else:
        lengths = MegatronReader(Path(request.prefix)).lengths
        chosen = documents_of(request.bounds, len(lengths))
        index = build_gpt_index(
            lengths,
            sequence_length=launch.sequence_length,
            seed=launch.seed,
            n_samples=request.n_samples,
            documents=None
            if len(chosen) == len(lengths)
            else np.arange(chosen.start, chosen.stop, dtype=np.int32),
        )
        arrays = {name: getattr(index, name) for name in request.files}
    write_entry(work.cache, work.stems, arrays)


def _blended(request: BlendRequest, available: Sequence[int]) -> Blend:
    if request.size is None:
        return blend_all([int(weight) for weight in request.weights])
    drawn = blend(np.array(request.weights, np.float64), request.size)
    for source, taken, there in zip(
        request.sources, counts(drawn[0], len(available)), available, strict=True
    ):
        if taken > there:
            raise BadInput(
                f"{source.prefix}: the {request.split} blend takes {taken:,} samples, its index "
                f"holds {there:,}: Megatron would stop with"
                " an IndexError; ask for fewer, or set --mid-level-dataset-surplus to "
                f"{1.01 * taken / there - 1:.3g} or more"
            )
    return drawn
