"""How fast signals are computed from text; run with ``-s`` to see the figures.

Against the plain reference, and against the slow reference, which does as RedPajama-V2's own
program does: each signal by itself, every n-gram a tuple. That program itself takes 0.7 to 0.9 MB
per CPU-second.
"""

import random
import time
from pathlib import Path

import pytest

from lc_assets.formats.corpora.containers import CorpusDocument
from lc_assets.formats.redpajama.signals import signals_lines
from lc_assets.text.signals.names import WordLists
from lc_assets.text.signals.signals import signals_of, signals_of_each
from lc_assets.text.texts import Texts
from lc_assets_tests.benchmarks.timing import cpu_seconds, say
from lc_assets_tests.reference.redpajama_signals import slow_signals
from lc_assets_tests.reference.signals import read_document, signals_of_document

STOP_WORDS = frozenset(
    (
        "the",
        "be",
        "to",
        "of",
        "and",
        "that",
        "have",
        "with",
        "in",
        "is",
        "der",
        "die",
        "und",
        "la",
        "le",
        "de",
        "il",
    )
)
BAD_WORDS = frozenset(("darn", "bloody hell", "alabama hot pocket", "what the devil"))
LISTS = WordLists(
    stop_words={"en": STOP_WORDS}, bad_words={"en": BAD_WORDS}, domains={"example.org": 3}
)
LANGUAGES = ("en", "de", "fr", "es", "it")
SHORT_CHARS = 2_700
SLOW_CHARS = 250_000


def zipf_prose(n_characters: int) -> str:
    """Words with natural frequencies, in sentences and lines."""
    draw = random.Random(7)  # noqa: S311  text for timing is no secret
    words = [
        "".join(draw.choices("etaoinshrdluc\u00e9", k=draw.randint(1, 10))) for _ in range(5000)
    ]
    weights = [1 / rank for rank in range(1, 5001)]
    endings = draw.choices([" ", ", ", ". ", ".\n", "!\n\n"], [80, 9, 7, 3, 1], k=n_characters)
    text = "".join(
        word + ending
        for word, ending in zip(draw.choices(words, weights, k=n_characters), endings, strict=True)
    )
    return text[:n_characters]


def long_texts() -> dict[str, list[str]]:
    """Books of each language, where they lie beside the checkout; made-up words else."""
    shared = next(
        (
            path / "shared" / "data"
            for path in Path(__file__).parents
            if (path / "shared" / "data").is_dir()
        ),
        None,
    )
    if shared is None:
        return {"made-up words": [zipf_prose(1_000_000)]}
    books = {
        language: [
            path.read_text("utf-8") for path in sorted((shared / f"books_{language}").glob("*.txt"))
        ]
        for language in LANGUAGES
    }
    return {f"books, {language}": texts[:8] for language, texts in books.items() if texts}


def cut(texts: list[str], n_chars: int) -> list[str]:
    return [
        text[start : start + n_chars]
        for text in texts
        for start in range(0, len(text) - n_chars, n_chars)
    ]


def megabytes(texts: list[str]) -> float:
    return sum(len(text.encode()) for text in texts) / 1e6


@pytest.fixture(scope="module", autouse=True)
def compiled() -> None:
    """Compile, or fetch from the cache, for both widths of characters; the time is said apart."""
    begun = time.process_time()
    for text in ("one", "two…"):
        signals_of(text)
    print(
        f"\ncompiling, or reading what was compiled before: {time.process_time() - begun:.1f} "
        "CPU-seconds"
    )


def test_signals_are_the_slow_twins_and_faster():
    """All 29, on short documents as a crawl has them and on books; three ways, each on as much text
    as it can take.
    """
    kinds = long_texts()
    first = next(iter(kinds.values()))
    kinds = {f"documents of {SHORT_CHARS:,} characters": cut(first[:3], SHORT_CHARS), **kinds}
    for kind, texts in kinds.items():
        fast, _ = cpu_seconds(
            lambda _, texts=texts: [
                signals_of_each(Texts([text]), [""], LISTS, language="en").columns()
                for text in texts
            ],
            rounds=2,
        )
        some = texts[: max(1, SLOW_CHARS // len(texts[0]))]
        some = [text[:SLOW_CHARS] for text in some]
        plain, of_plain = cpu_seconds(
            lambda _, some=some: [
                signals_of_document(read_document(t), LISTS, language="en") for t in some
            ],
            rounds=1,
        )
        slow, of_slow = cpu_seconds(
            lambda _, some=some: [slow_signals(text, **listed()) for text in some], rounds=1
        )
        for text, ours, others in zip(some, of_plain, of_slow, strict=True):
            assert signals_of(text, LISTS, language="en") == ours == others
        share = megabytes(texts) / megabytes(some)
        say(
            f"29 signals, {kind}",
            megabytes(texts),
            "MB",
            fast,
            plain_twin=plain * share,
            slow_twin=slow * share,
        )
        assert fast * 8 < plain * share


def test_lines_are_written_as_fast_as_signals_are_computed():
    texts = cut(next(iter(long_texts().values()))[:3], SHORT_CHARS)
    documents = [CorpusDocument(id=f"x/{place}", text=text) for place, text in enumerate(texts)]
    nowhere = [""] * len(texts)
    computing, measured = cpu_seconds(lambda _: signals_of_each(Texts(texts), nowhere))
    writing, _ = cpu_seconds(
        lambda _: signals_lines(documents, measured, nowhere, language="en"),
    )
    say(
        "writing lines of signals",
        megabytes(texts),
        "MB of text",
        writing,
        computing_them=computing,
    )
    assert writing < 3 * computing


def plain_signals(text: str) -> dict:
    return signals_of_document(read_document(text), LISTS, language="en")


def listed() -> dict:
    return {"stop_words": STOP_WORDS, "bad_words": BAD_WORDS, "domains": LISTS.domains}
