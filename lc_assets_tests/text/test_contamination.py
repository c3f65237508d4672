"""N-grams of items in documents: what the plain reference finds with strings, and what is made
of it.
"""

import dataclasses
import unicodedata

import numpy as np
import pytest
from hypothesis import given, strategies as st

from lc_assets.errors import Mismatch
from lc_assets.text.contamination import scanning
from lc_assets.text.contamination.grams import GramSettings, Item, basis_of, build_index
from lc_assets.text.contamination.loose_words import fold_character, word_letters
from lc_assets.text.contamination.overlaps import (
    Weigher,
    in_many_items,
    is_contaminated,
    without_spans,
)
from lc_assets.text.contamination.scanning import find_grams
from lc_assets_tests.reference.contamination import (
    hash_of_word,
    key_of,
    loose_words,
    placed_words,
    plain_scan,
)

HOSTILE = [
    "",
    "\0",
    "\ud800a\udfff",
    "a" * 100_000,
    "a\u0301" * 5000 + " b",
    "\u0301" * 5000,
    "שלום עולם" * 200,
    "東京は日本の首都です。" * 50,
    "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 \U0010ffff x",
    "ﷺ ½ ﬃ İ ẞ ß",
    "don\u2019t don't do\u00adn't",
    " \u2003\u200b\n\r\t" * 100,
    ".,;:!?—" * 1000,
]
WORDS = st.sampled_from(
    ["a", "b", "é", "e\u0301", "ß", "東", "don't", "ﬁ", "1,0", "\ud800", "—", "\u00ad", "Ab", "𝔘"]
)
TEXTS = st.lists(
    st.tuples(WORDS, st.sampled_from([" ", "", "\n", ", ", "\u00a0"])), max_size=60
).map(lambda pairs: "".join(map("".join, pairs)))


def items_of(*texts):
    return [
        Item(id=str(number), parts=(text,) if isinstance(text, str) else text)
        for number, text in enumerate(texts)
    ]


def strings_found(text, index):
    """Brute force: the set of n-gram strings of a text that are among the items' n-gram strings."""
    words = loose_words(text)
    wanted = {tuple(index.words_of(gram)): gram for gram in range(index.n_grams)}
    return {
        (wanted[window], end)
        for length in index.lengths.tolist()
        for end in range(length, len(words) + 1)
        if (window := tuple(words[end - length : end])) in wanted
    }


@given(text=st.one_of(TEXTS, st.text(st.characters(), max_size=80)))
def test_the_kernels_words_are_the_plain_twins(text):
    letters, ends, hashes = word_letters(text, basis_of(3))
    words = loose_words(text)
    assert "".join(words) == letters.astype("<u4").tobytes().decode("utf-32-le", "surrogatepass")
    assert ends.tolist() == np.cumsum([len(word) for word in words], dtype=np.int64).tolist()
    assert hashes.tolist() == [hash_of_word(word, 3) for word in words]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_words_are_the_plain_twins(text):
    assert word_letters(text, basis_of(0))[2].tolist() == [
        hash_of_word(word, 0) for word in loose_words(text)
    ]


@given(
    items=st.lists(TEXTS, min_size=1, max_size=6),
    text=TEXTS,
    ngram=st.integers(1, 5),
    low=st.integers(1, 5),
    sample=st.integers(1, 3),
)
def test_a_scan_finds_what_brute_force_finds(items, text, ngram, low, sample):
    """With keys of 12 bits, which clash all the time; where they clash within the index it must say
    so.
    """
    try:
        index = build_index(
            items_of(*items),
            GramSettings(ngram=ngram, min_words=min(low, ngram), sample=sample),
            key_bits=12,
        )
    except Mismatch:
        return
    document = text + " " + items[0]
    finds, plain = find_grams(document, index), plain_scan(document, index)
    assert set(zip(finds.grams.tolist(), finds.lasts.tolist(), strict=True)) == strings_found(
        document, index
    )
    for name in ("grams", "starts", "ends", "lasts"):
        np.testing.assert_array_equal(getattr(finds, name), getattr(plain, name))
    assert finds.n_words == plain.n_words == len(loose_words(document))


