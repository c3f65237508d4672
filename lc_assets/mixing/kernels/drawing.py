"""Drawing up a blend: the lane that is furthest behind, step by step, without looking at all of
them.

A *lane* is all data sets of one weight; they are served in turn, so one of them speaks for the
lane. How far a lane is behind at step ``n``, ``weight × max(n, 1) − rounds``, only rises until its
round is over, also in rounded arithmetic. Two things follow, and both are exact:

* A lane whose first step at or above a *bar* is known need not be looked at before: it waits in a
  ring of steps. The others stand in a list, and the furthest of the list is the furthest of all as
  long as it reaches the bar itself. When it does not, the bar is lowered, when the list grows long,
  it is raised, and every lane is placed anew.
* A lane that is now further behind than any other will be at a later step goes on being served
  until then.

No bound is a guess: a waiting lane's step is checked in the very arithmetic that decides (`_wait`).
The multiplication and the subtraction are rounded one by one. LLVM fuses them only where it is told
to, and nobody tells it: a test reads the machine code.

Here: the compiled loop. Its plain twin, and what a blend is, are in `lc_assets.mixing.blending`.
Source: Megatron-LM ``helpers.cpp`` (``build_blending_indices``,
    ``build_exhaustive_blending_indices``).
"""

import numpy as np
from jaxtyping import Float64, Int16, Int64

from lc_assets.compiling import compiled, inlined

FEW = 24
"""As many lanes all stand in the list, whatever they are behind."""
LONG = 2
"""The list is too long at so many times the lanes that were wanted in it."""
_SLOT_BITS = 16
_SLOT = np.int64((1 << _SLOT_BITS) - 1)
_NOBODY = int(np.iinfo(np.int64).max)
_LEAST = int(np.iinfo(np.int64).min)
_MAGNITUDE = np.int64(0x7FFFFFFFFFFFFFFF)
_BISECTIONS = 16


@compiled
def draw_few(
    weights: Float64[np.ndarray, " dataset"],
    limits: Int64[np.ndarray, " dataset"],
    chosen: Int16[np.ndarray, " sample"],
    samples: Int64[np.ndarray, " sample"],
) -> None:
    """Fill in ``chosen`` and ``samples`` looking at every data set at every step: the largest
    first, then whose it is.

    Args:
        weights: of each data set.
        limits: samples that each has.
        chosen: data set of each sample.
        samples: how often that data set was taken before.
    """
    room = (len(weights) + 3) // 4 * 4
    shares, taken = (
        np.zeros(room),
        np.full(room, np.inf),
    )  # those at the end, infinitely far ahead, are never chosen
    shares[: len(weights)], taken[: len(weights)] = weights, 0
    behind = np.empty(room)
    for n in range(len(chosen)):
        now = float(max(n, 1))
        most_0 = most_1 = most_2 = most_3 = -np.inf
        for at in range(0, room, 4):
            value_0, value_1 = shares[at] * now - taken[at], shares[at + 1] * now - taken[at + 1]
            value_2, value_3 = (
                shares[at + 2] * now - taken[at + 2],
                shares[at + 3] * now - taken[at + 3],
            )
            behind[at], behind[at + 1], behind[at + 2], behind[at + 3] = (
                value_0,
                value_1,
                value_2,
                value_3,
            )
            # Not max(): that asks after NaN, which never stands here.
            most_0, most_1 = (
                value_0 if value_0 > most_0 else most_0,
                value_1 if value_1 > most_1 else most_1,
            )
            most_2, most_3 = (
                value_2 if value_2 > most_2 else most_2,
                value_3 if value_3 > most_3 else most_3,
            )
        most = max(most_0, most_1, most_2, most_3)
        who = 0
        while behind[who] != most:  # the one jump in a step that no processor foresees
            who += 1
        chosen[n], samples[n] = who, np.int64(taken[who])
        taken[who] += 1
        if taken[who] >= limits[who]:
            taken[who] = np.inf


