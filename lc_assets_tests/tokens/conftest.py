"""Books to tokenize, where the shared data lies beside the checkout or above it; text that means
harm, always.
"""

import json
from pathlib import Path
from typing import NamedTuple

import pytest

CHECKOUT = Path(__file__).parents[2]


class Book(NamedTuple):
    """A real book and what the reference counted in it."""

    text: str
    counts: dict[str, int]


@pytest.fixture(scope="session")
def books() -> list[Book]:
    """An English and an Italian book with their GPT-2 token counts."""
    data = next(
        (
            path / "shared" / "data"
            for path in CHECKOUT.parents
            if (path / "shared" / "data" / "golden").is_dir()
        ),
        None,
    )
    if data is None:
        pytest.skip("no ../shared/data beside the checkout")
    return [
        _book(data, "books_en", "books_en/Barclay_Postern_1911.txt"),
        _book(data, "books_it", "books_it/IT18890_DAnnunzio_Il-Piacere.txt"),
    ]


def _book(data: Path, golden: str, name: str) -> Book:
    lines = map(json.loads, (data / "golden" / f"{golden}.jsonl").read_text("utf-8").splitlines())
    counts = next(line for line in lines if line["file"] == name)
    with (data / name).open(encoding="utf-8", newline="") as stream:
        return Book(stream.read(), counts)
