"""Hypothesis strategies that several test packages share: texts that break naive code, documents,
shards.
"""

from hypothesis import strategies as st

from lc_assets.formats.redpajama.documents import DocumentRecord
from lc_assets.vocabulary import BUCKETS, LANGUAGES, Shard, parse_snapshot

TRICKY_CHARACTERS = (
    "\n\n\n \t\r\x0b\x0c\x1c\x85\xa0\u2028\u3000"  # newlines, and spaces that are no newlines
    # case: sharp s, dotted I, final sigma, title case, roman numeral
    "aAbBzZ\u00e9\u00c9\u00df\u0130\u03a3\u03c3\u01c5\u2163\u4e16"
    # marks out of order, joiners, zero width, beyond 16 bits
    "\u0301\u0327\u0f73\u0344\u200b\u200d\ufeff\u00ad\U0001f600"
    # numerals, punctuation, bullets
    "019\u00bd\u00b2#{}_-'\"\\/.!?,;\u037e\u2026\u201c\u201d\u2022\u2023\u2013"
)
PIECES = (
    "lorem ipsum",
    "Lorem, Ipsum",
    "javascript",
    "JavaScript:",
    "...",
    "\u2026\n",
    "\n\u2022 ",
    "\r\n",
    "the end ",
    "<|endoftext|>",
)


def hostile_text() -> st.SearchStrategy[str]:
    """Text without lone surrogates, dense in edge cases of signals."""
    piece = st.one_of(
        st.sampled_from(TRICKY_CHARACTERS),
        st.sampled_from(PIECES),
        st.characters(exclude_categories=("Cs",)),
    )
    return st.lists(piece, max_size=60).map("".join)


def repetitive_words() -> st.SearchStrategy[list[str]]:
    """Words of few kinds and several lengths, so that n-grams repeat, overlap and tie."""
    return st.lists(st.sampled_from(["a", "bb", "ccc"]), max_size=80) | st.lists(
        st.sampled_from(["x", "yy"]), max_size=40
    )


def shards() -> st.SearchStrategy[Shard]:
    """Any shard of RedPajama-V2, of a few snapshots."""
    snapshot = st.sampled_from(["2014-15", "2023-06", "my_own"]).map(parse_snapshot)
    name = st.builds(
        "{:04d}-{}_{}".format,
        st.integers(0, 4999),
        st.sampled_from(LANGUAGES),
        st.sampled_from(BUCKETS),
    )
    return st.builds(Shard, snapshot, name)


def documents() -> st.SearchStrategy[DocumentRecord]:
    """Records with every field filled, hostile ones included."""
    words = hostile_text()
    counts = st.integers(0, 2**53)
    scores = st.floats(allow_nan=False, allow_infinity=False)
    return st.builds(
        DocumentRecord,
        url=words,
        date_download=words,
        digest=words,
        length=counts,
        nlines=counts,
        source_domain=words,
        title=words,
        raw_content=words,
        cc_segment=words,
        original_nlines=counts,
        original_length=counts,
        line_ids=st.lists(counts, max_size=3),
        language=st.sampled_from(LANGUAGES),
        language_score=scores,
        perplexity=scores,
        bucket=st.sampled_from(BUCKETS),
    )
