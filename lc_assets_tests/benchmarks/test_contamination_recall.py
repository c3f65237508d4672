"""How many planted evaluation items each rule finds, edited in several ways, and how many documents
of clean text it takes for contaminated; run with ``-m slow -s`` to see.
"""

import re
import sysconfig
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lc_assets.builds.settings.common import DECONTAMINATION_RULES, DecontaminationSettings, by_rule
from lc_assets.text.contamination.grams import GramSettings, Item, build_index
from lc_assets.text.contamination.overlaps import (
    OF_STRETCHES,
    Weigher,
    in_many_items,
    is_contaminated,
)
from lc_assets.text.contamination.scanning import find_grams
from lc_assets_tests.benchmarks.referral_texts import read_novels, read_pages
from lc_assets_tests.named_draws import rng_for

ITEM_NOVELS, N_ITEMS, N_PLANTED = slice(0, 32, 8), 2000, 500
CLEAN_CHARS = 100_000_000
RECALL = 0.95

Words = list[str]
EDITS: dict[str, Callable[[Words, int], Words]] = {
    "verbatim": lambda words, _: words,
    "a word changed": lambda words, at: [*words[:at], "flibbertig", *words[at + 1 :]],
    "the middle one": lambda words, _: EDITS["a word changed"](words, len(words) // 2),
    "a typo": lambda words, at: [*words[:at], words[at] + "qz", *words[at + 1 :]],
    "<b> in it": lambda words, at: [*words[:at], "<b>", *words[at:]],
    "zero width": lambda words, at: [*words[:at], "\u200b".join(words[at]), *words[at + 1 :]],
    "half": lambda words, _: words[: (len(words) + 1) // 2],
    "every tenth": lambda words, _: [word if n % 10 else "zorb" for n, word in enumerate(words)],
}


def clean_texts(shared_data: Path, novels: list[str]) -> Iterator[str]:
    """Novels, manuals, and then the documentation and code of the installed packages."""
    yield from novels
    for pages in read_pages(shared_data).values():
        yield from pages.values()
    for path in sorted(Path(sysconfig.get_path("purelib")).rglob("*")):
        if path.suffix in {".md", ".rst", ".txt", ".html", ".py"} and path.is_file():
            yield path.read_text("utf-8", errors="replace")


def up_to(texts: Iterator[str], n_chars: int) -> list[str]:
    found, total = [], 0
    for text in texts:
        found.append(text)
        total += len(text)
        if total >= n_chars:
            break
    return found


@pytest.mark.slow
def test_edited_items_are_found_and_clean_text_is_not(shared_data):
    rng, novels = rng_for("recall of contamination", seed=0), read_novels(shared_data)
    held, others = novels[ITEM_NOVELS], [text for text in novels if text not in novels[ITEM_NOVELS]]
    sentences = [part.split() for text in held for part in re.split(r"(?<=[.?!])\s+", text)]
    sentences = [words for words in sentences if 10 <= len(words) <= 70]
    chosen = [sentences[at] for at in rng.permutation(len(sentences))[:N_ITEMS].tolist()]
    items = [Item(id=str(n), parts=(" ".join(words),)) for n, words in enumerate(chosen)]
    host = others[0].split()
    clean = up_to(clean_texts(shared_data, others), CLEAN_CHARS)
    print(f"{N_ITEMS:,} items, {sum(map(len, clean)) / 1e6:.0f} MB of clean text")
    for rule in ("own", *DECONTAMINATION_RULES):
        settings = by_rule(DecontaminationSettings(rule=rule))
        least = settings.min_words if settings.mode in OF_STRETCHES else settings.ngram
        grams = GramSettings(ngram=settings.ngram, min_words=min(settings.min_words, least))
        index = build_index(items, grams)
        weigher = Weigher(index, in_many_items(index, settings.max_items), settings.mode)

        def contaminating(text: str, weigher=weigher, settings=settings) -> set[int]:
            return {
                overlap.item
                for overlap in weigher.overlaps_of(find_grams(text, weigher.index))
                if is_contaminated(overlap, settings.mode, settings.threshold)
            }

        recall = {
            name: sum(
                number
                in contaminating(
                    " ".join(
                        [*host[:400], *edit(words, int(rng.integers(len(words)))), *host[400:800]]
                    )
                )
                for number, words in enumerate(chosen[:N_PLANTED])
            )
            / N_PLANTED
            for name, edit in EDITS.items()
        }
        n_wrong = sum(bool(contaminating(text)) for text in clean)
        shown = ", ".join(f"{name} {share:.2f}" for name, share in recall.items())
        print(f"{rule}: {shown}; false positives {n_wrong}")
        if rule == "edited":
            assert min(share for name, share in recall.items() if name != "half") >= RECALL
            assert n_wrong == 0