@compiled
def draw(
    weights: Float64[np.ndarray, " lane"],
    limits: Int64[np.ndarray, " lane"],
    starts: Int64[np.ndarray, " lane_and_end"],
    members: Int64[np.ndarray, " dataset"],
    chosen: Int16[np.ndarray, " sample"],
    samples: Int64[np.ndarray, " sample"],
) -> None:
    """Fill in ``chosen`` and ``samples``.

    Args:
        weights: of each lane.
        limits: samples that each data set of a lane has.
        starts: lane ``l`` is ``members[starts[l] : starts[l + 1]]``.
        members: numbers of data sets, rising within a lane.
        chosen: data set of each sample.
        samples: how often that data set was taken before.
    """
    # Loose arrays, not a tuple of them: taking one out of a tuple counts references, 400 ns a
    # sample.
    n_lanes, ring = len(weights), 64
    while ring < 2 * n_lanes:
        ring *= 2
    # Of each lane: how often all its data sets were served, and how many of them once more; and who
    # waits for which step.
    rounds, turns = np.zeros(n_lanes), np.zeros(n_lanes, np.int64)
    first, following = np.full(ring, -1, np.int64), np.full(n_lanes, -1, np.int64)
    # Of each slot of the list: its lane with weight and rounds, and the data set that speaks for it
    # with the slot below it.
    slot_lanes, slot_weights, slot_rounds, keys = (
        np.empty(n_lanes, np.int64),
        np.empty(n_lanes),
        np.empty(n_lanes),
        np.empty(n_lanes, np.int64),
    )
    behind = np.empty(n_lanes)
    wanted = n_lanes if n_lanes <= FEW else max(8, int(np.sqrt(n_lanes) / 3))
    bar, listed, placed_at, n = 0.0, 0, -1, 0
    while n < len(chosen):
        now = float(max(n, 1))
        # Those that waited for this step come into the list, unless they have to wait on.
        lane = first[n & (ring - 1)]
        first[n & (ring - 1)] = -1
        while lane >= 0:
            after = following[lane]
            if weights[lane] * now - rounds[lane] >= bar:
                slot_lanes[listed], slot_weights[listed], slot_rounds[listed] = (
                    lane,
                    weights[lane],
                    rounds[lane],
                )
                keys[listed] = members[starts[lane] + turns[lane]] << _SLOT_BITS | listed
                listed += 1
            else:
                _wait(weights[lane], rounds[lane], lane, bar, n, first, following)
            lane = after
        slot = int(_furthest(slot_weights, slot_rounds, keys, listed, now, behind) & _SLOT)
        too_low = (
            listed == 0
        )  # who once was at the bar only rises, until it is served and looked at again
        if too_low or (listed > LONG * wanted and n - placed_at > n_lanes):
            if too_low and placed_at >= 0 and n - placed_at < n_lanes:
                wanted = min(2 * wanted, n_lanes)
            placed_at = n
            bar = _bar(weights, rounds, limits, now, wanted, behind)
            first[:], listed = -1, 0
            for lane in range(n_lanes):
                if rounds[lane] >= limits[lane]:
                    continue
                if weights[lane] * now - rounds[lane] >= bar:
                    slot_lanes[listed], slot_weights[listed], slot_rounds[listed] = (
                        lane,
                        weights[lane],
                        rounds[lane],
                    )
                    keys[listed] = members[starts[lane] + turns[lane]] << _SLOT_BITS | listed
                    listed += 1
                else:
                    _wait(weights[lane], rounds[lane], lane, bar, n, first, following)
            slot = int(_furthest(slot_weights, slot_rounds, keys, listed, now, behind) & _SLOT)
        lane = slot_lanes[slot]
        begin, end = (
            starts[lane] + turns[lane],
            min(n + starts[lane + 1] - starts[lane] - turns[lane], len(chosen)),
        )
        if end > n + 1:
            end = _until(slot_weights, slot_rounds, listed, slot, n, end, first)
        for step in range(n, end):
            chosen[step] = members[begin + step - n]
            samples[step] = np.int64(rounds[lane])
        turns[lane] += end - n
        n = end
        if turns[lane] == starts[lane + 1] - starts[lane]:
            turns[lane] = 0
            rounds[lane] += 1
            slot_rounds[slot] = rounds[lane]
            spent = rounds[lane] >= limits[lane]
            if spent or weights[lane] * float(n) - rounds[lane] < bar:
                listed -= 1
                slot_lanes[slot], slot_weights[slot], slot_rounds[slot] = (
                    slot_lanes[listed],
                    slot_weights[listed],
                    slot_rounds[listed],
                )
                keys[slot] = keys[listed] & ~_SLOT | slot
                if not spent:
                    _wait(weights[lane], rounds[lane], lane, bar, n - 1, first, following)
                continue
        keys[slot] = members[starts[lane] + turns[lane]] << _SLOT_BITS | slot


