"""MinHash signatures: RedPajama-V2's bit for bit, and a fast scheme that estimates as well."""

import hashlib
import json
import random

import numpy as np
import pytest
from hypothesis import given, strategies as st

from lc_assets.text.duplicates import minhash
from lc_assets.text.duplicates.keys import jaccard, shingle_hashes
from lc_assets.text.duplicates.minhash import BANDS, FAST, RPV2, signature, signatures_each
from lc_assets.text.folding import normalized_utf8
from lc_assets_tests.reference.minhash import bands_of, estimated_similarity, plain_signature
from lc_assets_tests.text.together import normalized_together
from lc_assets_tests.tokens.hostile_text import HOSTILE_TEXT

SCHEMES = pytest.mark.parametrize("scheme", [RPV2, FAST], ids=lambda scheme: scheme.label)
WORDS = [" ".join(f"w{at * at}" for at in range(n)) for n in (12, 13, 14, 28, 29, 40)]
GOLDEN_BOOKS = [f"books_{language}" for language in ("de", "en", "es", "fr", "it")]


def checksum(scheme):
    return hashlib.sha256(scheme.factors.tobytes() + scheme.terms.tobytes()).hexdigest()


def test_permutations_are_the_published_ones():
    """The checksum is of RedPajama's permutations for seed 42; that of the fast scheme is published
    with its signatures.
    """
    assert checksum(RPV2) == "6a5665743fa1884640a8eb3543348255a90b4dbd55b093f39e3d61ac90eac9e1"
    assert checksum(FAST) == "7567b47efcc29bb2fa71b1c5535f3e7e3daa267d6ca1d0c774a2c4d0c4cc74fa"
    assert all(FAST.factors % 2)


def test_bands_equal_the_published_code_on_edge_cases(shared_data):
    """Including texts of fewer than 13 words, of exactly 13, accents, joiners, control
    characters.
    """
    lines = (shared_data / "golden" / "edge_cases.jsonl").read_text("utf-8").splitlines()
    for case in map(json.loads, lines):
        numbers = signature(case["raw_content"], RPV2)
        found = {band.column: None for band in BANDS} if numbers is None else bands_of(numbers)
        wanted = {
            name: bands and [bytes.fromhex(band) for band in bands]
            for name, bands in case["minhash"].items()
        }
        assert found == wanted, case["name"]


@pytest.mark.parametrize("shelf", GOLDEN_BOOKS)
def test_bands_equal_the_published_code_on_books(shared_data, shelf):
    """The golden files hold SHA-256 of the bands in hex, one after the other."""
    for line in (shared_data / "golden" / f"{shelf}.jsonl").read_text("utf-8").splitlines():
        case = json.loads(line)
        text = (shared_data / case["file"]).read_bytes().decode()
        bands = bands_of(signature(text, RPV2))
        found = {
            name: hashlib.sha256(b"".join(some).hex().encode()).hexdigest()
            for name, some in bands.items()
        }
        assert found == case["minhash"], case["file"]


@SCHEMES
@given(
    st.lists(
        HOSTILE_TEXT | st.sampled_from(["word ", "of ", " x" * 13, "y" * 130 + " "]), max_size=30
    ).map("".join)
)
def test_compiled_signatures_are_the_plain_ones(scheme, text):
    """SHA-1 by `hashlib`, remainders by NumPy, n-grams as a set: none of the short cuts shows."""
    assert same(signature(text, scheme), plain_signature(text, scheme))


@given(HOSTILE_TEXT | st.integers(12, 40).map("Word ’s by ".__mul__))
def test_signatures_without_kernels_are_the_plain_ones(text):
    """Small inputs are signed without numba."""
    digests = minhash._rpv2_digests(normalized_utf8(text))
    numbers = np.empty((1, 128), np.uint32)
    minhash._minima_in_numpy([digests], numbers)
    assert same(numbers[0] if len(digests) else None, plain_signature(text, RPV2))


@SCHEMES
@given(st.lists(HOSTILE_TEXT | st.sampled_from(WORDS), max_size=6))
def test_texts_signed_together_are_signed_as_each(scheme, texts):
    """Short ones between long ones, empty ones, and n-grams of several in the lanes of one SHA-1."""
    numbers, is_signed = signatures_each(*normalized_together(texts), scheme)
    expected = [plain_signature(text, scheme) for text in texts]
    assert is_signed.tolist() == [signed is not None for signed in expected]
    assert all(
        np.array_equal(own, signed)
        for own, signed in zip(numbers, expected, strict=True)
        if signed is not None
    )


