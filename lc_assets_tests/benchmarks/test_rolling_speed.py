"""Rolling against `np.roll` row by row. Run with ``-s`` to see the figures."""

import time

import numpy as np

from lc_assets.tokens.orders import roll_rows

N_ROWS, ROW_TOKENS = 256, 65_536


def test_rolling_is_faster_than_numpys_roll_per_row():
    """MB of rows per CPU second; three rounds, the fastest counts."""
    rng = np.random.default_rng(1)
    rows = rng.integers(0, 50_257, (N_ROWS, ROW_TOKENS), dtype=np.uint16)
    shifts = rng.integers(0, ROW_TOKENS, N_ROWS)
    fast, found = best_of_three(lambda: roll_rows(rows, shifts))
    slow, wanted = best_of_three(
        lambda: np.stack(
            [np.roll(row, shift) for row, shift in zip(rows, shifts.tolist(), strict=True)]
        )
    )
    np.testing.assert_array_equal(found, wanted)
    megabytes = rows.nbytes / 1e6
    print(
        f"\n{megabytes:.0f} MB of rows: {megabytes / fast:,.0f} MB/CPU-s, np.roll per row "
        f"{megabytes / slow:,.0f}, ratio {slow / fast:.1f}"
    )
    assert fast < 1.2 * slow


def best_of_three(work):
    """CPU seconds and result."""
    seconds, result = [], None
    for _ in range(3):
        begun = time.process_time()
        result = work()
        seconds.append(time.process_time() - begun)
    return min(seconds), result
