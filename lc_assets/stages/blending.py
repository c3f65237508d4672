"""`mixes`: a weighted blend of snapshots, as Megatron's ``dataset_index`` and ``dataset_sample_index``.

A mix is self-contained: beside the two arrays stand ``mix.json``, which names the sources with their weights
and counts, and a GPT index per source over as many epochs as the mix needs, built as Megatron builds it.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from lc_assets.errors import BadInput, CorruptFile
from lc_assets.formats.gpt_index import read_gpt_index, write_gpt_index
from lc_assets.formats.megatron import MegatronReader
from lc_assets.formats.npy import npy_bytes, read_npy
from lc_assets.mixing.blending import blend, blend_all, normalise
from lc_assets.mixing.gpt_index import build_gpt_index
from lc_assets.publishing import publish_bytes
from lc_assets.stages.building import Built, Draft, Evidence, Finding, Stage, Workshop, build
from lc_assets.stages.megatron import require_sensible, samples_of
from lc_assets.stages.recipe import MegatronSettings, MixSettings, Recipe, plain
from lc_assets.storage.lake import Published, decode_json, encode_json
from lc_assets.tally import Tally

MIX_FILE = "mix.json"
NO_SAMPLES = "without training samples (no training row, or fewer tokens in all rows together than megatron.sequence_length)"
TAKEN = "dataset"
"""``dataset_index.npy`` and ``dataset_sample_index.npy`` are the mix's own."""


class MixSource(msgspec.Struct, frozen=True, kw_only=True):
    """One source of a mix.

    Attributes:
        snapshot: its name.
        prefix: of its Megatron files, relative to the lake's root.
        weight: share of the mix that was asked for; all together are 1.
        available: samples of one epoch.
        used: samples that the mix takes; more than ``available`` means more than one epoch.
    """

    snapshot: str
    prefix: str
    weight: float
    available: int
    used: int


class Mix(msgspec.Struct, frozen=True, kw_only=True):
    """Content of ``mix.json``."""

    sequence_length: int
    seed: int
    sources: list[MixSource]

    @property
    def n_samples(self) -> int:
        """Length of the blend."""
        return sum(source.used for source in self.sources)


def blend_mix(workshop: Workshop, mix: str) -> Built:
    """Publish one mix of the recipe.

    Raises:
        BadInput: when the recipe has no such mix, it names a snapshot that has no Megatron rows, or asks for an absurd size.
    """
    settings = settings_of(workshop.recipe, mix)
    megatron = workshop.recipe.megatron

    def fill(draft: Draft) -> Tally:
        sources = chosen(settings, draft.inputs)
        available = [samples_of(source) for source in sources]
        weights = weights_of(settings, sources, available)
        dataset_index, dataset_sample_index = _blended(settings, weights, available)
        used = np.bincount(dataset_index, minlength=len(sources)).tolist()
        publish_bytes(draft.folder / "dataset_index.npy", npy_bytes(dataset_index))
        publish_bytes(draft.folder / "dataset_sample_index.npy", npy_bytes(dataset_sample_index))
        for source, n_used in zip(sources, used, strict=True):
            _index_source(draft.folder, source, megatron, n_used)
        described = Mix(
            sequence_length=megatron.sequence_length, seed=megatron.seed, sources=_described(workshop, sources, weights, available, used)
        )
        publish_bytes(draft.folder / MIX_FILE, encode_json(described))
        n_samples = len(dataset_index)
        return Tally(seen=n_samples, kept=n_samples, also={"sources": len(sources), "tokens": n_samples * megatron.sequence_length})

    return build(workshop, STAGE, mix, fill, randomness={"gpt index": f"numpy RandomState (MT19937), seed {megatron.seed}"})


def settings_of(recipe: Recipe, mix: str) -> MixSettings:
    """Settings of one mix.

    Raises:
        BadInput: when the recipe has no such mix; lists those it has.
    """
    if mix not in recipe.mixes:
        raise BadInput(f"the recipe has no mix {mix!r}; it has {', '.join(sorted(recipe.mixes)) or 'none'}")
    return recipe.mixes[mix]


def chosen(settings: MixSettings, inputs: Mapping[str, Published]) -> list[Published]:
    """The sources of a mix, sorted by snapshot: those it names, or all that have training samples.

    Raises:
        BadInput: when a named snapshot is not published for Megatron or has no sample, or nothing is left to mix.
    """
    published = {name.removeprefix("megatron/"): source for name, source in inputs.items()}
    sampled = {snapshot: source for snapshot, source in sorted(published.items()) if samples_of(source)}
    named = settings.weights.keys() if isinstance(settings.weights, dict) else sampled.keys()
    if missing := sorted(named - published.keys()):
        raise BadInput(f"the mix names {', '.join(missing)}, of which no `megatron` is published: build it, or take it out of the weights")
    if empty := sorted(named - sampled.keys()):
        raise BadInput(f"the mix names {', '.join(empty)}, {NO_SAMPLES}; take it out of the weights")
    if not named:
        raise BadInput(
            f"nothing to mix: {'no snapshot is named' if settings.weights == {} else f'every published snapshot is one {NO_SAMPLES}'}"
        )
    if TAKEN in named:
        raise BadInput(f"a snapshot called {TAKEN!r} cannot be mixed: its index would take the names of the mix's own files; rename it")
    return [sampled[snapshot] for snapshot in sorted(named)]


