"""Terms are the normalized words of a text, by the last bits of their hash."""

from collections import Counter

from hypothesis import given

from lc_assets.packing import term_vectors
from lc_assets.text import term_counts as counting
from lc_assets.text.shingles import mixed, word_hash
from lc_assets.text.term_counts import TERM_BITS, term_counts
from lc_assets.text.words import normalize
from lc_assets_tests.strategies import hostile_text


@given(hostile_text())
def test_terms_are_counted_words(text):
    """The twin counts words one by one."""
    plain = Counter(mixed(word_hash(word)) & (2**TERM_BITS - 1) for word in normalize(text).split())
    terms, counts = term_counts(text)
    assert dict(zip(terms.tolist(), counts.tolist(), strict=True)) == plain
    assert terms.tolist() == sorted(plain)


def test_both_rooms_mean_the_same_bits():
    """They do not know each other."""
    assert counting.TERM_BITS == term_vectors.TERM_BITS
