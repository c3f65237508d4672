"""Our spaCy words are spaCy's."""

import json
from pathlib import Path

import pytest

from lc_assets.text.measures import spacy_words
from lc_assets.text.measures.spacy_words import count_sentences, spaced
from lc_assets_tests.named_draws import rng_for

GOLDEN = Path(__file__).parents[1] / "golden" / "measures" / "datatrove.json"
PIECES = """
    don't can't We'd've Id id. it's U.S. a.m. 10am 5km 12°C. $5 US$7 e.g. vs. :-) ): '' well-known and/or
    1,000 3.5 a,b x=1 (see) "Yes." ... word... a...b C++ README.md https://a.org/x?y=1 me@a.org — o'clock
    Aug. J.K. NASA. NASA's dogs' 'em ‘quoted’ “so” café É.É 50% +1 1+1 1-2 #tag @me * a/b <b> {x} 你好。
""".split()  # noqa: SIM905


def test_words_and_sentences_are_the_recorded_ones():
    """Of the texts that datatrove measured, spaCy's words and its sentences per line."""
    for entry in json.loads(GOLDEN.read_text("utf-8")):
        assert spaced(entry["text"]).split() == entry["words"]
        lines = filter(str.strip, entry["text"].splitlines())
        assert [count_sentences(line) for line in lines] == entry["sentences"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("I can't, we'd've; it’s", "I ca n't , we 'd 've ; it ’s"),
        ("id. (last): c.Emax ''", "i d. ( last ): c. Emax ''"),
        ("(5km) US$7.50, 12°C. 10pm!", "( 5 km ) US$ 7.50 , 12 ° C . 10 pm !"),
        ("see https://a.org/x,y or me@a.org.", "see https://a.org/x,y or me@a.org ."),
        ("the U.S. and NASA. e.g. J.K.", "the U.S. and NASA . e.g. J.K."),
        ("a...b word....... café.", "a ... b word ....... café ."),
        ("état.État A.B x-y 1-2 a/b", "état . État A.B x - y 1 - 2 a / b"),
        ("", ""),
    ],
)
def test_runs_are_cut_as_spacy_cuts_them(text, words):
    """Every rule once; the words are what spaCy 3.8 gives."""
    assert spaced(text) == words


def test_long_runs_are_cut_piece_by_piece_and_not_remembered():
    """The words of a long run are those of a short one; no run above 64 characters is kept."""
    for piece in ("(", "a.", "x,", "1+", "):", "...)", "@", "a@a.a"):
        cut, short = (spaced(piece * n).split() for n in (50_000, 50))
        assert "".join(cut) == piece * 50_000
        assert set(cut) <= {*short, cut[0], cut[-1]}
    assert max(map(len, spacy_words._runs)) <= 64


def test_remembered_runs_are_bounded(monkeypatch):
    """As many as the limit, whatever is read."""
    monkeypatch.setattr(spacy_words, "_CACHED", 10)
    spaced(" ".join(f"word{number}" for number in range(100)))
    assert len(spacy_words._runs) <= 10


@pytest.mark.network
def test_random_runs_and_books_are_those_of_the_installed_spacy(shared_data):
    """One word in 10,000 may differ: the two simplifications."""
    spacy = pytest.importorskip("spacy")
    tokenizer = spacy.blank("en").tokenizer
    rng = rng_for("runs for spaCy", seed=1)
    runs = [" ".join("".join(rng.choice(PIECES, 2)) for _ in range(10)) for _ in range(2000)]
    books = [path.read_text("utf-8")[:100_000] for path in (shared_data / "books_en").glob("*.txt")]
    for texts, most in ((runs, 0.02), (books, 0.0001)):
        n_words = n_other = 0
        for text in texts:
            for run in text.split():
                theirs = [token.text for token in tokenizer(run)]
                n_words += len(theirs)
                n_other += theirs != spaced(run).split()
        assert n_other <= most * n_words
