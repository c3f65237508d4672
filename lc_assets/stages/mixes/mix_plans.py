"""From a mix's settings to its arrays: its sources, their numbers of samples, the order, and the
samples kept from another mix.

A plan is a function of the recipe and of how many samples the published sources have; it reads and
writes nothing.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from lc_assets.builds.recipe import Recipe, plain
from lc_assets.builds.settings.rows import (
    PLAIN,
    MixSettings,
    Part,
    part_and_snapshot,
    source_name,
)
from lc_assets.errors import BadInput
from lc_assets.mixing.blending import (
    Blend,
    blend,
    blend_all,
    continued_blend,
    counts,
    largest_request,
    largest_without_repeats,
    normalise,
    requests,
    targets,
    tempered,
)
from lc_assets.mixing.schedules import Stretch, dues_of, scheduled_blend
from lc_assets.records import record
from lc_assets.stages.megatron.megatron_rows import require_sensible

NO_SAMPLES = (
    "without training samples (no training row, or fewer tokens in all rows together "
    "than megatron_rows.sequence_length)"
)
TAKEN = "dataset"
"""``dataset_index.npy`` and ``dataset_sample_index.npy`` are the mix's own."""


@record
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
        requested: for each source, the numbers of samples that its index was built for, as many as
            Megatron requests, and then extended to.
        seed: of the indices.
        stated: weights on Megatron's command line; None if it is given none, and takes all samples.
        samples: number of samples on Megatron's command line.
        schedule: of the weights of the part after the kept one, in the order of ``names``; empty if
            they do not move.
    """

    names: tuple[str, ...]
    weights: tuple[float, ...]
    drawn: Blend
    after: int
    kept: tuple[int, ...]
    used: tuple[int, ...]
    requested: tuple[tuple[int, ...], ...]
    seed: int
    stated: tuple[float, ...] | None
    samples: int
    schedule: tuple[Stretch, ...]


class _Blended(NamedTuple):
    """The part of a mix after the kept one: as `PlannedMix`, of its sources alone."""

    drawn: Blend
    stated: tuple[float, ...] | None
    samples: int
    requested: tuple[int, ...]


def settings_of(recipe: Recipe, mix: str) -> MixSettings:
    """Settings of one mix.

    Raises:
        BadInput: if the recipe has no such mix; lists the others.
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
        BadInput: if one does not exist, does not name its sources, or they form a cycle.
    """
    found = [mix]
    while (before := settings_of(recipe, found[-1]).continues) is not None:
        if before.mix in found:
            raise BadInput(f"the mix {mix!r} continues itself, by way of {', '.join(found)}")
        if settings_of(recipe, before.mix).named(PLAIN) is None:
            raise BadInput(
                f"the mix {found[-1]!r} continues {before.mix!r}, which takes whatever is "
                "published: name its sources and weights"
            )
        found.append(before.mix)
    return tuple(found)


def params_of(recipe: Recipe, mix: str) -> dict[str, Any]:
    """All settings that shape a mix: its own, and those of the mixes it continues."""
    found = [plain(settings_of(recipe, name)) for name in lineage(recipe, mix)]
    for settings in found:
        for name in ("parts", "schedule"):  # so that mixes without them keep their versions
            if not settings[name]:
                del settings[name]
    return found[0] | {"before": found[1:]}


def reads(recipe: Recipe, mix: str, part: str, snapshot: str) -> bool:
    """Whether a mix, or a mix it continues, takes from rows of this kind of this snapshot."""
    each = (settings_of(recipe, name) for name in lineage(recipe, mix))
    return any(
        part in settings.kinds and ((named := settings.named(part)) is None or snapshot in named)
        for settings in each
    )


def plan_mix(recipe: Recipe, mix: str, available: Mapping[str, int]) -> PlannedMix:
    """Draw up a mix.

    Args:
        recipe: all settings.
        mix: its name.
        available: samples of one epoch of every published source, by `source_name`.

    Raises:
        BadInput: if a source is missing or empty, or a setting is out of range.
    """
    *newer, oldest = lineage(recipe, mix)
    plan = _planned(None, recipe, oldest, available)
    for name in reversed(newer):
        plan = _planned(plan, recipe, name, available)
    return plan


def _planned(
    before: PlannedMix | None, recipe: Recipe, mix: str, available: Mapping[str, int]
) -> PlannedMix:
    settings = settings_of(recipe, mix)
    after = settings.continues.after if settings.continues else 0
    by_part = {part: _chosen(settings, part, available) for part in settings.kinds}
    named = [source for sources in by_part.values() for source in sources]
    earlier = dict(zip(before.names, before.requested, strict=True)) if before else {}
    names = tuple(dict.fromkeys([*earlier, *named]))
    kept = counts(before.drawn[0][:after], len(names)) if before else [0] * len(names)
    left = [available[name] - kept[names.index(name)] for name in named]
    sizes = {part: [available[name] for name in sources] for part, sources in by_part.items()}
    length = recipe.megatron_rows.sequence_length
    if settings.schedule:
        rest = _scheduled(_stretches(settings, named), [available[name] for name in named])
    else:
        rest = _blended(settings, sizes, left, length, after if before else None)
    numbers = np.array([names.index(name) for name in named], np.int16)
    drawn = (numbers[rest.drawn[0]], rest.drawn[1])
    seed = recipe.megatron_rows.seed if settings.seed is None else settings.seed
    requested = dict(zip(named, ((n,) for n in rest.requested), strict=True))
    stated, samples = rest.stated, rest.samples
    if before:
        if seed != before.seed:
            raise BadInput(
                f"the mix {mix!r} has another seed than the mix it continues: what was consumed "
                "would change"
            )
        drawn = continued_blend(before.drawn, after, drawn)
    used = counts(drawn[0], len(names))
    if before:
        requested = {
            name: (*earlier.get(name, ()), *([n_used] if n_used else ()))
            for name, n_used in zip(names, used, strict=True)
        }
        stated = tuple(map(float, used))
        samples = largest_request(stated, sum(used)) if all(used) else 0
    shares = dict(zip(named, _shares(rest, sizes), strict=True))
    return PlannedMix(
        names=names,
        weights=tuple(shares.get(name, 0.0) for name in names),
        drawn=drawn,
        after=after,
        kept=tuple(kept),
        used=tuple(used),
        requested=tuple(requested[name] for name in names),
        seed=seed,
        stated=stated,
        samples=samples,
        schedule=_stretches(settings, names),
    )


def _shares(rest: _Blended, by_part: Mapping[Part, Sequence[int]]) -> list[float]:
    weights = rest.stated or [n_samples for sizes in by_part.values() for n_samples in sizes]
    return normalise(weights).tolist() if weights else []


def _chosen(settings: MixSettings, part: Part, available: Mapping[str, int]) -> list[str]:
    """The sources of one kind, sorted: of the snapshots that a mix names, or of all that have
    training samples.
    """
    there = {name: n for name, n in available.items() if part_and_snapshot(name)[0] == part}
    sampled = {name for name, n_samples in there.items() if n_samples}
    named = (
        sampled
        if (snapshots := settings.named(part)) is None
        else {source_name(part, snapshot) for snapshot in snapshots}
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
                f"the mix has a share of {part}, and no published `{part}` has samples: build it, "
                "or take it out of the parts"
            )
        if settings.weights == {}:
            raise BadInput("nothing to mix: no snapshot is named")
        if settings.samples:
            raise BadInput(
                f"nothing to take samples from: every published snapshot is one {NO_SAMPLES}"
            )
    if TAKEN in named:
        raise BadInput(
            f"a snapshot called {TAKEN!r} cannot be mixed: its index would take the names of the "
            "mix's own files; rename it"
        )
    return sorted(named)


def _blended(
    settings: MixSettings,
    by_part: Mapping[Part, Sequence[int]],
    left: Sequence[int],
    sequence_length: int,
    after: int | None,
) -> _Blended:
    """The blend after the kept part; if none is kept (``after`` is None), of Megatron's size."""
    available = [n_samples for sizes in by_part.values() for n_samples in sizes]
    if not available:
        return _Blended((np.zeros(0, np.int16), np.zeros(0, np.int64)), None, 0, ())
    sized = _sizes(settings, available, sequence_length)
    by_size = settings.weights == "tokens" and settings.temperature == 1 and not settings.parts
    if not sized and settings.samples is None and by_size and list(left) == available:
        total = sum(available)
        return _Blended(blend_all(available), None, total, tuple(available))
    stated = list(map(float, sized or _weights(settings, by_part)))
    # Twice, as Megatron does: its builder and its blend normalise one after the other.
    weights = normalise(normalise(stated).tolist())
    if sized or settings.samples is None:
        size = sum(sized) or largest_without_repeats(weights, left)
        samples = largest_request(stated, size)
    else:
        samples = size = _left_to_draw(settings.samples, after or 0)
        for weight, n_available in zip(weights, available, strict=True):
            require_sensible(weight * size, n_available, whose="the mix")
    if after is None:
        size = sum(targets(stated, samples))
    return _Blended(blend(weights, size), tuple(stated), samples, tuple(requests(stated, samples)))


