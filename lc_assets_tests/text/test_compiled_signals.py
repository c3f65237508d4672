"""The compiled loops say what the plain reference says, of any text, and take no more than linear
time for it.
"""

import itertools
import math
import re
import unicodedata
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, strategies as st

from lc_assets.text import numbering
from lc_assets.text.characters import DENSE, N_CODE_POINTS, character_bits
from lc_assets.text.signals import passes, signals
from lc_assets.text.signals.names import WordLists
from lc_assets.text.signals.scores import LARGEST, entropy, round8
from lc_assets.text.signals.signals import (
    WORD_SIGNALS,
    measure_words,
    signals_of,
    signals_of_each,
)
from lc_assets.text.texts import Texts
from lc_assets.text.words import fold
from lc_assets_tests.reference.redpajama_signals import slow_signals
from lc_assets_tests.reference.signals import read_document, signals_of_document
from lc_assets_tests.strategies import hostile_text

LISTS = WordLists(
    stop_words={"en": frozenset({"the", "a", "The", "end", "...", "é"})},
    bad_words={
        "en": frozenset(
            {
                "the",
                "the end",
                "the end the end",
                "a  a",
                "É",
                "lorem ipsum",
                "a a",
                "javascript",
                " a",
                "b\u0301",
            }
        )
    },
    domains={"example.org": 7},
)
WORDS = (
    "the",
    "end",
    "a",
    "A",
    "B2",
    "É",
    "javascript",
    "lorem",
    "xlorem",
    "ipsum",
    "ipsumx",
    "…",
    "...",
    ".",
    "!",
    "\n",
    "\n\n",
    "•",
    "½",
    "#{",
)
UNPAIRED = st.sampled_from(
    [
        "\ud800",
        "\udfff",
        "\0",
        "ΑΣ",
        "Σ",
        "\u0344",
        "a\u0315\u0300",
        "שלום",
        "\u202e",
        "\U0010ffff",
        "\U000e0100",
        "각",
    ]
)


def texts() -> st.SearchStrategy[str]:
    """Hostile texts, with what no file of text should hold; and texts of few words, so that they
    repeat.
    """
    hostile = st.lists(hostile_text() | UNPAIRED, max_size=8).map("".join)
    latin = st.text(st.characters(max_codepoint=255), max_size=200)
    return hostile | latin | st.lists(st.sampled_from(WORDS), max_size=120).map(" ".join)


@given(texts())
@example("")
@example("\n")
@example("\n\n ")
@example("a " * 700)
@example("".join(f"w{n} " for n in range(5000)))
@example("a\u0315\u0300 a\u0300\u0315 a\u0301\u0300 a\u0300\u0301")
@example("ΑΣ ας ΑΣΑ ασα ασ")
@example("½ ² Ⅳ 一 \u0f33 \U0001f10b " * 3)
@example("x" * 10_000 + " " + "é" * 10_000)
def test_the_compiled_loops_are_the_plain_twin(text):
    """Spans, digits and types of all 29; and the reference is the oracle."""
    fast = signals_of(text, LISTS, language="en", source_domain="example.org")
    plain = signals_of_document(
        read_document(text), LISTS, language="en", source_domain="example.org"
    )
    assert repr(fast) == repr(plain)
    whole, words = signals_of_each(Texts([text]), [""]).columns(), measure_words(Texts([text]))
    assert repr(words) == repr({name: whole[name] for name in whole if name in WORD_SIGNALS})
    if len(text) < 1000:
        listed = {
            "stop_words": LISTS.stop_words["en"],
            "bad_words": LISTS.bad_words["en"],
            "domains": LISTS.domains,
        }
        slow = slow_signals(text, source_domain="example.org", **listed)
        assert repr({name: slow[name] for name in fast}) == repr(fast)
        assert fast.keys() == slow.keys()


@given(st.lists(texts(), min_size=1, max_size=5))
@example(["", "ΑΣ", "\n", "a", "ΑΣ b", "", "The end.\n\n• b\n"])
def test_together_texts_have_the_signals_that_they_have_alone(some):
    """Also those that are folded by Python, before and after others, and without a line or word."""
    measured = signals_of_each(Texts(some), ["example.org"] * len(some), LISTS, language="en")
    spans = measured.spans()
    for at, text in enumerate(some):
        alone = signals_of(text, LISTS, language="en", source_domain="example.org")
        assert repr({name: own[at] for name, own in spans.items()}) == repr(alone)
    words = measure_words(Texts(some))
    assert all(np.array_equal(measured.columns()[name], words[name], True) for name in words)


def test_a_signal_without_its_list_is_absent():
    """Not null, not zero: nobody looked."""
    spans = signals_of("the end", LISTS, language="de")
    assert "rps_doc_stop_word_fraction" not in spans
    assert "rps_doc_ldnoobw_words" not in spans
    assert spans["rps_doc_ut1_blacklist"] == [(0, 7, None)]
    assert "rps_doc_ut1_blacklist" not in signals_of("the end")


def test_the_share_of_bullets_counts_lines_as_ccnet_does():
    """A last empty line counts."""
    columns = signals_of_each(Texts(["• a\n• b\nc\n", ""]), ["", ""]).columns()
    assert repr(columns["frac_lines_start_with_bulletpoint"].tolist()) == "[0.5, nan]"


def test_characters_beyond_the_tables_have_nothing_to_tell():
    """The tables end at the fourth plane; what Python knows of later characters must be what the
    loops assume.
    """
    beyond = "".join(map(chr, range(N_CODE_POINTS, 0x110000)))
    assert re.search(r"[\w\s]", beyond) is None
    assert beyond.lower() == beyond == unicodedata.normalize("NFD", beyond)
    assert not any(map(str.isupper, beyond))
    assert not any(map(str.isnumeric, beyond))
    assert not any(map(unicodedata.combining, beyond))
    assert not any(character.islower() or character.istitle() for character in beyond)