@inlined
def _furthest(
    weights: np.ndarray,
    rounds: np.ndarray,
    keys: np.ndarray,
    listed: int,
    now: float,
    behind: np.ndarray,
) -> int:
    """Key of the lane of the list that is furthest behind; of equals, that whose data set comes
    first.
    """
    marks = behind.view(np.int64)
    key, best = _NOBODY, _LEAST
    for slot in range(listed):
        behind[slot] = weights[slot] * now - rounds[slot]
    for slot in range(listed):
        mark = marks[slot]
        best = max(
            best, mark ^ ((mark >> 63) & _MAGNITUDE)
        )  # whole numbers that are ordered as the floats are
    best = int(best ^ ((best >> 63) & _MAGNITUDE))
    for slot in range(listed):
        key = min(key, keys[slot] if marks[slot] == best else _NOBODY)
    return key


@inlined
def _until(
    weights: np.ndarray,
    rounds: np.ndarray,
    listed: int,
    slot: int,
    n: int,
    end: int,
    first: np.ndarray,
) -> int:
    """A step up to which the lane in a slot surely is the furthest of all: at least the next."""
    for step in range(n + 1, end):
        if first[step & (len(first) - 1)] >= 0:
            end = step
            break
    behind = weights[slot] * float(max(n, 1)) - rounds[slot]
    while end > n + 1:
        most = -np.inf
        for other in range(listed):
            if other != slot:
                most = max(most, weights[other] * float(end - 1) - rounds[other])
        if most < behind:
            break
        end = n + (end - n) // 2
    return end


@inlined
def _wait(
    weight: float,
    rounds: float,
    lane: int,
    bar: float,
    n: int,
    first: np.ndarray,
    following: np.ndarray,
) -> None:
    """Let a lane wait for a step behind ``n``, within the ring, before which it surely is below the
    bar.
    """
    guess, last = (rounds + bar) / weight, n + len(first) - 1
    step = last if guess >= last else max(int(guess), n + 1)
    while step > n + 1 and weight * float(step - 1) - rounds >= bar:
        step -= 1
    at = step & (len(first) - 1)
    following[lane], first[at] = first[at], lane


@compiled
def _bar(
    weights: np.ndarray,
    rounds: np.ndarray,
    limits: np.ndarray,
    now: float,
    wanted: int,
    behind: np.ndarray,
) -> float:
    """A bar that at least one lane reaches, and about as many as are wanted; below all when all are
    wanted.
    """
    if wanted >= len(weights):
        return -np.inf
    low, high = np.inf, -np.inf
    for lane in range(len(weights)):
        behind[lane] = -np.inf
        if rounds[lane] < limits[lane]:
            behind[lane] = weights[lane] * now - rounds[lane]
            low, high = min(low, behind[lane]), max(high, behind[lane])
    bar = low
    for _ in range(_BISECTIONS):
        middle = low + (high - low) / 2
        if not low < middle < high:
            break
        bar, count = middle, 0
        for value in behind:
            count += value >= middle
        if wanted <= 2 * count <= 2 * wanted:
            break
        if count > wanted:
            low = middle
        else:
            high = middle
    return bar
