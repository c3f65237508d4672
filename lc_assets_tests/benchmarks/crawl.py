"""An upstream like a real one, of any size: RedPajama-V2's layout, lengths and share of duplicates.

Most documents are short (median 2,700 characters), one in a thousand is long (from 100,000
characters on, with a heavy tail), one in twenty is a duplicate. The text is that of English books
when ``../shared/data`` lies beside the checkout, and made-up words else. Signals cost more than all
the rest, so a text is used several times, far
apart: gzip, which looks back 32 KiB, does not notice. As a program: ``python -m … FOLDER N_CHARS
    REPEATS HUGE_CHARS``.
"""

import functools
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from lc_assets.formats.redpajama.documents import DocumentRecord, write_documents, write_duplicates
from lc_assets.formats.redpajama.signals import write_signals
from lc_assets.sources import redpajama_v2
from lc_assets.text.signals.signals import signals_of
from lc_assets.vocabulary import Shard
from lc_assets_tests.benchmarks.test_signals_speed import zipf_prose
from lc_assets_tests.builders import made_up_record
from lc_assets_tests.named_draws import rng_for

MEDIAN_CHARS, SHORTEST_CHARS, LONGEST_SHORT_CHARS = 2_700, 300, 90_000
LONG_CHARS, LONGEST_CHARS = 100_000, 3_000_000
ONE_LONG_IN = 1000
ONE_DUPLICATE_IN = 20
SIGNALS_OF_CHARS = 1_000_000
"""A longer text has the signals of its beginning: it is there for its size, not for its quality."""


@functools.cache
def prose() -> tuple[str, str]:
    """What kind of text this is, and some megabytes of it, a paragraph per line."""
    books = english_books()
    if not books:
        return "made-up words", zipf_prose(4_000_000)
    unwrapped = (re.sub(r"\n+", "\n", re.sub(r"(?<!\n)\n(?!\n)", " ", book)) for book in books)
    return "books", "\n".join(unwrapped)


def english_books() -> list[str]:
    """Real books, or nothing."""
    folder = next(
        (
            path / "shared" / "data" / "books_en"
            for path in Path(__file__).parents
            if (path / "shared" / "data").is_dir()
        ),
        None,
    )
    return (
        [] if folder is None else [path.read_text("utf-8") for path in sorted(folder.glob("*.txt"))]
    )


def crawl_texts(n_chars: int, *, seed: int = 0) -> Iterator[str]:
    """Texts of about ``n_chars`` characters together, of a crawl's lengths; the first one is
    long.
    """
    rng = rng_for("crawl texts", seed=seed)
    source = prose()[1]
    n_made = 0
    while n_made < n_chars:
        if n_made == 0 or rng.integers(ONE_LONG_IN) == 0:
            length = int(min(LONG_CHARS * (1 + rng.pareto(1.3)), LONGEST_CHARS, len(source)))
        else:
            length = int(
                min(max(MEDIAN_CHARS * 2.7 ** rng.normal(), SHORTEST_CHARS), LONGEST_SHORT_CHARS)
            )
        start = int(rng.integers(len(source) - length + 1))
        yield source[start : start + length].strip()
        n_made += length


def write_crawl(folder: Path, shard: Shard, texts: list[str], *, repeats: int = 1) -> Path:
    """Write a shard whose documents are the texts, all of them ``repeats`` times over, and its
    listing.
    """
    n_docs = len(texts) * repeats
    signals = [signals_of(text[:SIGNALS_OF_CHARS]) for text in texts]

    def record(line: int) -> DocumentRecord:
        return made_up_record(shard, line, texts[line % len(texts)])

    paths = [
        folder / redpajama_v2.part_path(part, shard)
        for part in ("documents", "signals", "duplicates")
    ]
    listing = folder / redpajama_v2.listing_path(shard.snapshot, shard.language)
    for path in (*paths, listing):
        path.parent.mkdir(parents=True, exist_ok=True)
    write_documents(paths[0], map(record, range(n_docs)))
    write_signals(
        paths[1],
        shard,
        ((line, record(line), signals[line % len(texts)]) for line in range(n_docs)),
    )
    write_duplicates(
        paths[2],
        shard,
        [(line, record(line).digest) for line in range(7, n_docs, ONE_DUPLICATE_IN)],
    )
    redpajama_v2.write_listing(listing, [shard])
    return folder


def main(folder: str, n_chars: str, repeats: str, huge_chars: str) -> None:
    """Write a shard; when ``huge_chars`` is not 0, its last document is that long."""
    texts = list(crawl_texts(int(n_chars)))
    source = prose()[1]
    huge = (source * (int(huge_chars) // len(source) + 1))[: int(huge_chars)]
    write_crawl(
        Path(folder),
        Shard.parse("2023-06/0000/en_head"),
        [*texts, *([huge] if huge else [])],
        repeats=int(repeats),
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
