"""How fast referrals are measured, text in and numbers out: against the plain twin, against looking
at every pair, against spaCy.
"""

import pytest

from lc_assets.compiling import COMPILED
from lc_assets.formats.word_lists import read_special_words
from lc_assets.text import concepts, referrals
from lc_assets.text.concepts import LexicalConcepts
from lc_assets.text.referrals import DISTANCES, count_referrals
from lc_assets_tests.benchmarks.test_measures_speed import pages, text  # noqa: F401 - a fixture
from lc_assets_tests.benchmarks.timing import cpu_seconds, say
from lc_assets_tests.reference.referral_pairs import slow_counts


@pytest.fixture(scope="module")
def finder():
    found = LexicalConcepts(read_special_words())
    count_referrals(found.mentions("We met Ann. So Ann ran."))  # compiles
    return found


@pytest.mark.skipif(not COMPILED, reason="both sides would be the plain twin")
@pytest.mark.parametrize("what", ["a book", "pages"])
# The fixture.
def test_measuring_is_the_plain_twins_and_faster(what, text, finder, monkeypatch):  # noqa: F811
    """The same counts; a reader's floor of 4 MB per CPU-second, and ten times the twin's."""
    documents = [text] if what == "a book" else pages(text)
    fast, ours = cpu_seconds(
        lambda _: [count_referrals(finder.mentions(document)) for document in documents]
    )
    monkeypatch.setattr(concepts, "COMPILED", False)
    monkeypatch.setattr(referrals, "COMPILED", False)
    slow, plain = cpu_seconds(
        lambda _: [count_referrals(finder.mentions(document)) for document in documents], rounds=1
    )
    assert ours == plain
    n_bytes = len(text.encode())
    say(f"referrals of {what}", n_bytes / 1e6, "MB", fast, plain_twin=slow)
    assert fast * 10 < slow
    assert n_bytes / fast > 4e6


@pytest.mark.skipif(not COMPILED, reason="both sides would be the plain twin")
def test_counting_is_looking_at_every_pair_and_faster(text, finder):  # noqa: F811 - the fixture
    found = finder.find(text)
    sentences_of = found.by_phrase()
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
