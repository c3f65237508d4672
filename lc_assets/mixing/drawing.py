"""The compiled loops of `lc_assets.mixing.blending`: find the data set that is furthest behind,
without comparing all of them.

A *lane* is all data sets with one weight. They are served in turn, so the next of them represents
the lane. How far a lane is behind at step ``n``, ``weight × max(n, 1) − rounds``, only increases
until its round is over, also in rounded arithmetic. Two facts follow, and both are exact:

* A lane need not be compared before its first step at or above a *bar*: it waits in a ring of
  steps. The other lanes are in a list, and the furthest of the list is the furthest of all as long
  as it is at or above the bar. If it is not, the bar is lowered; if the list grows long, the bar is
  raised; and every lane is placed again.
* A lane that is now further behind than any other will be at a later step is served until then.

No bound is an estimate: a waiting lane's step is checked with the same arithmetic (`_wait`). The
multiplication and the subtraction are rounded one by one; LLVM fuses them only on request, and a
test reads the machine code.

Source: Megatron-LM ``helpers.cpp`` (``build_blending_indices``,
    ``build_exhaustive_blending_indices``).
"""

import numpy as np
from numpy.typing import NDArray

from lc_assets.compiling import compiled, inlined

_FEW = 24
"""Up to this number, all lanes are in the list."""
_LONG = 2
"""The list is too long at this multiple of the lanes wanted in it."""
_SLOT_BITS = 16
_SLOT = np.int64((1 << _SLOT_BITS) - 1)
_NO_KEY = int(np.iinfo(np.int64).max)
_LEAST = int(np.iinfo(np.int64).min)
_MAGNITUDE = np.int64(0x7FFFFFFFFFFFFFFF)
_BISECTIONS = 16


@compiled
def draw_few(
    weights: NDArray[np.float64],
    limits: NDArray[np.int64],
    chosen: NDArray[np.int16],
    samples: NDArray[np.int64],
) -> None:
    """Fill in ``chosen`` and ``samples``, comparing every data set at every step.

    Args:
        weights: weight of each data set.
        limits: samples of each data set.
        chosen: data set of each sample; filled in.
        samples: number of the sample in its data set; filled in.
    """
    taken, behind = np.zeros(len(weights)), np.empty(len(weights))
    for n in range(len(chosen)):
        now, most, who = float(max(n, 1)), -np.inf, 0
        for at in range(len(weights)):
            behind[at] = weights[at] * now - taken[at]
            # Not max(), which checks for NaN.
            most = behind[at] if behind[at] > most else most
        while behind[who] != most:  # the only branch of a step that is mispredicted
            who += 1
        chosen[n], samples[n] = who, np.int64(taken[who])
        taken[who] += 1
        if taken[who] >= limits[who]:
            taken[who] = np.inf


@compiled
def draw(
    weights: NDArray[np.float64],
    limits: NDArray[np.int64],
    starts: NDArray[np.int64],
    members: NDArray[np.int64],
    chosen: NDArray[np.int16],
    samples: NDArray[np.int64],
) -> None:
    """Fill in ``chosen`` and ``samples``.

    Args:
        weights: weight of each lane.
        limits: samples of each data set of a lane.
        starts: lane ``l`` is ``members[starts[l] : starts[l + 1]]``.
        members: numbers of data sets, ascending within a lane.
        chosen: data set of each sample; filled in.
        samples: number of the sample in its data set; filled in.
    """
    # Separate arrays: taking one out of a tuple counts references, 400 ns per sample.
    n_lanes, ring = len(weights), 64
    while ring < 2 * n_lanes:
        ring *= 2
    # Per lane: rounds in which all its data sets were served, and data sets served since; then the
    # lanes that wait for each step of the ring, as linked lists.
    rounds, turns = np.zeros(n_lanes), np.zeros(n_lanes, np.int64)
    first, following = np.full(ring, -1, np.int64), np.full(n_lanes, -1, np.int64)
    # Per slot of the list: its lane with weight and rounds, and a key of the lane's next data set
    # and the slot.
    slot_lanes, slot_weights, slot_rounds, keys = (
        np.empty(n_lanes, np.int64),
        np.empty(n_lanes),
        np.empty(n_lanes),
        np.empty(n_lanes, np.int64),
    )
    behind = np.empty(n_lanes)
    wanted = n_lanes if n_lanes <= _FEW else max(8, int(np.sqrt(n_lanes) / 3))
    bar, listed, placed_at, n = 0.0, 0, -1, 0
    while n < len(chosen):
        now = float(max(n, 1))
        # Lanes that waited for this step enter the list, or wait on.
        lane = first[n & (ring - 1)]
        first[n & (ring - 1)] = -1
        while lane >= 0:
            after = following[lane]
            if weights[lane] * now - rounds[lane] >= bar:
                slot_lanes[listed], slot_weights[listed] = lane, weights[lane]
                slot_rounds[listed] = rounds[lane]
                keys[listed] = members[starts[lane] + turns[lane]] << _SLOT_BITS | listed
                listed += 1
            else:
                _wait(weights[lane], rounds[lane], lane, bar, n, first, following)
            lane = after
        # If the list is empty or too long, move the bar and let every lane wait for this step. A
        # lane at the bar stays in the list until it is served.
        too_low = listed == 0
        if too_low or (listed > _LONG * wanted and n - placed_at > n_lanes):
            if too_low and placed_at >= 0 and n - placed_at < n_lanes:
                wanted = min(2 * wanted, n_lanes)
            placed_at = n
            bar = _bar(weights, rounds, limits, now, wanted, behind)
            first[:], listed = -1, 0
            for lane in range(n_lanes):
                if rounds[lane] < limits[lane]:
                    following[lane], first[n & (ring - 1)] = first[n & (ring - 1)], lane
            continue
        slot = int(_furthest(slot_weights, slot_rounds, keys, listed, now, behind) & _SLOT)
        # Serve the lane for as many steps as it surely is the furthest.
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
            # Its round is over: it may leave the list.
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
    """Key of the lane of the list that is furthest behind; the smaller data set breaks ties."""
    marks = behind.view(np.int64)
    key, best = _NO_KEY, _LEAST
    for slot in range(listed):
        behind[slot] = weights[slot] * now - rounds[slot]
    for slot in range(listed):
        mark = marks[slot]
        # Integers in the order of the floats.
        best = max(best, mark ^ ((mark >> 63) & _MAGNITUDE))
    best = int(best ^ ((best >> 63) & _MAGNITUDE))
    for slot in range(listed):
        key = min(key, keys[slot] if marks[slot] == best else _NO_KEY)
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
    """A step before which the lane in a slot surely is the furthest: at least the next."""
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
    """Let a lane wait for a step after ``n``, within the ring, before which it is below the bar."""
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
    """A bar that about ``wanted`` lanes reach, and at least one; -inf if all are wanted."""
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