@SCHEMES
def test_every_length_of_a_shingle(scheme):
    """A message ends anywhere in a block: one byte more at a time, over the borders at 55, 64, 119
    and 128 bytes.
    """
    for length in range(1, 140):
        text = "a b c d e f g h i j k l " + "m" * length + " n" * 20
        assert same(signature(text, scheme), plain_signature(text, scheme)), length


@pytest.mark.parametrize(
    "term",
    [
        0,
        2**61 - 2,
        2**61 - 1,
        2**61,
        2**61 + 6,
        2**63,
        2**64 - 9,
        2**64 - 8,
        2**64 - 7,
        2**64 - 1,
        7 * 2**61 + 2**32 - 4,
    ],
)
def test_remainders_at_their_borders(term):
    """No text comes near them by chance: one hash in 2⁵⁸ does. Alone, and behind hashes of which
    most are not looked at exactly.
    """
    factors, terms, out = (
        np.array([1, 0, 2**61 - 2], dtype=np.uint64),
        np.full(3, term, dtype=np.uint64),
        np.zeros((2, 3), dtype=np.uint32),
    )

    def remainder(value, factor):
        return (value * int(factor) + term) % 2**64 % (2**61 - 1) % 2**32

    for value in (0, 1, 6, 7, 8, 2**32 - 1):
        hashes, ends = np.array([value] + 64 * [12] + [value], dtype=np.uint32), np.array([1, 66])
        minhash._prime_minima(hashes, ends, factors, terms, out)
        alone = [remainder(value, factor) for factor in factors]
        assert out[0].tolist() == alone
        assert out[1].tolist() == [
            min(own, remainder(12, factor)) for own, factor in zip(alone, factors, strict=True)
        ]


@SCHEMES
@pytest.mark.parametrize("n_words", [0, 12, 13, 14, 28, 29, 2060, 2061, 4200])
def test_every_number_of_shingles(scheme, n_words):
    """Fewer than a lane's worth, one more, a chunk and one more."""
    text = " ".join(str(number * number) for number in range(n_words))
    found = signature(text, scheme)
    assert (found is None) == (n_words < 13)
    assert same(found, plain_signature(text, scheme))


def same(left, right) -> bool:
    return right is None if left is None else np.array_equal(left, right)


@SCHEMES
def test_estimates_are_as_good_as_128_numbers_allow(scheme):
    """Against the true Jaccard index of made-up texts at every similarity; 0.044 is the error of
    128 fair draws at 0.5.
    """
    draw = random.Random(5)  # noqa: S311  made-up text is no secret
    words = [f"w{number}" for number in range(3000)]
    errors = []
    for _ in range(150):
        left = draw.choices(words, k=600)
        share = draw.random() ** 3 / 4
        right = [draw.choice(words) if draw.random() < share else word for word in left]
        texts = " ".join(left), " ".join(right)
        truth = jaccard(*map(shingle_hashes, texts))
        errors.append(estimated_similarity(*(signature(text, scheme) for text in texts)) - truth)
    rmse, bias = float(np.sqrt(np.mean(np.square(errors)))), float(np.mean(errors))
    print(f"\n{scheme.label}: RMSE {rmse:.4f}, mean error {bias:+.4f}")
    assert 0.015 < rmse < 0.045
    assert abs(bias) < 0.012


def test_known_fast_signature():
    """Stored signatures are compared with those of later runs, so this never changes within a
    version.
    """
    numbers = signature(
        "The quick brown fox jumps over the lazy dog while thirteen sleepy cats look on, bored.",
        FAST,
    )
    assert (
        hashlib.sha256(numbers.tobytes()).hexdigest()
        == "99ed77f24efd9316f7358f46edc52bae7385960bc282e0eb0968f9a25102ad2f"
    )
    assert FAST.label == "lc-fast/1"


@SCHEMES
@pytest.mark.parametrize(
    "text",
    [
        "x" * 10_000_000,
        "a " * 500_000,
        "\u0301\u0327" * 200_000,
        ("y" * 1_000_000 + " ") * 14,
        "\x00 " * 200_000,
    ],
)
def test_monotonous_text_takes_linear_time(scheme, text):
    """No spaces, nothing but repeats, marks out of order, words of a megabyte (13 times as many
    bytes), NUL.
    """
    signature(text, scheme)
