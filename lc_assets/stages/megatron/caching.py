"""Pre-building Megatron's cache, so that a launch finds every index that it needs, and checking it.

Names: `lc_assets.mixing.cache_names`; files: `lc_assets.formats.megatron.gpt_index`; launch
arguments: `lc_assets.formats.megatron.launch_arguments`.
"""

import errno
import functools
import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from lc_assets.errors import BadInput, CorruptFile
from lc_assets.execution.executor import Executor
from lc_assets.foreign_errors import os_errors_as_lc_errors
from lc_assets.formats.arrays.npy import read_npy
from lc_assets.formats.megatron.gpt_index import (
    DESCRIPTION,
    PrefixFacts,
    entry_files,
    read_manifest,
    write_entry,
    write_manifest,
)
from lc_assets.formats.megatron.idx import bin_path, idx_path
from lc_assets.formats.megatron.indexed import MegatronReader
from lc_assets.mixing.blending import Blend, blend, blend_all, counts
from lc_assets.mixing.cache_names import (
    SPLITS,
    Bounds,
    Identity,
    Launch,
    Part,
    Request,
    documents_of,
    requested,
)
from lc_assets.mixing.gpt_index import build_gpt_index, n_whole, plan_epochs
from lc_assets.publishing import writing_in
from lc_assets.records import frozen, record

_NO_HARD_LINKS = (errno.EXDEV, errno.EPERM, errno.ENOTSUP, errno.EMLINK)

Made: TypeAlias = Callable[[Request], Sequence[np.ndarray | Path]]
Arrays: TypeAlias = Callable[[Request], Sequence[np.ndarray]]
Status = Literal["found", "missing", "damaged", "stale"]


@record
class Entry:
    """One index under one name.

    Attributes:
        request: the index.
        version: the version of megatron-core that uses this name, or the name of the identity.
        stem: prefix of its files' names.
        status: ``stale`` if a data set has changed since the index was built.
        problem: the error, if any.
    """

    request: Request
    version: str
    stem: str
    status: Status
    problem: str = ""


@frozen
class _DataSets:
    """The cache's inputs for every prefix: facts, and tokens of each split."""

    launch: Launch
    facts: Mapping[str, PrefixFacts]
    tokens: Mapping[tuple[str, Bounds], int]

    def n_samples(self, split: str, part: Part) -> int:
        tokens = self.tokens[part.prefix, part.bounds]
        sequence_length = self.launch.sequence_length
        try:
            n_epochs, _ = plan_epochs(tokens, sequence_length, part.n_samples)
        except BadInput as error:
            begin, end = (f"{bound:.6g}" for bound in part.bounds)
            raise BadInput(
                f"{part.prefix}: the {split} split ({begin} to {end} of its sequences): {error}"
            ) from error
        return n_whole(n_epochs * tokens, sequence_length)


def look_at_cache(launch: Launch, identities: Mapping[str, Identity], cache: Path) -> list[Entry]:
    """Check every index that a launch needs; nothing is written.

    Args:
        launch: the launch.
        identities: of the tokenizer, by the version that uses it.
        cache: Megatron's ``--data-cache-path``.

    Raises:
        BadInput: if the launch is impossible: a split without tokens, or a blend of too many
            samples.
        CorruptFile: if a data set is missing or damaged.
    """
    return _entries(identities, cache, _read(launch))


def build_cache(
    launch: Launch,
    identities: Mapping[str, Identity],
    cache: Path,
    *,
    executor: Executor,
    made: Made | None = None,
) -> list[Entry]:
    """Build what a launch would not find; return every index with its status before (``found``: it
    was kept).

    Args:
        launch: the launch.
        identities: of the tokenizer, by the version that uses it.
        cache: Megatron's ``--data-cache-path``.
        executor: where indices are built.
        made: arrays that exist already, or their files, which are linked; a mix that continues
            another has indices of more samples than the launch requests.

    Raises:
        BadInput: as `look_at_cache`; nothing is written then.
        CorruptFile: if a data set is missing or damaged.
    """
    data_sets = _read(launch)
    before = _entries(identities, cache, data_sets, longer=made is not None)
    # Other arrays may have the same names, of another mix: those that are given are linked always.
    missing = dict.fromkeys(
        entry.request for entry in before if made is not None or entry.status != "found"
    )
    build = functools.partial(_build, identities, cache, data_sets, made)
    with writing_in(cache):
        for _ in executor.run(build, list(missing), what="indices"):
            pass
        write_manifest(cache, read_manifest(cache) | dict(data_sets.facts))
    return before