def test_every_character_folds_as_the_plain_twin_folds_it():
    """Each alone, and between letters; whitespace stays whitespace and nothing becomes it."""
    bits = character_bits()
    for start in range(0, N_CODE_POINTS, 8192):
        text = "a".join(map(chr, range(start, start + 8192)))
        assert signals_of(text) == signals_of_document(read_document(text)), start
    changed = [chr(code) for code in range(N_CODE_POINTS) if bits[code] & DENSE]
    assert not any(character.isspace() for character in fold("".join(changed)))


def test_rounding_is_pythons():
    """Ratios of thousands of pairs of integers of every magnitude up to 10⁹."""
    pairs = (10 ** np.random.default_rng(7).uniform(0, 9, (5000, 2))).astype(int).tolist()
    for numerator, denominator in [(1, 512), (1, 1024), (3, 2**20), (0, 1), *pairs]:
        for value in (
            numerator / denominator,
            min(numerator, denominator) / max(numerator, denominator),
            1 - 1 / denominator,
        ):
            if value < LARGEST:
                assert round8(value) == round(value, 8), value


def test_rounding_is_pythons_next_to_every_half():
    """The floats around n and a half hundred-millionths, where a product alone errs."""
    drawn = (10 ** np.random.default_rng(7).uniform(0, 15, 5000)).astype(int).tolist()
    for n in [0, 1, 2, 10**15, *drawn]:
        half = float(Fraction(2 * n + 1, 2 * 10**8))
        for value in (half, math.nextafter(half, 0), math.nextafter(half, math.inf)):
            assert round8(value) == round(value, 8), value


def test_the_loops_take_the_c_librarys_logarithm():
    """Terms of the entropy are added by bits, so the logarithm must be Python's to the last one."""
    for n_words, count in itertools.product(
        (1, 2, 3, 7, 450, 10_007, 1_234_577), (1, 2, 5, 63, 64, 65, 4001)
    ):
        if count <= n_words:
            assert entropy(np.array([count]), n_words) == -count / n_words * math.log(
                count / n_words
            )


def repeated(piece: str):
    return lambda n: piece * (n // len(piece))


HOSTILE = {
    "one character": repeated("a"),
    "one word over and over": repeated("ha "),
    "no spaces": lambda n: "".join(chr(97 + place * place % 23) for place in range(n)),
    "newlines": repeated("\n"),
    "full stops": repeated("."),
    "every word another": lambda n: " ".join(f"{place:x}" for place in range(n // 6)),
    "every pair another": lambda n: " ".join(
        f"{place % 997} {place % 1009}" for place in range(n // 8)
    ),
    "marks out of order": repeated("\u0315\u0300"),
    "sigmas": repeated("ΑΣ "),
    "right to left": repeated("שלום עולם "),
    "unpaired surrogates": repeated("\ud800\udc00 "),
    "NUL": repeated("\0"),
    "what expands most": repeated("\u1f82"),
    "words of one length and few letters": lambda n: " ".join(
        f"{place:016b}" for place in range(n // 17)
    ),
    "Thue and Morse, against hashes of polynomials": lambda n: " ".join(
        morse(place) for place in range(n // 2100)
    ),
}


def morse(number: int) -> str:
    """A word of 2,048 letters; any two of these collide under every polynomial modulo a power of
    two.
    """
    bits = [place.bit_count() & 1 for place in range(1024)]
    return "".join("ab"[bit ^ (number & 1)] for bit in bits) + f"{number:x}"


@pytest.mark.parametrize("what", HOSTILE)
def test_hostile_texts_are_measured(what):
    """A quarter of a million characters; quadratic loops would take minutes."""
    text = HOSTILE[what](250_000)
    spans = signals_of(text, LISTS, language="en")
    assert spans["rps_lines_num_words"][-1][1] == len(text)


@pytest.mark.parametrize("n_words", [passes._WORDS_AT_ONCE + more for more in (-1, 0, 1)])
def test_words_are_numbered_some_at_a_time(n_words):
    """Words come back in later parts, and there are more than there is room for at first."""
    text = " ".join(f"w{number * number % 4_999}" for number in range(n_words)) + " \nLast one."
    assert repr(signals_of(text)) == repr(signals_of_document(read_document(text)))


def test_more_repeated_pairs_than_there_is_room_for_at_first():
    """Their table grows once it is three quarters full."""
    once = [str(number) for number in range(3 << numbering._FIRST_BITS - 2)]
    for text in (" ".join(some + some) for some in (once, [*once, "more", "words"])):
        assert repr(signals_of(text)) == repr(signals_of_document(read_document(text)))


def test_a_long_text_has_the_signals_of_any(monkeypatch):
    """Its normalized form is let go of before its n-grams are counted."""
    text = "One day, {two}.\n" * 50 + "ONE day, two days? 3 nights!"
    short, words = repr(signals_of(text)), repr(measure_words(Texts([text])))
    monkeypatch.setattr(signals, "_LONG", 0)
    assert (repr(signals_of(text)), repr(measure_words(Texts([text])))) == (short, words)


def test_ten_megabytes_in_one_line():
    """No newline, and words that are all the same: one line, counted in well under a second."""
    spans = signals_of("word " * 2_000_000)
    assert spans["rps_doc_word_count"] == [(0, 10_000_000, 2_000_000)]
    assert spans["rps_lines_num_words"] == [(0, 10_000_000, 2_000_000)]
    assert spans["rps_doc_frac_chars_dupe_10grams"] == [(0, 10_000_000, 1.0)]
