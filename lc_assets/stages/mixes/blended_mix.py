"""`blended_mix`: a weighted blend of snapshots and of packed rows, as Megatron's ``dataset_index``
and ``dataset_sample_index``.

A mix is self-contained: it also has ``mix.json``, which lists the sources with their weights and
counts, and a GPT index per source for as many samples as Megatron requests of it, built as Megatron
builds it. `lc_assets.stages.mixes.launching` gives both to Megatron.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from lc_assets.builds.recipe import Recipe, plain, require_whole_rows
from lc_assets.builds.settings.rows import PLAIN, part_and_snapshot, source_name
from lc_assets.builds.stage import (
    ALL_SNAPSHOTS,
    BuildContext,
    CheckInput,
    CheckResult,
    Stage,
    StagingFolder,
)
from lc_assets.counts import Counts
from lc_assets.formats.arrays.npy import read_npy, write_npy
from lc_assets.formats.megatron.gpt_index import read_gpt_index, write_gpt_index
from lc_assets.formats.megatron.idx import MegatronIndex, idx_path, read_index
from lc_assets.lake.receipts import decode_json, encode_json
from lc_assets.lake.versions import Published
from lc_assets.mixing.gpt_index import build_gpt_index, lengthened, n_whole
from lc_assets.mixing.schedules import Stretch, dues_of
from lc_assets.publishing import publish_bytes
from lc_assets.stages.mixes.mix_plans import PlannedMix, params_of, plan_mix, reads, settings_of
from lc_assets.stages.rows.longcrawl import common_of

MIX_FILE = "mix.json"


class MixSource(msgspec.Struct, frozen=True, kw_only=True):
    """One source of a mix.

    Attributes:
        snapshot: its name.
        prefix: of its Megatron files, relative to the lake's root.
        weight: requested share of the part that is not kept from another mix, over all of it; they
            sum to 1.
        available: samples of one epoch.
        used: samples that the mix takes; more than ``available`` means more than one epoch.
        kept: how many of them are in the part that is kept.
        part: kind of its rows, if not ``megatron_rows``.
    """

    snapshot: str
    prefix: str
    weight: float
    available: int
    used: int
    kept: int = 0
    part: str | msgspec.UnsetType = msgspec.UNSET

    @property
    def name(self) -> str:
        """Name of the source, and what its index is called in the mix's folder: its snapshot, or
        ``packed_rows/`` and that.
        """
        return source_name(PLAIN if self.part is msgspec.UNSET else self.part, self.snapshot)


class Mix(msgspec.Struct, frozen=True, kw_only=True):
    """Content of ``mix.json``.

    Attributes:
        sequence_length: tokens of a sample.
        seed: of the indices.
        after: samples that are kept from the mix it continues.
        samples: those that a launch of Megatron requests to get this mix; 0 if it cannot.
        weights: of the sources, on its command line; None if it is given none.
        schedule: how the weights of the part that is not kept move, if they do.
        sources: in the order of their numbers.
    """

    sequence_length: int
    seed: int
    after: int = 0
    samples: int = 0
    weights: tuple[float, ...] | None = None
    schedule: list[Stretch] | msgspec.UnsetType = msgspec.UNSET
    sources: list[MixSource]

    @property
    def n_samples(self) -> int:
        """Length of the blend."""
        return sum(source.used for source in self.sources)


def write_blended_mix(context: BuildContext, staging: StagingFolder) -> Counts:
    """Write one mix of the recipe.

    Raises:
        BadInput: if the recipe has no such mix, if it names missing rows or rows that its samples
            would cut, or if its size is out of range.
    """
    mix = staging.key
    megatron = context.recipe.megatron_rows
    published = {source_name(*name.split("/")): source for name, source in staging.inputs.items()}
    available, lengths = dict[str, int](), dict[str, int]()
    for name, source in published.items():
        index = _index_of(source)
        available[name] = _samples_of(index, megatron.sequence_length)
        if not source.name.startswith(f"{PLAIN}/"):
            require_whole_rows(mix, source.params["megatron"])
        elif index is not None and len(index.lengths):
            lengths[source.name] = int(index.lengths[0])
    if lengths:
        common_of(lengths, "lengths", to_make="mix")
    plan = plan_mix(context.recipe, mix, available)
    chosen, samples = plan.drawn
    write_npy(staging.folder / "dataset_index.npy", chosen)
    write_npy(staging.folder / "dataset_sample_index.npy", samples)
    for name, requested in zip(plan.names, plan.requested, strict=True):
        _index_source(
            staging.folder / name,
            published[name],
            megatron.sequence_length,
            plan.seed,
            requested,
        )
    described = Mix(
        sequence_length=megatron.sequence_length,
        seed=plan.seed,
        after=plan.after,
        samples=plan.samples,
        weights=plan.stated,
        schedule=list(plan.schedule) or msgspec.UNSET,
        sources=list(_described(context, plan, published, available)),
    )
    publish_bytes(staging.folder / MIX_FILE, encode_json(described))
    n_samples = described.n_samples
    return Counts(
        seen=n_samples,
        kept=n_samples,
        extra={"sources": len(plan.names), "tokens": n_samples * megatron.sequence_length},
    )


def _index_of(source: Published) -> MegatronIndex | None:
    """The index of a source's rows; None if it has none."""
    prefix = source.only("train.idx") / "train"
    return read_index(prefix) if idx_path(prefix).is_file() else None


def _samples_of(index: MegatronIndex | None, sequence_length: int) -> int:
    """Samples of one epoch, however many the source's own index has."""
    return 0 if index is None else max(0, n_whole(index.n_tokens, sequence_length))


