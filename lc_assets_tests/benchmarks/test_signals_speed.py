"""How fast the text signals are, against the slow twin; run with ``-s`` to see the figures."""

import random
import time

from lc_assets.text.signals import signals_of
from lc_assets_tests.oracles.redpajama_signals import slow_signals

N_CHARACTERS = 200_000


def zipf_prose(n_characters: int) -> str:
    """Words with natural frequencies, in sentences and lines."""
    draw = random.Random(7)  # noqa: S311  text for timing is no secret
    words = ["".join(draw.choices("etaoinshrdluc\u00e9", k=draw.randint(1, 10))) for _ in range(5000)]
    weights = [1 / rank for rank in range(1, 5001)]
    endings = draw.choices([" ", ", ", ". ", ".\n", "!\n\n"], [80, 9, 7, 3, 1], k=n_characters)
    text = "".join(word + ending for word, ending in zip(draw.choices(words, weights, k=n_characters), endings, strict=True))
    return text[:n_characters]


def test_signals_are_the_slow_twins_and_faster():
    text = zipf_prose(N_CHARACTERS)
    began = time.process_time()
    fast = signals_of(text)
    between = time.process_time()
    slow = slow_signals(text)
    ended = time.process_time()
    assert fast == slow
    n_megabytes = len(text.encode()) / 1e6
    fast_rate, slow_rate = n_megabytes / (between - began), n_megabytes / (ended - between)
    print(f"\nsignals_of: {fast_rate:.2f} MB per CPU-second, slow twin {slow_rate:.2f}, ratio {fast_rate / slow_rate:.1f}")
