"""Which document of a sample is in which shard."""

from collections import Counter
from urllib.parse import urlsplit

import pytest
from hypothesis import given, strategies as st

from lc_assets.errors import BadInput
from lc_assets.sample.pages import EXCERPTS, LONG_CHARS, MIRROR, Page, plan_sample
from lc_assets.vocabulary import Shard, parse_snapshot

SNAPSHOTS = [parse_snapshot("2022-49"), parse_snapshot("2023-06")]


def plan(pages: list[Page], seed: int = 7) -> dict[Shard, list[Page]]:
    return plan_sample(pages, snapshots=SNAPSHOTS, seed=seed)


def pages_of(*lengths: int) -> list[Page]:
    return [
        Page(
            url=f"https://a.example/{number}",
            title="Tea",
            lines=("a" * (length // 2), "b" * (length // 2)),
        )
        for number, length in enumerate(lengths)
    ]


@given(
    st.lists(st.sampled_from([1, 300, LONG_CHARS, 2 * LONG_CHARS]), min_size=1, max_size=30),
    st.integers(0, 99),
)
def test_every_page_is_there_once_with_a_copy_and_an_excerpt_for_every_ten(
    lengths: list[int], seed: int
) -> None:
    pages = pages_of(*lengths)
    found = [page for documents in plan(pages, seed).values() for page in documents]
    hosts = Counter(urlsplit(page.url).hostname for page in found)
    n_planted = -(-len(pages) // 10)
    assert sorted(page.url for page in found if page in pages) == sorted(p.url for p in pages)
    assert hosts[MIRROR] == n_planted
    assert hosts[EXCERPTS] == (n_planted if max(lengths) >= LONG_CHARS else 0)
    assert len({page.url for page in found}) == len(found)
    for page in found:
        source = pages[int(page.url.rpartition("/")[2])]
        assert page.title in (source.title, *source.lines)
        assert EXCERPTS not in page.url or len(source.content) >= LONG_CHARS


@given(st.integers(2, 40), st.integers(0, 99))
def test_shards_are_filled_evenly(n_pages: int, seed: int) -> None:
    """No two shards differ by more than one document, and no snapshot is empty."""
    found = plan(pages_of(*[1] * n_pages), seed=seed)
    sizes = [len(documents) for documents in found.values()]
    assert max(sizes) - min(sizes) <= 1
    assert len(found) == min(8, sum(sizes))
    assert {shard.snapshot for shard in found} == set(SNAPSHOTS)


def test_another_seed_deals_otherwise() -> None:
    pages = pages_of(*[1] * 20)
    assert plan(pages, seed=7) != plan(pages, seed=8)


@pytest.mark.parametrize(
    ("snapshots", "words"), [([], "snapshots none"), (SNAPSHOTS[:1] * 2, "each once")]
)
def test_snapshots_that_are_not_acceptable_are_refused(snapshots: list[str], words: str) -> None:
    with pytest.raises(BadInput, match=words):
        plan_sample(pages_of(1), snapshots=snapshots, seed=7)