def weights_of(settings: MixSettings, sources: list[Published], available: list[int]) -> NDArray[np.float64]:
    """Weights of the sources, summing to 1 as nearly as Megatron's do: its builder and its blend normalise one after the other."""
    if settings.weights == "tokens":
        asked: list[float] = [float(n_samples) for n_samples in available]
    elif settings.weights == "equal":
        asked = [1.0] * len(sources)
    else:
        asked = [settings.weights[source.receipt.fingerprint.key] for source in sources]
    return normalise(normalise(asked).tolist())


def _blended(settings: MixSettings, weights: NDArray[np.float64], available: list[int]) -> tuple[NDArray[np.int16], NDArray[np.int64]]:
    if settings.weights == "tokens" and settings.samples is None:
        return blend_all(available)
    if settings.samples is None:
        return blend(weights, largest_without_repeats(weights, available))
    for weight, n_available in zip(weights, available, strict=True):
        require_sensible(weight * settings.samples, n_available, whose="the mix")
    return blend(weights, settings.samples)


def largest_without_repeats(weights: NDArray[np.float64], available: list[int]) -> int:
    """Length of the longest blend that takes no sample of any source twice.

    >>> largest_without_repeats(np.array([0.5, 0.5]), [10, 4])
    8
    """
    size = int(min(n / weight for n, weight in zip(available, weights.tolist(), strict=True)))
    while size and (np.bincount(blend(weights, size)[0], minlength=len(available)) > available).any():
        size -= 1
    return size


def _index_source(folder: Path, source: Published, settings: MegatronSettings, n_used: int) -> None:
    if not n_used:
        return
    lengths = MegatronReader(source.folder / "train").lengths
    index = build_gpt_index(lengths, sequence_length=settings.sequence_length, seed=settings.seed, n_samples=n_used)
    write_gpt_index(folder / source.receipt.fingerprint.key, index)


def _described(
    workshop: Workshop, sources: list[Published], weights: NDArray[np.float64], available: list[int], used: list[int]
) -> list[MixSource]:
    return [
        MixSource(
            snapshot=source.receipt.fingerprint.key,
            prefix=(source.folder / "train").relative_to(workshop.lake.root).as_posix(),
            weight=float(weight),
            available=n_available,
            used=n_used,
        )
        for source, weight, n_available, n_used in zip(sources, weights, available, used, strict=True)
    ]


def read_mix(folder: Path) -> Mix:
    """Read ``mix.json`` of a mix's folder."""
    return decode_json(folder / MIX_FILE, Mix)


def table_of(mix: Mix) -> list[dict[str, Any]]:
    """The mix as a table for people: what was asked, what was taken, how often each source is repeated."""
    return [
        {
            "snapshot": source.snapshot,
            "weight": round(source.weight, 6),
            "samples in one epoch": source.available,
            "samples taken": source.used,
            "epochs": round(source.used / source.available, 4),
        }
        for source in mix.sources
    ]


def the_blend_keeps_its_shares(evidence: Evidence) -> Finding:
    """At no point of the blend is a source's count off its share by one sample or more per source."""
    mix = read_mix(evidence.folder)
    datasets = read_npy(evidence.folder / "dataset_index.npy")
    n = np.arange(1, len(datasets) + 1)
    worst = max((float(np.abs(np.cumsum(datasets == i) - n * source.weight).max()) for i, source in enumerate(mix.sources)), default=0.0)
    bound = float(len(mix.sources))
    return Finding(
        claim="the_blend_keeps_its_shares",
        passed=worst < bound,
        words=f"never more than {worst:.2f} samples off, over {len(datasets):,} samples of {len(mix.sources)} sources",
        numbers={"worst": worst, "samples": len(datasets)},
    )


def every_sample_can_be_found(evidence: Evidence) -> Finding:
    """Each source's samples are taken in order from 0 without a gap, and its GPT index reaches all of them."""
    mix = read_mix(evidence.folder)
    datasets, samples = (read_npy(evidence.folder / f"{name}.npy") for name in ("dataset_index", "dataset_sample_index"))
    wrong = []
    for number, source in enumerate(mix.sources):
        taken = samples[datasets == number]
        if not np.array_equal(taken, np.arange(source.used)):
            wrong.append(f"{source.snapshot}: samples are not 0 to {source.used:,}")
        elif source.used and not _reaches(evidence.folder / source.snapshot, source.used):
            wrong.append(f"{source.snapshot}: its index holds fewer than {source.used:,} samples")
    if len(datasets) != evidence.tally.kept or len(samples) != len(datasets):
        wrong.append(f"{len(datasets):,} and {len(samples):,} entries, the receipt says {evidence.tally.kept:,}")
    return Finding(
        claim="every_sample_can_be_found",
        passed=not wrong,
        words="; ".join(wrong) or f"{len(datasets):,} samples, each within its source's index",
        numbers={source.snapshot: source.used for source in mix.sources},
    )


def _reaches(prefix: Path, n_used: int) -> bool:
    try:
        return read_gpt_index(prefix).n_samples >= n_used
    except CorruptFile:
        return False


def _reads(recipe: Recipe, mix: str, snapshot: str) -> bool:
    weights = settings_of(recipe, mix).weights
    return not isinstance(weights, dict) or snapshot in weights


STAGE = Stage(
    name="mixes",
    code_version="1",
    upstream=("megatron",),
    params=lambda recipe, mix: plain(settings_of(recipe, mix)) | {"megatron": plain(recipe.megatron)},
    claims=(every_sample_can_be_found, the_blend_keeps_its_shares),
    partitioned_by="mix",
    global_upstream=True,
    reads=_reads,
)
"""Blends of snapshots."""
