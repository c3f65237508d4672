"""Calibrating the estimates of `lc plan` where nothing was built yet: what each stage takes on this
machine.

Some shards of the largest partition of each kind are built in a scratch lake, one for each worker
and then twice as many each time, by the recipe and the executor of a rebuild. Of a kind are the
partitions of a source whose documents are about as long, as the first ones of some files show.
Through each stage's wall-clock seconds, checks included, goes a line by the bytes upstream: seconds
of a partition, and of a byte. Since these are the user's own shards, their documents, and the share
that is kept, cost what they will cost in the partitions to be built. What grows otherwise, such as
comparing a snapshot with older ones, is not foreseen, and a mix is measured as one of equal parts.
"""

import contextlib
import itertools
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from lc_assets.builds.settings.rows import MixSettings
from lc_assets.builds.stage import BuildContext
from lc_assets.errors import BadInput, LcError, NotPublished
from lc_assets.formats.corpora.containers import CorpusDocument
from lc_assets.lake.lake import Lake
from lc_assets.randomness import keyed_u64
from lc_assets.records import record
from lc_assets.sources.opening import file_source
from lc_assets.sources.settings import source_name
from lc_assets.stages.catalogue import STAGES, stage_named
from lc_assets.stages.costing import Cost
from lc_assets.stages.documents import raw_snapshot as raw
from lc_assets.stages.documents.file_records import file_records
from lc_assets.stages.documents.raw_snapshot import ShardFiles
from lc_assets.stages.planning import keys_of
from lc_assets.vocabulary import parse_snapshot

SECONDS = 40.0
"""How long builds are measured, after one in which all workers import libraries and compile."""
LEAST_PARTS = 3
"""For a line; unless there are no more shards."""
ALIKE = 2.0
"""Of one kind are documents that are at most so many times as long, on average."""
LOOKED_AT, LOOKED_DOCUMENTS, LOOKED_CHARS = 4, 64, 4 << 20
"""Files of a partition, and of each first documents, or characters, that show how long they are."""


class Line(NamedTuple):
    """Seconds of a stage: of each partition, and of each byte upstream."""

    fixed: float
    per_byte: float


@record
class Calibration:
    """What was measured.

    Attributes:
        n_shards: shards of the largest part that was built of each partition that was measured.
        lines: by such a partition and stage; none of stages that need what the scratch lake has
            not.
        like: by partition that which was measured of its kind.
        n_bytes: upstream, by partition.
    """

    n_shards: Mapping[str, int]
    lines: Mapping[str, Mapping[str, Line]]
    like: Mapping[str, str]
    n_bytes: Mapping[str, int]

    def filled(self, costs: Iterable[Cost]) -> list[Cost]:
        """The costs, with seconds where no builds in the lake tell them."""
        return [self._filled(cost) for cost in costs]

    def _filled(self, cost: Cost) -> Cost:
        stage, _, key = cost.name.partition("/")
        keys = [key] if key in self.n_bytes else self.n_bytes
        known = [(self.lines.get(self.like[name], {}).get(stage), name) for name in keys]
        lines = [(line, self.n_bytes[name]) for line, name in known if line is not None]
        if not lines or (cost.seconds is not None and not cost.at_most):
            return cost
        seconds = max(line.fixed for line, _ in lines)
        seconds += sum(line.per_byte * n_bytes for line, n_bytes in lines)
        return msgspec.structs.replace(cost, seconds=seconds, at_most=False)


def calibrate(
    context: BuildContext,
    snapshots: Sequence[str],
    *,
    at_once: int,
    seconds: float = SECONDS,
    clock: Callable[[], float] = time.perf_counter,
) -> Calibration:
    """Measure builds of shards of each kind's largest partition.

    Args:
        context: whose lake is neither read nor written.
        snapshots: the partitions that are planned.
        at_once: how many workers the executor has; fewer shards would leave some idle.
        seconds: no build but the first ones begins that would probably end later.
        clock: by which stages are measured.

    Raises:
        BadInput: when there are no files upstream.
        LcError: what looking upstream, or a build, raises.
    """
    trusted = msgspec.structs.replace(context.recipe.raw_snapshot, trust_file_times=True)
    mixes = dict.fromkeys(context.recipe.blended_mix, MixSettings())  # none names a snapshot
    recipe = msgspec.structs.replace(context.recipe, raw_snapshot=trusted, blended_mix=mixes)
    context = replace(context, recipe=recipe)
    files = {name: raw.look_at_snapshot(context, parse_snapshot(name)) for name in snapshots}
    n_bytes = {name: _n_bytes(found) for name, found in files.items()}
    if not any(n_bytes.values()):
        raise BadInput("no files upstream to calibrate with")
    drawn = {name: _drawn(found) for name, found in files.items()}
    like = _like(context, drawn, n_bytes)
    lines, n_shards = dict[str, dict[str, Line]](), dict[str, int]()
    measured = sorted(filter(n_bytes.get, set(like.values())))
    for key in measured:
        build = partial(_built, context, key, clock)
        parts = list(_parts(build, drawn[key], at_once, seconds / len(measured)))
        n_shards[key] = len(parts[-1][0])
        lines[key] = {
            name: _line(name, [(_n_bytes(part), took_by[name]) for part, took_by in parts])
            for name in parts[0][1]
        }
    return Calibration(n_shards=n_shards, lines=lines, like=like, n_bytes=n_bytes)


