"""Which document of a sample stands where."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lc_assets.errors import BadInput
from lc_assets.sample.plan import (
    LONG_CHARS,
    Document,
    Kind,
    PageFact,
    newest_first,
    plan_sample,
)
from lc_assets.vocabulary import Shard, parse_snapshot

SNAPSHOTS = [parse_snapshot("2022-49"), parse_snapshot("2023-06")]


def plan(
    pages: list[PageFact], n_duplicates: int = 0, n_excerpts: int = 0, seed: int = 7
) -> dict[Shard, list[Document]]:
    return plan_sample(
        pages,
        snapshots=SNAPSHOTS,
        seed=seed,
        shards_per_bucket=2,
        n_duplicates=n_duplicates,
        n_excerpts=n_excerpts,
    )


def facts(*lengths: int, language: str = "en") -> list[PageFact]:
    return [
        PageFact(f"https://a.example/{language}/{number}", language, length)
        for number, length in enumerate(lengths)
    ]


@given(
    st.lists(st.integers(0, 2 * LONG_CHARS), min_size=1, max_size=30),
    st.integers(0, 40),
    st.integers(0, 40),
    st.integers(0, 99),
)
def test_every_page_stands_once_and_as_much_is_planted_as_was_asked(
    lengths: list[int], n_duplicates: int, n_excerpts: int, seed: int
) -> None:
    pages = facts(*lengths)
    found = [
        document
        for documents in plan(pages, n_duplicates, n_excerpts, seed).values()
        for document in documents
    ]
    kinds = Counter(document.kind for document in found)
    assert sorted(document.page for document in found if document.kind is Kind.PAGE) == list(
        range(len(pages))
    )
    assert kinds[Kind.DUPLICATE] == n_duplicates
    assert kinds[Kind.EXCERPT] == (n_excerpts if max(lengths) >= LONG_CHARS else 0)
    assert all(
        lengths[document.page] >= LONG_CHARS for document in found if document.kind is Kind.EXCERPT
    )
    assert len({document.url for document in found}) == len(found)


@given(st.integers(2, 40), st.integers(0, 99))
def test_shards_are_filled_evenly(n_pages: int, seed: int) -> None:
    """No two shards differ by more than one document, and no snapshot is empty."""
    found = plan(facts(*[1] * n_pages), seed=seed)
    sizes = [len(documents) for documents in found.values()]
    assert max(sizes) - min(sizes) <= 1
    assert len(found) == min(8, n_pages)
    assert {shard.snapshot for shard in found} == set(SNAPSHOTS)


def test_languages_have_shards_of_their_own() -> None:
    pages = facts(1, 1, 1) + facts(1, 1, language="de")
    for shard, documents in plan(pages).items():
        assert {pages[document.page].language for document in documents} == {shard.language}


def test_another_seed_deals_otherwise() -> None:
    assert plan(facts(*[1] * 20), seed=7) != plan(facts(*[1] * 20), seed=8)


def test_the_newest_snapshot_comes_first_and_its_shards_by_tag() -> None:
    tags = [
        "2022-49/0000/en_head",
        "2023-06/0001/en_head",
        "2023-06/0000/en_middle",
        "2023-06/0000/en_head",
    ]
    ordered = [shard.tag for shard in newest_first([Shard.parse(tag) for tag in tags])]
    assert ordered == [
        "2023-06/0000/en_head",
        "2023-06/0000/en_middle",
        "2023-06/0001/en_head",
        "2022-49/0000/en_head",
    ]


@pytest.mark.parametrize(
    ("snapshots", "shards", "planted", "words"),
    [
        ([], 1, 0, "got none"),
        (SNAPSHOTS[:1] * 2, 1, 0, "each once"),
        (SNAPSHOTS, 0, 0, "got 0"),
        (SNAPSHOTS, 1, -1, "negative"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(
    snapshots: list[str], shards: int, planted: int, words: str
) -> None:
    with pytest.raises(BadInput, match=words):
        plan_sample(
            facts(1),
            snapshots=snapshots,
            seed=7,
            shards_per_bucket=shards,
            n_duplicates=planted,
            n_excerpts=0,
        )
