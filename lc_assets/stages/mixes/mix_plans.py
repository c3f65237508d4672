"""From a mix's settings to its arrays: which sources, how many samples of each, in which order,
going on from what.

A plan is a function of the recipe and of how many samples the published sources have; it reads and
writes nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lc_assets.build.recipe import Recipe, plain
from lc_assets.build.settings.rows import MixSettings, Part
from lc_assets.errors import BadInput
from lc_assets.mixing.blending import (
    Blend,
    blend,
    blend_all,
    counts,
    largest_without_repeats,
    normalise,
    samples_for_epochs,
    samples_for_tokens,
    tempered,
)
from lc_assets.mixing.continuing import continued_blend
from lc_assets.stages.megatron.megatron_rows import require_sensible

NO_SAMPLES = (
    "without training samples (no training row, or fewer tokens in all rows together "
    "than megatron_rows.sequence_length)"
)
PLAIN: Part = "megatron_rows"
"""The kind of rows whose sources are named by their snapshot alone; others are
``packed_rows/2023-06``.
"""
TAKEN = "dataset"
"""``dataset_index.npy`` and ``dataset_sample_index.npy`` are the mix's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedMix:
    """The contents of a mix.

    Attributes:
        names: of the sources, as `source_name` makes them, in the order of the data sets' numbers.
        weights: shares of the part after the kept one; 0 for a source that is only in the kept
            part.
        drawn: the arrays.
        after: number of samples kept from the previous mix.
        kept: how many of those belong to each source.
        used: samples of each source in total.
        asked: for each source, the numbers of samples that its index was built for and then
            extended to.
        seed: of the indices.
    """

    names: tuple[str, ...]
    weights: tuple[float, ...]
    drawn: Blend
    after: int
    kept: tuple[int, ...]
    used: tuple[int, ...]
    asked: tuple[tuple[int, ...], ...]
    seed: int


def settings_of(recipe: Recipe, mix: str) -> MixSettings:
    """Settings of one mix.

    Raises:
        BadInput: when the recipe has no such mix; lists those it has.
    """
    if mix not in recipe.blended_mix:
        raise BadInput(
            f"the recipe has no mix {mix!r}; it has "
            f"{', '.join(sorted(recipe.blended_mix)) or 'none'}"
        )
    return recipe.blended_mix[mix]


def lineage(recipe: Recipe, mix: str) -> tuple[str, ...]:
    """A mix, the mix it continues, the one that continues, and so on.

    Raises:
        BadInput: when one is not there, does not name its sources, or they go round in a circle.
    """
    found = [mix]
    while (before := settings_of(recipe, found[-1]).continues) is not None:
        if before.mix in found:
            raise BadInput(f"the mix {mix!r} continues itself, by way of {', '.join(found)}")
        if settings_of(recipe, before.mix).named is None:
            raise BadInput(
                f"the mix {found[-1]!r} continues {before.mix!r}, which takes whatever is "
                "published: name its sources and weights"
            )
        found.append(before.mix)
    return tuple(found)


def source_name(part: str, snapshot: str) -> str:
    """Name of a source: a kind of rows of one snapshot.

    >>> source_name("megatron_rows", "2023-06"), source_name("packed_rows", "2023-06")
    ('2023-06', 'packed_rows/2023-06')
    """
    return snapshot if part == PLAIN else f"{part}/{snapshot}"


def part_and_snapshot(source: str) -> tuple[str, str]:
    """The inverse of `source_name`; a snapshot's name contains no ``/``.

    >>> part_and_snapshot("2023-06"), part_and_snapshot("packed_rows/2023-06")
    (('megatron_rows', '2023-06'), ('packed_rows', '2023-06'))
    """
    part, _, snapshot = source.rpartition("/")
    return part or PLAIN, snapshot


def params_of(recipe: Recipe, mix: str) -> dict[str, Any]:
    """All settings that shape a mix: its own, and those of the mixes it continues."""
    own, *before = (_plain(settings_of(recipe, name)) for name in lineage(recipe, mix))
    return own | {"before": before}


def _plain(settings: MixSettings) -> dict[str, Any]:
    """Omit parts if there are none, so that mixes without parts keep their versions."""
    return {name: value for name, value in plain(settings).items() if name != "parts" or value}


def reads(recipe: Recipe, mix: str, part: str, snapshot: str) -> bool:
    """Whether a mix, or a mix it continues, takes from rows of this kind of this snapshot."""
    each = (settings_of(recipe, name) for name in lineage(recipe, mix))
    return any(
        part in settings.kinds and (settings.named is None or snapshot in settings.named)
        for settings in each
    )


def plan_mix(recipe: Recipe, mix: str, available: Mapping[str, int]) -> PlannedMix:
    """Draw up a mix.

    Args:
        recipe: all settings.
        mix: its name.
        available: samples of one epoch of every published source, by `source_name`.

    Raises:
        BadInput: when a source is missing or empty, or the settings cannot be meant.
    """
    plan: PlannedMix | None = None
    after = 0
    for name in reversed(lineage(recipe, mix)):
        settings = settings_of(recipe, name)
        if settings.continues is not None:
            after = settings.continues.after
        plan = _continued(plan, after, recipe, name, available)
    if plan is None:
        raise BadInput(f"the mix {mix!r} cannot be planned")
    return plan