def _drawn(files: Sequence[ShardFiles]) -> list[ShardFiles]:
    """A partition's shards in an order of chance."""
    drawn = keyed_u64("calibrate", seed=0, keys=[found.shard.tag for found in files])
    return [files[number] for number in np.argsort(drawn).tolist()]


def _like(
    context: BuildContext, files: Mapping[str, Sequence[ShardFiles]], n_bytes: Mapping[str, int]
) -> dict[str, str]:
    """The largest partition of each one's kind."""
    sources = context.recipe.sources
    known = sorted(
        (source_name(sources, key), _length(context, key, found), key)
        for key, found in files.items()
    )
    kinds = list[list[tuple[str, float, str]]]()
    for source, length, key in known:
        if not kinds or kinds[-1][0][0] != source or length > ALIKE * kinds[-1][0][1]:
            kinds.append([])
        kinds[-1].append((source, length, key))
    largest = [max((key for *_, key in kind), key=n_bytes.__getitem__) for kind in kinds]
    return {key: name for kind, name in zip(kinds, largest, strict=True) for *_, key in kind}


def _length(context: BuildContext, key: str, files: Sequence[ShardFiles]) -> float:
    """Mean characters of the first documents of some files on this disk; else 0: RedPajama-V2's
    snapshots are alike, and a remote file would be read as a whole.
    """
    source, lengths = file_source(context.recipe.sources, key), list[int]()
    if source is None or source.upstream.local_path("") is None:
        return 0.0
    for shard in files[:LOOKED_AT]:
        n_before = sum(lengths)
        with contextlib.suppress(LcError):  # the build reports it
            records = itertools.islice(file_records(source, shard, Path()), LOOKED_DOCUMENTS)
            for _, _, found in records:
                lengths += [len(found.text)] if isinstance(found, CorpusDocument) else []
                if sum(lengths) - n_before > LOOKED_CHARS:
                    break
    return sum(lengths) / max(len(lengths), 1)


def _line(stage: str, points: Sequence[tuple[float, float]]) -> Line:
    if stage_named(stage).grows:
        return line_through(points)
    return Line(float(np.median([seconds for _, seconds in points])), 0.0)


def line_through(points: Sequence[tuple[float, float]]) -> Line:
    """The line of least squares through ``(bytes, seconds)``; neither number is negative.

    >>> line_through([(10, 3.0), (20, 5.0)])
    Line(fixed=1.0, per_byte=0.2)
    >>> line_through([(10, 1.0), (20, 4.0)]), line_through([(10, 3.0), (20, 1.0)])
    (Line(fixed=0.0, per_byte=0.18), Line(fixed=2.0, per_byte=0.0))
    """
    n_bytes, seconds = np.array(points, np.float64).T
    spread = n_bytes - n_bytes.mean()
    per_byte = float(spread @ seconds / (spread @ spread)) if spread.any() else 0.0
    fixed = float(seconds.mean() - per_byte * n_bytes.mean())
    if per_byte < 0:
        return Line(float(seconds.mean()), 0.0)
    if fixed < 0 or not spread.any():
        return Line(0.0, float(n_bytes @ seconds / (n_bytes @ n_bytes)))
    return Line(round(fixed, 9), round(per_byte, 18))


Took = dict[str, float]
"""Seconds by stage."""


def _parts(
    build: Callable[[Sequence[ShardFiles]], Took],
    files: Sequence[ShardFiles],
    n_files: int,
    seconds: float,
) -> Iterator[tuple[Sequence[ShardFiles], Took]]:
    """Parts of the files, each twice as large, with what building them took."""
    build(files[:n_files])
    begun = time.perf_counter()
    for n_parts in itertools.count(1):
        started = time.perf_counter()
        yield files[:n_files], build(files[:n_files])
        now = time.perf_counter()
        is_late = n_parts >= LEAST_PARTS and now - begun + 2 * (now - started) > seconds
        if n_files >= len(files) or is_late:
            return
        n_files *= 2


def _built(
    context: BuildContext, key: str, clock: Callable[[], float], files: Sequence[ShardFiles]
) -> Took:
    """Build these shards of a partition; seconds by stage, but of `raw_snapshot`."""
    manifest, found = raw.manifest_of(list(files)), Took()
    seen = replace(raw.STAGE, outside={"upstream": lambda _context, _key: manifest})
    with tempfile.TemporaryDirectory(prefix="lc-calibrate-") as folder:
        scratch = replace(context, lake=Lake(Path(folder)), is_trial=True)
        seen.build(scratch, key)
        for stage in STAGES:
            if stage is raw.STAGE or stage.outside:
                continue
            for own in keys_of(stage, context.recipe, [key]):
                with contextlib.suppress(NotPublished):  # it reads what no shard leads to
                    begun = clock()
                    stage.build(scratch, parse_snapshot(own))
                    found[stage.name] = clock() - begun
    return found


def _n_bytes(files: Iterable[ShardFiles]) -> int:
    return sum(file.n_bytes for found in files for file in found.parts.values() if file)