@given(items=st.lists(TEXTS, min_size=1, max_size=6))
def test_every_items_own_n_grams_are_in_the_index_and_nothing_else(items):
    index = build_index(items_of(*items), GramSettings(ngram=3, min_words=2))
    wanted = set()
    for words in map(loose_words, items):
        wanted |= {tuple(words[start : start + 3]) for start in range(len(words) - 2)} or (
            {tuple(words)} if len(words) == 2 else set()
        )
    assert {tuple(index.words_of(gram)) for gram in range(index.n_grams)} == wanted
    keys = [
        key_of([hash_of_word(word, 0) for word in index.words_of(gram)])
        for gram in range(index.n_grams)
    ]
    assert keys == sorted(keys) == index.keys.tolist()


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_documents_and_items(text):
    index = build_index(items_of(text, "one two three"), GramSettings(ngram=3, min_words=1))
    document = f"{text} one TWO three {text}"
    finds, plain = find_grams(document, index), plain_scan(document, index)
    np.testing.assert_array_equal(finds.grams, plain.grams)
    np.testing.assert_array_equal(finds.starts, plain.starts)


def test_clashing_keys_are_no_finds():
    """Keys of 12 bits and a filter that lets everything pass: some sixty of these 50,000 places
    clash, none is believed.
    """
    sound = build_index(
        items_of("a b c d e f", "g h i"), GramSettings(ngram=3, min_words=1), key_bits=12
    )
    index = dataclasses.replace(sound, bits=np.full_like(sound.bits, np.iinfo(np.uint64).max))
    text = " ".join(f"word{number}" for number in range(50_000)) + " c d e"
    assert len(scanning._scan_text(text, index)[0]) > 20
    assert [index.words_of(gram) for gram in find_grams(text, index).grams] == [["c", "d", "e"]]


def test_many_finds_are_all_noted(monkeypatch):
    """More finds than there is room for at first, verified some at a time."""
    text = "the quick brown fox jumps over — the “lazy” dog\u0301 東京 the " * 400
    index = build_index(
        items_of("quick brown fox", "dog 東 京 the"), GramSettings(ngram=3, min_words=1)
    )
    whole, plain = find_grams(text, index), plain_scan(text, index)
    assert len(whole) > 1000
    np.testing.assert_array_equal(whole.starts, plain.starts)
    np.testing.assert_array_equal(whole.grams, plain.grams)
    monkeypatch.setattr(scanning, "FINDS_AT_FIRST", 7)
    monkeypatch.setattr(scanning, "VERIFIED_AT_ONCE", 7)
    np.testing.assert_array_equal(find_grams(text, index).starts, whole.starts)


def test_coverage_stretch_and_place():
    """Six words are four 3-grams; a document with the first four words and, apart, the last three
    holds three of them.
    """
    index = build_index(items_of("a b c d e f", "x y z w"), GramSettings(ngram=3, min_words=1))
    text = "- A, B, C, D! then d e f."
    (overlap,) = Weigher(index).overlaps_of(find_grams(text, index))
    assert (overlap.item, overlap.grams, overlap.item_grams, overlap.coverage) == (0, 3, 4, 0.75)
    assert overlap.longest_words == 6  # a to d and d to f touch in the item
    assert text[overlap.start : overlap.end] == "A, B, C, D"
    assert overlap.document_share == 7 / 8


@pytest.mark.parametrize(
    ("text", "longest"), [("a b c x d e f", 6), ("a b c x e f g", 3), ("b c d x g h y c d e", 4)]
)
def test_the_longest_stretch_has_no_gap(text, longest):
    """Two n-grams that touch in the item cover it without a gap; with a word between them they are
    two stretches.
    """
    index = build_index(items_of("a b c d e f g h"), GramSettings(ngram=3, min_words=1))
    assert Weigher(index).overlaps_of(find_grams(text, index))[0].longest_words == longest


def test_a_repeated_n_gram_counts_once():
    index = build_index(items_of("a b c a b c a b c"), GramSettings(ngram=3, min_words=1))
    assert index.item_grams.tolist() == [3]
    (overlap,) = Weigher(index).overlaps_of(find_grams("a b c a b c", index))
    assert (overlap.grams, overlap.coverage) == (3, 1.0)
    (overlap,) = Weigher(index).overlaps_of(find_grams("a b c " * 3 + "x a b c", index))
    assert overlap.coverage == 1.0


@pytest.mark.parametrize(
    ("mode", "threshold", "contaminated"),
    [
        ("coverage", 0.5, False),
        ("coverage", 0.25, True),
        ("coverage", 0.26, False),
        ("any", 0.5, True),
        ("overlap", 0.6, True),
        ("overlap", 0.61, False),
    ],
)
def test_each_mode_decides_as_it_says(mode, threshold, contaminated):
    index = build_index(items_of("a b c d e f"), GramSettings(ngram=3, min_words=1))
    (found,) = Weigher(index).overlaps_of(find_grams("b c d and more", index))
    assert is_contaminated(found, mode, threshold) == contaminated