def with_versions(launch: Launch, folder: Path) -> Launch:
    """The same launch over links in ``folder`` whose names contain the data sets' digests, so that
    a data set that changes has another prefix.

    Raises:
        CorruptFile: if a data set is missing or damaged.
    """
    renamed = {
        prefix: _linked(Path(prefix), folder / f"{Path(prefix).name}-{one.digest[:12]}", one.digest)
        for prefix, one in _read(launch).facts.items()
    }
    train, valid, test = (
        sources and replace(sources, prefixes=tuple(renamed[name] for name in sources.prefixes))
        for sources in launch.sources
    )
    return replace(launch, sources=(train, valid, test))


def _linked(prefix: Path, link: Path, digest: str) -> str:
    with os_errors_as_lc_errors(link):
        link.parent.mkdir(parents=True, exist_ok=True)
        if not (bin_path(link).exists() and idx_path(link).exists() and _digest(link) == digest):
            for path in (bin_path, idx_path):
                link_file(path(prefix), path(link))
    return str(link)


def link_file(path: Path, link: Path) -> None:
    """Give a file another name, by a hard link, or by a symbolic one from another file system.

    Raises:
        NotWritable: if the folder cannot be written to.
    """
    with os_errors_as_lc_errors(link):
        link.unlink(missing_ok=True)
        source = path.resolve()
        try:
            os.link(source, link)
        except OSError as error:
            if error.errno not in _NO_HARD_LINKS:
                raise
            link.symlink_to(source)


def _read(launch: Launch, *, digests: bool = True) -> _DataSets:
    facts: dict[str, PrefixFacts] = {}
    tokens: dict[tuple[str, Bounds], int] = {}
    prefixes = (prefix for sources in launch.sources if sources for prefix in sources.prefixes)
    for prefix in dict.fromkeys(prefixes):
        reader = MegatronReader(Path(prefix))
        facts[prefix] = PrefixFacts(
            digest=_digest(Path(prefix)) if digests else "",
            sequences=len(reader),
            boundaries=len(reader.index.document_boundaries),
        )
        for bounds in filter(None, set(launch.bounds)):
            chosen = documents_of(bounds, len(reader))
            own = reader.lengths[chosen.start : chosen.stop]
            tokens[prefix, bounds] = int(own.sum(dtype=np.int64))
    return _DataSets(launch, facts, tokens)


def _digest(prefix: Path) -> str:
    hasher = hashlib.sha256(str(bin_path(prefix).stat().st_size).encode())
    with idx_path(prefix).open("rb") as stream:
        while block := stream.read(2**20):
            hasher.update(block)
    return hasher.hexdigest()


def _entries(
    identities: Mapping[str, Identity], cache: Path, data_sets: _DataSets, *, longer: bool = False
) -> list[Entry]:
    launch, manifest = data_sets.launch, read_manifest(cache)
    changed = {
        prefix for prefix, facts in data_sets.facts.items() if manifest.get(prefix, facts) != facts
    }
    found = []
    for request in requested(launch, data_sets.n_samples):
        available = [data_sets.n_samples(request.split, part) for part in request.parts]
        n_samples = sum(available) if request.size is None else request.size
        stale = [part.prefix for part in request.parts if part.prefix in changed]
        for version, tokenizer in identities.items():
            name = request.stem(launch, tokenizer)
            status, problem = _status(request, cache, name, n_samples, longer)
            if stale and status != "missing":
                status, problem = "stale", f"{stale[0]} has changed since the cache was built"
            found.append(
                Entry(request=request, version=version, stem=name, status=status, problem=problem)
            )
    return found


