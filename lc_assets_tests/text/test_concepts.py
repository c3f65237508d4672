"""What is a concept, and where it is mentioned; compiled as plainly; whatever the order of
sentences.
"""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st

from lc_assets.errors import BadInput
from lc_assets.text.referrals import phrases
from lc_assets.text.referrals.concepts import LexicalConcepts, Part, choose
from lc_assets.text.referrals.referrals import Mentions, count_referrals
from lc_assets.text.referrals.words import SpecialWords
from lc_assets_tests.reference import concepts
from lc_assets_tests.reference.concepts import read_words
from lc_assets_tests.reference.phrases import by_phrase, find, phrase
from lc_assets_tests.text.test_concept_words import SPECIAL, texts

WITHOUT_PRONOUNS = replace(SPECIAL, stop=SPECIAL.stop | SPECIAL.pronouns, pronouns=frozenset())

WORDS = ("alpha", "beta", "gamma", "Delta", "Epsilon", "he", "the", "thing", "7", "xx")


def sentences() -> st.SearchStrategy[list[str]]:
    """Sentences of few words, so that phrases repeat and ranks tie."""
    sentence = st.lists(st.sampled_from(WORDS), min_size=1, max_size=7).map(
        lambda words: f"So {' '.join(words)}."
    )
    return st.lists(sentence, max_size=14)


def found_by(
    text: str, special: SpecialWords = SPECIAL, parts=(), **settings_
) -> dict[str, list[int]]:
    """Sentences by concept."""
    return by_phrase(text, find(LexicalConcepts(special, **settings_), text, parts))


def test_phrases_of_a_run_are_mentioned_wherever_they_stand():
    """Overlapping ones too; none goes over a stop word, a mark or an end of a sentence; what occurs
    only within a longer one is that one.
    """
    found = found_by("Big red dog, red dog and dog. Dog the red.")
    assert found == {
        "big red dog": [0],
        "red": [0, 0, 1],
        "red dog": [0, 0],
        "dog": [0, 0, 0, 1],
    }


def test_what_says_nothing_is_no_concept():
    """Common words, numbers and single letters make none, but belong to one."""
    found = found_by("a thing says 7 x. cat thing 7. x y.")
    assert set(found) == {"cat thing 7", "x y"}


def test_characters_of_scripts_without_spaces_make_concepts_by_two_and_three():
    assert set(found_by("\u4e2d\u6587\u5b57, \u4e2d\u6587, \u6587\u5b57")) == {
        "\u4e2d \u6587",
        "\u6587 \u5b57",
        "\u4e2d \u6587 \u5b57",
    }


def test_pronouns_mention_the_name_before_them():
    """The last one within three sentences; a capital at the beginning of a sentence makes no name;
    others mention nothing.
    """
    text = "we mt: Ann. Yes so he came. Ok it. Ok her. No. Her."
    assert found_by(text)["ann"] == [0, 1, 3]
    assert found_by(text, special=WITHOUT_PRONOUNS)["ann"] == [0]
    assert found_by("we mt: Ann and Bob. He went.")["bob"] == [0, 1]
    assert found_by("Ann, came. He went.")["ann"] == [0]


def test_a_concept_of_several_words_is_counted_once():
    """By hand: "saw Zanzibar" four times, far apart, is one concept with six pairs; with a word of
    its own elsewhere "Zanzibar" is another, with ten.
    """
    lines = ["So it was."] * 900
    for place in (0, 40, 200, 800):
        lines[place] = "Then we saw Zanzibar."
    text = " ".join(lines)
    special = replace(SPECIAL, stop=SPECIAL.stop | frozenset(["so", "it", "was", "then", "we"]))
    assert found_by(text, special) == {"saw zanzibar": [0, 40, 200, 800]}
    finder = LexicalConcepts(special)
    found = count_referrals(finder.mentions(text), (32, 128, 512))
    assert (found.pairs, found.neighbours) == ((0, 0, 1, 2, 3), (0, 0, 1, 1, 1))
    assert found.concepts == (0, 0, 1, 1, 1)
    more = found_by(f"{text} Zanzibar.", special)
    assert more == {"saw zanzibar": [0, 40, 200, 800], "zanzibar": [0, 40, 200, 800, 900]}


def test_days_are_nobody_and_addresses_no_words():
    """A pronoun refers to the person before the day; an address has no concepts, and its sentence
    ends.
    """
    found = found_by("we mt: Jones. The Monday. He stayed. Yes the Monday came.")
    assert found["jones"] == [0, 2]
    assert found["monday"] == [1, 3]
    text = "The https://foo.example/bar.html?q=baz. The www.Foo.org, dog."
    assert set(found_by(text)) == {"dog"}


def test_a_pronoun_never_looks_into_another_part():
    text = "we mt: Ann. He went."
    assert found_by(text)["ann"] == [0, 1]
    assert found_by(text, parts=[Part(0, 0), Part(12, 1)]) == found_by(
        text, special=WITHOUT_PRONOUNS
    )


def test_names_come_beside_the_best():
    """With room for one phrase, all that is written large half of the time or more is a concept
    too.
    """
    text = (
        "so hub one hub two hub three hub. Now Rome and Rome and rome. Now the Milan and milan "
        "and milan."
    )
    found = find(LexicalConcepts(SPECIAL, top=1), text)
    spelt = [phrase(text, found, number) for number in range(len(found.concepts))]
    assert dict(zip(spelt, found.named.tolist(), strict=True)) == {"hub": False, "rome": True}


