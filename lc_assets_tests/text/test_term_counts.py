"""Terms are the normalized words of a text, by the last bits of their hash."""

from collections import Counter

from hypothesis import given

from lc_assets.packing import term_vectors
from lc_assets.text.duplicates.keys import TERM_BITS, term_counts
from lc_assets.text.hashing import mix64
from lc_assets.text.words import normalize
from lc_assets_tests.reference.minhash import word_hash
from lc_assets_tests.strategies import hostile_text


@given(hostile_text())
def test_terms_are_counted_words(text):
    """Counted one by one."""
    plain = Counter(mix64(word_hash(word)) & (2**TERM_BITS - 1) for word in normalize(text).split())
    terms, counts = term_counts(text)
    assert dict(zip(terms.tolist(), counts.tolist(), strict=True)) == plain
    assert terms.tolist() == sorted(plain)


def test_both_packages_use_the_same_bits():
    """Neither imports the other."""
    assert TERM_BITS == term_vectors.TERM_BITS
