"""How fast documents are searched for evaluation items, against a set of tuples of words; run with
``-s`` to see.
"""

import itertools
from collections.abc import Iterator

import pytest

from lc_assets.text.contamination.grams import GramSettings, Item, build_index
from lc_assets.text.contamination.scanning import find_grams
from lc_assets_tests.benchmarks.crawl import prose
from lc_assets_tests.benchmarks.timing import cpu_seconds, say
from lc_assets_tests.named_draws import rng_for

TEXT_CHARS, PLAIN_CHARS = 4_000_000, 400_000
ITEM_WORDS, PLANTED = 60, 20
LEAST_RATIO = 5


def items(words: list[str], n_items: int) -> Iterator[Item]:
    """Some pieces of the text, and words of it in any order."""
    rng = rng_for("items of a benchmark", seed=0)
    for number in range(n_items):
        start = int(rng.integers(len(words) - ITEM_WORDS))
        chosen = (
            words[start : start + ITEM_WORDS]
            if number < PLANTED
            else [words[place] for place in rng.integers(0, len(words), ITEM_WORDS)]
        )
        yield Item(id=str(number), parts=(" ".join(chosen),))


def folded(text: str) -> list[str]:
    """A plain way to the words of ASCII text."""
    kept = "".join(char if char.isalnum() else "" if char in "'`" else " " for char in text.lower())
    return kept.split()


def plain_count(text: str, grams: set[tuple[str, ...]]) -> int:
    """Places of a text whose 13 words are in a set."""
    words = folded(text)
    return sum(
        window in grams
        for window in zip(
            *(itertools.islice(words, start, None) for start in range(13)), strict=False
        )
    )


@pytest.mark.parametrize("n_items", [500, pytest.param(50_000, marks=pytest.mark.slow)])
def test_scanning_for_items(n_items):
    kind, source = prose()
    text = source[:TEXT_CHARS].encode("ascii", "replace").decode()
    made = list(items(text.split(), n_items))
    building, index = cpu_seconds(lambda _: build_index(made, GramSettings()), rounds=1)
    grams = {
        tuple(words[start : start + 13])
        for item in made
        for words in [folded(item.parts[0])]
        for start in range(len(words) - 12)
    }
    find_grams(text[:10_000], index)  # compiled here, and counted apart
    ours, finds = cpu_seconds(lambda _: find_grams(text, index))
    plain, n_plain = cpu_seconds(lambda _: plain_count(text[:PLAIN_CHARS], grams), rounds=1)
    assert len(find_grams(text[:PLAIN_CHARS], index)) == n_plain
    assert len(finds) >= PLANTED * (ITEM_WORDS - 12)
    assert index.n_grams == len(grams)
    plain *= TEXT_CHARS / PLAIN_CHARS
    say(
        f"contamination, {n_items:,} items, {kind}",
        len(text) / 1e6,
        "MB",
        ours,
        set_of_tuples=plain,
    )
    print(
        f"index: {index.n_grams:,} n-grams, {index.n_bytes / 1e6:.1f} MB, "
        f"{index.n_grams / building / 1e6:.2f} M n-grams per CPU-second"
    )
    assert plain / ours > LEAST_RATIO