def test_what_is_ignored_counts_neither_as_found_nor_as_missing():
    index = build_index(
        items_of("t t t a b", "t t t c d", "t t t e f"), GramSettings(ngram=3, min_words=1)
    )
    common = in_many_items(index, 2)
    assert [index.words_of(gram) for gram in common] == [["t", "t", "t"]]
    assert Weigher(index, common).overlaps_of(find_grams("t t t", index)) == ()
    (overlap,) = Weigher(index, common).overlaps_of(find_grams("t t t a b", index))
    assert (overlap.item, overlap.grams, overlap.item_grams) == (0, 2, 2)
    assert Weigher(index).overlaps_of(find_grams("t t t", index))[0].coverage == 1 / 3


def test_items_shorter_than_an_n_gram_are_taken_whole_or_reported():
    index = build_index(
        items_of("one two three four", ("a", "b c"), "", ("x y z", "p q r s")),
        GramSettings(ngram=13, min_words=3),
    )
    assert index.item_grams.tolist() == [1, 0, 0, 1]
    assert index.item_words.tolist() == [4, 3, 0, 7]
    assert index.lengths.tolist() == [4]
    assert [
        index.words_of(gram) for gram in find_grams("zero one two three four p q r s", index).grams
    ] == [
        ["one", "two", "three", "four"],
        ["p", "q", "r", "s"],
    ]


def test_no_n_gram_crosses_two_parts():
    index = build_index(items_of(("a b", "c d")), GramSettings(ngram=3, min_words=3))
    assert index.n_grams == 0
    assert len(find_grams("a b c d", index)) == 0


def test_sampling_keeps_the_same_n_grams_on_both_sides():
    text = " ".join(str(number) for number in range(3000))
    index = build_index(items_of(text), GramSettings(ngram=5, min_words=5, sample=10))
    assert 150 < index.n_grams < 450
    (overlap,) = Weigher(index).overlaps_of(find_grams(text, index))
    assert overlap.coverage == 1
    half = (
        Weigher(index)
        .overlaps_of(find_grams(" ".join(str(number) for number in range(1500)), index))[0]
        .coverage
    )
    assert 0.4 < half < 0.6


def test_cutting_leaves_the_rest():
    index = build_index(items_of("b c d"), GramSettings(ngram=3, min_words=1))
    text = "a (B, c, d) e b c d"
    finds = find_grams(text, index)
    spans = Weigher(index).spans_of(finds, [0], 0.8)
    assert [text[start:end] for start, end in spans] == ["B, c, d", "b c d"]
    assert without_spans(text, spans, 0) == "a () e "
    assert without_spans(text, spans, 1) == "a  e"


def test_keys_that_clash_in_the_index_are_not_believed():
    with pytest.raises(Mismatch, match="another seed"):
        build_index(items_of(" ".join(map(str, range(300)))), key_bits=8)


def test_folding_looks_at_one_character_only():
    """So composed and decomposed text give the same words."""
    text = "Élève à l’œuvre — Straße, ΑΣΣΟΣ, ﬁn"
    assert loose_words(text) == loose_words(unicodedata.normalize("NFD", text))
    assert [fold_character(char) for char in "\ud800\0Σς"] == [" ", " ", "σ", "σ"]
    assert [(word, text[start:end]) for word, start, end in placed_words(text)][:2] == [
        ("eleve", "Élève"),
        ("a", "à"),
    ]


def close_settings(ngram=5, min_words=7):
    return GramSettings(ngram=ngram, min_words=min_words)


PROSE = "w x y z " * 40


def words_of(count, prefix="item"):
    return [f"{prefix}{number}" for number in range(count)]


@pytest.mark.parametrize("size", [13, 20, 40])
def test_an_item_with_any_one_word_changed_is_found_with_its_place(size):
    """13-grams leave nothing of a short one; the evidence spans the change."""
    item = words_of(size)
    index = build_index(items_of(" ".join(item), " ".join(words_of(20, "other"))), close_settings())
    weigher = Weigher(index, mode="weighted")
    for place in range(size):
        edited = [*item[:place], "changed", *item[place + 1 :]]
        text = PROSE + " ".join(edited) + " " + PROSE
        (overlap,) = weigher.overlaps_of(find_grams(text, index))
        assert is_contaminated(overlap, "weighted", 0.55)
        found = text[overlap.start : overlap.end].split()
        lost = [word for word in edited if word not in found]
        assert len(lost) <= 5
        assert found == edited[edited.index(found[0]) : edited.index(found[-1]) + 1]
        assert overlap.coverage == pytest.approx(len([w for w in found if w in item]) / size)


