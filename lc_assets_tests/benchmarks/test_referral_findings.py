"""What the LongPack paper found of referrals, on novels and manuals; ``-s`` shows the figures,
which docs/referrals.md has.

Skipped where no data lies beside the checkout.
"""

import dataclasses

import pytest

from lc_assets.formats.lists.word_lists import read_special_words
from lc_assets.stages.reports.document_sets import group_of
from lc_assets.stages.reports.referral_report import paper_figures
from lc_assets.text.referrals.concepts import Background, LexicalConcepts, pieces_of
from lc_assets.text.referrals.referrals import (
    DISTANCES,
    KINDS,
    bucket_names,
    count_referrals,
)
from lc_assets_tests.benchmarks.referral_texts import (
    at_random,
    chunks,
    concatenated,
    means,
    packed,
    read_novels,
    read_pages,
    read_targets,
    segments_of,
    tokens_of,
    whole,
    windows,
)
from lc_assets_tests.reference.referral_pairs import Sums

N_TEXTS = 16
MOST_TOKENS = 128_000
FAR = -1


@pytest.fixture(scope="module")
def novels(shared_data):
    return read_novels(shared_data)


@pytest.fixture(scope="module")
def ids(novels):
    return [tokens_of(novel) for novel in novels]


@pytest.fixture(scope="module")
def plain():
    return LexicalConcepts(read_special_words())


@pytest.fixture(scope="module")
def pruned(novels, plain):
    """Without the words that more than 5 % of the novels' pieces hold."""
    common = common_words(novels, plain)
    return LexicalConcepts(dataclasses.replace(read_special_words(), common=common))


def common_words(texts, finder):
    """Words in more than 5 % of the texts' pieces."""
    found = Background()
    for text in texts:
        found.add(map(finder.words_in, pieces_of(text)))
    return found.common(0.05)


def say(what, sums: Sums, kinds=KINDS, edges=DISTANCES):
    figures = [
        "  ".join(
            f"{name} {value:.4g}"
            for name, value in zip(bucket_names(edges), sums.means()[kind], strict=True)
        )
        for kind in kinds
    ]
    print(
        f"\n{what} ({sums.n_documents} of {sums.n_tokens / max(sums.n_documents, 1):,.0f} tokens)"
    )
    for kind, line in zip(kinds, figures, strict=True):
        print(f"    {kind:<10} {line}")


def far(sums: Sums, kind="pairs") -> float:
    """Beyond 512 sentences."""
    return sums.means()[kind][FAR]


def test_natural_text_against_the_papers_tables(ids, plain):
    """24,000 tokens of novels, beside RefinedWeb's 16K-32K: tables 5 and 6 are met within a factor
    of three, without any model.
    """
    found = means(windows(ids, 24_000, N_TEXTS), plain)
    say("natural", found)
    for kind in ("neighbours", "concepts"):
        theirs = paper_figures(kind, "RefinedWeb", "16K-32K", DISTANCES)[1:]
        print(f"    RefinedWeb's {kind}: {theirs}")
        assert all(
            his / 3 < mine < his * 3
            for mine, his in zip(found.means()[kind][1:], theirs, strict=True)
        )


def test_density_rises_with_length_and_saturates(ids, plain):
    """A bucket is empty in a text that is shorter, fills, and then no longer changes much."""
    by_length = {
        n_tokens: means(windows(ids, n_tokens, N_TEXTS), plain)
        for n_tokens in (2_000, 6_000, 12_000, 24_000, 48_000)
    }
    for n_tokens, found in by_length.items():
        say(f"natural, {n_tokens:,}", found, kinds=("pairs",))
    near, middle, beyond = (
        [found.means()["pairs"][bucket] for found in by_length.values()] for bucket in (1, 3, 4)
    )
    assert max(near) < 2 * min(near)
    assert middle[0] == 0
    assert middle[1] < middle[2] < middle[3]
    assert beyond[0] == beyond[1] == 0
    assert beyond[2] < beyond[3] < beyond[4]


