"""Rows of ids as a grid holds them, for benchmarks of what reads them: of real text where it lies
beside the checkout.

Real: each row is cut out of tokenized books in five languages at a place of its own, 17 million
    words of them, so that
what a codec finds in a chunk of 64 rows is what it finds in 64 documents. Else word pairs that
follow Zipf's law.
"""

import functools
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lc_assets.formats.tokenizers.gpt2 import gpt2_tokenizer
from lc_assets_tests.grid_builders import zipf_ids


@functools.cache
def book_ids() -> NDArray[np.uint16]:
    """Ids of all books beside the checkout, one behind the other; empty when there are none."""
    folder = next(
        (
            path / "shared" / "data"
            for path in Path(__file__).parents
            if (path / "shared" / "data").is_dir()
        ),
        None,
    )
    books = [] if folder is None else sorted(folder.glob("books_*/*.txt"))
    tokenizer = gpt2_tokenizer()
    return np.concatenate(
        [
            np.empty(0, np.uint16),
            *(tokenizer.encode(book.read_text("utf-8")).astype(np.uint16) for book in books),
        ]
    )


@functools.cache
def token_rows(n_rows: int, row_tokens: int) -> tuple[str, NDArray[np.uint16]]:
    """What kind of ids these are, and rows of them."""
    ids = book_ids()
    if len(ids) < 2 * row_tokens:
        return "made-up words", zipf_ids(n_rows, row_tokens)
    starts = np.random.default_rng(5).integers(0, len(ids) - row_tokens, n_rows)
    return "books", np.stack([ids[start : start + row_tokens] for start in starts])