def _continued(
    before: PlannedMix | None, after: int, recipe: Recipe, mix: str, available: Mapping[str, int]
) -> PlannedMix:
    settings = settings_of(recipe, mix)
    by_part = chosen(settings, available)
    named = [source for sources in by_part.values() for source in sources]
    names = tuple(dict.fromkeys([*(before.names if before else ()), *named]))
    kept = counts(before.drawn[0][:after], len(names)) if before else [0] * len(names)
    left = [available[name] - kept[names.index(name)] for name in named]
    sizes = {part: [available[name] for name in sources] for part, sources in by_part.items()}
    weights, rest = _drawn(settings, sizes, left, recipe.megatron_rows.sequence_length, after)
    numbers = np.array([names.index(name) for name in named], np.int16)
    drawn = (numbers[rest[0]], rest[1])
    if before:
        if after > len(before.drawn[0]):
            raise BadInput(
                f"the mix {mix!r} keeps {after:,} samples of a mix that has "
                f"{len(before.drawn[0]):,}"
            )
        drawn = continued_blend(before.drawn, after, drawn)
    used = counts(drawn[0], len(names))
    asked = [
        (*(before.asked[n] if before and n < len(before.names) else ()), one)
        for n, one in enumerate(used)
    ]
    shares = dict(zip(named, weights, strict=True))
    seed = recipe.megatron_rows.seed if settings.seed is None else settings.seed
    if before and seed != before.seed:
        raise BadInput(
            f"the mix {mix!r} has another seed than the mix it continues: what was consumed would "
            "change"
        )
    return PlannedMix(
        names=names,
        weights=tuple(shares.get(name, 0.0) for name in names),
        drawn=drawn,
        after=after if before else 0,
        kept=tuple(kept),
        used=tuple(used),
        asked=tuple(tuple(n for n in one if n) for one in asked),
        seed=seed,
    )


def chosen(settings: MixSettings, available: Mapping[str, int]) -> dict[Part, list[str]]:
    """The sources of a mix by their kind, sorted: of the snapshots that it names, or of all that
    have training samples.

    Raises:
        BadInput: when a named source is not published or has no sample, or nothing is left to mix.
    """
    return {part: _chosen(settings, part, available) for part in settings.kinds}


def _chosen(settings: MixSettings, part: Part, available: Mapping[str, int]) -> list[str]:
    there = {
        source: n_samples
        for source, n_samples in available.items()
        if part_and_snapshot(source)[0] == part
    }
    sampled = {source for source, n_samples in there.items() if n_samples}
    named = (
        sampled
        if settings.named is None
        else {source_name(part, snapshot) for snapshot in settings.named}
    )
    if missing := sorted(named - there.keys()):
        raise BadInput(
            f"the mix names {', '.join(missing)}, of which no `{part}` is published: build it, or "
            "take it out of the weights"
        )
    if empty := sorted(named - sampled):
        raise BadInput(
            f"the mix names {', '.join(empty)}, {NO_SAMPLES}; take it out of the weights"
        )
    if not named:
        if settings.parts:
            raise BadInput(
                f"the mix has a share of {part}, and no published `{part}` has samples: "
                "build it, or take it out of the parts"
            )
        nothing = (
            "no snapshot is named"
            if settings.weights == {}
            else f"every published snapshot is one {NO_SAMPLES}"
        )
        raise BadInput(f"nothing to mix: {nothing}")
    if TAKEN in named:
        raise BadInput(
            f"a snapshot called {TAKEN!r} cannot be mixed: its index would take the names of the "
            "mix's own files; rename it"
        )
    return sorted(named)


def _drawn(
    settings: MixSettings,
    by_part: Mapping[Part, Sequence[int]],
    left: Sequence[int],
    sequence_length: int,
    after: int,
) -> tuple[list[float], Blend]:
    available = [n_samples for sizes in by_part.values() for n_samples in sizes]
    if settings.tokens or settings.epochs:
        wanted = _wanted(settings, available, sequence_length)
        return normalise(wanted).tolist(), blend_all(wanted)
    # Twice, as Megatron does: its builder and its blend normalise one after the other.
    weights = normalise(normalise(_asked(settings, by_part)).tolist())
    if settings.samples is None:
        everything = (
            not settings.parts
            and settings.weights == "tokens"
            and settings.temperature == 1
            and list(left) == available
        )
        if everything:
            return weights.tolist(), blend_all(available)
        return weights.tolist(), blend(weights, largest_without_repeats(weights, left))
    if settings.samples < after:
        raise BadInput(
            f"the mix has {settings.samples:,} samples, and keeps {after:,} of the mix it "
            "continues; samples counts both parts"
        )
    size = settings.samples - after
    for weight, n_available in zip(weights, available, strict=True):
        require_sensible(weight * size, n_available, whose="the mix")
    return weights.tolist(), blend(weights, size)


def _wanted(settings: MixSettings, available: Sequence[int], sequence_length: int) -> list[int]:
    if settings.epochs:
        return samples_for_epochs(
            [settings.epochs[name] for name in sorted(settings.epochs)], available
        )
    wanted = samples_for_tokens(
        [settings.tokens[name] for name in sorted(settings.tokens)], sequence_length
    )
    for n_wanted, n_available in zip(wanted, available, strict=True):
        require_sensible(n_wanted, n_available, whose="the mix")
    return wanted


def _asked(settings: MixSettings, by_part: Mapping[Part, Sequence[int]]) -> list[float]:
    if not settings.parts:
        return _asked_of(settings, by_part[PLAIN])
    shares = dict(
        zip(by_part, normalise([settings.parts[part] for part in by_part]).tolist(), strict=True)
    )
    return [
        shares[part] * weight
        for part, sizes in by_part.items()
        for weight in normalise(_asked_of(settings, sizes)).tolist()
    ]


def _asked_of(settings: MixSettings, available: Sequence[int]) -> list[float]:
    if settings.weights == "tokens":
        return (
            tempered(available, settings.temperature)
            if settings.temperature != 1
            else [float(one) for one in available]
        )
    if isinstance(settings.weights, dict):
        return [settings.weights[name] for name in sorted(settings.weights)]
    return [1.0] * len(available)