def test_concatenation_makes_few_far_referrals(ids, plain, pruned):
    """Pieces of 1,000 or 4,000 tokens of different novels, against as many of one; without common
    words hardly any; told apart, none.
    """
    for n_tokens in (24_000, 48_000):
        natural = windows(ids, n_tokens, N_TEXTS)
        say(f"natural, {n_tokens:,}", means(natural, plain))
        say(f"natural, {n_tokens:,}, without common words", means(natural, pruned))
        for piece in (1_000, 4_000):
            made = concatenated(ids, n_tokens, piece, N_TEXTS)
            found, without, apart = (
                means(made, plain),
                means(made, pruned),
                means(made, plain, apart=True),
            )
            say(f"pieces of {piece:,}, {n_tokens:,}", found)
            say(f"pieces of {piece:,}, {n_tokens:,}, without common words", without)
            say(f"pieces of {piece:,}, {n_tokens:,}, documents apart", apart)
            assert 2 * far(found) < far(means(natural, plain))
            assert 10 * far(without) < far(means(natural, pruned))
            if n_tokens // piece <= len(ids):
                assert far(apart) == far(apart, "neighbours") == far(apart, "concepts") == 0


def test_turns_move_pairs_outwards_and_dealing_out_leaves_none(novels, plain):
    """Stretches of 48K tokens in segments of 4K: in turns as many pairs as in order, exactly, and
    farther; dealt out, none beyond.
    """
    edges = (*DISTANCES, 2048)
    documents = [segments_of(novel[20_000:220_000]) for novel in novels if len(novel) > 220_000][
        :27
    ]
    counted = {}
    for how in ("in order", "in turns", "dealt out"):
        texts = chunks(documents, how, in_chunk=3)
        say(
            f"segments {how}",
            means(texts, plain, apart=True, edges=edges),
            kinds=("pairs", "concepts"),
            edges=edges,
        )
        counted[how] = [
            count_referrals(plain.mentions(text.text, text.parts), edges) for text in texts
        ]
    in_order, in_turns, dealt_out = counted.values()
    for one, other in zip(in_order, in_turns, strict=True):
        assert sum(one.pairs) == sum(other.pairs)
        assert one.pairs[0] == other.pairs[0]
        assert sum(one.pairs[1:4]) > sum(other.pairs[1:4])
        assert one.pairs[5] < other.pairs[5]
    assert all(found.pairs[4:] == (0, 0) for found in dealt_out)
    assert sum(found.pairs[1] for found in dealt_out) > 0.5 * sum(
        found.pairs[1] for found in in_order
    )


def test_packing_along_links_makes_referrals_that_chance_does_not(shared_data):
    """A manual's pages behind what they point at, against pages of the manual and of all manuals at
    random, and natural long pages.
    """
    manuals = read_pages(shared_data)
    pages = manuals["pages_sqlitedoc.jsonl.gz"]
    every = {url: text for manual in manuals.values() for url, text in manual.items()}
    special = read_special_words()
    common = common_words(every.values(), LexicalConcepts(special))
    finder = LexicalConcepts(dataclasses.replace(special, common=common))
    targets = read_targets(shared_data, pages)
    along_links = [packed(pages, root, own, MOST_TOKENS) for root, own in targets.items() if own]
    natural = [whole(text) for text in every.values()]
    for group, farthest in (("8K-16K", 3), ("16K-32K", 4), ("32K-64K", 4)):
        mine = [text for text in along_links if group_of(text.n_tokens) == group]
        found = {
            "natural": means(
                (text for text in natural if group_of(text.n_tokens) == group),
                finder,
            ),
            "along links": means(mine, finder),
            "of the same manual": means(
                (at_random(pages, text.n_tokens, str(place)) for place, text in enumerate(mine)),
                finder,
            ),
            "of any manual": means(
                (at_random(every, text.n_tokens, str(place)) for place, text in enumerate(mine)),
                finder,
            ),
        }
        for what, sums in found.items():
            say(f"{group}, {what}", sums, kinds=("pairs",))
        packed_, same_manual, any_manual = (
            found[what].means()["pairs"][farthest]
            for what in ("along links", "of the same manual", "of any manual")
        )
        assert packed_ > 1.5 * same_manual
        assert packed_ > 3 * any_manual
