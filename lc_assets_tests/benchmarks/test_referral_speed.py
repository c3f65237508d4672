"""How fast referrals are measured, text in and numbers out: against looking at every pair,
against spaCy.
"""

import pytest

from lc_assets.formats.lists.word_lists import read_special_words
from lc_assets.text.referrals.concepts import LexicalConcepts
from lc_assets.text.referrals.referrals import DISTANCES, count_referrals
from lc_assets_tests.benchmarks.test_measures_speed import pages, text  # noqa: F401 - a fixture
from lc_assets_tests.benchmarks.timing import cpu_seconds, say
from lc_assets_tests.reference.phrases import by_phrase, find
from lc_assets_tests.reference.referral_pairs import slow_counts


@pytest.fixture(scope="module")
def finder():
    found = LexicalConcepts(read_special_words())
    count_referrals(found.mentions("We met Ann. So Ann ran."))  # compiles
    return found


@pytest.mark.parametrize(("what", "megabytes"), [("a book", 4), ("pages", 2)])
# The fixture.
def test_measuring_takes_megabytes_per_second(what, megabytes, text, finder):  # noqa: F811
    documents = [text] if what == "a book" else pages(text)
    fast, ours = cpu_seconds(
        lambda _: [count_referrals(finder.mentions(document)) for document in documents]
    )
    assert len(ours) == len(documents)
    n_bytes = len(text.encode())
    say(f"referrals of {what}", n_bytes / 1e6, "MB", fast)
    assert n_bytes / fast > megabytes * 1e6


def test_counting_is_looking_at_every_pair_and_faster(text, finder):  # noqa: F811 - the fixture
    found = find(finder, text)
    sentences_of = by_phrase(text, found)
    fast, ours = cpu_seconds(lambda _: count_referrals(found.mentions))
    slow, theirs = cpu_seconds(lambda _: slow_counts(sentences_of, DISTANCES), rounds=1)
    assert (list(ours.pairs), list(ours.neighbours), list(ours.concepts)) == theirs
    say("counting referrals", sum(ours.pairs) / 1e6, "M pairs", fast, every_pair=slow)
    assert fast * 20 < slow


@pytest.mark.network
def test_sentences_alone_take_spacy_longer(text, finder):  # noqa: F811 - the fixture
    """Its tokenizer and its splitter at full stops, which find no concepts, against all that is
    measured here.
    """
    spacy = pytest.importorskip("spacy")
    pipeline = spacy.blank("en")
    pipeline.add_pipe("sentencizer")
    pipeline.max_length = len(text) + 1
    fast, _ = cpu_seconds(lambda _: count_referrals(finder.mentions(text)))
    slow, found = cpu_seconds(lambda _: sum(1 for _ in pipeline(text).sents), rounds=1)
    assert found > 100
    say("referrals of a book", len(text.encode()) / 1e6, "MB", fast, spacy_sentences_alone=slow)
    assert fast * 5 < slow