def test_equals_of_the_last_of_the_best_come_along():
    """So the choice does not depend on which of them came first."""
    words = read_words("alpha beta. Gamma delta.", SPECIAL)
    grams = concepts.number_grams(words)
    _, chosen = choose(words, grams, concepts.rank_words(words), 1)
    assert chosen.all()


def test_ranks_are_those_of_textrank():
    """Against PageRank over the graph, by plain arithmetic in floats."""
    text = "alpha beta gamma the alpha delta. beta beta epsilon. alone."
    words = read_words(text, SPECIAL)
    n_kinds = len(words.weights)
    graph = np.zeros((n_kinds, n_kinds))
    by_sentence = [
        words.words[words.sentences == sentence].tolist() for sentence in range(words.n_sentences)
    ]
    for line in by_sentence:
        for place, word in enumerate(line):
            for other in line[place + 1 : place + 3]:
                if word != other:
                    graph[word, other] += 1
                    graph[other, word] += 1
    ranks = np.ones(n_kinds)
    for _ in range(20):
        ranks = 0.15 + 0.85 * graph @ (ranks / np.maximum(graph.sum(axis=0), 1))
    np.testing.assert_allclose(concepts.rank_words(words) / phrases.ONE, ranks, rtol=1e-7)
    assert ranks.max() > 1.5


@given(
    texts() | sentences().map(" ".join),
    st.sampled_from([1, 3, 1000]),
    st.lists(st.integers(0, 90), max_size=2).map(sorted),
)
def test_compiled_finding_is_plain_finding(text, top, starts):
    """Phrases, ranks, mentions: every array."""
    words = read_words(text, SPECIAL, starts)
    grams, plain_grams = phrases.number_grams(words), concepts.number_grams(words)
    ranks = phrases.rank_words(words)
    np.testing.assert_array_equal(ranks, concepts.rank_words(words))
    for name, ours, theirs in zip(grams._fields, grams, plain_grams, strict=True):
        np.testing.assert_array_equal(ours, theirs, err_msg=name)
        assert ours.dtype == theirs.dtype
    named, chosen = choose(words, grams, ranks, top)
    fast = phrases.list_mentions(words, grams, chosen, named)
    slow = concepts.list_mentions(words, grams, chosen, named)
    for ours, theirs in zip(fast, slow, strict=True):
        np.testing.assert_array_equal(ours, theirs)
        assert ours.dtype == theirs.dtype


@given(sentences(), st.randoms(use_true_random=False), st.sampled_from([2, 1000]))
def test_the_order_of_sentences_changes_no_concept(lines, rng, top):
    """Only where they are mentioned: reordering conserves the pairs of every text exactly, as long
    as pronouns mention nothing.
    """
    before = found_by(" ".join(lines), top=top, special=WITHOUT_PRONOUNS)
    order = list(range(len(lines)))
    rng.shuffle(order)
    place_of = {old: new for new, old in enumerate(order)}
    after = found_by(" ".join(lines[old] for old in order), top=top, special=WITHOUT_PRONOUNS)
    assert after == {
        concept: sorted(place_of[sentence] for sentence in places)
        for concept, places in before.items()
    }


@given(sentences(), st.integers(1, 4), st.sampled_from([2, 1000]))
def test_documents_in_turns_keep_their_pairs(lines, n_documents, top):
    """Round-robin over documents' segments: pairs within documents stay as many, pronouns and all,
    and none is lost between.
    """
    finder = LexicalConcepts(SPECIAL, top=top)
    segments = [" ".join(lines[start : start + 2]) for start in range(0, len(lines), 2)]
    in_a_row = sorted(range(len(segments)), key=lambda number: number % n_documents)
    counts = []
    for order in (in_a_row, range(len(segments))):
        starts = np.cumsum([0, *(len(segments[number]) + 1 for number in order)]).tolist()
        parts = [
            Part(start, number % n_documents) for start, number in zip(starts, order, strict=False)
        ]
        counts.append(
            count_referrals(
                finder.mentions(" ".join(segments[number] for number in order), parts), (4,)
            )
        )
    assert sum(counts[0].pairs) == sum(counts[1].pairs)
    assert counts[0].pairs[0] == counts[1].pairs[0]


def test_documents_apart_are_as_if_each_were_alone():
    """What joins two documents is not counted, and what is in one is."""
    text = "we mt: Ann. so Ann. then Bob and Ann. Bob again."
    apart = LexicalConcepts(SPECIAL).mentions(text, [Part(0, 0), Part(20, 1)])
    whole = LexicalConcepts(SPECIAL).mentions(text)
    assert (sum(count_referrals(apart).pairs), sum(count_referrals(whole).pairs)) == (2, 4)


def test_a_text_of_nothing_has_nothing():
    for text in ("", " ", ".", "One sentence only"):
        found = count_referrals(LexicalConcepts(SPECIAL).mentions(text))
        assert (sum(found.pairs), sum(found.neighbours), sum(found.concepts)) == (0, 0, 0)


def test_what_cannot_be_meant_is_refused():
    with pytest.raises(BadInput, match="parts in order"):
        LexicalConcepts(SPECIAL).mentions("abc", [Part(0, 0), Part(2, 1), Part(1, 2)])


def test_what_was_found_can_be_made_by_hand():
    """A plug-in returns sentences by concept; the same counts follow."""
    found = found_by("we mt: Ann. Yes so he came.")
    assert count_referrals(Mentions.of(2, found)) == count_referrals(
        LexicalConcepts(SPECIAL).mentions("we mt: Ann. Yes so he came.")
    )