def _stretches(settings: MixSettings, names: Sequence[str]) -> tuple[Stretch, ...]:
    """The schedule of a mix over its sources."""
    return tuple(
        Stretch(
            samples=one.samples,
            first=tuple(one.weights.get(name, 0.0) for name in names),
            last=tuple((one.to or one.weights).get(name, 0.0) for name in names),
        )
        for one in settings.schedule
    )


def _scheduled(schedule: Sequence[Stretch], available: Sequence[int]) -> _Blended:
    """The blend of a schedule; Megatron's weights are what each source is due."""
    dues = dues_of(schedule)
    size, stated = int(dues.starts[-1]), tuple(dues.begun[-1].tolist())
    for due, n_available in zip(stated, available, strict=True):
        require_sensible(due, n_available, whose="the mix")
    drawn, samples = scheduled_blend(dues), largest_request(stated, size)
    used = counts(drawn[0], len(stated))
    return _Blended(drawn, stated, samples, tuple(map(max, requests(stated, samples), used)))


def _sizes(settings: MixSettings, available: Sequence[int], sequence_length: int) -> list[int]:
    """Samples of each source by its tokens or epochs; empty if neither is set."""
    tokens = [n / sequence_length for _, n in sorted(settings.tokens.items())]
    epochs = [n for _, n in sorted(settings.epochs.items())]
    exact = tokens or [n * one for n, one in zip(epochs, available, strict=False)]
    sizes = [max(1, round(n)) for n in exact]
    for size, n_available in zip(sizes, available, strict=False):
        require_sensible(size, n_available, whose="the mix")
    return sizes


def _left_to_draw(n_samples: int, after: int) -> int:
    if n_samples < after:
        raise BadInput(
            f"the mix has {n_samples:,} samples, and keeps {after:,} of the mix it "
            "continues; samples counts both parts"
        )
    return n_samples - after


def _weights(settings: MixSettings, by_part: Mapping[Part, Sequence[int]]) -> list[float]:
    if not settings.parts:
        return _weights_of(settings, by_part[PLAIN])
    shares = normalise([settings.parts[part] for part in by_part]).tolist()
    return [
        share * weight
        for share, sizes in zip(shares, by_part.values(), strict=True)
        for weight in normalise(_weights_of(settings, sizes)).tolist()
    ]


def _weights_of(settings: MixSettings, sizes: Sequence[int]) -> list[float]:
    if isinstance(settings.weights, dict):
        return [weight for _, weight in sorted(settings.weights.items())]
    if settings.weights == "tokens":
        own = [float(n) for n in sizes]
        return own if settings.temperature == 1 else tempered(sizes, settings.temperature)
    return [1.0] * len(sizes)