def _index_source(
    prefix: Path, source: Published, sequence_length: int, seed: int, requested: Sequence[int]
) -> None:
    if not requested:
        return
    lengths = read_index(source.only("train.idx") / "train").lengths
    index = build_gpt_index(
        lengths, sequence_length=sequence_length, seed=seed, n_samples=requested[0]
    )
    for n_samples in requested[1:]:
        index = lengthened(
            index, lengths, sequence_length=sequence_length, seed=seed, n_samples=n_samples
        )
    write_gpt_index(prefix, index)


def _described(
    context: BuildContext,
    plan: PlannedMix,
    published: Mapping[str, Published],
    available: Mapping[str, int],
) -> Iterator[MixSource]:
    for number, name in enumerate(plan.names):
        part, snapshot = part_and_snapshot(name)
        yield MixSource(
            snapshot=snapshot,
            part=msgspec.UNSET if part == PLAIN else part,
            prefix=(published[name].home / "train").relative_to(context.lake.root).as_posix(),
            weight=plan.weights[number],
            available=available[name],
            used=plan.used[number],
            kept=plan.kept[number],
        )


def read_mix(folder: Path) -> Mix:
    """Read ``mix.json`` of a mix's folder."""
    return decode_json(folder / MIX_FILE, Mix)


def table_of(mix: Mix) -> list[dict[str, Any]]:
    """The mix as a table: requested and actual shares, and how often each source is repeated."""
    return [
        {
            "snapshot": source.name,
            "weight": round(source.weight, 6),
            "samples in one epoch": source.available,
            "samples taken": source.used,
            "epochs": round(source.used / source.available, 4),
            "a sample is seen at most": -(-source.used // source.available),
            "gone through once at": round(source.available / source.weight)
            if source.weight > 0 and not mix.schedule
            else None,
        }
        for source in mix.sources
    ]


def the_blend_keeps_its_shares(check_input: CheckInput) -> CheckResult:
    """At every point of the blend, each source's count differs from its share by less than one
    sample per source; by less than one sample, if the weights move.
    """
    mix = read_mix(check_input.folder)
    datasets = read_npy(check_input.folder / "dataset_index.npy")[mix.after :]
    n = np.arange(1, len(datasets) + 1)
    dues = dues_of(mix.schedule) if mix.schedule else None
    worst = max(
        (
            float(np.abs(np.cumsum(datasets == i) - due).max())
            for i, source in enumerate(mix.sources)
            for due in [n * source.weight if dues is None else dues.of(i, n)]
        ),
        default=0.0,
    )
    return CheckResult(
        passed=worst < (1 if dues else max(len(mix.sources), 1)),
        message=f"never more than {worst:.2f} samples off, over {len(datasets):,} samples of "
        f"{len(mix.sources)} sources",
        values={"worst": worst, "samples": len(datasets)},
    )


def every_sample_can_be_found(check_input: CheckInput) -> CheckResult:
    """Each source's samples are taken in order from 0 without a gap, and its GPT index reaches all
    of them.
    """
    mix = read_mix(check_input.folder)
    datasets, samples = (
        read_npy(check_input.folder / f"{name}.npy")
        for name in ("dataset_index", "dataset_sample_index")
    )
    wrong = []
    for number, source in enumerate(mix.sources):
        taken = samples[datasets == number]
        if not np.array_equal(taken, np.arange(source.used)):
            wrong.append(f"{source.name}: samples are not 0 to {source.used:,}")
        elif (
            source.used and read_gpt_index(check_input.folder / source.name).n_samples < source.used
        ):
            wrong.append(f"{source.name}: its index holds fewer than {source.used:,} samples")
    if len(datasets) != check_input.counts.kept or len(samples) != len(datasets):
        wrong.append(
            f"{len(datasets):,} and {len(samples):,} entries, the receipt says "
            f"{check_input.counts.kept:,}"
        )
    return CheckResult(
        passed=not wrong,
        message="; ".join(wrong) or f"{len(datasets):,} samples, each within its source's index",
        values={source.name: source.used for source in mix.sources},
    )


def _takes_from(kind: str) -> Callable[[Recipe, str, str], bool]:
    """Whether a mix uses rows of this kind from a snapshot."""
    return lambda recipe, mix, snapshot: reads(recipe, mix, kind, snapshot)


def _drawn_by(recipe: Recipe, mix: str) -> dict[str, str]:
    """What a mix draws, for its receipt."""
    seed = settings_of(recipe, mix).seed
    seed = recipe.megatron_rows.seed if seed is None else seed
    return {"gpt index": f"numpy RandomState (MT19937), seed {seed}"}


STAGE = Stage(
    name="blended_mix",
    description=(
        "One weighted blend of snapshots and kinds of rows, as Megatron's dataset_index "
        "and dataset_sample_index."
    ),
    code_version="3",
    reads={
        "megatron_rows": ALL_SNAPSHOTS.where(_takes_from("megatron_rows")),
        "packed_rows": ALL_SNAPSHOTS.where(_takes_from("packed_rows")),
    },
    params=lambda recipe, mix: params_of(recipe, mix) | {"megatron": plain(recipe.megatron_rows)},
    checks=(every_sample_can_be_found, the_blend_keeps_its_shares),
    partitioned_by="mix",
    group="training",
    job="mixes",
    kinds=("numpy",),
    counted="samples",
    randomness=_drawn_by,
    write=write_blended_mix,
    cited=attrgetter("version"),
    pool=None,
)
"""Blends of snapshots."""