def _status(
    request: Request, cache: Path, name: str, n_samples: int, longer: bool
) -> tuple[Status, str]:
    files = entry_files(cache, name, request.files)
    if missing := [path.name for path in files if not path.is_file()]:
        return "missing", ", ".join(missing)
    try:
        shapes = [read_npy(path).shape for path in files[1:]]
    except CorruptFile as error:
        return "damaged", str(error)
    if shapes[-1] != (n_samples,) and not (longer and shapes[-1] > (n_samples,)):
        return "damaged", f"{files[-1].name}: shape {shapes[-1]}, expected {(n_samples,)}"
    return "found", ""


def _build(
    identities: Mapping[str, Identity],
    cache: Path,
    data_sets: _DataSets,
    made: Made | None,
    request: Request,
) -> None:
    launch = data_sets.launch
    arrays = _computed(data_sets, request) if made is None else made(request)
    descriptions = [request.description(launch, tokenizer) for tokenizer in identities.values()]
    stems = {request.stem_of(text): text for text in descriptions}
    write_entry(cache, stems, dict(zip(request.files, arrays, strict=True)))


def _computed(data_sets: _DataSets, request: Request) -> Sequence[np.ndarray]:
    """The arrays that Megatron builds."""
    launch = data_sets.launch
    if request.weights is not None:
        available = [data_sets.n_samples(request.split, part) for part in request.parts]
        return _blended(request, available)
    (part,) = request.parts
    lengths = MegatronReader(Path(part.prefix)).lengths
    index = build_gpt_index(
        lengths,
        sequence_length=launch.sequence_length,
        seed=launch.seed,
        n_samples=part.n_samples,
        documents=documents_of(part.bounds, len(lengths)),
    )
    return index.document_index, index.sample_index, index.shuffle_index


def training_arrays(launch: Launch, cache: Path | None) -> tuple[list[Request], Arrays]:
    """What a launch requests for training, its blend last, and a function that gives the arrays of
    each: those that its cache has for any tokenizer, else those that Megatron builds.

    Raises:
        BadInput: as `look_at_cache`.
        CorruptFile: if a data set is missing or damaged.
    """
    data_sets = _read(launch, digests=False)
    ending = f"-{SPLITS[0]}-{DESCRIPTION}"
    cached = {
        _without_tokenizer(path.read_text("utf-8")): path.name.removesuffix(f"-{DESCRIPTION}")
        for path in sorted(cache.glob(f"*{ending}") if cache else ())
    }

    @functools.cache
    def arrays(request: Request) -> Sequence[np.ndarray]:
        stem = cached.get(_without_tokenizer(request.description(launch, {})))
        if cache is None or stem is None:
            return _computed(data_sets, request)
        return [read_npy(path) for path in entry_files(cache, stem, request.files)[1:]]

    requests = requested(launch, data_sets.n_samples)
    return [request for request in requests if request.split == SPLITS[0]], arrays


def _without_tokenizer(description: str) -> str:
    def left(found: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in found.items() if name != "tokenizer"}

    return json.dumps(json.loads(description, object_hook=left))


def _blended(request: Request, available: Sequence[int]) -> Blend:
    weights = request.weights or ()
    if request.size is None:
        return blend_all([int(weight) for weight in weights])
    drawn = blend(np.array(weights, np.float64), request.size)
    taken = counts(drawn[0], len(available))
    for part, n_taken, n_there in zip(request.parts, taken, available, strict=True):
        if n_taken > n_there:
            raise BadInput(
                f"{part.prefix}: the {request.split} blend takes {n_taken:,} samples, its index "
                f"holds {n_there:,}: Megatron would stop with an IndexError; request fewer, or set "
                f"--mid-level-dataset-surplus to {1.01 * n_taken / n_there - 1:.3g} or more"
            )
    return drawn