def test_n_grams_far_apart_do_not_add_up():
    """A book may hold all of an item's phrases somewhere."""
    item = words_of(20)
    index = build_index(items_of(" ".join(item)), close_settings())
    pieces = [" ".join(item[start : start + 10]) for start in (0, 10)]
    weigher = Weigher(index, mode="words")
    for gap, coverage in ((10, 1.0), (11, 0.5)):
        text = pieces[0] + " gap" * gap + " " + pieces[1]
        (overlap,) = weigher.overlaps_of(find_grams(text, index))
        assert overlap.coverage == coverage


def test_what_all_items_share_weighs_little():
    """Ten questions begin alike; a page that holds this beginning holds none of them."""
    beginning = "which of the following statements is the best answer to"
    items = [f"{beginning} {' '.join(words_of(6, f'q{number}x'))}" for number in range(10)]
    index = build_index(items_of(*items), close_settings())
    finds = find_grams(f"A form says: {beginning} nothing at all.", index)
    plain = Weigher(index, mode="words").overlaps_of(finds)
    weighted = Weigher(index, mode="weighted").overlaps_of(finds)
    assert {round(overlap.coverage, 3) for overlap in plain} == {0.625}
    assert all(overlap.coverage < 0.1 for overlap in weighted)
    (first, *_) = Weigher(index, mode="weighted").overlaps_of(find_grams(items[3], index))
    assert (first.item, first.coverage) == (3, 1.0)


def test_a_phrase_that_an_item_repeats_counts_once_in_the_document():
    index = build_index(items_of("go to bed my boy and go to bed my boy now"), close_settings())
    weigher = Weigher(index, mode="words")
    assert weigher.overlaps_of(find_grams("go to bed my boy", index)) == ()
    assert len(weigher.overlaps_of(find_grams("go to bed my boy and go", index))) == 1


def plain_shares(text, items, ngram, min_words):
    """The largest share of each item that a stretch of the text covers, by loops over words."""
    words, best = loose_words(text), {}
    for number, item in enumerate(items):
        wanted = loose_words(item)
        hits = [
            (end, start)
            for end in range(ngram, len(words) + 1)
            for start in range(len(wanted) - ngram + 1)
            if words[end - ngram : end] == wanted[start : start + ngram]
        ]
        stretches = []
        for end, start in hits:
            if not stretches or end - ngram - stretches[-1][-1][0] > 2 * ngram:
                stretches.append([])
            stretches[-1].append((end, start))
        for stretch in stretches:
            covered = {start + step for _, start in stretch for step in range(ngram)}
            extent = stretch[-1][0] - stretch[0][0] + ngram
            if len(wanted) >= min_words <= min(len(covered), extent):
                best[number] = max(best.get(number, 0), len(covered) / len(wanted))
    return best


@given(
    items=st.lists(st.lists(st.sampled_from("abcd"), max_size=14), min_size=1, max_size=4),
    text=st.lists(st.sampled_from("abcde"), max_size=60),
    ngram=st.integers(2, 4),
    more=st.integers(0, 3),
)
def test_shares_of_stretches_are_those_of_loops_over_words(items, text, ngram, more):
    texts, text = [" ".join(item) for item in items], " ".join(text)
    index = build_index(items_of(*texts), close_settings(ngram, ngram + more))
    found = Weigher(index, mode="words").overlaps_of(find_grams(text, index))
    assert {overlap.item: overlap.coverage for overlap in found} == pytest.approx(
        plain_shares(text, texts, ngram, ngram + more)
    )


def test_what_is_cut_is_the_stretch_with_its_change():
    item = words_of(20)
    index = build_index(items_of(" ".join(item)), close_settings())
    rest = " after" * 20 + " " + " ".join(item[:7])
    text = "before " + " ".join([*item[:9], "changed", *item[10:]]) + rest
    spans = Weigher(index, mode="weighted").spans_of(find_grams(text, index), [0], 0.55)
    assert without_spans(text, spans) == "before " + rest
